//! Deadlines.

use ropewalk_base::{PathId, Time};

use super::super::subflow::Phase;
use super::{Session, State};

impl Session {
    /// Latest time for the next call of [`Session::handle_timeout`].
    pub fn next_deadline(&self) -> Option<Time> {
        let mut next = Time::FAR_FUTURE;
        // Branch-free, because this runs after every input.
        let mut consider = |at: Option<Time>| next = next.min(at.unwrap_or(Time::FAR_FUTURE));
        consider(self.sender.wait_until);
        if self.control.ending.wanted && !self.control.ending.acknowledged {
            consider(self.control.ending.sent.map(|(at, _)| at));
        }
        for subflow in &self.sender.paths {
            match subflow.phase {
                Phase::Open => {
                    consider(subflow.timer);
                    consider(subflow.received.deadline());
                    consider(self.sender.loss_deadline(subflow));
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
        self.sender.invalidate_views();
        if self.sender.wait_until.is_some_and(|at| at <= now) {
            self.sender.wait_until = None;
            if self.state == State::Closed && self.handshake.opens {
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
        let deadline = self.sender.loss_deadline(&self.sender.paths[path.index()]);
        if deadline.is_some_and(|at| at <= now) {
            self.sender.on_loss_timer(now, path);
        }
    }
}
