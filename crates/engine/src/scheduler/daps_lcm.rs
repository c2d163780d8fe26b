//! `daps-lcm`: the list of delay-aware scheduling followed strictly by time (Sarwar et al., 2013,
//! Algorithm 3).

use ropewalk_base::{Duration, PathId, Time};

use super::daps::{DapsOptions, WhenBlocked, in_slow_start, oldest_first, out_of_reach, unplanned};
use super::delay_plan::DelayPlan;
use super::{Decision, PathView, Reason, Schedule, SentReport, View};

/// Maximum wait before the next decision. Reached only with absurd delays.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Every D_i, path i sends its next entry of the list. A new list is made after each period. There are no
/// special cases: an open path does not send before its entry is due, so a window that grows within a
/// period is used only from the next period on. Suitable for links with steady windows.
#[derive(Clone, Debug)]
pub struct DapsLcm {
    options: DapsOptions,
    plan: DelayPlan,
    /// When the plan was made, and under which epoch.
    made: Option<(Time, u64)>,
    /// Whether the last decision took a chunk from the plan's queue.
    planned: bool,
}

/// Options of an open path at this time.
enum Turn {
    /// Send the chunk at this position.
    Now(u64),
    /// Send at this time.
    Later(Time),
    /// The entry of the path is out of reach.
    Never,
}

impl DapsLcm {
    /// Creates the scheduler with these options.
    pub fn new(options: DapsOptions) -> Self {
        Self { options, plan: DelayPlan::new(options.plan), made: None, planned: false }
    }

    /// The measure while the receive window is closed.
    pub const fn when_blocked(&self) -> WhenBlocked {
        self.options.when_blocked
    }

    /// The start of the current period. Begins a new period if the old one is over or invalid.
    fn period_start(&mut self, view: &View<'_>) -> Time {
        match self.made {
            Some((start, epoch))
                if epoch == view.epoch
                    && self.plan.covers(view)
                    && view.now < start.saturating_add(self.plan.period()) =>
            {
                start
            }
            _ => {
                self.plan.renew(view);
                self.made = Some((view.now, view.epoch));
                view.now
            }
        }
    }

    fn turn(&mut self, view: &View<'_>, path: &PathView, start: Time) -> Turn {
        let over = start.saturating_add(self.plan.period());
        let Some(position) = self.plan.position(path.id) else {
            return Turn::Later(over);
        };
        let due = self.plan.due(path.id).map_or(over, |after| start.saturating_add(after));
        match view.admit(position) {
            _ if due > view.now => Turn::Later(due.min(over)),
            Some(position) => Turn::Now(position),
            None => Turn::Never,
        }
    }

    fn follow(&mut self, view: &View<'_>) -> Decision {
        let start = self.period_start(view);
        let mut now: Option<(u64, PathId)> = None;
        let mut later: Option<Time> = None;
        for path in view.open() {
            if !self.plan.members().contains(path.id) {
                continue;
            }
            match self.turn(view, path, start) {
                Turn::Now(position) if now.is_none_or(|(least, _)| position < least) => {
                    now = Some((position, path.id));
                }
                Turn::Later(until) => later = Some(later.map_or(until, |l| l.min(until))),
                Turn::Now(_) | Turn::Never => {}
            }
        }
        match (now, later) {
            (Some((position, path)), _) => Decision::send(path, position, Reason::OnSchedule),
            (None, later) => self.off_schedule(view, later),
        }
    }

    /// Paths without an estimate are in no plan. They get data, and thereby an estimate, when the others
    /// cannot send.
    fn off_schedule(&self, view: &View<'_>, later: Option<Time>) -> Decision {
        let latest = view.now.saturating_add(LONGEST_WAIT);
        unplanned(view, self.plan.members()).unwrap_or_else(|| match later {
            Some(until) => Decision::wait(until.min(latest), Reason::NotYetDue),
            None => out_of_reach(view),
        })
    }
}

impl Schedule for DapsLcm {
    #[inline]
    fn decide(&mut self, view: &View<'_>) -> Decision {
        self.planned = view.is_new_data();
        if !self.planned {
            oldest_first(view)
        } else if view.takeable() == 0 {
            view.nobody()
        } else {
            in_slow_start(view, &self.options).unwrap_or_else(|| self.follow(view))
        }
    }

    #[inline]
    fn on_sent(&mut self, sent: &SentReport) {
        if self.planned {
            self.plan.take(sent.path, sent.position);
        }
    }

    fn resends_when_blocked(&self) -> bool {
        self.when_blocked() == WhenBlocked::ResendOldest
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims {
            predicts_arrivals: true,
            trusts_estimates: true,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{CHUNK, path_view, view};
    use super::super::{Action, Capacity, PlanOptions};
    use super::*;

    /// A full window per forward delay, as in the paper.
    fn whole_windows() -> DapsOptions {
        let plan = PlanOptions { capacity: Capacity::Window, ..PlanOptions::default() };
        DapsOptions { plan, ..DapsOptions::default() }
    }

    /// Wide windows; batches of 2 and 5 chunks, every 10 and 100 ms.
    fn table() -> [PathView; 2] {
        let path = |id, window, millis| PathView {
            window: window * CHUNK,
            forward_delay: Some(Duration::from_millis(millis)),
            ..path_view(id)
        };
        [path(0, 2, 10), path(1, 5, 100)]
    }

    /// The chunks sent at this time, as (path, position), and the decision that ends the burst.
    fn burst(lcm: &mut DapsLcm, millis: u64) -> (Vec<(u8, u64)>, Decision) {
        let paths = table();
        let view = View { now: Time::from_millis(millis), ..view(&paths) };
        let mut sent = Vec::new();
        loop {
            let decision = lcm.decide(&view);
            let Action::Send { path, position } = decision.action else {
                return (sent, decision);
            };
            lcm.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
            sent.push((path.0, position));
        }
    }

    #[test]
    fn each_entry_waits_for_its_multiple_of_the_delay() {
        let mut lcm = DapsLcm::new(whole_windows());
        let next = |millis| Decision::wait(Time::from_millis(millis), Reason::NotYetDue);
        let first = vec![(0, 0), (0, 0), (1, 18), (1, 18), (1, 18), (1, 18), (1, 18)];
        assert_eq!(burst(&mut lcm, 0), (first.clone(), next(10)));
        assert_eq!(burst(&mut lcm, 7), (vec![], next(10)));
        for n in 1..10 {
            assert_eq!(burst(&mut lcm, n * 10), (vec![(0, 0); 2], next(n * 10 + 10)));
        }
        assert_eq!(burst(&mut lcm, 100), (first, next(110)), "the next period");
    }

    #[test]
    fn a_loss_begins_a_new_period() {
        let mut lcm = DapsLcm::new(whole_windows());
        burst(&mut lcm, 0);
        let paths = table();
        let view = View { now: Time::from_millis(5), epoch: 1, ..view(&paths) };
        assert_eq!(lcm.decide(&view), Decision::send(PathId(0), 0, Reason::OnSchedule));
    }
}
