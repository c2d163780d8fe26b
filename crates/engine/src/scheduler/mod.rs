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
//! | `daps` | data arrives in order | [`Daps`] |
//! | `daps-lcm` | the same, strictly by time | [`DapsLcm`] |
//! | `redundant` | copies on several paths | [`Redundant`] |
//! | `backup` | cheapest first | [`Backup`] |
//! | `bas` | least outstanding over bandwidth | [`Bas`] |
//! | `reception-index` | the same, computed for each decision | [`ReceptionIndex`] |
//! | `ods` | the first chunk that no other path delivers sooner | [`Ods`] |
//! | `otias` | soonest arrival behind each path's queue | [`Otias`] |
//! | `sttf` | the same, with the growth of windows | [`Sttf`] |
//! | `blest` | least round trip, unless it would block | [`Blest`] |
//! | `ecf` | least round trip, unless waiting is quicker | [`Ecf`] |
//! | `stms` | slow paths send a tuned gap ahead | [`Stms`] |
//! | `linux` | shortest queue in time | [`Linux`] |
//! | `lay` | chunks arrive when they are due | [`Lay`] |
//!
//! To write a custom scheduler, see [`CustomScheduler`].

mod backup;
mod bas;
mod blest;
mod check;
mod custom;
mod daps;
mod daps_lcm;
mod decision;
mod delay_plan;
mod ecf;
#[cfg(test)]
mod kit;
mod lay;
mod linux;
mod min_rtt;
mod names;
mod ods;
mod opportunistic;
mod otias;
mod queues;
mod reception_index;
mod redundant;
mod retransmission;
mod round_robin;
mod slots;
mod stms;
mod sttf;
mod view;
mod waiting;
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
pub use linux::Linux;
pub use min_rtt::MinRtt;
pub use names::{SchedulerOptions, UnknownScheduler};
pub use ods::Ods;
pub use opportunistic::{BlockingMitigation, resend_on};
pub use otias::{Otias, OtiasForm};
pub use reception_index::ReceptionIndex;
pub use redundant::Redundant;
pub use retransmission::RetransmissionPolicy;
pub use round_robin::{Quota, RoundRobin};
pub use stms::{Stms, StmsOptions};
pub use sttf::Sttf;
pub use view::{DecisionKind, PathView, View};
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

/// The interface of a scheduler.
pub trait Schedule {
    /// Decides on the next chunk. The engine calls this again after each chunk until the scheduler returns
    /// `Wait` or `Blocked`, and then at every acknowledgement and timer. A scheduler must not return `Wait`
    /// or `Blocked` for ever while the path that it waits for stays closed.
    fn decide(&mut self, view: &View<'_>) -> Decision;

    /// Reports that the engine carried out the last decision; with `Copies`, once per copy. Data that the
    /// engine sends without a decision is not reported.
    fn on_sent(&mut self, _sent: &SentReport) {}
}

/// A built-in or custom scheduler.
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
    /// Least outstanding over bandwidth, Casetti and Gaiotto (2004).
    Bas(Bas),
    /// The same, computed for each decision, Fiore et al. (2007).
    ReceptionIndex(ReceptionIndex),
    /// On demand, Wallace and Shami (2012).
    Ods(Ods),
    /// Soonest arrival behind each path's queue, Yang, Wang and Amer (2014).
    Otias(Otias),
    /// Shortest transfer time first, Hurtig et al. (2018).
    Sttf(Sttf),
    /// Blocking estimation, Ferlin et al. (2016).
    Blest(Blest),
    /// Earliest completion first, Lim et al. (2017).
    Ecf(Ecf),
    /// Slide together, Shi et al. (2018).
    Stms(Stms),
    /// Shortest queue in time, Linux MPTCP since 5.x.
    Linux(Linux),
    /// Chunks arrive when they are due, Ropewalk's own scheduler.
    Lay(Lay),
    /// A custom scheduler.
    Custom(Box<dyn CustomScheduler>),
}

impl Scheduler {
    /// Whether the oldest unacknowledged chunk is sent again, on a path that has not carried it, while the
    /// receive window is closed.
    pub fn resends_when_blocked(&self) -> bool {
        match self {
            Self::Daps(s) => s.when_blocked() == WhenBlocked::ResendOldest,
            Self::DapsLcm(s) => s.when_blocked() == WhenBlocked::ResendOldest,
            Self::Custom(s) => s.resends_when_blocked(),
            _ => false,
        }
    }
}

impl Scheduler {
    /// Whether the scheduler shares the receive window among the paths itself. The guard then only checks
    /// what the bundle delivers.
    #[inline]
    pub const fn shares_window(&self) -> bool {
        matches!(self, Self::Lay(_))
    }

    /// Whether the decision of a custom scheduler is pending; see [`CustomScheduler::is_thinking`].
    #[inline]
    pub fn is_thinking(&self) -> bool {
        matches!(self, Self::Custom(guest) if guest.is_thinking())
    }

    /// The reason why a custom scheduler cannot continue, if there is one.
    pub fn fault(&self) -> Option<String> {
        match self {
            Self::Custom(guest) => guest.fault(),
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
        let Self::Custom(guest) = self else {
            debug_assert!(false, "illegal decision {decision:?}: {why}");
            return false;
        };
        guest.on_refused(&why);
        false
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
            Self::Bas(s) => s.decide(view),
            Self::ReceptionIndex(s) => s.decide(view),
            Self::Ods(s) => s.decide(view),
            Self::Otias(s) => s.decide(view),
            Self::Sttf(s) => s.decide(view),
            Self::Blest(s) => s.decide(view),
            Self::Ecf(s) => s.decide(view),
            Self::Stms(s) => s.decide(view),
            Self::Linux(s) => s.decide(view),
            Self::Lay(s) => s.decide(view),
            Self::Custom(s) => s.decide(view),
        }
    }

    // Inlined by force: otherwise the report would be passed through memory.
    #[inline(always)]
    fn on_sent(&mut self, sent: &SentReport) {
        match self {
            Self::RoundRobin(s) => s.on_sent(sent),
            Self::Weighted(s) => s.on_sent(sent),
            Self::MinRtt(s) => s.on_sent(sent),
            Self::Daps(s) => s.on_sent(sent),
            Self::DapsLcm(s) => s.on_sent(sent),
            Self::Redundant(s) => s.on_sent(sent),
            Self::Backup(s) => s.on_sent(sent),
            Self::Bas(s) => s.on_sent(sent),
            Self::ReceptionIndex(s) => s.on_sent(sent),
            Self::Ods(s) => s.on_sent(sent),
            Self::Otias(s) => s.on_sent(sent),
            Self::Sttf(s) => s.on_sent(sent),
            Self::Blest(s) => s.on_sent(sent),
            Self::Ecf(s) => s.on_sent(sent),
            Self::Stms(s) => s.on_sent(sent),
            Self::Linux(s) => s.on_sent(sent),
            Self::Lay(s) => s.on_sent(sent),
            Self::Custom(s) => s.on_sent(sent),
        }
    }
}
