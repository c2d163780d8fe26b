//! Transmit path: from associations to sockets. Packets of one path are sent together.

use ropewalk_base::Time;
use ropewalk_engine::PacketSize;

use super::batch::{Batch, Fit};
use super::dscp::Dscp;
use super::encapsulation::Encapsulation;
use super::limits::Limit;
use super::packet_capture::LocalEnd;
use super::peer::{Peer, Route};
use super::send_errors::{is_too_long, is_unreachable};
use super::socket::Socket;
use super::state::{AssociationKey, EndpointState, Shared};

/// Maximum number of packets that one association sends per turn.
const PACKETS_PER_TURN: usize = 256;

impl EndpointState {
    /// Sends for all associations in the ready list, until the sockets are full.
    pub(super) fn drain(&mut self, now: Time, shared: &Shared) {
        let mut ready = std::mem::take(&mut self.ready);
        self.has_more_to_send = false;
        for key in ready.drain(..) {
            let Some(mut peer) = self.take_out(key) else { continue };
            peer.ready = false;
            peer.update_routes(now);
            let blocked = self.is_blocked(&peer);
            let more = !blocked && self.drain_one(now, &mut peer);
            self.finish_turn(key, peer, shared);
            self.has_more_to_send |= more;
            if more || blocked {
                self.mark_ready(key);
            }
        }
        self.enforce_memory(now);
        // Associations that became ready meanwhile are in the new list. If there are none, the old list's
        // memory is reused.
        if self.ready.is_empty() {
            self.ready = ready;
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
        let tx_batches = &mut self.tx_batches;
        while tx_batches.len() < peer.routes.len() {
            tx_batches.push(Batch::new(([0, 0, 0, 0], 0).into()));
        }
        for (path, (tx_batch, route)) in tx_batches.iter_mut().zip(&peer.routes).enumerate() {
            if let Some(route) = route {
                tx_batch.redirect(route.remote);
                tx_batch.set_source(route.source);
                tx_batch.set_dscp(peer.dscps.of(path));
            }
        }
        self.send_handshake(peer);
        self.send_challenges(now, peer);
        let Self { packet, tx_batches, sockets, counters, capture, links, .. } = self;
        let (mut sent, mut failures) = (0, SendFailures::default());
        while sent < PACKETS_PER_TURN
            && let Some(transmit) = peer.machine.poll_transmit_into(now, packet)
        {
            sent += 1;
            let length = peer.machine.config().packet_len(packet);
            let index = transmit.path.index();
            // The path's route is unknown (yet): the packet is lost, as on a failed path.
            let Some(route) = peer.routes.get(index).copied().flatten() else { continue };
            if peer.validation.is_send_limited(index)
                && !peer.may_send_unvalidated(route, index, packet)
            {
                continue;
            }
            if let Some(capture) = capture {
                let port = sockets[route.socket].local().port();
                let near = LocalEnd { link: &links[route.socket], port };
                let sent = (&*packet, length);
                let ports = peer.encapsulation.ports();
                capture.on_sent((route, near), ports, sent, Some(&mut peer.logged));
            }
            let (tx_batch, socket) = (&mut tx_batches[index], &mut sockets[route.socket]);
            let alone = transmit.size != PacketSize::Usual;
            if alone || tx_batch.ecn() != transmit.ecn {
                failures.record(index, send(socket, tx_batch));
            }
            tx_batch.set_ecn(transmit.ecn);
            let fit = tx_batch.push(|out| {
                // An error means that the session's keys are used up: nothing is sent until they change.
                let _ = peer.encapsulation.write(transmit.path, packet, out);
            });
            counters.sent += (fit != Fit::Nothing) as u64;
            peer.traffic_of(index).on_sent(u64::from(length));
            if transmit.size == PacketSize::TooLong {
                tx_batch.allow_fragmentation();
            }
            failures.record(
                index,
                if alone { send(socket, tx_batch) } else { put(socket, tx_batch, fit) },
            );
        }
        for (index, (tx_batch, route)) in tx_batches.iter_mut().zip(&peer.routes).enumerate() {
            if let Some(route) = route {
                failures.record(index, send(&mut sockets[route.socket], tx_batch));
            }
        }
        self.interface_poll_due |= failures.unreachable != 0;
        // The data in flight on a failed path is sent on other paths immediately.
        let moved = failures.unreachable != 0 && peer.on_send_refused(now, failures.unreachable);
        for (path, datagram) in &failures.too_long {
            peer.too_long(now, *path, *datagram);
        }
        sent == PACKETS_PER_TURN || moved || !failures.too_long.is_empty()
    }

    /// Sends the handshake's datagrams that are due. Each try uses another path.
    fn send_handshake(&mut self, peer: &mut Peer) {
        let Encapsulation::HandshakeInProgress(handshake) = &mut peer.encapsulation else { return };
        let mut routes: Vec<_> = peer.routes.iter().flatten().collect();
        if routes.iter().any(|route| !self.handshake_avoids(**route)) {
            routes.retain(|route| !self.handshake_avoids(**route));
        }
        let dscp = peer.dscps.general();
        while let Some((datagram, attempt)) = handshake.take_datagram() {
            let first = attempt % routes.len().max(1);
            // If the system refuses to send there, the next path is tried immediately.
            let mut candidates = routes[first..].iter().chain(&routes[..first]);
            let _ = candidates.any(|route| !self.send_alone(**route, dscp, &datagram));
        }
    }

    /// Sends one datagram outside an association's packets. Returns whether the system permanently refused it.
    pub(super) fn send_alone(&mut self, route: Route, dscp: Dscp, datagram: &[u8]) -> bool {
        let mut batch = Batch::new(route.remote);
        batch.set_source(route.source);
        batch.set_dscp(dscp);
        batch.push(|out| out.extend_from_slice(datagram));
        self.counters.sent += 1;
        send(&mut self.sockets[route.socket], &mut batch) == SendResult::Unreachable
    }

    /// Puts a drained peer back, or removes it if it has ended and has no handle.
    fn finish_turn(&mut self, key: AssociationKey, mut peer: Box<Peer>, shared: &Shared) {
        let now = self.clock.now();
        let events = peer.take_events(now);
        self.log_measurements(now, &mut peer);
        self.report_occurrences(now, key, &mut peer);
        if peer.connected || peer.ended.is_some() {
            self.setting_up.remove(&key);
        }
        if events.addresses {
            self.follow_addresses(now, key, &mut peer);
            // The answer to one request may allow the next one.
            self.interface_poll_due |= peer.follows_interfaces;
            if !std::mem::replace(&mut peer.ready, true) {
                self.ready.push(key);
            }
        }
        if events.connected && peer.session.is_none() {
            self.learn_addresses(now, &mut peer);
            // An announced address may have disappeared meanwhile.
            self.interface_poll_due |= peer.follows_interfaces;
            if !std::mem::replace(&mut peer.ready, true) {
                self.ready.push(key);
            }
        }
        if events.accepted {
            self.queue_for_accept(now, key, &mut peer);
            shared.signals.accept.notify_waiters();
        }
        if peer.ended.is_some() && (peer.abandoned || peer.incoming) {
            self.remove(key, &peer);
            shared.signals.gone.notify_waiters();
            return;
        }
        self.update_memory(&mut peer);
        self.schedule(key, &mut peer);
        self.put_back(key, peer);
    }

    /// Queues an established association that a peer opened for acceptance, or aborts it if the queue is full.
    fn queue_for_accept(&mut self, now: Time, key: AssociationKey, peer: &mut Peer) {
        if self.accepted.len() < self.options.limits.accept_queue {
            peer.incoming = false;
            peer.liveness.on_established(now);
            self.accepted.push_back(key);
            return;
        }
        let address = peer.routes.iter().flatten().map(|route| route.remote).next();
        peer.machine.abort();
        self.on_limit(now, Limit::AcceptQueue, address, 1);
        // The ABORT has not been sent yet.
        if !std::mem::replace(&mut peer.ready, true) {
            self.ready.push(key);
        }
    }
}

/// Result of sending a batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SendResult {
    /// Sent as far as is known, or waiting in the backlog.
    Sent,
    /// The system permanently refuses to send to the destination.
    Unreachable,
    /// The interface cannot carry datagrams of this size, bytes.
    TooLong(usize),
}

/// Refusals by the system while an association was sending.
#[derive(Default)]
struct SendFailures {
    /// Paths whose packets were refused permanently: a bit mask of their numbers.
    unreachable: u32,
    /// Indices of paths, and the datagram sizes that were refused as too long, bytes.
    too_long: Vec<(usize, usize)>,
}

impl SendFailures {
    fn record(&mut self, path: usize, sending: SendResult) {
        match sending {
            SendResult::Sent => {}
            SendResult::Unreachable => self.unreachable |= 1 << path,
            SendResult::TooLong(datagram) => self.too_long.push((path, datagram)),
        }
    }
}

/// Sends a batch if no datagram can be added to it. Returns the result of [`send`].
fn put(socket: &mut Socket, tx_batch: &mut Batch, fit: Fit) -> SendResult {
    match fit {
        Fit::Nothing => SendResult::Sent,
        Fit::More if !tx_batch.is_full(socket.segments()) => SendResult::Sent,
        Fit::More | Fit::Last => send(socket, tx_batch),
        Fit::Longer { from } => {
            let mut before = tx_batch.split(from);
            send(socket, &mut before)
        }
    }
}

/// Sends a batch if it is not empty. Datagrams that the system refuses are lost, as in any network, and are detected
/// in the same way.
fn send(socket: &mut Socket, tx_batch: &mut Batch) -> SendResult {
    if tx_batch.is_empty() {
        return SendResult::Sent;
    }
    let datagram = tx_batch.segment();
    match socket.send(tx_batch) {
        Err(error) if is_unreachable(&error) => SendResult::Unreachable,
        Err(error) if is_too_long(&error) => SendResult::TooLong(datagram),
        Ok(()) | Err(_) => SendResult::Sent,
    }
}
