//! The emulator's links without a clock: packets arrive at the times that the simulator predicts.
#![cfg(target_os = "linux")]

use ropewalk_base::{Duration, Rate, Seed, Time};
use ropewalk_lab::live::live_network;
use ropewalk_netsim::link::Jitter;
use ropewalk_netsim::{Link, LinkConfig, LossModel, Packet, QueueModel, Schedule, World};
use ropewalk_runtime::emulate::{Arrival, End, Frame, Links, PathRoutes, Side};
use ropewalk_scenario::Scenario;

/// Links as created by the command.
fn links(text: &str) -> Links {
    let scenario = Scenario::parse(text, "test").expect("a scenario");
    let live = live_network::<Frame, End>(&scenario, End::default(), End::default());
    let live = live.expect("a network");
    let paths = scenario.paths.iter().zip(&live.paths).map(|(path, live)| PathRoutes {
        name: path.name.clone(),
        mtu: path.mtu,
        routes: (live.up, live.down),
        links: (live.link_up, live.link_down),
    });
    Links::new(live.world, live.sender, live.receiver, paths.collect())
}

/// All arrivals, with wake-ups at the times that the links request.
fn drain(links: &mut Links, until: Time) -> Vec<Arrival> {
    let mut all = Vec::new();
    while let Some(at) = links.next_wake().filter(|at| *at <= until) {
        links.advance(at);
        while let Some(arrival) = links.take() {
            assert_eq!(arrival.at, at, "woken too late");
            all.push(arrival);
        }
    }
    all
}

const LOSSY: &str = "[transfer]\nseed = 5\n[[path]]\nname = \"dsl\"\nrate = \"1 Mbit/s\"\n\
     delay = \"10 ms\"\nqueue = \"20 packets\"\nloss = { model = \"bernoulli\", rate = 0.1 }\n\
     jitter = { max = \"3 ms\", keep_order = false }\n";

/// The same link, as created by the simulator's tests.
fn simulated() -> Link<u32> {
    let mut config = LinkConfig::new(Rate::from_bps(1_000_000), Duration::from_millis(10));
    config.queue = QueueModel::DropTail(ropewalk_netsim::link::Limit::Packets(20));
    config.loss = Schedule::constant(LossModel::bernoulli(0.1).expect("a probability"));
    config.jitter = Some(Jitter::Uniform(Duration::from_millis(3)));
    config.allow_reorder = true;
    let seed = Seed::root(5).child("network").child("link/dsl/up");
    Link::new(&config, seed).expect("a link")
}

#[test]
fn a_packet_comes_out_at_the_very_nanosecond_of_the_simulated_link() {
    let (mut live, mut link) = (links(LOSSY), simulated());
    let (mut seen, mut wanted) = (Vec::new(), Vec::new());
    // Irregular times and sizes; some bursts exceed the queue.
    for number in 0..2_000_u32 {
        let gap = u64::from(number % 7) * 3_141_593 + u64::from(number % 3) * 17;
        let at = Time::from_nanos(u64::from(number) * 9_000_000 + gap);
        for copy in 0..1 + number % 3 {
            let size = 40 + (number * 37 + copy) % 1_461;
            while let Some(due) = link.next_wake().filter(|due| *due <= at) {
                let mut out = Vec::new();
                link.wake(due, &mut out);
                wanted.extend(out.into_iter().map(|packet| (due, packet.payload)));
            }
            seen.extend(drain(&mut live, at));
            link.offer(at, Packet::new(size, 0, number));
            let mut bytes = vec![0; size as usize];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            live.offer(at, Side::Sender, 0, bytes);
        }
    }
    let end = Time::from_secs(100);
    let mut out = Vec::new();
    while let Some(due) = link.next_wake() {
        link.wake(due, &mut out);
        wanted.extend(out.drain(..).map(|packet| (due, packet.payload)));
    }
    seen.extend(drain(&mut live, end));
    assert!(seen.iter().all(|arrival| arrival.side == Side::Receiver && arrival.path == 0));
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
    let seen: Vec<(Time, u32)> = seen.iter().map(|a| (a.at, number(&a.bytes))).collect();
    assert!(wanted.len() > 1_500 && wanted.len() < 3_900, "{}", wanted.len());
    assert_eq!(seen, wanted);
    let traffic = &live.traffic()[0].up;
    assert_eq!(traffic.delivered_packets, wanted.len() as u64);
    assert_eq!(traffic.packets, traffic.delivered_packets + traffic.wire.dropped.total());
}

#[test]
fn who_looks_late_still_sees_when_it_arrived() {
    let mut live = links(LOSSY);
    for number in 0..10 {
        live.offer(Time::from_millis(number * 50), Side::Receiver, 0, vec![0; 1_250]);
    }
    live.advance(Time::from_secs(10));
    let mut last = Time::ZERO;
    while let Some(arrival) = live.take() {
        assert_eq!(arrival.side, Side::Sender);
        assert!(arrival.at > last && arrival.at < Time::from_secs(1), "{:?}", arrival.at);
        last = arrival.at;
    }
    assert!(last > Time::ZERO);
}

#[test]
fn outages_and_steps_count_from_the_beginning() {
    let text = "[[path]]\nname = \"dsl\"\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\
         outages = [{ from = \"1 s\", to = \"2 s\" }]\n\
         steps = [{ at = \"3 s\", rate = \"2 Mbit/s\", delay = \"30 ms\" }]\n";
    let mut live = links(text);
    for (at, arrives) in
        [(500, Some(520)), (1_500, None), (2_500, Some(2_520)), (4_000, Some(4_035))]
    {
        live.offer(Time::from_millis(at), Side::Sender, 0, vec![0; 1_250]);
        let seen = drain(&mut live, Time::from_millis(at + 400));
        let seen: Vec<Time> = seen.iter().map(|arrival| arrival.at).collect();
        assert_eq!(seen, arrives.map(Time::from_millis).as_slice(), "offered at {at} ms");
    }
}

#[test]
fn paths_that_share_a_link_share_it_with_each_other_and_with_cross_traffic() {
    let text = "[[link]]\nname = \"trunk\"\nrate = \"10 Mbit/s\"\ndelay = \"0 ms\"\n\
         [[path]]\nname = \"a\"\nrate = \"1 Gbit/s\"\ndelay = \"0 ms\"\nvia = [\"trunk\"]\n\
         [[path]]\nname = \"b\"\nrate = \"1 Gbit/s\"\ndelay = \"0 ms\"\nvia = [\"trunk\"]\n\
         [[cross]]\nkind = \"cbr\"\nrate = \"5 Mbit/s\"\non = \"trunk\"\n";
    let mut live = links(text);
    let mut arrived = [0_u64; 2];
    for number in 0..2_000_u64 {
        // 6 Mbit/s on each: together with the cross traffic, 17 Mbit/s through 10.
        let at = Time::from_nanos(number * 2_000_000);
        for arrival in drain(&mut live, at) {
            arrived[arrival.path] += arrival.bytes.len() as u64;
        }
        for path in 0..2 {
            live.offer(at, Side::Sender, path, vec![0; 1_500]);
        }
    }
    let bps = arrived.map(|bytes| bytes as f64 * 8.0 / 4.0);
    let both = bps[0] + bps[1];
    assert!(both > 4e6 && both < 10e6, "{bps:?}");
}

#[test]
fn a_world_without_anything_to_do_never_wakes() {
    let world: World<Frame, End> = World::new(Seed::root(1));
    assert_eq!(world.next_wake(), None);
}
