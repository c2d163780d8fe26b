//! Deadlines.

use ropewalk_base::{Duration, PathId, Time};

use super::super::subflow::Phase;
use super::{Session, State};
use crate::path::PathStatus;

impl Session {
    /// The latest time for the next call of [`Session::handle_timeout`].
    pub fn next_deadline(&self) -> Option<Time> {
        let mut next = Time::FAR_FUTURE;
        // Without a branch per timer, because this runs after every input.
        let mut consider = |at: Option<Time>| next = next.min(at.unwrap_or(Time::FAR_FUTURE));
        consider(self.sender.wait_until);
        if self.ending.wanted && !self.ending.acknowledged {
            consider(self.ending.sent.map(|(at, _)| at));
        }
        for subflow in &self.sender.paths {
            match subflow.phase {
                Phase::Open => {
                    consider(subflow.timer);
                    consider(subflow.received.deadline());
                    consider(self.loss_deadline(subflow));
                }
                Phase::SynSent(opening) | Phase::SynReceived(opening) => {
                    consider(Some(opening.due))
                }
                Phase::Closed | Phase::Ended => {}
            }
        }
        (next != Time::FAR_FUTURE).then_some(next)
    }

    /// Handles all timers that have expired.
    pub fn handle_timeout(&mut self, now: Time) {
        self.sender.drained = false;
        if self.sender.wait_until.is_some_and(|at| at <= now) {
            self.sender.wait_until = None;
            if self.state == State::Closed && self.opens {
                self.begin(now);
            }
        }
        for path in self.ids() {
            match self.sender.paths[path.index()].phase {
                Phase::Open => self.on_subflow_timers(now, path),
                Phase::SynSent(opening) | Phase::SynReceived(opening) if opening.due <= now => {
                    self.on_opening_timer(now, path);
                }
                _ => {}
            }
        }
    }

    fn on_subflow_timers(&mut self, now: Time, path: PathId) {
        let subflow = &mut self.sender.paths[path.index()];
        subflow.received.on_timer(now);
        if subflow.timer.is_some_and(|at| at <= now) {
            match self.model {
                None => self.on_timeout(now, path),
                Some(_) => self.on_model_timeout(now, path),
            }
        }
        let deadline = self.loss_deadline(&self.sender.paths[path.index()]);
        if deadline.is_some_and(|at| at <= now) {
            self.on_loss_timer(now, path);
        }
    }

    /// The longest time that the timer of `path` may run. A failed path is tried again soon enough to notice
    /// its return.
    #[inline]
    pub(super) fn timer_most(&self, path: PathId) -> Duration {
        match self.sender.paths[path.index()].tx.state.status() {
            PathStatus::Active | PathStatus::Unconfirmed => Duration::MAX,
            PathStatus::PotentiallyFailed | PathStatus::Inactive => self.config.probe_interval,
        }
    }
}
