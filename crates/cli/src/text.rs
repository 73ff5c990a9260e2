//! Text that the command line names a file of: a value, an object of them, a map of names.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::session::Failure;
use crate::units;

/// Bytes that are read, at most: no header has room for as many.
const MOST: u64 = 256 << 20;

/// The text of a file, or of stdin for `-`.
///
/// # Errors
///
/// If it cannot be read, is not UTF-8, or is too long for any header.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        io::stdin().lock().take(MOST + 1).read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::from(&weigh::io::Error::system(path, error)))?;
    let failed = |code, message: &str| {
        let path = path.to_string_lossy().into_owned();
        Failure { code, message: format!("{path}: {message}"), path, help: None }
    };
    if bytes.len() as u64 > MOST {
        let message = format!("is over {}, more than any header has", units::bytes(MOST));
        return Err(failed("text-too-long", &message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        failed("text-not-utf8", &format!("is not UTF-8 from byte {} on", units::exact(at)))
    })
}
