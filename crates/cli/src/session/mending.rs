//! Edits in place that were cut off, undone before anything else is done.
//!
//! A file whose header was being overwritten when the process ended begins with a mark that no reader takes for
//! anything, and has a journal beside it. What surveys and opens a checkpoint looks for the mark where a file was
//! refused, so that a sound one costs nothing, and makes the file what it was.

use std::path::Path;

use weigh::io::{self, Error as IoError, ErrorKind, FileSource, Mended, Unmendable};
use weigh::{Checkpoint, Error, Found, Survey};

use super::Session;

impl Session {
    /// Surveys what was found; what an edit in place left half done is undone first, or it is reported why not.
    ///
    /// # Errors
    ///
    /// Those of [`Survey::take`].
    pub(crate) fn survey(&mut self, found: &Found) -> Result<Survey, Error> {
        let (survey, unmendable) = self.mended(found)?;
        for error in unmendable {
            if is_finding(&error) {
                self.found(&error);
            } else {
                self.failed(&error);
            }
        }
        Ok(survey)
    }

    /// Opens a checkpoint; what an edit in place left half done is undone first.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpoint::open_with`]; [`Error::Io`] with a file that cannot be mended.
    pub(crate) fn open(&mut self, path: &Path) -> Result<Checkpoint, Error> {
        let refused = match Checkpoint::open_with(path, &self.options) {
            Err(refused @ Error::Refused(_)) => refused,
            opened => return opened,
        };
        let found = weigh::find(path)?;
        let [found] = found.as_slice() else { return Err(refused) };
        let (survey, unmendable) = self.mended(found)?;
        match unmendable.into_iter().next() {
            Some(error) => Err(error.into()),
            None => Checkpoint::open_surveyed(&survey, &self.options),
        }
    }

    /// Undoes an edit of a file in place that was left half done, for what takes files as they are; it is reported if
    /// that cannot be done. Whether it was done.
    pub(crate) fn mend(&mut self, path: &Path) -> bool {
        let mut head = [0; io::INTERRUPTED.len()];
        // Never a pipe or a device, which is waited for.
        let read = FileSource::open(path).and_then(|file| file.read_exact_at(&mut head, 0));
        if read.is_err() || head != io::INTERRUPTED {
            return false;
        }
        match io::mend(path) {
            Ok(mended) => {
                self.note_mended(path, mended);
                true
            }
            Err(error) => {
                if is_finding(&error) {
                    self.found(&error);
                } else {
                    self.failed(&error);
                }
                false
            }
        }
    }

    /// A survey of what was found, after what was cut off has been undone, which is said; and why some was not.
    fn mended(&mut self, found: &Found) -> Result<(Survey, Vec<IoError>), Error> {
        let mut rounds = 1..=MOST_ROUNDS;
        loop {
            let survey = Survey::take(found, &self.options)?;
            let (mut is_changed, mut unmendable) = (false, Vec::new());
            for path in survey.interrupted_edits() {
                match io::mend(path) {
                    Ok(mended) => {
                        self.note_mended(path, mended);
                        is_changed = true;
                    }
                    Err(error) => unmendable.push(error),
                }
            }
            // Another edit may have begun meanwhile.
            if !is_changed || rounds.next().is_none() {
                return Ok((survey, unmendable));
            }
        }
    }

    fn note_mended(&mut self, path: &Path, mended: Mended) {
        let done = match mended {
            Mended::RolledBack { .. } => "undone",
            Mended::Completed { .. } => "completed",
            // It has ended by itself.
            _ => return,
        };
        self.output.note(&format!(
            "{}: an edit of its header had been interrupted; it is {done}",
            path.display()
        ));
    }
}

/// How often files are looked at again that were being edited.
const MOST_ROUNDS: usize = 4;

/// Whether this is about a file that nothing can be done about. One that may not be mended now or here is a failure.
pub(crate) fn is_finding(error: &IoError) -> bool {
    let ErrorKind::InterruptedEdit(why) = error.kind() else { return false };
    !matches!(why, Unmendable::Denied | Unmendable::ReadOnly)
}
