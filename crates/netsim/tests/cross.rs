//! Greedy cross traffic compared with known properties of TCP.

use crate::common::{Load, Scripted, TestWorld, at, mbit, ms, plan, world};
use ropewalk_base::{Duration, Time};
use ropewalk_netsim::cross::{Feedback, Greedy, Pattern};
use ropewalk_netsim::link::{Limit, Red};
use ropewalk_netsim::{CrossConfig, LinkConfig, LossModel, Packet, Port, QueueModel};

fn greedy(feedback: Feedback) -> CrossConfig {
    CrossConfig::new(Pattern::Greedy(Greedy::new(feedback)))
}

#[test]
fn a_greedy_source_fills_a_link_whose_queue_holds_the_bandwidth_delay_product() {
    for with_links in [false, true] {
        let mut world: TestWorld = world(1);
        // 10 Mbit/s times 40 ms are 33 packets.
        let queue = QueueModel::DropTail(Limit::Packets(34));
        let config = LinkConfig::new(mbit(10), ms(20)).queue(queue);
        let there = world.add_link("there", &config).expect("a good configuration");
        let back = world.add_link("back", &LinkConfig::new(mbit(10), ms(20))).expect("good");
        let feedback = if with_links {
            Feedback::Links { links: vec![back], size: 40 }
        } else {
            Feedback::Delay(ms(20))
        };
        let cross = world.add_cross("bulk", &greedy(feedback), 0, &[there]).expect("a good source");
        world.run_until(Time::from_secs(60));
        let stats = world.cross_stats(cross);
        let link = world.link_stats(there);
        assert!(link.utilisation() > 0.98, "{}", link.utilisation());
        // Distinct packets that were received are also received in order, except those behind a gap
        // at the end.
        assert!(stats.in_order + 100 > stats.received - stats.retransmitted, "{stats:?}");
        assert!(stats.retransmitted > 0, "no loss in 60 s of a full queue");
        let acks = world.link_stats(back).delivered;
        assert_eq!(acks > 0, with_links);
    }
}

#[test]
fn under_random_loss_its_rate_is_that_of_the_square_root_law() {
    // Mathis, Semke, Mahdavi and Ott 1997: sqrt(3/2) / (RTT sqrt(p)) packets per second with an acknowledgement per
    // packet. The round trip is 100 ms with negligible serialisation.
    for p in [1e-3, 4e-3] {
        let rates: Vec<f64> = (0..5)
            .map(|seed| {
                let mut world: TestWorld = world(seed);
                let loss = LossModel::bernoulli(p).expect("a probability");
                let config = LinkConfig::new(mbit(10_000), ms(50)).loss(loss);
                let link = world.add_link("lossy", &config).expect("a good configuration");
                let cross = world
                    .add_cross("bulk", &greedy(Feedback::Delay(ms(50))), 0, &[link])
                    .expect("a good source");
                world.run_until(Time::from_secs(400));
                world.cross_stats(cross).in_order as f64 / 400.0
            })
            .collect();
        let mean = rates.iter().sum::<f64>() / 5.0;
        let expected = 1.5f64.sqrt() / (0.1 * p.sqrt());
        // The formula ignores recoveries of several losses and timeouts, which cost some percent.
        assert!((0.85..1.1).contains(&(mean / expected)), "{mean} packets/s, not {expected}");
    }
}

#[test]
fn two_greedy_sources_with_equal_round_trips_share_fairly() {
    let mut world: TestWorld = world(1);
    // With drop-tail, packets of two periodic sources can meet in the same order forever, and one of them suffers
    // all losses (Floyd and Jacobson 1991, phase effects). RED has no such memory.
    let red = Red {
        min_threshold: 5.0,
        max_threshold: 15.0,
        max_probability: 0.02,
        weight: 0.002,
        gentle: true,
        ecn: false,
        packet_time: Duration::from_micros(1_200),
        limit: Limit::Packets(50),
    };
    let config = LinkConfig::new(mbit(10), ms(20)).queue(QueueModel::Red(red));
    let link = world.add_link("shared", &config).expect("a good configuration");
    let ids = [0, 1].map(|flow| {
        let source =
            CrossConfig { start: at(u64::from(flow) * 317), ..greedy(Feedback::Delay(ms(20))) };
        world.add_cross(&format!("bulk{flow}"), &source, flow, &[link]).expect("a good source")
    });
    world.run_until(Time::from_secs(300));
    let [a, b] = ids.map(|id| world.cross_stats(id).in_order as f64);
    // Jain's index of two flows: 1 if they are equal, 0.5 if one has everything.
    let jain = (a + b).powi(2) / (2.0 * (a * a + b * b));
    assert!(jain > 0.95, "{a} and {b} packets");
}

#[test]
fn a_greedy_source_survives_an_outage() {
    use ropewalk_netsim::link::{Outage, Outages, Span};
    let mut world: TestWorld = world(1);
    let outages =
        Outages { spans: vec![Span { from: at(2_000), until: at(5_000) }], effect: Outage::Drop };
    let queue = QueueModel::DropTail(Limit::Packets(50));
    let config = LinkConfig { outages, ..LinkConfig::new(mbit(10), ms(20)).queue(queue) };
    let link = world.add_link("flaky", &config).expect("a good configuration");
    let cross = world
        .add_cross("bulk", &greedy(Feedback::Delay(ms(20))), 0, &[link])
        .expect("a good source");
    world.run_until(at(5_000));
    let before = world.cross_stats(cross);
    assert!(before.timeouts > 0, "three silent seconds without a timeout");
    world.run_until(at(20_000));
    let after = world.cross_stats(cross);
    // At least half the capacity of the remaining 15 s: 12 500 packets.
    assert!(after.in_order - before.in_order > 6_000, "{before:?} then {after:?}");
}

#[test]
fn a_source_stops_when_told_and_falls_silent() {
    let mut world: TestWorld = world(1);
    let config = LinkConfig::new(mbit(10), ms(20)).loss(LossModel::bernoulli(0.05).expect("p"));
    let link = world.add_link("link", &config).expect("a good configuration");
    let patterns = [
        Pattern::Cbr(mbit(1)),
        Pattern::Poisson(mbit(1)),
        Pattern::OnOff { rate: mbit(1), on: ms(50), off: ms(50) },
        Pattern::Greedy(Greedy::new(Feedback::Delay(ms(20)))),
    ];
    let mut ids = Vec::new();
    for (flow, pattern) in (0..).zip(patterns) {
        let source = CrossConfig { start: at(100), stop: at(2_000), ..CrossConfig::new(pattern) };
        ids.push(
            world.add_cross(&format!("s{flow}"), &source, flow, &[link]).expect("a good source"),
        );
    }
    world.run_until(at(99));
    assert!(ids.iter().all(|id| world.cross_stats(*id).sent == 0), "too early");
    world.run_until(at(2_000));
    let sent: Vec<u64> = ids.iter().map(|id| world.cross_stats(*id).sent).collect();
    assert!(sent.iter().all(|n| *n > 20), "{sent:?}");
    while world.step().is_some() {}
    assert_eq!(ids.iter().map(|id| world.cross_stats(*id).sent).collect::<Vec<_>>(), sent);
}

#[test]
fn cross_traffic_delays_hosts_and_never_reaches_them() {
    let mut world: TestWorld = world(1);
    let (left, right) = (world.add_host(Scripted::default()), world.add_host(Scripted::default()));
    let link = world.add_link("shared", &LinkConfig::new(mbit(12), ms(0))).expect("good");
    let route = world.add_route(&[link], right, Port(0));
    // 1500 B take 1 ms. At exactly 4 ms the cross traffic also sends, and was scheduled first.
    let source =
        CrossConfig { start: at(4), stop: at(5), ..CrossConfig::new(Pattern::Cbr(mbit(12))) };
    world.add_cross("cbr", &source, 1, &[link]).expect("a good source");
    plan(&mut world, left, vec![(at(2), route, 1500), (at(4), route, 1500)]);
    world.run_until(at(20));
    let times: Vec<Time> = world.host(right).seen.iter().map(|(time, ..)| *time).collect();
    assert_eq!(times, [at(3), at(6)]);
}

#[test]
fn a_packet_can_be_injected_from_outside() {
    let mut world: TestWorld = world(1);
    let host = world.add_host(Scripted::default());
    let link = world.add_link("link", &LinkConfig::delay_only(ms(3))).expect("good");
    let route = world.add_route(&[link], host, Port(7));
    world.run_until(at(2));
    world.inject(route, Packet::new(100, 0, Load::Number(5)));
    assert_eq!(world.step(), Some(at(5)));
    assert_eq!(world.host(host).seen, [(at(5), Port(7), 5)]);
    assert_eq!(world.step(), None);
}

#[test]
fn a_source_that_cannot_be_says_why() {
    let no_rate = ropewalk_base::Rate::ZERO;
    for (config, part) in [
        (CrossConfig { packet: 0, ..CrossConfig::new(Pattern::Cbr(mbit(1))) }, "0 bytes"),
        (CrossConfig::new(Pattern::Cbr(no_rate)), "0 bit/s"),
        (CrossConfig::new(Pattern::Poisson(no_rate)), "0 bit/s"),
        (CrossConfig::new(Pattern::OnOff { rate: mbit(1), on: ms(0), off: ms(1) }), "0 s"),
        (greedy(Feedback::Links { links: Vec::new(), size: 40 }), "name one"),
    ] {
        let error = config.check().expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}
