//! Adds addresses to associations and removes them while they are in use (ASCONF, RFC 5061), with the paths that
//! depend on them.

use std::net::{IpAddr, SocketAddr};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::{AddressChange, AddressError, Packet};

use tokio::runtime::Handle;

use super::association::Association;
use super::association_table::PortPair;
use super::local_interfaces::{self, BoundInterface, source_address_for};
use super::path_pairing::{is_nearer, nearest};
use super::peer::{PathEvent, Peer, Route};
use super::raw::Carrier;
use super::socket::{BindAddress, Socket};
use super::state::{AssociationKey, EndpointState};
use crate::interfaces;

/// Maximum number of sockets of an endpoint.
const SOCKETS_LIMIT: usize = 64;
/// Maximum number of removed peer addresses that are remembered.
const FORMER_LIMIT: usize = 16;

impl Association {
    /// Whether addresses can be added and removed: both ends offered it. False before the handshake.
    pub fn reconfigures_addresses(&self) -> bool {
        self.inspect(|peer, _| peer.machine.reconfigures_addresses()).unwrap_or(false)
    }

    /// Announces an additional address of this end to the peer. [`PathEvent::Address`] reports the answer; paths from
    /// the address start then.
    ///
    /// # Errors
    /// [`AddressError`]; in that case nothing is requested.
    pub fn add_address(&self, address: IpAddr) -> Result<(), AddressError> {
        self.reconfigure(|state, now, peer| {
            if !peer.machine.reconfigures_addresses() {
                return Err(AddressError::NotSupported);
            }
            state.socket_at(address).ok_or(AddressError::Unsuitable)?;
            state.note_own_addresses(peer);
            state.request_addition(now, peer, address)?.now()?;
            peer.given_up.retain(|ip| *ip != address);
            Ok(())
        })
    }

    /// Removes an address of this end. Paths that start at it end immediately. [`PathEvent::Address`] reports the
    /// peer's answer.
    ///
    /// # Errors
    /// [`AddressError`]; in that case nothing is requested.
    pub fn remove_address(&self, address: IpAddr) -> Result<(), AddressError> {
        self.reconfigure(|state, now, peer| {
            if !peer.machine.reconfigures_addresses() {
                return Err(AddressError::NotSupported);
            }
            state.note_own_addresses(peer);
            state.request_removal(peer, address)?.now()?;
            state.leave_own(now, peer, address);
            Ok(())
        })
    }

    /// Asks the peer to use this address of this end as its primary destination. [`PathEvent::Address`] reports the
    /// answer.
    ///
    /// # Errors
    /// [`AddressError`]; in that case nothing is requested.
    pub fn request_primary(&self, address: IpAddr) -> Result<(), AddressError> {
        self.reconfigure(|state, _, peer| state.request_to_be_primary(peer, address))
    }

    fn reconfigure(
        &self,
        work: impl FnOnce(&mut EndpointState, Time, &mut Peer) -> Result<(), AddressError>,
    ) -> Result<(), AddressError> {
        let done = self.with_state(|state, peer| work(state, state.clock.now(), peer));
        self.wake_driver();
        done.unwrap_or(Err(AddressError::Closing))
    }
}

impl EndpointState {
    /// Applies the address changes that the engine has announced.
    #[cold]
    pub(super) fn follow_addresses(&mut self, now: Time, key: AssociationKey, peer: &mut Peer) {
        let mut changed = false;
        while let Some(change) = peer.machine.poll_address_change() {
            match change {
                AddressChange::Added(ip) => {
                    peer.former.retain(|known| *known != ip);
                    changed = true;
                }
                AddressChange::Removed(ip) => {
                    peer.leave(now, ip);
                    changed = true;
                }
                AddressChange::Primary(ip) => {
                    if let Some(path) = peer.path_to_canonical(ip) {
                        peer.machine.set_primary(path);
                    }
                }
                AddressChange::OwnAdded(ip, Ok(())) => self.begin_at(now, peer, ip),
                AddressChange::OwnAdded(ip, Err(_)) => self.leave_own(now, peer, ip),
                AddressChange::OwnRemoved(..) | AddressChange::OwnPrimary(..) => {}
            }
            peer.push_event(PathEvent::Address(change));
        }
        if changed {
            self.learn_addresses(now, peer);
            let ports = PortPair::of_departure(peer.encapsulation.ports());
            let (tag, _) = peer.machine.tags();
            self.associations.set(key, ports, tag, peer.addresses());
        }
    }

    /// Whether a packet from an unknown address belongs to the association nevertheless, by its ASCONF.
    pub(super) fn admits_source(&self, key: AssociationKey, packet: &Packet) -> bool {
        self.known(key).is_some_and(|peer| peer.machine.admits_source(packet))
    }

    /// Whether a packet comes from an address that the peer has removed recently. The packet was in flight and is
    /// discarded: an ABORT in response would end the association.
    pub(super) fn is_from_former_address(
        &self,
        pair: PortPair,
        source: IpAddr,
        packet: &Packet,
    ) -> bool {
        let found = self.associations.by_tag(packet.tag, pair);
        let peer = found.and_then(|key| self.known(key));
        peer.is_some_and(|peer| peer.former.contains(&source.to_canonical()))
    }

    /// The socket that sends from this address. Opens one if necessary.
    pub(super) fn socket_at(&mut self, address: IpAddr) -> Option<usize> {
        let serves = |socket: &Socket, link: &BoundInterface| {
            let local = socket.local().ip();
            let any = local.is_unspecified() && link.local.interface.is_none();
            local.to_canonical() == address
                || any && local.is_ipv4() == address.is_ipv4()
                || link.has_address(address)
        };
        let known = self.sockets.iter().zip(&self.links).position(|(s, link)| serves(s, link));
        if known.is_some() {
            return known;
        }
        if self.sockets.len() >= SOCKETS_LIMIT {
            return None;
        }
        let runtime = self.runtime.clone();
        let _inside = runtime.as_ref().map(Handle::enter);
        let port = self.sockets.first()?.local().port();
        if self.shard.is_some() {
            return self.open_joint_sockets(SocketAddr::new(address, port));
        }
        let all = interfaces::list().unwrap_or_default();
        let mut local = BindAddress::of(SocketAddr::new(address, port));
        let bind =
            if self.options.carrier == Carrier::Ip { Socket::bind_raw } else { Socket::bind };
        let on_interface =
            all.iter().find(|seen| self.options.all_interfaces && seen.ip == address);
        let bound = on_interface.and_then(|seen| {
            let on = |port| local_interfaces::on(&seen.name, address.is_ipv6(), port);
            let opened = |port| Some((bind(&on(port)).ok()?, on(port)));
            opened(port).or_else(|| opened(0))
        });
        let mut socket = match bound {
            Some((socket, there)) => {
                local = there;
                socket
            }
            None => bind(&local).ok()?,
        };
        if !self.options.offload {
            socket.without_offload();
        }
        self.sockets.push(socket);
        self.links.push(BoundInterface::new(local, &all));
        self.ports_changed = true;
        Some(self.sockets.len() - 1)
    }

    /// Tells the engine which addresses the peer sees, if none were listed to it.
    pub(super) fn note_own_addresses(&self, peer: &mut Peer) {
        if !peer.machine.own_addresses().is_empty() {
            return;
        }
        let seen: Vec<IpAddr> =
            peer.routes.iter().flatten().filter_map(|route| self.source_of(route)).collect();
        seen.into_iter().for_each(|ip| peer.machine.note_own_address(ip));
    }

    /// The local address of a route.
    pub(super) fn source_of(&self, route: &Route) -> Option<IpAddr> {
        let local = self.sockets[route.socket].local().ip();
        if !local.is_unspecified() {
            return Some(local.to_canonical());
        }
        let of_interface = || self.links[route.socket].addresses().first().copied();
        let chosen = || source_address_for(&route.remote);
        let source = route.source.or_else(of_interface).or_else(chosen);
        source.map(|ip| ip.to_canonical())
    }

    /// The route from an own address to the nearest address of the peer.
    pub(super) fn route_from(&mut self, peer: &Peer, ip: IpAddr) -> Option<Route> {
        let socket = self.socket_at(ip)?;
        let wildcard = self.sockets[socket].local().ip().is_unspecified();
        let mut remotes: Vec<SocketAddr> =
            peer.routes.iter().flatten().map(|route| route.remote).collect();
        remotes.retain(|remote| remote.ip().to_canonical().is_ipv4() == ip.is_ipv4());
        let at = nearest(&remotes, &SocketAddr::new(ip, 0))?;
        Some(Route { source: wildcard.then_some(ip), ..Route::new(socket, remotes[at]) })
    }

    /// Adds a path from an address that the peer does not know yet. The request uses this path if no other one works.
    pub(super) fn announce_at(&mut self, now: Time, peer: &mut Peer, ip: IpAddr) {
        let Some(route) = self.route_from(peer, ip) else { return };
        match peer.path_to(route) {
            // A socket that is bound to the unspecified address has one path to each address of the peer.
            Some(path) if peer.may_begin_elsewhere(path) => {
                peer.machine.announce_from(now, path);
                peer.set_route(path, route);
            }
            Some(_) => {}
            None => {
                let config = self.options.transport.path(route.remote.ip());
                if let Some(path) = peer.machine.add_announcing_path(config) {
                    peer.set_route(path, route);
                }
            }
        }
    }

    /// Starts a path at an own address that the peer knows now, unless one exists.
    fn begin_at(&mut self, now: Time, peer: &mut Peer, ip: IpAddr) {
        let Some(route) = self.route_from(peer, ip) else { return };
        let announced = peer.announcing_path_from(&route);
        match peer.path_to(route).or(announced) {
            // A socket has one path to each address of the peer. If that path does not work, or its source is farther
            // away, it moves to the new source.
            Some(path) => {
                if peer.machine.path_status(path) != PathStatus::Active
                    || peer.is_nearer_to(path, ip)
                {
                    peer.routes[path.index()] = Some(route);
                    peer.machine.validate_path(now, path);
                }
            }
            None => {
                let config = self.options.transport.path(route.remote.ip());
                if let Some(path) = peer.machine.add_path(now, config) {
                    peer.set_route(path, route);
                }
            }
        }
    }

    /// Ends the paths from an own address, and adds paths from others to the peer's addresses.
    pub(super) fn leave_own(&mut self, now: Time, peer: &mut Peer, ip: IpAddr) {
        let ip = ip.to_canonical();
        peer.give_up_address(ip);
        let own = peer.machine.own_addresses().iter().copied();
        let others: Vec<IpAddr> = own.filter(|one| !peer.given_up.contains(one)).collect();
        let mut gone = Vec::new();
        for at in 0..peer.routes.len() {
            let Some(route) = peer.routes[at] else { continue };
            if self.source_of(&route) != Some(ip) {
                continue;
            }
            let like = |one: &&IpAddr| {
                one.is_ipv4() == route.remote.ip().to_canonical().is_ipv4()
                    && self.sends_from(route.socket, **one)
            };
            match others.iter().find(like) {
                Some(other) => {
                    peer.routes[at] = Some(Route { source: Some(*other), ..route });
                    peer.machine.validate_path(now, PathId::from_index(at));
                }
                None => gone.push((at, route.remote)),
            }
        }
        for (at, _) in &gone {
            peer.routes[*at] = None;
        }
        for (at, remote) in gone {
            self.reach_from_elsewhere(now, peer, remote);
            peer.machine.retire_path(now, PathId::from_index(at));
        }
    }

    /// Whether a socket that is bound to the unspecified address can send from this one.
    fn sends_from(&self, socket: usize, ip: IpAddr) -> bool {
        let link = &self.links[socket];
        let anywhere = link.local.interface.is_none();
        self.sockets[socket].local().ip().is_unspecified() && (anywhere || link.has_address(ip))
    }

    /// Adds a path to an address of the peer that has no path left.
    fn reach_from_elsewhere(&mut self, now: Time, peer: &mut Peer, remote: SocketAddr) {
        if peer.routes.iter().flatten().any(|route| route.remote == remote) {
            return;
        }
        let locals: Vec<(usize, SocketAddr)> = self
            .links
            .iter()
            .enumerate()
            .filter(|(_, link)| !link.is_gone())
            .map(|(at, link)| (at, link.address()))
            .filter(|(_, local)| !peer.given_up.contains(&local.ip().to_canonical()))
            .collect();
        let addresses: Vec<SocketAddr> = locals.iter().map(|(_, local)| *local).collect();
        let Some(at) = nearest(&addresses, &remote) else { return };
        let config = self.options.transport.path(remote.ip());
        if let Some(path) = peer.machine.add_path(now, config) {
            peer.set_route(path, Route::new(locals[at].0, remote));
        }
    }
}

impl Peer {
    /// Sets the route of a new path.
    pub fn set_route(&mut self, path: PathId, route: Route) {
        if self.routes.len() <= path.index() {
            self.routes.resize(path.index() + 1, None);
        }
        self.routes[path.index()] = Some(route);
    }

    /// Ends the paths to an address that the peer has removed.
    pub fn leave(&mut self, now: Time, ip: IpAddr) {
        if self.former.len() == FORMER_LIMIT {
            self.former.remove(0);
        }
        self.former.push(ip);
        for at in 0..self.routes.len() {
            if self.routes[at].is_some_and(|route| route.remote.ip().to_canonical() == ip) {
                self.routes[at] = None;
                self.validation.on_set_up(at);
                self.machine.retire_path(now, PathId::from_index(at));
            }
        }
    }

    /// The path that announces the source address of this route.
    fn announcing_path_from(&self, route: &Route) -> Option<PathId> {
        let same = |(at, known): (usize, &Option<Route>)| {
            known.is_some_and(|known| (known.socket, known.source) == (route.socket, route.source))
                && self.machine.is_announcing(PathId::from_index(at))
        };
        let paths = self.routes.iter().take(self.machine.path_count()).enumerate();
        paths.into_iter().position(same).map(PathId::from_index)
    }

    /// Whether an own address is nearer to the remote end of a path than the path's current source.
    fn is_nearer_to(&self, path: PathId, ip: IpAddr) -> bool {
        let source = |route: &Route| route.source.map(|source| SocketAddr::new(source, 0));
        let known = self.routes.get(path.index()).copied().flatten();
        known.is_some_and(|route| {
            source(&route)
                .is_some_and(|old| is_nearer(&route.remote, &SocketAddr::new(ip, 0), &old))
        })
    }

    fn path_to_canonical(&self, ip: IpAddr) -> Option<PathId> {
        let same = |known: &Option<Route>| {
            known.is_some_and(|known| known.remote.ip().to_canonical() == ip)
        };
        self.routes.iter().position(same).map(PathId::from_index)
    }
}
