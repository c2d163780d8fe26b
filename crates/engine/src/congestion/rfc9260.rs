//! SCTP's congestion control (RFC 9260, 7.2), with options where published implementations differ.

use ropewalk_base::Time;

use super::hystart::{HyStart, SlowStart};
use super::{AckSample, CongestionOptions, PathCongestion};

/// Unit in which windows are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WindowRounding {
    /// Bytes (7.2.1): halves are exact, and a packet may be sent while any space is left, so the last one may
    /// exceed the window (6.1, rule B).
    #[default]
    Bytes,
    /// Full units: windows and halves are rounded down, as in throughput models (Wallace and Shami, 2014,
    /// Eq 14) and in Linux (`tcp_reno_ssthresh`).
    Packets,
}

impl WindowRounding {
    const fn cut(self, bytes: u64, unit: u64) -> u64 {
        match self {
            Self::Bytes => bytes,
            Self::Packets => bytes / unit * unit,
        }
    }
}

/// The initial window, bytes, for chunks of at most `pmdcs` bytes and this address family (7.2.1).
pub fn initial_window(pmdcs: u64, ipv6: bool) -> u64 {
    let three = if ipv6 { 4344 } else { 4404 };
    (4 * pmdcs).min((2 * pmdcs).max(three))
}

/// When the window of an idle path decays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IdleDecay {
    /// Never.
    Off,
    /// With each HEARTBEAT: a path that is used occasionally keeps most of its window. The threshold
    /// stays at least at three quarters of the window, so that the window grows back fast (RFC 7661).
    Heartbeat,
    /// Once per timeout, to `max(cwnd / 2, 4 PMDCS)`, with the threshold at the previous window (RFC 9260,
    /// 7.2.1).
    #[default]
    Timeout,
}

/// Options that the RFC leaves open or that older implementations handle differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rfc9260Options {
    /// Path maximum DATA chunk size, bytes: the unit of every rule.
    pub pmdcs: u64,
    /// Initial window, bytes. `None`: `min(4 PMDCS, max(2 PMDCS, 4404 B))` (7.2.1).
    pub initial_window: Option<u64>,
    /// Initial slow-start threshold, bytes. The RFC allows any; the peer's window is usual.
    pub initial_ssthresh: u64,
    /// Minimum threshold, in units (7.2.3: 4).
    pub min_ssthresh_chunks: u64,
    /// Maximum growth per acknowledgement in slow start, in units (7.2.1: L = 1).
    pub byte_counting_limit: u64,
    /// Whether the window grows only when it was fully used (7.2.1, 7.2.2: yes).
    pub growth_when_full_only: bool,
    /// When an idle path's window decays.
    pub idle_decay: IdleDecay,
    /// Whether the credit towards the next growth in congestion avoidance is limited to one window while the
    /// window is not full (7.2.2: yes; RFC 4960: no).
    pub partial_bytes_capped: bool,
    /// Whether windows are rounded down to full units (7.2.1: no).
    pub rounding: WindowRounding,
    /// Whether the first slow start ends by HyStart++ (RFC 9406) when round trips grow.
    pub hystart: bool,
}

impl From<CongestionOptions> for Rfc9260Options {
    fn from(options: CongestionOptions) -> Self {
        Self {
            pmdcs: options.unit,
            initial_window: options.initial_window,
            initial_ssthresh: options.initial_ssthresh,
            min_ssthresh_chunks: options.min_ssthresh_units,
            byte_counting_limit: options.byte_counting_limit,
            growth_when_full_only: options.growth_when_full_only,
            idle_decay: options.idle_decay,
            partial_bytes_capped: options.partial_bytes_capped,
            rounding: options.rounding,
            hystart: options.variants.hystart,
        }
    }
}

impl Rfc9260Options {
    fn initial_window(&self) -> u64 {
        self.initial_window.unwrap_or(initial_window(self.pmdcs, false))
    }
}

/// SCTP congestion control of one path.
#[derive(Clone, Debug)]
pub struct Rfc9260 {
    options: Rfc9260Options,
    cwnd: u64,
    ssthresh: u64,
    partial_bytes_acked: u64,
    before_loss: Option<(u64, u64)>,
    /// Whether the window has decayed since data was last acknowledged.
    decays: bool,
    hystart: HyStart,
    /// This path's part of the growth of one flow.
    share: f64,
}

impl Rfc9260 {
    /// Congestion control for a new path.
    pub fn new(options: Rfc9260Options) -> Self {
        Self {
            cwnd: options.initial_window(),
            ssthresh: options.initial_ssthresh,
            partial_bytes_acked: 0,
            before_loss: None,
            decays: false,
            hystart: HyStart::new(options.hystart),
            share: 1.0,
            options,
        }
    }

    fn slow_start(&mut self, sample: &AckSample, was_full: bool) {
        let divisor = match self.hystart.on_ack(sample) {
            SlowStart::Grow(divisor) => divisor,
            SlowStart::Leave => {
                self.ssthresh = self.cwnd;
                1
            }
        };
        // RFC 9260, 7.2.1: grow only if the cumulative acknowledgement advanced and the window was fully
        // used.
        if sample.advanced && was_full && !sample.in_recovery {
            let most = self.options.byte_counting_limit * self.options.pmdcs;
            self.cwnd += sample.acked_bytes.min(most) / divisor;
        }
    }

    fn avoid_congestion(&mut self, sample: &AckSample, was_full: bool) {
        // RFC 9260, 7.2.2: congestion avoidance.
        if sample.advanced {
            self.partial_bytes_acked += sample.acked_bytes;
        }
        let window = self.window();
        if self.partial_bytes_acked >= window {
            if was_full {
                self.partial_bytes_acked -= window;
                if !sample.in_recovery {
                    self.cwnd += (self.options.pmdcs as f64 * self.share) as u64;
                }
            } else if self.options.partial_bytes_capped {
                self.partial_bytes_acked = window;
            }
        }
    }

    fn halve(&mut self) {
        self.before_loss = Some((self.cwnd, self.ssthresh));
        self.hystart.stop();
        let floor = self.options.min_ssthresh_chunks * self.options.pmdcs;
        let half = self.options.rounding.cut(self.window() / 2, self.options.pmdcs);
        self.ssthresh = half.max(floor);
        self.partial_bytes_acked = 0;
    }
}

impl PathCongestion for Rfc9260 {
    fn on_ack(&mut self, _now: Time, sample: &AckSample) {
        self.decays = false;
        let was_full =
            !self.options.growth_when_full_only || sample.in_flight_before >= self.window();
        if self.cwnd <= self.ssthresh {
            self.slow_start(sample, was_full);
        } else {
            self.avoid_congestion(sample, was_full);
        }
        if sample.flight_empty {
            // RFC 9260, 7.2.2: reset partial_bytes_acked when all data has been acknowledged.
            self.partial_bytes_acked = 0;
        }
    }

    fn on_loss(&mut self, _now: Time) {
        // RFC 9260, 7.2.3: ssthresh = max(cwnd / 2, 4 PMDCS), cwnd = ssthresh.
        self.halve();
        self.cwnd = self.ssthresh;
    }

    fn on_timeout(&mut self, _now: Time) {
        // RFC 9260, 7.2.3: ssthresh = max(cwnd / 2, 4 PMDCS), cwnd = 1 PMDCS.
        self.halve();
        self.cwnd = self.options.pmdcs;
    }

    fn on_spurious(&mut self, _now: Time) {
        if let Some((cwnd, ssthresh)) = self.before_loss.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    fn on_idle(&mut self, _now: Time) {
        let decayed = (self.cwnd / 2).max(4 * self.options.pmdcs);
        if decayed >= self.cwnd {
            return;
        }
        match self.options.idle_decay {
            IdleDecay::Off => return,
            IdleDecay::Heartbeat => self.ssthresh = self.ssthresh.max(self.cwnd * 3 / 4),
            // RFC 9260, 7.2.1: before the first adjustment, ssthresh SHOULD be set to cwnd.
            IdleDecay::Timeout if !self.decays => self.ssthresh = self.cwnd,
            IdleDecay::Timeout => {}
        }
        (self.cwnd, self.decays) = (decayed, true);
    }

    fn on_return(&mut self, _now: Time) {
        // RFC 7829, 3, rule 8 and the CMT-PF papers: restart from one unit.
        self.cwnd = self.options.pmdcs;
        self.partial_bytes_acked = 0;
    }

    fn limit(&mut self, most: u64) {
        if most < self.cwnd {
            self.cwnd = most.max(self.options.pmdcs);
            // The credit towards the next step is used up.
            self.partial_bytes_acked = 0;
        }
    }

    fn penalise(&mut self) {
        // A threshold that was not set by a loss stays: the path is in slow start.
        if self.cwnd >= self.ssthresh {
            self.ssthresh = (self.ssthresh / 2).max(2 * self.options.pmdcs);
        }
        self.limit(self.cwnd / 2);
    }

    fn set_unit(&mut self, unit: u64) {
        self.options.pmdcs = unit;
    }

    fn set_flow_share(&mut self, share: f64) {
        self.share = share;
    }

    fn window(&self) -> u64 {
        // A window of less than a unit would never send again.
        self.options
            .rounding
            .cut(self.cwnd, self.options.pmdcs)
            .max(self.cwnd.min(self.options.pmdcs))
    }

    fn ssthresh(&self) -> u64 {
        self.ssthresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: u64 = 1468;

    fn path(initial_ssthresh: u64) -> Rfc9260 {
        Rfc9260::new(Rfc9260Options {
            pmdcs: UNIT,
            initial_window: None,
            initial_ssthresh,
            min_ssthresh_chunks: 4,
            byte_counting_limit: 1,
            growth_when_full_only: true,
            idle_decay: IdleDecay::Timeout,
            partial_bytes_capped: true,
            rounding: WindowRounding::Bytes,
            hystart: false,
        })
    }

    fn ack(bytes: u64, in_flight_before: u64) -> AckSample {
        AckSample {
            acked_bytes: bytes,
            in_flight_before,
            advanced: true,
            in_recovery: false,
            flight_empty: false,
            ..AckSample::default()
        }
    }

    #[test]
    fn the_initial_window_is_that_of_the_rfc() {
        assert_eq!(path(1).window(), 4404);
        assert_eq!(Rfc9260Options { pmdcs: 500, ..path(1).options }.initial_window(), 2000);
        assert_eq!(Rfc9260Options { pmdcs: 9000, ..path(1).options }.initial_window(), 18_000);
        // Three packets of 1500 B over IPv6.
        for (pmdcs, window) in [(500, 2000), (1448, 4344), (9000, 18_000)] {
            assert_eq!(initial_window(pmdcs, true), window, "PMDCS {pmdcs}");
        }
    }

    #[test]
    fn an_idle_window_halves_once_per_timeout_and_the_threshold_remembers_it() {
        let mut c = path(1 << 30);
        (0..61).for_each(|_| c.on_ack(Time::ZERO, &ack(UNIT, 1 << 30)));
        let full = c.window();
        assert_eq!(full, 64 * UNIT);
        for left in [32, 16, 8, 4, 4, 4] {
            c.on_idle(Time::ZERO);
            assert_eq!((c.window(), c.ssthresh()), (left * UNIT, full));
        }
        // A window that does not decay leaves the threshold unchanged.
        let mut c = path(1 << 30);
        c.on_idle(Time::ZERO);
        assert_eq!((c.window(), c.ssthresh()), (4404, 1 << 30));
    }

    #[test]
    fn slow_start_grows_by_one_unit_per_acknowledgement_when_full() {
        let mut c = path(1 << 30);
        let full = c.window();
        c.on_ack(Time::ZERO, &ack(2 * UNIT, full));
        assert_eq!(c.window(), full + UNIT);
        c.on_ack(Time::ZERO, &ack(UNIT, full - 1));
        assert_eq!(c.window(), full + UNIT, "the window was not full");
        c.on_ack(Time::ZERO, &AckSample { advanced: false, ..ack(UNIT, 1 << 20) });
        assert_eq!(c.window(), full + UNIT, "the cumulative acknowledgement stood still");
    }

    #[test]
    fn avoidance_grows_by_one_unit_per_window() {
        let mut c = path(0);
        let start = c.window();
        let mut acked = 0;
        while c.window() == start {
            c.on_ack(Time::ZERO, &ack(UNIT, start));
            acked += UNIT;
        }
        assert!(acked >= start && acked < start + UNIT);
        assert_eq!(c.window(), start + UNIT);
    }

    #[test]
    fn windows_cut_to_whole_units_are_halved_down_and_never_vanish() {
        for (rounding, units, tenths_after) in [
            (WindowRounding::Bytes, 9, [45, 22, 11]),
            (WindowRounding::Packets, 9, [40, 20, 10]),
            (WindowRounding::Packets, 3, [10, 10, 10]),
        ] {
            let mut c = path(1 << 30);
            c.options = Rfc9260Options { rounding, min_ssthresh_chunks: 1, ..c.options };
            c.cwnd = units * UNIT;
            for tenths in tenths_after {
                c.on_loss(Time::ZERO);
                assert_eq!(c.window() * 10 / UNIT, tenths, "{rounding:?} from {units} units");
            }
        }
    }

    #[test]
    fn a_growth_of_less_than_a_unit_is_kept_until_it_is_one() {
        let mut c = path(1 << 30);
        c.options.rounding = WindowRounding::Packets;
        assert_eq!(c.window(), 4404 / UNIT * UNIT);
        let begun = c.window();
        c.on_ack(Time::ZERO, &ack(UNIT / 2, 1 << 30));
        assert_eq!(c.window(), begun);
        c.on_ack(Time::ZERO, &ack(UNIT / 2, 1 << 30));
        assert_eq!(c.window(), begun + UNIT);
    }

    #[test]
    fn loss_halves_and_timeout_starts_over_and_both_can_be_undone() {
        let mut c = path(1 << 30);
        (0..100).for_each(|_| c.on_ack(Time::ZERO, &ack(UNIT, 1 << 30)));
        let before = c.window();
        c.on_loss(Time::ZERO);
        assert_eq!((c.window(), c.ssthresh()), (before / 2, before / 2));
        c.on_spurious(Time::ZERO);
        assert_eq!(c.window(), before);
        c.on_timeout(Time::ZERO);
        assert_eq!((c.window(), c.ssthresh()), (UNIT, before / 2));
        c.on_timeout(Time::ZERO);
        assert_eq!(c.ssthresh(), 4 * UNIT);
    }
}
