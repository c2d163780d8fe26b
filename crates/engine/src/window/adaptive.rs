//! Limits as in static management, found anew while running from what is measured.

use ropewalk_base::{Duration, PathId, Rate, Time};

use super::ceiling::{Ceiling, window_most};
use super::fixed;
use super::manager::{Budget, LimitAdvisor, ManagedPath};

/// What was measured of a path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeasuredPath {
    /// Delivery rate.
    pub rate: Rate,
    /// Round trip without queueing.
    pub round_trip: Duration,
    /// Share of the transmissions that were lost of late; above 0 also where none was.
    pub loss: f64,
}

/// Limits are looked at so often.
const EVERY: Duration = Duration::from_millis(500);
/// Share of the counts that is kept from one look to the next: the memory is ten seconds long.
const KEPT: f64 = 0.95;
/// Transmissions before a path's loss is believed.
const ENOUGH: f64 = 200.0;

/// Windows together may exceed the buffer by this: flow control then gives the room of a window that
/// was halved to another path at once, where a window that had been cut would first have to grow.
const OVERBOOKED: f64 = 1.25;

/// Losses among transmissions of late.
#[derive(Clone, Copy, Debug, Default)]
struct LossMemory {
    sent_before: u64,
    lost_before: u64,
    sent: f64,
    lost: f64,
}

impl LossMemory {
    fn update(&mut self, path: &ManagedPath) {
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        self.sent = self.sent * KEPT + since(path.sent, self.sent_before);
        self.lost = self.lost * KEPT + since(path.lost, self.lost_before);
        (self.sent_before, self.lost_before) = (path.sent, path.lost);
    }

    /// With half a loss more than were seen: where none was, there may be one soon.
    fn share(&self) -> Option<f64> {
        (self.sent >= ENOUGH).then(|| (self.lost + 0.5) / (self.sent + 1.0))
    }
}

/// Adaptive management.
#[derive(Clone, Debug)]
pub struct Adaptive {
    advisor: Box<dyn LimitAdvisor>,
    limits: Option<Vec<u64>>,
    memory: Vec<LossMemory>,
    ceilings: Vec<Ceiling>,
    next: Time,
}

impl Adaptive {
    /// No limits until enough is known to ask `advisor` for some.
    pub const fn new(advisor: Box<dyn LimitAdvisor>) -> Self {
        Self { advisor, limits: None, memory: Vec::new(), ceilings: Vec::new(), next: Time::ZERO }
    }

    /// The limits now, bytes.
    pub fn limits(&self) -> Option<&[u64]> {
        self.limits.as_deref()
    }

    pub(super) fn fit(
        &mut self,
        now: Time,
        grown: PathId,
        budget: &Budget,
        paths: &mut [ManagedPath],
    ) {
        let i = grown.index();
        self.ceilings.resize(paths.len(), Ceiling::UNKNOWN);
        self.ceilings[i].note(now, &paths[i], budget.chunk);
        if now >= self.next {
            self.next = now + EVERY;
            self.look(budget, paths);
        }
        let Some(limits) = &self.limits else { return };
        let most = window_most(i, budget.buffer, budget.chunk, paths, &self.ceilings);
        if let Some(most) = most {
            paths[i].window = paths[i].window.min(most.max(limits[i]));
        }
        let buffer = (budget.buffer as f64 * OVERBOOKED) as u64;
        fixed::share(grown, &Budget { buffer, ..*budget }, limits, paths);
    }

    fn look(&mut self, budget: &Budget, paths: &[ManagedPath]) {
        self.memory.resize(paths.len(), LossMemory::default());
        self.memory.iter_mut().zip(paths).for_each(|(memory, path)| memory.update(path));
        let measured = |((path, memory), ceiling): ((&ManagedPath, &LossMemory), &Ceiling)| {
            Some(MeasuredPath {
                rate: ceiling.rate().or(path.rate)?,
                round_trip: path.round_trip?,
                loss: memory.share()?,
            })
        };
        let noted = paths.iter().zip(&self.memory).zip(&self.ceilings);
        let known: Option<Vec<_>> = noted.map(measured).collect();
        let Some(known) = known else { return };
        if let Some(better) = self.advisor.advise(budget, &known, self.limits.as_deref()) {
            self.limits = Some(better);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::manager::tests::{CHUNK, budget, path, windows};
    use super::*;

    /// Gives all to the first path as soon as the second loses more than one in a hundred.
    #[derive(Clone)]
    struct Strict;

    impl LimitAdvisor for Strict {
        fn advise(
            &mut self,
            budget: &Budget,
            paths: &[MeasuredPath],
            current: Option<&[u64]>,
        ) -> Option<Vec<u64>> {
            let bad = paths[1].loss > 0.01;
            let share = if bad { budget.buffer - budget.chunk } else { budget.buffer / 2 };
            let limits = vec![share, budget.buffer - share];
            (current != Some(&limits)).then_some(limits)
        }

        fn clone_box(&self) -> Box<dyn LimitAdvisor> {
            Box::new(self.clone())
        }
    }

    #[test]
    fn limits_follow_the_loss_that_is_measured() {
        let mut adaptive = Adaptive::new(Box::new(Strict));
        let mut paths = [path(20, 40, 70), path(20, 40, 70)];
        adaptive.fit(Time::ZERO, PathId(0), &budget(100), &mut paths);
        assert_eq!((adaptive.limits(), windows(&paths)), (None, vec![70, 70]), "nothing known");
        let mut now = Time::ZERO;
        for (lost_per_look, limit) in [(0, 50), (20, 99), (0, 50)] {
            for _ in 0..200 {
                now += EVERY;
                paths.iter_mut().for_each(|p| p.sent += 500);
                paths[1].lost += lost_per_look;
                adaptive.fit(now, PathId(0), &budget(100), &mut paths);
            }
            assert_eq!(adaptive.limits().map(|l| l[0] / CHUNK), Some(limit));
        }
    }
}
