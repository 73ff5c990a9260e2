//! Files that are made, not written, and are committed all the same.
//!
//! `cargo xtask gen` makes them again; [`GENERATED`] is the list. One that cannot
//! be made is a fault, and the others are made all the same.

use std::fs;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use crate::{python, steps};

/// Files or folders, and how they are made.
struct Generated {
    writes: &'static [&'static str],
    by: Maker,
}

/// What makes generated files.
enum Maker {
    /// A Python script that writes them.
    Script {
        path: &'static str,
        /// The modules that it needs beyond the standard library.
        needs: &'static [&'static str],
    },
    /// Our program: what it prints is the file.
    Program(&'static [&'static str]),
    /// A test that compares, and writes instead where `UPDATE` is set.
    Test { package: &'static str, name: &'static str },
}

/// In this order: the messages are those of the corpus.
const GENERATED: &[Generated] = &[
    Generated {
        writes: &[
            "conformance/format/cases",
            "conformance/format/expected.tsv",
            "conformance/format/derived.tsv",
        ],
        by: Maker::Script { path: "conformance/format/generate.py", needs: &[] },
    },
    Generated {
        writes: &["crates/format/tests/messages.txt"],
        by: Maker::Test { package: "weigh-format", name: "messages" },
    },
    Generated {
        writes: &["docs/rules.md"],
        by: Maker::Program(&["check", "--rules", "--format", "markdown"]),
    },
    Generated {
        writes: &["crates/format/tests/slice_cases.txt"],
        by: Maker::Script { path: "crates/format/tests/slice_cases.py", needs: &["numpy"] },
    },
    Generated {
        writes: &["examples/tiny", "examples/lora", "examples/quantized"],
        by: Maker::Script {
            path: "examples/make_tiny.py",
            needs: &["torch", "safetensors", "numpy"],
        },
    },
];

/// Makes all of them again, and says which could not be.
///
/// # Errors
///
/// When something could not be made.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    let mut faults = Vec::new();
    for generated in GENERATED {
        if let Err(error) = make(workspace, generated) {
            faults.push(format!("{} not made again: {error:#}", generated.writes.join(", ")));
        }
    }
    steps::report("gen", &faults)
}

fn make(workspace: &Workspace, generated: &Generated) -> Result<()> {
    match &generated.by {
        Maker::Script { path, needs } => {
            let (interpreter, _) = python::interpreter()?;
            let packages = needs.join(", ");
            let mut import = Command::new(&interpreter);
            import.args(["-c", &format!("import {packages}")]).stderr(Stdio::null());
            if !needs.is_empty() && !import.status()?.success() {
                let program = interpreter.to_string_lossy();
                bail!("{program} lacks one of the packages {packages}");
            }
            let mut command = Command::new(&interpreter);
            command.current_dir(&workspace.root).arg(path);
            steps::run(command)
        }
        Maker::Program(arguments) => {
            let [file] = generated.writes else {
                bail!("one output cannot be several files");
            };
            let mut command = workspace.cargo(["run", "--quiet", "--package", "weigh-cli"]);
            command.args(["--bin", "weigh", "--"]).args(*arguments);
            let printed = steps::output(command)?;
            let file = workspace.root.join(file);
            fs::write(&file, printed).with_context(|| format!("cannot write {}", file.display()))
        }
        Maker::Test { package, name } => {
            let mut command = workspace.cargo(["test", "--package", package, "--test", name]);
            command.env("UPDATE", "1");
            steps::run(command)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_and_what_is_written_is_there() {
        let root = Workspace::load().unwrap().root;
        for generated in GENERATED {
            if let Maker::Script { path, .. } = &generated.by {
                assert!(root.join(path).is_file(), "{path}");
            }
            for path in generated.writes {
                assert!(root.join(path).exists(), "{path}");
            }
        }
    }
}
