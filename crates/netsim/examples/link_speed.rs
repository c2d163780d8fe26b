//! Cost of a packet-hop: `cargo run --release -p ropewalk-netsim --example link_speed`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark reads the clock"
)]

use std::hint::black_box;
use std::time::Instant;

use ropewalk_base::{Duration, Rate, Seed, Time};
use ropewalk_netsim::link::Limit;
use ropewalk_netsim::topology::{DuplexConfig, disjoint};
use ropewalk_netsim::{
    Host, Link, LinkConfig, LossModel, Outbox, Packet, Port, QueueModel, RouteId, World,
};

/// About as large as a data chunk or an acknowledgement with a few ranges.
type Payload = [u64; 8];

/// Sends a window of packets and then one packet per answer, or answers. A timer recovers losses, as in a protocol.
#[derive(Clone)]
struct Pinger {
    routes: Vec<RouteId>,
    size: u32,
    window: u32,
    received: u64,
    deadline: Time,
}

impl Host<Payload> for Pinger {
    fn receive(
        &mut self,
        now: Time,
        port: Port,
        packet: Packet<Payload>,
        out: &mut Outbox<'_, Payload>,
    ) {
        self.received += 1;
        self.deadline = now + Duration::from_secs(1);
        let mut reply = Packet::new(self.size, port.0, packet.payload);
        reply.round = packet.round;
        out.send(self.routes[port.0 as usize], reply);
    }

    fn wake(&mut self, now: Time, out: &mut Outbox<'_, Payload>) {
        for route in &self.routes {
            for _ in 0..self.window {
                out.send(*route, Packet::new(self.size, 0, [0; 8]));
            }
        }
        self.deadline = now + Duration::from_secs(1);
    }

    fn next_wake(&self) -> Option<Time> {
        (self.window > 0).then_some(self.deadline)
    }
}

fn pinger(size: u32, window: u32) -> Pinger {
    Pinger { routes: Vec::new(), size, window, received: 0, deadline: Time::ZERO }
}

/// Whether the command line selects this benchmark. Without arguments, it selects all.
fn wanted(label: &str) -> bool {
    let mut words = std::env::args().skip(1).peekable();
    words.peek().is_none() || words.any(|word| label.contains(&word))
}

/// `pairs` pairs of hosts over two disjoint paths each, until `hops` packets have crossed a link.
fn world(label: &str, pairs: usize, hops: u64, loss: f64) {
    if !wanted(label) {
        return;
    }
    let mut world = World::new(Seed::root(1));
    let config = |mbit: u64, ms| {
        LinkConfig::new(Rate::from_bps(mbit * 1_000_000), Duration::from_millis(ms))
            .queue(QueueModel::DropTail(Limit::Packets(200)))
    };
    for pair in 0..pairs {
        let (left, right) = (world.add_host(pinger(1500, 40)), world.add_host(pinger(60, 0)));
        let paths = [("wifi", 10, 10), ("lte", 20, 50)].map(|(name, mbit, ms)| {
            let mut path = DuplexConfig::symmetric(format!("{name}{pair}"), config(mbit, ms));
            if loss > 0.0 {
                path.forward =
                    path.forward.loss(LossModel::bernoulli(loss).expect("a probability"));
            }
            path
        });
        let joined = disjoint(&mut world, left, right, &paths).expect("a good configuration");
        world.host_mut(left).routes = joined.iter().map(|path| path.forward).collect();
        world.host_mut(right).routes = joined.iter().map(|path| path.backward).collect();
    }
    measure(label, hops, |until| while world.events() < until && world.step().is_some() {});
}

/// One link, kept full, without a world.
fn bare(label: &str, config: &LinkConfig, hops: u64) {
    if !wanted(label) {
        return;
    }
    let mut link: Link<Payload> = Link::new(config, Seed::root(1)).expect("a good configuration");
    let mut now = Time::ZERO;
    for i in 0..100 {
        link.offer(now, Packet::new(1500, 0, [i; 8]));
    }
    let mut delivered = 0;
    measure(label, hops, |until| {
        while delivered < until {
            now = link.next_wake().expect("the link is full");
            while let Some(packet) = link.take(now) {
                delivered += 1;
                link.offer(now, black_box(packet));
            }
        }
    });
}

/// Calls `advance` up to `hops` in slices and prints the fastest slice, which is disturbed least by other work on
/// the machine.
fn measure(label: &str, hops: u64, mut advance: impl FnMut(u64)) {
    let slice = hops / 50;
    let fastest = (1..=50)
        .map(|i| {
            let begin = Instant::now();
            advance(i * slice);
            begin.elapsed().as_secs_f64()
        })
        .fold(f64::INFINITY, f64::min);
    let per_second = slice as f64 / fastest / 1e6;
    let nanos = fastest * 1e9 / slice as f64;
    println!("{label:<42} {per_second:7.2} million packet-hops/s {nanos:7.1} ns each");
}

fn main() {
    let hops = 10_000_000;
    let plain = LinkConfig::new(Rate::from_bps(7_000_000), Duration::from_millis(20));
    let limited = plain.clone().queue(QueueModel::DropTail(Limit::Packets(200)));
    bare("link, drop-tail", &limited, hops);
    let steps =
        (1..100_000u64).map(|i| (Time::from_millis(i * 100), Rate::from_bps(7_000_000 + i)));
    let steps = ropewalk_netsim::RateModel::Steps {
        initial: Rate::from_bps(7_000_000),
        steps: steps.collect(),
    };
    bare("link, rate steps", &LinkConfig { rate: steps, ..limited.clone() }, hops);
    bare("link, CoDel", &plain.clone().queue(QueueModel::CoDel(Default::default())), hops);
    bare("link, reordering allowed", &LinkConfig { allow_reorder: true, ..limited }, hops);
    world("world, 1 pair, 2 paths", 1, hops, 0.0);
    world("world, 1 pair, 2 paths, loss 1 %", 1, hops, 0.01);
    world("world, 1000 pairs, 2 paths each", 1000, hops, 0.0);
}
