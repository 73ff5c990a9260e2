//! The bytes of a shard index, as the libraries of Hugging Face write it.
//!
//! JSON with two spaces of indent, keys in the order of their bytes, nothing but ASCII, and a line feed
//! at the end. The same input gives the same bytes, in whatever order tensors are given.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use super::is_plain_file_name;

/// A value in the metadata of an index beside its totals: a string, or a number, boolean or null.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Extra {
    text: String,
    is_string: bool,
}

impl Extra {
    /// A number, boolean or null as it stands in JSON.
    pub(super) fn literal(text: &str) -> Self {
        Self { text: text.into(), is_string: false }
    }

    /// The string, or the literal as it was spelled.
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
/// has. The totals are not taken from `extra`, should it have such keys.
///
/// # Errors
///
/// [`IndexError`] if a reader would refuse the index.
///
/// ```
/// use std::collections::BTreeMap;
/// use weigh_format::index::encode;
///
/// let index = encode(&[("w", "model.safetensors")], 8, None, &BTreeMap::new())?;
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

    let mut text = String::from("{\n  \"metadata\": ");
    object(&mut text, metadata.into_iter(), |text, value| {
        if value.is_string {
            string(text, &value.text);
        } else {
            text.push_str(&value.text);
        }
    });
    text.push_str(",\n  \"weight_map\": ");
    object(&mut text, sorted.into_iter().copied(), string);
    text.push_str("\n}\n");
    Ok(text.into_bytes())
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
        String::from_utf8(encode(weight_map, 7, parameters, &extra).unwrap()).unwrap()
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
        let given = r#"{"metadata": {"total_size": "1", "s": "\u00e9", "n": 1e400, "t": true, "o": {"a": 1},
            "total_parameters": 2, "nothing": null}, "weight_map": {}}"#;
        let (index, findings) = Index::read(given.as_bytes(), HashKey::new(1, 2));
        assert!(findings.list().is_empty());
        let kept: Vec<_> = index
            .extra()
            .iter()
            .map(|(key, value)| (key.as_str(), value.text(), value.is_string()))
            .collect();
        assert_eq!(
            kept,
            [
                ("n", "1e400", false),
                ("nothing", "null", false),
                ("s", "é", true),
                ("t", "true", false)
            ]
        );
        let bytes = encode(&[], 1, index.total_parameters(), index.extra()).unwrap();
        let (again, _) = Index::read(&bytes, HashKey::new(1, 2));
        assert_eq!(again.extra(), index.extra());
        assert_eq!(encode(&[], 1, Some(2), again.extra()).unwrap(), bytes);
    }

    #[test]
    fn what_a_reader_would_refuse_is_not_written() {
        for (map, code, message) in [
            ([("a", "x"), ("a", "y")], "duplicate-key", "tensor `a` is mapped to a file twice"),
            ([("a", "x"), ("b", "../x")], "index-path", "`../x` is not a plain file name"),
            ([("a", "x"), ("b", "")], "index-path", "`` is not a plain file name"),
            ([("a", ""), ("b", "x")], "index-path", "`` is not a plain file name"),
        ] {
            let error = encode(&map, 0, None, &BTreeMap::new()).unwrap_err();
            assert_eq!((error.code(), error.to_string().as_str()), (code, message));
        }
    }
}
