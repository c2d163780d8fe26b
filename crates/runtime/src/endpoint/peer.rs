//! An association with its paths' addresses, as the endpoint keeps it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::CloseReason;
use ropewalk_engine::sctp::{Association, Event, PathConfig};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::cover::Cover;

/// Most news of paths kept for a user who does not ask.
const NEWS_LIMIT: usize = 64;

/// Where a path leads: through which socket, and to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// Index of the socket.
    pub socket: usize,
    /// The peer's address there.
    pub remote: SocketAddr,
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
    pub cover: Cover,
    /// The number by which sealed datagrams address it; none in the clear.
    pub session: Option<u32>,
    /// Where its paths lead, as far as is known.
    pub routes: Vec<Option<Route>>,
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
        machine: Association,
        cover: Cover,
        session: Option<u32>,
        routes: Vec<Option<Route>>,
        incoming: bool,
    ) -> Self {
        Self {
            machine,
            cover,
            session,
            routes,
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
        if matches!(&self.cover, Cover::Shaking(shaking) if shaking.is_hopeless()) {
            self.give_up();
        }
    }

    /// The peer has not answered.
    fn give_up(&mut self) {
        self.ended = Some(CloseReason::NoAnswer);
        self.signals.all();
    }

    /// A sealed datagram came on `path`, by the peer's word, from there. Paths come and go: what is sealed
    /// says where the peer is now. A path that is not known yet is `fresh`.
    pub fn came_by(
        &mut self,
        now: Time,
        path: u8,
        route: Route,
        fresh: PathConfig,
    ) -> Option<PathId> {
        let id = PathId(path);
        while self.machine.path_count() <= id.index() {
            self.machine.add_path(now, fresh)?;
        }
        self.routes.resize(self.machine.path_count(), None);
        // Only the end that opened it moves: if each followed the other, one packet that strayed would
        // bend a path for good.
        let follows = self.opened_by_peer || self.routes[id.index()].is_none();
        if follows && self.routes[id.index()] != Some(route) {
            self.routes[id.index()] = Some(route);
            self.machine.prove(now, id);
        }
        Some(id)
    }

    /// The system would not send a datagram of so many bytes on a path: its interface carries no such.
    pub fn too_long(&mut self, now: Time, path: usize, datagram: usize) {
        let headers = self.machine.config().lower_header - self.cover.overhead();
        let packet = u32::try_from(datagram).unwrap_or(u32::MAX).saturating_add(headers);
        self.machine.packet_too_long(now, PathId::from_index(path), packet);
    }

    /// Takes the engine's events and wakes whom they concern.
    pub fn take_events(&mut self) -> Outcome {
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
                Event::PathChanged(path, status) => self.tell(PathNews::Changed(path, status)),
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

    /// The path to the same address with another port, which a translator has changed: it leads there from
    /// now on, once asked whether it does. The packet had the right tag (RFC 6951, 5.4).
    pub fn moved_to(&mut self, now: Time, route: Route) -> Option<PathId> {
        let same = |known: &Option<Route>| {
            known.is_some_and(|k| k.socket == route.socket && k.remote.ip() == route.remote.ip())
        };
        let at = self.routes.iter().position(same)?;
        self.routes[at] = Some(route);
        self.machine.prove(now, PathId::from_index(at));
        Some(PathId::from_index(at))
    }

    /// The path that leads there, if it is known.
    pub fn path_to(&self, route: Route) -> Option<PathId> {
        let at = self.routes.iter().position(|known| *known == Some(route));
        at.map(PathId::from_index)
    }
}
