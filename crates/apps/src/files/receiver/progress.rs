//! Whether a sender makes progress, or only keeps its place.
//!
//! A receiver serves one sender at a time. While another one waits, the sender of now has to move the transfer on:
//! [`PROGRESS_UNITS`] within each [`PROGRESS_TIME`], not counting the time in which this end has work to do for it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use crate::files::broken::Broken;
use crate::files::wire::Frame;

/// A sender that has been silent for so long makes room for one that waits, which may be the same one, started again.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// A sender that makes too little progress in so long makes room for one that waits.
pub const PROGRESS_TIME: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
/// How much progress is enough: 16 KiB in 30 s, which a link of 5 kbit/s carries.
pub const PROGRESS_UNITS: u64 = 16 << 10;
/// What an entry counts for besides its bytes.
pub const ENTRY_UNITS: u64 = 256;

/// Progress of one association, written by the threads that serve it.
#[derive(Debug)]
pub struct Progress {
    heard: Mutex<Instant>,
    /// The disk is waited for; the sender may be as silent as it wants.
    disk: AtomicBool,
    units: AtomicU64,
    /// Pieces of work that this end does for the sender now.
    owed: AtomicU64,
    /// Threads that wait because the sender takes no answers.
    blocked: AtomicU64,
    /// Why the attempt is to end before its time.
    end: Mutex<Option<Broken>>,
    ending: Notify,
}

/// A piece of work that this end does for the sender; over when this is dropped.
#[derive(Debug)]
pub struct Owed(Arc<Progress>);

impl Drop for Owed {
    fn drop(&mut self) {
        self.0.owed.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Progress {
    /// Heard just now.
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

    /// For how long nothing has been heard, though somebody listened.
    pub fn silent(&self) -> Duration {
        if self.disk.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    /// Something was heard; whether it now waits for the disk.
    pub fn beat(&self, disk: bool) {
        self.disk.store(disk, Ordering::Relaxed);
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// The transfer has moved on by so many bytes or [`ENTRY_UNITS`].
    pub fn add(&self, units: u64) {
        self.units.fetch_add(units, Ordering::Relaxed);
    }

    /// This end works for the sender until the result is dropped.
    pub fn owe(self: &Arc<Self>) -> Owed {
        self.owed.fetch_add(1, Ordering::Relaxed);
        Owed(self.clone())
    }

    /// Tells the sender something. While it takes no answers, waiting for it is no work of ours.
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

    /// Ends the attempt, for the first reason that is given.
    pub fn end(&self, why: Broken) {
        self.end.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.ending.notify_one();
    }

    /// Waits until the attempt is to end.
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

/// Watches progress from the moment on in which somebody waits.
#[derive(Debug)]
pub struct StallClock {
    since: Instant,
    units: u64,
}

impl StallClock {
    /// Begins now.
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
