//! Which tensors are meant, by `PATH:SELECTOR` and by flags, and what to say if none are.

use std::path::Path;

use weigh::Survey;
use weigh::format::Dtype;
use weigh::inventory::select::{Builder, PatternError, Selection};
use weigh::inventory::{DtypeSet, Item};

use super::{Tensors, nearest};
use crate::args::Select;
use crate::session::{Failure, Outcome, Session};

/// Which tensors are meant: those that both the address and the flags select.
#[derive(Debug)]
pub(crate) struct Meant<'f> {
    flags: &'f Selection,
    address: Selection,
    /// What the address selects by, as it was given.
    pub(crate) selector: Option<&'f str>,
}

/// The selection that flags ask for.
///
/// # Errors
///
/// If one is not a glob, or not a regular expression.
pub(crate) fn by_flags(select: &Select) -> Result<Selection, Failure> {
    let dtypes = select.dtype.iter().copied();
    let mut builder = dtypes.fold(by_patterns(select), Builder::dtype);
    if let Some(bytes) = select.min_size {
        builder = builder.min_bytes(bytes);
    }
    if let Some(bytes) = select.max_size {
        builder = builder.max_bytes(bytes);
    }
    builder.build().map_err(|error| not_a_pattern(String::new(), error.to_string(), &error))
}

/// The selection that the selector of an address asks for.
///
/// # Errors
///
/// If it is not a glob.
fn by_address(path: &Path, selector: Option<&str>) -> Result<Selection, Failure> {
    let builder = Selection::builder();
    let address = match selector {
        Some(selector) => builder.include(selector).build(),
        None => builder.build(),
    };
    address.map_err(|error| {
        let path = path.to_string_lossy().into_owned();
        let message = format!("{path}: {error}");
        not_a_pattern(path, message, &error)
    })
}

fn not_a_pattern(path: String, message: String, error: &PatternError) -> Failure {
    Failure { path, code: error.code(), message, help: Some(error.help().into()) }
}

fn by_patterns(select: &Select) -> Builder {
    let builder = Selection::builder();
    let builder = select.include.iter().fold(builder, Builder::include);
    let builder = select.exclude.iter().fold(builder, Builder::exclude);
    let builder = select.regex.iter().fold(builder, Builder::regex);
    select.exclude_regex.iter().fold(builder, Builder::exclude_regex)
}

impl<'f> Meant<'f> {
    /// Those that the flags and the selector of an address, of the checkpoint at `path`, mean.
    ///
    /// # Errors
    ///
    /// If the selector is not a glob.
    pub(crate) fn new(
        flags: &'f Selection,
        path: &Path,
        selector: Option<&'f str>,
    ) -> Result<Self, Failure> {
        Ok(Self { flags, address: by_address(path, selector)?, selector })
    }

    /// Whether every tensor is meant.
    pub(crate) fn is_all(&self) -> bool {
        self.flags.is_all() && self.address.is_all()
    }

    /// Whether this one is.
    pub(crate) fn has(&self, item: &Item<'_>) -> bool {
        self.flags.matches(item) && self.address.matches(item)
    }

    /// The patterns that match none of the names.
    pub(crate) fn unmatched<'n, I>(&self, names: impl Fn() -> I) -> Vec<&str>
    where
        I: Iterator<Item = &'n str>,
    {
        let selections = [&self.address, self.flags];
        selections.into_iter().flat_map(|it| it.unmatched(names())).collect()
    }

    /// Says on stderr which patterns match no tensor of the survey, if any, and why none is meant, if `none` is.
    pub(crate) fn report(
        &self,
        session: &mut Session,
        survey: &Survey,
        select: &Select,
        none: bool,
    ) {
        // A single pattern that has found something has been looked at enough.
        if !none && (self.is_all() || select.include.len() + select.regex.len() < 2) {
            return;
        }
        let path = survey.path().display();
        let all = Tensors::of(survey);
        let names = || all.iter().map(|row| row.name);
        let unmatched = self.unmatched(names);
        for pattern in &unmatched {
            let message = format!("{path}: no tensor name matches `{pattern}`");
            let help = nearest::help(pattern, names);
            session.output.error(&message, help.as_deref());
        }
        // A checkpoint without tensors is none the worse for it.
        if !unmatched.is_empty() || (none && !self.is_all()) {
            session.came_to(Outcome::Finding);
        }
        if none && unmatched.is_empty() && !self.is_all() {
            let (message, help) = self.none_left(survey, select);
            session.output.error(&format!("{path}: {message}"), help.as_deref());
        }
    }

    /// Why nothing is left although each pattern matches something.
    fn none_left(&self, survey: &Survey, select: &Select) -> (String, Option<String>) {
        let mut dtypes = DtypeSet::EMPTY;
        if let Ok(named) = by_patterns(select).build() {
            let all = Tensors::of(survey);
            let items = all.iter().map(|row| row.item());
            let named = items.filter(|it| named.matches(it) && self.address.matches(it));
            dtypes = named.filter_map(|item| item.dtype).collect();
        }
        let list = |dtypes: &mut dyn Iterator<Item = Dtype>| {
            let names: Vec<&str> = dtypes.map(Dtype::name).collect();
            names.join(", ")
        };
        if select.dtype.is_empty() || dtypes.is_empty() {
            let message = "no tensor is left by all selectors together";
            return (message.into(), None);
        }
        let wanted = list(&mut select.dtype.iter().copied());
        let there = list(&mut dtypes.iter());
        (format!("no tensor has dtype {wanted}"), Some(format!("The dtypes there are: {there}.")))
    }
}
