//! What the algorithms can be told.

use super::{IdleDecay, WindowRounding};

/// Whose rules, where published set-ups differ from the published algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CongestionFlavour {
    /// What the RFC, the draft or the paper of the algorithm says.
    #[default]
    Published,
    /// The public ns-3 model of Multipath TCP (Chihani and Collange 2011): see
    /// [`Chihani2011`](super::Chihani2011). It has `newreno`, `lia` and `fully-coupled` only.
    Chihani2011 {
        /// `lia`: whether growth is never more than that of a path for itself (that model's
        /// "RTT compensator") or follows `a / W` alone (its "linked increases").
        compensated: bool,
    },
}

/// What the algorithms can be told. Each one reads its own fields only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CongestionOptions {
    /// Bytes that every rule counts in, and least window: the sender's maximum segment size, or the
    /// path maximum DATA chunk size. From 1.
    pub unit: u64,
    /// Initial window, bytes; none: what the algorithm's standard says (RFC 6928 for TCP's,
    /// RFC 9260 Section 7.2.1 for `rfc9260`). More starts quicker and risks a burst of losses.
    pub initial_window: Option<u64>,
    /// Initial slow-start threshold, bytes. Arbitrarily high for TCP (RFC 5681, 3.1).
    pub initial_ssthresh: u64,
    /// After a loss the threshold is at least so many units: 2 for TCP (RFC 5681, Equation 4), 4 for
    /// SCTP (RFC 9260, 7.2.3). More keeps a path with many losses quicker, and less friendly.
    pub min_ssthresh_units: u64,
    /// Most units by which one acknowledgement opens the window in slow start: 2 for TCP (RFC 3465,
    /// 2.3), 1 for SCTP (RFC 9260, 7.2.1). 2 makes up for delayed acknowledgements.
    pub byte_counting_limit: u64,
    /// Whether windows grow only when they were in full use (RFC 9260, 7.2.1; RFC 7661, 4.3).
    pub growth_when_full_only: bool,
    /// When windows decay while a path is idle (RFC 5681, 4.1; RFC 9260, 7.2.1).
    pub idle_decay: IdleDecay,
    /// `rfc9260`: see [`Rfc9260Options::partial_bytes_capped`](super::Rfc9260Options).
    pub partial_bytes_capped: bool,
    /// `rfc9260`: whether windows are cut to whole units, as throughput models count.
    pub rounding: WindowRounding,
    /// `cubic`: whether a flow that loses sooner than the last time leaves room to others (RFC 9438,
    /// 4.7). It costs a flow alone some throughput, since of equal losses every other seems sooner.
    pub fast_convergence: bool,
    /// Whose rules.
    pub flavour: CongestionFlavour,
}

impl CongestionOptions {
    /// A threshold that no window reaches, bytes.
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
            fast_convergence: true,
            flavour: CongestionFlavour::Published,
        }
    }

    /// RFC 6928, Section 2: `min(10 MSS, max(2 MSS, 14600 B))`, unless told otherwise; bytes.
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
