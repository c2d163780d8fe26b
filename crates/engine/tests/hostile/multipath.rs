//! Peers and networks that disadvantage one of several paths.

use ropewalk_base::{Duration, Serial32, Time};
use ropewalk_engine::sctp::Config;
use ropewalk_engine::sctp::association::State;

use super::kit::{Victim, live, sack};
use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, Sent, as_published, ms, scheduler};

type Script = fn(&Sent) -> Fate;

/// Sends 300 chunks through the scripted network: all arrive, in a time that shows that no path stopped
/// the other.
fn passes(what: &str, mut pair: Pair, script: Script) {
    pair.script(script);
    let began = pair.now;
    let mut left = 300;
    while left > 0 || !pair.ends[LEFT].is_flushed() {
        while left > 0 && pair.ends[LEFT].send_room() > 0 {
            pair.queue(LEFT, 0, ropewalk_engine::Payload::Length(FULL), false);
            left -= 1;
        }
        pair.drain(LEFT);
        pair.run_for(ms(20));
        assert_eq!(*pair.ends[LEFT].state(), State::Established, "{what}");
        assert!(pair.now.since(began) < Duration::from_secs(240), "{what}: it stalls");
    }
    assert_eq!(pair.read[RIGHT].len(), 300, "{what}");
}

fn second(at: Time) -> u64 {
    at.as_nanos() / 1_000_000_000
}

// 67.
#[test]
fn a_path_that_is_lost_one_way_flaps_or_swallows_sacks_stops_nobody() {
    let settings = live(2, 1 << 17);
    let scripts: [(&str, Script); 6] = [
        ("the way there of one path", |s| {
            if s.path == 1 && s.from == LEFT { Fate::Drop } else { Fate::Arrive }
        }),
        ("the way back of one path", |s| {
            if s.path == 1 && s.from == RIGHT { Fate::Drop } else { Fate::Arrive }
        }),
        ("data on one path, but no heartbeats", |s| {
            if s.path == 1 && s.data().next().is_some() { Fate::Drop } else { Fate::Arrive }
        }),
        ("all SACKs on one path", |s| {
            if s.path == 0 && s.sack().is_some() { Fate::Drop } else { Fate::Arrive }
        }),
        ("one path every other second", |s| {
            if s.path == 1 && second(s.at).is_multiple_of(2) { Fate::Drop } else { Fate::Arrive }
        }),
        ("both in turn, a second each", |s| {
            if s.path as u64 == second(s.at) % 2 { Fate::Drop } else { Fate::Arrive }
        }),
    ];
    for (what, script) in scripts {
        passes(what, Pair::up(&settings, &[10, 30]), script);
    }
}

// 67.
#[test]
fn a_tiny_window_over_a_millisecond_and_two_seconds_still_lets_all_pass() {
    for chunks in [2, 4, 16] {
        let settings = live(2, chunks * u64::from(FULL + 16));
        // A scheduler that uses both paths in turn would take four seconds for each window.
        let lay = [scheduler("lay"), scheduler("lay")];
        let mut pair = Pair::with(&settings, &settings, &[1, 2000], lay);
        pair.connect();
        passes("a tiny window", pair, |_| Fate::Arrive);
    }
}

// 67.
#[test]
fn a_peer_that_acknowledges_one_path_only_does_not_make_the_other_send_for_ever() {
    let settings = Config { max_burst: 0, ..live(2, 1 << 18) };
    let mut victim = Victim::of(Pair::up(&settings, &[10, 30]));
    victim.pair.send_full(LEFT, 60);
    let before = Serial32(victim.first_tsn(LEFT).0.wrapping_sub(1));
    for _ in 0..2000 {
        // All data sent on path 0 is acknowledged by a gap block, and no data of path 1.
        let seen: Vec<u16> = (victim.pair.log.iter())
            .filter(|sent| sent.from == LEFT && sent.path == 0)
            .flat_map(|sent| sent.data().map(|data| data.tsn.0.wrapping_sub(before.0) as u16))
            .collect();
        let first = seen.iter().copied().collect::<std::collections::BTreeSet<_>>();
        let cumulative = (1..).take_while(|tsn| first.contains(tsn)).count() as u16;
        let gaps: Vec<_> = (first.iter().filter(|tsn| **tsn > cumulative))
            .map(|tsn| (tsn - cumulative, tsn - cumulative))
            .collect();
        let bytes = sack(before.plus(u32::from(cumulative)), 1 << 18, &gaps, 0);
        victim.hit(LEFT, &[bytes]);
        victim.pair.run_for(ms(10));
        if victim.pair.ends[LEFT].is_flushed() {
            break;
        }
    }
    assert!(victim.pair.ends[LEFT].is_flushed(), "what path 1 lost has gone by path 0");
    let sent = victim.pair.log.iter().filter(|s| s.from == LEFT).count();
    assert!(sent < 300, "{sent} packets for 60 chunks");
}

/// Number of chunks that count as lost after SACKs with these gaps, each with this count of packets.
fn lost_after(reports: &[(u16, u8)]) -> u64 {
    let mut settings = as_published(2, 1 << 17);
    settings.initial_window = Some(100_000);
    settings.max_burst = 0;
    let backup = || scheduler("backup");
    let mut pair = Pair::with(&settings, &settings, &[10, 100], [backup(), backup()]);
    pair.connect();
    let mut victim = Victim::of(pair);
    victim.pair.send_full(LEFT, 10);
    let before = Serial32(victim.first_tsn(LEFT).0.wrapping_sub(1));
    for (last, packets) in reports {
        victim.hit(LEFT, &[sack(before, 1 << 17, &[(2, *last)], packets << 6)]);
    }
    victim.pair.counters(LEFT).iter().map(|counters| counters.lost).sum()
}

// 68.
#[test]
fn a_sack_that_claims_three_packets_counts_for_two_at_most() {
    assert_eq!(lost_after(&[(2, 3)]), 0, "three claimed, one chunk acknowledged");
    assert_eq!(lost_after(&[(4, 3)]), 0, "three claimed, three acknowledged");
    assert_eq!(lost_after(&[(2, 1), (3, 1)]), 0);
    assert_eq!(lost_after(&[(2, 1), (3, 1), (4, 1)]), 1, "three SACKs, as ever");
    assert_eq!(lost_after(&[(2, 3), (2, 3), (2, 3), (2, 3)]), 0, "the same again tells nothing");
}
