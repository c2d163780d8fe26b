//! The order of one flow at the receiving side.
//!
//! ```text
//!     missing (late)      expected         held
//!   ----x----x-------------|-----x====x==x====-----> sequence number
//!     delivered                 first gap
//! ```

use std::collections::{BTreeMap, VecDeque};

use ropewalk_base::{Duration, RangeSet, Time};

use crate::config::packet_cost;

/// Maximum number of remembered ranges of missing sequence numbers, which distinguish late packets from duplicates.
const MISSING_MAX: usize = 64;
/// The first packet of a flow to arrive may be this far behind the first that was sent.
const FIRST_REACH: u64 = 64;

/// A packet that waits for earlier ones.
#[derive(Clone, Debug)]
struct Held<P> {
    since: Time,
    bytes: u32,
    /// `None` if it was delivered when it arrived.
    payload: Option<P>,
}

/// Result of a packet's arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    /// The packet was delivered, possibly with packets that waited for it.
    Delivered,
    /// The packet was delivered after later ones.
    Late,
    /// The packet waits for earlier ones.
    Held,
    /// The packet had already arrived.
    Duplicate,
}

/// The state of one flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowOrder<P> {
    pub generation: u8,
    /// When the last packet arrived.
    pub used: Time,
    /// When the wait for the first gap ends, if there is one.
    pub deadline: Option<Time>,
    /// All packets below were delivered or given up.
    expected: u64,
    /// Whether some packets of the flow wait for earlier ones.
    restored: bool,
    /// The numbers below `expected` that were given up, from `remembered` on.
    missing: RangeSet,
    /// The arrivals below this number are no longer known. Such packets are delivered: the association has already
    /// dropped duplicates, and IP may deliver a packet twice, whereas a lost packet is costly for its sender.
    remembered: u64,
    held: BTreeMap<u64, Held<P>>,
    /// Packets that wait, or have waited, in order of arrival.
    arrivals: VecDeque<(Time, u64)>,
    held_bytes: u64,
}

impl<P> FlowOrder<P> {
    /// Creates a flow whose first packet to arrive has the number `first`.
    pub fn new(generation: u8, first: u64) -> Self {
        let expected = if first < FIRST_REACH { 0 } else { first };
        Self {
            generation,
            used: Time::ZERO,
            deadline: None,
            expected,
            restored: false,
            missing: RangeSet::new(),
            remembered: expected,
            held: BTreeMap::new(),
            arrivals: VecDeque::new(),
            held_bytes: 0,
        }
    }

    /// The number near which the next one is expected.
    pub fn near(&self) -> u64 {
        self.held.last_key_value().map_or(self.expected, |(highest, _)| *highest)
    }

    /// Bytes that wait.
    pub const fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Handles a packet; `out` receives packets that can be delivered. `waits` is whether it waits for earlier ones,
    /// and `hold` for how long. A packet that does not wait, in a flow with others that do, is delivered immediately,
    /// and the others keep waiting.
    pub fn on_packet(
        &mut self,
        now: Time,
        (sequence, bytes, payload): (u64, u32, P),
        (waits, hold): (bool, Duration),
        out: &mut impl FnMut(Time, P),
    ) -> Fate {
        self.used = now;
        self.restored |= waits;
        if sequence < self.expected {
            if sequence >= self.remembered && !self.missing.remove(sequence) {
                return Fate::Duplicate;
            }
            out(now, payload);
            return Fate::Late;
        }
        if self.held.contains_key(&sequence) {
            return Fate::Duplicate;
        }
        if sequence > self.expected && self.restored {
            let (bytes, payload) = if waits {
                (bytes, Some(payload))
            } else {
                out(now, payload);
                (0, None)
            };
            self.held.insert(sequence, Held { since: now, bytes, payload });
            self.arrivals.push_back((now, sequence));
            self.held_bytes += packet_cost(bytes);
            self.deadline.get_or_insert(now + hold);
            return if waits { Fate::Held } else { Fate::Delivered };
        }
        self.skip_to(sequence, out);
        out(now, payload);
        self.expected = sequence + 1;
        self.release_run(hold, out);
        Fate::Delivered
    }

    /// Gives up all gaps below `sequence`, and delivers the packets that wait there.
    fn skip_to(&mut self, sequence: u64, out: &mut impl FnMut(Time, P)) {
        while let Some(first) = self.held.first_entry().filter(|first| *first.key() < sequence) {
            let (number, held) = first.remove_entry();
            self.missing.insert_range(self.expected..number);
            self.expected = number + 1;
            self.hand_over(held, out);
        }
        self.missing.insert_range(self.expected..sequence.max(self.expected));
        while self.missing.range_count() > MISSING_MAX {
            self.remembered = self.missing.first_range().map_or(0, |range| range.end);
            self.missing.remove_below(self.remembered);
        }
    }

    fn hand_over(&mut self, held: Held<P>, out: &mut impl FnMut(Time, P)) {
        self.held_bytes -= packet_cost(held.bytes);
        if let Some(payload) = held.payload {
            out(held.since, payload);
        }
    }

    /// Delivers the packets that follow without a gap, and sets the deadline of the next gap.
    fn release_run(&mut self, hold: Duration, out: &mut impl FnMut(Time, P)) {
        while let Some(held) = self.held.remove(&self.expected) {
            self.expected += 1;
            self.hand_over(held, out);
        }
        // The gap has been known since the first waiting packet arrived.
        while self.arrivals.front().is_some_and(|(_, number)| *number < self.expected) {
            self.arrivals.pop_front();
        }
        self.deadline = self.arrivals.front().map(|(since, _)| *since + hold);
    }

    /// Gives up the first gap. Returns whether there was one.
    pub fn give_up(&mut self, hold: Duration, out: &mut impl FnMut(Time, P)) -> bool {
        let Some(first) = self.held.first_key_value().map(|(number, _)| *number) else {
            self.deadline = None;
            return false;
        };
        self.skip_to(first, out);
        self.expected = first;
        self.release_run(hold, out);
        true
    }

    /// Delivers all waiting packets.
    pub fn flush(&mut self, out: &mut impl FnMut(Time, P)) {
        while let Some((number, held)) = self.held.pop_first() {
            self.expected = number + 1;
            self.hand_over(held, out);
        }
        self.arrivals.clear();
        self.deadline = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_millis(50);

    /// Delivers one packet per millisecond to the flow. Returns the output after each, and each result.
    fn arrive(waits: bool, numbers: &[u64]) -> (Vec<Vec<u64>>, Vec<Fate>) {
        let mut flow = FlowOrder::new(0, numbers[0]);
        let mut delivered = Vec::new();
        let mut fates = Vec::new();
        for (ms, number) in numbers.iter().enumerate() {
            let mut out = Vec::new();
            let packet = (*number, 100, *number);
            let now = Time::from_millis(ms as u64);
            fates.push(flow.on_packet(now, packet, (waits, HOLD), &mut |_, p| out.push(p)));
            delivered.push(out);
        }
        (delivered, fates)
    }

    #[test]
    fn packets_are_delivered_in_order_and_once() {
        let (delivered, fates) = arrive(true, &[0, 2, 3, 2, 1, 1, 4]);
        let expected: [&[u64]; 7] = [&[0], &[], &[], &[], &[1, 2, 3], &[], &[4]];
        assert_eq!(delivered, expected);
        use Fate::{Delivered, Duplicate, Held};
        assert_eq!(fates, [Delivered, Held, Held, Duplicate, Delivered, Duplicate, Delivered]);
    }

    #[test]
    fn without_a_hold_packets_are_delivered_as_they_arrive_and_once() {
        let (delivered, fates) = arrive(false, &[0, 2, 3, 2, 1, 1, 4]);
        let expected: [&[u64]; 7] = [&[0], &[2], &[3], &[], &[1], &[], &[4]];
        assert_eq!(delivered, expected);
        use Fate::{Delivered, Duplicate, Late};
        assert_eq!(fates, [Delivered, Delivered, Delivered, Duplicate, Late, Duplicate, Delivered]);
    }

    #[test]
    fn a_packet_that_does_not_wait_overtakes_those_that_do_and_does_not_end_their_wait() {
        let mut flow = FlowOrder::new(0, 0);
        let mut out = Vec::new();
        for (number, waits) in [(0, true), (2, true), (3, false), (5, false), (4, true), (1, true)]
        {
            let packet = (number, 100, number);
            flow.on_packet(Time::ZERO, packet, (waits, HOLD), &mut |_, p| out.push(p));
        }
        assert_eq!(out, [0, 3, 5, 1, 2, 4]);
        assert_eq!((flow.deadline, flow.held_bytes()), (None, 0));
        for number in [3, 5] {
            let packet = (number, 100, number);
            let fate = flow.on_packet(Time::ZERO, packet, (false, HOLD), &mut |_, _| {});
            assert_eq!(fate, Fate::Duplicate, "{number}");
        }
    }

    #[test]
    fn a_gap_is_given_up_after_the_hold_and_what_comes_later_is_still_delivered() {
        let mut flow = FlowOrder::new(0, 0);
        let mut out = Vec::new();
        for (ms, number) in [(0, 0), (1, 2), (2, 5)] {
            let packet = (number, 100, number);
            flow.on_packet(Time::from_millis(ms), packet, (true, HOLD), &mut |_, p| out.push(p));
        }
        assert_eq!((flow.deadline, &out[..]), (Some(Time::from_millis(51)), &[0][..]));
        assert!(flow.give_up(HOLD, &mut |_, p| out.push(p)));
        assert_eq!((flow.deadline, &out[..]), (Some(Time::from_millis(52)), &[0, 2][..]));
        assert!(flow.give_up(HOLD, &mut |_, p| out.push(p)));
        assert_eq!((flow.deadline, flow.held_bytes(), &out[..]), (None, 0, &[0, 2, 5][..]));
        for (number, fate) in [(1, Fate::Late), (1, Fate::Duplicate), (4, Fate::Late)] {
            let packet = (number, 100, number);
            let found = flow.on_packet(Time::from_secs(1), packet, (true, HOLD), &mut |_, _| {});
            assert_eq!(found, fate, "{number}");
        }
    }

    #[test]
    fn the_first_packet_to_arrive_need_not_be_the_first_that_was_sent() {
        let (delivered, _) = arrive(true, &[1, 0]);
        assert_eq!(delivered, [vec![], vec![0, 1]]);
        let (delivered, _) = arrive(true, &[5000, 5001]);
        assert_eq!(delivered, [vec![5000], vec![5001]], "the flow was known before");
    }

    #[test]
    fn what_is_missing_is_remembered_within_a_limit_and_delivered_beyond_it() {
        let numbers: Vec<u64> = (0..1000).map(|n| 2 * n).collect();
        let mut flow = FlowOrder::new(0, 0);
        for number in numbers {
            flow.on_packet(Time::ZERO, (number, 100, ()), (false, HOLD), &mut |_, ()| {});
        }
        assert_eq!(flow.missing.range_count(), MISSING_MAX);
        for (number, fate) in [
            (1, Fate::Late),
            (0, Fate::Late),
            (1996, Fate::Duplicate),
            (1997, Fate::Late),
            (1997, Fate::Duplicate),
        ] {
            assert_eq!(
                flow.on_packet(Time::ZERO, (number, 100, ()), (false, HOLD), &mut |_, ()| {}),
                fate
            );
        }
    }
}
