//! BBR version 1 as in the Linux kernel (net/ipv4/tcp_bbr.c, 6.18).
//!
//! ```text
//!   Startup --> Drain --> ProbeBW: 5/4, 3/4, 1, 1, 1, 1, 1, 1 times the rate, a least round trip each
//!                            |  ^
//!        10 s without the    v  |  200 ms and a round with four packets
//!    least round trip      ProbeRTT
//! ```
//!
//! The rate is the maximum delivery rate of ten rounds, and the window is twice the rate times the
//! minimum round trip. Losses do not lower the rate. The kernel counts in packets; here a packet is the
//! unit of the window.
//!
//! Differences from the kernel: losses count at the next acknowledgement, because they are detected after
//! it was processed; timers have no granularity; a path that returns from failure starts again from one
//! packet.

mod aggregation;
mod modes;
mod policer;
#[cfg(test)]
mod tests;
mod window;

use ropewalk_base::{Duration, Rate, Rng, Time};

use self::aggregation::Aggregation;
pub use self::modes::BbrV1State;
use self::modes::{HIGH_GAIN, Mode};
use self::policer::{Policer, Totals};
use self::window::{LEAST_WINDOW, Recovery};
use super::bbr::sent_log::{PacketState, SentLog};
use super::bbr::state::{RateSample, Rounds};
use super::bbr::windowed_max::WindowedMax;
use super::{AckSample, CongestionOptions, LostPacket, PathCongestion, SentPacket};
use crate::path::Pace;

/// `bbr_pacing_margin_percent`, as the factor that remains.
const PACING_MARGIN: f64 = 0.99;
/// `bbr_bw_rtts`: rounds over which the maximum rate counts.
const BW_ROUNDS: u64 = 10;

/// BBR version 1 of one path.
#[derive(Clone, Debug)]
pub struct BbrV1 {
    options: CongestionOptions,
    rng: Rng,
    /// Window, bytes.
    cwnd: u64,
    /// Window before recovery or ProbeRTT, bytes (`prior_cwnd`).
    prior_cwnd: u64,
    ssthresh: u64,
    /// Bits per second.
    pacing_rate: u64,
    mode: Mode,
    recovery: Recovery,
    /// Bytes delivered, in flight, and lost so far.
    delivered: u64,
    in_flight: u64,
    lost: u64,
    /// Bytes lost since the last acknowledgement, and acknowledged by it.
    losses: u64,
    acked: u64,
    /// Packets sent before this was delivered are application-limited (`app_limited`).
    app_limited_until: u64,
    sent: SentLog,
    rounds: Rounds,
    max_bw: WindowedMax,
    min_rtt: Option<Duration>,
    /// When the minimum round trip was last measured.
    min_rtt_at: Time,
    full_bw: u64,
    full_bw_count: u32,
    full_bw_reached: bool,
    policer: Policer,
    aggregation: Aggregation,
    /// Whether nothing was in flight, and nothing has been acknowledged since.
    idle_restart: bool,
    has_paced_by_srtt: bool,
    /// When the pacing rate permits the next packet (`tcp_wstamp_ns`).
    departs_at: Time,
}

impl BbrV1 {
    /// Congestion control for a new path. The first phase of each cycle comes from `options.seed`.
    pub fn new(options: CongestionOptions) -> Self {
        let mut bbr = Self {
            options,
            rng: options.seed.rng(),
            cwnd: options.tcp_initial_window(),
            prior_cwnd: 0,
            ssthresh: CongestionOptions::UNLIMITED,
            pacing_rate: 0,
            mode: Mode::Startup,
            recovery: Recovery::None,
            delivered: 0,
            in_flight: 0,
            lost: 0,
            losses: 0,
            acked: 0,
            app_limited_until: 0,
            sent: SentLog::default(),
            rounds: Rounds::default(),
            max_bw: WindowedMax::default(),
            min_rtt: None,
            min_rtt_at: Time::ZERO,
            full_bw: 0,
            full_bw_count: 0,
            full_bw_reached: false,
            policer: Policer::new(),
            aggregation: Aggregation::default(),
            idle_restart: false,
            has_paced_by_srtt: false,
            departs_at: Time::ZERO,
        };
        bbr.init_pacing_rate(Duration::from_millis(1));
        bbr
    }

    /// Congestion control for new paths, each with its own stream of random numbers.
    pub(super) fn for_paths(options: CongestionOptions, paths: usize) -> Vec<Self> {
        let seed = |path: usize| options.seed.child(&format!("path/{path}"));
        (0..paths)
            .map(|path| Self::new(CongestionOptions { seed: seed(path), ..options }))
            .collect()
    }

    /// The state.
    pub const fn state(&self) -> BbrV1State {
        match self.mode {
            Mode::Startup => BbrV1State::Startup,
            Mode::Drain => BbrV1State::Drain,
            Mode::ProbeBw { .. } => BbrV1State::ProbeBw,
            Mode::ProbeRtt { .. } => BbrV1State::ProbeRtt,
        }
    }

    /// `bbr_max_bw`: the maximum delivery rate of the last ten rounds.
    pub fn max_bw(&self) -> Rate {
        Rate::from_bps(self.max_bw.get())
    }

    /// The minimum round trip of the last ten seconds, `None` before the first sample.
    pub const fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// `bbr_init_pacing_rate_from_rtt`.
    fn init_pacing_rate(&mut self, trip: Duration) {
        let trip = trip.as_nanos().max(1) as f64;
        self.pacing_rate = (HIGH_GAIN * PACING_MARGIN * self.cwnd as f64 * 8e9 / trip) as u64;
    }

    /// `bbr_bw`: the rate in use, bits per second.
    fn bw(&self) -> u64 {
        self.policer.rate().unwrap_or_else(|| self.max_bw.get())
    }

    /// `bbr_update_bw`.
    fn update_bw(&mut self, now: Time, sample: &RateSample) {
        self.rounds.start = false;
        if sample.delivery_rate == 0 {
            return;
        }
        if sample.prior_delivered >= self.rounds.next_delivered {
            self.rounds.next_delivered = self.delivered;
            self.rounds.count += 1;
            self.rounds.start = true;
            if self.recovery == Recovery::Conserving {
                self.recovery = Recovery::Growing;
            }
        }
        let totals = Totals {
            now,
            delivered: self.delivered,
            lost: self.lost,
            has_losses: self.losses > 0,
            app_limited: sample.app_limited,
            round_start: self.rounds.start,
        };
        if self.policer.on_ack(&totals, matches!(self.mode, Mode::ProbeBw { .. })) {
            self.start_probe_bw(now);
        }
        let rate = sample.delivery_rate;
        if !sample.app_limited || rate >= self.max_bw.get() {
            self.max_bw.update(self.rounds.count, rate, BW_ROUNDS);
        }
        if sample.newly_acked > 0 {
            let (start, bw) = (self.rounds.start, self.bw());
            self.aggregation.on_ack(now, sample.newly_acked, start, bw, self.cwnd);
        }
    }

    /// `bbr_set_pacing_rate`.
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = (gain * self.bw() as f64 * PACING_MARGIN) as u64;
        if self.full_bw_reached || rate > self.pacing_rate {
            // The kernel also permits a rate of 0, which disables pacing.
            self.pacing_rate = rate.max(1);
        }
    }
}

impl PathCongestion for BbrV1 {
    fn on_sent(&mut self, now: Time, packet: &SentPacket) {
        if packet.out_of_data {
            self.app_limited_until = (self.delivered + packet.in_flight_before).max(1);
        }
        let app_limited = self.delivered <= self.app_limited_until && self.app_limited_until > 0;
        if packet.in_flight_before == 0 && app_limited {
            self.idle_restart = true;
            self.aggregation.restart(now);
            if matches!(self.mode, Mode::ProbeBw { .. }) {
                self.set_pacing_rate(1.0);
            }
            self.check_probe_rtt_done(now);
        }
        let tx_in_flight = packet.in_flight_before + packet.bytes;
        self.in_flight = tx_in_flight;
        // The packets of a quantum are sent together, and the next ones after the time that these take.
        let nanos = 8e9 / self.pacing_rate as f64;
        let lasts = |bytes: u64| Duration::from_nanos((bytes as f64 * nanos) as u64);
        let latest = now + lasts(self.quantum() * self.options.unit);
        self.departs_at = (self.departs_at.max(now) + lasts(packet.bytes)).min(latest);
        self.sent.push(packet.number, PacketState { tx_in_flight, lost: self.lost, app_limited });
    }

    fn on_ack(&mut self, now: Time, ack: &AckSample) {
        if let Some(srtt) = ack.srtt.filter(|_| !self.has_paced_by_srtt) {
            self.has_paced_by_srtt = true;
            self.init_pacing_rate(srtt);
            // `bbr_init`: the minimum round trip includes that of the handshake.
            self.min_rtt = ack.least_rtt;
            self.min_rtt_at = now;
        }
        self.delivered = ack.delivery.delivered;
        self.in_flight = ack.delivery.in_flight;
        self.acked = ack.acked_bytes;
        let packet = ack.delivery.newest.and_then(|number| self.sent.get(number));
        let packet = packet.unwrap_or(PacketState {
            tx_in_flight: ack.in_flight_before,
            lost: self.lost,
            app_limited: ack.app_limited,
        });
        let sample = RateSample::new(ack, packet, self.lost, self.min_rtt);
        self.update_bw(now, &sample);
        self.update_phase(now, ack.in_flight_before);
        self.check_startup(now, &sample);
        self.update_min_rtt(now, &sample);
        self.set_pacing_rate(self.pacing_gain());
        self.update_recovery(ack.in_recovery, &sample);
        self.set_cwnd(ack.acked_bytes);
        self.losses = 0;
        self.sent.forget_before(ack.delivery.oldest);
    }

    fn on_lost(&mut self, _now: Time, packet: &LostPacket) {
        self.lost += packet.bytes;
        self.losses += packet.bytes;
        self.in_flight = self.in_flight.saturating_sub(packet.bytes);
    }

    /// Fast recovery begins: in its first round, one packet is sent for each delivered packet.
    fn on_loss(&mut self, _now: Time) {
        self.save_cwnd();
        self.recovery = Recovery::Conserving;
        self.rounds.next_delivered = self.delivered;
        self.cwnd = (self.in_flight + self.acked).max(self.options.unit);
        self.losses = 0;
        if matches!(self.mode, Mode::ProbeRtt { .. }) {
            self.cwnd = self.cwnd.min(LEAST_WINDOW * self.options.unit);
        }
    }

    fn on_timeout(&mut self, now: Time) {
        self.save_cwnd();
        self.recovery = Recovery::Timeout { delivered: self.delivered };
        self.cwnd = self.in_flight + self.options.unit;
        // `bbr_set_state`: a timeout ends a round.
        self.full_bw = 0;
        let totals = Totals {
            now,
            delivered: self.delivered,
            lost: self.lost,
            has_losses: true,
            app_limited: false,
            round_start: true,
        };
        if self.policer.on_ack(&totals, matches!(self.mode, Mode::ProbeBw { .. })) {
            self.start_probe_bw(now);
        }
        self.losses = 0;
    }

    /// `bbr_undo_cwnd`.
    fn on_spurious(&mut self, _now: Time) {
        self.full_bw = 0;
        self.full_bw_count = 0;
        self.policer.reset();
        if std::mem::replace(&mut self.recovery, Recovery::None) != Recovery::None {
            self.cwnd = self.cwnd.max(self.prior_cwnd);
        }
    }

    /// Marks have no effect on version 1.
    fn on_ecn(&mut self, _now: Time) {}

    fn on_return(&mut self, _now: Time) {
        self.recovery = Recovery::None;
        self.cwnd = self.options.unit;
        self.prior_cwnd = 0;
    }

    fn limit(&mut self, most: u64) {
        self.cwnd = self.cwnd.min(most).max(self.options.unit);
    }

    fn set_unit(&mut self, unit: u64) {
        self.options.unit = unit;
        self.cwnd = self.cwnd.max(unit);
    }

    fn window(&self) -> u64 {
        self.cwnd
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }

    /// The kernel sends `quantum` packets and then waits for the time that they take. The pacer waits for
    /// half of the burst.
    fn pace(&self) -> Option<Pace> {
        let burst = 2 * self.quantum() * self.options.unit;
        Some(Pace { rate: Rate::from_bps(self.pacing_rate), burst })
    }
}
