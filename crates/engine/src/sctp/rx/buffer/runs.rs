//! Runs of consecutive fragments of one message (RFC 9260, 6.9). Joining takes constant time per fragment,
//! since each end of a run stores the other end. Neighbours are checked for consistency.

use super::ReceiveBuffer;
use super::slots::Place;
use crate::sctp::{Data, DataFlags};

/// Whether two neighbouring fragments may belong to one message: same stream, and same SSN unless unordered
/// (RFC 9260, 3.3.1: the SSN of unordered data is ignored).
fn of_one_message(one: &Data, other: &Data) -> bool {
    let loose = one.flags.has(DataFlags::UNORDERED);
    one.stream == other.stream
        && loose == other.flags.has(DataFlags::UNORDERED)
        && (loose || one.ssn == other.ssn)
}

/// Whether `next` may follow `before` directly.
fn may_follow(before: &Data, next: &Data) -> bool {
    let ends = before.flags.has(DataFlags::END);
    ends == next.flags.has(DataFlags::BEGIN) && (ends || of_one_message(before, next))
}

impl ReceiveBuffer {
    /// Whether a chunk is consistent with its direct neighbours. Complete messages always are consistent
    /// with each other.
    #[inline(always)]
    pub(super) fn fits(&self, tsn: u64, data: &Data) -> bool {
        !self.fragmented || self.fits_before(tsn, data) && self.fits_after(tsn, data)
    }

    #[inline]
    fn fits_before(&self, tsn: u64, data: &Data) -> bool {
        // The fragments before it may have been abandoned.
        let begins = data.flags.has(DataFlags::BEGIN) || tsn == self.skipped_to + 1;
        if tsn == self.slots.base() {
            // Everything before it has been delivered.
            return match &self.begun {
                Some(begun) => !data.flags.has(DataFlags::BEGIN) && begun.goes_on_with(data),
                None => begins,
            };
        }
        match self.slots.at(tsn - 1, &self.gaps) {
            Place::Held(before) => may_follow(&before.data, data),
            Place::Released => begins,
            Place::Missing => true,
        }
    }

    #[inline]
    fn fits_after(&self, tsn: u64, data: &Data) -> bool {
        match self.slots.at(tsn + 1, &self.gaps) {
            Place::Held(after) => may_follow(data, &after.data),
            Place::Released => data.flags.has(DataFlags::END),
            Place::Missing => true,
        }
    }

    /// Joins a stored fragment to its neighbours. Returns first and last TSN of its run.
    pub(super) fn join(&mut self, tsn: u64) -> (u64, u64) {
        let Some(flags) = self.slots.held(tsn).map(|d| d.flags) else { return (tsn, tsn) };
        let before = if flags.has(DataFlags::BEGIN) { None } else { self.slots.other_end(tsn - 1) };
        let after = if flags.has(DataFlags::END) { None } else { self.slots.other_end(tsn + 1) };
        let (first, last) = (before.unwrap_or(tsn), after.unwrap_or(tsn));
        self.slots.set_run(first, last);
        (first, last)
    }

    /// Whether the run from `first` to `last` is a complete message.
    pub(super) fn is_complete(&self, first: u64, last: u64) -> bool {
        self.slots.held(first).is_some_and(|d| d.flags.has(DataFlags::BEGIN))
            && self.slots.held(last).is_some_and(|d| d.flags.has(DataFlags::END))
    }

    /// Ends the run of `last`, the highest TSN, before it, because that chunk is about to be dropped.
    pub(super) fn cut_run(&mut self, last: u64) {
        if let Some(first) = self.slots.other_end(last).filter(|first| *first < last) {
            self.slots.set_run(first, last - 1);
        }
    }
}
