//! An end of an association as a host of the network, with the application on top of it.

use ropewalk_base::{Duration, PathId, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{Association, Chunk, Event, Packet as SctpPacket};
use ropewalk_netsim::cross::CrossPayload;
use ropewalk_netsim::{Host, Outbox, Packet, Port, RouteId};

/// What travels in the simulated network.
#[derive(Clone, Debug)]
pub enum Wire {
    /// A packet of one of ours; boxed, for it is moved at every hop.
    Sctp(Box<SctpPacket>),
    /// Somebody else's.
    Cross(u64),
}

impl CrossPayload for Wire {
    fn cross(tag: u64) -> Self {
        Self::Cross(tag)
    }

    fn cross_tag(&self) -> Option<u64> {
        match self {
            Self::Cross(tag) => Some(*tag),
            Self::Sctp(_) => None,
        }
    }
}

/// Who sits on top of an endpoint.
#[derive(Clone, Debug)]
pub enum Application {
    /// Sends as much as it may.
    Bulk {
        /// Bytes per message.
        message: u32,
        /// Bytes still to send; none: no end.
        left: Option<u64>,
    },
    /// Sends messages at equal distances.
    Steady {
        /// Bytes per message.
        message: u32,
        /// Between two messages.
        every: Duration,
        /// When the next one is due.
        next: Time,
        /// Bytes still to send; none: no end.
        left: Option<u64>,
    },
    /// Takes what comes.
    Sink,
}

/// An arrival of DATA, for sequence-time plots.
#[derive(Clone, Copy, Debug)]
pub struct ArrivalMark {
    /// When.
    pub at: Time,
    /// On which path.
    pub path: u8,
    /// Chunk number, from 0.
    pub chunk: u64,
}

/// An end of an association.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The engine.
    pub association: Association,
    /// Route of each path towards the peer.
    pub routes: Vec<RouteId>,
    application: Application,
    streams: u16,
    next_stream: u16,
    unordered: bool,
    lower_header: u32,
    flow: u32,
    deadline: Option<Time>,
    /// When the association ended, and why.
    pub closed: Option<(Time, CloseReason)>,
    /// When it was up.
    pub connected: Option<Time>,
    /// When the first DATA came.
    pub first_data: Option<Time>,
    /// Payload bytes read by the application since the beginning.
    pub read_bytes: u64,
    /// When the application had read so much as is wanted.
    pub wanted: Option<u64>,
    /// When that was.
    pub done_at: Option<Time>,
    /// Arrivals until `marks_until`.
    pub marks: Vec<ArrivalMark>,
    /// In-order releases until `marks_until`: time and chunks so far.
    pub releases: Vec<(Time, u64)>,
    marks_until: Time,
    released: u64,
}

/// Most marks that one endpoint keeps.
const MARKS_LIMIT: usize = 20_000;

impl Endpoint {
    /// An end with `application` on top.
    pub fn new(
        association: Association,
        application: Application,
        flow: u32,
        unordered: bool,
    ) -> Self {
        let config = association.config();
        let (streams, lower_header) = (config.streams, config.lower_header);
        Self {
            association,
            routes: Vec::new(),
            application,
            streams,
            next_stream: 0,
            unordered,
            lower_header,
            flow,
            deadline: Some(Time::ZERO),
            closed: None,
            connected: None,
            first_data: None,
            read_bytes: 0,
            wanted: None,
            done_at: None,
            marks: Vec::new(),
            releases: Vec::new(),
            marks_until: Time::ZERO,
            released: 0,
        }
    }

    /// Keeps arrivals and releases until `until`.
    pub fn keep_marks(&mut self, until: Time) {
        self.marks_until = until;
    }

    /// From when on arrivals or releases are missing, because there were too many.
    pub fn marks_cut(&self) -> Option<Time> {
        let full = |length: usize| length >= MARKS_LIMIT;
        let arrival = self.marks.last().filter(|_| full(self.marks.len())).map(|mark| mark.at);
        let release = self.releases.last().filter(|_| full(self.releases.len())).map(|(at, _)| *at);
        arrival.into_iter().chain(release).min()
    }

    fn mark(&mut self, now: Time, path: u8, packet: &SctpPacket) {
        let Some(first) = self.association.peer_initial_tsn() else { return };
        for chunk in &packet.chunks {
            if let Chunk::Data(data) = chunk {
                let chunk = data.tsn.distance_from(first);
                if chunk >= 0 && self.marks.len() < MARKS_LIMIT {
                    self.marks.push(ArrivalMark { at: now, path, chunk: chunk as u64 });
                }
            }
        }
    }

    /// The application reads, writes; the engine sends; the deadline is asked for. `blank` is what
    /// the next packet is made in.
    #[inline]
    fn drain(&mut self, now: Time, mut blank: Box<SctpPacket>, out: &mut Outbox<Wire>) {
        self.read(now);
        self.write(now);
        while let Some(departure) = self.association.poll_transmit_into(now, &mut blank) {
            let sctp = std::mem::replace(&mut blank, spare(out));
            let size = sctp.wire_len() + self.lower_header;
            let mut packet = Packet::new(size, self.flow, Wire::Sctp(sctp));
            packet.round = departure.round;
            out.send(self.routes[departure.path.index()], packet);
        }
        out.give_back(Wire::Sctp(blank));
        while let Some(event) = self.association.poll_event() {
            match event {
                Event::Connected => self.connected = Some(now),
                Event::Closed(reason) => self.closed = Some((now, reason)),
                Event::Readable | Event::Writable | Event::Restarted | Event::PathChanged(..) => {}
            }
        }
        self.deadline = self.next_deadline();
    }

    fn next_deadline(&self) -> Option<Time> {
        let engine = self.association.next_deadline();
        match &self.application {
            Application::Steady { next, left, .. } if *left != Some(0) => {
                Some(engine.map_or(*next, |at| at.min(*next)))
            }
            _ => engine,
        }
    }

    #[inline]
    fn read(&mut self, now: Time) {
        while let Some(message) = self.association.read(now) {
            self.read_bytes += message.payload.len() as u64;
            self.first_data.get_or_insert(now);
            self.released += 1;
            if now < self.marks_until && self.releases.len() < MARKS_LIMIT {
                self.releases.push((now, self.released));
            }
        }
        if self.done_at.is_none() && self.wanted.is_some_and(|wanted| self.read_bytes >= wanted) {
            self.done_at = Some(now);
        }
    }

    #[inline]
    fn write(&mut self, now: Time) {
        loop {
            let (message, left) = match &mut self.application {
                Application::Sink => return,
                Application::Bulk { message, left } => {
                    if self.association.send_room() == 0 {
                        return;
                    }
                    (*message, left)
                }
                Application::Steady { message, every, next, left } => {
                    if *next > now || *left == Some(0) {
                        return;
                    }
                    *next += *every;
                    (*message, left)
                }
            };
            let size = left.map_or(message as u64, |left| left.min(message as u64)) as u32;
            if size == 0 {
                return;
            }
            let stream = StreamId(self.next_stream);
            if self.association.send(stream, Payload::Length(size), self.unordered).is_err() {
                return;
            }
            if let Some(left) = left {
                *left -= size as u64;
            }
            self.next_stream = (self.next_stream + 1) % self.streams;
        }
    }
}

/// A packet that was used before, or a new one.
#[inline]
fn spare(out: &mut Outbox<Wire>) -> Box<SctpPacket> {
    match out.spare() {
        Some(Wire::Sctp(used)) => used,
        _ => Box::default(),
    }
}

impl Host<Wire> for Endpoint {
    #[inline]
    fn receive(&mut self, now: Time, port: Port, packet: Packet<Wire>, out: &mut Outbox<Wire>) {
        let Wire::Sctp(mut sctp) = packet.payload else { return };
        let path = PathId(port.0 as u8);
        if now < self.marks_until {
            self.mark(now, path.0, &sctp);
        }
        self.association.handle_in_place(now, path, &mut sctp);
        self.drain(now, sctp, out);
    }

    fn wake(&mut self, now: Time, out: &mut Outbox<Wire>) {
        self.association.handle_timeout(now);
        self.drain(now, spare(out), out);
    }

    #[inline]
    fn next_wake(&self) -> Option<Time> {
        self.deadline
    }
}
