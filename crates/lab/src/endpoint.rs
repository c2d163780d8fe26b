//! One end of an association as a host of the simulated network, with its application.

use ropewalk_base::{Duration, PathId, StreamId, Time};
use ropewalk_engine::TransmitInfo;
use ropewalk_engine::mptcp::Segment;
use ropewalk_engine::sctp::{Packet as SctpPacket, PacketForm};
use ropewalk_netsim::{Host, Outbox, Packet, Port, RouteId};

use crate::machine::{EndReason, EngineEvent, EngineSettings, Machine, SimPayload};
use crate::packet_log::PacketLog;
use crate::packet_trace::{Direction, PacketTrace};
use crate::sources::SourcesEnd;
use crate::tunnel::TunnelEnd;

/// The application of an endpoint.
#[derive(Clone, Debug)]
pub enum Application {
    /// Sends as fast as the engine accepts data.
    Bulk {
        /// Bytes per message.
        message: u32,
        /// Bytes still to send. `None` for an unlimited transfer.
        left: Option<u64>,
    },
    /// Sends messages at a constant interval.
    Steady {
        /// Bytes per message.
        message: u32,
        /// Interval between two messages.
        every: Duration,
        /// Time at which the next message is due.
        next: Time,
        /// Bytes still to send. `None` for an unlimited transfer.
        left: Option<u64>,
    },
    /// Only receives.
    Sink,
    /// Sends and receives the packets of a tunnel.
    Tunnel(Box<TunnelEnd>),
    /// Sends or receives messages of several sources.
    Sources(Box<SourcesEnd>),
}

/// The arrival of a DATA chunk, for sequence-time plots.
#[derive(Clone, Copy, Debug)]
pub struct ChunkArrival {
    /// Time of arrival.
    pub at: Time,
    /// Path on which the chunk arrived.
    pub path: u8,
    /// Chunk number, from 0.
    pub chunk: u64,
}

/// One end of an association. The fields that every input reads come first and `repr` keeps the order: with
/// thousands of endpoints, cache misses dominate the time.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Endpoint {
    /// The protocol engine.
    pub machine: Machine,
    deadline: Option<Time>,
    record_until: Time,
    recorders: RecorderSlot,
    /// Route of each path to the peer.
    pub routes: Vec<RouteId>,
    application: Application,
    /// Payload bytes that the application has read so far.
    pub read_bytes: u64,
    released: u64,
    /// Time at which the first DATA chunk arrived.
    pub first_data: Option<Time>,
    /// Bytes that the application wants to read.
    pub wanted: Option<u64>,
    /// Time at which the application had read `wanted` bytes.
    pub done_at: Option<Time>,
    /// User data of a full packet, bytes.
    full: u64,
    lower_header: u32,
    packet_form: PacketForm,
    flow: u32,
    streams: u16,
    next_stream: u16,
    unordered: bool,
    /// Time and reason of the end of the transfer.
    pub closed: Option<(Time, EndReason)>,
    /// Time at which the handshake completed.
    pub connected: Option<Time>,
    /// Arrivals until `record_until`.
    pub arrivals: Vec<ChunkArrival>,
    /// In-order deliveries until `record_until`: time and number of chunks so far.
    pub releases: Vec<(Time, u64)>,
    /// Highest occupancy of the receive buffer since it was last taken, bytes. `None` if it is not
    /// tracked.
    peak: Option<u64>,
    /// Packets that have arrived while the tunnel pauses.
    held: Vec<(Port, Packet<SimPayload>)>,
}

/// The recorders of an endpoint's packets. A copy of an endpoint records nothing, because both would write to
/// the same file.
#[derive(Debug, Default)]
struct RecorderSlot(Option<Box<Recorders>>);

#[derive(Debug, Default)]
struct Recorders {
    trace: Option<PacketTrace>,
    log: Option<PacketLog>,
}

impl Clone for RecorderSlot {
    fn clone(&self) -> Self {
        Self(None)
    }
}

/// Maximum number of marks that one endpoint keeps.
const ARRIVALS_LIMIT: usize = 20_000;

impl Endpoint {
    /// An endpoint with the given application.
    pub fn new(
        machine: Machine,
        plan: &EngineSettings,
        application: Application,
        flow: u32,
        unordered: bool,
    ) -> Self {
        let (streams, lower_header) = (plan.streams(), plan.lower_header());
        Self {
            machine,
            routes: Vec::new(),
            application,
            streams,
            next_stream: 0,
            unordered,
            lower_header,
            packet_form: plan.packet_form(),
            full: plan.payload() as u64,
            flow,
            deadline: Some(Time::ZERO),
            closed: None,
            connected: None,
            first_data: None,
            read_bytes: 0,
            wanted: None,
            done_at: None,
            arrivals: Vec::new(),
            releases: Vec::new(),
            peak: None,
            held: Vec::new(),
            record_until: Time::ZERO,
            recorders: RecorderSlot(None),
            released: 0,
        }
    }

    /// Tracks the highest occupancy of the receive buffer from now on.
    pub const fn track_peak(&mut self) {
        self.peak = Some(0);
    }

    /// The highest occupancy of the receive buffer since the last call, bytes; 0 if it is not tracked.
    pub fn take_peak(&mut self) -> u64 {
        let now = self.machine.receive_occupancy().0;
        self.peak.as_mut().map_or(0, |peak| std::mem::replace(peak, now))
    }

    /// Records arrivals and deliveries until `until`.
    pub fn record_arrivals(&mut self, until: Time) {
        self.record_until = until;
    }

    /// Records all packets from now on.
    pub fn begin_trace(&mut self, trace: PacketTrace) {
        self.recorders.0.get_or_insert_default().trace = Some(trace);
    }

    /// Ends the recording of packets in files.
    pub fn take_trace(&mut self) -> Option<PacketTrace> {
        self.recorders.0.as_mut()?.trace.take()
    }

    /// Numbers and lists all packets from now on.
    pub fn begin_log(&mut self, log: PacketLog) {
        self.recorders.0.get_or_insert_default().log = Some(log);
    }

    /// Ends the list of packets.
    pub fn take_log(&mut self) -> Option<PacketLog> {
        self.recorders.0.as_mut()?.log.take()
    }

    #[cold]
    fn record_packet(
        &mut self,
        now: Time,
        path: PathId,
        direction: Direction,
        size: u32,
        payload: &mut SimPayload,
    ) {
        let Some(recorders) = &mut self.recorders.0 else { return };
        if let Some(trace) = &mut recorders.trace {
            trace.on_packet(now, path, direction, size, payload);
        }
        if let Some(log) = &mut recorders.log {
            match direction {
                Direction::Out => log.on_sent(now, path, size, payload),
                Direction::In => log.on_received(now, payload),
            }
        }
    }

    #[cold]
    fn record_measurements(&mut self, now: Time) {
        if let Some(Recorders { trace: Some(trace), .. }) = self.recorders.0.as_deref_mut() {
            trace.on_input_processed(now, &self.machine);
        }
    }

    /// Time from which arrivals or deliveries are missing because the limit was reached.
    pub fn arrivals_truncated(&self) -> Option<Time> {
        let full = |length: usize| length >= ARRIVALS_LIMIT;
        let arrival =
            self.arrivals.last().filter(|_| full(self.arrivals.len())).map(|record| record.at);
        let release = self.releases.last().filter(|_| full(self.releases.len())).map(|(at, _)| *at);
        arrival.into_iter().chain(release).min()
    }

    fn record(&mut self, now: Time, path: u8, wire: &SimPayload) {
        let room = ARRIVALS_LIMIT.saturating_sub(self.arrivals.len());
        let record = |chunk| ChunkArrival { at: now, path, chunk };
        match wire {
            SimPayload::Sctp(packet, _) => {
                self.arrivals.extend(self.machine.chunks_of(packet).take(room).map(record));
            }
            SimPayload::Tcp(segment, _) if !segment.payload.is_empty() && room > 0 => {
                // TCP: the position is counted in full segments.
                self.arrivals.push(record(segment.dsn / self.full.max(1)));
            }
            SimPayload::Tcp(..) | SimPayload::Cross(_) => {}
        }
    }

    /// Passes a packet to the engine. Returns its emptied contents, or `None` for a packet of cross
    /// traffic.
    #[inline]
    fn take(&mut self, now: Time, port: Port, packet: Packet<SimPayload>) -> Option<SimPayload> {
        let path = PathId(port.0 as u8);
        let (ce, size) = (packet.ecn.is_marked(), packet.size);
        self.count(path, size);
        let mut wire = packet.payload;
        if now < self.record_until {
            self.record(now, path.0, &wire);
        }
        if self.recorders.0.is_some() {
            self.record_packet(now, path, Direction::In, size, &mut wire);
        }
        match &mut wire {
            SimPayload::Sctp(packet, _) => {
                packet.ce = ce;
                self.machine.take_packet(now, path, packet);
            }
            SimPayload::Tcp(segment, _) => self.machine.take_segment(now, path, segment),
            SimPayload::Cross(_) => return None,
        }
        if let Some(peak) = &mut self.peak {
            // Out-of-order data is stored only when a packet arrives.
            *peak = (*peak).max(self.machine.receive_occupancy().0);
        }
        Some(wire)
    }

    /// Lets the application read and write, then sends and sets the timer. The next packet is built in `recycled`.
    #[inline]
    fn drain(&mut self, now: Time, recycled: SimPayload, out: &mut Outbox<SimPayload>) {
        self.read(now);
        self.write(now);
        self.send(now, recycled, out);
    }

    /// The part of [`Self::drain`] after the application has read and written.
    #[inline(always)]
    fn send(&mut self, now: Time, recycled: SimPayload, out: &mut Outbox<SimPayload>) {
        match recycled {
            SimPayload::Sctp(packet, _) => self.send_packets(now, packet, out),
            SimPayload::Tcp(segment, _) => self.send_segments(now, segment, out),
            SimPayload::Cross(_) => {}
        }
        while let Some(news) = self.machine.poll_event() {
            match news {
                EngineEvent::Connected => self.connected = Some(now),
                EngineEvent::Closed(reason) => self.closed = Some((now, reason)),
                EngineEvent::Other => {}
            }
        }
        self.deadline = self.next_deadline();
        if self.recorders.0.is_some() {
            self.record_measurements(now);
        }
    }

    #[inline]
    fn send_packets(
        &mut self,
        now: Time,
        mut recycled: Box<SctpPacket>,
        out: &mut Outbox<SimPayload>,
    ) {
        while let Some(transmit_info) = self.machine.poll_packet(now, &mut recycled) {
            let next = recycled_packet(out);
            let sctp = std::mem::replace(&mut recycled, next);
            let size = sctp.wire_len_in(self.packet_form) + self.lower_header;
            self.transmit(now, transmit_info, size, SimPayload::Sctp(sctp, 0), out);
        }
        out.give_back(SimPayload::Sctp(recycled, 0));
    }

    #[inline]
    fn send_segments(
        &mut self,
        now: Time,
        mut recycled: Box<Segment>,
        out: &mut Outbox<SimPayload>,
    ) {
        while let Some(transmit_info) = self.machine.poll_segment(now, &mut recycled) {
            let next = match out.spare() {
                Some(SimPayload::Tcp(used, _)) => used,
                _ => Box::default(),
            };
            let segment = std::mem::replace(&mut recycled, next);
            let size = segment.wire_len() + self.lower_header;
            self.transmit(now, transmit_info, size, SimPayload::Tcp(segment, 0), out);
        }
        out.give_back(SimPayload::Tcp(recycled, 0));
    }

    #[inline(always)]
    fn transmit(
        &mut self,
        now: Time,
        transmit_info: TransmitInfo,
        size: u32,
        mut payload: SimPayload,
        out: &mut Outbox<SimPayload>,
    ) {
        if self.recorders.0.is_some() {
            self.record_packet(now, transmit_info.path, Direction::Out, size, &mut payload);
        }
        self.count(transmit_info.path, size);
        let mut packet = Packet::new(size, self.flow, payload);
        packet.round = transmit_info.round;
        packet.ecn = transmit_info.ecn;
        out.send(self.routes[transmit_info.path.index()], packet);
    }

    /// An empty packet to build the next one in.
    #[inline]
    fn recycled(&self, out: &mut Outbox<SimPayload>) -> SimPayload {
        match (&self.machine, out.spare()) {
            (Machine::Sctp(_), Some(SimPayload::Sctp(used, _))) => SimPayload::Sctp(used, 0),
            (Machine::Tcp(_), Some(SimPayload::Tcp(used, _))) => SimPayload::Tcp(used, 0),
            (Machine::Sctp(_), _) => SimPayload::Sctp(Box::default(), 0),
            (Machine::Tcp(_), _) => SimPayload::Tcp(Box::default(), 0),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Option<Time> {
        let engine = self.machine.next_deadline();
        match &self.application {
            Application::Steady { next, left, .. } if *left != Some(0) => {
                Some(engine.map_or(*next, |at| at.min(*next)))
            }
            Application::Tunnel(end) => end.due(engine, !self.held.is_empty()),
            Application::Sources(end) => engine.into_iter().chain(end.deadline()).min(),
            _ => engine,
        }
    }

    /// The tunnel, if the application is one.
    pub const fn tunnel(&self) -> Option<&TunnelEnd> {
        match &self.application {
            Application::Tunnel(end) => Some(end),
            _ => None,
        }
    }

    /// The messages of sources, if the application sends or receives them.
    pub const fn sources(&self) -> Option<&SourcesEnd> {
        match &self.application {
            Application::Sources(end) => Some(end),
            _ => None,
        }
    }

    /// Counts a packet for the caps of a tunnel.
    #[inline]
    fn count(&mut self, path: PathId, bytes: u32) {
        if let Application::Tunnel(end) = &mut self.application {
            end.count(path, bytes);
        }
    }

    /// Restarts all measurements.
    pub fn reset_measurements(&mut self, now: Time) {
        self.machine.reset_measurements(now);
        if let Application::Tunnel(end) = &mut self.application {
            end.reset_measurements(now);
        }
    }

    #[cold]
    fn exchange(&mut self, now: Time) {
        let Application::Tunnel(end) = &mut self.application else { return };
        let Machine::Sctp(association) = &mut self.machine else { return };
        let delivered = end.exchange(now, association, self.connected.is_some());
        if delivered > 0 {
            self.first_data.get_or_insert(now);
        }
        self.read_bytes += delivered;
    }

    #[cold]
    fn read_messages(&mut self, now: Time) {
        let Application::Sources(end) = &mut self.application else { return };
        let Machine::Sctp(association) = &mut self.machine else { return };
        let bytes = end.read(now, association);
        if bytes > 0 {
            self.first_data.get_or_insert(now);
        }
        self.read_bytes += bytes;
    }

    #[cold]
    fn write_messages(&mut self, now: Time) {
        let Application::Sources(end) = &mut self.application else { return };
        if let Machine::Sctp(association) = &mut self.machine {
            end.send(now, association);
        }
    }

    #[inline]
    fn read(&mut self, now: Time) {
        match self.application {
            Application::Tunnel(_) => return self.exchange(now),
            Application::Sources(_) => return self.read_messages(now),
            _ => {}
        }
        while let Some(bytes) = self.machine.read(now) {
            self.read_bytes += bytes as u64;
            self.first_data.get_or_insert(now);
            self.released += 1;
            if now < self.record_until && self.releases.len() < ARRIVALS_LIMIT {
                self.releases.push((now, self.released));
            }
            self.note_completion(now);
        }
    }

    /// Records the time at which the application has read all that it wants.
    #[inline]
    fn note_completion(&mut self, now: Time) {
        if self.done_at.is_none() && self.wanted.is_some_and(|wanted| self.read_bytes >= wanted) {
            self.done_at = Some(now);
        }
    }

    #[inline]
    fn write(&mut self, now: Time) {
        match &self.application {
            Application::Sink | Application::Tunnel(_) => {}
            Application::Bulk { message, left } => self.write_bulk(*message, *left),
            Application::Steady { .. } => self.write_due(now),
            Application::Sources(_) => self.write_messages(now),
        }
    }

    /// Writes until the engine accepts no more; `left` is the number of bytes left in total.
    #[inline]
    fn write_bulk(&mut self, message: u32, mut left: Option<u64>) {
        while message > 0 && left != Some(0) {
            let size = left.map_or(message, |left| left.min(message.into()) as u32);
            let alike = left.map_or(u32::MAX, |left| (left / u64::from(size)).min(1 << 30) as u32);
            // Streams alternate message by message.
            let most = if self.streams == 1 { alike } else { 1 };
            let stream = StreamId(self.next_stream);
            let taken = self.machine.send_repeated(stream, size, self.unordered, most);
            if self.streams > 1 {
                self.next_stream = ((self.next_stream as u32 + taken) % self.streams as u32) as u16;
            }
            left = self.take_from_limit(u64::from(taken) * u64::from(size));
            if taken < most {
                return;
            }
        }
    }

    /// Writes the messages that are due.
    fn write_due(&mut self, now: Time) {
        while let Application::Steady { message, every, next, left } = &mut self.application {
            if *next > now || *left == Some(0) {
                return;
            }
            *next += *every;
            let size = left.map_or(*message, |left| left.min((*message).into()) as u32);
            if size == 0 || !self.machine.send(StreamId(self.next_stream), size, self.unordered) {
                return;
            }
            self.next_stream = (self.next_stream + 1) % self.streams;
            self.take_from_limit(size.into());
        }
    }

    /// Subtracts bytes that the engine has accepted; returns the number left to send.
    #[inline]
    fn take_from_limit(&mut self, bytes: u64) -> Option<u64> {
        let (Application::Bulk { left, .. } | Application::Steady { left, .. }) =
            &mut self.application
        else {
            return None;
        };
        let rest = left.as_mut()?;
        *rest -= bytes;
        if bytes > 0 && *rest == 0 {
            self.machine.end_of_data();
        }
        *left
    }
}

/// A recycled packet, or a new one.
#[inline]
fn recycled_packet(out: &mut Outbox<SimPayload>) -> Box<SctpPacket> {
    match out.spare() {
        Some(SimPayload::Sctp(used, _)) => used,
        _ => Box::default(),
    }
}

impl Host<SimPayload> for Endpoint {
    #[inline]
    fn receive(
        &mut self,
        now: Time,
        port: Port,
        packet: Packet<SimPayload>,
        out: &mut Outbox<SimPayload>,
    ) {
        if let Application::Tunnel(end) = &mut self.application
            && (end.pauses(now) || !self.held.is_empty())
        {
            self.held.push((port, packet));
            self.deadline = self.next_deadline();
            return;
        }
        let Some(wire) = self.take(now, port, packet) else { return };
        self.drain(now, wire, out);
    }

    fn wake(&mut self, now: Time, out: &mut Outbox<SimPayload>) {
        if self.machine.scheduler().is_thinking() {
            // The scheduler interrupted a send at this very instant: resume it.
            let recycled = self.recycled(out);
            return self.send(now, recycled, out);
        }
        if let Application::Tunnel(end) = &mut self.application
            && end.pauses(now)
        {
            self.deadline = self.next_deadline();
            return;
        }
        for (port, packet) in std::mem::take(&mut self.held) {
            self.take(now, port, packet);
        }
        self.machine.handle_timeout(now);
        let recycled = self.recycled(out);
        self.drain(now, recycled, out);
    }

    #[inline]
    fn next_wake(&self) -> Option<Time> {
        self.deadline
    }
}
