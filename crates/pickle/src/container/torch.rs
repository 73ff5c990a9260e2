//! What torch puts into a zip archive, and what else is there.

mod refusal;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use weigh_format::{Finding, Findings};

use super::inflate::content;
use super::rules::{self, report};
use super::zip::{Archive, Entry};
use crate::spans::Batch;
use crate::{Error, Limits, Spans, Stop};

/// The order of the bytes of every number in the storages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the two byte orders that torch writes")]
pub enum ByteOrder {
    /// The lowest byte first.
    Little,
    /// The highest byte first.
    Big,
}

/// A checkpoint in an archive.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Root {
    /// The one folder of all members, without the slash.
    pub folder: String,
    /// The position of `data.pkl` in the archive.
    pub pickle: usize,
    /// The positions of all pickles, `data.pkl` first.
    pub pickles: Vec<usize>,
    /// The order of the bytes: little if the archive does not say.
    pub byte_order: ByteOrder,
    /// The content of `version`, in short.
    pub version: Option<String>,
    /// The content of `.format_version`, in short.
    pub format_version: Option<String>,
    /// The content of `.storage_alignment`, in short.
    pub storage_alignment: Option<String>,
    /// The content of `.data/serialization_id`, in short.
    pub serialization_id: Option<String>,
    /// Whether it has code, or constants: an archive of `torch.jit`.
    pub script: bool,
    /// The positions of members that torch does not write.
    pub unreferenced: Vec<usize>,
    /// What is odd about it.
    pub findings: Findings,
}

impl Root {
    /// The member that has the bytes of a storage.
    #[must_use]
    pub fn storage<'a>(&self, archive: &'a Archive, key: &str) -> Option<&'a Entry> {
        // A key is a number; one with a slash would name another member.
        archive.entry(&format!("{}/data/{key}", self.folder))
    }
}

/// Bytes of a small member that are read: torch's own have at most 40.
const SMALL: u64 = 256;

/// Finds a checkpoint in an archive; `None` if it has no `data.pkl` in its first folder.
///
/// # Errors
///
/// [`Stop::Missing`] for the bytes of the small members.
pub fn root(spans: &Spans, archive: &Archive, limits: &Limits) -> Result<Option<Root>, Stop> {
    let Some((folder, _)) = archive.entries.first().and_then(|first| first.name.split_once('/'))
    else {
        return Ok(None);
    };
    let mut findings = Findings::new();
    let Some(pickle) = pickle_of(archive, folder, &mut findings) else { return Ok(None) };
    let texts = Texts::read(spans, archive, folder, limits)?;
    let Texts { version, byte_order, format_version, storage_alignment, serialization_id } = texts;
    // What follows the digits does not count.
    let known = version.as_deref().and_then(|text| {
        let text = text.strip_prefix('+').unwrap_or(text);
        let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
        text.get(..end)?.parse::<u32>().ok()
    });
    if !known.is_some_and(|version| (1..=10).contains(&version)) {
        findings.report(&rules::TORCH_VERSION, || {
            let message = match &version {
                Some(text) => format!("the version is {text}"),
                None => String::from("no member says the version"),
            };
            Finding::new(&rules::TORCH_VERSION, message)
        });
    }
    let byte_order = match byte_order.as_deref() {
        None | Some("little") => ByteOrder::Little,
        Some("big") => ByteOrder::Big,
        Some(other) => {
            let message = format!("the byte order is {other}");
            findings.push(Finding::new(&rules::TORCH_BYTE_ORDER, message));
            ByteOrder::Little
        }
    };
    let mut root = Root {
        folder: folder.to_string(),
        pickle,
        pickles: alloc::vec![pickle],
        byte_order,
        version,
        format_version,
        storage_alignment,
        serialization_id,
        script: false,
        unreferenced: Vec::new(),
        findings,
    };
    sort_members(archive, &mut root);
    Ok(Some(root))
}

/// The position of `data.pkl`, in whatever case.
fn pickle_of(archive: &Archive, folder: &str, findings: &mut Findings) -> Option<usize> {
    let exact = format!("{folder}/data.pkl");
    if let Some(position) = archive.entries.iter().rposition(|entry| entry.name == exact) {
        return Some(position);
    }
    let lower = exact.to_lowercase();
    let position = archive.entries.iter().rposition(|entry| entry.name.to_lowercase() == lower)?;
    let name = &archive.entries.get(position)?.name;
    report(findings, &rules::ZIP_CASE, name, || {
        String::from("torch takes it for data.pkl, other readers do not")
    });
    Some(position)
}

/// Tells what each member is for.
fn sort_members(archive: &Archive, root: &mut Root) {
    for (position, entry) in archive.entries.iter().enumerate() {
        let name = &entry.name;
        let within =
            name.strip_prefix(root.folder.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let Some(within) = within else {
            report(&mut root.findings, &rules::ZIP_ROOT, name, || {
                format!("it is not in the folder {}", root.folder)
            });
            root.unreferenced.push(position);
            continue;
        };
        let script = within == "constants.pkl"
            || within.starts_with("code/")
            || within.starts_with("constants/");
        if script && !entry.is_folder() {
            if !root.script {
                report(&mut root.findings, &rules::TORCH_SCRIPT, name, || {
                    String::from("TorchScript has it, a state dict does not")
                });
            }
            root.script = true;
        }
        if position == root.pickle {
            continue;
        }
        let extension = within.rsplit_once('.').map_or("", |(_, extension)| extension);
        if extension.eq_ignore_ascii_case("pkl") {
            root.pickles.push(position);
        }
        let own = entry.is_folder()
            || matches!(
                within,
                "version"
                    | "byteorder"
                    | ".format_version"
                    | ".storage_alignment"
                    | ".data/serialization_id"
                    | ".data/version"
            )
            || within.starts_with("data/")
            || within == "data.pkl"
            || script;
        if !own {
            report(&mut root.findings, &rules::ZIP_UNREFERENCED, name, || {
                format!("a member of {} bytes that torch does not write", entry.size)
            });
            root.unreferenced.push(position);
        }
    }
}

/// The small members that say how the others are to be read.
struct Texts {
    version: Option<String>,
    byte_order: Option<String>,
    format_version: Option<String>,
    storage_alignment: Option<String>,
    serialization_id: Option<String>,
}

impl Texts {
    fn read(spans: &Spans, archive: &Archive, folder: &str, limits: &Limits) -> Result<Self, Stop> {
        let names = [
            ".data/version",
            "version",
            "byteorder",
            ".format_version",
            ".storage_alignment",
            ".data/serialization_id",
        ];
        let mut wanted = Batch::default();
        let mut texts = names.map(|_| None);
        for (name, text) in names.into_iter().zip(&mut texts) {
            let entry = archive.entry(&format!("{folder}/{name}"));
            let Some(entry) = entry.filter(|entry| entry.size.max(entry.compressed_size) <= SMALL)
            else {
                // One that is as large as this says nothing: it is as good as none, or as a wrong one.
                *text = entry.map(|entry| format!("{} bytes", entry.size));
                continue;
            };
            let Some(span) = entry.span.clone() else { continue };
            let Some(raw) = wanted.get(spans, span)? else { continue };
            *text = content(entry, raw, limits).ok().map(|content| {
                let text = String::from_utf8_lossy(&content.bytes);
                // Of the byte order, torch takes nothing but the word.
                if name == "byteorder" { text.to_string() } else { text.trim().to_string() }
            });
        }
        wanted.finish()?;
        let [
            inner_version,
            version,
            byte_order,
            format_version,
            storage_alignment,
            serialization_id,
        ] = texts;
        let version = inner_version.or(version);
        Ok(Self { version, byte_order, format_version, storage_alignment, serialization_id })
    }
}

/// The bytes in the file of a member that is to be read as a whole.
///
/// # Errors
///
/// `zip-no-bytes` if the member has none that are its own; [`Stop::Missing`]; and what [`super::inflate::admit`] says.
pub fn member_bytes<'a>(
    spans: &'a Spans,
    entry: &Entry,
    limits: &Limits,
) -> Result<&'a [u8], Stop> {
    super::inflate::admit(entry, limits)?;
    let span = entry.span.clone().ok_or_else(|| {
        Error::new("zip-no-bytes", "it has no bytes of its own in the file").member(&entry.name)
    })?;
    spans.get(span)
}
