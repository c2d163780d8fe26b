//! Shutting down and aborting (RFC 9260, 9).

use ropewalk_base::{Duration, Seed, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{CloseReason, SendError, State};
use ropewalk_engine::sctp::{AbortCause, Config};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, config, ms};

fn shut_down(pair: &mut Pair, end: usize) {
    let now = pair.now;
    pair.ends[end].shutdown(now);
    pair.drain(end);
}

#[test]
pub fn three_packets_end_an_association_after_its_data() {
    for (bytes, back) in [(0, 0), (50_000, 0), (50_000, 70_000)] {
        let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
        if bytes > 0 {
            pair.send(LEFT, bytes);
        }
        if back > 0 {
            pair.send(RIGHT, back);
        }
        shut_down(&mut pair, LEFT);
        let refused = pair.ends[LEFT].send(StreamId(0), Payload::Length(1), false);
        assert_eq!(refused, Err(SendError::Closing));
        pair.run_for(ms(3000));
        assert_eq!(pair.read_bytes(RIGHT), u64::from(bytes));
        assert_eq!(pair.read_bytes(LEFT), u64::from(back));
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.closed(end), Some(CloseReason::Shutdown), "{bytes} B and {back} B");
            assert_eq!(pair.ends[end].next_deadline(), None);
        }
        if back == 0 {
            let names = ["SHUTDOWN", "SHUTDOWN ACK", "SHUTDOWN COMPLETE"];
            let last: Vec<_> = pair.log.iter().rev().take(3).map(|s| s.names()[0]).collect();
            assert_eq!(last, [names[2], names[1], names[0]]);
        }
    }
}

#[test]
pub fn any_lost_packet_of_the_shutdown_is_made_good() {
    for chunk in ["SHUTDOWN", "SHUTDOWN ACK", "SHUTDOWN COMPLETE"] {
        for times in [1, 3] {
            let mut pair = Pair::up(&config(2, 1 << 18), &[10, 30]);
            let mut left = times;
            pair.script(move |sent| {
                let hit = left > 0 && sent.names().contains(&chunk);
                left -= u32::from(hit);
                if hit { Fate::Drop } else { Fate::Arrive }
            });
            pair.send(LEFT, 5000);
            shut_down(&mut pair, LEFT);
            pair.run_for(Duration::from_secs(30));
            for end in [LEFT, RIGHT] {
                let reason = pair.closed(end);
                assert_eq!(
                    reason,
                    Some(CloseReason::Shutdown),
                    "{chunk} lost {times} times, {end}"
                );
            }
            assert_eq!(pair.read_bytes(RIGHT), 5000);
        }
    }
}

#[test]
pub fn ends_that_shut_down_at_once_both_end_well_whatever_is_lost() {
    for lost in ["", "SHUTDOWN", "SHUTDOWN ACK", "SHUTDOWN COMPLETE"] {
        let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
        let mut once = true;
        pair.script(move |sent| {
            let hit = sent.names().contains(&lost) && std::mem::take(&mut once);
            if hit { Fate::Drop } else { Fate::Arrive }
        });
        pair.send(LEFT, 3000);
        pair.send(RIGHT, 3000);
        shut_down(&mut pair, LEFT);
        shut_down(&mut pair, RIGHT);
        pair.run_for(Duration::from_secs(30));
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.closed(end), Some(CloseReason::Shutdown), "lost {lost:?}, end {end}");
            assert_eq!(pair.read_bytes(end), 3000);
        }
    }
}

#[test]
pub fn a_peer_that_has_much_to_flush_is_waited_for() {
    // 400 kB at one chunk per 210 ms take longer than all attempts of T2 together.
    let mut settings = config(1, 3000);
    settings.send_buffer = 1 << 20;
    let mut pair = Pair::up(&settings, &[5]);
    for _ in 0..280 {
        pair.queue(RIGHT, 0, Payload::Length(1400), false);
    }
    pair.delays[0] = ms(400);
    pair.drain(RIGHT);
    shut_down(&mut pair, LEFT);
    pair.run_for(Duration::from_secs(280));
    assert_eq!(pair.read[LEFT].len(), 280);
    for end in [LEFT, RIGHT] {
        assert_eq!(pair.closed(end), Some(CloseReason::Shutdown), "end {end}");
    }
}

/// RFC 9260, 9.2: each packet with DATA is answered immediately with a SHUTDOWN, and with a SACK as well
/// if there are gaps or duplicates. One packet holds both.
#[test]
pub fn data_in_shutdown_sent_is_answered_by_one_packet_with_shutdown_and_sack() {
    for case in 0..100 {
        let mut rng = Seed::root(case).child("late data").rng();
        let paths = 1 + rng.below(2) as usize;
        let settings = Config { initial_window: Some(1 << 16), ..config(paths, 1 << 18) };
        let mut pair = Pair::up(&settings, &[10, 30][..paths]);
        pair.script(|_| Fate::Drop);
        shut_down(&mut pair, LEFT);
        for _ in 0..20 {
            pair.queue(RIGHT, 0, Payload::Length(1400), false);
        }
        pair.drain(RIGHT);
        let is_data = |sent: &&Sent| sent.from == RIGHT && sent.data().next().is_some();
        let data: Vec<Sent> = pair.log.iter().filter(is_data).cloned().collect();
        assert!(data.len() > 3, "case {case}");
        // With gaps, duplicates and reordering.
        for _ in 0..3 * data.len() {
            let sent = &data[rng.below(data.len() as u64) as usize];
            let before = pair.log.len();
            pair.inject(LEFT, sent.path, sent.packet.clone());
            let answers: Vec<_> = pair.log[before..].iter().map(Sent::names).collect();
            assert_eq!(answers, [["SHUTDOWN", "SACK"]], "case {case}");
        }
        // No SACK is left for later.
        let before = pair.log.len();
        pair.run_for(ms(900));
        let late = pair.log[before..].iter().filter(|sent| sent.from == LEFT);
        assert!(late.clone().all(|sent| sent.names() == ["SHUTDOWN"]), "case {case}");
    }
}

#[test]
pub fn a_shutdown_that_nobody_answers_ends_too() {
    let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
    pair.script(|_| Fate::Drop);
    shut_down(&mut pair, LEFT);
    pair.run_for(Duration::from_secs(900));
    assert!(matches!(pair.ends[LEFT].state(), State::Ended(_)));
    assert_eq!(pair.ends[LEFT].next_deadline(), None);
}

#[test]
pub fn an_abort_tells_the_peer_and_leaves_nothing_behind() {
    let mut pair = Pair::up(&config(2, 1 << 18), &[10, 30]);
    pair.send(LEFT, 50_000);
    pair.ends[LEFT].abort();
    pair.drain(LEFT);
    pair.run_for(ms(100));
    assert_eq!(pair.closed(LEFT), Some(CloseReason::Aborted(AbortCause::User)));
    assert_eq!(pair.closed(RIGHT), Some(CloseReason::AbortedByPeer(AbortCause::User)));
    let sent = pair.log.len();
    pair.run_for(Duration::from_secs(100));
    assert_eq!(pair.log.len(), sent, "nothing more is sent");
    assert_eq!(pair.ends[RIGHT].next_deadline(), None);
    // Data that arrived before can still be read.
    pair.drain(RIGHT);
}

#[test]
fn shutting_down_before_the_association_is_up_ends_it() {
    let mut pair = Pair::new(&config(1, 1 << 18), &[10]);
    pair.run_for(ms(5));
    shut_down(&mut pair, LEFT);
    assert!(matches!(pair.closed(LEFT), Some(CloseReason::Aborted(_))));
    pair.run_for(Duration::from_secs(10));
    assert_eq!(*pair.ends[RIGHT].state(), State::Closed);
}

#[test]
fn an_ended_association_answers_an_old_cookie_with_nothing() {
    let mut pair = Pair::new(&config(1, 1 << 18), &[10]);
    pair.run_for(ms(100));
    let echo = pair.log[2].packet.clone();
    shut_down(&mut pair, LEFT);
    pair.run_for(ms(200));
    let sent = pair.log.len();
    pair.inject(RIGHT, 0, echo);
    assert_eq!(pair.log.len(), sent);
}
