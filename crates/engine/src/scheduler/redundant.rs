//! `redundant`: sends the same chunk on several paths, from bundling to full duplication.

use ropewalk_base::PathId;

use super::min_rtt::round_trip;
use super::{Decision, PathSet, PathView, Reason, Schedule, SentReport, View};

/// One copy, in the unit of `wanted` and `owed`.
const ONE: u32 = 1 << 10;

/// Sends copies of each chunk on this number of open paths, the lowest round trips first.
///
/// With 2.5 copies, chunks get two and three copies in turn. A chunk does not wait for a full path but gets
/// fewer copies; otherwise no path could be faster than the slowest one.
#[derive(Clone, Debug)]
pub struct Redundant {
    /// Number of copies per chunk, in 1/1024.
    wanted: u32,
    /// The fraction of a copy that previous chunks should have had and did not get, below `ONE`.
    owed: u32,
    /// Whether the last decision was for new data and has not been charged yet.
    uncharged: bool,
}

impl Redundant {
    /// Creates the scheduler with `copies` of each chunk, from 1 (bundle) to the number of paths (duplicate
    /// everything; infinity has the same effect). Values outside are clamped, and NaN counts as 1.
    pub fn new(copies: f64) -> Self {
        let most = PathId::LIMIT as f64;
        // `max` returns the other operand for NaN.
        let wanted = (copies.max(1.0).min(most) * f64::from(ONE)).round() as u32;
        Self { wanted, owed: 0, uncharged: false }
    }

    /// The `count` nearest paths among those that may take the head.
    fn nearest(view: &View<'_>, count: u32) -> PathSet {
        let mut chosen = PathSet::EMPTY;
        for _ in 0..count {
            let rest = view.open_for_head().filter(|p| !chosen.contains(p.id));
            let Some(next) = rest.min_by_key(|p| round_trip(p)) else {
                break;
            };
            chosen = chosen.with(next.id);
        }
        chosen
    }
}

impl Schedule for Redundant {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let copies = (self.wanted + self.owed) / ONE;
        let paths = Self::nearest(view, copies);
        self.uncharged = !paths.is_empty() && view.is_new_data();
        match (paths.iter().next(), paths.len()) {
            (None, _) => view.nobody(),
            (Some(only), 1) => Decision::send(only, 0, alone(view, only)),
            _ => Decision::copies(paths, 0, Reason::EveryPath),
        }
    }

    /// Called once for each copy; the chunk is charged once.
    fn on_sent(&mut self, _sent: &SentReport) {
        if core::mem::take(&mut self.uncharged) {
            self.owed = (self.wanted + self.owed) % ONE;
        }
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims { takes_the_head: true, ..Default::default() }
    }
}

fn alone(view: &View<'_>, only: PathId) -> Reason {
    match view.path(only).and_then(|p: &PathView| p.srtt) {
        _ if view.open_for_head().count() == 1 => Reason::OnlyOpen,
        Some(_) => Reason::LeastRtt,
        None => Reason::NoEstimate,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Action;
    use super::super::conformance::{CHUNK, path_view, view};
    use super::*;

    /// Copies of each of `chunks` chunks on three open paths.
    fn copies(wanted: f64, chunks: usize) -> Vec<u32> {
        let paths = [path_view(0), path_view(1), path_view(2)];
        let mut scheduler = Redundant::new(wanted);
        let mut count = Vec::new();
        for _ in 0..chunks {
            let set = match scheduler.decide(&view(&paths)).action {
                Action::Send { path, .. } => PathSet::EMPTY.with(path),
                Action::Copies { paths, .. } => paths,
                other => panic!("{other:?}"),
            };
            for path in set.iter() {
                scheduler.on_sent(&SentReport { path, position: 0, sequence: 0, bytes: CHUNK });
            }
            count.push(set.len());
        }
        count
    }

    #[test]
    fn the_slider_goes_from_one_copy_to_one_per_path() {
        for (wanted, expected) in [
            (1.0, [1, 1, 1, 1]),
            (1.5, [1, 2, 1, 2]),
            (2.25, [2, 2, 2, 3]),
            (3.0, [3, 3, 3, 3]),
            (f64::INFINITY, [3, 3, 3, 3]),
            (0.0, [1, 1, 1, 1]),
            (f64::NAN, [1, 1, 1, 1]),
        ] {
            assert_eq!(copies(wanted, 4), expected, "{wanted} copies");
        }
    }

    #[test]
    fn copies_go_on_the_nearest_open_paths_and_do_not_wait_for_a_full_one() {
        let millis = |m| Some(ropewalk_base::Duration::from_millis(m));
        let mut paths = [path_view(0), path_view(1), path_view(2)];
        paths[0].srtt = millis(90);
        paths[1].srtt = millis(30);
        paths[2].srtt = millis(60);
        let nearest = PathSet::EMPTY.with(PathId(1)).with(PathId(2));
        let expected = Decision::copies(nearest, 0, Reason::EveryPath);
        assert_eq!(Redundant::new(2.0).decide(&view(&paths)), expected);
        paths[1].in_flight = paths[1].window;
        paths[2].usable = false;
        let expected = Decision::send(PathId(0), 0, Reason::OnlyOpen);
        assert_eq!(Redundant::new(2.0).decide(&view(&paths)), expected);
    }
}
