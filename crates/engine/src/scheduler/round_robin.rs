//! `round-robin`: each open path in turn (CMT-SCTP; Kuhn et al., 2014, Eq 1).

use super::{Decision, Reason, Schedule, SentReport, View};

/// The amount that a path sends in its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quota {
    /// One packet.
    Packet,
    /// Up to the limit of its window, as in CMT-SCTP stacks.
    #[default]
    Window,
}

/// Round robin that considers only the windows.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    quota: Quota,
    /// Identifier of the path whose turn it is. If that path was removed, the next one follows.
    turn: u8,
    /// Whether the path that has the turn has sent in this round.
    used: bool,
}

impl RoundRobin {
    /// Creates the scheduler with the given quota.
    pub const fn new(quota: Quota) -> Self {
        Self { quota, turn: 0, used: false }
    }
}

impl Schedule for RoundRobin {
    #[inline]
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let start = view.paths.iter().position(|p| p.id.0 >= self.turn).unwrap_or(0);
        let (before, from) = view.paths.split_at(start);
        for path in from.iter().chain(before) {
            if path.is_open() && view.admit(0).is_some() {
                self.turn = path.id.0;
                return Decision::send(path.id, 0, Reason::NextInTurn);
            }
        }
        // The round is over. The next one begins after the path that sent last. Otherwise, with space for one
        // packet at a time, the same path would always get it.
        if self.used {
            self.turn += 1;
            self.used = false;
        }
        view.nobody()
    }

    #[inline]
    fn on_sent(&mut self, sent: &SentReport) {
        match self.quota {
            Quota::Packet => self.turn = sent.path.0 + 1,
            Quota::Window => {
                self.turn = sent.path.0;
                self.used = true;
            }
        }
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims { takes_the_head: true, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{CHUNK, path_view, view};
    use super::super::{Action, PathView};
    use super::*;

    /// The paths of the next chunks, when each chunk fills the window of its path.
    fn turns(scheduler: &mut RoundRobin, paths: &mut [PathView], chunks: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        for _ in 0..chunks {
            let Action::Send { path, position } = scheduler.decide(&view(paths)).action else {
                break;
            };
            scheduler.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
            let sent = paths.iter_mut().find(|p| p.id == path).expect("a path of the view");
            sent.in_flight += CHUNK;
            taken.push(path.0);
        }
        taken
    }

    /// Space for two chunks on each path; path 1 was removed.
    fn three() -> Vec<PathView> {
        [0, 2, 3].map(|id| PathView { window: 2 * CHUNK, ..path_view(id) }).to_vec()
    }

    #[test]
    fn a_quota_of_a_packet_alternates_and_of_a_window_fills() {
        for (quota, expected) in
            [(Quota::Packet, [0, 2, 3, 0, 2, 3]), (Quota::Window, [0, 0, 2, 2, 3, 3])]
        {
            assert_eq!(turns(&mut RoundRobin::new(quota), &mut three(), 9), expected, "{quota:?}");
        }
    }

    #[test]
    fn the_turn_survives_the_removal_of_the_path_that_had_it() {
        let mut scheduler = RoundRobin::new(Quota::Packet);
        assert_eq!(turns(&mut scheduler, &mut three(), 1), [0]);
        let mut left = three();
        left.remove(1);
        assert_eq!(turns(&mut scheduler, &mut left, 2), [3, 0]);
    }
}
