//! `min-rtt`: the lowest smoothed round trip among the open paths, like Linux MPTCP before 5.x.

use ropewalk_base::Duration;

use super::{Decision, PathView, Reason, Schedule, View};

/// Lowest round trip first. Keeps no state between decisions.
///
/// A path that costs more than the cheapest usable one is a backup: it carries data only when no
/// cheaper path is usable. Leave all costs equal to bundle all paths.
#[derive(Clone, Debug, Default)]
pub struct MinRtt;

impl Schedule for MinRtt {
    #[inline]
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let usable = view.paths.iter().filter(|p| p.usable);
        let Some(cost) = usable.map(|p| p.cost).min() else {
            return view.nobody();
        };
        let open = view.open_for_head().filter(|p| p.cost == cost);
        match open.min_by_key(|p| round_trip(p)) {
            Some(path) => Decision::send(path.id, 0, reason(path)),
            None if view.takeable() > 0 && !view.open().any(|p| p.cost == cost) => {
                Decision::blocked(Reason::AllFull)
            }
            None => view.nobody(),
        }
    }
}

/// A path without a measurement comes last; it is measured once the others are full.
#[inline]
pub(super) fn round_trip(path: &PathView) -> Duration {
    path.srtt.unwrap_or(Duration::MAX)
}

#[inline]
fn reason(path: &PathView) -> Reason {
    if path.srtt.is_some() { Reason::LeastRtt } else { Reason::NoEstimate }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::PathId;

    use super::super::conformance::{path_view, view};
    use super::*;

    fn paths(millis: &[Option<u64>]) -> Vec<PathView> {
        let path = |(i, m): (usize, &Option<u64>)| PathView {
            srtt: m.map(Duration::from_millis),
            ..path_view(i as u8)
        };
        millis.iter().enumerate().map(path).collect()
    }

    #[test]
    fn the_nearest_open_path_is_chosen_and_an_unmeasured_one_last() {
        let mut paths = paths(&[None, Some(40), Some(15)]);
        for (chosen, reason) in
            [(2, Reason::LeastRtt), (1, Reason::LeastRtt), (0, Reason::NoEstimate)]
        {
            let expected = Decision::send(PathId(chosen), 0, reason);
            assert_eq!(MinRtt.decide(&view(&paths)), expected);
            paths[usize::from(chosen)].in_flight = u64::MAX;
        }
        assert_eq!(MinRtt.decide(&view(&paths)), Decision::blocked(Reason::AllFull));
    }

    #[test]
    fn a_backup_path_carries_data_only_when_no_cheaper_one_is_usable() {
        let mut paths = paths(&[Some(90), Some(10)]);
        paths[1].cost = 1;
        assert_eq!(MinRtt.decide(&view(&paths)), Decision::send(PathId(0), 0, Reason::LeastRtt));
        paths[0].in_flight = paths[0].window;
        assert_eq!(MinRtt.decide(&view(&paths)), Decision::blocked(Reason::AllFull));
        paths[0].usable = false;
        assert_eq!(MinRtt.decide(&view(&paths)), Decision::send(PathId(1), 0, Reason::LeastRtt));
    }
}
