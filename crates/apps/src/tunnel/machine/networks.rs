//! Networks of a machine that concern a tunnel.

use std::fmt;
use std::io;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use ropewalk_runtime::interfaces;

use crate::tunnel::addresses;

/// The networks that a tunnel carries: two halves of each address space, which leave the default route
/// unchanged.
pub fn everything() -> Vec<IpNet> {
    let halves = ["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1"];
    halves.iter().map(|half| half.parse().expect("a network")).collect()
}

/// A network of one address.
pub fn single(address: IpAddr) -> IpNet {
    match address {
        IpAddr::V4(ip) => Ipv4Net::from(ip).into(),
        IpAddr::V6(ip) => Ipv6Net::from(ip).into(),
    }
}

/// A network of a tunnel overlaps one that this machine has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The network of the tunnel.
    pub network: IpNet,
    /// The machine's address, with the prefix of its network.
    pub address: IpNet,
    /// The interface that has it.
    pub interface: String,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { network, address, interface } = self;
        write!(
            f,
            "the tunnel's network {network} overlaps {address}, which {interface} of this machine has"
        )
    }
}

/// Finds a network of this machine that overlaps one of these, except those of the interface `own`.
///
/// # Errors
/// The error of the system.
pub fn overlap(networks: &[IpNet], own: &str) -> io::Result<Option<Overlap>> {
    let addresses = interfaces::list()?.into_iter().filter(|address| address.name != own);
    let mut found = addresses.filter_map(|address| {
        let with_prefix = IpNet::new(address.ip, address.prefix).ok()?;
        let network = *networks.iter().find(|it| addresses::overlap(it, &with_prefix.trunc()))?;
        Some(Overlap { network, address: with_prefix, interface: address.name })
    });
    Ok(found.next())
}
