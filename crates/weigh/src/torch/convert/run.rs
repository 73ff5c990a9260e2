//! A plan carried out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use weigh_io::{FileSource, NewFile, Source, commit_set};

use super::layout::File;
use super::{ConvertPlan, ConvertReport, compare};
use crate::edit::run::completed;
use crate::torch::gather::{
    Blob, Bytes, Gathered, Job, Scratch, Sums, Unpacked, checksum, lost, resized, unpack,
};
use crate::torch::npz::{self, Member};
use crate::work::{self, Meter};
use crate::{Error, Watch};

/// Bytes of a blob that are read at a time for nothing but its checksum.
const READ: u64 = 1 << 20;

impl ConvertPlan {
    /// Writes the files, reads them back, and puts them in their places, the index last.
    ///
    /// What is read back is compared with what the descriptors say: what is copied byte by byte, what is strided element
    /// by element, in the order of the storage. So nothing takes its place that is not what was asked for.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be read or written, or has changed since it was opened; [`Error::Torch`] if bytes
    /// do not have their checksum, or cannot be inflated; [`Error::NotSame`]; [`Error::Cancelled`]. Nothing is left
    /// behind then.
    pub fn write(&self, watch: Watch<'_>) -> Result<ConvertReport, Error> {
        let began = Instant::now();
        let meter = Meter::new(self.work(), watch);
        let sync = self.options.write.sync;
        let (bytes, compared) =
            work::in_folder(self.folder.as_deref(), sync, || self.write_files(&meter))?;
        let verified = (!self.options.skip_verify).then_some(compared);
        let elapsed = began.elapsed().saturating_sub(compared);
        Ok(ConvertReport { bytes, elapsed, verified })
    }

    /// Writes all files. Says how many bytes they have, and how long it took to read them back.
    fn write_files(&self, meter: &Meter<'_>) -> Result<(u64, Duration), Error> {
        let options = self.options.write.of_files();
        let files = self.files.iter().map(|file| (file.path.as_path(), file.bytes));
        work::check_room(files, options)?;
        let sources: Vec<&FileSource> =
            self.opened.iter().map(super::Opened::file).collect::<Result<_, _>>()?;
        let compared = Mutex::new((0, Duration::ZERO));
        let mut members = completed(self.files.iter().map(|file| {
            let (new, bytes, elapsed) = self.write_file(file, &sources, meter)?;
            let mut sum = work::lock(&compared);
            sum.0 += bytes;
            sum.1 += elapsed;
            Ok(new)
        }))?;
        let begin = |(path, text): &(std::path::PathBuf, Vec<u8>)| {
            let mut new = NewFile::create(path, &options)?;
            new.write_at(text, 0)?;
            new.prepare()?;
            Ok::<_, Error>(new)
        };
        if let Some(values) = &self.values {
            members.push(begin(values)?);
        }
        let seal = self.index.as_ref().map(begin).transpose()?;
        meter.check()?;
        sources.iter().try_for_each(|source| source.verify())?;
        commit_set(members, seal, &self.stale)?;
        Ok(compared.into_inner().unwrap_or_default())
    }

    /// Writes one file, and reads it back.
    fn write_file(
        &self,
        file: &File,
        sources: &[&FileSource],
        meter: &Meter<'_>,
    ) -> Result<(NewFile, u64, Duration), Error> {
        let new = NewFile::create(&file.path, &self.options.write.of_files())?;
        new.reserve(file.bytes)?;
        new.write_at(&file.header, 0)?;
        let tensors: Vec<(&Gathered, u64)> = file
            .tensors
            .iter()
            .filter_map(|placed| Some((&self.drafts.get(placed.draft)?.gathered, placed.at)))
            .collect();
        let of_tensors = tensors.iter().map(|(gathered, _)| *gathered);
        let unpacked = unpack(sources, &self.blobs, of_tensors, &file.path)?;
        let sums = Sums::new(self.blobs.len());
        let blobs = self.blobs.as_slice();
        let job = Job { sources, blobs, unpacked: &unpacked, tensors, sums: Some(&sums) };
        let works = job.works();
        let members = (!file.members.is_empty()).then(|| Sums::new(file.members.len()));
        work::spread(&works, |work, scratch: &mut Scratch| {
            meter.check()?;
            job.run(work, scratch, &mut |at, bytes| {
                new.write_at(bytes, at)?;
                if let Some(sums) = &members {
                    add_to_member(sums, &file.members, at, bytes)?;
                }
                meter.add(work::length(bytes))
            })
        })?;
        self.check_sums(&job, &unpacked, meter)?;
        let mut bytes = file.end;
        if let Some(sums) = &members {
            bytes = finish_archive(&new, file, sums)?;
        } else if file.header.is_empty() {
            // An archive without members.
            let directory = npz::directory(&[], 0);
            new.write_at(&directory, 0)?;
            bytes = work::length(&directory);
        }
        let began = Instant::now();
        if !self.options.skip_verify {
            self.compare(file, &new, &job, meter)?;
        }
        Ok((new, bytes, began.elapsed()))
    }

    /// Reads a file back.
    fn compare(
        &self,
        file: &File,
        new: &NewFile,
        job: &Job<'_>,
        meter: &Meter<'_>,
    ) -> Result<(), Error> {
        let differs = |at: u64| {
            let mut tensors = file.tensors.iter();
            let own = tensors.find(|placed| {
                let draft = self.drafts.get(placed.draft);
                let bytes = draft.map_or(0, |draft| draft.gathered.bytes());
                (placed.at..placed.at.saturating_add(bytes)).contains(&at)
            });
            let name = own.and_then(|placed| Some(self.drafts.get(placed.draft)?.name.clone()));
            Error::NotSame { path: file.path.clone(), name }
        };
        if !file.header.is_empty() {
            let mut header = vec![0; file.header.len()];
            new.read_exact_at(&mut header, 0)?;
            if header != file.header {
                return Err(differs(0));
            }
        }
        let is_strided = |(gathered, _): &&(&Gathered, u64)| compare::is_strided(gathered);
        let strided: Vec<(&Gathered, u64)> =
            job.tensors.iter().filter(is_strided).copied().collect();
        work::spread(&strided, |(gathered, at), (): &mut ()| {
            if compare::is_written(job, gathered, new, *at, meter)? {
                return Ok(());
            }
            Err(differs(*at))
        })?;
        // The others are copied, or inflated, once more.
        let tensors = job.tensors.iter().filter(|tensor| !is_strided(tensor)).copied().collect();
        let Job { sources, blobs, unpacked, .. } = *job;
        let job = &Job { sources, blobs, unpacked, tensors, sums: None };
        work::spread(&job.works(), |work, (scratch, back): &mut (Scratch, Vec<u8>)| {
            meter.check()?;
            job.run(work, scratch, &mut |at, bytes| {
                let back = resized(back, work::length(bytes))?;
                new.read_exact_at(back, at)?;
                if back != bytes {
                    return Err(differs(at));
                }
                meter.add(work::length(bytes))
            })
        })
    }

    /// Compares the checksums of the stored blobs that tensors of a job are in; reads those that were not read whole.
    pub(super) fn check_sums(
        &self,
        job: &Job<'_>,
        unpacked: &BTreeMap<usize, Unpacked>,
        meter: &Meter<'_>,
    ) -> Result<(), Error> {
        let mut used: BTreeSet<usize> = BTreeSet::new();
        for (gathered, _) in &job.tensors {
            used.insert(gathered.blob);
            used.extend(gathered.make.blobs());
            used.extend(self.blobs.get(gathered.blob).map(Blob::parts).unwrap_or_default());
        }
        let is_stored = |number: &usize| {
            let blob = self.blobs.get(*number);
            let is_stored =
                |blob: &Blob| blob.crc.is_some() && matches!(blob.bytes, Bytes::Stored { .. });
            blob.is_some_and(is_stored) && !unpacked.contains_key(number)
        };
        let stored: Vec<usize> = used.into_iter().filter(is_stored).collect();
        work::spread(&stored, |number, buffer: &mut Vec<u8>| {
            let blob = self.blobs.get(*number).ok_or_else(lost)?;
            let (Bytes::Stored { source, start }, Some(expected)) = (&blob.bytes, blob.crc) else {
                return Ok(());
            };
            let file = job.sources.get(*source).ok_or_else(lost)?;
            if let (Some(sums), false) = (job.sums, blob.head.is_empty()) {
                sums.add(*number, 0, &blob.head);
            }
            let whole = job.sums.and_then(|sums| sums.whole(*number, blob.len));
            let found = match whole {
                Some(whole) => whole,
                None => {
                    let mut hasher = crc32fast::Hasher::new();
                    let mut at = 0;
                    while at < blob.len {
                        meter.check()?;
                        let piece = resized(buffer, READ.min(blob.len - at))?;
                        file.read_exact_at(piece, start.saturating_add(at))?;
                        hasher.update(piece);
                        at = at.saturating_add(work::length(piece));
                    }
                    hasher.finalize()
                }
            };
            if found == expected {
                return Ok(());
            }
            let message =
                format!("the content has the checksum {found:08x}, {expected:08x} is stored");
            Err(checksum(file, blob, &message))
        })
    }
}

/// Adds bytes that were written to the checksum of the member that they are of.
fn add_to_member(sums: &Sums, members: &[Member], at: u64, bytes: &[u8]) -> Result<(), Error> {
    let number = members.partition_point(|member| member.data.end <= at);
    let member = members.get(number).ok_or_else(lost)?;
    sums.add(number, at.saturating_sub(member.data.start), bytes);
    Ok(())
}

/// Writes what is not elements of arrays, now that their checksums are known. Says how long the file is.
fn finish_archive(new: &NewFile, file: &File, sums: &Sums) -> Result<u64, Error> {
    let mut ends = Vec::with_capacity(file.members.len());
    for (number, member) in file.members.iter().enumerate() {
        let len = member.data.end.saturating_sub(member.data.start);
        let whole = sums.whole(number, len).ok_or_else(lost)?;
        let (at, head, crc) = member.head(whole);
        new.write_at(&head, at)?;
        ends.push((member, crc));
    }
    let directory = npz::directory(&ends, file.end);
    new.write_at(&directory, file.end)?;
    Ok(file.end.saturating_add(work::length(&directory)))
}
