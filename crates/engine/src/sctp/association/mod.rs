//! One endpoint of an association. The code is split by phase and by algorithm, one file each.
//!
//! **One input, then drain, then read the deadline**: after each `handle_*`, `send` or other call that
//! takes `now`, call [`Association::poll_transmit`] until it returns nothing, then
//! [`Association::poll_event`] until it returns nothing, then [`Association::next_deadline`].

mod abort;
mod address_reconfiguration;
mod authentication;
mod control;
mod data;
mod handshake;
mod heartbeat;
mod partial_reliability;
mod path_management;
mod peer;
mod primitives;
mod probes;
mod receive;
mod reconfiguration;
mod refusal;
mod restart;
mod shutdown;
mod state;
mod streams;
mod timers;
mod transmit;

use std::collections::VecDeque;

use ropewalk_base::{Duration, Ecn, Histogram, PathId, Rng, Serial16, Serial32, StreamId, Time};

pub use primitives::{ParameterError, Parameters};
pub use reconfiguration::ResetDirection;
pub use state::{CloseReason, State};

pub use super::tx::Undelivered;

use self::control::ControlQueue;
use self::handshake::Handshake;
use self::heartbeat::Heartbeats;
use super::config::Config;
use super::extensions::address_reconfiguration::AddressReconfiguration;
use super::extensions::partial_reliability::{Limit, Submitted, Urgency};
use super::extensions::stream_reconfiguration::Reconfiguration;
use super::packet::Packet;
use super::randomness::{Generator, Randomness};
use super::rx::{Message, Receiver};
use super::tx::{Chunks, DeliveryDelays, Path, Sender, TxConfig};
use crate::congestion::{Congestion, CongestionControl};
pub use crate::measurements::{PathCounters, SenderStats};
use crate::multipath::{PeerAcks, SenderConfig};
use crate::path::{PathStatus, SharedBottlenecks};
use crate::payload::Payload;
use crate::receive::ReceiveStats;
use crate::record::DecisionRecord;
use crate::scheduler::{PathView, Scheduler};
pub use crate::transmit_info::{PacketSize, TransmitInfo};

/// A packet to send.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// The path to send on.
    pub path: PathId,
    /// The packet.
    pub packet: Packet,
    /// Number of the current round of transmissions on this path, for simulated networks that lose packets by
    /// rounds.
    pub round: u64,
    /// How the network layer may treat the packet's size.
    pub size: PacketSize,
    /// ECN field of its IP header.
    pub ecn: Ecn,
}

/// An event for the user. Each packet with data causes one, so the discriminant is a byte of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Event {
    /// The association is established.
    Connected,
    /// Messages can be read.
    Readable,
    /// The send buffer has room again.
    Writable,
    /// The peer has restarted the association (RFC 9260, 5.2.4 A). Queued and unacknowledged data is
    /// dropped, a partially read message is never completed, and sequence numbers start over.
    Restarted,
    /// Streams were reset or added, or a request about them has ended: see [`Association::poll_reconfiguration`].
    Reconfigured,
    /// Addresses of either end were added or removed, or a request about them has ended: see
    /// [`Association::poll_address_change`].
    AddressesChanged,
    /// The peer uses this shared key for the first time, after another one (RFC 6458, 6.1.8).
    PeerUsesKey(u16),
    /// The status of a path changed.
    PathChanged(PathId, PathStatus),
    /// The association has ended.
    Closed(CloseReason),
}

/// Why [`Association::send`] refused a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full, and the message may not use [`Config::stream_reserve`]. [`Event::Writable`] follows when there
    /// is room again.
    #[error("the send buffer is full; wait until it is writable")]
    Full,
    /// The stream does not exist.
    #[error("there is no such stream; negotiate more streams")]
    NoSuchStream,
    /// The association is shutting down or has ended.
    #[error("the association is closing or closed")]
    Closing,
    /// The message is empty. SCTP messages have at least one byte.
    #[error("a message has at least one byte")]
    Empty,
}

/// One endpoint of an association.
///
/// ```text
///              Handshake   tags, cookies, what the peer announced
///   packet --> Receiver    buffer, reassembly, SACKs to send        --> read()
///   send() --> Sender      queue, chunks in flight, paths, windows  --> packet
///              Control     control chunks to send, heartbeats, events
/// ```
///
/// Each part owns its data. The methods of the association connect the parts, and depend on its state.
///
/// `repr(C)` keeps the fields in this order, here and in the parts, with those that every input reads
/// first. With a thousand associations, cache misses dominate the time.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Association {
    control: Control,
    handshake: Handshake,
    state: State,
    sender: Sender,
    receiver: Receiver,
    random: Random,
    config: Config,
}

/// Control chunks that the association sends, and events for the user.
#[derive(Clone, Debug)]
#[repr(C)]
struct Control {
    queue: ControlQueue,
    heartbeats: Heartbeats,
    /// Requests about streams, `None` before the first.
    reconfiguration: Option<Box<Reconfiguration>>,
    /// Requests about addresses, `None` before the first.
    addresses: Option<Box<AddressReconfiguration>>,
    events: VecDeque<Event>,
    /// Consecutive errors over all paths.
    errors: u32,
    /// Packets without a valid code that the driver has not counted yet.
    unauthenticated: u64,
}

/// Random numbers.
#[derive(Clone, Debug)]
struct Random {
    /// For jitter and for breaking ties.
    rng: Rng,
    /// Source of nonces. `None` if all random numbers are drawn from one seed in the order of their use.
    nonces: Option<Box<Generator>>,
}

impl Random {
    /// A nonce for a HEARTBEAT that cannot be known without receiving it (RFC 9260, 5.4). Never 0, which
    /// means "none".
    fn nonce(&mut self) -> u64 {
        let number = match &mut self.nonces {
            Some(generator) => generator.next_u64(),
            None => self.rng.next_u64(),
        };
        number.max(1)
    }
}

impl Association {
    /// Creates an association that waits for the peer's INIT.
    pub fn listen(config: Config, scheduler: Scheduler, randomness: impl Into<Randomness>) -> Self {
        Self::new(config, scheduler, randomness.into())
    }

    /// Creates an association that sends an INIT immediately.
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

    /// Creates an association that sends an INIT at time `at`.
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
        let auth_random = config
            .authenticates()
            .then(|| Generator::new(randomness.clone(), "authentication").key());
        let mut generator = Generator::new(randomness, "association");
        let mut handshake = Handshake::new(&mut generator, config.cmt);
        handshake.auth_random = auth_random.map(Box::new);
        let rng = generator.public();
        let nonces = matches!(generator, Generator::Keyed { .. }).then(|| Box::new(generator));
        let settings = SenderConfig {
            delay_source: config.delay_source,
            mitigation: config.mitigation,
            pacing: config.pacing,
            peer_acks: PeerAcks::of_every_second_packet(Duration::ZERO),
            prr: config.prr,
            // RFC 9260, 6.1 B: the last packet may exceed the window.
            whole_packets: false,
            record_decisions: config.record_decisions,
            coupling: config.congestion_variants.coupling,
        };
        let mut chunks = Chunks::new(
            handshake.local_tsn,
            config.streams,
            config.first_mtu(),
            config.fast_retransmit_threshold,
            TxConfig::of(&config),
        );
        chunks.queue.set_stream_scheduler(config.stream_scheduler);
        let paths = config.paths.iter().map(|p| Path::new(p, &config)).collect();
        let (congestion, manager) = (
            config.start_congestion(0, handshake.congestion_seed(), false),
            config.window_manager.clone(),
        );
        Self {
            state: State::Closed,
            sender: Sender::new(settings, chunks, paths, scheduler, congestion, manager),
            receiver: Receiver::new(&config),
            control: Control {
                queue: ControlQueue::default(),
                heartbeats: Heartbeats::new(&config),
                reconfiguration: None,
                addresses: None,
                events: VecDeque::new(),
                errors: 0,
                unauthenticated: 0,
            },
            handshake,
            random: Random { rng, nonces },
            config,
        }
    }

    /// State of the association.
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// Configuration of the association.
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

    /// Like [`Association::send`], with a payload protocol identifier, which tells the peer's application
    /// the kind of the message (RFC 9260, 3.3.1; 0: not specified).
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
        self.send_in_order(Submitted { stream, ppid, payload, unordered, limit: Limit::NONE })
    }

    /// Queues a message behind all others.
    #[inline]
    fn send_in_order(&mut self, message: Submitted) -> Result<(), SendError> {
        self.may_queue(message.stream, &message.payload)?;
        if self.sender.outstanding.queue.is_held(message.stream) {
            self.sender.outstanding.queue.held_mut().push(message, Urgency::Bulk, 0);
            return Ok(());
        }
        let Submitted { stream, ppid, payload, unordered, limit } = message;
        self.sender.outstanding.queue.push(stream, ppid, payload, unordered, 0, limit);
        // RFC 9260, 6.1 D: Max.Burst limits each opportunity to send, and a call of `send` is one.
        self.sender.refill_bursts();
        Ok(())
    }

    /// Queues up to `most` copies of this message, until the send buffer is full, and returns their
    /// number. No [`Event::Writable`] follows.
    ///
    /// # Errors
    /// [`SendError`] other than [`SendError::Full`]; nothing is queued then.
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
        if self.sender.outstanding.queue.is_held(stream) {
            let message = Submitted { stream, ppid: 0, payload, unordered, limit: Limit::NONE };
            self.sender.outstanding.queue.held_mut().push(message, Urgency::Bulk, count - 1);
            return Ok(count);
        }
        self.sender.outstanding.queue.push(stream, 0, payload, unordered, count - 1, Limit::NONE);
        self.sender.refill_bursts();
        Ok(count)
    }

    /// Checks everything except the room in the send buffer.
    #[inline]
    fn may_send(&self, stream: StreamId, payload: &Payload) -> Result<(), SendError> {
        if payload.is_empty() {
            return Err(SendError::Empty);
        }
        if stream.0 >= self.sender.outstanding.streams {
            return Err(SendError::NoSuchStream);
        }
        if !self.state.takes_data() {
            return Err(SendError::Closing);
        }
        Ok(())
    }

    /// Checks everything including the room in the send buffer.
    #[inline]
    fn may_queue(&mut self, stream: StreamId, payload: &Payload) -> Result<(), SendError> {
        self.may_send(stream, payload)?;
        if self.send_room() > 0 {
            self.sender.outstanding.reserve = None;
            return Ok(());
        }
        let size = self.config.stream_reserve;
        if !self.sender.take_from_reserve(size, stream, payload.len()) {
            self.sender.outstanding.was_full = true;
            return Err(SendError::Full);
        }
        Ok(())
    }

    /// Room in the send buffer, bytes of user data. The last message may exceed it, so that a message
    /// longer than the buffer can be sent.
    pub fn send_room(&self) -> u64 {
        self.sender.buffer_room()
    }

    /// Emits [`Event::Writable`] if the send buffer was full and has room again, even if only for a
    /// message that did not fit into the reserve.
    pub(super) fn report_writable(&mut self) {
        if self.sender.outstanding.was_full
            && (self.send_room() > 0
                || self.sender.has_reserve_for_refused(self.config.stream_reserve))
        {
            self.sender.outstanding.was_full = false;
            self.push_event(Event::Writable);
        }
    }

    /// Declares that no further message follows, so that schedulers can plan the tail of the transfer.
    pub const fn end_of_data(&mut self) {
        self.sender.outstanding.closing = true;
    }

    /// Whether everything passed to [`Association::send`] has been acknowledged.
    pub fn is_flushed(&self) -> bool {
        let chunks = &self.sender.outstanding;
        chunks.queue.is_empty()
            && chunks.board.is_empty()
            && !chunks.has_messages_beside_queue()
            && chunks.queue.held_bytes() == 0
    }

    /// The highest TSN up to which all data has been received, as a SACK would report it now.
    pub const fn cumulative_tsn(&self) -> Serial32 {
        Serial32::wrap(self.receiver.buffer.cumulative())
    }

    /// Takes the next received message.
    #[inline]
    pub fn read(&mut self, now: Time) -> Option<Message> {
        let message = self.receiver.buffer.read()?;
        self.on_read(now);
        Some(message)
    }

    /// Drops the next received message and returns the length of its data in bytes. For users that do not
    /// need the data, as in a simulation.
    #[inline]
    pub fn skip(&mut self, now: Time) -> Option<u32> {
        let length = self.receiver.buffer.skip()?;
        self.on_read(now);
        Some(length)
    }

    #[inline]
    fn on_read(&mut self, now: Time) {
        if let Some(reconfiguration) = &mut self.control.reconfiguration {
            reconfiguration.on_read();
        }
        self.receiver.on_read(now, self.sender.outstanding.chunk_limit());
    }

    /// Takes the next event.
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

    /// Resets all measurements, at the end of a warm-up.
    pub fn reset_measurements(&mut self, now: Time) {
        self.sender.reset_measurements(now);
        self.receiver.buffer.stats.reset(now);
    }

    /// Updates time-weighted measurements to `now`.
    pub fn settle_measurements(&mut self, now: Time) {
        self.sender.measurements.settle(now);
        self.receiver.buffer.stats.settle(now);
    }

    /// Statistics of the sending side.
    pub const fn sender_stats(&self) -> &SenderStats {
        &self.sender.measurements.stats
    }

    /// Starts or restarts the measurement of the time from each chunk's first transmission to its
    /// delivery in order.
    pub fn measure_delivery_delays(&mut self) {
        self.sender.measure_delivery_delays();
    }

    /// These delays, nanoseconds. `None` unless they are measured.
    pub fn delivery_delays(&self) -> Option<&Histogram> {
        self.sender.outstanding.delivery_delays.as_deref().map(DeliveryDelays::nanos)
    }

    /// Counters of each path.
    pub fn path_counters(&self) -> impl ExactSizeIterator<Item = &PathCounters> {
        self.sender.path_counters()
    }

    /// Statistics of the receiving side.
    pub const fn receive_stats(&self) -> &ReceiveStats {
        &self.receiver.buffer.stats
    }

    /// Bytes of out-of-order data, and the free bytes of the receive buffer.
    pub fn receive_occupancy(&self) -> (u64, u64) {
        (self.receiver.buffer.held_bytes(), self.receiver.buffer.free())
    }

    /// User data that arrived on a path and was stored since the association began, bytes. Duplicates are
    /// not counted. Data that was dropped to make room counts again when it is stored again.
    pub fn received_bytes(&self, path: PathId) -> u64 {
        self.receiver.acks.bytes_on(path)
    }

    /// Upper bound of the memory that received data occupies until the user reads it, bytes, bookkeeping
    /// included.
    pub fn receive_memory(&self) -> u64 {
        self.receiver.buffer.occupied()
    }

    /// The peer's initial TSN, once known.
    pub const fn peer_initial_tsn(&self) -> Option<Serial32> {
        self.receiver.first()
    }

    /// The next expected TSN, unwrapped, and the next expected SSN of a stream. For tests that forge valid
    /// DATA.
    #[doc(hidden)]
    pub fn expected(&self, stream: StreamId) -> (u64, Serial16) {
        let buffer = &self.receiver.buffer;
        (buffer.cumulative() + 1, buffer.next_on(stream))
    }

    /// A path as schedulers see it. For time series and reports; it changes no state.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn path_view(&self, now: Time, path: PathId) -> PathView {
        self.sender.path_view(now, path)
    }

    /// Takes the decisions recorded since the last call.
    pub fn take_records(&mut self) -> Vec<DecisionRecord> {
        std::mem::take(&mut self.sender.records)
    }

    fn push_event(&mut self, event: Event) {
        self.control.events.push_back(event);
    }

    /// Makes `path` the primary path (RFC 9260, 6.4 and 11.1.6). Without CMT, data goes there while the path
    /// is active.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn set_primary(&mut self, path: PathId) {
        assert!(path.index() < self.sender.paths.len(), "there is no {path:?}");
        self.sender.outstanding.primary = path;
        self.sender.discard_views();
        self.sender.epoch += 1;
    }

    /// The primary path: the first path unless [`Association::set_primary`] chose another.
    pub const fn primary(&self) -> PathId {
        self.sender.outstanding.primary
    }

    /// Congestion control in its initial state.
    fn fresh_congestion(&self, peer_window: u64) -> Congestion {
        let on_request = self.sender.config.peer_acks.on_request;
        self.config.start_congestion(peer_window, self.handshake.congestion_seed(), on_request)
    }

    /// Starts congestion control; the peer's receive window is known now.
    fn start_congestion(&mut self, peer_window: u64) {
        self.sender.congestion = self.fresh_congestion(peer_window);
        self.sender.congestion.set_unit(u64::from(self.sender.outstanding.chunk_limit()));
    }

    /// Messages that have not been sent even in part, oldest first (RFC 9260, 11.1.14), also after the
    /// association's end.
    pub fn unsent(&self) -> impl Iterator<Item = Undelivered> {
        self.sender.outstanding.undelivered().filter(Undelivered::never_left)
    }

    /// Messages that have been sent, in full or in part, and whose end the peer has not acknowledged,
    /// oldest first (RFC 9260, 11.1.15). The peer may or may not have received them. Also available after
    /// the end of the association.
    pub fn unacknowledged(&self) -> impl Iterator<Item = Undelivered> {
        self.sender.outstanding.undelivered().filter(|message| !message.never_left())
    }
}
