//! Configuration of a path.

use ropewalk_base::{Duration, Rate};

use super::state::FailureLimits;

/// When a path carries data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum PathUse {
    /// Always.
    #[default]
    Always,
    /// Only for data that exceeds the other paths: while each usable path of an earlier use or a lower
    /// cost is full, or paced.
    WhenNeeded,
    /// Only while no path of the other uses works. Of several backups, those of the lowest cost carry
    /// data.
    Backup,
    /// Never, even if no other path works.
    Never,
}

impl PathUse {
    /// Whether the path carries data while all paths work.
    pub const fn is_regular(self) -> bool {
        matches!(self, Self::Always | Self::WhenNeeded)
    }
}

/// Settings of one path.
///
/// `repr(C)` keeps the order of the fields, with those that packets access first. Small ones fill gaps
/// between others.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(C)]
pub struct PathConfig {
    /// Largest packet, bytes on the wire, including the headers below SCTP.
    pub mtu: u32,
    /// Price of a byte, on any scale: lower is better. It orders the paths for the scheduler `backup`,
    /// and paths of one use other than [`PathUse::Always`] for all schedulers.
    pub cost: u32,
    /// When the path carries data.
    pub usage: PathUse,
    /// Errors after which this path is potentially failed. `None`: that of the association.
    pub potentially_failed: Option<u16>,
    /// Error factor of the estimated forward delay, for sensitivity studies; 1 is correct.
    pub delay_error: f64,
    /// Share for `weighted`.
    pub weight: f64,
    /// Forward delay provided by the driver ([`super::DelaySource::Oracle`]).
    pub oracle_delay: Option<Duration>,
    /// Configured rate, for `weighted`.
    pub rate_hint: Option<Rate>,
    /// Whether the peer's address is an IPv6 address, which makes the initial window smaller (RFC 9260,
    /// 7.2.1).
    pub ipv6: bool,
    /// Whether HEARTBEATs are sent on the path while it is idle (RFC 9260, 8.3).
    pub heartbeats: bool,
    /// Path.Max.Retrans of this path. `None`: that of the association.
    pub max_retrans: Option<u16>,
    /// HB.interval of this path. `None`: that of the association.
    pub heartbeat_interval: Option<Duration>,
}

impl Default for PathConfig {
    fn default() -> Self {
        Self {
            cost: 1,
            usage: PathUse::Always,
            weight: 1.0,
            mtu: 1500,
            oracle_delay: None,
            rate_hint: None,
            ipv6: false,
            heartbeats: true,
            heartbeat_interval: None,
            max_retrans: None,
            potentially_failed: None,
            delay_error: 1.0,
        }
    }
}

impl PathConfig {
    /// Error counts above which the path is potentially failed or inactive; `usual` has those of the
    /// association.
    pub fn failure(&self, usual: FailureLimits) -> FailureLimits {
        FailureLimits {
            path_max_retrans: self.max_retrans.map_or(usual.path_max_retrans, u32::from),
            potentially_failed: self.potentially_failed.map_or(usual.potentially_failed, u32::from),
        }
    }
}
