//! From associations to sockets: packets of one path leave together.

use ropewalk_base::Time;

use super::batch::{Batch, Fit};
use super::core::{Core, Key, Shared};
use super::cover::Cover;
use super::peer::{Peer, Route};
use super::socket::{Socket, leads_nowhere};
use super::tap::Near;

/// Most packets that one association sends before another has its turn.
const TURN: usize = 256;

impl Core {
    /// Drains all that were touched, as far as the sockets take it.
    pub(super) fn drain(&mut self, now: Time, shared: &Shared) {
        let mut dirty = std::mem::take(&mut self.dirty);
        self.eager = false;
        for key in dirty.drain(..) {
            let Some(mut peer) = self.lift(key) else { continue };
            peer.dirty = false;
            let blocked = self.is_blocked(&peer);
            let more = !blocked && self.drain_one(now, &mut peer);
            self.settle(key, peer, shared);
            self.eager |= more;
            if more || blocked {
                self.touch(key);
            }
        }
        // What was touched meanwhile stands in the new list; the old one's memory is used again.
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    /// Whether no path takes anything: what is made now would only grow old. Where another one does, what is meant
    /// for a blocked path waits in its socket's backlog, which the path's window bounds; a device that is
    /// slow, or stuck, must not hold up those that are not.
    fn is_blocked(&self, peer: &Peer) -> bool {
        let mut sockets = peer.routes.iter().flatten().map(|route| &self.sockets[route.socket]);
        peer.routes.iter().any(Option::is_some) && sockets.all(|socket| socket.is_blocked())
    }

    /// Whether something is left to send.
    fn drain_one(&mut self, now: Time, peer: &mut Peer) -> bool {
        let lanes = &mut self.lanes;
        while lanes.len() < peer.routes.len() {
            lanes.push(Batch::new(([0, 0, 0, 0], 0).into()));
        }
        for (lane, route) in lanes.iter_mut().zip(&peer.routes) {
            if let Some(route) = route {
                lane.redirect(route.remote);
            }
        }
        self.send_handshake(peer);
        let Self { packet, lanes, sockets, counters, tap, links, .. } = self;
        let (mut sent, mut refused) = (0, 0_u32);
        while sent < TURN
            && let Some(departure) = peer.machine.poll_transmit_into(now, packet)
        {
            sent += 1;
            let index = departure.path.index();
            // Nothing is known of where that path leads (yet): lost, as on a path that is cut.
            let Some(route) = peer.routes.get(index).copied().flatten() else { continue };
            if let Some(tap) = tap {
                let port = sockets[route.socket].local().port();
                let near = Near { link: &links[route.socket], port };
                tap.leaves(route, near, peer.cover.ports(), packet);
            }
            let lane = &mut lanes[index];
            let fit = lane.push(|out| {
                // An error: the keys are used up, and the path is as good as cut until they change.
                let _ = peer.cover.write(departure.path, packet, out);
            });
            counters.sent += (fit != Fit::Nothing) as u64;
            refused |= (put(&mut sockets[route.socket], lane, fit) as u32) << index;
        }
        for (index, (lane, route)) in lanes.iter_mut().zip(&peer.routes).enumerate() {
            if let Some(route) = route
                && !lane.is_empty()
            {
                refused |= (send(&mut sockets[route.socket], lane) as u32) << index;
            }
        }
        self.suspicious |= refused != 0;
        // What was on its way there goes by other paths, and at once.
        let moved = refused != 0 && peer.refused(now, refused);
        sent == TURN || moved
    }

    /// The handshake's datagram, if one is due: by another path each time.
    fn send_handshake(&mut self, peer: &mut Peer) {
        let Cover::Shaking(shaking) = &mut peer.cover else { return };
        let Some((datagram, attempt)) = shaking.take_datagram() else { return };
        let routes: Vec<_> = peer.routes.iter().flatten().collect();
        let first = attempt % routes.len().max(1);
        // By the next one at once where nothing can leave.
        for route in routes[first..].iter().chain(&routes[..first]) {
            if !self.send_alone(**route, &datagram) {
                return;
            }
        }
    }

    /// One datagram that belongs to no association yet. Returns whether the system refused it for good.
    pub(super) fn send_alone(&mut self, route: Route, datagram: &[u8]) -> bool {
        let mut batch = Batch::new(route.remote);
        batch.push(|out| out.extend_from_slice(datagram));
        self.counters.sent += 1;
        send(&mut self.sockets[route.socket], &mut batch)
    }

    /// Puts a drained peer back, or lets it go.
    fn settle(&mut self, key: Key, mut peer: Box<Peer>, shared: &Shared) {
        let outcome = peer.take_events();
        if outcome.connected && peer.session.is_none() {
            let now = self.clock.now();
            self.learn_addresses(now, &mut peer);
            self.dirty.push(key);
            peer.dirty = true;
        }
        if outcome.accepted {
            peer.incoming = false;
            self.accepted.push_back(key);
            shared.accept.notify_waiters();
        }
        if peer.ended.is_some() && (peer.abandoned || peer.incoming) {
            self.remove(key, &peer);
            shared.gone.notify_waiters();
            return;
        }
        self.schedule(key, &mut peer);
        self.lower(key, peer);
    }
}

/// Sends a lane as soon as nothing more can join it. Returns what [`send`] does.
fn put(socket: &mut Socket, lane: &mut Batch, fit: Fit) -> bool {
    match fit {
        Fit::Nothing => false,
        Fit::More if !lane.is_full(socket.segments()) => false,
        Fit::More | Fit::Last => send(socket, lane),
        Fit::Longer { from } => {
            let mut before = lane.split(from);
            send(socket, &mut before)
        }
    }
}

/// Sends a lane. What the system refuses is lost like on any network, and found by the same means; returns whether
/// it says that nothing can leave there.
fn send(socket: &mut Socket, lane: &mut Batch) -> bool {
    socket.send(lane).is_err_and(|error| leads_nowhere(&error))
}
