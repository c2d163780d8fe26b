//! Stream reconfiguration (RFC 6525) during random traffic over lossy paths: no message is lost, repeated
//! or on the wrong side of a reset.

use std::collections::BTreeMap;

use bytes::Bytes;
use ropewalk_base::{Seed, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::State;
use ropewalk_engine::sctp::{Config, DataFlags, Delivery, Reconfigured};

use super::reconfiguration::{OUTGOING, listed, settings};
use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, ms};

/// A message: its stream, the number of resets of the stream before it, and its position after that.
type Label = (u16, u32, u32);

/// Messages that one end has sent on its streams.
#[derive(Default)]
struct Sender {
    resets: BTreeMap<u16, u32>,
    sent: Vec<Label>,
}

impl Sender {
    fn next(&mut self, stream: u16) -> Label {
        let resets = self.resets.get(&stream).copied().unwrap_or_default();
        let is_alike = |label: &&Label| label.0 == stream && label.1 == resets;
        let label = (stream, resets, self.sent.iter().filter(is_alike).count() as u32);
        self.sent.push(label);
        label
    }
}

fn labelled(label: Label, size: u32) -> Payload {
    let mut bytes = vec![0; size.max(12) as usize];
    for (at, word) in [u32::from(label.0), label.1, label.2].into_iter().enumerate() {
        bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_be_bytes());
    }
    Payload::from(Bytes::from(bytes))
}

fn label_of(payload: &Payload) -> Label {
    let Payload::Bytes(bytes) = payload else { panic!("messages have bytes") };
    let word = |at: usize| u32::from_be_bytes(bytes[4 * at..4 * at + 4].try_into().expect("four"));
    (word(0) as u16, word(1), word(2))
}

/// Checks that the messages `end` has read agree with those the peer sent and with the announced resets.
fn check_delivery(pair: &Pair, end: usize, sender: &Sender, what: &str) {
    let mut read: Vec<Label> = pair.read[end].iter().map(|one| label_of(&one.payload)).collect();
    let ordered = pair.read[end].iter().filter(|one| !one.unordered);
    let mut last = BTreeMap::<u16, (u32, u32)>::new();
    for (stream, resets, position) in ordered.map(|one| label_of(&one.payload)) {
        let known = last.insert(stream, (resets, position));
        assert!(known.is_none_or(|known| known < (resets, position)), "{what}: order");
    }
    // At each reset, all messages sent before it have been read, and none that was sent after it.
    let mut resets = BTreeMap::<u16, u32>::new();
    for (count, event) in &pair.reconfigured[end] {
        let Reconfigured::ResetByPeer(streams) = event else { continue };
        for stream in (0..8).filter(|stream| streams.has(StreamId(*stream))) {
            let passed = resets.entry(stream).or_default();
            let before = |label: &&Label| label.0 == stream && label.1 <= *passed;
            let expected = sender.sent.iter().filter(before).count();
            assert_eq!(read[..*count].iter().filter(before).count(), expected, "{what}");
            *passed += 1;
            let after = read[..*count].iter().any(|label| label.0 == stream && label.1 >= *passed);
            assert!(!after, "{what}: a message of after came before the reset");
        }
    }
    assert_eq!(resets, sender.resets, "{what}: all resets were performed");
    let mut sent = sender.sent.clone();
    read.sort_unstable();
    sent.sort_unstable();
    assert_eq!(read, sent, "{what}: each message once");
}

/// Checks that the stream sequence numbers of a stream ascend from 0 after each reset.
fn check_numbers(pair: &Pair, end: usize, what: &str) {
    let sent = pair.log.iter().filter(|sent| sent.from == end);
    for data in sent.flat_map(Sent::data) {
        let first = data.flags.has(DataFlags::BEGIN);
        let unordered = data.flags.has(DataFlags::UNORDERED);
        if first && !unordered {
            let (_, _, position) = label_of(&data.payload);
            assert_eq!(u32::from(data.ssn.0), position, "{what}: {data:?}");
        }
    }
}

/// Random traffic in both directions over two lossy paths, with resets of random streams, or with resets
/// of the association if `renumbers`.
fn play(case: u64, renumbers: bool) {
    let mut rng = Seed::root(case).child("resets").rng();
    let base = settings();
    let interleaving = rng.chance(0.5);
    let mut pair = Pair::up(&Config { interleaving, ..base }, &[10, 10 + rng.below(60)]);
    let what = format!("case {case}, interleaving {interleaving}");
    pair.resets_tsns = renumbers;
    let (loss, late) = (rng.below(25) as f64 / 100.0, rng.below(20) as f64 / 100.0);
    let mut fates = Seed::root(case).child("fates").rng();
    pair.script(move |_| match (fates.chance(loss), fates.chance(late)) {
        (true, _) => Fate::Drop,
        (_, true) => Fate::Late(ms(fates.below(80))),
        _ if fates.chance(0.02) => Fate::Twice,
        _ => Fate::Arrive,
    });
    let mut senders = [Sender::default(), Sender::default()];
    // Without unordered messages, positions are stream sequence numbers.
    let mixes = case.is_multiple_of(2);
    for _ in 0..rng.below(150) {
        let end = rng.below(2) as usize;
        let stream = rng.below(4) as u16;
        let sender = &mut senders[end];
        if renumbers && rng.chance(0.05) {
            let _ = pair.ends[end].reset_association();
            pair.drain(end);
        } else if !renumbers && rng.chance(0.15) {
            let all = rng.chance(0.2);
            let each = if all { Vec::new() } else { vec![stream, rng.below(4) as u16] };
            if pair.ends[end].reset_streams(&listed(&each), OUTGOING).is_ok() {
                for one in (0..8).filter(|one| all || each.contains(one)) {
                    *sender.resets.entry(one).or_default() += 1;
                }
            }
            pair.drain(end);
        } else {
            let size = if rng.chance(0.2) { rng.below(9000) } else { rng.below(900) } as u32;
            let payload = labelled(sender.next(stream), size);
            let ordered = !(mixes && rng.chance(0.3));
            let delivery = Delivery { ordered, ..Delivery::RELIABLE };
            pair.try_send(end, stream, payload, delivery).expect("room");
        }
        if rng.chance(0.5) {
            pair.run_for(ms(rng.below(60)));
        }
    }
    pair.run_for(ms(3000));
    pair.heal();
    pair.run_for(ms(200_000));
    for end in [LEFT, RIGHT] {
        assert_eq!(*pair.ends[end].state(), State::Established, "{what}");
        assert!(pair.ends[end].is_flushed(), "{what}");
        check_delivery(&pair, end, &senders[1 - end], &what);
        if !mixes && !renumbers {
            check_numbers(&pair, end, &what);
        }
    }
}

#[test]
fn every_message_arrives_once_and_on_the_right_side_of_each_reset() {
    (0..300).for_each(|case| play(case, false));
}

#[test]
fn every_message_arrives_once_although_tsns_are_reset_meanwhile() {
    (0..300).for_each(|case| play(case, true));
}
