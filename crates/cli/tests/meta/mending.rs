//! Edits in place that were cut off: every command undoes them first.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use insta::assert_snapshot;

use crate::checkpoints::{header, names, one, set};
use crate::program::Program;

const FILE: &str = "m.safetensors";

/// What the edits of these tests are known by.
const TOKEN: &[u8; 8] = b"a token!";

/// A journal as `weigh` writes it: what it is, a token, the length of the file, the head as it was and as it was to be
/// (here all spaces), and a checksum (FNV-1a).
fn journal(file: &[u8], head: usize) -> Vec<u8> {
    let mut bytes = b"weigh journal 2\n".to_vec();
    bytes.extend(TOKEN);
    bytes.extend((file.len() as u64).to_le_bytes());
    bytes.extend((head as u64).to_le_bytes());
    bytes.extend(&file[..head]);
    bytes.extend(vec![b' '; head]);
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn journal_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap().to_str().unwrap();
    path.with_file_name(format!(".{name}.weigh-journal"))
}

/// Leaves a file as an edit that was cut off does: with the mark, half of a new header, and a journal.
fn cut_off(path: &Path) -> Vec<u8> {
    let before = fs::read(path).unwrap();
    let head = before.len() - 8;
    fs::write(journal_path(path), journal(&before, head)).unwrap();
    let mut after = before.clone();
    after[..8].copy_from_slice(&weigh::io::INTERRUPTED);
    after[8..16].copy_from_slice(TOKEN);
    after[16..head / 2].fill(b' ');
    fs::write(path, after).unwrap();
    before
}

#[test]
fn every_command_undoes_it_first() {
    let commands: &[&[&str]] = &[
        &["ls", FILE],
        &["tree", FILE],
        &["info", FILE],
        &["check", FILE],
        &["check", "."],
        &["bench", FILE],
        &["select", FILE, "-o", "n", "--dry-run"],
        &["rename", FILE, "s/a/b/", "-o", "n", "--dry-run"],
        &["cast", FILE, "--to", "BF16", "-o", "n", "--dry-run"],
        &["split", FILE, "-o", "n", "--dry-run"],
        &["join", FILE, "-o", "n", "--dry-run"],
        &["repair", FILE, "-o", "n", "--dry-run"],
        &["convert", FILE, "-o", "n.npz", "--dry-run"],
        &["convert", ".", "-o", "n.npz", "--dry-run"],
        &["scan", FILE],
        &["scan", "m.safetensors", "--quiet"],
        &["meta", "get", FILE],
        &["meta", "export", FILE],
        &["meta", "set", FILE, "k=v", "--dry-run"],
        &["meta", "unset", FILE, "format", "--dry-run"],
        &["meta", "import", FILE, "object", "--dry-run"],
        &["meta", "edit", FILE, "--dry-run"],
    ];
    // Those that read no checkpoint, or only look at pages of files.
    let others = ["completions", "man", "help", "pagecache"];
    for (group, others) in [(&[][..], &others[..]), (&["meta"], &["help"])] {
        let all = listed(group);
        let tested: BTreeSet<String> = commands
            .iter()
            .filter_map(|command| command.strip_prefix(group)?.first().map(|it| (*it).into()))
            .chain(others.iter().map(|it| (*it).into()))
            .collect();
        assert_eq!(all, tested, "{group:?}");
    }
    for arguments in commands {
        let program = one(&[("format", "pt")]);
        let before = cut_off(&program.path(FILE));
        fs::write(program.path("object"), "{}").unwrap();
        let output = program.command(arguments).env("VISUAL", "true").output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let note = "m.safetensors: an edit of its header had been interrupted; it is undone\n";
        assert!(said.starts_with("note: ") && said.contains(note), "{arguments:?}: {said}");
        assert_eq!(fs::read(program.path(FILE)).unwrap(), before, "{arguments:?}");
        assert_eq!(names(program.path("")), [FILE, "object"], "{arguments:?}");
    }
}

/// The commands that the help of a command lists.
fn listed(command: &[&str]) -> BTreeSet<String> {
    let output = Program::new().run(&[command, &["--help"]].concat());
    let help = String::from_utf8(output.stdout).unwrap();
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    let names = lines.filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next().map(String::from)).collect()
}

#[test]
fn it_is_said_once_and_then_done() {
    let program = one(&[("format", "pt")]);
    cut_off(&program.path(FILE));
    assert_snapshot!(program.shown(&["meta", "set", FILE, "format=np", "--in-place"]), @"
    exit 0
    -- stdout
    changed in place m.safetensors  header 96 bytes
      ~ format  pt → np
    no byte of a tensor is changed, and none was moved
    -- stderr
    note: m.safetensors: an edit of its header had been interrupted; it is undone
    ");
    assert_snapshot!(program.shown(&["ls", FILE]), @"
    exit 0
    -- stdout
    a  F32  [2]       8 B
    -- stderr
    ");
}

#[test]
fn of_a_set_each_file_is_mended() {
    let program = Program::new();
    set(&program, [&[], &[], &[]]);
    for number in [1, 3] {
        cut_off(&program.path(format!("set/m-0000{number}-of-00003.safetensors")));
    }
    assert_snapshot!(program.shown(&["check", "set"]), @"
    exit 0
    -- stdout
    set/m.safetensors.index.json: valid
    set/m-00001-of-00003.safetensors: valid
    set/m-00002-of-00003.safetensors: valid
    set/m-00003-of-00003.safetensors: valid
    3 files: 3 valid
    -- stderr
    note: set/m-00001-of-00003.safetensors: an edit of its header had been interrupted; it is undone
    note: set/m-00003-of-00003.safetensors: an edit of its header had been interrupted; it is undone
    ");
    assert_snapshot!(program.shown(&["check", "set"]), @"
    exit 0
    -- stdout
    set/m.safetensors.index.json: valid
    set/m-00001-of-00003.safetensors: valid
    set/m-00002-of-00003.safetensors: valid
    set/m-00003-of-00003.safetensors: valid
    3 files: 3 valid
    -- stderr
    ");
}

#[test]
fn without_its_journal_a_file_stays_what_it_is() {
    let program = one(&[("format", "pt")]);
    cut_off(&program.path(FILE));
    fs::remove_file(journal_path(&program.path(FILE))).unwrap();
    let before = fs::read(program.path(FILE)).unwrap();
    assert_snapshot!(program.shown(&["ls", FILE]), @"
    exit 1
    -- stdout
    -- stderr
    error: m.safetensors: an edit of it in place was cut off, and there is no journal to undo it with
      help: If the file was moved or renamed, do the same to its journal, `.NAME.weigh-journal`; if it has other names (hard links), run `weigh check` on the one that was edited; else restore the file from a copy.
    error: m.safetensors: this is not a safetensors file but one whose header was being edited in place [not-safetensors]
      help: The edit is under way, or was cut off: run `weigh` on the file where it may be written, with its journal `.NAME.weigh-journal` beside it, and the edit is undone.
    ");
    assert_snapshot!(program.shown(&["check", FILE]), @"
    exit 1
    -- stdout
    m.safetensors: invalid
      error[not-safetensors] at 0..104: this is not a safetensors file but one whose header was being edited in place
        help: The edit is under way, or was cut off: run `weigh` on the file where it may be written, with its journal `.NAME.weigh-journal` beside it, and the edit is undone.
    -- stderr
    error: m.safetensors: an edit of it in place was cut off, and there is no journal to undo it with
      help: If the file was moved or renamed, do the same to its journal, `.NAME.weigh-journal`; if it has other names (hard links), run `weigh check` on the one that was edited; else restore the file from a copy.
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "k=v"]), @"
    exit 1
    -- stdout
    -- stderr
    error: m.safetensors: an edit of it in place was cut off, and there is no journal to undo it with
      help: If the file was moved or renamed, do the same to its journal, `.NAME.weigh-journal`; if it has other names (hard links), run `weigh check` on the one that was edited; else restore the file from a copy.
    ");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
}

#[test]
fn a_journal_of_another_file_is_not_believed() {
    let program = one(&[("format", "pt")]);
    cut_off(&program.path(FILE));
    let other = [header(&[]).as_bytes(), &[0; 100]].concat();
    fs::write(journal_path(&program.path(FILE)), journal(&other, 50)).unwrap();
    let before = fs::read(program.path(FILE)).unwrap();
    assert_snapshot!(program.shown(&["ls", FILE]), @"
    exit 1
    -- stdout
    -- stderr
    error: m.safetensors: an edit of it in place was cut off, and the journal to undo it with is for a file of 172 bytes, not 104
      help: If the file was moved or renamed, do the same to its journal, `.NAME.weigh-journal`; if it has other names (hard links), run `weigh check` on the one that was edited; else restore the file from a copy.
    error: m.safetensors: this is not a safetensors file but one whose header was being edited in place [not-safetensors]
      help: The edit is under way, or was cut off: run `weigh` on the file where it may be written, with its journal `.NAME.weigh-journal` beside it, and the edit is undone.
    ");
    fs::write(journal_path(&program.path(FILE)), "junk").unwrap();
    assert_snapshot!(program.shown(&["ls", FILE]), @"
    exit 1
    -- stdout
    -- stderr
    error: m.safetensors: an edit of it in place was cut off, and the journal to undo it with is not as it was written
      help: If the file was moved or renamed, do the same to its journal, `.NAME.weigh-journal`; if it has other names (hard links), run `weigh check` on the one that was edited; else restore the file from a copy.
    error: m.safetensors: this is not a safetensors file but one whose header was being edited in place [not-safetensors]
      help: The edit is under way, or was cut off: run `weigh` on the file where it may be written, with its journal `.NAME.weigh-journal` beside it, and the edit is undone.
    ");
    assert_eq!(fs::read(program.path(FILE)).unwrap(), before);
}

#[test]
fn an_edit_that_is_under_way_is_left_to_end() {
    let program = one(&[("format", "pt")]);
    cut_off(&program.path(FILE));
    let editing = fs::File::open(program.path(FILE)).unwrap();
    editing.lock().unwrap();
    assert_snapshot!(program.shown(&["check", FILE]), @"
    exit 2
    -- stdout
    m.safetensors: invalid
      error[not-safetensors] at 0..104: this is not a safetensors file but one whose header was being edited in place
        help: The edit is under way, or was cut off: run `weigh` on the file where it may be written, with its journal `.NAME.weigh-journal` beside it, and the edit is undone.
    -- stderr
    error: m.safetensors: another process is editing it
      help: Wait for it to end.
    ");
    assert_snapshot!(program.shown(&["meta", "set", FILE, "k=v"]), @"
    exit 2
    -- stdout
    -- stderr
    error: m.safetensors: another process is editing it
      help: Wait for it to end.
    ");
    drop(editing);
    assert_eq!(program.run(&["check", FILE]).status.code(), Some(0));
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_written_cannot_be_mended() {
    use std::os::unix::fs::PermissionsExt;
    let program = one(&[("format", "pt")]);
    cut_off(&program.path(FILE));
    fs::set_permissions(program.path(FILE), fs::Permissions::from_mode(0o444)).unwrap();
    if fs::OpenOptions::new().write(true).open(program.path(FILE)).is_ok() {
        // The administrator may write to any file.
        return;
    }
    let shown = program.shown(&["check", FILE]);
    assert!(
        shown.starts_with("exit 2\n") && shown.contains("the file may not be written to"),
        "{shown}"
    );
}

#[test]
fn a_journal_beside_a_sound_file_is_not_looked_for() {
    let program = one(&[("format", "pt")]);
    fs::write(journal_path(&program.path(FILE)), "junk").unwrap();
    assert_eq!(program.run(&["ls", FILE]).status.code(), Some(0));
    assert_eq!(names(program.path("")), [".m.safetensors.weigh-journal", FILE]);
}
