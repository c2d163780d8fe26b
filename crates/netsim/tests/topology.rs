//! Topologies, timers and routes.

use crate::common::{Load, Scripted, TestWorld, at, mbit, ms, plan, world};
use ropewalk_base::{Seed, Time};
use ropewalk_netsim::topology::{DuplexConfig, butterfly, disjoint, dumbbell};
use ropewalk_netsim::{Host, HostId, LinkConfig, Outbox, Packet, Port, World};

fn pair(world: &mut TestWorld) -> (HostId, HostId) {
    (world.add_host(Scripted::default()), world.add_host(Scripted::default()))
}

#[test]
fn a_packet_of_a_disjoint_path_takes_its_delay_and_comes_to_its_port() {
    let mut world = world(1);
    let (left, right) = pair(&mut world);
    let paths = [("wifi", 12, 10), ("lte", 6, 100)].map(|(name, rate, delay)| {
        DuplexConfig::symmetric(name, LinkConfig::new(mbit(rate), ms(delay)))
    });
    let joined = disjoint(&mut world, left, right, &paths).expect("a good configuration");
    world.host_mut(right).answers = joined.iter().map(|path| path.backward).collect();
    plan(&mut world, left, joined.iter().map(|path| (at(0), path.forward, 1500)).collect());
    world.run_until(at(1_000));
    assert_eq!(world.host(right).seen, [(at(11), Port(0), 0), (at(102), Port(1), 1)]);
    let answered: Vec<Port> = world.host(left).seen.iter().map(|(_, port, _)| *port).collect();
    assert_eq!(answered, [Port(0), Port(1)]);
}

#[test]
fn pairs_on_a_dumbbell_share_its_neck_and_nothing_else() {
    let mut world = world(1);
    let pairs = [pair(&mut world), pair(&mut world)];
    let neck = DuplexConfig::symmetric("neck", LinkConfig::new(mbit(12), ms(10)));
    let access = LinkConfig::new(mbit(12_000), ms(1));
    let bell = dumbbell(&mut world, &neck, &access, &pairs).expect("a good configuration");
    for (duplex, (left, _)) in bell.pairs.iter().zip(pairs) {
        plan(&mut world, left, vec![(at(0), duplex.forward, 1500); 10]);
    }
    world.run_until(at(1_000));
    let last = |host: HostId| world.host(host).seen.last().expect("something arrived").0;
    let end = last(pairs[0].1).max(last(pairs[1].1));
    // 20 packets of 1 ms on the neck, 12 ms of propagation, 2 us on the access links.
    assert_eq!(end.as_nanos(), 32_002_000);
    assert_eq!(world.link_stats(bell.forward_link).delivered, 20);
    let shared: Vec<_> = world
        .route_links(bell.pairs[0].forward)
        .filter(|link| world.route_links(bell.pairs[1].forward).any(|other| other == *link))
        .collect();
    assert_eq!(shared, [bell.forward_link]);
}

#[test]
fn the_wings_of_a_butterfly_share_no_link() {
    let mut world = world(1);
    let (left, right) = pair(&mut world);
    let wings =
        ["a", "b"].map(|name| DuplexConfig::symmetric(name, LinkConfig::new(mbit(12), ms(10))));
    let edge = LinkConfig::new(mbit(24), ms(1));
    let paths = butterfly(&mut world, left, right, &wings, &edge).expect("a good configuration");
    let mut links: Vec<_> =
        paths.iter().flat_map(|p| p.forward.into_iter().chain(p.backward)).collect();
    links.sort_unstable();
    links.dedup();
    assert_eq!(links.len(), 12);
    plan(
        &mut world,
        left,
        paths.iter().flat_map(|p| vec![(at(0), p.duplex.forward, 1500); 5]).collect(),
    );
    world.run_until(at(1_000));
    for path in &paths {
        let arrived = world.host(right).seen.iter().filter(|(_, port, _)| port.0 < 2).count();
        assert_eq!(arrived, 10);
        // The edge is twice as fast, so four packets of a burst of five have to wait in the middle.
        assert!(world.link_stats(path.forward[1]).queue_max_packets >= 2);
    }
    // One packet through the edges (0.5 ms each), five through the middle (1 ms), 12 ms propagation.
    assert_eq!(world.host(right).seen.last().map(|(time, ..)| *time), Some(at(18)));
}

/// A host that moves its deadline with every packet, as a retransmission timer does.
#[derive(Default)]
struct Timer {
    deadline: Option<Time>,
    woken: Vec<Time>,
}

impl Host<Load> for Timer {
    fn receive(&mut self, now: Time, _: Port, _: Packet<Load>, _: &mut Outbox<'_, Load>) {
        self.deadline = Some(now + ms(100));
    }

    fn wake(&mut self, now: Time, _: &mut Outbox<'_, Load>) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.deadline = None;
            self.woken.push(now);
        }
    }

    fn next_wake(&self) -> Option<Time> {
        self.deadline
    }
}

#[test]
fn a_deadline_that_moves_is_met_once_and_in_time() {
    let mut world: World<Load, Timer> = World::new(Seed::root(1));
    let host = world.add_host(Timer::default());
    let link = world.add_link("link", &LinkConfig::delay_only(ms(0))).expect("good");
    let route = world.add_route(&[link], host, Port(0));
    for millis in [0, 50, 120, 130] {
        world.run_until(at(millis));
        world.inject(route, Packet::new(1, 0, Load::Number(0)));
    }
    world.run_until(at(200));
    // An application call sets a deadline before the scheduled one.
    world.host_mut(host).deadline = Some(at(210));
    world.wake_host_at_once(host);
    world.run_until(at(1_000));
    assert_eq!(world.host(host).woken, [at(210)]);
    // Four arrivals and one wake-up. Deadlines that were moved are not events.
    assert_eq!(world.events(), 5);
    assert_eq!(world.now(), at(1_000));
}

#[test]
fn a_poked_host_sends_at_once() {
    let mut world = world(1);
    let (left, right) = pair(&mut world);
    let link = world.add_link("link", &LinkConfig::delay_only(ms(3))).expect("good");
    let route = world.add_route(&[link], right, Port(0));
    world.run_until(at(10));
    plan(&mut world, left, vec![(at(10), route, 100), (at(20), route, 100)]);
    world.run_until(at(30));
    assert_eq!(world.host(right).seen, [(at(13), Port(0), 0), (at(23), Port(0), 1)]);
}

#[test]
#[should_panic(expected = "link/a is in the world already")]
fn two_links_of_one_name_are_refused() {
    let mut world = world(1);
    for _ in 0..2 {
        let _ = world.add_link("a", &LinkConfig::delay_only(ms(1)));
    }
}

#[test]
fn thousands_of_links_deliver_in_order_of_time_then_of_scheduling() {
    // Many actors with pending events: the order must be right at any size.
    let mut world = world(1);
    let sink = world.add_host(Scripted::default());
    let mut rng = Seed::root(5).rng();
    for i in 0..5_000u64 {
        let config = LinkConfig::delay_only(ropewalk_base::Duration::from_nanos(rng.below(1_000)));
        let link = world.add_link(&i.to_string(), &config).expect("good");
        let route = world.add_route(&[link], sink, Port(0));
        world.inject(route, Packet::new(1, 0, Load::Number(i)));
    }
    while world.step().is_some() {}
    let seen = &world.host(sink).seen;
    assert_eq!(seen.len(), 5_000);
    // Links were scheduled in order of their numbers, which decides between equal times.
    assert!(seen.is_sorted_by_key(|(time, _, number)| (*time, *number)));
}
