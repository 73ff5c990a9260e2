//! Whether what is of no known kind is a pickle after all: a pickle can begin like text.

use weigh_pickle::Limits;

/// What bytes of no known kind come to as a pickle.
pub(super) enum Trial {
    Nothing,
    Pickle,
    /// They end before that is known.
    Unfinished,
}

/// Runs the first bytes of `len`.
pub(super) fn trial(bytes: &[u8], len: u64, limits: &Limits) -> Trial {
    let program = weigh_pickle::run(bytes, limits);
    // Text has words where a pickle has names.
    let names = || program.globals.iter().filter_map(|global| program.graph.global(global.node));
    let is_word = |text: &str| {
        !text.is_empty() && text.chars().all(|it| it.is_alphanumeric() || matches!(it, '_' | '.'))
    };
    let imports = names().any(|(module, name)| is_word(module) && is_word(name));
    let cut = u64::try_from(bytes.len()).unwrap_or(u64::MAX) < len;
    match &program.error {
        None if program.root.is_some() => Trial::Pickle,
        Some(error) if cut && error.code == "pickle-truncated" => Trial::Unfinished,
        _ if imports && !program.foreign.is_empty() => Trial::Pickle,
        _ => Trial::Nothing,
    }
}
