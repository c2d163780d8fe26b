//! Links compared with results calculated by hand.

use std::sync::Arc;

use crate::common::{arrivals, at, link, mbit, ms};
use ropewalk_base::{Duration, Rate, Time};
use ropewalk_netsim::link::{
    Jitter, Limit, LossPlace, LossTrace, Outage, Outages, Reordering, Span,
};
use ropewalk_netsim::{
    Admission, DropCause, LinkConfig, LossModel, Packet, QueueModel, RateModel, Schedule,
    parse_mahimahi,
};

#[test]
fn a_million_packets_take_exactly_their_bits() {
    // 1500 B at 7 Mbit/s take 1 714 285.714... ns each.
    let mut link = link(&LinkConfig::new(mbit(7), ms(20)), 1);
    for number in 0..1_000_000 {
        link.offer(Time::ZERO, Packet::new(1500, 0, number));
    }
    let (mut last, mut count) = (Time::ZERO, 0);
    while let Some(due) = link.next_wake() {
        last = due;
        while link.take(due).is_some() {
            count += 1;
        }
    }
    assert_eq!(count, 1_000_000);
    let sending = 1_000_000u64 * 12_000 * 1_000 / 7;
    assert_eq!(last.as_nanos(), sending + 20_000_000);
    let stats = link.stats(last);
    assert_eq!(stats.busy.as_nanos(), sending);
    assert_eq!(stats.sent_bytes, 1_500_000_000);
    assert_eq!((stats.queued, stats.in_flight, stats.delivered), (0, 0, 1_000_000));
}

#[test]
fn a_full_queue_drops_and_the_packet_in_transmission_is_not_in_it() {
    for (limit, kept) in [
        (Limit::Packets(0), 1),
        (Limit::Packets(3), 4),
        (Limit::Bytes(2_999), 2),
        (Limit::Bytes(3_000), 3),
        (Limit::Unlimited, 10),
    ] {
        let config = LinkConfig::new(mbit(1), ms(0)).queue(QueueModel::DropTail(limit));
        let mut link = link(&config, 1);
        let admitted = (0..10)
            .filter(|i| link.offer(Time::ZERO, Packet::new(1500, 0, *i)) == Admission::Admitted)
            .count();
        assert_eq!(admitted, kept, "{limit:?}");
        let stats = link.stats(Time::ZERO);
        assert_eq!(stats.queue_max_packets, kept as u64 - 1, "{limit:?}");
        assert_eq!(stats.dropped.by(DropCause::Full), 10 - kept as u64, "{limit:?}");
    }
}

#[test]
fn a_place_in_the_queue_is_free_as_soon_as_its_packet_is_being_sent() {
    let config = LinkConfig::new(mbit(12), ms(0)).queue(QueueModel::DropTail(Limit::Packets(1)));
    let mut link = link(&config, 1);
    // 1500 B take 1 ms. At 0 ms one is sent and one waits; at 1 ms the second is being sent.
    for (instant, admission) in [
        (at(0), Admission::Admitted),
        (at(0), Admission::Admitted),
        (Time::from_nanos(999_999), Admission::Dropped(DropCause::Full)),
        (at(1), Admission::Admitted),
        (at(1), Admission::Dropped(DropCause::Full)),
    ] {
        assert_eq!(link.offer(instant, Packet::new(1500, 0, 0)), admission, "at {instant}");
    }
}

#[test]
fn a_trace_delivers_at_its_opportunities_and_begins_again() {
    let trace = Arc::new(parse_mahimahi("2\n5\n10\n").expect("a good trace"));
    let config = LinkConfig::with_rate_model(RateModel::Trace(trace), ms(1));
    let mut link = link(&config, 1);
    let offers = [at(0), at(0), at(0), at(0), at(14)];
    let times: Vec<_> = arrivals(&mut link, &offers, 1504).iter().map(|(t, _)| *t).collect();
    assert_eq!(times, [at(3), at(6), at(11), at(13), at(16)]);
    let stats = link.stats(at(20));
    // Before 20 ms: 2, 5, 10, 12 and 15 ms, all of them used.
    assert_eq!(stats.capacity_bytes, Some(5 * 1504));
    assert!((stats.utilisation() - 1.0).abs() < 1e-12);
}

#[test]
fn an_outage_drops_or_holds_as_told_and_spares_what_is_propagating() {
    // 1500 B take 1 ms; packets offered at 0, 1, ... 9 ms; down from 3.5 to 6.5 ms.
    let span = Span { from: Time::from_nanos(3_500_000), until: Time::from_nanos(6_500_000) };
    let offers: Vec<Time> = (0..10).map(at).collect();
    for (effect, expected) in [
        // Number 3 is being sent when the link goes down; 4, 5 and 6 are refused.
        (Outage::Drop, vec![(0, 21.0), (1, 22.0), (2, 23.0), (7, 28.0), (8, 29.0), (9, 30.0)]),
        // Half of packet 3 has been sent by then. It continues 3 ms later, as do all later packets.
        (
            Outage::Hold,
            (0..10).map(|i| (i, 21.0 + i as f64 + if i >= 3 { 3.0 } else { 0.0 })).collect(),
        ),
    ] {
        let outages = Outages { spans: vec![span], effect };
        let config = LinkConfig { outages, ..LinkConfig::new(mbit(12), ms(20)) };
        let mut link = link(&config, 1);
        let got: Vec<(u64, f64)> = arrivals(&mut link, &offers, 1500)
            .iter()
            .map(|(t, number)| (*number, t.as_nanos() as f64 / 1e6))
            .collect();
        assert_eq!(got, expected, "{effect:?}");
        let dropped = link.stats(at(100)).dropped.by(DropCause::Outage);
        assert_eq!(dropped, 10 - expected.len() as u64, "{effect:?}");
    }
}

#[test]
fn a_shorter_delay_lets_packets_catch_up_but_overtake_only_if_allowed() {
    for (allow_reorder, expected) in [
        (false, vec![(at(101), 0), (at(102), 1), (at(102), 2), (at(102), 3)]),
        (true, vec![(at(13), 2), (at(14), 3), (at(101), 0), (at(102), 1)]),
    ] {
        // From 3 ms on the delay is 10 ms: number 2 departs at 3 ms.
        let delay = Schedule::steps(ms(100), vec![(at(3), ms(10))]).expect("in order");
        let config = LinkConfig { delay, allow_reorder, ..LinkConfig::new(mbit(12), ms(0)) };
        let got = arrivals(&mut link(&config, 1), &[at(0); 4], 1500);
        assert_eq!(got, expected);
    }
}

#[test]
fn jitter_keeps_the_order_unless_told_otherwise() {
    let offers: Vec<Time> = (0..2_000).map(at).collect();
    for jitter in [Jitter::Uniform(ms(50)), Jitter::Normal(ms(20)), Jitter::Exponential(ms(20))] {
        for allow_reorder in [false, true] {
            let config = LinkConfig {
                jitter: Some(jitter),
                allow_reorder,
                ..LinkConfig::new(mbit(100), ms(60))
            };
            let got = arrivals(&mut link(&config, 3), &offers, 1500);
            assert_eq!(got.len(), offers.len());
            assert!(got.is_sorted_by_key(|(time, _)| *time));
            let in_order = got.is_sorted_by_key(|(_, number)| *number);
            assert_eq!(in_order, !allow_reorder, "{jitter:?}");
        }
    }
}

#[test]
fn a_reordered_packet_is_late_by_the_extra_delay_and_overtaken_by_others() {
    let reordering = Some(Reordering { probability: 0.1, extra: ms(10) });
    let config = LinkConfig { reordering, ..LinkConfig::new(mbit(12), ms(20)) };
    let offers: Vec<Time> = (0..5_000).map(at).collect();
    let got = arrivals(&mut link(&config, 3), &offers, 1500);
    let delay = |(time, number): &(Time, u64)| time.since(at(*number)).as_nanos() / 1_000_000;
    let late = got.iter().filter(|arrival| delay(arrival) == 31).count();
    let prompt = got.iter().filter(|arrival| delay(arrival) == 21).count();
    assert_eq!(late + prompt, offers.len(), "a delay that is neither 21 nor 31 ms");
    // Four deviations of a binomial of 5000 and 0.1.
    assert!(late.abs_diff(500) < 85, "{late} late packets");
}

#[test]
fn duplicates_and_damage_come_at_their_rates_and_use_capacity() {
    let config =
        LinkConfig { corruption: 0.2, duplication: 0.1, ..LinkConfig::new(mbit(12), ms(20)) };
    let mut link = link(&config, 9);
    let offers: Vec<Time> = (0..20_000).map(at).collect();
    let got = arrivals(&mut link, &offers, 1500);
    let stats = link.stats(at(20_000));
    assert_eq!(stats.delivered, got.len() as u64);
    assert_eq!(stats.sent_bytes, 20_000 * 1500);
    assert!(stats.dropped.by(DropCause::Corruption).abs_diff(4_000) < 230);
    // Only packets that arrive undamaged are copied.
    assert!(stats.duplicated.abs_diff(1_600) < 160);
    assert_eq!(stats.delivered, 20_000 - stats.dropped.total() + stats.duplicated);
}

#[test]
fn what_is_lost_at_the_entry_costs_no_capacity_and_what_is_lost_on_the_wire_does() {
    let loss = LossModel::Trace(LossTrace::from_indices(&[0, 2], 4).expect("a trace"));
    for (loss_place, sent) in [(LossPlace::Entry, 2), (LossPlace::Wire, 4)] {
        let config =
            LinkConfig { loss_place, ..LinkConfig::new(mbit(12), ms(1)).loss(loss.clone()) };
        let mut link = link(&config, 1);
        let numbers: Vec<u64> =
            arrivals(&mut link, &[at(0); 4], 1500).iter().map(|(_, number)| *number).collect();
        assert_eq!(numbers, [1, 3]);
        let stats = link.stats(at(50));
        assert_eq!(stats.sent_bytes, sent * 1500, "{loss_place:?}");
        assert_eq!(stats.dropped.by(DropCause::Loss), 2);
    }
}

#[test]
fn a_loss_step_counts_from_the_packet_that_is_first_sent_after_it() {
    let all = LossModel::bernoulli(1.0).expect("a probability");
    let loss = Schedule::steps(LossModel::None, vec![(at(3), all), (at(6), LossModel::None)]);
    let config = LinkConfig { loss: loss.expect("in order"), ..LinkConfig::new(mbit(12), ms(0)) };
    let numbers: Vec<u64> = arrivals(&mut link(&config, 1), &[at(0); 9], 1500)
        .iter()
        .map(|(_, number)| *number)
        .collect();
    // All are offered at 0 ms; number i is sent from i ms on.
    assert_eq!(numbers, [0, 1, 2, 6, 7, 8]);
}

#[test]
fn the_averaged_queue_is_the_sum_of_waits_over_time() {
    let mut link = link(&LinkConfig::new(mbit(12), ms(0)), 1);
    for number in 0..4 {
        link.offer(Time::ZERO, Packet::new(1500, 0, number));
    }
    // Waits of 0, 1, 2 and 3 ms; after 2 ms: 0 + 1 + 2 + 2.
    assert!((link.stats(at(2)).queue_mean_packets - 2.5).abs() < 1e-12);
    assert!((link.stats(at(12)).queue_mean_bytes - 0.5 * 1500.0).abs() < 1e-9);
}

#[test]
fn a_link_that_cannot_be_says_which_value_is_wrong() {
    let good = || LinkConfig::new(mbit(1), ms(1));
    let steps = vec![(at(5), mbit(1)), (at(4), mbit(2))];
    let rate = RateModel::Steps { initial: Rate::ZERO, steps };
    let spans = vec![Span { from: at(5), until: at(5) }];
    for (config, part) in [
        (LinkConfig { corruption: 1.5, ..good() }, "corruption is 1.5"),
        (LinkConfig { duplication: -0.1, ..good() }, "duplication is -0.1"),
        (LinkConfig { rate, ..good() }, "step 1 at 0.004000 s"),
        (
            LinkConfig { outages: Outages { spans, effect: Outage::Drop }, ..good() },
            "the outage from 0.005000 s to 0.005000 s",
        ),
    ] {
        let error = config.check().expect_err(part).to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn sizes_and_rates_at_the_edge_do_not_overflow() {
    let config = LinkConfig::new(Rate::from_bps(1), Duration::MAX);
    let mut link = link(&config, 1);
    // 2^31 bytes at 1 bit/s take 544 years. Two of them exceed the range of time.
    link.offer(Time::ZERO, Packet::new(1 << 31, 0, 0));
    link.offer(Time::ZERO, Packet::new(1 << 31, 0, 1));
    assert_eq!(link.next_wake(), None, "arrivals beyond the end of time never happen");
    assert_eq!(link.stats(Time::ZERO).queued, 1);
}
