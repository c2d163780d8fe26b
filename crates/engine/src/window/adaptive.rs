//! Limits as in static management, found anew while running from what is measured.

use ropewalk_base::{Duration, PathId, Rate, Time};

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
/// Share of the counts that is kept from one look to the next, in the memory that is believed: it is
/// two minutes long, for at one loss in a thousand packets ten seconds hold a handful of losses, and
/// limits that follow their luck cost a percent.
const KEPT: f64 = 1.0 - 1.0 / 240.0;
/// The same in the memory that notices a change: ten seconds.
const KEPT_OF_LATE: f64 = 0.95;
/// So many standard deviations from what the long memory expects are a change.
const CHANGE: f64 = 3.0;
/// So many measured pipes a path may have while the buffer has room. A window that stops at the pipe
/// leaves it half empty after each loss, and never shows that a path has become faster.
const BEYOND: f64 = 1.25;
/// Transmissions before a path's loss is believed.
const ENOUGH: f64 = 200.0;

/// Transmissions that fade away, and those of them that were lost.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sent: f64,
    lost: f64,
}

impl Counts {
    fn add(&mut self, kept: f64, sent: f64, lost: f64) {
        self.sent = self.sent * kept + sent;
        self.lost = self.lost * kept + lost;
    }

    /// With half a loss more than were seen: where none was, there may be one soon.
    fn share(&self) -> f64 {
        (self.lost + 0.5) / (self.sent + 1.0)
    }
}

/// Losses among transmissions: a long memory, which begins anew when the last seconds contradict it.
#[derive(Clone, Copy, Debug, Default)]
struct LossMemory {
    sent_before: u64,
    lost_before: u64,
    long: Counts,
    of_late: Counts,
}

impl LossMemory {
    fn update(&mut self, path: &ManagedPath) {
        let since = |now: u64, before: u64| now.saturating_sub(before) as f64;
        let (sent, lost) = (since(path.sent, self.sent_before), since(path.lost, self.lost_before));
        (self.sent_before, self.lost_before) = (path.sent, path.lost);
        self.long.add(KEPT, sent, lost);
        self.of_late.add(KEPT_OF_LATE, sent, lost);
        // Losses are rare and come by themselves: their number varies as its own root (Poisson).
        let expected = self.long.share() * self.of_late.sent;
        if (self.of_late.lost - expected).abs() > CHANGE * (expected + 1.0).sqrt() {
            self.long = self.of_late;
        }
    }

    fn share(&self) -> Option<f64> {
        (self.long.sent >= ENOUGH).then(|| self.long.share())
    }
}

/// Adaptive management.
#[derive(Clone, Debug)]
pub struct Adaptive {
    advisor: Box<dyn LimitAdvisor>,
    limits: Option<Vec<u64>>,
    memory: Vec<LossMemory>,
    next: Time,
}

impl Adaptive {
    /// No limits until enough is known to ask `advisor` for some.
    pub const fn new(advisor: Box<dyn LimitAdvisor>) -> Self {
        Self { advisor, limits: None, memory: Vec::new(), next: Time::ZERO }
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
        if now >= self.next {
            self.next = now + EVERY;
            self.look(budget, paths);
        }
        if let Some(limits) = &self.limits {
            fixed::fit(grown, budget, limits, BEYOND, paths);
        }
    }

    fn look(&mut self, budget: &Budget, paths: &[ManagedPath]) {
        self.memory.resize(paths.len(), LossMemory::default());
        self.memory.iter_mut().zip(paths).for_each(|(memory, path)| memory.update(path));
        let measured = |(path, memory): (&ManagedPath, &LossMemory)| {
            Some(MeasuredPath {
                rate: path.rate?,
                round_trip: path.round_trip?,
                loss: memory.share()?,
            })
        };
        let known: Option<Vec<_>> = paths.iter().zip(&self.memory).map(measured).collect();
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

    #[test]
    fn luck_moves_the_loss_little_and_a_change_moves_it_within_seconds() {
        let mut memory = LossMemory::default();
        let mut path = path(20, 40, 70);
        let mut look = |lost: u64| {
            path.sent += 500;
            path.lost += lost;
            memory.update(&path);
            memory.share()
        };
        // One loss in a thousand, in clumps of three.
        for i in 0..1200 {
            let share = look(if i % 6 == 0 { 3 } else { 0 }).expect("500 were sent");
            assert!(i < 240 || (share / 1e-3 - 1.0).abs() < 0.1, "look {i}: {share}");
        }
        let looks = (1..100).find(|_| look(10).is_some_and(|share| share > 5e-3));
        assert!(
            looks.is_some_and(|looks| looks <= 10),
            "one in fifty is seen after {looks:?} looks"
        );
        let looks = (1..100).find(|_| look(0).is_some_and(|share| share < 2e-3));
        assert!(looks.is_some_and(|looks| looks <= 60), "none is seen after {looks:?} looks");
    }
}
