//! The response to losses, and its undo (draft-ietf-ccwg-bbr, 5.5.10, 5.5.11 and 5.6.4.4).

use ropewalk_base::{Duration, Time};

use super::Bbr;
use super::model::Bounds;
use super::sent_log::PacketState;
use super::state::{BbrState, RateSample};

/// `BBR.LossThresh`: maximum tolerated loss rate while probing for bandwidth.
const LOSS_THRESH: f64 = 0.02;
/// Number of standard deviations by which losses may exceed their mean by chance in 95 of 100 cases.
const CHANCE: f64 = 1.645;
/// A round trip of this many minimum round trips shows a queue of other flows: a probe sends at 1.25
/// times the rate, and its own queue does not lengthen the round trip by more.
const QUEUE_RTT: f64 = 1.3;

/// State that is restored after a spurious recovery (draft, 5.5.11).
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// `BBR.undo_state`: the state that the losses ended.
    pub state: Option<BbrState>,
    pub bounds: Bounds,
}

/// The current recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recovery {
    None,
    Fast,
    /// After a timeout, until data that was sent after it is delivered.
    Timeout {
        delivered: u64,
    },
}

/// The losses that indicate load on the path.
///
/// The draft counts every loss of a round, and while it probes those beyond 2 %. With a tolerated rate,
/// losses on a path without a queue count only if there are more than independent losses at this rate
/// explain: one of 40 packets is 2.5 %, and at a rate of 2 % every second round loses as many.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossLimit {
    /// The tolerated rate; 0 for the draft.
    pub rate: f64,
    /// Length of a packet, bytes.
    pub unit: u64,
    /// Whether the last round trip shows a queue, so that losses may come from its overflow.
    pub has_queue: bool,
}

impl LossLimit {
    /// Maximum number of lost bytes, of those sent in a round, that do not indicate load.
    pub fn of_round(self, bytes: u64) -> f64 {
        self.most(self.rate, bytes)
    }

    /// `IsInflightTooHigh()`, for bytes lost and bytes in flight.
    pub fn is_inflight_too_high(self, lost: u64, tx_in_flight: u64) -> bool {
        lost as f64 > self.most(LOSS_THRESH.max(self.rate), tx_in_flight)
    }

    fn most(self, rate: f64, bytes: u64) -> f64 {
        let (bytes, unit) = (bytes as f64, self.unit as f64);
        // Variance of a binomial distribution, in packets.
        let variance = if self.rate > 0.0 && !self.has_queue {
            bytes / unit * rate * (1.0 - rate)
        } else {
            0.0
        };
        rate * bytes + CHANCE * variance.sqrt() * unit
    }
}

impl Bbr {
    /// The limit on losses that do not indicate load.
    pub(super) fn loss_limit(&self) -> LossLimit {
        let rate = f64::from(self.options.tolerated_loss_permille) * 1e-3;
        let queue = |least: Duration| self.last_rtt.as_secs_f64() > least.as_secs_f64() * QUEUE_RTT;
        let has_queue = self.model.min_rtt.is_some_and(queue);
        LossLimit { rate, unit: self.options.unit, has_queue }
    }

    /// `IsInflightTooHigh()`.
    pub(super) fn is_inflight_too_high(&self, sample: &RateSample) -> bool {
        self.loss_limit().is_inflight_too_high(sample.lost, sample.tx_in_flight)
    }

    /// `SaveCwnd()`.
    pub(super) fn save_cwnd(&mut self) {
        let usual = self.recovery == Recovery::None && self.state != BbrState::ProbeRtt;
        self.prior_cwnd = if usual { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// `RestoreCwnd()`.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.prior_cwnd);
    }

    /// `NoteLoss()` and `SaveStateUponLoss()`.
    pub(super) fn note_loss(&mut self) {
        if !self.latest.is_loss_in_round {
            self.latest.loss_round_delivered = self.delivered;
            self.save_cwnd();
            self.undo = Undo { state: None, bounds: self.model.bounds };
        }
        self.latest.is_loss_in_round = true;
    }

    /// `HandleLostPacket()`: adapts the long-term bound if the packet was a part of a probe.
    pub(super) fn handle_lost_packet(&mut self, now: Time, packet: PacketState, bytes: u64) {
        self.note_loss();
        if !self.probe_bw.is_bw_probe_sample {
            return;
        }
        let (lost, tx_in_flight) = (self.lost - packet.lost, packet.tx_in_flight);
        if self.loss_limit().is_inflight_too_high(lost, tx_in_flight) {
            let at_loss = inflight_at_loss(lost, tx_in_flight, bytes);
            self.handle_inflight_too_high(now, at_loss, packet.app_limited);
        }
    }

    /// Ends a recovery that has repaired its losses.
    pub(super) fn update_recovery(&mut self, in_recovery: bool, sample: &RateSample) {
        let ended = match self.recovery {
            Recovery::None => false,
            Recovery::Fast => !in_recovery,
            Recovery::Timeout { delivered } => sample.prior_delivered >= delivered && !in_recovery,
        };
        if ended {
            self.recovery = Recovery::None;
            self.restore_cwnd();
        }
    }
}

/// `InflightAtLoss()`: bytes in flight at which the loss rate exceeded the threshold.
fn inflight_at_loss(lost: u64, tx_in_flight: u64, bytes: u64) -> u64 {
    let inflight_prev = tx_in_flight.saturating_sub(bytes) as f64;
    let lost_prev = lost.saturating_sub(bytes) as f64;
    let lost_prefix = (LOSS_THRESH * inflight_prev - lost_prev) / (1.0 - LOSS_THRESH);
    (inflight_prev + lost_prefix).max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 1500;

    fn most_packets(rate: f64, has_queue: bool, packets: u64) -> [f64; 2] {
        let limit = LossLimit { rate, unit: UNIT, has_queue };
        let lost = |counts: &dyn Fn(u64) -> bool| (0..packets).find(|n| counts(n * UNIT));
        let probe = lost(&|bytes| limit.is_inflight_too_high(bytes, packets * UNIT));
        let round = lost(&|bytes| bytes as f64 > limit.of_round(packets * UNIT));
        [round, probe].map(|first| first.expect("a number of losses that counts") as f64 - 1.0)
    }

    #[test]
    fn without_a_tolerated_rate_the_limits_are_those_of_the_draft() {
        for has_queue in [false, true] {
            assert_eq!(most_packets(0.0, has_queue, 40), [0.0, 0.0]);
            assert_eq!(most_packets(0.0, has_queue, 1000), [0.0, 20.0]);
        }
    }

    #[test]
    fn losses_count_if_a_path_with_the_tolerated_rate_seldom_has_so_many() {
        for (packets, most) in [(40, 2.0), (120, 4.0), (1000, 27.0)] {
            assert_eq!(most_packets(0.02, false, packets), [most; 2], "{packets}");
        }
        for (packets, most) in [(40, 0.0), (120, 2.0), (1000, 20.0)] {
            assert_eq!(most_packets(0.02, true, packets), [most; 2], "{packets} with a queue");
        }
    }
}
