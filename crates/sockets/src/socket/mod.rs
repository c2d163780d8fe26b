//! Sockets of RFC 6458: one-to-one (4) and one-to-many (3).

mod connect;
mod events;
mod history;
mod incoming;
mod link;
mod names;
mod readiness;
mod receive;
mod send;
mod settings;
mod wait;

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use libc::c_int;
use ropewalk_runtime::endpoint::{AddressError, Association};

pub use self::incoming::peer_of;
pub use self::link::Link;
pub use self::receive::{Delivered, PartOf};
pub use self::send::{MESSAGE_LIMIT, Outgoing};
pub use self::settings::{LEAST_MTU, MessageSettings, Overrides, STREAMS_LIMIT, SocketSettings};
pub use self::wait::{Attempted, Resumed, Stop, Wait};

use self::readiness::Loss;
use self::wait::{Until, Waiter};

use self::receive::Item;
use crate::errno::{Errno, Result};
use crate::options::errno_of_address;
use crate::pair::Pair;
use crate::process::{self, Claim, Place, Service, Sharing};

/// Style of a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// One association, similar to a TCP connection.
    OneToOne,
    /// Many associations, similar to the peers of a UDP socket.
    OneToMany,
}

/// The phase of a one-to-one socket's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Not connected.
    Idle,
    /// The handshake is in progress.
    Connecting,
    /// The socket is or was connected.
    Connected,
}

/// A socket.
#[derive(Debug)]
pub struct Socket {
    /// Style.
    pub style: Style,
    /// Whether it is an IPv6 socket.
    pub ipv6: bool,
    /// The descriptor's readiness.
    pub pair: Pair,
    nonblocking: AtomicBool,
    state: Mutex<State>,
}

/// The mutable state of a socket.
#[derive(Debug)]
pub struct State {
    /// The addresses and the interface to which the socket is bound.
    pub place: Place,
    /// SCTP port. `None` if the socket is not bound.
    pub claim: Option<Arc<Claim>>,
    /// The endpoint that it listens on.
    pub listening: Option<Arc<Service>>,
    backlog: usize,
    accept_queue: VecDeque<(Association, Arc<Service>)>,
    /// Associations by identifier.
    pub links: BTreeMap<i32, Link>,
    /// Associations with unread data.
    ready: VecDeque<i32>,
    inbox: VecDeque<Item>,
    /// The association from which the program has read the beginning of a message, but not its end.
    in_part: Option<PartOf>,
    /// Options.
    pub settings: SocketSettings,
    /// Connection of a one-to-one socket.
    pub phase: Phase,
    /// Whether a call waits for the outcome of the handshake of a one-to-one socket, and returns its error.
    awaits_outcome: bool,
    /// Whether the socket was a one-to-many socket's association (`sctp_peeloff`).
    is_peeled_off: bool,
    /// The pending error of SO_ERROR.
    pub error: Option<Errno>,
    read_shut: bool,
    write_shut: bool,
    closed: bool,
    shows_readable: bool,
    shows_full: bool,
    finished: bool,
    /// How the descriptor shows the loss of the association.
    loss: Loss,
}

/// Identifiers of associations. Linux reserves 0 to 2.
static NEXT_ID: AtomicI32 = AtomicI32::new(3);

fn next_id() -> i32 {
    let first = crate::abi::number::association::ALL + 1;
    NEXT_ID
        .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |id| {
            Some(id.checked_add(1).unwrap_or(first))
        })
        .unwrap_or(first)
}

impl Socket {
    /// Creates a socket. Returns the program's descriptor and the socket. `flags`: `SOCK_NONBLOCK`,
    /// `SOCK_CLOEXEC`.
    ///
    /// # Errors
    /// Errors of the system, for example if there are no more descriptors.
    pub fn new(style: Style, ipv6: bool, flags: c_int) -> Result<(c_int, Arc<Self>)> {
        let (fd, socket) = Self::with(style, ipv6, flags, SocketSettings::default())?;
        socket.show(&mut socket.lock());
        Ok((fd, socket))
    }

    fn with(
        style: Style,
        ipv6: bool,
        flags: c_int,
        settings: SocketSettings,
    ) -> Result<(c_int, Arc<Self>)> {
        let (fd, pair) = Pair::new(flags)?;
        let state = State {
            place: Place { ipv6, ..Place::default() },
            claim: None,
            listening: None,
            backlog: 0,
            accept_queue: VecDeque::new(),
            links: BTreeMap::new(),
            ready: VecDeque::new(),
            inbox: VecDeque::new(),
            in_part: None,
            settings,
            phase: Phase::Idle,
            awaits_outcome: false,
            is_peeled_off: false,
            error: None,
            read_shut: false,
            write_shut: false,
            closed: false,
            shows_readable: false,
            shows_full: false,
            finished: false,
            loss: Loss::None,
        };
        let nonblocking = AtomicBool::new(flags & libc::SOCK_NONBLOCK != 0);
        Ok((fd, Arc::new(Self { style, ipv6, pair, nonblocking, state: Mutex::new(state) })))
    }

    /// Locks the state. While it is locked, no other lock of this library may be taken, except those of endpoints
    /// and of the ports.
    pub fn lock(&self) -> MutexGuard<'_, State> {
        process::lock(&self.state)
    }

    /// Whether calls return immediately instead of waiting.
    pub fn is_nonblocking(&self) -> bool {
        self.nonblocking.load(Ordering::Relaxed)
    }

    /// Follows the descriptor's `O_NONBLOCK`.
    pub fn set_nonblocking(&self, on: bool) {
        self.nonblocking.store(on, Ordering::Relaxed);
    }

    /// Binds the socket. Port 0 selects any free port.
    ///
    /// # Errors
    /// `EINVAL` if it is bound, `EADDRNOTAVAIL` if an address does not belong to this machine, `EADDRINUSE` if
    /// another socket has it and does not share it.
    pub fn bind(&self, addresses: &[SocketAddr]) -> Result<()> {
        let state = &mut *self.lock();
        if state.claim.is_some() || state.phase != Phase::Idle {
            return Err(Errno(libc::EINVAL));
        }
        let port = addresses.first().ok_or(Errno(libc::EINVAL))?.port();
        if addresses.iter().any(|address| address.port() != 0 && address.port() != port) {
            return Err(Errno(libc::EINVAL));
        }
        let ips = state.bindable(self.ipv6, addresses)?;
        state.claim = Some(Arc::new(Claim::bind(port, state.sharing(self.ipv6), &ips)?));
        state.add_addresses(&ips);
        Ok(())
    }

    /// Adds addresses (`sctp_bindx`). Binds the socket if it is not bound.
    ///
    /// # Errors
    /// As [`Socket::bind`] and [`Socket::listen`]; `EOPNOTSUPP` if the socket is in use and a peer cannot be
    /// informed.
    pub fn add_addresses(self: &Arc<Self>, addresses: &[SocketAddr]) -> Result<()> {
        {
            let state = &mut *self.lock();
            if let Some(claim) = state.claim.clone() {
                let in_use = state.listening.is_some() || !state.links.is_empty();
                let other = |a: &SocketAddr| a.port() != 0 && a.port() != claim.port();
                if addresses.iter().any(other) {
                    return Err(Errno(libc::EINVAL));
                }
                if in_use && !state.only_listens() {
                    state.may_tell_peers()?;
                }
                let ips = state.bindable(self.ipv6, addresses)?;
                claim.add(state.sharing(self.ipv6), &ips)?;
                let before = state.place.clone();
                state.add_addresses(&ips);
                if state.only_listens() {
                    let added = self.listen_again(state, &claim, before);
                    return added.inspect_err(|_| claim.remove(&ips));
                }
                if !in_use {
                    return Ok(());
                }
                return state.tell_peers(&ips, |association, ip| association.add_address(ip));
            }
        }
        self.bind(addresses)
    }

    /// Removes addresses (`sctp_bindx`).
    ///
    /// # Errors
    /// `EINVAL` if an address is not bound, or none would remain; `EOPNOTSUPP` if the socket is in use and a peer
    /// cannot be informed.
    pub fn remove_addresses(self: &Arc<Self>, addresses: &[SocketAddr]) -> Result<()> {
        let state = &mut *self.lock();
        let in_use = state.listening.is_some() || !state.links.is_empty();
        if in_use && !state.only_listens() {
            state.may_tell_peers()?;
        }
        // Port 0 means the port of the socket.
        if addresses.iter().any(|one| ![0, state.port()].contains(&one.port())) {
            return Err(Errno(libc::EINVAL));
        }
        let gone: Vec<IpAddr> = addresses.iter().map(|a| a.ip().to_canonical()).collect();
        let before = state.place.clone();
        let bound = &mut state.place.addresses;
        let all_known = gone.iter().all(|ip| bound.contains(ip));
        if !all_known || bound.iter().all(|ip| gone.contains(ip)) {
            return Err(Errno(libc::EINVAL));
        }
        bound.retain(|ip| !gone.contains(ip));
        if let Some(claim) = state.claim.clone() {
            claim.remove(&gone);
            if state.only_listens() {
                return self.listen_again(state, &claim, before);
            }
        }
        if !in_use {
            return Ok(());
        }
        state.tell_peers(&gone, |association, ip| association.remove_address(ip))
    }

    /// Starts to accept associations. With `backlog` 0, a one-to-many socket stops accepting them.
    ///
    /// # Errors
    /// `EINVAL` as in Linux (`sctp_inet_listen`): with a negative `backlog`, and with 0 on a one-to-many socket that does
    /// not listen. `EADDRINUSE` if another socket listens on the SCTP port, or another program on the UDP port.
    pub fn listen(self: &Arc<Self>, backlog: c_int) -> Result<()> {
        self.forget_refusal()?;
        let state = &mut *self.lock();
        let invalid = match self.style {
            Style::OneToOne => state.phase != Phase::Idle,
            Style::OneToMany => backlog == 0 && state.listening.is_none(),
        };
        let backlog = usize::try_from(backlog).ok().filter(|_| !invalid);
        let backlog = backlog.ok_or(Errno(libc::EINVAL))?;
        state.backlog = backlog.clamp(1, 4096);
        if state.listening.is_some() {
            if backlog == 0 && self.style == Style::OneToMany {
                state.stop_listening(self);
            }
            self.tell_room(state);
            return Ok(());
        }
        let claim = match &state.claim {
            Some(claim) => claim.clone(),
            None => state.claim.insert(Arc::new(self.claim_any(state)?)).clone(),
        };
        self.begin_listening(state, &claim)?;
        self.show(state);
        Ok(())
    }

    /// Claims a free port for all addresses, for a socket that listens or connects without `bind`.
    ///
    /// # Errors
    /// As [`Claim::bind`].
    fn claim_any(&self, state: &State) -> Result<Claim> {
        Claim::bind(0, state.sharing(self.ipv6), &[self.unspecified()])
    }

    /// Ends sending, receiving or both (`shutdown`). SCTP has no half-closed state: when an end stops sending, the
    /// association ends after its data has been delivered (RFC 6458, 4.1.7). As in Linux (`inet_shutdown`), a
    /// listening socket accepts nothing after SHUT_RD, and programs use this to wake up threads that wait in
    /// `accept`.
    ///
    /// # Errors
    /// `ENOTCONN`; `EOPNOTSUPP` on a one-to-many socket that listens, with SHUT_RD.
    pub fn shutdown(&self, how: c_int) -> Result<()> {
        let state = &mut *self.lock();
        if self.style == Style::OneToMany {
            return self.shut_one_to_many(state, how);
        }
        let listens = state.listening.is_some();
        if how != libc::SHUT_WR {
            state.read_shut = true;
            state.stop_listening(self);
        }
        if state.phase != Phase::Connected {
            let hangs_up = state.phase == Phase::Idle && !listens;
            state.write_shut |= hangs_up && how == libc::SHUT_RDWR;
            self.show(state);
            return if listens { Ok(()) } else { Err(Errno(libc::ENOTCONN)) };
        }
        if how != libc::SHUT_RD {
            state.write_shut = true;
            state.links.values_mut().for_each(Link::leave);
        }
        self.show(state);
        Ok(())
    }

    /// `shutdown` on a one-to-many socket. As in Linux (`inet_shutdown`), it fails and wakes up threads that receive. It
    /// affects neither the associations nor messages that are sent.
    fn shut_one_to_many(&self, state: &mut State, how: c_int) -> Result<()> {
        if state.listening.is_some() {
            return if how == libc::SHUT_WR { Ok(()) } else { Err(Errno(libc::EOPNOTSUPP)) };
        }
        state.read_shut |= how != libc::SHUT_WR;
        state.write_shut |= how != libc::SHUT_RD;
        self.show(state);
        Err(Errno(libc::ENOTCONN))
    }

    /// Closes the socket after its last descriptor was closed. Sent data is still delivered, unless the program has
    /// requested an ABORT by SO_LINGER or has left data unread. Returns what the call must wait for because of
    /// SO_LINGER.
    pub fn close(self: &Arc<Self>) -> Option<Wait> {
        let mut state = self.lock();
        state.closed = true;
        state.stop_listening(self);
        // As in the kernel, the port becomes free after the last association has ended.
        let claim = state.claim.take();
        let waiting = std::mem::take(&mut state.accept_queue);
        let links = std::mem::take(&mut state.links);
        let unread = state.inbox.iter().any(Item::is_message);
        let abort = state.settings.linger == Some(0);
        state.inbox.clear();
        // Calls that still wait on other threads observe the end.
        self.pair.finish();
        self.pair.drain();
        let linger = state.settings.linger.filter(|seconds| *seconds > 0 && !self.is_nonblocking());
        drop(state);
        waiting.iter().for_each(|(association, _)| association.abort());
        let waiter = linger.and_then(|seconds| Waiter::at_most(Duration::from_secs(seconds)).ok());
        let waiter = waiter.map(Arc::new);
        let lingering = waiter.as_ref().map(Waiter::until_dropped);
        let has_own_peer = links.values().any(|link| !link.ended && link.has_own_peer);
        for link in links.into_values() {
            let abort = abort || unread && self.style == Style::OneToOne;
            link.close(abort, (claim.clone(), lingering.clone()));
        }
        let bound = claim.as_ref().map(Arc::downgrade);
        drop(claim);
        if let Some(bound) = bound.filter(|_| has_own_peer) {
            wait::await_own_peer(|| bound.strong_count() == 0);
        }
        Some(Wait::new(self, Until::Outcome(waiter?)))
    }

    /// Takes the pending error (`SO_ERROR`).
    pub fn take_error(&self) -> Option<Errno> {
        let state = &mut *self.lock();
        let error = state.error.take();
        self.show(state);
        error
    }

    /// Removes the byte that a call has written in order to wait until the socket is writable.
    fn end_wait(&self) {
        let state = &*self.lock();
        if !state.shows_full {
            self.pair.drain();
        }
    }
}

impl State {
    /// SCTP port. 0 if the socket is not bound.
    pub fn port(&self) -> u16 {
        self.claim.as_ref().map_or(0, |claim| claim.port())
    }

    /// The options that decide whether the socket may share its port. `ipv6`: whether it is an IPv6
    /// socket.
    fn sharing(&self, ipv6: bool) -> Sharing {
        let [reuse_address, reuse_port, sctp_reuse_port] = self.settings.reuse.map(|on| on != 0);
        let v6_only = self.settings.v6_only;
        let interface = self.place.interface.as_ref().map_or(0, |interface| interface.index);
        let reuse_address = reuse_address || sctp_reuse_port;
        Sharing { ipv6, v6_only, reuse_address, reuse_port, interface }
    }

    /// Applies changed options that decide whether the socket may share its port.
    pub fn on_sharing_changed(&self, ipv6: bool) {
        if let Some(claim) = &self.claim {
            claim.set_sharing(self.sharing(ipv6));
        }
    }

    /// The addresses to bind, without ports.
    ///
    /// # Errors
    /// `EINVAL` if the socket cannot have addresses of the family, `EADDRNOTAVAIL` if an address does not belong to
    /// this machine.
    fn bindable(&self, ipv6: bool, addresses: &[SocketAddr]) -> Result<Vec<IpAddr>> {
        let ips: Vec<_> = addresses.iter().map(|address| address.ip().to_canonical()).collect();
        let fits = |ip: &IpAddr| if ip.is_ipv6() { ipv6 } else { !ipv6 || !self.settings.v6_only };
        if !ips.iter().all(fits) {
            return Err(Errno(libc::EINVAL));
        }
        let mut to_find =
            ips.iter().filter(|ip| !ip.is_unspecified() && !ip.is_loopback()).peekable();
        let own = if to_find.peek().is_some() { names::own_addresses() } else { Vec::new() };
        if to_find.all(|ip| own.contains(ip)) { Ok(ips) } else { Err(Errno(libc::EADDRNOTAVAIL)) }
    }

    /// Adds addresses that the socket has been bound to.
    fn add_addresses(&mut self, ips: &[IpAddr]) {
        for ip in ips {
            if !ip.is_unspecified() {
                self.place.addresses.push(*ip);
            } else if ip.is_ipv4() {
                self.place.ipv6 = false;
            }
        }
    }

    /// Stops accepting associations.
    fn stop_listening(&mut self, socket: &Socket) {
        let Some(service) = self.listening.take() else { return };
        if let Some(claim) = &self.claim {
            service.stop_listening(claim.port(), socket);
            claim.stop_listening();
        }
    }

    /// Checks that each association of the socket can follow a change of addresses (RFC 5061).
    fn may_tell_peers(&self) -> Result<()> {
        let mut links = self.links.values().filter(|link| !link.ended).peekable();
        let any = links.peek().is_some();
        match any && links.all(|link| link.association.reconfigures_addresses()) {
            true => Ok(()),
            false => Err(Errno(libc::EOPNOTSUPP)),
        }
    }

    /// Requests a change of addresses from the peer of each association.
    fn tell_peers(
        &self,
        addresses: &[IpAddr],
        request: impl Fn(&Association, IpAddr) -> std::result::Result<(), AddressError>,
    ) -> Result<()> {
        for link in self.links.values().filter(|link| !link.ended) {
            for ip in addresses {
                request(&link.association, *ip).map_err(errno_of_address)?;
            }
        }
        Ok(())
    }

    /// The options about messages of an association.
    fn messages_of(&self, id: i32) -> MessageSettings {
        self.links.get(&id).map_or(self.settings.messages, |link| link.messages)
    }

    /// The association of a one-to-one socket.
    pub fn only(&self) -> Option<&Link> {
        self.links.values().next()
    }

    /// The association with this identifier. A one-to-one socket returns its only association and ignores
    /// the identifier.
    ///
    /// # Errors
    /// `EINVAL` if there is none.
    pub fn link(&self, style: Style, id: i32) -> Result<(i32, &Link)> {
        let found = match style {
            Style::OneToOne => self.links.first_key_value(),
            Style::OneToMany => self.links.get_key_value(&id),
        };
        found.map(|(id, link)| (*id, link)).ok_or(Errno(libc::EINVAL))
    }
}
