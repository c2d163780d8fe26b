//! CUBIC (RFC 9438): the window follows a cubic function of the time since the last loss, and is never slower
//! than Reno's.

use ropewalk_base::{Duration, Time};

use super::hystart_linux::LinuxHyStart;
use super::path_window::{Growth, PathWindow};
use super::{AckSample, CongestionOptions, PathCongestion, Rules, SentPacket};

/// Constant C, which determines how fast the window grows, segments per second cubed (5.1).
const C: f64 = 0.4;
/// Part of the window that a loss leaves (4.6).
const BETA: f64 = 0.7;
/// Growth of Reno that corresponds to [`BETA`], segments per round trip (4.3, Figure 4's alpha).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Linux, before the first loss: minimum growth of the window per round trip, as a part of it
/// (`bictcp_update`).
const FIRST_GROWTH: f64 = 0.05;
/// Linux: time after the start of an epoch in which round trips are not measured, because they still contain the
/// queue of the loss (`cubictcp_acked`).
const UNMEASURED: Duration = Duration::from_secs(1);

/// The curve since the last loss, segments and seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Curve {
    /// Target of the window: its size before the last loss, or less (4.7).
    w_max: f64,
    /// Size of the window before the last loss.
    prior: f64,
    /// The current stage, which begins after recovery; `None` before.
    epoch: Option<Epoch>,
}

/// One stage of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// [`C`], or this path's share of it.
    c: f64,
    /// Time at which the curve returns to `w_max`, seconds after the start (Figure 2).
    k: f64,
    /// Window of a Reno flow that started at the same time.
    reno: f64,
}

/// CUBIC congestion control of one path.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: PathWindow,
    curve: Curve,
    before: Option<Curve>,
    acked_at: Time,
    sent_at: Time,
    fast_convergence: bool,
    /// This path's part of the growth of one flow.
    share: f64,
    rules: Rules,
    /// HyStart of Linux, if it is used.
    hystart: Option<LinuxHyStart>,
    /// Minimum round trip so far (`delay_min`), for the rules of Linux.
    least: Option<Duration>,
}

impl Cubic {
    /// Congestion control for a new path.
    pub fn new(options: CongestionOptions) -> Self {
        Self {
            window: PathWindow::new(options),
            curve: Curve::default(),
            before: None,
            acked_at: Time::ZERO,
            sent_at: Time::ZERO,
            fast_convergence: options.variants.fast_convergence,
            share: 1.0,
            rules: options.variants.cubic_rules,
            hystart: (options.variants.hystart && options.variants.hystart_rules == Rules::Linux)
                .then(LinuxHyStart::default),
            least: None,
        }
    }

    fn segments(&self) -> f64 {
        self.window.cwnd() / self.window.unit()
    }

    /// RFC 9438, 4.6 and 4.7: records the window at the loss. With fast convergence, a flow whose loss
    /// occurred earlier than the last one leaves bandwidth to others.
    fn remember(&mut self) {
        self.before = Some(self.curve);
        let at = self.segments();
        let makes_room = self.fast_convergence && at < self.curve.w_max;
        let w_max = if makes_room { at * (1.0 + BETA) / 2.0 } else { at };
        self.curve = Curve { w_max, prior: at, epoch: None };
    }

    fn avoid(&mut self, now: Time, acked: f64) {
        let (at, acked) = (self.segments(), acked / self.window.unit());
        let epoch = self.curve.epoch.get_or_insert_with(|| {
            if self.curve.w_max <= at {
                // RFC 9438, 4.8, 4.10: after a timeout, or before the first loss, the curve starts at the
                // current window.
                self.curve.w_max = at;
            }
            let c = C * self.share;
            Epoch { start: now, c, k: cube_root((self.curve.w_max - at) / c), reno: at }
        });
        let linux = self.rules == Rules::Linux;
        // RFC 9438, 4.3: once the Reno estimate reaches the window before the loss, it grows with alpha = 1.
        let alpha = if epoch.reno >= self.curve.prior && !linux { 1.0 } else { ALPHA };
        epoch.reno += alpha * self.share * acked / at;
        let (time, reno) = (now.since(epoch.start).as_secs_f64(), epoch.reno);
        let curve = |t: f64| epoch.c * (t - epoch.k).powi(3) + self.curve.w_max;
        let grown = if curve(time) < reno {
            (reno - at).max(0.0)
        } else {
            // RFC 9438, 4.2: the target is the curve one round trip from now, at most 1.5 times the window.
            let ahead = match self.rules {
                Rules::Rfc => self.window.srtt_s(),
                Rules::Linux => self.least.map(Duration::as_secs_f64),
            };
            let target = curve(time + ahead.unwrap_or(0.0)).clamp(at, 1.5 * at);
            (target - at) / at * acked
        };
        let first = linux && self.curve.prior == 0.0;
        let grown = if first { grown.max(FIRST_GROWTH * acked) } else { grown };
        self.window.grow(grown * self.window.unit());
    }

    /// RFC 9438, 5.8: shifts the curve by the time during which the window was not in use.
    fn hold(&mut self, by: Duration) {
        if let Some(epoch) = &mut self.curve.epoch {
            epoch.start += by;
        }
    }
}

impl Cubic {
    /// Linux: measures the minimum round trip, and ends slow start by HyStart (`cubictcp_acked`).
    fn measure(&mut self, now: Time, sample: &AckSample) {
        let Some(rtt) = sample.rtt else { return };
        if self.curve.epoch.is_some_and(|epoch| now.since(epoch.start) < UNMEASURED) {
            return;
        }
        let least = self.least.map_or(rtt, |least| least.min(rtt));
        self.least = Some(least);
        let cwnd = self.segments();
        if self.window.in_slow_start()
            && let Some(hystart) = &mut self.hystart
            && hystart.on_ack(now, sample, cwnd, least)
        {
            self.window.leave_slow_start();
        }
    }
}

impl PathCongestion for Cubic {
    fn on_sent(&mut self, now: Time, packet: &SentPacket) {
        if self.rules == Rules::Linux && packet.in_flight_before == 0 {
            // cubictcp_cwnd_event: only time with nothing in flight is excluded.
            self.hold(now.since(self.sent_at));
        }
        self.sent_at = now;
        self.window.on_sent(packet);
    }

    fn on_ack(&mut self, now: Time, sample: &AckSample) {
        self.measure(now, sample);
        let passed = now.since(self.acked_at);
        self.acked_at = now;
        match self.window.on_ack(sample) {
            Growth::Avoid(acked) => self.avoid(now, acked),
            Growth::None if self.rules == Rules::Rfc && !self.window.was_full(sample) => {
                self.hold(passed);
            }
            Growth::None => {}
        }
    }

    fn on_loss(&mut self, _now: Time) {
        self.remember();
        self.window.cut(self.window.cwnd() * BETA, self.window.floor_units());
    }

    fn on_timeout(&mut self, _now: Time) {
        self.remember();
        // RFC 9438, 4.8: the first stage after slow start begins at its own window, with K = 0.
        self.curve.w_max = 0.0;
        if self.rules == Rules::Linux {
            // bictcp_reset: the next epoch is like the first.
            self.curve.prior = 0.0;
            if let Some(hystart) = &mut self.hystart {
                hystart.restart();
            }
        }
        self.window.time_out(self.window.cwnd() * BETA);
    }

    fn on_spurious(&mut self, _now: Time) {
        // RFC 9438, 4.9: undoes everything that the reduction changed.
        if self.window.undo()
            && let Some(before) = self.before.take()
        {
            self.curve = before;
        }
    }

    fn on_idle(&mut self, _now: Time) {
        self.curve.epoch = None;
        self.window.idle();
    }

    fn on_return(&mut self, _now: Time) {
        self.curve = Curve::default();
        self.window.restart();
    }

    fn limit(&mut self, most: u64) {
        if (most as f64) < self.window.cwnd() {
            // The curve continues from the remaining window.
            self.curve.epoch = None;
            self.window.limit(most);
        }
    }

    fn set_unit(&mut self, unit: u64) {
        // The curve is in segments, so it depends on the unit.
        let ratio = self.window.unit() / unit as f64;
        for curve in self.before.iter_mut().chain([&mut self.curve]) {
            curve.w_max *= ratio;
            curve.prior *= ratio;
            if let Some(epoch) = &mut curve.epoch {
                epoch.reno *= ratio;
            }
        }
        self.window.set_unit(unit);
    }

    fn set_flow_share(&mut self, share: f64) {
        self.share = share;
    }

    fn window(&self) -> u64 {
        self.window.window()
    }

    fn ssthresh(&self) -> u64 {
        self.window.ssthresh()
    }
}

/// Newton's method: basic operations give identical results on every machine, unlike a library's cube
/// root.
fn cube_root(x: f64) -> f64 {
    const ROUNDS: u32 = 100;
    if x <= 0.0 {
        return 0.0;
    }
    let mut root = x.max(1.0);
    for _ in 0..ROUNDS {
        let next = (2.0 * root + x / (root * root)) / 3.0;
        if next >= root {
            break;
        }
        root = next;
    }
    root
}

#[cfg(test)]
mod tests {
    use super::super::conformance::{ack, full_ack};
    use super::*;

    const UNIT: u64 = 1000;

    fn path(segments: u64) -> Cubic {
        Cubic::new(CongestionOptions {
            initial_window: Some(segments * UNIT),
            initial_ssthresh: 0,
            ..CongestionOptions::tcp(UNIT)
        })
    }

    /// Acknowledges one segment at a time, a window per round trip, for `rounds` round trips.
    fn drive(path: &mut Cubic, from: Time, rtt: Duration, rounds: u32) -> Time {
        let mut now = from;
        for _ in 0..rounds {
            let segments = path.window() / UNIT;
            for _ in 0..segments {
                now += rtt / segments;
                let sample = AckSample { srtt: Some(rtt), ..full_ack(path, UNIT) };
                path.on_ack(now, &sample);
            }
        }
        now
    }

    #[test]
    fn cube_roots_are_those_of_cubes() {
        for x in [0.0, 1e-3, 0.1, 1.0, 2.0, 27.0, 1e4] {
            assert!((cube_root(x * x * x) - x).abs() <= 1e-9 * x, "{x}");
        }
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_one_that_comes_sooner_makes_room() {
        let mut path = path(1000);
        path.on_loss(Time::ZERO);
        assert_eq!((path.window(), path.ssthresh()), (700 * UNIT, 700 * UNIT));
        assert!((path.curve.w_max - 1000.0).abs() < 1e-9);
        // 4.7: the second loss at 700 of 1000.
        path.on_loss(Time::ZERO);
        assert!(path.window().abs_diff(490 * UNIT) <= 1);
        assert!((path.curve.w_max - 700.0 * 0.85).abs() < 1e-9);
    }

    #[test]
    fn the_window_is_back_where_it_was_after_k_seconds_and_grows_slowest_there() {
        // K = cbrt(1000 * 0.3 / 0.4) = 9.086 s (Figure 2).
        let mut path = path(1000);
        path.on_loss(Time::ZERO);
        let rtt = Duration::from_millis(100);
        let mut now = Time::ZERO;
        for (second, expected) in [
            // W(t) = 0.4 (t - 9.086)^3 + 1000, and a round trip ahead (4.2).
            (4u32, 1000.0 + 0.4 * (-4.986_f64).powi(3)),
            (9, 1000.0 + 0.4 * 0.014_f64.powi(3)),
            (14, 1000.0 + 0.4 * 5.014_f64.powi(3)),
        ] {
            while now < Time::from_secs(u64::from(second)) {
                now = drive(&mut path, now, rtt, 1);
            }
            let found = path.window() as f64 / UNIT as f64;
            assert!((found / expected - 1.0).abs() < 0.01, "after {second} s: {found}, {expected}");
        }
    }

    /// Mean window in segments of a path that begins with a loss at `start` segments, over 40 losses, one per
    /// `period` segments.
    fn mean_window(start: f64, period: u32, rtt: Duration, fast_convergence: bool) -> f64 {
        let mut path = path((start * UNIT as f64) as u64 / UNIT);
        path.fast_convergence = fast_convergence;
        let mut now = Time::ZERO;
        for _ in 0..40 {
            path.on_loss(now);
            for _ in 0..period {
                now += Duration::from_nanos(rtt.as_nanos() * UNIT / path.window());
                path.on_ack(now, &AckSample { srtt: Some(rtt), ..full_ack(&path, UNIT) });
            }
        }
        f64::from(40 * period) / (now.since(Time::ZERO).as_secs_f64() / rtt.as_secs_f64())
    }

    #[test]
    fn the_mean_window_is_that_of_the_response_function_and_fast_convergence_costs_a_flow_alone() {
        let rtt = Duration::from_millis(100);
        for period in [10_000, 30_000, 100_000] {
            // 5.1, Equation 5, for 100 ms: 1.054 (rtt / p)^(3/4), (3 + beta) / 4 of the maximum.
            let expected = 1.054 * (0.1 * f64::from(period)).powf(0.75);
            let start = expected * 4.0 / (3.0 + BETA);
            let off = mean_window(start, period, rtt, false) / expected - 1.0;
            assert!(off.abs() < 0.02, "{period}: {off}");
            // A loss one segment earlier than the last one reduces w_max by 15 %, and the recovery is a
            // fifth of a percent per loss.
            let off = mean_window(start, period, rtt, true) / expected - 1.0;
            assert!((-0.15..=0.0).contains(&off), "{period}, with fast convergence: {off}");
        }
    }

    #[test]
    fn small_windows_grow_as_reno_does_with_a_cut_to_seven_tenths() {
        // 4.3: below the window before the loss, alpha = 0.529 segments per round trip.
        let mut path = path(40);
        path.on_loss(Time::ZERO);
        drive(&mut path, Time::ZERO, Duration::from_millis(5), 10);
        let grown = path.window() as f64 / UNIT as f64 - 28.0;
        assert!((grown / (10.0 * ALPHA) - 1.0).abs() < 0.05, "{grown}");
    }

    #[test]
    fn before_the_first_loss_linux_grows_by_a_twentieth_per_round_trip() {
        let rtt = Duration::from_millis(20);
        let mut grown = [Rules::Rfc, Rules::Linux].map(|rules| {
            let mut path = Cubic { rules, ..path(100) };
            drive(&mut path, Time::ZERO, rtt, 1);
            path.window() as f64 / UNIT as f64 - 100.0
        });
        grown.iter_mut().for_each(|segments| *segments = (*segments * 10.0).round() / 10.0);
        assert_eq!(grown, [1.0, 5.0]);
    }

    #[test]
    fn time_without_use_of_the_window_does_not_count() {
        let rtt = Duration::from_millis(100);
        let (mut paused, mut steady) = (path(1000), path(1000));
        for path in [&mut paused, &mut steady] {
            path.on_loss(Time::ZERO);
            drive(path, Time::ZERO, rtt, 20);
        }
        let now = Time::from_secs(2);
        let later = now + Duration::from_secs(30);
        paused.on_ack(later, &ack(UNIT, UNIT));
        drive(&mut paused, later, rtt, 20);
        drive(&mut steady, now, rtt, 20);
        let ratio = paused.window() as f64 / steady.window() as f64;
        assert!((ratio - 1.0).abs() < 1e-2, "{ratio}");
    }

    #[test]
    fn an_undone_loss_restores_the_curve() {
        let mut path = path(1000);
        path.on_loss(Time::ZERO);
        let now = drive(&mut path, Time::ZERO, Duration::from_millis(100), 50);
        let (window, w_max) = (path.window(), path.curve.w_max);
        path.on_loss(now);
        path.on_spurious(now);
        assert_eq!(path.window(), window);
        assert_eq!(path.curve.w_max, w_max);
        assert!(path.curve.epoch.is_some());
    }
}
