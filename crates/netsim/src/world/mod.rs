//! The world: hosts, links, routes, cross traffic, and the event loop.

mod wifi;

use std::collections::BTreeSet;

use ropewalk_base::{Seed, Time};

use crate::cross::{CrossConfig, CrossError, CrossPayload, CrossStats, Source, Tags};
use crate::host::{Host, Outbox};
use crate::ids::{ChannelId, CrossId, HostId, LinkId, Port, RouteId, index};
use crate::link::{Admission, ConfigError, Link, LinkConfig, LinkStats};
use crate::network::{Actor, Network};
use crate::packet::Packet;
use crate::route::{End, Step};

/// An object with a slot in the event queue.
#[derive(Clone, Debug)]
struct Slotted<T> {
    slot: u32,
    inner: T,
}

/// Wake-up time of a host in the event queue. Stored separately from the hosts, which are large, because every
/// event reads it.
#[derive(Clone, Copy, Debug)]
struct Alarm {
    slot: u32,
    /// [`Time::FAR_FUTURE`] for none.
    at: Time,
}

/// A network and its hosts. `H` is one type, so that calls are static; a driver with several kinds of host uses an enum.
#[derive(Clone, Debug)]
pub struct World<P, H> {
    pub(crate) seed: Seed,
    names: BTreeSet<String>,
    pub(crate) network: Network<P>,
    hosts: Vec<H>,
    alarms: Vec<Alarm>,
    cross: Vec<Slotted<Source>>,
    tags: Option<Tags<P>>,
    handled: u64,
}

impl<P: Clone, H: Host<P>> World<P, H> {
    /// An empty world at time zero. Each link and source derives its random stream from `seed` by its name.
    pub fn new(seed: Seed) -> Self {
        Self {
            seed,
            names: BTreeSet::new(),
            network: Network::new(),
            hosts: Vec::new(),
            alarms: Vec::new(),
            cross: Vec::new(),
            tags: None,
            handled: 0,
        }
    }

    /// Adds a host and queries its first deadline.
    pub fn add_host(&mut self, host: H) -> HostId {
        let id = HostId(index(self.hosts.len()));
        let slot = self.network.add_slot(Actor::Host(id));
        self.hosts.push(host);
        self.alarms.push(Alarm { slot, at: Time::FAR_FUTURE });
        self.schedule_host(id);
        id
    }

    /// Adds one direction of a link. Its randomness is that of `link/<name>` in the seed tree.
    ///
    /// # Errors
    /// If a value of `config` is invalid.
    ///
    /// # Panics
    /// If the name is taken: two links of one name would share their randomness.
    pub fn add_link(&mut self, name: &str, config: &LinkConfig) -> Result<LinkId, ConfigError> {
        let name = self.claim("link", name);
        let link = Link::new(config, self.seed.child(&name))?;
        Ok(self.network.add_link(link))
    }

    /// Adds a route over `links` to a host's port.
    ///
    /// # Panics
    /// If `links` is empty, or if a link or host is not in the world.
    pub fn add_route(&mut self, links: &[LinkId], host: HostId, port: Port) -> RouteId {
        assert!((host.0 as usize) < self.hosts.len(), "{host:?} is not in the world");
        self.route_to(links, End::Host(host, port))
    }

    /// Adds a source of cross traffic over `links`, and its receiver at their end. Its randomness is
    /// that of `cross/<name>` in the seed tree; its packets have `flow`.
    ///
    /// # Errors
    /// If a value of `config` is invalid.
    ///
    /// # Panics
    /// As [`Self::add_link`] and [`Self::add_route`] do.
    pub fn add_cross(
        &mut self,
        name: &str,
        config: &CrossConfig,
        flow: u32,
        links: &[LinkId],
    ) -> Result<CrossId, CrossError>
    where
        P: CrossPayload,
    {
        config.check()?;
        let name = self.claim("cross", name);
        let id = CrossId(index(self.cross.len()));
        let route = self.route_to(links, End::CrossData(id));
        let back = config.acknowledged_over().map(|back| self.route_to(back, End::CrossAck(id)));
        let source = Source::new(config, flow, route, back, self.seed.child(&name));
        let slot = self.network.add_slot(Actor::Cross(id));
        self.cross.push(Slotted { slot, inner: source });
        self.tags = Some(Tags::of());
        self.schedule_cross(id);
        Ok(id)
    }

    fn route_to(&mut self, links: &[LinkId], end: End) -> RouteId {
        for link in links {
            assert!(self.network.has(*link), "{link:?} is not in the world");
        }
        self.network.routes.add(links, end)
    }

    pub(crate) fn claim(&mut self, kind: &str, name: &str) -> String {
        let full = format!("{kind}/{name}");
        assert!(
            self.names.insert(full.clone()),
            "{full} is in the world already; choose another name"
        );
        full
    }

    /// The current time.
    pub fn now(&self) -> Time {
        self.network.now
    }

    /// Number of events handled: arrivals at the end of a link, starts and ends of transmissions on a channel,
    /// wake-ups of hosts and of cross traffic.
    pub fn events(&self) -> u64 {
        self.handled
    }

    /// The packets in flight: on a link and not dropped. In no particular order.
    pub fn packets(&self) -> impl Iterator<Item = &Packet<P>> {
        self.network.packets()
    }

    /// Number of hosts.
    pub fn host_count(&self) -> usize {
        self.hosts.len()
    }

    /// A host.
    ///
    /// # Panics
    /// If the host is not in the world.
    pub fn host(&self, id: HostId) -> &H {
        &self.hosts[id.0 as usize]
    }

    /// Mutable access to a host, for application calls; call [`Self::wake_host_at_once`] afterwards.
    ///
    /// # Panics
    /// If the host is not in the world.
    pub fn host_mut(&mut self, id: HostId) -> &mut H {
        &mut self.hosts[id.0 as usize]
    }

    /// Wakes a host now, whether due or not, so that it sends what application calls have queued.
    ///
    /// # Panics
    /// If the host is not in the world.
    pub fn wake_host_at_once(&mut self, id: HostId) {
        let now = self.network.now;
        self.hosts[id.0 as usize].wake(now, &mut Outbox::onto(&mut self.network));
        self.schedule_host(id);
    }

    /// Counters of a link at the current time.
    ///
    /// # Panics
    /// If the link is not in the world.
    pub fn link_stats(&self, id: LinkId) -> LinkStats {
        self.network.stats(id)
    }

    /// Counters of a source of cross traffic and its receiver at the current time.
    ///
    /// # Panics
    /// If the source is not in the world.
    pub fn cross_stats(&self, id: CrossId) -> CrossStats {
        self.cross[id.0 as usize].inner.stats()
    }

    /// The links of a route, in order.
    ///
    /// # Panics
    /// If the route is not in the world.
    pub fn route_links(&self, route: RouteId) -> impl Iterator<Item = LinkId> + '_ {
        self.network.routes.links(route)
    }

    /// Sends a packet on a route without a host, at the current time.
    ///
    /// # Panics
    /// If the route is not in the world.
    pub fn inject(&mut self, route: RouteId, packet: Packet<P>) -> Admission {
        self.network.send(route, packet)
    }

    /// Time of the next event; `None` if there is none. A host whose deadline has moved may have nothing to do
    /// then.
    pub fn next_wake(&self) -> Option<Time> {
        self.network.events.peek().map(|(time, _)| time)
    }

    /// Handles all events up to and including `until`, then sets the time to `until`.
    pub fn run_until(&mut self, until: Time) {
        while self.step_until(until).is_some() {}
        self.network.now = self.network.now.max(until);
    }

    /// Handles the next event; returns its time, or `None` if there is none.
    pub fn step(&mut self) -> Option<Time> {
        self.step_until(Time::FAR_FUTURE)
    }

    /// Handles the next event unless it is after `until`.
    #[inline]
    pub fn step_until(&mut self, until: Time) -> Option<Time> {
        loop {
            let (time, slot) = self.network.events.peek()?;
            if time > until {
                return None;
            }
            debug_assert!(time >= self.network.now, "time went back");
            let happened = match self.network.actors[slot as usize] {
                Actor::Link(id) => self.wake_link(id, time),
                Actor::Host(id) => self.wake_host(id, time),
                Actor::Cross(id) => self.wake_cross(id, time),
                Actor::Channel(id) => self.wake_channel(id, time),
            };
            if happened {
                self.handled += 1;
                return Some(time);
            }
        }
    }

    /// Takes one packet off a link and forwards it.
    #[inline]
    fn wake_link(&mut self, id: LinkId, time: Time) -> bool {
        self.network.now = time;
        let packet = self.network.take(id);
        self.pass_on(packet);
        true
    }

    /// Handles the start or end of a transmission on a channel.
    fn wake_channel(&mut self, id: ChannelId, time: Time) -> bool {
        self.network.now = time;
        let packet = self.network.take_from_channel(id);
        self.pass_on(packet);
        true
    }

    #[inline(always)]
    fn pass_on(&mut self, packet: Option<Packet<P>>) {
        let Some(packet) = packet else { return };
        match self.network.after(&packet) {
            Step::Link(next) => self.network.forward(next, packet),
            Step::Radio(next) => self.network.forward_radio(next, packet),
            Step::End(end) => self.arrive(end, packet),
        }
    }

    #[inline(always)]
    fn arrive(&mut self, end: End, packet: Packet<P>) {
        let now = self.network.now;
        match end {
            End::Host(id, port) => {
                let out = &mut Outbox::onto(&mut self.network);
                self.hosts[id.0 as usize].receive(now, port, packet, out);
                self.schedule_host(id);
            }
            End::CrossData(id) | End::CrossAck(id) => self.arrive_at_cross(id, end, &packet),
        }
    }

    /// Wakes a host if it is still due: its deadline may have moved since it was scheduled.
    #[inline]
    fn wake_host(&mut self, id: HostId, time: Time) -> bool {
        let host = &mut self.hosts[id.0 as usize];
        let alarm = &mut self.alarms[id.0 as usize];
        match host.next_wake() {
            Some(due) if due <= time => {
                self.network.now = time;
                self.network.events.clear(alarm.slot);
                alarm.at = Time::FAR_FUTURE;
                host.wake(time, &mut Outbox::onto(&mut self.network));
                self.schedule_host(id);
                true
            }
            Some(later) => {
                self.network.events.set(alarm.slot, later);
                alarm.at = later;
                false
            }
            None => {
                self.network.events.clear(alarm.slot);
                alarm.at = Time::FAR_FUTURE;
                false
            }
        }
    }

    /// A later deadline does not move the entry: the host is checked again at the earlier time.
    #[inline]
    fn schedule_host(&mut self, id: HostId) {
        let Some(due) = self.hosts[id.0 as usize].next_wake() else { return };
        let due = due.max(self.network.now);
        let alarm = &mut self.alarms[id.0 as usize];
        if due < alarm.at {
            alarm.at = due;
            self.network.events.set(alarm.slot, due);
        }
    }

    fn wake_cross(&mut self, id: CrossId, time: Time) -> bool {
        self.network.now = time;
        self.with_cross(id, |source, tags, out| source.wake(time, tags, out));
        true
    }

    fn arrive_at_cross(&mut self, id: CrossId, end: End, packet: &Packet<P>) {
        let now = self.network.now;
        self.with_cross(id, |source, tags, out| match end {
            End::CrossAck(_) => source.acknowledged(now, packet, tags, out),
            End::CrossData(_) | End::Host(..) => source.delivered(now, packet, tags, out),
        });
    }

    fn with_cross(
        &mut self,
        id: CrossId,
        act: impl FnOnce(&mut Source, &Tags<P>, &mut Outbox<'_, P>),
    ) {
        let tags = self.tags.as_ref().expect("set when the first source was added");
        let out = &mut Outbox::onto(&mut self.network);
        act(&mut self.cross[id.0 as usize].inner, tags, out);
        self.schedule_cross(id);
    }

    fn schedule_cross(&mut self, id: CrossId) {
        let Slotted { slot, inner } = &self.cross[id.0 as usize];
        match inner.next_wake() {
            Some(due) => self.network.events.set(*slot, due.max(self.network.now)),
            None => self.network.events.clear(*slot),
        }
    }
}
