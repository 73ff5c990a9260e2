//! A line on stderr that says how far something is, once it has taken a second, if a terminal shows it.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use weigh::format::text::escaped;

use crate::units;

/// How long something has to take to be worth a line.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line is written again.
const PERIOD: Duration = Duration::from_millis(100);

/// How far something is. The line is gone when this is.
#[derive(Debug)]
pub(crate) struct Progress {
    /// What is gone through; not escaped.
    name: String,
    /// Bytes there are to go through.
    total: u64,
    /// When the line is next written; `None` if nobody looks.
    next: Option<Instant>,
    is_shown: bool,
}

impl Progress {
    pub(crate) fn new(name: String, total: u64) -> Self {
        let next = io::stderr().is_terminal().then(|| Instant::now() + PATIENCE);
        Self { name, total, next, is_shown: false }
    }

    /// So many bytes are done.
    pub(crate) fn at(&mut self, done: u64) {
        let now = Instant::now();
        if self.next.is_none_or(|next| now < next) {
            return;
        }
        self.next = Some(now + PERIOD);
        self.is_shown = true;
        let width = terminal_size::terminal_size_of(io::stderr())
            .map_or(usize::MAX, |(width, _)| usize::from(width.0));
        // Nothing can be done when stderr is closed.
        let _ = write!(io::stderr(), "\r{}\u{1b}[K", self.line(done, width));
    }

    /// The line, short enough not to be broken.
    fn line(&self, done: u64, width: usize) -> String {
        let [done, total] = [done, self.total].map(units::bytes);
        let line = format!("{done} of {total}  {}", escaped(&self.name));
        line.chars().take(width.saturating_sub(1)).collect()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            let _ = write!(io::stderr(), "\r\u{1b}[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_fits_and_moves_no_cursor() {
        let progress = Progress::new("a\u{1b}[2Jb".into(), 3 << 30);
        for (width, want) in [
            (usize::MAX, "1.00 KiB of 3.00 GiB  a\\u001b[2Jb"),
            (24, "1.00 KiB of 3.00 GiB  a"),
            (1, ""),
            (0, ""),
        ] {
            assert_eq!(progress.line(1024, width), want, "{width}");
        }
    }
}
