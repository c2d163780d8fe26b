//! T3 and fast recovery by TSNs, as in RFC 9260 for one path at a time (6.1, 6.3.2, 7.2.1, 7.2.4): the
//! profile `rfc9260` towards a peer without CMT.

use ropewalk_base::Time;
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::{Config, Preset};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, Sent, ms, preset_config};

/// A sender of the profile during a bulk transfer.
fn sending(window: u64) -> Pair {
    let settings = Config {
        initial_window: Some(window),
        max_burst: 0,
        send_buffer: 1 << 30,
        ..preset_config(Preset::LiveRfc9260, 1, 1 << 24)
    };
    let mut pair = Pair::up(&settings, &[25]);
    for _ in 0..4000 {
        pair.queue(LEFT, 0, Payload::Length(FULL), false);
    }
    pair
}

fn has(sent: &Sent, tsn: u32) -> bool {
    sent.from == LEFT && sent.data().any(|data| data.tsn.0 == tsn)
}

/// The TSN of the first chunk.
fn first_tsn(pair: &Pair) -> u32 {
    pair.ends[RIGHT].peer_initial_tsn().expect("it is up").0
}

/// Times at which chunk `tsn` was sent.
fn times(pair: &Pair, tsn: u32) -> Vec<Time> {
    pair.log.iter().filter(|sent| has(sent, tsn)).map(|sent| sent.at).collect()
}

#[test]
fn a_fast_retransmission_that_is_lost_too_waits_for_one_timeout_whatever_is_acknowledged_behind_it()
{
    let mut pair = sending(40_000);
    let tsn = first_tsn(&pair);
    let mut lost = 0;
    pair.script(move |sent| {
        let hit = has(sent, tsn) && lost < 2;
        lost += u32::from(hit);
        if hit { Fate::Drop } else { Fate::Arrive }
    });
    pair.drain(LEFT);
    pair.run_for(ms(5000));
    let times = times(&pair, tsn);
    assert_eq!(times.len(), 3, "{times:?}");
    assert!(times[1].since(times[0]) < ms(100), "three reports: {times:?}");
    assert_eq!(times[2].since(times[1]), ms(1000), "RTO.Min after it was sent again: {times:?}");
    // New chunks were sent and acknowledged throughout.
    let between = pair.log.iter().filter(|s| s.from == LEFT && s.at > times[1] && s.at < times[2]);
    assert!(between.count() > 100);
}

#[test]
fn the_window_stays_as_it_is_until_all_is_acknowledged_that_was_outstanding_at_the_loss() {
    let mut pair = sending(60_000);
    let tsn = first_tsn(&pair);
    let (mut count, mut late) = (0, 0);
    // The first chunk is lost, and its retransmission arrives late. More are lost in the meantime.
    pair.script(move |sent| {
        if sent.from != LEFT {
            return Fate::Arrive;
        }
        count += 1;
        if has(sent, tsn) {
            late += 1;
            return if late == 1 { Fate::Drop } else { Fate::Late(ms(600)) };
        }
        if count == 60 || count == 90 { Fate::Drop } else { Fate::Arrive }
    });
    pair.drain(LEFT);
    let (mut windows, mut again) = (Vec::new(), None);
    for _ in 0..650 {
        pair.run_for(ms(1));
        again = again.or_else(|| times(&pair, tsn).get(1).copied());
        if again.is_some() {
            windows.push(pair.view(LEFT, 0).cwnd);
        }
    }
    assert!(windows.len() > 500);
    assert!(windows.iter().all(|window| *window == windows[0]), "{windows:?}");
    assert_eq!(windows[0], 30_000, "halved once");
    assert_eq!(pair.counters(LEFT)[0].fast_retransmits, 1);
    // Then it grows again.
    pair.run_for(ms(2000));
    assert!(pair.view(LEFT, 0).cwnd > windows[0]);
    assert_eq!(pair.counters(LEFT)[0].timeouts, 0);
}

#[test]
fn t3_runs_from_the_lowest_chunk_in_flight_and_stops_with_the_last_one() {
    let mut pair = sending(12_000);
    let tsn = first_tsn(&pair);
    // Only the SACK of the first chunk arrives, half a second later.
    pair.script(move |sent| match sent.from {
        LEFT if has(sent, tsn) => Fate::Late(ms(475)),
        LEFT => Fate::Drop,
        _ => Fate::Arrive,
    });
    let began = pair.now;
    pair.drain(LEFT);
    pair.run_for(ms(2050));
    assert_eq!(pair.counters(LEFT)[0].timeouts, 0, "the SACK restarted it");
    pair.run_for(ms(200));
    assert_eq!(pair.counters(LEFT)[0].timeouts, 1);
    // The lowest unacknowledged chunk is retransmitted first: 25 + 475 + 25 ms, and a timeout of three
    // such round trips.
    let second = times(&pair, tsn.wrapping_add(1));
    assert_eq!(second[1].since(began), ms(525 + 3 * 525), "{second:?}");
}

#[test]
fn a_report_of_later_chunks_leaves_t3_as_it_is() {
    let settings = preset_config(Preset::LiveRfc9260, 1, 1 << 24);
    let mut pair = Pair::up(&settings, &[25]);
    pair.greet();
    let mut lost = false;
    pair.script(move |sent| {
        let hit = sent.from == LEFT && sent.data().next().is_some() && !lost;
        lost |= hit;
        if hit { Fate::Drop } else { Fate::Arrive }
    });
    // Two reports do not cause a fast retransmit.
    let began = pair.now;
    pair.send_full(LEFT, 2);
    pair.run_for(ms(3000));
    assert_eq!(pair.log.iter().filter(|s| s.sack().is_some()).count(), 2, "of the gap, and of all");
    let first = pair.log.iter().flat_map(|s| s.data()).next().expect("DATA").tsn.0;
    let times: Vec<_> = times(&pair, first).iter().map(|at| at.since(began)).collect();
    assert_eq!(times, [ms(0), ms(1000)]);
}
