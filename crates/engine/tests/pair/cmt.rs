//! Concurrent multipath transfer: split fast retransmit, windows that grow on all paths, delayed
//! acknowledgement (Iyengar et al., 2006).

use ropewalk_base::Serial32;
use ropewalk_engine::Payload;
use ropewalk_engine::recovery::LossDetection;
use ropewalk_engine::scheduler::{RetransmissionPolicy, Scheduler};
use ropewalk_engine::sctp::{Chunk, Config, CwndUpdate, GapBlock, GapList, Packet, Sack};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, config, ms};

fn bulk(pair: &mut Pair, millis: u64) {
    for _ in 0..millis / 20 {
        while pair.ends[LEFT].send_room() > 0 {
            pair.queue(LEFT, 0, Payload::Length(FULL), false);
        }
        pair.drain(LEFT);
        pair.run_for(ms(20));
    }
}

fn ample(paths: usize) -> Config {
    config(paths, 1 << 17)
}

#[test]
fn unequal_paths_without_loss_see_no_fast_retransmit() {
    for name in Scheduler::NAMES {
        let one = || crate::driver::scheduler(name);
        let mut pair = Pair::with(&ample(2), &ample(2), &[10, 100], [one(), one()]);
        pair.connect();
        bulk(&mut pair, 3000);
        for counters in pair.counters(LEFT) {
            // These two send copies intentionally.
            let copies = ["redundant", "lay"].contains(&name);
            let again = if copies { 0 } else { counters.retransmitted };
            assert_eq!((counters.fast_retransmits, counters.timeouts, again), (0, 0, 0), "{name}");
        }
        let duplicates = pair.ends[RIGHT].receive_stats().duplicates;
        let allowed = if name == "lay" { 2 } else { 0 };
        assert!(name == "redundant" || duplicates <= allowed, "{name}: {duplicates} duplicates");
    }
}

#[test]
fn without_the_split_the_same_paths_retransmit_in_vain() {
    let mut settings = ample(2);
    settings.cmt.split_fast_retransmit = false;
    settings.recovery = LossDetection::MissingReports;
    let mut pair = Pair::up(&settings, &[10, 100]);
    bulk(&mut pair, 3000);
    assert!(pair.counters(LEFT)[1].fast_retransmits > 0, "the test sees the difference");
}

#[test]
fn windows_grow_on_both_paths_at_once() {
    let mut pair = Pair::up(&ample(2), &[10, 100]);
    let before = [pair.view(LEFT, 0).cwnd, pair.view(LEFT, 1).cwnd];
    bulk(&mut pair, 2000);
    for (path, before) in before.into_iter().enumerate() {
        assert!(pair.view(LEFT, path).cwnd > 2 * before, "path {path}");
    }
}

#[test]
fn redirected_retransmissions_freeze_no_window() {
    for (name, policy) in RetransmissionPolicy::ALL {
        let mut settings = ample(2);
        settings.retransmission = policy;
        settings.initial_ssthresh = Some(20_000);
        let mut pair = Pair::up(&settings, &[20, 40]);
        let mut count = 0u32;
        pair.script(move |sent| {
            let data = sent.data().next().is_some();
            count += u32::from(data);
            if data && count.is_multiple_of(211) { Fate::Drop } else { Fate::Arrive }
        });
        let mut grew = [0; 2];
        let mut last = [pair.view(LEFT, 0).cwnd, pair.view(LEFT, 1).cwnd];
        for _ in 0..60 {
            bulk(&mut pair, 100);
            for path in 0..2 {
                let cwnd = pair.view(LEFT, path).cwnd;
                grew[path] += u32::from(cwnd > last[path]);
                last[path] = cwnd;
            }
        }
        let lost: Vec<_> = pair.counters(LEFT).iter().map(|c| c.lost).collect();
        assert!(lost.iter().all(|l| *l > 0), "{name}: losses {lost:?}");
        assert!(grew.iter().all(|times| *times > 15), "{name}: grew {grew:?} times");
    }
}

/// Number of times that the window of a fast path grows if its losses are retransmitted on a slow one.
fn growths(rule: CwndUpdate) -> u32 {
    let mut settings = config(2, 1 << 21);
    settings.cmt.cwnd_update = rule;
    settings.retransmission = RetransmissionPolicy::LossRate;
    settings.initial_ssthresh = Some(20_000);
    let mut pair = Pair::up(&settings, &[10, 300]);
    let mut count = 0u32;
    pair.script(move |sent| {
        let data = sent.path == 0 && sent.data().next().is_some();
        count += u32::from(data);
        if data && count.is_multiple_of(150) { Fate::Drop } else { Fate::Arrive }
    });
    let (mut grew, mut last) = (0, pair.view(LEFT, 0).cwnd);
    for _ in 0..1000 {
        bulk(&mut pair, 20);
        let cwnd = pair.view(LEFT, 0).cwnd;
        grew += u32::from(cwnd > last);
        last = cwnd;
    }
    assert!(pair.counters(LEFT)[0].lost > 10);
    grew
}

#[test]
fn a_redirected_retransmission_freezes_the_window_under_cuc_and_not_under_cucv2() {
    let [first, second] = [CwndUpdate::Cuc, CwndUpdate::CucV2].map(growths);
    assert!(second > 2 * first, "CUC: grew {first} times, CUCv2: {second}");
}

#[test]
fn each_policy_sends_lost_chunks_where_it_says() {
    for (name, policy) in RetransmissionPolicy::ALL {
        let mut settings = ample(2);
        settings.retransmission = policy;
        // Well below the peer's window, so that later data shows the loss.
        settings.initial_ssthresh = Some(20_000);
        let mut pair = Pair::up(&settings, &[50, 20]);
        bulk(&mut pair, 600);
        pair.log.clear();
        let mut lost = None;
        pair.script(move |sent| {
            let tsn = sent.data().next().map(|d| d.tsn);
            let hit = lost.is_none() && sent.path == 0 && tsn.is_some();
            if hit {
                lost = tsn;
            }
            if hit { Fate::Drop } else { Fate::Arrive }
        });
        bulk(&mut pair, 1000);
        let lost = pair.log.iter().find(|s| s.fate == Fate::Drop).expect("a loss");
        let tsn = lost.data().next().expect("data").tsn;
        let again: Vec<_> = (pair.log.iter())
            .filter(|s| s.from == LEFT && s.fate != Fate::Drop && s.data().any(|d| d.tsn == tsn))
            .map(|s| s.path)
            .collect();
        assert_eq!(again.len(), 1, "{name}: sent again on {again:?}");
        let cwnds = [pair.view(LEFT, 0).cwnd, pair.view(LEFT, 1).cwnd];
        match policy {
            RetransmissionPolicy::Same => assert_eq!(again, [0]),
            // Path 1 has no losses, is shorter and has the larger window.
            RetransmissionPolicy::Fastest
            | RetransmissionPolicy::Cwnd
            | RetransmissionPolicy::LossRate => assert_eq!(again, [1], "{name} {cwnds:?}"),
            _ => {}
        }
    }
}

/// A SACK: number of chunks that it acknowledges cumulatively, gaps, and the packet count of DAC.
type Report = (u32, &'static [(u16, u16)], u8);

/// Sends ten chunks on one path, which are all lost, and handles these SACKs. Returns how many chunks then
/// count as lost.
fn retransmitted_after(sacks: &[Report]) -> u64 {
    let mut settings = ample(2);
    settings.initial_window = Some(100_000);
    settings.max_burst = 0;
    let backup = || crate::driver::scheduler("backup");
    let mut pair = Pair::with(&settings, &settings, &[10, 100], [backup(), backup()]);
    pair.connect();
    pair.script(|_| Fate::Drop);
    pair.send_full(LEFT, 10);
    let first = pair.log[0].data().next().expect("data").tsn;
    let tag = {
        // Packets to the left carry its tag, which is in the packets of its peer.
        pair.inject(RIGHT, 0, pair.log[0].packet.clone());
        pair.run_for(ms(201));
        pair.log.iter().find(|s| s.from == RIGHT).expect("a SACK").packet.tag
    };
    for (cumulative, gaps, data_packets) in sacks {
        let cumulative = Serial32(first.0.wrapping_add(*cumulative).wrapping_sub(1));
        let gaps = gaps.iter().map(|(start, end)| GapBlock { start: *start, end: *end });
        let sack = Sack {
            cumulative,
            window: 1 << 17,
            gaps: GapList::from_offsets(cumulative, gaps),
            duplicates: Vec::new(),
            data_packets: *data_packets,
            number: None,
        };
        pair.inject(LEFT, 0, Packet::of(tag, Chunk::Sack(sack)));
    }
    pair.counters(LEFT).iter().map(|c| c.lost).sum()
}

#[test]
fn the_third_report_is_a_loss_and_two_are_none() {
    let single: [Report; 3] = [(0, &[(2, 2)], 1), (0, &[(2, 3)], 1), (0, &[(2, 4)], 1)];
    assert_eq!(retransmitted_after(&single[..2]), 0);
    assert_eq!(retransmitted_after(&single), 1);
}

#[test]
fn a_report_of_two_packets_counts_twice_for_what_lies_below_both() {
    assert_eq!(retransmitted_after(&[(0, &[(2, 3)], 2)]), 0);
    assert_eq!(retransmitted_after(&[(0, &[(2, 3)], 2), (0, &[(2, 4)], 1)]), 1);
    // Three packets reported, one acknowledged: one more report, not two.
    assert_eq!(retransmitted_after(&[(0, &[(2, 2)], 3)]), 0);
}

#[test]
fn a_report_of_two_packets_counts_once_for_what_lies_between_them() {
    // Chunks 1 and 3, then 4: only two packets after chunk 2 were acknowledged.
    assert_eq!(retransmitted_after(&[(1, &[(2, 2)], 2), (1, &[(2, 3)], 1)]), 0);
    assert_eq!(retransmitted_after(&[(1, &[(2, 2)], 2), (1, &[(2, 3)], 1), (1, &[(2, 4)], 1)]), 1);
}
