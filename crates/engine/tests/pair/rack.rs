//! Loss detection by time and tail loss probes (RFC 8985), over the paths of an association.

use ropewalk_base::PathId;
use ropewalk_engine::recovery::LossDetection;
use ropewalk_engine::sctp::{Chunk, Config, DataFlags, DelayEcho, Echoed, Packet};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, Sent, as_published, config, ms};

/// A pair that is up, with a measured round trip: 50 ms on the first path.
fn measured(settings: &Config, delays: &[u64]) -> Pair {
    let mut pair = Pair::up(settings, delays);
    for _ in 0..20 {
        pair.send_full(LEFT, 2);
        pair.run_for(ms(100));
    }
    pair.log.clear();
    pair
}

/// Drops the data packets with these numbers, counted from now.
fn lose(numbers: &'static [u32]) -> impl FnMut(&Sent) -> Fate {
    let mut count = 0;
    move |sent| {
        let data = sent.data().next().is_some();
        count += u32::from(data);
        if data && numbers.contains(&count) { Fate::Drop } else { Fate::Arrive }
    }
}

/// Milliseconds until all of `count` chunks have been delivered, after the loss of some of them.
fn time_to_repair(settings: &Config, count: usize, lost: &'static [u32]) -> u64 {
    let mut pair = measured(settings, &[25]);
    let (start, before) = (pair.now, pair.read[RIGHT].len());
    pair.script(lose(lost));
    pair.send_full(LEFT, count);
    while pair.read[RIGHT].len() < before + count {
        assert!(pair.now.since(start) < ms(10_000), "{lost:?} of {count} lost, and not repaired");
        pair.run_for(ms(1));
    }
    pair.now.since(start).as_nanos() / 1_000_000
}

#[test]
fn losses_that_too_few_reports_follow_are_repaired_in_a_few_round_trips_and_not_by_the_timer() {
    // A round trip is 50 ms, the timer a second. The peer may delay a SACK by 200 ms, so the probe of a
    // single chunk in flight waits as long.
    for (count, lost, most) in [
        (4, &[1][..], 150),
        (4, &[3], 150),
        (4, &[4], 400),
        (4, &[3, 4], 250),
        (3, &[1, 2, 3], 300),
        (1, &[1], 400),
        (3, &[1], 400),
    ] {
        let by_time = time_to_repair(&config(1, 1 << 20), count, lost);
        assert!(by_time <= most, "{lost:?} of {count}: {by_time} ms");
        let counted = time_to_repair(&as_published(1, 1 << 20), count, lost);
        assert!(by_time <= counted, "{lost:?} of {count}: {by_time} ms, by reports {counted} ms");
    }
    assert!(time_to_repair(&as_published(1, 1 << 20), 4, &[4]) >= 1000, "the test sees it");
}

#[test]
fn a_lost_tail_halves_the_window_once_though_the_probe_repairs_it() {
    for (lost, losses) in [(&[4][..], true), (&[], false)] {
        let mut pair = measured(&config(1, 1 << 20), &[25]);
        let before = pair.view(LEFT, 0).ssthresh;
        pair.script(lose(lost));
        pair.send_full(LEFT, 4);
        pair.run_for(ms(900));
        // Data sent after the probe shows that the probe was needed.
        pair.send_full(LEFT, 1);
        pair.run_for(ms(300));
        let after = pair.view(LEFT, 0).ssthresh;
        assert_eq!(after < before, losses, "{lost:?}: threshold {before}, then {after}");
        assert_eq!(pair.counters(LEFT)[0].timeouts, 0);
    }
}

#[test]
fn a_probe_that_was_not_needed_changes_no_window() {
    let mut pair = measured(&config(1, 1 << 20), &[25]);
    let before = (pair.view(LEFT, 0).cwnd, pair.view(LEFT, 0).ssthresh);
    // SACKs are lost for a while: data arrives, and the probe arrives as a duplicate.
    let until = pair.now + ms(60);
    pair.script(move |s| if s.from == RIGHT && s.at < until { Fate::Drop } else { Fate::Arrive });
    pair.send_full(LEFT, 2);
    pair.run_for(ms(900));
    assert_eq!(pair.ends[RIGHT].receive_stats().duplicates, 1);
    let after = (pair.view(LEFT, 0).cwnd, pair.view(LEFT, 0).ssthresh);
    assert!(after.0 >= before.0 && after.1 == before.1, "{before:?}, then {after:?}");
    assert!(pair.ends[LEFT].is_flushed());
}

#[test]
fn acknowledgements_are_asked_for_at_once_only_where_the_sender_would_wait_for_them() {
    let asks = |pair: &Pair| {
        let data = pair.log.iter().flat_map(Sent::data);
        data.map(|d| d.flags.has(DataFlags::IMMEDIATE)).collect::<Vec<_>>()
    };
    for loses in [false, true] {
        let mut pair = measured(&config(1, 1 << 20), &[25]);
        if loses {
            pair.script(lose(&[1]));
            pair.send_full(LEFT, 4);
            pair.run_for(ms(2_000));
        }
        pair.log.clear();
        pair.script(|_| Fate::Arrive);
        let chunks = pair.view(LEFT, 0).cwnd.div_ceil(u64::from(FULL)) as usize;
        pair.send_full(LEFT, chunks);
        let asked = asks(&pair);
        let (last, others) = asked.split_last().expect("data");
        assert_eq!(*last, loses, "what fills a small window of a path that loses");
        assert!(others.iter().all(|asked| !asked), "{asked:?}");
    }
    let counted = LossDetection::MissingReports;
    for (recovery, asked) in [(LossDetection::RackTlp, true), (counted, false)] {
        let mut pair = measured(&Config { recovery, ..config(1, 1 << 20) }, &[25]);
        pair.script(lose(&[1]));
        pair.send_full(LEFT, 4);
        let tsn = pair.log[0].data().next().expect("data").tsn;
        pair.run_for(ms(500));
        let again = pair.log.iter().flat_map(Sent::data).filter(|d| d.tsn == tsn).nth(1);
        let again = again.expect("a retransmission");
        assert_eq!(again.flags.has(DataFlags::IMMEDIATE), asked, "{recovery:?}");
    }
}

/// If all chunks of a path are retransmitted, they give no samples of its round trip, so the receiver's
/// timestamps do. A longer round trip delays the tail loss probe (RFC 8985, 7.2), and the driver must get
/// the new deadline.
#[test]
fn a_round_trip_from_the_receivers_timestamps_moves_the_tail_probe() {
    let mut pair = measured(&config(1, 1 << 18), &[20]);
    pair.run_for(ms(2000));
    pair.send(LEFT, 1000);
    let (now, before) = (pair.now, pair.ends[LEFT].next_deadline().expect("a tail probe"));
    let mut packet =
        Packet::of(pair.ends[LEFT].tags().0, Chunk::Unknown(vec![0xb1, 0, 0, 4].into()));
    let sent = now.as_nanos() - ms(900).as_nanos();
    packet.echo = Some(DelayEcho { path: 0, of: Echoed::Time(sent), received: now.as_nanos() });
    pair.ends[LEFT].handle_datagram(now, PathId(0), packet);
    let after = pair.ends[LEFT].next_deadline().expect("a timer");
    assert!(after > before, "{before:?} and {after:?}");
}
