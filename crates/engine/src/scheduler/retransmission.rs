//! The path for the retransmission of a lost chunk (Iyengar et al., 2006).

use ropewalk_base::{Duration, PathId, Rng};

use super::{DecisionKind, PathView, View};

/// Retransmission policies. `Ssthresh`, `Cwnd` and `LossRate` depend on the losses of a path, and perform
/// best with a bounded receive buffer. The first two need no loss estimate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RetransmissionPolicy {
    /// The path on which the chunk was lost, until that path fails.
    Same,
    /// The path with the largest slow-start threshold.
    #[default]
    Ssthresh,
    /// The path with the largest congestion window.
    Cwnd,
    /// The path with the lowest estimated loss.
    LossRate,
    /// Any path that has room now.
    Asap,
    /// The path that delivers the chunk soonest, because all data after the gap waits for it.
    Fastest,
}

impl RetransmissionPolicy {
    /// The policies and their names.
    pub const ALL: [(&'static str, Self); 6] = [
        ("same", Self::Same),
        ("ssthresh", Self::Ssthresh),
        ("cwnd", Self::Cwnd),
        ("loss-rate", Self::LossRate),
        ("asap", Self::Asap),
        ("fastest", Self::Fastest),
    ];

    /// The policy of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, policy)| *policy)
    }

    /// The path for the lost chunk of `view.occasion`. Ties are broken at random. The path is usable but
    /// not always open: a fast retransmission may exceed the window by one packet, any other waits for
    /// space. Failed paths are skipped; if the policy finds none, any usable path is taken. `None` if no
    /// path is usable.
    pub fn choose(self, view: &View<'_>, rng: &mut Rng) -> Option<PathId> {
        self.pick(view, rng, |p| p.usable)
    }

    /// Like [`choose`](Self::choose), but among the paths that are open now, for a chunk that may not exceed
    /// the window. `Same` waits for its path while that is usable, and `Fastest` for the path that delivers
    /// soonest including its wait.
    pub fn choose_open(self, view: &View<'_>, rng: &mut Rng) -> Option<PathId> {
        match (self, view.occasion) {
            (Self::Same, DecisionKind::Retransmission { lost_on })
                if view.path(lost_on).is_some_and(|p| p.usable && !p.is_open()) =>
            {
                None
            }
            (Self::Fastest, _) => {
                let open = self.pick(view, rng, PathView::is_open)?;
                let arrival = view.path(open)?.forward_delay.unwrap_or(Duration::MAX);
                let sooner = |p: &PathView| arrival_after_wait(p).is_some_and(|at| at <= arrival);
                (!view.paths.iter().any(sooner)).then_some(open)
            }
            _ => self.pick(view, rng, PathView::is_open),
        }
    }

    fn pick(
        self,
        view: &View<'_>,
        rng: &mut Rng,
        eligible: impl Fn(&PathView) -> bool,
    ) -> Option<PathId> {
        let paths = || view.paths.iter().filter(|p| eligible(p));
        // Losses are never negative, so their bits as an integer have the order of `total_cmp`.
        let loss = |p: &PathView| u64::MAX - p.loss.max(0.0).to_bits();
        let lost_on = match view.occasion {
            DecisionKind::Retransmission { lost_on } => Some(lost_on),
            DecisionKind::NewData => None,
        };
        let merit = |p: &PathView| match self {
            Self::Same => u64::from(Some(p.id) == lost_on),
            Self::Ssthresh => p.ssthresh,
            Self::Cwnd => p.cwnd,
            Self::LossRate => loss(p),
            Self::Asap => u64::from(p.is_open()),
            Self::Fastest => p.forward_delay.map_or(0, |d| u64::MAX - d.as_nanos()),
        };
        let best = paths().map(merit).max()?;
        let tied = || paths().filter(|p| merit(p) == best);
        let count = tied().count() as u64;
        // A single candidate draws no random number.
        let nth = if count > 1 { rng.below(count) } else { 0 };
        tied().nth(nth as usize).map(|p| p.id)
    }
}

/// When a chunk would arrive on a path that is full now. Acknowledgements free one window per round trip.
/// `None` if the path is open, or if nothing is in flight whose acknowledgement would open it.
fn arrival_after_wait(path: &PathView) -> Option<Duration> {
    if !path.usable || path.is_open() || path.window == 0 || path.in_flight == 0 {
        return None;
    }
    let excess = path.in_flight.saturating_sub(path.window) + path.mtu as u64;
    let share = excess as f64 / path.in_flight as f64;
    Some(path.forward_delay? + path.srtt?.mul_f64(share.min(1.0)))
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Seed;

    use super::super::conformance::{path_view, view};
    use super::RetransmissionPolicy::{Asap, Cwnd, Fastest, LossRate, Same, Ssthresh};
    use super::*;

    fn rng() -> Rng {
        Seed::root(1).child("retransmission").rng()
    }

    fn lost_on(paths: &[PathView], lost_on: u8) -> View<'_> {
        View { occasion: DecisionKind::Retransmission { lost_on: PathId(lost_on) }, ..view(paths) }
    }

    /// Path 0 is full, 1 has the largest threshold, 2 the largest window, 3 the lowest loss.
    fn four() -> [PathView; 4] {
        let path = |id, cwnd, ssthresh, loss, in_flight| PathView {
            cwnd,
            window: cwnd,
            ssthresh,
            loss,
            in_flight,
            ..path_view(id)
        };
        [
            path(0, 4000, 2000, 0.2, 4000),
            path(1, 5000, 9000, 0.1, 5000),
            path(2, 8000, 3000, 0.3, 0),
            path(3, 3000, 3000, 0.01, 3000),
        ]
    }

    #[test]
    fn each_policy_takes_the_path_it_is_named_for() {
        let paths = four();
        for (policy, chosen) in [(Same, 0), (Ssthresh, 1), (Cwnd, 2), (LossRate, 3), (Asap, 2)] {
            let choice = policy.choose(&lost_on(&paths, 0), &mut rng());
            assert_eq!(choice, Some(PathId(chosen)), "{policy:?}");
        }
    }

    #[test]
    fn failed_paths_are_skipped_and_any_usable_one_will_do() {
        let mut paths = four();
        for failed in [0, 1, 2] {
            paths[failed].usable = false;
        }
        for (name, policy) in RetransmissionPolicy::ALL {
            let choice = policy.choose(&lost_on(&paths, 0), &mut rng());
            assert_eq!(choice, Some(PathId(3)), "{name}");
        }
        paths[3].usable = false;
        for (name, policy) in RetransmissionPolicy::ALL {
            assert_eq!(policy.choose(&lost_on(&paths, 0), &mut rng()), None, "{name}");
        }
    }

    #[test]
    fn within_the_window_only_open_paths_are_chosen_and_same_waits_for_its_own() {
        let paths = four();
        for (name, policy) in RetransmissionPolicy::ALL {
            let choice = policy.choose_open(&lost_on(&paths, 0), &mut rng());
            let expected = if policy == Same { None } else { Some(PathId(2)) };
            assert_eq!(choice, expected, "{name}");
        }
        assert_eq!(Same.choose_open(&lost_on(&paths, 2), &mut rng()), Some(PathId(2)));
    }

    #[test]
    fn fastest_waits_for_a_full_path_if_its_next_room_comes_in_time() {
        let path = |id, delay, in_flight, window| PathView {
            forward_delay: Some(Duration::from_millis(delay)),
            srtt: Some(Duration::from_millis(2 * delay)),
            in_flight,
            window,
            ..path_view(id)
        };
        for (near, expected) in [
            (path(0, 10, 9000, 20_000), Some(PathId(0))),
            (path(0, 10, 20_000, 20_000), None),
            // Half of the data in flight must be acknowledged first, which takes 40 ms of a round trip of 80
            // ms.
            (path(0, 40, 40_000, 20_000), None),
            (path(0, 45, 40_000, 4_000), Some(PathId(1))),
            (path(0, 10, 0, 0), Some(PathId(1))),
            (PathView { usable: false, ..path(0, 10, 20_000, 20_000) }, Some(PathId(1))),
        ] {
            let paths = [near, path(1, 100, 0, 20_000)];
            let choice = Fastest.choose_open(&lost_on(&paths, 0), &mut rng());
            assert_eq!(choice, expected, "{near:?}");
        }
    }

    #[test]
    fn ties_are_broken_at_random_and_evenly() {
        let paths = [path_view(0), path_view(1), path_view(2)];
        for policy in [Ssthresh, Cwnd, LossRate, Asap] {
            let mut rng = rng();
            let mut count = [0; 3];
            for _ in 0..3000 {
                let choice = policy.choose(&lost_on(&paths, 0), &mut rng).expect("a usable path");
                count[choice.index()] += 1;
            }
            assert!(count.iter().all(|n| (900..1100).contains(n)), "{policy:?}: {count:?}");
        }
    }

    #[test]
    fn names_lead_back_to_their_policies() {
        for (name, policy) in RetransmissionPolicy::ALL {
            assert_eq!(RetransmissionPolicy::from_name(name), Some(policy));
        }
        assert_eq!(RetransmissionPolicy::from_name("random"), None);
    }
}
