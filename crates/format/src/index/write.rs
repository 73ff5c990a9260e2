//! The bytes of a shard index, as the libraries of Hugging Face write it.
//!
//! JSON with two spaces of indent, keys in the order of their bytes, nothing but ASCII, and a line feed
//! at the end. The same input gives the same bytes, in whatever order tensors are given.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::is_plain_file_name;

/// A value that an index has beside its totals and its map: a string, or anything else that JSON has.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Extra {
    text: String,
    is_string: bool,
}

impl Extra {
    /// A number, boolean, null, array or object as it stands in JSON.
    pub(super) fn literal(json: &str) -> Self {
        let mut text = String::with_capacity(json.len());
        let (mut is_inside, mut is_escaped) = (false, false);
        for character in json.chars() {
            match character {
                ' ' | '\t' | '\n' | '\r' if !is_inside => continue,
                '"' if !is_escaped => is_inside = !is_inside,
                _ => {}
            }
            is_escaped = is_inside && !is_escaped && character == '\\';
            match character {
                ' '..='~' => text.push(character),
                _ => {
                    let _ = crate::text::write_escape(&mut text, character);
                }
            }
        }
        Self { text, is_string: false }
    }

    /// The string; of anything else its JSON, without white space and in ASCII, as it was spelled otherwise.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it is a string.
    #[must_use]
    pub fn is_string(&self) -> bool {
        self.is_string
    }
}

impl From<String> for Extra {
    fn from(text: String) -> Self {
        Self { text, is_string: true }
    }
}

impl From<u64> for Extra {
    fn from(number: u64) -> Self {
        Self { text: number.to_string(), is_string: false }
    }
}

/// Why an index cannot be written. Nothing has been.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum IndexError {
    /// This tensor is mapped twice.
    DuplicateName(String),
    /// This is not a plain file name, see [`is_plain_file_name`].
    FileName(String),
}

impl IndexError {
    /// The stable code: that of the rule that the index would break.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::DuplicateName(_) => "duplicate-key",
            Self::FileName(_) => "index-path",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn help(&self) -> &'static str {
        match self {
            Self::DuplicateName(_) => "Rename or leave out one of them.",
            Self::FileName(_) => {
                "Rename the file, or say what the new ones are called (`weigh split --name`): in at most 255 bytes, \
                 without / \\ : or control characters, and with no dot at either end."
            }
        }
    }
}

impl fmt::Display for IndexError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = crate::text::escaped;
        match self {
            Self::DuplicateName(name) => {
                write!(f, "tensor `{}` is mapped to a file twice", shown(name))
            }
            Self::FileName(file) => write!(f, "`{}` is not a plain file name", shown(file)),
        }
    }
}

impl core::error::Error for IndexError {}

/// Encodes the index of a set of files.
///
/// `weight_map` is each tensor's name and file; `total_size` the bytes of all tensors;
/// `total_parameters` how many parameters they are, if that is known; `extra` what else its metadata
/// has, and `beside` what it has beside them. The totals are not taken from `extra`, nor the map and the metadata
/// from `beside`, should they have such keys. Arrays and objects in them are written on one line.
///
/// # Errors
///
/// [`IndexError`] if a reader would refuse the index.
///
/// ```
/// use std::collections::BTreeMap;
/// use weigh_format::index::encode;
///
/// let index = encode(&[("w", "model.safetensors")], 8, None, &BTreeMap::new(), &BTreeMap::new())?;
/// assert_eq!(
///     str::from_utf8(&index),
///     Ok(r#"{
///   "metadata": {
///     "total_size": 8
///   },
///   "weight_map": {
///     "w": "model.safetensors"
///   }
/// }
/// "#)
/// );
/// # Ok::<(), weigh_format::index::IndexError>(())
/// ```
pub fn encode(
    weight_map: &[(&str, &str)],
    total_size: u64,
    total_parameters: Option<u64>,
    extra: &BTreeMap<String, Extra>,
    beside: &BTreeMap<String, Extra>,
) -> Result<Vec<u8>, IndexError> {
    let mut sorted: Vec<&(&str, &str)> = weight_map.iter().collect();
    sorted.sort_unstable();
    if let Some([(name, _), _]) = sorted.array_windows().find(|[one, other]| one.0 == other.0) {
        return Err(IndexError::DuplicateName((*name).into()));
    }
    if let Some((_, file)) = sorted.iter().find(|(_, file)| !is_plain_file_name(file)) {
        return Err(IndexError::FileName((*file).into()));
    }
    let totals = [("total_size", Some(total_size)), ("total_parameters", total_parameters)];
    let totals: BTreeMap<&str, Extra> =
        totals.into_iter().filter_map(|(key, total)| Some((key, total?.into()))).collect();
    let mut metadata: BTreeMap<&str, &Extra> =
        extra.iter().map(|(key, value)| (key.as_str(), value)).collect();
    metadata.remove("total_parameters");
    metadata.extend(totals.iter().map(|(key, value)| (*key, value)));

    let keys = ["metadata", "weight_map"].into_iter().chain(beside.keys().map(String::as_str));
    let mut keys: Vec<&str> = keys.collect();
    keys.sort_unstable();
    keys.dedup();
    let mut text = String::new();
    for (number, key) in keys.into_iter().enumerate() {
        text.push_str(if number == 0 { "{\n  " } else { ",\n  " });
        string(&mut text, key);
        text.push_str(": ");
        match key {
            "metadata" => {
                object(&mut text, metadata.iter().map(|(key, value)| (*key, *value)), any);
            }
            "weight_map" => object(&mut text, sorted.iter().map(|pair| **pair), string),
            key => beside.get(key).into_iter().for_each(|value| any(&mut text, value)),
        }
    }
    text.push_str("\n}\n");
    Ok(text.into_bytes())
}

fn any(text: &mut String, value: &Extra) {
    if value.is_string {
        string(text, &value.text);
    } else {
        text.push_str(&value.text);
    }
}

/// An object inside the outer one, a member a line.
fn object<'m, V>(
    text: &mut String,
    members: impl ExactSizeIterator<Item = (&'m str, V)>,
    value: impl Fn(&mut String, V),
) {
    if members.len() == 0 {
        return text.push_str("{}");
    }
    text.push('{');
    for (number, member) in members.enumerate() {
        text.push_str(if number == 0 { "\n    " } else { ",\n    " });
        string(text, member.0);
        text.push_str(": ");
        value(text, member.1);
    }
    text.push_str("\n  }");
}

/// A JSON string in ASCII.
fn string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(character),
            _ => {
                // Writing to a String does not fail.
                let _ = crate::text::write_escape(out, character);
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HashKey;
    use crate::index::Index;

    fn encoded(
        weight_map: &[(&str, &str)],
        parameters: Option<u64>,
        extra: &[(&str, Extra)],
    ) -> String {
        let extra = extra.iter().map(|(key, value)| (String::from(*key), value.clone())).collect();
        let none = BTreeMap::new();
        String::from_utf8(encode(weight_map, 7, parameters, &extra, &none).unwrap()).unwrap()
    }

    #[test]
    fn it_is_as_pythons_json_module_writes_it() {
        // json.dumps(…, indent=2, sort_keys=True) + "\n"
        assert_eq!(
            encoded(&[], None, &[]),
            "{\n  \"metadata\": {\n    \"total_size\": 7\n  },\n  \"weight_map\": {}\n}\n"
        );
        let map =
            [("b\u{7f}", "two"), ("a\"\\/\u{8}\u{c}\n\u{1}", "one"), ("é😀", "one"), ("B", "two")];
        let extra = [
            ("format", String::from("pt").into()),
            ("z", Extra::literal("-1.50e3")),
            ("total_parameters", Extra::literal("1")),
        ];
        assert_eq!(
            encoded(&map, Some(3), &extra),
            r#"{
  "metadata": {
    "format": "pt",
    "total_parameters": 3,
    "total_size": 7,
    "z": -1.50e3
  },
  "weight_map": {
    "B": "two",
    "a\"\\/\b\f\n\u0001": "one",
    "b\u007f": "two",
    "\u00e9\ud83d\ude00": "one"
  }
}
"#
        );
        assert!(!encoded(&[], None, &extra[2..]).contains("parameters"));
    }

    #[test]
    fn what_is_read_is_written_again() {
        let given = r#"{"z": [1, {"é": "a \" é"}], "metadata": {"total_size": "1", "s": "\u00e9", "n": 1e400,
            "t": true, "o": {"a" : [ 1,
            2 ], "b\\": "\\"}, "total_parameters": 2, "nothing": null}, "weight_map": {}, "a": "é"}"#;
        let (index, findings) = Index::read(given.as_bytes(), HashKey::new(1, 2));
        assert!(findings.list().is_empty());
        assert_eq!((index.total_size(), index.total_parameters()), (Some(1), Some(2)));
        let kept = |extra: &BTreeMap<String, Extra>| -> Vec<(String, String, bool)> {
            let one = |(key, value): (&String, &Extra)| {
                (key.clone(), value.text().into(), value.is_string())
            };
            extra.iter().map(one).collect()
        };
        let want = |values: &[(&str, &str, bool)]| -> Vec<(String, String, bool)> {
            values.iter().map(|&(key, text, is)| (key.into(), text.into(), is)).collect()
        };
        assert_eq!(
            kept(index.extra()),
            want(&[
                ("n", "1e400", false),
                ("nothing", "null", false),
                ("o", r#"{"a":[1,2],"b\\":"\\"}"#, false),
                ("s", "é", true),
                ("t", "true", false),
            ])
        );
        let nested = r#"[1,{"\u00e9":"a \" \u00e9"}]"#;
        assert_eq!(kept(index.beside()), want(&[("a", "é", true), ("z", nested, false)]));
        let encoded = |index: &Index| {
            encode(&[], 1, index.total_parameters(), index.extra(), index.beside()).unwrap()
        };
        let bytes = encoded(&index);
        assert_eq!(
            core::str::from_utf8(&bytes).unwrap(),
            r#"{
  "a": "\u00e9",
  "metadata": {
    "n": 1e400,
    "nothing": null,
    "o": {"a":[1,2],"b\\":"\\"},
    "s": "\u00e9",
    "t": true,
    "total_parameters": 2,
    "total_size": 1
  },
  "weight_map": {},
  "z": [1,{"\u00e9":"a \" \u00e9"}]
}
"#
        );
        let (again, _) = Index::read(&bytes, HashKey::new(1, 2));
        assert_eq!(encoded(&again), bytes);
    }

    #[test]
    fn what_a_reader_would_refuse_is_not_written() {
        for (map, code, message) in [
            ([("a", "x"), ("a", "y")], "duplicate-key", "tensor `a` is mapped to a file twice"),
            ([("a", "x"), ("b", "../x")], "index-path", "`../x` is not a plain file name"),
            ([("a", "x"), ("b", "")], "index-path", "`` is not a plain file name"),
            ([("a", ""), ("b", "x")], "index-path", "`` is not a plain file name"),
        ] {
            let error = encode(&map, 0, None, &BTreeMap::new(), &BTreeMap::new()).unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), (code, message));
            assert!(error.help().ends_with('.'));
        }
    }
}
