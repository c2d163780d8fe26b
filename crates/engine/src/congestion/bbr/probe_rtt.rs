//! ProbeRTT: measures the minimum round trip (draft-ietf-ccwg-bbr, 5.3.4).

use ropewalk_base::{Duration, Time};

use super::Bbr;
use super::probe_bw::AckPhase;
use super::state::{BbrState, RateSample};

/// `BBR.MinRTTFilterLen`.
pub(super) const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);
/// `BBR.ProbeRTTInterval`.
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
/// `BBR.ProbeRTTDuration`.
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);

/// When the minimum round trip is measured (draft, 2.15).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// `BBR.min_rtt_stamp`; none if any sample replaces the least round trip.
    min_rtt_stamp: Option<Time>,
    /// `BBR.probe_rtt_min_delay`; none before the first sample.
    min_delay: Option<Duration>,
    /// `BBR.probe_rtt_min_stamp`.
    min_stamp: Time,
    /// `BBR.probe_rtt_expired`.
    expired: bool,
    /// `BBR.probe_rtt_done_stamp`; none before the data in flight is small enough.
    done_stamp: Option<Time>,
    /// `BBR.probe_rtt_round_done`.
    round_done: bool,
}

impl ProbeRtt {
    /// Lets the next sample replace the least round trip: a handover may have made the path longer.
    pub const fn forget(&mut self) {
        (self.min_delay, self.min_rtt_stamp) = (None, None);
    }
}

impl Bbr {
    /// `UpdateMinRTT()`.
    pub(super) fn update_min_rtt(&mut self, now: Time, sample: &RateSample) {
        let probe = &mut self.probe_rtt;
        probe.expired = probe.min_delay.is_some() && now > probe.min_stamp + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (probe.expired || probe.min_delay.is_none_or(|least| rtt < least))
        {
            probe.min_delay = Some(rtt);
            probe.min_stamp = now;
        }
        let Some(delay) = probe.min_delay else { return };
        let expired = probe.min_rtt_stamp.is_none_or(|stamp| now > stamp + MIN_RTT_FILTER_LEN);
        if expired || self.model.min_rtt.is_none_or(|least| delay < least) {
            self.model.min_rtt = Some(delay);
            probe.min_rtt_stamp = Some(probe.min_stamp);
        }
    }

    /// `CheckProbeRTT()`.
    pub(super) fn check_probe_rtt(&mut self, now: Time, sample: &RateSample) {
        if self.state != BbrState::ProbeRtt && self.probe_rtt.expired && !self.idle_restart {
            self.start_probe_rtt();
            self.group.signals.drain = true;
        }
        if self.state == BbrState::ProbeRtt {
            self.handle_probe_rtt(now);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// `EnterProbeRTT()`.
    pub(super) fn start_probe_rtt(&mut self) {
        self.save_cwnd();
        self.state = BbrState::ProbeRtt;
        self.probe_rtt.done_stamp = None;
        self.probe_bw.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
    }

    /// `ProbeRTTCwnd()`.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(BbrState::ProbeRtt.cwnd_gain()).max(self.min_pipe_cwnd())
    }

    /// `HandleProbeRTT()`.
    fn handle_probe_rtt(&mut self, now: Time) {
        // The rate of this time is not that of the path: `MarkConnectionAppLimited()`.
        self.app_limited_until = (self.delivered + self.in_flight).max(1);
        if self.probe_rtt.done_stamp.is_none() {
            if self.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt.done_stamp = Some(now + PROBE_RTT_DURATION);
                self.probe_rtt.round_done = false;
                self.start_round();
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.start;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(now);
        }
    }

    /// `CheckProbeRTTDone()` and `ExitProbeRTT()`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt.done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt.min_stamp = now;
        self.restore_cwnd();
        self.model.reset_short_term();
        if self.full_bw.reached {
            self.start_probe_bw_down(now);
            self.start_probe_bw_cruise();
        } else {
            self.state = BbrState::Startup;
        }
    }
}
