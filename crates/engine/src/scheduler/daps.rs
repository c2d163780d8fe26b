//! `daps`: delay-aware packet scheduling (Kuhn et al., 2014), on the list of Sarwar et al. (2013).

use ropewalk_base::{PathId, Time};

use super::delay_plan::{DelayPlan, Next, PlanOptions};
use super::min_rtt::round_trip;
use super::{Decision, PathSet, PathView, Reason, Schedule, SentReport, View};

/// The measure while the receive window is closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenBlocked {
    /// Wait until the window opens.
    #[default]
    Nothing,
    /// Retransmit the oldest unacknowledged chunk on a path that has not carried it. This costs a
    /// duplicate and frees the window a round trip of the slow path sooner.
    ResendOldest,
}

/// Options of `daps`, and where applicable of `daps-lcm`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DapsOptions {
    /// Options of the list.
    pub plan: PlanOptions,
    /// The engine's measure while the receive window is closed. Default none.
    pub when_blocked: WhenBlocked,
    /// Whether the list is followed while a path is in slow start. Default yes. Otherwise the path with
    /// the lowest round trip is taken until every window has passed its threshold; a transfer without
    /// losses may then never be delay-aware.
    pub in_slow_start: bool,
}

impl Default for DapsOptions {
    fn default() -> Self {
        Self {
            plan: PlanOptions::default(),
            when_blocked: WhenBlocked::default(),
            in_slow_start: true,
        }
    }
}

/// Makes data arrive in order: a slow path takes data from far beyond the head of the queue, which is due
/// when it arrives.
#[derive(Clone, Debug)]
pub struct Daps {
    options: DapsOptions,
    plan: DelayPlan,
    /// When the plan was made, and under which epoch.
    made: Option<(Time, u64)>,
    /// Whether the last decision took a chunk from the plan's queue.
    planned: bool,
}

impl Daps {
    /// Creates the scheduler with these options.
    pub fn new(options: DapsOptions) -> Self {
        Self { options, plan: DelayPlan::new(options.plan), made: None, planned: false }
    }

    /// The measure while the receive window is closed.
    pub const fn when_blocked(&self) -> WhenBlocked {
        self.options.when_blocked
    }

    fn renew(&mut self, view: &View<'_>) {
        self.plan.renew(view);
        self.made = Some((view.now, view.epoch));
    }

    /// Kuhn's three cases. If several paths are open, the plan is renewed at most once per instant, so
    /// that a burst at one instant follows one plan to the end.
    fn follow(&mut self, view: &View<'_>) -> Decision {
        let mut open = self.plan.open(view);
        let new = match self.made {
            Some((_, epoch)) if epoch != view.epoch || !self.plan.covers(view) => true,
            Some((at, _)) => open.len() > 1 && at < view.now,
            None => true,
        };
        if new {
            self.renew(view);
            open = self.plan.open(view);
        }
        match self.plan.fastest() {
            Some(fastest) if open == PathSet::EMPTY.with(fastest) => self.fast_only(view, fastest),
            _ if new => self.on_schedule(view, open, Reason::NewSchedule),
            _ => self.on_schedule(view, open, Reason::OnSchedule),
        }
    }

    /// Only the fast path has capacity: it takes the head of the queue, regardless of the path planned
    /// for it.
    fn fast_only(&mut self, view: &View<'_>, fastest: PathId) -> Decision {
        if self.plan.position(fastest).is_none() {
            self.renew(view);
        }
        match view.admit(0) {
            Some(position) => Decision::send(fastest, position, Reason::FastFromHead),
            None => self.off_schedule(view),
        }
    }

    /// The open path whose entry comes first in the list takes it.
    #[inline]
    fn on_schedule(&mut self, view: &View<'_>, open: PathSet, reason: Reason) -> Decision {
        match self.plan.next_among(view, open) {
            Next::Take(path, position) => Decision::send(path, position, reason),
            Next::OutOfReach => self.off_schedule(view),
            Next::ListEnds => {
                self.renew(view);
                match self.plan.next(view) {
                    Next::Take(path, position) => {
                        Decision::send(path, position, Reason::NewSchedule)
                    }
                    Next::OutOfReach | Next::ListEnds => self.off_schedule(view),
                }
            }
        }
    }

    /// Paths without an estimate are in no plan. They get data, and thereby an estimate, when the others
    /// cannot send.
    fn off_schedule(&self, view: &View<'_>) -> Decision {
        unplanned(view, self.plan.members()).unwrap_or_else(|| out_of_reach(view))
    }
}

impl Schedule for Daps {
    #[inline]
    fn decide(&mut self, view: &View<'_>) -> Decision {
        self.planned = view.is_new_data();
        if !self.planned {
            return oldest_first(view);
        }
        if view.takeable() == 0 {
            return view.nobody();
        }
        in_slow_start(view, &self.options).unwrap_or_else(|| self.follow(view))
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
        super::conformance::Claims { predicts_arrivals: true, ..Default::default() }
    }
}

/// The head of the queue, for the nearest open path that is not in the plan.
pub(super) fn unplanned(view: &View<'_>, planned: PathSet) -> Option<Decision> {
    let open = view.open_for_head().filter(|p| !planned.contains(p.id));
    let path = open.min_by_key(|p| round_trip(p))?;
    Some(Decision::send(path.id, 0, Reason::NoEstimate))
}

/// The decision that the options require instead of following a plan, if any.
#[inline]
pub(super) fn in_slow_start(view: &View<'_>, options: &DapsOptions) -> Option<Decision> {
    let starting = |p: &PathView| p.usable && p.cwnd < p.ssthresh;
    let aside = !options.in_slow_start && view.paths.iter().any(starting);
    aside.then(|| least_rtt(view))
}

/// The decision if no path may take its chunk, with the reason for the open paths.
pub(super) fn out_of_reach(view: &View<'_>) -> Decision {
    let reason = if view.takeable() == 0 {
        return view.nobody();
    } else if view.open().next().is_none() {
        Reason::AllFull
    } else if view.sendable < view.backlog_chunks {
        Reason::WindowBlocked
    } else {
        // The rest of the queue is so short that the faster paths deliver it sooner.
        Reason::FasterSoon
    };
    Decision::blocked(reason)
}

/// A lost chunk is the oldest one: it takes the open path that delivers it soonest.
pub(super) fn oldest_first(view: &View<'_>) -> Decision {
    let soonest = |p: &&PathView| (p.forward_delay.is_none(), p.forward_delay, round_trip(p));
    match view.open().min_by_key(soonest) {
        Some(path) => Decision::send(path.id, 0, Reason::FastFromHead),
        None => view.nobody(),
    }
}

fn least_rtt(view: &View<'_>) -> Decision {
    match view.open_for_head().min_by_key(|p| round_trip(p)) {
        Some(path) => Decision::send(path.id, 0, Reason::LeastRtt),
        None => view.nobody(),
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Duration;

    use super::super::conformance::{CHUNK, path_view, view};
    use super::super::{Action, DecisionKind, Windows};
    use super::*;

    const FAST: PathId = PathId(0);
    const SLOW: PathId = PathId(1);

    /// Windows of 2 and 5 chunks, delays of 10 and 100 ms (Sarwar et al., 2013, Table II).
    fn table() -> [PathView; 2] {
        let path = |id, window, millis| PathView {
            window: window * CHUNK,
            cwnd: window * CHUNK,
            ssthresh: window * CHUNK,
            forward_delay: Some(Duration::from_millis(millis)),
            srtt: Some(Duration::from_millis(millis)),
            ..path_view(id)
        };
        [path(0, 2, 10), path(1, 5, 100)]
    }

    fn closed(path: &mut PathView) {
        path.in_flight = path.window;
    }

    fn obey(daps: &mut Daps, view: &View<'_>) -> Decision {
        let decision = daps.decide(view);
        if let Action::Send { path, position } = decision.action {
            daps.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
        }
        decision
    }

    #[test]
    fn kuhns_three_cases() {
        let (mut daps, mut paths) = (Daps::new(DapsOptions::default()), table());
        let several = obey(&mut daps, &view(&paths));
        assert_eq!(several, Decision::send(FAST, 0, Reason::NewSchedule));
        let several = obey(&mut daps, &view(&paths));
        assert_eq!(several, Decision::send(FAST, 0, Reason::OnSchedule), "one plan per instant");

        closed(&mut paths[0]);
        let slow_only = obey(&mut daps, &view(&paths));
        assert_eq!(slow_only, Decision::send(SLOW, 18, Reason::OnSchedule), "the last plan");

        paths[0].in_flight = 0;
        closed(&mut paths[1]);
        let later = View { now: Time::from_millis(20), ..view(&paths) };
        let fast_only = obey(&mut daps, &later);
        assert_eq!(fast_only, Decision::send(FAST, 0, Reason::FastFromHead));

        paths[1].in_flight = 0;
        let several = obey(&mut daps, &View { now: Time::from_millis(30), ..view(&paths) });
        assert_eq!(several, Decision::send(FAST, 0, Reason::NewSchedule), "a later instant");
    }

    #[test]
    fn a_loss_or_a_failure_makes_a_new_plan() {
        let (mut daps, mut paths) = (Daps::new(DapsOptions::default()), table());
        for _ in 0..2 {
            obey(&mut daps, &view(&paths));
        }
        closed(&mut paths[0]);
        let after_loss = View { epoch: 1, ..view(&paths) };
        let expected = Decision::send(SLOW, 20, Reason::NewSchedule);
        assert_eq!(obey(&mut daps, &after_loss), expected, "the first two are unsent again");
        paths[0].usable = false;
        let expected = Decision::send(SLOW, 0, Reason::FastFromHead);
        assert_eq!(obey(&mut daps, &View { epoch: 1, ..view(&paths) }), expected, "it is alone");
    }

    #[test]
    fn a_slow_path_stays_within_the_span() {
        let mut paths = table();
        closed(&mut paths[0]);
        let decide = |sendable, backlog_chunks| {
            let view = View { sendable, backlog_chunks, ..view(&paths) };
            Daps::new(DapsOptions::default()).decide(&view)
        };
        let slow_at = |k| Decision::send(SLOW, k, Reason::NewSchedule);
        assert_eq!(decide(21, 100), slow_at(20));
        assert_eq!(decide(20, 100), Decision::blocked(Reason::WindowBlocked));
        assert_eq!(decide(100, 20), Decision::blocked(Reason::FasterSoon), "the tail");
        assert_eq!(decide(0, 100), Decision::blocked(Reason::WindowBlocked));
        assert_eq!(decide(100, 0), Decision::blocked(Reason::NoData));
    }

    #[test]
    fn a_retransmission_takes_the_nearest_open_path_and_leaves_the_plan_alone() {
        let (mut daps, mut paths) = (Daps::new(DapsOptions::default()), table());
        for _ in 0..2 {
            obey(&mut daps, &view(&paths));
        }
        let occasion = DecisionKind::Retransmission { lost_on: SLOW };
        let lost = View { occasion, sendable: 0, ..view(&paths) };
        assert_eq!(obey(&mut daps, &lost), Decision::send(FAST, 0, Reason::FastFromHead));
        closed(&mut paths[0]);
        let slow = obey(&mut daps, &view(&paths));
        assert_eq!(slow, Decision::send(SLOW, 18, Reason::OnSchedule));
    }

    #[test]
    fn a_path_without_an_estimate_is_tried_when_the_others_are_full() {
        let (mut daps, mut paths) = (Daps::new(DapsOptions::default()), table());
        paths[1].forward_delay = None;
        assert_eq!(daps.decide(&view(&paths)), Decision::send(FAST, 0, Reason::FastFromHead));
        closed(&mut paths[0]);
        assert_eq!(daps.decide(&view(&paths)), Decision::send(SLOW, 0, Reason::NoEstimate));
    }

    #[test]
    fn slow_start_can_be_left_out() {
        let options = DapsOptions { in_slow_start: false, ..DapsOptions::default() };
        let (mut daps, mut paths) = (Daps::new(options), table());
        closed(&mut paths[0]);
        paths[0].ssthresh = u64::MAX;
        assert_eq!(daps.decide(&view(&paths)), Decision::send(SLOW, 0, Reason::LeastRtt));
        paths[0].ssthresh = 0;
        paths[1].ssthresh = 0;
        assert_eq!(daps.decide(&view(&paths)), Decision::send(SLOW, 20, Reason::NewSchedule));
    }

    #[test]
    fn smoothed_windows_reach_the_plan() {
        let plan = PlanOptions { windows: Windows::Smoothed, ..PlanOptions::default() };
        let (mut daps, mut paths) =
            (Daps::new(DapsOptions { plan, ..DapsOptions::default() }), table());
        daps.decide(&view(&paths));
        paths[0].window = 10 * CHUNK;
        closed(&mut paths[0]);
        // (7 x 2 + 10) / 8 = 3 chunks per batch, ten batches.
        let next = View { epoch: 1, ..view(&paths) };
        assert_eq!(daps.decide(&next), Decision::send(SLOW, 30, Reason::NewSchedule));
    }
}
