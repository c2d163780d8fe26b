//! Gap ack blocks: chunks that the peer reports beyond the cumulative TSN, and those that it no longer reports.

use std::ops::Range;

use ropewalk_base::{PathId, Time};

use super::gap_diff::{Reported, find_recent};
use super::sack::{InvalidSack, PathAcks};
use super::{RecordState, Sender};
use crate::meter;
use crate::sctp::gaps::GapList;

impl Sender {
    /// Processes the gap ack blocks and returns how many chunks they cover.
    pub(super) fn take_gaps(
        &mut self,
        now: Time,
        cumulative: u64,
        gaps: &mut GapList,
        acks: &mut PathAcks,
    ) -> Result<u64, InvalidSack> {
        self.outstanding.board.forget_reports_below(cumulative);
        if gaps.is_empty() {
            self.outstanding.scratch.memory.forget_below(cumulative);
            return Ok(0);
        }
        let mut fresh = std::mem::take(&mut self.outstanding.scratch.fresh);
        fresh.clear();
        let end = self.outstanding.board.next_tsn();
        let known = self.outstanding.board.acked();
        let found =
            self.outstanding.scratch.memory.find_fresh(cumulative, gaps, end, known, &mut fresh);
        self.take_fresh(now, fresh, found, acks)
    }

    /// Processes the gap ack blocks of a requested SACK, which does not list all blocks.
    pub(super) fn take_recent_gaps(
        &mut self,
        now: Time,
        cumulative: u64,
        gaps: &GapList,
        acks: &mut PathAcks,
    ) -> Result<(), InvalidSack> {
        let board = &self.outstanding.board;
        let mut fresh = std::mem::take(&mut self.outstanding.scratch.fresh);
        fresh.clear();
        let known = (board.cumulative(), board.acked());
        let unsent = find_recent(cumulative, gaps, board.next_tsn(), known, &mut fresh);
        self.take_fresh(now, fresh, Reported { covered: 0, unsent }, acks).map(|_| ())
    }

    /// Processes TSNs that gap ack blocks report for the first time.
    fn take_fresh(
        &mut self,
        now: Time,
        fresh: Vec<Range<u64>>,
        found: Reported,
        acks: &mut PathAcks,
    ) -> Result<u64, InvalidSack> {
        let mut unsent = found.unsent;
        for tsn in fresh.iter().cloned().flatten() {
            unsent |= !self.take_gap_ack(now, tsn, acks);
        }
        self.outstanding.scratch.fresh = fresh;
        if unsent { Err(InvalidSack::NeverSent) } else { Ok(found.covered) }
    }

    /// Processes one TSN of a gap ack block. Returns false if it was never sent.
    #[inline]
    fn take_gap_ack(&mut self, now: Time, tsn: u64, acks: &mut PathAcks) -> bool {
        meter::count(1);
        let record = self.outstanding.board.record(tsn);
        let (payload, bytes) = (record.data.payload.len(), record.bytes as u64);
        match self.outstanding.board.on_gap_acked(tsn) {
            RecordState::InFlight { path, number } => {
                self.paths[path.index()].tx.held += bytes;
                let sure = self.outstanding.board.is_only_on(tsn, path);
                self.end_flight(now, path, number, payload, sure, &mut acks[path.index()]);
            }
            RecordState::Lost { on, .. } | RecordState::Abandoned { on } => {
                self.paths[on.index()].tx.held += bytes;
                self.on_late_arrival(on, payload);
            }
            RecordState::Acked { .. } => {}
            RecordState::Unsent => return false,
        }
        self.end_copies(now, tsn, acks);
        true
    }

    /// Detects reneging: the chunk after the cumulative TSN was reported by a gap ack block earlier and
    /// is missing now, so the peer may have dropped everything that it had reported (RFC 9260, 6.2.1 D
    /// iv). A SACK that arrives late on a slower path cannot cause this.
    #[inline]
    pub(super) fn check_reneging(&mut self) -> Result<(), InvalidSack> {
        let next = self.outstanding.board.cumulative() + 1;
        // `acked` holds no TSN below `next`.
        if self.outstanding.board.acked().first() == Some(next) {
            return self.on_reneged(next);
        }
        Ok(())
    }

    #[cold]
    fn on_reneged(&mut self, next: u64) -> Result<(), InvalidSack> {
        if self.outstanding.board.is_kept(next) {
            return Err(InvalidSack::Withdrawn);
        }
        self.outstanding.board.on_reneged(PathId(0));
        if let Some(limits) = &mut self.outstanding.limits {
            limits.passed = limits.advanced;
        }
        self.paths.iter_mut().for_each(|p| p.tx.held = 0);
        for tsn in self.outstanding.board.kept() {
            let record = self.outstanding.board.record(tsn);
            if let RecordState::Acked { by } = record.state {
                self.paths[by.index()].tx.held += u64::from(record.bytes);
            }
        }
        self.outstanding.scratch.memory.clear();
        Ok(())
    }
}
