//! The engine of an end, whatever its protocol: what the application, the network and the meter
//! need of it, in one set of words.

use ropewalk_base::{PathId, Seed, StreamId, Time};
use ropewalk_engine::mptcp::{self, Segment, Session};
use ropewalk_engine::receive::ReceiveStats;
use ropewalk_engine::record::DecisionRecord;
use ropewalk_engine::scheduler::{PathView, Scheduler};
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{self, AbortCause, Association, Chunk, Packet};
use ropewalk_engine::{PathCounters, Payload, SenderStats, TransmitInfo};
use ropewalk_scenario::Scenario;

use crate::{engine_config, tcp_config};

/// Why an end came to its end, in the words of a run that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// Nobody answered the first packet.
    NoAnswer,
    /// The peer stopped answering.
    Unreachable,
    /// An end found fault with the other.
    Violation,
    /// An end gave up.
    Aborted,
    /// The handshake took longer than its cookies last.
    StaleCookie,
    /// In order.
    Closed,
}

/// What the user should know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum News {
    /// Up.
    Connected,
    /// At its end.
    Closed(Ended),
    /// Something that changes nothing for the driver.
    Other,
}

/// How to make the engines of one transfer.
#[derive(Clone, Debug)]
pub enum Plan {
    /// SCTP.
    Sctp(sctp::Config),
    /// TCP and Multipath TCP.
    Tcp(mptcp::Config),
}

impl Plan {
    /// For the scenario's protocol.
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
            Self::Sctp(config) => config.chunk_limit() - sctp::Data::HEADER,
            Self::Tcp(config) => config.segment_limit(),
        }
    }

    /// Streams.
    pub const fn streams(&self) -> u16 {
        match self {
            Self::Sctp(config) => config.streams,
            Self::Tcp(_) => 1,
        }
    }

    /// Headers below the transport's, bytes.
    pub const fn lower_header(&self) -> u32 {
        match self {
            Self::Sctp(config) => config.lower_header,
            Self::Tcp(config) => config.lower_header,
        }
    }

    /// The same; whether decisions are kept if the scenario asks for them.
    pub const fn keep_decisions(&mut self, keep: bool) {
        match self {
            Self::Sctp(config) => config.record_decisions &= keep,
            Self::Tcp(config) => config.record_decisions &= keep,
        }
    }

    /// The end that begins once `at` has come.
    pub fn caller(&self, scheduler: &Scheduler, seed: Seed, at: Time) -> Machine {
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

    /// The end that waits.
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

/// The engine of one end.
#[derive(Clone, Debug)]
pub enum Machine {
    /// An end of an association.
    Sctp(Box<Association>),
    /// An end of a session.
    Tcp(Box<Session>),
}

/// `$body` for whichever engine it is: both have the same methods.
macro_rules! either {
    ($self:expr, $engine:ident => $body:expr) => {
        match $self {
            Machine::Sctp($engine) => $body,
            Machine::Tcp($engine) => $body,
        }
    };
}

impl Machine {
    /// A packet of SCTP came.
    #[inline]
    pub fn take_packet(&mut self, now: Time, path: PathId, packet: &mut Packet) {
        if let Self::Sctp(association) = self {
            association.handle_in_place(now, path, packet);
        }
    }

    /// A segment of TCP came.
    #[inline]
    pub fn take_segment(&mut self, now: Time, path: PathId, segment: &mut Segment) {
        if let Self::Tcp(session) = self {
            session.handle_in_place(now, path, segment);
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        either!(self, engine => engine.handle_timeout(now));
    }

    /// When that is to be told at the latest.
    #[inline]
    pub fn next_deadline(&self) -> Option<Time> {
        either!(self, engine => engine.next_deadline())
    }

    /// Hands `bytes` over. False if they are not taken.
    #[inline]
    pub fn send(&mut self, stream: StreamId, bytes: u32, unordered: bool) -> bool {
        let payload = Payload::Length(bytes);
        match self {
            Self::Sctp(association) => association.send(stream, payload, unordered).is_ok(),
            Self::Tcp(session) => session.send(payload).is_ok(),
        }
    }

    /// Hands pieces of `bytes` over until no more are taken, but at most `most`; tells how many.
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

    /// The application has no more to send.
    pub const fn end_of_data(&mut self) {
        either!(self, engine => engine.end_of_data());
    }

    /// Bytes of the next piece that can be read.
    #[inline]
    pub fn read(&mut self, now: Time) -> Option<u32> {
        match self {
            Self::Sctp(association) => association.skip(now),
            Self::Tcp(session) => session.read().map(|payload| payload.len()),
        }
    }

    /// What the user should know.
    #[inline]
    pub fn poll_news(&mut self) -> Option<News> {
        Some(match self {
            Self::Sctp(association) => match association.poll_event()? {
                sctp::Event::Connected => News::Connected,
                sctp::Event::Closed(reason) => News::Closed(ended_association(reason)),
                _ => News::Other,
            },
            Self::Tcp(session) => match session.poll_event()? {
                mptcp::Event::Connected { .. } => News::Connected,
                mptcp::Event::Ended(reason) => News::Closed(ended_session(reason)),
                _ => News::Other,
            },
        })
    }

    /// What the receiving side measured.
    pub const fn receive_stats(&self) -> &ReceiveStats {
        either!(self, engine => engine.receive_stats())
    }

    /// Bytes held out of order now, and the window advertised now.
    pub fn receive_occupancy(&self) -> (u64, u64) {
        either!(self, engine => engine.receive_occupancy())
    }

    /// What the sending side measured.
    pub const fn sender_stats(&self) -> &SenderStats {
        either!(self, engine => engine.sender_stats())
    }

    /// The scheduler.
    #[inline]
    pub const fn scheduler(&self) -> &Scheduler {
        either!(self, engine => engine.scheduler())
    }

    /// Counters of a path.
    pub fn path_counters(&self, path: usize) -> Option<PathCounters> {
        either!(self, engine => engine.path_counters().nth(path).copied())
    }

    /// A path as schedulers see it.
    pub fn path_view(&self, now: Time, path: PathId) -> PathView {
        either!(self, engine => engine.path_view(now, path))
    }

    /// Starts all measurements afresh.
    pub fn reset_measurements(&mut self, now: Time) {
        either!(self, engine => engine.reset_measurements(now));
    }

    /// Brings time-weighted measurements up to now.
    pub fn settle_measurements(&mut self, now: Time) {
        either!(self, engine => engine.settle_measurements(now));
    }

    /// Takes the decisions recorded since the last call.
    pub fn take_records(&mut self) -> Vec<DecisionRecord> {
        either!(self, engine => engine.take_records())
    }

    /// Numbers, from 0, of the chunks with data in a packet that came.
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

    /// The next packet to send, made in `packet`.
    #[inline]
    pub fn poll_packet(&mut self, now: Time, packet: &mut Packet) -> Option<TransmitInfo> {
        match self {
            Self::Sctp(association) => association.poll_transmit_into(now, packet),
            Self::Tcp(_) => None,
        }
    }

    /// The next segment to send, made in `segment`.
    #[inline]
    pub fn poll_segment(&mut self, now: Time, segment: &mut Segment) -> Option<TransmitInfo> {
        match self {
            Self::Sctp(_) => None,
            Self::Tcp(session) => session.poll_transmit_into(now, segment),
        }
    }
}

const fn ended_association(reason: CloseReason) -> Ended {
    match reason {
        CloseReason::NoAnswer => Ended::NoAnswer,
        CloseReason::Unreachable => Ended::Unreachable,
        CloseReason::Aborted(AbortCause::ProtocolViolation)
        | CloseReason::AbortedByPeer(AbortCause::ProtocolViolation) => Ended::Violation,
        CloseReason::Aborted(_) | CloseReason::AbortedByPeer(_) => Ended::Aborted,
        CloseReason::StaleCookie => Ended::StaleCookie,
        CloseReason::Shutdown => Ended::Closed,
    }
}

const fn ended_session(reason: mptcp::session::CloseReason) -> Ended {
    use mptcp::session::CloseReason as Reason;
    match reason {
        Reason::NoAnswer => Ended::NoAnswer,
        Reason::Unreachable => Ended::Unreachable,
        Reason::Aborted | Reason::AbortedByPeer => Ended::Aborted,
        Reason::Closed => Ended::Closed,
    }
}
