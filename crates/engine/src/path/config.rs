//! What a path is told before it is used.

use ropewalk_base::{Duration, Rate};

use super::state::FailureLimits;

/// What is configured per path.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathConfig {
    /// Priority for `backup`: lower is better.
    pub cost: u32,
    /// Share for `weighted`.
    pub weight: f64,
    /// Largest packet, bytes on the wire with the headers below SCTP.
    pub mtu: u32,
    /// Forward delay told by the driver ([`super::DelaySource::Oracle`]).
    pub oracle_delay: Option<Duration>,
    /// Configured rate, for `weighted`.
    pub rate_hint: Option<Rate>,
    /// The peer's address is one of IPv6: the initial window is smaller (RFC 9260, 7.2.1).
    pub ipv6: bool,
    /// Whether HEARTBEATs go there while the path is idle (RFC 9260, 8.3).
    pub heartbeats: bool,
    /// HB.interval of this path; none: that of the association.
    pub heartbeat_interval: Option<Duration>,
    /// Path.Max.Retrans of this path; none: that of the association.
    pub max_retrans: Option<u32>,
    /// Factor by which the forward delay is misjudged, for sensitivity studies; 1 is honest.
    pub delay_error: f64,
}

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            cost: 1,
            weight: 1.0,
            mtu: 1500,
            oracle_delay: None,
            rate_hint: None,
            ipv6: false,
            heartbeats: true,
            heartbeat_interval: None,
            max_retrans: None,
            delay_error: 1.0,
        }
    }
}

impl PathConfig {
    /// After how many errors the path is doubted and given up; `usual`: those of the association.
    pub fn failure(&self, usual: FailureLimits) -> FailureLimits {
        let path_max_retrans = self.max_retrans.unwrap_or(usual.path_max_retrans);
        FailureLimits { path_max_retrans, ..usual }
    }
}
