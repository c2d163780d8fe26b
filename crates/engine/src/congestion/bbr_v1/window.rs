//! Limits of the data in flight, also in recovery.

use ropewalk_base::Time;

use super::super::bbr::model::product;
use super::modes::Mode;
use super::{BbrV1, RateSample};
use crate::congestion::CongestionOptions;

/// `bbr_cwnd_min_target`, packets.
pub(super) const LEAST_WINDOW: u64 = 4;
/// `bbr_min_tso_rate`: rate from which at least two packets are sent together, bits per second.
const TWO_PACKETS_RATE: u64 = 1_200_000;
/// Part of a second whose data is sent together (`sk_pacing_shift`).
const QUANTUM_PER_SECOND: u64 = 1 << 10;
/// Maximum number of packets sent together.
const MOST_QUANTUM: u64 = 127;
/// Maximum number of bytes sent together (`GSO_MAX_SIZE`).
const MOST_QUANTUM_BYTES: u64 = 64 * 1024;
/// Window in packets until the first round-trip sample (`TCP_INIT_CWND`).
const INITIAL_WINDOW: u64 = 10;

/// The current recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recovery {
    None,
    /// The first round: one packet is sent for each delivered packet.
    Conserving,
    /// Later rounds.
    Growing,
    /// After a timeout, until data that was sent after it is delivered.
    Timeout {
        delivered: u64,
    },
}

impl BbrV1 {
    /// `bbr_bdp`: `gain` bandwidth-delay products at `bw` bits per second, packets.
    pub(super) fn bdp(&self, bw: u64, gain: f64) -> u64 {
        let Some(min_rtt) = self.min_rtt else { return INITIAL_WINDOW };
        let bits = bw as f64 * min_rtt.as_secs_f64() * gain;
        (bits / (8 * self.options.unit) as f64).ceil() as u64
    }

    /// `bbr_tso_segs_goal`: number of packets sent together.
    pub(super) fn quantum(&self) -> u64 {
        let bytes = (self.pacing_rate / 8 / QUANTUM_PER_SECOND).min(MOST_QUANTUM_BYTES);
        let least = if self.pacing_rate < TWO_PACKETS_RATE { 1 } else { 2 };
        (bytes / self.options.unit).clamp(least, MOST_QUANTUM)
    }

    /// `bbr_quantization_budget`, packets: three quanta for the ends, an even number for delayed acknowledgements, and
    /// room for a probe of a small bandwidth-delay product.
    pub(super) fn quantized(&self, packets: u64) -> u64 {
        let probes = matches!(self.mode, Mode::ProbeBw { phase: 0, .. });
        (packets + 3 * self.quantum()).next_multiple_of(2) + if probes { 2 } else { 0 }
    }

    /// `bbr_inflight`, bytes.
    pub(super) fn inflight(&self, gain: f64) -> u64 {
        self.quantized(self.bdp(self.max_bw.get(), gain)) * self.options.unit
    }

    /// `bbr_packets_in_net_at_edt`: bytes in flight when the next packet may be sent.
    pub(super) fn in_network(&self, now: Time, in_flight: u64) -> u64 {
        let delivered = product(self.bw(), self.departs_at.since(now));
        let next = if self.pacing_gain() > 1.0 { self.quantum() * self.options.unit } else { 0 };
        (in_flight + next).saturating_sub(delivered)
    }

    /// `bbr_save_cwnd`.
    pub(super) fn save_cwnd(&mut self) {
        let usual = self.recovery == Recovery::None && !matches!(self.mode, Mode::ProbeRtt { .. });
        self.prior_cwnd = if usual { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    /// `bbr_set_cwnd`.
    pub(super) fn set_cwnd(&mut self, acked: u64) {
        if acked > 0 {
            self.cwnd = self.next_cwnd(acked).min(CongestionOptions::UNLIMITED);
        }
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(LEAST_WINDOW * self.options.unit);
        }
    }

    /// The window after the acknowledgement of `acked` bytes.
    pub(super) fn next_cwnd(&self, acked: u64) -> u64 {
        let unit = self.options.unit;
        let cwnd = self.cwnd.saturating_sub(self.losses).max(unit);
        if self.recovery == Recovery::Conserving {
            return cwnd.max(self.in_flight + acked);
        }
        let bw = self.bw();
        let extra = if self.full_bw_reached { self.aggregation.extra(bw) / unit } else { 0 };
        let target = self.quantized(self.bdp(bw, self.cwnd_gain()) + extra) * unit;
        let cwnd = if self.full_bw_reached {
            (cwnd + acked).min(target)
        } else if cwnd < target || self.delivered < INITIAL_WINDOW * unit {
            cwnd + acked
        } else {
            cwnd
        };
        cwnd.max(LEAST_WINDOW * unit)
    }

    /// Ends a recovery whose losses are repaired, and restores the window.
    pub(super) fn update_recovery(&mut self, in_recovery: bool, sample: &RateSample) {
        let ends = match self.recovery {
            Recovery::None => false,
            Recovery::Conserving | Recovery::Growing => !in_recovery,
            Recovery::Timeout { delivered } => sample.prior_delivered >= delivered && !in_recovery,
        };
        if ends {
            self.recovery = Recovery::None;
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
    }
}
