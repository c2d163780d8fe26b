//! Transmit path: from associations to sockets. Packets of one path are sent together.

use ropewalk_base::Time;
use ropewalk_engine::PacketSize;

use super::batch::{Batch, Fit};
use super::encapsulation::Encapsulation;
use super::limits::Limit;
use super::packet_capture::Near;
use super::peer::{Peer, Route};
use super::socket::{Socket, is_too_long, leads_nowhere};
use super::state::{EndpointState, Key, Shared};

/// Most packets that one association sends before the next one has its turn.
const TURN: usize = 256;

impl EndpointState {
    /// Sends for all associations in the ready list, as much as the sockets take.
    pub(super) fn drain(&mut self, now: Time, shared: &Shared) {
        let mut dirty = std::mem::take(&mut self.dirty);
        self.eager = false;
        for key in dirty.drain(..) {
            let Some(mut peer) = self.lift(key) else { continue };
            peer.dirty = false;
            peer.follow_routes(now);
            let blocked = self.is_blocked(&peer);
            let more = !blocked && self.drain_one(now, &mut peer);
            self.settle(key, peer, shared);
            self.eager |= more;
            if more || blocked {
                self.touch(key);
            }
        }
        self.enforce_memory(now);
        // Associations marked meanwhile are in the new list. The old list's memory is reused if there are none.
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    /// Whether the sockets of all paths are full, so that a new packet would only wait. If only some are full, their
    /// packets wait in the socket's backlog, which the path's congestion window bounds: a slow or stuck device must
    /// not hold up the other paths.
    fn is_blocked(&self, peer: &Peer) -> bool {
        let mut sockets = peer.routes.iter().flatten().map(|route| &self.sockets[route.socket]);
        peer.routes.iter().any(Option::is_some) && sockets.all(|socket| socket.is_blocked())
    }

    /// Sends for one association. Returns whether it has more to send.
    fn drain_one(&mut self, now: Time, peer: &mut Peer) -> bool {
        let lanes = &mut self.lanes;
        while lanes.len() < peer.routes.len() {
            lanes.push(Batch::new(([0, 0, 0, 0], 0).into()));
        }
        for (tx_batch, route) in lanes.iter_mut().zip(&peer.routes) {
            if let Some(route) = route {
                tx_batch.redirect(route.remote);
                tx_batch.set_source(route.source);
            }
        }
        self.send_handshake(peer);
        self.send_challenges(now, peer);
        let Self { packet, lanes, sockets, counters, tap, links, .. } = self;
        let (mut sent, mut trouble) = (0, Trouble::default());
        while sent < TURN
            && let Some(departure) = peer.machine.poll_transmit_into(now, packet)
        {
            sent += 1;
            let index = departure.path.index();
            // The path's route is unknown (yet): the packet is lost, as on a failed path.
            let Some(route) = peer.routes.get(index).copied().flatten() else { continue };
            if peer.validation.is_limited(index) && !peer.may_send_unvalidated(route, index, packet)
            {
                continue;
            }
            if let Some(tap) = tap {
                let port = sockets[route.socket].local().port();
                let near = Near { link: &links[route.socket], port };
                tap.leaves(route, near, peer.cover.ports(), packet);
            }
            let (tx_batch, socket) = (&mut lanes[index], &mut sockets[route.socket]);
            let alone = departure.size != PacketSize::Usual;
            if alone || tx_batch.ect() != departure.ect {
                trouble.note(index, send(socket, tx_batch));
            }
            tx_batch.set_ect(departure.ect);
            let fit = tx_batch.push(|out| {
                // An error means that the session's keys are used up: nothing is sent until they change.
                let _ = peer.cover.write(departure.path, packet, out);
            });
            counters.sent += (fit != Fit::Nothing) as u64;
            if departure.size == PacketSize::TooLong {
                tx_batch.let_be_cut();
            }
            trouble.note(
                index,
                if alone { send(socket, tx_batch) } else { put(socket, tx_batch, fit) },
            );
        }
        for (index, (tx_batch, route)) in lanes.iter_mut().zip(&peer.routes).enumerate() {
            if let Some(route) = route {
                trouble.note(index, send(&mut sockets[route.socket], tx_batch));
            }
        }
        self.suspicious |= trouble.nowhere != 0;
        // The data in flight on a failed path is sent on other paths at once.
        let moved = trouble.nowhere != 0 && peer.refused(now, trouble.nowhere);
        for (path, datagram) in &trouble.too_long {
            peer.too_long(now, *path, *datagram);
        }
        sent == TURN || moved || !trouble.too_long.is_empty()
    }

    /// Sends the handshake's datagrams that are due. Each try uses another path.
    fn send_handshake(&mut self, peer: &mut Peer) {
        let Encapsulation::HandshakeInProgress(shaking) = &mut peer.cover else { return };
        let routes: Vec<_> = peer.routes.iter().flatten().collect();
        while let Some((datagram, attempt)) = shaking.take_datagram() {
            let first = attempt % routes.len().max(1);
            // If the system refuses to send there, the next path is tried at once.
            let mut turns = routes[first..].iter().chain(&routes[..first]);
            let _ = turns.any(|route| !self.send_alone(**route, &datagram));
        }
    }

    /// Sends one datagram outside an association's packets. Returns whether the system permanently refused it.
    pub(super) fn send_alone(&mut self, route: Route, datagram: &[u8]) -> bool {
        let mut batch = Batch::new(route.remote);
        batch.set_source(route.source);
        batch.push(|out| out.extend_from_slice(datagram));
        self.counters.sent += 1;
        send(&mut self.sockets[route.socket], &mut batch) == Sending::Nowhere
    }

    /// Puts a drained peer back, or removes it if it has ended and nobody holds it.
    fn settle(&mut self, key: Key, mut peer: Box<Peer>, shared: &Shared) {
        let now = self.clock.now();
        let outcome = peer.take_events(now);
        if outcome.connected && peer.session.is_none() {
            self.learn_addresses(now, &mut peer);
            self.dirty.push(key);
            peer.dirty = true;
        }
        if outcome.accepted {
            self.negotiation(now, key, &mut peer);
            shared.accept.notify_waiters();
        }
        if peer.ended.is_some() && (peer.abandoned || peer.incoming) {
            self.remove(key, &peer);
            shared.gone.notify_waiters();
            return;
        }
        self.recount(&mut peer);
        self.schedule(key, &mut peer);
        self.lower(key, peer);
    }

    /// An association that a peer opened is established: queues it for acceptance, or aborts it if the queue is full.
    fn negotiation(&mut self, now: Time, key: Key, peer: &mut Peer) {
        if self.accepted.len() < self.options.limits.accept_queue {
            peer.incoming = false;
            peer.liveness.wait(now);
            self.accepted.push_back(key);
            return;
        }
        let address = peer.routes.iter().flatten().map(|route| route.remote).next();
        peer.machine.abort();
        self.reached(now, Limit::AcceptQueue, address, 1);
        // The ABORT has not been sent yet.
        if !std::mem::replace(&mut peer.dirty, true) {
            self.dirty.push(key);
        }
    }
}

/// Result of sending a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// Sent as far as is known, or waiting in the backlog.
    Done,
    /// The system permanently refuses to send to the destination.
    Nowhere,
    /// The interface does not carry datagrams of this size, bytes.
    TooLong(usize),
}

/// Refusals by the system while an association was sending.
#[derive(Default)]
struct Trouble {
    /// Paths whose packets were refused permanently: a bit mask of their numbers.
    nowhere: u32,
    /// Indices of paths, and the datagram sizes that were refused as too long, bytes.
    too_long: Vec<(usize, usize)>,
}

impl Trouble {
    fn note(&mut self, path: usize, sending: Sending) {
        match sending {
            Sending::Done => {}
            Sending::Nowhere => self.nowhere |= 1 << path,
            Sending::TooLong(datagram) => self.too_long.push((path, datagram)),
        }
    }
}

/// Sends a batch if no datagram can be added to it. Returns the result of [`send`].
fn put(socket: &mut Socket, tx_batch: &mut Batch, fit: Fit) -> Sending {
    match fit {
        Fit::Nothing => Sending::Done,
        Fit::More if !tx_batch.is_full(socket.segments()) => Sending::Done,
        Fit::More | Fit::Last => send(socket, tx_batch),
        Fit::Longer { from } => {
            let mut before = tx_batch.split(from);
            send(socket, &mut before)
        }
    }
}

/// Sends a batch if it is not empty. Datagrams that the system refuses are lost, as in any network, and are detected
/// in the same way.
fn send(socket: &mut Socket, tx_batch: &mut Batch) -> Sending {
    if tx_batch.is_empty() {
        return Sending::Done;
    }
    let datagram = tx_batch.segment();
    match socket.send(tx_batch) {
        Err(error) if leads_nowhere(&error) => Sending::Nowhere,
        Err(error) if is_too_long(&error) => Sending::TooLong(datagram),
        Ok(()) | Err(_) => Sending::Done,
    }
}
