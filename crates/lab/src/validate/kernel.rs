//! The kernel's transports, and what simulates them.

use core::fmt;
use core::str::FromStr;

use ropewalk_scenario::{Congestion, Preset, Protocol, Scenario, SchedulerName, Target};

/// A transport of the Linux kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelTransport {
    /// TCP over the first path with NewReno.
    TcpReno,
    /// TCP over the first path with CUBIC.
    TcpCubic,
    /// TCP over the first path with BBR, of which the kernel has version 1.
    TcpBbr,
    /// Multipath TCP over all paths, with CUBIC and the kernel's scheduler.
    Mptcp,
}

/// How the kernel's sockets are opened for a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Multipath TCP instead of TCP.
    pub multipath: bool,
    /// The kernel's name of the congestion control.
    pub congestion: &'static str,
}

impl KernelTransport {
    /// All transports, in the order of reports.
    pub const ALL: [Self; 4] = [Self::TcpReno, Self::TcpCubic, Self::TcpBbr, Self::Mptcp];

    /// The name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TcpReno => "tcp-reno",
            Self::TcpCubic => "tcp-cubic",
            Self::TcpBbr => "tcp-bbr",
            Self::Mptcp => "mptcp",
        }
    }

    /// How the kernel's sockets are opened.
    pub const fn flow(self) -> Flow {
        let congestion = match self {
            Self::TcpReno => "reno",
            Self::TcpCubic | Self::Mptcp => "cubic",
            Self::TcpBbr => "bbr",
        };
        Flow { multipath: matches!(self, Self::Mptcp), congestion }
    }

    /// The scenario that simulates this transport on the same links. All other settings are those of the preset
    /// `linux-6`, whatever the scenario has.
    pub fn simulated(self, scenario: &Scenario) -> Scenario {
        let mut simulated = scenario.clone();
        let transfer = &mut simulated.transfer;
        transfer.preset = Preset::Linux6;
        transfer.congestion = match self {
            Self::TcpReno => Congestion::NewReno,
            Self::TcpCubic | Self::Mptcp => Congestion::Cubic,
            Self::TcpBbr => Congestion::Bbr,
        };
        (transfer.guard, transfer.hystart) = (false, true);
        simulated.scheduler.name = SchedulerName::Linux;
        simulated.scheduler.custom = None;
        if self == Self::Mptcp {
            simulated.transfer.protocol = Protocol::Mptcp;
        } else {
            simulated.transfer.protocol = Protocol::Tcp;
            simulated.paths.truncate(1);
            simulated.cross.retain(|cross| !matches!(cross.on, Target::Path(path) if path > 0));
        }
        simulated
    }
}

impl fmt::Display for KernelTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for KernelTransport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|transport| transport.as_str() == text);
        let names = Self::ALL.map(Self::as_str).join(", ");
        found.ok_or_else(|| format!("`{text}` is no transport of the kernel: give one of {names}"))
    }
}
