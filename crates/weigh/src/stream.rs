//! Tensors one after another, under a memory budget.
//!
//! A thread reads ahead, as far as the budget goes. What has been read counts until it is dropped, so a slow
//! consumer holds the reading up, and memory never exceeds the budget. A tensor that is larger than
//! that comes in several pieces.

mod budget;
mod pieces;

use std::collections::VecDeque;
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use weigh_inventory::select::Selection;
use weigh_io::policy::{Backend, Choice, Direct, Facts, ReadOptions};
use weigh_io::{Cancel, Part, Progress, Reading, Source, arena};

use crate::load::in_file_order;
use crate::plan::Casts;
use crate::{Array, Checkpoint, Error, Plan};
use budget::Budget;
use pieces::{Piece, Waiting};

/// In which order tensors come.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub enum Order {
    /// As they lie in the files, one file after another: the fastest.
    #[default]
    File,
    /// As the plan has them: the names that were given, or natural order.
    Given,
}

/// How to stream.
#[derive(Clone, Debug)]
#[expect(clippy::exhaustive_structs, reason = "an options struct, built by literal with a default")]
pub struct StreamOptions {
    /// In which order tensors come.
    pub order: Order,
    /// Bytes that tensors may take in memory at a time, both those that are read ahead and those that the
    /// consumer has not dropped. Less than 1 MiB counts as 1 MiB. Tensors below 64 KiB share memory with those
    /// that were read with them, and count until all of these are dropped.
    pub budget: u64,
    /// How long to wait for the consumer to drop tensors while it waits for the next one, before that is an
    /// error.
    pub patience: Duration,
    /// What the policy is not to decide.
    pub read: ReadOptions,
    /// What may stop it.
    pub cancel: Option<Arc<Cancel>>,
}

impl Default for StreamOptions {
    fn default() -> Self {
        Self {
            order: Order::File,
            budget: 1 << 30,
            patience: Duration::from_secs(30),
            read: ReadOptions::default(),
            cancel: None,
        }
    }
}

/// Tensors as they come.
///
/// Ends after the first error. Dropping it ends the reading; what has been handed out stays.
#[derive(Debug)]
pub struct Stream {
    items: Option<Receiver<Result<Streamed, Error>>>,
    budget: Arc<Budget>,
    patience: Duration,
    counts: Arc<Counts>,
    facts: Facts,
    choice: Choice,
    cancel: Option<Arc<Cancel>>,
    reader: Option<JoinHandle<()>>,
    /// Since when the consumer waits for the next one.
    waits_since: Option<Instant>,
}

/// What the reader has done so far.
#[derive(Debug, Default)]
struct Counts {
    bytes_read: AtomicU64,
    requests: AtomicU64,
    notes: Mutex<Vec<String>>,
}

/// A tensor, or a piece of one that is larger than the budget.
#[derive(Debug)]
#[non_exhaustive]
pub struct Streamed {
    /// The name of the tensor, unescaped.
    pub name: String,
    /// The bytes. Of a whole tensor it has the shape; of a piece, the number of elements as the only
    /// dimension.
    pub array: Array,
    /// The shape of all of it.
    pub shape: Vec<u64>,
    /// Which of its elements these are, counted as they lie in memory, the last dimension fastest.
    pub elements: Range<u64>,
    /// Whether these are all of its elements, or the last ones.
    pub is_last: bool,
}

impl Streamed {
    /// Whether this is a whole tensor, and not a piece of one.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.elements.start == 0 && self.is_last
    }
}

impl Checkpoint {
    /// Streams every tensor in an order, under a memory budget in bytes.
    ///
    /// ```no_run
    /// let checkpoint = weigh::Checkpoint::open("model")?;
    /// for item in checkpoint.stream(weigh::Order::File, 2 << 30)? {
    ///     let item = item?;
    ///     println!("{} {:?} {} bytes", item.name, item.elements, item.array.bytes().len());
    /// }
    /// # Ok::<(), weigh::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Plan::stream`].
    pub fn stream(&self, order: Order, budget: u64) -> Result<Stream, Error> {
        let options = StreamOptions { order, budget, ..StreamOptions::default() };
        self.plan_selected(&Selection::all()).stream(&options)
    }
}

impl Plan<'_> {
    /// Streams the parts of the plan.
    ///
    /// # Errors
    ///
    /// [`Error::Budget`] if a slice with negative steps is larger than the budget: it is read in
    /// the order of the file, and has to be turned around whole. What goes wrong while reading is an item.
    pub fn stream(&self, options: &StreamOptions) -> Result<Stream, Error> {
        let limit = options.budget.max(LEAST_BUDGET);
        let (facts, choice) = self.choose(&options.read);
        let numbers = match options.order {
            Order::File => in_file_order(self.parts()),
            Order::Given => (0..self.parts().len()).collect(),
        };
        let parts = numbers.iter().filter_map(|number| self.parts().get(*number));
        let waiting = parts.map(|part| Waiting::new(part, limit));
        let waiting = waiting.collect::<Result<VecDeque<_>, Error>>()?;
        let shards = self.checkpoint().shards().iter();
        let sources = shards.map(|shard| Arc::clone(shard.shared_source())).collect();
        let budget = Arc::new(Budget::new(limit));
        let counts = Arc::new(Counts::default());
        let (sender, items) = channel();
        let reader = Reader {
            waiting,
            sources,
            choice: choice.clone(),
            limit,
            batch: (limit / SHARES).min(LARGEST_BATCH),
            budget: Arc::clone(&budget),
            cancel: options.cancel.clone(),
            counts: Arc::clone(&counts),
        };
        let thread = std::thread::Builder::new().name("weigh-stream".into());
        let thread = thread.spawn(move || reader.run(&sender));
        let thread =
            thread.map_err(|error| weigh_io::Error::system(self.checkpoint().path(), error))?;
        let (items, reader, patience) = (Some(items), Some(thread), options.patience);
        let cancel = options.cancel.clone();
        let waits_since = None;
        Ok(Stream { items, budget, patience, counts, facts, choice, cancel, reader, waits_since })
    }
}

const LEAST_BUDGET: u64 = 1 << 20;

/// Batches that the budget has room for: while one is used, others are read.
const SHARES: u64 = 4;

/// A larger batch is no faster.
const LARGEST_BATCH: u64 = 256 << 20;

/// What the reading thread has.
struct Reader {
    waiting: VecDeque<Waiting>,
    sources: Vec<Arc<dyn Source>>,
    choice: Choice,
    /// What is larger comes in pieces.
    limit: u64,
    batch: u64,
    budget: Arc<Budget>,
    cancel: Option<Arc<Cancel>>,
    counts: Arc<Counts>,
}

impl Reader {
    fn run(mut self, sender: &Sender<Result<Streamed, Error>>) {
        while !self.waiting.is_empty() && !self.budget.is_closed() {
            let batch = self.next_batch();
            let read = self.read(&batch);
            let mut items = match read {
                Ok(blocks) => batch.into_iter().zip(blocks),
                Err(error) => {
                    // Nobody may be there any more to hear of it.
                    let _heard = sender.send(Err(error));
                    return;
                }
            };
            let sent = items.try_for_each(|(piece, block)| sender.send(Ok(piece.streamed(block))));
            if sent.is_err() {
                return;
            }
        }
    }

    /// The pieces that are read together next.
    fn next_batch(&mut self) -> Vec<Piece> {
        let (mut batch, mut bytes) = (Vec::new(), 0_u64);
        while let Some(next) = self.waiting.front_mut() {
            bytes = bytes.saturating_add(next.memory());
            if !batch.is_empty() && bytes > self.batch {
                break;
            }
            if next.memory() <= self.limit {
                batch.extend(self.waiting.pop_front().map(Waiting::whole));
                continue;
            }
            let (piece, is_last) = next.cut(self.batch);
            if is_last {
                self.waiting.pop_front();
            }
            batch.push(piece);
            break;
        }
        batch
    }

    fn read(&mut self, batch: &[Piece]) -> Result<Vec<arena::Block>, Error> {
        let sizes: Vec<u64> = batch.iter().map(|piece| piece.bytes).collect();
        let memory = arena::allocation_bytes(&sizes).unwrap_or(u64::MAX);
        if !self.budget.take(memory) {
            return Err(Error::Cancelled);
        }
        let budget = Arc::clone(&self.budget);
        let release = move |bytes| budget.give_back(u64::try_from(bytes).unwrap_or(u64::MAX));
        let huge_pages = self.choice.huge_pages;
        let (mut blocks, _) = arena::allocate_with(&sizes, huge_pages, Box::new(release))?;
        let (mut parts, mut casts, mut destinations) = (Vec::new(), Vec::new(), Vec::new());
        for (piece, block) in batch.iter().zip(&mut blocks) {
            let mut rest = &mut **block;
            for runs in &piece.runs {
                let len = piece.unit.apply(runs.bytes()).and_then(|len| usize::try_from(len).ok());
                let destination = len.and_then(|len| rest.split_off_mut(..len));
                destinations.push(destination.unwrap_or_default());
                parts.push(Part { file: piece.file, runs: runs.clone(), unit: piece.unit });
                casts.push(piece.cast);
            }
        }
        let plan = weigh_io::Plan::new(parts, &self.choice.cut())?;
        let sources: Vec<&dyn Source> =
            self.sources.iter().map(|it| &**it as &dyn Source).collect();
        let stop = |_: Progress| {
            if self.budget.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let reading = Reading {
            sources: &sources,
            plan: &plan,
            choice: &self.choice,
            hook: Some(&Casts(&casts)),
            cancel: self.cancel.as_deref(),
            progress: Some(&stop),
        };
        let report = reading.run(destinations)?;
        let requests = u64::try_from(report.requests).unwrap_or(u64::MAX);
        self.counts.bytes_read.fetch_add(report.bytes_read, Ordering::Relaxed);
        self.counts.requests.fetch_add(requests, Ordering::Relaxed);
        // What one batch found out holds for the others.
        if self.choice.direct == Direct::Probe && report.is_probed {
            self.choice.direct = if report.direct { Direct::Always } else { Direct::Never };
            if !report.direct {
                self.choice.backend = Backend::Pread;
            }
        }
        if let Ok(mut notes) = self.counts.notes.lock() {
            let new = report.notes.into_iter().filter(|note| !notes.contains(note));
            let new: Vec<String> = new.collect();
            notes.extend(new);
        }
        for (piece, block) in batch.iter().zip(&mut blocks) {
            piece.finish(block);
        }
        Ok(blocks)
    }
}

impl Stream {
    /// Bytes read so far, gaps included.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.counts.bytes_read.load(Ordering::Relaxed)
    }

    /// What was known of the files and the machine.
    #[must_use]
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// How it reads, and why.
    #[must_use]
    pub fn choice(&self) -> &Choice {
        &self.choice
    }

    /// What has been found out on the way, a sentence each.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.counts.notes.lock().map(|notes| notes.clone()).unwrap_or_default()
    }

    /// Requests carried out so far.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::Relaxed)
    }

    /// The next tensor, if it is there within so much time, to some 20 ms. If it is not, nothing is lost: ask again,
    /// after whatever else there is to look at.
    pub fn next_within(&mut self, time: Duration) -> Poll<Option<Result<Streamed, Error>>> {
        let Some(items) = self.items.as_ref() else { return Poll::Ready(None) };
        let began = Instant::now();
        let waits_since = *self.waits_since.get_or_insert(began);
        let item = loop {
            match items.recv_timeout(LOOK) {
                Ok(item) => break item,
                Err(RecvTimeoutError::Disconnected) => {
                    self.items = None;
                    // A reader that panicked has not come to the end.
                    if let Some(Err(panic)) = self.reader.take().map(JoinHandle::join) {
                        std::panic::resume_unwind(panic);
                    }
                    return Poll::Ready(None);
                }
                Err(RecvTimeoutError::Timeout) => {
                    if self.cancel.as_deref().is_some_and(Cancel::is_cancelled) {
                        break Err(Error::Cancelled);
                    }
                    let held = self.budget.stuck_for(self.patience);
                    if let Some(held) = held.filter(|_| waits_since.elapsed() >= self.patience) {
                        break Err(Error::BudgetHeld { held });
                    }
                    if began.elapsed() >= time {
                        return Poll::Pending;
                    }
                }
            }
        };
        self.waits_since = None;
        if item.is_err() {
            self.items = None;
        }
        Poll::Ready(Some(item))
    }
}

/// How often to look whether the consumer holds everything.
const LOOK: Duration = Duration::from_millis(20);

impl Iterator for Stream {
    type Item = Result<Streamed, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Poll::Ready(item) = self.next_within(Duration::MAX) {
                return item;
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.budget.close();
        self.items = None;
        if let Some(reader) = self.reader.take() {
            // A panic of the reader has been said on stderr, and ended the stream.
            let _ended = reader.join();
        }
    }
}
