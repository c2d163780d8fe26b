//! The response to losses, and its undo (draft-ietf-ccwg-bbr, 5.5.10, 5.5.11 and 5.6.4.4).

use ropewalk_base::Time;

use super::model::Bounds;
use super::sent_log::PacketState;
use super::state::{BbrState, RateSample, is_inflight_too_high};
use super::{Bbr, LOSS_THRESH};

/// What a spurious recovery restores (draft, 5.5.11).
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// `BBR.undo_state`: the state that the losses ended.
    pub state: Option<BbrState>,
    pub bounds: Bounds,
}

/// The recovery that the connection is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recovery {
    None,
    Fast,
    /// After a timeout, until data that was sent after it is delivered.
    Timeout {
        delivered: u64,
    },
}

impl Bbr {
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
        if is_inflight_too_high(lost, tx_in_flight) {
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
