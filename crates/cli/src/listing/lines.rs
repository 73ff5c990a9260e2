//! Writing a listing: lines are put together by several threads where there are many, and written in order.

use std::io::{self, Write};
use std::num::NonZero;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use super::{Listing, Row};

/// Rows that are put together at a time; fewer than twice as many are not worth a thread.
const BATCH: usize = 4096;

/// Rows that are fetched ahead.
const AHEAD: usize = 64;

/// Threads that put lines together, at most: then writing takes longer.
const THREADS: usize = 4;

impl<'s> Listing<'s> {
    /// Writes what `line` puts together for each row, in order; it is also told the row's place.
    pub(crate) fn write(
        &self,
        out: &mut impl Write,
        line: impl Fn(&mut Vec<u8>, usize, &Row<'s>) + Sync,
    ) -> io::Result<()> {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        let batches = self.order.len().div_ceil(BATCH);
        let threads = cores.min(THREADS).min(batches);
        std::thread::scope(|scope| {
            let line = &line;
            let spawn = |first| {
                let (sender, receiver) = sync_channel(1);
                let numbers = (first..batches).step_by(threads);
                let work = move || self.send(&sender, numbers, line);
                std::thread::Builder::new().spawn_scoped(scope, work).ok().map(|_| receiver)
            };
            // The receivers are dropped when writing fails or a thread cannot be had, and so the threads end.
            let receivers: Option<Vec<Receiver<Vec<u8>>>> = match threads {
                0 | 1 => None,
                _ => (0..threads).map(spawn).collect(),
            };
            if let Some(receivers) = receivers {
                for receiver in receivers.iter().cycle().take(batches) {
                    out.write_all(&receiver.recv().map_err(io::Error::other)?)?;
                }
                return Ok(());
            }
            let mut lines = Vec::new();
            for number in 0..batches {
                lines.clear();
                self.put_together(&mut lines, number, line);
                out.write_all(&lines)?;
            }
            Ok(())
        })
    }

    fn send(
        &self,
        sender: &SyncSender<Vec<u8>>,
        numbers: impl Iterator<Item = usize>,
        line: &impl Fn(&mut Vec<u8>, usize, &Row<'s>),
    ) {
        let mut room = 0;
        for number in numbers {
            let mut lines = Vec::with_capacity(room);
            self.put_together(&mut lines, number, line);
            room = room.max(lines.len());
            if sender.send(lines).is_err() {
                return;
            }
        }
    }

    /// Puts the lines of one batch together.
    fn put_together(
        &self,
        lines: &mut Vec<u8>,
        number: usize,
        line: &impl Fn(&mut Vec<u8>, usize, &Row<'s>),
    ) {
        let start = number.saturating_mul(BATCH);
        let end = start.saturating_add(BATCH).min(self.order.len());
        let places = self.order.get(start..end).unwrap_or_default();
        let mut rows = Vec::with_capacity(AHEAD);
        let mut place = start;
        for places in places.chunks(AHEAD) {
            self.fetch(places, &mut rows);
            for row in &rows {
                line(lines, place, row);
                place += 1;
            }
        }
    }

    /// Makes the rows of these places.
    ///
    /// The headers of large files are not in natural order, and so each row would be waited for four times:
    /// for its entry, for both ends of its name, for its shape. Here all are asked for before anything
    /// depends on them.
    fn fetch(&self, places: &[u32], rows: &mut Vec<Row<'s>>) {
        let places = || places.iter().filter_map(|place| usize::try_from(*place).ok());
        std::hint::black_box(places().fold(0, |seen, place| seen ^ self.all.touch(place)));
        rows.clear();
        rows.extend(places().filter_map(|place| self.all.get(place)));
    }
}
