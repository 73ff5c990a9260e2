//! What can be mended of a damaged file without touching the bytes of a tensor.
//!
//! Some findings are about how a file is laid out or spelled: padding, gaps, bytes after the end, shared
//! bytes, white space, metadata that is no string. What the file means is beyond doubt, and
//! [`encode`](crate::encode::encode) says it properly. Others are about what it means, or about bytes
//! that are not there: a guess would be worse than the damage. [`plan`] tells them apart and says what to
//! copy from where; it reads and writes nothing itself.
//!
//! A mended file has no finding but notes. It is a new file: the old one stays as evidence.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::Dtype;
use crate::encode::{Declaration, METADATA};
use crate::finding::{Finding, Severity};
use crate::header::Inspection;
use crate::json::{Cursor, Kind, Stop};

/// How to write a damaged file anew.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Repair<'i> {
    /// Every tensor, in the order of the header.
    pub tensors: Vec<Source<'i>>,
    /// The metadata; values that are not strings are the JSON that they were, as strings.
    pub metadata: Option<BTreeMap<String, String>>,
    /// The findings that are mended, as far as the inspection kept them; none if nothing is to be done.
    pub mended: Vec<&'i Finding>,
    /// Bytes of the file that belong to nothing and are left out, in order: what is in the header beside its
    /// object and spaces after it, gaps between tensors, and what follows the last. Worth a look:
    /// something may be hidden there.
    pub dropped: Vec<Range<u64>>,
}

/// A tensor of a damaged file.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Source<'i> {
    /// The name, unescaped.
    pub name: &'i str,
    /// The element type.
    pub dtype: Dtype,
    /// The dimensions.
    pub shape: &'i [u64],
    /// Its bytes, from the start of the file. Tensors may share bytes; each gets its own.
    pub bytes: Range<u64>,
}

impl Repair<'_> {
    /// The tensors as [`encode`](crate::encode::encode) takes them, in the same order.
    ///
    /// The layout has to be sorted, as it is by default, or tensors may be misaligned again. Tensors
    /// that shared bytes no longer do: look at the length of the data section before writing it.
    #[must_use]
    pub fn declarations(&self) -> Vec<Declaration<'_>> {
        let declared = self.tensors.iter().map(|tensor| {
            let Source { name, dtype, shape, .. } = tensor;
            Declaration { name, dtype: *dtype, shape }
        });
        declared.collect()
    }
}

/// What becomes of a finding when a file is written anew.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "there is nothing else that could become of it")]
pub enum Fate {
    /// It is gone.
    Mended,
    /// It remains, and refuses nothing.
    Remains,
    /// It stands in the way: what the file means is in doubt, or part of it is missing.
    StandsInTheWay,
}

/// What becomes of this finding, if no other stands in the way.
///
/// ```
/// use weigh_format::{Finding, repair::{Fate, fate}, rule};
///
/// assert_eq!(fate(&Finding::new(&rule::DATA_TRAILING, "")), Fate::Mended);
/// assert_eq!(fate(&Finding::new(&rule::DATA_TRUNCATED, "")), Fate::StandsInTheWay);
/// assert_eq!(fate(&Finding::new(&rule::NAME_EMPTY, "")), Fate::Remains);
/// ```
#[must_use]
pub fn fate(finding: &Finding) -> Fate {
    match finding.code() {
        "header-leading-space"
        | "header-padding"
        | "header-trailing-data"
        | "header-large-padding"
        | "entry-field-unknown"
        | "data-trailing"
        | "data-gap"
        | "data-overlap"
        | "data-alias"
        | "empty-off-boundary"
        | "misaligned"
        | "metadata-null" => Fate::Mended,
        // After a mark of UTF-8 the header can be read; after another it is in another encoding.
        "header-bom" if finding.place.span == Some(8..11) => Fate::Mended,
        // A value can become a string; what has no keys is no metadata.
        "metadata-type" if finding.evidence.iter().any(|(name, _)| *name == "key") => Fate::Mended,
        _ if finding.severity == Severity::Note => Fate::Remains,
        _ => Fate::StandsInTheWay,
    }
}

/// Says how to write a damaged file anew, of which everything but its header may be unread.
///
/// # Errors
///
/// The findings that stand in the way.
///
/// ```
/// use weigh_format::{HashKey, Limits, encode, header::inspect, repair};
///
/// let header = br#"{"w":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#;
/// let inspection = inspect(header.to_vec(), 8 + 53 + 4, &Limits::default(), HashKey::new(1, 2));
/// let repair = repair::plan(&inspection).unwrap();
/// let codes: Vec<_> = repair.mended.iter().map(|finding| finding.code()).collect();
/// assert_eq!(codes, ["data-gap", "data-trailing"]);
/// assert_eq!(repair.tensors[0].bytes, 62..64);
/// assert_eq!(repair.dropped, [61..62, 64..65]);
/// let layout = encode::Layout::default();
/// let new = encode::encode(&repair.declarations(), repair.metadata.as_ref(), &layout)?;
/// assert_eq!(new.data_offsets, [0..2]);
/// # Ok::<(), encode::EncodeError>(())
/// ```
pub fn plan(inspection: &Inspection) -> Result<Repair<'_>, Vec<Finding>> {
    let findings = inspection.findings().list();
    let of_fate = |wanted| findings.iter().filter(move |finding| fate(finding) == wanted);
    let in_the_way = || of_fate(Fate::StandsInTheWay).cloned().collect();
    if !inspection.is_complete() || of_fate(Fate::StandsInTheWay).next().is_some() {
        return Err(in_the_way());
    }
    let tensors: Option<Vec<Source<'_>>> = sources(inspection).collect();
    // Whatever a tensor lacks is a finding, so these are there.
    let (Some(tensors), Ok(metadata)) = (tensors, metadata(inspection.text())) else {
        return Err(in_the_way());
    };
    let mended: Vec<&Finding> = of_fate(Fate::Mended).collect();
    let mut dropped = dropped_of_header(&mended);
    dropped.extend(dropped_of_data(inspection, &tensors));
    Ok(Repair { tensors, metadata, mended, dropped })
}

/// Each tensor; `None` for one of which something is missing.
fn sources(inspection: &Inspection) -> impl Iterator<Item = Option<Source<'_>>> {
    let data_start = inspection.data_start();
    inspection.entries().map(move |entry| {
        let shape = entry.shape?;
        let offsets = entry.data_offsets.clone()?;
        let bytes = if offsets.is_empty() {
            // An empty tensor may lie anywhere, even after the end of the file.
            data_start..data_start
        } else if entry.is_present {
            data_start.checked_add(offsets.start)?..data_start.checked_add(offsets.end)?
        } else {
            return None;
        };
        Some(Source { name: entry.name, dtype: entry.dtype?, shape, bytes })
    })
}

/// The metadata of a header, every value as a string; `None` if there is none, or it is null.
fn metadata(text: &str) -> Result<Option<BTreeMap<String, String>>, Stop> {
    let mut cursor = Cursor::new(text);
    cursor.skip_whitespace();
    cursor.open(1, DEPTH)?;
    if cursor.eat(b"}") {
        return Ok(None);
    }
    loop {
        let key = cursor.string("a string")?;
        cursor.expect(b':', "':'")?;
        if key.text(&mut String::new()) == METADATA {
            return match cursor.kind()? {
                Kind::Object => pairs(text, &mut cursor).map(Some),
                _ => Ok(None),
            };
        }
        cursor.skip_value(2, DEPTH)?;
        if !cursor.another(b'}')? {
            return Ok(None);
        }
    }
}

/// Any depth: this was read once already, with the limit of whoever asked.
const DEPTH: u32 = u32::MAX;

fn pairs(text: &str, cursor: &mut Cursor<'_>) -> Result<BTreeMap<String, String>, Stop> {
    let mut pairs = BTreeMap::new();
    cursor.open(2, DEPTH)?;
    if cursor.eat(b"}") {
        return Ok(pairs);
    }
    loop {
        let (mut key, mut value) = (String::new(), String::new());
        cursor.string("a string")?.unescape_onto(&mut key);
        cursor.expect(b':', "':'")?;
        if cursor.kind()? == Kind::String {
            cursor.string("a string")?.unescape_onto(&mut value);
        } else {
            let start = cursor.at();
            cursor.skip_value(3, DEPTH)?;
            value.push_str(text.get(start..cursor.at()).unwrap_or_default());
        }
        pairs.insert(key, value);
        if !cursor.another(b'}')? {
            return Ok(pairs);
        }
    }
}

/// What is in the header beside its object and its padding.
fn dropped_of_header(mended: &[&Finding]) -> Vec<Range<u64>> {
    let is_dropped = |finding: &&&Finding| {
        matches!(
            finding.code(),
            "header-bom" | "header-leading-space" | "header-padding" | "header-trailing-data"
        )
    };
    let spans = mended.iter().filter(is_dropped).filter_map(|finding| finding.place.span.clone());
    let mut spans: Vec<Range<u64>> = spans.collect();
    spans.sort_unstable_by_key(|span| span.start);
    spans
}

/// What is in the data section and in no tensor.
fn dropped_of_data(inspection: &Inspection, tensors: &[Source<'_>]) -> Vec<Range<u64>> {
    let filled = tensors.iter().map(|tensor| &tensor.bytes).filter(|bytes| !bytes.is_empty());
    let mut filled: Vec<&Range<u64>> = filled.collect();
    filled.sort_unstable_by_key(|bytes| bytes.start);
    let mut end = inspection.data_start();
    let mut dropped = Vec::new();
    let file_end = inspection.file_len()..inspection.file_len();
    for next in filled.into_iter().chain([&file_end]) {
        if next.start > end {
            dropped.push(end..next.start);
        }
        end = end.max(next.end);
    }
    dropped
}
