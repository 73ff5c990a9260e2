//! Mending damaged files, into new ones.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weigh_format::encode::encode;
use weigh_format::{Finding, Findings, inspect, repair};
use weigh_io::FileSource;

use crate::edit::{PlannedFile, WritePlan};
use crate::survey::random_key;
use crate::{Error, Options, WriteOptions};

/// How a damaged file will be mended. Nothing has been written.
#[derive(Debug)]
pub struct RepairPlan {
    findings: Vec<Finding>,
    dropped: Vec<Range<u64>>,
    source: Arc<FileSource>,
    write: WritePlan,
}

impl RepairPlan {
    /// Plans to mend a file, into another: what is wrong with its layout and spelling is put right, the bytes
    /// of its tensors stay what they are.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be read, or something is at `output` and is not to be replaced;
    /// [`Error::SameFile`] if that is the file itself; [`Error::Refused`] with the findings that stand in the
    /// way, if what the file means is in doubt or part of it is missing.
    pub fn new(
        path: impl AsRef<Path>,
        output: impl Into<PathBuf>,
        options: &Options,
        write: &WriteOptions,
    ) -> Result<Self, Error> {
        let (path, output) = (path.as_ref(), output.into());
        let source = FileSource::open(path)?;
        if let (Ok(input), Ok(output)) = (fs::canonicalize(path), fs::canonicalize(&output))
            && input == output
        {
            return Err(Error::SameFile { path: path.into() });
        }
        let read = |span| source.read_span(span);
        let inspection = inspect::inspect(source.len(), read, &options.limits, random_key())?;
        let file = path.to_string_lossy();
        let mended = repair::plan(&inspection).map_err(|findings| {
            let mut refused = Findings::new();
            for finding in findings {
                refused.push(finding);
            }
            refused.in_file(&file);
            Error::Refused(Box::new(refused))
        })?;
        let encoded = encode(&mended.declarations(), mended.metadata.as_ref(), &write.layout)
            .map_err(Error::encode(&output))?;
        let content = mended.tensors.iter().map(|tensor| (0, tensor.bytes.clone(), None));
        let planned = PlannedFile::new(output, encoded, content);
        let findings = mended.mended.into_iter().cloned().collect();
        let dropped = mended.dropped;
        let source = Arc::new(source);
        let write = WritePlan::of_file(Arc::clone(&source) as _, planned, write)?;
        Ok(Self { findings, dropped, source, write })
    }

    /// What is mended. Nothing, if there is nothing to mend.
    #[must_use]
    pub fn mended(&self) -> &[Finding] {
        &self.findings
    }

    /// Bytes of the file that belong to nothing and are left out. Worth a look: something may be hidden there.
    #[must_use]
    pub fn dropped(&self) -> &[Range<u64>] {
        &self.dropped
    }

    /// The length of the damaged file, in bytes.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.source.len()
    }

    /// Reads some of the bytes of the damaged file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub fn read(&self, span: Range<u64>) -> Result<Vec<u8>, Error> {
        Ok(self.source.read_span(span)?)
    }

    /// What will be written.
    #[must_use]
    pub fn write_plan(&self) -> &WritePlan {
        &self.write
    }
}
