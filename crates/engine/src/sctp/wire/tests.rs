use core::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::*;
use crate::payload::Payload;
use crate::sctp::{
    Auth, AuthParameters, Covered, Data, DataFlags, DataFragment, DelayEcho, DelayStamp, Echoed,
    ErrorCause, ExtensionChunk, Extensions, Families, ForwardTsn, GapBlock, GapList, HeartbeatInfo,
    IForwardTsn, Init, InitOptions, MarkCount, NrSack, RawParameter, Sack, Skipped,
};

const PORTS: Ports = Ports { source: 5001, destination: 9899 };

fn encoded(packet: &Packet, checksum: Checksum) -> Bytes {
    let mut out = Vec::new();
    encode(packet, PORTS, checksum, &mut out);
    out.into()
}

/// Decodes `bytes` into a recycled packet.
fn decoded(bytes: &Bytes, checksum: Checksum) -> Result<Packet, DecodeError> {
    let mut packet = Packet::of(77, Chunk::CookieAck);
    packet.stamp = Some(DelayStamp { sent: 1 });
    assert_eq!(decode(bytes, checksum, &mut packet)?, PORTS);
    Ok(packet)
}

/// A packet with these encoded chunks and a valid checksum.
fn packet_of(chunks: &[u8]) -> Bytes {
    let mut out = vec![0; HEADER];
    out[..8].copy_from_slice(&[0x13, 0x89, 0x26, 0xab, 0, 0, 0, 9]);
    out.extend_from_slice(chunks);
    let sum = crc32c::crc32c(&out);
    out[CHECKSUM_AT..HEADER].copy_from_slice(&sum.to_le_bytes());
    out.into()
}

fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

fn serial() -> impl Strategy<Value = Serial32> {
    any::<u32>().prop_map(Serial32)
}

prop_compose! {
    fn data()(
        (tsn, flags, ppid) in (serial(), 0u8..16, any::<u32>()),
        (stream, ssn, payload) in (any::<u16>(), any::<u16>(), bytes(40)),
        interleaved in proptest::option::of(any::<u16>()),
    ) -> Chunk {
        let kind = interleaved.map_or(DataFlags::default(), |_| DataFlags::INTERLEAVED);
        Chunk::Data(Data {
            tsn,
            stream: StreamId(stream),
            ssn: Serial16(ssn),
            ppid,
            flags: DataFlags::from_bits(flags).and(kind),
            message_high: interleaved.unwrap_or(0),
            payload: Payload::from(payload),
            first_sent: Time::ZERO,
        })
    }
}

prop_compose! {
    fn sack()(
        (cumulative, window, data_packets) in (serial(), any::<u32>(), 0u8..4),
        number in proptest::option::of(any::<u16>().prop_map(Serial16)),
        blocks in vec(any::<(u16, u16)>(), 0..90),
        duplicates in vec(serial(), 0..5),
    ) -> Chunk {
        let blocks = blocks.into_iter().map(|(start, end)| GapBlock { start, end });
        let gaps = GapList::from_offsets(cumulative, blocks);
        let data_packets = if number.is_some() { 0 } else { data_packets };
        Chunk::Sack(Sack { cumulative, window, gaps, duplicates, data_packets, number })
    }
}

/// A complete parameter of an unknown type that is to be reported and skipped.
fn unknown_parameter() -> impl Strategy<Value = Bytes> {
    (0xc100u16..0xffff, vec(any::<u8>(), 0..5)).prop_map(|(kind, value)| {
        let mut out = Vec::new();
        parameter::put(kind, &value, &mut out);
        out.truncate(4 + value.len());
        out.into()
    })
}

prop_compose! {
    fn auth_parameters()(
        random in bytes(40),
        chunks in proptest::option::of(bytes(9)),
        hmacs in proptest::option::of(bytes(9)),
    ) -> AuthParameters {
        AuthParameters { random: Some(random), chunks, hmacs }
    }
}

prop_compose! {
    fn options()(
        (v4, v6, forward_tsn, ecn) in any::<(bool, bool, bool, bool)>(),
        bits in any::<u16>(),
        (adaptation, zero_checksum) in any::<(Option<u32>, Option<u32>)>(),
        authentication in proptest::option::of(auth_parameters()),
        host in proptest::option::of(bytes(9)),
        unknown in vec(unknown_parameter(), 0..5),
        reported in vec(bytes(9), 0..5),
    ) -> InitOptions {
        let host_name = host.map(|name| {
            let mut out = Vec::new();
            parameter::put(11, &name, &mut out);
            out.truncate(4 + name.len());
            out.into()
        });
        InitOptions {
            families: Families { v4, v6 },
            extensions: Extensions::from_bits(bits),
            forward_tsn,
            ecn,
            adaptation,
            zero_checksum,
            authentication: authentication.map(Box::new),
            host_name,
            unknown,
            reported,
        }
    }
}

prop_compose! {
    fn init()(
        (tag, window) in any::<(u32, u32)>(),
        (outbound_streams, inbound_streams) in any::<(u16, u16)>(),
        initial_tsn in serial(),
        addresses in vec(any::<IpAddr>(), 0..5),
        preserve_millis in any::<u32>(),
        options in options(),
    ) -> Init {
        Init {
            tag, window, outbound_streams, inbound_streams, initial_tsn, addresses,
            preserve_millis, options,
        }
    }
}

fn cause() -> impl Strategy<Value = ErrorCause> {
    prop_oneof![
        any::<u16>().prop_map(|stream| ErrorCause::InvalidStream(StreamId(stream))),
        vec(any::<u16>(), 0..4).prop_map(ErrorCause::MissingParameters),
        any::<u32>().prop_map(ErrorCause::StaleCookie),
        serial().prop_map(ErrorCause::NoUserData),
        Just(ErrorCause::OutOfResource),
        Just(ErrorCause::InvalidParameter),
        Just(ErrorCause::CookieInShutdown),
        bytes(9).prop_map(ErrorCause::UnresolvableAddress),
        bytes(9).prop_map(ErrorCause::UnrecognisedChunk),
        bytes(9).prop_map(ErrorCause::UnrecognisedParameters),
        bytes(9).prop_map(ErrorCause::NewAddresses),
        bytes(9).prop_map(ErrorCause::UserAbort),
        bytes(9).prop_map(ErrorCause::ProtocolViolation),
        (14u16.., bytes(9)).prop_map(|(code, value)| ErrorCause::Other { code, value }),
    ]
}

fn causes() -> impl Strategy<Value = Vec<ErrorCause>> {
    vec(cause(), 0..4)
}

/// A chunk of an unknown type that is to be reported and skipped.
fn unknown() -> impl Strategy<Value = Chunk> {
    (0xd0u8..0xff, any::<u8>(), vec(any::<u8>(), 0..9)).prop_map(|(kind, flags, body)| {
        let mut whole = vec![kind, flags, 0, 4 + body.len() as u8];
        whole.extend(body);
        Chunk::Unknown(whole.into())
    })
}

fn gaps(cumulative: Serial32) -> impl Strategy<Value = GapList> {
    vec(any::<(u16, u16)>(), 0..9).prop_map(move |blocks| {
        let blocks = blocks.into_iter().map(|(start, end)| GapBlock { start, end });
        GapList::from_offsets(cumulative, blocks)
    })
}

fn parameters() -> impl Strategy<Value = Vec<RawParameter>> {
    let one = (any::<u16>(), bytes(9)).prop_map(|(kind, value)| RawParameter { kind, value });
    vec(one, 0..4)
}

fn nr_sack() -> impl Strategy<Value = ExtensionChunk> {
    let lists = |cumulative| (Just(cumulative), gaps(cumulative), gaps(cumulative));
    (serial().prop_flat_map(lists), any::<u32>(), vec(serial(), 0..4), 0..4u8).prop_map(
        |((cumulative, gaps, kept), window, duplicates, data_packets)| {
            ExtensionChunk::NrSack(NrSack {
                cumulative,
                window,
                gaps,
                kept,
                duplicates,
                data_packets,
            })
        },
    )
}

prop_compose! {
    fn piece()(
        part in data(),
        (offset, total) in any::<(u16, u16)>(),
    ) -> ExtensionChunk {
        let Chunk::Data(part) = part else { unreachable!("drawn as DATA") };
        ExtensionChunk::DataFragment(DataFragment { part, offset, total })
    }
}

prop_compose! {
    fn i_forward()(
        cumulative in serial(),
        list in vec(any::<(u16, bool, u32)>(), 0..4),
    ) -> ExtensionChunk {
        let entry = |(stream, unordered, message)| {
            Skipped { stream: StreamId(stream), unordered, message: Serial32(message) }
        };
        let streams = list.into_iter().map(entry).collect();
        ExtensionChunk::IForwardTsn(IForwardTsn { cumulative, streams })
    }
}

fn rare() -> impl Strategy<Value = Chunk> {
    let forward = (serial(), vec(any::<(u16, u16)>(), 0..4)).prop_map(|(cumulative, list)| {
        let entry = |(stream, ssn)| (StreamId(stream), Serial16(ssn));
        ExtensionChunk::ForwardTsn(ForwardTsn {
            cumulative,
            streams: list.into_iter().map(entry).collect(),
        })
    });
    let auth = (any::<u16>(), any::<u16>(), bytes(40))
        .prop_map(|(key, hmac, code)| Auth { key, hmac, code, covered: Covered::default() })
        .prop_map(ExtensionChunk::Auth);
    let rare = prop_oneof![
        nr_sack(),
        forward,
        i_forward(),
        parameters().prop_map(ExtensionChunk::ReConfig),
        (serial(), parameters()).prop_map(|(serial, list)| ExtensionChunk::Asconf(serial, list)),
        (serial(), parameters()).prop_map(|(serial, list)| ExtensionChunk::AsconfAck(serial, list)),
        auth,
        (0u16..99).prop_map(ExtensionChunk::Pad),
        serial().prop_map(ExtensionChunk::Ecne),
        serial().prop_map(ExtensionChunk::Cwr),
        (any::<u8>(), serial(), any::<u32>()).prop_map(|(path, tsn, bytes)| {
            ExtensionChunk::MarkCount(MarkCount { path, tsn, bytes })
        }),
        piece(),
    ];
    rare.prop_map(|rare| Chunk::Extension(Box::new(rare)))
}

fn control() -> impl Strategy<Value = Chunk> {
    prop_oneof![
        init().prop_map(|init| Chunk::Init(Box::new(init))),
        (init(), proptest::option::of(bytes(99))).prop_map(|both| Chunk::InitAck(Box::new(both))),
        bytes(99).prop_map(Chunk::CookieEcho),
        Just(Chunk::CookieAck),
        causes().prop_map(Chunk::Error),
        bytes(33).prop_map(Chunk::Heartbeat),
        bytes(33).prop_map(Chunk::HeartbeatAck),
        serial().prop_map(Chunk::Shutdown),
        Just(Chunk::ShutdownAck),
        any::<bool>().prop_map(|reflected| Chunk::ShutdownComplete { reflected }),
        (any::<bool>(), causes())
            .prop_map(|(reflected, causes)| Chunk::Abort { reflected, causes }),
        rare(),
        unknown(),
    ]
}

prop_compose! {
    fn packet()(
        tag in any::<u32>(),
        stamp in proptest::option::of(any::<u64>()),
        echo in proptest::option::of(any::<(u8, u64, u64)>()),
        chunks in vec(prop_oneof![data(), sack(), control()], 0..5),
    ) -> Packet {
        Packet {
            tag,
            ce: false,
            stamp: stamp.map(|sent| DelayStamp { sent }),
            echo: echo.map(|(path, sent, received)| DelayEcho {
                path,
                of: Echoed::Time(sent),
                received,
            }),
            chunks: chunks.into(),
            ..Packet::default()
        }
    }
}

#[test]
fn a_last_pad_has_any_length_alone_and_behind_others() {
    for length in 0..64 {
        let pad = || Chunk::Extension(Box::new(ExtensionChunk::Pad(length)));
        for chunks in [vec![pad()], vec![Chunk::CookieAck, pad()], vec![pad(), pad()]] {
            let packet = Packet { chunks: chunks.into(), ..Packet::default() };
            let bytes = encoded(&packet, Checksum::Crc32c);
            assert_eq!(bytes.len(), packet.wire_len() as usize, "{packet:?}");
            assert_eq!(decoded(&bytes, Checksum::Crc32c), Ok(packet), "{length}");
        }
    }
}

proptest! {
    #[test]
    fn a_packet_comes_out_as_it_went_in_and_is_as_long_as_was_said(
        packet in packet(),
        checksum in prop_oneof![Just(Checksum::Crc32c), Just(Checksum::None)],
    ) {
        let bytes = encoded(&packet, checksum);
        prop_assert_eq!(bytes.len(), packet.wire_len() as usize);
        // RFC 4820, 3: a PAD at the end may have any length.
        let ends_with_pad = matches!(
            packet.chunks.last(),
            Some(Chunk::Extension(last)) if matches!(**last, ExtensionChunk::Pad(_))
        );
        prop_assert!(ends_with_pad || bytes.len().is_multiple_of(4));
        prop_assert_eq!(decoded(&bytes, checksum), Ok(packet));
    }

    #[test]
    fn any_bytes_are_a_packet_or_an_error_and_what_was_understood_can_be_said_again(
        chunks in vec(any::<u8>(), 0..200),
        kinds in vec((0usize..50, 0u8..20, 0u8..40), 0..4),
    ) {
        // Random bytes rarely form a chunk, so some positions are made to look like the beginning of one.
        let mut noise = chunks;
        for (place, kind, length) in kinds {
            if let Some(head) = noise.get_mut(4 * place..4 * place + 4) {
                head.copy_from_slice(&[kind, 0, 0, length]);
            }
        }
        if let Ok(packet) = decoded(&packet_of(&noise), Checksum::Crc32c) {
            let again = encoded(&packet, Checksum::Crc32c);
            prop_assert_eq!(again.len(), packet.wire_len() as usize);
            prop_assert_eq!(decoded(&again, Checksum::Crc32c), Ok(packet));
        }
    }

    #[test]
    fn a_changed_bit_anywhere_is_noticed(packet in packet(), place in any::<usize>()) {
        let mut bytes = encoded(&packet, Checksum::Crc32c).to_vec();
        let bit = place % (8 * bytes.len());
        bytes[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(decoded(&bytes.into(), Checksum::Crc32c), Err(DecodeError::Checksum));
    }
}

#[test]
fn the_bytes_are_those_of_the_rfc() {
    let whole = Data {
        tsn: Serial32(0x0102_0304),
        stream: StreamId(5),
        ssn: Serial16(6),
        ppid: 7,
        flags: DataFlags::WHOLE.and(DataFlags::IMMEDIATE),
        payload: Payload::Length(3),
        message_high: 0,
        first_sent: Time::ZERO,
    };
    let sack = Sack {
        cumulative: Serial32(u32::MAX),
        window: 0x1000,
        gaps: GapList::from_offsets(Serial32(u32::MAX), [GapBlock { start: 2, end: 3 }]),
        duplicates: vec![Serial32(4)],
        data_packets: 3,
        number: None,
    };
    let requested = Sack { data_packets: 0, number: Some(Serial16(0x0506)), ..sack.clone() };
    let table: [(Chunk, &[u8]); 8] = [
        (Chunk::Data(whole), &[0, 11, 0, 19, 1, 2, 3, 4, 0, 5, 0, 6, 0, 0, 0, 7, 0, 0, 0, 0]),
        (
            Chunk::Sack(sack),
            &[3, 0xc0, 0, 24, 255, 255, 255, 255, 0, 0, 16, 0, 0, 1, 0, 1, 0, 2, 0, 3, 0, 0, 0, 4],
        ),
        (
            Chunk::Sack(requested),
            &[0xb5, 0, 0, 24, 255, 255, 255, 255, 0, 0, 16, 0, 1, 1, 5, 6, 0, 2, 0, 3, 0, 0, 0, 4],
        ),
        (Chunk::Shutdown(Serial32(9)), &[7, 0, 0, 8, 0, 0, 0, 9]),
        (Chunk::ShutdownComplete { reflected: true }, &[14, 1, 0, 4]),
        (Chunk::error(ErrorCause::StaleCookie(258)), &[9, 0, 0, 12, 0, 3, 0, 8, 0, 0, 1, 2]),
        (Chunk::abort(ErrorCause::USER), &[6, 0, 0, 8, 0, 12, 0, 4]),
        (
            Chunk::Heartbeat(Bytes::from_static(b"abcde")),
            &[4, 0, 0, 13, 0, 1, 0, 9, b'a', b'b', b'c', b'd', b'e', 0, 0, 0],
        ),
    ];
    for (chunk, expected) in table {
        let bytes = encoded(&Packet::of(9, chunk.clone()), Checksum::Crc32c);
        assert_eq!(bytes[HEADER..], *expected, "{chunk:?}");
        assert_eq!(bytes, packet_of(&bytes[HEADER..]));
    }
    // The CRC32c of 32 zero bytes (RFC 9260, appendix A; RFC 3720, B.4), little-endian on the wire.
    assert_eq!(crc32c::crc32c(&[0; 32]).to_le_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
}

#[test]
fn user_data_does_not_keep_its_datagram_in_memory() {
    let bytes = packet_of(&[0, 3, 0, 18, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 8, 9, 0, 0]);
    let packet = decoded(&bytes, Checksum::Crc32c).expect("a packet");
    let Chunk::Data(data) = &packet.chunks[0] else { panic!("{packet:?}") };
    let Payload::Bytes(payload) = &data.payload else { panic!("{data:?}") };
    assert_eq!(payload[..], [8, 9]);
    assert!(payload.is_unique(), "an allocation of its own");
    assert!(!bytes.as_ptr_range().contains(&payload.as_ptr()));
}

#[test]
fn what_is_no_packet_says_why() {
    let ack = packet_of(&[11, 0, 0, 4]);
    let port = |at: usize| {
        let mut bytes = ack.to_vec();
        bytes[at..at + 2].fill(0);
        bytes[CHECKSUM_AT..HEADER].fill(0);
        let sum = crc32c::crc32c(&bytes);
        bytes[CHECKSUM_AT..HEADER].copy_from_slice(&sum.to_le_bytes());
        Bytes::from(bytes)
    };
    let mut adler = ack.to_vec();
    adler[CHECKSUM_AT..HEADER].copy_from_slice(&[0x05, 0x5d, 0x01, 0x7a]);
    let table = [
        (ack.slice(..11), DecodeError::Short { bytes: 11 }),
        (Bytes::new(), DecodeError::Short { bytes: 0 }),
        (port(0), DecodeError::Port),
        (port(2), DecodeError::Port),
        (adler.into(), DecodeError::Checksum),
        (packet_of(&[11, 0, 0, 3]), DecodeError::Length { kind: 11 }),
        (packet_of(&[0, 3, 255, 255, 0, 0, 0, 0]), DecodeError::Length { kind: 0 }),
        (packet_of(&[0, 3, 0, 15, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]), malformed(0)),
        (packet_of(&[3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0]), malformed(3)),
        (packet_of(&[3, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 255, 255]), malformed(3)),
        (packet_of(&[1, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0, 1]), malformed(1)),
        (packet_of(&[4, 0, 0, 4]), malformed(4)),
        (packet_of(&[4, 0, 0, 8, 0, 1, 0, 9]), malformed(4)),
        (packet_of(&[7, 0, 0, 4]), malformed(7)),
        (
            packet_of(&[0x10, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 0]),
            malformed(16),
        ),
        (packet_of(&[0x40, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 1]), malformed(0x40)),
        (packet_of(&[0xc0, 0, 0, 10, 0, 0, 0, 1, 0, 1, 0, 0]), malformed(0xc0)),
        (packet_of(&[0xc2, 0, 0, 12, 0, 0, 0, 1, 0, 1, 0, 0]), malformed(0xc2)),
        (packet_of(&[0x82, 0, 0, 8, 0, 13, 0, 5]), malformed(0x82)),
        (packet_of(&[0xc1, 0, 0, 4]), malformed(0xc1)),
        (packet_of(&[0x0f, 0, 0, 6, 0, 1, 0, 0]), malformed(0x0f)),
    ];
    for (bytes, expected) in table {
        assert_eq!(decoded(&bytes, Checksum::Crc32c), Err(expected), "{bytes:?}");
        assert!(expected.to_string().len() > 10);
    }
}

fn malformed(kind: u8) -> DecodeError {
    DecodeError::Malformed { kind, at: HEADER }
}

/// Names of the chunks that were read.
fn kinds(chunks: &[u8]) -> Vec<String> {
    let packet = decoded(&packet_of(chunks), Checksum::Crc32c).expect("a packet");
    packet.chunks.iter().map(|c| format!("{c:?}").chars().take(9).collect()).collect()
}

#[test]
fn unknown_chunks_do_as_their_highest_bits_say() {
    let table: [(u8, &[&str]); 4] = [
        (0x3f, &["CookieAck"]),
        (0x7f, &["CookieAck", "Unknown(b"]),
        (0xbf, &["CookieAck", "ShutdownA"]),
        (0xff, &["CookieAck", "Unknown(b", "ShutdownA"]),
    ];
    for (kind, expected) in table {
        let found = kinds(&[11, 0, 0, 4, kind, 0, 0, 6, 1, 2, 0, 0, 8, 0, 0, 4]);
        assert_eq!(found, expected, "type {kind:#x}");
    }
}

#[test]
fn a_chunk_that_the_packet_cuts_short_is_left_out_and_missing_padding_is_forgiven() {
    let table: [(&[u8], &[&str]); 5] = [
        (&[11, 0, 0, 4, 8, 0, 0, 5], &["CookieAck"]),
        (&[11, 0, 0, 4, 8, 0, 0, 0], &["CookieAck"]),
        (&[11, 0, 0, 4, 8, 0], &["CookieAck"]),
        (&[11, 0, 0, 4, 10, 0, 0, 5, 7], &["CookieAck", "CookieEch"]),
        // Padding is ignored, whatever it contains.
        (&[10, 0, 0, 5, 7, 1, 2, 3, 11, 0, 0, 4], &["CookieEch", "CookieAck"]),
    ];
    for (chunks, expected) in table {
        assert_eq!(kinds(chunks), expected, "{chunks:?}");
    }
}

#[test]
fn a_packet_of_very_many_chunks_is_read_to_its_end() {
    let chunks: Vec<u8> = [8, 0, 0, 4].repeat(16_000);
    let packet = decoded(&packet_of(&chunks), Checksum::Crc32c).expect("a packet");
    assert_eq!(packet.chunks.len(), 16_000);
}

fn read_init(parameters: &[u8]) -> Result<Init, DecodeError> {
    let mut chunk = vec![1, 0, 0, 20 + parameters.len() as u8];
    chunk.extend([0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1]);
    chunk.extend(parameters);
    let packet = decoded(&packet_of(&chunk), Checksum::Crc32c)?;
    let Chunk::Init(init) = &packet.chunks[0] else { panic!("{packet:?}") };
    Ok(init.as_ref().clone())
}

#[test]
fn parameters_of_an_init_that_make_no_sense_make_the_packet_nothing() {
    let table: [&[u8]; 7] = [
        &[0, 5, 0, 0],
        &[0, 5, 0, 3],
        &[0, 5, 0, 8, 1, 2, 3],
        &[0, 5, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0],
        &[0, 6, 0, 8, 1, 2, 3, 4],
        &[0, 9, 0, 6, 1, 2, 0, 0],
        &[0xc0, 0, 0],
    ];
    for parameters in table {
        assert_eq!(read_init(parameters), Err(malformed(1)), "{parameters:?}");
    }
}

#[test]
fn unknown_parameters_do_as_their_highest_bits_say() {
    let address = [0, 5, 0, 8, 10, 0, 0, 1];
    for (high, reported, goes_on) in
        [(0x3f, false, false), (0x7f, true, false), (0xbf, false, true), (0xff, true, true)]
    {
        let unknown = [high, 0xf0, 0, 5, 1, 0, 0, 0];
        let init = read_init(&[unknown, address].concat()).expect("an INIT");
        let expected: &[Bytes] =
            if reported { &[Bytes::copy_from_slice(&unknown[..5])] } else { &[] };
        assert_eq!(init.options.unknown, expected, "{high:#x}");
        assert_eq!(init.addresses.len(), goes_on as usize, "{high:#x}");
    }
}

#[test]
fn an_init_with_a_parameter_that_stops_the_reader_is_written_as_it_was_read() {
    let report = [0, 8, 0, 8, 0xff, 0xf0, 0, 4];
    let stops = [0x5d, 0x51, 0, 4];
    let init = read_init(&[&report[..], &stops].concat()).expect("an INIT");
    assert_eq!((init.options.reported.len(), init.options.unknown.len()), (1, 1));
    let packet = Packet::of(9, Chunk::Init(Box::new(init)));
    let again = decoded(&encoded(&packet, Checksum::Crc32c), Checksum::Crc32c);
    assert_eq!(again, Ok(packet));
}

#[test]
fn what_an_init_has_too_much_of_is_left_out() {
    let many = |one: &[u8], times: usize| {
        let mut chunk = vec![1, 0, 0, 0];
        chunk.extend([0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1]);
        chunk.extend(one.repeat(times));
        let length = chunk.len() as u16;
        chunk[2..4].copy_from_slice(&length.to_be_bytes());
        let packet = decoded(&packet_of(&chunk), Checksum::Crc32c).expect("a packet");
        let Chunk::Init(init) = &packet.chunks[0] else { panic!("{packet:?}") };
        init.as_ref().clone()
    };
    assert_eq!(many(&[0, 5, 0, 8, 10, 0, 0, 1], 500).addresses.len(), 64);
    let unknown = many(&[0xff, 0xf0, 0, 4], 1000).options.unknown;
    assert_eq!(unknown.len(), 8);
    let long = many(&[[0xff, 0xf0, 0, 40].as_slice(), &[9; 36]].concat(), 100).options.unknown;
    assert_eq!(long.len(), 1, "64 B at most");
}

#[test]
fn a_heartbeat_of_ours_comes_back_as_it_went_and_a_foreign_one_is_none() {
    for probe in [None, Some(1400)] {
        let info = HeartbeatInfo { nonce: 7, sent: Time::from_millis(3), probe };
        assert_eq!(HeartbeatInfo::parse(&info.to_bytes()), Some(info));
    }
    for length in [0, 8, 15, 17, 19, 21, 60_000] {
        assert_eq!(HeartbeatInfo::parse(&vec![1; length]), None, "{length} B");
    }
}
