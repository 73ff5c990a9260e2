//! The page cache: which of a file's bytes are in it, and how to change that.
//!
//! Only the files at hand are touched. Every change is looked at afterwards: the system decides what
//! it keeps, and a virtual machine may drop pages all the time to give memory back to its host.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// How much of a file has to be in the cache for it to be warm, in percent.
const ENOUGH: u64 = 99;

/// Reads the files, until [`ENOUGH`] of each is in the cache.
pub(crate) fn warm(files: &[PathBuf]) -> Result<()> {
    for path in files {
        let enough = path.metadata()?.len() / 100 * ENOUGH;
        let mut tries = 3;
        loop {
            // Even what is there: what was not used for a minute is what a system drops first.
            let mut reader = BufReader::with_capacity(1 << 20, File::open(path)?);
            io::copy(&mut reader, &mut io::sink())?;
            if resident(path)? >= enough {
                break;
            }
            tries -= 1;
            ensure!(tries > 0, "{} does not stay in the page cache", path.display());
        }
    }
    Ok(())
}

/// Drops the files from the cache; what is not yet on disk is written first.
pub(crate) fn evict(files: &[PathBuf]) -> Result<()> {
    for path in files {
        let mut command = Command::new("dd");
        command.arg(operand("of=", path));
        command.args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
        let status = command.status().context("cannot start dd")?;
        ensure!(status.success(), "dd cannot drop {} from the cache", path.display());
        let left = resident(path)?;
        ensure!(left == 0, "{left} bytes of {} stay in the page cache", path.display());
    }
    Ok(())
}

/// How many bytes of a file are in the cache, in whole pages.
fn resident(path: &Path) -> Result<u64> {
    let mut command = Command::new("fincore");
    command.args(["--bytes", "--noheadings", "--raw", "--output", "RES"]).arg(path);
    let output = command.output().context("cannot start fincore, of the package util-linux")?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().with_context(|| format!("fincore cannot read {}", path.display()))
}

/// An operand of `dd`: its name with `=`, and a path.
pub(crate) fn operand(name: &str, path: &Path) -> std::ffi::OsString {
    let mut operand = std::ffi::OsString::from(name);
    operand.push(path);
    operand
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_into_the_cache_and_out_of_it() {
        // The build folder: the system's temporary one may be memory, which cannot be dropped.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![1; 20_000]).unwrap();
        let files = [path];
        evict(&files).unwrap();
        assert_eq!(resident(&files[0]).unwrap(), 0);
        warm(&files).unwrap();
        assert!(resident(&files[0]).unwrap() >= 20_000);
    }
}
