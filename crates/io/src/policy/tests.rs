//! Facts and options against what is chosen, and what is said of it.

use std::num::NonZero;

use super::*;
use crate::system::{FileSystem, LimitedBy, Memory};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const TMPFS: FileSystem = FileSystem { kind: FileSystemKind::Memory, name: "tmpfs" };
const EXT4: FileSystem = FileSystem { kind: FileSystemKind::Local, name: "ext4" };
const NFS: FileSystem = FileSystem { kind: FileSystemKind::Network, name: "nfs" };
const FUSE: FileSystem = FileSystem { kind: FileSystemKind::Fuse, name: "fuse" };

/// One file of 4 GiB on ext4, not cached, on a machine with 16 cores, 64 GiB and `io_uring`.
fn facts() -> Facts {
    Facts {
        file_system: EXT4,
        files: 1,
        wanted: 4 * GIB,
        cached: Some(0),
        memory: memory(64 * GIB),
        cores: 16,
        uring: Uring::Available,
        scattered: false,
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as it stands in the facts")]
fn memory(available: u64) -> Option<Memory> {
    Some(Memory { available, limited_by: LimitedBy::System })
}

fn on(file_system: FileSystem) -> Facts {
    Facts { file_system, ..facts() }
}

fn chosen(facts: &Facts) -> Choice {
    choose(facts, &ReadOptions::default())
}

/// The parts of a choice in one line.
fn line(choice: &Choice) -> String {
    format!(
        "{} {} {}x{} {}K gap {}K{}",
        choice.backend.name(),
        choice.direct.name(),
        choice.threads,
        choice.depth,
        choice.request_bytes >> 10,
        choice.gap_bytes >> 10,
        if choice.huge_pages { " huge" } else { "" }
    )
}

const COPIED: &str = "pread never 8x1 4096K gap 8K huge";
const RING: &str = "uring probe 2x10 2048K gap 64K huge";
const DISK: &str = "pread never 4x1 4096K gap 64K huge";

#[test]
fn each_kind_of_load_is_read_its_own_way() {
    let network = "pread never 2x1 16384K gap 4096K huge";
    for (name, facts, want) in [
        ("in memory", on(TMPFS), COPIED),
        ("in memory, cached or not", Facts { cached: None, ..on(TMPFS) }, COPIED),
        ("cold", facts(), RING),
        ("not known to be cached", Facts { cached: None, ..facts() }, RING),
        (
            "cold, without rings",
            Facts { uring: Uring::Forbidden, ..facts() },
            "pread probe 8x1 2048K gap 64K huge",
        ),
        ("on another machine", on(NFS), network),
        ("on another machine and cached", Facts { cached: Some(4 * GIB), ..on(NFS) }, COPIED),
        ("behind a program", on(FUSE), "pread never 4x1 16384K gap 4096K huge"),
        ("unknown", on(FileSystem::UNKNOWN), "pread never 4x1 4096K gap 256K huge"),
        ("nothing", Facts { wanted: 0, files: 0, ..facts() }, "pread never 1x1 4096K gap 8K"),
    ] {
        assert_eq!(line(&chosen(&facts)), want, "{name}");
    }
}

#[test]
fn cached_from_90_per_cent_and_cold_to_10() {
    let wanted = 1000 * MIB;
    for (cached, want) in [
        (0, RING),
        (110 * MIB - 1, RING),
        (110 * MIB, DISK),
        (900 * MIB - 1, DISK),
        (900 * MIB, COPIED),
        (wanted, COPIED),
        (u64::MAX, COPIED),
    ] {
        let facts = Facts { wanted, cached: Some(cached), ..facts() };
        assert_eq!(line(&chosen(&facts)), want, "{cached}");
    }
}

#[test]
fn direct_reads_are_tried_from_256_mib_and_from_32_where_spans_lie_apart() {
    for (wanted, scattered, want) in [
        (256 * MIB - 1, false, DISK),
        (256 * MIB, false, RING),
        (32 * MIB - 1, true, DISK),
        (32 * MIB, true, RING),
    ] {
        let facts = Facts { wanted, scattered, ..facts() };
        assert_eq!(line(&chosen(&facts)), want, "{wanted} {scattered}");
    }
}

#[test]
fn where_memory_is_short_the_page_cache_is_left_alone() {
    let short = "uring always 2x10 2048K gap 64K huge";
    let wanted = 2 * GIB;
    for (available, cached, file_system, want) in [
        (4 * GIB, Some(0), EXT4, RING),
        (4 * GIB - 2, Some(0), EXT4, short),
        (0, Some(0), EXT4, short),
        (4 * GIB - 2, None, EXT4, RING),
        (4 * GIB - 2, Some(GIB), EXT4, DISK),
        (4 * GIB - 2, Some(2 * GIB), EXT4, COPIED),
        (4 * GIB - 2, Some(0), NFS, "pread never 2x1 16384K gap 4096K huge"),
    ] {
        let memory = memory(available);
        let facts = Facts { file_system, wanted, cached, memory, ..facts() };
        assert_eq!(line(&chosen(&facts)), want, "{available} {cached:?}");
    }
    let small = Facts { wanted: 3 * MIB, memory: memory(5 * MIB), ..facts() };
    assert_eq!(line(&chosen(&small)), "uring always 2x10 2048K gap 64K", "however small");
    let unknown = Facts { memory: None, ..facts() };
    assert_eq!(line(&chosen(&unknown)), RING);
}

#[test]
fn no_more_threads_than_cores_to_copy_nor_than_there_is_work() {
    for (cores, files, wanted, scattered, threads) in [
        (0, 1, GIB, false, 1),
        (1, 1, GIB, false, 1),
        (2, 1, GIB, false, 2),
        (8, 1, GIB, false, 8),
        (9, 1, GIB, false, 8),
        (8, 1, 1, false, 1),
        (8, 1, 4 * MIB, false, 1),
        (8, 1, 4 * MIB + 1, false, 2),
        (8, 3, 1, false, 3),
        (8, 100, 1, false, 8),
        (8, 1, 1, true, 8),
    ] {
        let facts = Facts { files, wanted, cores, scattered, ..on(TMPFS) };
        assert_eq!(chosen(&facts).threads, threads, "{facts:?}");
    }
    for (cores, want) in [(1, "1x16"), (4, "2x10"), (64, "2x10")] {
        let choice = chosen(&Facts { cores, ..facts() });
        assert_eq!(format!("{}x{}", choice.threads, choice.depth), want, "{cores} cores");
        let without = Facts { cores, uring: Uring::Absent, ..facts() };
        assert_eq!(chosen(&without).threads, 8, "who waits for a disk needs no core");
    }
}

#[test]
fn huge_pages_from_4_mib() {
    for (wanted, want) in [(4 * MIB - 1, false), (4 * MIB, true)] {
        assert_eq!(chosen(&Facts { wanted, ..on(TMPFS) }).huge_pages, want, "{wanted}");
    }
}

/// What is chosen with options, and the reasons after the first.
fn with(facts: &Facts, set: impl FnOnce(&mut ReadOptions)) -> (String, Vec<String>) {
    let mut options = ReadOptions::default();
    set(&mut options);
    let choice = choose(facts, &options);
    let reasons = choice.reasons.iter().skip(1).map(Reason::to_string).collect();
    (line(&choice), reasons)
}

#[test]
fn what_the_caller_fixed_wins_and_is_said_to_be_so() {
    let size = |size| NonZero::new(size);
    let (line, reasons) = with(&facts(), |options| {
        options.backend = Some(Backend::Pread);
        options.direct = Some(Direct::Always);
        options.threads = size(3);
        options.depth = size(2);
        options.request_bytes = Some(MIB);
        options.gap_bytes = Some(0);
        options.huge_pages = Some(false);
    });
    assert_eq!(line, "pread always 3x2 1024K gap 0K");
    assert_eq!(
        reasons,
        [
            "backend pread was asked for",
            "reads past the page cache were asked for",
            "the number of bytes a request was asked for: 1048576",
            "the number of bytes of a gap that is read over was asked for: 0",
            "the number of threads was asked for: 3",
            "the number of requests a thread has under way was asked for: 2",
            "no huge pages were asked for",
        ]
    );
}

#[test]
fn what_goes_with_a_choice_follows_what_was_fixed() {
    let ring = Some(Backend::Uring);
    let cached = Facts { cached: Some(4 * GIB), ..facts() };
    for (name, (line, reasons), want, why) in [
        (
            "no ring where reads go through the cache",
            with(&facts(), |it| it.direct = Some(Direct::Never)),
            "pread never 8x1 2048K gap 64K huge",
            &["reads through the page cache were asked for"][..],
        ),
        (
            "threads as for threads",
            with(&facts(), |it| it.backend = Some(Backend::Pread)),
            "pread probe 8x1 2048K gap 64K huge",
            &[
                "backend pread was asked for",
                "the first requests show whether reads past the page cache are faster than through it",
            ],
        ),
        (
            "a ring as for rings",
            with(&cached, |it| it.backend = ring),
            "uring never 2x16 4096K gap 8K huge",
            &["backend uring was asked for"],
        ),
        (
            "as many under way as threads would have",
            with(&on(NFS), |it| it.backend = ring),
            "uring never 1x2 16384K gap 4096K huge",
            &["backend uring was asked for"],
        ),
        (
            "direct reads alone bring no ring",
            with(&cached, |it| it.direct = Some(Direct::Probe)),
            "pread probe 8x1 4096K gap 8K huge",
            &["to try reads past the page cache was asked for"],
        ),
        (
            "smaller requests are more work to share",
            with(&Facts { wanted: 4 * MIB, ..on(TMPFS) }, |it| it.request_bytes = Some(MIB)),
            "pread never 4x1 1024K gap 8K huge",
            &["the number of bytes a request was asked for: 1048576"],
        ),
    ] {
        assert_eq!(line, want, "{name}");
        assert_eq!(reasons, why, "{name}");
    }
}

#[test]
fn what_cannot_be_had_is_refused_and_why() {
    let mmap = Some(Backend::Mmap);
    for ((line, reasons), want, why) in [
        (
            with(&on(FUSE), |it| it.backend = mmap),
            "pread never 4x1 16384K gap 4096K huge",
            &[
                "backend mmap was asked for and is refused on FUSE, where a page fault can block for good: \
               plain reads do it",
            ][..],
        ),
        (
            with(&Facts { cached: Some(4 * GIB), ..on(FUSE) }, |it| it.backend = mmap),
            "pread never 8x1 4096K gap 8K huge",
            &[
                "backend mmap was asked for and is refused on FUSE, where a page fault can block for good: \
               plain reads do it",
            ],
        ),
        (
            with(&facts(), |it| it.backend = mmap),
            "mmap never 8x1 2048K gap 64K",
            &["backend mmap was asked for"],
        ),
        (
            with(&facts(), |it| {
                it.backend = mmap;
                it.direct = Some(Direct::Always);
            }),
            "mmap never 8x1 2048K gap 64K",
            &[
                "backend mmap was asked for",
                "reads past the page cache were asked for and cannot be had of a memory map, which is made of it",
            ],
        ),
        (
            with(&Facts { uring: Uring::Failed, ..on(TMPFS) }, |it| {
                it.backend = Some(Backend::Uring);
            }),
            COPIED,
            &["io_uring cannot be had, no ring could be made: threads with plain reads do it"],
        ),
    ] {
        assert_eq!(line, want);
        assert_eq!(reasons, why);
    }
}

#[test]
fn numbers_are_held_to_what_can_be() {
    let most = NonZero::new(usize::MAX);
    let (line, reasons) = with(&facts(), |options| {
        options.threads = most;
        options.depth = most;
        options.request_bytes = Some(u64::MAX);
        options.gap_bytes = Some(u64::MAX);
    });
    assert_eq!(line, "uring probe 256x1 16384K gap 1048576K huge");
    let max = u64::MAX;
    assert_eq!(
        reasons[2..],
        [
            format!(
                "the number of bytes a request was asked to be {max}, and can only be 16777216"
            ),
            format!(
                "the number of bytes of a gap that is read over was asked to be {max}, and can only be 1073741824"
            ),
            format!("the number of threads was asked to be {max}, and can only be 256"),
            format!(
                "the number of requests a thread has under way was asked to be {max}, and can only be 1"
            ),
        ]
    );
    for (asked, used) in [(0, 4096), (4095, 4096), (4096, 4096), (GIB, GIB), (GIB + 1, GIB)] {
        let direct = Some(Direct::Never);
        let options = ReadOptions { request_bytes: Some(asked), direct, ..ReadOptions::default() };
        assert_eq!(choose(&facts(), &options).request_bytes, used, "{asked}");
    }
}

#[test]
fn every_choice_says_why() {
    let uring = "io_uring can be had: it keeps many requests under way";
    let probe =
        "the first requests show whether reads past the page cache are faster than through it";
    for (facts, why) in [
        (on(TMPFS), &["the files are in memory (tmpfs): a thread for each core copies them"][..]),
        (
            Facts { cached: Some(4 * GIB - 1), ..facts() },
            &["99% of what is wanted is in the page cache: a thread for each core copies it"],
        ),
        (
            Facts { cached: Some(2 * GIB), ..facts() },
            &["50% of what is wanted is in the page cache: reads past it would fetch that again"],
        ),
        (facts(), &["the files are on a local disk (ext4) and not cached", uring, probe]),
        (
            Facts { cached: None, ..facts() },
            &[
                "the files are on a local disk (ext4) and the system does not say whether they are cached",
                uring,
                probe,
            ],
        ),
        (
            Facts { uring: Uring::Forbidden, ..facts() },
            &[
                "the files are on a local disk (ext4) and not cached",
                "io_uring cannot be had, it is forbidden here: threads with plain reads do it",
                probe,
            ],
        ),
        (
            Facts { wanted: 5, uring: Uring::Absent, ..facts() },
            &[
                "the files are on a local disk (ext4) and 5 bytes are too few to try reads past the page cache",
            ],
        ),
        (
            Facts { memory: memory(5 * GIB), uring: Uring::Absent, ..facts() },
            &[
                "4294967296 bytes are wanted and the machine has left 5368709120: what the page cache keeps of \
                 them would compete for it",
                "io_uring cannot be had, the system has none: threads with plain reads do it",
                "reads go past the page cache",
            ],
        ),
        (
            Facts {
                memory: Some(Memory { available: GIB, limited_by: LimitedBy::Cgroup }),
                ..facts()
            },
            &[
                "4294967296 bytes are wanted and the cgroup has left 1073741824: what the page cache keeps of \
                 them would compete for it",
                "4294967296 bytes are wanted and only 1073741824 bytes of memory can be had: loading all of it \
                 at once may fail",
                uring,
                "reads go past the page cache",
            ],
        ),
        (
            on(NFS),
            &[
                "the files are on another machine (nfs): large requests through the page cache, few at a time, as \
               many may stall it",
            ],
        ),
        (
            on(FUSE),
            &[
                "the files are behind a program (fuse): large requests through the page cache, few at a time",
            ],
        ),
        (
            on(FileSystem::UNKNOWN),
            &[
                "nothing is known of the file system: plain reads through the page cache work on all",
            ],
        ),
    ] {
        let reasons: Vec<String> = chosen(&facts).reasons.iter().map(Reason::to_string).collect();
        assert_eq!(reasons, why);
    }
    assert_eq!(Reason::AskedHugePages { asked: true }.to_string(), "huge pages were asked for");
}

#[test]
fn names_read_back() {
    for backend in Backend::ALL {
        assert_eq!(backend.name().parse(), Ok(backend));
    }
    for direct in Direct::ALL {
        assert_eq!(direct.name().parse(), Ok(direct));
    }
    let error = "io_uring".parse::<Backend>().unwrap_err();
    assert_eq!(error.to_string(), "must be pread, uring or mmap");
    let error = "Never".parse::<Direct>().unwrap_err();
    assert_eq!(error.to_string(), "must be never, always or probe");
}
