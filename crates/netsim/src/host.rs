//! What sits at the ends of the network.

use ropewalk_base::Time;

use crate::network::Network;
use crate::packet::Packet;
use crate::route::RouteId;

/// A host of a world, in order of addition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u32);

/// Where a packet enters a host: its interface, or whatever the host takes it for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Port(pub u32);

/// An end of the network. One input, then everything it wants to send, then its next deadline.
pub trait Host<P> {
    /// A packet has arrived at `port`; what the host sends in reply goes to `out`.
    fn receive(&mut self, now: Time, port: Port, packet: Packet<P>, out: &mut Outbox<'_, P>);

    /// Does whatever is due at `now` and sends whatever it has to send. May be called before
    /// anything is due (see [`World::poke`](crate::World::poke)), and must then do no harm.
    fn wake(&mut self, now: Time, out: &mut Outbox<'_, P>);

    /// When it wants to be woken, if at all. A time in the past means at once. It is asked after
    /// each input, so it should be cheap.
    fn next_wake(&self) -> Option<Time>;
}

/// Payloads that are kept to be used again.
const SPARE: usize = 256;

/// Where a host puts what it wants to send. In a world that is the network itself.
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

    /// An outbox that fills a list; to drive a host without a [`World`](crate::World).
    pub fn into_list(list: &'a mut Vec<(RouteId, Packet<P>)>) -> Self {
        Self { sink: Sink::List(list) }
    }

    /// Sends `packet` along `route`. As in life, the sender is not told what becomes of it.
    #[inline]
    pub fn send(&mut self, route: RouteId, packet: Packet<P>) {
        match &mut self.sink {
            // The first link's verdict is counted there.
            Sink::Network(network) => {
                network.launch(route, packet);
            }
            Sink::List(list) => list.push((route, packet)),
        }
    }

    /// Keeps a payload that has arrived, for [`Self::spare`]: what is boxed need not be boxed anew
    /// for every packet.
    #[inline]
    pub fn give_back(&mut self, payload: P) {
        if let Sink::Network(network) = &mut self.sink
            && network.spare.len() < SPARE
        {
            network.spare.push(payload);
        }
    }

    /// A payload that some host gave back, with whatever was left in it.
    #[inline]
    pub fn spare(&mut self) -> Option<P> {
        match &mut self.sink {
            Sink::Network(network) => network.spare.pop(),
            Sink::List(_) => None,
        }
    }
}
