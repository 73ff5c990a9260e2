//! The way through a file: its container, the members of that, what is packed in them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use weigh_format::{Finding, HashKey};
use weigh_io::FileSource;
use weigh_pickle::container::layout::{Contents, Layout};
use weigh_pickle::container::npy::Element;
use weigh_pickle::container::zip::{Archive, Entry};
use weigh_pickle::container::{Kind, Wrapper, torch};
use weigh_pickle::{Error as PickleError, Limits, Spans, Verdict, run_all};

use super::kept::{Budget, Kept};
use super::seen::{At, Seen};
use super::{ScanOptions, ScanReport, beside, members, unpack};
use crate::survey::random_key;
use crate::torch::reading::{Fault, Reading, joined};
use crate::torch::{rules, sizes};

/// Opcodes and nodes that a packed pickle may have, however few bytes it is packed into.
const LIGHT: u64 = 1 << 19;

/// Scans a file.
pub(super) fn scan(source: &FileSource, options: &ScanOptions<'_>) -> Result<ScanReport, Fault> {
    let options = &ScanOptions { limits: limits(options, source.len()), ..options.clone() };
    report(&mut Reading::new(source, &options.limits), source.path(), options)
}

/// Scans what is in memory.
pub(super) fn scan_bytes(
    path: &Path,
    bytes: Vec<u8>,
    options: &ScanOptions<'_>,
) -> Result<ScanReport, Fault> {
    let spans = Spans::whole(bytes);
    let options = &ScanOptions { limits: limits(options, spans.len()), ..options.clone() };
    report(&mut Reading::held(spans), path, options)
}

fn report(
    reading: &mut Reading<'_>,
    path: &Path,
    options: &ScanOptions<'_>,
) -> Result<ScanReport, Fault> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let size = reading.len();
    let (key, budget) = (random_key(), Budget::new(options, size));
    let mut scan = Scan { options, key, seen: Seen::default(), budget };
    let kind = scan.part(reading, &name, "", 0)?;
    scan.judge_name(reading, &name, kind)?;
    let mut seen = scan.seen;
    if seen.findings.counts().iter().any(|(rule, _)| rule.is_ambiguous) && seen.verdict.is_some() {
        seen.comes_to(Verdict::Ambiguous);
    }
    Ok(ScanReport {
        path: path.into(),
        size,
        kind,
        verdict: seen.verdict,
        complete: !seen.unread,
        pickles: seen.pickles,
        globals: seen.globals,
        calls: seen.calls,
        call_count: seen.call_count,
        weights_only: seen.weights_only,
        findings: seen.findings,
    })
}

/// What a pickle in a file of so many bytes may have: one that is not packed has no more opcodes than bytes, and no
/// more nodes than these and their names.
fn limits(options: &ScanOptions<'_>, file: u64) -> Limits {
    let limits = options.limits;
    let times = u64::from(limits.ratio / 16).max(3);
    let most = file.saturating_mul(times).saturating_add(LIGHT);
    Limits {
        opcodes: limits.opcodes.min(most),
        nodes: limits.nodes.min(u32::try_from(most).unwrap_or(u32::MAX)),
        ..limits
    }
}

/// A scan that is under way.
pub(super) struct Scan<'o> {
    pub(super) options: &'o ScanOptions<'o>,
    pub(super) key: HashKey,
    pub(super) seen: Seen,
    budget: Budget,
}

impl Scan<'_> {
    /// Scans a file, or what is in one: a part with a name of its own, in the member `member`. Gives its kind.
    ///
    /// Faults of the content are recorded; only others are returned.
    pub(super) fn part(
        &mut self,
        reading: &mut Reading<'_>,
        name: &str,
        member: &str,
        depth: u32,
    ) -> Result<&'static str, Fault> {
        self.check()?;
        let at = At { member, start: 0 };
        if let Some(finding) = beside::by_name(name) {
            self.seen.find(finding, at);
        }
        let before = self.seen.verdict.take();
        let kind = match self.opened(reading, name, at, depth) {
            Ok(kind) => kind,
            Err(Fault::Content(error)) => {
                self.seen.unreadable(error, at);
                "damaged"
            }
            Err(fault) => return Err(fault),
        };
        if let Some(before) = before {
            self.seen.comes_to(before);
        }
        Ok(kind)
    }

    /// # Errors
    ///
    /// [`Fault::Cancelled`] if the scan is to stop.
    pub(super) fn check(&self) -> Result<(), Fault> {
        match self.options.cancel {
            Some(cancel) if cancel.is_cancelled() => Err(Fault::Cancelled),
            _ => Ok(()),
        }
    }

    fn opened(
        &mut self,
        reading: &mut Reading<'_>,
        name: &str,
        at: At<'_>,
        depth: u32,
    ) -> Result<&'static str, Fault> {
        let limits = &self.options.limits;
        let layout = reading.open(limits)?;
        let nested = matches!(
            layout.contents,
            Contents::Zip(_)
                | Contents::Npz(_)
                | Contents::Tar(_)
                | Contents::TorchZip { .. }
                | Contents::TorchTar(_)
                | Contents::Wrapper(_)
        );
        if nested && depth > self.options.nesting {
            let limit = self.options.nesting;
            let message = format!("archives are nested deeper than the limit of {limit}");
            return Err(PickleError::new("limit-nesting", message).into());
        }
        let kind = self.contents(reading, &layout, name, at, depth)?;
        // The first bytes of these may be opcodes, as the name of an archive's first member. Those of a zip archive are a
        // persistent id, at which every reader of pickles stops.
        let may_be_pickle =
            matches!(
                layout.contents,
                Contents::Tar(_) | Contents::TorchTar(_) | Contents::Wrapper(_)
            ) || matches!(layout.kind, Kind::Gguf | Kind::Hdf5 | Kind::TorchPreview);
        if may_be_pickle {
            self.as_pickle_too(reading, kind, at)?;
        }
        if let Some(archive) = &layout.behind {
            self.members(reading, archive, &[], at, depth)?;
        }
        // What is odd about a container in which there is nothing of interest is of none either.
        if self.seen.verdict.is_some() {
            self.seen.find_all(&layout.findings, at);
        }
        Ok(kind)
    }

    fn contents(
        &mut self,
        reading: &mut Reading<'_>,
        layout: &Layout,
        name: &str,
        at: At<'_>,
        depth: u32,
    ) -> Result<&'static str, Fault> {
        let kind = layout.kind.name();
        match &layout.contents {
            Contents::TorchZip { archive, root } => {
                self.torch_zip(reading, archive, root, at, depth)?;
                return Ok("torch-zip");
            }
            Contents::Npz(archive) | Contents::Zip(archive) => {
                self.members(reading, archive, &[], at, depth)?;
            }
            Contents::Legacy(stream) => {
                self.legacy(reading, stream, at, depth)?;
                let untyped = ("torch.storage", "UntypedStorage");
                if depth == 0 && self.seen.names(untyped) {
                    self.seen.not_for_torch("torch fails on storages without a type in such files");
                }
            }
            Contents::TorchTar(archive) => {
                self.torch_tar(reading, archive, at, depth)?;
                return Ok("torch-tar");
            }
            Contents::Tar(archive) => self.tar(reading, &archive.members, at, depth)?,
            Contents::Pickle => {
                self.pickles(reading, 0..reading.len(), at)?;
                if depth == 0 {
                    let most = reading.len().min(self.options.limits.pickle_bytes);
                    self.seen.weights_only(reading.bytes(0..most)?, &self.options.limits, at);
                    self.seen.not_for_torch("it is a pickle alone, which torch does not write");
                }
            }
            Contents::Npy(array) if array.header.element == Element::Object => {
                self.pickles(reading, array.data.clone(), at)?;
            }
            Contents::Npy(array) => match &array.header.element {
                // Fields may be objects, which numpy unpickles.
                Element::Other { name } => {
                    let message = format!("elements of the type {name} were not looked at");
                    self.seen.find(Finding::new(&rules::NOT_OPENED, message), at);
                    self.seen.unread = true;
                    self.seen.comes_to(Verdict::Error);
                }
                _ => self.seen.comes_to(Verdict::DataOnly),
            },
            Contents::Wrapper(wrapper) => self.wrapper(reading, *wrapper, at, depth)?,
            _ => match layout.kind {
                Kind::Safetensors => self.safetensors(reading, at)?,
                Kind::Hdf5 | Kind::Gguf | Kind::TorchPreview => {
                    if layout.kind == Kind::Hdf5 {
                        self.functions(reading, at)?;
                    }
                    let message = format!("what is in a file of the kind {kind} was not looked at");
                    self.seen.find(Finding::new(&rules::NOT_OPENED, message), at);
                    self.seen.unread = true;
                    self.seen.comes_to(Verdict::Error);
                }
                Kind::Empty => {}
                _ => self.unknown(reading, name, at)?,
            },
        }
        Ok(kind)
    }

    /// Runs the pickles that begin with these bytes.
    pub(super) fn pickles(
        &mut self,
        reading: &mut Reading<'_>,
        span: Range<u64>,
        at: At<'_>,
    ) -> Result<(), Fault> {
        let limits = &self.options.limits;
        let len = span.end.saturating_sub(span.start);
        let read = span.start..span.start.saturating_add(len.min(limits.pickle_bytes));
        let at = At { start: at.start.saturating_add(span.start), ..at };
        let bytes = reading.bytes(read.clone())?;
        if len > limits.pickle_bytes {
            let message = format!("of {len} bytes as many as the limit were read");
            self.seen.unreadable(PickleError::new("limit-pickle-bytes", message).at(0), at);
        }
        for program in run_all(bytes, limits) {
            self.seen.program(&program, at);
        }
        reading.forget(&read);
        Ok(())
    }

    fn torch_zip(
        &mut self,
        reading: &mut Reading<'_>,
        archive: &Archive,
        root: &torch::Root,
        at: At<'_>,
        depth: u32,
    ) -> Result<(), Fault> {
        // Only these are numbers: a member beside them may be anything.
        let mut named = BTreeSet::new();
        for (number, position) in root.pickles.iter().enumerate() {
            let Some(entry) = archive.entries.get(*position) else { continue };
            let member = joined(at.member, Some(&entry.name));
            let inner = At { member: &member, start: 0 };
            match self.content(reading, entry, true, inner)? {
                Some(kept) => {
                    let bytes = kept.into_bytes();
                    let is_for_torch = depth == 0 && *position == root.pickle_for_torch(archive);
                    let programs = run_all(&bytes, &self.options.limits);
                    for (place, program) in programs.iter().enumerate() {
                        self.seen.program(program, inner);
                        named.extend(sizes::of(program).into_keys());
                        if place == 0
                            && is_for_torch
                            && let Some(reason) = root.torch_refuses(archive, &program.graph)
                        {
                            self.seen.not_for_torch(reason);
                        }
                    }
                    if is_for_torch {
                        self.seen.weights_only(&bytes, &self.options.limits, inner);
                    }
                }
                None if depth == 0 && number == 0 => {
                    self.seen.not_for_torch("its pickle cannot be read");
                }
                None => {}
            }
        }
        self.seen.comes_to(Verdict::DataOnly);
        let data = format!("{}/data/", root.folder);
        let storages = archive.entries.iter().enumerate().filter(|(_, entry)| {
            entry.name.strip_prefix(&data).is_some_and(|key| named.contains(key))
        });
        let mut done: Vec<usize> = storages.map(|(position, _)| position).collect();
        done.extend(&root.pickles);
        done.sort_unstable();
        self.members(reading, archive, &done, at, depth)
    }

    /// Looks into the members of an archive, whatever they are called, but those at the positions `done`.
    fn members(
        &mut self,
        reading: &mut Reading<'_>,
        archive: &Archive,
        done: &[usize],
        at: At<'_>,
        depth: u32,
    ) -> Result<(), Fault> {
        for (position, entry) in archive.entries.iter().enumerate() {
            if entry.is_folder() || done.binary_search(&position).is_ok() {
                continue;
            }
            let member = joined(at.member, Some(&entry.name));
            let inner = At { member: &member, start: 0 };
            let depth = depth.saturating_add(1);
            if let Some(span) = entry.stored() {
                let mut part = reading.window(span, &self.options.limits)?;
                self.part(&mut part, &entry.name, &member, depth)?;
                continue;
            }
            if members::is_array(reading, entry)? {
                self.seen.comes_to(Verdict::DataOnly);
                continue;
            }
            let Some(mut kept) = self.content(reading, entry, false, inner)? else { continue };
            if kept.lacks() {
                let Some(whole) = self.content(reading, entry, true, inner)? else { continue };
                kept = whole;
            }
            let mut part = Reading::held(kept.into_spans());
            self.part(&mut part, &entry.name, &member, depth)?;
        }
        Ok(())
    }

    /// The content of a member, as much of it as is looked at, or all; `None`, and recorded, if it cannot be had.
    fn content(
        &mut self,
        reading: &mut Reading<'_>,
        entry: &Entry,
        whole: bool,
        at: At<'_>,
    ) -> Result<Option<Kept>, Fault> {
        match members::content(reading, entry, whole, &mut self.budget, self.options) {
            Ok((kept, damage)) => {
                if let Some(damage) = damage {
                    self.seen.find(damage, at);
                }
                Ok(Some(kept))
            }
            Err(Fault::Content(mut error)) => {
                // It is `at` that says which.
                error.member = None;
                self.seen.unreadable(error, at);
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }

    fn wrapper(
        &mut self,
        reading: &mut Reading<'_>,
        wrapper: Wrapper,
        at: At<'_>,
        depth: u32,
    ) -> Result<(), Fault> {
        let limits = &self.options.limits;
        let len = reading.len();
        if len > limits.pickle_bytes {
            let message = format!("{len} packed bytes are more than the limit");
            return Err(PickleError::new("limit-pickle-bytes", message).into());
        }
        let bytes = reading.bytes(0..len)?;
        let (budget, options) = (&mut self.budget, self.options);
        let mut unpacked = unpack::unpack(wrapper, bytes, false, budget, options);
        if unpacked.files.iter().any(|(_, kept)| kept.lacks()) {
            unpacked = unpack::unpack(wrapper, bytes, true, budget, options);
        }
        reading.forget(&(0..len));
        self.check()?;
        let outer = joined(at.member, Some(wrapper.name()));
        for (name, kept) in unpacked.files {
            let member = joined(&outer, name.as_deref());
            let name = name.unwrap_or_default();
            let mut part = Reading::held(kept.into_spans());
            self.part(&mut part, &name, &member, depth.saturating_add(1))?;
        }
        if unpacked.tail > 0 {
            let message = format!("{} bytes follow what is packed", unpacked.tail);
            let start = len.saturating_sub(unpacked.tail);
            if self.seen.verdict.is_some() {
                let finding = Finding::new(&rules::WRAPPER_TAIL, message);
                self.seen.find(finding.at(start..len), at);
            }
            let mut tail = reading.window(start..len, limits)?;
            let member = joined(&outer, Some("(after the end)"));
            self.part(&mut tail, "", &member, depth.saturating_add(1))?;
        }
        if let Some(error) = unpacked.error {
            self.seen.unreadable(error, At { member: &outer, start: 0 });
        }
        Ok(())
    }
}
