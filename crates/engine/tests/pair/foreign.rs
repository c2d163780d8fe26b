//! Peers of other implementations: chunks and parameters that are unknown or were not negotiated, streams
//! that do not exist, answers that cannot be used.

use bytes::Bytes;
use ropewalk_base::{PathId, Seed, Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{
    AbortCause, Association, Chunk, Config, Data, DataFlags, ErrorCause, ExtensionChunk,
    Extensions, ForwardTsn, Init, MarkCount, Negotiation, Packet,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, config, in_turn, ms, name};

fn tag_of(pair: &Pair, end: usize) -> u32 {
    pair.ends[end].tags().0
}

/// The answers of the right end to a packet of these chunks, by name, with the causes of its ERRORs.
fn answers(chunks: Vec<Chunk>) -> (Vec<&'static str>, Vec<ErrorCause>) {
    let none = Negotiation::Listed(Extensions::NONE);
    let settings = Config { negotiation: none, ..config(1, 1 << 16) };
    let mut pair = Pair::up(&settings, &[10]);
    let tag = tag_of(&pair, RIGHT);
    pair.script(|_| Fate::Drop);
    pair.inject(RIGHT, 0, Packet { tag, chunks: chunks.into(), ..Packet::default() });
    assert_eq!(*pair.ends[RIGHT].state(), State::Established);
    let mut causes = Vec::new();
    for chunk in pair.log.iter().flat_map(|sent| &sent.packet.chunks) {
        if let Chunk::Error(some) = chunk {
            causes.extend(some.clone());
        }
    }
    (pair.log.iter().flat_map(|sent| sent.names()).collect(), causes)
}

#[test]
pub fn chunks_that_were_not_agreed_on_are_skipped_or_reported_as_their_highest_bits_say() {
    let unknown = |kind| Chunk::Unknown(Bytes::from(vec![kind, 0, 0, 5, 9]));
    let rare = |rare| Chunk::Extension(Box::new(rare));
    let forward = ForwardTsn { cumulative: Serial32(7), streams: Vec::new() };
    let table = [
        (unknown(0x3f), false, false),
        (unknown(0x7f), true, false),
        (unknown(0xbf), false, true),
        (unknown(0xff), true, true),
        (rare(ExtensionChunk::Ecne(Serial32(1))), false, false),
        (rare(ExtensionChunk::Pad(30)), false, true),
        (
            rare(ExtensionChunk::MarkCount(MarkCount { path: 0, tsn: Serial32(1), bytes: 1 })),
            false,
            true,
        ),
        (rare(ExtensionChunk::ReConfig(Vec::new())), false, true),
        (rare(ExtensionChunk::ForwardTsn(forward)), true, true),
        (rare(ExtensionChunk::Asconf(Serial32(1), Vec::new())), true, true),
        (rare(ExtensionChunk::AsconfAck(Serial32(1), Vec::new())), false, true),
    ];
    for (chunk, reported, goes_on) in table {
        let beat = Chunk::Heartbeat(Bytes::from_static(b"anything at all"));
        let (names, causes) = answers(vec![chunk.clone(), beat]);
        let expected: Vec<_> = [("ERROR", reported), ("HEARTBEAT ACK", goes_on)]
            .into_iter()
            .filter_map(|(name, is)| is.then_some(name))
            .collect();
        assert_eq!(names, expected, "{chunk:?}");
        if let Chunk::Unknown(whole) = &chunk {
            let mut padded = whole.to_vec();
            padded.resize(whole.len().next_multiple_of(4), 0);
            let shown = ErrorCause::UnrecognisedChunk(padded.into());
            assert_eq!(causes, vec![shown; reported as usize]);
        }
    }
}

#[test]
pub fn very_many_unknown_chunks_and_long_ones_are_answered_with_little() {
    let whole: Vec<u8> = [&[0xff, 0, 4, 0][..], &[7; 1020]].concat();
    let (names, causes) = answers(vec![Chunk::Unknown(whole.into()); 300]);
    assert_eq!(names, ["ERROR"; 4]);
    for cause in causes {
        let ErrorCause::UnrecognisedChunk(shown) = cause else { panic!("{cause:?}") };
        assert_eq!(shown.len(), 128);
    }
}

#[test]
pub fn a_heartbeat_comes_back_as_it_was_and_not_if_it_is_longer_than_a_packet() {
    for (size, expected) in [(0, 1), (1, 1), (777, 1), (1460, 1), (1461, 0), (60_000, 0)] {
        let info = Bytes::from(vec![0x5a; size]);
        let mut pair = Pair::up(&config(1, 1 << 16), &[10]);
        let tag = tag_of(&pair, RIGHT);
        pair.inject(RIGHT, 0, Packet::of(tag, Chunk::Heartbeat(info.clone())));
        let same = |sent: &&crate::driver::Sent| {
            sent.packet.chunks[..] == [Chunk::HeartbeatAck(info.clone())]
        };
        assert_eq!(pair.log.iter().filter(same).count(), expected, "{size} B");
        assert_eq!(pair.log.len(), expected);
    }
}

#[test]
pub fn data_on_a_stream_that_does_not_exist_is_acknowledged_and_reported_and_not_delivered() {
    let mut pair = Pair::up(&config(1, 1 << 16), &[10]);
    pair.send(LEFT, 10);
    pair.run_for(ms(500));
    let first = pair.log[0].data().next().expect("data").tsn;
    let tag = tag_of(&pair, RIGHT);
    let data = |ahead: u32, stream: u16, ssn: u16| {
        Chunk::Data(Data {
            tsn: first.plus(ahead),
            stream: StreamId(stream),
            ssn: Serial16(ssn),
            ppid: 0,
            flags: DataFlags::WHOLE,
            payload: Payload::Length(100),
            message_high: 0,
            first_sent: Time::ZERO,
        })
    };
    pair.log.clear();
    // The left end never sent any of these.
    pair.script(|_| Fate::Drop);
    // In order, out of order, between two existing ones, and duplicated.
    for (ahead, stream, ssn) in [
        (1, 1, 0),
        (3, 65_535, 0),
        (2, 0, 1),
        (5, 0, 3),
        (6, 9, 0),
        (4, 0, 2),
        (4, 0, 2),
        (3, 7, 0),
    ] {
        pair.inject(RIGHT, 0, Packet::of(tag, data(ahead, stream, ssn)));
    }
    pair.run_for(ms(500));
    assert_eq!(pair.read[RIGHT].len(), 4, "what exists is delivered: the first and three");
    let last = pair.log.iter().filter_map(|sent| sent.sack()).next_back().expect("a SACK");
    assert_eq!((last.cumulative, last.gaps.len()), (first.plus(6), 0));
    assert_eq!(pair.ends[RIGHT].receive_occupancy().0, 0);
    let wrong: Vec<_> = (pair.log.iter().flat_map(|sent| &sent.packet.chunks))
        .filter_map(|chunk| match chunk {
            Chunk::Error(causes) => Some(causes[0].clone()),
            _ => None,
        })
        .collect();
    assert_eq!(wrong, [1, 65_535, 9, 7].map(|s| ErrorCause::InvalidStream(StreamId(s))));
    // The next one of the left end follows.
    pair.inject(RIGHT, 0, Packet::of(tag, data(7, 0, 4)));
    assert_eq!(pair.read[RIGHT].len(), 5);
}

/// A client that waits for its INIT ACK, a good INIT ACK for it, and the tag that it must carry.
fn waiting() -> (Association, Init, Option<Bytes>, u32) {
    let settings = config(1, 1 << 16);
    let mut client = Association::connect(settings.clone(), in_turn(), Seed::root(1), Time::ZERO);
    let mut server = Association::listen(settings, in_turn(), Seed::root(2));
    let init = client.poll_transmit(Time::ZERO).expect("an INIT").packet;
    server.handle_datagram(Time::ZERO, PathId(0), init);
    let answer = server.poll_transmit(Time::ZERO).expect("an INIT ACK").packet;
    let Chunk::InitAck(both) = &answer.chunks[0] else { panic!("{answer:?}") };
    (client, both.0.clone(), both.1.clone(), answer.tag)
}

#[test]
pub fn an_init_ack_that_cannot_be_used_is_refused_by_cause() {
    type Change = fn(&mut Init, &mut Option<Bytes>);
    let violation = Some(CloseReason::Aborted(AbortCause::ProtocolViolation));
    let other = |code| Some(CloseReason::Aborted(AbortCause::Other(code)));
    let refusal = |cause| Some(Chunk::abort(cause));
    let gone = Chunk::Abort { reflected: true, causes: vec![ErrorCause::InvalidParameter] };
    let host = Bytes::from_static(&[0, 11, 0, 5, b'x']);
    let address = CloseReason::Aborted(AbortCause::UnresolvableAddress);
    let missing = ErrorCause::MissingParameters(vec![7]);
    let table: [(Change, Option<Chunk>, Option<CloseReason>); 7] = [
        (|i, _| i.tag = 0, Some(gone), violation),
        (|i, _| i.window = 1499, refusal(ErrorCause::InvalidParameter), None),
        (|i, _| i.outbound_streams = 0, refusal(ErrorCause::InvalidParameter), other(7)),
        (|i, _| i.inbound_streams = 0, refusal(ErrorCause::InvalidParameter), other(7)),
        (|_, cookie| *cookie = None, refusal(missing), other(2)),
        (|_, cookie| *cookie = Some(vec![1; 60_000].into()), None, None),
        (
            |i, _| i.options.host_name = Some(Bytes::from_static(&[0, 11, 0, 5, b'x'])),
            refusal(ErrorCause::UnresolvableAddress(host)),
            Some(address),
        ),
    ];
    for (change, answer, end) in table {
        let (mut client, mut init, mut cookie, tag) = waiting();
        change(&mut init, &mut cookie);
        let expected_tag = if init.tag == 0 { tag } else { init.tag };
        let packet = Packet::of(tag, Chunk::InitAck(Box::new((init.clone(), cookie))));
        client.handle_datagram(Time::ZERO, PathId(0), packet);
        let sent = client.poll_transmit(Time::ZERO).map(|transmit| transmit.packet);
        assert_eq!(sent, answer.map(|chunk| Packet::of(expected_tag, chunk)), "{init:?}");
        match end {
            Some(reason) => assert_eq!(*client.state(), State::Ended(reason)),
            None => assert!(matches!(client.state(), State::CookieWait { .. })),
        }
    }
}

#[test]
pub fn a_cookie_without_a_byte_is_echoed() {
    let (mut client, init, _, tag) = waiting();
    let packet = Packet::of(tag, Chunk::InitAck(Box::new((init, Some(Bytes::new())))));
    client.handle_datagram(Time::ZERO, PathId(0), packet);
    let sent = client.poll_transmit(Time::ZERO).expect("a COOKIE ECHO").packet;
    assert_eq!(sent.chunks[0], Chunk::CookieEcho(Bytes::new()));
}

#[test]
pub fn what_an_init_ack_has_that_is_not_known_is_reported_beside_the_cookie() {
    let (mut client, mut init, cookie, tag) = waiting();
    let unknown = [&[0xff, 1, 0, 5, 9][..], &[0xff, 2, 0, 4]];
    init.options.unknown = unknown.map(Bytes::from_static).to_vec();
    let packet = Packet::of(tag, Chunk::InitAck(Box::new((init, cookie))));
    client.handle_datagram(Time::ZERO, PathId(0), packet);
    let sent = client.poll_transmit(Time::ZERO).expect("a COOKIE ECHO").packet;
    assert_eq!(name(&sent.chunks[0]), "COOKIE ECHO");
    let shown = Bytes::from_static(&[0xff, 1, 0, 5, 9, 0, 0, 0, 0xff, 2, 0, 4]);
    assert_eq!(sent.chunks[1], Chunk::error(ErrorCause::UnrecognisedParameters(shown)));
}

#[test]
pub fn a_shutdown_ack_for_an_end_that_only_sets_up_is_out_of_the_blue() {
    let (mut client, _, _, tag) = waiting();
    client.handle_datagram(Time::ZERO, PathId(0), Packet::of(tag, Chunk::ShutdownAck));
    let sent = client.poll_transmit(Time::ZERO).expect("an answer").packet;
    assert_eq!(sent, Packet::of(tag, Chunk::ShutdownComplete { reflected: true }));
    assert!(matches!(client.state(), State::CookieWait { .. }));
}

#[test]
pub fn an_init_with_a_host_name_is_refused_by_an_association_too() {
    let mut pair = Pair::up(&config(1, 1 << 16), &[10]);
    let host = Bytes::from_static(&[0, 11, 0, 5, b'x']);
    let (_, mut init, _, _) = waiting();
    init.options.host_name = Some(host.clone());
    let expected = Packet::of(init.tag, Chunk::abort(ErrorCause::UnresolvableAddress(host)));
    pair.log.clear();
    pair.inject(RIGHT, 0, Packet::of(0, Chunk::Init(Box::new(init))));
    assert_eq!(pair.log[0].packet, expected);
    assert_eq!(*pair.ends[RIGHT].state(), State::Established);
}
