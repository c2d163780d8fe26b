//! `backup`: strict priority by cost. A more expensive path carries only data that the cheaper ones
//! cannot carry.

use super::{Decision, Reason, Schedule, View};

/// Always takes the cheapest open path, the first among equal costs. Keeps no state between decisions.
#[derive(Clone, Debug, Default)]
pub struct Backup;

impl Schedule for Backup {
    #[inline]
    fn decide(&mut self, view: &View<'_>) -> Decision {
        match view.open_for_head().min_by_key(|p| p.cost) {
            Some(path) => Decision::send(path.id, 0, Reason::LeastCost),
            None => view.nobody(),
        }
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims { takes_the_head: true, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::PathId;

    use super::super::conformance::{path_view, view};
    use super::super::{DecisionKind, PathView};
    use super::*;

    fn three() -> [PathView; 3] {
        let path = |id, cost| PathView { cost, ..path_view(id) };
        [path(0, 7), path(1, 2), path(2, 2)]
    }

    #[test]
    fn the_next_path_is_taken_only_when_the_better_is_full_or_failed() {
        let mut paths = three();
        assert_eq!(Backup.decide(&view(&paths)), Decision::send(PathId(1), 0, Reason::LeastCost));
        paths[1].in_flight = paths[1].window;
        assert_eq!(Backup.decide(&view(&paths)), Decision::send(PathId(2), 0, Reason::LeastCost));
        paths[2].usable = false;
        assert_eq!(Backup.decide(&view(&paths)), Decision::send(PathId(0), 0, Reason::LeastCost));
    }

    #[test]
    fn the_span_rule_does_not_hold_a_lost_chunk_back() {
        let paths = three();
        let occasion = DecisionKind::Retransmission { lost_on: PathId(0) };
        let lost = View { occasion, sendable: 0, ..view(&paths) };
        assert_eq!(Backup.decide(&lost), Decision::send(PathId(1), 0, Reason::LeastCost));
    }
}
