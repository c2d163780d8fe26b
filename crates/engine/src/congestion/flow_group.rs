//! Paths that share a bottleneck and act together as one flow there.
//!
//! An uncoupled algorithm takes a flow's share of a bottleneck for each path. To take one share in total,
//! the paths of one bottleneck act like a single flow:
//!
//! - **A reduction applies to all paths.** After a loss, one flow reduces its full window, not only the
//!   part of one path. Losses within a round trip belong to one congestion event, on whichever paths they
//!   occur.
//! - **Each path has a part of the growth.** `n` equal paths grow together like one flow, each by an
//!   `n`-th.
//! - **Probes are made in step** (`bbr`). Flows of BBR find their shares because a small flow gains more
//!   by a probe than a large one. That holds for the group if all its paths probe together. They also end
//!   a probe together, and drain the queue together to measure the round trip.

use ropewalk_base::{Duration, PathId, Time};

/// One in this many probes or reductions is made by one path alone. Its effect on the queue reaches the
/// other paths only if they share the bottleneck. Without this, paths that act in step would appear to
/// share one forever.
pub(super) const ALONE: u32 = 4;

/// Signals to the other paths of a bottleneck.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signals {
    /// A probe for bandwidth begins.
    pub probe: bool,
    /// The probe has found too much data in flight.
    pub too_high: bool,
    /// A round had more losses than are tolerated.
    pub loss: bool,
    /// The round trip is measured without a queue.
    pub drain: bool,
}

/// The groups of a connection, and the last reduction of each path.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowGroups {
    /// For each path, the lowest path of its group.
    groups: Vec<PathId>,
    reductions: Vec<Reduction>,
    /// Reductions by groups so far.
    events: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reduction {
    /// When the window was last reduced, by this path or another one.
    at: Option<Time>,
    /// The path with the loss that caused it.
    by: PathId,
    /// Whether other windows were reduced at the same time.
    in_step: bool,
    srtt: Duration,
}

impl FlowGroups {
    #[cfg(test)]
    pub fn new(groups: &[PathId]) -> Self {
        Self {
            groups: groups.to_vec(),
            reductions: vec![Reduction::default(); groups.len()],
            events: 0,
        }
    }

    /// Sets new groups.
    pub fn set(&mut self, groups: &[PathId]) {
        self.groups.clear();
        self.groups.extend_from_slice(groups);
        self.reductions.resize(groups.len(), Reduction::default());
        self.reductions.iter_mut().for_each(|last| last.in_step = false);
    }

    /// The part of the growth of one flow that `path` has. The rate of a path whose window grows by a
    /// segment per round trip `r` grows with `1 / r^2`. The parts are chosen so that the rate of the
    /// group grows like that of one flow over its path with the shortest round trip: equal paths have an
    /// `n`-th each.
    pub fn growth_share(&self, path: PathId) -> f64 {
        let square = |i: usize| self.reductions[i].srtt.as_secs_f64().max(1e-9).powi(-2);
        let own = if path.index() < self.groups.len() { square(path.index()) } else { return 1.0 };
        let (most, sum) = self
            .others(path)
            .map(square)
            .fold((own, own), |(most, sum), other| (f64::max(most, other), sum + other));
        most / sum
    }

    /// The other paths of the group of `path`.
    pub fn others(&self, path: PathId) -> impl Iterator<Item = usize> {
        let group = self.groups.get(path.index()).copied();
        let same = move |(i, other): (usize, &PathId)| {
            (Some(*other) == group && i != path.index()).then_some(i)
        };
        self.groups.iter().enumerate().filter_map(same)
    }

    /// Records the round trip of a path.
    pub fn note_round_trip(&mut self, path: PathId, srtt: Option<Duration>) {
        if let (Some(reduction), Some(srtt)) = (self.reductions.get_mut(path.index()), srtt) {
            reduction.srtt = srtt;
        }
    }

    /// Whether a loss on path `by` at `now` reduces the window of `path`, and records the reduction. A
    /// loss that belongs to the congestion event of the last reduction does not.
    pub fn reduces(&mut self, path: usize, by: PathId, now: Time) -> bool {
        let Some(last) = self.reductions.get_mut(path) else { return path == by.index() };
        let is_same = last.at.is_some_and(|at| now.since(at) < last.srtt);
        // The caller counts one loss per window of data of each path. Only losses of several paths are
        // merged here.
        let reduces = !is_same || last.by == by && path == by.index();
        if reduces {
            (last.at, last.by) = (Some(now), by);
        }
        reduces
    }

    /// The other paths whose windows a loss on `path` also reduces. One reduction in [`ALONE`] is made by
    /// the path alone.
    pub fn reduced_with(&mut self, path: PathId, now: Time) -> Vec<usize> {
        let mut others: Vec<_> = self.others(path).collect();
        let joint = !self.events.is_multiple_of(ALONE);
        self.events = self.events.wrapping_add(u32::from(!others.is_empty()));
        for member in others.iter().copied().chain([path.index()]) {
            self.reductions[member].in_step = joint && !others.is_empty();
        }
        others.retain(|other| joint && self.reduces(*other, path, now));
        others
    }

    /// Whether the window of `path` was last reduced together with others.
    pub fn is_in_step(&self, path: PathId) -> bool {
        self.reductions.get(path.index()).is_some_and(|last| last.in_step)
    }

    /// Whether the last reduction of `path` was due to a loss on `by`.
    pub fn was_reduced_by(&self, path: usize, by: PathId) -> bool {
        self.reductions.get(path).is_some_and(|last| last.at.is_some() && last.by == by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_several_paths_within_a_round_trip_are_one_event() {
        let mut groups = FlowGroups::new(&[0, 1, 0].map(PathId));
        assert_eq!(groups.others(PathId(0)).collect::<Vec<_>>(), [2]);
        for path in 0..3 {
            groups.note_round_trip(PathId(path), Some(Duration::from_millis(50)));
        }
        assert_eq!([0, 1, 2].map(|path| groups.growth_share(PathId(path))), [0.5, 1.0, 0.5]);
        for (ms, path, by, expected) in [
            (0, 0, 0, true),
            (0, 2, 0, true),
            (20, 2, 2, false),
            (20, 0, 2, false),
            (40, 0, 0, true),
            (60, 2, 2, true),
            (60, 0, 2, false),
            (100, 0, 2, true),
        ] {
            let found = groups.reduces(path, PathId(by), Time::from_millis(ms));
            assert_eq!(found, expected, "path {path} by {by} at {ms} ms");
        }
        assert!(groups.was_reduced_by(0, PathId(2)) && !groups.was_reduced_by(1, PathId(1)));
    }

    #[test]
    fn a_group_grows_as_its_path_with_the_shortest_round_trip() {
        let mut groups = FlowGroups::new(&[PathId(0); 2]);
        groups.note_round_trip(PathId(0), Some(Duration::from_millis(40)));
        groups.note_round_trip(PathId(1), Some(Duration::from_millis(80)));
        for path in 0..2 {
            let share = groups.growth_share(PathId(path));
            assert!((share - 0.8).abs() < 1e-9, "{share}");
        }
    }
}
