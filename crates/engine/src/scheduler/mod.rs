//! Schedulers: which chunk goes on which path, and when. One file per algorithm.
//!
//! A scheduler reads a [`View`] and returns a [`Decision`]; it cannot touch the engine, which
//! checks every decision against the peer's window, the path's window and the guard ([`check`]).
//!
//! | name | rule | type |
//! | --- | --- | --- |
//! | `round-robin` | each open path in turn | [`RoundRobin`] |
//! | `weighted` | shares by configured weight or measured rate | [`Weighted`] |
//! | `min-rtt` | least round trip first | [`MinRtt`] |
//! | `daps` | data is to arrive in order | [`Daps`] |
//! | `daps-lcm` | the same, strictly by time | [`DapsLcm`] |
//! | `redundant` | copies on several paths | [`Redundant`] |
//! | `backup` | cheapest first | [`Backup`] |
//!
//! To write one of your own, see [`CustomScheduler`].

mod backup;
mod check;
mod custom;
mod daps;
mod daps_lcm;
mod decision;
mod delay_plan;
#[cfg(test)]
mod kit;
mod min_rtt;
mod names;
mod redundant;
mod retransmission;
mod round_robin;
mod view;
mod weighted;

pub use backup::Backup;
pub use check::{IllegalDecision, check};
pub use custom::CustomScheduler;
pub use daps::{Daps, DapsOptions, WhenBlocked};
pub use daps_lcm::DapsLcm;
pub use decision::{Action, Decision, PathSet, Reason};
pub use delay_plan::{Capacity, PlanOptions, Windows};
pub use min_rtt::MinRtt;
pub(crate) use names::edits;
pub use names::{SchedulerOptions, UnknownScheduler};
pub use redundant::Redundant;
pub use retransmission::RetransmissionPolicy;
pub use round_robin::{Quota, RoundRobin};
pub use view::{DelaySource, Occasion, PathView, View};
pub use weighted::{WeightSource, Weighted};

use ropewalk_base::PathId;

/// The guide, so that its code is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../../../docs/guides/write-a-scheduler.md")]
struct Guide;

/// What was really sent, told to the scheduler after the fact.
#[derive(Clone, Copy, Debug)]
pub struct SentReport {
    /// On which path.
    pub path: PathId,
    /// From which position of the unassigned queue.
    pub position: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// The contract of a scheduler.
pub trait Schedule {
    /// Decides on the next chunk. Called again after each chunk until it answers `Wait` or
    /// `Blocked`. It must not answer `Wait` or `Blocked` for ever while the only path that it
    /// hopes for stays closed: it is asked again at every acknowledgement and timer.
    fn decide(&mut self, view: &View<'_>) -> Decision;

    /// The engine did what the last decision said; with `Copies`, told once per copy. Not told
    /// of what the engine sent without asking.
    fn on_sent(&mut self, _sent: &SentReport) {}
}

/// The schedulers that are built in, and the guest.
#[derive(Clone, Debug)]
pub enum Scheduler {
    /// Each open path in turn.
    RoundRobin(RoundRobin),
    /// Deficit round robin by configured or measured shares.
    Weighted(Weighted),
    /// Least round trip first.
    MinRtt(MinRtt),
    /// Delay-aware, Kuhn et al. (2014).
    Daps(Daps),
    /// Delay-aware, strictly by time, Sarwar et al. (2013).
    DapsLcm(DapsLcm),
    /// Copies on several paths.
    Redundant(Redundant),
    /// Strict priority by cost.
    Backup(Backup),
    /// A guest.
    Custom(Box<dyn CustomScheduler>),
}

impl Scheduler {
    /// Whether the oldest unacknowledged chunk goes again, on a path that has not carried it, while
    /// the peer's window shuts out everything.
    pub fn resends_when_blocked(&self) -> bool {
        match self {
            Self::Daps(s) => s.when_blocked() == WhenBlocked::ResendOldest,
            Self::DapsLcm(s) => s.when_blocked() == WhenBlocked::ResendOldest,
            Self::Custom(s) => s.resends_when_blocked(),
            _ => false,
        }
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::RoundRobin(RoundRobin::default())
    }
}

impl Schedule for Scheduler {
    #[inline]
    fn decide(&mut self, view: &View<'_>) -> Decision {
        match self {
            Self::RoundRobin(s) => s.decide(view),
            Self::Weighted(s) => s.decide(view),
            Self::MinRtt(s) => s.decide(view),
            Self::Daps(s) => s.decide(view),
            Self::DapsLcm(s) => s.decide(view),
            Self::Redundant(s) => s.decide(view),
            Self::Backup(s) => s.decide(view),
            Self::Custom(s) => s.decide(view),
        }
    }

    #[inline]
    fn on_sent(&mut self, sent: &SentReport) {
        match self {
            Self::RoundRobin(s) => s.on_sent(sent),
            Self::Weighted(s) => s.on_sent(sent),
            Self::MinRtt(s) => s.on_sent(sent),
            Self::Daps(s) => s.on_sent(sent),
            Self::DapsLcm(s) => s.on_sent(sent),
            Self::Redundant(s) => s.on_sent(sent),
            Self::Backup(s) => s.on_sent(sent),
            Self::Custom(s) => s.on_sent(sent),
        }
    }
}
