//! Chooses what to send next, and on which path: copies, then lost data, then new data (RFC 9260, 6.1 C).

use ropewalk_base::{PathId, Rng, Time};

use super::abandon::Repair;
use super::{RecordState, Sender};
use crate::congestion::CongestionControl;
use crate::multipath::{Assignment, Outstanding, nothing_in_flight};
use crate::path::PathStatus;
use crate::scheduler::{Decision, DecisionKind, Reason, RetransmissionPolicy, View};
use crate::sctp::chunk::DelayEcho;
use crate::sctp::gaps::blocks_within;

/// The first DATA chunk of the next packet.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// A chunk that has a record. `again`: it was lost.
    Recorded { path: PathId, tsn: u64, again: bool },
    /// The next chunk of the queue, which has no record yet.
    Fresh { path: PathId },
}

impl Next {
    /// The path to send on.
    #[inline]
    pub const fn path(self) -> PathId {
        match self {
            Self::Recorded { path, .. } | Self::Fresh { path } => path,
        }
    }
}

impl Sender {
    /// Whether there is neither new data nor data to retransmit.
    #[inline]
    pub fn has_no_data(&self) -> bool {
        let idle = self.outstanding.is_idle();
        idle && self.outstanding.board.lost().is_empty()
            && self.copies.is_empty()
            && !self.outstanding.has_urgent_work()
    }

    /// Chooses the next chunk, `None` if nothing may be sent now.
    #[inline]
    pub fn choose(&mut self, now: Time, rng: &mut Rng) -> Option<Next> {
        if self.has_limits() {
            self.settle_limits(now);
        }
        if self.has_no_data() {
            if self.has_limits() {
                self.note_idle(now);
            }
            self.measurements.set_blocked(now, false);
            return None;
        }
        self.choose_data(now, rng)
    }

    /// Records the paths that have room left while there is no data. Otherwise an application that queues
    /// messages only when the paths have room is not detected as the limit.
    #[cold]
    fn note_idle(&mut self, now: Time) {
        if self.views_need_update() {
            self.refresh_views(now);
        }
        self.finish_drain(now, true);
    }

    #[inline(never)]
    fn choose_data(&mut self, now: Time, rng: &mut Rng) -> Option<Next> {
        let idle = self.outstanding.is_idle();
        if !self.copies.is_empty() {
            if let Some(next) = self.next_copy(now) {
                return Some(next);
            }
            let urgent = self.outstanding.has_urgent_work();
            if idle && !urgent && self.outstanding.board.lost().is_empty() {
                self.measurements.set_blocked(now, false);
                return None;
            }
        }
        if self.views_need_update() {
            self.refresh_views(now);
        }
        if self.outstanding.has_urgent_work()
            && let Some(next) = self.next_urgent(now)
        {
            return Some(next);
        }
        // While a custom scheduler is still deciding, lost data has been handled already.
        let looked = self.outstanding.board.lost().is_empty() || self.scheduler.is_thinking();
        let mut next = if looked { None } else { self.next_lost(now, rng) };
        if next.is_none() && self.outstanding.has_urgent_work() {
            next = self.next_first_open(now);
        }
        // Messages outside the queue may have been moved into it.
        let idle = idle && self.outstanding.is_idle();
        if next.is_none() && !idle {
            next = self.next_new(now);
        }
        if next.is_none() && !self.scheduler.is_thinking() {
            self.finish_drain(now, idle);
        }
        next
    }

    /// A further copy of a chunk in flight.
    #[cold]
    fn next_copy(&mut self, now: Time) -> Option<Next> {
        let (path, tsn) = self.copies.pop()?;
        // The chunk may have been acknowledged, or lost and retransmitted, in the meantime.
        let record = self.outstanding.board.get(tsn)?;
        let flies = matches!(record.state, RecordState::InFlight { .. });
        let sent = flies && !self.outstanding.is_used_up(now, tsn);
        sent.then_some(Next::Recorded { path, tsn, again: false })
    }

    /// The oldest lost chunk, on the path that the retransmission policy chooses.
    #[cold]
    fn next_lost(&mut self, now: Time, rng: &mut Rng) -> Option<Next> {
        let mut lost = self.outstanding.board.lost().first()?;
        while self.has_limits() {
            match self.repair(now, lost, nothing_in_flight(&self.paths)) {
                Repair::AsUsual => break,
                Repair::On(path) => return Some(Next::Recorded { path, tsn: lost, again: true }),
                Repair::Wait => return None,
                Repair::Abandon => self.abandon(now, lost),
            }
            lost = self.outstanding.board.lost().first()?;
        }
        let RecordState::Lost { on, by_timer } = self.outstanding.board.record(lost).state else {
            return None;
        };
        let tsn = self.hole_before(lost).filter(|_| by_timer).unwrap_or(lost);
        let seen = self.seen(now, DecisionKind::Retransmission { lost_on: on });
        let view = View { paths: &self.views, ..seen };
        let credit = self.paths[on.index()].tx.fast_credit;
        // `same` would wait forever if the window manager leaves the path no window.
        let policy = match self.outstanding.config.retransmission {
            RetransmissionPolicy::Same if self.views[on.index()].window == 0 => {
                RetransmissionPolicy::Asap
            }
            policy => policy,
        };
        // With nothing in flight, no acknowledgement would ever open a window.
        let idle = nothing_in_flight(&self.paths);
        let choice =
            if credit || idle { policy.choose(&view, rng) } else { policy.choose_open(&view, rng) };
        let path = self.alternate_path(on, by_timer).or(choice)?;
        let bytes = self.outstanding.board.record(tsn).bytes;
        let alone = self.outstanding.config.bytes_alone(bytes, self.outstanding.datagram_len(tsn));
        let path = self.path_for_size(path, alone);
        self.paths[on.index()].tx.fast_credit = false;
        let decision = Decision::send(path, 0, Reason::RetransmissionPolicy);
        self.record(now, decision, Some(tsn));
        Some(Next::Recorded { path, tsn, again: true })
    }

    /// A never-sent chunk before `lost`, if there are more gaps than a SACK can report. Chunks after the
    /// last reported gap are not acknowledged although they have arrived. They time out repeatedly, and
    /// their retransmissions would leave no window for the chunks that fill the gaps. A hole that may be
    /// abandoned is left to [`Sender::next_new`], which checks its lifetime.
    fn hole_before(&mut self, lost: u64) -> Option<u64> {
        let room = self.peer_sack_room().saturating_sub(DelayEcho::WIRE_LEN);
        if self.outstanding.board.acked().range_count() < blocks_within(room) {
            return None;
        }
        let hole = self.outstanding.board.holes().first().filter(|hole| *hole < lost)?;
        if self.outstanding.is_limited(hole) {
            return None;
        }
        // Queue positions have changed: schedulers have to recount.
        self.epoch += 1;
        Some(hole)
    }

    /// Without CMT, the path for retransmitting a chunk that timed out: another active path (RFC 9260,
    /// 6.4.1).
    fn alternate_path(&self, on: PathId, by_timer: bool) -> Option<PathId> {
        if self.outstanding.config.cmt.concurrent || !by_timer {
            return None;
        }
        let other = |i: &usize| {
            let path = &self.paths[*i];
            let id = PathId::from_index(*i);
            let window = path.tx.within_one_packet(self.congestion.window(id));
            id != on
                && path.tx.state.status() == PathStatus::Active
                && path.tx.flights.bytes() < window
        };
        (0..self.paths.len()).find(other).map(PathId::from_index)
    }

    /// `path`, or if `bytes` exceed its packets, another open path that can carry them in one packet, if
    /// any.
    fn path_for_size(&self, path: PathId, bytes: u32) -> PathId {
        let bytes = bytes + self.stamp_len();
        if bytes <= self.data_room(path) {
            return path;
        }
        let open = self.views.iter().filter(|view| view.usable && view.in_flight < view.window);
        let wide = open.filter(|view| bytes <= self.data_room(view.id));
        wide.min_by_key(|view| view.forward_delay).map_or(path, |view| view.id)
    }

    /// New data on the path that the scheduler chooses.
    #[inline]
    fn next_new(&mut self, now: Time) -> Option<Next> {
        if self.sendable_left == 0 {
            // Chunks may have been smaller than full ones, so there is more room than was counted.
            self.sendable_left = self.sendable();
        }
        let Assignment::Send { path, position, decision } = self.assign(now)? else {
            let (path, tsn) = self.unblock(now)?;
            let sent = !self.outstanding.is_over(now, tsn);
            return sent.then_some(Next::Recorded { path, tsn, again: false });
        };
        let (tsn, bytes) = self.outstanding.chunk_at(position)?;
        if tsn < self.outstanding.board.next_tsn() && self.outstanding.is_over(now, tsn) {
            self.abandon(now, tsn);
            self.sendable_left = self.sendable();
            return if self.outstanding.is_idle() { None } else { self.next_new(now) };
        }
        self.on_assigned(now, (path, position, &decision), (tsn, bytes));
        if tsn < self.outstanding.board.next_tsn() {
            return Some(Next::Recorded { path, tsn, again: false });
        }
        Some(Next::Fresh { path })
    }
}
