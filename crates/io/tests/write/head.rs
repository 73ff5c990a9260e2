//! Heads that are edited in place, and edits that are undone.

use std::fs::{self, File};
use std::path::Path;

use weigh_io::{INTERRUPTED, Mended, mend, rewrite_head};

use crate::folder::Folder;

const OLD: &[u8] = b"the old head of it, which was";
const NEW: &[u8] = b"some new one, which is to be.";

fn file(head: &[u8]) -> Vec<u8> {
    [head, b" and the body"].concat()
}

/// What the edits of these tests are known by.
const TOKEN: &[u8; 8] = b"a token!";

/// What an edit of this file by which `old` was replaced by `new` leaves in the journal.
fn journal_of(file_len: usize, old: &[u8], new: &[u8]) -> Vec<u8> {
    journal_with(*TOKEN, file_len, old, new)
}

fn journal_with(token: [u8; 8], file_len: usize, old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut bytes = b"weigh journal 2\n".to_vec();
    bytes.extend(token);
    bytes.extend((file_len as u64).to_le_bytes());
    bytes.extend((old.len() as u64).to_le_bytes());
    bytes.extend(old);
    bytes.extend(new);
    let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    bytes.extend(sum.to_le_bytes());
    bytes
}

fn journal(file_len: usize, head: &[u8]) -> Vec<u8> {
    journal_of(file_len, head, &vec![b'n'; head.len()])
}

/// A file whose edit was cut off in the middle of the new head.
fn cut_off() -> Vec<u8> {
    file(&left(&[TOKEN, &NEW[16..18], &OLD[18..]].concat()))
}

/// The head of a file that is being edited, with this behind the mark.
fn left(rest: &[u8]) -> Vec<u8> {
    [&INTERRUPTED, rest].concat()
}

fn sound_journal() -> Vec<u8> {
    journal_of(file(OLD).len(), OLD, NEW)
}

struct Edited {
    folder: Folder,
}

impl Edited {
    fn new(content: &[u8], journal: Option<&[u8]>) -> Self {
        let folder = Folder::new();
        fs::write(folder.join("m"), content).unwrap();
        if let Some(journal) = journal {
            fs::write(folder.join(".m.weigh-journal"), journal).unwrap();
        }
        Self { folder }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.join("m")
    }

    fn content(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    fn has_journal(&self) -> bool {
        self.folder.names() != ["m"]
    }
}

#[test]
fn readers_take_the_mark_for_a_header_longer_than_any_file() {
    assert!(u64::from_le_bytes(INTERRUPTED) >= 1 << 63);
}

#[test]
fn a_head_is_replaced_and_nothing_else() {
    for (old, new) in [
        (OLD, NEW),
        (&b"8 bytes!"[..], &b"bytes 8!"[..]),
        (b"11 bytes...", b"bytes 11..."),
        (b"16 bytes........", b"bytes 16........"),
        (OLD, OLD),
    ] {
        let edited = Edited::new(&file(old), None);
        rewrite_head(&edited.path(), old, new).unwrap();
        assert_eq!(edited.content(), file(new));
        assert!(!edited.has_journal());
    }
    // A head may be all of a file.
    let edited = Edited::new(OLD, None);
    rewrite_head(&edited.path(), OLD, NEW).unwrap();
    assert_eq!(edited.content(), NEW);
}

#[test]
fn a_file_that_begins_otherwise_is_left_alone() {
    for content in [file(NEW), file(b"the old head of it, which is."), OLD[..28].to_vec(), vec![]] {
        let edited = Edited::new(&content, None);
        let code = rewrite_head(&edited.path(), OLD, NEW).unwrap_err().code();
        let want = if content.len() < OLD.len() { "io-short" } else { "io-changed" };
        assert_eq!(code, want);
        assert_eq!(edited.content(), content);
        assert!(!edited.has_journal());
    }
}

#[test]
fn what_is_no_head_is_refused() {
    let edited = Edited::new(&file(OLD), None);
    let marked = [&INTERRUPTED[..], b"head"].concat();
    for (expected, new) in [
        (OLD, &NEW[..28]),
        (&OLD[..7], &NEW[..7]),
        (b"", b""),
        (&marked, NEW),
        (OLD, &marked),
        (&vec![0; 101_000_001], &vec![1; 101_000_001]),
    ] {
        assert_eq!(rewrite_head(&edited.path(), expected, new).unwrap_err().code(), "io-misuse");
    }
    assert_eq!(edited.content(), file(OLD));
}

#[test]
fn paths_that_are_no_file_are_told_apart() {
    let folder = Folder::new();
    for (path, want) in
        [(folder.join("absent"), "io-missing"), (folder.path().into(), "io-is-folder")]
    {
        assert_eq!(rewrite_head(&path, OLD, NEW).unwrap_err().code(), want);
        assert_eq!(mend(&path).unwrap_err().code(), want);
    }
}

#[test]
fn where_no_edit_was_cut_off_nothing_is_done() {
    let edited = Edited::new(&file(OLD), None);
    assert_eq!(mend(&edited.path()).unwrap(), Mended::Nothing);
    for short in [&b""[..], &INTERRUPTED[..7]] {
        assert_eq!(mend(&Edited::new(short, None).path()).unwrap(), Mended::Nothing);
    }
}

#[test]
fn an_edit_that_was_cut_off_and_has_no_journal_is_an_error() {
    let edited = Edited::new(&cut_off(), None);
    for error in
        [mend(&edited.path()).unwrap_err(), rewrite_head(&edited.path(), OLD, NEW).unwrap_err()]
    {
        assert_eq!(error.code(), "io-interrupted-edit");
        assert!(error.to_string().ends_with("there is no journal to undo it with"), "{error}");
    }
    assert_eq!(edited.content(), cut_off());
}

#[cfg(target_os = "linux")]
#[test]
fn who_may_only_read_learns_what_is_wrong() {
    use std::os::unix::fs::PermissionsExt;
    let journal = sound_journal();
    for (content, journal, want) in [
        (file(OLD), None, None),
        (file(OLD), Some(&journal[..]), None),
        (cut_off(), None, Some("io-interrupted-edit")),
        (cut_off(), Some(&journal), Some("io-interrupted-edit")),
    ] {
        let edited = Edited::new(&content, journal);
        for (path, mode) in [(edited.path(), 0o644), (edited.folder.path().into(), 0o755)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        crate::user::as_somebody(|| {
            let mended = mend(&edited.path());
            assert_eq!(mended.as_ref().err().map(weigh_io::Error::code), want, "{mended:?}");
        });
        assert_eq!(edited.content(), content);
    }
}

#[test]
fn a_journal_of_an_edit_that_had_not_begun_or_had_ended_is_removed() {
    let whole = sound_journal();
    for content in [file(OLD), file(NEW), vec![], INTERRUPTED[..7].to_vec()] {
        for journal in [&whole[..], &whole[..20], b"", b"anything"] {
            let edited = Edited::new(&content, Some(journal));
            assert_eq!(mend(&edited.path()).unwrap(), Mended::JournalRemoved);
            assert!(!edited.has_journal());
            assert_eq!(edited.content(), content);
        }
    }
}

#[test]
fn an_edit_that_was_cut_off_is_undone() {
    let edited = Edited::new(&cut_off(), Some(&sound_journal()));
    assert_eq!(mend(&edited.path()).unwrap(), Mended::RolledBack { head: 29 });
    assert_eq!(edited.content(), file(OLD));
    assert!(!edited.has_journal());
    assert_eq!(mend(&edited.path()).unwrap(), Mended::Nothing);
}

#[test]
fn wherever_an_edit_was_cut_off_it_is_undone_or_lacked_only_its_last_step() {
    let token = [TOKEN, &OLD[16..]].concat();
    for (behind, want) in [
        (&OLD[8..], OLD),
        (&token, OLD),
        (&[TOKEN, &NEW[16..17], &OLD[17..]].concat(), OLD),
        (&[TOKEN, &OLD[16..20], &NEW[20..]].concat(), OLD),
        (&[TOKEN, &NEW[16..]].concat(), OLD),
        (&NEW[8..], NEW),
    ] {
        let edited = Edited::new(&file(&left(behind)), Some(&sound_journal()));
        let mended = mend(&edited.path()).unwrap();
        let (undone, completed) = (Mended::RolledBack { head: 29 }, Mended::Completed { head: 29 });
        assert_eq!(mended, if want == OLD { undone } else { completed });
        assert_eq!(edited.content(), file(want));
        assert!(!edited.has_journal());
    }
}

#[test]
fn a_journal_of_another_edit_is_not_believed() {
    let sound = sound_journal();
    for behind in [
        // Of another file of this length, or of this one when it was another.
        &b"another head of 29 b."[..],
        // Of another edit.
        &[b"a taken!", &NEW[16..]].concat(),
        &[b"a taken!", &OLD[16..]].concat(),
        // Something else has written to it.
        &[TOKEN, &NEW[16..28], b"!"].concat(),
        &[&NEW[8..16], &OLD[16..]].concat(),
    ] {
        let content = file(&left(behind));
        let edited = Edited::new(&content, Some(&sound));
        for error in
            [mend(&edited.path()).unwrap_err(), rewrite_head(&edited.path(), OLD, NEW).unwrap_err()]
        {
            assert_eq!(error.code(), "io-interrupted-edit");
            assert!(error.to_string().contains("another edit or another file"), "{error}");
        }
        assert_eq!(edited.content(), content, "{}", behind.escape_ascii());
        assert!(edited.has_journal());
    }
}

#[test]
fn journals_that_are_swapped_between_files_are_of_no_use() {
    // As two edits leave them that were killed: one with the mark on the disk, one with the new header on it too.
    let folder = Folder::new();
    let old = [b"tensor a, AAA..............", b"tensor q, BBB.............."];
    let new = [b"tensor a, n................", b"tensor q, n................"];
    let behind = [[b"token of", &old[0][16..]].concat(), [b"of other", &new[1][16..]].concat()];
    let journals = [*b"token of", *b"of other"].map(|token| {
        let number = usize::from(token == *b"of other");
        journal_with(token, file(old[0]).len(), old[number], new[number])
    });
    for (name, behind) in ["0", "1"].into_iter().zip(&behind) {
        fs::write(folder.join(name), file(&left(behind))).unwrap();
    }
    fs::write(folder.join(".0.weigh-journal"), &journals[1]).unwrap();
    fs::write(folder.join(".1.weigh-journal"), &journals[0]).unwrap();
    for name in ["0", "1"] {
        let before = fs::read(folder.join(name)).unwrap();
        assert_eq!(mend(&folder.join(name)).unwrap_err().code(), "io-interrupted-edit");
        assert_eq!(fs::read(folder.join(name)).unwrap(), before);
    }
    // Each has its own again.
    fs::write(folder.join(".0.weigh-journal"), &journals[0]).unwrap();
    fs::write(folder.join(".1.weigh-journal"), &journals[1]).unwrap();
    for (name, old) in ["0", "1"].into_iter().zip(old) {
        assert_eq!(mend(&folder.join(name)).unwrap(), Mended::RolledBack { head: 27 });
        assert_eq!(fs::read(folder.join(name)).unwrap(), file(old));
    }
}

#[cfg(unix)]
#[test]
fn a_journal_beside_another_name_of_the_file_loses_no_later_edit() {
    let (first, second, third) = (OLD, NEW, b"a third, which was cut off...");
    let edited = Edited::new(&file(first), None);
    let other = edited.folder.join("other name");
    fs::hard_link(edited.path(), &other).unwrap();
    // An edit by one name that had not begun; one by the other that is whole; and one that was cut off.
    let stale = journal_of(file(first).len(), first, b"what was never written there.");
    fs::write(edited.folder.join(".m.weigh-journal"), stale).unwrap();
    rewrite_head(&other, first, second).unwrap();
    for behind in [&second[8..], &[b"a taken!", &second[16..]].concat()] {
        fs::write(&other, file(&left(behind))).unwrap();
        assert_eq!(mend(&edited.path()).unwrap_err().code(), "io-interrupted-edit");
        let error = mend(&other).unwrap_err();
        assert!(error.help().is_some_and(|help| help.contains("hard links")), "{error}");
        assert_eq!(edited.content(), file(&left(behind)));
        let journal = journal_with(*b"a taken!", file(second).len(), second, third);
        fs::write(edited.folder.join(".other name.weigh-journal"), journal).unwrap();
        assert_eq!(mend(&other).unwrap(), Mended::RolledBack { head: 29 });
        assert_eq!(edited.content(), file(second));
    }
}

#[test]
fn an_edit_that_was_cut_off_is_undone_before_the_next() {
    let edited = Edited::new(&cut_off(), Some(&sound_journal()));
    rewrite_head(&edited.path(), OLD, NEW).unwrap();
    assert_eq!(edited.content(), file(NEW));
    assert!(!edited.has_journal());
    // One that expects something else leaves it as it was before.
    let edited = Edited::new(&cut_off(), Some(&sound_journal()));
    assert_eq!(rewrite_head(&edited.path(), NEW, OLD).unwrap_err().code(), "io-changed");
    assert_eq!(edited.content(), file(OLD));
}

#[test]
fn a_journal_that_cannot_be_believed_is_an_error_and_stays() {
    let length = file(OLD).len();
    let whole = sound_journal();
    let mut changed = whole.clone();
    changed[35] ^= 1;
    let cases: [(&str, Vec<u8>); 11] = [
        ("empty", vec![]),
        ("cut off", whole[..whole.len() - 1].to_vec()),
        ("longer", [&whole[..], b"x"].concat()),
        ("changed", changed),
        ("of a longer file", journal(length + 1, OLD)),
        ("of a shorter file", journal(length - 1, OLD)),
        ("of no file", journal(usize::MAX, OLD)),
        ("with a head longer than the file", journal(length, &vec![1; length + 1])),
        ("with a head shorter than the mark", journal(length, &OLD[..7])),
        ("without a head", journal(length, b"")),
        ("with a head that is the mark", journal(length, &INTERRUPTED)),
    ];
    for (name, journal) in cases {
        let edited = Edited::new(&cut_off(), Some(&journal));
        let error = mend(&edited.path()).unwrap_err();
        assert_eq!(error.code(), "io-interrupted-edit", "{name}");
        assert_eq!(
            error.to_string().contains("for a file of"),
            name.ends_with("er file") || name == "of no file",
            "{error}"
        );
        assert_eq!(rewrite_head(&edited.path(), OLD, NEW).unwrap_err().code(), error.code());
        assert_eq!(edited.content(), cut_off(), "{name}");
        assert!(edited.has_journal(), "{name}");
    }
}

#[test]
fn a_journal_that_is_no_file_is_not_believed() {
    let edited = Edited::new(&cut_off(), None);
    fs::create_dir(edited.folder.join(".m.weigh-journal")).unwrap();
    assert_eq!(mend(&edited.path()).unwrap_err().code(), "io-interrupted-edit");
    #[cfg(unix)]
    {
        let edited = Edited::new(&cut_off(), None);
        fs::write(edited.folder.join("elsewhere"), sound_journal()).unwrap();
        std::os::unix::fs::symlink("elsewhere", edited.folder.join(".m.weigh-journal")).unwrap();
        assert_eq!(mend(&edited.path()).unwrap_err().code(), "io-interrupted-edit");
        assert_eq!(edited.content(), cut_off());
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let edited = Edited::new(&cut_off(), None);
        let pipe = edited.folder.join(".m.weigh-journal");
        mknodat(CWD, pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        assert_eq!(mend(&edited.path()).unwrap_err().code(), "io-interrupted-edit");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_journal_of_a_stranger_is_not_believed() {
    use std::os::unix::fs::chown;

    use weigh_io::{ErrorKind, Unmendable};

    use crate::user::{SOMEBODY, is_administrator};
    if !is_administrator() {
        eprintln!("skipped: only the administrator can give a file away");
        return;
    }
    let edited = Edited::new(&cut_off(), Some(&sound_journal()));
    chown(edited.folder.join(".m.weigh-journal"), Some(SOMEBODY), None).unwrap();
    let error = mend(&edited.path()).unwrap_err();
    assert_eq!(error.code(), "io-interrupted-edit");
    // It may be a sound one: that is said, and who can do something about it.
    let want = Unmendable::Untrusted { owner: SOMEBODY };
    assert!(matches!(error.kind(), ErrorKind::InterruptedEdit(why) if *why == want), "{error}");
    assert!(error.to_string().contains("another user, number 54321"), "{error}");
    assert!(error.help().is_some_and(|help| help.contains("administrator")), "{:?}", error.help());
    assert_eq!(edited.content(), cut_off());
    chown(edited.path(), Some(SOMEBODY), None).unwrap();
    assert_eq!(mend(&edited.path()).unwrap(), Mended::RolledBack { head: 29 });
}

#[test]
fn one_edit_at_a_time() {
    for content in [file(OLD), cut_off()] {
        let edited = Edited::new(&content, Some(&sound_journal()));
        // As an edit in another process holds it.
        let other = File::open(edited.path()).unwrap();
        other.lock().unwrap();
        assert_eq!(rewrite_head(&edited.path(), OLD, NEW).unwrap_err().code(), "io-locked");
        assert_eq!(mend(&edited.path()).unwrap_err().code(), "io-locked");
        #[cfg(unix)]
        {
            fs::hard_link(edited.path(), edited.folder.join("other name")).unwrap();
            let path = edited.folder.join("other name");
            assert_eq!(rewrite_head(&path, OLD, NEW).unwrap_err().code(), "io-locked");
            fs::remove_file(path).unwrap();
        }
        assert_eq!(edited.content(), content);
        assert!(edited.has_journal());
        other.unlock().unwrap();
        rewrite_head(&edited.path(), OLD, NEW).unwrap();
        assert_eq!(edited.content(), file(NEW));
    }
}

#[test]
fn an_edit_that_is_under_way_is_waited_for_to_mend() {
    let edited = Edited::new(&cut_off(), Some(&sound_journal()));
    let other = File::open(edited.path()).unwrap();
    other.lock().unwrap();
    std::thread::scope(|scope| {
        let mended = scope.spawn(|| mend(&edited.path()));
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(!mended.is_finished());
        other.unlock().unwrap();
        assert_eq!(mended.join().unwrap().unwrap(), Mended::RolledBack { head: 29 });
    });
    // Several that mend it at once: one does, and nobody fails.
    fs::write(edited.path(), cut_off()).unwrap();
    fs::write(edited.folder.join(".m.weigh-journal"), sound_journal()).unwrap();
    let all: Vec<Mended> = std::thread::scope(|scope| {
        let mending: Vec<_> =
            (0..8).map(|_| scope.spawn(|| mend(&edited.path()).unwrap())).collect();
        mending.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let undone = all.iter().filter(|it| matches!(it, Mended::RolledBack { .. })).count();
    assert_eq!(undone, 1, "{all:?}");
    assert_eq!(edited.content(), file(OLD));
}

#[test]
fn what_cannot_be_removed_from_the_place_of_the_journal_is_told() {
    let edited = Edited::new(&file(OLD), None);
    fs::create_dir(edited.folder.join(".m.weigh-journal")).unwrap();
    assert_eq!(mend(&edited.path()).unwrap(), Mended::Nothing);
    let error = rewrite_head(&edited.path(), OLD, NEW).unwrap_err();
    assert_eq!(error.code(), "io-stale-journal");
    assert!(error.path().ends_with(".m.weigh-journal"), "{error}");
    assert!(error.help().is_some_and(|help| help.starts_with("Remove it")));
    assert_eq!(edited.content(), file(OLD));
}

#[test]
fn edits_at_once_take_turns_or_are_refused() {
    let edited = Edited::new(&file(b"00000000"), None);
    let path = edited.path();
    let edit = |own: u8| {
        let mut done = 0;
        for _ in 0..200 {
            let head = fs::read(&path).unwrap()[..8].to_vec();
            match rewrite_head(&path, &head, &[own; 8]) {
                Ok(()) => done += 1,
                Err(error) => {
                    let code = error.code();
                    // A reader may find the mark in front.
                    assert!(["io-locked", "io-changed", "io-misuse"].contains(&code), "{error}");
                }
            }
        }
        done
    };
    let done: usize = std::thread::scope(|scope| {
        let edit = &edit;
        let editors = [b'1', b'2', b'3'].map(|own| scope.spawn(move || edit(own)));
        editors.map(|editor| editor.join().unwrap()).iter().sum()
    });
    assert!(done > 0);
    let content = edited.content();
    assert!([b'1', b'2', b'3'].iter().any(|own| content == file(&[*own; 8])), "{content:?}");
    assert!(!edited.has_journal());
}

#[cfg(unix)]
#[test]
fn an_edit_is_of_the_file_whatever_name_it_has() {
    let edited = Edited::new(&file(OLD), None);
    fs::hard_link(edited.path(), edited.folder.join("other name")).unwrap();
    std::os::unix::fs::symlink("m", edited.folder.join("link")).unwrap();
    rewrite_head(&edited.folder.join("link"), OLD, NEW).unwrap();
    assert_eq!(fs::read(edited.folder.join("other name")).unwrap(), file(NEW));
    // The journal is beside the file, not beside the link.
    fs::create_dir(edited.folder.join("deep")).unwrap();
    std::os::unix::fs::symlink("../m", edited.folder.join("deep/link")).unwrap();
    fs::write(edited.path(), cut_off()).unwrap();
    fs::write(edited.folder.join(".m.weigh-journal"), sound_journal()).unwrap();
    let mended = mend(Path::new(&edited.folder.join("deep/link"))).unwrap();
    assert_eq!(mended, Mended::RolledBack { head: 29 });
    assert_eq!(edited.content(), file(OLD));
}
