//! Settings of a match in addition to scenario and scheduler: the protocol, its preset, and whether messages are
//! delivered in order.

use std::fmt;
use std::str::FromStr;

use ropewalk_scenario::{Named, Preset, Protocol};

/// Suffix of a setting that delivers messages on arrival.
const UNORDERED: &str = "-unordered";

/// A protocol with the preset and the order of the scenario, or a named preset and order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Setting {
    /// Only the protocol: the scenario's own preset applies if it belongs to this protocol.
    Protocol(Protocol),
    /// A preset, with its multipath protocol. Messages are delivered on arrival if `unordered`, otherwise as in the
    /// scenario.
    Preset { preset: Preset, unordered: bool },
}

impl Setting {
    /// The settings of interest on access links: those of the live commands for connections and for files, and those of other
    /// implementations.
    pub const OF_ACCESS: [Self; 5] = [
        Self::Preset { preset: Preset::Live, unordered: false },
        Self::Preset { preset: Preset::Live, unordered: true },
        Self::Preset { preset: Preset::Rfc9260, unordered: false },
        Self::Preset { preset: Preset::Rfc8684, unordered: false },
        Self::Preset { preset: Preset::Linux6, unordered: false },
    ];

    /// The protocol.
    pub const fn protocol(self) -> Protocol {
        match self {
            Self::Protocol(protocol) => protocol,
            Self::Preset { preset, .. } if preset.is_tcp() => Protocol::Mptcp,
            Self::Preset { .. } => Protocol::CmtSctp,
        }
    }

    /// Every setting with a preset. Multipath TCP always delivers in order.
    fn presets() -> impl Iterator<Item = Self> {
        Preset::ALL.iter().flat_map(|preset| {
            let orders: &[bool] = if preset.is_tcp() { &[false] } else { &[false, true] };
            orders.iter().map(|unordered| Self::Preset { preset: *preset, unordered: *unordered })
        })
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Protocol(protocol) => write!(f, "{protocol}"),
            Self::Preset { preset, unordered: false } => write!(f, "{preset}"),
            Self::Preset { preset, unordered: true } => write!(f, "{preset}{UNORDERED}"),
        }
    }
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::presets().find(|setting| setting.to_string() == name);
        found.ok_or_else(|| {
            let names: Vec<String> = Self::presets().map(|setting| setting.to_string()).collect();
            format!("no such setting; valid: {}", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_reads_its_own_name_and_knows_its_protocol() {
        for setting in Setting::presets() {
            assert_eq!(setting.to_string().parse(), Ok(setting));
        }
        let of = |name: &str| name.parse::<Setting>().map(Setting::protocol);
        assert_eq!(of("live-unordered"), Ok(Protocol::CmtSctp));
        assert_eq!(of("linux-6"), Ok(Protocol::Mptcp));
        let error = of("linux-6-unordered").expect_err("Multipath TCP delivers in order");
        assert!(error.contains("live, live-unordered, "), "{error}");
        assert!(Setting::OF_ACCESS.iter().all(|one| Setting::presets().any(|known| known == *one)));
    }
}
