//! `ods`: on-demand scheduling (Wallace and Shami, 2012). Nothing is assigned before it can be sent.

use super::common::{chunks, free_chunks, known_delay, known_round_trip};
use super::delivery_slots::{self, Slots};
use super::{Decision, PathView, Schedule, View};

/// A path that opens takes the first chunk of the send buffer that no other path could deliver sooner.
/// Until its arrival time A, another path j delivers its free window, if D_j <= A, and one more window
/// for each round trip R_j after that. Keeps no state between decisions.
///
/// If two full paths would deliver at the same time, the deciding path takes the chunk.
#[derive(Clone, Debug, Default)]
pub struct Ods;

impl Slots for Ods {
    fn next(&self, view: &View<'_>, path: &PathView) -> f64 {
        known_delay(view, path).as_nanos() as f64
    }

    fn sooner(&self, view: &View<'_>, path: &PathView, within: f64) -> u64 {
        let delay = known_delay(view, path).as_nanos() as f64;
        if delay > within {
            return 0;
        }
        let round_trip = known_round_trip(view, path).as_nanos().max(1) as f64;
        let rounds = ((within - delay) / round_trip) as u64;
        free_chunks(view, path).saturating_add(chunks(view, path.window).saturating_mul(rounds))
    }
}

impl Schedule for Ods {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        delivery_slots::decide(view, self)
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims { predicts_arrivals: true, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::{Duration, PathId};

    use super::super::Reason;
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// 10 chunks, 10 ms forward delay and 20 ms round trip, and a path with 95 ms forward delay.
    fn unequal() -> [PathView; 2] {
        let slow = PathView {
            forward_delay: Some(Duration::from_millis(95)),
            srtt: Some(Duration::from_millis(190)),
            ..path_view(1)
        };
        [path_view(0), slow]
    }

    #[test]
    fn the_slow_path_takes_what_the_fast_one_cannot_deliver_by_then() {
        let mut paths = unequal();
        let send = |path, k| Decision::send(PathId(path), k, Reason::SoonestDelivery);
        assert_eq!(Ods.decide(&view(&paths)), send(0, 0), "the fast path takes the head");
        // The fast path is full: 85 ms are four of its round trips of 10 chunks.
        paths[0].in_flight = 10 * CHUNK;
        assert_eq!(Ods.decide(&view(&paths)), send(1, 40));
        // Three chunks of its window are free, but it may send none of them in this burst.
        (paths[0].in_flight, paths[0].burst_room) = (7 * CHUNK, 0);
        assert_eq!(Ods.decide(&view(&paths)), send(1, 43));
    }

    #[test]
    fn the_end_of_the_data_is_left_to_the_fast_path() {
        let mut paths = unequal();
        paths[0].in_flight = 10 * CHUNK;
        let decide = |backlog_chunks| Ods.decide(&View { backlog_chunks, ..view(&paths) });
        assert_eq!(decide(40), Decision::blocked(Reason::QueuedElsewhere));
        assert_eq!(decide(41), Decision::send(PathId(1), 40, Reason::SoonestDelivery));
    }
}
