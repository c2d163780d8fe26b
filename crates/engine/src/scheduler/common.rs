//! Functions shared by the schedulers that may wait, or take data from beyond the head.

use ropewalk_base::Duration;

use super::min_rtt::round_trip;
use super::{Decision, PathView, Reason, View};

/// Round trip assumed while no path has been measured (RFC 6298, 2.1: the initial RTO is 1 s).
const UNMEASURED: Duration = Duration::from_secs(1);

/// Whether a path can be used. A path without a window would not send its part of the data.
#[inline]
pub(super) fn counts(path: &PathView) -> bool {
    path.usable && path.window > 0
}

/// The lowest cost of a path that can be used.
pub(super) fn least_cost(view: &View<'_>) -> Option<u32> {
    view.paths.iter().filter(|p| counts(p)).map(|p| p.cost).min()
}

/// The paths that can be used, without standby paths while a cheaper path is usable, as Linux handles its
/// backup flag.
pub(super) fn active<'a>(view: &'a View<'_>) -> impl Iterator<Item = &'a PathView> {
    let cost = least_cost(view);
    view.paths.iter().filter(move |p| counts(p) && Some(p.cost) == cost)
}

/// The smoothed round trip. A path without a measurement is assumed to be as long as the longest known
/// path, so that it is tried late.
pub(super) fn known_round_trip(view: &View<'_>, path: &PathView) -> Duration {
    let longest = || view.paths.iter().filter_map(|p| p.srtt).max();
    path.srtt.or_else(longest).unwrap_or(UNMEASURED)
}

/// The forward delay, or half of the round trip if it is unknown.
pub(super) fn known_delay(view: &View<'_>, path: &PathView) -> Duration {
    path.forward_delay.unwrap_or_else(|| known_round_trip(view, path) / 2)
}

/// Bytes as full chunks, at least one: a window of one byte still carries a chunk.
#[inline]
pub(super) fn chunks(view: &View<'_>, bytes: u64) -> u64 {
    (bytes / view.chunk_bytes.max(1)).max(1)
}

/// Free window in full chunks, rounded up: RFC 9260, 6.1 B permits exceeding the window by less than one
/// packet.
#[inline]
pub(super) fn free_chunks(view: &View<'_>, path: &PathView) -> u64 {
    path.room().div_ceil(view.chunk_bytes.max(1))
}

/// Returns `decision`, unless it waits while nothing is in flight. No event would then end the wait, so the
/// nearest open path takes the head.
pub(super) fn unless_idle(view: &View<'_>, decision: Decision) -> Decision {
    if view.paths.iter().any(|p| p.in_flight > 0) {
        return decision;
    }
    match view.open_for_head().min_by_key(|p| round_trip(p)) {
        Some(path) => Decision::send(path.id, 0, Reason::LeastRtt),
        None => decision,
    }
}

/// The decision if all data that may be sent now is assigned to paths that are full.
pub(super) fn belongs_to_others(view: &View<'_>) -> Decision {
    let waits = view.takeable() > 0 && view.open().next().is_some();
    let decision = if waits { Decision::blocked(Reason::QueuedElsewhere) } else { view.nobody() };
    unless_idle(view, decision)
}

#[cfg(test)]
mod tests {
    use ropewalk_base::PathId;

    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    #[test]
    fn standbys_and_paths_without_a_window_do_not_count() {
        let mut paths = [path_view(0), path_view(1), path_view(2)];
        paths[1].cost = 1;
        paths[2].window = 0;
        let ids = |paths: &[PathView]| active(&view(paths)).map(|p| p.id.0).collect::<Vec<_>>();
        assert_eq!(ids(&paths), [0]);
        paths[0].usable = false;
        assert_eq!(ids(&paths), [1]);
    }

    #[test]
    fn an_unmeasured_path_is_as_long_as_the_longest_known() {
        let mut paths = [path_view(0), path_view(1)];
        (paths[0].srtt, paths[0].forward_delay) = (None, None);
        paths[1].srtt = Some(Duration::from_millis(70));
        assert_eq!(known_round_trip(&view(&paths), &paths[0]), Duration::from_millis(70));
        assert_eq!(known_delay(&view(&paths), &paths[0]), Duration::from_millis(35));
        paths[1].srtt = None;
        assert_eq!(known_round_trip(&view(&paths), &paths[0]), UNMEASURED);
    }

    #[test]
    fn a_wait_ends_when_nothing_is_on_its_way() {
        let mut paths = [path_view(0), path_view(1)];
        let wait = Decision::blocked(Reason::FasterSoon);
        paths[1].srtt = Some(Duration::from_millis(5));
        let go = Decision::send(PathId(1), 0, Reason::LeastRtt);
        assert_eq!(unless_idle(&view(&paths), wait), go);
        paths[0].in_flight = CHUNK;
        assert_eq!(unless_idle(&view(&paths), wait), wait);
    }
}
