//! The addresses that a socket reports: its own and those of its peers, with SCTP ports.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ropewalk_runtime::endpoint::Stats;
use ropewalk_runtime::interfaces;

use super::{Link, Socket, State, Style};
use crate::abi::control::names_one;
use crate::address::shown;
use crate::errno::{Errno, Result};

/// All addresses of this machine.
pub fn own_addresses() -> Vec<IpAddr> {
    interfaces::list().unwrap_or_default().into_iter().map(|seen| seen.ip).collect()
}

impl Link {
    /// The peer's addresses with its SCTP port.
    pub fn peers(&self) -> Vec<SocketAddr> {
        let of_paths = |stats: Stats| {
            let remotes = stats.paths.iter().filter_map(|path| path.remote);
            remotes.map(|remote| remote.ip().to_canonical()).collect::<Vec<_>>()
        };
        let mut ips = self.association.stats().map(of_paths).unwrap_or_default();
        if ips.is_empty() {
            ips.push(self.peer.ip().to_canonical());
        }
        let mut unique = Vec::new();
        for ip in ips {
            if !unique.contains(&ip) {
                unique.push(ip);
            }
        }
        unique.into_iter().map(|ip| SocketAddr::new(ip, self.peer.port())).collect()
    }

    /// Whether the peer has this address and SCTP port.
    pub fn has_peer(&self, address: &SocketAddr) -> bool {
        let ip = address.ip().to_canonical();
        address.port() == self.peer.port()
            && (self.peer.ip().to_canonical() == ip
                || self.peers().iter().any(|known| known.ip() == ip))
    }

    /// The index of the first path to this address of the peer.
    pub fn path_to(&self, ip: IpAddr) -> Option<usize> {
        let ip = ip.to_canonical();
        let same = |remote: Option<SocketAddr>| remote.is_some_and(|r| r.ip().to_canonical() == ip);
        self.association.stats()?.paths.iter().position(|path| same(path.remote))
    }

    /// This end's addresses of the association, as far as known.
    fn own(&self) -> Vec<IpAddr> {
        let stats = self.association.stats();
        let paths = stats.iter().flat_map(|stats| &stats.paths);
        let local = paths.filter_map(|path| path.local.as_ref()).map(|local| local.address.ip());
        local.map(|ip| ip.to_canonical()).filter(|ip| !ip.is_unspecified()).collect()
    }
}

impl Socket {
    /// The address of `getsockname`.
    pub fn local_name(&self) -> SocketAddr {
        let state = &*self.lock();
        let first = state.place.addresses.first().copied();
        let own = || state.only().and_then(|link| link.own().first().copied());
        let ip = first.or_else(own).unwrap_or_else(|| self.unspecified());
        shown(SocketAddr::new(ip, state.port()), self.ipv6, state.settings.mapped)
    }

    pub(super) const fn unspecified(&self) -> IpAddr {
        if self.ipv6 {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        } else {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        }
    }

    /// The address of `getpeername`.
    ///
    /// # Errors
    /// `ENOTCONN`.
    pub fn peer_name(&self) -> Result<SocketAddr> {
        let state = &*self.lock();
        let link = state.only().filter(|link| self.style == Style::OneToOne && link.up);
        let link = link.ok_or(Errno(libc::ENOTCONN))?;
        Ok(shown(link.peer, self.ipv6, state.settings.mapped))
    }

    /// All addresses of the peer of an association (`sctp_getpaddrs`).
    ///
    /// # Errors
    /// `EINVAL` if there is no such association.
    pub fn peer_addresses(&self, state: &State, id: i32) -> Result<Vec<SocketAddr>> {
        let (_, link) = state.link(self.style, id)?;
        let mapped = state.settings.mapped;
        Ok(link.peers().into_iter().map(|peer| shown(peer, self.ipv6, mapped)).collect())
    }

    /// All addresses of this end of an association, or of the socket (`sctp_getladdrs`).
    ///
    /// # Errors
    /// `EINVAL` if there is no such association.
    pub fn local_addresses(&self, state: &State, id: i32) -> Result<Vec<SocketAddr>> {
        let mut ips = state.place.addresses.clone();
        if ips.is_empty() && (names_one(id) || self.style == Style::OneToOne) {
            ips = state.link(self.style, id).map(|(_, link)| link.own()).unwrap_or_default();
        }
        if ips.is_empty() {
            ips = own_addresses();
            ips.retain(|ip| (ip.is_ipv4() || self.ipv6) && !is_link_local(*ip));
        }
        ips.sort_unstable();
        ips.dedup();
        let addresses = ips.into_iter().map(|ip| SocketAddr::new(ip, state.port()));
        Ok(addresses.map(|a| shown(a, self.ipv6, state.settings.mapped)).collect())
    }
}

const fn is_link_local(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(_) => false,
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}
