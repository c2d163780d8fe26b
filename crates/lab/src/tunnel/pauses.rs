//! Pauses of an end, which model the threads of `ropewalk tunnel`: packets that arrive during a pause are
//! handled after it.

use ropewalk_base::{Duration, Time};
use ropewalk_tunnel::Moderation;

/// Interval at which an end decides whether it tolerates pauses, as in `ropewalk tunnel`.
const DECIDED_EVERY: Duration = Duration::from_millis(10);

/// The pauses of one end.
#[derive(Clone, Debug, Default)]
pub(super) struct Pauses {
    moderation: Moderation,
    /// Inner packets that have entered or left since the last report to `moderation`.
    passed: u64,
    decided_at: Option<Time>,
    until: Time,
}

impl Pauses {
    /// Whether the end pauses at `now`.
    pub fn is_paused(&self, now: Time) -> bool {
        now < self.until
    }

    /// Time of the end's next action if something is due at `due`.
    pub fn end_for(&self, due: Option<Time>) -> Option<Time> {
        due.map(|at| at.max(self.until))
    }

    /// Counts an inner packet that has entered or left the tunnel.
    pub const fn count(&mut self) {
        self.passed += 1;
    }

    /// Decides on the length of further pauses, at regular intervals. `tolerable`: the maximum. Returns the
    /// length.
    pub fn moderate(&mut self, now: Time, tolerable: Duration) -> Duration {
        if self.decided_at.is_none_or(|at| now.since(at) >= DECIDED_EVERY) {
            self.decided_at = Some(now);
            self.moderation.observe(now, std::mem::take(&mut self.passed), tolerable);
        }
        self.next(now)
    }

    /// Length of a pause that begins now.
    pub fn next(&self, now: Time) -> Duration {
        self.moderation.pause(now)
    }

    /// Begins a pause.
    pub fn begin(&mut self, now: Time) {
        self.until = now + self.next(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// An end that passes on many packets, and begins a pause of 2 ms at 50 ms.
    fn paused() -> Pauses {
        let mut pauses = Pauses::default();
        for now in (0..=50).step_by(5) {
            (0..20).for_each(|_| pauses.count());
            pauses.moderate(Time::from_millis(now), ms(2));
        }
        pauses.begin(Time::from_millis(50));
        pauses
    }

    #[test]
    fn what_is_due_during_a_pause_is_done_after_it_and_what_is_due_later_on_time() {
        let pauses = paused();
        assert!(
            pauses.is_paused(Time::from_millis(51)) && !pauses.is_paused(Time::from_millis(52))
        );
        for (due, acts) in [(51, 52), (60, 60)] {
            let acts = Some(Time::from_millis(acts));
            assert_eq!(pauses.end_for(Some(Time::from_millis(due))), acts);
        }
    }

    #[test]
    fn there_is_no_pause_while_few_packets_pass() {
        let mut pauses = Pauses::default();
        for now in (0..200).step_by(5) {
            pauses.count();
            assert_eq!(pauses.moderate(Time::from_millis(now), ms(2)), Duration::ZERO);
        }
        pauses.begin(Time::from_millis(200));
        assert!(!pauses.is_paused(Time::from_millis(200)));
    }
}
