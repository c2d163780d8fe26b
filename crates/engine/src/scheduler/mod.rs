//! Schedulers: they choose the chunk and the path of each transmission, and its time. One file per
//! algorithm.
//!
//! A scheduler reads a [`View`] and returns a [`Decision`]; it cannot touch the engine, which
//! checks every decision against the peer's window and the path's window ([`check`]).
//!
//! [`Scheduler`] lists the built-in ones; `registry.rs` has a row for each.
//!
//! To write a custom scheduler, see [`CustomScheduler`].

mod backup;
mod bas;
mod blest;
mod check;
mod common;
#[cfg(test)]
mod conformance;
mod custom;
mod daps;
mod daps_lcm;
mod decision;
mod delay_plan;
mod delivery_slots;
mod ecf;
mod lay;
mod linux;
mod min_rtt;
mod ods;
mod opportunistic;
mod otias;
mod path_queues;
mod reception_index;
mod redundant;
mod registry;
mod retransmission;
mod round_robin;
mod stms;
mod sttf;
mod view;
mod weighted;
mod westwood;

pub use crate::path::DelaySource;
pub use backup::Backup;
pub use bas::Bas;
pub use blest::{Blest, BlestOptions};
pub use check::{IllegalDecision, check};
pub use custom::CustomScheduler;
pub use daps::{Daps, DapsOptions, WhenBlocked};
pub use daps_lcm::DapsLcm;
pub use decision::{Action, Decision, PathSet, Reason};
pub use delay_plan::{Capacity, PlanOptions, Windows};
pub use ecf::Ecf;
pub use lay::{Lay, LayOptions};
pub use linux::{Linux, LinuxOptions, LinuxTurns};
pub use min_rtt::MinRtt;
pub use ods::Ods;
pub use opportunistic::{BlockingMitigation, resend_on};
pub use otias::{Otias, OtiasForm};
pub use reception_index::ReceptionIndex;
pub use redundant::Redundant;
pub use registry::{Scheduler, SchedulerOptions, UnknownScheduler};
pub use retransmission::RetransmissionPolicy;
pub use round_robin::{Quota, RoundRobin};
pub use stms::{Stms, StmsOptions};
pub use sttf::Sttf;
pub use view::{DecisionKind, FragmentEnd, PathView, View};
pub use weighted::{WeightSource, Weighted};

use ropewalk_base::PathId;

/// A transmission, reported to the scheduler after the fact.
#[derive(Clone, Copy, Debug)]
pub struct SentReport {
    /// The path.
    pub path: PathId,
    /// The position in the unassigned queue from which the chunk was taken.
    pub position: u64,
    /// Number of the chunk in the stream, counted from 0. A byte stream is counted in full chunks.
    pub sequence: u64,
    /// Size in bytes.
    pub bytes: u64,
}

/// The chunk that a scheduler has assigned to a path after the current one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behind {
    /// No chunk.
    Nothing,
    /// A chunk, but other paths carry data between the two.
    Later,
    /// The chunk that follows in the queue.
    Next,
}

/// The interface of a scheduler.
pub trait Schedule {
    /// Decides on the next chunk. The engine calls this again after each chunk until the scheduler
    /// returns `Wait` or `Blocked`, and then at every acknowledgement and timer. A scheduler must not
    /// return `Wait` or `Blocked` forever while the path that it waits for stays closed.
    fn decide(&mut self, view: &View<'_>) -> Decision;

    /// Reports that the engine carried out the last decision; with `Copies`, once per copy. Data that the
    /// engine sends without a decision is not reported.
    fn on_sent(&mut self, _sent: &SentReport) {}

    /// Whether the oldest unacknowledged chunk is retransmitted, on a path that has not carried it, while
    /// the receive window is closed.
    fn resends_when_blocked(&self) -> bool {
        false
    }

    /// The chunk assigned to `path` after the one that the last decision sends there.
    fn behind(&self, _path: PathId) -> Behind {
        Behind::Nothing
    }

    /// Whether the scheduler reads [`View::fragment_ends`], whose cost is proportional to the unassigned
    /// data.
    fn reads_fragment_ends(&self) -> bool {
        false
    }

    /// Claims that the conformance tests verify in addition to the rules for every scheduler.
    #[cfg(test)]
    fn claims(&self) -> conformance::Claims {
        conformance::Claims::default()
    }
}

impl Scheduler {
    /// Whether the decision of a custom scheduler is pending; see [`CustomScheduler::is_thinking`].
    #[inline]
    pub fn is_thinking(&self) -> bool {
        matches!(self, Self::Custom(custom) if custom.is_thinking())
    }

    /// The reason why a custom scheduler cannot continue, if there is one.
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Custom(custom) => custom.fault(),
            _ => None,
        }
    }

    /// Whether the engine may carry out `decision`. Decisions of custom schedulers are always checked, and
    /// refusals reported to them. Built-in schedulers are checked in debug builds only.
    #[inline]
    pub(crate) fn may(&mut self, view: &View<'_>, decision: &Decision) -> bool {
        let trusted = !cfg!(debug_assertions) && !matches!(self, Self::Custom(_));
        trusted || self.judge(view, decision)
    }

    #[inline(never)]
    fn judge(&mut self, view: &View<'_>, decision: &Decision) -> bool {
        let Err(why) = check(view, decision) else { return true };
        let Self::Custom(custom) = self else {
            debug_assert!(false, "illegal decision {decision:?}: {why}");
            return false;
        };
        custom.on_refused(&why);
        false
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::RoundRobin(RoundRobin::default())
    }
}
