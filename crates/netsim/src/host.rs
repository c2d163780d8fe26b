//! Hosts: the end points of a network.

use ropewalk_base::Time;

use crate::ids::{Port, RouteId};
use crate::network::Network;
use crate::packet::Packet;

/// An end point of the network. Each input is followed by sending, then by a query of the next deadline.
pub trait Host<P> {
    /// Handles a packet that arrived at `port`; the host sends through `out`.
    fn receive(&mut self, now: Time, port: Port, packet: Packet<P>, out: &mut Outbox<'_, P>);

    /// Handles everything that is due at `now`, and sends through `out`. It may be called before anything is due, by
    /// [`World::wake_host_at_once`](crate::World::wake_host_at_once); it must then have no effect.
    fn wake(&mut self, now: Time, out: &mut Outbox<'_, P>);

    /// Next time at which the host wants to be woken, if any. A time in the past means immediately. It is
    /// called after each input, so it should be cheap.
    fn next_wake(&self) -> Option<Time>;
}

/// Maximum number of payloads kept for reuse.
const SPARE: usize = 256;

/// Takes the packets that a host sends. In a world it puts them on the network immediately.
#[derive(Debug)]
pub struct Outbox<'a, P> {
    sink: Sink<'a, P>,
}

#[derive(Debug)]
enum Sink<'a, P> {
    Network(&'a mut Network<P>),
    List(&'a mut Vec<(RouteId, Packet<P>)>),
}

impl<'a, P: Clone> Outbox<'a, P> {
    #[inline]
    pub(crate) fn onto(network: &'a mut Network<P>) -> Self {
        Self { sink: Sink::Network(network) }
    }

    /// An outbox that appends to a list, for driving a host without a [`World`](crate::World).
    pub fn into_list(list: &'a mut Vec<(RouteId, Packet<P>)>) -> Self {
        Self { sink: Sink::List(list) }
    }

    /// Sends `packet` along `route`. As in a real network, the sender does not learn whether it arrives.
    #[inline]
    pub fn send(&mut self, route: RouteId, packet: Packet<P>) {
        match &mut self.sink {
            // The first link counts its own drops.
            Sink::Network(network) => {
                network.send(route, packet);
            }
            Sink::List(list) => list.push((route, packet)),
        }
    }

    /// Keeps a received payload for [`Self::spare`], which saves an allocation per packet.
    #[inline]
    pub fn give_back(&mut self, payload: P) {
        if let Sink::Network(network) = &mut self.sink
            && network.spare.len() < SPARE
        {
            network.spare.push(payload);
        }
    }

    /// Returns a payload from [`Self::give_back`], with its old contents.
    #[inline]
    pub fn spare(&mut self) -> Option<P> {
        match &mut self.sink {
            Sink::Network(network) => network.spare.pop(),
            Sink::List(_) => None,
        }
    }
}
