//! Partial reliability (RFC 3758; RFC 7496, policies "timed" and "limited retransmissions"): the delivery
//! options of a message, and the sender's state for messages with limits.
//!
//! ```text
//!   cumulative TSN       Advanced.Peer.Ack.Point
//!        |                      |
//!   -----+======================+------+-----------> TSN
//!         abandoned, or received  open
//! ```
//!
//! An association that sends only plain messages allocates none of this.

use std::collections::VecDeque;

use ropewalk_base::{Duration, Serial32, StreamId, Time};

use super::abandoned::{AbandonedCounts, ReliabilityPolicy};
use crate::payload::Payload;
use crate::sctp::tx::Undelivered;

/// Maximum number of second copies whose duplicates are expected. The duplicates of older ones count as
/// spurious retransmissions.
const COPIED_LIMIT: usize = 256;

/// How urgently a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Urgency {
    /// Before all queued messages, on the path with the earliest arrival. The message must be unordered
    /// and fit into one packet; otherwise it is sent as [`Urgency::Bulk`].
    Interactive,
    /// In the order of submission, on the path that the scheduler chooses.
    #[default]
    Bulk,
    /// In the order of submission among messages of this urgency, each on the open path with the earliest
    /// arrival. The order of arrival does not matter: such a message neither waits for a faster path, nor
    /// is planned to arrive after others. The message must be unordered and fit into one packet;
    /// otherwise it is sent as [`Urgency::Bulk`].
    FirstOpen,
    /// When no other message is queued.
    Background,
}

/// The number of paths on which a message is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Copies {
    /// On one path.
    #[default]
    One,
    /// On the chosen path, and on the other open path with the earliest arrival. The peer delivers the
    /// first copy and drops the second. Costs twice the bytes.
    Two,
}

/// Delivery options of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Delivery {
    /// Time after which the message is no longer sent. `None`: it is sent until it is acknowledged. A
    /// message that was sent within its lifetime may arrive up to one forward delay after its end. If the
    /// peer does not support FORWARD-TSN, a message that has been sent in part is delivered reliably (RFC
    /// 3758, 4.1).
    pub lifetime: Option<Duration>,
    /// Maximum number of retransmissions (RFC 7496, 3.1). `None`: limited by the lifetime only. Ignored
    /// if the peer does not support FORWARD-TSN.
    pub retransmissions: Option<u8>,
    /// Priority (RFC 7496, 3.2): when the send buffer is full, an unsent message may be abandoned for one
    /// with a lower number. `None`: it is never abandoned for another.
    pub priority: Option<u32>,
    /// Whether the message is delivered in the order of its stream. At the peer, an ordered message waits
    /// until earlier ones have arrived or are abandoned.
    pub ordered: bool,
    /// How urgently it is sent.
    pub urgency: Urgency,
    /// The number of paths on which it is sent.
    pub copies: Copies,
    /// Whether the last chunk requests an immediate acknowledgement (SACK-IMMEDIATELY, RFC 7053, 7.1).
    /// Saves up to 200 ms if the application waits for the acknowledgement, and costs a SACK.
    pub immediate: bool,
    /// Whether the message is queued even if the send buffer is full. For an application that has seen
    /// room for a message in several associations and queues it in all of them: acknowledgements and
    /// losses may change the room in between.
    pub exceeds_buffer: bool,
    /// A number of the application, which is returned with the message if it is not delivered (RFC 6458,
    /// 5.3.4).
    pub context: u32,
}

impl Delivery {
    /// Ordered, and retransmitted until it is acknowledged.
    pub const RELIABLE: Self = Self {
        lifetime: None,
        retransmissions: None,
        priority: None,
        ordered: true,
        urgency: Urgency::Bulk,
        copies: Copies::One,
        immediate: false,
        exceeds_buffer: false,
        context: 0,
    };

    /// A datagram: unordered, abandoned after `lifetime`, and retransmitted at most once.
    pub const fn datagram(lifetime: Duration) -> Self {
        Self {
            lifetime: Some(lifetime),
            retransmissions: Some(1),
            priority: None,
            ordered: false,
            urgency: Urgency::Bulk,
            copies: Copies::One,
            immediate: false,
            exceeds_buffer: false,
            context: 0,
        }
    }

    /// Whether the sender needs no additional state for such a message.
    pub(crate) fn is_plain(&self) -> bool {
        Self { ordered: true, immediate: false, ..*self } == Self::RELIABLE
    }

    /// The limits of such a message that is submitted at `now`.
    pub(crate) fn limit(&self, now: Time) -> Limit {
        Limit {
            expires: self
                .lifetime
                .map_or(Time::FAR_FUTURE, |lifetime| now.saturating_add(lifetime)),
            retransmissions: self.retransmissions.unwrap_or(u8::MAX),
            priority: self.priority,
            twice: self.copies == Copies::Two,
            urgent: false,
            immediate: self.immediate,
            context: self.context,
        }
    }
}

/// The limits of a message, and the sender's other state for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Limit {
    /// End of the lifetime; [`Time::FAR_FUTURE`]: unlimited.
    pub expires: Time,
    /// Maximum number of retransmissions; [`u8::MAX`]: unlimited.
    pub retransmissions: u8,
    /// Set if it may be abandoned for others while it is queued. Only for messages that have no TSN yet.
    pub priority: Option<u32>,
    /// Whether a second copy is sent on another path.
    pub twice: bool,
    /// Whether it was sent as [`Urgency::Interactive`].
    pub urgent: bool,
    /// Whether its last chunk requests a SACK. Only for messages that have no TSN yet.
    pub immediate: bool,
    /// The application's number.
    pub context: u32,
}

impl Limit {
    /// A message that is sent until it is acknowledged.
    pub const NONE: Self = Self {
        expires: Time::FAR_FUTURE,
        retransmissions: u8::MAX,
        priority: None,
        twice: false,
        urgent: false,
        immediate: false,
        context: 0,
    };
}

/// A message as submitted.
#[derive(Clone, Debug)]
pub(crate) struct Submitted {
    pub stream: StreamId,
    pub ppid: u32,
    pub payload: Payload,
    pub unordered: bool,
    pub limit: Limit,
}

/// Limits of a chunk that has a TSN.
#[derive(Clone, Copy, Debug)]
struct Limited {
    tsn: u64,
    limit: Limit,
    /// A part of its message was abandoned, so the peer will never complete it.
    given_up: bool,
}

/// When FORWARD-TSN is sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ForwardTimer {
    /// The highest point announced to the peer.
    pub told: u64,
    /// Time of that announcement.
    pub told_at: Time,
    /// Latest time at which the chunk is sent. `None`: the peer need not be informed.
    pub due: Option<Time>,
    /// Number of times that the same point was sent.
    pub repeats: u32,
}

/// The sender's state for messages that are not plain.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    /// Chunks with a TSN, lowest first.
    sent: VecDeque<Limited>,
    /// Messages that are sent before the queue; each is unordered and fits into a packet.
    pub interactive: VecDeque<Submitted>,
    /// Messages that are sent on the first path that is open; each is unordered and fits into a packet.
    pub first_open: VecDeque<Submitted>,
    /// Messages that are sent when the queue is empty.
    pub background: VecDeque<Submitted>,
    /// User data of the messages outside the queue, bytes.
    pub waiting_bytes: u64,
    /// User data of the interactive ones, bytes.
    pub interactive_bytes: u64,
    /// Whether any message was sent as interactive.
    pub has_urgent: bool,
    /// TSNs in flight that need a second copy.
    pub second_copies: VecDeque<u64>,
    /// The last TSNs that were sent twice on purpose.
    copied: VecDeque<u64>,
    /// No queued message expires earlier.
    pub queued_expiry: Time,
    /// Advanced.Peer.Ack.Point (RFC 3758, 3.5 A1).
    pub advanced: u64,
    /// All chunks up to here are abandoned or have been reported as received.
    pub passed: u64,
    /// When the next chunk expires, if a message may wait for it at the peer.
    pub next_expiry: Time,
    pub forward: ForwardTimer,
    /// Counts of abandoned messages.
    pub abandoned: AbandonedCounts,
    /// Abandoned messages that the user has not taken yet. `None`: they are only counted.
    pub reports: Option<Vec<Undelivered>>,
}

impl Limits {
    /// Creates the state when no message up to `cumulative` has limits. `reports`: whether abandoned
    /// messages are kept for the user.
    pub fn new(cumulative: u64, reports: bool) -> Self {
        Self {
            sent: VecDeque::new(),
            interactive: VecDeque::new(),
            first_open: VecDeque::new(),
            background: VecDeque::new(),
            waiting_bytes: 0,
            interactive_bytes: 0,
            has_urgent: false,
            second_copies: VecDeque::new(),
            copied: VecDeque::new(),
            queued_expiry: Time::FAR_FUTURE,
            advanced: cumulative,
            passed: cumulative,
            next_expiry: Time::FAR_FUTURE,
            forward: ForwardTimer { told: cumulative, ..ForwardTimer::default() },
            abandoned: AbandonedCounts::default(),
            reports: reports.then(Vec::new),
        }
    }

    /// Counts `count` unsent messages as abandoned. `messages` describes each of them.
    pub fn on_dropped(
        &mut self,
        policy: ReliabilityPolicy,
        stream: StreamId,
        count: u64,
        messages: impl Iterator<Item = Undelivered>,
    ) {
        self.abandoned.count(stream, policy, false, count);
        if let Some(reports) = &mut self.reports {
            reports.extend(messages);
        }
    }

    /// Records that a chunk with these limits gets `tsn`, the highest so far.
    pub fn note(&mut self, tsn: u64, limit: Limit) {
        let limit = Limit { immediate: false, priority: None, ..limit };
        if limit != Limit::NONE {
            self.sent.push_back(Limited { tsn, limit, given_up: false });
        }
    }

    /// Whether messages or copies wait to be sent.
    pub fn has_work(&self) -> bool {
        !self.interactive.is_empty()
            || !self.first_open.is_empty()
            || !self.background.is_empty()
            || !self.second_copies.is_empty()
    }

    pub fn push_interactive(&mut self, message: Submitted) {
        self.waiting_bytes += u64::from(message.payload.len());
        self.interactive_bytes += u64::from(message.payload.len());
        self.has_urgent = true;
        self.interactive.push_back(message);
    }

    pub fn push_first_open(&mut self, message: Submitted) {
        self.waiting_bytes += u64::from(message.payload.len());
        self.first_open.push_back(message);
    }

    pub fn push_background(&mut self, message: Submitted) {
        self.waiting_bytes += u64::from(message.payload.len());
        self.background.push_back(message);
    }

    pub fn take_interactive(&mut self) -> Option<Submitted> {
        let message = self.interactive.pop_front()?;
        self.waiting_bytes -= u64::from(message.payload.len());
        self.interactive_bytes -= u64::from(message.payload.len());
        Some(message)
    }

    pub fn take_first_open(&mut self) -> Option<Submitted> {
        let message = self.first_open.pop_front()?;
        self.waiting_bytes -= u64::from(message.payload.len());
        Some(message)
    }

    pub fn take_background(&mut self) -> Option<Submitted> {
        let message = self.background.pop_front()?;
        self.waiting_bytes -= u64::from(message.payload.len());
        Some(message)
    }

    /// The messages outside the queue, oldest first in each list.
    pub fn beside_queue(&self) -> impl Iterator<Item = &Submitted> {
        self.interactive.iter().chain(&self.first_open).chain(&self.background)
    }

    /// Drops the messages outside the queue for which `is_over` returns true. Returns their number.
    pub fn drop_beside_queue(
        &mut self,
        policy: ReliabilityPolicy,
        mut is_over: impl FnMut(&Submitted) -> bool,
    ) -> u64 {
        let mut dropped = 0;
        let (abandoned, reports) = (&mut self.abandoned, &mut self.reports);
        let mut stays = |message: &Submitted| {
            let over = is_over(message);
            if over {
                dropped += 1;
                abandoned.count(message.stream, policy, false, 1);
                reports.iter_mut().for_each(|all| all.push(message.into()));
            }
            !over
        };
        self.interactive.retain(&mut stays);
        self.first_open.retain(&mut stays);
        self.background.retain(&mut stays);
        let bytes = |message: &Submitted| u64::from(message.payload.len());
        self.interactive_bytes = self.interactive.iter().map(bytes).sum();
        self.waiting_bytes = self.beside_queue().map(bytes).sum();
        dropped
    }

    /// Drops the messages outside the queue whose lifetime is over. Returns their number, and the
    /// earliest expiry of the others.
    pub fn drop_expired(&mut self, now: Time) -> (u64, Time) {
        let mut next = Time::FAR_FUTURE;
        let dropped = self.drop_beside_queue(ReliabilityPolicy::Lifetime, |message| {
            let stays = message.limit.expires > now;
            if stays {
                next = next.min(message.limit.expires);
            }
            !stays
        });
        (dropped, next)
    }

    /// Records that the first of the second copies is sent.
    pub fn on_copied(&mut self, tsn: u64) {
        self.second_copies.pop_front();
        if self.copied.len() == COPIED_LIMIT {
            self.copied.pop_front();
        }
        self.copied.push_back(tsn);
    }

    /// Whether a duplicate that the peer reports is a second copy.
    pub fn take_copied(&mut self, tsn: Serial32) -> bool {
        let found = self.copied.iter().position(|copied| Serial32::wrap(*copied) == tsn);
        found.is_some_and(|at| self.copied.remove(at).is_some())
    }

    /// Stops all timers.
    pub fn stop(&mut self) {
        (self.queued_expiry, self.next_expiry) = (Time::FAR_FUTURE, Time::FAR_FUTURE);
        self.forward.due = None;
    }

    fn position(&self, tsn: u64) -> Option<usize> {
        self.sent.binary_search_by_key(&tsn, |one| one.tsn).ok()
    }

    /// The limits of `tsn`, and whether its message was abandoned. `None`: its message has no limits.
    pub fn get(&self, tsn: u64) -> Option<(Limit, bool)> {
        let one = &self.sent[self.position(tsn)?];
        Some((one.limit, one.given_up))
    }

    /// Whether `tsn` belongs to an interactive message that was not abandoned.
    pub fn is_urgent(&self, tsn: u64) -> bool {
        self.get(tsn).is_some_and(|(limit, given_up)| limit.urgent && !given_up)
    }

    /// Records that the message of `tsn` was abandoned.
    pub fn give_up(&mut self, tsn: u64) {
        if let Some(at) = self.position(tsn) {
            self.sent[at].given_up = true;
        }
    }

    /// Whether the peer was told to skip `tsn`, so that an acknowledgement of it does not prove its
    /// arrival.
    pub fn was_skipped(&self, tsn: u64) -> bool {
        tsn <= self.forward.told && self.get(tsn).is_some_and(|(_, given_up)| given_up)
    }

    /// RFC 3758, 3.5 C1: the peer has acknowledged everything up to `cumulative`.
    pub fn on_cumulative(&mut self, cumulative: u64) {
        while self.sent.front().is_some_and(|one| one.tsn <= cumulative) {
            self.sent.pop_front();
        }
        self.advanced = self.advanced.max(cumulative);
        self.passed = self.passed.max(cumulative);
        if self.advanced == cumulative {
            let told = self.forward.told.max(cumulative);
            self.forward = ForwardTimer { told, ..ForwardTimer::default() };
        }
    }
}
