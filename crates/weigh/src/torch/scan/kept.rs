//! What is packed in a file as it comes out: how much may, and how much of it is held.

use weigh_pickle::container::{Kind, detect, rules as container};
use weigh_pickle::{Error as PickleError, Limits, Spans};

use super::trial::{Trial, trial};
use super::{ScanOptions, beside};

/// A file may unpack to this, however few bytes it has.
const HARMLESS: u64 = 16 << 20;

/// Bytes that tell whether more than the first and the last are looked at.
const FIRST: usize = 64 << 10;

/// Bytes of the start that are held if no more is looked at: a header of safetensors is there.
const HEAD: usize = 4 << 20;

/// Bytes of the end that are held then: an archive that ends there has its end record in them.
const TAIL: usize = 72 << 10;

/// How much may still be unpacked of a file.
#[derive(Debug)]
pub(super) struct Budget {
    unpacked: u64,
    ratio: u64,
    /// What the ratio is of.
    file: u64,
    times: u32,
}

impl Budget {
    /// Of a file of so many bytes.
    pub(super) fn new(options: &ScanOptions<'_>, file: u64) -> Self {
        let times = options.limits.ratio;
        let ratio = file.saturating_mul(times.into()).saturating_add(HARMLESS);
        Self { unpacked: options.unpacked, ratio, file, times }
    }

    /// So many more are unpacked.
    ///
    /// # Errors
    ///
    /// `limit-ratio` or `limit-unpacked`.
    pub(super) fn spend(&mut self, bytes: u64) -> Result<(), PickleError> {
        let Some(ratio) = self.ratio.checked_sub(bytes) else {
            let Self { file, times, .. } = self;
            let message =
                format!("a file of {file} bytes unpacks to more than {times} times as many");
            return Err(PickleError::new("limit-ratio", message));
        };
        let Some(unpacked) = self.unpacked.checked_sub(bytes) else {
            let message = "more is packed than the limit of bytes to unpack allows";
            return Err(PickleError::new("limit-unpacked", message));
        };
        (self.ratio, self.unpacked) = (ratio, unpacked);
        Ok(())
    }
}

/// What of something packed is held.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Hold {
    /// Too little has come to tell.
    Undecided,
    /// All.
    Whole,
    /// The first bytes, so many at most, and the last.
    Ends(usize),
}

/// What was unpacked: all of it, or, where no more than these are looked at, its first and its last bytes.
#[derive(Debug)]
pub(super) struct Kept {
    hold: Hold,
    len: u64,
    head: Vec<u8>,
    /// What follows the head; of a long one, the end.
    tail: Vec<u8>,
    is_configuration: bool,
    limits: Limits,
}

impl Kept {
    /// Nothing yet of what has this name, of which what is needed is kept, or all.
    pub(super) fn new(name: &str, whole: bool, limits: &Limits) -> Self {
        Self {
            hold: if whole { Hold::Whole } else { Hold::Undecided },
            len: 0,
            head: Vec::new(),
            tail: Vec::new(),
            is_configuration: beside::is_configuration(name),
            limits: *limits,
        }
    }

    /// The next bytes.
    ///
    /// # Errors
    ///
    /// `limit-pickle-bytes` if more would have to be held.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<(), PickleError> {
        self.len = self.len.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        if self.hold == Hold::Undecided && self.head.len() >= FIRST {
            self.hold = self.decide();
        }
        let most = match self.hold {
            Hold::Ends(most) => most,
            _ if self.len > self.limits.pickle_bytes => {
                let limit = self.limits.pickle_bytes;
                let message = format!("more than the limit of {limit} bytes is packed");
                return Err(PickleError::new("limit-pickle-bytes", message));
            }
            _ => usize::MAX,
        };
        let room = most.saturating_sub(self.head.len()).min(bytes.len());
        let (head, tail) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        self.head.extend_from_slice(head);
        self.tail.extend_from_slice(tail);
        if self.tail.len() > 4 * TAIL {
            self.tail.drain(..self.tail.len().saturating_sub(TAIL));
        }
        Ok(())
    }

    /// What to hold, by the first bytes. Whoever is not sure holds all.
    fn decide(&self) -> Hold {
        let head = self.head.get(..FIRST).unwrap_or(&self.head);
        let Ok(detection) = detect(&Spans::whole(head.to_vec())) else { return Hold::Whole };
        let ends = match detection.kind {
            Kind::Gguf => true,
            // Fields may be objects.
            Kind::Npy => !has_objects(head),
            Kind::Unknown | Kind::Safetensors => {
                matches!(trial(head, u64::MAX, &self.limits), Trial::Nothing)
            }
            _ => false,
        };
        if !ends {
            return Hold::Whole;
        }
        let configuration = usize::try_from(beside::CONFIGURATION).unwrap_or(HEAD);
        Hold::Ends(if self.is_configuration { configuration } else { HEAD })
    }

    /// Whether the ends of it say that more has to be looked at: it has to be unpacked again, as a whole.
    pub(super) fn lacks(&self) -> bool {
        if self.is_whole() {
            return false;
        }
        match detect(&self.spans()) {
            Ok(found) => {
                let header = self.head.first_chunk::<8>().map_or(0, |len| u64::from_le_bytes(*len));
                let held = u64::try_from(self.head.len()).unwrap_or(u64::MAX);
                let known = match found.kind {
                    Kind::Safetensors => header.saturating_add(8) <= held,
                    kind => matches!(kind, Kind::Gguf | Kind::Npy | Kind::Unknown),
                };
                !known || found.findings.first(container::POLYGLOT.code).is_some()
            }
            Err(_) => true,
        }
    }

    fn is_whole(&self) -> bool {
        let held = self.head.len().saturating_add(self.tail.len());
        u64::try_from(held).is_ok_and(|held| held == self.len)
    }

    fn spans(&self) -> Spans {
        let mut spans = Spans::new(self.len);
        spans.insert(0, self.head.clone());
        spans.insert(self.tail_start(), self.tail.clone());
        spans
    }

    fn tail_start(&self) -> u64 {
        self.len.saturating_sub(u64::try_from(self.tail.len()).unwrap_or(u64::MAX))
    }

    /// It, to be read.
    pub(super) fn into_spans(mut self) -> Spans {
        let mut spans = Spans::new(self.len);
        if self.is_whole() {
            self.head.append(&mut self.tail);
        }
        let start = self.tail_start();
        spans.insert(0, self.head);
        if !self.tail.is_empty() {
            spans.insert(start, self.tail);
        }
        spans
    }

    /// It, as far as it is held from the start.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        if self.is_whole() {
            self.head.append(&mut self.tail);
        }
        self.head
    }
}

/// Whether the header of an array has objects, or fields, which may be: whether it may have what numpy unpickles.
fn has_objects(head: &[u8]) -> bool {
    let end = head.iter().position(|byte| *byte == b'\n').unwrap_or(head.len());
    let header = head.get(10..end).unwrap_or_default();
    // `descr`, `fortran_order`, `shape`, `True` and `False` have neither.
    header.is_empty() || header.contains(&b'O') || header.contains(&b'[')
}
