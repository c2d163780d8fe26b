//! One end: an association, its user, and a witness that checks its behaviour.

use std::collections::BTreeMap;

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Seed, Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{Association, Event, Packet as SctpPacket};
use ropewalk_engine::sctp::{Message, Part};
use ropewalk_netsim::{Host, Outbox, Packet, Port, RouteId};

use super::case::Load;
use super::promises::Promises;
use crate::ledger::Ledger;
use crate::rules;

/// One message, known to both ends.
#[derive(Clone, Debug)]
pub struct Planned {
    pub stream: u16,
    pub size: u32,
    pub unordered: bool,
}

/// All messages of one direction.
#[derive(Clone, Debug)]
pub struct Plan {
    pub messages: Vec<Planned>,
    real: bool,
}

impl Plan {
    pub fn draw(load: &Load, bytes: u64, streams: u16, seed: Seed) -> Self {
        let mut rng = seed.rng();
        let (least, most) = load.message;
        let (mut left, mut messages) = (bytes, Vec::new());
        while left > 0 {
            let drawn = least + rng.below(u64::from(most - least) + 1) as u32;
            let stream = rng.below(u64::from(streams)) as u16;
            let unordered = rng.chance(load.unordered);
            // The last one may exceed the remainder: unordered ones must not be too short.
            messages.push(Planned { stream, size: drawn, unordered });
            left = left.saturating_sub(u64::from(drawn));
        }
        Self { messages, real: load.real }
    }

    /// Size of all messages together, bytes.
    pub fn bytes(&self) -> u64 {
        self.messages.iter().map(|message| u64::from(message.size)).sum()
    }

    pub fn payload(&self, number: usize) -> Payload {
        let size = self.messages[number].size;
        if self.real { Payload::from(content(number, size)) } else { Payload::Length(size) }
    }
}

fn content(number: usize, size: u32) -> Bytes {
    let tag = (number as u32).to_be_bytes();
    (0..size)
        .map(|i| tag.get(i as usize).copied().unwrap_or((number as u32 ^ i.rotate_left(3)) as u8))
        .collect::<Vec<u8>>()
        .into()
}

/// Received messages compared with the sent ones.
#[derive(Clone, Debug)]
pub struct Inbox {
    plan: Plan,
    /// Expected ordered messages of each stream, last first.
    ordered: Vec<Vec<usize>>,
    /// Unordered messages by number.
    loose: BTreeMap<usize, ()>,
    /// The received parts of messages longer than the buffer: one message per stream and order, or one in
    /// total.
    parts: BTreeMap<(StreamId, bool), Vec<Payload>>,
    /// By stream.
    numbers: Vec<Numbers>,
}

/// Numbers of the last ordered message, or part of one, on a stream.
#[derive(Clone, Copy, Debug, Default)]
struct Numbers {
    last: Option<(Serial16, Serial32)>,
}

impl Numbers {
    /// Checks that messages of a stream are numbered from 0, and that the TSNs of their first chunks
    /// ascend.
    fn check(&mut self, part: Part, ssn: Serial16, tsn: Serial32) -> Result<(), String> {
        let begins = matches!(part, Part::Whole | Part::First);
        let fits = match self.last {
            None => ssn == Serial16(0),
            Some((last, before)) => {
                ssn == last.plus(u16::from(begins)) && tsn.distance_from(before) > 0
            }
        };
        self.last = Some((ssn, tsn));
        if fits { Ok(()) } else { Err(format!("{part:?} with {ssn:?} and {tsn:?}")) }
    }
}

impl Inbox {
    pub fn new(plan: Plan, streams: u16) -> Self {
        let mut ordered = vec![Vec::new(); streams as usize];
        let mut loose = BTreeMap::new();
        for (number, message) in plan.messages.iter().enumerate().rev() {
            if message.unordered {
                loose.insert(number, ());
            } else {
                ordered[message.stream as usize].push(number);
            }
        }
        let numbers = vec![Numbers::default(); streams as usize];
        Self { plan, ordered, loose, parts: BTreeMap::new(), numbers }
    }

    pub fn is_complete(&self) -> bool {
        self.loose.is_empty() && self.ordered.iter().all(Vec::is_empty)
    }

    pub fn missing(&self) -> usize {
        self.loose.len() + self.ordered.iter().map(Vec::len).sum::<usize>()
    }

    fn take_part(&mut self, message: Message, interleaved: bool) -> Result<(), String> {
        let Message { stream, part, unordered, .. } = message;
        let way = (stream, unordered);
        if !unordered {
            self.numbers[stream.0 as usize].check(part, message.ssn, message.tsn)?;
        }
        let begun = self.parts.contains_key(&way);
        let taken = if interleaved { begun } else { !self.parts.is_empty() };
        match part {
            Part::Whole => return self.take(stream, &message.payload),
            Part::First if taken => return Err("two messages in parts at a time".to_owned()),
            Part::Middle | Part::Last if !begun => return Err("a part of nothing".to_owned()),
            _ => self.parts.entry(way).or_default().push(message.payload),
        }
        if part != Part::Last {
            return Ok(());
        }
        let all = Payload::concat(&self.parts.remove(&way).unwrap_or_default());
        self.take(stream, &all)
    }

    fn take(&mut self, stream: StreamId, payload: &Payload) -> Result<(), String> {
        if let Payload::Bytes(bytes) = payload
            && let Some(tag) = bytes.get(..4)
        {
            let number = u32::from_be_bytes([tag[0], tag[1], tag[2], tag[3]]) as usize;
            if self.loose.remove(&number).is_some() {
                return self.compare(number, stream, payload);
            }
        }
        let Some(number) = self.ordered[stream.0 as usize].pop() else {
            return Err(format!("{stream:?}: {} B that nobody sent, or twice", payload.len()));
        };
        self.compare(number, stream, payload)
    }

    fn compare(&self, number: usize, stream: StreamId, payload: &Payload) -> Result<(), String> {
        let expected = self.plan.payload(number);
        if self.plan.messages[number].stream != stream.0 || expected != *payload {
            return Err(format!(
                "message {number}: {} B on {stream:?} instead of {} B on {}, or other bytes",
                payload.len(),
                expected.len(),
                self.plan.messages[number].stream
            ));
        }
        Ok(())
    }
}

/// One end.
#[derive(Clone, Debug)]
pub struct End {
    pub association: Association,
    pub routes: Vec<RouteId>,
    pub outbox: Plan,
    pub inbox: Inbox,
    pub ledger: Ledger,
    pub sent: usize,
    pub closed: Option<CloseReason>,
    /// The first error.
    pub wrong: Option<String>,
    /// The first chunk sent beyond the peer's offer. A peer that has dropped reported data makes an end
    /// assume more room than there is.
    pub beyond: Option<String>,
    every: Duration,
    next_write: Time,
    reads_every: Duration,
    next_read: Time,
    wakes: (Time, u32),
    lower_header: u32,
    promises: Promises,
}

/// More wake-ups than this at one time, or more packets in response to one input, indicate an endless
/// loop.
const WAKES_LIMIT: u32 = 1000;
const BURST_LIMIT: usize = 20_000;

impl End {
    pub fn new(association: Association, load: &Load, outbox: Plan, inbox: Inbox) -> Self {
        let config = association.config();
        Self {
            lower_header: config.lower_header,
            ledger: Ledger::new(config.chunk_limit()),
            association,
            routes: Vec::new(),
            outbox,
            inbox,
            sent: 0,
            closed: None,
            wrong: None,
            beyond: None,
            every: Duration::from_micros(load.every),
            next_write: Time::ZERO,
            reads_every: Duration::from_millis(load.reads_every),
            next_read: Time::ZERO,
            wakes: (Time::ZERO, 0),
            promises: Promises::default(),
        }
    }

    fn blame(&mut self, now: Time, what: impl FnOnce() -> String) {
        if self.wrong.is_none() {
            self.wrong = Some(format!("at {now}: {}", what()));
        }
    }

    fn read(&mut self, now: Time) {
        if now < self.next_read {
            return;
        }
        if !self.reads_every.is_zero() {
            self.next_read = now + self.reads_every;
        }
        while let Some(message) = self.association.read(now) {
            if let Err(what) = self.inbox.take_part(message, self.association.interleaves()) {
                self.blame(now, || what);
            }
        }
    }

    fn write(&mut self, now: Time) {
        while let Some(message) = self.outbox.messages.get(self.sent) {
            if !self.every.is_zero() && now < self.next_write || self.association.send_room() == 0 {
                return;
            }
            let (stream, unordered) = (StreamId(message.stream), message.unordered);
            let payload = self.outbox.payload(self.sent);
            if self.association.send(stream, payload, unordered).is_err() {
                return;
            }
            self.sent += 1;
            self.next_write = now + self.every;
        }
    }

    fn drain(&mut self, now: Time, out: &mut Outbox<'_, SctpPacket>) {
        self.read(now);
        self.write(now);
        for count in 0.. {
            let Some(transmit) = self.association.poll_transmit(now) else { break };
            if count > BURST_LIMIT {
                self.blame(now, || "it sends without end".to_owned());
                break;
            }
            if let Some(rule) = rules::broken(now, &self.association, &transmit) {
                self.blame(now, || format!("{rule}: {transmit:?}"));
            }
            self.witness(now, &transmit.packet, transmit.path);
            let size = self.size_of(&transmit.packet);
            let mut packet = Packet::new(size, 0, transmit.packet);
            packet.round = transmit.round;
            out.send(self.routes[transmit.path.index()], packet);
        }
        while let Some(event) = self.association.poll_event() {
            if let Event::Closed(reason) = event {
                self.closed = Some(reason);
            }
        }
        let (held, free) = self.association.receive_occupancy();
        let capacity = self.association.config().receive_capacity();
        // A chunk that others wait for may exceed the buffer if none of them may be dropped.
        let config = self.association.config();
        let beyond = if config.nr_sack { u64::from(config.chunk_limit()) } else { 0 };
        if held + free > capacity + beyond {
            self.blame(now, || format!("{held} B held and {free} B free of {capacity} B"));
        }
    }

    /// Size of an IP packet, bytes.
    fn size_of(&self, packet: &SctpPacket) -> u32 {
        packet.wire_len_in(self.association.config().packet_form) + self.lower_header
    }

    /// Bytes in flight on all paths.
    pub fn in_flight(&self, now: Time) -> u64 {
        let paths = (0..self.routes.len()).map(PathId::from_index);
        paths.map(|path| self.association.path_view(now, path).in_flight).sum()
    }

    /// Checks every packet that is sent.
    fn witness(&mut self, now: Time, packet: &SctpPacket, path: PathId) {
        if let Some(what) = self.promises.broken(packet) {
            self.blame(now, || what);
        }
        let mtu = self.association.config().paths[path.index()].mtu;
        let size = self.size_of(packet);
        if size > mtu {
            self.blame(now, || format!("a packet of {size} B on a path of {mtu} B: {packet:?}"));
        }
        if let Some(beyond) = self.ledger.sent(packet) {
            // One chunk may exceed the offer: the zero-window probe, with nothing else in flight.
            let chunk = beyond.bytes;
            let flying = self.in_flight(now);
            if flying > chunk && self.beyond.is_none() {
                let what = format!("at {now}: span rule: {beyond:?}, {flying} B in flight");
                self.beyond = Some(what);
            }
        }
    }
}

impl Host<SctpPacket> for End {
    fn receive(
        &mut self,
        now: Time,
        port: Port,
        packet: Packet<SctpPacket>,
        out: &mut Outbox<'_, SctpPacket>,
    ) {
        self.ledger.received(&packet.payload);
        self.promises.received(&packet.payload);
        self.association.handle_datagram(now, PathId(port.0 as u8), packet.payload);
        self.drain(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Outbox<'_, SctpPacket>) {
        self.wakes = if self.wakes.0 == now { (now, self.wakes.1 + 1) } else { (now, 0) };
        if self.wakes.1 > WAKES_LIMIT {
            self.blame(now, || "it wants to be woken for ever".to_owned());
            return;
        }
        self.association.handle_timeout(now);
        self.drain(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        if self.wrong.is_some() {
            return None;
        }
        let mut next = self.association.next_deadline();
        let mut consider = |at: Time| next = Some(next.map_or(at, |n| n.min(at)));
        let waits = self.sent < self.outbox.messages.len();
        if waits && !self.every.is_zero() && self.association.send_room() > 0 {
            consider(self.next_write);
        }
        if !self.reads_every.is_zero() && !self.inbox.is_complete() {
            consider(self.next_read);
        }
        next
    }
}
