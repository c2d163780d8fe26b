//! Availability of subflows for data.

use ropewalk_base::{PathId, Time};

use super::super::subflow::Subflow;
use super::DataSender;
use crate::multipath::fallback_path;
use crate::path::{PathStatus, PathUse};
use crate::scheduler::{Behind, Schedule};

/// Data that a subflow may send from the unassigned queue.
pub(super) enum Candidate {
    /// This unit, with this many bytes.
    Unit { unit: u64, bytes: u32 },
    /// None now, by Nagle's algorithm.
    HeldBack,
}

impl DataSender {
    /// The data at a position of the unassigned queue, for a segment on this subflow, `None` if there is
    /// no data. Data that is held back gets no number before it is sent, so that data queued later joins
    /// its segment.
    pub(super) fn segment_for(
        &mut self,
        path: PathId,
        position: u64,
        nagle: bool,
    ) -> Option<Candidate> {
        let unnumbered = if nagle { self.outstanding.unnumbered_bytes_at(position) } else { None };
        if unnumbered.is_some_and(|bytes| self.holds_back(path, bytes)) {
            return Some(Candidate::HeldBack);
        }
        let unit = self.outstanding.unit_at(position)?;
        let bytes = self.fill_segment(path, unit)?;
        let is_held_back = nagle && unnumbered.is_none() && self.holds_back(path, bytes);
        Some(if is_held_back { Candidate::HeldBack } else { Candidate::Unit { unit, bytes } })
    }

    /// Fills a short segment with the data that follows it, if that is assigned to the same subflow.
    /// Returns its length in bytes.
    fn fill_segment(&mut self, path: PathId, unit: u64) -> Option<u32> {
        let (board, limit) = (&mut self.outstanding.board, self.outstanding.segment_limit);
        let follows = self.outstanding.config.fragment.is_some()
            && self.scheduler.behind(path) == Behind::Next;
        if follows {
            board.fill_from_next(unit, limit);
        }
        Some(board.get(unit)?.payload.len())
    }

    /// Nagle's algorithm as modified by Minshall (RFC 9293, 3.7.4; `tcp_nagle_check` in
    /// net/ipv4/tcp_output.c): a segment of `bytes` bytes that is not followed by more data for the
    /// subflow is not sent while an earlier short segment is unacknowledged.
    fn holds_back(&self, path: PathId, bytes: u32) -> bool {
        let subflow = &self.paths[path.index()];
        bytes < self.outstanding.segment_limit
            && subflow.short_end > subflow.sent.una()
            && self.scheduler.behind(path) == Behind::Nothing
    }

    /// Updates the views of all subflows, before anything is sent in response to an input.
    pub(super) fn refresh_views(&mut self, now: Time) {
        self.outstanding.divide_into_fragments();
        if self.scheduler.reads_fragment_ends() {
            let mut ends = core::mem::take(&mut self.fragment_ends);
            self.outstanding.collect_fragment_ends(&mut ends);
            self.fragment_ends = ends;
        } else {
            self.fragment_ends.clear();
        }
        let may =
            |subflow: &Subflow| subflow.is_open() && subflow.tx.config.usage != PathUse::Never;
        let open = self.paths.iter().enumerate().filter(|(_, subflow)| may(subflow));
        let fallback = fallback_path(open.map(|(i, subflow)| (PathId::from_index(i), &subflow.tx)));
        let is_usable = |id: PathId, subflow: &Subflow| {
            let active = match fallback {
                Some(fallback) => fallback == id,
                None => subflow.tx.state.status() == PathStatus::Active,
            };
            active && subflow.is_open()
        };
        self.update_views(now, is_usable);
    }
}
