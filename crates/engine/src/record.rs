//! Records of decisions, for `explain`. The engine formats nothing: it emits these.

use ropewalk_base::{PathId, Time};

use crate::scheduler::{Action, PathView, Reason};

/// What was known of one path when a decision was made.
#[derive(Clone, Copy, Debug)]
pub struct PathSnapshot {
    /// Which path.
    pub id: PathId,
    /// Whether it could be used.
    pub usable: bool,
    /// Window that could be used, bytes.
    pub window: u64,
    /// In flight, bytes.
    pub in_flight: u64,
    /// Smoothed round trip, nanoseconds; 0 if unknown.
    pub srtt_nanos: u64,
    /// Forward delay, nanoseconds; 0 if unknown.
    pub forward_nanos: u64,
    /// Least position that the guard allowed.
    pub earliest_position: u64,
}

impl From<&PathView> for PathSnapshot {
    fn from(view: &PathView) -> Self {
        Self {
            id: view.id,
            usable: view.usable,
            window: view.window,
            in_flight: view.in_flight,
            srtt_nanos: view.srtt.map_or(0, |d| d.as_nanos()),
            forward_nanos: view.forward_delay.map_or(0, |d| d.as_nanos()),
            earliest_position: view.earliest_position,
        }
    }
}

/// One decision.
#[derive(Clone, Debug)]
pub struct DecisionRecord {
    /// When.
    pub at: Time,
    /// The chunk that was sent, counted from 0 at the first of the association; none if nothing was.
    pub chunk: Option<u64>,
    /// What was decided.
    pub action: Action,
    /// Why.
    pub reason: Reason,
    /// Positions of the unassigned queue that the peer's window left open.
    pub sendable: u64,
    /// The paths as the scheduler saw them.
    pub paths: Vec<PathSnapshot>,
}
