//! Two ends joined by a link in virtual time, which loses and reorders packets. Packets travel as bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use ropewalk_base::{PathId, Rng, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::wire::{self, Checksum, Ports};
use ropewalk_engine::sctp::{
    Association, Config as SctpConfig, Delivery, Event as SctpEvent, Extensions, Message as Raw,
    Negotiation, Packet, PathConfig, Preset, Reconfigured, Streams,
};
use ropewalk_webrtc::{Config, Connection, DtlsRole, Duration, Event, Message, Seed, Time};

/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(10);
/// Maximum virtual time of a test.
const LIMIT: Duration = Duration::from_secs(600);

/// An end of the link.
pub trait End {
    fn take(&mut self, now: Time, packet: Bytes);
    fn on_time(&mut self, now: Time);
    /// Handles all events.
    fn drain(&mut self, now: Time);
    fn next_packet(&mut self, now: Time) -> Option<Vec<u8>>;
    fn deadline(&self) -> Option<Time>;
}

/// A connection, and its events so far.
pub struct Ours {
    pub connection: Connection,
    pub events: Vec<Event>,
    /// Messages by the label of their channel at the time of arrival.
    pub by_label: BTreeMap<String, Vec<Message>>,
    /// Whether the application takes events.
    pub reads: bool,
}

impl Ours {
    pub fn new(config: Config, seed: u64) -> Self {
        let connection = Connection::new(config, Seed::root(seed), Time::ZERO);
        Self { connection, events: Vec::new(), by_label: BTreeMap::new(), reads: true }
    }

    pub fn client() -> Self {
        Self::new(Config::new(DtlsRole::Client), 1)
    }

    pub fn server() -> Self {
        Self::new(Config::new(DtlsRole::Server), 2)
    }

    pub fn has(&self, event: &Event) -> bool {
        self.events.contains(event)
    }
}

impl End for Ours {
    fn take(&mut self, now: Time, packet: Bytes) {
        self.connection.handle_packet(now, packet);
    }

    fn on_time(&mut self, now: Time) {
        self.connection.handle_timeout(now);
    }

    fn drain(&mut self, now: Time) {
        while let Some(event) = self.reads.then(|| self.connection.poll_event(now)).flatten() {
            if let Event::Message { channel, message } = &event {
                let (options, _) = self.connection.channel(*channel).expect("it is open");
                self.by_label.entry(options.label.clone()).or_default().push(message.clone());
            }
            self.events.push(event);
        }
    }

    fn next_packet(&mut self, now: Time) -> Option<Vec<u8>> {
        let mut packet = Vec::new();
        self.connection.poll_transmit(now, &mut packet).then_some(packet)
    }

    fn deadline(&self) -> Option<Time> {
        self.connection.next_deadline()
    }
}

/// An association without any layer above it, for sending invalid messages.
pub struct Crafted {
    pub association: Association,
    pub received: Vec<Raw>,
    pub events: Vec<SctpEvent>,
    /// Streams that the other end has reset.
    pub reset_by_peer: Vec<Streams>,
}

const PORTS: Ports = Ports { source: 5000, destination: 5000 };

impl Crafted {
    pub fn new() -> Self {
        Self::with(false)
    }

    /// With stream reconfiguration.
    pub fn reconfiguring() -> Self {
        Self::with(true)
    }

    fn with(reconfiguration: bool) -> Self {
        let mut config = SctpConfig::preset(
            Preset::Live,
            vec![PathConfig { mtu: 1200, ..PathConfig::default() }],
            8 << 20,
        );
        config.addresses = Some(Vec::new());
        config.negotiation = Negotiation::Listed(Extensions::FORWARD_TSN);
        config.streams = u16::MAX;
        config.reconfiguration = reconfiguration;
        (config.lower_header, config.mtu_discovery) = (0, None);
        config.packet_form = ropewalk_engine::sctp::PacketForm::Standard;
        config.send_buffer = 1 << 30;
        let scheduler = Scheduler::from_name("min-rtt", &SchedulerOptions::default());
        let scheduler = scheduler.expect("a built-in scheduler");
        let association = Association::connect(config, scheduler, Seed::root(3), Time::ZERO);
        Self { association, received: Vec::new(), events: Vec::new(), reset_by_peer: Vec::new() }
    }

    /// Sends a message unchanged.
    pub fn send(&mut self, now: Time, stream: u16, ppid: u32, bytes: &[u8]) {
        let payload = Payload::from(Bytes::copy_from_slice(bytes));
        let delivery = Delivery::RELIABLE;
        let sent = self.association.send_message(now, StreamId(stream), ppid, payload, delivery);
        sent.expect("there is room");
    }

    /// The messages on a stream, each with its payload protocol identifier.
    pub fn on(&self, stream: u16) -> Vec<(u32, Bytes)> {
        let here = self.received.iter().filter(|message| message.stream.0 == stream);
        here.map(|message| (message.ppid, message.payload.clone().into_bytes())).collect()
    }
}

impl End for Crafted {
    fn take(&mut self, now: Time, packet: Bytes) {
        let mut decoded = Packet::default();
        let ports = wire::decode(&packet, Checksum::Crc32c, &mut decoded);
        assert_eq!(ports, Ok(PORTS), "this crate sends sound packets");
        self.association.handle_in_place(now, PathId(0), &mut decoded);
    }

    fn on_time(&mut self, now: Time) {
        self.association.handle_timeout(now);
    }

    fn drain(&mut self, now: Time) {
        while let Some(event) = self.association.poll_event() {
            self.events.push(event);
        }
        while let Some(message) = self.association.read(now) {
            self.received.push(message);
        }
        while let Some(reconfigured) = self.association.poll_reconfiguration() {
            if let Reconfigured::ResetByPeer(streams) = reconfigured {
                self.reset_by_peer.push(streams);
            }
        }
    }

    fn next_packet(&mut self, now: Time) -> Option<Vec<u8>> {
        let transmit = self.association.poll_transmit(now)?;
        let mut bytes = Vec::new();
        wire::encode(&transmit.packet, PORTS, Checksum::Crc32c, &mut bytes);
        Some(bytes)
    }

    fn deadline(&self) -> Option<Time> {
        self.association.next_deadline()
    }
}

/// How the link treats packets.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Packets lost per 1000.
    pub loss_permille: u64,
    /// Maximum additional delay, ms. Packets overtake each other.
    pub jitter_ms: u64,
}

impl Weather {
    pub const FAIR: Self = Self { loss_permille: 0, jitter_ms: 0 };
}

/// The ends and the packets in transit.
pub struct Link<A, B> {
    pub a: A,
    pub b: B,
    pub now: Time,
    pub weather: Weather,
    /// Longest packet so far, bytes.
    pub longest: usize,
    rng: Rng,
    sent: u64,
    /// By arrival time; whether the packet goes to `a`.
    air: BTreeMap<(Time, u64), (bool, Bytes)>,
}

impl<A: End, B: End> Link<A, B> {
    pub fn new(a: A, b: B) -> Self {
        Self {
            a,
            b,
            now: Time::ZERO,
            weather: Weather::FAIR,
            longest: 0,
            rng: Seed::root(7).rng(),
            sent: 0,
            air: BTreeMap::new(),
        }
    }

    /// Runs until `done`.
    ///
    /// # Panics
    /// If no more events happen before that, or if it takes ten minutes.
    pub fn run(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let limit = self.now + LIMIT;
        loop {
            self.drain();
            if done(self) {
                return self.drain();
            }
            self.drain();
            let next = self.next().expect("something is going to happen");
            assert!(next <= limit, "not done by {next}");
            self.now = next.max(self.now);
            self.step();
        }
    }

    /// Runs for this time.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        self.drain();
        while let Some(next) = self.next().filter(|next| *next <= end) {
            self.now = next.max(self.now);
            self.step();
            self.drain();
        }
        self.now = end;
    }

    fn next(&self) -> Option<Time> {
        let arrival = self.air.keys().next().map(|(at, _)| *at);
        [arrival, self.a.deadline(), self.b.deadline()].into_iter().flatten().min()
    }

    fn step(&mut self) {
        let now = self.now;
        self.a.on_time(now);
        self.b.on_time(now);
        while let Some(first) = self.air.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to_a, packet) = first.remove();
            if to_a {
                self.a.take(now, packet)
            } else {
                self.b.take(now, packet)
            }
            self.drain();
        }
    }

    /// Lets both ends handle their events and send.
    pub fn drain(&mut self) {
        let now = self.now;
        self.a.drain(now);
        self.b.drain(now);
        while let Some(packet) = self.a.next_packet(now) {
            self.send(false, packet);
        }
        while let Some(packet) = self.b.next_packet(now) {
            self.send(true, packet);
        }
    }

    fn send(&mut self, to_a: bool, packet: Vec<u8>) {
        self.sent += 1;
        self.longest = self.longest.max(packet.len());
        let Weather { loss_permille, jitter_ms } = self.weather;
        if self.rng.next_u64() % 1000 < loss_permille {
            return;
        }
        let jitter = Duration::from_millis(self.rng.next_u64() % (jitter_ms + 1));
        self.air.insert((self.now + DELAY + jitter, self.sent), (to_a, packet.into()));
    }
}

/// Two ends of this crate whose association is established.
pub fn up() -> Link<Ours, Ours> {
    let mut link = Link::new(Ours::client(), Ours::server());
    link.run(|link| link.a.connection.is_connected() && link.b.connection.is_connected());
    link
}
