//! One end of a session, split by phase.
//!
//! **One input, then drain, then read the deadline**: after each `handle_*`, `send` or other call that
//! takes `now`, call [`Session::poll_transmit_into`] until it returns nothing, then
//! [`Session::poll_event`] until it returns nothing, then [`Session::next_deadline`].

mod acks;
mod board;
mod close;
mod connect;
mod inbound;
mod linux_receiver;
mod loss;
mod measure;
mod model;
mod outbound;
mod outstanding;
mod queue;
mod timers;
mod undo;
mod view;

use std::collections::VecDeque;

use ropewalk_base::{PathId, Rng, Seed, Time};

use self::linux_receiver::LinuxReceiver;
use self::outstanding::{Mappings, TxConfig};
use super::chihani::{DataReorderBuffer, Model};
use super::config::Config;
use super::segment::Segment;
use super::subflow::Subflow;
use crate::mptcp::rx::ByteBuffer;
use crate::multipath::{PeerAcks, Sender, SenderConfig};
use crate::path::{PathStatus, SharedBottlenecks};
use crate::payload::Payload;
use crate::scheduler::Scheduler;

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// Both ends have closed it, and all data has arrived.
    Closed,
    /// The peer never answered a SYN.
    NoAnswer,
    /// The peer stopped answering.
    Unreachable,
    /// This end aborted it.
    Aborted,
    /// The peer aborted it.
    AbortedByPeer,
}

/// State of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Not started.
    Closed,
    /// The first subflow is being opened.
    Opening,
    /// Carries data.
    Established,
    /// The session has ended.
    Ended(CloseReason),
}

/// Notifications for the user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The session is established, with Multipath TCP or, if the peer does not support it, as plain TCP.
    Connected {
        /// Whether further subflows can join.
        multipath: bool,
    },
    /// A further subflow has joined.
    Joined(PathId),
    /// Bytes can be read.
    Readable,
    /// The send buffer has room again.
    Writable,
    /// The status of a path changed.
    PathChanged(PathId, PathStatus),
    /// The peer has closed its direction: no more data follows.
    PeerClosed,
    /// The session has ended.
    Ended(CloseReason),
}

/// Why bytes were not accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full; [`Event::Writable`] reports when it has space again.
    #[error("the send buffer is full; wait until it is writable")]
    Full,
    /// The session is closing or has ended.
    #[error("the session is closing or closed")]
    Closing,
}

/// State of the end of our data, and of the peer's (DATA_FIN; RFC 8684, 3.3.3).
#[derive(Clone, Copy, Debug, Default)]
struct Ending {
    wanted: bool,
    /// When our DATA_FIN is retransmitted, and the number of retransmissions.
    sent: Option<(Time, u32)>,
    acknowledged: bool,
    by_peer: bool,
}

/// One end of a session. Each part owns its data, and the methods of the session connect the parts.
#[derive(Clone, Debug)]
pub struct Session {
    config: Config,
    state: State,
    sender: DataSender,
    receiver: Receiver,
    handshake: Handshake,
    control: Control,
    /// State of the model of Chihani and Collange, if its quirks are configured.
    model: Option<Box<Model>>,
}

/// The sender of a session.
type DataSender = Sender<Mappings>;

/// Received data.
#[derive(Clone, Debug)]
struct Receiver {
    buffer: ByteBuffer,
    /// The windows of Linux, if its rules are configured.
    linux: Option<Box<LinuxReceiver>>,
    /// Out-of-order data, if acknowledgements wait until data is in order at data level.
    reorder_buffer: DataReorderBuffer,
}

/// Results of the handshake.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    /// Whether both ends support Multipath TCP.
    multipath: bool,
    /// Keys of both ends (RFC 8684, 3.1); 0: not known yet.
    local_key: u64,
    peer_key: u64,
    /// Whether this end opens subflows.
    opens: bool,
}

/// Control segments that the session sends, and events for the user.
#[derive(Clone, Debug)]
struct Control {
    queue: VecDeque<(PathId, Segment)>,
    ending: Ending,
    events: VecDeque<Event>,
    /// Consecutive timeouts over all subflows.
    errors: u32,
}

impl Session {
    /// Creates a session that waits for the peer to open it.
    pub fn listen(config: Config, scheduler: Scheduler, seed: Seed) -> Self {
        Self::new(config, scheduler, seed, false)
    }

    /// Creates a session that opens at time `at`.
    pub fn start_later(config: Config, scheduler: Scheduler, seed: Seed, at: Time) -> Self {
        let mut session = Self::new(config, scheduler, seed, true);
        session.sender.wait_until = Some(at);
        session
    }

    fn new(config: Config, scheduler: Scheduler, seed: Seed, opens: bool) -> Self {
        let mut rng: Rng = seed.child("session").rng();
        let subflows: Vec<_> = config.paths.iter().map(|p| Subflow::new(p, &config)).collect();
        let segment_limit = config.segment_limit();
        let unbounded = u64::MAX / 4;
        let settings = SenderConfig {
            delay_source: config.delay_source,
            mitigation: config.mitigation,
            pacing: config.pacing,
            peer_acks: PeerAcks::of_every_second_packet(config.ack_delay),
            prr: config.prr,
            whole_packets: config.whole_packets,
            record_decisions: config.record_decisions,
            coupling: config.congestion_variants.coupling,
        };
        // Without flow control there is no window limit.
        let edge = if config.quirks.is_some() { unbounded } else { 0 };
        let (congestion, manager) =
            (config.start_congestion(seed.child("congestion")), config.window_manager.clone());
        let outstanding = Mappings::new(segment_limit, edge, TxConfig::of(&config));
        Self {
            state: State::Closed,
            sender: Sender::new(settings, outstanding, subflows, scheduler, congestion, manager),
            receiver: Receiver {
                buffer: ByteBuffer::new(config.receive_buffer.unwrap_or(unbounded)),
                linux: LinuxReceiver::of(&config),
                reorder_buffer: DataReorderBuffer::default(),
            },
            handshake: Handshake {
                multipath: config.multipath,
                local_key: rng.next_u64().max(1),
                peer_key: 0,
                opens,
            },
            control: Control {
                queue: VecDeque::new(),
                ending: Ending::default(),
                events: VecDeque::new(),
                errors: 0,
            },
            model: config.quirks.map(|quirks| {
                let rng = seed.child("ack-bursts").rng();
                Box::new(Model::new(quirks, config.paths.len(), rng))
            }),
            config,
        }
    }

    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The settings.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Queues bytes.
    ///
    /// # Errors
    /// [`SendError`] if the bytes were not queued.
    pub fn send(&mut self, payload: Payload) -> Result<(), SendError> {
        if self.control.ending.wanted || matches!(self.state, State::Ended(_)) {
            return Err(SendError::Closing);
        }
        if self.send_room() == 0 {
            self.sender.outstanding.was_full = true;
            return Err(SendError::Full);
        }
        self.sender.outstanding.queue.push(payload);
        self.sender.invalidate_views();
        Ok(())
    }

    /// Free bytes of the send buffer. The last payload may exceed them.
    pub fn send_room(&self) -> u64 {
        self.config.send_buffer.saturating_sub(
            self.sender.outstanding.queue.bytes() + self.sender.outstanding.board.span(),
        )
    }

    /// Declares that no data follows the data passed to [`Session::send`], so that schedulers can handle
    /// the tail.
    pub const fn end_of_data(&mut self) {
        self.sender.outstanding.closing = true;
    }

    /// Whether all data passed to [`Session::send`] has been acknowledged at data level.
    pub fn is_flushed(&self) -> bool {
        self.sender.outstanding.queue.is_empty() && self.sender.outstanding.board.is_empty()
    }

    /// The next bytes for the user.
    #[inline]
    pub fn read(&mut self) -> Option<Payload> {
        let closed = self.receiver.buffer.window() < self.sender.outstanding.segment_limit as u64;
        let payload = self.receiver.buffer.read()?;
        if self.receiver.linux.is_some() {
            self.on_linux_read(payload.len() as u64);
            return Some(payload);
        }
        if closed && self.receiver.buffer.window() >= self.sender.outstanding.segment_limit as u64 {
            // RFC 9293, 3.8.6.2.2: announce a window that has opened by a segment.
            self.sender.paths.iter_mut().for_each(|subflow| subflow.received.make_due());
        }
        Some(payload)
    }

    /// The next notification for the user.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.control.events.pop_front()
    }

    /// The detected shared bottlenecks of paths, if congestion control uses them
    /// ([`BottleneckCoupling::Detected`](crate::congestion::BottleneckCoupling::Detected)).
    pub fn shared_bottlenecks(&self) -> Option<&SharedBottlenecks> {
        self.sender.bottlenecks.as_deref()
    }

    /// The scheduler.
    pub const fn scheduler(&self) -> &Scheduler {
        &self.sender.scheduler
    }

    /// Replaces the scheduler. Data in flight is not affected.
    pub fn set_scheduler(&mut self, scheduler: Scheduler) {
        self.sender.scheduler = scheduler;
        self.sender.epoch += 1;
    }

    fn push_event(&mut self, event: Event) {
        self.control.events.push_back(event);
    }

    fn ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.sender.paths.len()).map(PathId::from_index)
    }
}
