//! Abandons messages whose limits are reached (RFC 3758, 3.5 and 4.1), and signals the peer to skip them.

use std::collections::BTreeMap;

use ropewalk_base::{Duration, PathId, Serial16, Serial32, StreamId, Time};
use smallvec::SmallVec;

use super::record::Record;
use super::undelivered::Rest;
use super::{Chunks, RecordState, Sender};
use crate::meter;
use crate::path::{PathStatus, PathUse};
use crate::scheduler::PathView;
use crate::sctp::chunk::{Data, DataFlags};
use crate::sctp::extension_chunk::{ExtensionChunk, ForwardTsn, IForwardTsn, Skipped};
use crate::sctp::extensions::abandoned::ReliabilityPolicy;
use crate::sctp::extensions::partial_reliability::{Limit, Limits};

/// Delay of a FORWARD-TSN that no message waits for at the peer, so that it may be bundled with a DATA
/// chunk (RFC 3758, 3.5 F2) and cover more of them. F3 permits 200 ms.
const FORWARD_DELAY: Duration = Duration::from_millis(10);

/// How far interactive messages may exceed a congestion window: a quarter of it, and at least two full
/// chunks. They are not paced either.
const OVERDRAFT_DIVISOR: u64 = 4;
const OVERDRAFT_CHUNKS: u64 = 2;

/// A step of the Advanced.Peer.Ack.Point.
#[derive(Clone, Copy, Debug, Default)]
struct Advance {
    moved: bool,
    /// Messages may wait at the peer for the new point.
    frees: bool,
    /// Messages that were abandoned for it.
    abandoned: u64,
}

/// The last abandoned message of each stream, keyed by stream and whether the message is unordered.
type LastSkipped = BTreeMap<(StreamId, bool), Serial32>;

/// TSNs of the fragments of a message.
type Fragments = SmallVec<[u64; 4]>;

/// The action for a lost chunk.
pub enum Repair {
    /// Its retransmission is not limited.
    AsUsual,
    /// Retransmit it on this path.
    On(PathId),
    /// Wait until a path opens.
    Wait,
    /// Abandon it.
    Abandon,
}

impl Chunks {
    /// The limits of messages, which are allocated for the first message that has any.
    pub fn limits_mut(&mut self) -> &mut Limits {
        let cumulative = self.board.cumulative();
        let reports = self.config.reports_abandoned;
        self.limits.get_or_insert_with(|| Box::new(Limits::new(cumulative, reports)))
    }

    /// Stores the limits of the next chunk of the queue, which gets the next TSN.
    #[inline]
    pub fn note_limit(&mut self) {
        if self.limits.is_some() {
            self.note_front_limit();
        }
    }

    #[cold]
    fn note_front_limit(&mut self) {
        let tsn = self.board.next_tsn();
        if let (Some(limits), Some(limit)) = (&mut self.limits, self.queue.front_limit()) {
            limits.note(tsn, limit);
        }
        self.deadline.invalidate();
    }

    /// Whether `tsn` may be abandoned.
    pub fn is_limited(&self, tsn: u64) -> bool {
        let limit = self.limits.as_ref().and_then(|limits| limits.get(tsn));
        limit.is_some_and(|(limit, _)| Limit { context: 0, ..limit } != Limit::NONE)
    }

    /// Whether the peer was told to skip `tsn`.
    #[inline]
    pub fn was_skipped(&self, tsn: u64) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.was_skipped(tsn))
    }

    /// Whether `tsn` must no longer be sent (RFC 3758, 4.1, TR4).
    #[inline]
    pub fn is_over(&self, now: Time, tsn: u64) -> bool {
        self.config.abandons
            && self
                .limits
                .as_ref()
                .and_then(|limits| limits.get(tsn))
                .is_some_and(|(limit, given_up)| given_up || limit.expires <= now)
    }

    /// Whether `tsn` must not be retransmitted: its lifetime or its number of retransmissions is used up.
    pub fn is_used_up(&self, now: Time, tsn: u64) -> bool {
        let limit = self.limits.as_ref().filter(|_| self.config.abandons);
        let Some((limit, given_up)) = limit.and_then(|limits| limits.get(tsn)) else {
            return false;
        };
        let most = u32::from(limit.retransmissions) + u32::from(limit.twice);
        let limited = limit.retransmissions < u8::MAX;
        let sent = self.board.get(tsn).map_or(0, |record| record.transmissions);
        given_up || limit.expires <= now || limited && sent > most
    }

    /// Whether the next chunk of the queue must no longer be sent.
    #[inline]
    pub fn is_front_over(&self, now: Time) -> bool {
        self.limits.is_some() && self.queue.front_limit().is_some_and(|limit| limit.expires <= now)
    }

    /// First and last TSN of the message of `tsn` among the TSNs with records, and whether its end is
    /// among them.
    fn message_of(&self, tsn: u64) -> (u64, u64, bool) {
        let has = |tsn: u64, flag| self.board.get(tsn).is_none_or(|r| r.data.flags.has(flag));
        let (mut first, mut last) = (tsn, tsn);
        while !has(first, DataFlags::BEGIN) && self.board.get(first - 1).is_some() {
            first -= 1;
            meter::count(1);
        }
        while !has(last, DataFlags::END) && self.board.get(last + 1).is_some() {
            last += 1;
            meter::count(1);
        }
        (first, last, has(last, DataFlags::END))
    }

    /// Abandons the message of `tsn`. RFC 3758, 3.5 A3: all fragments of a message are abandoned
    /// together. A fragment in flight follows once it is acknowledged or lost. Returns whether the
    /// message had not been abandoned before.
    pub fn abandon_message(&mut self, tsn: u64, policy: ReliabilityPolicy) -> bool {
        let (fragments, ends) = self.fragments_of(tsn);
        let end = (!ends && self.has_rest_in_front(tsn)).then(|| self.end_message());
        self.abandon_fragments(fragments, end, policy)
    }

    /// Whether the rest of the message of `tsn` is queued, which is then first in the queue.
    fn has_rest_in_front(&mut self, tsn: u64) -> bool {
        if !self.queue.is_interleaved() {
            return self.queue.is_within_message();
        }
        let Some(data) = self.board.get(tsn).map(|record| &record.data) else { return false };
        self.queue.bring_rest_to_front(data.stream, data.flags.has(DataFlags::UNORDERED))
    }

    /// Assigns a TSN to the next fragment of the partially sent message, and drops the rest. The peer can
    /// discard its part of a message only if a TSN of the message is abandoned. Returns that TSN, and the
    /// part of the message that had none.
    fn end_message(&mut self) -> (u64, Option<Rest>) {
        let rest = self.queue.front_rest();
        self.note_limit();
        self.queue.drop_rest();
        // It is never sent, and ends the message here.
        (self.board.assign(|chunk| self.queue.next_chunk(chunk)), rest)
    }

    /// Abandons the message with these fragments, and counts it unless it was abandoned before. `end`:
    /// the result of [`Self::end_message`].
    fn abandon_fragments(
        &mut self,
        mut fragments: Fragments,
        end: Option<(u64, Option<Rest>)>,
        policy: ReliabilityPolicy,
    ) -> bool {
        let Some(limits) = &self.limits else { return false };
        let is_over = |tsn: &u64| limits.get(*tsn).is_some_and(|(_, given_up)| given_up);
        let is_news = !fragments.iter().any(is_over);
        let (last, rest) = end.unzip();
        if is_news {
            fragments.sort_unstable();
            self.tell_abandoned(&fragments, rest.flatten(), policy);
        }
        let Some(limits) = &mut self.limits else { return false };
        for one in fragments.into_iter().chain(last) {
            limits.give_up(one);
            self.board.abandon(one);
        }
        is_news
    }

    /// Counts the message with these fragments and this rest as abandoned, and keeps it if the user wants
    /// reports.
    fn tell_abandoned(&mut self, fragments: &[u64], rest: Option<Rest>, policy: ReliabilityPolicy) {
        let mut all = fragments.iter().filter_map(|tsn| self.board.get(*tsn));
        // Acknowledged fragments have no record.
        let begins = |record: &Record| record.data.flags.has(DataFlags::BEGIN);
        let was_sent = all.clone().any(|record| record.transmissions > 0)
            || !all.clone().next().is_some_and(begins);
        let stream = all.next().map(|record| record.data.stream);
        let Some(stream) = stream.or(rest.as_ref().map(|rest| rest.stream)) else { return };
        let keeps = self.limits.as_ref().is_some_and(|limits| limits.reports.is_some());
        let message = keeps.then(|| self.gather(fragments, rest)).flatten();
        let Some(limits) = &mut self.limits else { return };
        limits.abandoned.count(stream, policy, was_sent, 1);
        if let Some(reports) = &mut limits.reports {
            reports.extend(message);
        }
    }

    /// The fragments of the message of `tsn` that have records, in any order, and whether its end is among them.
    fn fragments_of(&self, tsn: u64) -> (Fragments, bool) {
        if self.queue.is_interleaved() {
            return self.interleaved_fragments_of(tsn);
        }
        let (first, last, ends) = self.message_of(tsn);
        ((first..=last).collect(), ends)
    }

    /// Like [`Self::fragments_of`], for a message whose fragments may be interleaved with those of
    /// others.
    #[cold]
    fn interleaved_fragments_of(&self, tsn: u64) -> (Fragments, bool) {
        let Some(record) = self.board.get(tsn) else { return (Fragments::new(), true) };
        let (data, kind) = (&record.data, DataFlags::INTERLEAVED.and(DataFlags::UNORDERED));
        let is_of_it = |other: &Data| {
            (other.stream, other.message()) == (data.stream, data.message())
                && other.flags.only(kind) == data.flags.only(kind)
        };
        let of_it = |at: u64| self.board.get(at).filter(|record| is_of_it(&record.data));
        let (mut all, mut at) = (Fragments::from_elem(tsn, 1), tsn);
        while !of_it(at).is_some_and(|r| r.data.flags.has(DataFlags::BEGIN)) {
            at -= 1;
            meter::count(1);
            if self.board.get(at).is_none() {
                break;
            }
            all.extend(of_it(at).map(|_| at));
        }
        at = tsn;
        let mut ends = data.flags.has(DataFlags::END);
        while !ends {
            at += 1;
            meter::count(1);
            if self.board.get(at).is_none() {
                break;
            }
            all.extend(of_it(at).map(|_| at));
            ends = of_it(at).is_some_and(|r| r.data.flags.has(DataFlags::END));
        }
        (all, ends)
    }

    /// Abandons the message at the front, which has been sent in part.
    fn abandon_front(&mut self) {
        let (last, rest) = self.end_message();
        let (mut fragments, _) = self.fragments_of(last);
        fragments.retain(|tsn| *tsn != last);
        self.abandon_fragments(fragments, Some((last, rest)), ReliabilityPolicy::Lifetime);
    }

    /// The policy by which the message of `tsn` is abandoned: all of its retransmissions have been sent,
    /// or its lifetime ends before the next one could arrive.
    fn reason(&self, now: Time, tsn: u64) -> ReliabilityPolicy {
        let limit = self.limits.as_ref().and_then(|limits| limits.get(tsn));
        let lives = limit.is_some_and(|(limit, _)| limit.expires > now);
        match lives && self.is_used_up(now, tsn) {
            true => ReliabilityPolicy::Retransmissions,
            false => ReliabilityPolicy::Lifetime,
        }
    }

    /// RFC 3758, 3.5 C2: advances the Advanced.Peer.Ack.Point over chunks of abandoned messages. It also
    /// advances over chunks that were reported as received and that the peer need not keep, because it
    /// has delivered them or will not drop them.
    fn advance(&mut self, now: Time) -> Advance {
        let mut advance = Advance::default();
        while let Some(limits) = &mut self.limits {
            let tsn = limits.passed + 1;
            limits.next_expiry = Time::FAR_FUTURE;
            let Some(record) = self.board.get(tsn) else { break };
            let passes = record.data.is_unordered_unfragmented();
            let kept = record.data.flags.has(DataFlags::WHOLE) && self.board.is_kept(tsn);
            let plain = kept.then_some((Limit::NONE, false));
            let Some((limit, given_up)) = limits.get(tsn).or(plain) else { break };
            let ordered = !record.data.flags.has(DataFlags::UNORDERED);
            meter::count(1);
            match record.state {
                _ if given_up => limits.advanced = tsn,
                RecordState::Acked { .. } if passes || kept => {}
                // RFC 3758, 4.1, TR5: a chunk that others may wait for is abandoned when its lifetime
                // ends, even in flight.
                RecordState::InFlight { .. } | RecordState::Unsent | RecordState::Lost { .. }
                    if !passes && self.config.abandons =>
                {
                    if limit.expires > now {
                        limits.next_expiry = limit.expires;
                        break;
                    }
                    limits.advanced = tsn;
                    let is_news = self.abandon_message(tsn, ReliabilityPolicy::Lifetime);
                    advance.abandoned += u64::from(is_news);
                }
                _ => break,
            }
            let Some(limits) = &mut self.limits else { break };
            limits.passed = tsn;
            advance.moved |= limits.advanced == tsn;
            advance.frees |= limits.advanced == tsn && ordered;
        }
        advance
    }

    /// The abandoned messages up to `point` that others may wait for: the last ordered one of each stream
    /// (RFC 3758, 3.5 C4), and with interleaving also the last unordered one (RFC 8260, 2.3.1), at most
    /// `most` entries. Also returns the point up to which they are complete.
    fn skipped(&self, point: u64, most: usize) -> (u64, LastSkipped) {
        let (mut last, interleaved) = (BTreeMap::new(), self.config.interleaves);
        for tsn in self.board.cumulative() + 1..=point {
            let Some(record) = self.board.get(tsn) else { break };
            let limit = self.limits.as_ref().and_then(|limits| limits.get(tsn));
            let given_up = limit.is_some_and(|(_, given_up)| given_up);
            let unordered = record.data.flags.has(DataFlags::UNORDERED);
            let listed = !unordered || interleaved && !record.data.is_unordered_unfragmented();
            if !given_up || !listed {
                continue;
            }
            let (stream, message) = ((record.data.stream, unordered), record.data.message());
            if last.len() == most && !last.contains_key(&stream) {
                return (tsn - 1, last);
            }
            last.insert(stream, message);
        }
        (point, last)
    }
}

impl Sender {
    /// Whether messages with limits must be handled before data is chosen.
    #[inline]
    pub fn has_limits(&self) -> bool {
        self.outstanding.limits.is_some()
    }

    /// RFC 3758, 3.5 C1 and C3, for a SACK.
    #[inline]
    pub fn follow_cumulative(&mut self, now: Time) {
        if self.has_limits() {
            self.follow_limits(now);
        }
    }

    /// RFC 3758, 3.5 C3: a FORWARD-TSN that the cumulative TSN of a SACK has not followed MUST be sent
    /// again. A SACK that was sent before the FORWARD-TSN arrived says nothing about it. So SACKs within
    /// the longest round trip are ignored.
    #[cold]
    fn follow_limits(&mut self, now: Time) {
        let trips = self.paths.iter().filter_map(|path| path.known_trip());
        let trip = trips.max().unwrap_or(Duration::ZERO);
        let cumulative = self.outstanding.board.cumulative();
        let limits = self.outstanding.limits_mut();
        limits.on_cumulative(cumulative);
        let forward = &mut limits.forward;
        if cumulative < forward.told
            && let Some(due) = forward.due
            && now >= forward.told_at + trip
        {
            forward.due = Some(due.min(now));
            self.outstanding.deadline.invalidate();
        }
    }

    /// Drops or abandons the messages whose lifetime is over.
    #[cold]
    pub fn settle_limits(&mut self, now: Time) {
        self.drop_expired(now);
        self.outstanding.admit_background();
        while let Some(lost) = self.outstanding.board.lost().first()
            && self.outstanding.is_over(now, lost)
        {
            self.abandon(now, lost);
        }
        self.advance_peer(now);
    }

    /// Drops the queued messages whose lifetime is over (RFC 3758, 4.1, TR3). The rest of a partially
    /// sent message is abandoned together with the sent part.
    pub fn drop_expired(&mut self, now: Time) {
        let Some(limits) = &self.outstanding.limits else { return };
        if now < limits.queued_expiry {
            return;
        }
        let chunks = &mut self.outstanding;
        while chunks.config.abandons && chunks.queue.bring_expired_rest_to_front(now) {
            chunks.abandon_front();
            self.measurements.stats.abandoned += 1;
        }
        let chunks = &mut self.outstanding;
        let Some(limits) = &mut chunks.limits else { return };
        let (dropped, next) = chunks.queue.drop_expired(now, |run, count| {
            let rests = run.rests().take(count as usize).map(Into::into);
            limits.on_dropped(ReliabilityPolicy::Lifetime, run.stream, count, rests);
        });
        let (beside, soonest) = limits.drop_expired(now);
        limits.queued_expiry = next.min(soonest);
        self.measurements.stats.abandoned += dropped + beside;
        self.outstanding.deadline.invalidate();
        self.epoch += u64::from(dropped > 0);
    }

    /// Abandons the message of `tsn`.
    #[cold]
    pub fn abandon(&mut self, now: Time, tsn: u64) {
        let policy = self.outstanding.reason(now, tsn);
        let is_news = self.outstanding.abandon_message(tsn, policy);
        self.measurements.stats.abandoned += u64::from(is_news);
        self.epoch += 1;
    }

    /// Advances the Advanced.Peer.Ack.Point. If it moves, the peer must be informed.
    fn advance_peer(&mut self, now: Time) {
        let Advance { moved, frees, abandoned } = self.outstanding.advance(now);
        self.measurements.stats.abandoned += abandoned;
        self.outstanding.deadline.invalidate();
        if !moved {
            return;
        }
        let limits = self.outstanding.limits_mut();
        let at = if frees { now } else { now + FORWARD_DELAY };
        let waits = limits.forward.due.filter(|_| limits.forward.repeats == 0);
        limits.forward.due = Some(waits.map_or(at, |due| due.min(at)));
        limits.forward.repeats = 0;
        self.outstanding.deadline.invalidate();
    }

    /// The time at which [`Sender::settle_limits`] or the FORWARD-TSN is due.
    #[inline]
    pub fn limits_deadline(&self) -> Option<Time> {
        let limits = self.outstanding.limits.as_ref()?;
        let beside = self.outstanding.has_messages_beside_queue();
        let queued = beside || !self.outstanding.queue.is_empty();
        let expiry = queued.then_some(limits.queued_expiry);
        [expiry, Some(limits.next_expiry), limits.forward.due].into_iter().flatten().min()
    }

    /// Whether a FORWARD-TSN may be bundled with DATA now.
    pub fn wants_forward_tsn(&self) -> bool {
        self.outstanding.limits.as_ref().is_some_and(|limits| {
            limits.forward.due.is_some() && limits.forward.told < limits.advanced
        })
    }

    /// Whether a FORWARD-TSN must be sent now.
    pub fn is_forward_tsn_due(&self, now: Time) -> bool {
        let due = self.outstanding.limits.as_ref().and_then(|limits| limits.forward.due);
        due.is_some_and(|due| due <= now)
    }

    /// The FORWARD-TSN to send now, of at most `room` bytes. It is repeated until the peer has followed
    /// it (RFC 3758, 3.5 C5).
    pub fn take_forward_tsn(&mut self, now: Time, path: PathId, room: u32) -> ExtensionChunk {
        let rto = self.paths[path.index()].tx.rtt.rto();
        let entry = if self.outstanding.config.interleaves { 8 } else { 4 };
        let most = room.saturating_sub(ForwardTsn::LEAST_LEN) / entry;
        let wanted = self.outstanding.limits_mut().advanced;
        let (point, skipped) = self.outstanding.skipped(wanted, most as usize);
        let most = self.outstanding.config.rto_max;
        let forward = &mut self.outstanding.limits_mut().forward;
        let interval = rto.saturating_mul(1 << forward.repeats.min(16)).min(most);
        (forward.told, forward.told_at) = (point, now);
        forward.due = Some(now + interval);
        forward.repeats += 1;
        self.outstanding.deadline.invalidate();
        let cumulative = Serial32::wrap(point);
        if self.outstanding.config.interleaves {
            // RFC 8260, 2.3.1: I-FORWARD-TSN replaces FORWARD-TSN.
            let entry = |((stream, unordered), message)| Skipped { stream, unordered, message };
            let streams = skipped.into_iter().map(entry).collect();
            return ExtensionChunk::IForwardTsn(IForwardTsn { cumulative, streams });
        }
        let entry = |((stream, _), message): (_, Serial32)| (stream, Serial16(message.0 as u16));
        let streams = skipped.into_iter().map(entry).collect();
        ExtensionChunk::ForwardTsn(ForwardTsn { cumulative, streams })
    }

    /// The path for a FORWARD-TSN: the active one with the shortest round trip, and the others in turn
    /// for repetitions.
    pub fn forward_path(&self) -> PathId {
        let repeats = self.outstanding.limits.as_ref().map_or(0, |limits| limits.forward.repeats);
        let active = |i: &usize| self.paths[*i].tx.state.status() == PathStatus::Active;
        let mut paths: Vec<usize> = (0..self.paths.len()).filter(active).collect();
        if paths.iter().any(|i| self.paths[*i].tx.config.usage.is_regular()) {
            paths.retain(|i| self.paths[*i].tx.config.usage.is_regular());
        }
        paths.sort_by_key(|i| self.paths[*i].known_trip());
        match paths.len() {
            0 => self.best_path(),
            count => PathId::from_index(paths[repeats as usize % count]),
        }
    }

    /// When a chunk that is sent as soon as possible on this path arrives, and whether it can be sent
    /// now. A path whose oldest transmission should have been acknowledged may have failed, so the
    /// arrival is delayed by the time that it is overdue. `urgent`: it may exceed the window.
    fn arrival_on(&self, now: Time, view: &PathView, urgent: bool) -> (Time, bool) {
        let tx = &self.paths[view.id.index()].tx;
        let trip = view.srtt.unwrap_or(Duration::ZERO);
        let oldest = tx.flights.oldest().map(|(_, flight)| flight.sent_at + trip);
        let overdue = oldest.map_or(Duration::ZERO, |due| now.since(due + view.rttvar * 4));
        let measured = view.forward_delay.unwrap_or(trip / 2) + overdue;
        let delay = self.drain_delay(now, view).map_or(measured, |delay| measured.max(delay));
        let full = self.outstanding.full_chunk();
        let open = view.in_flight < view.window && view.burst_room > 0;
        // A window that has just been reduced would hold interactive messages back until the bulk data in
        // flight is acknowledged.
        let overdraft = (view.window / OVERDRAFT_DIVISOR).max(OVERDRAFT_CHUNKS * full);
        let exceeds = urgent && view.window > 0 && !tx.one_packet;
        if open || exceeds && view.in_flight < view.window + overdraft {
            return (now + delay, true);
        }
        let opens = match tx.pacer.ready_at(full) {
            Some(at) if view.room() > 0 => at,
            // The next acknowledgement opens the window.
            _ => oldest.unwrap_or(now),
        };
        (opens.max(now) + delay, false)
    }

    /// One-way delay of a chunk behind all data in flight on a path, if the queue there grows
    /// immediately.
    fn drain_delay(&self, now: Time, view: &PathView) -> Option<Duration> {
        let tx = &self.paths[view.id.index()].tx;
        Some(tx.drain.time_for(now, view.in_flight)?.saturating_sub(tx.rtt.base()? / 2))
    }

    /// The usable path with the earliest arrival of a chunk that is sent as soon as possible, the time of
    /// arrival, and whether it can be sent there now. `but`: the path of the first copy, if a second one
    /// is sent. `urgent`: whether it is an interactive message.
    ///
    /// A path that is used only when needed is taken for second copies, and while acknowledgements are
    /// overdue on all others. An active backup is taken for second copies while acknowledgements are
    /// overdue on all others.
    pub fn earliest_arrival(
        &self,
        now: Time,
        but: Option<PathId>,
        urgent: bool,
    ) -> Option<(PathId, Time, bool)> {
        // A full path opens by an acknowledgement. A path with a window of 0 and nothing in flight does
        // not.
        let opens = |view: &&PathView| view.in_flight > 0 || view.room() > 0;
        let is_sure = |view: &&PathView| view.usable && view.overdue.is_zero();
        let always = |view: &&PathView| view.usage == PathUse::Always;
        let all = but.is_some() || !self.views.iter().filter(is_sure).any(|view| always(&view));
        let other = |view: &PathView| Some(view.id) != but;
        let spare = !self.views.iter().any(|view| is_sure(&view));
        let may = |view: &&PathView| match but {
            Some(_) => other(view) && (view.usable || spare && self.is_spare(view)),
            None => view.usable && (all || always(view)),
        };
        let arrivals = self.views.iter().filter(may).filter(opens).map(|view| {
            let (at, open) = self.arrival_on(now, view, urgent);
            (view.id, at, open)
        });
        arrivals.min_by_key(|(id, at, open)| (*at, !open, id.0))
    }

    /// Whether the path is an active backup.
    fn is_spare(&self, view: &PathView) -> bool {
        let active = self.paths[view.id.index()].tx.state.status() == PathStatus::Active;
        view.usage == PathUse::Backup && active
    }

    /// The action for the lost chunk `tsn`. A limited one is retransmitted on the path with the earliest
    /// arrival, if it arrives within its lifetime.
    pub fn repair(&self, now: Time, tsn: u64, anywhere: bool) -> Repair {
        let limits = self.outstanding.limits.as_ref().filter(|_| self.outstanding.config.abandons);
        let Some((limit, _)) = limits.and_then(|limits| limits.get(tsn)) else {
            return Repair::AsUsual;
        };
        if self.outstanding.is_used_up(now, tsn) {
            return Repair::Abandon;
        }
        if (Limit { twice: false, urgent: false, priority: None, ..limit }) == Limit::NONE {
            return Repair::AsUsual;
        }
        match self.earliest_arrival(now, None, limit.urgent) {
            Some((_, at, _)) if at > limit.expires => Repair::Abandon,
            Some((path, _, open)) if open || anywhere => Repair::On(path),
            _ => Repair::Wait,
        }
    }
}
