//! `reception-index` (Fiore et al., 2007, as described by Wallace and Shami, 2014): bandwidth alone.

use super::delivery_slots::{self, Slots};
use super::westwood::Westwood;
use super::{Decision, PathView, Schedule, View};

/// Assigns each chunk to the path with the lowest index: the chunk's bytes, plus those outstanding or
/// queued on the path before it, divided by the Westwood estimate of the path's bandwidth. Delays do not
/// matter. The index is computed again whenever a path may send.
#[derive(Clone, Debug, Default)]
pub struct ReceptionIndex {
    westwood: Westwood,
}

impl Slots for Westwood {
    fn next(&self, view: &View<'_>, path: &PathView) -> f64 {
        path.in_flight.saturating_add(view.chunk_bytes) as f64 / self.rate(view, path)
    }

    fn sooner(&self, view: &View<'_>, path: &PathView, within: f64) -> u64 {
        let bytes = within * self.rate(view, path) - path.in_flight as f64;
        let before = (bytes / view.chunk_bytes.max(1) as f64).ceil() - 1.0;
        before.max(0.0) as u64
    }
}

impl Schedule for ReceptionIndex {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        self.westwood.observe(view);
        delivery_slots::decide(view, &self.westwood)
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::PathId;

    use super::super::Reason;
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    #[test]
    fn the_path_with_the_least_index_is_chosen_and_full_ones_keep_their_chunks() {
        // 10 and 30 chunks per 20 ms.
        let wide = PathView { window: 30 * CHUNK, ..path_view(1) };
        let mut paths = [path_view(0), wide];
        let decide = |paths: &[PathView]| ReceptionIndex::default().decide(&view(paths));
        let send = |path, k| Decision::send(PathId(path), k, Reason::SoonestDelivery);
        assert_eq!(decide(&paths), send(1, 0), "1/30 against 1/10");
        paths[1].in_flight = 3 * CHUNK;
        assert_eq!(decide(&paths), send(0, 0), "4/30 against 1/10");
        // 31, 32 ... 35 of 30 come before 12 of 10.
        paths[0].in_flight = 9 * CHUNK;
        paths[1].in_flight = 27 * CHUNK;
        paths[1].burst_room = 0;
        assert_eq!(decide(&paths), send(0, 2), "28/30 and 29/30 before 10/10");
    }
}
