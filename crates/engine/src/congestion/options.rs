//! Options of congestion control.

use ropewalk_base::Seed;

use super::{IdleDecay, WindowRounding};

/// The rules to follow where published implementations differ from published algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CongestionFlavour {
    /// The RFC, draft or paper of the algorithm.
    #[default]
    Published,
    /// The public ns-3 model of Multipath TCP (Chihani and Collange 2011): see
    /// [`Chihani2011`](super::Chihani2011). It supports `newreno`, `lia` and `fully-coupled` only.
    Chihani2011 {
        /// `lia`: whether growth is limited to that of an uncoupled path (the model's "RTT compensator") or
        /// follows `a / W` alone (its "linked increases").
        compensated: bool,
    },
}

/// Origin of the rules of a part of an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rules {
    /// Those of the RFC.
    #[default]
    Rfc,
    /// Those of Linux 6.x.
    Linux,
}

/// The paths that an uncoupled algorithm treats as one flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum BottleneckCoupling {
    /// None: each path is a separate flow.
    #[default]
    None,
    /// Paths that are detected to share a bottleneck, by the forward delays of their packets
    /// ([`SharedBottlenecks`](crate::path::SharedBottlenecks)).
    Detected,
    /// All.
    All,
}

/// Variants of single algorithms that differ from their standards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionVariants {
    /// `cubic`: whether a flow whose loss occurs earlier than the last one leaves bandwidth to others
    /// (RFC 9438, 4.7). It costs a single flow some throughput, because of equally spaced losses every
    /// other one appears to occur earlier.
    pub fast_convergence: bool,
    /// Whether the first slow start of a path ends by HyStart++ (RFC 9406) when round trips grow. Applies
    /// to all algorithms except `wvegas`, `bbr` and `bbr-v1`, which have their own rules.
    pub hystart: bool,
    /// `cubic`: HyStart++, or the HyStart of Linux, which has no conservative slow start and also ends
    /// slow start after a train of acknowledgements of half a round trip.
    pub hystart_rules: Rules,
    /// `cubic`: with the rules of Linux, the curve is ahead by the minimum round trip instead of the
    /// smoothed one, the window grows by 5 % per round trip before the first loss, and the estimate of
    /// Reno never grows faster.
    pub cubic_rules: Rules,
    /// When a window counts as in use, so that it may grow: when it was full (RFC 7661), or as in Linux,
    /// which in slow start also lets it grow to twice the data in flight.
    pub window_use: Rules,
    /// `bbr`: maximum loss rate of a round, parts in a thousand, at which losses do not lower the
    /// short-term bounds while no probe is in progress. 0 as in the draft. With a larger value random
    /// losses cost less, and a flow yields less to others.
    pub tolerated_loss_permille: u8,
    /// `bbr`: whether `ProbeRTT` drains only a tenth of the data in flight, for a round, if the round
    /// trip came close to the minimum while the sender had no queue. Not while paths are coupled. The
    /// draft always drains half of it for 200 ms.
    pub brief_probe_rtt: bool,
    /// `rfc9260`, `newreno`, `cubic`, `bbr` and `prague`: the paths that act together like one flow.
    pub coupling: BottleneckCoupling,
}

impl CongestionVariants {
    /// As in RFC 9438 and the draft of BBR, without HyStart++.
    pub const STANDARD: Self = Self {
        fast_convergence: true,
        hystart: false,
        hystart_rules: Rules::Rfc,
        cubic_rules: Rules::Rfc,
        window_use: Rules::Rfc,
        tolerated_loss_permille: 0,
        brief_probe_rtt: false,
        coupling: BottleneckCoupling::None,
    };

    /// As in Linux 6.x.
    pub const LINUX: Self = Self {
        hystart: true,
        hystart_rules: Rules::Linux,
        cubic_rules: Rules::Linux,
        window_use: Rules::Linux,
        ..Self::STANDARD
    };
}

impl Default for CongestionVariants {
    fn default() -> Self {
        Self::STANDARD
    }
}

/// Options of the algorithms. Each algorithm reads its own fields only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionOptions {
    /// Unit of every rule and minimum window, bytes: the sender's maximum segment size, or the path
    /// maximum DATA chunk size. At least 1.
    pub unit: u64,
    /// Initial window, bytes. `None`: the value of the algorithm's standard (RFC 6928 for TCP, RFC 9260
    /// Section 7.2.1 for `rfc9260`). A larger value starts faster and risks a burst of losses.
    pub initial_window: Option<u64>,
    /// Initial slow-start threshold, bytes. Arbitrarily high for TCP (RFC 5681, 3.1).
    pub initial_ssthresh: u64,
    /// Minimum threshold after a loss, in units: 2 for TCP (RFC 5681, Equation 4), 4 for SCTP (RFC 9260,
    /// 7.2.3). A larger value makes a path with many losses faster, and less friendly to other flows.
    pub min_ssthresh_units: u64,
    /// Maximum growth per acknowledgement in slow start, in units: 2 for TCP (RFC 3465, 2.3), 1 for SCTP
    /// (RFC 9260, 7.2.1). 2 compensates for delayed acknowledgements.
    pub byte_counting_limit: u64,
    /// Whether windows grow only when they were fully used (RFC 9260, 7.2.1; RFC 7661, 4.3).
    pub growth_when_full_only: bool,
    /// When windows decay while a path is idle (RFC 5681, 4.1; RFC 9260, 7.2.1).
    pub idle_decay: IdleDecay,
    /// `rfc9260`: see [`Rfc9260Options::partial_bytes_capped`](super::Rfc9260Options).
    pub partial_bytes_capped: bool,
    /// `rfc9260`: whether windows are rounded down to full units, as in throughput models.
    pub rounding: WindowRounding,
    /// Variants of single algorithms.
    pub variants: CongestionVariants,
    /// The rules to follow.
    pub flavour: CongestionFlavour,
    /// Seed of the connection's random waits between probes (`bbr`) and first phases (`bbr-v1`).
    pub seed: Seed,
}

impl CongestionOptions {
    /// A threshold above any window, bytes.
    pub const UNLIMITED: u64 = 1 << 40;

    /// TCP's values, for segments of `mss` bytes.
    pub const fn tcp(mss: u64) -> Self {
        Self {
            unit: mss,
            initial_window: None,
            initial_ssthresh: Self::UNLIMITED,
            min_ssthresh_units: 2,
            byte_counting_limit: 2,
            growth_when_full_only: true,
            idle_decay: IdleDecay::Heartbeat,
            partial_bytes_capped: true,
            rounding: WindowRounding::Bytes,
            variants: CongestionVariants::STANDARD,
            flavour: CongestionFlavour::Published,
            seed: Seed::root(0),
        }
    }

    /// RFC 6928, Section 2: `min(10 MSS, max(2 MSS, 14600 B))`, unless configured otherwise; bytes.
    pub fn tcp_initial_window(&self) -> u64 {
        let standard = (10 * self.unit).min((2 * self.unit).max(14_600));
        self.initial_window.unwrap_or(standard).max(self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_window_of_tcp_is_that_of_rfc_6928() {
        for (mss, window) in [(536, 5360), (1460, 14_600), (4000, 14_600), (8960, 17_920)] {
            assert_eq!(CongestionOptions::tcp(mss).tcp_initial_window(), window, "MSS {mss}");
        }
        let told = CongestionOptions { initial_window: Some(3000), ..CongestionOptions::tcp(1460) };
        assert_eq!(told.tcp_initial_window(), 3000);
    }
}
