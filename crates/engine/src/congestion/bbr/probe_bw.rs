//! ProbeBW: the cycle that probes for bandwidth (draft-ietf-ccwg-bbr, 5.3.3).

use ropewalk_base::{Duration, Time};

use super::state::{BbrState, RateSample};
use super::{BETA, Bbr, INFINITY};

/// Maximum number of rounds between two probes, for flows that share a bottleneck with Reno (5.3.3.5.2).
const MOST_RENO_ROUNDS: u64 = 63;
/// Maximum exponent of the growth of `inflight_longterm`.
const MOST_UP_ROUNDS: u32 = 30;

/// Relation of arriving acknowledgements to a probe (`BBR.ack_phase`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum AckPhase {
    /// `ACKS_INIT`: none.
    #[default]
    Init,
    /// `ACKS_REFILLING`: the path is being filled.
    Refilling,
    /// `ACKS_PROBE_STARTING`: data in flight increases.
    ProbeStarting,
    /// `ACKS_PROBE_FEEDBACK`: they report on the probe.
    ProbeFeedback,
    /// `ACKS_PROBE_STOPPING`: the probe has ended, but they still report on it.
    ProbeStopping,
}

/// State of the cycle (draft, 2.13).
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeBw {
    pub ack_phase: AckPhase,
    /// `BBR.is_bw_probe_sample`.
    pub is_bw_probe_sample: bool,
    /// `BBR.bw_probe_up_acked`, bytes.
    up_acked: u64,
    /// `BBR.probe_up_acked_per_inc`, bytes.
    up_acked_per_inc: u64,
    /// `BBR.bw_probe_up_rounds`.
    up_rounds: u32,
    /// `BBR.rounds_since_probe_up`.
    pub rounds_since_probe_up: u64,
    /// `BBR.bw_probe_wait`.
    wait: Duration,
    /// `BBR.cycle_stamp`.
    cycle_stamp: Time,
    /// `BBR.prev_probe_too_high`.
    prev_too_high: bool,
    /// `BBR.prev_probe_precautionary`.
    prev_precautionary: bool,
}

impl Default for ProbeBw {
    fn default() -> Self {
        Self {
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            up_acked: 0,
            up_acked_per_inc: INFINITY,
            up_rounds: 0,
            rounds_since_probe_up: 0,
            wait: Duration::ZERO,
            cycle_stamp: Time::ZERO,
            prev_too_high: false,
            prev_precautionary: false,
        }
    }
}

impl Bbr {
    /// `StartProbeBW_DOWN()`.
    pub(super) fn start_probe_bw_down(&mut self, now: Time) {
        self.latest.reset();
        self.probe_bw.up_acked_per_inc = INFINITY;
        self.pick_probe_wait();
        self.probe_bw.cycle_stamp = now;
        self.probe_bw.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = BbrState::ProbeBwDown;
    }

    /// `PickProbeWait()`: 0 or 1 rounds, and 2 to 3 s.
    fn pick_probe_wait(&mut self) {
        self.probe_bw.rounds_since_probe_up = self.rng.below(2);
        let more = self.rng.below(1_000_000_000);
        self.probe_bw.wait = Duration::from_nanos(2_000_000_000 + more);
    }

    /// `StartProbeBW_CRUISE()`.
    pub(super) const fn start_probe_bw_cruise(&mut self) {
        self.state = BbrState::ProbeBwCruise;
    }

    /// `StartProbeBW_REFILL()`.
    pub(super) fn start_probe_bw_refill(&mut self) {
        self.model.reset_short_term();
        self.probe_bw.up_rounds = 0;
        self.probe_bw.up_acked = 0;
        self.probe_bw.prev_precautionary = false;
        self.probe_bw.ack_phase = AckPhase::Refilling;
        self.start_round();
        self.state = BbrState::ProbeBwRefill;
    }

    /// `StartProbeBW_UP()`.
    fn start_probe_bw_up(&mut self, sample: &RateSample) {
        self.probe_bw.ack_phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_bw.reset(sample.delivery_rate);
        self.state = BbrState::ProbeBwUp;
        self.raise_inflight_longterm_slope();
    }

    /// `UpdateProbeBWCyclePhase()`.
    pub(super) fn update_probe_bw_cycle_phase(&mut self, now: Time, sample: &RateSample) {
        if !self.full_bw.reached || self.adapt_long_term_model(sample) {
            return;
        }
        match self.state {
            BbrState::ProbeBwDown | BbrState::ProbeBwCruise if self.is_time_to_probe_bw(now) => {
                self.lead_probe();
                self.start_probe_bw_refill();
            }
            BbrState::ProbeBwDown if self.is_time_to_cruise() => {
                self.probe_rtt.on_drained();
                self.start_probe_bw_cruise();
            }
            BbrState::ProbeBwRefill if self.rounds.start => {
                self.probe_bw.is_bw_probe_sample = true;
                self.start_probe_bw_up(sample);
            }
            BbrState::ProbeBwUp => self.go_down_if_it_is_time(now, sample),
            _ => {}
        }
    }

    fn go_down_if_it_is_time(&mut self, now: Time, sample: &RateSample) {
        if self.is_time_to_go_down(sample) {
            self.probe_bw.prev_too_high = false;
            self.start_probe_bw_down(now);
        }
    }

    /// `IsTimeToCruise()`.
    fn is_time_to_cruise(&self) -> bool {
        self.in_flight <= self.inflight_with_headroom()
            && self.in_flight <= self.quantization_budget(self.model.max_bdp())
    }

    /// `IsTimeToGoDown()`.
    fn is_time_to_go_down(&mut self, sample: &RateSample) -> bool {
        let longterm = self.model.bounds.inflight_longterm;
        if self.probe_bw.prev_too_high && self.in_flight >= longterm {
            self.probe_bw.prev_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= longterm {
            self.full_bw.reset(sample.delivery_rate);
            return false;
        }
        self.full_bw.now
    }

    /// `IsTimeToProbeBW()`.
    fn is_time_to_probe_bw(&self, now: Time) -> bool {
        now > self.probe_bw.cycle_stamp + self.probe_bw.wait
            || self.is_reno_coexistence_probe_time()
    }

    /// `IsRenoCoexistenceProbeTime()`: as many rounds as Reno would need to lose a packet.
    fn is_reno_coexistence_probe_time(&self) -> bool {
        let packets = self.target_inflight() / self.options.unit;
        self.probe_bw.rounds_since_probe_up >= packets.min(MOST_RENO_ROUNDS)
    }

    /// `TargetInflight()`.
    fn target_inflight(&self) -> u64 {
        self.model.bdp().min(self.cwnd)
    }

    /// `RaiseInflightLongtermSlope()`.
    fn raise_inflight_longterm_slope(&mut self) {
        let growth = 1_u64 << self.probe_bw.up_rounds;
        self.probe_bw.up_rounds = (self.probe_bw.up_rounds + 1).min(MOST_UP_ROUNDS);
        self.probe_bw.up_acked_per_inc = (self.cwnd / growth).max(self.options.unit);
    }

    /// `ProbeInflightLongtermUpward()`.
    fn probe_inflight_longterm_upward(&mut self, sample: &RateSample) {
        if !self.is_cwnd_limited() || self.cwnd < self.model.bounds.inflight_longterm {
            return;
        }
        let probe = &mut self.probe_bw;
        probe.up_acked += sample.newly_acked;
        let steps = probe.up_acked / probe.up_acked_per_inc;
        probe.up_acked -= steps * probe.up_acked_per_inc;
        self.model.bounds.inflight_longterm += steps * self.options.unit;
        if self.rounds.start {
            self.raise_inflight_longterm_slope();
        }
    }

    /// `AdaptLongTermModel()`. Returns whether it has changed the state.
    fn adapt_long_term_model(&mut self, sample: &RateSample) -> bool {
        if self.probe_bw.ack_phase == AckPhase::ProbeStarting && self.rounds.start {
            self.probe_bw.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.probe_bw.ack_phase == AckPhase::ProbeStopping && self.rounds.start {
            self.probe_bw.is_bw_probe_sample = false;
            self.probe_bw.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !sample.app_limited {
                self.model.advance_max_bw_filter();
            }
            if self.state.is_probe_bw()
                && self.probe_bw.prev_precautionary
                && !self.probe_bw.prev_too_high
            {
                self.start_probe_bw_refill();
                return true;
            }
        }
        if self.is_inflight_too_high(sample) || self.model.bounds.inflight_longterm == INFINITY {
            return false;
        }
        let longterm = &mut self.model.bounds.inflight_longterm;
        *longterm = (*longterm).max(sample.tx_in_flight);
        if self.state == BbrState::ProbeBwUp {
            self.probe_inflight_longterm_upward(sample);
        }
        false
    }

    /// `HandleInflightTooHigh()`.
    pub(super) fn handle_inflight_too_high(
        &mut self,
        now: Time,
        tx_in_flight: u64,
        app_limited: bool,
    ) {
        self.probe_bw.prev_too_high = true;
        self.probe_bw.is_bw_probe_sample = false;
        self.group.signals.too_high = true;
        if !app_limited {
            let least = (self.target_inflight() as f64 * BETA) as u64;
            self.model.bounds.inflight_longterm = tx_in_flight.max(least);
        }
        if self.state == BbrState::ProbeBwUp {
            self.undo.state = Some(BbrState::ProbeBwUp);
            self.start_probe_bw_down(now);
        }
    }
}
