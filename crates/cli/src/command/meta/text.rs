//! Text that is read for metadata: a value, or a JSON object of them.

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
pub(super) fn read(path: &Path) -> Result<String, Failure> {
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
        let message = format!("is over {}, more than a header has room for", units::bytes(MOST));
        return Err(failed("value-too-long", &message));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to() as u64;
        let message = format!("is not UTF-8 from byte {} on", units::exact(at));
        Failure {
            help: Some("Metadata is text: encode the bytes first, as in base64.".into()),
            ..failed("value-not-utf8", &message)
        }
    })
}
