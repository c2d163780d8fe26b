//! TSNs that the sender has abandoned (RFC 3758, 3.6): they count as received, and later data no longer
//! waits for them.

use ropewalk_base::{Serial16, StreamId, Time};

use super::{Part, ReceiveBuffer, charge_of};
use crate::meter;
use crate::sctp::DataFlags;

impl ReceiveBuffer {
    /// Counts all TSNs up to `tsn` as received, and delivers messages that waited for them. `streams`:
    /// per stream, the SSN of the last abandoned message. Returns whether the cumulative TSN moved.
    #[cold]
    pub fn skip_to(&mut self, now: Time, tsn: u64, streams: &[(StreamId, Serial16)]) -> bool {
        if tsn <= self.cumulative() || tsn - self.cumulative() > super::REACH {
            return false;
        }
        let before = self.cumulative();
        self.gaps.skip_to(tsn);
        self.skipped_to = self.gaps.cumulative();
        self.cut_part_off(tsn);
        self.discard_incomplete(before);
        self.slots.skip_to(before + 1, tsn);
        for (stream, ssn) in streams {
            self.skip_ssns(now, *stream, *ssn);
        }
        self.slots.drop_released(self.gaps.cumulative());
        self.offer_part(now);
        self.stats.held_changed(now, self.held_bytes);
        true
    }

    /// Drops the fragments of messages that miss a TSN up to the cumulative one. `before`: the cumulative
    /// TSN before it moved. The message that ends at `before` may continue after it; earlier messages are
    /// complete.
    fn discard_incomplete(&mut self, before: u64) {
        if !self.fragmented {
            return;
        }
        let cumulative = self.gaps.cumulative();
        let from = self.slots.other_end(before).map_or(before + 1, |first| first.min(before));
        let mut next = 0;
        for first in self.slots.held_within(from, cumulative) {
            // A run begins with the first chunk that is held after the previous run.
            if first < next {
                continue;
            }
            let last = self.slots.other_end(first).unwrap_or(first).max(first);
            next = last + 1;
            let has = |tsn, flag| self.slots.held(tsn).is_some_and(|d| d.flags.has(flag));
            let (begins, ends) = (has(first, DataFlags::BEGIN), has(last, DataFlags::END));
            if begins && (ends || last >= cumulative) {
                continue;
            }
            self.drop_run(first, last);
        }
    }

    fn drop_run(&mut self, first: u64, last: u64) {
        for one in first..=last {
            meter::count(1);
            let dropped = self.slots.take(one);
            self.held_bytes -= dropped.map_or(0, |held| charge_of(&held.data));
        }
    }

    /// Drops fragments that follow skipped ones and do not begin a message: their message was abandoned.
    /// Returns whether they were dropped.
    #[cold]
    pub(super) fn drop_orphans(&mut self, first: u64, last: u64) -> bool {
        let begins = self.slots.held(first).is_none_or(|d| d.flags.has(DataFlags::BEGIN));
        if !begins {
            self.drop_run(first, last);
            self.skipped_to = last;
        }
        !begins
    }

    /// Delivers the complete messages of a stream up to `ssn`, and continues after it.
    fn skip_ssns(&mut self, now: Time, stream: StreamId, ssn: Serial16) {
        for tsns in self.streams.skip(stream, ssn) {
            self.release_message(now, *tsns.start(), *tsns.end(), Part::Whole);
        }
        self.release_waiting(now, stream);
    }
}
