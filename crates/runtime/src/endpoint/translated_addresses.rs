//! Own addresses that a translator (NAT) hides from the peer. A request about such an address names the unspecified
//! address, which stands for the source of the packet (RFC 5061, 4.2.1, 4.2.2, 4.2.4), and is sent from the address
//! itself:
//!
//! ```text
//!   10.0.0.7  --ASCONF: add 0.0.0.0-->  translator  --from 192.0.2.9-->  peer: the association has 192.0.2.9 as well
//! ```
//!
//! Locally such an address keeps its own name. Only requests about it differ.

use std::net::{IpAddr, SocketAddr};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::AddressError;

use super::local_interfaces::{leads_to, source_address_for};
use super::own_addresses::is_hidden_from;
use super::peer::{Peer, Route};
use super::state::EndpointState;

/// Whether a request about an address was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Requested {
    /// The request was made.
    Now,
    /// No packet can leave from the address yet. The request must be repeated.
    NotYet,
}

impl Requested {
    /// For a caller that does not retry.
    pub const fn now(self) -> Result<(), AddressError> {
        match self {
            Self::Now => Ok(()),
            Self::NotYet => Err(AddressError::Unsuitable),
        }
    }
}

impl EndpointState {
    /// Whether the peer sees another address in place of this one.
    pub(super) fn is_translated(&self, peer: &Peer, ip: IpAddr) -> bool {
        if self.options.transport.translated {
            return !ip.is_loopback();
        }
        let remote = peer.routes.iter().flatten().next();
        remote.is_some_and(|route| is_hidden_from(route.remote.ip().to_canonical(), ip))
    }

    /// Requests the addition of an own address, and adds a path if it has none.
    pub(super) fn request_addition(
        &mut self,
        now: Time,
        peer: &mut Peer,
        ip: IpAddr,
    ) -> Result<Requested, AddressError> {
        if !self.is_translated(peer, ip) {
            peer.machine.add_address(ip)?;
            self.announce_at(now, peer, ip);
            return Ok(Requested::Now);
        }
        let Some(path) = self.path_for_request(now, peer, ip) else {
            return Ok(Requested::NotYet);
        };
        peer.machine.add_source(ip, path).map(|()| Requested::Now)
    }

    /// Requests the removal of an own address. The peer knows a hidden address by another name, so it can only be
    /// removed by a request that removes all addresses but one. This requires another address with a working path.
    pub(super) fn request_removal(
        &self,
        peer: &mut Peer,
        ip: IpAddr,
    ) -> Result<Requested, AddressError> {
        let used = |one: &&IpAddr| **one != ip && !peer.given_up.contains(one);
        let mut others = peer.machine.own_addresses().iter().filter(used);
        let (first, second) = (others.next().copied(), others.next());
        let Some(last) = first.filter(|_| second.is_none() && self.is_translated(peer, ip)) else {
            return peer.machine.remove_address(ip).map(|()| Requested::Now);
        };
        let Some(path) = self.active_path_from(peer, last) else { return Ok(Requested::NotYet) };
        peer.machine.remove_all_but_source(ip, path).map(|()| Requested::Now)
    }

    /// Asks the peer to use an own address as its primary destination.
    pub(super) fn request_to_be_primary(
        &self,
        peer: &mut Peer,
        ip: IpAddr,
    ) -> Result<(), AddressError> {
        if !self.is_translated(peer, ip) {
            return peer.machine.request_primary(ip);
        }
        let path = self.active_path_from(peer, ip).ok_or(AddressError::Unsuitable)?;
        peer.machine.request_primary_source(ip, path)
    }

    /// A working path that starts at this address.
    fn active_path_from(&self, peer: &Peer, ip: IpAddr) -> Option<PathId> {
        let begins = |(at, route): (usize, &Option<Route>)| {
            let status = peer.machine.path_status(PathId::from_index(at));
            status == PathStatus::Active
                && route.as_ref().is_some_and(|route| self.source_of(route) == Some(ip))
        };
        let routes = peer.routes.iter().take(peer.machine.path_count()).enumerate();
        routes.into_iter().position(begins).map(PathId::from_index)
    }

    /// The path on which a request about the source leaves from this address. `None` if the system does not route
    /// packets to the peer from there, or if the socket's only path starts elsewhere and works.
    fn path_for_request(&mut self, now: Time, peer: &mut Peer, ip: IpAddr) -> Option<PathId> {
        let route = self.route_from(peer, ip)?;
        if !self.is_routed(&route, ip) {
            return None;
        }
        let Some(path) = peer.path_to(route) else {
            let config = self.options.transport.path(route.remote.ip());
            let path = peer.machine.add_announcing_path(config)?;
            peer.set_route(path, route);
            return Some(path);
        };
        let source = peer.routes[path.index()].as_ref().and_then(|known| self.source_of(known));
        let works = peer.machine.path_status(path) == PathStatus::Active;
        let seen = self.own_addresses.get(now).iter();
        let is_there = seen.filter(|one| one.up).any(|one| Some(one.ip) == source);
        match source {
            Some(source) if source == ip && works => {}
            Some(source) if source != ip && works && is_there => return None,
            // The path's source address is gone, or the path does not work: it uses the new address
            // from now on.
            _ => {
                peer.machine.announce_from(now, path);
                peer.set_route(path, route);
            }
        }
        Some(path)
    }

    /// Whether the system routes packets to the remote end of a route from this address.
    fn is_routed(&self, route: &Route, ip: IpAddr) -> bool {
        let link = &self.links[route.socket];
        match &link.local.interface {
            Some(interface) => leads_to(interface, ip, &route.remote),
            None => chosen_source(&route.remote) == Some(ip),
        }
    }
}

fn chosen_source(remote: &SocketAddr) -> Option<IpAddr> {
    source_address_for(remote).map(|ip| ip.to_canonical())
}
