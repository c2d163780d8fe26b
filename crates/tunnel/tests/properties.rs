//! Random packets over a random network: order, no duplicates, bounded waits, bounded memory.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use ropewalk_base::{Duration, Time};
use ropewalk_tunnel::{
    Class, Config, Ecn, Header, Inner, Order, PathState, Redundancy, Tunnel, Waiting,
};

/// One packet: its flow, its class, the time to the next, its delay, and what happens to it.
#[derive(Clone, Copy, Debug)]
struct Step {
    flow: u64,
    class: Class,
    order: Order,
    gap_us: u64,
    delay_ms: u64,
    lost: bool,
    twice: bool,
}

fn step() -> impl Strategy<Value = Step> {
    let class = prop_oneof![Just(Class::Interactive), Just(Class::Bulk), Just(Class::Background)];
    (0..6u64, class, 0..3000u64, 0..80u64, 0..20u8, 0..10u8).prop_map(
        |(flow, class, gap_us, delay_ms, loss, copy)| Step {
            flow,
            class,
            order: match flow {
                0..4 => Order::Restored,
                4 => Order::AsArrived,
                _ => Order::Irrelevant,
            },
            gap_us,
            delay_ms,
            lost: loss == 0,
            twice: copy == 0,
        },
    )
}

/// A message in transit: its arrival time, a tie-breaker, its header and its packet.
type Arrival = (Time, usize, [u8; 4], (u64, u64));

/// Sends all packets, and returns those in transit.
fn send(config: Config, steps: &[Step]) -> Vec<Arrival> {
    let mut client = Tunnel::new(config);
    let mut now = Time::from_millis(1);
    let mut counts = BTreeMap::new();
    let mut arrivals = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        now += Duration::from_micros(step.gap_us);
        let number: &mut u64 = counts.entry(step.flow).or_default();
        let payload = (step.flow, *number);
        *number += 1;
        let (flow, class, order) = (step.flow, step.class, step.order);
        client.enqueue(now, Inner { flow, class, order, ecn: Ecn::NotEct, bytes: 500, payload });
        let out = client.next(now, Waiting::default()).expect("one packet is queued");
        assert_eq!(out.payload, payload);
        let copies = if step.twice { 2 } else { 1 };
        for copy in 0..if step.lost { 0 } else { copies } {
            let at = now + Duration::from_millis(step.delay_ms + 7 * copy);
            arrivals.push((at, index, out.header.encode(), payload));
        }
    }
    arrivals.sort_by_key(|(at, index, ..)| (*at, *index));
    arrivals
}

/// Delivers the packets that are ready at `now`.
fn drain(hub: &mut Tunnel<(u64, u64)>, now: Time, delivered: &mut Vec<(Time, (u64, u64))>) {
    while let Some(packet) = hub.deliver(now) {
        delivered.push((now, packet));
    }
}

/// Lets the messages arrive, and all waits end. Returns the delivered packets, with the time.
fn receive(hub: &mut Tunnel<(u64, u64)>, arrivals: &[Arrival]) -> Vec<(Time, (u64, u64))> {
    let mut delivered = Vec::new();
    for (at, _, header, packet) in arrivals {
        while let Some(deadline) = hub.deadline().filter(|deadline| deadline < at) {
            drain(hub, deadline, &mut delivered);
        }
        hub.on_message(*at, Header::decode(*header), 500, *packet);
        drain(hub, *at, &mut delivered);
    }
    while let Some(deadline) = hub.deadline() {
        drain(hub, deadline, &mut delivered);
    }
    delivered
}

proptest! {
    #[test]
    fn what_arrives_is_delivered_once_and_waits_no_longer_than_permitted(
        steps in prop::collection::vec(step(), 1..300),
        slow_ms in 10u64..200,
    ) {
        let config = Config { redundancy: Redundancy::Off, ..Config::default() };
        let arrivals = send(config, &steps);
        let mut hub = Tunnel::new(config);
        let paths = [10, slow_ms].map(|ms| PathState::new(Duration::from_millis(ms)));
        hub.set_paths(&paths);
        let delivered = receive(&mut hub, &arrivals);
        let unique: BTreeSet<_> = delivered.iter().map(|(_, packet)| *packet).collect();
        let arrived: BTreeSet<_> = arrivals.iter().map(|(.., packet)| *packet).collect();
        prop_assert_eq!(unique.len(), delivered.len(), "something came twice");
        prop_assert_eq!(&unique, &arrived);
        let mut first = BTreeMap::new();
        for (at, _, _, packet) in &arrivals {
            first.entry(*packet).or_insert(*at);
        }
        for (at, packet) in &delivered {
            let waited = at.since(first[packet]);
            prop_assert!(waited <= config.latency_budget, "{packet:?} waited for {waited}");
            prop_assert!(packet.0 < 4 || waited.is_zero(), "the order of flow {} is free", packet.0);
        }
        let counted = hub.counters().receive;
        prop_assert_eq!(counted.delivered, unique.len() as u64);
        prop_assert_eq!(counted.arrived, arrivals.len() as u64);
        prop_assert_eq!(counted.duplicates, counted.arrived - counted.delivered);
    }

    #[test]
    fn with_a_sufficient_wait_an_ordered_flow_is_in_order(
        steps in prop::collection::vec(step(), 1..300),
    ) {
        // No packet takes longer than 80 ms, so a wait of 100 ms covers every packet that is not lost.
        let config = Config { latency_budget: Duration::from_millis(100), ..Config::default() };
        let mut hub = Tunnel::new(config);
        let delivered = receive(&mut hub, &send(config, &steps));
        let mut last = BTreeMap::new();
        for (_, (flow, number)) in delivered.iter().filter(|(_, packet)| packet.0 < 4) {
            let before = last.insert(*flow, *number);
            prop_assert!(before.is_none_or(|before| before < *number), "flow {flow}: {number}");
        }
    }

    #[test]
    fn headers_and_sizes_from_an_attacker_cost_bounded_memory(
        headers in prop::collection::vec((any::<[u8; 4]>(), 0u32..70_000), 1..400),
    ) {
        let config = Config { held_bytes: 200_000, ..Config::default() };
        let mut hub = Tunnel::new(config);
        let mut delivered = 0;
        for (index, (header, bytes)) in headers.iter().enumerate() {
            let now = Time::from_millis(index as u64);
            hub.on_message(now, Header::decode(*header), *bytes, ());
            while hub.deliver(now).is_some() {
                delivered += 1;
            }
            let counted = hub.counters().receive;
            prop_assert!(counted.held_bytes_max <= config.held_bytes + 70_200);
            prop_assert!(hub.flow_counts().1 <= usize::from(Config::FLOWS_MAX));
        }
        while let Some(at) = hub.deadline() {
            while hub.deliver(at).is_some() {
                delivered += 1;
            }
        }
        let counted = hub.counters().receive;
        prop_assert_eq!(delivered + counted.duplicates, headers.len() as u64);
        hub.release_idle(Time::from_secs(100), Duration::from_secs(1));
        prop_assert_eq!(hub.flow_counts().1, 0);
    }
}

#[test]
fn there_is_no_pause_while_packets_wait_for_a_lost_one() {
    let config = Config::default();
    let ms = Time::from_millis;
    let paths = [PathState::new(Duration::from_millis(10)); 2];
    let mut client = Tunnel::new(config);
    let mut packets: Vec<_> = (0..3u64)
        .map(|number| {
            let (class, order) = (Class::Bulk, Order::Restored);
            let ecn = Ecn::NotEct;
            client
                .enqueue(ms(1), Inner { flow: 0, class, order, ecn, bytes: 500, payload: number });
            client.next(ms(1), Waiting::default()).expect("it is queued")
        })
        .collect();
    let mut hub = Tunnel::new(config);
    hub.set_paths(&paths);
    let pause = hub.tolerable_pause(ms(10));
    assert!(!pause.is_zero());
    let late = packets.remove(1);
    for out in packets {
        hub.on_message(ms(10), out.header, out.bytes, out.payload);
        hub.deliver(ms(10));
    }
    assert_eq!(hub.tolerable_pause(ms(12)), pause, "it may still come");
    assert_eq!(hub.tolerable_pause(ms(30)), Duration::ZERO);
    hub.on_message(ms(31), late.header, late.bytes, late.payload);
    assert_eq!(hub.tolerable_pause(ms(31)), pause);
}
