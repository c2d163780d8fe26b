//! Two ends connected by scripted paths, in virtual time. Deterministic: simultaneous events happen in
//! the order of their creation.

mod links;

use std::cell::Cell;
use std::collections::BTreeMap;

use bytes::Bytes;
use ropewalk_base::{Duration, Ecn, PathId, Seed, Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::recovery::LossDetection;
use ropewalk_engine::scheduler::{DelaySource, PathView, Quota, Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::Message;
use ropewalk_engine::sctp::association::{CloseReason, PacketSize, PathCounters, SendError, State};
use ropewalk_engine::sctp::wire::{Checksum, Ports, compact, decode, encode};
use ropewalk_engine::sctp::{
    AddressChange, Association, Chunk, Config, Data, Delivery, Event, ExtensionChunk, Extensions,
    Negotiation, NrSack, Packet, PacketForm, PathConfig, Preset, Reconfigured, Sack, Transmit,
};

pub use self::links::address_of;
use crate::ledger::Ledger;
use crate::rules;

/// The ends: `LEFT` opens the association and, in most tests, sends.
pub const LEFT: usize = 0;
pub const RIGHT: usize = 1;

/// Bytes of user data in a full chunk on paths of 1500 B.
pub const FULL: u32 = 1500 - 20 - 12 - 16;

/// The fate of a packet in the network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fate {
    /// It arrives after the delay of its path.
    Arrive,
    /// It is lost.
    Drop,
    /// It arrives later by this time, and may be overtaken.
    Late(Duration),
    /// It arrives twice.
    Twice,
    /// It arrives, marked by the network.
    Marked,
}

/// A packet that left an end.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Time,
    pub from: usize,
    pub path: usize,
    pub packet: Packet,
    pub size: PacketSize,
    pub ecn: Ecn,
    pub fate: Fate,
}

impl Sent {
    pub fn data(&self) -> impl Iterator<Item = &Data> {
        self.packet.chunks.iter().filter_map(|c| match c {
            Chunk::Data(data) => Some(data),
            _ => None,
        })
    }

    pub fn sack(&self) -> Option<&Sack> {
        self.packet.chunks.iter().find_map(|c| match c {
            Chunk::Sack(sack) => Some(sack),
            _ => None,
        })
    }

    pub fn nr_sack(&self) -> Option<&NrSack> {
        self.packet.chunks.iter().find_map(|chunk| match chunk {
            Chunk::Extension(one) => match &**one {
                ExtensionChunk::NrSack(sack) => Some(sack),
                _ => None,
            },
            _ => None,
        })
    }

    /// Names of its chunks.
    pub fn names(&self) -> Vec<&'static str> {
        self.packet.chunks.iter().map(name).collect()
    }
}

pub fn name(chunk: &Chunk) -> &'static str {
    match chunk {
        Chunk::Data(data) if data.is_interleaved() => "I-DATA",
        Chunk::Data(_) => "DATA",
        Chunk::Sack(_) => "SACK",
        Chunk::Init(_) => "INIT",
        Chunk::InitAck(_) => "INIT ACK",
        Chunk::CookieEcho(_) => "COOKIE ECHO",
        Chunk::CookieAck => "COOKIE ACK",
        Chunk::Error(_) => "ERROR",
        Chunk::Heartbeat(_) => "HEARTBEAT",
        Chunk::HeartbeatAck(_) => "HEARTBEAT ACK",
        Chunk::Shutdown(_) => "SHUTDOWN",
        Chunk::ShutdownAck => "SHUTDOWN ACK",
        Chunk::ShutdownComplete { .. } => "SHUTDOWN COMPLETE",
        Chunk::Abort { .. } => "ABORT",
        Chunk::Extension(one) if matches!(**one, ExtensionChunk::Asconf(..)) => "ASCONF",
        Chunk::Extension(one) if matches!(**one, ExtensionChunk::AsconfAck(..)) => "ASCONF ACK",
        Chunk::Extension(one) if matches!(**one, ExtensionChunk::ForwardTsn(_)) => "FORWARD-TSN",
        Chunk::Extension(one) if matches!(**one, ExtensionChunk::ReConfig(_)) => "RE-CONFIG",
        Chunk::Extension(one) if matches!(**one, ExtensionChunk::NrSack(_)) => "NR-SACK",
        Chunk::Extension(_) => "of an extension",
        Chunk::Unknown(_) => "unknown",
    }
}

/// The packet as decoded by its receiver. Every packet of every test is encoded and decoded, and must be
/// unchanged except for fields that are not on the wire.
fn through_the_codec(packet: &Packet) -> Packet {
    let ports = Ports { source: 5001, destination: 9899 };
    let mut bytes = Vec::new();
    encode(packet, ports, Checksum::Crc32c, &mut bytes);
    assert_eq!(bytes.len(), packet.wire_len() as usize, "{packet:?}");
    let mut carried = Packet::default();
    let found = decode(&bytes, Checksum::Crc32c, &mut carried);
    assert_eq!(found, Ok(ports), "{packet:?}");
    // The layer below carries the number.
    carried.number = packet.number;
    let mut expected = packet.clone();
    for chunk in &mut expected.chunks {
        if let Chunk::Data(data) = chunk {
            data.first_sent = Time::ZERO;
            if let Payload::Length(size) = data.payload {
                data.payload = Payload::from(Bytes::from(vec![0; size as usize]));
            }
        }
    }
    assert_eq!(carried, expected);
    in_the_compact_form(packet, &expected);
    carried
}

/// If the packet has a compact form, it is also decoded from that form.
fn in_the_compact_form(packet: &Packet, expected: &Packet) {
    let form = compact::form_of(packet);
    if form == compact::STANDARD {
        return;
    }
    let mut bytes = Vec::new();
    compact::encode(packet, &mut bytes);
    assert_eq!(bytes.len(), packet.wire_len_in(PacketForm::Compact) as usize, "{packet:?}");
    let near = packet.chunks.iter().rev().find_map(|chunk| match chunk {
        Chunk::Data(data) => Some(data.tsn),
        _ => None,
    });
    let context = compact::Context { tag: packet.tag, near: near.unwrap_or(Serial32(0)) };
    let mut carried = Packet::default();
    let found = compact::decode(form, &bytes, context, &mut carried);
    assert_eq!(found, Ok(()), "{packet:?}");
    // The clock is sent in microseconds.
    if let (Some(carried), Some(sent)) = (&mut carried.echo, &expected.echo) {
        assert_eq!(carried.received, sent.received / 1000 * 1000);
        carried.received = sent.received;
    }
    let mut expected = Packet { ce: false, number: None, ..expected.clone() };
    match expected.chunks.last_mut() {
        // The SSN of an unordered chunk is ignored, and not sent.
        Some(Chunk::Data(data)) if data.is_datagram() => data.ssn = Serial16(0),
        _ => {}
    }
    assert_eq!(carried, expected);
}

type Script = Box<dyn FnMut(&Sent) -> Fate>;

enum Happening {
    Arrival { to: usize, path: usize, packet: Packet },
}

/// The pair.
pub struct Pair {
    pub ends: [Association; 2],
    pub now: Time,
    /// One-way delay of each link.
    pub delays: Vec<Duration>,
    /// Every packet that was sent, in order.
    pub log: Vec<Sent>,
    pub events: [Vec<(Time, Event)>; 2],
    /// Events about streams, and the number of messages that the user had read at that time.
    pub reconfigured: [Vec<(usize, Reconfigured)>; 2],
    /// Changes of addresses. The address of link `n` is [`address_of`] at both ends.
    pub addresses: [Vec<AddressChange>; 2],
    /// Messages that the users have read.
    pub read: [Vec<Message>; 2],
    /// When they read it.
    pub read_at: [Vec<Time>; 2],
    /// Whether the users read.
    pub reads: [bool; 2],
    /// Whether the decoded packet arrives instead of the sent one.
    pub through_bytes: bool,
    /// The link of each path, if it differs.
    links: [Vec<usize>; 2],
    script: Script,
    agenda: BTreeMap<(Time, u64), Happening>,
    made: u64,
    books: [Ledger; 2],
    /// The ledgers do not account for chunks that an end has abandoned, which no longer occupy room.
    abandons: [bool; 2],
    /// TSNs start over, which the ledgers do not support.
    pub resets_tsns: bool,
}

thread_local! {
    /// The preset of [`config`] in the test of this thread.
    static PRESET: Cell<Preset> = const { Cell::new(Preset::Rfc9260) };
}

/// Runs a test with a preset other than that of the simulator.
pub fn under(preset: Preset, test: fn()) {
    PRESET.set(preset);
    test();
    PRESET.set(Preset::Rfc9260);
}

/// A configuration for `paths` paths of 1500 B, following RFC 9260.
pub fn config(paths: usize, receive_buffer: u64) -> Config {
    preset_config(PRESET.get(), paths, receive_buffer)
}

/// The same with the rules of a preset. A preset of sockets gets a peer that announces nothing, and
/// packets have the same capacity as in the simulator.
pub fn preset_config(preset: Preset, paths: usize, receive_buffer: u64) -> Config {
    let settings = Config::preset(preset, vec![PathConfig::default(); paths], receive_buffer);
    if !matches!(preset, Preset::Live | Preset::LiveRfc9260) {
        return settings;
    }
    Config {
        negotiation: Negotiation::Listed(Extensions::NONE),
        mtu_discovery: None,
        ecn: false,
        lower_header: 20,
        packet_form: PacketForm::Standard,
        delay_source: DelaySource::HalfRtt,
        ..settings
    }
}

/// The same with loss detection as in RFC 9260: by reports and by the timer.
pub fn as_published(paths: usize, receive_buffer: u64) -> Config {
    Config { recovery: LossDetection::MissingReports, ..config(paths, receive_buffer) }
}

pub fn scheduler(name: &str) -> Scheduler {
    Scheduler::from_name(name, &SchedulerOptions::default()).expect("a built-in scheduler")
}

/// Uses each open path in turn, packet by packet, so that every path carries data.
pub fn in_turn() -> Scheduler {
    let options = SchedulerOptions { quota: Quota::Packet, ..SchedulerOptions::default() };
    Scheduler::from_name("round-robin", &options).expect("a built-in scheduler")
}

/// Bytes that differ between positions and between salts.
pub fn numbered(size: u32, salt: u32) -> Payload {
    let bytes: Vec<u8> = (0..size).map(|i| (i.wrapping_mul(31) ^ salt) as u8).collect();
    Payload::from(Bytes::from(bytes))
}

pub fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub fn at_ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

impl Pair {
    /// Two ends that have not sent anything; `delays` in milliseconds, one way.
    pub fn new(config: &Config, delays: &[u64]) -> Self {
        Self::with(config, config, delays, [in_turn(), in_turn()])
    }

    pub fn with(
        left: &Config,
        right: &Config,
        delays: &[u64],
        [one, other]: [Scheduler; 2],
    ) -> Self {
        let seed = Seed::root(7);
        let later = Time::ZERO;
        let opener = Association::start_later(left.clone(), one, seed.child("left"), later);
        let listener = Association::listen(right.clone(), other, seed.child("right"));
        Self::of(opener, listener, delays)
    }

    pub fn of(left: Association, right: Association, delays: &[u64]) -> Self {
        let books = [&left, &right].map(|end| Ledger::new(end.config().chunk_limit()));
        Self {
            ends: [left, right],
            now: Time::ZERO,
            delays: delays.iter().copied().map(ms).collect(),
            log: Vec::new(),
            events: [Vec::new(), Vec::new()],
            reconfigured: [Vec::new(), Vec::new()],
            addresses: [Vec::new(), Vec::new()],
            read: [Vec::new(), Vec::new()],
            read_at: [Vec::new(), Vec::new()],
            reads: [true, true],
            through_bytes: false,
            links: [Vec::new(), Vec::new()],
            script: Box::new(|_| Fate::Arrive),
            agenda: BTreeMap::new(),
            made: 0,
            books,
            abandons: [false, false],
            resets_tsns: false,
        }
    }

    /// Replaces a crashed end by another association.
    pub fn replace(&mut self, end: usize, association: Association) {
        self.books = [0, 1].map(|end| Ledger::new(self.ends[end].config().chunk_limit()));
        self.ends[end] = association;
        self.links[end] = Vec::new();
        self.drain(end);
    }

    /// Sets the fate of packets from now on.
    pub fn script(&mut self, script: impl FnMut(&Sent) -> Fate + 'static) {
        self.script = Box::new(script);
    }

    /// No more losses.
    pub fn heal(&mut self) {
        self.script(|_| Fate::Arrive);
    }

    /// A pair that is up, with every path confirmed, and an empty log.
    pub fn up(config: &Config, delays: &[u64]) -> Self {
        let mut pair = Self::new(config, delays);
        pair.connect();
        pair
    }

    /// Runs until both are up and all paths are confirmed.
    pub fn connect(&mut self) {
        self.run_for(ms(8 * self
            .delays
            .iter()
            .map(|d| d.as_nanos() / 1_000_000)
            .max()
            .unwrap_or(0)
            + 1));
        for end in [LEFT, RIGHT] {
            assert_eq!(*self.ends[end].state(), State::Established, "end {end}");
        }
        self.log.clear();
    }

    /// Exchanges one small message in each direction: the first DATA of an association is acknowledged
    /// immediately (RFC 9260, 5.1).
    pub fn greet(&mut self) {
        for end in [LEFT, RIGHT] {
            self.send(end, 20);
            self.run_for(ms(1000));
        }
        self.log.clear();
        self.read = [Vec::new(), Vec::new()];
        self.read_at = [Vec::new(), Vec::new()];
    }

    fn put(&mut self, at: Time, happening: Happening) {
        self.agenda.insert((at, self.made), happening);
        self.made += 1;
    }

    /// Passes a packet to an end as if it came from its peer on `path`.
    pub fn inject(&mut self, to: usize, path: usize, packet: Packet) {
        self.arrive(to, path, packet);
        self.drain(to);
    }

    /// Drains an end after application calls.
    pub fn drain(&mut self, end: usize) {
        if self.reads[end] {
            while let Some(message) = self.ends[end].read(self.now) {
                self.read[end].push(message);
                self.read_at[end].push(self.now);
            }
        }
        while let Some(transmit) = self.ends[end].poll_transmit(self.now) {
            self.leave(end, transmit);
        }
        while let Some(event) = self.ends[end].poll_event() {
            self.events[end].push((self.now, event));
        }
        while let Some(event) = self.ends[end].poll_reconfiguration() {
            self.reconfigured[end].push((self.read[end].len(), event));
        }
        self.follow_addresses(end);
    }

    fn leave(&mut self, from: usize, transmit: Transmit) {
        if let Some(rule) = rules::broken(self.now, &self.ends[from], &transmit) {
            panic!("at {}, end {from}: {rule}: {transmit:?}", self.now);
        }
        let Transmit { packet, size, ecn, .. } = transmit;
        let path = self.link_of(from, transmit.path);
        self.check_span(from, &packet);
        let mut carried = through_the_codec(&packet);
        let mut sent = Sent { at: self.now, from, path, packet, size, ecn, fate: Fate::Arrive };
        sent.fate = (self.script)(&sent);
        let due = self.now + self.delays.get(path).copied().unwrap_or(self.delays[0]);
        if !self.through_bytes {
            carried.clone_from(&sent.packet);
        }
        carried.ce = sent.fate == Fate::Marked;
        let arrival = || Happening::Arrival { to: 1 - from, path, packet: carried.clone() };
        match sent.fate {
            Fate::Arrive | Fate::Marked => self.put(due, arrival()),
            Fate::Drop => {}
            Fate::Late(by) => self.put(due + by, arrival()),
            Fate::Twice => {
                self.put(due, arrival());
                self.put(due, arrival());
            }
        }
        self.log.push(sent);
    }

    /// Time of the next event.
    fn next(&self) -> Option<Time> {
        let timers = self.ends.iter().filter_map(Association::next_deadline);
        let arrivals = self.agenda.keys().next().map(|(at, _)| *at);
        timers.chain(arrivals).min().map(|at| at.max(self.now))
    }

    /// Runs all events up to and including `until`.
    pub fn run_until(&mut self, until: Time) {
        for _ in 0..1_000_000 {
            let Some(next) = self.next().filter(|at| *at <= until) else {
                self.now = self.now.max(until);
                return;
            };
            self.now = next;
            self.step();
        }
        panic!("a million events up to {until}, now {}", self.now);
    }

    fn step(&mut self) {
        while let Some(entry) = self.agenda.first_entry().filter(|e| e.key().0 <= self.now) {
            let Happening::Arrival { to, path, packet } = entry.remove();
            if !self.resets_tsns {
                self.books[to].received(&packet);
            }
            self.arrive(to, path, packet);
            self.drain(to);
        }
        for end in [LEFT, RIGHT] {
            if self.ends[end].next_deadline().is_some_and(|at| at <= self.now) {
                self.ends[end].handle_timeout(self.now);
                self.drain(end);
            }
        }
    }

    pub fn run_for(&mut self, span: Duration) {
        self.run_until(self.now + span);
    }

    /// Queues a message of this length on stream 0 and drains.
    pub fn send(&mut self, from: usize, bytes: u32) {
        self.send_on(from, 0, Payload::Length(bytes), false);
    }

    pub fn send_on(&mut self, from: usize, stream: u16, payload: Payload, unordered: bool) {
        self.queue(from, stream, payload, unordered);
        self.drain(from);
    }

    /// Queues a message with the delivery options `delivery` and drains.
    pub fn send_message(&mut self, from: usize, payload: Payload, delivery: Delivery) {
        self.try_send(from, 0, payload, delivery).expect("room");
    }

    /// Like [`Pair::send_message`], if there is room in the send buffer.
    pub fn try_send(
        &mut self,
        from: usize,
        stream: u16,
        payload: Payload,
        delivery: Delivery,
    ) -> Result<(), SendError> {
        self.abandons[from] |= delivery.lifetime.is_some()
            || delivery.retransmissions.is_some()
            || delivery.priority.is_some();
        let now = self.now;
        let sent = self.ends[from].send_message(now, StreamId(stream), 0, payload, delivery);
        self.drain(from);
        sent
    }

    /// Queues a message without draining.
    pub fn queue(&mut self, from: usize, stream: u16, payload: Payload, unordered: bool) {
        self.ends[from].send(StreamId(stream), payload, unordered).expect("room");
    }

    /// Queues `count` full chunks and drains.
    pub fn send_full(&mut self, from: usize, count: usize) {
        for _ in 0..count {
            self.queue(from, 0, Payload::Length(FULL), false);
        }
        self.drain(from);
    }

    /// User bytes that an end has read.
    pub fn read_bytes(&self, end: usize) -> u64 {
        self.read[end].iter().map(|m| u64::from(m.payload.len())).sum()
    }

    pub fn counters(&self, end: usize) -> Vec<PathCounters> {
        self.ends[end].path_counters().copied().collect()
    }

    pub fn view(&self, end: usize, path: usize) -> PathView {
        self.ends[end].path_view(self.now, PathId::from_index(path))
    }

    /// The reason for which an end closed, if it did.
    pub fn closed(&self, end: usize) -> Option<CloseReason> {
        self.events[end].iter().find_map(|(_, event)| match event {
            Event::Closed(reason) => Some(*reason),
            _ => None,
        })
    }

    /// Number of packets of `end` with a chunk of that name.
    pub fn count(&self, end: usize, chunk: &str) -> usize {
        self.log.iter().filter(|s| s.from == end && s.names().contains(&chunk)).count()
    }

    /// Times at which `end` sent packets with DATA.
    pub fn data_times(&self, end: usize) -> Vec<Time> {
        let data = self.log.iter().filter(|s| s.from == end && s.data().next().is_some());
        data.map(|s| s.at).collect()
    }

    /// Checks that no chunk beyond the cumulative acknowledgement and the offered buffer is sent, except
    /// a single one: the zero-window probe.
    fn check_span(&mut self, from: usize, packet: &Packet) {
        if self.resets_tsns {
            return;
        }
        if let Some(beyond) = self.books[from].sent(packet).filter(|_| !self.abandons[from]) {
            let flying: u64 = (0..self.delays.len()).map(|p| self.view(from, p).in_flight).sum();
            assert!(flying == beyond.bytes, "at {}: {beyond:?}, {flying} B in flight", self.now);
        }
    }
}
