//! Trace-driven transmission with the semantics of mahimahi's link shell: each opportunity carries up to 1504
//! bytes of the packets that wait at that instant. A packet may use several opportunities; unused ones are
//! lost.

use std::sync::Arc;

use ropewalk_base::Time;

use super::Service;
use crate::link::outage::{self, Span};
use crate::mahimahi::{OPPORTUNITY_BYTES, Trace};

/// Position in a trace: the next opportunity, and the rest of its bytes.
#[derive(Clone, Copy, Debug)]
struct Position {
    cycle: u64,
    index: usize,
    left: u32,
}

#[derive(Clone, Debug)]
pub(in crate::link) struct TraceShaper {
    trace: Arc<Trace>,
    holds: Vec<Span>,
    position: Position,
}

impl TraceShaper {
    pub(super) fn new(trace: Arc<Trace>, holds: Vec<Span>) -> Self {
        let position = Position { cycle: 0, index: 0, left: OPPORTUNITY_BYTES };
        Self { trace, holds, position }
    }

    pub(super) fn next_start(&self, ready: Time) -> Time {
        self.time_of(self.seek(self.position, ready))
    }

    pub(super) fn serve(&mut self, ready: Time, bytes: u32) -> Service {
        let mut position = self.seek(self.position, ready);
        let start = self.time_of(position);
        let mut left = bytes;
        loop {
            let taken = left.min(position.left);
            left -= taken;
            position.left -= taken;
            if left == 0 || self.time_of(position) == Time::FAR_FUTURE {
                break;
            }
            position = self.seek(position, ready);
        }
        self.position = position;
        Service { start, depart: self.time_of(position) }
    }

    pub(super) fn capacity_bytes(&self, until: Time) -> u64 {
        let held: u64 = self
            .holds
            .iter()
            .filter(|span| span.from <= until)
            .map(|span| {
                let after = self.trace.opportunities_before(span.until.min(until));
                after - self.trace.opportunities_before(span.from)
            })
            .sum();
        (self.trace.opportunities_before(until) - held) * u64::from(OPPORTUNITY_BYTES)
    }

    fn time_of(&self, position: Position) -> Time {
        self.trace.time_of(position.cycle, position.index)
    }

    /// The first usable opportunity at or after `position` that is not before `ready`.
    fn seek(&self, mut position: Position, ready: Time) -> Position {
        if position.left == 0 {
            position = self.following(position);
        }
        if self.time_of(position) < ready {
            position = self.first_from(ready);
        }
        while let Some(span) = outage::covering(&self.holds, self.time_of(position)) {
            position = self.first_from(span.until);
        }
        position
    }

    fn following(&self, position: Position) -> Position {
        let Position { cycle, index, .. } = position;
        let wraps = index + 1 == self.trace.len();
        let (cycle, index) = if wraps { (cycle + 1, 0) } else { (cycle, index + 1) };
        Position { cycle, index, left: OPPORTUNITY_BYTES }
    }

    fn first_from(&self, ready: Time) -> Position {
        let (cycle, index) = self.trace.first_from(ready);
        Position { cycle, index, left: OPPORTUNITY_BYTES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mahimahi::parse_mahimahi;

    fn shaper(text: &str, holds: &[(u64, u64)]) -> TraceShaper {
        let trace = parse_mahimahi(text).expect("a good trace");
        let holds = holds
            .iter()
            .map(|(a, b)| Span { from: Time::from_millis(*a), until: Time::from_millis(*b) })
            .collect();
        TraceShaper::new(Arc::new(trace), holds)
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_use_several() {
        let mut shaper = shaper("10\n20\n30\n", &[]);
        let departs: Vec<_> = [752, 752, 3008, 1]
            .map(|bytes| shaper.serve(Time::ZERO, bytes).depart.as_nanos() / 1_000_000)
            .into();
        // 10: two halves; 20 and 30: the large one; 40 = 30 + 10 of the second cycle: the last.
        assert_eq!(departs, [10, 10, 30, 40]);
    }

    #[test]
    fn an_opportunity_that_nobody_takes_is_lost() {
        let mut shaper = shaper("10\n20\n", &[]);
        assert_eq!(shaper.serve(Time::from_millis(11), 100).depart, Time::from_millis(20));
        // The unused rest of the opportunity at 20 ms is lost afterwards.
        assert_eq!(shaper.serve(Time::from_millis(21), 100).depart, Time::from_millis(30));
    }

    #[test]
    fn a_hold_skips_the_opportunities_in_it() {
        let mut shaper = shaper("10\n", &[(15, 40)]);
        let departs: Vec<_> =
            (0..3).map(|_| shaper.serve(Time::ZERO, 1504).depart.as_nanos() / 1_000_000).collect();
        assert_eq!(departs, [10, 40, 50]);
        assert_eq!(shaper.capacity_bytes(Time::from_millis(55)), 3 * 1504);
    }
}
