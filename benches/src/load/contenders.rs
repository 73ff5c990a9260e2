//! Who loads: we, the peers, and what to compare both with.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use self::Special::{HugePages, IoUring, Nothing};
use crate::load::case::{Case, Mode};
use crate::load::measurement::Line;
use crate::load::options::Options;
use crate::load::sets::Set;
use crate::{cache, peers, programs};

/// How long a load may take, in seconds.
const PATIENCE: &str = "600";

/// How many threads we load with, a row each.
const OURS: [u8; 2] = [1, 2];

/// What makes a loader take other ways than its own choice. None is inherited.
const SETTINGS: [&str; 12] = [
    "FASTSAFETENSORS_CONFIG",
    "FASTSAFETENSORS_ODIRECT",
    "FASTSAFETENSORS_UNIFIED_MEM",
    "GLIBC_TUNABLES",
    "MKL_NUM_THREADS",
    "OMP_NUM_THREADS",
    "RUNAI_STREAMER_CHUNK_BYTESIZE",
    "RUNAI_STREAMER_CONCURRENCY",
    "RUNAI_STREAMER_FS_QUEUE_DEPTH",
    "RUNAI_STREAMER_FS_STRATEGY",
    "RUNAI_STREAMER_MEMORY_LIMIT",
    "THP_MEM_ALLOC_ENABLE",
];

/// By default these two pass the page cache by: where the files are in it, they are told to use it.
const THROUGH_THE_CACHE: [(&str, &str); 2] =
    [("FASTSAFETENSORS_ODIRECT", "0"), ("RUNAI_STREAMER_FS_STRATEGY", "sync_buffered")];

/// The other way through the cache; which is the faster depends on the machine.
const IO_URING: (&str, &str) = ("RUNAI_STREAMER_FS_STRATEGY", "io_uring_buffered");

/// What gives the peers huge pages: the C library's allocator, and torch's.
const HUGE: [(&str, &str); 2] =
    [("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1"), ("THP_MEM_ALLOC_ENABLE", "1")];

/// What a contender is there for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Role {
    Ours,
    /// One of those to be compared with, as it comes.
    Peer,
    /// One that was helped by settings that few users know.
    HelpedPeer,
    /// Shows what the machine can do; finds no tensors.
    Yardstick,
}

/// One row of a table.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: String,
    pub(crate) role: Role,
    work: Work,
}

#[derive(Debug)]
enum Work {
    /// A program that prints a line of JSON.
    Load { command: Vec<OsString>, environment: Vec<(&'static str, &'static str)> },
    /// `dd`, and whether it passes the page cache by.
    Read { files: Vec<PathBuf>, is_direct: bool },
}

/// The programs that the contenders are.
#[derive(Debug)]
pub(crate) struct Programs {
    /// `None` if it is not wanted.
    ours: Option<PathBuf>,
    python: PathBuf,
    cores: String,
}

/// A loader of `peer.py` in the rows of a table: name, threads, and what is special.
type Row = (&'static str, Option<u8>, Special);

/// What a row asks for beside what is usual.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Special {
    Nothing,
    HugePages,
    IoUring,
}

impl Programs {
    /// Finds or builds what is wanted.
    pub(crate) fn find(options: &Options) -> Result<Self> {
        let is_wanted = OURS.iter().any(|threads| options.wants(&our_name(*threads)));
        let ours = if is_wanted { Some(programs::weigh_load()?) } else { None };
        Ok(Self { ours, python: options.python.clone(), cores: options.cores.clone() })
    }

    /// Who takes part in a case.
    pub(crate) fn contenders(&self, case: Case, set: &Set, options: &Options) -> Vec<Contender> {
        let mut contenders = Vec::new();
        for threads in OURS {
            // What is only held is not read, so threads make no difference.
            if let Some(program) =
                self.ours.as_ref().filter(|_| case.mode != Mode::Hold || threads == 1)
            {
                let command = self.command(&[program.as_os_str()], case, Some(threads), set);
                let work = Work::Load { command, environment: Vec::new() };
                contenders.push(Contender { name: our_name(threads), role: Role::Ours, work });
            }
        }
        for &(loader, threads, special) in rows(case) {
            let script = peers::script("load/peer.py");
            let words = [self.python.as_os_str(), script.as_os_str(), OsStr::new(loader)];
            let command = self.command(&words, case, threads, set);
            let mut environment = Vec::new();
            if !case.is_cold {
                environment.extend(THROUGH_THE_CACHE);
            }
            let said = match special {
                Nothing => "",
                HugePages => {
                    environment.extend(HUGE);
                    ", huge pages"
                }
                IoUring => {
                    environment.push(IO_URING);
                    ", io_uring"
                }
            };
            let threads = match threads {
                None => String::new(),
                Some(1) => String::from(", 1 thread"),
                Some(threads) => format!(", {threads} threads"),
            };
            let is_yardstick = loader.starts_with("copy-") || loader.starts_with("numpy-");
            let role = match special {
                _ if is_yardstick => Role::Yardstick,
                HugePages => Role::HelpedPeer,
                Nothing | IoUring => Role::Peer,
            };
            contenders.push(Contender {
                name: format!("{loader}{threads}{said}"),
                role,
                work: Work::Load { command, environment },
            });
        }
        if case.mode == Mode::Cold {
            for (name, is_direct) in [("dd, 16 MiB, direct", true), ("dd, 16 MiB, buffered", false)]
            {
                let work = Work::Read { files: set.files.clone(), is_direct };
                contenders.push(Contender { name: name.into(), role: Role::Yardstick, work });
            }
        }
        contenders.retain(|contender| options.wants(&contender.name));
        contenders
    }

    fn command(
        &self,
        program: &[&OsStr],
        case: Case,
        threads: Option<u8>,
        set: &Set,
    ) -> Vec<OsString> {
        let mut command: Vec<OsString> =
            ["timeout", PATIENCE, "taskset", "-c", &self.cores].map(OsString::from).into();
        command.extend(program.iter().map(OsString::from));
        command.extend(["--mode", case.mode.name()].map(OsString::from));
        if let Some(threads) = threads {
            command.extend(["--threads".into(), threads.to_string().into()]);
        }
        let bytes = set.answer(Mode::Own).bytes;
        command.extend(["--warm-up-bytes".into(), bytes.to_string().into()]);
        command.extend(set.files.iter().map(OsString::from));
        command
    }
}

fn our_name(threads: u8) -> String {
    format!("weigh, {threads} {}", if threads == 1 { "thread" } else { "threads" })
}

/// The loaders of `peer.py` that take part in a case.
fn rows(case: Case) -> &'static [Row] {
    match case.mode {
        Mode::Own => &[
            ("safetensors-mmap", Some(1), Nothing),
            ("safetensors-mmap", Some(2), Nothing),
            ("safetensors-pread", Some(1), Nothing),
            ("fastsafetensors", None, Nothing),
            ("fastsafetensors", Some(1), Nothing),
            ("fastsafetensors", Some(2), Nothing),
            ("runai-model-streamer", None, Nothing),
            ("runai-model-streamer", Some(1), Nothing),
            ("runai-model-streamer", Some(2), Nothing),
            ("runai-model-streamer", Some(2), IoUring),
            ("safetensors-mmap", Some(1), HugePages),
            ("safetensors-pread", Some(1), HugePages),
            ("fastsafetensors", Some(2), HugePages),
            ("runai-model-streamer", Some(2), HugePages),
            ("numpy-fromfile", None, Nothing),
            ("copy-to-touched", None, Nothing),
            ("copy-to-fresh", None, Nothing),
            ("copy-to-fresh-huge", None, Nothing),
        ],
        Mode::Cold => &[
            ("safetensors-mmap", Some(1), Nothing),
            ("safetensors-pread", Some(1), Nothing),
            ("fastsafetensors", None, Nothing),
            ("fastsafetensors", Some(1), Nothing),
            ("fastsafetensors", Some(2), Nothing),
            ("runai-model-streamer", None, Nothing),
            ("runai-model-streamer", Some(1), Nothing),
            ("runai-model-streamer", Some(2), Nothing),
            ("safetensors-mmap", Some(1), HugePages),
            ("safetensors-pread", Some(1), HugePages),
            ("fastsafetensors", Some(2), HugePages),
            ("runai-model-streamer", Some(2), HugePages),
            ("numpy-fromfile", None, Nothing),
        ],
        // The others hold nothing that they have not read.
        Mode::Hold => &[("safetensors-mmap", Some(1), Nothing)],
        Mode::Stream | Mode::SliceFirst | Mode::SliceLast => &[
            ("safetensors-mmap", Some(1), Nothing),
            ("safetensors-pread", Some(1), Nothing),
            ("fastsafetensors", None, Nothing),
            ("fastsafetensors", Some(1), Nothing),
            ("fastsafetensors", Some(2), Nothing),
            ("runai-model-streamer", None, Nothing),
            ("runai-model-streamer", Some(1), Nothing),
            ("runai-model-streamer", Some(2), Nothing),
        ],
    }
}

impl Contender {
    /// Loads once.
    pub(crate) fn run(&self) -> Result<Line> {
        match &self.work {
            Work::Load { command, environment } => {
                let [program, arguments @ ..] = command.as_slice() else {
                    bail!("no program");
                };
                let mut command = Command::new(program);
                command.args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
                for setting in SETTINGS {
                    command.env_remove(setting);
                }
                command.envs(environment.iter().copied());
                let output = command.output().context("cannot start it: is taskset there?")?;
                peers::last_line(&output)
            }
            Work::Read { files, is_direct } => read(files, *is_direct),
        }
    }
}

fn read(files: &[PathBuf], is_direct: bool) -> Result<Line> {
    let start = Instant::now();
    for file in files {
        let mut command = Command::new("dd");
        command.arg(cache::operand("if=", file)).args(["of=/dev/null", "bs=16M", "status=none"]);
        if is_direct {
            command.arg("iflag=direct");
        }
        let output = command.output().context("cannot start dd")?;
        if !output.status.success() {
            bail!("{}", String::from_utf8_lossy(&output.stderr).trim());
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    let sizes = files.iter().map(|file| Ok(file.metadata()?.len()));
    Ok(Line::of_reading(seconds, sizes.sum::<Result<u64>>()?))
}
