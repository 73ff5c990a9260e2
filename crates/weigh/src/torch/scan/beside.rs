//! What lies beside weights and is no data: code, templates, executables. Named for what it is, and no more.

use weigh_format::{Finding, Rule};

use super::keras::Finder;
use crate::torch::rules;

/// Bytes of a configuration that are looked at.
pub(super) const CONFIGURATION: u64 = 16 << 20;

/// Bytes of an HDF5 file that are searched for functions.
pub(super) const SEARCHED: u64 = 256 << 20;

/// A function in the configuration of a Keras model.
pub(super) fn function() -> Finding {
    Finding::new(
        &rules::KERAS_LAMBDA,
        "a Keras model with a Lambda layer, or a function in another",
    )
}

/// What a name alone tells.
pub(super) fn by_name(name: &str) -> Option<Finding> {
    let name = name.rsplit(['/', '\\']).next().unwrap_or(name).to_ascii_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let finding = |rule: &'static Rule, message: &str| Some(Finding::new(rule, message));
    match extension {
        "py" | "pyc" | "pyo" | "pyw" => finding(&rules::CUSTOM_CODE, "Python code"),
        "ipynb" => finding(&rules::CUSTOM_CODE, "a notebook, which has code"),
        "sh" | "bash" | "bat" | "cmd" | "ps1" => finding(&rules::CUSTOM_CODE, "a shell script"),
        "jinja" | "jinja2" | "j2" => finding(&rules::TEMPLATE, "a Jinja template"),
        _ => None,
    }
}

/// Whether the content of a file of this name is looked at as a configuration.
pub(super) fn is_configuration(name: &str) -> bool {
    name.to_ascii_lowercase().ends_with("config.json")
}

/// What a configuration tells, and what its first bytes do.
pub(super) fn by_content(name: &str, bytes: &[u8]) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(format) = executable(bytes) {
        let message = format!("an executable or a library ({format})");
        findings.push(Finding::new(&rules::EXECUTABLE, message));
    } else if bytes.starts_with(b"#!") {
        findings.push(Finding::new(&rules::CUSTOM_CODE, "a script, by its first line"));
    }
    if !is_configuration(name) {
        return findings;
    }
    let text = plain(bytes);
    let has = |key: &str| text.contains(key);
    if has("\"auto_map\":") {
        findings.push(Finding::new(&rules::AUTO_MAP, "`auto_map` names classes of its own"));
    }
    findings.extend(Finder::all(bytes).into_iter().map(|place| function().at(place)));
    if has("\"chat_template\":") {
        findings.push(Finding::new(&rules::TEMPLATE, "`chat_template` is a Jinja template"));
    }
    findings
}

/// JSON without white space and with its escaped ASCII written out, to look for keys in.
fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        if character.is_whitespace() {
            continue;
        }
        if character == '\\' {
            let mut ahead = rest.clone();
            if ahead.next() == Some('u') {
                let digits: String = ahead.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                if let Some(code) = code.filter(char::is_ascii_alphanumeric) {
                    plain.push(code);
                    rest = ahead;
                    continue;
                }
            }
            plain.push('\\');
            plain.extend(rest.next());
            continue;
        }
        plain.push(character);
    }
    plain
}

/// The format of an executable that begins with these bytes.
fn executable(bytes: &[u8]) -> Option<&'static str> {
    let word = |at: usize| bytes.get(at..)?.first_chunk::<4>().copied();
    match word(0)? {
        [0x7f, b'E', b'L', b'F'] => Some("ELF"),
        // The place of the real header follows; programs of other kinds begin with these letters too.
        [b'M', b'Z', ..] => {
            let at = usize::try_from(u32::from_le_bytes(word(0x3c)?)).ok()?;
            (word(at)? == *b"PE\0\0").then_some("PE")
        }
        [0xfe, 0xed, 0xfa, 0xce | 0xcf] | [0xce | 0xcf, 0xfa, 0xed, 0xfe] => Some("Mach-O"),
        // Java classes have the same first word, and then a version above this number of parts.
        [0xca, 0xfe, 0xba, 0xbe] => {
            let parts = u32::from_be_bytes(word(4)?);
            (1..=30).contains(&parts).then_some("Mach-O")
        }
        [0, b'a', b's', b'm'] => Some("WebAssembly"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_however_they_are_written() {
        for (json, want) in [
            (r#"{"auto_map": {"AutoModel": "m.M"}}"#, &["auto-map"][..]),
            ("{ \"\\u0061uto_map\"\n: {} }", &["auto-map"]),
            (r#"{"text": "\"auto_map\":"}"#, &[]),
            (r#"{"automap": 1}"#, &[]),
            (r#"{"class_name" : "Lambda"}"#, &["keras-lambda"]),
            (r#"{"chat_template": "{{ x }}"}"#, &["chat-template"]),
        ] {
            let found = by_content("config.json", json.as_bytes());
            let codes: Vec<_> = found.iter().map(Finding::code).collect();
            assert_eq!(codes, want, "{json}");
        }
        assert!(by_content("other.json", br#"{"auto_map":{}}"#).is_empty());
    }

    #[test]
    fn executables_are_told_from_what_begins_like_them() {
        let mut pe = vec![0; 0x80];
        pe[..2].copy_from_slice(b"MZ");
        pe[0x3c] = 0x40;
        assert_eq!(executable(&pe), None);
        pe[0x40..0x44].copy_from_slice(b"PE\0\0");
        assert_eq!(executable(&pe), Some("PE"));
        assert_eq!(executable(b"\x7fELF\x02"), Some("ELF"));
        assert_eq!(executable(b"\xca\xfe\xba\xbe\0\0\0\x02"), Some("Mach-O"));
        assert_eq!(executable(b"\xca\xfe\xba\xbe\0\0\0\x34"), None);
        assert_eq!(executable(b"ELF"), None);
    }
}
