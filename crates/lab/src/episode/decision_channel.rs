//! Passes decisions between the engine and the caller of an episode.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use ropewalk_base::Time;
use ropewalk_engine::scheduler::{CustomScheduler, Decision, PathView, Schedule, View};

/// The input of a decision: a copy of the engine's view.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The simulated time.
    pub now: Time,
    /// Number of chunks, from the head of the unassigned queue, that may be sent now.
    pub takeable: u64,
    /// Bytes in the unassigned queue.
    pub backlog_bytes: u64,
    /// Unclaimed bytes of the peer's receive buffer.
    pub window_room: u64,
    /// Size of the peer's receive buffer, bytes.
    pub receive_buffer: u64,
    /// Size of a full chunk, bytes.
    pub chunk_bytes: u64,
    /// The paths, in the order of the scenario.
    pub paths: Vec<PathView>,
}

impl Observation {
    /// Whether a path, counted from 0, may take the head of the queue.
    pub fn may_send(&self, path: usize) -> bool {
        self.takeable > 0 && self.paths.get(path).is_some_and(PathView::is_open)
    }

    /// An empty input with capacity for this many paths.
    pub fn empty(paths: usize) -> Self {
        Self {
            now: Time::ZERO,
            takeable: 0,
            backlog_bytes: 0,
            window_room: 0,
            receive_buffer: 0,
            chunk_bytes: 0,
            paths: Vec::with_capacity(paths),
        }
    }

    /// Copies `view` into `self`.
    pub fn copy(&mut self, view: &View<'_>) {
        self.now = view.now;
        self.takeable = view.takeable();
        self.backlog_bytes = view.backlog_bytes;
        self.window_room = view.window_room;
        self.receive_buffer = view.receive_buffer;
        self.chunk_bytes = view.chunk_bytes;
        self.paths.clear();
        self.paths.extend_from_slice(view.paths);
    }
}

/// Holds one pending decision at a time.
#[derive(Debug)]
pub(super) struct DecisionChannel {
    is_pending: AtomicBool,
    pending: Mutex<(Observation, Option<Decision>)>,
}

impl DecisionChannel {
    pub fn new(paths: usize) -> Self {
        Self {
            is_pending: AtomicBool::new(false),
            pending: Mutex::new((Observation::empty(paths), None)),
        }
    }

    /// Whether the engine waits for a decision.
    #[inline]
    pub fn awaits_decision(&self) -> bool {
        self.is_pending.load(Ordering::Relaxed)
    }

    pub fn observe<T>(&self, at: impl FnOnce(&Observation) -> T) -> T {
        at(&self.pending.lock().0)
    }

    pub fn answer(&self, decision: Decision) {
        self.pending.lock().1 = Some(decision);
    }
}

/// A scheduler that forwards every decision to the channel. Its clones share the channel, because only the
/// sending end of one association makes decisions.
pub(super) struct ChannelScheduler {
    channel: Arc<DecisionChannel>,
}

impl ChannelScheduler {
    pub const fn new(channel: Arc<DecisionChannel>) -> Self {
        Self { channel }
    }
}

impl Schedule for ChannelScheduler {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let mut pending = self.channel.pending.lock();
        if let Some(decision) = pending.1.take() {
            self.channel.is_pending.store(false, Ordering::Relaxed);
            return decision;
        }
        // There is nothing to decide if no path may send.
        if view.open_for_head().next().is_some() {
            pending.0.copy(view);
            self.channel.is_pending.store(true, Ordering::Relaxed);
        }
        view.nobody()
    }
}

impl CustomScheduler for ChannelScheduler {
    fn name(&self) -> &str {
        "episode"
    }

    fn clone_box(&self) -> Box<dyn CustomScheduler> {
        Box::new(Self::new(Arc::clone(&self.channel)))
    }

    fn is_thinking(&self) -> bool {
        self.channel.awaits_decision()
    }
}
