//! Messages that overtake others, messages that wait for all others, and messages that are sent twice.

use ropewalk_base::{Duration, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::{Config, Copies, Delivery, Urgency};

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, Sent, config, ms, numbered};

fn with(urgency: Urgency) -> Delivery {
    Delivery { urgency, ..Delivery::datagram(Duration::from_secs(5)) }
}

fn paths_of(pair: &Pair, salt: u32) -> Vec<usize> {
    let of = |s: &&Sent| s.data().any(|data| data.payload == numbered(200, salt));
    pair.log.iter().filter(of).map(|s| s.path).collect()
}

/// When the right end read the message, ms after `begun`.
fn read_after(pair: &Pair, begun: ropewalk_base::Time, salt: u32) -> Option<u64> {
    let at = pair.read[RIGHT].iter().position(|m| m.payload == numbered(200, salt))?;
    Some(pair.read_at[RIGHT][at].since(begun).as_nanos() / 1_000_000)
}

/// Two paths with full windows and a long queue.
fn busy(delays: &[u64]) -> Pair {
    let settings = Config { initial_window: Some(10 * 1468), ..config(delays.len(), 1 << 20) };
    let mut pair = Pair::up(&settings, delays);
    pair.greet();
    for _ in 0..100 {
        pair.queue(LEFT, 0, Payload::Length(FULL), true);
    }
    pair.drain(LEFT);
    pair
}

#[test]
fn an_interactive_message_overtakes_the_queue_on_the_path_on_which_it_arrives_first() {
    for delays in [[10, 200], [200, 10]] {
        let mut pair = busy(&delays);
        let begun = pair.now;
        for salt in [1, 2, 3] {
            let (payload, delivery) = (numbered(200, salt), with(Urgency::Interactive));
            let sent = pair.ends[LEFT].send_message(begun, StreamId(0), 0, payload, delivery);
            sent.expect("room");
        }
        pair.drain(LEFT);
        pair.run_for(Duration::from_secs(3));
        let quick = usize::from(delays[0] > delays[1]);
        for salt in [1, 2, 3] {
            assert_eq!(paths_of(&pair, salt), [quick], "{delays:?}");
            let took = read_after(&pair, begun, salt).expect("it arrived");
            assert!(took <= 35, "{took} ms: the first acknowledgement and the way there");
        }
        assert_eq!(pair.read[RIGHT].len(), 103);
        let together = |s: &Sent| s.data().filter(|data| data.payload.len() == 200).count() == 3;
        assert!(pair.log.iter().any(together), "in one packet");
    }
}

#[test]
fn an_interactive_message_waits_for_the_fragments_of_a_message_and_may_be_one_that_overtakes_none()
{
    let settings = Config { initial_window: Some(2 * 1468), ..config(1, 1 << 20) };
    let mut pair = Pair::up(&settings, &[10]);
    pair.send_on(LEFT, 0, numbered(9 * FULL, 7), false);
    pair.send_message(LEFT, numbered(200, 1), with(Urgency::Interactive));
    // It is ordered, so it is sent in the order of its stream.
    let ordered = Delivery { ordered: true, ..with(Urgency::Interactive) };
    pair.send_message(LEFT, numbered(200, 2), ordered);
    pair.send_message(LEFT, numbered(2 * FULL, 3), with(Urgency::Interactive));
    pair.run_for(Duration::from_secs(3));
    let read: Vec<u32> = pair.read[RIGHT].iter().map(|m| m.payload.len()).collect();
    assert_eq!(read, [9 * FULL, 200, 200, 2 * FULL]);
    assert!(pair.ends[LEFT].is_flushed());
}

#[test]
fn a_message_for_the_first_open_path_waits_for_no_quicker_path_and_for_no_queue() {
    for delays in [[10, 200], [200, 10]] {
        let mut pair = Pair::up(&config(2, 1 << 20), &delays);
        pair.greet();
        let quick = usize::from(delays[0] > delays[1]);
        // More than the capacity of both windows.
        for salt in 0..60 {
            pair.send_message(LEFT, numbered(FULL, salt), with(Urgency::FirstOpen));
        }
        pair.send_message(LEFT, numbered(200, 60), with(Urgency::Interactive));
        let full = |s: &&Sent| s.data().any(|data| data.payload.len() == FULL);
        let paths: Vec<usize> = pair.log.iter().filter(full).map(|s| s.path).collect();
        let first = paths.iter().take_while(|path| **path == quick).count();
        assert!(first > 2 && paths[first..].iter().all(|path| *path != quick), "{paths:?}");
        assert!(paths.len() > first + 2 && paths.len() < 60, "{paths:?}");
        pair.run_for(Duration::from_secs(5));
        assert_eq!(pair.read[RIGHT].len(), 61, "{delays:?}");
        assert!(pair.ends[LEFT].is_flushed());
    }
}

#[test]
fn a_background_message_waits_until_nothing_else_is_queued() {
    let mut pair = busy(&[10]);
    pair.send_message(LEFT, numbered(200, 1), with(Urgency::Background));
    pair.send_message(LEFT, numbered(200, 2), with(Urgency::Background));
    pair.send_message(LEFT, numbered(200, 3), with(Urgency::Bulk));
    pair.run_for(Duration::from_secs(3));
    let last: Vec<_> = pair.read[RIGHT][100..].iter().map(|m| m.payload.clone()).collect();
    assert_eq!(last, [3, 1, 2].map(|salt| numbered(200, salt)));
    assert!(pair.ends[LEFT].is_flushed());
}

#[test]
fn background_and_interactive_messages_expire_too() {
    let mut pair = Pair::new(&config(1, 1 << 20), &[10]);
    pair.script(|_| Fate::Drop);
    let all = [Urgency::Interactive, Urgency::FirstOpen, Urgency::Bulk, Urgency::Background];
    for urgency in all {
        let delivery = Delivery { urgency, ..Delivery::datagram(ms(50)) };
        pair.send_message(LEFT, numbered(200, 1), delivery);
        assert_eq!(pair.ends[LEFT].unsent().count(), 1);
        pair.run_for(ms(60));
        assert_eq!(pair.ends[LEFT].unsent().count(), 0);
    }
    assert_eq!(pair.ends[LEFT].sender_stats().abandoned, 4);
}

#[test]
fn two_copies_take_two_paths_and_one_is_delivered() {
    for urgency in [Urgency::Interactive, Urgency::Bulk] {
        for lost in [None, Some(0), Some(1)] {
            let mut pair = Pair::up(&config(3, 1 << 20), &[10, 30, 90]);
            pair.greet();
            pair.script(move |sent| {
                let copy = sent.data().any(|data| data.payload == numbered(200, 1));
                if copy && Some(sent.path) == lost { Fate::Drop } else { Fate::Arrive }
            });
            let delivery = Delivery { copies: Copies::Two, ..with(urgency) };
            let begun = pair.now;
            pair.send_message(LEFT, numbered(200, 1), delivery);
            pair.run_for(Duration::from_secs(3));
            let paths = paths_of(&pair, 1);
            assert!(paths.contains(&0) && paths.contains(&1), "{urgency:?} {lost:?}: {paths:?}");
            assert!(paths.len() == 2 || lost.is_some(), "{urgency:?} {lost:?}: {paths:?}");
            assert_eq!(pair.read[RIGHT].len(), 1);
            let took = read_after(&pair, begun, 1).expect("it arrived");
            assert!(took <= if lost == Some(0) { 30 } else { 10 }, "{took} ms");
            assert!(pair.ends[LEFT].is_flushed());
        }
    }
}

#[test]
fn second_copies_wait_for_a_path_beside_a_busy_queue_and_are_no_sign_of_spurious_retransmissions() {
    let mut pair = busy(&[10, 12]);
    for salt in 1..40 {
        let delivery = Delivery { copies: Copies::Two, ..with(Urgency::Interactive) };
        pair.send_message(LEFT, numbered(200, salt), delivery);
        pair.run_for(ms(2));
    }
    pair.run_for(Duration::from_secs(3));
    for salt in 1..40 {
        let mut paths = paths_of(&pair, salt);
        paths.sort_unstable();
        assert_eq!(paths, [0, 1], "message {salt}");
    }
    assert_eq!(pair.read[RIGHT].len(), 139);
    let undone: u64 = pair.counters(LEFT).iter().map(|path| path.undone).sum();
    let losses: u64 = pair.counters(LEFT).iter().map(|path| path.lost).sum();
    assert_eq!((undone, losses), (0, 0));
}

#[test]
fn with_one_path_there_is_one_copy() {
    let mut pair = Pair::up(&config(1, 1 << 20), &[10]);
    pair.greet();
    let delivery = Delivery { copies: Copies::Two, ..with(Urgency::Interactive) };
    pair.send_message(LEFT, numbered(200, 1), delivery);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(paths_of(&pair, 1), [0]);
    assert!(pair.ends[LEFT].is_flushed());
}

#[test]
fn an_interactive_message_that_does_not_fit_the_peers_window_gets_through_by_probes() {
    let mut pair = Pair::up(&config(1, 8 * 1468), &[10]);
    pair.reads[RIGHT] = false;
    for _ in 0..20 {
        pair.queue(LEFT, 0, Payload::Length(FULL), true);
    }
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(2));
    let reliable = Delivery { urgency: Urgency::Interactive, ordered: false, ..Delivery::RELIABLE };
    pair.send_message(LEFT, numbered(200, 1), reliable);
    pair.run_for(Duration::from_secs(2));
    pair.reads[RIGHT] = true;
    pair.drain(RIGHT);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.read[RIGHT].len(), 21);
    assert!(pair.ends[LEFT].is_flushed());
}
