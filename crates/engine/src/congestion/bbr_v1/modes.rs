//! The state machine: Startup, Drain, ProbeBW and ProbeRTT.

use ropewalk_base::{Duration, Time};

use super::window::LEAST_WINDOW;
use super::{BbrV1, RateSample};

/// `bbr_high_gain`: 2/ln 2, the minimum gain that doubles the rate each round.
pub(super) const HIGH_GAIN: f64 = 739.0 / 256.0;
/// `bbr_drain_gain`.
const DRAIN_GAIN: f64 = 88.0 / 256.0;
/// `bbr_cwnd_gain`.
const CWND_GAIN: f64 = 2.0;
/// `bbr_pacing_gain`: the phases of ProbeBW.
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
/// `bbr_cycle_rand`: number of phases among which the first one is chosen. The second phase is never
/// chosen.
const FIRST_PHASES: u64 = 7;
/// `bbr_min_rtt_win_sec`.
const MIN_RTT_LASTS: Duration = Duration::from_secs(10);
/// `bbr_probe_rtt_mode_ms`.
const PROBE_RTT_LASTS: Duration = Duration::from_millis(200);
/// `bbr_full_bw_thresh`: growth of the rate that shows that the path is not full.
const FULL_BW_GROWTH: f64 = 1.25;
/// `bbr_full_bw_cnt`: rounds without growth after which the path is full.
const FULL_BW_ROUNDS: u32 = 3;

/// State of the state machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BbrV1State {
    /// Doubles the rate each round until the path is full.
    Startup,
    /// Drains the queue of Startup.
    Drain,
    /// Probes for more bandwidth once in eight phases.
    ProbeBw,
    /// Reduces the data in flight to measure the minimum round trip.
    ProbeRtt,
}

/// Data that exists only in one state.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mode {
    Startup,
    Drain,
    ProbeBw {
        /// Index in [`CYCLE`].
        phase: usize,
        since: Time,
    },
    ProbeRtt {
        /// Earliest end, `None` before the data in flight is small enough.
        done: Option<Time>,
        /// Whether a round has passed since.
        round_done: bool,
    },
}

impl BbrV1 {
    pub(super) fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => HIGH_GAIN,
            Mode::Drain => DRAIN_GAIN,
            Mode::ProbeBw { phase, .. } if self.policer.rate().is_none() => CYCLE[phase],
            Mode::ProbeBw { .. } | Mode::ProbeRtt { .. } => 1.0,
        }
    }

    pub(super) const fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup | Mode::Drain => HIGH_GAIN,
            Mode::ProbeBw { .. } => CWND_GAIN,
            Mode::ProbeRtt { .. } => 1.0,
        }
    }

    /// `bbr_update_cycle_phase`.
    pub(super) fn update_phase(&mut self, now: Time, in_flight_before: u64) {
        let Mode::ProbeBw { phase, since } = self.mode else { return };
        let is_full_length = self.min_rtt.is_none_or(|least| now.since(since) > least);
        let gain = self.pacing_gain();
        let in_network = self.in_network(now, in_flight_before);
        let ends = if gain > 1.0 {
            is_full_length && (self.losses > 0 || in_network >= self.inflight(gain))
        } else if gain < 1.0 {
            is_full_length || in_network <= self.inflight(1.0)
        } else {
            is_full_length
        };
        if ends {
            self.mode = Mode::ProbeBw { phase: (phase + 1) % CYCLE.len(), since: now };
        }
    }

    /// `bbr_reset_probe_bw_mode`.
    pub(super) fn start_probe_bw(&mut self, now: Time) {
        let last = CYCLE.len() - 1 - self.rng.below(FIRST_PHASES) as usize;
        self.mode = Mode::ProbeBw { phase: (last + 1) % CYCLE.len(), since: now };
    }

    /// `bbr_check_full_bw_reached` and `bbr_check_drain`.
    pub(super) fn check_startup(&mut self, now: Time, sample: &RateSample) {
        if !self.full_bw_reached && self.rounds.start && !sample.app_limited {
            let max_bw = self.max_bw.get();
            if max_bw as f64 >= self.full_bw as f64 * FULL_BW_GROWTH {
                self.full_bw = max_bw;
                self.full_bw_count = 0;
            } else {
                self.full_bw_count += 1;
                self.full_bw_reached = self.full_bw_count >= FULL_BW_ROUNDS;
            }
        }
        if matches!(self.mode, Mode::Startup) && self.full_bw_reached {
            self.mode = Mode::Drain;
            self.ssthresh = self.inflight(1.0);
        }
        let drains = matches!(self.mode, Mode::Drain);
        if drains && self.in_network(now, self.in_flight) <= self.inflight(1.0) {
            self.start_probe_bw(now);
        }
    }

    /// `bbr_update_min_rtt`.
    pub(super) fn update_min_rtt(&mut self, now: Time, sample: &RateSample) {
        let expired = now > self.min_rtt_at + MIN_RTT_LASTS;
        if let Some(rtt) = sample.rtt
            && (expired || self.min_rtt.is_none_or(|least| rtt <= least))
        {
            self.min_rtt = Some(rtt);
            self.min_rtt_at = now;
        }
        if expired && !self.idle_restart && !matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.prior_cwnd = self.prior_cwnd.max(self.cwnd);
            self.mode = Mode::ProbeRtt { done: None, round_done: false };
        }
        if let Mode::ProbeRtt { done, round_done } = self.mode {
            // The delivery rate during the probe is not the rate of the path.
            self.app_limited_until = (self.delivered + self.in_flight).max(1);
            if done.is_some() {
                let round_done = round_done || self.rounds.start;
                self.mode = Mode::ProbeRtt { done, round_done };
                if round_done {
                    self.check_probe_rtt_done(now);
                }
            } else if self.in_flight <= LEAST_WINDOW * self.options.unit {
                let done = Some(now + PROBE_RTT_LASTS);
                self.mode = Mode::ProbeRtt { done, round_done: false };
                self.rounds.next_delivered = self.delivered;
            }
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// `bbr_check_probe_rtt_done`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        let Mode::ProbeRtt { done: Some(done), .. } = self.mode else { return };
        if now <= done {
            return;
        }
        self.min_rtt_at = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full_bw_reached {
            self.start_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }
}
