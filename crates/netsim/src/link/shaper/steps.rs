//! A rate that changes at known times, pauses by outages included.

use ropewalk_base::{Duration, Rate, Time};

use super::Service;
use crate::link::outage::{self, Span};

/// Bit-nanoseconds of one byte: at `r` bit/s, one nanosecond does `r` of them.
const WORK_PER_BYTE: u128 = 8_000_000_000;

#[derive(Clone, Debug)]
pub(in crate::link) struct Steps {
    /// Start time and rate of each piece; the first starts at zero, and all start times differ.
    pieces: Vec<(Time, Rate)>,
    /// Index of the piece that contains `free`.
    piece: usize,
    /// End of the last transmission.
    free: Time,
    /// Bit-nanoseconds left over by the last division; charged to the next packet.
    remainder: u64,
}

impl Steps {
    pub(super) fn new(initial: Rate, steps: &[(Time, Rate)], holds: &[Span]) -> Self {
        let mut changes: Vec<Time> = core::iter::once(Time::ZERO)
            .chain(steps.iter().map(|(at, _)| *at))
            .chain(holds.iter().flat_map(|span| [span.from, span.until]))
            .collect();
        changes.sort_unstable();
        changes.dedup();
        let rate_at = |at: Time| {
            if outage::covers(holds, at) {
                return Rate::ZERO;
            }
            let before = steps.partition_point(|(step, _)| *step <= at);
            before.checked_sub(1).map_or(initial, |last| steps[last].1)
        };
        let pieces = changes.into_iter().map(|at| (at, rate_at(at))).collect();
        Self { pieces, piece: 0, free: Time::ZERO, remainder: 0 }
    }

    #[inline]
    pub(super) fn next_start(&self, ready: Time) -> Time {
        ready.max(self.free)
    }

    pub(super) fn serve(&mut self, ready: Time, bytes: u32) -> Service {
        let start = self.next_start(ready);
        let mut work = u128::from(bytes) * WORK_PER_BYTE + u128::from(self.remainder);
        let mut at = start;
        loop {
            while self.end_of(self.piece) <= at && self.piece + 1 < self.pieces.len() {
                self.piece += 1;
            }
            let rate = self.pieces[self.piece].1.as_bps();
            let until = self.end_of(self.piece);
            let possible = u128::from(rate) * u128::from(until.since(at).as_nanos());
            if work <= possible && rate > 0 {
                let nanos = (work / u128::from(rate)) as u64;
                self.remainder = (work % u128::from(rate)) as u64;
                self.free = at.saturating_add(Duration::from_nanos(nanos));
                break;
            }
            if until == Time::FAR_FUTURE {
                self.free = Time::FAR_FUTURE;
                break;
            }
            work -= possible;
            at = until;
        }
        Service { start, depart: self.free }
    }

    pub(super) fn capacity_bytes(&self, until: Time) -> u64 {
        let work: u128 = (0..self.pieces.len())
            .map(|i| {
                let (from, rate) = self.pieces[i];
                let span = self.end_of(i).min(until).since(from);
                u128::from(rate.as_bps()) * u128::from(span.as_nanos())
            })
            .sum();
        (work / WORK_PER_BYTE) as u64
    }

    fn end_of(&self, piece: usize) -> Time {
        self.pieces.get(piece + 1).map_or(Time::FAR_FUTURE, |(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    fn steps(initial: u64, list: &[(u64, u64)], holds: &[(u64, u64)]) -> Steps {
        let list: Vec<_> =
            list.iter().map(|(ms, bps)| (Time::from_millis(*ms), Rate::from_bps(*bps))).collect();
        let holds: Vec<_> = holds
            .iter()
            .map(|(a, b)| Span { from: Time::from_millis(*a), until: Time::from_millis(*b) })
            .collect();
        Steps::new(Rate::from_bps(initial), &list, &holds)
    }

    #[test]
    fn a_packet_keeps_what_it_has_sent_and_the_rest_goes_at_the_new_rate() {
        // 1500 B = 12 000 bit: 8 ms at 1 Mbit/s send 8000 bit, the other 4000 bit at 2 Mbit/s take 2 ms.
        let mut shaper = steps(MBIT, &[(8, 2 * MBIT)], &[]);
        let service = shaper.serve(Time::ZERO, 1500);
        assert_eq!(service, Service { start: Time::ZERO, depart: Time::from_millis(10) });
    }

    #[test]
    fn a_hold_delays_by_its_length() {
        let mut shaper = steps(MBIT, &[], &[(5, 105)]);
        assert_eq!(shaper.serve(Time::ZERO, 1500).depart, Time::from_millis(112));
        assert_eq!(shaper.serve(Time::ZERO, 1500).depart, Time::from_millis(124));
    }

    #[test]
    fn at_a_rate_of_zero_for_ever_nothing_departs() {
        let mut shaper = steps(MBIT, &[(6, 0)], &[]);
        assert_eq!(shaper.serve(Time::ZERO, 1500).depart, Time::FAR_FUTURE);
        assert_eq!(shaper.serve(Time::ZERO, 1500).start, Time::FAR_FUTURE);
    }

    #[test]
    fn capacity_counts_every_piece() {
        let shaper = steps(8 * MBIT, &[(10, 16 * MBIT)], &[(5, 10)]);
        assert_eq!(shaper.capacity_bytes(Time::from_millis(20)), 5_000 + 20_000);
    }

    #[test]
    fn a_long_transfer_over_many_steps_loses_no_bit() {
        let list: Vec<_> = (1..1000).map(|i| (i * 7, 3 * MBIT + i * 1_001)).collect();
        let mut shaper = steps(3 * MBIT, &list, &[]);
        let mut last = Time::ZERO;
        for sent in 1..=3_000u64 {
            last = shaper.serve(Time::ZERO, 997).depart;
            let capacity = shaper.capacity_bytes(last);
            // Departures are rounded down to a nanosecond; the next packet makes up for the remainder.
            assert!((sent * 997 - 1..=sent * 997).contains(&capacity), "{capacity} of {sent}");
        }
        assert!(last > Time::from_secs(5));
    }

    #[test]
    fn a_rate_that_steps_to_itself_is_as_exact_as_a_constant_one() {
        // 1500 B at 7 Mbit/s is 1 714 285.714... ns: the remainder is carried, across steps too.
        let list: Vec<_> = (1..1000).map(|i| (i * 13, 7 * MBIT)).collect();
        let mut shaper = steps(7 * MBIT, &list, &[]);
        for sent in 1..=20_000u64 {
            let depart = shaper.serve(Time::ZERO, 1500).depart;
            assert_eq!(depart.as_nanos(), sent * 12_000 * 1_000 / 7);
        }
    }
}
