//! Adapts sockets and paths when interfaces appear and disappear, while associations continue.

use std::net::SocketAddr;

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;

use super::interface_watch::PollOutcome;
use super::local_interfaces::{self, BoundInterface, Change};
use super::observer::PathCause;
use super::path_pairing::nearest;
use super::peer::{Peer, Route};
use super::raw::Carrier;
use super::socket::{BindAddress, Socket};
use super::state::EndpointState;
use crate::interfaces::{self, InterfaceAddress};

/// Maximum number of sockets that are opened automatically. Each new interface name adds one.
const SOCKETS_LIMIT: usize = 64;

/// What happens to the paths of a socket.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PathAction {
    Fail,
    Probe,
}

impl EndpointState {
    /// Whether any interface or address can appear or disappear.
    pub(super) fn monitors_interfaces(&self) -> bool {
        self.options.automatic
            || self.followed.is_on()
            || self.links.iter().any(BoundInterface::is_watched)
    }

    /// Polls the interfaces and applies the changes.
    pub(super) fn poll_interfaces(&mut self, now: Time) -> PollOutcome {
        // Without a list of interfaces it is unknown which ones are missing.
        let Ok(all) = self.options.interfaces() else {
            return PollOutcome { retry: true, again: None };
        };
        let mut outcome = PollOutcome::default();
        for i in 0..self.sockets.len() {
            let change = self.links[i].update(&all);
            outcome.retry |= !self.apply_change(now, i, change);
        }
        if self.options.automatic && !self.closing {
            outcome.retry |= !self.take_new_interfaces(now, &all);
        }
        if self.followed.is_on() && !self.closing {
            outcome.retry |= !self.follow_interfaces(now, &all);
            outcome.again = self.followed.next_change();
        }
        outcome
    }

    /// Whether the interface or address of a route is currently down or missing.
    pub(super) fn interface_is_missing(&self, route: Route) -> bool {
        let Some(link) = self.links.get(route.socket) else { return false };
        link.is_watched() && interfaces::list().is_ok_and(|all| link.is_missing_in(&all))
    }

    /// Applies a change of the interface of socket `i`. Returns whether it succeeded.
    fn apply_change(&mut self, now: Time, i: usize, change: Change) -> bool {
        match change {
            Change::Nothing => {}
            Change::Gone => {
                self.sockets[i].close();
                self.apply_to_paths(now, i, PathAction::Fail);
            }
            Change::Down => self.apply_to_paths(now, i, PathAction::Fail),
            Change::Up | Change::AddressesChanged => self.apply_to_paths(now, i, PathAction::Probe),
            Change::Replaced => match self.sockets[i].bind_again(&self.links[i].local) {
                Ok(()) => self.apply_to_paths(now, i, PathAction::Probe),
                // Binding to an IPv6 address fails for about a second, while the system checks for duplicates.
                Err(_) => {
                    self.links[i].retry_binding();
                    self.apply_to_paths(now, i, PathAction::Fail);
                    return false;
                }
            },
        }
        true
    }

    /// Applies `action` to all paths through a socket.
    fn apply_to_paths(&mut self, now: Time, socket: usize, action: PathAction) {
        for key in self.keys() {
            let Some(peer) = self.peer(key) else { continue };
            let through = |route: &Option<Route>| route.is_some_and(|r| r.socket == socket);
            for path in 0..peer.routes.len() {
                if !through(&peer.routes[path]) || path >= peer.machine.path_count() {
                    continue;
                }
                match action {
                    PathAction::Fail => {
                        peer.traffic_of(path).failure = Some(PathCause::InterfaceDown);
                        peer.machine.path_lost(now, PathId::from_index(path));
                    }
                    // The peer does not know the source address of the path yet.
                    PathAction::Probe if peer.machine.is_announcing(PathId::from_index(path)) => {}
                    PathAction::Probe => peer.machine.validate_path(now, PathId::from_index(path)),
                }
            }
            self.mark_ready(key);
        }
    }

    /// Opens a socket on each new interface and adds a path through it to every association that this end opened. The
    /// end that opened an association numbers its paths; the other end learns them from packets. Returns whether
    /// every new interface has a socket now.
    fn take_new_interfaces(&mut self, now: Time, all: &[InterfaceAddress]) -> bool {
        let mut remotes: Vec<SocketAddr> = Vec::new();
        for key in self.keys() {
            remotes.extend(self.peer(key).into_iter().flat_map(|peer| &peer.remotes));
        }
        if !local_interfaces::leave_this_machine(&remotes, all) {
            return true;
        }
        let mut complete = true;
        for wanted in local_interfaces::automatic(&remotes, all) {
            let full = self.links.len() >= SOCKETS_LIMIT;
            if full || wanted.interface.is_none() || self.has_socket_for(&wanted, all) {
                continue;
            }
            let bound = bind_automatic(&wanted, self.options.carrier, all);
            let Some((socket, link)) = bound else {
                complete = false;
                continue;
            };
            let local = link.address();
            self.sockets.push(socket);
            self.links.push(link);
            let socket = self.sockets.len() - 1;
            for key in self.keys() {
                self.add_path_through(now, key, socket, local);
            }
        }
        complete
    }

    /// Whether a socket exists there, or one that waits for the interface to return.
    fn has_socket_for(&self, wanted: &BindAddress, all: &[InterfaceAddress]) -> bool {
        let address = local_interfaces::by_address(wanted, all);
        let same =
            |link: &BoundInterface| link.local == *wanted || Some(&link.local) == address.as_ref();
        self.links.iter().any(same)
    }

    fn add_path_through(
        &mut self,
        now: Time,
        key: super::state::AssociationKey,
        socket: usize,
        local: SocketAddr,
    ) {
        let path = self.options.transport.path(local.ip());
        let Some(peer) = self.peer(key) else { return };
        let like = peer.remotes.iter().filter(|remote| remote.is_ipv4() == local.is_ipv4());
        let remotes: Vec<SocketAddr> = like.copied().collect();
        let Some(at) = nearest(&remotes, &local) else { return };
        if peer.ended.is_none() && peer.machine.add_path(now, path).is_some() {
            peer.routes.push(Some(Route::new(socket, remotes[at])));
            self.mark_ready(key);
        }
    }
}

/// Binds a socket to an interface, or to its address if binding to interfaces is not permitted.
pub(super) fn bind_automatic(
    wanted: &BindAddress,
    carrier: Carrier,
    all: &[InterfaceAddress],
) -> Option<(Socket, BoundInterface)> {
    let other = || local_interfaces::by_address(wanted, all);
    for local in std::iter::once(wanted.clone()).chain(other()) {
        let bind = if carrier == Carrier::Ip { Socket::bind_raw } else { Socket::bind };
        if let Ok(socket) = bind(&local) {
            return Some((socket, BoundInterface::new(local, all)));
        }
    }
    None
}

impl Peer {
    /// The system permanently refused to send on these paths (a bit mask of their numbers): marks them as failed.
    /// Returns whether any of them was not failed before.
    pub fn on_send_refused(&mut self, now: Time, paths: u32) -> bool {
        let mut news = false;
        for index in 0..self.machine.path_count().min(u32::BITS as usize) {
            let path = PathId::from_index(index);
            if paths & (1 << index) != 0
                && let Some(Some(route)) = self.routes.get_mut(index)
            {
                // The source address may be gone, so the system chooses another one. With address following, the peer
                // must learn the new address first.
                route.source = route.source.filter(|_| self.follows_interfaces);
            }
            if paths & (1 << index) != 0 && self.machine.path_status(path) != PathStatus::Inactive {
                self.traffic_of(index).failure = Some(PathCause::SendRefused);
                self.machine.path_lost(now, path);
                news |= self.machine.path_status(path) == PathStatus::Inactive;
            }
        }
        news
    }
}
