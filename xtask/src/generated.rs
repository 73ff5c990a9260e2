//! Files that are made, not written, and are committed all the same.
//!
//! `cargo xtask gen` makes them again; [`GENERATED`] is the list.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::Workspace;
use crate::{python, steps};

/// A Python script, what it writes, and what it needs beyond the standard library.
struct Generated {
    script: &'static str,
    writes: &'static str,
    needs: &'static str,
}

const GENERATED: &[Generated] = &[Generated {
    script: "examples/make_tiny.py",
    writes: "examples/tiny, examples/lora, examples/quantized",
    needs: "torch, safetensors, numpy",
}];

/// Makes all of them again.
///
/// # Errors
///
/// When a script cannot be run or fails.
pub(crate) fn write(workspace: &Workspace) -> Result<()> {
    let (interpreter, _) = python::interpreter()?;
    for generated in GENERATED {
        let mut command = Command::new(&interpreter);
        command.current_dir(&workspace.root).arg(generated.script);
        steps::run(command).with_context(|| {
            format!(
                "{} are not made again; their script needs the Python packages {}",
                generated.writes, generated.needs
            )
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_and_what_it_writes_is_there() {
        let root = Workspace::load().unwrap().root;
        for generated in GENERATED {
            assert!(root.join(generated.script).is_file(), "{}", generated.script);
            for path in generated.writes.split(", ") {
                assert!(root.join(path).exists(), "{path}");
            }
        }
    }
}
