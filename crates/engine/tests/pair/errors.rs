//! Errors of paths, resets of the error count, and the end of HEARTBEATs (RFC 9260, 7.2.3, 8.1, 8.3).

use ropewalk_base::{Duration, Serial32};
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{Chunk, Config, Packet, Preset, Sack};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, config, ms, preset_config};

fn is_data(sent: &Sent) -> bool {
    sent.from == LEFT && sent.data().next().is_some()
}

/// Number of packets with data that the left end sends at each of these times.
fn packets_at(pair: &Pair) -> Vec<usize> {
    let times = pair.data_times(LEFT);
    let same = times.chunk_by(|a, b| a == b);
    same.map(<[_]>::len).collect()
}

#[test]
pub fn after_a_timeout_one_packet_is_on_its_way_until_something_is_acknowledged() {
    // With 1000 and 900 bytes, two chunks do not fit into a packet, but the first leaves room in a window
    // of one full chunk. With 100 bytes, chunks share packets.
    for size in [1000, 900, 100] {
        let mut pair = Pair::up(&config(1, 1 << 20), &[10]);
        pair.greet();
        pair.script(|sent| if is_data(sent) { Fate::Drop } else { Fate::Arrive });
        for _ in 0..40 {
            pair.queue(LEFT, 0, ropewalk_engine::Payload::Length(size), false);
        }
        pair.drain(LEFT);
        // The first timeouts, and the first tail loss probe of the simulator's and the live preset.
        pair.run_for(ms(1900));
        pair.log.clear();
        pair.run_for(ms(15_000));
        let packets = packets_at(&pair);
        assert!(packets.len() >= 2 && packets.iter().all(|count| *count == 1), "{packets:?}");
        pair.heal();
        pair.run_for(Duration::from_secs(60));
        assert_eq!(pair.read[RIGHT].len(), 40, "{size} B");
    }
}

#[test]
pub fn any_chunk_that_is_acknowledged_clears_the_errors_of_the_association() {
    for acknowledged in [false, true] {
        let settings = Config {
            association_max_retrans: 1,
            initial_window: Some(20_000),
            max_burst: 0,
            ..config(1, 1 << 20)
        };
        let mut pair = Pair::up(&settings, &[10]);
        pair.greet();
        pair.script(|_| Fate::Drop);
        pair.send_full(LEFT, 5);
        let before = pair.log[0].data().next().expect("data").tsn.0.wrapping_sub(1);
        while pair.counters(LEFT)[0].timeouts == 0 {
            pair.run_for(ms(10));
        }
        if acknowledged {
            // It was abandoned and not retransmitted, but has arrived nevertheless.
            let block = ropewalk_engine::sctp::GapBlock { start: 4, end: 4 };
            let cumulative = Serial32(before);
            let sack = Sack {
                cumulative,
                window: 1 << 20,
                gaps: ropewalk_engine::sctp::GapList::from_offsets(cumulative, [block]),
                duplicates: Vec::new(),
                data_packets: 0,
                number: None,
            };
            let tag = pair.ends[LEFT].tags().0;
            pair.inject(LEFT, 0, Packet::of(tag, Chunk::Sack(sack)));
        }
        while pair.counters(LEFT)[0].timeouts == 1 {
            pair.run_for(ms(10));
        }
        let expected = (!acknowledged).then_some(CloseReason::Unreachable);
        assert_eq!(pair.closed(LEFT), expected);
    }
}

#[test]
pub fn no_heartbeat_follows_a_shutdown_or_its_acknowledgement() {
    for end in [LEFT, RIGHT] {
        let mut pair = Pair::up(&config(2, 1 << 18), &[10, 10]);
        // The right end reaches SHUTDOWN-ACK-SENT.
        pair.script(|sent| if sent.names() == ["SHUTDOWN"] { Fate::Arrive } else { Fate::Drop });
        let now = pair.now;
        pair.ends[LEFT].shutdown(now);
        pair.drain(LEFT);
        pair.run_for(ms(50));
        let state = pair.ends[end].state();
        assert!(matches!(state, State::ShutdownSent { .. } | State::ShutdownAckSent { .. }));
        pair.log.clear();
        pair.run_for(Duration::from_secs(120));
        assert_eq!(pair.count(end, "HEARTBEAT"), 0, "end {end}");
    }
}

#[test]
fn heartbeats_of_the_path_in_use_count_against_the_association_and_others_do_not() {
    let settings = |paths| Config {
        heartbeat_interval: Duration::from_secs(2),
        ..preset_config(Preset::LiveRfc9260, paths, 1 << 18)
    };
    // 8.1: more than Association.Max.Retrans (10) consecutive errors.
    let mut pair = Pair::up(&settings(1), &[10]);
    pair.script(|_| Fate::Drop);
    pair.run_for(Duration::from_secs(1200));
    assert_eq!(pair.closed(LEFT), Some(CloseReason::Unreachable));
    assert_eq!(pair.count(LEFT, "HEARTBEAT"), 11);
    // The alternate path is dead, and the primary path idle.
    for dead in [0, 1] {
        let mut pair = Pair::up(&settings(2), &[10, 10]);
        pair.script(move |sent| if sent.path == dead { Fate::Drop } else { Fate::Arrive });
        pair.run_for(Duration::from_secs(3000));
        assert_eq!(pair.closed(LEFT), None, "path {dead} is dead");
        let asked = pair.log.iter().filter(|sent| sent.from == LEFT && sent.path == dead);
        assert!(asked.count() > 20, "path {dead} is dead, and asked all the same");
    }
}
