//! RE-CONFIG of a peer after its negotiation (no. 57).

use ropewalk_base::{Serial32, StreamId};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{ResetDirection, State};
use ropewalk_engine::sctp::{
    AcceptedRequests, Chunk, Config, ExtensionChunk, Outcome, Packet, Reconfigured, Streams,
};

use super::kit::{Victim, WHOLE, chunk, data, heartbeat, live, names, parameter, sack};
use crate::driver::{LEFT, Pair, RIGHT, ms};

const RE_CONFIG: u8 = 0x82;

/// Result codes (RFC 6525, 4.4), independent of the codec.
const NOTHING: u32 = 0;
const PERFORMED: u32 = 1;
const DENIED: u32 = 2;
const WRONG_STREAM: u32 = 3;
const ALREADY: u32 = 4;
const BAD_NUMBER: u32 = 5;
const IN_PROGRESS: u32 = 6;

fn victim_with(accepted_requests: AcceptedRequests, interleaving: bool) -> Victim {
    let config = Config {
        reconfiguration: true,
        accepted_requests,
        interleaving,
        streams: 8,
        stream_limit: 20,
        ..live(2, 1 << 16)
    };
    Victim::of(Pair::up(&config, &[10, 30]))
}

fn victim() -> Victim {
    victim_with(AcceptedRequests::ALL, false)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn list(streams: &[u16]) -> Vec<u8> {
    streams.iter().flat_map(|stream| stream.to_be_bytes()).collect()
}

fn reset_outgoing(number: Serial32, last_tsn: Serial32, streams: &[u16]) -> Vec<u8> {
    parameter(13, &[words(&[number.0, 0, last_tsn.0]), list(streams)].concat())
}

fn reset_incoming(number: Serial32, streams: &[u16]) -> Vec<u8> {
    parameter(14, &[words(&[number.0]), list(streams)].concat())
}

fn re_config(parameters: &[Vec<u8>]) -> Vec<u8> {
    chunk(RE_CONFIG, 0, &parameters.concat())
}

/// Number and result of each response.
fn results(packets: &[Packet]) -> Vec<(u32, u32)> {
    let chunks = packets.iter().flat_map(|packet| &packet.chunks);
    let lists = chunks.filter_map(|chunk| match chunk {
        Chunk::Extension(one) => match &**one {
            ExtensionChunk::ReConfig(list) => Some(list),
            _ => None,
        },
        _ => None,
    });
    let word = |value: &[u8]| u32::from_be_bytes(value[..4].try_into().expect("four"));
    let responses = lists.flatten().filter(|one| one.kind == 16);
    responses.map(|one| (word(&one.value), word(&one.value[4..]))).collect()
}

impl Victim {
    /// The first sequence number of the left end's requests: its initial TSN.
    fn number(&self) -> Serial32 {
        self.first_tsn(LEFT)
    }

    /// The result of a request to the right end.
    fn ask(&mut self, request: Vec<u8>) -> Vec<u32> {
        let answer = self.hit(RIGHT, &[re_config(&[request])]);
        results(&answer).into_iter().map(|(_, code)| code).collect()
    }

    fn events(&self) -> Vec<Reconfigured> {
        self.pair.reconfigured[RIGHT].iter().map(|(_, event)| event.clone()).collect()
    }
}

#[test]
fn malformed_and_forbidden_parameters_are_reported_and_change_nothing() {
    let number = victim().number();
    let good = reset_outgoing(number, number, &[]);
    let bodies: Vec<Vec<u8>> = vec![
        Vec::new(),
        parameter(13, &words(&[number.0, 0])),
        parameter(13, &[words(&[number.0, 0, number.0]), vec![1]].concat()),
        parameter(14, &[]),
        parameter(14, &[words(&[number.0]), vec![0, 1, 2]].concat()),
        parameter(15, &words(&[number.0, 1])),
        parameter(16, &words(&[number.0])),
        parameter(16, &words(&[number.0, 1, 2])),
        parameter(17, &words(&[number.0])),
        parameter(18, &words(&[number.0, 1, 1])),
        parameter(0x8001, &words(&[number.0])),
        [good.clone(), good.clone()].concat(),
        [good.clone(), parameter(15, &words(&[number.0.wrapping_add(1)]))].concat(),
        [good.clone(), parameter(17, &words(&[number.0.wrapping_add(1), 1 << 16]))].concat(),
        vec![good.clone(); 60].concat(),
    ];
    for body in bodies {
        let mut victim = victim();
        let what = format!("{:?}", &body[..body.len().min(24)]);
        let answer = victim.hit(RIGHT, &[chunk(RE_CONFIG, 0, &body), heartbeat(b"beside")]);
        assert_eq!(names(&answer), ["ERROR", "HEARTBEAT ACK"], "{what}");
        assert!(victim.events().is_empty(), "{what}");
        // The number was not used up.
        assert_eq!(victim.ask(good.clone()), [IN_PROGRESS], "{what}");
    }
    let mut victim = victim();
    let cut = [vec![0, 13, 0, 3], vec![0, 13, 0, 99, 1], vec![good; 70].concat()];
    for body in cut {
        let chunks = [chunk(RE_CONFIG, 0, &body), heartbeat(b"beside")];
        assert!(victim.hit(RIGHT, &chunks).is_empty(), "the packet contradicts itself");
    }
}

#[test]
fn what_the_user_does_not_accept_is_denied() {
    let none = AcceptedRequests::default();
    let number = victim().number();
    let one = 1 << 16;
    for (request, only) in [
        (reset_outgoing(number, number.plus(u32::MAX), &[]), &|a: &AcceptedRequests| {
            a.stream_resets
        }),
        (reset_incoming(number, &[]), &|a: &AcceptedRequests| a.stream_resets),
        (parameter(15, &words(&[number.0])), &|a: &AcceptedRequests| a.association_resets),
        (parameter(17, &words(&[number.0, one])), &|a: &AcceptedRequests| a.more_streams),
        (parameter(18, &words(&[number.0, one])), &|a: &AcceptedRequests| a.more_streams),
    ] as [(Vec<u8>, &dyn Fn(&AcceptedRequests) -> bool); 5]
    {
        for accepted in [
            none,
            AcceptedRequests { stream_resets: true, ..none },
            AcceptedRequests { association_resets: true, ..none },
            AcceptedRequests { more_streams: true, ..none },
        ] {
            let mut victim = victim_with(accepted, false);
            let results = victim.ask(request.clone());
            assert_eq!(results == [DENIED], !only(&accepted), "{request:?}, {accepted:?}");
            if !only(&accepted) {
                assert!(victim.events().is_empty());
                // A repetition gets the same answer.
                assert_eq!(victim.ask(request.clone()), [DENIED]);
            }
        }
    }
}

#[test]
fn wrong_numbers_are_refused_and_repetitions_get_the_same_answer_and_no_second_reset() {
    let mut victim = victim();
    let number = victim.number();
    let before = number.plus(u32::MAX);
    for wrong in [1, 2, u32::MAX, 1 << 31, (1 << 31) - 1] {
        assert_eq!(victim.ask(reset_outgoing(number.plus(wrong), before, &[1])), [BAD_NUMBER]);
    }
    for at in 0..5 {
        let request = reset_outgoing(number.plus(at), before, &[1]);
        for _ in 0..3 {
            assert_eq!(victim.ask(request.clone()), [PERFORMED]);
        }
        // The same number with another content.
        assert_eq!(victim.ask(reset_outgoing(number.plus(at), before, &[2])), [PERFORMED]);
        assert_eq!(victim.ask(parameter(15, &words(&[number.plus(at).0]))), [PERFORMED]);
        if at >= 2 {
            let old = reset_outgoing(number.plus(at - 2), before, &[1]);
            assert_eq!(victim.ask(old), [BAD_NUMBER], "only the last two are known");
        }
    }
    assert_eq!(victim.events(), vec![Reconfigured::ResetByPeer(Streams::of(&[StreamId(1)])); 5]);
}

#[test]
fn absent_streams_are_refused_and_a_list_is_limited_by_a_packet() {
    let mut victim = victim();
    let number = victim.number();
    let before = number.plus(u32::MAX);
    let mut at = 0;
    let mut next = || {
        at += 1;
        number.plus(at - 1)
    };
    assert_eq!(victim.ask(reset_outgoing(next(), before, &[7, 8])), [WRONG_STREAM]);
    assert_eq!(victim.ask(reset_outgoing(next(), before, &[u16::MAX])), [WRONG_STREAM]);
    assert_eq!(victim.ask(reset_incoming(next(), &[8])), [WRONG_STREAM]);
    // Stream 3 a thousand times is stream 3.
    assert_eq!(victim.ask(reset_outgoing(next(), before, &[3; 1000])), [PERFORMED]);
    assert_eq!(victim.events(), [Reconfigured::ResetByPeer(Streams::of(&[StreamId(3)]))]);
    // The maximum number of streams: the answer, which repeats the list, would exceed a packet.
    assert_eq!(victim.ask(parameter(17, &words(&[next().0, 13 << 16]))), [DENIED], "too many");
    assert_eq!(victim.ask(parameter(17, &words(&[next().0, 12 << 16]))), [PERFORMED]);
    assert_eq!(victim.ask(parameter(17, &words(&[next().0, 65_535 << 16]))), [DENIED]);
    assert_eq!(victim.ask(parameter(18, &words(&[next().0, 65_535 << 16]))), [DENIED]);
    assert_eq!(victim.ask(parameter(17, &words(&[next().0, 0]))), [NOTHING]);
    assert_eq!(victim.pair.ends[RIGHT].inbound_streams(), 20);
    assert_eq!(victim.pair.ends[RIGHT].outbound_streams(), 8);
}

#[test]
fn a_reset_whose_last_tsn_never_arrives_is_the_only_one_and_holds_no_more_than_the_buffer() {
    for interleaving in [false, true] {
        for ahead in [5, 1 << 20, (1 << 31) - 2] {
            let mut victim = victim_with(AcceptedRequests::ALL, interleaving);
            let number = victim.number();
            let request = reset_outgoing(number, number.plus(ahead), &[1]);
            let before = victim.all(RIGHT).len();
            for _ in 0..200 {
                assert_eq!(victim.ask(request.clone()), [IN_PROGRESS]);
            }
            for at in 1..200 {
                let other = reset_outgoing(number.plus(at), number.plus(ahead + at), &[1, 2, 3]);
                assert_eq!(victim.ask(other), [ALREADY]);
            }
            assert!(victim.all(RIGHT).len() < before + 4000, "one request is kept");
            assert!(victim.events().is_empty());
            if interleaving {
                continue;
            }
            // Data after it waits, and is charged.
            for at in 0..400u32 {
                let tsn = number.plus(6 + at);
                victim.hit(RIGHT, &[data(tsn, 1, at as u16, WHOLE, &[7; 500])]);
            }
            let memory = victim.pair.ends[RIGHT].receive_memory();
            assert!(memory <= (2 << 16) + (64 << 10), "{memory} B");
            assert_eq!(victim.state(RIGHT), &State::Established);
        }
    }
}

#[test]
fn early_data_of_a_stream_that_is_reset_waits_for_the_reset() {
    let mut victim = victim();
    let first = victim.first_tsn(LEFT);
    victim.hit(RIGHT, &[data(first, 1, 0, WHOLE, b"one")]);
    // The request arrives before the data that precedes it, and the following data also arrives.
    assert_eq!(victim.ask(reset_outgoing(first, first.plus(2), &[1])), [IN_PROGRESS]);
    victim.hit(RIGHT, &[data(first.plus(3), 1, 0, WHOLE, b"four")]);
    victim.hit(RIGHT, &[data(first.plus(4), 2, 0, WHOLE, b"another stream")]);
    victim.hit(RIGHT, &[data(first.plus(2), 1, 2, WHOLE, b"three")]);
    let answer = victim.hit(RIGHT, &[data(first.plus(1), 1, 1, WHOLE, b"two")]);
    assert_eq!(results(&answer), [(first.0, PERFORMED)]);
    // Read after the event.
    assert_eq!(
        victim.pair.reconfigured[RIGHT],
        [(4, Reconfigured::ResetByPeer(Streams::of(&[StreamId(1)])))]
    );
    victim.pair.drain(RIGHT);
    let read: Vec<u32> = victim.pair.read[RIGHT].iter().map(|one| one.payload.len()).collect();
    assert_eq!(read, [3, 14, 3, 5, 4]);
    assert_eq!(
        victim.pair.ends[RIGHT].expected(StreamId(1)),
        (u64::from(first.plus(5).0) + (1 << 32), ropewalk_base::Serial16(1))
    );
}

#[test]
fn responses_that_nobody_asked_for_are_nothing() {
    let mut victim = victim();
    let own = victim.first_tsn(RIGHT);
    for number in [own, own.plus(1), own.plus(u32::MAX)] {
        for code in 0..9 {
            for tsns in [vec![], vec![1, 2]] {
                let response = parameter(16, &words(&[vec![number.0, code], tsns].concat()));
                assert!(victim.hit(RIGHT, &[re_config(&[response])]).is_empty());
            }
        }
    }
    assert!(victim.events().is_empty());
    victim.pair.ends[RIGHT].reset_streams(&[StreamId(1)], ResetDirection::Outgoing).expect("asked");
    victim.pair.drain(RIGHT);
    // A wrong number, then an unknown result.
    let response = |number: Serial32, code| re_config(&[parameter(16, &words(&[number.0, code]))]);
    victim.hit(RIGHT, &[response(own.plus(1), PERFORMED)]);
    assert!(victim.events().is_empty());
    victim.hit(RIGHT, &[response(own, 77)]);
    let failed = Reconfigured::Reset(Streams::of(&[StreamId(1)]), Outcome::Failed);
    assert_eq!(victim.events(), [failed]);
}

#[test]
fn a_peer_that_is_always_busy_gets_few_requests() {
    let mut victim = victim();
    for (code, most) in [(ALREADY, 11), (IN_PROGRESS, 130)] {
        let stream = [StreamId(code as u16)];
        victim.pair.ends[RIGHT].reset_streams(&stream, ResetDirection::Outgoing).expect("asked");
        victim.pair.drain(RIGHT);
        victim.pair.log.clear();
        let mut number = victim.first_tsn(RIGHT);
        for _ in 0..100 {
            for one in 0..12 {
                let answer = parameter(16, &words(&[number.plus(one).0, code]));
                victim.hit(RIGHT, &[re_config(&[answer]), heartbeat(b"alive")]);
            }
            victim.pair.run_for(ms(100));
        }
        number = number.plus(12);
        let _ = number;
        let count = victim.pair.count(RIGHT, "RE-CONFIG");
        assert!(count <= most, "{count} requests in 10 s");
        assert_eq!(victim.state(RIGHT), &State::Established);
    }
}

#[test]
fn requests_are_performed_only_while_the_user_reads_their_events() {
    let mut victim = victim();
    let number = victim.number();
    let before = number.plus(u32::MAX);
    // A user that does not read: the packets bypass the driver, which would read.
    let end = &mut victim.pair.ends[RIGHT];
    let mut performed = 0;
    for at in 0..100 {
        let bytes = super::kit::datagram(
            end.tags().0,
            &[re_config(&[reset_outgoing(number.plus(performed), before, &[1])])],
        );
        let answer = super::kit::send_to(end, victim.pair.now, 0, &bytes);
        let expected = if at < 16 { PERFORMED } else { IN_PROGRESS };
        let code = results(&answer);
        assert_eq!(code, [(number.plus(performed).0, expected)]);
        performed += u32::from(at < 15);
        if at == 15 {
            performed = 16;
        }
    }
    assert_eq!(std::iter::from_fn(|| end.poll_reconfiguration()).count(), 16);
    let request = reset_outgoing(number.plus(16), before, &[1]);
    assert_eq!(victim.ask(request), [PERFORMED], "it reads again");
}

#[test]
fn a_reset_of_the_association_takes_nothing_that_was_not_acknowledged() {
    let mut victim = victim();
    let (number, own) = (victim.number(), victim.first_tsn(RIGHT));
    victim.pair.send_on(RIGHT, 1, Payload::Length(100), false);
    let request = parameter(15, &words(&[number.0]));
    for _ in 0..20 {
        assert_eq!(victim.ask(request.clone()), [IN_PROGRESS], "data is in flight");
    }
    victim.pair.send_on(RIGHT, 1, Payload::Length(100), false);
    let answer = victim.hit(RIGHT, &[sack(own, 1 << 16, &[], 0)]);
    assert_eq!(results(&answer), [(number.0, PERFORMED)]);
    assert_eq!(victim.ask(request), [PERFORMED]);
    let events = victim.events();
    let [Reconfigured::Association { by_peer: true, local_tsn, peer_tsn, .. }] = events[..] else {
        panic!("{events:?}")
    };
    assert_eq!((local_tsn, peer_tsn), (own.plus(1), number.plus(1 << 31)));
    // Old data is a duplicate or out of reach, and new data starts at the new TSN.
    victim.hit(RIGHT, &[data(number, 1, 0, WHOLE, b"old")]);
    victim.hit(RIGHT, &[data(number.plus(5), 1, 0, WHOLE, b"old")]);
    assert_eq!(victim.pair.read_bytes(RIGHT), 0);
    victim.hit(RIGHT, &[data(peer_tsn, 1, 0, WHOLE, b"new")]);
    assert_eq!(victim.pair.read_bytes(RIGHT), 3);
    // A SACK from before the reset is not a violation, but one of TSNs that were never sent is.
    victim.hit(RIGHT, &[sack(own.plus(u32::MAX - 3), 1 << 16, &[], 0)]);
    assert_eq!(victim.state(RIGHT), &State::Established);
    victim.hit(RIGHT, &[sack(own.plus(900), 1 << 16, &[], 0)]);
    assert!(matches!(victim.state(RIGHT), State::Ended(_)));
}
