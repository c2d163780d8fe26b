//! The same seed gives the same events, and unused parts of the network change none of them.

use crate::common::{Scripted, Seen, TestWorld, at, mbit, ms, plan, world};
use ropewalk_base::Time;
use ropewalk_netsim::cross::{Feedback, Greedy, Pattern};
use ropewalk_netsim::link::{CoDel, Jitter, Limit};
use ropewalk_netsim::topology::{DuplexConfig, disjoint, dumbbell};
use ropewalk_netsim::{CrossConfig, HostId, LinkConfig, LossModel, Port, QueueModel, World};

/// Two associations and three kinds of cross traffic over a lossy dumbbell. Returns what the hosts saw, and the
/// number of events. `bystanders` adds unused hosts, links and routes at several places.
fn busy_run(seed: u64, bystanders: bool) -> (Vec<Vec<Seen>>, u64) {
    let mut world: TestWorld = world(seed);
    let idle = |world: &mut TestWorld, name: &str| {
        if bystanders {
            let host = world.add_host(Scripted::default());
            let config = LinkConfig::new(mbit(1), ms(1));
            let link = world.add_link(name, &config).expect("a good configuration");
            world.add_route(&[link], host, Port(0));
        }
    };
    idle(&mut world, "idle/first");
    let hosts: Vec<HostId> = (0..4).map(|_| world.add_host(Scripted::default())).collect();
    idle(&mut world, "idle/second");
    let lossy = LinkConfig {
        jitter: Some(Jitter::Exponential(ms(3))),
        allow_reorder: true,
        ..LinkConfig::new(mbit(10), ms(20))
    };
    let lossy = lossy
        .queue(QueueModel::DropTail(Limit::Packets(30)))
        .loss(LossModel::bernoulli(0.01).expect("a probability"));
    let managed = LinkConfig::new(mbit(10), ms(20)).queue(QueueModel::CoDel(CoDel::default()));
    let neck = DuplexConfig { name: "neck".into(), forward: lossy, backward: managed };
    let access = LinkConfig::new(mbit(100), ms(1));
    let pairs = [(hosts[0], hosts[1]), (hosts[2], hosts[3])];
    let bell = dumbbell(&mut world, &neck, &access, &pairs).expect("a good configuration");
    idle(&mut world, "idle/third");
    let forward = [bell.forward_link];
    let back = Feedback::Links { links: vec![bell.backward_link], size: 40 };
    for (flow, (name, pattern)) in (10..).zip([
        ("greedy", Pattern::Greedy(Greedy::new(back))),
        ("poisson", Pattern::Poisson(mbit(1))),
        ("onoff", Pattern::OnOff { rate: mbit(4), on: ms(100), off: ms(300) }),
    ]) {
        world.add_cross(name, &CrossConfig::new(pattern), flow, &forward).expect("a good source");
    }
    for (pair, duplex) in bell.pairs.iter().enumerate() {
        let steps = (0..2_000).map(|i| (at(i * 2), duplex.forward, 1000)).collect();
        // Packets of pair i arrive at port i, and are answered on the return path of the same pair.
        world.host_mut(pairs[pair].1).answers = vec![duplex.backward; 2];
        plan(&mut world, pairs[pair].0, steps);
    }
    world.run_until(Time::from_secs(5));
    (hosts.iter().map(|id| world.host(*id).seen.clone()).collect(), world.events())
}

#[test]
fn the_same_seed_gives_the_same_events_and_another_seed_others() {
    let (seen, events) = busy_run(1, false);
    assert!(seen.iter().all(|list| list.len() > 1_000), "hardly anything arrived");
    assert_eq!((&seen, events), (&busy_run(1, false).0, busy_run(1, false).1));
    assert_ne!(seen, busy_run(2, false).0);
}

#[test]
fn idle_hosts_and_links_change_nothing() {
    assert_eq!(busy_run(1, false), busy_run(1, true));
}

/// Arrivals and their order if everything happens at the same instant on many paths.
fn ties(paths: usize) -> Vec<Seen> {
    let mut world: TestWorld = World::new(ropewalk_base::Seed::root(1));
    let (left, right) = (world.add_host(Scripted::default()), world.add_host(Scripted::default()));
    let configs: Vec<_> = (0..paths)
        .map(|i| DuplexConfig::symmetric(format!("p{i}"), LinkConfig::new(mbit(8), ms(10))))
        .collect();
    let joined = disjoint(&mut world, left, right, &configs).expect("a good configuration");
    // In reverse order, so that the order of sending differs from that of the links.
    let steps = joined.iter().rev().map(|path| (at(0), path.forward, 1000)).collect();
    plan(&mut world, left, steps);
    world.run_until(Time::from_secs(1));
    world.host(right).seen.clone()
}

#[test]
fn equal_times_are_taken_in_the_order_of_scheduling() {
    let seen = ties(50);
    let numbers: Vec<u64> = seen.iter().map(|(_, _, number)| *number).collect();
    assert_eq!(numbers, (0..50).collect::<Vec<u64>>());
    assert!(seen.iter().all(|(time, ..)| *time == at(11)));
}

#[test]
fn a_clone_of_a_world_goes_on_alike() {
    let mut world: TestWorld = world(3);
    let config = LinkConfig::new(mbit(10), ms(10)).loss(LossModel::bernoulli(0.1).expect("p"));
    let link = world.add_link("shared", &config).expect("a good configuration");
    let pattern = Pattern::Greedy(Greedy::new(Feedback::Delay(ms(10))));
    let cross =
        world.add_cross("greedy", &CrossConfig::new(pattern), 0, &[link]).expect("a good source");
    world.run_until(at(700));
    let mut fork = world.clone();
    world.run_until(at(5_000));
    fork.run_until(at(5_000));
    assert_eq!(world.link_stats(link), fork.link_stats(link));
    assert_eq!(world.cross_stats(cross), fork.cross_stats(cross));
    assert!(world.cross_stats(cross).received > 100);
}

#[test]
fn a_world_can_go_to_another_thread() {
    fn needs_send<T: Send>(value: T) -> T {
        value
    }
    let here = busy_run(4, false);
    let there = std::thread::spawn(|| busy_run(4, false)).join().expect("no panic");
    assert_eq!(needs_send(here), there);
    needs_send(world(1));
}
