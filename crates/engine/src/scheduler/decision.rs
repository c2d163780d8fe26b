//! The decisions of a scheduler.

use ropewalk_base::{PathId, Time};

/// A set of paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathSet(u64);

impl PathSet {
    /// No path.
    pub const EMPTY: Self = Self(0);

    /// The set with `path` in it.
    #[must_use]
    pub const fn with(self, path: PathId) -> Self {
        Self(self.0 | 1 << path.0)
    }

    /// The set without `path`.
    #[must_use]
    pub const fn without(self, path: PathId) -> Self {
        Self(self.0 & !(1 << path.0))
    }

    /// Whether `path` is in it.
    pub const fn contains(self, path: PathId) -> bool {
        self.0 >> path.0 & 1 == 1
    }

    /// Number of paths in it.
    pub const fn len(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether it is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The paths in ascending order.
    pub fn iter(self) -> impl Iterator<Item = PathId> {
        (0..64u8).filter(move |i| self.0 >> i & 1 == 1).map(PathId)
    }
}

/// The next action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Send the chunk at `position` of the unassigned queue (0 is its head) on `path`.
    Send {
        /// The path.
        path: PathId,
        /// Position of the chunk in the unassigned queue.
        position: u64,
    },
    /// Send the chunk at `position` on every path of the set.
    Copies {
        /// The paths; not empty.
        paths: PathSet,
        /// Position of the chunk in the unassigned queue.
        position: u64,
    },
    /// A better path will become free. Decide again at `until`, or as soon as anything changes.
    Wait {
        /// Latest time of the next decision.
        until: Time,
    },
    /// Nothing can be sent until an acknowledgement or a timer changes something.
    Blocked,
}

/// The reason of a decision, in the terms of the algorithm; kept for `explain`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The only path that is open.
    OnlyOpen,
    /// The next path in turn.
    NextInTurn,
    /// Highest deficit of its weighted share.
    LargestDeficit,
    /// Lowest smoothed round trip of the open paths.
    LeastRtt,
    /// The schedule assigns this chunk to this path, so that it arrives in order.
    OnSchedule,
    /// Several paths were open: a new schedule was made and this is its entry.
    NewSchedule,
    /// The fast path takes the oldest unassigned data.
    FastFromHead,
    /// No path had a delay estimate: fell back to the lowest round trip.
    NoEstimate,
    /// Lowest cost.
    LeastCost,
    /// One copy on each path.
    EveryPath,
    /// A lost chunk, on the path that the retransmission policy selects.
    RetransmissionPolicy,
    /// The window is blocked: the oldest unacknowledged chunk is retransmitted on another path.
    Unblock,
    /// The receive window does not reach the data that this path should carry.
    WindowBlocked,
    /// The windows of all paths are full.
    AllFull,
    /// The queue of unassigned data is empty.
    NoData,
    /// The schedule gives this path its next turn at that time.
    NotYetDue,
    /// A faster path would deliver it sooner.
    FasterSoon,
    /// The scheduler would wait, but no data is in flight whose acknowledgement would end the wait.
    NothingOnTheWay,
    /// The path that delivers the chunk soonest, including the queue on that path.
    SoonestDelivery,
    /// The shortest queue, counted in time.
    ShortestQueue,
    /// So far beyond the head that it arrives together with the data that faster paths send in the
    /// meantime.
    AcrossTheGap,
    /// The data that may be sent is assigned to paths that are full.
    QueuedElsewhere,
    /// The chunk would occupy the part of the receive window that a faster path needs in the meantime.
    WouldBlock,
    /// A second copy, in case the first is lost or the estimate of its path is outdated.
    Hedged,
    /// A decision of a custom scheduler.
    Custom,
}

/// An action and its reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The next action.
    pub action: Action,
    /// The reason of the action.
    pub reason: Reason,
}

impl Decision {
    /// Send the chunk at `position` on `path`.
    pub const fn send(path: PathId, position: u64, reason: Reason) -> Self {
        Self { action: Action::Send { path, position }, reason }
    }

    /// Send the chunk at `position` on every path of `paths`.
    pub const fn copies(paths: PathSet, position: u64, reason: Reason) -> Self {
        Self { action: Action::Copies { paths, position }, reason }
    }

    /// Nothing can be sent.
    pub const fn blocked(reason: Reason) -> Self {
        Self { action: Action::Blocked, reason }
    }

    /// Wait until `until`, then decide again.
    pub const fn wait(until: Time, reason: Reason) -> Self {
        Self { action: Action::Wait { until }, reason }
    }
}
