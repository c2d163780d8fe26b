//! Queues compared with theory: M/D/1, and the known behaviour of RED and CoDel.

use crate::common::{TestWorld, at, mbit, ms, world};
use ropewalk_base::{Duration, Rate, Time};
use ropewalk_netsim::cross::{Feedback, Greedy, Pattern};
use ropewalk_netsim::link::{CoDel, DualPi2, Limit, Red};
use ropewalk_netsim::{
    CrossConfig, CrossStats, DropCause, LinkConfig, LinkId, LinkStats, QueueModel,
};

/// Runs one link with one source of cross traffic for `length`.
fn run(
    seed: u64,
    config: &LinkConfig,
    source: &CrossConfig,
    length: Time,
) -> (LinkStats, CrossStats) {
    let mut world: TestWorld = world(seed);
    let link = world.add_link("bottleneck", config).expect("a good configuration");
    let cross = world.add_cross("source", source, 1, &[link]).expect("a good source");
    world.run_until(length);
    (world.link_stats(link), world.cross_stats(cross))
}

#[test]
fn the_mean_queue_of_an_m_d_1_system_is_that_of_pollaczek_and_khinchine() {
    // Packets of 1250 B at 10 Mbit/s take 1 ms each.
    let link = LinkConfig::new(mbit(10), ms(0));
    for (load, rate) in [(0.5, 5_000_000), (0.8, 8_000_000)] {
        let pattern = Pattern::Poisson(Rate::from_bps(rate));
        let source = CrossConfig { packet: 1250, ..CrossConfig::new(pattern) };
        let runs: Vec<f64> = (0..20)
            .map(|seed| run(seed, &link, &source, Time::from_secs(100)).0.queue_mean_packets)
            .collect();
        let n = runs.len() as f64;
        let mean = runs.iter().sum::<f64>() / n;
        let variance = runs.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
        // Student's t, 19 degrees of freedom, 99.9 %.
        let half_width = 3.883 * (variance / n).sqrt();
        let expected = load * load / (2.0 * (1.0 - load));
        assert!((mean - expected).abs() < half_width, "{mean} +- {half_width}, not {expected}");
        assert!(half_width < 0.05 * expected, "too wide to say anything: {half_width}");
    }
}

#[test]
fn utilisation_is_the_offered_load() {
    let source = CrossConfig::new(Pattern::Cbr(mbit(3)));
    let (stats, _) = run(1, &LinkConfig::new(mbit(10), ms(5)), &source, Time::from_secs(20));
    assert!((stats.utilisation() - 0.3).abs() < 1e-3, "{}", stats.utilisation());
    assert!((stats.busy.as_secs_f64() / 20.0 - 0.3).abs() < 1e-3);
    assert_eq!(stats.queue_max_packets, 0);
}

/// RED with the parameters of the paper's section 8, for a link that sends a 1500-byte packet in
/// 1.2 ms.
fn red() -> Red {
    Red {
        min_threshold: 5.0,
        max_threshold: 15.0,
        max_probability: 0.02,
        weight: 0.002,
        gentle: false,
        ecn: false,
        packet_time: Duration::from_micros(1_200),
        limit: Limit::Packets(100),
    }
}

/// A bottleneck of 10 Mbit/s shared by `flows` greedy sources with a round trip of 40 ms.
fn greedy_bottleneck(queue: QueueModel, flows: u32) -> LinkStats {
    let mut world: TestWorld = world(7);
    let config = LinkConfig::new(mbit(10), ms(20)).queue(queue);
    let link: LinkId = world.add_link("bottleneck", &config).expect("a good configuration");
    for flow in 0..flows {
        let pattern = Pattern::Greedy(Greedy::new(Feedback::Delay(ms(20))));
        let start = at(u64::from(flow) * 113);
        let source = CrossConfig { start, ..CrossConfig::new(pattern) };
        world.add_cross(&format!("flow{flow}"), &source, flow, &[link]).expect("a good source");
    }
    world.run_until(Time::from_secs(60));
    world.link_stats(link)
}

#[test]
fn red_and_codel_keep_greedy_sources_queues_short_and_the_link_busy() {
    let full = greedy_bottleneck(QueueModel::DropTail(Limit::Packets(100)), 4);
    assert!(full.queue_mean_packets > 50.0, "drop-tail: {}", full.queue_mean_packets);
    assert!(full.dropped.by(DropCause::Full) > 0);

    let early = greedy_bottleneck(QueueModel::Red(red()), 4);
    // The paper: the average stays between the thresholds when sources react.
    assert!((2.0..15.0).contains(&early.queue_mean_packets), "RED: {}", early.queue_mean_packets);
    assert!(early.dropped.by(DropCause::Early) > 0);
    assert!(early.utilisation() > 0.9, "RED: {}", early.utilisation());

    let controlled = greedy_bottleneck(QueueModel::CoDel(CoDel::default()), 4);
    // The target of 5 ms is some 4 packets; the mean may be above it, but not by much.
    assert!(controlled.queue_mean_packets < 12.0, "CoDel: {}", controlled.queue_mean_packets);
    assert!(controlled.dropped.by(DropCause::Early) > 0);
    assert!(controlled.utilisation() > 0.9, "CoDel: {}", controlled.utilisation());
}

#[test]
fn the_controller_of_dualpi2_keeps_the_delay_of_greedy_sources_at_its_target() {
    for (target, low, high, busy) in [(ms(15), 8.0, 17.0, 0.9), (ms(5), 2.0, 8.0, 0.85)] {
        let settings = DualPi2 { target, ..DualPi2::default() };
        let stats = greedy_bottleneck(QueueModel::DualPi2(settings), 4);
        // 15 ms are 12.5 packets.
        let mean = stats.queue_mean_packets;
        assert!((low..high).contains(&mean), "{target}: {mean} packets");
        assert!(stats.dropped.by(DropCause::Early) > 0 && stats.dropped.by(DropCause::Full) == 0);
        assert!(stats.utilisation() > busy, "{target}: {}", stats.utilisation());
    }
}

#[test]
fn codel_s_drops_close_in_by_the_square_root_law_on_a_source_that_does_not_listen() {
    // Twice the capacity: CoDel cannot keep up, but must drop by its law. After the first interval above the
    // target, drop n follows interval/sqrt(n) after the previous one: by time T about (T / (2 interval))^2
    // drops.
    let config = LinkConfig::new(mbit(10), ms(0)).queue(QueueModel::CoDel(CoDel::default()));
    let source = CrossConfig::new(Pattern::Cbr(mbit(20)));
    let (stats, _) = run(1, &config, &source, Time::from_secs(3));
    // The delay exceeds 5 ms after 10 ms at twice the rate. Dropping begins an interval later.
    let dropping: f64 = 3.0 - 0.110;
    let mut expected = 1.0;
    let mut elapsed = 0.0;
    loop {
        elapsed += 0.1 / f64::sqrt(expected);
        if elapsed > dropping {
            break;
        }
        expected += 1.0;
    }
    let dropped = stats.dropped.by(DropCause::Early) as f64;
    assert!((dropped - expected).abs() <= 2.0, "{dropped} drops, not {expected}");
}

#[test]
fn codel_lets_a_burst_pass_that_drains_within_an_interval() {
    // A burst of 60 packets drains in 72 ms: above the target, but never for 100 ms.
    let config = LinkConfig::new(mbit(10), ms(0)).queue(QueueModel::CoDel(CoDel::default()));
    let source = CrossConfig {
        stop: Time::from_nanos(60),
        packet: 1500,
        ..CrossConfig::new(Pattern::Cbr(Rate::from_bps(12_000_000_000_000)))
    };
    let (stats, cross) = run(1, &config, &source, Time::from_secs(1));
    assert_eq!((cross.sent, cross.received), (60, 60));
    assert_eq!(stats.dropped.total(), 0);
}

#[test]
fn codel_tolerates_a_standing_queue_below_its_target_and_no_other() {
    // At exactly the link's rate, the initial packets stay in the queue forever: 3.6 ms of it.
    let burst = Rate::from_bps(12_000_000_000_000);
    for (target, drops) in [(ms(5), false), (ms(2), true)] {
        let codel = CoDel { target, ..CoDel::default() };
        let config = LinkConfig::new(mbit(10), ms(0)).queue(QueueModel::CoDel(codel));
        let mut world: TestWorld = world(1);
        let link = world.add_link("bottleneck", &config).expect("a good configuration");
        let steady = CrossConfig::new(Pattern::Cbr(mbit(10)));
        let first =
            CrossConfig { stop: Time::from_nanos(3), ..CrossConfig::new(Pattern::Cbr(burst)) };
        world.add_cross("steady", &steady, 0, &[link]).expect("a good source");
        world.add_cross("burst", &first, 1, &[link]).expect("a good source");
        world.run_until(Time::from_secs(10));
        let dropped = world.link_stats(link).dropped.by(DropCause::Early);
        assert_eq!(dropped > 0, drops, "{dropped} drops at a target of {target}");
    }
}
