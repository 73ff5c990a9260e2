//! What a container may be found to have, each rule once.
//!
//! The containers are told apart and opened as the programs that load them do, and where two of these programs read
//! one file differently, the file is ambiguous: what one of them shows is not what the other runs.

use alloc::string::String;

use weigh_format::{Finding, Findings, Rule, rules};

rules! {
    ZIP_DUPLICATE = "ST-ZIP-DUP" Error ambiguous "zip-duplicate",
        "No name comes twice in an archive.",
        "Readers take the first, the last or one in between: do not trust a file that was made like this.";
    ZIP_CASE = "ST-ZIP-CASE" Error ambiguous "zip-case",
        "No two names differ only in case, and torch's own members have lower case names.",
        "torch looks members up without regard to case, other readers do not: do not trust a file that was made like this.";
    ZIP_LOCAL_NAME = "ST-ZIP-NAME" Error ambiguous "zip-local-name",
        "The name before a member's bytes is the one in the directory.",
        "Readers that go through the file see another member than those that use the directory.";
    ZIP_NAME = "ST-ZIP-NAME" Error ambiguous "zip-name",
        "Names are UTF-8, and not longer than the limit.",
        "Readers decode the name in different ways, or not at all.";
    ZIP_NAME_ENCODING = "ST-ZIP-NAME" Note "zip-name-encoding",
        "Names outside of ASCII are marked as UTF-8.",
        "Some readers decode them as code page 437: the content is not affected.";
    ZIP_PATH = "ST-ZIP-PATH" Error ambiguous "zip-path",
        "Names have no `..`, backslash, NUL or control characters, and do not begin at a root.",
        "Unpacking such a member may write outside of its folder, and readers do not agree on its name.";
    ZIP_ROOT = "ST-ZIP-NAME" Error ambiguous "zip-root",
        "All members of a checkpoint are in the folder of the first.",
        "torch takes the folder of the first member and sees no others: look at what is beside it.";
    ZIP_LOCAL_HEADER = "ST-ZIP-LOCAL" Error ambiguous "zip-local-header",
        "The header before a member's bytes says what the directory says.",
        "Readers that go through the file read other bytes than those that use the directory.";
    ZIP_LOCAL_MISSING = "ST-ZIP-LOCAL" Error ambiguous "zip-local-missing",
        "The directory's offset of a member is that of a header, and its bytes are before the directory.",
        "The file is cut off or damaged: get it again.";
    ZIP_CRC = "ST-ZIP-CRC" Error ambiguous "zip-crc",
        "The content of a member has the checksum that is stored.",
        "The file is damaged, or was changed after it was written: torch does not notice.";
    ZIP_CRC_OFF = "ST-ZIP-CRC" Note "zip-crc-off",
        "Members have checksums.",
        "They were turned off when the file was saved (set_crc32_options): damage cannot be seen.";
    ZIP_ENCRYPTED = "ST-ZIP-ENC" Error ambiguous "zip-encrypted",
        "No member is marked as encrypted.",
        "A checkpoint never is. Some readers stop at the mark and see nothing, others read on.";
    ZIP_FLAGS = "ST-ZIP-FLAG" Error ambiguous "zip-flags",
        "No member is marked as a patch or in a way that has no meaning.",
        "Some readers stop at the mark and see nothing, others read on.";
    ZIP_METHOD = "ST-ZIP-METHOD" Error ambiguous "zip-method",
        "Members are stored or deflated.",
        "torch reads no other method: the member is not read.";
    ZIP_STORED_SIZE = "ST-ZIP-SIZE" Error ambiguous "zip-stored-size",
        "A stored member has one size.",
        "Readers take one size or the other.";
    ZIP_DEFLATED = "ST-ZIP-DEFLATED" Note "zip-deflated",
        "Members are stored.",
        "torch.load(mmap=True) reads compressed storages as if they were numbers: load such a file without it.";
    ZIP_OVERLAP = "ST-ZIP-OVERLAP" Error ambiguous "zip-overlap",
        "No two members share bytes, nor a member and the directory.",
        "A file of kilobytes can unpack to terabytes like this: the member is not read.";
    ZIP_GAP = "ST-ZIP-GAP" Deviation ambiguous "zip-gap",
        "Members follow each other, and the directory follows them, without bytes in between.",
        "Bytes that belong to no member can hide a payload that other readers see.";
    ZIP_TAIL = "ST-ZIP-TAIL" Error ambiguous "zip-trailing-bytes",
        "Nothing follows the end of an archive.",
        "Another file may be appended, which other readers see instead.";
    ZIP_TWO_ENDS = "ST-ZIP-TAIL" Error ambiguous "zip-two-ends",
        "An archive has one end record.",
        "Readers choose one or the other, and see different members.";
    ZIP_COMMENT = "ST-ZIP-TAIL" Deviation "zip-comment",
        "Archives and members have no comments.",
        "A checkpoint never has one: look at it.";
    ZIP_PREFIX = "ST-ZIP-PREFIX" Error ambiguous "zip-prefix",
        "The archive begins where the file begins.",
        "torch does not take such a file for an archive; other readers do.";
    ZIP_ZIP64 = "ST-ZIP-ZIP64" Error ambiguous "zip-zip64",
        "The 64-bit end record says what the other one says, and is where its locator says.",
        "Readers take one or the other, and see different members.";
    ZIP_EXTRA = "ST-ZIP-EXTRA" Error ambiguous "zip-extra",
        "Extra fields are well formed, none comes twice, and none gives a member another name.",
        "Readers take the sizes or the name from different places.";
    ZIP_DESCRIPTOR = "ST-ZIP-DESC" Error ambiguous "zip-descriptor",
        "The record after a member's bytes says what the directory says.",
        "Readers that go through the file read other bytes than those that use the directory.";
    ZIP_COUNT = "ST-ZIP-COUNT" Error ambiguous "zip-count",
        "The directory has as many members as the end record says, and nothing else.",
        "Readers go by the number or by the size, and see different members.";
    ZIP_UNREFERENCED = "ST-ZIP-UNREF" Note "zip-unreferenced",
        "A checkpoint has no members but those that torch writes.",
        "Look at what it is: torch does not read it.";
    TORCH_VERSION = "ST-ZIP-VERSION" Deviation "torch-version",
        "A checkpoint has a `version` of 1 to 10.",
        "torch refuses the file; its tensors can be read all the same.";
    TORCH_BYTE_ORDER = "ST-ZIP-BYTEORDER" Error ambiguous "torch-byte-order",
        "`byteorder` is `little` or `big`.",
        "torch refuses the file: the byte order of its tensors is not known.";
    TORCH_SCRIPT = "ST-ZIP-SCRIPT" Note "torch-script",
        "A checkpoint has no code.",
        "This is a TorchScript archive: torch.jit.load compiles and runs its code.";
    TAR_DUPLICATE = "ST-TAR-DUP" Error ambiguous "tar-duplicate",
        "No name comes twice in an archive.",
        "Readers take the first or the last.";
    TAR_KIND = "ST-TAR-KIND" Deviation "tar-kind",
        "Members are plain files or folders.",
        "Links and devices have no place in a checkpoint: unpacking them may write outside of the folder.";
    TAR_READERS = "ST-TAR-DIFF" Error ambiguous "tar-readers",
        "Every reader finds the same files in an archive.",
        "Readers skip other bytes, or give a file another name or size: do not trust an archive that was made like this.";
    TAR_PATH = "ST-TAR-PATH" Error ambiguous "tar-path",
        "Names are UTF-8, have no `..`, backslash or control characters, and do not begin at a root.",
        "Unpacking such a member may write outside of its folder.";
    TAR_TAIL = "ST-TAR-TAIL" Deviation ambiguous "tar-trailing-bytes",
        "Nothing but zeros follows the end of an archive.",
        "Another file may be appended, which other readers see instead.";
    LEGACY_TAIL = "ST-PKL-TRAIL" Deviation ambiguous "legacy-trailing-bytes",
        "Nothing follows the last storage.",
        "torch does not read it. Files that were saved one after the other into one look like this, and so does a hidden payload.";
    NPY_TAIL = "ST-NPY-TAIL" Deviation ambiguous "npy-trailing-bytes",
        "Nothing follows the array.",
        "numpy does not read it: look at what it is.";
    POLYGLOT = "ST-POLY" Error ambiguous "polyglot",
        "A file is of one kind.",
        "What one program takes for weights, another takes for something else: do not trust a file that was made like this.";
    WRAPPED = "ST-WRAP" Deviation "wrapped",
        "A checkpoint is not packed into another format.",
        "torch cannot load it like this, and scanners may not look into it.";
}

/// Records a finding about a member.
pub(crate) fn report(
    findings: &mut Findings,
    rule: &'static Rule,
    member: &str,
    message: impl FnOnce() -> String,
) {
    findings.report(rule, || about(rule, member, message()));
}

/// A finding about a member.
pub(crate) fn about(rule: &'static Rule, member: &str, message: impl Into<String>) -> Finding {
    let mut finding = Finding::new(rule, message);
    finding.place.member = Some(weigh_format::text::shortened(member).into_owned());
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn codes_are_unique_and_every_error_is_ambiguous() {
        let codes: BTreeSet<_> = RULES.iter().map(|rule| rule.code).collect();
        assert_eq!(codes.len(), RULES.len());
        for rule in RULES {
            assert!(rule.summary.ends_with('.') && rule.help.ends_with('.'), "{}", rule.code);
            assert!(rule.id.starts_with("ST-"), "{}", rule.code);
            let error = rule.severity == weigh_format::Severity::Error;
            assert!(!error || rule.is_ambiguous, "{}", rule.code);
        }
        assert!(ZIP_GAP.is_ambiguous && !ZIP_COMMENT.is_ambiguous && !WRAPPED.is_ambiguous);
    }
}
