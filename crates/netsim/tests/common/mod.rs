//! Hosts and helpers that several tests share.
#![allow(dead_code, reason = "no test uses all of them")]

pub mod race;

use ropewalk_base::{Duration, Rate, Seed, Time};
use ropewalk_netsim::{
    CrossPayload, Host, HostId, Link, LinkConfig, Outbox, Packet, Port, RouteId, World,
};

/// A number from a host, or cross traffic with its tag.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    Number(u64),
    Cross(u64),
}

impl CrossPayload for Load {
    fn cross(tag: u64) -> Self {
        Self::Cross(tag)
    }

    fn cross_tag(&self) -> Option<u64> {
        match self {
            Self::Cross(tag) => Some(*tag),
            Self::Number(_) => None,
        }
    }
}

/// An observation of a test host: time, port, and number.
pub type Seen = (Time, Port, u64);

/// Sends planned packets at their times, answers if it has routes for answers, and records what it receives.
#[derive(Clone, Debug, Default)]
pub struct Scripted {
    /// Planned packets in order of time.
    pub plan: Vec<(Time, RouteId, u32)>,
    pub next: usize,
    /// Routes for answers: packets that arrive at port i are answered on the i-th route.
    pub answers: Vec<RouteId>,
    pub seen: Vec<Seen>,
}

impl Host<Load> for Scripted {
    fn receive(&mut self, now: Time, port: Port, packet: Packet<Load>, out: &mut Outbox<'_, Load>) {
        let Load::Number(number) = packet.payload else { panic!("cross traffic came to a host") };
        self.seen.push((now, port, number));
        if let Some(route) = self.answers.get(port.0 as usize) {
            out.send(*route, Packet::new(40, packet.flow, Load::Number(number)));
        }
    }

    fn wake(&mut self, now: Time, out: &mut Outbox<'_, Load>) {
        while let Some((_, route, size)) = self.plan.get(self.next).filter(|(at, ..)| *at <= now) {
            out.send(*route, Packet::new(*size, 0, Load::Number(self.next as u64)));
            self.next += 1;
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.plan.get(self.next).map(|(at, ..)| *at)
    }
}

pub type TestWorld = World<Load, Scripted>;

pub fn world(seed: u64) -> TestWorld {
    World::new(Seed::root(seed))
}

pub fn mbit(n: u64) -> Rate {
    Rate::from_bps(n * 1_000_000)
}

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

/// Plans packets for a host that is already in a world.
pub fn plan(world: &mut TestWorld, host: HostId, plan: Vec<(Time, RouteId, u32)>) {
    world.host_mut(host).plan = plan;
    world.wake_host_at_once(host);
}

/// A link without a world.
pub fn link(config: &LinkConfig, seed: u64) -> Link<u64> {
    Link::new(config, Seed::root(seed)).expect("a good configuration")
}

/// Offers packets of `size` bytes at the given instants, numbered from 0. Returns the arrival time of each number,
/// in order of arrival.
pub fn arrivals(link: &mut Link<u64>, offers: &[Time], size: u32) -> Vec<(Time, u64)> {
    let mut out = Vec::new();
    let drain = |link: &mut Link<u64>, until: Time, out: &mut Vec<(Time, u64)>| {
        while let Some(due) = link.next_wake().filter(|due| *due <= until) {
            while let Some(packet) = link.take(due) {
                out.push((due, packet.payload));
            }
        }
    };
    for (number, offer) in (0..).zip(offers) {
        drain(link, *offer, &mut out);
        link.offer(*offer, Packet::new(size, 0, number));
    }
    drain(link, Time::FAR_FUTURE, &mut out);
    out
}
