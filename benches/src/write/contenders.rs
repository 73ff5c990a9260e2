//! Who writes: we, the peers, and copies of as many bytes.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use weigh_benches::process;

use crate::child::{Child, Cost};
use crate::write::answer::Answer;
use crate::write::contest::{Contest, Work};
use crate::write::options::Options;
use crate::write::place::{Expected, INDEX, Place};
use crate::write::sparse;
use crate::{cache, peers, programs};

/// What is set in the metadata, as `write/source.py` has it.
const NOTE: &str = "written by the benchmark";

/// The file that each contender writes that writes one.
const TARGET: &str = "model.safetensors";

/// Bytes of the larger file that is edited in place: more than anyone would copy.
const LARGE: u64 = 200_000_000_000;

/// Words of a command, whatever they are made of.
macro_rules! words {
    ($($word:expr),* $(,)?) => { [$(::std::convert::AsRef::<::std::ffi::OsStr>::as_ref($word)),*] };
}

/// One row of a table.
#[derive(Debug)]
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    run: Run,
    answer: Answer,
    /// What is in the page cache when it starts.
    reads: Vec<PathBuf>,
}

#[derive(Debug)]
enum Run {
    /// A program that is measured from outside, as a whole, once so much memory was touched.
    Outside { child: Child, fresh: u64 },
    /// A program that measures itself, and prints a line of JSON.
    Inside(Vec<OsString>),
}

/// The line of JSON that a program prints that measures itself.
#[derive(Debug, Deserialize)]
struct Line {
    seconds: f64,
    cpu_seconds: f64,
    rss_before_bytes: u64,
    peak_rss_bytes: u64,
    #[serde(rename = "first_touch_GBps")]
    first_touch: Option<f64>,
}

/// What a run came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ran {
    pub(crate) cost: Cost,
    /// How fast fresh memory was had before, in gigabytes a second.
    pub(crate) first_touch: Option<f64>,
}

/// Where a contest takes place, and between whom.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'s> {
    pub(crate) contest: Contest,
    pub(crate) place: &'s Place,
    /// The place in memory, whatever the contest.
    pub(crate) memory: &'s Place,
    pub(crate) expected: &'s Expected,
    pub(crate) python: &'s Path,
}

impl Setting<'_> {
    /// Who takes part.
    pub(crate) fn contenders(&self, options: &Options) -> Result<Vec<Contender>> {
        let mut contenders = match self.contest.work {
            Work::Save => self.savers(&programs::weigh_save()?),
            Work::Edit => self.editors(&programs::weigh()?),
            Work::Cast => self.casters(&programs::weigh()?),
            Work::InPlace => self.in_place(&programs::weigh()?),
            Work::Convert => self.converters(
                &programs::weigh()?,
                &self.place.torch(),
                self.expected.bytes,
                &self.expected.converted,
            ),
            Work::ConvertSmall => self.converters(
                &programs::weigh()?,
                &self.place.torch_small(),
                self.expected.small_bytes,
                &self.expected.small_converted,
            ),
        };
        contenders.retain(|contender| options.wants(contender.name));
        Ok(contenders)
    }

    /// Makes everything as it is to be before a run: what is read is there, what is written is not.
    pub(crate) fn prepare(&self, contender: &Contender) -> Result<()> {
        self.place.clear()?;
        if let Answer::Note { file, bytes, .. } = &contender.answer {
            sparse::write(file, *bytes)?;
        }
        if self.contest.is_on_disk() {
            self.place.settle()?;
        }
        cache::warm(&contender.reads)
    }

    fn savers(&self, weigh_save: &Path) -> Vec<Contender> {
        let source = self.memory.source();
        let saved = || Answer::file(TARGET, &self.expected.source);
        let inside = |name, words: &[&OsStr]| Contender {
            name,
            run: Run::Inside(self.inside(words, &source)),
            answer: saved(),
            reads: Vec::new(),
        };
        let script = peers::script("write/peer.py");
        let mut contenders = vec![
            inside("weigh save", &[weigh_save.as_os_str()]),
            inside(
                self.pick("safetensors save_file", "safetensors save_file, fsync"),
                &[self.python.as_os_str(), script.as_os_str(), "save".as_ref()],
            ),
        ];
        if self.contest.is_on_disk() {
            contenders.push(self.dd(&source, Vec::new()));
        }
        contenders
    }

    fn editors(&self, weigh: &Path) -> Vec<Contender> {
        let Expected { shard_bytes, source, renamed, noted, .. } = self.expected;
        let (file, target) = (self.place.source(), self.place.output().join(TARGET));
        let ours = |name, words: &[&OsStr], answer, reads: &[PathBuf]| Contender {
            name,
            run: self.ours(weigh, words),
            answer,
            reads: self.reads(reads),
        };
        let only = |digest: &str| Answer::file(TARGET, digest);
        let split = Answer::Files {
            digests: self.expected.shards.clone(),
            index: Some(self.place.shards().join(INDEX)),
        };
        let [most, pair] = [shard_bytes.to_string(), format!("note={NOTE}")];
        let (shards, output) = (self.place.shards(), self.place.output());
        let [file, target] = [file.as_path(), target.as_path()];
        let parts: Vec<PathBuf> =
            self.expected.shards.keys().map(|name| shards.join(name)).collect();
        let whole = [file.to_owned()];
        let mut contenders = vec![
            ours(
                "weigh split",
                &words!["split", file, "--max-size", &most, "--output", &output],
                split,
                &whole,
            ),
            ours("weigh join", &words!["join", &shards, "--output", target], only(source), &parts),
            ours(
                "weigh rename",
                &words!["rename", file, "s/layers/blocks/", "--output", target],
                only(renamed),
                &whole,
            ),
            ours(
                "weigh meta set",
                &words!["meta", "set", file, &pair, "--output", target],
                only(noted),
                &whole,
            ),
        ];
        let copy = self.copy(file, target);
        contenders.push(Contender {
            name: self.pick("cp", "cp, sync"),
            run: Run::Outside { child: copy, fresh: self.expected.bytes },
            answer: only(source),
            reads: self.reads(&whole),
        });
        if self.contest.is_on_disk() {
            contenders.push(self.dd(file, whole.into()));
        }
        contenders
    }

    /// Copies a file, and waits for the disk if there is one.
    fn copy(&self, file: &Path, target: &Path) -> Child {
        if self.contest.is_on_disk() {
            let script = "cp -- \"$1\" \"$2\" && sync -- \"$2\"";
            Child::new(Path::new("sh"), &words!["-c", script, "sh", file, target])
        } else {
            Child::new(Path::new("cp"), &words!["--", file, target])
        }
    }

    fn casters(&self, weigh: &Path) -> Vec<Contender> {
        let (file, target) = (self.place.source(), self.place.output().join(TARGET));
        let script = peers::script("write/peer.py");
        let cast = || Answer::file(TARGET, &self.expected.cast);
        let peer = |name, words: &[&str], answer| {
            let mut program = vec![self.python.as_os_str(), script.as_os_str()];
            program.extend(words.iter().map(OsStr::new));
            Contender {
                name,
                run: Run::Inside(self.inside(&program, &file)),
                answer,
                reads: self.reads(std::slice::from_ref(&file)),
            }
        };
        let half = file.metadata().map_or(0, |metadata| metadata.len() / 2);
        vec![
            Contender {
                name: "weigh cast",
                run: self.ours(weigh, &words!["cast", &file, "--to", "BF16", "--output", &target]),
                answer: cast(),
                reads: self.reads(std::slice::from_ref(&file)),
            },
            peer(self.pick("torch", "torch, fsync"), &["cast"], cast()),
            peer(
                self.pick("torch, 1 thread", "torch, 1 thread, fsync"),
                &["cast", "--threads", "1"],
                cast(),
            ),
            peer("read all, write half", &["halve"], Answer::Bytes(half)),
        ]
    }

    fn converters(&self, weigh: &Path, file: &Path, bytes: u64, digest: &str) -> Vec<Contender> {
        let target = self.place.output().join(TARGET);
        let reads = || self.reads(&[file.to_owned()]);
        let ours = |name, more: &[&OsStr]| {
            let mut words = words!["convert", file, "--output", &target].to_vec();
            words.extend(more);
            let answer = Answer::file(TARGET, digest);
            Contender { name, run: self.ours(weigh, &words), answer, reads: reads() }
        };
        let script = peers::script("write/peer.py");
        let program = words![self.python, &script, "convert"];
        vec![
            ours("weigh convert", &[]),
            ours("weigh convert --no-verify", &words!["--no-verify"]),
            Contender {
                name: self.pick("torch.load, save_file", "torch.load, save_file, fsync"),
                run: Run::Inside(self.inside(&program, file)),
                answer: Answer::file(TARGET, digest),
                reads: reads(),
            },
            Contender {
                name: self.pick("cp", "cp, sync"),
                run: Run::Outside { child: self.copy(file, &target), fresh: bytes },
                answer: Answer::Bytes(file.metadata().map_or(0, |metadata| metadata.len())),
                reads: reads(),
            },
        ]
    }

    fn in_place(&self, weigh: &Path) -> Vec<Contender> {
        let pair = format!("note={NOTE}");
        let output = self.place.output();
        let ours = |name, file: &str, bytes| {
            let file = output.join(file);
            let words = words!["meta", "set", &file, &pair, "--in-place"];
            Contender {
                name,
                run: self.ours(weigh, &words),
                answer: Answer::Note { file, bytes, note: NOTE },
                reads: Vec::new(),
            }
        };
        let script = peers::script("write/peer.py");
        let target = output.join("written");
        let bare = words![self.python, &script, "sync", &target];
        vec![
            ours("weigh meta set --in-place", "small", self.expected.bytes),
            ours("weigh meta set --in-place, 200 GB", "large", LARGE),
            Contender {
                name: "4 × write, fsync",
                run: Run::Inside(bare.map(OsStr::to_owned).into()),
                answer: Answer::Nothing,
                reads: Vec::new(),
            },
        ]
    }

    /// One of two names: that in memory, and that on a disk.
    fn pick(&self, in_memory: &'static str, on_disk: &'static str) -> &'static str {
        if self.contest.is_on_disk() { on_disk } else { in_memory }
    }

    /// What has to be brought into the page cache: in memory everything is there.
    fn reads(&self, files: &[PathBuf]) -> Vec<PathBuf> {
        if self.contest.is_on_disk() { files.into() } else { Vec::new() }
    }

    fn ours(&self, weigh: &Path, words: &[&OsStr]) -> Run {
        let mut child = Child::new(weigh, words);
        if !self.contest.is_on_disk() {
            child.arguments.push("--no-sync".into());
        }
        let fresh = if self.contest.work == Work::InPlace { 0 } else { self.expected.bytes };
        Run::Outside { child, fresh }
    }

    /// A program that measures itself, with the options that all of them have.
    fn inside(&self, program: &[&OsStr], source: &Path) -> Vec<OsString> {
        let mut words: Vec<OsString> = program.iter().map(OsString::from).collect();
        words.extend(["--warm-up-bytes".into(), self.expected.bytes.to_string().into()]);
        if self.contest.is_on_disk() {
            words.push("--sync".into());
        }
        words.extend([source.into(), self.place.output().join(TARGET).into()]);
        words
    }

    fn dd(&self, source: &Path, reads: Vec<PathBuf>) -> Contender {
        let [from, to] = [("if=", source), ("of=", &*self.place.output().join(TARGET))]
            .map(|(name, path)| cache::operand(name, path));
        let words = words![&from, &to, "bs=1M", "conv=fsync", "status=none"];
        Contender {
            name: "dd conv=fsync",
            run: Run::Outside {
                child: Child::new(Path::new("dd"), &words),
                fresh: self.expected.bytes,
            },
            answer: Answer::file(TARGET, &self.expected.source),
            reads,
        }
    }
}

impl Contender {
    /// Whether we are at fault if it fails.
    pub(crate) fn is_ours(&self) -> bool {
        self.name.starts_with("weigh ")
    }

    /// Writes once; the output of a program goes to a file.
    ///
    /// The memory that it will take is had from the host first, by touching as much.
    pub(crate) fn run(&self, printed: &Path) -> Result<Ran> {
        match &self.run {
            Run::Outside { child, fresh } => {
                let first_touch = process::first_touch(usize::try_from(*fresh)?);
                Ok(Ran { cost: child.run(printed)?, first_touch })
            }
            Run::Inside(command) => inside(command),
        }
    }

    /// What is wrong with what it wrote, if something is.
    pub(crate) fn fault(&self, place: &Place) -> Result<Option<String>> {
        self.answer.fault(&place.output())
    }
}

fn inside(command: &[OsString]) -> Result<Ran> {
    let (program, arguments) = command.split_first().context("no program")?;
    let mut command = Command::new(program);
    command.args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
    let output = command.output().with_context(|| format!("cannot start {}", program.display()))?;
    let line: Line = peers::last_line(&output)?;
    let cost = Cost {
        time: Duration::from_secs_f64(line.seconds),
        computing: Duration::from_secs_f64(line.cpu_seconds),
        memory: line.peak_rss_bytes.saturating_sub(line.rss_before_bytes),
    };
    Ok(Ran { cost, first_touch: line.first_touch })
}
