//! One end of an association, split by phase.
//!
//! **One input, then drain, then ask for the deadline**: after each `handle_*`, `send` or other
//! call that takes `now`, call [`Association::poll_transmit`] until it returns nothing, then
//! [`Association::poll_event`] until nothing, then [`Association::next_deadline`].

mod abort;
mod accounts;
mod answers;
mod bundling;
mod connect;
mod ecn;
mod heartbeat;
mod inbound;
mod launch;
mod loss;
mod mtu;
mod outbound;
mod outstanding;
mod path;
mod path_management;
mod peer;
mod pieces;
mod primitives;
mod queue;
mod receive;
mod restart;
mod sack;
mod sack_out;
mod shutdown;
mod state;
mod timers;
mod undelivered;
mod view;
mod zero_window;

use std::collections::VecDeque;

use ropewalk_base::{Duration, PathId, Rng, Serial16, Serial32, StreamId, Time};

pub use primitives::{ParameterError, Parameters};
pub use state::{CloseReason, State};
pub use undelivered::Undelivered;

use self::answers::Answers;
use self::heartbeat::Verification;
use self::inbound::Inbound;
use self::outstanding::Chunks;
use self::path::Path;
use self::peer::Peer;
use self::pieces::Pieces;
use self::sack::AckScratch;

use super::chunk::Chunk;
use super::config::{CmtOptions, Config};
use super::cookie::CookieKey;
use super::listener::CookieSeal;
use super::packet::Packet;
use super::randomness::{Generator, Randomness};
pub use crate::accounts::{PathCounters, SenderStats};
use crate::congestion::CongestionControl;
use crate::multipath::{Sender, SenderConfig};
use crate::path::PathStatus;
use crate::payload::Payload;
use crate::receive::ReceiveStats;
use crate::record::DecisionRecord;
use crate::scheduler::{PathView, Scheduler};
use crate::sctp::rx::Message;
use crate::sctp::tx::MissIndications;
pub use crate::transmit_info::{PacketSize, TransmitInfo};

/// A packet to send.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// On which path.
    pub path: PathId,
    /// What.
    pub packet: Packet,
    /// Number of the sender's round on this path, for networks that lose by rounds.
    pub round: u64,
    /// How it may be sent.
    pub size: PacketSize,
    /// Whether the network may mark it (ECT(0), RFC 3168).
    pub ect: bool,
}

/// What the user should know. Each packet with data makes one: the tag is a byte of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Event {
    /// The association is up.
    Connected,
    /// Messages can be read.
    Readable,
    /// The send buffer has room again.
    Writable,
    /// The peer has started anew (RFC 9260, 5.2.4 A): what was queued or unacknowledged is gone,
    /// a message of which the beginning was read has no end, and numbers start over.
    Restarted,
    /// A path changed.
    PathChanged(PathId, PathStatus),
    /// The association has ended.
    Closed(CloseReason),
}

/// Why a message was not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SendError {
    /// The send buffer is full; [`Event::Writable`] tells when it is not.
    Full,
    /// There is no such stream.
    NoSuchStream,
    /// The association is shutting down or has ended.
    Closing,
    /// A message has at least one byte.
    Empty,
}

impl core::fmt::Display for SendError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Self::Full => "the send buffer is full; wait until it is writable",
            Self::NoSuchStream => "there is no such stream; negotiate more streams",
            Self::Closing => "the association is closing or closed",
            Self::Empty => "a message has at least one byte",
        })
    }
}

impl core::error::Error for SendError {}

/// One end of an association.
///
/// Laid out as written: first what every input looks at, then what a receiver does. With thousands
/// of associations the time goes into fetching them from memory, line by line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Association {
    /// Tag that packets to us carry, and tag that ours carry.
    local_tag: u32,
    peer_tag: u32,
    /// Whether some of a path's burst allowance has gone.
    bursts_spent: bool,
    /// Whether a path's timer may have been set since `paths_due` was noted.
    timers_moved: bool,
    was_full: bool,
    /// The paths' earliest timer; [`Time::FAR_FUTURE`] if none runs.
    paths_due: Time,
    state: State,
    sender: Sender,
    paths: Vec<Path>,
    control: VecDeque<(PathId, u32, Chunk)>,
    answers: Answers,
    verification: Verification,
    events: VecDeque<Event>,
    inbound: Inbound,
    config: Config,
    /// CMT as it was configured; `config` has what the peer allows of it.
    own_cmt: CmtOptions,
    outstanding: Chunks,
    /// Where plain SCTP sends (RFC 9260, 6.4).
    primary: PathId,
    /// How many chunks the newest SACK reported by gap blocks; tells an old SACK from a new one.
    offered_gaps: u64,
    misses: MissIndications,
    /// Streams that we may send on: what we want, and what the peer allows (RFC 9260, 5.1.1).
    outbound_streams: u16,
    /// When the last SACK came.
    heard_at: Time,
    /// Errors in a row over all paths.
    errors: u32,
    /// By the RFC's rules: fast recovery until this TSN is acknowledged cumulatively (7.2.4, 6).
    recovery_exit: Option<u64>,
    scratch: AckScratch,
    /// Jitter and the choice among equals.
    rng: Rng,
    /// Nonces; none where all numbers come from one seed, in the order in which they are needed.
    nonces: Option<Box<Generator>>,
    local_tsn: u32,
    key: CookieKey,
    peer: Peer,
    /// What the cookie of this association was sealed with, if a listener did it.
    accepted_by: Option<Box<CookieSeal>>,
    /// How often the peer found our cookie stale, and by how much longer the next is to live.
    stale_cookies: u32,
    preserve_millis: u32,
    /// The network has marked packets, of which the peer is to hear.
    marked: bool,
    /// Pieces of DATA chunks; none before the first one came.
    pieces: Option<Box<Pieces>>,
}

impl Association {
    /// An end that waits for the peer's INIT.
    pub fn listen(config: Config, scheduler: Scheduler, randomness: impl Into<Randomness>) -> Self {
        Self::new(config, scheduler, randomness.into())
    }

    /// An end that sends an INIT.
    pub fn connect(
        config: Config,
        scheduler: Scheduler,
        randomness: impl Into<Randomness>,
        now: Time,
    ) -> Self {
        let mut association = Self::new(config, scheduler, randomness.into());
        association.begin(now);
        association
    }

    /// An end that sends an INIT once `at` has come.
    pub fn start_later(
        config: Config,
        scheduler: Scheduler,
        randomness: impl Into<Randomness>,
        at: Time,
    ) -> Self {
        let mut association = Self::new(config, scheduler, randomness.into());
        association.sender.wait_until = Some(at);
        association
    }

    fn new(config: Config, scheduler: Scheduler, randomness: Randomness) -> Self {
        let mut generator = Generator::new(randomness, "association");
        let key = generator.key();
        // A tag is never 0 (RFC 9260, 3.3.2).
        let local_tag = (generator.next_u64() as u32).max(1);
        let local_tsn = generator.next_u64() as u32;
        let rng = generator.public();
        let nonces = matches!(generator, Generator::Keyed { .. }).then(|| Box::new(generator));
        let chunk_limit = config.first_chunk_limit();
        let paths: Vec<_> = config.paths.iter().map(|p| Path::new(p, &config)).collect();
        let settings = SenderConfig {
            delay_source: config.delay_source,
            mitigation: config.mitigation,
            pacing: config.pacing,
            ack_delay: Duration::ZERO,
            record_decisions: config.record_decisions,
        };
        let (congestion, manager) = (config.start_congestion(0), config.window_manager.clone());
        Self {
            state: State::Closed,
            sender: Sender::new(settings, scheduler, congestion, config.guard, manager),
            outstanding: Chunks::new(local_tsn, config.streams, chunk_limit, config.window_check),
            local_tag,
            peer_tag: 0,
            local_tsn,
            key: CookieKey::new(key),
            peer: Peer::default(),
            accepted_by: None,
            primary: PathId(0),
            offered_gaps: 0,
            inbound: Inbound::new(&config),
            misses: MissIndications { threshold: config.fast_retransmit_threshold },
            control: VecDeque::new(),
            answers: Answers::default(),
            verification: Verification::default(),
            events: VecDeque::new(),
            outbound_streams: config.streams,
            heard_at: Time::ZERO,
            errors: 0,
            recovery_exit: None,
            scratch: AckScratch::new(),
            stale_cookies: 0,
            preserve_millis: 0,
            paths,
            rng,
            nonces,
            bursts_spent: true,
            timers_moved: true,
            paths_due: Time::FAR_FUTURE,
            own_cmt: config.cmt,
            config,
            was_full: false,
            marked: false,
            pieces: None,
        }
    }

    /// The state.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The knobs.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Queues a message.
    ///
    /// # Errors
    /// [`SendError`]; nothing is queued then.
    pub fn send(
        &mut self,
        stream: StreamId,
        payload: Payload,
        unordered: bool,
    ) -> Result<(), SendError> {
        self.send_with_ppid(stream, 0, payload, unordered)
    }

    /// As [`Association::send`], with a payload protocol identifier, which says to the peer's user what
    /// the message is (RFC 9260, 3.3.1; 0: nothing).
    ///
    /// # Errors
    /// [`SendError`]; nothing is queued then.
    pub fn send_with_ppid(
        &mut self,
        stream: StreamId,
        ppid: u32,
        payload: Payload,
        unordered: bool,
    ) -> Result<(), SendError> {
        self.may_send(stream, &payload)?;
        if self.send_room() == 0 {
            self.was_full = true;
            return Err(SendError::Full);
        }
        self.outstanding.queue.push(stream, ppid, payload, unordered, 0);
        // 6.1, D: what is handed over is an occasion to send like any other.
        self.refill_bursts();
        Ok(())
    }

    /// Queues messages that are all like this one until the send buffer is full, but at most `most`;
    /// tells how many. Nothing is said later when there is room again.
    ///
    /// # Errors
    /// [`SendError`], but not for want of room; nothing is queued then.
    pub fn send_repeated(
        &mut self,
        stream: StreamId,
        payload: Payload,
        unordered: bool,
        most: u32,
    ) -> Result<u32, SendError> {
        self.may_send(stream, &payload)?;
        let room = self.send_room();
        if room == 0 || most == 0 {
            return Ok(0);
        }
        let count = room.div_ceil(u64::from(payload.len())).min(u64::from(most)) as u32;
        self.outstanding.queue.push(stream, 0, payload, unordered, count - 1);
        self.refill_bursts();
        Ok(count)
    }

    /// Whether such a message may be sent at all, if there is room.
    #[inline]
    fn may_send(&self, stream: StreamId, payload: &Payload) -> Result<(), SendError> {
        if payload.is_empty() {
            return Err(SendError::Empty);
        }
        if stream.0 >= self.outbound_streams {
            return Err(SendError::NoSuchStream);
        }
        if !self.state.takes_data() {
            return Err(SendError::Closing);
        }
        Ok(())
    }

    /// Bytes of user data that the send buffer still takes. A message may overrun it, so that one
    /// longer than the whole buffer can be sent at all.
    pub fn send_room(&self) -> u64 {
        let unsent = self.outstanding.queue.bytes();
        let room = self.config.send_buffer.saturating_sub(unsent + self.outstanding.board.extent());
        let Some(least) = self.config.unsent_limit else { return room };
        let windows = (0..self.paths.len()).map(|i| self.cwnd(PathId::from_index(i))).sum::<u64>();
        room.min(least.max(windows).saturating_sub(unsent))
    }

    /// Tells a sender that found the send buffer full that it is not any more.
    pub(super) fn tell_of_room(&mut self) {
        if self.was_full && self.send_room() > 0 {
            self.was_full = false;
            self.push_event(Event::Writable);
        }
    }

    /// Nothing follows what was handed over: schedulers may take care of its tail.
    pub const fn end_of_data(&mut self) {
        self.outstanding.closing = true;
    }

    /// Whether all that was given to [`Association::send`] has been acknowledged.
    pub fn is_flushed(&self) -> bool {
        self.outstanding.queue.is_empty() && self.outstanding.board.is_empty()
    }

    /// The next message for the user.
    #[inline]
    pub fn read(&mut self, now: Time) -> Option<Message> {
        let message = self.inbound.buffer.read();
        if message.is_some() {
            self.inbound.on_read(now, self.outstanding.chunk_limit);
        }
        message
    }

    /// Drops the next message, and tells the length of its data, bytes: for a user who wants no more,
    /// as in a simulation.
    #[inline]
    pub fn skip(&mut self, now: Time) -> Option<u32> {
        let length = self.inbound.buffer.skip();
        if length.is_some() {
            self.inbound.on_read(now, self.outstanding.chunk_limit);
        }
        length
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

    /// What the receiving side measured.
    pub const fn receive_stats(&self) -> &ReceiveStats {
        &self.inbound.buffer.stats
    }

    /// Bytes held out of order now, and the window advertised now.
    pub fn receive_occupancy(&self) -> (u64, u64) {
        (self.inbound.buffer.held_bytes(), self.inbound.buffer.free())
    }

    /// Bytes that what has been received takes at most, with its bookkeeping, until the user has read it.
    pub fn receive_memory(&self) -> u64 {
        self.inbound.buffer.occupied()
    }

    /// The TSN of the first chunk that the peer sends, once known.
    pub const fn peer_initial_tsn(&self) -> Option<Serial32> {
        self.inbound.first
    }

    /// The TSN that is next in sequence, unwrapped, and the number of the next message on a stream: for tests
    /// that send what an end has to take.
    #[doc(hidden)]
    pub fn expected(&self, stream: StreamId) -> (u64, Serial16) {
        let buffer = &self.inbound.buffer;
        (buffer.cumulative() + 1, buffer.next_on(stream))
    }

    /// A path as schedulers see it, the guard apart. For series and reports: looking changes
    /// nothing.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_view(&self, now: Time, path: PathId) -> PathView {
        self.sender.path_view(now, &self.outstanding, &self.paths, path)
    }

    /// Takes the decisions recorded since the last call.
    pub fn take_records(&mut self) -> Vec<DecisionRecord> {
        std::mem::take(&mut self.sender.records)
    }

    /// A number for a heartbeat that only the receiver of the heartbeat knows (RFC 9260, 5.4); 0 says that there
    /// is none.
    fn nonce(&mut self) -> u64 {
        let number = match &mut self.nonces {
            Some(generator) => generator.next_u64(),
            None => self.rng.next_u64(),
        };
        number.max(1)
    }

    fn push_event(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Makes `path` the primary path (RFC 9260, 6.4 and 11.1.6): without CMT data goes there while it is active.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn set_primary(&mut self, path: PathId) {
        assert!(path.index() < self.paths.len(), "there is no {path:?}");
        self.primary = path;
        self.sender.views.clear();
        self.sender.drained = false;
        self.sender.epoch += 1;
    }

    /// The primary path: the first one, unless [`Association::set_primary`] chose another.
    pub const fn primary(&self) -> PathId {
        self.primary
    }

    /// Where control chunks go: the primary path, or else the first, of those in the best state.
    fn control_path(&self) -> PathId {
        let rank = |p: &Path| match p.tx.state.status() {
            PathStatus::Active => 0,
            PathStatus::PotentiallyFailed => 1,
            // RFC 9260, 5.4: nothing but HEARTBEATs goes to an UNCONFIRMED address, if there is another.
            PathStatus::Inactive => 2,
            PathStatus::Unconfirmed => 3,
        };
        let other = |i: usize| i != self.primary.index();
        let best = (0..self.paths.len()).min_by_key(|i| (rank(&self.paths[*i]), other(*i)));
        PathId::from_index(best.unwrap_or(0))
    }

    /// Starts congestion control with the peer's window known.
    fn start_congestion(&mut self, peer_window: u64) {
        self.sender.congestion = self.config.start_congestion(peer_window);
        self.sender.congestion.set_unit(u64::from(self.outstanding.chunk_limit));
    }

    #[inline]
    fn cwnd(&self, path: PathId) -> u64 {
        self.sender.congestion.window(path)
    }
}
