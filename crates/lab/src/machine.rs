//! Protocol-independent interface to the engine of one end, for application, network and meter, and the packets that
//! the ends exchange.

use ropewalk_base::{PathId, Seed, StreamId, Time};
use ropewalk_engine::mptcp::{self, Segment, Session};
use ropewalk_engine::path::SharedBottlenecks;
use ropewalk_engine::receive::ReceiveStats;
use ropewalk_engine::record::DecisionRecord;
use ropewalk_engine::scheduler::{PathView, Scheduler};
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{self, AbortCause, Association, Chunk, Packet, PacketForm};
use ropewalk_engine::{PathCounters, Payload, SenderStats, TransmitInfo};
use ropewalk_netsim::cross::CrossPayload;
use ropewalk_scenario::Scenario;

use crate::{engine_config, tcp_config};

/// Reason for the end of an association, in the categories of a run's error messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EndReason {
    /// The first packet was never answered.
    NoAnswer,
    /// The peer stopped answering.
    Unreachable,
    /// One end reported a protocol violation of the other.
    Violation,
    /// One end aborted.
    Aborted,
    /// The handshake took longer than the lifetime of its cookies.
    StaleCookie,
    /// Regular shutdown.
    Closed,
}

/// An event for the application.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EngineEvent {
    /// The handshake is complete.
    Connected,
    /// The association has ended.
    Closed(EndReason),
    /// An event that the driver ignores.
    Other,
}

/// Configuration of the engines of one transfer.
#[derive(Clone, Debug)]
pub enum EngineSettings {
    /// SCTP.
    Sctp(sctp::Config),
    /// TCP and Multipath TCP.
    Tcp(mptcp::Config),
}

impl EngineSettings {
    /// The configuration for the scenario's protocol.
    pub fn of(scenario: &Scenario) -> Self {
        if scenario.transfer.protocol.is_tcp() {
            Self::Tcp(tcp_config::config(scenario))
        } else {
            Self::Sctp(engine_config::config(scenario))
        }
    }

    /// User data of a full packet, bytes.
    pub fn payload(&self) -> u32 {
        match self {
            Self::Sctp(config) if config.interleaving => {
                config.chunk_limit() - sctp::Data::INTERLEAVED_HEADER
            }
            Self::Sctp(config) => config.chunk_limit() - sctp::Data::HEADER,
            Self::Tcp(config) => config.segment_limit(),
        }
    }

    /// User data of the largest datagram that fits into one packet, bytes.
    pub fn datagram(&self) -> u32 {
        match self {
            Self::Sctp(config) => config.datagram_limit(),
            Self::Tcp(config) => config.segment_limit(),
        }
    }

    /// Layout of SCTP packets on the wire.
    pub const fn packet_form(&self) -> PacketForm {
        match self {
            Self::Sctp(config) => config.packet_form,
            Self::Tcp(_) => PacketForm::Standard,
        }
    }

    /// Number of streams.
    pub const fn streams(&self) -> u16 {
        match self {
            Self::Sctp(config) => config.streams,
            Self::Tcp(_) => 1,
        }
    }

    /// Size of the headers below the transport's, bytes.
    pub const fn lower_header(&self) -> u32 {
        match self {
            Self::Sctp(config) => config.lower_header,
            Self::Tcp(config) => config.lower_header,
        }
    }

    /// Sets whether decisions are recorded if the scenario requests it.
    pub const fn keep_decisions(&mut self, keep: bool) {
        match self {
            Self::Sctp(config) => config.record_decisions &= keep,
            Self::Tcp(config) => config.record_decisions &= keep,
        }
    }

    /// The end that starts the handshake at `at`.
    pub fn initiator(&self, scheduler: &Scheduler, seed: Seed, at: Time) -> Machine {
        let scheduler = scheduler.clone();
        match self {
            Self::Sctp(config) => Machine::Sctp(Box::new(Association::start_later(
                config.clone(),
                scheduler,
                seed,
                at,
            ))),
            Self::Tcp(config) => {
                Machine::Tcp(Box::new(Session::start_later(config.clone(), scheduler, seed, at)))
            }
        }
    }

    /// The end that listens.
    pub fn listener(&self, scheduler: &Scheduler, seed: Seed) -> Machine {
        let scheduler = scheduler.clone();
        match self {
            Self::Sctp(config) => {
                Machine::Sctp(Box::new(Association::listen(config.clone(), scheduler, seed)))
            }
            Self::Tcp(config) => {
                Machine::Tcp(Box::new(Session::listen(config.clone(), scheduler, seed)))
            }
        }
    }
}

/// Payload of a packet in the simulated network.
#[derive(Clone, Debug)]
pub enum SimPayload {
    /// An SCTP packet of an association, and its number in the [packet log](crate::packet_log), 0
    /// without one. The packet is boxed because packets move at every hop.
    Sctp(Box<Packet>, u32),
    /// A TCP segment of an association, and its number.
    Tcp(Box<Segment>, u32),
    /// A packet of cross traffic, with its tag.
    Cross(u64),
}

impl CrossPayload for SimPayload {
    fn cross(tag: u64) -> Self {
        Self::Cross(tag)
    }

    fn cross_tag(&self) -> Option<u64> {
        match self {
            Self::Cross(tag) => Some(*tag),
            Self::Sctp(..) | Self::Tcp(..) => None,
        }
    }
}

impl SimPayload {
    /// The number of the packet in the packet log; 0 without one.
    pub const fn log_number(&self) -> u32 {
        match self {
            Self::Sctp(_, number) | Self::Tcp(_, number) => *number,
            Self::Cross(_) => 0,
        }
    }
}

/// The engine of one end.
#[derive(Clone, Debug)]
pub enum Machine {
    /// One end of an SCTP association.
    Sctp(Box<Association>),
    /// One end of a TCP or Multipath TCP session.
    Tcp(Box<Session>),
}

/// Evaluates `$body` for either engine: both have the same methods.
macro_rules! either {
    ($self:expr, $engine:ident => $body:expr) => {
        match $self {
            Machine::Sctp($engine) => $body,
            Machine::Tcp($engine) => $body,
        }
    };
}

impl Machine {
    /// Processes an SCTP packet.
    #[inline]
    pub fn take_packet(&mut self, now: Time, path: PathId, packet: &mut Packet) {
        if let Self::Sctp(association) = self {
            association.handle_in_place(now, path, packet);
        }
    }

    /// Processes a TCP segment.
    #[inline]
    pub fn take_segment(&mut self, now: Time, path: PathId, segment: &mut Segment) {
        if let Self::Tcp(session) = self {
            session.handle_in_place(now, path, segment);
        }
    }

    /// Processes expired timers.
    pub fn handle_timeout(&mut self, now: Time) {
        either!(self, engine => engine.handle_timeout(now));
    }

    /// Deadline of the next call of [`Self::handle_timeout`].
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        either!(self, engine => engine.next_deadline())
    }

    /// Queues a message of `bytes`. Returns false if the engine does not accept it.
    #[inline]
    pub fn send(&mut self, stream: StreamId, bytes: u32, unordered: bool) -> bool {
        let payload = Payload::Length(bytes);
        match self {
            Self::Sctp(association) => association.send(stream, payload, unordered).is_ok(),
            Self::Tcp(session) => session.send(payload).is_ok(),
        }
    }

    /// Queues up to `most` messages of `bytes` each until the engine accepts no more. Returns their
    /// number.
    #[inline]
    pub fn send_repeated(
        &mut self,
        stream: StreamId,
        bytes: u32,
        unordered: bool,
        most: u32,
    ) -> u32 {
        let payload = Payload::Length(bytes);
        match self {
            Self::Sctp(association) => {
                association.send_repeated(stream, payload, unordered, most).unwrap_or(0)
            }
            Self::Tcp(session) => {
                let mut taken = 0;
                while taken < most
                    && session.send_room() > 0
                    && session.send(payload.clone()).is_ok()
                {
                    taken += 1;
                }
                taken
            }
        }
    }

    /// Tells the engine that the application has no more data.
    pub const fn end_of_data(&mut self) {
        either!(self, engine => engine.end_of_data());
    }

    /// Reads the next message or piece; returns its size in bytes.
    #[inline]
    pub fn read(&mut self, now: Time) -> Option<u32> {
        match self {
            Self::Sctp(association) => association.skip(now),
            Self::Tcp(session) => session.read().map(|payload| payload.len()),
        }
    }

    /// The next event.
    #[inline]
    pub fn poll_event(&mut self) -> Option<EngineEvent> {
        Some(match self {
            Self::Sctp(association) => match association.poll_event()? {
                sctp::Event::Connected => EngineEvent::Connected,
                sctp::Event::Closed(reason) => EngineEvent::Closed(ended_association(reason)),
                _ => EngineEvent::Other,
            },
            Self::Tcp(session) => match session.poll_event()? {
                mptcp::Event::Connected { .. } => EngineEvent::Connected,
                mptcp::Event::Ended(reason) => EngineEvent::Closed(ended_session(reason)),
                _ => EngineEvent::Other,
            },
        })
    }

    /// Measurements of the receiving side.
    pub const fn receive_stats(&self) -> &ReceiveStats {
        either!(self, engine => engine.receive_stats())
    }

    /// Bytes held out of order now, and the receive window advertised now.
    pub fn receive_occupancy(&self) -> (u64, u64) {
        either!(self, engine => engine.receive_occupancy())
    }

    /// Measurements of the sending side.
    pub const fn sender_stats(&self) -> &SenderStats {
        either!(self, engine => engine.sender_stats())
    }

    /// The scheduler.
    #[inline]
    pub const fn scheduler(&self) -> &Scheduler {
        either!(self, engine => engine.scheduler())
    }

    /// The sender's detection results about paths that share a bottleneck.
    pub fn shared_bottlenecks(&self) -> Option<&SharedBottlenecks> {
        either!(self, engine => engine.shared_bottlenecks())
    }

    /// Counters of a path.
    pub fn path_counters(&self, path: usize) -> Option<PathCounters> {
        either!(self, engine => engine.path_counters().nth(path).copied())
    }

    /// A path in the schedulers' view.
    pub fn path_view(&self, now: Time, path: PathId) -> PathView {
        either!(self, engine => engine.path_view(now, path))
    }

    /// Resets all measurements.
    pub fn reset_measurements(&mut self, now: Time) {
        either!(self, engine => engine.reset_measurements(now));
    }

    /// Updates time-weighted measurements to `now`.
    pub fn settle_measurements(&mut self, now: Time) {
        either!(self, engine => engine.settle_measurements(now));
    }

    /// Takes the decisions that were recorded since the last call.
    pub fn take_records(&mut self) -> Vec<DecisionRecord> {
        either!(self, engine => engine.take_records())
    }

    /// Numbers, from 0, of the DATA chunks in a received packet.
    pub fn chunks_of<'a>(&self, packet: &'a Packet) -> impl Iterator<Item = u64> + use<'a> {
        let first = match self {
            Self::Sctp(association) => association.peer_initial_tsn(),
            Self::Tcp(_) => None,
        };
        packet.chunks.iter().filter_map(move |chunk| match chunk {
            Chunk::Data(data) => u64::try_from(data.tsn.distance_from(first?)).ok(),
            _ => None,
        })
    }

    /// The next packet to send, built in `packet`.
    #[inline]
    pub fn poll_packet(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        match self {
            Self::Sctp(association) => association.poll_transmit_into(now, packet),
            Self::Tcp(_) => None,
        }
    }

    /// The next segment to send, built in `segment`.
    #[inline]
    pub fn poll_segment(&mut self, now: Time, segment: &mut Segment) -> Option<TransmitInfo> {
        match self {
            Self::Sctp(_) => None,
            Self::Tcp(session) => session.poll_transmit_into(now, segment),
        }
    }
}

const fn ended_association(reason: CloseReason) -> EndReason {
    match reason {
        // No simulated host refuses packets.
        CloseReason::NoAnswer | CloseReason::Refused => EndReason::NoAnswer,
        CloseReason::Unreachable => EndReason::Unreachable,
        CloseReason::Aborted(AbortCause::ProtocolViolation)
        | CloseReason::AbortedByPeer(AbortCause::ProtocolViolation) => EndReason::Violation,
        CloseReason::Aborted(_) | CloseReason::AbortedByPeer(_) => EndReason::Aborted,
        CloseReason::StaleCookie => EndReason::StaleCookie,
        CloseReason::Shutdown => EndReason::Closed,
    }
}

const fn ended_session(reason: mptcp::session::CloseReason) -> EndReason {
    use mptcp::session::CloseReason as Reason;
    match reason {
        Reason::NoAnswer => EndReason::NoAnswer,
        Reason::Unreachable => EndReason::Unreachable,
        Reason::Aborted | Reason::AbortedByPeer => EndReason::Aborted,
        Reason::Closed => EndReason::Closed,
    }
}
