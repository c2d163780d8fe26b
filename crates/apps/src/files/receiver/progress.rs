//! Detects whether a sender makes progress, or only keeps its place.
//!
//! A receiver serves one sender at a time. While another one waits, the current sender must make progress:
//! [`PROGRESS_UNITS`] within each [`PROGRESS_TIME`], not counting the time in which this end works for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use crate::files::broken::Broken;
use crate::files::wire::Frame;

/// A sender that was silent for this time loses its place to a waiting one, which may be the same one after a
/// restart.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// A sender that makes too little progress in this time loses its place to a waiting one.
pub const PROGRESS_TIME: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
/// Required progress: 16 KiB in 30 s, which a link of 5 kbit/s can carry.
pub const PROGRESS_UNITS: u64 = 16 << 10;
/// Progress for one entry, besides its bytes.
pub const ENTRY_UNITS: u64 = 256;

/// Progress of one association, updated by the threads that serve it.
#[derive(Debug)]
pub struct Progress {
    heard: Mutex<Instant>,
    /// Whether this end waits for its disk. Meanwhile the sender may be silent.
    disk: AtomicBool,
    units: AtomicU64,
    /// Number of tasks that this end currently performs for the sender.
    owed: AtomicU64,
    /// Number of threads that wait because the sender takes no frames.
    blocked: AtomicU64,
    /// Why the attempt must end early.
    end: Mutex<Option<Broken>>,
    ending: Notify,
}

/// A task that this end performs for the sender. It ends when this is dropped.
#[derive(Debug)]
pub struct Owed(Arc<Progress>);

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.owed.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Progress {
    /// Progress of an association that starts now.
    pub fn new() -> Self {
        Self {
            heard: Mutex::new(Instant::now()),
            disk: AtomicBool::new(false),
            units: AtomicU64::new(0),
            owed: AtomicU64::new(0),
            blocked: AtomicU64::new(0),
            end: Mutex::default(),
            ending: Notify::new(),
        }
    }

    /// How long nothing was received, although this end was ready to receive.
    pub fn silent(&self) -> Duration {
        if self.disk.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Records that something was received, and whether this end now waits for its disk.
    pub fn beat(&self, disk: bool) {
        self.disk.store(disk, Ordering::Relaxed);
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Records progress in bytes or [`ENTRY_UNITS`].
    pub fn add(&self, units: u64) {
        self.units.fetch_add(units, Ordering::Relaxed);
    }

    /// Starts a task for the sender, which ends when the result is dropped.
    pub fn owe(self: &Arc<Self>) -> Owed {
        self.owed.fetch_add(1, Ordering::Relaxed);
        Owed(self.clone())
    }

    /// Sends a frame. While the sender takes no frames, waiting for it does not count as work of this end.
    pub fn tell(&self, out: &Sender<Frame>, frame: Frame) -> bool {
        match out.try_send(frame) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(frame)) => {
                self.blocked.fetch_add(1, Ordering::Relaxed);
                let told = out.blocking_send(frame).is_ok();
                self.blocked.fetch_sub(1, Ordering::Relaxed);
                told
            }
        }
    }

    /// Whether this end works for the sender, and does not wait for it.
    fn is_busy(&self) -> bool {
        self.owed.load(Ordering::Relaxed) > 0 && self.blocked.load(Ordering::Relaxed) == 0
    }

    /// Ends the attempt. The first reason counts.
    pub fn end(&self, why: Broken) {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.ending.notify_one();
    }

    /// Waits until the attempt must end.
    pub async fn ended(&self) -> Broken {
        loop {
            let ending = self.ending.notified();
            if let Some(why) = self.end.lock().unwrap_or_else(PoisonError::into_inner).clone() {
                return why;
            }
            ending.await;
        }
    }
}

/// Checks progress from the moment when another sender waits.
#[derive(Debug)]
pub struct StallClock {
    since: Instant,
    units: u64,
}

impl StallClock {
    /// Starts the clock now.
    pub fn start(progress: &Progress) -> Self {
        Self { since: Instant::now(), units: progress.units.load(Ordering::Relaxed) }
    }

    /// Whether there was too little progress for too long.
    pub fn has_run_out(&mut self, progress: &Progress) -> bool {
        let units = progress.units.load(Ordering::Relaxed);
        if progress.is_busy() || units.saturating_sub(self.units) >= PROGRESS_UNITS {
            *self = Self { since: Instant::now(), units };
        }
        self.since.elapsed() >= PROGRESS_TIME
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn only_enough_progress_or_work_of_our_own_keeps_a_place() {
        for (step, busy, runs_out) in [
            (0, false, true),
            (1, false, true),
            (PROGRESS_UNITS / 60, false, true),
            (PROGRESS_UNITS / 20, false, false),
            (0, true, false),
        ] {
            let progress = Arc::new(Progress::new());
            let mut clock = StallClock::start(&progress);
            let _owed = busy.then(|| progress.owe());
            let mut ran_out = false;
            for _ in 0..300 {
                advance(PROGRESS_TIME / 30).await;
                progress.beat(false);
                progress.add(step);
                ran_out |= clock.has_run_out(&progress);
            }
            assert_eq!(ran_out, runs_out, "{step} units per step, busy: {busy}");
        }
    }
}
