//! Records of decisions, for `explain`. The engine only emits them and formats nothing.

use ropewalk_base::{PathId, Time};

use crate::scheduler::{Action, PathView, Reason};

/// State of one path when a decision was made.
#[derive(Clone, Copy, Debug)]
pub struct PathSnapshot {
    /// The path.
    pub id: PathId,
    /// Whether the path was usable.
    pub usable: bool,
    /// Usable window, bytes.
    pub window: u64,
    /// In flight, bytes.
    pub in_flight: u64,
    /// Smoothed round trip, nanoseconds; 0 if unknown.
    pub srtt_nanos: u64,
    /// Forward delay, nanoseconds; 0 if unknown.
    pub forward_nanos: u64,
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
        }
    }
}

/// One decision.
#[derive(Clone, Debug)]
pub struct DecisionRecord {
    /// Time of the decision.
    pub at: Time,
    /// The chunk that was sent, counted from 0 at the start of the association, `None` if nothing was
    /// sent.
    pub chunk: Option<u64>,
    /// The decision.
    pub action: Action,
    /// Its reason.
    pub reason: Reason,
    /// Positions of the unassigned queue within the receive window.
    pub sendable: u64,
    /// The paths as the scheduler saw them.
    pub paths: Vec<PathSnapshot>,
}
