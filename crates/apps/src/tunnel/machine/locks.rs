//! The kill switch: nothing leaves the machine outside of the tunnel.
//!
//! The machine is closed before anything else happens, and opened only by an orderly end. After an error, a crash or
//! `kill -9` it stays closed until the tunnel runs again and ends, or until `ropewalk tunnel undo`.
//!
//! Two locks close it: a table of the packet filter, and rules of policy routing.

use std::io;
use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use ropewalk_runtime::system::firewall::{self, Action, Chain, Hook, Match, Rule, Table};

use super::journal::{Journal, JournalError};
use super::networks::single;
use super::steering::{self, DHCP, DOMAIN, OUTSIDE_MARK};
use crate::captive_portal::HTTP;
use crate::tunnel::TunnelError;

/// The locks of a closed machine.
#[derive(Debug)]
pub(super) struct Locks {
    table: String,
    device: String,
    /// Networks that are reached outside of the tunnel nevertheless.
    direct: Vec<IpNet>,
    /// The hubs, which packets may reach outside of the tunnel.
    pub hubs: Vec<SocketAddr>,
    /// The name servers that may be queried for the hubs.
    pub name_servers: Vec<IpAddr>,
    /// The table that was installed.
    installed: Option<Table>,
}

impl Locks {
    /// Creates the locks of the tunnel with this name and device. Nothing is changed yet.
    pub fn new(tunnel: &str, device: &str, direct: &[IpNet]) -> Self {
        Self {
            table: table_of(tunnel),
            device: device.to_owned(),
            direct: direct.to_vec(),
            hubs: Vec::new(),
            name_servers: Vec::new(),
            installed: None,
        }
    }

    /// Closes the packet filter without a journal, such as on a full disk. [`open_unknown`] opens it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn close_without_journal(&self) -> io::Result<()> {
        firewall::install(&self.table())
    }

    /// Closes what is open. Returns whether another program has opened it.
    ///
    /// # Errors
    /// The error of the system.
    pub fn compare(&mut self, journal: &mut Journal) -> Result<bool, JournalError> {
        let table = self.table();
        let is_known = self.installed.as_ref() == Some(&table);
        let is_gone = is_known && !firewall::is_installed(&table).unwrap_or(true);
        if !is_known || is_gone {
            journal.close_filter(&table)?;
            self.installed = Some(table);
        }
        let rules = steering::rules(&self.device, &self.direct, &self.hubs, &self.name_servers);
        let is_open = journal.close_routing(&rules)?;
        Ok(is_gone || is_open && is_known)
    }

    fn table(&self) -> Table {
        kill_switch(&self.table, &self.device, &self.hubs, &self.direct)
    }
}

/// Removes a kill switch that is in no journal. Does nothing if there is none.
///
/// # Errors
/// The error of the system.
pub(super) fn open_unknown(tunnel: &str) -> Result<(), TunnelError> {
    match firewall::remove(&table_of(tunnel)) {
        // A process that may not see the rules has not closed the machine.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        other => other.map_err(TunnelError::system("opening the kill switch")),
    }
}

/// The table of the packet filter that closes the machine.
fn table_of(tunnel: &str) -> String {
    format!("ropewalk-{tunnel}")
}

/// The rules that let nothing leave this machine, or pass it, outside of the tunnel: only packets to the peers, lookups of
/// their names, requests that find captive portals, DHCP, neighbour discovery, and packets to the networks in `direct`.
fn kill_switch(table: &str, device: &str, peers: &[SocketAddr], direct: &[IpNet]) -> Table {
    let accept = |matches: Vec<Match>| Rule::new(matches, Action::Accept);
    let to_peer = |peer: &SocketAddr| {
        let network = single(peer.ip().to_canonical());
        accept(vec![Match::Destination(network), Match::UdpDestination(peer.port())])
    };
    let mut output = vec![
        accept(vec![Match::By("lo".to_owned())]),
        accept(vec![Match::By(device.to_owned())]),
        accept(vec![Match::NeighbourDiscovery]),
    ];
    output.extend(peers.iter().map(to_peer));
    for port in [Match::UdpDestination(DOMAIN), Match::TcpDestination(DOMAIN)] {
        output.push(accept(vec![Match::Mark(OUTSIDE_MARK), port]));
    }
    output.extend(peers.iter().map(|peer| {
        let network = single(peer.ip().to_canonical());
        let request = [Match::Destination(network), Match::TcpDestination(HTTP)];
        accept([vec![Match::Mark(OUTSIDE_MARK)], request.to_vec()].concat())
    }));
    output.extend(
        DHCP.map(|(from, to)| accept(vec![Match::UdpSource(from), Match::UdpDestination(to)])),
    );
    output.extend(direct.iter().map(|network| accept(vec![Match::Destination(*network)])));
    output.push(Rule::new([], Action::Reject));
    let mut forward = vec![
        accept(vec![Match::By(device.to_owned())]),
        accept(vec![Match::From(device.to_owned())]),
    ];
    // Packets from these networks leave through the tunnel, as all packets do.
    forward.extend(direct.iter().map(|network| accept(vec![Match::Destination(*network)])));
    forward.push(Rule::new([], Action::Reject));
    Table {
        name: table.to_owned(),
        chains: vec![
            Chain { hook: Hook::Output, drops: true, rules: output },
            Chain { hook: Hook::Forward, drops: true, rules: forward },
        ],
    }
}
