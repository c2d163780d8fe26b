//! Common parts of TCP's window algorithms: slow start, threshold, undo and idle time.

use ropewalk_base::Duration;

use super::hystart::{HyStart, SlowStart};
use super::window_use::WindowUse;
use super::{AckSample, CongestionOptions, IdleDecay, Rules, SentPacket, WindowRounding};

/// Maximum window, bytes, so that sums stay exact.
const LARGEST: f64 = CongestionOptions::UNLIMITED as f64;

/// Result of an acknowledgement for congestion avoidance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Growth {
    /// None: the window was not full, is in recovery, or is in slow start.
    None,
    /// Number of bytes that count towards growth.
    Avoid(f64),
}

/// Window and threshold of one path, bytes. Fractions of a byte matter: coupled growth is a small part of
/// a segment per acknowledgement.
#[derive(Clone, Debug)]
pub(super) struct PathWindow {
    options: CongestionOptions,
    cwnd: f64,
    ssthresh: f64,
    /// Bytes acknowledged beyond a gap, which count when the gap is filled.
    beyond_hole: u64,
    srtt: Option<Duration>,
    /// State before the last reduction, for undo.
    before: Option<(f64, f64)>,
    /// Whether the timer expired and nothing has been acknowledged since.
    silent: bool,
    hystart: HyStart,
    /// Data in flight, if the rules of Linux decide whether the window is in use.
    usage: Option<WindowUse>,
}

impl PathWindow {
    pub(super) fn new(options: CongestionOptions) -> Self {
        assert!(options.unit > 0, "a window is counted in units of at least a byte");
        Self {
            options,
            cwnd: (options.tcp_initial_window() as f64).min(LARGEST),
            ssthresh: (options.initial_ssthresh as f64).min(LARGEST),
            beyond_hole: 0,
            srtt: None,
            before: None,
            silent: false,
            hystart: HyStart::new(
                options.variants.hystart && options.variants.hystart_rules == Rules::Rfc,
            ),
            usage: (options.variants.window_use == Rules::Linux).then(WindowUse::default),
        }
    }

    /// Processes a packet that is sent.
    #[inline]
    pub(super) fn on_sent(&mut self, packet: &SentPacket) {
        let (cwnd, unit) = (self.cwnd, self.unit());
        if let Some(usage) = &mut self.usage {
            usage.on_sent(packet, cwnd, unit);
        }
    }

    /// Processes an acknowledgement, including slow start (RFC 5681, 3.1; RFC 3465, 2.2).
    #[inline]
    pub(super) fn on_ack(&mut self, sample: &AckSample) -> Growth {
        self.srtt = sample.srtt.or(self.srtt);
        self.silent = false;
        if let Some(usage) = &mut self.usage {
            usage.on_ack(sample.delivery.oldest);
        }
        self.beyond_hole += sample.acked_bytes;
        let divisor = self.slow_start_divisor(sample);
        if !sample.advanced {
            return Growth::None;
        }
        let acked = std::mem::take(&mut self.beyond_hole);
        if sample.in_recovery || !self.was_full(sample) {
            return Growth::None;
        }
        if !self.in_slow_start() {
            return Growth::Avoid(acked as f64);
        }
        let most = self.options.byte_counting_limit * self.options.unit;
        self.grow((acked.min(most) / divisor) as f64);
        Growth::None
    }

    /// Divisor of the growth of slow start. Leaves slow start if HyStart++ requires it.
    #[inline]
    fn slow_start_divisor(&mut self, sample: &AckSample) -> u64 {
        if sample.in_recovery || !self.in_slow_start() {
            return 1;
        }
        match self.hystart.on_ack(sample) {
            SlowStart::Grow(divisor) => divisor,
            SlowStart::Leave => {
                self.leave_slow_start();
                1
            }
        }
    }

    /// Whether the window was fully used: without space for another full segment.
    #[inline]
    pub(super) fn was_full(&self, sample: &AckSample) -> bool {
        if let Some(usage) = &self.usage {
            return usage.permits_growth(self.cwnd, self.in_slow_start());
        }
        let used = (sample.in_flight_before + self.options.unit) as f64;
        !self.options.growth_when_full_only || used > self.cwnd
    }

    #[inline]
    pub(super) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Grows by `bytes`, or shrinks if negative; never below one unit.
    #[inline]
    pub(super) fn grow(&mut self, bytes: f64) {
        self.cwnd = (self.cwnd + bytes).clamp(self.unit(), LARGEST);
    }

    /// Reduces the window to `to` bytes, but at least `floor_units`, and continues in congestion
    /// avoidance.
    pub(super) fn cut(&mut self, to: f64, floor_units: u64) {
        self.save();
        self.ssthresh = self.at_least(to, floor_units);
        self.cwnd = self.ssthresh;
    }

    /// Reduces the window because of marks to `to` bytes, but at least `floor_units`. Never undone,
    /// because marks are never spurious.
    pub(super) fn reduce(&mut self, to: f64, floor_units: u64) {
        self.hystart.stop();
        self.before = None;
        self.cwnd = self.cwnd.min(self.at_least(to, floor_units));
        self.ssthresh = self.cwnd;
    }

    /// Handles a timeout: one unit, and slow start up to `threshold`. RFC 5681, 3.1: if the same data
    /// times out again, the threshold does not change.
    pub(super) fn time_out(&mut self, threshold: f64) {
        if !self.silent {
            self.save();
            self.ssthresh = self.at_least(threshold, self.options.min_ssthresh_units);
        }
        self.silent = true;
        self.cwnd = self.unit();
    }

    fn at_least(&self, bytes: f64, units: u64) -> f64 {
        let whole = match self.options.rounding {
            WindowRounding::Bytes => bytes,
            WindowRounding::Packets => (bytes / self.unit()).floor() * self.unit(),
        };
        whole.max(units.max(1) as f64 * self.unit()).min(LARGEST)
    }

    fn save(&mut self) {
        self.hystart.stop();
        self.before = Some((self.cwnd, self.ssthresh));
        self.beyond_hole = 0;
    }

    /// Undoes the last reduction, unless it has already been undone (RFC 4015, 3.2). Returns whether it
    /// did.
    pub(super) fn undo(&mut self) -> bool {
        let Some((cwnd, ssthresh)) = self.before.take() else { return false };
        self.cwnd = self.cwnd.max(cwnd);
        self.ssthresh = self.ssthresh.max(ssthresh);
        true
    }

    /// Handles one idle timeout. The window becomes outdated (RFC 5681, 4.1: no more than the initial
    /// window), but the threshold remembers it (RFC 7661, 4.4.1).
    pub(super) fn idle(&mut self) {
        if self.options.idle_decay != IdleDecay::Off {
            self.ssthresh = self.ssthresh.max(self.cwnd * 0.75);
            self.cwnd = self.cwnd.min(self.options.tcp_initial_window() as f64);
        }
    }

    /// Restarts from one unit when the path returns from failure.
    pub(super) fn restart(&mut self) {
        self.cwnd = self.unit();
        self.beyond_hole = 0;
        self.before = None;
    }

    pub(super) fn limit(&mut self, most: u64) {
        self.cwnd = self.cwnd.min(most as f64).max(self.unit());
    }

    /// Leaves slow start at the current window.
    pub(super) fn leave_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    /// Window, bytes.
    #[inline]
    pub(super) const fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Changes the unit. A window is at least one unit.
    pub(super) fn set_unit(&mut self, unit: u64) {
        self.options.unit = unit;
        self.cwnd = self.cwnd.max(self.unit());
    }

    /// Window, whole bytes.
    #[inline]
    pub(super) const fn window(&self) -> u64 {
        self.cwnd as u64
    }

    /// Threshold, whole bytes.
    #[inline]
    pub(super) const fn ssthresh(&self) -> u64 {
        self.ssthresh as u64
    }

    /// The unit, bytes.
    #[inline]
    pub(super) const fn unit(&self) -> f64 {
        self.options.unit as f64
    }

    /// The floor of the threshold, units.
    pub(super) const fn floor_units(&self) -> u64 {
        self.options.min_ssthresh_units
    }

    /// Smoothed round trip, `None` before a sample.
    #[inline]
    pub(super) const fn srtt(&self) -> Option<Duration> {
        self.srtt
    }

    /// Smoothed round trip, seconds, `None` before a sample.
    #[inline]
    pub(super) fn srtt_s(&self) -> Option<f64> {
        self.srtt.map(|srtt| srtt.as_secs_f64().max(1e-9))
    }
}
