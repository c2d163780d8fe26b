//! BBR version 3 (draft-ietf-ccwg-bbr). Fields and methods have the names of the draft, in Rust style.
//!
//! The draft's "packet" is a transmission of a chunk (SCTP) or a segment (TCP). Its bytes are those that
//! the congestion window counts. Additions to the draft: ECN marks bound the data in flight; a path that
//! returns from failure starts again from one packet; packets sent on a full path are not
//! application-limited; `limit` reduces the window for the window managers; and Startup waits for a
//! round-trip sample, which retransmissions do not give.

mod group;
mod loss;
pub(super) mod model;
mod probe_bw;
mod probe_rtt;
pub(super) mod sent_log;
pub(super) mod state;
#[cfg(test)]
mod tests;
pub(super) mod windowed_max;

use ropewalk_base::{Duration, Rate, Rng, Time};

use self::group::Group;
use self::loss::{Recovery, Undo};
use self::model::{Bounds, Latest, Model};
use self::probe_bw::ProbeBw;
use self::probe_rtt::{MIN_RTT_FILTER_LEN, ProbeRtt};
use self::sent_log::{PacketState, SentLog};
pub use self::state::BbrState;
use self::state::{FullBw, RateSample, Rounds};
use super::{
    AckSample, BottleneckCoupling, CongestionOptions, Disturbance, LostPacket, PathCongestion,
    SentPacket, Signals,
};
use crate::path::Pace;

/// `BBR.Beta`: factor of the short-term bounds after a round with losses.
const BETA: f64 = 0.7;
/// Factor of the window after a mark (RFC 8511).
const ECN_BETA: f64 = 0.85;
/// `BBR.Headroom`: part of `inflight_longterm` that is left to other flows.
const HEADROOM: f64 = 0.15;
/// `BBR.PacingMarginPercent`, as the factor that remains.
const PACING_MARGIN: f64 = 0.99;
/// `BBRStartupFullLossCnt`: separate losses in a round that end Startup.
const STARTUP_FULL_LOSS_COUNT: u32 = 6;
/// Rounds after which Drain ends in any case.
const DRAIN_ROUNDS: u64 = 3;
/// Maximum of `C.send_quantum`, bytes.
const MOST_QUANTUM: u64 = 64 * 1024;
/// Maximum window of a path that does not use its window, as a multiple of the maximum data in flight in
/// a round. More than `BBR.cwnd_gain`, so that the bound has no effect on a full path.
const UNUSED_GAIN: u64 = 3;
/// A bound that is not set.
const INFINITY: u64 = u64::MAX;

/// BBR congestion control of one path.
#[derive(Clone, Debug)]
pub struct Bbr {
    options: PathOptions,
    rng: Rng,
    /// `C.cwnd`, bytes.
    cwnd: u64,
    /// `BBR.prior_cwnd`, bytes.
    prior_cwnd: u64,
    /// `C.pacing_rate`, bits per second.
    pacing_rate: u64,
    /// `C.send_quantum`, bytes.
    send_quantum: u64,
    state: BbrState,
    /// `C.delivered`, bytes.
    delivered: u64,
    /// `C.inflight`, bytes.
    in_flight: u64,
    /// `C.lost`, bytes.
    lost: u64,
    /// `C.app_limited`: packets sent before this was delivered are application-limited.
    app_limited_until: u64,
    sent: SentLog,
    rounds: Rounds,
    full_bw: FullBw,
    model: Model,
    latest: Latest,
    probe_bw: ProbeBw,
    probe_rtt: ProbeRtt,
    /// `BBR.drain_start_round`.
    drain_start_round: u64,
    /// `BBR.idle_restart`.
    idle_restart: bool,
    /// Whether the initial pacing rate was computed from a round trip.
    has_paced_by_srtt: bool,
    /// When data was last acknowledged.
    acked_at: Time,
    undo: Undo,
    recovery: Recovery,
    /// Whether the window was full in the last round, and in this one (`C.is_cwnd_limited`).
    cwnd_limited: [bool; 2],
    /// Maximum data in flight in the last round and in this one, bytes.
    most_in_flight: [u64; 2],
    /// Number of non-consecutive losses in this round, and the packet number after the last lost one.
    separate_losses: u32,
    after_last_lost: u64,
    /// The last measured round trip, zero before the first.
    last_rtt: Duration,
    group: Group,
}

/// The options that a path needs. Each path has its own copy, so they are few.
#[derive(Clone, Copy, Debug)]
struct PathOptions {
    /// Length of a packet, bytes.
    unit: u64,
    /// Initial window, bytes. `None`: that of RFC 6928.
    initial_window: Option<u32>,
    tolerated_loss_permille: u8,
    brief_probe_rtt: bool,
}

impl PathOptions {
    fn of(options: &CongestionOptions) -> Self {
        let bytes = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self {
            unit: options.unit,
            initial_window: options.initial_window.map(bytes),
            tolerated_loss_permille: options.variants.tolerated_loss_permille,
            // The detector of shared bottlenecks relies on the effect of full probes on queues.
            brief_probe_rtt: options.variants.brief_probe_rtt
                && options.variants.coupling == BottleneckCoupling::None,
        }
    }

    fn initial_window(&self) -> u64 {
        let initial_window = self.initial_window.map(u64::from);
        CongestionOptions { initial_window, ..CongestionOptions::tcp(self.unit) }
            .tcp_initial_window()
    }
}

impl Bbr {
    /// Congestion control for a new path. Its random waits come from `options.seed`.
    pub fn new(options: CongestionOptions) -> Self {
        Self::with(PathOptions::of(&options), options.seed.rng())
    }

    fn with(options: PathOptions, rng: Rng) -> Self {
        let mut bbr = Self {
            options,
            rng,
            cwnd: options.initial_window(),
            prior_cwnd: 0,
            pacing_rate: 0,
            send_quantum: 2 * options.unit,
            state: BbrState::Startup,
            delivered: 0,
            in_flight: 0,
            lost: 0,
            app_limited_until: 0,
            sent: SentLog::default(),
            rounds: Rounds::default(),
            full_bw: FullBw::default(),
            model: Model::default(),
            latest: Latest::default(),
            probe_bw: ProbeBw::default(),
            probe_rtt: ProbeRtt::default(),
            drain_start_round: 0,
            idle_restart: false,
            has_paced_by_srtt: false,
            acked_at: Time::ZERO,
            undo: Undo { state: None, bounds: Bounds::default() },
            recovery: Recovery::None,
            cwnd_limited: [false; 2],
            most_in_flight: [0; 2],
            separate_losses: 0,
            after_last_lost: u64::MAX,
            last_rtt: Duration::ZERO,
            group: Group::default(),
        };
        bbr.init_pacing_rate(None);
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
    pub const fn state(&self) -> BbrState {
        self.state
    }

    /// `BBR.max_bw`: maximum delivery rate of the last two cycles of probing.
    pub fn max_bw(&self) -> Rate {
        Rate::from_bps(self.model.max_bw())
    }

    /// `BBR.min_rtt`, `None` before the first sample.
    pub const fn min_rtt(&self) -> Option<Duration> {
        self.model.min_rtt
    }

    /// `InitPacingRate()`.
    fn init_pacing_rate(&mut self, srtt: Option<Duration>) {
        let trip = srtt.unwrap_or(Duration::from_millis(1)).max(Duration::from_nanos(1));
        let nominal = self.options.initial_window() as f64 * 8e9 / trip.as_nanos() as f64;
        self.pacing_rate = (BbrState::Startup.pacing_gain() * nominal) as u64;
    }

    /// `BBR.MinPipeCwnd`.
    const fn min_pipe_cwnd(&self) -> u64 {
        4 * self.options.unit
    }

    /// `C.is_cwnd_limited`.
    const fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited[0] || self.cwnd_limited[1]
    }

    /// `StartRound()`.
    const fn start_round(&mut self) {
        self.rounds.next_delivered = self.delivered;
    }

    /// `UpdateRound()`.
    fn update_round(&mut self, sample: &RateSample) {
        self.rounds.start = sample.prior_delivered >= self.rounds.next_delivered;
        if self.rounds.start {
            self.start_round();
            self.rounds.count += 1;
            self.probe_bw.rounds_since_probe_up += 1;
            self.cwnd_limited = [self.cwnd_limited[1], false];
            self.most_in_flight = [self.most_in_flight[1], 0];
        }
    }

    /// `GenerateRateSample()`.
    fn rate_sample(&mut self, sample: &AckSample) -> RateSample {
        let delivery = &sample.delivery;
        let packet =
            delivery.newest.and_then(|number| self.sent.get(number)).unwrap_or(PacketState {
                tx_in_flight: sample.in_flight_before,
                lost: self.lost,
                app_limited: sample.app_limited,
            });
        RateSample::new(sample, packet, self.lost, self.model.min_rtt)
    }

    /// `UpdateModelAndState()`.
    fn update_model_and_state(&mut self, now: Time, sample: &RateSample) {
        self.latest.update(sample, self.delivered);
        self.update_round(sample);
        self.last_rtt = sample.rtt.unwrap_or(self.last_rtt);
        self.model.update_max_bw(sample);
        self.update_congestion_signals(sample);
        self.model.update_ack_aggregation(
            now,
            sample,
            self.cwnd,
            self.full_bw.reached,
            self.rounds.count,
        );
        // Without a round trip, while only retransmissions are acknowledged, the window does not follow
        // the rate.
        if self.model.min_rtt.is_some() {
            self.full_bw.check(self.rounds.start, sample);
        }
        self.check_startup_done(sample);
        self.check_drain_done(now);
        self.update_probe_bw_cycle_phase(now, sample);
        self.update_min_rtt(now, sample);
        self.check_probe_rtt(now, sample);
        if self.latest.loss_round_start {
            self.latest.advance(sample);
            self.separate_losses = 0;
        }
        self.model.bound_bw();
    }

    /// `UpdateCongestionSignals()`, after the bandwidth was updated: once per round, adapts the short-term bounds.
    fn update_congestion_signals(&mut self, sample: &RateSample) {
        if !self.latest.loss_round_start {
            return;
        }
        let lost = self.lost - std::mem::replace(&mut self.latest.lost_before_round, self.lost);
        let tolerated = self.loss_limit().of_round(lost + sample.delivered);
        let own = self.latest.is_loss_in_round && lost as f64 >= tolerated;
        let shared = std::mem::take(&mut self.group.has_lost);
        if (own || shared) && !self.state.is_probing() {
            self.model.lower_bounds(&self.latest, self.cwnd);
            self.group.signals.loss |= own;
        }
        self.latest.is_loss_in_round = false;
    }

    /// `CheckStartupDone()`.
    fn check_startup_done(&mut self, sample: &RateSample) {
        if self.state != BbrState::Startup {
            return;
        }
        if !self.full_bw.reached && self.has_startup_high_loss(sample) {
            self.undo.state = Some(BbrState::Startup);
            self.full_bw.reached = true;
            self.model.bounds.inflight_longterm = self.model.bdp().max(self.latest.inflight);
        }
        if self.full_bw.reached {
            self.state = BbrState::Drain;
            self.drain_start_round = self.rounds.count;
        }
    }

    /// `CheckStartupHighLoss()`.
    fn has_startup_high_loss(&self, sample: &RateSample) -> bool {
        self.latest.loss_round_start
            && self.recovery == Recovery::Fast
            && self.separate_losses >= STARTUP_FULL_LOSS_COUNT
            && self.is_inflight_too_high(sample)
    }

    /// `CheckDrainDone()`.
    fn check_drain_done(&mut self, now: Time) {
        if self.state == BbrState::Drain
            && (self.in_flight <= self.inflight(1.0)
                || self.rounds.count > self.drain_start_round + DRAIN_ROUNDS)
        {
            self.start_probe_bw_down(now);
        }
    }

    /// `BDPMultiple()`.
    fn bdp_multiple(&self, gain: f64) -> u64 {
        if self.model.min_rtt.is_none() {
            return self.options.initial_window();
        }
        (gain * self.model.bdp() as f64) as u64
    }

    /// `QuantizationBudget()`. The offload budget is that of TCP: three quanta.
    fn quantization_budget(&self, inflight_cap: u64) -> u64 {
        let probing = if self.state == BbrState::ProbeBwUp { 2 * self.options.unit } else { 0 };
        inflight_cap.max(3 * self.send_quantum).max(self.min_pipe_cwnd()) + probing
    }

    /// `Inflight()`.
    fn inflight(&self, gain: f64) -> u64 {
        self.quantization_budget(self.bdp_multiple(gain))
    }

    /// `SetPacingRateWithGain()`.
    fn set_pacing_rate_with_gain(&mut self, gain: f64) {
        let rate = (gain * self.model.bw as f64 * PACING_MARGIN) as u64;
        if rate > 0 && (self.full_bw.reached || rate > self.pacing_rate) {
            self.pacing_rate = rate;
        }
    }

    /// `SetSendQuantum()`.
    fn set_send_quantum(&mut self) {
        let millisecond = self.pacing_rate / 8 / 1000;
        self.send_quantum = millisecond.min(MOST_QUANTUM).max(2 * self.options.unit);
    }

    /// `SetCwnd()`.
    fn set_cwnd(&mut self, newly_acked: u64) {
        let cap = self.bdp_multiple(self.cwnd_gain()) + self.model.extra_acked();
        let max_inflight = self.quantization_budget(cap);
        let grown = self.cwnd.saturating_add(newly_acked);
        if self.full_bw.reached {
            self.cwnd = grown.min(max_inflight);
        } else if self.cwnd < max_inflight
            || self.delivered < self.options.initial_window()
            || self.model.min_rtt.is_none()
        {
            self.cwnd = grown;
        }
        if !self.is_cwnd_limited() {
            // The draft bounds its estimate of aggregation by the window, and the window by that
            // estimate. If the sender is the limit of a path, both would grow without bound (RFC 7661: an
            // unused window is not valid).
            let used = self.most_in_flight[0].max(self.most_in_flight[1]);
            self.cwnd = self.cwnd.min((UNUSED_GAIN * used).max(self.options.initial_window()));
        }
        self.cwnd = self.cwnd.max(self.min_pipe_cwnd()).min(CongestionOptions::UNLIMITED);
        if self.state == BbrState::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd_for_model();
    }

    /// `BoundCwndForModel()`.
    fn bound_cwnd_for_model(&mut self) {
        let long = match self.state {
            BbrState::ProbeRtt | BbrState::ProbeBwCruise => self.inflight_with_headroom(),
            state if state.is_probe_bw() => self.model.bounds.inflight_longterm,
            _ => INFINITY,
        };
        let cap = long.min(self.model.bounds.inflight_shortterm).max(self.min_pipe_cwnd());
        self.cwnd = self.cwnd.min(cap);
    }

    /// `InflightWithHeadroom()`.
    fn inflight_with_headroom(&self) -> u64 {
        let longterm = self.model.bounds.inflight_longterm;
        if longterm == INFINITY {
            return INFINITY;
        }
        let headroom = ((HEADROOM * longterm as f64) as u64).max(self.options.unit);
        longterm.saturating_sub(headroom).max(self.min_pipe_cwnd())
    }

    /// `HandleRestartFromIdle()`.
    fn handle_restart_from_idle(&mut self, now: Time) {
        self.idle_restart = true;
        self.model.restart_aggregation(now);
        if self.state.is_probe_bw() {
            self.set_pacing_rate_with_gain(1.0);
        } else if self.state == BbrState::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }
}

impl PathCongestion for Bbr {
    fn on_sent(&mut self, now: Time, packet: &SentPacket) {
        if packet.in_flight_before == 0 && packet.app_limited {
            self.handle_restart_from_idle(now);
        }
        let tx_in_flight = packet.in_flight_before + packet.bytes;
        self.in_flight = tx_in_flight;
        self.most_in_flight[1] = self.most_in_flight[1].max(tx_in_flight);
        self.cwnd_limited[1] |= tx_in_flight + self.options.unit > self.cwnd;
        // A path with a queue is full even if the sender had less to send than possible: a scheduler may
        // hold data back.
        let is_full = self.full_bw.is_full(tx_in_flight, self.model.max_bdp());
        let app_limited = packet.app_limited && !is_full || self.delivered < self.app_limited_until;
        self.sent.push(packet.number, PacketState { tx_in_flight, lost: self.lost, app_limited });
    }

    fn on_ack(&mut self, now: Time, ack: &AckSample) {
        if !std::mem::replace(&mut self.has_paced_by_srtt, ack.srtt.is_some()) {
            self.init_pacing_rate(ack.srtt);
        }
        self.acked_at = now;
        self.delivered = ack.delivery.delivered;
        self.in_flight = ack.delivery.in_flight;
        self.full_bw.note_wait(ack.forward_queueing, self.model.min_rtt);
        let sample = self.rate_sample(ack);
        self.update_recovery(ack.in_recovery, &sample);
        self.update_model_and_state(now, &sample);
        self.set_pacing_rate_with_gain(self.state.pacing_gain());
        self.set_send_quantum();
        self.set_cwnd(sample.newly_acked);
        self.sent.forget_before(ack.delivery.oldest);
    }

    fn on_lost(&mut self, now: Time, packet: &LostPacket) {
        self.lost += packet.bytes;
        self.in_flight = self.in_flight.saturating_sub(packet.bytes);
        if packet.number != self.after_last_lost {
            self.separate_losses += 1;
        }
        self.after_last_lost = packet.number + 1;
        if let Some(state) = self.sent.get(packet.number) {
            self.handle_lost_packet(now, state, packet.bytes);
        } else {
            self.note_loss();
        }
    }

    /// Fast recovery begins. The response to its losses has already been made for each packet.
    fn on_loss(&mut self, _now: Time) {
        self.note_loss();
        self.save_cwnd();
        self.recovery = Recovery::Fast;
    }

    fn on_timeout(&mut self, _now: Time) {
        self.note_loss();
        self.save_cwnd();
        self.recovery = Recovery::Timeout { delivered: self.delivered };
        self.cwnd = self.in_flight + self.options.unit;
    }

    /// `HandleSpuriousLossDetection()`.
    fn on_spurious(&mut self, _now: Time) {
        self.recovery = Recovery::None;
        self.restore_cwnd();
        self.latest.is_loss_in_round = false;
        self.full_bw.reset(0);
        self.model.bounds = self.model.bounds.at_least(&self.undo.bounds);
        let undone = self.undo.state.take().filter(|state| *state != self.state);
        if undone == Some(BbrState::Startup) {
            self.full_bw.reached = false;
        }
        match undone {
            _ if self.state == BbrState::ProbeRtt => {}
            Some(BbrState::Startup) => self.state = BbrState::Startup,
            Some(BbrState::ProbeBwUp) => self.start_probe_bw_refill(),
            _ => {}
        }
    }

    /// An ECN mark (RFC 3168), at most one per window. While probing, it counts as too much data in
    /// flight. Otherwise the data in flight is reduced to 0.85 of the window (RFC 8511), but not below
    /// the bandwidth-delay product.
    fn on_ecn(&mut self, now: Time) {
        let least = self.inflight(1.0);
        if self.probe_bw.is_bw_probe_sample {
            self.handle_inflight_too_high(now, self.in_flight.max(least), false);
        } else if !self.state.is_probing() {
            let bound = self.model.bounds.inflight_shortterm.min(self.cwnd);
            self.model.bounds.inflight_shortterm = ((bound as f64 * ECN_BETA) as u64).max(least);
        }
        self.bound_cwnd_for_model();
    }

    /// After a short failure, the estimates stay valid, and only the window restarts. Otherwise the path
    /// restarts like a new one.
    fn on_return(&mut self, now: Time) {
        if self.full_bw.reached && now.since(self.acked_at) < MIN_RTT_FILTER_LEN {
            self.recovery = Recovery::None;
            self.latest.reset();
            self.probe_rtt.forget();
            self.start_probe_bw_refill();
        } else {
            let fresh = Self::with(self.options, self.rng.clone());
            let (delivered, lost, group) = (self.delivered, self.lost, self.group);
            *self = Self { delivered, lost, group, ..fresh };
            self.start_round();
        }
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

    /// BBR has no threshold: above the window in Startup, the window afterwards.
    fn ssthresh(&self) -> u64 {
        if self.state == BbrState::Startup { CongestionOptions::UNLIMITED } else { self.cwnd }
    }

    fn pace(&self) -> Option<Pace> {
        Some(Pace { rate: Rate::from_bps(self.pacing_rate), burst: self.send_quantum })
    }

    fn set_flow_share(&mut self, share: f64) {
        let has_others = share < 1.0;
        if has_others != self.group.has_others {
            self.group = Group { has_others, ..Group::default() };
        }
    }

    fn take_signals(&mut self) -> Signals {
        std::mem::take(&mut self.group.signals)
    }

    fn join(&mut self, now: Time, signals: Signals) {
        self.take_part(now, signals);
    }

    fn reduces_by_loss(&self) -> bool {
        false
    }

    fn disturbance(&self) -> Disturbance {
        match self.state {
            BbrState::Startup | BbrState::Drain | BbrState::ProbeRtt => Disturbance::InStep,
            BbrState::ProbeBwCruise => Disturbance::None,
            _ if self.group.in_step => Disturbance::ProbeInStep,
            BbrState::ProbeBwRefill => Disturbance::None,
            BbrState::ProbeBwUp | BbrState::ProbeBwDown => Disturbance::Probe,
        }
    }
}
