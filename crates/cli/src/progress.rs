//! A progress bar on a terminal, for tasks that take longer than a second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use crate::console::Console;

/// Time before the bar appears, so that short tasks show none.
const SILENT_FIRST: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(100);
/// Resolution of a fraction.
const PARTS: u64 = 1_000_000;

const SHARES: &str = "{msg} {wide_bar} {percent}%, {elapsed}, {eta} left";
const STEPS: &str = "{msg} {wide_bar} {pos}/{len}, {elapsed}, {eta} left";

/// The progress of a task. Any thread may report it.
#[derive(Debug)]
pub struct Progress {
    total: u64,
    template: &'static str,
    done: AtomicU64,
}

impl Progress {
    /// Progress of `total` steps.
    pub const fn steps(total: u64) -> Self {
        Self { total, template: STEPS, done: AtomicU64::new(0) }
    }

    /// Progress of a continuous task.
    pub const fn share() -> Self {
        Self { total: PARTS, template: SHARES, done: AtomicU64::new(0) }
    }

    /// Reports one more finished task.
    pub fn step(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Reports the finished fraction of the work, 0 to 1. It never decreases.
    pub fn on_progress(&self, share: f64) {
        self.done.fetch_max((share * PARTS as f64) as u64, Ordering::Relaxed);
    }
}

/// Does `work` on this thread. Shows a progress bar if stderr is a terminal and the work takes longer than
/// a second.
pub fn with_bar<T>(
    console: Console,
    label: &str,
    progress: &Progress,
    work: impl FnOnce() -> T,
) -> T {
    if !console.has_viewer() {
        return work();
    }
    thread::scope(|scope| {
        let (over, wait) = channel::<()>();
        scope.spawn(move || draw_until_over(label, progress, &wait));
        let result = work();
        // Closing the channel ends the drawing thread, also when `work` panics.
        drop(over);
        result
    })
}

fn draw_until_over(label: &str, progress: &Progress, wait: &Receiver<()>) {
    let goes_on = |time| matches!(wait.recv_timeout(time), Err(RecvTimeoutError::Timeout));
    if !goes_on(SILENT_FIRST) {
        return;
    }
    let bar = bar(label, progress);
    while goes_on(REDRAW) {
        bar.set_position(progress.done.load(Ordering::Relaxed));
        bar.tick();
    }
    bar.finish_and_clear();
}

fn bar(label: &str, progress: &Progress) -> ProgressBar {
    let style =
        ProgressStyle::with_template(progress.template).expect("a template that a test tries");
    let bar = ProgressBar::new(progress.total).with_style(style);
    bar.with_message(label.to_owned()).with_elapsed(SILENT_FIRST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_the_work_comes_back_and_every_step_counts() {
        let progress = Progress::steps(3);
        let work = || (0..3).inspect(|_| progress.step()).sum::<u32>();
        assert_eq!(with_bar(Console::new(true), "adding", &progress, work), 3);
        assert_eq!(progress.done.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn a_share_never_falls() {
        let progress = Progress::share();
        for share in [0.25, 0.5, 0.4] {
            progress.on_progress(share);
        }
        assert_eq!(progress.done.load(Ordering::Relaxed), PARTS / 2);
    }

    #[test]
    fn both_kinds_of_bar_have_a_valid_template() {
        for progress in [Progress::steps(7), Progress::share()] {
            assert_eq!(bar("x", &progress).length(), Some(progress.total));
        }
    }
}
