//! A progress bar on stderr, for what takes more than a second.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use weigh::io::Progress;

/// Shows how many of some bytes are done, on a terminal, from the first second on.
#[derive(Debug)]
pub(crate) struct Bar {
    total: u64,
    began: Instant,
    shown: OnceLock<ProgressBar>,
}

/// What is done sooner needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

const TEMPLATE: &str = "{bar:40} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}";

impl Bar {
    pub(crate) fn new(total: u64) -> Self {
        Self { total, began: Instant::now(), shown: OnceLock::new() }
    }

    /// What shows progress and never stops the work.
    pub(crate) fn follow(&self) -> impl Fn(Progress) -> ControlFlow<()> + Sync {
        |progress| {
            self.set(progress.done);
            ControlFlow::Continue(())
        }
    }

    /// So many are done now.
    pub(crate) fn set(&self, done: u64) {
        if self.began.elapsed() < PATIENCE {
            return;
        }
        let bar = self.shown.get_or_init(|| {
            let style = ProgressStyle::with_template(TEMPLATE);
            let bar = ProgressBar::new(self.total);
            style.map_or(bar.clone(), |style| bar.with_style(style))
        });
        bar.set_position(done.min(self.total));
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = self.shown.get() {
            bar.finish_and_clear();
        }
    }
}
