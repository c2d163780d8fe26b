//! Paths of one bottleneck that act together as one flow: an addition to the draft.
//!
//! Like one flow with the sum of the rates, the paths probe at the same time, end the probe when a packet
//! on any path shows that too much is in flight, lower their estimates after a round with losses on any
//! path, and drain the queue on all paths to measure the round trip. Each path keeps its own model.

use ropewalk_base::Time;

use super::Bbr;
use super::state::BbrState;
use crate::congestion::Signals;
use crate::congestion::flow_group::ALONE;

/// The group of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    /// Whether it contains other paths.
    pub has_others: bool,
    /// Signals to the other paths.
    pub signals: Signals,
    /// Whether the last probe was made together with other paths.
    pub in_step: bool,
    /// Whether another path had too many losses since this path's last round.
    pub has_lost: bool,
}

impl Bbr {
    /// Begins a probe for bandwidth, either with the other paths of the group or alone.
    pub(super) fn lead_probe(&mut self) {
        // A path without others draws no random number, so that its waits are those of the draft.
        self.group.in_step = self.group.has_others && self.rng.below(u64::from(ALONE)) > 0;
        self.group.signals.probe = self.group.in_step;
    }

    /// Follows the signals of another path of the group.
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
