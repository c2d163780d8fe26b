//! Stream reconfiguration (RFC 6525) between correct ends.

use std::collections::BTreeMap;

use bytes::Bytes;
use ropewalk_base::StreamId;
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{ResetDirection, State};
use ropewalk_engine::sctp::{
    AcceptedRequests, Chunk, Config, DataFlags, ExtensionChunk, Outcome, ReconfigurationError,
    Reconfigured, Streams,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, Sent, config, ms, name};

pub(super) const OUTGOING: ResetDirection = ResetDirection::Outgoing;

pub(super) fn settings() -> Config {
    Config {
        reconfiguration: true,
        accepted_requests: AcceptedRequests::ALL,
        streams: 8,
        ..config(2, 1 << 18)
    }
}

pub(super) fn listed(streams: &[u16]) -> Vec<StreamId> {
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

/// Stream and SSN of each DATA chunk of `end`, in the order of TSNs.
fn numbers(pair: &Pair, end: usize) -> Vec<(u16, u16)> {
    let sent = pair.log.iter().filter(|sent| sent.from == end);
    let numbers = sent.flat_map(Sent::data).map(|data| (data.tsn.0, (data.stream.0, data.ssn.0)));
    numbers.collect::<BTreeMap<_, _>>().into_values().collect()
}

/// The parameter types of each RE-CONFIG chunk of `end`.
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
    // The event follows the messages sent before the reset, and precedes those sent after it.
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
fn a_reset_does_not_wait_for_a_delayed_sack() {
    let mut pair = Pair::up(&settings(), &[10, 10]);
    pair.greet();
    // A single packet, whose SACK would be delayed by 200 ms.
    pair.ends[LEFT].send(StreamId(1), Payload::Length(9), false).expect("room");
    pair.reset(LEFT, &[1]);
    // A round trip for the data, and one for the request.
    pair.run_for(ms(45));
    assert_eq!(pair.reconfigured(LEFT), [Reconfigured::Reset(streams(&[1]), Outcome::Performed)]);
    let asks = |sent: &Sent| sent.data().any(|data| data.flags.has(DataFlags::IMMEDIATE));
    assert_eq!(pair.log.iter().filter(|sent| asks(sent)).count(), 1);
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
fn a_reset_of_the_association_starts_tsns_and_streams_over() {
    for interleaving in [false, true] {
        let mut pair = Pair::up(&Config { interleaving, ..settings() }, &[10, 10]);
        pair.resets_tsns = true;
        for end in [LEFT, RIGHT] {
            for stream in [0, 3] {
                pair.send_on(end, stream, Payload::Length(9000), false);
            }
        }
        pair.ends[LEFT].reset_association().expect("a request");
        let again = pair.ends[LEFT].reset_streams(&listed(&[1]), OUTGOING);
        assert_eq!(again, Err(ReconfigurationError::InProgress));
        for end in [LEFT, RIGHT] {
            pair.send_text(end, 3, "after");
        }
        pair.run_for(ms(10_000));
        let mut tsns = Vec::new();
        for (end, by_peer) in [(LEFT, false), (RIGHT, true)] {
            let [(_, Reconfigured::Association { by_peer: found, outcome, local_tsn, peer_tsn })] =
                pair.reconfigured[end][..]
            else {
                panic!("{:?}", pair.reconfigured[end]);
            };
            assert_eq!((found, outcome), (by_peer, Outcome::Performed));
            tsns.push([local_tsn, peer_tsn]);
            assert_eq!(pair.read_bytes(end), 18_005);
            assert!(pair.ends[end].is_flushed());
        }
        // Local values of one end are the peer's at the other.
        tsns[1].reverse();
        assert_eq!(tsns[0], tsns[1]);
        let of_left = pair.log.iter().filter(|sent| sent.from == LEFT).flat_map(Sent::data);
        let last: Vec<_> = of_left.map(|data| (data.tsn, data.message().0)).collect();
        assert_eq!(last.last(), Some(&(tsns[0][0], 0)));
        let jump = last[last.len() - 1].0.distance_from(last[last.len() - 2].0);
        assert_eq!(jump, i32::MIN + 1, "2^31 and the usual step of one");
    }
}

#[test]
fn both_ends_reset_the_association_at_the_same_time() {
    let mut pair = Pair::up(&settings(), &[10, 10]);
    pair.resets_tsns = true;
    for end in [LEFT, RIGHT] {
        pair.send_text(end, 1, "before");
        pair.ends[end].reset_association().expect("a request");
        pair.drain(end);
        pair.send_text(end, 1, "after");
    }
    pair.run_for(ms(30_000));
    for end in [LEFT, RIGHT] {
        assert_eq!(*pair.ends[end].state(), State::Established);
        let of_this_end = |one: &Reconfigured| {
            matches!(one, Reconfigured::Association { by_peer: false, outcome, .. }
                if *outcome == Outcome::Performed)
        };
        assert!(pair.reconfigured(end).iter().any(of_this_end), "{:?}", pair.reconfigured(end));
        assert_eq!(pair.read[end].len(), 2);
    }
}

#[test]
fn a_reset_of_the_association_that_is_denied_changes_nothing() {
    let accepted_requests = AcceptedRequests { association_resets: false, ..AcceptedRequests::ALL };
    let mut pair = Pair::up(&Config { accepted_requests, ..settings() }, &[10, 10]);
    pair.send_text(LEFT, 1, "before");
    pair.ends[LEFT].reset_association().expect("a request");
    pair.send_text(LEFT, 1, "after");
    pair.run_for(ms(3000));
    assert_eq!(numbers(&pair, LEFT), [(1, 0), (1, 1)]);
    let event = pair.reconfigured(LEFT);
    assert!(
        matches!(event[..], [Reconfigured::Association { outcome: Outcome::Denied, .. }]),
        "{event:?}"
    );
}

#[test]
fn the_peer_resets_its_streams_when_it_is_asked_to() {
    // The peer resets them at this end's request, so this end need not accept requests.
    let left = Config { accepted_requests: AcceptedRequests::default(), ..settings() };
    let schedulers = [crate::driver::in_turn(), crate::driver::in_turn()];
    let mut pair = Pair::with(&left, &settings(), &[10, 10], schedulers);
    pair.connect();
    for _ in 0..2 {
        pair.send_on(RIGHT, 2, Payload::Length(30_000), false);
        let direction = ResetDirection::Incoming;
        pair.ends[LEFT].reset_streams(&listed(&[2]), direction).expect("a request");
        pair.drain(LEFT);
        pair.run_for(ms(5000));
    }
    assert_eq!(pair.read_bytes(LEFT), 60_000);
    let seen = Reconfigured::ResetByPeer(streams(&[2]));
    assert_eq!(pair.reconfigured[LEFT], [(1, seen.clone()), (2, seen)]);
    let done = Reconfigured::Reset(streams(&[2]), Outcome::Performed);
    assert_eq!(pair.reconfigured(RIGHT), [done.clone(), done]);
    // A reset that this end has not requested is not accepted.
    pair.reset(RIGHT, &[2]);
    pair.run_for(ms(5000));
    let denied = Reconfigured::Reset(streams(&[2]), Outcome::Denied);
    assert_eq!(pair.reconfigured(RIGHT).last(), Some(&denied));
}

#[test]
fn streams_of_both_directions_are_reset_by_one_chunk() {
    let mut pair = Pair::up(&settings(), &[10, 10]);
    for end in [LEFT, RIGHT] {
        pair.send_text(end, 1, "before");
        pair.run_for(ms(300));
    }
    pair.ends[LEFT].reset_streams(&listed(&[1]), ResetDirection::Both).expect("a request");
    pair.drain(LEFT);
    pair.run_for(ms(3000));
    assert_eq!(parameters(&pair, LEFT)[0], [13, 14]);
    for end in [LEFT, RIGHT] {
        let events = pair.reconfigured(end);
        assert!(events.contains(&Reconfigured::Reset(streams(&[1]), Outcome::Performed)));
        assert!(events.contains(&Reconfigured::ResetByPeer(streams(&[1]))));
        assert_eq!(events.len(), 2);
        pair.send_text(end, 1, "after");
    }
    pair.run_for(ms(300));
    for end in [LEFT, RIGHT] {
        assert_eq!(numbers(&pair, end), [(1, 0), (1, 0)]);
        assert_eq!(pair.read[end].len(), 2);
    }
}

#[test]
fn streams_are_added_up_to_the_limit_of_the_peer() {
    let settings = Config { stream_limit: 12, ..settings() };
    let mut pair = Pair::up(&settings, &[10, 10]);
    assert_eq!(pair.ends[LEFT].add_streams(0, 0), Err(ReconfigurationError::Empty));
    let many = pair.ends[LEFT].add_streams(0, 65_535);
    assert_eq!(many, Err(ReconfigurationError::TooManyStreams));
    for (outgoing, incoming, outcome) in
        [(1, 3, Outcome::Performed), (3, 1, Outcome::Performed), (1, 1, Outcome::Denied)]
    {
        pair.reconfigured = [Vec::new(), Vec::new()];
        let before = [LEFT, RIGHT].map(|end| pair.ends[end].outbound_streams());
        pair.ends[LEFT].add_streams(outgoing, incoming).expect("a request");
        pair.drain(LEFT);
        pair.run_for(ms(3000));
        let added = outcome == Outcome::Performed;
        let after = [before[LEFT] + outgoing, before[RIGHT] + incoming];
        for (end, other) in [(LEFT, RIGHT), (RIGHT, LEFT)] {
            let expected = if added { after[end] } else { before[end] };
            assert_eq!(pair.ends[end].outbound_streams(), expected);
            assert_eq!(pair.ends[other].inbound_streams(), expected);
        }
        let events = pair.reconfigured(LEFT);
        let one = Reconfigured::StreamsAdded { outgoing, incoming: 0, outcome };
        let other = Reconfigured::StreamsAdded { outgoing: 0, incoming, outcome };
        assert!(events.contains(&one) && events.contains(&other), "{events:?}");
        assert_eq!(pair.reconfigured(RIGHT).len(), if added { 2 } else { 0 });
    }
    pair.send_text(LEFT, 11, "the last");
    pair.send_text(RIGHT, 11, "the last");
    pair.run_for(ms(300));
    assert_eq!([pair.read[LEFT].len(), pair.read[RIGHT].len()], [1, 1]);
    let beyond = pair.ends[LEFT].send(StreamId(12), Payload::Length(9), false);
    assert!(beyond.is_err());
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
        Chunk::Data(data) if data.flags.has(DataFlags::BEGIN) => {
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
