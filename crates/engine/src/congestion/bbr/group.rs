//! Paths of one bottleneck that act together as one flow: an addition to the draft.
//!
//! One flow of the rate of all paths probes with all of them at the same time, ends the probe when any packet shows that
//! too much is in flight, lowers its estimates after a round with losses on any path, and drains its queue on all paths to
//! measure the round trip. Each path keeps its own model.

use ropewalk_base::Time;

use super::Bbr;
use super::state::BbrState;
use crate::congestion::Signals;
use crate::congestion::flow_group::ALONE;

/// The group of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    /// Whether there are others in it.
    pub has_others: bool,
    /// What the others must take part in.
    pub signals: Signals,
    /// Whether the last probe was made in step with others.
    pub in_step: bool,
    /// Whether another path had too many losses since this path's last round.
    pub has_lost: bool,
}

impl Bbr {
    /// Begins a probe for bandwidth, with the other paths of the group or alone.
    pub(super) fn lead_probe(&mut self) {
        // A path without others draws no number, so that its waits are those of the draft.
        self.group.in_step = self.group.has_others && self.rng.below(u64::from(ALONE)) > 0;
        self.group.signals.probe = self.group.in_step;
    }

    /// Takes part in what another path of the group does.
    pub(super) fn take_part(&mut self, now: Time, signals: Signals) {
        if !self.full_bw.reached {
            // In Startup, the path has no share yet.
            return;
        }
        let waits = matches!(self.state, BbrState::ProbeBwDown | BbrState::ProbeBwCruise);
        if signals.probe && waits {
            self.group.in_step = true;
            self.start_probe_bw_refill();
        }
        if signals.too_high && self.probe_bw.is_bw_probe_sample {
            self.handle_inflight_too_high(now, self.in_flight, false);
        }
        self.group.has_lost |= signals.loss;
        if signals.drain && self.state != BbrState::ProbeRtt {
            self.start_probe_rtt();
        }
        self.group.signals = Signals::default();
    }
}
