//! Two ends connected by scripted paths. Deterministic: simultaneous events happen in the order of their
//! creation.

use std::collections::BTreeMap;

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Seed, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::mptcp::{Config, Event, Preset, Segment, Session};
use ropewalk_engine::path::PathConfig;
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};

/// The ends: `LEFT` opens the session and, in most tests, sends.
pub const LEFT: usize = 0;
pub const RIGHT: usize = 1;

/// Bytes of user data in a full segment on paths of 1500 B, with Multipath TCP.
pub const FULL: u64 = 1500 - 20 - 20 - 12 - 24;

/// The fate of a segment in the network.
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
}

/// A segment that left an end.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Time,
    pub from: usize,
    pub path: usize,
    pub segment: Segment,
    pub fate: Fate,
}

impl Sent {
    /// Whether it carries data.
    pub fn is_data(&self) -> bool {
        !self.segment.payload.is_empty()
    }
}

type Script = Box<dyn FnMut(&Sent) -> Fate>;

/// The pair.
pub struct Pair {
    pub ends: [Session; 2],
    pub now: Time,
    /// One-way delay of each path.
    pub delays: Vec<Duration>,
    /// Every segment that was sent, in order.
    pub log: Vec<Sent>,
    pub events: [Vec<(Time, Event)>; 2],
    /// Bytes that the users have read.
    pub read: [Vec<u8>; 2],
    /// Whether the users read.
    pub reads: [bool; 2],
    script: Script,
    agenda: BTreeMap<(Time, u64), (usize, usize, Segment)>,
    made: u64,
}

/// A configuration for `paths` paths of 1500 B.
pub fn config(paths: usize, receive_buffer: u64) -> Config {
    Config::preset(Preset::Rfc8684, vec![PathConfig::default(); paths], receive_buffer)
}

pub fn scheduler(name: &str) -> Scheduler {
    Scheduler::from_name(name, &SchedulerOptions::default()).expect("a built-in scheduler")
}

impl Pair {
    /// Two ends of one configuration, with paths of these delays, ms; the left one opens at 0.
    pub fn new(config: &Config, delays: &[u64]) -> Self {
        Self::of([config.clone(), config.clone()], "min-rtt", delays)
    }

    pub fn of(configs: [Config; 2], name: &str, delays: &[u64]) -> Self {
        let [left, right] = configs;
        let seed = Seed::root(7);
        let left = Session::start_later(left, scheduler(name), seed.child("left"), Time::ZERO);
        let right = Session::listen(right, scheduler(name), seed.child("right"));
        Self {
            ends: [left, right],
            now: Time::ZERO,
            delays: delays.iter().map(|ms| Duration::from_millis(*ms)).collect(),
            log: Vec::new(),
            events: [Vec::new(), Vec::new()],
            read: [Vec::new(), Vec::new()],
            reads: [true; 2],
            script: Box::new(|_| Fate::Arrive),
            agenda: BTreeMap::new(),
            made: 0,
        }
    }

    /// Sets the fate of segments from now on.
    pub fn script(&mut self, script: impl FnMut(&Sent) -> Fate + 'static) {
        self.script = Box::new(script);
    }

    /// Writes bytes at the left end: byte `i` of the stream is `i` modulo 251.
    pub fn write(&mut self, from: u64, count: u64) {
        let bytes: Vec<u8> = (from..from + count).map(|i| (i % 251) as u8).collect();
        for piece in bytes.chunks(4000) {
            let payload = Payload::from(Bytes::copy_from_slice(piece));
            self.ends[LEFT].send(payload).expect("the send buffer has room");
        }
        self.drain(LEFT);
    }

    /// Whether the right end has read exactly the first `count` bytes of that stream.
    pub fn has_read(&self, count: u64) -> bool {
        let read = &self.read[RIGHT];
        read.len() as u64 == count
            && read.iter().enumerate().all(|(i, byte)| *byte == (i as u64 % 251) as u8)
    }

    /// Lets the end send its segments.
    pub fn drain(&mut self, end: usize) {
        if self.reads[end] {
            while let Some(payload) = self.ends[end].read() {
                match payload {
                    Payload::Bytes(bytes) => self.read[end].extend_from_slice(&bytes),
                    Payload::Length(length) => self.read[end].extend(vec![0; length as usize]),
                }
            }
        }
        let mut segment = Segment::default();
        while let Some(transmit_info) = self.ends[end].poll_transmit_into(self.now, &mut segment) {
            let path = transmit_info.path.index();
            let (at, segment) = (self.now, segment.clone());
            let mut sent = Sent { at, from: end, path, segment, fate: Fate::Arrive };
            sent.fate = (self.script)(&sent);
            self.carry(&sent);
            self.log.push(sent);
        }
        while let Some(event) = self.ends[end].poll_event() {
            self.events[end].push((self.now, event));
        }
    }

    fn carry(&mut self, sent: &Sent) {
        let (copies, extra) = match sent.fate {
            Fate::Arrive => (1, Duration::ZERO),
            Fate::Drop => (0, Duration::ZERO),
            Fate::Late(extra) => (1, extra),
            Fate::Twice => (2, Duration::ZERO),
        };
        for _ in 0..copies {
            let at = self.now + self.delays[sent.path] + extra;
            self.inject_at(at, 1 - sent.from, sent.path, sent.segment.clone());
        }
    }

    /// Schedules the arrival of a segment at an end.
    pub fn inject_at(&mut self, at: Time, to: usize, path: usize, segment: Segment) {
        self.made += 1;
        self.agenda.insert((at, self.made), (to, path, segment));
    }

    /// Runs until `millis`.
    pub fn run_until(&mut self, millis: u64) {
        let end = Time::from_millis(millis);
        for _ in 0..5_000_000 {
            let deadline = |i: usize| self.ends[i].next_deadline().map(|at| at.max(self.now));
            let timer = [LEFT, RIGHT].into_iter().filter_map(|i| Some((deadline(i)?, i))).min();
            let arrival = self.agenda.first_key_value().map(|((at, _), _)| *at);
            let next = [timer.map(|(at, _)| at), arrival].into_iter().flatten().min();
            let Some(next) = next.filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = next;
            if arrival == Some(next)
                && let Some((_, (to, path, mut segment))) = self.agenda.pop_first()
            {
                self.ends[to].handle_in_place(next, PathId::from_index(path), &mut segment);
                self.drain(to);
            } else if let Some((_, i)) = timer {
                self.ends[i].handle_timeout(next);
                self.drain(i);
            }
        }
        panic!("the ends never rest");
    }

    /// Whether an event of `end` matches.
    pub fn saw(&self, end: usize, fits: impl Fn(&Event) -> bool) -> bool {
        self.events[end].iter().any(|(_, event)| fits(event))
    }

    /// Number of segments with data sent on `path` since `since`.
    pub fn data_on(&self, path: usize, since: Time) -> usize {
        let data = |s: &&Sent| s.from == LEFT && s.path == path && s.is_data() && s.at >= since;
        self.log.iter().filter(data).count()
    }
}
