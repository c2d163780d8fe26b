//! Partial delivery (RFC 9260, 6.9): a message longer than the buffer is delivered in parts, to make room for
//! the rest.

use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::{Message, Part, ReceiveBuffer};
use crate::payload::Payload;
use crate::sctp::{Data, DataFlags};

/// A message whose beginning has been delivered.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartialDelivery {
    stream: StreamId,
    ssn: Serial16,
    unordered: bool,
}

impl PartialDelivery {
    /// Whether this is an ordered message of `stream`.
    pub(super) fn is_on(&self, stream: StreamId) -> bool {
        !self.unordered && self.stream == stream
    }

    /// Whether a fragment continues this message.
    pub(super) fn goes_on_with(&self, data: &Data) -> bool {
        data.stream == self.stream
            && data.flags.has(DataFlags::UNORDERED) == self.unordered
            && (self.unordered || data.ssn == self.ssn)
    }
}

impl ReceiveBuffer {
    /// Delivers the beginning of the first message if there is no other way to make room: the buffer
    /// accepts no further chunk, and the user has no message to read.
    #[inline]
    pub fn offer_part(&mut self, now: Time) {
        if self.fragmented && self.held_bytes > 0 && self.ready.is_empty() {
            self.offer_fragments(now);
        }
    }

    #[inline(never)]
    fn offer_fragments(&mut self, now: Time) {
        if self.window() >= u64::from(self.largest) {
            return;
        }
        if self.messages.is_some() {
            self.begin_parts(now);
        } else {
            self.begin_part(now);
        }
    }

    #[cold]
    fn begin_part(&mut self, now: Time) {
        let base = self.slots.base();
        let Some(data) = self.slots.held(base).filter(|_| self.begun.is_none()) else { return };
        let unordered = data.flags.has(DataFlags::UNORDERED);
        let begun = PartialDelivery { stream: data.stream, ssn: data.ssn, unordered };
        let turn = unordered || self.streams.is_next(begun.stream, begun.ssn);
        let Some(last) = self.slots.other_end(base).filter(|_| turn) else { return };
        self.begun = Some(begun);
        self.release_message(now, base, last, Part::First);
        self.slots.drop_released(self.gaps.cumulative());
        self.stats.held_changed(now, self.held_bytes);
    }

    /// Delivers the run from the base to `last`, which continues the partially delivered message.
    #[cold]
    pub(super) fn continue_part(&mut self, now: Time, last: u64) {
        let ends = self.slots.held(last).is_some_and(|d| d.flags.has(DataFlags::END));
        let part = if ends { Part::Last } else { Part::Middle };
        self.release_message(now, self.slots.base(), last, part);
        if let Some(begun) = self.begun.take_if(|_| ends).filter(|b| !b.unordered) {
            self.streams.advance(begun.stream);
            self.release_waiting(now, begun.stream);
        }
    }

    /// Ends the partially delivered message with an empty part if the sender has abandoned its rest,
    /// which starts at the base (RFC 3758, 3.6).
    pub(super) fn cut_part_off(&mut self, skipped_to: u64) {
        let base = self.slots.base();
        let Some(begun) = self.begun.take_if(|_| base <= skipped_to) else { return };
        let PartialDelivery { stream, ssn, unordered } = begun;
        let (tsn, payload, part) = (Serial32::wrap(base), Payload::Length(0), Part::Last);
        self.ready.push(Message { stream, ppid: 0, ssn, tsn, payload, part, unordered, charge: 0 });
        if !unordered {
            self.streams.advance(stream);
        }
    }
}
