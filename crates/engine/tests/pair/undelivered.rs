//! Data that was not delivered at the end of an association (RFC 9260, 11.1.14, 11.1.15).

use std::collections::{BTreeMap, BTreeSet};

use ropewalk_base::{Seed, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::scheduler::Scheduler;
use ropewalk_engine::sctp::Config;
use ropewalk_engine::sctp::association::Undelivered;

use crate::driver::{FULL, Fate, LEFT, Pair, RIGHT, config, ms, numbered, scheduler};

/// Bytes of each message, by its label, in chunks that were sent at least once.
fn left(pair: &Pair) -> BTreeMap<u32, u32> {
    let sent = pair.log.iter().filter(|sent| sent.from == LEFT).flat_map(|sent| sent.data());
    let chunks: BTreeMap<_, _> =
        sent.map(|data| (data.tsn.0, (data.ppid, data.payload.len()))).collect();
    let mut bytes = BTreeMap::new();
    for (label, length) in chunks.into_values() {
        *bytes.entry(label).or_insert(0) += length;
    }
    bytes
}

/// Checks the remaining messages, which are labelled with their position.
fn check(pair: &Pair, messages: &[Payload]) {
    let unsent: Vec<_> = pair.ends[LEFT].unsent().collect();
    let unacknowledged: Vec<_> = pair.ends[LEFT].unacknowledged().collect();
    let (left, read) = (left(pair), &pair.read[RIGHT]);
    let read: BTreeSet<_> = read.iter().map(|message| message.ppid).collect();
    let both = [&unacknowledged, &unsent];
    let labels = |list: &Vec<Undelivered>| list.iter().map(|m| m.ppid).collect::<Vec<_>>();
    let all: Vec<_> = both.iter().flat_map(|list| labels(list)).collect();
    // Every message is accounted for: a message that is in neither list has arrived.
    for label in 0..messages.len() as u32 {
        let times = all.iter().filter(|known| **known == label).count();
        assert!(
            times == 1 || times == 0 && read.contains(&label),
            "message {label}: {times} times"
        );
    }
    for list in both {
        assert!(list.iter().map(|m| m.ppid).collect::<Vec<_>>().is_sorted());
    }
    for message in both.into_iter().flatten() {
        let whole = messages[message.ppid as usize].clone().into_bytes();
        let rest = message.payload.clone().into_bytes();
        assert!(whole.ends_with(&rest) && !rest.is_empty(), "message {}", message.ppid);
        assert_eq!(message.from_beginning, rest.len() == whole.len());
        let left = left.get(&message.ppid).copied().unwrap_or(0);
        assert_eq!(message.unsent, whole.len() as u32 - left, "message {}", message.ppid);
        assert!(message.reported <= rest.len() as u32 - message.unsent);
    }
    assert!(unsent.iter().all(|message| !left.contains_key(&message.ppid) && message.never_left()));
    assert!(unacknowledged.iter().all(|message| left.contains_key(&message.ppid)));
}

fn play(name: &str, seed: u64) -> (usize, usize, u32) {
    let mut rng = Seed::root(seed).child("undelivered").rng();
    let settings = Config { streams: 4, ..config(2, 1 << 18) };
    let mut pair = Pair::with(&settings, &settings, &[10, 60], [scheduler(name), scheduler(name)]);
    pair.connect();
    let mut losses = rng.clone();
    pair.script(move |_| if losses.unit() < 0.1 { Fate::Drop } else { Fate::Arrive });
    let mut messages = Vec::new();
    for label in 0..60 {
        let most = [20, FULL, 9000][rng.below(3) as usize];
        let payload = numbered(1 + rng.below(u64::from(most)) as u32, label);
        let stream = StreamId(rng.below(2) as u16);
        let unordered = rng.below(3) == 0;
        let sent = pair.ends[LEFT].send_with_ppid(stream, label, payload.clone(), unordered);
        sent.expect("room");
        messages.push(payload);
    }
    pair.drain(LEFT);
    pair.run_for(ms(rng.below(400)));
    check(&pair, &messages);
    pair.ends[LEFT].abort();
    pair.drain(LEFT);
    check(&pair, &messages);
    let reported = pair.ends[LEFT].unacknowledged().map(|m| m.reported).sum();
    (pair.ends[LEFT].unsent().count(), pair.ends[LEFT].unacknowledged().count(), reported)
}

#[test]
fn every_message_has_arrived_or_can_be_had_after_the_end_whatever_chose_the_paths() {
    for name in Scheduler::NAMES {
        let (mut unsent, mut unacknowledged, mut reported) = (0, 0, 0);
        for seed in 0..12 {
            let (a, b, c) = play(name, seed);
            (unsent, unacknowledged, reported) = (unsent + a, unacknowledged + b, reported + c);
        }
        assert!(unsent > 0 && unacknowledged > 0 && reported > 0, "{name}");
    }
}

#[test]
fn of_a_message_that_has_partly_arrived_the_rest_can_be_had() {
    let mut pair = Pair::up(&Config { streams: 4, ..config(1, 1 << 18) }, &[10]);
    pair.greet();
    // The first and the third of its chunks arrive, and no more are sent.
    let mut chunks = 0;
    pair.script(move |sent| {
        chunks += usize::from(sent.data().next().is_some());
        let second = sent.data().next().is_some() && chunks == 2;
        if second || chunks > 3 { Fate::Drop } else { Fate::Arrive }
    });
    let message = numbered(10 * FULL, 1);
    pair.ends[LEFT].send_with_ppid(StreamId(3), 77, message.clone(), false).expect("room");
    pair.drain(LEFT);
    pair.run_for(ms(300));
    pair.ends[LEFT].peer_is_gone();
    let sent = pair.log.iter().flat_map(|sent| sent.data()).map(|data| data.tsn.0);
    let sent = sent.collect::<BTreeSet<_>>().len() as u32;
    assert!((3..10).contains(&sent), "{sent} chunks");
    let all: Vec<_> = pair.ends[LEFT].unacknowledged().collect();
    let rest = Undelivered {
        stream: StreamId(3),
        ssn: Default::default(),
        ppid: 77,
        unordered: false,
        payload: message.slice(FULL, 9 * FULL),
        from_beginning: false,
        unsent: (10 - sent) * FULL,
        reported: FULL,
        freed: 0,
        context: 0,
    };
    assert_eq!(all, [rest]);
    assert_eq!(pair.ends[LEFT].unsent().count(), 0);
}

#[test]
fn messages_that_are_alike_are_told_one_by_one() {
    let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
    pair.script(|_| Fate::Drop);
    let sent = pair.ends[LEFT].send_repeated(StreamId(0), Payload::Length(FULL), false, 50);
    assert_eq!(sent, Ok(50));
    pair.drain(LEFT);
    pair.ends[LEFT].abort();
    let end = &pair.ends[LEFT];
    let numbers: Vec<_> = end.unacknowledged().chain(end.unsent()).map(|m| m.ssn.0).collect();
    assert_eq!(numbers, (0..50).collect::<Vec<u16>>());
    assert!(end.unsent().count() > 40);
    assert!(end.unsent().all(|m| m.payload == Payload::Length(FULL)));
}

#[test]
fn nothing_is_left_of_an_association_that_was_shut_down_in_order() {
    let mut pair = Pair::up(&config(1, 1 << 18), &[10]);
    pair.send_full(LEFT, 20);
    let now = pair.now;
    pair.ends[LEFT].shutdown(now);
    pair.drain(LEFT);
    assert!(pair.ends[LEFT].unacknowledged().count() > 0, "it is there before the end, too");
    pair.run_for(ms(5000));
    assert!(pair.closed(LEFT).is_some());
    assert_eq!(pair.ends[LEFT].unacknowledged().count() + pair.ends[LEFT].unsent().count(), 0);
}
