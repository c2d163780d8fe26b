//! Further copies of interactive messages in flight on a path that has become silent or slower.

use ropewalk_base::{Duration, PathId, Time};

use super::{Path, RecordState, Scoreboard, Sender};

/// Minimum interval between two rescues of the messages on one path.
const INTERVAL: Duration = Duration::from_millis(20);

/// The last rescue of interactive messages from a path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rescue {
    /// While the path was silent, the messages of all transmissions before this one were also sent on
    /// another path.
    before: u64,
    /// Time of that.
    at: Time,
    /// When messages were last sent on another path because the queue grew.
    grew_at: Time,
}

/// Whether all transmissions of `tsn` in flight are on this path.
fn is_only_on(board: &Scoreboard, tsn: u64, path: PathId) -> bool {
    let state = board.get(tsn).map(|record| record.state);
    let on = |state| matches!(state, RecordState::InFlight { path: on, .. } if on == path);
    state.is_some_and(on) && board.is_only_on(tsn, path)
}

impl Path {
    /// The last rescue.
    fn rescue(&self) -> Rescue {
        self.records.as_ref().map_or(Rescue::default(), |records| records.rescue)
    }
}

impl Sender {
    /// Whether interactive messages may have to be sent on another path.
    #[inline]
    fn may_rescue(&self) -> bool {
        let limits = self.outstanding.limits.as_ref();
        self.paths.len() > 1 && limits.is_some_and(|limits| limits.has_urgent)
    }

    /// When interactive messages in flight on `path` are to be sent on another one, because their
    /// acknowledgements are overdue.
    #[inline]
    pub fn rescue_deadline(&self, path: &Path) -> Option<Time> {
        if !self.may_rescue() || path.rescue().before >= path.tx.flights.next_number() {
            return None;
        }
        let at = path.tx.overdue_from(self.config.peer_acks)?;
        // While the path stays silent, an occasional rescue suffices for data sent since the last one.
        Some(at.max(path.rescue().at + INTERVAL))
    }

    /// Sends further copies of the interactive messages in flight on `id`, if their acknowledgements are overdue.
    pub fn rescue(&mut self, now: Time, id: PathId) {
        let path = &self.paths[id.index()];
        if self.rescue_deadline(path).is_none_or(|at| at > now) {
            return;
        }
        let (from, next) = (path.rescue().before, path.tx.flights.next_number());
        self.want_copies(id, |number, _| number >= from);
        let path = &mut self.paths[id.index()];
        let rescue = &mut path.records.get_or_insert_default().rescue;
        (rescue.before, rescue.at) = (next, now);
        self.outstanding.deadline.invalidate();
    }

    /// If the path has become slower, sends further copies of the interactive messages in flight on `id`
    /// that arrive sooner on another path.
    #[inline]
    pub fn rescue_from_growing_queue(&mut self, now: Time, id: PathId) {
        if self.may_rescue() && self.paths[id.index()].tx.drain.suspected_rate(now).is_some() {
            self.rescue_late(now, id);
        }
    }

    #[cold]
    fn rescue_late(&mut self, now: Time, id: PathId) {
        let path = &self.paths[id.index()];
        if now < path.rescue().grew_at + INTERVAL {
            return;
        }
        let tx = &path.tx;
        let Some(back) = tx.rtt.base().map(|trip| trip / 2) else { return };
        let Some((_, elsewhere, _)) = self.earliest_arrival(now, Some(id), true) else { return };
        let Some(rate) = tx.drain.suspected_rate(now) else { return };
        // The part of the data in flight here that arrives before a copy on another path would.
        let in_time = rate.bytes_in(elsewhere.since(now) + back);
        self.want_copies(id, |_, end| end > in_time);
        let path = &mut self.paths[id.index()];
        path.records.get_or_insert_default().rescue.grew_at = now;
    }

    /// Requests a further copy of each late interactive message that is in flight on `id` alone.
    /// `is_late` gets the number of its transmission, and the bytes in flight on the path up to its end.
    fn want_copies(&mut self, id: PathId, is_late: impl Fn(u64, u64) -> bool) {
        let Some(limits) = &mut self.outstanding.limits else { return };
        let mut end = 0;
        for (number, flight) in self.paths[id.index()].tx.flights.live() {
            end += u64::from(flight.bytes);
            if is_late(number, end)
                && limits.is_urgent(flight.tsn)
                && is_only_on(&self.outstanding.board, flight.tsn, id)
                && !limits.second_copies.contains(&flight.tsn)
            {
                limits.second_copies.push_back(flight.tsn);
            }
        }
    }
}
