//! Transports of the kernel, and the corresponding simulated transports.

use core::fmt;
use core::str::FromStr;

use ropewalk_scenario::{Congestion, Scenario, Target, Transfer};

/// A transport of the Linux kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KernelTransport {
    /// TCP over one path with NewReno.
    TcpReno,
    /// TCP over one path with CUBIC.
    TcpCubic,
    /// TCP over one path with BBR version 1, the version in the kernel.
    TcpBbr,
    /// Multipath TCP over all paths, with CUBIC and the kernel's scheduler.
    Mptcp,
}

/// The kernel's name of a simulated congestion control. `None` if the kernel does not have it.
pub const fn kernel_congestion(simulated: Congestion) -> Option<&'static str> {
    match simulated {
        Congestion::NewReno => Some("reno"),
        Congestion::Cubic => Some("cubic"),
        Congestion::BbrV1 => Some("bbr"),
        _ => None,
    }
}

/// Options for opening the kernel's sockets for a transport.
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

    /// Options for opening the kernel's sockets.
    pub const fn flow(self) -> Flow {
        let congestion = match self {
            Self::TcpReno => "reno",
            Self::TcpCubic | Self::Mptcp => "cubic",
            Self::TcpBbr => "bbr",
        };
        Flow { multipath: matches!(self, Self::Mptcp), congestion }
    }

    /// The scenario that simulates this transport on the same links. TCP uses the path with index `path`. All
    /// settings except the receive buffer are those of the preset `linux-6`, independent of the scenario.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn simulated(self, scenario: &Scenario, path: usize) -> Scenario {
        let preset = self.preset();
        let mut simulated = scenario.clone();
        (simulated.scheduler, simulated.tcp) = (preset.scheduler, preset.tcp);
        simulated.tcp.receive_buffer_max = scenario.tcp.receive_buffer_max;
        let links = &scenario.transfer;
        simulated.transfer = Transfer {
            duration: links.duration,
            warmup: links.warmup,
            seed: links.seed,
            receive_buffer: links.receive_buffer,
            packet: links.packet,
            ..preset.transfer
        };
        if self != Self::Mptcp {
            simulated.paths = vec![scenario.paths[path].clone()];
            simulated.cross.retain(|cross| !matches!(cross.on, Target::Path(on) if on != path));
            for cross in &mut simulated.cross {
                if let Target::Path(on) = &mut cross.on {
                    *on = 0;
                }
            }
        }
        simulated
    }

    /// The settings that simulate it. They are parsed from a text, because the preset is a set of
    /// defaults.
    fn preset(self) -> Scenario {
        let congestion = match self {
            Self::TcpReno => "newreno",
            Self::TcpCubic | Self::Mptcp => "cubic",
            Self::TcpBbr => "bbr-v1",
        };
        let (protocol, paths): (&str, &[&str]) = match self {
            Self::Mptcp => ("mptcp", &["a", "b"]),
            _ => ("tcp", &["a"]),
        };
        let mut text = format!(
            "[transfer]\nprotocol = '{protocol}'\npreset = 'linux-6'\ncongestion = '{congestion}'\n"
        );
        for name in paths {
            text += &format!("[[path]]\nname = '{name}'\nrate = '1 Mbit/s'\nrtt = '10 ms'\n");
        }
        Scenario::parse(&text, "linux-6").expect("a valid scenario; a test parses each")
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

#[cfg(test)]
mod tests {
    use ropewalk_scenario::{Preset, Protocol, SchedulerName};

    use super::*;

    const LINKS: &str = "[transfer]\nscheduler = 'daps'\n\
        [[path]]\nname = 'a'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n\
        [[path]]\nname = 'b'\nrate = '2 Mbit/s'\nrtt = '40 ms'\n\
        [[cross]]\nkind = 'cbr'\non = 'a'\nrate = '100 kbit/s'\n[[cross]]\nkind = 'cbr'\non = 'b'\nrate = '200 kbit/s'\n";

    #[test]
    fn tcp_is_simulated_over_its_own_path_with_the_traffic_there() {
        let scenario = Scenario::parse(LINKS, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        for (path, name) in ["a", "b"].into_iter().enumerate() {
            let same = KernelTransport::TcpBbr.simulated(&scenario, path);
            assert_eq!(same.transfer.protocol, Protocol::Tcp);
            assert_eq!((same.paths.len(), same.paths[0].name.as_str()), (1, name));
            assert_eq!((same.cross.len(), same.cross[0].on), (1, Target::Path(0)));
            assert_eq!(same.cross[0].kind, scenario.cross[path].kind);
        }
    }

    #[test]
    fn multipath_tcp_is_simulated_over_all_paths_with_the_scheduler_of_linux() {
        let scenario = Scenario::parse(LINKS, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        let same = KernelTransport::Mptcp.simulated(&scenario, 0);
        assert_eq!((same.paths.len(), same.cross.len()), (2, 2));
        assert_eq!(same.scheduler.name, SchedulerName::Linux);
        assert_eq!(same.transfer.preset, Preset::Linux6);
    }

    /// The preset decides on keys that the scenario sets differently, or that have other defaults without it.
    #[test]
    fn all_settings_but_the_links_are_those_of_the_preset() {
        for transport in KernelTransport::ALL {
            let [plain, preset] = ["rfc8684", "linux-6"].map(|preset| {
                let text = format!(
                    "[transfer]\nprotocol = 'mptcp'\npreset = '{preset}'\nreceive_buffer = '45 kB'\n\
                    [tcp]\nreceive_rules = 'linux'\nreceive_buffer_max = '2 MiB'\n\
                    [[path]]\nname = 'a'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n\
                    [[path]]\nname = 'b'\nrate = '2 Mbit/s'\nrtt = '40 ms'\n"
                );
                let scenario = Scenario::parse(&text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
                transport.simulated(&scenario, 0)
            });
            assert_eq!(plain, preset, "{transport}");
            assert_eq!(plain.transfer.receive_buffer, 45_000);
            assert_eq!(plain.tcp.receive_buffer_max, Some(2 << 20));
            assert!(plain.transfer.prr && plain.transfer.hystart);
            // The text written for `--out` can be read again.
            let again = Scenario::parse(&plain.to_toml(), "again.toml");
            assert_eq!(again.unwrap_or_else(|e| panic!("{e}")).transfer, plain.transfer);
        }
    }

    #[test]
    fn every_transport_has_a_name() {
        for transport in KernelTransport::ALL {
            assert_eq!(transport.as_str().parse(), Ok(transport));
        }
        assert!("tcp-vegas".parse::<KernelTransport>().is_err());
    }
}
