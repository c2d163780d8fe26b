//! One end of a flow through the tunnel.

use std::collections::BTreeMap;

use ropewalk_base::{Duration, Seed, Time};
use ropewalk_scenario::{self as file, FlowKind};
use ropewalk_tunnel::{Class, Order};

use super::inner_packet::{Content, InnerPacket};
use super::meter::FlowMeter;
use super::stream::{StreamEnd, StreamPlan};

/// A voice packet: 20 ms of G.711 with RTP, UDP and IPv4 headers.
const CALL: Paced = Paced::new(200, Duration::from_millis(20));
const GAME: Paced = Paced::new(120, Duration::from_micros(33_333));
const PING: u32 = 84;
const QUERY: (u32, u32) = (70, 140);
/// A DNS client repeats a query after this time, and `ping` stops waiting for an echo.
const RETRY: Duration = Duration::from_secs(1);
/// Headers of QUIC over UDP beyond those of TCP with timestamps: 8 + 20 + 16 - 32 B.
const QUIC_OVER: u32 = 12;

/// An inner packet and its length.
#[derive(Clone, Debug)]
pub(super) struct Sized {
    pub packet: InnerPacket,
    pub bytes: u32,
}

/// Sends datagrams at a constant interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Paced {
    bytes: u32,
    every: Duration,
    number: u64,
    next: Time,
}

impl Paced {
    const fn new(bytes: u32, every: Duration) -> Self {
        Self { bytes, every, number: 0, next: Time::ZERO }
    }

    /// Starts at `start`.
    const fn from(self, start: Time) -> Self {
        Self { next: start, ..self }
    }
}

/// Sends requests and waits for replies.
#[derive(Clone, Debug)]
pub(super) struct Requests {
    paced: Paced,
    /// Times at which requests without a reply were first sent.
    open: BTreeMap<u64, Time>,
    /// Requests to repeat, by time.
    again: BTreeMap<Time, u64>,
    repeats: bool,
}

/// The role of one end.
#[derive(Clone, Debug)]
enum Part {
    Stream(Box<StreamEnd>),
    Paced(Paced),
    Requests(Requests),
    /// Answers requests with packets of this size.
    Replies(u32),
    /// Only receives.
    Sink,
}

/// One end of a flow.
#[derive(Clone, Debug)]
pub(super) struct FlowEnd {
    index: u8,
    stop: Time,
    part: Part,
    /// The tunnel's treatment of the flow.
    pub class: Class,
    pub order: Order,
    pub meter: FlowMeter,
}

/// Both ends of a flow: the scenario's sender first.
pub(super) fn ends(
    index: usize,
    flow: &file::Flow,
    (mtu, end): (u32, Time),
    seed: Seed,
) -> [FlowEnd; 2] {
    let requests = |bytes, every, repeats| {
        let paced = Paced::new(bytes, every).from(flow.start);
        Part::Requests(Requests { paced, open: BTreeMap::new(), again: BTreeMap::new(), repeats })
    };
    let both =
        |paced: Paced| [Part::Paced(paced.from(flow.start)), Part::Paced(paced.from(flow.start))];
    let stream = |congestion, over| {
        let plan = StreamPlan { congestion, times: (flow.start, flow.stop), mtu, over };
        let seeds = [seed.child("from"), seed.child("to")];
        let ends = [StreamEnd::sender(&plan, seeds[0]), StreamEnd::receiver(&plan, seeds[1])];
        ends.map(|end| Part::Stream(Box::new(end)))
    };
    let interactive = (Class::Interactive, Order::AsArrived);
    let (parts, (class, order)) = match flow.kind {
        FlowKind::Tcp { congestion } => (stream(congestion, 0), (Class::Bulk, Order::Restored)),
        FlowKind::Quic { congestion } => {
            (stream(congestion, QUIC_OVER), (Class::Bulk, Order::AsArrived))
        }
        FlowKind::Call => (both(CALL), interactive),
        FlowKind::Game => (both(GAME), interactive),
        FlowKind::Dns { every } => {
            ([requests(QUERY.0, every, true), Part::Replies(QUERY.1)], interactive)
        }
        FlowKind::Ping { every } => {
            ([requests(PING, every, false), Part::Replies(PING)], interactive)
        }
        FlowKind::Udp { rate, packet, ordered } => {
            let bytes = packet.min(mtu);
            let paced = Paced::new(bytes, rate.time_for(bytes.into())).from(flow.start);
            let order = if ordered { Order::Restored } else { Order::Irrelevant };
            ([Part::Paced(paced), Part::Sink], (Class::Bulk, order))
        }
    };
    let stop = flow.stop.unwrap_or(Time::FAR_FUTURE);
    let index = u8::try_from(index).expect("a file has at most 256 flows");
    let mut ends =
        parts.map(|part| FlowEnd { index, stop, part, class, order, meter: FlowMeter::new(end) });
    if flow.direction == file::Side::Down {
        ends.reverse();
    }
    ends
}

impl FlowEnd {
    /// Size of the headers of its segments beyond those of TCP, bytes.
    pub const fn over(&self) -> u32 {
        match &self.part {
            Part::Stream(stream) => stream.over(),
            _ => 0,
        }
    }

    fn datagram(&self, now: Time, number: u64, reply: bool, bytes: u32) -> Sized {
        let content = Content::Datagram { number, reply };
        Sized { packet: InnerPacket { flow: self.index, entered: now, content }, bytes }
    }

    /// Sends everything that is due.
    pub fn act(&mut self, now: Time, out: &mut Vec<Sized>) {
        let index = self.index;
        match &mut self.part {
            Part::Stream(stream) => {
                let meter = &mut self.meter;
                let read = stream.drain(now, &mut |segment, bytes| {
                    if !segment.payload.is_empty() {
                        meter.on_sent(now);
                    }
                    let content = Content::Segment(segment);
                    out.push(Sized {
                        packet: InnerPacket { flow: index, entered: now, content },
                        bytes,
                    });
                });
                self.meter.bytes += u64::from(read);
            }
            Part::Paced(paced) => {
                let mut due = Vec::new();
                while paced.next <= now && paced.next < self.stop {
                    due.push(paced.number);
                    paced.number += 1;
                    paced.next += paced.every;
                }
                let bytes = paced.bytes;
                for number in due {
                    self.meter.on_sent(now);
                    out.push(self.datagram(now, number, false, bytes));
                }
            }
            Part::Requests(_) => self.request(now, out),
            Part::Replies(_) | Part::Sink => {}
        }
    }

    fn request(&mut self, now: Time, out: &mut Vec<Sized>) {
        let Part::Requests(requests) = &mut self.part else { return };
        let mut due = Vec::new();
        while let Some(first) = requests.again.first_entry().filter(|first| *first.key() <= now) {
            let number = first.remove();
            if requests.open.contains_key(&number) {
                due.push(number);
            }
        }
        let paced = &mut requests.paced;
        while paced.next <= now && paced.next < self.stop {
            due.push(paced.number);
            requests.open.insert(paced.number, now);
            self.meter.on_sent(now);
            paced.number += 1;
            paced.next += paced.every;
        }
        if requests.repeats {
            // Several queries may be due at one time.
            for (place, number) in due.iter().enumerate() {
                requests.again.insert(now + RETRY + Duration::from_nanos(place as u64), *number);
            }
        } else {
            requests.open.retain(|_, sent| now.since(*sent) < RETRY);
        }
        let bytes = requests.paced.bytes;
        out.extend(due.into_iter().map(|number| self.datagram(now, number, false, bytes)));
    }

    /// Processes a packet that leaves the tunnel.
    pub fn receive(&mut self, now: Time, sized: Sized, out: &mut Vec<Sized>) {
        let Sized { packet, bytes } = sized;
        match (packet.content, &mut self.part) {
            (Content::Segment(segment), Part::Stream(stream)) => {
                if !segment.payload.is_empty() {
                    self.meter.on_arrival(now, packet.entered, segment.seq, 0);
                }
                stream.receive(now, segment);
                self.act(now, out);
            }
            (Content::Datagram { number, reply: false }, Part::Replies(bytes)) => {
                let bytes = *bytes;
                out.push(self.datagram(now, number, true, bytes));
            }
            (Content::Datagram { number, reply: true }, Part::Requests(requests)) => {
                if let Some(sent) = requests.open.remove(&number) {
                    self.meter.on_arrival(now, sent, number, bytes);
                }
            }
            (Content::Datagram { number, reply: false }, Part::Paced(_) | Part::Sink) => {
                self.meter.on_arrival(now, packet.entered, number, bytes);
            }
            (Content::Segment(_) | Content::Datagram { .. }, _) => {}
        }
    }

    /// Time of the next action.
    pub fn deadline(&self) -> Option<Time> {
        let next = |paced: &Paced| Some(paced.next).filter(|at| *at < self.stop);
        match &self.part {
            Part::Stream(stream) => stream.deadline(),
            Part::Paced(paced) => next(paced),
            Part::Requests(requests) => {
                let again = requests.again.keys().next().copied();
                next(&requests.paced).into_iter().chain(again).min()
            }
            Part::Replies(_) | Part::Sink => None,
        }
    }
}
