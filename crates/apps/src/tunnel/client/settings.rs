//! Settings of the client's end of a tunnel.

use std::net::IpAddr;

use ipnet::IpNet;

use super::super::control::Welcome;
use super::super::hubs::HubList;
use super::super::lane::LaneSettings;
use super::super::machine::Manager;

/// How a client is set up.
#[derive(Debug)]
pub struct ClientSettings {
    /// The hubs, the preferred one first.
    pub hubs: HubList,
    /// Interfaces that the user has named as links.
    pub links: Vec<String>,
    /// The networks that are reached through the tunnel.
    pub networks: Vec<IpNet>,
    /// Networks in which the hub may give this machine an address. If empty, private ones.
    pub accept: Vec<IpNet>,
    /// Families of addresses that may leave this machine outside of the tunnel if the hub does not carry them.
    pub left_outside: Vec<Family>,
    /// The interfaces of networks behind this machine that may use the tunnel, with the client's address. If empty,
    /// those without a default route. `None` if no network may.
    pub share: Option<Vec<String>>,
    /// Name servers. `None` selects those that the hub recommends.
    pub dns: Option<Vec<IpAddr>>,
    /// The program that sets the name servers. `None` leaves them unchanged.
    pub dns_manager: Option<Manager>,
    /// How packets are carried.
    pub lane: LaneSettings,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of an address.
    pub const fn of(address: IpAddr) -> Self {
        if address.is_ipv6() { Self::V6 } else { Self::V4 }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    /// Whether one of these addresses is of the family.
    pub(super) fn is_among(self, addresses: &[IpNet]) -> bool {
        addresses.iter().any(|address| Self::of(address.addr()) == self)
    }
}

impl ClientSettings {
    /// The name servers to set. If empty, they stay unchanged.
    pub(super) fn servers(&self, welcome: &Welcome) -> Vec<IpAddr> {
        if self.dns_manager.is_none() {
            return Vec::new();
        }
        // Servers of a family that the hub does not carry are unreachable.
        let carried = |server: &IpAddr| Family::of(*server).is_among(&welcome.addresses);
        let recommended = || welcome.dns.iter().copied().filter(carried).collect();
        self.dns.clone().unwrap_or_else(recommended)
    }
}
