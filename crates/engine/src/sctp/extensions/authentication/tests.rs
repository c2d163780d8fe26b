//! Packets are signed and verified in their wire format.

use bytes::Bytes;
use proptest::prelude::*;
use ropewalk_base::{Serial16, Serial32, StreamId, Time};

use super::*;
use crate::payload::Payload;
use crate::sctp::chunk::{Data, DataFlags};
use crate::sctp::extension_chunk::RawParameter;
use crate::sctp::wire::{Checksum, Ports, decode, encode};

const PORTS: Ports = Ports { source: 5001, destination: 9899 };

/// Both ends of an association. The second accepts these types only in authenticated packets.
fn ends(types: &[u8], keys: [&SharedKeys; 2]) -> [Authentication; 2] {
    let one = AuthParameters::new([1; 32], ChunkTypes::ASCONF, HmacList::default());
    let other = AuthParameters::new([2; 32], ChunkTypes::of(types), HmacList::default());
    [
        Authentication::agree(&one, &other, keys[0]).expect("both offer it"),
        Authentication::agree(&other, &one, keys[1]).expect("both offer it"),
    ]
}

fn keyed(id: u16, key: &[u8]) -> SharedKeys {
    let mut keys = SharedKeys::default();
    keys.set(id, key).and_then(|()| keys.activate(id)).expect("room");
    keys
}

fn data(bytes: usize) -> Chunk {
    Chunk::Data(Data {
        tsn: Serial32(7),
        stream: StreamId(1),
        ssn: Serial16(0),
        ppid: 9,
        flags: DataFlags::WHOLE,
        message_high: 0,
        payload: Payload::from(Bytes::from(vec![5; bytes])),
        first_sent: Time::ZERO,
    })
}

fn asconf(serial: u32) -> Chunk {
    let address = RawParameter { kind: 5, value: Bytes::from_static(&[10, 0, 0, 1]) };
    Chunk::Extension(Box::new(ExtensionChunk::Asconf(Serial32(serial), vec![address])))
}

fn packet(chunks: Vec<Chunk>) -> Packet {
    Packet { tag: 77, chunks: chunks.into(), ..Packet::default() }
}

fn bytes_of(packet: &Packet) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(packet, PORTS, Checksum::None, &mut bytes);
    bytes
}

/// The packet as its receiver reads it.
fn received(bytes: Vec<u8>) -> Option<Packet> {
    let mut packet = Packet::default();
    decode(&Bytes::from(bytes), Checksum::None, &mut packet).ok().map(|_| packet)
}

fn kinds(packet: &Packet) -> Vec<u8> {
    packet.chunks.iter().map(Chunk::kind).collect()
}

#[test]
fn the_code_stands_before_the_first_chunk_that_needs_it_and_lets_all_after_it_pass() {
    let none = SharedKeys::default();
    let [one, mut other] = ends(&[kind::ASCONF, kind::SACK], [&none, &none]);
    for (chunks, at) in [
        (vec![Chunk::CookieAck, asconf(1), data(9)], Some(1)),
        (vec![asconf(1)], Some(0)),
        (vec![Chunk::CookieAck, data(9)], None),
    ] {
        let mut sent = packet(chunks.clone());
        let length = one.sign(&mut sent);
        assert_eq!(length, at.map(|_| 40));
        assert_eq!(kinds(&sent).iter().position(|kind| *kind == kind::AUTH), at);
        assert_eq!(sent.wire_len() as usize, bytes_of(&sent).len());
        let mut taken = received(bytes_of(&sent)).expect("a packet");
        assert_eq!(taken, sent);
        assert_eq!(other.filter(&mut taken).unsupported, None);
        assert_eq!(taken.chunks[..], chunks[..]);
        // Without encoding in between, as in a simulation.
        assert_eq!(other.filter(&mut sent).unsupported, None);
        assert_eq!(sent.chunks[..], chunks[..]);
    }
}

#[test]
fn chunks_without_a_code_that_need_one_are_left_out_and_others_are_not() {
    let none = SharedKeys::default();
    let [_, mut other] = ends(&[kind::ASCONF, kind::COOKIE_ACK], [&none, &none]);
    let mut bare = packet(vec![Chunk::CookieAck, data(3), asconf(1), Chunk::ShutdownAck]);
    assert_eq!(other.filter(&mut bare).unsupported, None);
    assert_eq!(kinds(&bare), [kind::DATA, kind::SHUTDOWN_ACK]);
}

#[test]
fn a_code_of_another_key_or_algorithm_ends_the_packet_before_it() {
    let (none, seven, other_seven) =
        (SharedKeys::default(), keyed(7, b"secret"), keyed(7, b"other"));
    for (theirs, ours, good) in [
        (&none, &none, true),
        (&seven, &seven, true),
        // The receiver also has key 0.
        (&none, &seven, true),
        (&seven, &none, false),
        (&seven, &other_seven, false),
    ] {
        let [one, mut other] = ends(&[kind::ASCONF], [theirs, ours]);
        let mut sent = packet(vec![Chunk::CookieAck, asconf(1), data(1)]);
        one.sign(&mut sent);
        assert_eq!(other.is_authentic(&sent), good);
        assert_eq!(other.filter(&mut sent).unsupported, None);
        let all = [kind::COOKIE_ACK, kind::ASCONF, kind::DATA];
        assert_eq!(kinds(&sent), if good { &all[..] } else { &all[..1] });
    }
    let [one, mut other] = ends(&[kind::ASCONF], [&none, &none]);
    for id in [0, 2, 4, 0xffff] {
        let mut sent = packet(vec![Chunk::CookieAck, asconf(1), data(1)]);
        one.sign(&mut sent);
        let Chunk::Extension(extension) = &mut sent.chunks[1] else { panic!("no AUTH") };
        let ExtensionChunk::Auth(auth) = &mut **extension else { panic!("no AUTH") };
        auth.hmac = id;
        assert_eq!(other.filter(&mut sent).unsupported, Some(id));
        assert_eq!(kinds(&sent), [kind::COOKIE_ACK]);
    }
}

#[test]
fn the_first_auth_chunk_counts_and_others_are_left_out() {
    let none = SharedKeys::default();
    let [one, mut other] = ends(&[kind::ASCONF], [&none, &none]);
    let auth = |hmac| {
        let auth = Auth { key: 0, hmac, code: Bytes::new(), covered: Covered::default() };
        Chunk::Extension(Box::new(ExtensionChunk::Auth(auth)))
    };
    let mut sent = packet(vec![asconf(1), auth(3), auth(9), data(1)]);
    one.sign(&mut sent);
    let mut taken = received(bytes_of(&sent)).expect("a packet");
    assert_eq!(other.filter(&mut taken).unsupported, None);
    assert_eq!(kinds(&taken), [kind::ASCONF, kind::DATA]);
    // An invalid chunk before a valid one.
    let mut sent = packet(vec![asconf(1)]);
    one.sign(&mut sent);
    sent.chunks.insert(0, auth(3));
    let mut taken = received(bytes_of(&sent)).expect("a packet");
    other.filter(&mut taken);
    assert!(taken.chunks.is_empty());
}

#[test]
fn types_are_a_set_without_those_that_cannot_be_authenticated() {
    let all: Vec<u8> = (0..=u8::MAX).collect();
    let set = ChunkTypes::of(&all);
    let listed: Vec<u8> = set.iter().collect();
    assert_eq!(listed, TYPES);
    assert!(TYPES.is_sorted());
    assert!([1, 2, 14, 15].iter().all(|kind| !set.has(*kind) && !listed.contains(kind)));
    assert_eq!(ChunkTypes::of(&[0xc1, 0x80, 0x80]), ChunkTypes::ASCONF);
    assert!(set.without(set).is_empty() && set.and(ChunkTypes::NONE) == set);
    assert_eq!(format!("{:?}", ChunkTypes::ASCONF), "{128, 193}");
}

proptest! {
    #[test]
    fn a_changed_byte_behind_the_code_lets_nothing_pass_that_needs_a_code(
        at in 16_usize..200,
        bit in 0_u8..8,
        length in 1_usize..90,
    ) {
        let none = SharedKeys::default();
        let [one, mut other] = ends(&[kind::ASCONF, kind::DATA], [&none, &none]);
        let mut sent = packet(vec![Chunk::CookieAck, asconf(3), data(length)]);
        one.sign(&mut sent);
        let mut bytes = bytes_of(&sent);
        let at = 16 + at % (bytes.len() - 16);
        bytes[at] ^= 1 << bit;
        if let Some(mut taken) = received(bytes) {
            other.filter(&mut taken);
            let passed = kinds(&taken);
            prop_assert!(!passed.contains(&kind::ASCONF) && !passed.contains(&kind::DATA), "{passed:?}");
        }
    }

    #[test]
    fn any_auth_chunk_is_verified_or_refused_and_lets_nothing_pass(
        key in any::<u16>(),
        hmac in 0_u16..5,
        code in prop::collection::vec(any::<u8>(), 0..40),
        covered in prop::option::of(prop::collection::vec(any::<u8>(), 0..60)),
    ) {
        let none = SharedKeys::default();
        let [_, mut other] = ends(&[kind::ASCONF], [&none, &none]);
        let code = Bytes::from(code);
        let auth = Auth { key, hmac, code, covered: Covered(covered.unwrap_or_default().into()) };
        let auth = Chunk::Extension(Box::new(ExtensionChunk::Auth(auth)));
        let mut forged = packet(vec![auth, asconf(1)]);
        other.filter(&mut forged);
        prop_assert!(forged.chunks.is_empty());
        if let Some(mut taken) = received(bytes_of(&forged)) {
            other.filter(&mut taken);
            prop_assert!(taken.chunks.is_empty());
        }
    }
}

#[test]
fn an_algorithm_that_this_end_has_not_offered_is_neither_used_nor_accepted() {
    let keys = keyed(0, b"");
    let sha_1 = HmacList::of(&[1]).expect("SHA-1 alone");
    let all = AuthParameters::new([1; 32], ChunkTypes::of(&[0]), HmacList::default());
    let one = AuthParameters::new([2; 32], ChunkTypes::of(&[0]), sha_1);
    let ends = [(&all, &one), (&one, &all)];
    let [wide, narrow] = ends.map(|(own, peer)| Authentication::agree(own, peer, &keys));
    let (wide, mut narrow) = (wide.expect("both offer it"), narrow.expect("both offer it"));
    assert_eq!([wide.chunk_len(), narrow.chunk_len()], [28; 2], "SHA-1 in both directions");
    // SHA-256 was not offered, so a packet signed with it is refused even with the right keys.
    let mut forged = packet(vec![data(9)]);
    let signer = Authentication { hmac: HmacId::Sha256, ..wide };
    signer.sign(&mut forged).expect("it needs a code");
    let mut arrived = received(bytes_of(&forged)).expect("a packet");
    assert_eq!(narrow.filter(&mut arrived).unsupported, Some(3));
    assert!(arrived.chunks.is_empty());
}
