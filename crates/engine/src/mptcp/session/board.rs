//! The session's data after the data-level acknowledgement, divided into units of one segment each.

use std::collections::VecDeque;

use ropewalk_base::{PathId, RangeSet, Time};

use crate::payload::Payload;

/// State of a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MappingState {
    /// Numbered, but skipped by a scheduler: a gap before later data.
    Hole,
    /// Assigned to a subflow; the last one, if there were several.
    Given {
        /// The subflow.
        to: PathId,
        /// The piece in its queue.
        piece: u64,
    },
    /// Acknowledged by a subflow.
    Arrived {
        /// The subflow.
        by: PathId,
    },
}

/// Data of one segment.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Data sequence number of its first byte.
    pub dsn: u64,
    /// The data.
    pub payload: Payload,
    /// State of the unit.
    pub state: MappingState,
    /// Number of subflows to which it was assigned.
    pub given: u32,
    /// When it was first sent.
    pub first_sent: Time,
}

impl Mapping {
    /// End of its data sequence numbers (exclusive).
    #[inline]
    pub fn end(&self) -> u64 {
        self.dsn + self.payload.len() as u64
    }
}

/// All units that are numbered and not acknowledged at data level.
#[derive(Clone, Debug, Default)]
pub struct DataBoard {
    first: u64,
    units: VecDeque<Mapping>,
    una: u64,
    next: u64,
    holes: RangeSet,
    reinject: RangeSet,
}

impl DataBoard {
    /// The data-level acknowledgement.
    #[inline]
    pub const fn una(&self) -> u64 {
        self.una
    }

    /// Number of units acknowledged at data level, which is the number of the first unacknowledged one.
    #[inline]
    pub const fn acknowledged(&self) -> u64 {
        self.first
    }

    /// The data sequence number of the next new byte.
    #[inline]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Bytes from the acknowledgement to the end of the last unit.
    #[inline]
    pub const fn span(&self) -> u64 {
        self.next - self.una
    }

    /// Units that were skipped.
    #[inline]
    pub const fn holes(&self) -> &RangeSet {
        &self.holes
    }

    /// Units to be sent on another subflow as well.
    #[inline]
    pub const fn reinject(&self) -> &RangeSet {
        &self.reinject
    }

    /// Whether all numbered units are acknowledged.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// The oldest unit.
    #[inline]
    pub fn front(&self) -> Option<(u64, &Mapping)> {
        self.units.front().map(|unit| (self.first, unit))
    }

    /// A unit, if it is unacknowledged.
    #[inline]
    pub fn get(&self, unit: u64) -> Option<&Mapping> {
        self.units.get(unit.checked_sub(self.first)? as usize)
    }

    #[inline]
    fn get_mut(&mut self, unit: u64) -> Option<&mut Mapping> {
        self.units.get_mut(unit.checked_sub(self.first)? as usize)
    }

    /// Numbers a unit that is skipped. It is a gap until it is assigned to a subflow.
    pub fn pass_over(&mut self, payload: Payload) -> u64 {
        let number = self.push(payload);
        self.holes.insert(number);
        number
    }

    /// Fills `unit` up to `limit` bytes with the beginning of the next unit, if both are gaps and the
    /// next one is longer than the missing part.
    pub fn fill_from_next(&mut self, unit: u64, limit: u32) {
        let Some(at) = unit.checked_sub(self.first).map(|at| at as usize) else { return };
        let (Some(short), Some(next)) = (self.units.get(at), self.units.get(at + 1)) else {
            return;
        };
        let missing = limit.saturating_sub(short.payload.len());
        let gaps = short.state == MappingState::Hole && next.state == MappingState::Hole;
        if missing == 0 || !gaps || next.payload.len() <= missing {
            return;
        }
        let moved = next.payload.slice(0, missing);
        let rest = next.payload.slice(missing, next.payload.len() - missing);
        let short = &mut self.units[at];
        short.payload = Payload::concat(&[short.payload.clone(), moved]);
        let next = &mut self.units[at + 1];
        next.dsn += missing as u64;
        next.payload = rest;
    }

    /// Numbers a unit that is assigned to a subflow immediately.
    #[inline]
    pub fn push(&mut self, payload: Payload) -> u64 {
        let number = self.first + self.units.len() as u64;
        let dsn = self.next;
        self.next += payload.len() as u64;
        let (state, first_sent) = (MappingState::Hole, Time::ZERO);
        self.units.push_back(Mapping { dsn, payload, state, given: 0, first_sent });
        number
    }

    /// Records that `unit` is assigned to `path`, as piece `piece` of its queue.
    pub fn on_assigned_to(&mut self, now: Time, unit: u64, to: PathId, piece: u64) {
        if !self.holes.is_empty() {
            self.holes.remove(unit);
        }
        if !self.reinject.is_empty() {
            self.reinject.remove(unit);
        }
        let Some(record) = self.get_mut(unit) else { return };
        if record.given == 0 {
            record.first_sent = now;
        }
        record.given += 1;
        record.state = MappingState::Given { to, piece };
    }

    /// Requests that `unit` is also sent on another subflow.
    pub fn on_reinjection_requested(&mut self, unit: u64) {
        if self.get(unit).is_some_and(|record| matches!(record.state, MappingState::Given { .. })) {
            self.reinject.insert(unit);
        }
    }

    /// Records that a subflow's acknowledgement covers `unit`. Returns true if this was not known.
    #[inline]
    pub fn on_arrived(&mut self, unit: u64, by: PathId) -> bool {
        let Some(record) = self.get_mut(unit) else { return false };
        if matches!(record.state, MappingState::Arrived { .. }) {
            return false;
        }
        record.state = MappingState::Arrived { by };
        if !self.reinject.is_empty() {
            self.reinject.remove(unit);
        }
        true
    }

    /// Removes the oldest unit if the data-level acknowledgement `ack` covers it.
    #[inline]
    pub fn pop_acked(&mut self, ack: u64) -> Option<Mapping> {
        if self.units.front()?.end() > ack {
            return None;
        }
        let unit = self.units.pop_front()?;
        if !self.reinject.is_empty() {
            self.reinject.remove(self.first);
        }
        self.first += 1;
        self.una = unit.end();
        Some(unit)
    }

    /// Number of gaps, from the first, that end at most `room` bytes after the acknowledgement.
    pub fn holes_within(&self, room: u64) -> u64 {
        let Some(last) = self.holes.last() else { return 0 };
        let edge = self.una + room;
        if self.get(last).is_some_and(|unit| unit.end() <= edge) {
            return self.holes.len();
        }
        let fits = |unit: &u64| self.get(*unit).is_some_and(|unit| unit.end() <= edge);
        self.holes.ranges().flatten().take_while(fits).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_passed_over_are_holes_until_they_are_given() {
        let mut board = DataBoard::default();
        (0..4).for_each(|_| {
            board.pass_over(Payload::Length(100));
        });
        board.on_assigned_to(Time::ZERO, 2, PathId(1), 0);
        assert_eq!(board.holes().ranges().collect::<Vec<_>>(), [0..2, 3..4]);
        for (room, holes) in [(0, 0), (99, 0), (100, 1), (399, 2), (400, 3)] {
            assert_eq!(board.holes_within(room), holes, "{room} B");
        }
        board.on_assigned_to(Time::ZERO, 0, PathId(0), 0);
        assert!(board.pop_acked(99).is_none());
        assert_eq!(board.pop_acked(100).map(|unit| unit.dsn), Some(0));
        assert_eq!((board.una(), board.span()), (100, 300));
    }

    #[test]
    fn a_short_gap_is_filled_from_the_next_one_unless_that_would_be_empty() {
        let mut board = DataBoard::default();
        for length in [60, 100, 30] {
            board.pass_over(Payload::Length(length));
        }
        board.fill_from_next(0, 100);
        board.fill_from_next(1, 100);
        let units: Vec<_> =
            (0..3).filter_map(|unit| board.get(unit)).map(|u| (u.dsn, u.payload.len())).collect();
        assert_eq!(units, [(0, 100), (100, 60), (160, 30)]);
        board.on_assigned_to(Time::ZERO, 2, PathId(0), 0);
        board.fill_from_next(1, 70);
        assert_eq!(board.get(1).map(|unit| unit.payload.len()), Some(60), "the next one is sent");
    }

    #[test]
    fn what_arrived_is_not_given_again() {
        let mut board = DataBoard::default();
        let unit = board.push(Payload::Length(100));
        board.on_reinjection_requested(unit);
        assert!(board.reinject().is_empty(), "it has not been sent yet");
        board.on_assigned_to(Time::ZERO, unit, PathId(0), 0);
        board.on_reinjection_requested(unit);
        assert_eq!(board.reinject().first(), Some(unit));
        assert!(board.on_arrived(unit, PathId(0)));
        assert!(!board.on_arrived(unit, PathId(0)) && board.reinject().is_empty());
    }
}
