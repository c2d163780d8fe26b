//! The receiving side of a subflow: received data, and when to acknowledge it (RFC 9293, 3.8.6.3; RFC
//! 5681, 4.2; RFC 2018; RFC 2883).

use ropewalk_base::{Duration, RangeSet, Time};
use smallvec::SmallVec;

use super::super::segment::Sacks;
use crate::meter::{self, Defect};

/// When acknowledgements are due.
#[derive(Clone, Copy, Debug)]
pub struct AckRule {
    /// After this number of segments,
    pub every: u32,
    /// or after this time.
    pub delay: Duration,
    /// Number of acknowledgements that are not delayed after a pause of at least `pause`, or at the
    /// start.
    pub quick: u32,
    /// The pause.
    pub pause: Duration,
    /// Maximum number of tracked out-of-order ranges. A segment that would add another one is not
    /// acknowledged.
    pub ranges: usize,
}

/// Position of an arriving segment on its subflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// Next in order.
    Next,
    /// Beyond missing data.
    Early,
    /// Nothing in it is new.
    Old,
}

/// The receiving side of one subflow.
#[derive(Clone, Debug, Default)]
pub struct Receiver {
    next: u64,
    early: RangeSet,
    /// One number in each of the most recently changed blocks, the latest first.
    recent: SmallVec<[u64; 4]>,
    duplicate: Option<(u64, u64)>,
    unacknowledged: u32,
    acknowledged: u64,
    due_now: bool,
    /// Remaining number of acknowledgements that are not delayed.
    quick: u32,
    /// When the last segment arrived.
    heard_at: Option<Time>,
    deadline: Option<Time>,
    echo: u64,
    /// Highest number of a received transmission, plus one (TCP-DOOR).
    order: u64,
    disordered: bool,
    /// Number of repetitions of the last acknowledgement.
    repeats: u64,
}

impl Receiver {
    /// Records the peer's SYN, which takes number 0.
    pub const fn on_syn(&mut self, stamp: u64) {
        self.next = 1;
        self.echo = stamp;
    }

    /// RCV.NXT: all data before it has arrived.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Whether an acknowledgement is to be sent now.
    #[inline]
    pub const fn is_due(&self) -> bool {
        self.due_now
    }

    /// Whether data has arrived that no acknowledgement covers.
    #[inline]
    pub const fn is_scheduled(&self) -> bool {
        self.due_now || self.deadline.is_some()
    }

    /// Bytes received beyond missing data.
    pub fn early_bytes(&self) -> u64 {
        self.early.len()
    }

    /// Latest time for the next acknowledgement.
    #[inline]
    pub const fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// The timestamp to echo (RFC 7323, 4.3): that of the segment that advanced the acknowledgement, or
    /// of the earliest one if an acknowledgement covers several.
    #[inline]
    pub const fn echo(&self) -> u64 {
        self.echo
    }

    /// Records a segment with data.
    pub fn on_data(
        &mut self,
        now: Time,
        seq: u64,
        len: u32,
        stamp: Option<u64>,
        rule: AckRule,
    ) -> Position {
        let end = seq + len as u64;
        if self.heard_at.is_none_or(|at| now.since(at) > rule.pause) {
            self.quick = self.quick.max(rule.quick);
        }
        self.heard_at = Some(now);
        if let Some(stamp) = stamp.filter(|_| seq <= self.acknowledged.max(1)) {
            self.echo = stamp;
        }
        if self.is_duplicate(seq, end) {
            return Position::Old;
        }
        if seq > self.next {
            self.note_early(seq, end, rule);
            return Position::Early;
        }
        // RFC 5681, 4.2: acknowledge immediately when a segment fills a gap, or a part of it.
        self.due_now |= !self.early.is_empty();
        self.next = end;
        if let Some(run) = self.early.first_range().filter(|run| run.start <= self.next) {
            self.next = self.next.max(run.end);
            self.early.remove_below(self.next);
        }
        self.count(now, rule);
        Position::Next
    }

    /// Records a segment if acknowledgements wait until data is in order at data level. `in_turn`:
    /// whether the segment may be acknowledged.
    pub fn on_gated(
        &mut self,
        now: Time,
        seq: u64,
        len: u32,
        in_turn: bool,
        rule: AckRule,
    ) -> Position {
        let end = seq + len as u64;
        if self.is_duplicate(seq, end) {
            return Position::Old;
        }
        if !in_turn {
            self.note_early(seq, end, rule);
            return Position::Early;
        }
        self.due_now |= !self.early.is_empty();
        self.accept_to(end);
        self.count(now, rule);
        Position::Next
    }

    /// Acknowledges all data before `end` from now on.
    pub fn accept_to(&mut self, end: u64) {
        self.next = self.next.max(end);
        self.early.remove_below(self.next);
    }

    /// Whether the segment has arrived before. Then an acknowledgement is due that reports it.
    fn is_duplicate(&mut self, seq: u64, end: u64) -> bool {
        let is_old = end <= self.next || self.early.contains(seq);
        if is_old {
            self.duplicate = Some((seq, end));
            self.touch(seq);
            self.due_now = true;
        }
        is_old
    }

    fn note_early(&mut self, seq: u64, end: u64, rule: AckRule) {
        self.due_now = true;
        let full = self.early.range_count() >= rule.ranges && !meter::has(Defect::UnboundedRanges);
        let joins = || self.early.contains(seq.saturating_sub(1)) || self.early.contains(end);
        if full && !joins() {
            return;
        }
        meter::count(1 + meter::moved(8 * self.early.range_count()));
        self.early.insert_range(seq..end);
        self.touch(seq);
    }

    fn count(&mut self, now: Time, rule: AckRule) {
        self.unacknowledged += 1;
        if self.unacknowledged >= rule.every || self.quick > 0 {
            self.due_now = true;
        } else if self.deadline.is_none() {
            self.deadline = Some(now + rule.delay);
        }
    }

    fn touch(&mut self, seq: u64) {
        if self.recent.len() == 4 {
            self.recent.pop();
        }
        self.recent.insert(0, seq);
    }

    /// Records the number of a transmission (TCP-DOOR; Wang and Zhang, 2002, 3.1).
    pub fn on_order(&mut self, order: u64) {
        self.disordered |= order < self.order;
        self.order = self.order.max(order + 1);
    }

    /// Number of earlier acknowledgements of `ack`, which is sent now, and whether data was reordered since
    /// the last acknowledgement. Call this before [`Self::on_acknowledged`].
    pub fn order_of(&mut self, ack: u64) -> (u64, bool) {
        self.repeats = if ack == self.acknowledged { self.repeats + 1 } else { 0 };
        (self.repeats, core::mem::take(&mut self.disordered))
    }

    /// Makes an acknowledgement due for other reasons.
    pub const fn make_due(&mut self) {
        self.due_now = true;
    }

    /// Handles the expiry of the delayed acknowledgement timer.
    pub fn on_timer(&mut self, now: Time) {
        self.due_now |= self.deadline.is_some_and(|at| at <= now);
    }

    /// Records that an acknowledgement of `ack` is sent, and adds at most `room` blocks. Returns whether the
    /// first of them reports a duplicate.
    pub fn on_acknowledged(&mut self, ack: u64, room: usize, blocks: &mut Sacks) -> bool {
        self.due_now = false;
        self.quick = self.quick.saturating_sub(1);
        self.deadline = None;
        self.unacknowledged = 0;
        self.acknowledged = ack;
        let duplicate = self.duplicate.take().filter(|_| room > 0);
        blocks.extend(duplicate);
        if self.early.is_empty() {
            self.recent.clear();
            return duplicate.is_some();
        }
        for i in 0..self.recent.len() {
            self.report(self.recent[i], room, blocks, duplicate.is_some());
        }
        // Blocks that changed longer ago follow if there is space.
        for range in self.early.ranges().rev().take(room) {
            self.report(range.start, room, blocks, duplicate.is_some());
        }
        duplicate.is_some()
    }

    fn report(&self, seq: u64, room: usize, blocks: &mut Sacks, duplicate: bool) {
        let Some(range) = self.early.range_of(seq) else { return };
        let block = (range.start, range.end);
        let known = &blocks[usize::from(duplicate)..];
        if blocks.len() < room && !known.contains(&block) {
            blocks.push(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: AckRule = AckRule {
        every: 2,
        delay: Duration::from_millis(40),
        quick: 0,
        pause: Duration::MAX,
        ranges: 100,
    };

    fn receiver() -> Receiver {
        let mut receiver = Receiver::default();
        receiver.on_syn(0);
        receiver
    }

    fn data(receiver: &mut Receiver, seq: u64) -> Position {
        receiver.on_data(Time::ZERO, seq, 100, Some(seq), RULE)
    }

    fn blocks(receiver: &mut Receiver) -> (bool, Vec<(u64, u64)>) {
        let mut blocks = Sacks::new();
        let duplicate = receiver.on_acknowledged(receiver.next(), 3, &mut blocks);
        (duplicate, blocks.to_vec())
    }

    #[test]
    fn every_second_segment_is_acknowledged_at_once_and_the_first_after_a_while() {
        let mut receiver = receiver();
        assert_eq!(data(&mut receiver, 1), Position::Next);
        assert!(!receiver.is_due());
        assert_eq!(receiver.deadline(), Some(Time::from_millis(40)));
        assert_eq!(data(&mut receiver, 101), Position::Next);
        assert!(receiver.is_due());
        assert_eq!(receiver.echo(), 1, "the earliest that is not acknowledged");
    }

    #[test]
    fn the_first_acknowledgements_and_those_after_a_pause_are_not_delayed() {
        let rule = AckRule { quick: 2, pause: Duration::from_millis(300), ..RULE };
        let mut receiver = receiver();
        let mut due = Vec::new();
        for (number, millis) in [(0, 0), (1, 1), (2, 2), (3, 3), (4, 304), (5, 305)] {
            receiver.on_data(Time::from_millis(millis), 1 + number * 100, 100, None, rule);
            due.push(receiver.is_due());
            if receiver.is_due() {
                blocks(&mut receiver);
            }
        }
        assert_eq!(due, [true, true, false, true, true, true]);
    }

    #[test]
    fn behind_a_gate_what_is_early_at_data_level_is_reported_and_not_acknowledged() {
        let mut receiver = receiver();
        let gated = |receiver: &mut Receiver, seq, in_turn| {
            receiver.on_gated(Time::ZERO, seq, 100, in_turn, RULE)
        };
        assert_eq!(gated(&mut receiver, 1, false), Position::Early);
        assert_eq!(gated(&mut receiver, 101, false), Position::Early);
        assert_eq!(gated(&mut receiver, 101, false), Position::Old);
        assert_eq!(blocks(&mut receiver), (true, vec![(101, 201), (1, 201)]));
        assert_eq!(receiver.next(), 1);
        receiver.accept_to(101);
        assert_eq!((receiver.next(), blocks(&mut receiver)), (101, (false, vec![(101, 201)])));
        assert_eq!(gated(&mut receiver, 201, true), Position::Next);
        assert_eq!(receiver.next(), 301);
    }

    #[test]
    fn blocks_are_reported_the_latest_first_and_what_came_twice_before_them() {
        let mut receiver = receiver();
        for seq in [201, 401, 601, 301] {
            assert_eq!(data(&mut receiver, seq), Position::Early);
            assert!(receiver.is_due());
        }
        assert_eq!(blocks(&mut receiver), (false, vec![(201, 501), (601, 701)]));
        assert_eq!(data(&mut receiver, 601), Position::Old);
        assert_eq!(blocks(&mut receiver), (true, vec![(601, 701), (601, 701), (201, 501)]));
        assert_eq!(data(&mut receiver, 1), Position::Next);
        assert_eq!(data(&mut receiver, 101), Position::Next);
        assert_eq!(receiver.next(), 501);
        assert_eq!(blocks(&mut receiver), (false, vec![(601, 701)]));
    }
}
