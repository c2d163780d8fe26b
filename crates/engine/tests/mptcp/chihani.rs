//! The behaviour of the preset `chihani2011` on scripted paths.

use ropewalk_base::Time;
use ropewalk_engine::mptcp::{Config, Event, Preset, Quirks, Reordering};
use ropewalk_engine::path::PathConfig;

use super::driver::{FULL, Fate, LEFT, Pair, RIGHT, Sent};

fn pair(paths: &[u64], reordering: Reordering) -> Pair {
    let each = vec![PathConfig::default(); paths.len()];
    let preset = Config::preset(Preset::Chihani2011, each, 1 << 20);
    let quirks = Some(Quirks { data_waits: true, ..Quirks::default() });
    let config = Config { reordering, quirks, ..preset };
    Pair::of([config.clone(), config], "round-robin", paths)
}

/// When the left end sent data on `path`, ms, and whether it was a retransmission.
fn departures(pair: &Pair, path: usize) -> Vec<(u64, bool)> {
    let data = |sent: &&Sent| sent.from == LEFT && sent.path == path && sent.is_data();
    let mut highest = 0;
    let mut each = |sent: &Sent| {
        let again = sent.segment.seq <= highest;
        highest = highest.max(sent.segment.seq);
        (sent.at.as_nanos() / 1_000_000, again)
    };
    pair.log.iter().filter(data).map(&mut each).collect()
}

#[test]
fn data_waits_until_every_subflow_is_open() {
    let mut pair = pair(&[10, 40], Reordering::None);
    pair.write(0, 40 * FULL);
    pair.run_until(1_000);
    let joined = pair.events[LEFT].iter().find(|(_, event)| matches!(event, Event::Joined(_)));
    let (joined, _) = joined.expect("the second subflow joins");
    assert!(*joined > Time::from_millis(100), "a handshake of 80 ms after one of 20 ms");
    let joined_ms = joined.as_nanos() / 1_000_000;
    for path in [0, 1] {
        assert_eq!(departures(&pair, path).first(), Some(&(joined_ms, false)), "path {path}");
    }
    pair.run_until(5_000);
    assert!(pair.has_read(40 * FULL));
}

/// Acknowledgements are lost from 1000 ms on, except one after the third timeout. It covers the segment
/// that was retransmitted and all following ones: the second of them gives the round trip.
#[test]
fn an_acknowledgement_takes_the_round_trip_of_the_first_segment_that_was_sent_once() {
    let mut pair = pair(&[20], Reordering::FRto);
    pair.write(0, 4_000 * FULL);
    let mut passed = false;
    pair.script(move |sent| {
        let loses = sent.from == RIGHT && sent.at > Time::from_millis(1_000);
        if loses && sent.at > Time::from_millis(2_200) && !passed {
            passed = true;
            return Fate::Arrive;
        }
        if loses { Fate::Drop } else { Fate::Arrive }
    });
    pair.run_until(6_000);
    let gaps = gaps_between_retransmissions(&pair);
    assert_eq!(gaps[..2], [400, 800], "expiries double 200 ms");
    // The second segment was sent at 1000 ms and is acknowledged at 2440 ms. SRTT changes from 40 ms by a
    // tenth of the difference of 1400 ms, RTTVAR from 0 by the same amount: 180 + 4 * 140 ms. The timer
    // starts with the acknowledgement, 40 ms after the third timeout.
    assert_eq!(gaps[2], 40 + 180 + 4 * 140);
}

/// Three successive segments are lost. The acknowledgement of each retransmission covers only that
/// segment.
#[test]
fn an_acknowledgement_of_nothing_but_what_was_sent_again_leaves_the_timeout_doubled() {
    let mut pair = pair(&[20], Reordering::FRto);
    pair.write(0, 4_000 * FULL);
    let mut count = 0;
    pair.script(move |sent| {
        count += u32::from(sent.from == LEFT && sent.is_data());
        let lost = sent.from == LEFT && sent.is_data() && (100..103).contains(&count);
        if lost { Fate::Drop } else { Fate::Arrive }
    });
    pair.run_until(6_000);
    assert_eq!(gaps_between_retransmissions(&pair)[..2], [40 + 400, 40 + 800]);
}

fn gaps_between_retransmissions(pair: &Pair) -> Vec<u64> {
    let again = departures(pair, 0).into_iter().filter(|(_, again)| *again);
    let again: Vec<u64> = again.map(|(at, _)| at).collect();
    again.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

#[test]
fn duplicates_open_the_window_of_f_rto_after_a_timeout() {
    let sent = |rule, losses: &'static [u32]| {
        let mut pair = pair(&[20, 20], rule);
        pair.write(0, 4_000 * FULL);
        // A segment of the first subflow is lost. Subsequent segments on both subflows wait, and are
        // answered by duplicates until the timer expires.
        let mut count = 0;
        pair.script(move |sent| {
            let counts = sent.from == LEFT && sent.path == 0 && sent.is_data();
            count += u32::from(counts);
            if counts && losses.contains(&count) { Fate::Drop } else { Fate::Arrive }
        });
        pair.run_until(2_000);
        pair.log.iter().filter(|sent| sent.is_data()).count()
    };
    let never = [sent(Reordering::TcpDoor, &[]), sent(Reordering::FRto, &[])];
    assert_eq!(never[0], never[1], "no timer has expired");
    let twice = [sent(Reordering::TcpDoor, &[30, 90]), sent(Reordering::FRto, &[30, 90])];
    assert!(twice[0] < twice[1], "those of the second loss open windows: {twice:?}");
}
