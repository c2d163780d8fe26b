//! Forwarding for a tunnel only.
//!
//! An interface that forwards would forward everything that a neighbour sends to it. A table of the packet filter
//! therefore lets packets of the interfaces that a tunnel has switched on enter tunnels only, and lets only answers
//! return. Forwarding that the machine did before is unchanged.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use ropewalk_runtime::system::firewall::{self, Action, Chain, Hook, Match, Rule, Table};
use ropewalk_runtime::system::routes;

use super::journal::{Journal, JournalError};

/// Prefix of the names of tunnel devices, unless the user names them.
const DEVICES: &str = "rw-";
/// Settings of the interfaces.
const IPV4: &str = "/proc/sys/net/ipv4/conf";
const IPV6: &str = "/proc/sys/net/ipv6/conf";

/// The packets that this end forwards.
#[derive(Clone, Debug)]
pub enum Role {
    /// Packets of the networks behind a client, with its address.
    Client {
        /// The interfaces that lead there. If empty, those without a default route.
        inside: Vec<String>,
        /// The interfaces that are links of the tunnel.
        links: Vec<String>,
    },
    /// Packets of a hub's clients.
    Hub {
        /// Whether they leave with the hub's own address.
        nat: bool,
        /// Ports of the hub's endpoint, which are excluded from address translation.
        ports: Vec<u16>,
    },
}

/// Forwards packets for a tunnel.
#[derive(Debug)]
pub(super) struct Forwarding {
    table: String,
    device: String,
    role: Role,
    /// The networks whose packets are forwarded.
    networks: Vec<IpNet>,
    installed: Option<Table>,
}

impl Forwarding {
    /// Creates forwarding for the tunnel of this name and device. Nothing is changed yet.
    pub fn new(tunnel: &str, device: &str, role: Role, networks: &[IpNet]) -> Self {
        let table = format!("ropewalk-{tunnel}-forward");
        let (device, networks) = (device.to_owned(), networks.to_vec());
        Self { table, device, role, networks, installed: None }
    }

    /// Lets this machine forward packets of the families of the tunnel's networks.
    ///
    /// # Errors
    /// The error of the system.
    pub fn compare(&mut self, journal: &mut Journal) -> Result<(), JournalError> {
        let failed = |error| JournalError::Io(PathBuf::from("/proc/sys/net"), error);
        let interfaces = self.interfaces().map_err(failed)?;
        let settings = wanted(&interfaces, &self.networks);
        let has_ipv6 = self.networks.iter().any(|network| network.addr().is_ipv6());
        let needs_switch = has_ipv6 && needs_switch();
        let switch = needs_switch.then(|| Path::new(IPV6).join("all/forwarding"));
        let mut opened = journal.opened();
        for file in settings.iter().map(|(file, _)| file).chain(&switch) {
            if fs::read_to_string(file).is_ok_and(|value| value.trim() == "0") {
                opened.extend(interface_of(file));
            }
        }
        // Devices of tunnels have their own filters.
        opened.retain(|name| *name != self.device && !name.starts_with(DEVICES));
        opened.sort_unstable();
        opened.dedup();
        // The filter is installed before the first packet can be forwarded.
        self.install(journal, self.table(&interfaces, &opened))?;
        for (file, switch) in settings {
            match journal.set(&file, "1", Some(&switch)) {
                // The interface has gone meanwhile.
                Err(JournalError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
        if needs_switch { forward_ipv6_everywhere(journal) } else { Ok(()) }
    }

    fn install(&mut self, journal: &mut Journal, table: Table) -> Result<(), JournalError> {
        let is_known = self.installed.as_ref() == Some(&table);
        if !is_known || !firewall::is_installed(&table).unwrap_or(true) {
            journal.install(&table)?;
            self.installed = Some(table);
        }
        Ok(())
    }

    /// The interfaces that forward: the device, and those from which packets or answers arrive.
    fn interfaces(&self) -> io::Result<Vec<String>> {
        let all = routes::interfaces()?;
        let mut outside = Vec::new();
        if matches!(&self.role, Role::Client { inside, .. } if inside.is_empty()) {
            outside = routes::default_interfaces()?;
        }
        let forwards = |one: &routes::Interface| match &self.role {
            _ if one.name == self.device => true,
            _ if one.name == "lo" => false,
            Role::Client { inside, .. } if !inside.is_empty() => inside.contains(&one.name),
            Role::Client { links, .. } => {
                !one.is_tun && !links.contains(&one.name) && !outside.contains(one)
            }
            Role::Hub { .. } => true,
        };
        Ok(all.into_iter().filter(forwards).map(|one| one.name).collect())
    }

    /// The rules. `interfaces` forward, and those in `opened` did not before.
    fn table(&self, interfaces: &[String], opened: &[String]) -> Table {
        let from = |name: &str| Match::From(name.to_owned());
        let by_device = Match::By(self.device.clone());
        let mut forward = Vec::new();
        let mut chains = Vec::new();
        match &self.role {
            Role::Client { .. } => {
                let answers = [from(&self.device), Match::Established];
                forward.push(Rule::new(answers, Action::Accept));
                forward.push(Rule::new([from(&self.device)], Action::Drop));
                // Do not restrict forwarding between the links: the machine may be a router.
                for inside in interfaces.iter().filter(|name| **name != self.device) {
                    forward.push(Rule::new([from(inside), by_device.clone()], Action::Accept));
                }
                forward.push(Rule::new([by_device.clone()], Action::Drop));
                let translated = Rule::new([by_device], Action::Masquerade);
                let rules = vec![translated];
                chains.push(Chain { hook: Hook::SourceNat, drops: false, rules });
            }
            Role::Hub { nat, ports } => {
                if *nat {
                    let answers = [by_device.clone(), Match::Established];
                    forward.push(Rule::new(answers, Action::Accept));
                    forward.push(Rule::new([by_device], Action::Drop));
                    let leaves = |network: &IpNet| {
                        let other = Match::NotBy(self.device.clone());
                        Rule::new([Match::Source(*network), other], Action::Masquerade)
                    };
                    let rules = self.networks.iter().map(leaves).collect();
                    chains.push(Chain { hook: Hook::SourceNat, drops: false, rules });
                }
                chains.extend(self.own_ports(ports));
            }
        }
        for name in opened {
            let past = match name.as_str() {
                // IPv6 before Linux 6.17 forwards between all interfaces or none.
                "all" => vec![
                    Match::Ipv6,
                    Match::NotFrom(self.device.clone()),
                    Match::NotFromPrefix(DEVICES.to_owned()),
                ],
                name => vec![from(name)],
            };
            let to_no_tunnel =
                [Match::NotByPrefix(DEVICES.to_owned()), Match::NotBy(self.device.clone())];
            forward.push(Rule::new([past, to_no_tunnel.into()].concat(), Action::Drop));
        }
        chains.push(Chain { hook: Hook::Forward, drops: false, rules: forward });
        chains.retain(|chain| !chain.rules.is_empty());
        Table { name: self.table.clone(), chains }
    }

    /// Disables connection tracking for datagrams of the hub's endpoint. Otherwise a client could choose the
    /// endpoint's port as the source port of its own packet, and would receive the datagrams of another client as
    /// answers (CVE-2021-3773). Packets from inside the tunnel do not reach the endpoint.
    fn own_ports(&self, ports: &[u16]) -> [Chain; 3] {
        let rules = |of: &dyn Fn(u16) -> Rule| ports.iter().map(|port| of(*port)).collect();
        let from = Match::From(self.device.clone());
        let inside = |port| Rule::new([from.clone(), Match::UdpDestination(port)], Action::Drop);
        let comes = |port| {
            let outside = Match::NotFrom(self.device.clone());
            Rule::new([outside, Match::UdpDestination(port)], Action::NoTrack)
        };
        let leaves = |port| {
            let outside = Match::NotBy(self.device.clone());
            Rule::new([outside, Match::UdpSource(port)], Action::NoTrack)
        };
        [
            Chain { hook: Hook::RawInput, drops: false, rules: rules(&comes) },
            Chain { hook: Hook::RawOutput, drops: false, rules: rules(&leaves) },
            Chain { hook: Hook::Input, drops: false, rules: rules(&inside) },
        ]
    }
}

/// Whether IPv6 forwarding has only one switch for all interfaces. Since Linux 6.17 each interface has one.
fn needs_switch() -> bool {
    let conf = Path::new(IPV6);
    conf.exists() && !conf.join("all/force_forwarding").exists()
}

/// The settings that let these interfaces forward, each with the switch for all interfaces that also sets it. These
/// switches are left unchanged where the kernel permits it: writing them resets other values of all interfaces.
fn wanted(interfaces: &[String], networks: &[IpNet]) -> Vec<(PathBuf, PathBuf)> {
    let mut all = Vec::new();
    let mut add = |conf: &str, key: &str| {
        let of = |name: &str| Path::new(conf).join(name).join(key);
        all.extend(interfaces.iter().map(|name| (of(name), of("all"))));
    };
    if networks.iter().any(|network| network.addr().is_ipv4()) {
        add(IPV4, "forwarding");
    }
    let has_ipv6 = networks.iter().any(|network| network.addr().is_ipv6());
    if has_ipv6 && Path::new(IPV6).exists() && !needs_switch() {
        add(IPV6, "force_forwarding");
    }
    all
}

/// The interface that a setting belongs to, or `all` for the switch for all interfaces.
fn interface_of(file: &Path) -> Option<String> {
    file.parent()?.file_name().map(|name| name.to_string_lossy().into_owned())
}

impl Journal {
    /// The interfaces that did not forward before a tunnel switched them on.
    fn opened(&self) -> Vec<String> {
        let is_switch =
            |file: &Path| file.ends_with("forwarding") || file.ends_with("force_forwarding");
        self.values()
            .filter(|(file, before)| is_switch(file) && *before == "0")
            .filter_map(|(file, _)| interface_of(file))
            .collect()
    }
}

/// Enables IPv6 forwarding for all interfaces. A machine that forwards ignores router advertisements, and would lose
/// its own default route, unless configured otherwise.
fn forward_ipv6_everywhere(journal: &mut Journal) -> Result<(), JournalError> {
    let conf = Path::new(IPV6);
    let entries = fs::read_dir(conf).into_iter().flatten().flatten().map(|entry| entry.path());
    let others = ["all", "default", "lo"];
    let all: Vec<PathBuf> =
        entries.filter(|path| !others.iter().any(|name| path.ends_with(name))).collect();
    for file in all.iter().map(|interface| interface.join("accept_ra")) {
        if fs::read_to_string(&file).is_ok_and(|value| value.trim() == "1") {
            journal.set(&file, "2", None)?;
        }
    }
    let others = [conf.join("default"), conf.join("lo")];
    let dependent: Vec<PathBuf> =
        all.iter().chain(&others).map(|interface| interface.join("forwarding")).collect();
    journal.set_switch(&conf.join("all/forwarding"), "1", &dependent)
}
