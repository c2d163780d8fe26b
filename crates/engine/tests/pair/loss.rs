//! Fast retransmit, fast recovery, the retransmission timer (RFC 9260, 6.3.3, 7.2.3, 7.2.4).

use ropewalk_engine::Payload;
use ropewalk_engine::sctp::{Config, Preset};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, Sent, as_published, config, ms};

fn bulk(pair: &mut Pair, millis: u64) {
    for _ in 0..millis / 10 {
        while pair.ends[LEFT].send_room() > 0 {
            pair.queue(LEFT, 0, Payload::Length(FULL), false);
        }
        pair.drain(LEFT);
        pair.run_for(ms(10));
    }
}

/// Drops the data packets with these numbers, counted from now.
fn lose(numbers: Vec<u32>) -> impl FnMut(&Sent) -> Fate {
    let mut count = 0;
    move |sent| {
        let data = sent.data().next().is_some();
        count += u32::from(data);
        if data && numbers.contains(&count) { Fate::Drop } else { Fate::Arrive }
    }
}

#[test]
pub fn losses_of_one_window_halve_it_once_and_are_repaired_without_a_timeout() {
    let settings = Config { congestion: "rfc9260", ..config(1, 1 << 20) };
    for lost in [vec![5], vec![5, 6], vec![5, 8, 11]] {
        let mut pair = Pair::up(&settings, &[25]);
        bulk(&mut pair, 400);
        let before = pair.view(LEFT, 0).cwnd;
        assert!(before > 12 * 1468, "{before}");
        pair.script(lose(lost.clone()));
        bulk(&mut pair, 100);
        let during = pair.view(LEFT, 0).cwnd;
        bulk(&mut pair, 600);
        let counters = pair.counters(LEFT)[0];
        assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 0), "{lost:?} lost");
        assert_eq!(counters.retransmitted, lost.len() as u64);
        let halved = pair.view(LEFT, 0).ssthresh;
        assert!(halved >= before / 2 - 1468 && halved <= during.max(before), "{lost:?} lost");
        assert_eq!(pair.ends[RIGHT].receive_stats().duplicates, 0);
    }
}

#[test]
pub fn a_fast_retransmit_leaves_at_once_though_the_window_is_full() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[25]);
    bulk(&mut pair, 300);
    pair.log.clear();
    pair.script(lose(vec![1]));
    bulk(&mut pair, 200);
    let lost = pair.log.iter().find(|s| s.fate == Fate::Drop).expect("a loss");
    let tsn = lost.data().next().expect("data").tsn;
    let again: Vec<_> = (pair.log.iter())
        .filter(|s| s.fate == Fate::Arrive && s.from == LEFT && s.data().any(|d| d.tsn == tsn))
        .collect();
    assert_eq!(again.len(), 1);
    let gaps = pair.log.iter().filter(|s| s.sack().is_some_and(|k| !k.gaps.is_empty()));
    let third = gaps.map(|s| s.at + ms(25)).nth(2).expect("three reports");
    assert_eq!(again[0].at, third);
}

#[test]
fn a_retransmission_that_is_lost_too_is_repaired() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[25]);
    bulk(&mut pair, 300);
    let mut tsn = None;
    let mut hits = 0;
    pair.script(move |sent| {
        let Some(data) = sent.data().next() else { return Fate::Arrive };
        let hit = *tsn.get_or_insert(data.tsn) == data.tsn && hits < 2;
        hits += u32::from(hit);
        if hit { Fate::Drop } else { Fate::Arrive }
    });
    bulk(&mut pair, 3000);
    assert!(pair.read_bytes(RIGHT) > 1_000_000);
    assert_eq!(pair.ends[RIGHT].receive_occupancy().0, 0);
}

#[test]
pub fn the_timer_backs_off_and_the_window_starts_from_one_chunk() {
    let mut pair = Pair::up(&as_published(1, 1 << 20), &[25]);
    pair.send_full(LEFT, 1);
    pair.run_for(ms(1000));
    pair.log.clear();
    let start = pair.now;
    pair.script(|_| Fate::Drop);
    pair.send_full(LEFT, 2);
    pair.run_for(ms(16_000));
    let times: Vec<_> =
        pair.data_times(LEFT).iter().map(|t| t.since(start).as_nanos() / 1_000_000).collect();
    // Two packets initially, then one per timeout of 1 s, 2 s, 4 s, 8 s. The unanswered heartbeats in
    // between have no effect.
    assert_eq!(times, [0, 0, 1000, 3000, 7000, 15_000]);
    assert_eq!(pair.view(LEFT, 0).cwnd, 1468);
    pair.heal();
    pair.run_for(ms(130_000));
    assert!(pair.ends[LEFT].is_flushed());
    assert_eq!(pair.read[RIGHT].len(), 3);
}

#[test]
pub fn small_chunks_that_were_lost_travel_together_again() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[25]);
    pair.script(|_| Fate::Drop);
    for _ in 0..60 {
        pair.queue(LEFT, 0, Payload::Length(4), false);
    }
    pair.drain(LEFT);
    pair.log.clear();
    pair.heal();
    pair.run_for(ms(1500));
    let again: Vec<_> =
        (pair.log.iter()).filter(|s| s.data().next().is_some()).map(|s| s.data().count()).collect();
    assert_eq!(again, [60], "one packet, as RFC 9260, 6.3.3 E3 says");
    assert_eq!(pair.read[RIGHT].len(), 60);
}

#[test]
pub fn plain_sctp_retransmits_by_timer_on_the_alternate_and_returns_to_the_primary() {
    let mut settings = as_published(2, 1 << 20);
    settings.cmt.concurrent = false;
    let mut pair = Pair::up(&settings, &[25, 40]);
    pair.send_full(LEFT, 2);
    pair.run_for(ms(500));
    assert!(pair.log.iter().filter(|s| s.data().next().is_some()).all(|s| s.path == 0));
    pair.log.clear();
    pair.script(|sent| if sent.path == 0 { Fate::Drop } else { Fate::Arrive });
    pair.send_full(LEFT, 2);
    pair.run_for(ms(1300));
    let data = pair.log.iter().filter(|s| s.data().next().is_some());
    let paths: Vec<_> = data.map(|s| s.path).collect();
    assert_eq!(paths[..3], [0, 0, 1], "the alternate after one timeout");
    assert_eq!(pair.read[RIGHT].len(), 4);
    pair.heal();
    pair.run_for(ms(5000));
    pair.log.clear();
    pair.send_full(LEFT, 2);
    assert!(pair.log.iter().all(|s| s.path == 0), "back on the primary");
}

#[test]
pub fn the_unsplit_rule_sends_each_chunk_again_once() {
    let mut settings = config(1, 1 << 20);
    settings.cmt.split_fast_retransmit = false;
    let mut pair = Pair::up(&settings, &[50]);
    bulk(&mut pair, 700);
    pair.script(lose(vec![4]));
    bulk(&mut pair, 1000);
    let counters = pair.counters(LEFT)[0];
    assert_eq!((counters.retransmitted, counters.timeouts), (1, 0));
    assert_eq!(pair.ends[RIGHT].receive_stats().duplicates, 0);
}

#[test]

fn a_path_that_becomes_slower_than_its_timeout_is_measured_again() {
    for preset in [Preset::Rfc9260, Preset::Paper2013] {
        let path = ropewalk_engine::sctp::PathConfig::default();
        let settings = Config::preset(preset, vec![path], 1 << 16);
        let mut pair = Pair::up(&settings, &[25]);
        bulk(&mut pair, 500);
        pair.delays[0] = ms(2500);
        bulk(&mut pair, 60_000);
        let srtt = pair.view(LEFT, 0).srtt.expect("a sample");
        assert!(srtt > ms(4000), "{preset:?}: {srtt} long after the path became 5 s long");
        pair.log.clear();
        bulk(&mut pair, 60_000);
        let counters = pair.counters(LEFT)[0];
        let again = counters.retransmitted;
        assert!(
            counters.timeouts < 10,
            "{preset:?}: {} timeouts, {again} again",
            counters.timeouts
        );
    }
}

#[test]
fn a_packet_that_two_overtake_is_late_and_one_that_four_overtake_is_taken_for_lost() {
    for (late, again) in [(12, 0), (22, 1)] {
        let mut settings = config(1, 1 << 20);
        settings.initial_window = Some(100_000);
        settings.max_burst = 0;
        let mut pair = Pair::up(&settings, &[25]);
        for packet in 0..30 {
            let late = if packet == 9 { Fate::Late(ms(late)) } else { Fate::Arrive };
            pair.script(move |sent| if sent.from == LEFT { late } else { Fate::Arrive });
            pair.send_full(LEFT, 1);
            pair.heal();
            pair.run_for(ms(5));
        }
        pair.run_for(ms(500));
        assert_eq!(pair.counters(LEFT)[0].retransmitted, again, "{late} ms late");
        assert_eq!(pair.ends[RIGHT].receive_stats().duplicates, again);
        assert_eq!(pair.read[RIGHT].len(), 30);
    }
}

#[test]
fn what_was_given_up_and_has_arrived_after_all_counts_for_its_path() {
    let mut settings = config(1, 1 << 20);
    settings.initial_window = Some(100_000);
    settings.max_burst = 0;
    let mut pair = Pair::up(&settings, &[25]);
    pair.greet();
    let before = pair.counters(LEFT)[0].delivered_bytes;
    // The answers arrive after the timer has expired, when little has been retransmitted.
    let late = Fate::Late(ms(2000));
    pair.script(move |sent| if sent.from == RIGHT { late } else { Fate::Arrive });
    pair.send_full(LEFT, 20);
    pair.run_for(ms(8000));
    let counters = pair.counters(LEFT)[0];
    assert!(counters.lost > counters.retransmitted && counters.retransmitted > 0, "{counters:?}");
    assert_eq!(counters.delivered_bytes - before, 20 * u64::from(FULL), "{counters:?}");
    assert_eq!(pair.read[RIGHT].len(), 20);
}
