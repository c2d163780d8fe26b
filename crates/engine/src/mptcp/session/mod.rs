//! One end of a session, split by phase.
//!
//! **One input, then drain, then ask for the deadline**: after each `handle_*`, `send` or other
//! call that takes `now`, call [`Session::poll_transmit_into`] until it returns nothing, then
//! [`Session::poll_event`] until nothing, then [`Session::next_deadline`].

mod acks;
mod board;
mod close;
mod connect;
mod inbound;
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

use self::outstanding::Mappings;
use super::chihani::{DataReorderBuffer, Model};
use super::config::Config;
use super::segment::Segment;
use super::subflow::Subflow;
use crate::mptcp::rx::ByteBuffer;
use crate::multipath::{Sender, SenderConfig};
use crate::path::PathStatus;
use crate::payload::Payload;
use crate::scheduler::Scheduler;

/// Why a session ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CloseReason {
    /// Both ends have closed it, and everything has arrived.
    Closed,
    /// The peer never answered a SYN.
    NoAnswer,
    /// The peer stopped answering.
    Unreachable,
    /// This end gave it up.
    Aborted,
    /// The peer did.
    AbortedByPeer,
}

/// How far a session is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing has happened.
    Closed,
    /// The first subflow is being opened.
    Opening,
    /// Carries data.
    Established,
    /// It is no more.
    Ended(CloseReason),
}

/// What the user should know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The session is up; whether with Multipath TCP, or as plain TCP since the peer speaks no other.
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
    /// A path changed.
    PathChanged(PathId, PathStatus),
    /// The peer sends no more.
    PeerClosed,
    /// The session has ended.
    Ended(CloseReason),
}

/// Why bytes were not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The send buffer is full; [`Event::Writable`] tells when it is not.
    Full,
    /// The session is closing or has ended.
    Closing,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Full => "the send buffer is full; wait until it is writable",
            Self::Closing => "the session is closing or closed",
        })
    }
}

impl core::error::Error for SendError {}

/// The end of our data, and of the peer's (DATA_FIN; RFC 8684, 3.3.3).
#[derive(Clone, Copy, Debug, Default)]
struct Ending {
    wanted: bool,
    /// When ours is sent again, and how often it was.
    sent: Option<(Time, u32)>,
    acknowledged: bool,
    by_peer: bool,
}

/// One end of a session.
#[derive(Clone, Debug)]
pub struct Session {
    config: Config,
    state: State,
    /// Whether both ends speak Multipath TCP.
    multipath: bool,
    local_key: u64,
    peer_key: u64,
    /// This end opens subflows.
    opens: bool,
    subflows: Vec<Subflow>,
    sender: Sender,
    outstanding: Mappings,
    buffer: ByteBuffer,
    /// What probes a shut window: subflow, piece, and the data sequence number behind it.
    shut_probe: Option<(PathId, u64, u64)>,
    ending: Ending,
    /// What early data waits at, where acknowledgements wait for data level.
    gate: DataReorderBuffer,
    /// With the habits of the model of Chihani and Collange.
    model: Option<Box<Model>>,
    control: VecDeque<(PathId, Segment)>,
    events: VecDeque<Event>,
    /// When something last came.
    heard_at: Time,
    /// Timeouts in a row over all subflows.
    errors: u32,
    /// Scratch: transmissions found lost.
    lost: Vec<u64>,
    was_full: bool,
}

impl Session {
    /// An end that waits for the peer.
    pub fn listen(config: Config, scheduler: Scheduler, seed: Seed) -> Self {
        Self::new(config, scheduler, seed, false)
    }

    /// An end that opens the session once `at` has come.
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
            pacing: None,
            ack_delay: config.ack_delay,
            record_decisions: config.record_decisions,
        };
        // Without flow control there is no edge, and no window to guard.
        let edge = if config.quirks.is_some() { unbounded } else { 0 };
        let guard = config.guard && config.receive_buffer.is_some();
        let (congestion, manager) = (config.start_congestion(), config.window_manager.clone());
        Self {
            state: State::Closed,
            sender: Sender::new(settings, scheduler, congestion, guard, manager),
            outstanding: Mappings::new(segment_limit, edge),
            multipath: config.multipath,
            // A key is never 0: 0 says that none is known.
            local_key: rng.next_u64().max(1),
            peer_key: 0,
            opens,
            buffer: ByteBuffer::new(config.receive_buffer.unwrap_or(unbounded)),
            shut_probe: None,
            ending: Ending::default(),
            gate: DataReorderBuffer::default(),
            model: config.quirks.map(|quirks| {
                let rng = seed.child("ack-bursts").rng();
                Box::new(Model::new(quirks, config.paths.len(), rng))
            }),
            control: VecDeque::new(),
            events: VecDeque::new(),
            heard_at: Time::ZERO,
            errors: 0,
            lost: Vec::new(),
            was_full: false,
            subflows,
            config,
        }
    }

    /// The state.
    pub const fn state(&self) -> State {
        self.state
    }

    /// The knobs.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Queues bytes.
    ///
    /// # Errors
    /// [`SendError`]; nothing is queued then.
    pub fn send(&mut self, payload: Payload) -> Result<(), SendError> {
        if self.ending.wanted || matches!(self.state, State::Ended(_)) {
            return Err(SendError::Closing);
        }
        if self.send_room() == 0 {
            self.was_full = true;
            return Err(SendError::Full);
        }
        self.outstanding.queue.push(payload);
        self.sender.drained = false;
        Ok(())
    }

    /// Bytes that the send buffer still takes. The last piece may overrun it.
    pub fn send_room(&self) -> u64 {
        self.config
            .send_buffer
            .saturating_sub(self.outstanding.queue.bytes() + self.outstanding.board.span())
    }

    /// Nothing follows what was handed over: schedulers may take care of its tail.
    pub const fn end_of_data(&mut self) {
        self.outstanding.closing = true;
    }

    /// Whether all that was given to [`Session::send`] has been acknowledged at data level.
    pub fn is_flushed(&self) -> bool {
        self.outstanding.queue.is_empty() && self.outstanding.board.is_empty()
    }

    /// The next bytes for the user.
    #[inline]
    pub fn read(&mut self) -> Option<Payload> {
        let shut = self.buffer.window() < self.outstanding.segment_limit as u64;
        let payload = self.buffer.read()?;
        if shut && self.buffer.window() >= self.outstanding.segment_limit as u64 {
            // RFC 9293, 3.8.6.2.2: a window that opens again is told.
            self.subflows.iter_mut().for_each(|subflow| subflow.received.make_due());
        }
        Some(payload)
    }

    /// The next thing that the user should know.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The scheduler.
    pub const fn scheduler(&self) -> &Scheduler {
        &self.sender.scheduler
    }

    /// Replaces the scheduler; data that is on its way is not touched.
    pub fn set_scheduler(&mut self, scheduler: Scheduler) {
        self.sender.scheduler = scheduler;
        self.sender.epoch += 1;
    }

    fn push_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    fn ids(&self) -> impl Iterator<Item = PathId> + use<> {
        (0..self.subflows.len()).map(PathId::from_index)
    }
}
