//! The engine and dcsctp at the ends of one path, in virtual time. Packets are exchanged as bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use dcsctp::api::{DcSctpSocket, Options, Socket, SocketEvent, SocketTime};
use ropewalk_base::{Duration, PathId, Seed, Time};
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::wire::{self, Checksum, Ports};
use ropewalk_engine::sctp::{
    AcceptedRequests, Answer, Association, Config, Event, Extensions, Listener, Negotiation,
    Packet, PathConfig, Preset,
};

/// One-way delay.
const DELAY: Duration = Duration::from_millis(10);
/// Maximum duration of a test in virtual time.
const LIMIT: Time = Time::from_secs(300);
const PORTS: Ports = Ports { source: 5000, destination: 5000 };

/// Our end.
enum Ours {
    Waiting(Box<Listener>),
    Up(Box<Association>),
}

/// Both ends and the packets in flight.
pub struct Lane {
    pub now: Time,
    ours: Ours,
    pub theirs: Socket,
    /// Arrival time, whether the destination is our end, and the packet.
    air: VecDeque<(Time, bool, Vec<u8>)>,
    /// Loses one of this many packets. 0 for no losses.
    pub lose_every: usize,
    sent: usize,
    pub our_events: Vec<Event>,
    pub their_events: Vec<SocketEvent>,
}

pub fn config() -> Config {
    let mut config = Config::preset(Preset::Live, vec![PathConfig::default()], 1 << 20);
    config.addresses = Some(Vec::new());
    config.negotiation = Negotiation::Listed(Extensions::DELAY);
    config.streams = 1024;
    config.reconfiguration = true;
    config.accepted_requests = AcceptedRequests::ALL;
    // dcsctp sends packets of less than 1500 bytes, but accepts larger ones.
    config.lower_header = 28;
    config
}

fn scheduler() -> Scheduler {
    Scheduler::from_name("lay", &SchedulerOptions::default()).expect("it is known")
}

impl Lane {
    /// Neither end has begun. Our end waits for an INIT.
    pub fn waiting() -> Self {
        Self::new(Ours::Waiting(Box::new(Listener::new(config(), Seed::root(1)))))
    }

    /// Our end opens the association.
    pub fn connecting() -> Self {
        let association = Association::connect(config(), scheduler(), Seed::root(1), Time::ZERO);
        Self::new(Ours::Up(Box::new(association)))
    }

    fn new(ours: Ours) -> Self {
        let options = Options { max_message_size: 1 << 20, ..Options::default() };
        Self {
            now: Time::ZERO,
            ours,
            theirs: Socket::new("theirs", &options),
            air: VecDeque::new(),
            lose_every: 0,
            sent: 0,
            our_events: Vec::new(),
            their_events: Vec::new(),
        }
    }

    /// Our association, once there is one.
    pub fn ours(&mut self) -> Option<&mut Association> {
        match &mut self.ours {
            Ours::Waiting(_) => None,
            Ours::Up(association) => Some(association),
        }
    }

    /// Runs until `done` returns true. It is called after each event.
    pub fn run(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        loop {
            self.drain();
            if done(self) {
                return;
            }
            self.drain();
            let next = self.next().expect("somebody has something to do");
            assert!(next <= LIMIT, "not done by {next:?}: {:?}", self.our_events);
            self.now = next.max(self.now);
            self.step();
        }
    }

    fn next(&mut self) -> Option<Time> {
        let arrival = self.air.front().map(|(at, ..)| *at);
        let ours = self.ours().and_then(|association| association.next_deadline());
        let theirs = self.theirs.poll_timeout();
        let idle = theirs == SocketTime::infinite_future();
        let theirs = (!idle).then(|| from_theirs(theirs));
        [arrival, ours, theirs].into_iter().flatten().min()
    }

    fn step(&mut self) {
        let now = self.now;
        self.theirs.advance_time(SocketTime::zero() + std_of(now));
        if let Some(association) = self.ours() {
            association.handle_timeout(now);
        }
        while self.air.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, to_us, bytes) = self.air.pop_front().expect("it is there");
            if to_us { self.take(&bytes.into()) } else { self.theirs.handle_input(&bytes) }
        }
    }

    fn take(&mut self, bytes: &Bytes) {
        let now = self.now;
        let mut packet = Packet::default();
        let ports = wire::decode(bytes, Checksum::Crc32c, &mut packet).expect("a sound packet");
        assert_eq!(ports, PORTS);
        match &mut self.ours {
            Ours::Up(association) => association.handle_in_place(now, PathId(0), &mut packet),
            Ours::Waiting(listener) => match listener.handle(now, b"theirs", &mut packet) {
                Answer::Nothing => {}
                Answer::Reply(reply) => self.send_ours(&reply),
                Answer::Accept(accepted) => {
                    let mut association = Association::accepted(
                        config(),
                        scheduler(),
                        Seed::root(2),
                        now,
                        PathId(0),
                        *accepted,
                    );
                    association.handle_in_place(now, PathId(0), &mut packet);
                    self.ours = Ours::Up(Box::new(association));
                }
            },
        }
    }

    fn drain(&mut self) {
        let now = self.now;
        while let Some(transmit) = self.ours().and_then(|ours| ours.poll_transmit(now)) {
            self.send_ours(&transmit.packet);
        }
        while let Some(event) = self.ours().and_then(Association::poll_event) {
            self.our_events.push(event);
        }
        while let Some(event) = self.theirs.poll_event() {
            match event {
                SocketEvent::SendPacket(bytes) => self.send(true, bytes),
                other => self.their_events.push(other),
            }
        }
    }

    fn send_ours(&mut self, packet: &Packet) {
        let mut bytes = Vec::new();
        wire::encode(packet, PORTS, Checksum::Crc32c, &mut bytes);
        self.send(false, bytes);
    }

    fn send(&mut self, to_us: bool, bytes: Vec<u8>) {
        self.sent += 1;
        if self.lose_every == 0 || !self.sent.is_multiple_of(self.lose_every) {
            self.air.push_back((self.now + DELAY, to_us, bytes));
        }
    }
}

fn std_of(time: Time) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}

fn from_theirs(time: SocketTime) -> Time {
    // Their times are durations since the start of the socket, in nanoseconds or finer.
    let since: std::time::Duration = time - SocketTime::zero();
    Time::from_nanos(since.as_nanos() as u64)
}
