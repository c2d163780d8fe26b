//! An association with its paths' addresses, as the endpoint keeps it.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{Association, Event, Packet, PathConfig};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::association_counts::Admitted;
use super::encapsulation::Encapsulation;
use super::liveness::Liveness;
use super::path_validation::{PathValidation, lower_headers};

/// Most news of paths kept for a user who does not ask.
const NEWS_LIMIT: usize = 64;

/// Where a path leads: through which socket, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// Index of the socket.
    pub socket: usize,
    /// The own address to send from, where the socket has several; none: the system chooses.
    pub source: Option<IpAddr>,
    /// The peer's address there.
    pub remote: SocketAddr,
}

impl Route {
    /// A route on which the system chooses the own address.
    pub const fn new(socket: usize, remote: SocketAddr) -> Self {
        Self { socket, source: None, remote }
    }

    /// Whether both lead through one socket to one address of the peer.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.socket, self.remote) == (other.socket, other.remote)
    }
}

/// What became of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathNews {
    /// Its status changed.
    Changed(PathId, PathStatus),
    /// The peer has started anew: messages may be missing, streams start over.
    Restarted,
}

/// Who waits for what.
#[derive(Debug, Default)]
pub struct Signals {
    /// Messages can be read, or the association has ended.
    pub readable: Notify,
    /// How many wait for that.
    readers: AtomicUsize,
    /// The send buffer has room, or the association has ended.
    pub writable: Notify,
    /// All that was sent has been acknowledged, or the association has ended; told where [`Peer::flushing`] asks for it.
    pub flushed: Notify,
    /// It is up, a path changed, or it has ended.
    pub changed: Notify,
}

impl Signals {
    /// Waits until something can be read: `readable` is of [`Signals::readable`].
    pub async fn until(&self, readable: Pin<&mut Notified<'_>>) {
        let _here = Here::new(&self.readers);
        readable.await;
    }

    /// Wakes those who wait to read. Whether there are any.
    pub fn wake_reader(&self) -> bool {
        self.readable.notify_waiters();
        self.readers.load(Ordering::Relaxed) > 0
    }

    fn all(&self) {
        self.readable.notify_waiters();
        self.writable.notify_waiters();
        self.flushed.notify_waiters();
        self.changed.notify_waiters();
    }
}

/// Somebody is counted as long as this lives.
struct Here<'a>(&'a AtomicUsize);

impl<'a> Here<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Here<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One association.
#[derive(Debug)]
pub struct Peer {
    /// The engine.
    pub machine: Association,
    /// What is around its packets.
    pub cover: Encapsulation,
    /// The number by which sealed datagrams address it; none in the clear.
    pub session: Option<u32>,
    /// Where its paths lead, as far as is known.
    pub routes: Vec<Option<Route>>,
    /// Which of these addresses have answered, and where paths may have moved to.
    pub validation: PathValidation,
    /// Where the handshake's reply went. Only who received it can seal datagrams of the session, so the
    /// first of these validates that address, wherever it comes from.
    pub replied_to: Option<Route>,
    /// When something last happened.
    pub liveness: Liveness,
    /// What it is counted under, if a peer has opened it.
    pub admitted: Option<Admitted>,
    /// Bytes for which it is counted.
    pub counted_memory: u64,
    /// The peer's addresses as they were given, if it was opened from here: a path more may lead to them.
    pub remotes: Vec<SocketAddr>,
    /// When it is in the list of deadlines.
    pub deadline: Option<Time>,
    /// Whether it is in the list of those to be drained.
    pub dirty: bool,
    /// It has been up.
    pub connected: bool,
    /// The peer opened it.
    pub opened_by_peer: bool,
    /// The peer opened it, and nobody has accepted it yet.
    pub incoming: bool,
    /// Nobody holds it any more: it goes as soon as it has ended.
    pub abandoned: bool,
    /// Somebody waits until all has been acknowledged.
    pub flushing: bool,
    /// Why it ended.
    pub ended: Option<CloseReason>,
    /// News of paths, oldest first.
    pub news: VecDeque<PathNews>,
    /// Who waits.
    pub signals: Arc<Signals>,
}

/// What an endpoint has to do after a peer's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Outcome {
    /// It is up.
    pub connected: bool,
    /// It is up, and the peer opened it.
    pub accepted: bool,
}

impl Peer {
    /// A fresh one.
    pub fn new(
        now: Time,
        machine: Association,
        cover: Encapsulation,
        session: Option<u32>,
        routes: Vec<Option<Route>>,
        incoming: bool,
    ) -> Self {
        Self {
            machine,
            cover,
            session,
            routes,
            validation: PathValidation::default(),
            replied_to: None,
            liveness: Liveness::new(now),
            admitted: None,
            counted_memory: 0,
            remotes: Vec::new(),
            deadline: None,
            dirty: false,
            connected: false,
            opened_by_peer: incoming,
            incoming,
            abandoned: false,
            flushing: false,
            ended: None,
            news: VecDeque::new(),
            signals: Arc::default(),
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        self.machine.handle_timeout(now);
        self.cover.handle_timeout(now);
        if matches!(&self.cover, Encapsulation::HandshakeInProgress(shaking) if shaking.is_hopeless())
        {
            self.give_up();
        }
    }

    /// The peer has not answered.
    fn give_up(&mut self) {
        self.ended = Some(CloseReason::NoAnswer);
        self.signals.all();
    }

    /// A sealed datagram of so many bytes came from there on `path`, by the peer's word. Where it comes from
    /// is no proof of where the peer is: see [`PathValidation`]. A path that is not known yet is `fresh`.
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
        self.liveness.hear(now);
        let bytes = bytes as u64 + lower_headers(&route.remote);
        match self.routes[id.index()] {
            // Only the end that opened it moves: if each followed the other, one packet that strayed would
            // bend a path for good.
            Some(current) if !self.opened_by_peer => {
                self.validation.on_packet(now, id.index(), current, current, bytes);
            }
            Some(current) => self.validation.on_packet(now, id.index(), route, current, bytes),
            None => self.begin_route(now, id, route, bytes),
        }
        Some(id)
    }

    /// The first packet of a path.
    fn begin_route(&mut self, now: Time, id: PathId, route: Route, bytes: u64) {
        let replied_to = self.replied_to.filter(|_| !self.connected);
        self.routes[id.index()] = Some(replied_to.unwrap_or(route));
        match replied_to {
            Some(proved) if proved.is_like(&route) => {
                self.validation.on_packet(now, id.index(), route, route, bytes);
            }
            // Perhaps a copy from elsewhere came first, or the handshake went by another path: until this
            // address has answered, the association is set up by way of the one that has.
            Some(proved) => {
                // With one path, the one that has is of this path as well.
                if self.routes.len() > 1 {
                    self.validation.on_borrowed(id.index());
                }
                self.validation.on_packet(now, id.index(), route, proved, bytes);
            }
            None => self.validation.on_new_path(id.index(), bytes),
        }
        self.machine.set_ipv6(id, route.remote.ip().to_canonical().is_ipv6());
        self.machine.prove(now, id);
    }

    /// The system would not send a datagram of so many bytes on a path: its interface carries no such.
    pub fn too_long(&mut self, now: Time, path: usize, datagram: usize) {
        let headers = self.machine.config().lower_header - self.cover.overhead();
        let packet = u32::try_from(datagram).unwrap_or(u32::MAX).saturating_add(headers);
        self.machine.packet_too_long(now, PathId::from_index(path), packet);
    }

    /// Takes the engine's events and wakes whom they concern.
    pub fn take_events(&mut self, now: Time) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some(event) = self.machine.poll_event() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    outcome.connected = true;
                    outcome.accepted = self.incoming;
                    self.signals.changed.notify_waiters();
                }
                Event::Readable => self.signals.readable.notify_waiters(),
                Event::Writable => self.signals.writable.notify_waiters(),
                Event::Restarted => self.tell(PathNews::Restarted),
                Event::PathChanged(path, status) => {
                    self.note_status(now, path, status);
                    self.tell(PathNews::Changed(path, status));
                }
                Event::Closed(reason) => {
                    self.ended = Some(reason);
                    self.signals.all();
                }
            }
        }
        if self.flushing && self.machine.is_flushed() {
            self.flushing = false;
            self.signals.flushed.notify_waiters();
        }
        outcome
    }

    fn tell(&mut self, news: PathNews) {
        if self.news.len() == NEWS_LIMIT {
            self.news.pop_front();
        }
        self.news.push_back(news);
        self.signals.changed.notify_waiters();
    }

    /// The path to the same address with another port, which a translator has changed: it leads there once
    /// that port has answered. The packet had the right tag (RFC 6951, 5.4).
    fn moved_to(&self, route: Route) -> Option<PathId> {
        let same = |known: &Option<Route>| {
            known.is_some_and(|k| k.socket == route.socket && k.remote.ip() == route.remote.ip())
        };
        self.routes.iter().position(same).map(PathId::from_index)
    }

    /// The path of a packet in the clear, which had the right tag: by where it comes from.
    pub fn path_from(&mut self, now: Time, route: Route, packet: &Packet) -> Option<PathId> {
        if packet.tag == self.machine.tags().0 {
            self.liveness.hear(now);
        }
        let bytes = u64::from(packet.wire_len()) + lower_headers(&route.remote);
        if let Some(path) = self.path_to(route).or_else(|| self.moved_to(route))
            && !self.is_guessed(path, route)
        {
            let current = self.routes[path.index()]?;
            self.validation.on_packet(now, path.index(), route, current, bytes);
            return Some(path);
        }
        let guessed = |at: &usize| self.is_guessed(PathId::from_index(*at), route);
        let at = (0..self.routes.len()).find(guessed)?;
        self.routes[at] = Some(route);
        self.validation.on_new_path(at, bytes);
        self.machine.prove(now, PathId::from_index(at));
        Some(PathId::from_index(at))
    }

    /// Whether the path leads to this address of the peer by a guess: the peer has listed the address, and
    /// nothing came from there yet. RFC 6951, 5.4: the UDP port is learned from packets; the list has none.
    fn is_guessed(&self, path: PathId, route: Route) -> bool {
        let known = self.routes[path.index()];
        let other_way = known
            .is_some_and(|known| known.remote.ip() == route.remote.ip() && !known.is_like(&route));
        other_way && self.validation.is_only_listed(path.index())
    }

    /// The path that leads there, if it is known, from whatever own address.
    pub fn path_to(&self, route: Route) -> Option<PathId> {
        let same = |known: &Option<Route>| {
            known.is_some_and(|k| (k.socket, k.remote) == (route.socket, route.remote))
        };
        self.routes.iter().position(same).map(PathId::from_index)
    }
}
