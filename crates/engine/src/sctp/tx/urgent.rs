//! Messages that are sent before all others or after all others, and second copies.

use ropewalk_base::{Duration, PathId, Serial16, Serial32, Time};
use smallvec::SmallVec;

use super::queue::ChunkSizes;
use super::{Chunks, Next, RecordState, Sender};
use crate::multipath::Outstanding;
use crate::scheduler::PathView;
use crate::sctp::chunk::{Chunk, Data, DataFlags};
use crate::sctp::extensions::partial_reliability::{Limit, Submitted, Urgency};

/// Bandwidth-delay products in flight above which a path is taken to have a queue.
const QUEUE_GAIN: f64 = 1.2;

/// Data in flight on a path, as a share of its bandwidth-delay product.
fn share_in_flight(view: &PathView) -> f64 {
    let empty = view.srtt.map_or(Duration::ZERO, |srtt| srtt.saturating_sub(view.queueing));
    let product = view.potential_rate() * empty.as_nanos() as f64;
    view.in_flight as f64 / product.max(1.0)
}

impl Chunks {
    /// Whether a message can be sent immediately: it is delivered without waiting for others, and fits
    /// into one fragment.
    pub fn may_overtake(&self, message: &Submitted) -> bool {
        let ChunkSizes { payload, datagram, .. } = self.queue.sizes();
        let most = match Data::is_datagram_stream(message.stream, message.ppid) {
            true => datagram,
            false => payload,
        };
        message.unordered && message.payload.len() <= most
    }

    /// Whether messages or copies wait outside the queue.
    #[inline]
    pub fn has_urgent_work(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.has_work())
    }

    /// User data of the messages outside the queue, bytes.
    pub fn bytes_beside_queue(&self) -> u64 {
        self.limits.as_ref().map_or(0, |limits| limits.waiting_bytes)
    }

    /// Whether messages wait outside the queue.
    pub fn has_messages_beside_queue(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| {
            let lists = [&limits.interactive, &limits.first_open, &limits.background];
            lists.iter().any(|list| !list.is_empty())
        })
    }

    /// Moves a message into the queue.
    fn enqueue(&mut self, message: Submitted) {
        let Submitted { stream, ppid, payload, unordered, limit } = message;
        self.queue.push(stream, ppid, payload, unordered, 0, limit);
    }

    /// Moves a background message into the queue if nothing else waits.
    pub fn admit_background(&mut self) {
        if self.is_idle()
            && let Some(message) = self.limits.as_mut().and_then(|limits| limits.take_background())
        {
            self.enqueue(message);
        }
    }

    /// Size of the next interactive message as a chunk, if it may get a TSN now.
    fn interactive_bytes(&self) -> Option<u32> {
        self.bytes_outside(self.limits.as_ref()?.interactive.front()?)
    }

    /// Size of the next message for the first open path as a chunk, if it may get a TSN now.
    fn first_open_bytes(&self) -> Option<u32> {
        self.bytes_outside(self.limits.as_ref()?.first_open.front()?)
    }

    /// Size of a message outside the queue as a chunk, if it may get a TSN now.
    fn bytes_outside(&self, message: &Submitted) -> Option<u32> {
        // RFC 9260, 6.9: the fragments of a message have consecutive TSNs.
        let free = self.queue.may_overtake() && self.tsns_left() > 0;
        free.then(|| self.queue.sizes().chunk_of(message.payload.len()))
    }

    /// Assigns the next TSN to the next interactive message.
    fn assign_interactive(&mut self) -> Option<u64> {
        let message = self.limits.as_mut()?.take_interactive()?;
        let limit = Limit { urgent: true, ..message.limit };
        Some(self.assign_outside(message, limit))
    }

    /// Assigns the next TSN to the next message for the first open path.
    fn assign_first_open(&mut self) -> Option<u64> {
        let message = self.limits.as_mut()?.take_first_open()?;
        let limit = message.limit;
        Some(self.assign_outside(message, limit))
    }

    /// Assigns the next TSN to a message that was outside the queue.
    fn assign_outside(&mut self, message: Submitted, limit: Limit) -> u64 {
        let tsn = self.board.assign(|chunk| {
            (chunk.stream, chunk.ssn, chunk.ppid) = (message.stream, Serial16(0), message.ppid);
            chunk.flags = DataFlags::WHOLE.and(DataFlags::UNORDERED);
            if limit.immediate {
                chunk.flags = chunk.flags.and(DataFlags::IMMEDIATE);
            }
            chunk.payload = message.payload;
            self.queue.label_whole(chunk);
        });
        self.limits_mut().note(tsn, limit);
        tsn
    }

    /// Called when a chunk is sent for the first time: requests its second copy, if configured for its
    /// message.
    #[inline]
    pub fn want_copy(&mut self, tsn: u64) {
        if let Some(limits) = &mut self.limits
            && limits.get(tsn).is_some_and(|(limit, _)| limit.twice)
        {
            limits.second_copies.push_back(tsn);
        }
    }

    /// Whether the duplicate TSNs of a SACK show that a retransmission was spurious: they are not all second
    /// copies.
    pub fn are_spurious(&mut self, duplicates: &[Serial32]) -> bool {
        let Some(limits) = &mut self.limits else { return !duplicates.is_empty() };
        let copies = duplicates.iter().filter(|tsn| limits.take_copied(**tsn)).count();
        copies < duplicates.len()
    }
}

impl Sender {
    /// Queues a message with limits.
    pub fn submit(&mut self, message: Submitted, urgency: Urgency) {
        let limit = message.limit;
        match urgency {
            Urgency::Interactive if self.outstanding.may_overtake(&message) => {
                self.outstanding.limits_mut().push_interactive(message);
            }
            Urgency::FirstOpen if self.outstanding.may_overtake(&message) => {
                self.outstanding.limits_mut().push_first_open(message);
            }
            Urgency::Background => self.outstanding.limits_mut().push_background(message),
            Urgency::Interactive | Urgency::FirstOpen | Urgency::Bulk => {
                self.outstanding.enqueue(message)
            }
        }
        if limit != Limit::NONE {
            let limits = self.outstanding.limits_mut();
            limits.queued_expiry = limits.queued_expiry.min(limit.expires);
        }
        self.outstanding.deadline.invalidate();
    }

    /// The next interactive message or second copy. RFC 9260, 6.1 C: lost chunks are sent first. An
    /// interactive message still precedes them, because they may take the rest of its lifetime.
    #[cold]
    pub fn next_urgent(&mut self, now: Time) -> Option<Next> {
        self.next_interactive(now).or_else(|| self.next_second_copy(now))
    }

    /// The next interactive message, on the path with the earliest arrival. It waits for that path if
    /// waiting still delivers it sooner than an open path.
    fn next_interactive(&mut self, now: Time) -> Option<Next> {
        let bytes = self.outstanding.interactive_bytes()?;
        if self.outstanding.board.span() + u64::from(bytes) > self.outstanding.peer_rwnd {
            // Only the queue probes a closed window.
            let message = self.outstanding.limits.as_mut()?.take_interactive()?;
            self.outstanding.enqueue(message);
            return None;
        }
        let (path, _, open) = self.earliest_arrival(now, None, true)?;
        if !open {
            self.wait_for_path(now, path);
            return None;
        }
        let tsn = self.outstanding.assign_interactive()?;
        Some(Next::Recorded { path, tsn, again: false })
    }

    /// The open path with the shortest delay, preferably without a growing queue. Of paths that differ by
    /// less than a quarter of a round trip, the emptier one: if one path were filled and another then
    /// paused, like `bbr` to measure, there would be no room.
    fn first_open_path(&self) -> Option<PathId> {
        let open = || self.views.iter().filter(|view| view.is_open());
        let has_queue = |view: &PathView| share_in_flight(view) > QUEUE_GAIN;
        let best = open().min_by_key(|view| (has_queue(view), view.forward_delay, view.id.0))?;
        let Some((delay, trip)) = best.forward_delay.zip(best.srtt) else { return Some(best.id) };
        let latest = delay + trip / 4;
        let alike = open().filter(|view| view.forward_delay.is_some_and(|delay| delay <= latest));
        let emptier = |a: &&PathView, b: &&PathView| {
            share_in_flight(a).total_cmp(&share_in_flight(b)).then(a.id.0.cmp(&b.id.0))
        };
        Some(alike.min_by(emptier).unwrap_or(best).id)
    }

    /// The next message for the first open path.
    pub fn next_first_open(&mut self, now: Time) -> Option<Next> {
        let bytes = self.outstanding.first_open_bytes()?;
        if self.outstanding.board.span() + u64::from(bytes) > self.outstanding.peer_rwnd {
            // Only the queue probes a closed window.
            let message = self.outstanding.limits.as_mut()?.take_first_open()?;
            self.outstanding.enqueue(message);
            return None;
        }
        let Some(path) = self.first_open_path() else {
            let paced: SmallVec<[PathId; 4]> =
                self.views.iter().filter(|view| view.usable).map(|view| view.id).collect();
            paced.into_iter().for_each(|path| self.wait_for_path(now, path));
            return None;
        };
        let tsn = self.outstanding.assign_first_open()?;
        Some(Next::Recorded { path, tsn, again: false })
    }

    /// The next second copy to send, on the path with the earliest arrival other than that of the first
    /// copy.
    fn next_second_copy(&mut self, now: Time) -> Option<Next> {
        loop {
            let tsn = *self.outstanding.limits.as_ref()?.second_copies.front()?;
            let record = self.outstanding.board.get(tsn);
            let first = record.and_then(|record| match record.state {
                RecordState::InFlight { path, number } => Some((path, number)),
                _ => None,
            });
            let is_repair = record.is_some_and(|record| record.transmissions > 1);
            let (limit, _) =
                self.outstanding.limits.as_ref()?.get(tsn).unwrap_or((Limit::NONE, false));
            let choice = first
                .filter(|_| !self.outstanding.is_used_up(now, tsn))
                .and_then(|(path, number)| {
                    let choice = self.earliest_arrival(now, Some(path), true)?;
                    let late = is_repair && self.arrives_before(path, number, choice.1);
                    (!late).then_some(choice)
                })
                .filter(|(_, at, _)| *at <= limit.expires);
            match choice {
                Some((path, _, false)) => {
                    self.wait_for_path(now, path);
                    return None;
                }
                Some((path, _, true)) => {
                    self.outstanding.limits.as_mut()?.on_copied(tsn);
                    return Some(Next::Recorded { path, tsn, again: false });
                }
                None => _ = self.outstanding.limits.as_mut()?.second_copies.pop_front(),
            }
        }
    }

    /// One of two copies of `tsn` was lost. If the other one is in flight on a slower path, a third copy
    /// may arrive before it.
    #[cold]
    pub fn on_copy_lost(&mut self, tsn: u64) {
        if let Some(limits) =
            self.outstanding.limits.as_mut().filter(|limits| limits.is_urgent(tsn))
        {
            limits.second_copies.push_front(tsn);
        }
    }

    /// Whether the copy of `tsn` that is in flight as transmission `number` on `path` arrives before `at`.
    fn arrives_before(&self, path: PathId, number: u64, at: Time) -> bool {
        let sent_at = self.paths[path.index()].tx.flights.sent_at(number);
        let delay = self.views.get(path.index()).and_then(|view| view.forward_delay);
        sent_at.zip(delay).is_some_and(|(sent_at, delay)| sent_at + delay <= at)
    }

    /// Decides again when pacing permits a packet on this path. If its window is full, an acknowledgement
    /// arrives first.
    fn wait_for_path(&mut self, now: Time, path: PathId) {
        let full = self.outstanding.full_chunk();
        if let Some(at) = self.paths[path.index()].tx.pacer.ready_at(full)
            && at > now
        {
            self.wait_until = Some(self.wait_until.map_or(at, |known| known.min(at)));
        }
    }

    /// Adds messages outside the queue that fit into a packet on `path`.
    #[cold]
    pub fn bundle_outside(
        &mut self,
        now: Time,
        path: PathId,
        room: &mut u32,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        self.bundle_interactive(now, path, room, chunks);
        while let Some(bytes) = self.outstanding.first_open_bytes().filter(|bytes| bytes <= room) {
            let span = self.outstanding.board.span() + u64::from(bytes);
            if self.first_open_path() != Some(path) || span > self.outstanding.peer_rwnd {
                return;
            }
            let Some(tsn) = self.outstanding.assign_first_open() else { return };
            *room -= self.transmit_chunk(now, path, tsn, chunks).bytes;
        }
    }

    /// Adds interactive messages that fit into a packet on `path`.
    fn bundle_interactive(
        &mut self,
        now: Time,
        path: PathId,
        room: &mut u32,
        chunks: &mut SmallVec<[Chunk; 1]>,
    ) {
        while let Some(bytes) = self.outstanding.interactive_bytes().filter(|bytes| bytes <= room) {
            // Another path may deliver it sooner, even if it has to wait there.
            let best = self.earliest_arrival(now, None, true).map(|(best, ..)| best);
            let span = self.outstanding.board.span() + u64::from(bytes);
            if best != Some(path) || span > self.outstanding.peer_rwnd {
                return;
            }
            let Some(tsn) = self.outstanding.assign_interactive() else { return };
            *room -= self.transmit_chunk(now, path, tsn, chunks).bytes;
        }
    }
}
