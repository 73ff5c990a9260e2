//! A plan carried out: to files, or to a stream.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{SendError, sync_channel};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, Instant};

use weigh_io::{Claims, FileSource, NewFile, Source, commit_set};
use weigh_values::Tally;
use weigh_values::cast::Cast;

use crate::edit::copy::{self, Part, Scratch};
use crate::edit::plan::{PlannedFile, WritePlan};
use crate::work::{self, Meter};
use crate::{Error, Watch};

/// What has been written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WriteReport {
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes that were copied as they were.
    pub bytes_copied: u64,
    /// Bytes that were read and converted.
    pub bytes_converted: u64,
    /// What converting did to each tensor that was converted.
    pub casts: Vec<CastReport>,
    /// How long it took.
    pub elapsed: Duration,
}

/// What converting did to a tensor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CastReport {
    /// Its name, as it was written.
    pub name: String,
    /// The conversion.
    pub cast: Cast,
    /// What became of its values.
    pub tally: Tally,
}

impl WritePlan {
    /// Writes the files, then puts them in their places.
    ///
    /// Everything is complete under other names first. A single file then takes its place at once; of
    /// several, the index is last, and until it is there the folder has no set that looks whole.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if a file cannot be read or written, or has changed since it was opened, or is to be replaced
    /// and somebody else is editing it; [`Error::Cancelled`]. Nothing is left behind then, and what was there before still is: but for what a disk
    /// that fails between two files of a set leaves, see [`commit_set`].
    pub fn write(&self, watch: Watch<'_>) -> Result<WriteReport, Error> {
        let began = Instant::now();
        let write = || self.write_files(watch);
        let tallies = work::in_folder(self.folder.as_deref(), self.options.sync, write)?;
        Ok(self.report(&tallies, began))
    }

    fn write_files(&self, watch: Watch<'_>) -> Result<Vec<Mutex<Tally>>, Error> {
        let meter = Meter::new(self.bytes_read(), watch);
        let tallies: Vec<Mutex<Tally>> = self.casts.iter().map(|_| Mutex::default()).collect();
        let files = self.files.iter().map(|file| (file.path.as_path(), file.bytes));
        let claims = self.claims()?;
        work::check_room(files, self.options.of_files())?;
        let members = completed(self.files.iter().map(|file| {
            let new = NewFile::create(&file.path, &self.options.of_files())?;
            new.reserve(file.bytes)?;
            new.write_at(&file.header, 0)?;
            self.fill(file, &new, &meter, &tallies)?;
            Ok(new)
        }))?;
        let seal = self.index.as_ref().map(|index| index.begin(self.options.of_files()));
        let mut seal = seal.transpose()?;
        seal.as_mut().map_or(Ok(()), NewFile::prepare)?;
        meter.check()?;
        self.verify()?;
        commit_set(members, seal, &self.stale)?;
        drop(claims);
        Ok(tallies)
    }

    fn fill(
        &self,
        file: &PlannedFile,
        new: &NewFile,
        meter: &Meter<'_>,
        tallies: &[Mutex<Tally>],
    ) -> Result<(), Error> {
        work::spread(&self.parts(file), |part, scratch: &mut Scratch| {
            meter.check()?;
            let source = self.source(part.source)?;
            match part.cast {
                None => new.copy_at(source, part.span.clone(), part.at, meter.cancel(), &|_| ())?,
                Some(number) => {
                    let write = |bytes: &[u8]| Ok(new.write_at(bytes, part.at)?);
                    let tally = scratch.convert(source, part, self.cast(number)?, write)?;
                    count(tallies, number, tally);
                }
            }
            meter.add(part.span.end - part.span.start)
        })
    }

    /// Writes the one file of the plan to a stream, from its first byte to its last.
    ///
    /// # Errors
    ///
    /// As [`WritePlan::write`]; [`Error::ManyFiles`] if there is more than one file. What was written before
    /// an error is in the stream.
    pub fn write_to(&self, stream: &mut dyn Write, watch: Watch<'_>) -> Result<WriteReport, Error> {
        let began = Instant::now();
        let [file] = self.files.as_slice() else {
            return Err(Error::ManyFiles { files: self.files.len() });
        };
        let meter = Meter::new(self.bytes_read(), watch);
        let tallies: Vec<Mutex<Tally>> = self.casts.iter().map(|_| Mutex::default()).collect();
        stream.write_all(&file.header).map_err(Error::Stream)?;
        let mut scratch = Scratch::default();
        for part in &self.parts(file) {
            let source = self.source(part.source)?;
            let mut write = |bytes: &[u8]| stream.write_all(bytes).map_err(Error::Stream);
            if let Some(number) = part.cast {
                let tally = scratch.convert(source, part, self.cast(number)?, write)?;
                count(&tallies, number, tally);
            } else {
                scratch.stream(source, part.span.clone(), &mut write)?;
            }
            meter.add(part.span.end - part.span.start)?;
        }
        stream.flush().map_err(Error::Stream)?;
        self.verify()?;
        Ok(self.report(&tallies, began))
    }

    /// What is done at a time, in the order of the file.
    fn parts(&self, file: &PlannedFile) -> Vec<Part> {
        let cut = |piece| {
            let cast = |number: usize| self.casts.get(number).map(|it| it.cast);
            copy::parts(piece, cast)
        };
        file.pieces.iter().flat_map(cut).collect()
    }

    fn source(&self, number: usize) -> Result<&FileSource, Error> {
        let source = self.sources.get(number);
        let source = source.and_then(|source| source.plain_file());
        source.ok_or_else(|| Error::internal("a piece of no file"))
    }

    fn cast(&self, number: usize) -> Result<Cast, Error> {
        let cast = self.casts.get(number).map(|planned| planned.cast);
        cast.ok_or_else(|| Error::internal("a piece of no conversion"))
    }

    /// Claims the files that are read and that the plan replaces or removes.
    fn claims(&self) -> Result<Claims<'_>, Error> {
        let sources = self.sources.iter().filter_map(|source| source.plain_file());
        let files = self.files.iter().map(|file| &file.path);
        Ok(Claims::of_replaced(sources, files.chain(&self.stale).map(PathBuf::as_path))?)
    }

    /// Nothing that was read may have changed since it was opened.
    fn verify(&self) -> Result<(), Error> {
        let pieces = self.files.iter().flat_map(|file| &file.pieces);
        let used: BTreeSet<usize> = pieces.map(|piece| piece.source).collect();
        used.into_iter().try_for_each(|number| Ok(self.source(number)?.verify()?))
    }

    fn report(&self, tallies: &[Mutex<Tally>], began: Instant) -> WriteReport {
        let casts = self.casts.iter().zip(tallies).map(|(planned, tally)| CastReport {
            name: planned.name.clone(),
            cast: planned.cast,
            tally: *work::lock(tally),
        });
        WriteReport {
            bytes: self.bytes(),
            bytes_copied: self.bytes_copied(),
            bytes_converted: self.bytes_converted(),
            casts: casts.collect(),
            elapsed: began.elapsed(),
        }
    }
}

/// Adds what became of a part to what became of its tensor.
fn count(tallies: &[Mutex<Tally>], number: usize, tally: Tally) {
    if let Some(all) = tallies.get(number) {
        *work::lock(all) += tally;
    }
}

/// Completes files as they come, each while the next one is being filled: that is when the disk is waited for.
pub(crate) fn completed(
    files: impl Iterator<Item = Result<NewFile, Error>>,
) -> Result<Vec<NewFile>, Error> {
    let complete = |mut file: NewFile| {
        file.prepare()?;
        Ok::<_, Error>(file)
    };
    std::thread::scope(|scope| {
        let (sender, filled) = sync_channel::<NewFile>(1);
        let worker = Builder::new().spawn_scoped(scope, move || {
            filled.into_iter().map(complete).collect::<Result<Vec<_>, Error>>()
        });
        let mut members = Vec::new();
        for file in files {
            match sender.send(file?) {
                Ok(()) => {}
                // It has failed, as will be heard.
                Err(_) if worker.is_ok() => break,
                // There is no thread to be had.
                Err(SendError(file)) => members.push(complete(file)?),
            }
        }
        drop(sender);
        match worker.map(ScopedJoinHandle::join) {
            Ok(Ok(completed)) => completed,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Ok(members),
        }
    })
}
