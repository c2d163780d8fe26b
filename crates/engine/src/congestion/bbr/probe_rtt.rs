//! ProbeRTT: measures the minimum round trip (draft-ietf-ccwg-bbr, 5.3.4).
//!
//! An addition to the draft: with `brief_probe_rtt`, the probe is brief if the round trip came close to
//! the minimum while the sender had no queue on the path, because then other flows have no queue either.
//! A full probe keeps half of the data in flight for 200 ms in every 5 s. This costs a path 2 % of its
//! rate, and data that the path cannot carry during the probe waits for other paths. A brief probe keeps
//! a tenth less in flight for one round. If the minimum is right, there is no queue to drain. The probe
//! becomes a full one if the round trip falls below the minimum, because the minimum contained the path's
//! own queue, or if it stays above the minimum, because other flows have a queue. Every twelfth probe is
//! a full one in any case.

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
/// Data in flight during a brief probe, as a multiple of the bandwidth-delay product.
const BRIEF_CWND_GAIN: f64 = 0.9;
/// A round trip is close to the minimum if it exceeds it by at most this part.
const CLOSE: f64 = 1.0 / 8.0;
/// Rounds after a drain in which the round trip may come close to the minimum.
const ROUNDS_AFTER_DRAIN: u8 = 3;
/// A minimum that falls by more than this part during a brief probe contained a queue.
const FALL: f64 = 1.0 / 32.0;
/// Maximum number of successive brief probes: a minute of them.
const MOST_BRIEF_PROBES: u8 = 11;

/// Round trips observed while the sender has no queue on the path: after `ProbeBW_DOWN` has drained the
/// queue of a probe, and in each round of an application that has never filled the path.
///
/// If other flows have no queue either, they are close to the minimum.
#[derive(Clone, Copy, Debug, Default)]
struct Drains {
    /// Observations since the last probe of the round trip.
    count: u8,
    /// Observations in which a round trip was close to the minimum.
    close: u8,
    /// Remaining rounds of the current observation.
    rounds_left: u8,
    /// Whether a round trip was close in the current observation, and in the last one.
    is_close: bool,
    was_close: bool,
}

impl Drains {
    /// Starts an observation of this many rounds.
    const fn observe(&mut self, rounds: u8) {
        (self.rounds_left, self.is_close) = (rounds, false);
    }

    /// Records a round trip. `starts_round`: whether it is the first of a round.
    fn update(&mut self, starts_round: bool, rtt: Option<Duration>, least: Option<Duration>) {
        if self.rounds_left == 0 {
            return;
        }
        let limit = least.map(|least| least.mul_f64(1.0 + CLOSE));
        self.is_close |= rtt.zip(limit).is_some_and(|(rtt, limit)| rtt <= limit);
        self.rounds_left -= u8::from(starts_round);
        if self.rounds_left == 0 {
            self.was_close = self.is_close;
            if self.count < u8::MAX {
                self.count += 1;
                self.close += u8::from(self.is_close);
            }
        }
    }

    /// Ends the current observation, and resets everything except the result of the last one.
    const fn restart(&mut self) {
        (self.count, self.close, self.rounds_left) = (0, 0, 0);
    }

    /// Whether the path is probably not shared with other flows.
    const fn are_close(&self) -> bool {
        if self.count == 0 { self.was_close } else { self.close >= self.count - self.count / 4 }
    }
}

/// When the minimum round trip is measured (draft, 2.15).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// `BBR.min_rtt_stamp`. `None`: any sample replaces the minimum round trip.
    min_rtt_stamp: Option<Time>,
    /// `BBR.probe_rtt_min_delay`, `None` before the first sample.
    min_delay: Option<Duration>,
    /// `BBR.probe_rtt_min_stamp`.
    min_stamp: Time,
    /// `BBR.probe_rtt_expired`.
    expired: bool,
    /// `BBR.probe_rtt_done_stamp`, `None` before the data in flight is small enough.
    done_stamp: Option<Time>,
    /// `BBR.probe_rtt_round_done`.
    round_done: bool,
    /// Brief probes since the last full one.
    brief_probes: u8,
    drains: Drains,
    /// The minimum before this probe, if the probe is brief; otherwise zero.
    before_brief: Duration,
}

impl ProbeRtt {
    /// Lets the next sample replace the minimum round trip: a handover may have made the path longer.
    pub fn forget(&mut self) {
        (self.min_delay, self.min_rtt_stamp) = (None, None);
        self.drains = Drains::default();
    }

    /// Starts observing the round trips after `ProbeBW_DOWN`.
    pub const fn on_drained(&mut self) {
        self.drains.observe(ROUNDS_AFTER_DRAIN);
    }

    /// Whether a brief probe suffices.
    const fn is_brief_enough(&self) -> bool {
        self.drains.are_close() && self.brief_probes < MOST_BRIEF_PROBES
    }

    const fn is_brief(&self) -> bool {
        !self.before_brief.is_zero()
    }

    /// Whether the minimum has fallen since a brief probe began.
    fn has_fallen(&self) -> bool {
        self.min_delay.is_some_and(|delay| delay < self.before_brief.mul_f64(1.0 - FALL))
    }

    /// Whether the round trip stayed above the minimum during a brief probe, so that other flows have a
    /// queue on the path.
    fn has_risen(&self) -> bool {
        self.is_brief()
            && self.min_delay.is_some_and(|delay| delay > self.before_brief.mul_f64(1.0 + CLOSE))
    }

    /// Continues with a full probe.
    const fn prolong(&mut self) {
        (self.before_brief, self.done_stamp) = (Duration::ZERO, None);
    }
}

impl Bbr {
    /// `UpdateMinRTT()`.
    pub(super) fn update_min_rtt(&mut self, now: Time, sample: &RateSample) {
        let probe = &mut self.probe_rtt;
        probe.drains.update(self.rounds.start, sample.rtt, self.model.min_rtt);
        if self.rounds.start && self.state == BbrState::Startup {
            probe.drains.observe(1);
        }
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
        let is_brief = self.options.brief_probe_rtt && self.probe_rtt.is_brief_enough();
        let before_brief = self.model.min_rtt.filter(|_| is_brief);
        self.probe_rtt.before_brief = before_brief.unwrap_or_default();
        self.probe_rtt.drains.restart();
        self.probe_bw.ack_phase = AckPhase::ProbeStopping;
        self.start_round();
    }

    /// `BBR.cwnd_gain`.
    pub(super) const fn cwnd_gain(&self) -> f64 {
        match self.state {
            BbrState::ProbeRtt if self.probe_rtt.is_brief() => BRIEF_CWND_GAIN,
            state => state.cwnd_gain(),
        }
    }

    /// `ProbeRTTCwnd()`.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.bdp_multiple(self.cwnd_gain()).max(self.min_pipe_cwnd())
    }

    /// `HandleProbeRTT()`.
    fn handle_probe_rtt(&mut self, now: Time) {
        // The delivery rate during the probe is not the rate of the path: `MarkConnectionAppLimited()`.
        self.app_limited_until = (self.delivered + self.in_flight).max(1);
        if self.probe_rtt.has_fallen() {
            self.probe_rtt.prolong();
        }
        if self.probe_rtt.done_stamp.is_none() {
            if self.in_flight <= self.probe_rtt_cwnd() {
                let is_brief = self.probe_rtt.is_brief();
                let duration = if is_brief { Duration::ZERO } else { PROBE_RTT_DURATION };
                self.probe_rtt.done_stamp = Some(now + duration);
                self.probe_rtt.round_done = false;
                self.start_round();
            }
            return;
        }
        self.probe_rtt.round_done |= self.rounds.start;
        if self.probe_rtt.round_done && self.probe_rtt.has_risen() {
            self.probe_rtt.prolong();
        } else if self.probe_rtt.round_done {
            self.check_probe_rtt_done(now);
        }
    }

    /// `CheckProbeRTTDone()` and `ExitProbeRTT()`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time) {
        if self.probe_rtt.done_stamp.is_none_or(|done| now <= done) {
            return;
        }
        self.probe_rtt.min_stamp = now;
        let brief_probes = self.probe_rtt.brief_probes + 1;
        self.probe_rtt.brief_probes = if self.probe_rtt.is_brief() { brief_probes } else { 0 };
        self.probe_rtt.before_brief = Duration::ZERO;
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
