//! Random links under random load: no packet vanishes or appears, and time and order are kept.

use std::sync::Arc;

use crate::common::link;
use proptest::prelude::*;
use ropewalk_base::{Duration, Ecn, Rate, Time};
use ropewalk_netsim::link::{
    CoDel, DualPi2, GilbertElliott, Jitter, Limit, LossPlace, Outage, Outages, Red, Reordering,
    Round, Span,
};
use ropewalk_netsim::{
    Admission, LinkConfig, LossModel, Packet, QueueModel, RateModel, Schedule, parse_mahimahi,
};

fn millis(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn rate() -> impl Strategy<Value = RateModel> {
    let bps = || (0u64..50_000_000).prop_map(Rate::from_bps);
    prop_oneof![
        Just(RateModel::Unlimited),
        bps().prop_map(RateModel::Constant),
        (bps(), prop::collection::vec((1u64..200, bps()), 0..5)).prop_map(|(initial, gaps)| {
            let mut time = 0;
            let step = |(gap, rate): (u64, Rate)| {
                time += gap;
                (Time::from_millis(time), rate)
            };
            RateModel::Steps { initial, steps: gaps.into_iter().map(step).collect() }
        }),
        prop::collection::vec(0u64..40, 1..20).prop_map(|mut lines| {
            lines.push(41);
            lines.sort_unstable();
            let text: String = lines.iter().map(|ms| format!("{ms}\n")).collect();
            RateModel::Trace(Arc::new(parse_mahimahi(&text).expect("sorted numbers")))
        }),
    ]
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![
        Just(Limit::Unlimited),
        (0u32..20).prop_map(Limit::Packets),
        (0u64..20_000).prop_map(Limit::Bytes),
    ]
}

fn queue() -> impl Strategy<Value = QueueModel> {
    prop_oneof![
        limit().prop_map(QueueModel::DropTail),
        (limit(), any::<bool>(), any::<bool>(), 1u32..100).prop_map(
            |(limit, gentle, ecn, weight)| {
                QueueModel::Red(Red {
                    min_threshold: 2.0,
                    max_threshold: 6.0,
                    max_probability: 0.1,
                    weight: f64::from(weight) / 100.0,
                    gentle,
                    ecn,
                    packet_time: Duration::from_millis(1),
                    limit,
                })
            }
        ),
        (limit(), any::<bool>(), millis(1..50)).prop_map(|(limit, ecn, interval)| {
            QueueModel::CoDel(CoDel { limit, ecn, interval, ..CoDel::default() })
        }),
        (limit(), millis(1..50), 0u64..3, 0u32..100).prop_map(|(limit, target, ramp, weight)| {
            QueueModel::DualPi2(DualPi2 {
                limit,
                target,
                ramp: Duration::from_millis(ramp),
                classic_weight: f64::from(weight) / 100.0,
                ..DualPi2::default()
            })
        }),
    ]
}

fn loss() -> impl Strategy<Value = LossModel> {
    let share = || (0u32..=10).prop_map(|tenths| f64::from(tenths) / 10.0);
    prop_oneof![
        Just(LossModel::None),
        share().prop_map(|p| LossModel::bernoulli(p).expect("a probability")),
        share().prop_map(|p| LossModel::Round(Round::new(p).expect("a probability"))),
        (share(), share(), share(), share()).prop_map(|(p, r, good, bad)| {
            LossModel::GilbertElliott(GilbertElliott::new(p, r, good, bad).expect("probabilities"))
        }),
    ]
}

fn jitter() -> impl Strategy<Value = Option<Jitter>> {
    prop_oneof![
        Just(None),
        millis(0..30).prop_map(|width| Some(Jitter::Uniform(width))),
        millis(0..30).prop_map(|deviation| Some(Jitter::Normal(deviation))),
        millis(0..30).prop_map(|mean| Some(Jitter::Exponential(mean))),
    ]
}

fn outages() -> impl Strategy<Value = Outages> {
    let effect = prop_oneof![Just(Outage::Drop), Just(Outage::Hold)];
    (prop::collection::vec((0u64..100, 1u64..50), 0..3), effect).prop_map(|(gaps, effect)| {
        let mut end = 0;
        let mut span = |(gap, length): (u64, u64)| {
            let from = end + gap;
            end = from + length;
            Span { from: Time::from_millis(from), until: Time::from_millis(end) }
        };
        Outages { spans: gaps.into_iter().map(&mut span).collect(), effect }
    })
}

prop_compose! {
    fn config()(
        rate in rate(),
        delays in (millis(0..50), millis(0..50), 0u64..200),
        queue in queue(),
        loss in loss(),
        at_entry in any::<bool>(),
        shares in (0u32..5, 0u32..5, 0u32..5),
        jitter in jitter(),
        allow_reorder in any::<bool>(),
        outages in outages(),
    ) -> LinkConfig {
        let (before, after, step) = delays;
        let delay = Schedule::steps(before, vec![(Time::from_millis(step), after)]).expect("one step");
        let share = |tenths: u32| f64::from(tenths) / 10.0;
        LinkConfig {
            rate,
            delay,
            queue,
            loss: Schedule::constant(loss),
            loss_place: if at_entry { LossPlace::Entry } else { LossPlace::Wire },
            corruption: share(shares.0),
            duplication: share(shares.1),
            jitter,
            reordering: (shares.2 > 2)
                .then(|| Reordering { probability: share(shares.2), extra: Duration::from_millis(20) }),
            allow_reorder,
            outages,
        }
    }
}

/// An offered packet: microseconds since the previous one, size, round, ECN bits.
fn load() -> impl Strategy<Value = Vec<(u64, u32, u64, u8)>> {
    prop::collection::vec((0u64..5_000, 1u32..3_000, 0u64..10, 0u8..4), 1..200)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_offered_is_queued_in_flight_delivered_or_dropped(
        config in config(),
        load in load(),
        seed in any::<u64>(),
    ) {
        let mut link = link(&config, seed);
        let mut now = Time::ZERO;
        let (mut offered_bytes, mut refused, mut delivered) = (0u64, 0u64, Vec::new());
        for (number, (gap, size, round, bits)) in (0..).zip(load.iter().copied()) {
            let offer = now + Duration::from_micros(gap);
            while let Some(due) = link.next_wake().filter(|due| *due <= offer) {
                prop_assert!(due >= now, "a link's time went back");
                now = due;
                while let Some(packet) = link.take(due) {
                    delivered.push(packet.payload);
                }
            }
            now = offer;
            let mut packet = Packet::new(size, 0, number);
            (packet.round, packet.ecn) = (round, Ecn::from_bits(bits));
            offered_bytes += u64::from(size);
            refused += u64::from(link.offer(now, packet) != Admission::Admitted);
            let stats = link.stats(now);
            prop_assert_eq!(stats.offered, number + 1);
            prop_assert_eq!(stats.offered_bytes, offered_bytes);
            prop_assert!(stats.dropped.total() >= refused);
            prop_assert_eq!(
                stats.offered + stats.duplicated,
                stats.queued + stats.in_flight + stats.delivered + stats.dropped.total()
            );
            prop_assert!(stats.queued <= stats.queue_max_packets);
        }
        // Let everything arrive that can.
        while let Some(due) = link.next_wake() {
            prop_assert!(due >= now);
            now = due;
            while let Some(packet) = link.take(due) {
                delivered.push(packet.payload);
            }
        }
        let stats = link.stats(now);
        prop_assert_eq!(stats.delivered, delivered.len() as u64);
        prop_assert_eq!(
            stats.offered + stats.duplicated,
            stats.queued + stats.in_flight + stats.delivered + stats.dropped.total()
        );
        if !config.allow_reorder && config.reordering.is_none() {
            // DualPI2 keeps the order within each of its queues.
            let low_latency = |number: &u64| Ecn::from_bits(load[*number as usize].3).is_low_latency();
            let (first, second): (Vec<u64>, Vec<u64>) = match config.queue {
                QueueModel::DualPi2(_) => delivered.iter().partition(|number| low_latency(number)),
                _ => (delivered, Vec::new()),
            };
            prop_assert!(first.is_sorted() && second.is_sorted(), "packets arrived out of order");
        }
        if let Some(capacity) = stats.capacity_bytes {
            // A byte of tolerance: departures round down to the nanosecond.
            prop_assert!(stats.sent_bytes <= capacity + 1504, "{} of {}", stats.sent_bytes, capacity);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals(config in config(), seed in any::<u64>()) {
        let offers: Vec<Time> = (0..100).map(Time::from_millis).collect();
        let first = crate::common::arrivals(&mut link(&config, seed), &offers, 1500);
        let second = crate::common::arrivals(&mut link(&config, seed), &offers, 1500);
        prop_assert_eq!(first, second);
    }
}
