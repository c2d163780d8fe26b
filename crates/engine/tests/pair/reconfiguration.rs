//! Stream reconfiguration (RFC 6525): both ends as they are meant to behave.

use std::collections::BTreeMap;

use bytes::Bytes;
use ropewalk_base::{Seed, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{ResetDirection, State};
use ropewalk_engine::sctp::{
    AcceptedRequests, Chunk, Config, Delivery, ExtensionChunk, Outcome, ReconfigurationError,
    Reconfigured, Streams,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, config, ms, name};

const OUTGOING: ResetDirection = ResetDirection::Outgoing;

fn settings() -> Config {
    Config {
        reconfiguration: true,
        accepted_requests: AcceptedRequests::ALL,
        streams: 8,
        ..config(2, 1 << 18)
    }
}

fn listed(streams: &[u16]) -> Vec<StreamId> {
    streams.iter().copied().map(StreamId).collect()
}

fn streams(each: &[u16]) -> Streams {
    Streams::of(&listed(each))
}

impl Pair {
    fn reset(&mut self, end: usize, streams: &[u16]) {
        self.ends[end].reset_streams(&listed(streams), OUTGOING).expect("a request");
        self.drain(end);
    }

    fn send_text(&mut self, end: usize, stream: u16, text: &'static str) {
        self.send_on(end, stream, Payload::from(Bytes::from_static(text.as_bytes())), false);
    }

    fn reconfigured(&self, end: usize) -> Vec<Reconfigured> {
        self.reconfigured[end].iter().map(|(_, event)| event.clone()).collect()
    }
}

/// Stream and SSN of each DATA chunk that left `end`, in the order of TSNs.
fn numbers(pair: &Pair, end: usize) -> Vec<(u16, u16)> {
    let sent = pair.log.iter().filter(|sent| sent.from == end);
    let numbers = sent.flat_map(Sent::data).map(|data| (data.tsn.0, (data.stream.0, data.ssn.0)));
    numbers.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// The parameter types of each RE-CONFIG chunk that left `end`.
fn parameters(pair: &Pair, end: usize) -> Vec<Vec<u16>> {
    let chunks =
        pair.log.iter().filter(|sent| sent.from == end).flat_map(|sent| &sent.packet.chunks);
    let of_chunk = |chunk: &Chunk| match chunk {
        Chunk::Extension(one) => match &**one {
            ExtensionChunk::ReConfig(list) => Some(list.iter().map(|one| one.kind).collect()),
            _ => None,
        },
        _ => None,
    };
    chunks.filter_map(of_chunk).collect()
}

#[test]
fn streams_are_reset_if_both_ends_offer_it_and_the_peer_accepts() {
    for (ours, theirs, accepted) in
        [(true, true, true), (true, true, false), (true, false, true), (false, true, true)]
    {
        let requests = AcceptedRequests { stream_resets: accepted, ..AcceptedRequests::default() };
        let end = |on| Config { reconfiguration: on, accepted_requests: requests, ..settings() };
        let schedulers = [crate::driver::in_turn(), crate::driver::in_turn()];
        let mut pair = Pair::with(&end(ours), &end(theirs), &[10, 10], schedulers);
        pair.connect();
        let both = ours && theirs;
        assert_eq!(pair.ends.each_ref().map(|end| end.reconfigures()), [both; 2]);
        let asked = pair.ends[LEFT].reset_streams(&listed(&[1]), OUTGOING);
        pair.drain(LEFT);
        pair.run_for(ms(5000));
        if !both {
            assert_eq!(asked, Err(ReconfigurationError::NotSupported));
            assert_eq!(pair.count(LEFT, "RE-CONFIG"), 0);
            continue;
        }
        let outcome = if accepted { Outcome::Performed } else { Outcome::Denied };
        assert_eq!(pair.reconfigured(LEFT), [Reconfigured::Reset(streams(&[1]), outcome)]);
        let seen = accepted.then(|| Reconfigured::ResetByPeer(streams(&[1])));
        assert_eq!(pair.reconfigured(RIGHT), seen.into_iter().collect::<Vec<_>>());
        assert_eq!(parameters(&pair, LEFT), [[13]]);
        assert_eq!(parameters(&pair, RIGHT), [[16]]);
    }
}

#[test]
fn after_a_reset_numbers_start_over_and_other_streams_go_on() {
    let mut pair = Pair::up(&settings(), &[10, 10]);
    for stream in [1, 2, 1, 2] {
        pair.send_text(LEFT, stream, "before");
    }
    pair.reset(LEFT, &[1]);
    for stream in [1, 2, 1] {
        pair.send_text(LEFT, stream, "after");
    }
    pair.run_for(ms(1000));
    let numbers = numbers(&pair, LEFT);
    assert_eq!(numbers, [(1, 0), (2, 0), (1, 1), (2, 1), (2, 2), (1, 0), (1, 1)]);
    assert_eq!(pair.reconfigured(LEFT), [Reconfigured::Reset(streams(&[1]), Outcome::Performed)]);
    // The event comes after the messages of before, and before those of after.
    let seen = Reconfigured::ResetByPeer(streams(&[1]));
    assert_eq!(pair.reconfigured[RIGHT], [(5, seen)]);
    assert_eq!(pair.read[RIGHT].len(), 7);
}

#[test]
fn a_refused_reset_changes_no_number() {
    let accepted_requests = AcceptedRequests::default();
    let mut pair = Pair::up(&Config { accepted_requests, ..settings() }, &[10, 10]);
    pair.send_text(LEFT, 1, "before");
    pair.reset(LEFT, &[1]);
    pair.send_text(LEFT, 1, "after");
    pair.run_for(ms(1000));
    assert_eq!(numbers(&pair, LEFT), [(1, 0), (1, 1)]);
    assert_eq!(pair.read[RIGHT].len(), 2);
    assert_eq!(pair.reconfigured(LEFT), [Reconfigured::Reset(streams(&[1]), Outcome::Denied)]);
}

#[test]
fn a_reset_waits_for_the_acknowledgement_of_earlier_messages() {
    let mut pair = Pair::up(&settings(), &[10, 10]);
    pair.send_on(LEFT, 3, Payload::Length(50_000), false);
    pair.reset(LEFT, &[3]);
    pair.script(|sent| if sent.data().count() > 0 { Fate::Drop } else { Fate::Arrive });
    pair.run_for(ms(500));
    assert_eq!(pair.count(LEFT, "RE-CONFIG"), 0);
    pair.heal();
    pair.run_for(ms(20_000));
    assert_eq!(pair.count(LEFT, "RE-CONFIG"), 1);
    assert_eq!(pair.read_bytes(RIGHT), 50_000);
    assert_eq!(pair.reconfigured[RIGHT], [(1, Reconfigured::ResetByPeer(streams(&[3])))]);
}

#[test]
fn a_busy_stream_does_not_delay_the_reset_of_another() {
    let mut pair = Pair::up(&settings(), &[10, 10]);
    pair.send_on(LEFT, 1, Payload::Length(3_000_000), false);
    pair.reset(LEFT, &[1]);
    pair.reset(LEFT, &[2]);
    pair.run_for(ms(30));
    assert!(pair.read[RIGHT].is_empty(), "the long message has not arrived");
    assert_eq!(pair.reconfigured(LEFT), [Reconfigured::Reset(streams(&[2]), Outcome::Performed)]);
    pair.run_for(ms(60_000));
    assert_eq!(pair.read_bytes(RIGHT), 3_000_000);
    assert_eq!(pair.reconfigured(LEFT).len(), 2);
}

#[test]
fn resets_that_wait_share_a_request_and_a_stream_is_not_reset_twice_at_a_time() {
    let mut pair = Pair::up(&settings(), &[10, 10]);
    for stream in [1, 5, 3] {
        pair.reset(LEFT, &[stream]);
    }
    let again = pair.ends[LEFT].reset_streams(&listed(&[3]), OUTGOING);
    assert_eq!(again, Err(ReconfigurationError::InProgress));
    let all = pair.ends[LEFT].reset_streams(&[], OUTGOING);
    assert_eq!(all, Err(ReconfigurationError::InProgress));
    let absent = pair.ends[LEFT].reset_streams(&listed(&[8]), OUTGOING);
    assert_eq!(absent, Err(ReconfigurationError::NoSuchStream));
    pair.run_for(ms(1000));
    let performed = |each: &[u16]| Reconfigured::Reset(streams(each), Outcome::Performed);
    assert_eq!(pair.reconfigured(LEFT), [performed(&[1]), performed(&[3, 5])]);
    pair.ends[LEFT].reset_streams(&[], OUTGOING).expect("nothing is in progress");
    pair.drain(LEFT);
    pair.run_for(ms(1000));
    assert_eq!(pair.reconfigured(RIGHT).last(), Some(&Reconfigured::ResetByPeer(Streams::All)));
}

#[test]
fn a_lost_request_or_answer_is_sent_again_on_another_path_and_performed_once() {
    for lost_from in [LEFT, RIGHT] {
        let mut pair = Pair::up(&settings(), &[10, 10]);
        pair.send_text(LEFT, 1, "before");
        pair.run_for(ms(300));
        let mut left = 2;
        pair.script(move |sent| {
            let concerned = sent.from == lost_from && sent.names().contains(&"RE-CONFIG");
            left -= i32::from(concerned);
            if concerned && left >= 0 { Fate::Drop } else { Fate::Arrive }
        });
        pair.reset(LEFT, &[1]);
        pair.send_text(LEFT, 1, "after");
        pair.run_for(ms(20_000));
        let requests =
            pair.log.iter().filter(|s| s.from == LEFT && s.names().contains(&"RE-CONFIG"));
        let paths: Vec<usize> = requests.map(|sent| sent.path).collect();
        assert_eq!(paths, [0, 1, 0], "lost from {lost_from}");
        assert_eq!(numbers(&pair, LEFT), [(1, 0), (1, 0)]);
        assert_eq!(pair.reconfigured[RIGHT], [(1, Reconfigured::ResetByPeer(streams(&[1])))]);
        let done = Reconfigured::Reset(streams(&[1]), Outcome::Performed);
        assert_eq!(pair.reconfigured(LEFT), [done]);
    }
}

#[test]
fn a_request_that_is_never_answered_ends_the_association() {
    let settings = Config { association_max_retrans: 3, ..settings() };
    let mut pair = Pair::up(&settings, &[10, 10]);
    pair.script(|sent| if sent.from == RIGHT { Fate::Drop } else { Fate::Arrive });
    pair.reset(LEFT, &[1]);
    pair.run_for(ms(60_000));
    assert!(pair.closed(LEFT).is_some());
    assert!(pair.count(LEFT, "RE-CONFIG") >= 3, "errors of HEARTBEATs count as well");
}

#[test]
fn a_reset_that_overtakes_data_of_other_streams_is_deferred_and_performed_without_another_request()
{
    let mut pair = Pair::up(&settings(), &[10, 10]);
    pair.send_text(LEFT, 1, "before");
    pair.run_for(ms(500));
    // The request overtakes data of another stream.
    let is_data = |sent: &Sent| sent.data().next().is_some();
    pair.script(move |sent| if is_data(sent) { Fate::Late(ms(100)) } else { Fate::Arrive });
    pair.send_full(LEFT, 3);
    pair.heal();
    pair.reset(LEFT, &[1]);
    pair.send_text(LEFT, 1, "after");
    pair.run_for(ms(50));
    assert!(pair.reconfigured(RIGHT).is_empty());
    pair.run_for(ms(400));
    assert_eq!(pair.count(LEFT, "RE-CONFIG"), 1);
    assert_eq!(parameters(&pair, RIGHT), [[16], [16]], "in progress, and performed");
    assert_eq!(pair.reconfigured(RIGHT).len(), 1);
    assert_eq!(pair.reconfigured(LEFT).len(), 1);
    assert_eq!(pair.read[RIGHT].len(), 5);
}

#[test]
fn both_ends_reset_at_the_same_time() {
    let mut pair = Pair::up(&settings(), &[10, 10]);
    for end in [LEFT, RIGHT] {
        pair.send_text(end, 1, "before");
    }
    for end in [LEFT, RIGHT] {
        pair.reset(end, &[1]);
        pair.send_text(end, 1, "after");
    }
    pair.run_for(ms(1000));
    for end in [LEFT, RIGHT] {
        assert_eq!(pair.read[end].len(), 2);
        let events = pair.reconfigured(end);
        assert_eq!(events.len(), 2);
        assert!(events.contains(&Reconfigured::ResetByPeer(streams(&[1]))));
        assert!(events.contains(&Reconfigured::Reset(streams(&[1]), Outcome::Performed)));
    }
}

#[test]
fn a_shutdown_ends_resets_that_wait_and_loses_no_message() {
    let mut pair = Pair::up(&settings(), &[10, 10]);
    pair.send_on(LEFT, 1, Payload::Length(200_000), false);
    pair.reset(LEFT, &[1]);
    pair.send_text(LEFT, 1, "after");
    pair.ends[LEFT].shutdown(pair.now);
    pair.drain(LEFT);
    pair.run_for(ms(20_000));
    assert_eq!(pair.read_bytes(RIGHT), 200_005);
    assert_eq!(pair.reconfigured(LEFT), [Reconfigured::Reset(streams(&[1]), Outcome::Failed)]);
    assert!(matches!(pair.ends[LEFT].state(), State::Ended(_)));
}

/// A message: its stream, how many resets of the stream came before it, and its position after that.
type Label = (u16, u32, u32);

/// What one end has sent on its streams.
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

/// What `end` has read agrees with what the peer sent and with the resets it was told of.
fn check_delivery(pair: &Pair, end: usize, sender: &Sender, what: &str) {
    let mut read: Vec<Label> = pair.read[end].iter().map(|one| label_of(&one.payload)).collect();
    let ordered = pair.read[end].iter().filter(|one| !one.unordered);
    let mut last = BTreeMap::<u16, (u32, u32)>::new();
    for (stream, resets, position) in ordered.map(|one| label_of(&one.payload)) {
        let known = last.insert(stream, (resets, position));
        assert!(known.is_none_or(|known| known < (resets, position)), "{what}: order");
    }
    // At each reset, all that was sent before has been read, and nothing that was sent after it.
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

/// The stream sequence numbers of a stream ascend from 0 after each reset.
fn check_numbers(pair: &Pair, end: usize, what: &str) {
    let sent = pair.log.iter().filter(|sent| sent.from == end);
    for data in sent.flat_map(Sent::data) {
        let first = data.flags.has(ropewalk_engine::sctp::DataFlags::BEGIN);
        let unordered = data.flags.has(ropewalk_engine::sctp::DataFlags::UNORDERED);
        if first && !unordered {
            let (_, _, position) = label_of(&data.payload);
            assert_eq!(u32::from(data.ssn.0), position, "{what}: {data:?}");
        }
    }
}

/// Random traffic both ways over two lossy paths, with resets of random streams.
fn play(case: u64) {
    let mut rng = Seed::root(case).child("resets").rng();
    let base = settings();
    let interleaving = rng.chance(0.5);
    let mut pair = Pair::up(&Config { interleaving, ..base }, &[10, 10 + rng.below(60)]);
    let what = format!("case {case}, interleaving {interleaving}");
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
        if rng.chance(0.15) {
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
        if !mixes {
            check_numbers(&pair, end, &what);
        }
    }
}

#[test]
fn every_message_arrives_once_and_on_the_right_side_of_each_reset() {
    (0..300).for_each(play);
}

#[test]
fn no_message_is_interleaved_with_one_from_before_a_reset() {
    let settings = Config { interleaving: true, ..settings() };
    let mut pair = Pair::up(&settings, &[10, 10]);
    for unordered in [false, true] {
        pair.send_on(LEFT, 1, Payload::Length(20_000), unordered);
    }
    pair.reset(LEFT, &[1]);
    for unordered in [false, true] {
        pair.send_on(LEFT, 1, Payload::Length(10_000), unordered);
    }
    pair.run_for(ms(3000));
    let sent = pair.log.iter().filter(|sent| sent.from == LEFT);
    let first = sent.flat_map(|sent| &sent.packet.chunks).filter_map(|chunk| match chunk {
        Chunk::Data(data) if data.flags.has(ropewalk_engine::sctp::DataFlags::BEGIN) => {
            assert_eq!(name(chunk), "I-DATA");
            Some(data.message().0)
        }
        _ => None,
    });
    assert_eq!(first.collect::<Vec<_>>(), [0, 0, 0, 0]);
    assert_eq!(pair.read_bytes(RIGHT), 60_000);
}

#[test]
fn of_the_most_streams_that_there_can_be_the_last_one_is_reset() {
    for interleaving in [false, true] {
        let config = Config { streams: u16::MAX, interleaving, ..settings() };
        let mut pair = Pair::up(&config, &[10, 10]);
        for text in ["before", "after"] {
            pair.send_text(LEFT, 65_534, text);
            pair.run_for(ms(500));
            pair.reset(LEFT, &[65_534]);
            pair.run_for(ms(500));
        }
        let reset = Reconfigured::Reset(streams(&[65_534]), Outcome::Performed);
        assert_eq!(pair.reconfigured(LEFT), [reset.clone(), reset]);
        assert_eq!(pair.read[RIGHT].len(), 2);
        pair.send_text(LEFT, 65_534, "last");
        pair.run_for(ms(500));
        assert_eq!(pair.read[RIGHT].len(), 3);
    }
}
