//! Detects whether a sender makes progress, or only keeps its place.
//!
//! A receiver serves one sender at a time. While another one waits, the current sender must make progress:
//! [`PROGRESS_UNITS`] within each [`PROGRESS_TIME`], not counting the time in which this end works for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Instant;

use crate::files::error::TransferError;
use crate::files::wire::Frame;

/// A sender that is silent for this time loses its place to a waiting one, which may be the same sender after
/// a restart.
pub const SILENCE_LIMIT: Duration = Duration::from_secs(3);
/// A sender that makes too little progress in this time loses its place to a waiting one.
pub const PROGRESS_TIME: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 30 });
/// Required progress: 16 KiB in 30 s, which a link of 5 kbit/s can carry.
pub const PROGRESS_UNITS: u64 = 16 << 10;
/// Progress for one entry, in addition to its bytes.
pub const ENTRY_UNITS: u64 = 256;

/// Progress of one association, updated by the threads that serve it.
#[derive(Debug)]
pub struct SenderProgress {
    last_received: Mutex<Instant>,
    /// Whether this end waits for its disk. Meanwhile the sender may be silent.
    disk: AtomicBool,
    units: AtomicU64,
    /// Number of tasks that this end currently performs for the sender.
    local_tasks: AtomicU64,
    /// Number of threads that wait because the sender accepts no frames.
    blocked: AtomicU64,
    /// Why the attempt must end early.
    end: Mutex<Option<TransferError>>,
    ending: Notify,
}

/// A task that this end performs for the sender. It ends when this is dropped.
#[derive(Debug)]
pub struct LocalTask(Arc<SenderProgress>);

impl Drop for LocalTask {
    fn drop(&mut self) {
        self.0.local_tasks.fetch_sub(1, Ordering::Relaxed);
    }
}

impl SenderProgress {
    /// Progress of an association that starts now.
    pub fn new() -> Self {
        Self {
            last_received: Mutex::new(Instant::now()),
            disk: AtomicBool::new(false),
            units: AtomicU64::new(0),
            local_tasks: AtomicU64::new(0),
            blocked: AtomicU64::new(0),
            end: Mutex::default(),
            ending: Notify::new(),
        }
    }

    /// How long nothing was received, although this end was ready to receive.
    pub fn silence(&self) -> Duration {
        if self.disk.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.last_received.lock().elapsed()
    }

    /// Records that something was received, and whether this end now waits for its disk.
    pub fn on_received(&self, disk: bool) {
        self.disk.store(disk, Ordering::Relaxed);
        *self.last_received.lock() = Instant::now();
    }

    /// Records progress in bytes or [`ENTRY_UNITS`].
    pub fn add(&self, units: u64) {
        self.units.fetch_add(units, Ordering::Relaxed);
    }

    /// Starts a task for the sender, which ends when the result is dropped.
    pub fn begin_local_task(self: &Arc<Self>) -> LocalTask {
        self.local_tasks.fetch_add(1, Ordering::Relaxed);
        LocalTask(self.clone())
    }

    /// Sends a frame. Time spent waiting for a sender that accepts no frames does not count as local work.
    pub fn send_frame(&self, out: &Sender<Frame>, frame: Frame) -> bool {
        match out.try_send(frame) {
            Ok(()) => true,
            Err(TrySendError::Closed(_)) => false,
            Err(TrySendError::Full(frame)) => {
                self.blocked.fetch_add(1, Ordering::Relaxed);
                let sent = out.blocking_send(frame).is_ok();
                self.blocked.fetch_sub(1, Ordering::Relaxed);
                sent
            }
        }
    }

    /// Whether this end works for the sender, and does not wait for it.
    fn is_busy(&self) -> bool {
        self.local_tasks.load(Ordering::Relaxed) > 0 && self.blocked.load(Ordering::Relaxed) == 0
    }

    /// Ends the attempt. The first reason counts.
    pub fn end(&self, why: TransferError) {
        self.end.lock().get_or_insert(why);
        self.ending.notify_one();
    }

    /// Waits until the attempt must end.
    pub async fn ended(&self) -> TransferError {
        loop {
            let ending = self.ending.notified();
            if let Some(why) = self.end.lock().clone() {
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
    pub fn start(sender_progress: &SenderProgress) -> Self {
        Self { since: Instant::now(), units: sender_progress.units.load(Ordering::Relaxed) }
    }

    /// Whether there was too little progress for too long.
    pub fn has_expired(&mut self, sender_progress: &SenderProgress) -> bool {
        let units = sender_progress.units.load(Ordering::Relaxed);
        if sender_progress.is_busy() || units.saturating_sub(self.units) >= PROGRESS_UNITS {
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
            let sender_progress = Arc::new(SenderProgress::new());
            let mut clock = StallClock::start(&sender_progress);
            let _task = busy.then(|| sender_progress.begin_local_task());
            let mut ran_out = false;
            for _ in 0..300 {
                advance(PROGRESS_TIME / 30).await;
                sender_progress.on_received(false);
                sender_progress.add(step);
                ran_out |= clock.has_expired(&sender_progress);
            }
            assert_eq!(ran_out, runs_out, "{step} units per step, busy: {busy}");
        }
    }
}
