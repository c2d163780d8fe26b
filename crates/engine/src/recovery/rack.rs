//! Loss detection by time: RACK (RFC 8985, 6), per path of an association.
//!
//! A transmission is lost if it was sent at least a reordering window before one that has arrived.
//! Transmissions of one path are numbered in the order of transmission, so the search starts at the
//! oldest in flight and ends at the first that is not lost: the work per acknowledgement is proportional
//! to the losses found, regardless of the size of the window.

use ropewalk_base::{Duration, Time};

use super::flight::Flights;

/// Number of later arrivals that make reordering unlikely (RFC 8985, 6.2, step 4: DupThresh).
const ARRIVALS_BEYOND: u64 = 3;
/// Divisor of the minimum round trip for the initial reordering window (6.2, step 4: a quarter).
const WINDOW_DIVISOR: u64 = 4;

/// Round trips of a path, for loss detection.
#[derive(Clone, Copy, Debug)]
pub struct RoundTrips {
    /// Smoothed round trip.
    pub smoothed: Duration,
    /// Minimum round trip.
    pub least: Duration,
}

/// The newest transmission known to have arrived.
#[derive(Clone, Copy, Debug)]
struct Newest {
    number: u64,
    round_trip: Duration,
}

/// RACK's state of one path.
#[derive(Clone, Debug, Default)]
pub struct Rack {
    newest: Option<Newest>,
    /// Whether a transmission arrived after one that was sent later (6.2, step 3).
    reordering: bool,
    /// Quarters by which the window is widened because of spurious retransmissions (6.2, step 4).
    quarters: u64,
    /// The round in which the window was last widened.
    widened_in: Option<u64>,
    deadline: Option<Time>,
}

impl Rack {
    /// When losses must be searched for again even without an acknowledgement (6.3).
    #[inline]
    pub const fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Records that transmission `number`, which was sent `round_trip` ago, has arrived.
    #[inline]
    pub fn on_arrival(&mut self, number: u64, round_trip: Duration) {
        if self.newest.is_none_or(|newest| number > newest.number) {
            self.newest = Some(Newest { number, round_trip });
        }
    }

    /// Records that a first transmission `number` has arrived. If a later one arrived before it, the path
    /// reorders packets.
    #[inline]
    pub fn on_first_arrival(&mut self, number: u64) {
        self.reordering |= self.newest.is_some_and(|newest| number < newest.number);
    }

    /// Records that data given up on this path has arrived before it was retransmitted.
    pub const fn on_late_arrival(&mut self) {
        self.reordering = true;
    }

    /// Records that the peer reported a duplicate in this round of the path. On a path with reordering, the
    /// reordering window was too small. It grows by a quarter of a round trip, at most once per round.
    pub fn on_spurious(&mut self, round: u64) {
        if self.reordering && self.widened_in != Some(round) {
            self.quarters = (self.quarters + 1).min(WINDOW_DIVISOR * 4);
            self.widened_in = Some(round);
        }
    }

    /// Records a timeout, which gave up everything in flight on the path.
    pub const fn on_timeout(&mut self) {
        self.deadline = None;
    }

    /// Adds the numbers of the transmissions that are lost at `now` to `lost`, and sets the deadline for the
    /// first of the others (6.2, step 5).
    pub fn find_lost(
        &mut self,
        now: Time,
        trips: RoundTrips,
        in_recovery: bool,
        flights: &mut Flights,
        lost: &mut Vec<u64>,
    ) {
        self.deadline = None;
        let Some(newest) = self.newest else { return };
        let beyond = flights.ended_up_to(newest.number);
        let patience = newest.round_trip + self.window(trips, in_recovery, beyond);
        for (number, flight) in flights.live_below(newest.number) {
            let due = flight.sent_at + patience;
            if due > now {
                self.deadline = Some(due);
                return;
            }
            lost.push(number);
        }
    }

    /// The reordering window (6.2, step 4).
    fn window(&self, trips: RoundTrips, in_recovery: bool, beyond: u64) -> Duration {
        if !self.reordering && (in_recovery || beyond >= ARRIVALS_BEYOND) {
            return Duration::ZERO;
        }
        (trips.least * (1 + self.quarters) / WINDOW_DIVISOR).min(trips.smoothed)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Flight;
    use super::*;
    use crate::path::RateSnapshot;

    const TRIPS: RoundTrips =
        RoundTrips { smoothed: Duration::from_millis(100), least: Duration::from_millis(80) };

    /// Transmissions at intervals of a millisecond, the first at 0.
    fn flights(count: u64) -> Flights {
        let mut flights = Flights::default();
        for tsn in 0..count {
            let at = Time::from_millis(tsn);
            flights.push(Flight::new(tsn, 1, at, RateSnapshot::default(), false));
        }
        flights
    }

    /// The transmissions `arrivals` arrive 100 ms after transmission. Returns the lost ones and the
    /// deadline, ms.
    fn after(rack: &mut Rack, flights: &mut Flights, arrivals: &[u64], recovers: bool) -> Vec<u64> {
        let mut lost = Vec::new();
        for number in arrivals {
            let now = Time::from_millis(number + 100);
            flights.end(*number);
            rack.on_first_arrival(*number);
            rack.on_arrival(*number, Duration::from_millis(100));
            rack.find_lost(now, TRIPS, recovers, flights, &mut lost);
        }
        lost
    }

    #[test]
    fn a_later_arrival_starts_a_quarter_round_trip_of_patience_and_the_third_ends_it() {
        for (arrivals, recovers, lost, deadline) in [
            (&[1][..], false, vec![], Some(120)),
            (&[1, 2], false, vec![], Some(120)),
            (&[1, 2, 3], false, vec![0], None),
            (&[1], true, vec![0], None),
            (&[2], true, vec![0, 1], None),
            (&[0, 1, 2], false, vec![], None),
            (&[60], false, (0..=40).collect(), Some(161)),
        ] {
            let (mut rack, mut flights) = (Rack::default(), flights(61));
            assert_eq!(after(&mut rack, &mut flights, arrivals, recovers), lost, "{arrivals:?}");
            let deadline = deadline.map(Time::from_millis);
            assert_eq!(rack.deadline(), deadline, "{arrivals:?}, in recovery: {recovers}");
        }
    }

    #[test]
    fn at_the_deadline_the_chunk_is_lost_without_another_acknowledgement() {
        let (mut rack, mut flights, mut lost) = (Rack::default(), flights(2), Vec::new());
        after(&mut rack, &mut flights, &[1], false);
        for (millis, expected) in [(119, vec![]), (120, vec![0])] {
            rack.find_lost(Time::from_millis(millis), TRIPS, false, &mut flights, &mut lost);
            assert_eq!(lost, expected, "at {millis} ms");
        }
    }

    #[test]
    fn one_late_arrival_of_what_was_given_up_is_enough_to_be_patient() {
        let (mut rack, mut flights) = (Rack::default(), flights(10));
        assert_eq!(after(&mut rack, &mut flights, &[1, 2, 3], false), [0]);
        flights.end(0);
        rack.on_late_arrival();
        assert_eq!(after(&mut rack, &mut flights, &[5, 6, 7, 8], false), []);
        assert_eq!(rack.deadline(), Some(Time::from_millis(4 + 100 + 20)));
    }

    #[test]
    fn a_path_that_was_seen_to_reorder_is_given_time_and_more_where_that_was_too_little() {
        let (mut rack, mut flights) = (Rack::default(), flights(10));
        after(&mut rack, &mut flights, &[1, 0], false);
        assert_eq!(after(&mut rack, &mut flights, &[3, 4, 5, 6], false), []);
        assert_eq!(rack.deadline(), Some(Time::from_millis(2 + 100 + 20)));
        (0..5).for_each(|_| rack.on_spurious(1));
        after(&mut rack, &mut flights, &[7], false);
        assert_eq!(rack.deadline(), Some(Time::from_millis(2 + 100 + 40)), "once a round");
        (2..100).for_each(|round| rack.on_spurious(round));
        after(&mut rack, &mut flights, &[8], false);
        assert_eq!(rack.deadline(), Some(Time::from_millis(2 + 100 + 100)), "a round trip at most");
    }
}
