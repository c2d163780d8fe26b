//! `otias`: out-of-order transmission for in-order arrival (Yang, Wang and Amer, 2014).

use super::common::{chunks, free_chunks, known_round_trip};
use super::path_queues::Queues;
use super::{Decision, PathView, Reason, Schedule, SentReport, View};

/// Conversion of a path's queue to round trips of waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OtiasForm {
    /// The round in which the chunk is sent: `ceil((n + 1) / w)`.
    #[default]
    Ceil,
    /// The number of full windows before it, `floor(n / w)`: one round less whenever the chunk must wait.
    Floor,
    /// `n / w` as a real number: windows are sent evenly over the round trip instead of in one burst.
    Real,
}

/// Queues each chunk on the path that delivers it soonest, even if that path is full, where it stays. If
/// n chunks before it do not fit into the window, the chunk waits for the number of round trips of the
/// chosen form. The delivery then takes half a round trip.
#[derive(Clone, Debug, Default)]
pub struct Otias {
    form: OtiasForm,
    queues: Queues,
}

impl Otias {
    /// Creates the scheduler with this form.
    pub fn new(form: OtiasForm) -> Self {
        Self { form, queues: Queues::default() }
    }
}

/// When the next chunk would arrive on a path behind `queued` other chunks, nanoseconds from now.
fn arrival(form: OtiasForm, view: &View<'_>, path: &PathView, queued: u64) -> f64 {
    let round_trip = known_round_trip(view, path).as_nanos() as f64;
    let available = free_chunks(view, path);
    let Some(waiting) = queued.checked_sub(available) else {
        return round_trip / 2.0;
    };
    let (waiting, window) = (waiting as f64, chunks(view, path.window) as f64);
    let rounds = match form {
        OtiasForm::Ceil => ((waiting + 1.0) / window).ceil(),
        OtiasForm::Floor => (waiting / window).floor(),
        OtiasForm::Real => waiting / window,
    };
    (rounds + 0.5) * round_trip
}

impl Schedule for Otias {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let form = self.form;
        self.queues.decide(view, Reason::SoonestDelivery, |queues, view| {
            let score = |p: &PathView| arrival(form, view, p, queues.queued(p.id));
            queues.least(view, score).map(|p| p.id)
        })
    }

    fn on_sent(&mut self, sent: &SentReport) {
        self.queues.on_sent(sent);
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims {
            predicts_arrivals: true,
            assigns_for_good: true,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::{Duration, PathId};

    use super::super::Action;
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    const ROUND_TRIP: f64 = 20e6;

    #[test]
    fn ceil_and_floor_differ_by_a_round_trip_exactly_when_the_chunk_must_wait() {
        for in_flight in [0, 4, 9, 10, 13] {
            let path = PathView { in_flight: in_flight * CHUNK, ..path_view(0) };
            let paths = [path];
            let view = view(&paths);
            for queued in 0..60 {
                let at = |form| arrival(form, &view, &path, queued);
                let must_wait = queued >= 10u64.saturating_sub(in_flight);
                let more = if must_wait { ROUND_TRIP } else { 0.0 };
                assert_eq!(
                    at(OtiasForm::Ceil) - at(OtiasForm::Floor),
                    more,
                    "{in_flight} {queued}"
                );
                let real = at(OtiasForm::Real);
                assert!(at(OtiasForm::Floor) <= real && real <= at(OtiasForm::Ceil));
            }
        }
    }

    #[test]
    fn arrivals_are_those_of_the_published_rule() {
        let path = PathView { in_flight: 7 * CHUNK, ..path_view(0) };
        let paths = [path];
        // Room for 3; then rounds of 10.
        for (queued, rounds) in [(0, 0.5), (2, 0.5), (3, 1.5), (12, 1.5), (13, 2.5), (22, 2.5)] {
            let at = arrival(OtiasForm::Ceil, &view(&paths), &path, queued);
            assert_eq!(at, rounds * ROUND_TRIP, "behind {queued}");
        }
    }

    #[test]
    fn the_slow_path_carries_what_the_fast_one_would_carry_later() {
        let slow = PathView { srtt: Some(Duration::from_millis(90)), ..path_view(1) };
        let paths = [PathView { in_flight: 10 * CHUNK, ..path_view(0) }, slow];
        // The fast path is full and delivers ten chunks each after 30 and 50 ms; 45 ms lie in between.
        for (form, position) in
            [(OtiasForm::Ceil, 10), (OtiasForm::Floor, 20), (OtiasForm::Real, 18)]
        {
            let action = Otias::new(form).decide(&view(&paths)).action;
            assert_eq!(action, Action::Send { path: PathId(1), position }, "{form:?}");
        }
    }
}
