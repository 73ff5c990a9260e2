//! Metadata as a JSON object of strings: read without losing anything, and written.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::json::Json;
use crate::metadata::compact;
use crate::session::Failure;

/// Why a text is no metadata.
#[derive(Debug)]
pub(super) enum Fault {
    /// It is not an object in JSON.
    Syntax(serde_json::Error),
    /// A key is there twice.
    Twice(String),
    /// The value of a key is a number or the like.
    NotText { key: String, what: &'static str },
    /// The string of a key is not one: half of a surrogate pair, as in `\ud800`.
    NotUnicode { key: String, error: serde_json::Error },
}

impl Fault {
    /// The same, of a file.
    pub(super) fn failure(&self, path: &str) -> Failure {
        let (code, help) = match self {
            Self::Syntax(_) | Self::NotUnicode { .. } => ("metadata-json", None),
            Self::Twice(_) => ("key-twice", Some("Give it one value.")),
            Self::NotText { .. } => {
                ("metadata-not-text", Some("Put it in quotes; `import --stringify` does that."))
            }
        };
        let message = format!("{path}: {self}");
        Failure { path: path.into(), code, message, help: help.map(String::from) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax(error) => write!(f, "is not a JSON object of strings: {error}"),
            Self::Twice(key) => write!(f, "the key `{key}` is there twice"),
            Self::NotText { key, what } => {
                write!(f, "the value of `{key}` is {what}, and metadata is text")
            }
            Self::NotUnicode { key, error } => write!(f, "the value of `{key}`: {error}"),
        }
    }
}

/// Reads an object of strings; with `stringify`, other values become the JSON that they are.
///
/// # Errors
///
/// See [`Fault`].
pub(super) fn parse(text: &str, stringify: bool) -> Result<BTreeMap<String, String>, Fault> {
    let Members(members) = serde_json::from_str(text).map_err(Fault::Syntax)?;
    let mut metadata = BTreeMap::new();
    for (key, value) in members {
        let json = value.get();
        let value = match kind(json) {
            None => match serde_json::from_str(json) {
                Ok(text) => text,
                Err(error) => return Err(Fault::NotUnicode { key, error }),
            },
            Some(_) if stringify => compact(json),
            Some(what) => return Err(Fault::NotText { key, what }),
        };
        if metadata.contains_key(&key) {
            return Err(Fault::Twice(key));
        }
        metadata.insert(key, value);
    }
    Ok(metadata)
}

/// What a value is, if not a string.
fn kind(json: &str) -> Option<&'static str> {
    Some(match json.as_bytes().first() {
        Some(b'"') => return None,
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    })
}

/// Writes an object, a pair a line. No character in it acts on a terminal.
pub(super) fn write(out: &mut impl Write, metadata: &BTreeMap<String, String>) -> io::Result<()> {
    write!(out, "{{")?;
    for (number, (key, value)) in metadata.iter().enumerate() {
        write!(out, "{}\n  ", if number == 0 { "" } else { "," })?;
        Json::new(&mut *out).text(key)?;
        write!(out, ": ")?;
        Json::new(&mut *out).text(value)?;
    }
    writeln!(out, "{}}}", if metadata.is_empty() { "" } else { "\n" })
}

/// The members of an object, in order, as they stand in the text.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_object_of_strings_is_metadata() {
        for (text, want) in [
            ("{}", Ok("{}\n")),
            (r#"{"b":"é\u0041","a":""}"#, Ok("{\n  \"a\": \"\",\n  \"b\": \"éA\"\n}\n")),
            (r#"{"a":"\u202e\u001b"}"#, Ok("{\n  \"a\": \"\\u202e\\u001b\"\n}\n")),
            (r#"{"a":1}"#, Err("the value of `a` is a number, and metadata is text")),
            (r#"{"a":true}"#, Err("the value of `a` is a boolean, and metadata is text")),
            (r#"{"a":null}"#, Err("the value of `a` is null, and metadata is text")),
            (r#"{"a":[]}"#, Err("the value of `a` is an array, and metadata is text")),
            (r#"{"a":{}}"#, Err("the value of `a` is an object, and metadata is text")),
            (r#"{"a":"1","\u0061":"2"}"#, Err("the key `a` is there twice")),
            (
                r#"{"a":"\ud800"}"#,
                Err("the value of `a`: unexpected end of hex escape at line 1 column 8"),
            ),
            (
                "[]",
                Err(
                    "is not a JSON object of strings: invalid type: sequence, expected an object at line 1 column 0",
                ),
            ),
            (
                "{\"a\":\n \"b\",}",
                Err("is not a JSON object of strings: trailing comma at line 2 column 6"),
            ),
            (
                "{} x",
                Err("is not a JSON object of strings: trailing characters at line 1 column 4"),
            ),
        ] {
            let got = parse(text, false).map_err(|fault| fault.to_string());
            let shown = got.map(|metadata| {
                let mut out = Vec::new();
                write(&mut out, &metadata).unwrap();
                String::from_utf8(out).unwrap()
            });
            assert_eq!(shown.as_deref().map_err(String::as_str), want, "{text}");
        }
    }

    #[test]
    fn other_values_can_become_the_json_that_they_are() {
        let text =
            r#"{"a": 1.50, "b": [1e999, {"x" : null}], "c": "text", "d": 12345678901234567890123}"#;
        let metadata = parse(text, true).unwrap();
        let values: Vec<&str> = metadata.values().map(String::as_str).collect();
        assert_eq!(values, ["1.50", r#"[1e999,{"x":null}]"#, "text", "12345678901234567890123"]);
    }

    #[test]
    fn nothing_that_is_nested_takes_the_stack() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(parse(&deep, false).is_err());
        assert_eq!(parse(&deep, true).unwrap()["a"].len(), 2_000_000);
    }
}
