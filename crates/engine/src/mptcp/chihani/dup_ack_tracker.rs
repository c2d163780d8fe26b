//! The sender's reaction to duplicate acknowledgements.
//!
//! Duplicates are counted per segment and never reset. The third one causes a single retransmission of
//! the segment; further retransmissions are caused only by the timer. The variants of the recovery
//! algorithms differ in what they count.

use std::collections::BTreeMap;

use ropewalk_base::{PathId, RangeSet};

use super::super::reordering::Reordering;
use super::super::segment::Sacks;

/// The oldest unacknowledged segment of a subflow.
#[derive(Clone, Copy, Debug)]
pub struct Front {
    /// Its number in the subflow's queue.
    pub piece: u64,
    /// Data sequence number of its first byte.
    pub dsn: u64,
}

/// Reaction to a duplicate acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing.
    None,
    /// The window of that subflow is reduced, and its oldest segment retransmitted.
    Lost(PathId),
    /// The last reduction of that subflow is undone.
    Restore(PathId),
    /// That subflow enters slow start, up to the maximum window from which it was reduced.
    Regrow(PathId),
}

/// Counts for one subflow.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    /// The piece to which duplicates are charged, and their number.
    charged: (u64, u32),
    /// The retransmitted piece, and the time of its first retransmission, ms.
    again: Option<(u64, u64)>,
    /// The maximum window from which it was reduced, segments, since it last grew back to that window.
    saved: f64,
    /// Whether the subflow is in slow start up to that window.
    regrows: bool,
}

/// Counts for a session.
#[derive(Clone, Debug)]
pub struct DupAckTracker {
    lanes: Vec<Lane>,
    /// Data that blocks have reported.
    reported: RangeSet,
    /// Retransmitted data sequence numbers, and the number of acknowledgements that reported each.
    again: BTreeMap<u64, u32>,
}

/// Duplicate acknowledgements that count as a loss.
const THRESHOLD: u32 = 3;

impl DupAckTracker {
    /// Starts with all counts at zero.
    pub fn new(subflows: usize) -> Self {
        let again = BTreeMap::new();
        Self { lanes: vec![Lane::default(); subflows], reported: RangeSet::new(), again }
    }

    /// Records that the window of `path` is reduced from `window` segments.
    pub fn on_cut(&mut self, path: PathId, window: f64) {
        let lane = &mut self.lanes[path.index()];
        lane.saved = lane.saved.max(window);
        lane.regrows = false;
    }

    /// Puts `path` into slow start up to the returned window, segments.
    pub fn regrow(&mut self, path: PathId) -> f64 {
        let lane = &mut self.lanes[path.index()];
        lane.regrows = true;
        lane.saved
    }

    /// Records that the window of `path` is now `window` segments. Slow start ends one segment below the
    /// saved window.
    pub fn on_window(&mut self, path: PathId, window: f64) {
        let lane = &mut self.lanes[path.index()];
        if lane.regrows && window + 1.0 >= lane.saved {
            (lane.regrows, lane.saved) = (false, 0.0);
        }
    }

    /// Records that the oldest segment of `path` is retransmitted at `now_ms`.
    pub fn on_retransmission(&mut self, now_ms: u64, path: PathId, front: Front) {
        let lane = &mut self.lanes[path.index()];
        if lane.again.is_none_or(|(piece, _)| piece != front.piece) {
            lane.again = Some((front.piece, now_ms));
        }
        // Reports are counted from the arrival of the first copy.
        let reported = u32::from(self.reported.contains(front.dsn));
        self.again.entry(front.dsn).or_insert(reported);
    }

    /// Processes the reported blocks: the segment that caused the acknowledgement, and the lowest
    /// out-of-order run.
    pub fn on_blocks(&mut self, blocks: &Sacks) {
        for block in blocks.iter().filter(|block| block.0 < block.1) {
            self.reported.insert_range(block.0..block.1);
        }
        if let Some((first, run)) = blocks.first().zip(blocks.get(1)) {
            for (dsn, count) in &mut self.again {
                let reported = *dsn == first.0 || (run.0..run.1).contains(dsn);
                *count += u32::from(reported);
            }
        }
    }

    /// All data before `dsn` is acknowledged.
    pub fn forget_below(&mut self, dsn: u64) {
        self.reported.remove_below(dsn);
        if self.again.first_key_value().is_some_and(|(first, _)| *first < dsn) {
            self.again = self.again.split_off(&dsn);
        }
    }

    /// Processes a duplicate acknowledgement on `path`. `fronts` are the oldest segments of all subflows,
    /// `echo_ms` is the echoed timestamp, `blocks` the reported blocks.
    pub fn on_duplicate(
        &mut self,
        rule: Reordering,
        path: PathId,
        fronts: &[Option<Front>],
        echo_ms: Option<u64>,
        blocks: &Sacks,
    ) -> Verdict {
        match rule {
            _ if !rule.duplicates_count_in_model() => Verdict::None,
            Reordering::Eifel if self.is_older(path, fronts, echo_ms) => Verdict::Restore(path),
            Reordering::DSack if !blocks.is_empty() => {
                let owner = self.owner_of_hole(fronts);
                let first = blocks[0].0;
                if self.again.get(&first).is_some_and(|count| *count > 1) {
                    return Verdict::Regrow(owner.unwrap_or(path));
                }
                owner.map_or(Verdict::None, |owner| self.charge(owner, fronts))
            }
            _ => self.charge(path, fronts),
        }
    }

    /// Eifel detection: whether the acknowledged segment was sent before the oldest segment was
    /// retransmitted.
    fn is_older(&self, path: PathId, fronts: &[Option<Front>], echo_ms: Option<u64>) -> bool {
        let Some((front, echo)) = fronts[path.index()].zip(echo_ms) else { return false };
        let again = self.lanes[path.index()].again;
        again.is_some_and(|(piece, at)| piece == front.piece && at > echo)
    }

    /// The subflow with the lowest data that no block has reported.
    fn owner_of_hole(&self, fronts: &[Option<Front>]) -> Option<PathId> {
        let numbered = fronts.iter().enumerate().filter_map(|(i, front)| Some((i, (*front)?)));
        let missing = numbered.filter(|(_, front)| !self.reported.contains(front.dsn));
        missing.min_by_key(|(_, front)| front.dsn).map(|(i, _)| PathId::from_index(i))
    }

    fn charge(&mut self, path: PathId, fronts: &[Option<Front>]) -> Verdict {
        let Some(front) = fronts[path.index()] else { return Verdict::None };
        let (piece, count) = &mut self.lanes[path.index()].charged;
        if *piece != front.piece {
            (*piece, *count) = (front.piece, 0);
        }
        *count += 1;
        if *count == THRESHOLD { Verdict::Lost(path) } else { Verdict::None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: PathId = PathId(0);
    const B: PathId = PathId(1);

    fn fronts(dsns: [u64; 2]) -> [Option<Front>; 2] {
        dsns.map(|dsn| Some(Front { piece: dsn / 100, dsn }))
    }

    fn blocks(of: &[(u64, u64)]) -> Sacks {
        Sacks::from_slice(of)
    }

    #[test]
    fn the_third_duplicate_of_a_segment_is_a_loss_and_no_later_one() {
        for (rule, losses) in [
            (Reordering::None, 1),
            (Reordering::Eifel, 1),
            (Reordering::DSack, 1),
            (Reordering::TcpDoor, 0),
            (Reordering::FRto, 0),
        ] {
            let mut doubts = DupAckTracker::new(2);
            let mut duplicate = |dsn| {
                doubts.on_duplicate(rule, A, &fronts([dsn, 900]), None, &blocks(&[]))
                    == Verdict::Lost(A)
            };
            assert_eq!((0..9).filter(|_| duplicate(100)).count(), losses, "{rule:?}");
            assert_eq!((0..9).filter(|_| duplicate(200)).count(), losses, "the next segment");
        }
    }

    #[test]
    fn eifel_restores_while_what_comes_back_left_before_the_retransmission() {
        let mut doubts = DupAckTracker::new(2);
        doubts.on_retransmission(50, A, Front { piece: 1, dsn: 100 });
        doubts.on_retransmission(70, A, Front { piece: 1, dsn: 100 });
        for (echo, verdict) in [
            (Some(49), Verdict::Restore(A)),
            (Some(50), Verdict::None),
            (Some(60), Verdict::None),
            (None, Verdict::Lost(A)),
        ] {
            let fronts = fronts([100, 900]);
            let found = doubts.on_duplicate(Reordering::Eifel, A, &fronts, echo, &blocks(&[]));
            assert_eq!(found, verdict, "{echo:?}");
        }
    }

    #[test]
    fn d_sack_charges_the_subflow_that_owns_the_hole() {
        let mut doubts = DupAckTracker::new(2);
        let ahead = blocks(&[(500, 600), (100, 200)]);
        doubts.on_blocks(&ahead);
        let mut duplicate =
            || doubts.on_duplicate(Reordering::DSack, A, &fronts([100, 0]), None, &ahead);
        let found = [duplicate(), duplicate(), duplicate(), duplicate()];
        assert_eq!(found, [Verdict::None, Verdict::None, Verdict::Lost(B), Verdict::None]);
    }

    #[test]
    fn d_sack_grows_back_when_what_was_sent_again_was_reported_before() {
        let mut doubts = DupAckTracker::new(2);
        doubts.on_cut(B, 9.5);
        doubts.on_cut(B, 5.0);
        doubts.on_retransmission(1, A, Front { piece: 1, dsn: 100 });
        let ahead = blocks(&[(100, 200), (100, 200)]);
        let mut verdict = || {
            doubts.on_blocks(&ahead);
            doubts.on_duplicate(Reordering::DSack, A, &fronts([100, 0]), None, &ahead)
        };
        assert_eq!([verdict(), verdict()], [Verdict::None, Verdict::Regrow(B)]);
        assert_eq!(doubts.regrow(B), 9.5, "the largest");
        doubts.on_window(B, 8.4);
        assert_eq!(doubts.regrow(B), 9.5, "not there yet");
        doubts.on_window(B, 8.5);
        assert_eq!(doubts.regrow(B), 0.0);
        doubts.forget_below(200);
        assert!(doubts.again.is_empty() && doubts.reported.is_empty());
    }

    #[test]
    fn d_sack_grows_back_at_the_first_report_of_what_was_reported_before_it_was_sent_again() {
        let mut doubts = DupAckTracker::new(2);
        let ahead = blocks(&[(100, 200), (100, 200)]);
        doubts.on_blocks(&ahead);
        doubts.on_cut(A, 9.0);
        doubts.on_retransmission(1, A, Front { piece: 1, dsn: 100 });
        doubts.on_blocks(&ahead);
        let verdict = doubts.on_duplicate(Reordering::DSack, A, &fronts([100, 0]), None, &ahead);
        assert_eq!(verdict, Verdict::Regrow(B));
    }
}
