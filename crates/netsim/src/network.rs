//! The network between the hosts: routes, links, and the event queue that wakes them.

use ropewalk_base::Time;

use crate::event_queue::EventQueue;
use crate::ids::{ChannelId, CrossId, HostId, LinkId, RouteId, index};
use crate::link::{Admission, Link, LinkStats};
use crate::packet::Packet;
use crate::route::{Routes, Step};
use crate::wifi::Channel;

/// The owner of a slot of the event queue.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Actor {
    Link(LinkId),
    Host(HostId),
    Cross(CrossId),
    Channel(ChannelId),
}

/// A link with its next wake-up time, [`Time::FAR_FUTURE`] if none. The copy of the time is kept here because
/// most offers do not change it. With thousands of links, cache misses dominate: the fields that an arrival
/// reads share one cache line.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct LinkEntry<P> {
    scheduled: Time,
    slot: u32,
    inner: Link<P>,
}

/// A channel with its slot in the event queue.
#[derive(Clone, Debug)]
struct ChannelEntry<P> {
    slot: u32,
    inner: Channel<P>,
}

/// Links, routes and the event queue.
#[derive(Clone, Debug)]
pub(crate) struct Network<P> {
    pub(crate) now: Time,
    pub(crate) events: EventQueue,
    pub(crate) actors: Vec<Actor>,
    links: Vec<LinkEntry<P>>,
    channels: Vec<ChannelEntry<P>>,
    /// Channel and position of every radio link.
    radios: Vec<(ChannelId, u32)>,
    pub(crate) routes: Routes,
    /// Payloads for reuse.
    pub(crate) spare: Vec<P>,
}

impl<P: Clone> Network<P> {
    pub(crate) fn new() -> Self {
        Self {
            now: Time::ZERO,
            events: EventQueue::default(),
            actors: Vec::new(),
            links: Vec::new(),
            channels: Vec::new(),
            radios: Vec::new(),
            routes: Routes::default(),
            spare: Vec::new(),
        }
    }

    pub(crate) fn add_slot(&mut self, actor: Actor) -> u32 {
        self.actors.push(actor);
        self.events.add_slot()
    }

    pub(crate) fn add_link(&mut self, link: Link<P>) -> LinkId {
        let id = LinkId(index(self.links.len()));
        let slot = self.add_slot(Actor::Link(id));
        self.links.push(LinkEntry { slot, scheduled: Time::FAR_FUTURE, inner: link });
        id
    }

    pub(crate) fn has(&self, id: LinkId) -> bool {
        match id.as_radio() {
            None => (id.0 as usize) < self.links.len(),
            Some(radio) => (radio as usize) < self.radios.len(),
        }
    }

    pub(crate) fn stats(&self, id: LinkId) -> LinkStats {
        let Some(radio) = id.as_radio() else {
            return self.links[id.0 as usize].inner.stats(self.now);
        };
        let (channel, radio) = self.radios[radio as usize];
        self.channel(channel).stats(self.now, radio)
    }

    pub(crate) fn add_channel(&mut self) -> ChannelId {
        let id = ChannelId(index(self.channels.len()));
        let slot = self.add_slot(Actor::Channel(id));
        self.channels.push(ChannelEntry { slot, inner: Channel::new() });
        id
    }

    /// Registers a channel's link as a link of the world.
    pub(crate) fn add_radio(&mut self, channel: ChannelId, radio: u32) -> LinkId {
        self.radios.push((channel, radio));
        LinkId::radio(index(self.radios.len() - 1))
    }

    pub(crate) fn channel(&self, id: ChannelId) -> &Channel<P> {
        &self.channels[id.0 as usize].inner
    }

    pub(crate) fn channel_mut(&mut self, id: ChannelId) -> &mut Channel<P> {
        &mut self.channels[id.0 as usize].inner
    }

    /// The packets on all links, in no particular order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet<P>> {
        let on_channels = self.channels.iter().flat_map(|channel| channel.inner.packets());
        self.links.iter().flat_map(|link| link.inner.packets()).chain(on_channels)
    }

    /// Puts a packet on the first link of `route`.
    #[inline]
    pub(crate) fn send(&mut self, route: RouteId, mut packet: Packet<P>) -> Admission {
        packet.step = self.routes.start(route);
        match self.routes.step(packet.step) {
            Step::Link(first) => self.offer(first, packet),
            Step::Radio(first) => self.offer_radio(first, packet),
            Step::End(_) => unreachable!("a route has at least one link"),
        }
    }

    /// Takes the next due packet off a link.
    #[inline(always)]
    pub(crate) fn take(&mut self, id: LinkId) -> Option<Packet<P>> {
        let arrived = self.links[id.0 as usize].inner.take(self.now);
        self.schedule(id);
        arrived
    }

    /// The next step of a packet at the end of its link.
    #[inline]
    pub(crate) fn after(&self, packet: &Packet<P>) -> Step {
        self.routes.step(packet.step + 1)
    }

    /// Puts a packet on the next link of its route.
    #[inline]
    pub(crate) fn forward(&mut self, next: LinkId, mut packet: Packet<P>) {
        packet.step += 1;
        self.offer(next, packet);
    }

    #[inline]
    fn offer(&mut self, id: LinkId, packet: Packet<P>) -> Admission {
        let admission = self.links[id.0 as usize].inner.offer(self.now, packet);
        self.schedule(id);
        admission
    }

    /// Puts a packet on the next link of its route, which is a radio link.
    pub(crate) fn forward_radio(&mut self, next: u32, mut packet: Packet<P>) {
        packet.step += 1;
        self.offer_radio(next, packet);
    }

    fn offer_radio(&mut self, radio: u32, packet: Packet<P>) -> Admission {
        let (channel, radio) = self.radios[radio as usize];
        let now = self.now;
        let admission = self.channel_mut(channel).offer(now, radio, packet);
        self.schedule_channel(channel);
        admission
    }

    /// Handles the next due event of a channel; returns the packet that arrives by it, if any.
    pub(crate) fn take_from_channel(&mut self, id: ChannelId) -> Option<Packet<P>> {
        let now = self.now;
        let arrived = self.channel_mut(id).take(now);
        self.schedule_channel(id);
        arrived
    }

    fn schedule_channel(&mut self, id: ChannelId) {
        let ChannelEntry { slot, inner } = &self.channels[id.0 as usize];
        match inner.next_wake() {
            Some(time) => self.events.set(*slot, time),
            None => self.events.clear(*slot),
        }
    }

    #[inline]
    fn schedule(&mut self, id: LinkId) {
        let link = &mut self.links[id.0 as usize];
        let next = link.inner.next_event();
        if next == link.scheduled {
            return;
        }
        link.scheduled = next;
        if next < Time::FAR_FUTURE {
            self.events.set(link.slot, next);
        } else {
            self.events.clear(link.slot);
        }
    }
}
