//! The receive buffer of an association with interleaving (RFC 8260): reassembly by message identifier
//! and fragment sequence number. TSNs serve only for acknowledgements.

use std::collections::BTreeMap;

use ropewalk_base::{Serial16, Serial32, Time};

use super::messages::{Delivery, Fit, Messages, Passed, Way, stream_of, way_of};
use super::slots::Held;
use super::{Message, Part, ReceiveBuffer, charge_of};
use crate::payload::Payload;
use crate::receive::Arrival;
use crate::sctp::{Data, DataFlags};

impl ReceiveBuffer {
    /// Expects I-DATA instead of DATA from now on. `takes_datagrams`: datagrams still arrive as DATA.
    pub fn interleave(&mut self, takes_datagrams: bool) {
        self.messages = Some(Box::new(Messages::new(takes_datagrams)));
    }

    /// Identifier of the next ordered message of a stream, `None` if messages are not interleaved.
    pub(crate) fn next_message_on(&self, stream: u16) -> Option<Serial32> {
        self.messages.as_ref().map(|messages| messages.next_of(stream))
    }

    /// Handles [`Self::on_data`] if messages are interleaved or the chunk is I-DATA. Not inlined, so that
    /// associations without interleaving do not pay for it.
    #[cold]
    pub(super) fn on_i_data(&mut self, now: Time, tsn: u64, data: Data) -> Arrival {
        if self.is_of_wrong_type(&data) {
            return Arrival::Violation;
        }
        let charge = charge_of(&data);
        match self.refuse(now, tsn, &data, charge) {
            Some(refused) => refused,
            None => self.take_interleaved(now, tsn, data, charge),
        }
    }

    pub(super) fn settle_message_cost(&mut self) {
        self.message_cost = self.messages.as_ref().map_or(0, |messages| messages.cost());
    }

    /// Whether a chunk is of the wrong type (RFC 8260, 2.2.2: messages are sent as I-DATA if both ends support it, and
    /// otherwise as DATA).
    fn is_of_wrong_type(&self, data: &Data) -> bool {
        !self.messages.as_ref().is_some_and(|messages| {
            data.is_interleaved() || messages.takes_datagrams && data.is_datagram()
        })
    }

    /// Accepts a chunk for which there is room.
    fn take_interleaved(&mut self, now: Time, tsn: u64, data: Data, charge: u64) -> Arrival {
        let Some(messages) = &self.messages else { return Arrival::Violation };
        // An unordered message in one DATA chunk has no identifier.
        let fit = if data.is_interleaved() { messages.fit(&data) } else { Fit::Fresh };
        if fit == Fit::Violation {
            return Arrival::Violation;
        }
        self.fragmented |= !data.flags.has(DataFlags::WHOLE);
        self.note_size(charge);
        self.stats.received += 1;
        let in_order = tsn == self.cumulative() + 1;
        if in_order {
            self.gaps.advance();
        } else {
            self.gaps.insert(tsn);
            self.stats.stored += 1;
        }
        match fit {
            Fit::Late => self.slots.mark_released(tsn, &self.gaps),
            _ => self.keep_or_deliver(now, tsn, data, charge),
        }
        self.settle_message_cost();
        self.finish_take(now, in_order)
    }

    fn keep_or_deliver(&mut self, now: Time, tsn: u64, mut data: Data, charge: u64) {
        let Some(messages) = &mut self.messages else { return };
        let way = way_of(&data);
        if !data.is_interleaved() || messages.passes(&data) {
            messages.pass(way);
            self.slots.mark_released(tsn, &self.gaps);
            self.deliver(now, now, &mut data);
            return self.deliver_next(now, way);
        }
        messages.keep(&data, tsn);
        let completed = messages.take_completed(&data);
        self.held_bytes += charge;
        self.slots.keep(tsn, Held { data, arrived: now, run: tsn }, &self.gaps);
        if let Some(delivery) = completed {
            let ends = delivery.ends;
            self.deliver_part(now, way, delivery);
            if ends {
                self.deliver_next(now, way);
            }
        }
    }

    /// Delivers the complete messages of a stream that are next in order.
    fn deliver_next(&mut self, now: Time, way: Way) {
        let (stream, unordered) = way;
        while !unordered
            && let Some(delivery) = self.messages.as_mut().and_then(|all| all.take_next(stream))
        {
            self.deliver_part(now, way, delivery);
        }
    }

    /// Delivers a message or a part of one.
    fn deliver_part(&mut self, now: Time, way: Way, delivery: Delivery) {
        let Delivery { tsns, ppid, begins, ends } = delivery;
        let part = match (begins, ends) {
            (true, true) => Part::Whole,
            (true, false) => Part::First,
            (false, false) => Part::Middle,
            (false, true) => Part::Last,
        };
        let (mut charge, mut payloads, mut kept) = (0, Vec::with_capacity(tsns.len()), ppid);
        let mut numbers = None;
        for tsn in tsns {
            let Some(Held { data, arrived, .. }) = self.slots.take(tsn) else { continue };
            self.held_bytes -= charge_of(&data);
            self.stats.delivered(now, arrived, data.first_sent, data.payload.len());
            charge += charge_of(&data);
            numbers.get_or_insert((data.ssn, data.tsn));
            if kept.is_none() {
                kept = Some(data.ppid);
                if let Some(messages) = self.messages.as_mut().filter(|_| part == Part::First) {
                    messages.note_ppid(&data, data.ppid);
                }
            }
            payloads.push(data.payload);
        }
        let payload = Payload::concat(&payloads);
        let (stream, unordered, ppid) = (stream_of(way), way.1, kept.unwrap_or_default());
        let (ssn, tsn) = numbers.unwrap_or_default();
        self.ready.push(Message { stream, ppid, ssn, tsn, payload, part, unordered, charge });
    }

    /// Delivers a part of each message that is next in order and whose beginning has arrived. Each
    /// message may be longer than the buffer, and may wait for room that only partial delivery of the
    /// others can make.
    #[cold]
    pub(super) fn begin_parts(&mut self, now: Time) {
        while let Some((way, delivery)) = self.messages.as_mut().and_then(|all| all.take_offer()) {
            self.deliver_part(now, way, delivery);
        }
        self.settle_message_cost();
        self.slots.drop_released(self.gaps.cumulative());
        self.stats.held_changed(now, self.held_bytes);
    }

    /// Counts all TSNs up to `tsn` as received and skips the abandoned messages: up to the last one per
    /// stream and order (RFC 8260, 2.3.1). Returns whether the cumulative TSN moved.
    #[cold]
    pub fn skip_messages(
        &mut self,
        now: Time,
        tsn: u64,
        skipped: &BTreeMap<(u16, bool), Serial32>,
    ) -> bool {
        if tsn <= self.cumulative() || tsn - self.cumulative() > super::REACH {
            return false;
        }
        let before = self.cumulative();
        self.gaps.skip_to(tsn);
        self.slots.skip_to(before + 1, tsn);
        for (way, last) in skipped {
            let passed = self.messages.as_mut().map(|all| all.skip(*way, *last));
            passed.into_iter().flatten().for_each(|one| self.pass_over(now, *way, one));
            self.deliver_next(now, *way);
        }
        self.settle_message_cost();
        self.slots.drop_released(self.gaps.cumulative());
        self.offer_part(now);
        self.stats.held_changed(now, self.held_bytes);
        true
    }

    pub(super) fn pass_over(&mut self, now: Time, way: Way, passed: Passed) {
        let (tsns, begun) = match passed {
            Passed::Complete(delivery) => return self.deliver_part(now, way, delivery),
            Passed::Dropped { tsns, begun } => (tsns, begun),
        };
        for tsn in tsns {
            let dropped = self.slots.take(tsn);
            self.held_bytes -= dropped.map_or(0, |held| charge_of(&held.data));
        }
        if let Some(message) = begun {
            let (payload, part) = (Payload::Length(0), Part::Last);
            let (stream, unordered, ssn) = (stream_of(way), way.1, Serial16(message as u16));
            // Its TSN is among those that the sender has skipped.
            let tsn = Serial32::wrap(self.cumulative());
            let (ppid, charge) = (0, 0);
            self.ready.push(Message { stream, ppid, ssn, tsn, payload, part, unordered, charge });
        }
    }
}
