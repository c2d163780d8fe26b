//! Passes decisions between the engine and the caller of an episode.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_base::Time;
use ropewalk_engine::scheduler::{CustomScheduler, Decision, PathView, Schedule, View};

/// The input of a decision: a copy of the engine's view.
#[derive(Clone, Debug)]
pub struct Ask {
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

impl Ask {
    /// The first position of the unassigned queue that a path, counted from 0, may take; none if it may take
    /// none.
    pub fn position(&self, path: usize) -> Option<u64> {
        let path = self.paths.get(path).filter(|path| path.is_open())?;
        let position = path.earliest_position;
        (position < self.takeable).then_some(position)
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
    asked: AtomicBool,
    sheet: Mutex<(Ask, Option<Decision>)>,
}

impl DecisionChannel {
    pub fn new(paths: usize) -> Self {
        Self { asked: AtomicBool::new(false), sheet: Mutex::new((Ask::empty(paths), None)) }
    }

    /// Whether the engine waits for a decision.
    #[inline]
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    pub fn look<T>(&self, at: impl FnOnce(&Ask) -> T) -> T {
        at(&self.sheet().0)
    }

    pub fn answer(&self, decision: Decision) {
        self.sheet().1 = Some(decision);
    }

    fn sheet(&self) -> MutexGuard<'_, (Ask, Option<Decision>)> {
        self.sheet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A scheduler that forwards every decision to the channel. Its clones share the channel, because only the
/// sending end of one association makes decisions.
pub(super) struct Asker {
    desk: Arc<DecisionChannel>,
}

impl Asker {
    pub const fn new(desk: Arc<DecisionChannel>) -> Self {
        Self { desk }
    }
}

impl Schedule for Asker {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let mut sheet = self.desk.sheet();
        if let Some(decision) = sheet.1.take() {
            self.desk.asked.store(false, Ordering::Relaxed);
            return decision;
        }
        // There is nothing to decide if no path may send.
        if view.open().any(|path| view.admit(path, 0).is_some()) {
            sheet.0.copy(view);
            self.desk.asked.store(true, Ordering::Relaxed);
        }
        view.nobody()
    }
}

impl CustomScheduler for Asker {
    fn name(&self) -> &str {
        "episode"
    }

    fn clone_box(&self) -> Box<dyn CustomScheduler> {
        Box::new(Self::new(Arc::clone(&self.desk)))
    }

    fn is_thinking(&self) -> bool {
        self.desk.is_asked()
    }
}
