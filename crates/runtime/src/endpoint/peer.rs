//! An association with the routes of its paths, as the endpoint stores it.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::AbortCause;
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{AddressChange, Association, Event, Message, Packet, PathConfig};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::association_counts::Admitted;
use super::binding::BindingResponse;
use super::dscp::PathDscps;
use super::encapsulation::Encapsulation;
use super::liveness::Liveness;
use super::packet_capture::LoggedAssociation;
use super::path_validation::{PathValidation, lower_headers};
use super::probes::ProbeQueue;
use super::publish::{OCCURRENCES_LIMIT, PathTraffic};
use crate::seal::PublicKey;

/// Maximum number of path events that are kept for an application that does not read them.
const EVENTS_LIMIT: usize = 64;

/// Route of a path: the local socket and the peer's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Index of the socket.
    pub socket: usize,
    /// The local address to send from, if the socket has several. `None` leaves the choice to the system.
    pub source: Option<IpAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
}

impl Route {
    /// A route on which the system chooses the local address.
    pub const fn new(socket: usize, remote: SocketAddr) -> Self {
        Self { socket, source: None, remote }
    }

    /// Whether both use the same socket and the same peer address.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.socket, self.remote) == (other.socket, other.remote)
    }
}

/// An event of a path or of the association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEvent {
    /// Its status changed.
    Changed(PathId, PathStatus),
    /// The peer has restarted: messages may be missing, and stream sequence numbers start over.
    Restarted,
    /// Addresses were added or removed (RFC 5061).
    Address(AddressChange),
    /// The peer has authenticated a packet with this secret for the first time (RFC 4895).
    PeerUsesKey(u16),
}

/// An event of an association, for its observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// The association is established.
    Connected,
    /// The peer has restarted.
    Restarted,
    /// A path has a new status.
    Path(PathId, PathStatus),
    /// The association has ended.
    Closed(CloseReason),
}

/// Notifications for waiting tasks.
#[derive(Debug, Default)]
pub struct Signals {
    /// Messages can be read, or the association has ended.
    pub readable: Notify,
    /// Number of tasks that wait to read.
    readers: AtomicUsize,
    /// The send buffer has room, or the association has ended.
    pub writable: Notify,
    /// The number of bytes that wait for a path fell below [`Peer::awaited_below`], or the association has ended.
    /// Only signalled if that is set.
    pub drained: Notify,
    /// Everything sent has been acknowledged, or the association has ended. Only signalled if [`Peer::flushing`] is
    /// set.
    pub flushed: Notify,
    /// The association is established, a path has changed, or the association has ended.
    pub changed: Notify,
    /// Probes have arrived.
    pub probed: Notify,
}

impl Signals {
    /// Waits until a message can be read. `readable` must come from [`Signals::readable`].
    pub async fn wait_readable(&self, readable: Pin<&mut Notified<'_>>) {
        let _count = ReaderCount::new(&self.readers);
        readable.await;
    }

    /// Wakes the tasks that wait to read. Returns whether there are any.
    pub fn wake_reader(&self) -> bool {
        self.readable.notify_waiters();
        self.readers.load(Ordering::Relaxed) > 0
    }

    fn all(&self) {
        self.readable.notify_waiters();
        self.writable.notify_waiters();
        self.drained.notify_waiters();
        self.flushed.notify_waiters();
        self.changed.notify_waiters();
    }
}

/// Counts a waiting task while it lives.
struct ReaderCount<'a>(&'a AtomicUsize);

impl<'a> ReaderCount<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for ReaderCount<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One association.
#[derive(Debug)]
pub struct Peer {
    /// The engine.
    pub machine: Association,
    /// The encapsulation of its packets.
    pub encapsulation: Encapsulation,
    /// The number by which sealed datagrams address the association. `None` without sealing.
    pub session: Option<u32>,
    /// The routes of its paths, as far as known.
    pub routes: Vec<Option<Route>>,
    /// The DSCPs of its packets.
    pub dscps: PathDscps,
    /// Which peer addresses are validated, and where paths may have moved.
    pub validation: PathValidation,
    /// Destination of the handshake's reply. Only its receiver can seal datagrams of the session, so the first such
    /// datagram validates that address, regardless of the datagram's source.
    pub replied_to: Option<Route>,
    /// Times of the last signs of life.
    pub liveness: Liveness,
    /// The key and prefix under which it is counted, if a peer has opened it.
    pub admitted: Option<Admitted>,
    /// Bytes that are counted for it.
    pub counted_memory: u64,
    /// The peer's addresses as the application gave them, if this end opened it. New paths may lead to them.
    pub remotes: Vec<SocketAddr>,
    /// Addresses that the peer has removed, the latest last.
    pub former: Vec<IpAddr>,
    /// Addresses of this end that were removed from the association.
    pub given_up: Vec<IpAddr>,
    /// Whether own addresses that appear and disappear are announced to the peer.
    pub follows_interfaces: bool,
    /// The number of the last change of own addresses that the peer knows.
    pub told_changes: u64,
    /// Its entry in the list of deadlines.
    pub deadline: Option<Time>,
    /// Whether it is in the ready list.
    pub ready: bool,
    /// Whether it was ever established.
    pub connected: bool,
    /// Whether the peer's SHUTDOWN has arrived.
    pub shut_down_by_peer: bool,
    /// Whether the peer opened it.
    pub opened_by_peer: bool,
    /// Whether the peer opened it and the application has not accepted it yet.
    pub incoming: bool,
    /// Whether no handle exists: it is removed as soon as it has ended.
    pub abandoned: bool,
    /// Whether a task waits until everything has been acknowledged.
    pub flushing: bool,
    /// The application waits until fewer bytes than this wait for a path.
    pub awaited_below: Option<u64>,
    /// Why it ended.
    pub ended: Option<CloseReason>,
    /// The reason that this end gave when it aborted the association.
    pub abort_reason: Option<Box<[u8]>>,
    /// Events of paths, oldest first.
    pub path_events: VecDeque<PathEvent>,
    /// Packets of each path.
    pub traffic: Vec<PathTraffic>,
    /// Amount of carried data at the last report to the observer.
    carried: u64,
    /// Its place in the qlog.
    pub logged: LoggedAssociation,
    /// Events of this turn that are still to be reported to the observer.
    pub occurrences: Vec<Occurrence>,
    /// Received probes. `None` unless the application has enabled probes.
    pub probes: Option<ProbeQueue>,
    /// For each path with a Binding request, the response that waits for the application.
    pub bindings: BTreeMap<u8, Option<BindingResponse>>,
    /// Notifications for waiting tasks.
    pub signals: Arc<Signals>,
}

/// What the endpoint must do after an association's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EventSummary {
    /// The association is established.
    pub connected: bool,
    /// The association is established, and the peer opened it.
    pub accepted: bool,
    /// Addresses have changed.
    pub addresses: bool,
}

impl Peer {
    /// Ends the association immediately, with a reason for the peer.
    pub fn abort_because(&mut self, reason: &[u8]) {
        if self.ended.is_none() {
            let kept = &reason[..reason.len().min(Association::ABORT_REASON_LIMIT)];
            self.abort_reason = Some(kept.into());
            self.machine.abort_because(kept);
        }
    }

    /// A new association.
    pub fn new(
        now: Time,
        machine: Association,
        encapsulation: Encapsulation,
        session: Option<u32>,
        routes: Vec<Option<Route>>,
        incoming: bool,
    ) -> Self {
        Self {
            machine,
            encapsulation,
            session,
            routes,
            dscps: PathDscps::default(),
            validation: PathValidation::default(),
            replied_to: None,
            liveness: Liveness::new(now),
            admitted: None,
            counted_memory: 0,
            remotes: Vec::new(),
            former: Vec::new(),
            given_up: Vec::new(),
            follows_interfaces: false,
            told_changes: 0,
            deadline: None,
            ready: false,
            connected: false,
            shut_down_by_peer: false,
            opened_by_peer: incoming,
            incoming,
            abandoned: false,
            flushing: false,
            awaited_below: None,
            ended: None,
            abort_reason: None,
            path_events: VecDeque::new(),
            traffic: Vec::new(),
            carried: 0,
            logged: LoggedAssociation::default(),
            occurrences: Vec::new(),
            probes: None,
            bindings: BTreeMap::new(),
            signals: Arc::default(),
        }
    }

    /// Handles the timers that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        self.machine.handle_timeout(now);
        self.encapsulation.handle_timeout(now);
        if matches!(&self.encapsulation, Encapsulation::HandshakeInProgress(handshake) if handshake.has_given_up())
        {
            self.give_up();
        }
    }

    /// Ends the association because the peer has not answered, or has refused the handshake.
    pub fn give_up(&mut self) {
        self.ended = Some(CloseReason::NoAnswer);
        self.signals.all();
    }

    /// Handles a sealed datagram of `bytes` that arrived from `route`. The sender has authenticated the path number
    /// `path`, but not its own address: see [`PathValidation`]. An unknown path is added with the configuration
    /// `fresh`.
    pub fn on_authenticated_route(
        &mut self,
        now: Time,
        path: u8,
        route: Route,
        fresh: PathConfig,
        bytes: usize,
    ) -> Option<PathId> {
        let id = PathId(path);
        while self.machine.path_count() <= id.index() {
            self.machine.add_path(now, fresh)?;
        }
        self.routes.resize(self.machine.path_count(), None);
        self.liveness.on_packet(now);
        let bytes = bytes as u64 + lower_headers(&route.remote);
        self.traffic_of(id.index()).on_received(now, bytes);
        match self.routes[id.index()] {
            // Only the address of the end that opened the association may move. If each end followed the other, one
            // stray packet could redirect a path permanently.
            Some(current) if !self.opened_by_peer => {
                self.validation.on_packet(now, id.index(), current, current, bytes);
            }
            Some(current) => self.validation.on_packet(now, id.index(), route, current, bytes),
            None => self.on_first_packet(now, id, route, bytes),
        }
        Some(id)
    }

    /// Handles the first packet of a path.
    fn on_first_packet(&mut self, now: Time, id: PathId, route: Route, bytes: u64) {
        let replied_to = self.replied_to.filter(|_| !self.connected);
        self.routes[id.index()] = Some(replied_to.unwrap_or(route));
        match replied_to {
            Some(proved) if proved.is_like(&route) => {
                self.validation.on_packet(now, id.index(), route, route, bytes);
            }
            // A copy from elsewhere may have arrived first, or the handshake used another path. Until this address
            // has answered, the association is set up over the route of the reply.
            Some(proved) => {
                // With only one path, that route is this path's own.
                if self.routes.len() > 1 {
                    self.validation.on_borrowed(id.index());
                }
                self.validation.on_packet(now, id.index(), route, proved, bytes);
            }
            None => self.validation.on_new_path(id.index(), bytes),
        }
        self.machine.set_ipv6(id, route.remote.ip().to_canonical().is_ipv6());
        self.machine.validate_path(now, id);
    }

    /// Handles the system's refusal of a datagram of this size, bytes: the path's interface cannot carry it.
    pub fn too_long(&mut self, now: Time, path: usize, datagram: usize) {
        let headers = self.machine.config().lower_header - self.encapsulation.overhead();
        let packet = u32::try_from(datagram).unwrap_or(u32::MAX).saturating_add(headers);
        self.machine.packet_too_long(now, PathId::from_index(path), packet);
    }

    /// Takes the engine's events and notifies the tasks that wait for them.
    pub fn take_events(&mut self, now: Time) -> EventSummary {
        let mut changes = EventSummary::default();
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.note_occurrence(Occurrence::Connected);
                    changes.connected = true;
                    changes.accepted = self.incoming;
                    self.signals.changed.notify_waiters();
                }
                Event::Readable => self.signals.readable.notify_waiters(),
                Event::Writable => self.signals.writable.notify_waiters(),
                Event::Restarted => {
                    self.note_occurrence(Occurrence::Restarted);
                    self.push_event(PathEvent::Restarted);
                }
                Event::Reconfigured => {
                    self.signals.readable.notify_waiters();
                    self.signals.changed.notify_waiters();
                }
                Event::AddressesChanged => changes.addresses = true,
                Event::PeerUsesKey(id) => self.push_event(PathEvent::PeerUsesKey(id)),
                Event::PathChanged(path, status) => {
                    self.note_status(now, path, status);
                    self.note_occurrence(Occurrence::Path(path, status));
                    self.push_event(PathEvent::Changed(path, status));
                }
                Event::Closed(reason) => {
                    // An attempt that this end has given up does not count as an association that ended.
                    let given_up = CloseReason::Aborted(AbortCause::User);
                    if self.connected || reason != given_up {
                        self.note_occurrence(Occurrence::Closed(reason));
                    }
                    self.ended = Some(reason);
                    self.signals.all();
                }
            }
        }
        if self.awaited_below.is_some_and(|bytes| self.machine.waiting_bytes() < bytes) {
            self.awaited_below = None;
            self.signals.drained.notify_waiters();
        }
        let state = self.machine.state();
        let by_peer =
            matches!(state, State::ShutdownReceived { .. } | State::ShutdownAckSent { .. });
        if by_peer && !std::mem::replace(&mut self.shut_down_by_peer, true) {
            self.signals.changed.notify_waiters();
        }
        if self.machine.has_abandoned() {
            self.signals.changed.notify_waiters();
        }
        if self.flushing && self.machine.is_flushed() {
            self.flushing = false;
            self.signals.flushed.notify_waiters();
        }
        changes
    }

    /// Whether data has passed in either direction since the last call.
    pub fn has_carried_data(&mut self) -> bool {
        let paths = self.machine.path_counters().enumerate();
        let carried = paths.map(|(path, counters)| {
            let received = self.machine.received_bytes(PathId::from_index(path));
            received + counters.sent_chunks + counters.delivered_bytes
        });
        let carried = carried.sum();
        std::mem::replace(&mut self.carried, carried) != carried
    }

    /// The counters of a path's packets.
    #[inline]
    pub fn traffic_of(&mut self, path: usize) -> &mut PathTraffic {
        if path >= self.traffic.len() {
            self.traffic.resize_with(path + 1, PathTraffic::default);
        }
        &mut self.traffic[path]
    }

    fn note_occurrence(&mut self, occurrence: Occurrence) {
        if self.occurrences.len() < OCCURRENCES_LIMIT {
            self.occurrences.push(occurrence);
        }
    }

    /// The peer's public key. `None` without sealing.
    pub fn public_key(&self) -> Option<PublicKey> {
        match &self.encapsulation {
            Encapsulation::Sealed(session) => Some(session.peer()),
            Encapsulation::Plain(_) | Encapsulation::HandshakeInProgress(_) => None,
        }
    }

    /// Takes the next message. It may be the last one before an event about streams, which becomes available
    /// then.
    pub fn read(&mut self, now: Time) -> Option<Message> {
        let message = self.machine.read(now)?;
        if self.machine.has_reconfiguration() {
            self.signals.changed.notify_waiters();
        }
        Some(message)
    }

    /// Whether a message or an event about streams can be taken.
    pub fn has_input(&self) -> bool {
        self.machine.can_read() || self.machine.has_reconfiguration()
    }

    pub(super) fn push_event(&mut self, event: PathEvent) {
        if self.path_events.len() == EVENTS_LIMIT {
            self.path_events.pop_front();
        }
        self.path_events.push_back(event);
        self.signals.changed.notify_waiters();
    }

    /// The path to the same address with another UDP port, which a translator may have changed. The packet has the
    /// right tag; the path moves once that port has answered (RFC 6951, 5.4).
    fn moved_to(&self, route: Route) -> Option<PathId> {
        let same = |known: &Option<Route>| {
            known.is_some_and(|k| k.socket == route.socket && k.remote.ip() == route.remote.ip())
        };
        self.routes.iter().position(same).map(PathId::from_index)
    }

    /// The path of an unsealed packet with the right tag, found by its source.
    pub fn path_from(&mut self, now: Time, route: Route, packet: &Packet) -> Option<PathId> {
        if packet.tag == self.machine.tags().0 {
            self.liveness.on_packet(now);
        }
        let bytes = u64::from(packet.wire_len()) + lower_headers(&route.remote);
        if let Some(path) = self.path_to(route).or_else(|| self.moved_to(route))
            && !self.has_guessed_port(path, route)
        {
            let current = self.routes[path.index()]?;
            self.traffic_of(path.index()).on_received(now, bytes);
            self.validation.on_packet(now, path.index(), route, current, bytes);
            return Some(path);
        }
        let guessed = |at: &usize| self.has_guessed_port(PathId::from_index(*at), route);
        let at = (0..self.routes.len()).find(guessed)?;
        self.routes[at] = Some(route);
        self.validation.on_new_path(at, bytes);
        self.machine.validate_path(now, PathId::from_index(at));
        Some(PathId::from_index(at))
    }

    /// Whether the path's port is a guess: the peer has listed this address, and no packet has arrived from it yet.
    /// RFC 6951, 5.4: UDP ports are learned from packets; the list of addresses contains none.
    fn has_guessed_port(&self, path: PathId, route: Route) -> bool {
        let known = self.routes[path.index()];
        let other_way = known
            .is_some_and(|known| known.remote.ip() == route.remote.ip() && !known.is_like(&route));
        other_way && self.validation.is_only_listed(path.index())
    }

    /// The path with this socket and remote address, regardless of its local address.
    pub fn path_to(&self, route: Route) -> Option<PathId> {
        let same = |known: &Option<Route>| {
            known.is_some_and(|k| (k.socket, k.remote) == (route.socket, route.remote))
        };
        self.routes.iter().position(same).map(PathId::from_index)
    }
}
