//! A progress bar on a terminal, for what takes longer than a second.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Nobody needs a bar for what is over before they look.
const SILENT_FIRST: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(100);

/// How far a thing is, told from any thread.
#[derive(Debug)]
pub struct Progress {
    total: u64,
    done: AtomicU64,
}

impl Progress {
    /// Nothing done of `total` steps; with a total of 0 only the time is shown.
    pub const fn new(total: u64) -> Self {
        Self { total, done: AtomicU64::new(0) }
    }

    /// One more step is done.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// Does `work` on this thread. If stderr is a terminal and it takes longer than a second, a bar
/// shows how far it is.
pub fn with_bar<T>(label: &str, progress: &Progress, work: impl FnOnce() -> T) -> T {
    if !stderr().is_terminal() {
        return work();
    }
    thread::scope(|scope| {
        let (over, wait) = channel::<()>();
        scope.spawn(move || draw_until_over(label, progress, &wait));
        let result = work();
        // The other end sees this; it sees a panic of `work` in the same way.
        drop(over);
        result
    })
}

fn draw_until_over(label: &str, progress: &Progress, wait: &Receiver<()>) {
    let goes_on = |time| matches!(wait.recv_timeout(time), Err(RecvTimeoutError::Timeout));
    if !goes_on(SILENT_FIRST) {
        return;
    }
    let bar = bar(label, progress.total);
    while goes_on(REDRAW) {
        bar.set_position(progress.done.load(Ordering::Relaxed));
        bar.tick();
    }
    bar.finish_and_clear();
}

fn bar(label: &str, total: u64) -> ProgressBar {
    let (bar, template) = if total == 0 {
        (ProgressBar::new_spinner(), "{spinner} {msg} {elapsed}")
    } else {
        (ProgressBar::new(total), "{msg} {wide_bar} {pos}/{len} {elapsed}, {eta} left")
    };
    let style = ProgressStyle::with_template(template).expect("a template that a test tries");
    bar.with_style(style).with_message(label.to_owned()).with_elapsed(SILENT_FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_the_work_comes_back_and_every_step_counts() {
        let progress = Progress::new(3);
        let work = || (0..3).inspect(|_| progress.step()).sum::<u32>();
        assert_eq!(with_bar("adding", &progress, work), 3);
        assert_eq!(progress.done.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn both_kinds_of_bar_have_a_valid_template() {
        for total in [0, 7] {
            assert_eq!(bar("x", total).length().unwrap_or(0), total);
        }
    }
}
