//! ASCONF and AUTH of a lying peer, and of a third party.

use core::net::IpAddr;

use proptest::prelude::*;
use ropewalk_base::{PathId, Serial32};
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{
    AbortCause, AddressChange, Chunk, Config, ExtensionChunk, Extensions, Negotiation, Packet,
};

use super::kit::{Victim, bytes_of, chunk, datagram, heartbeat, live, names, parameter, read};
use crate::driver::{LEFT, Pair, RIGHT, address_of};

const AUTH: u8 = 0x0f;
const ASCONF: u8 = 0xc1;
const ASCONF_ACK: u8 = 0x80;

/// Parameter types (RFC 5061, 4.2), independent of the codec.
const ADD: u16 = 0xc001;
const DELETE: u16 = 0xc002;
const ERROR: u16 = 0xc003;
const SET_PRIMARY: u16 = 0xc004;
const SUCCESS: u16 = 0xc005;

fn victim() -> Victim {
    let config = Config {
        address_reconfiguration: true,
        addresses: Some(vec![address_of(0), address_of(1)]),
        negotiation: Negotiation::Listed(Extensions::OFFERED),
        ..live(2, 1 << 16)
    };
    let mut pair = Pair::up(&config, &[10, 30]);
    pair.delays.resize(32, pair.delays[0]);
    Victim::of(pair)
}

fn address(ip: IpAddr) -> Vec<u8> {
    match ip {
        IpAddr::V4(ip) => parameter(5, &ip.octets()),
        IpAddr::V6(ip) => parameter(6, &ip.octets()),
    }
}

fn request(kind: u16, id: u32, ip: IpAddr) -> Vec<u8> {
    parameter(kind, &[&id.to_be_bytes()[..], &address(ip)].concat())
}

fn asconf(serial: Serial32, parameters: &[Vec<u8>]) -> Vec<u8> {
    let first = address(address_of(0));
    chunk(ASCONF, 0, &[&serial.0.to_be_bytes()[..], &first, &parameters.concat()].concat())
}

/// Each answer: its parameter type, the correlation identifier and the cause.
fn answers(packets: &[Packet]) -> Vec<(u16, u32, Option<u16>)> {
    let chunks = packets.iter().flat_map(|packet| &packet.chunks);
    let lists = chunks.filter_map(|chunk| match chunk {
        Chunk::Extension(one) => match &**one {
            ExtensionChunk::AsconfAck(_, list) => Some(list),
            _ => None,
        },
        _ => None,
    });
    let word = |value: &[u8]| u32::from_be_bytes(value[..4].try_into().expect("four"));
    lists
        .flatten()
        .map(|one| {
            let cause = (one.kind == ERROR).then(|| (word(&one.value[4..]) >> 16) as u16);
            (one.kind, word(&one.value), cause)
        })
        .collect()
}

impl Victim {
    /// A packet of these chunks, signed by the left end.
    fn signed(&self, chunks: &[Vec<u8>]) -> Packet {
        let bytes = datagram(self.tags(RIGHT).0, chunks);
        let mut packet = read(&bytes).expect("a packet");
        self.pair.ends[LEFT].sign_packet(&mut packet);
        packet
    }

    /// Passes a packet to the right end on a path. Returns the answers.
    fn come(&mut self, path: usize, packet: Packet) -> Vec<Packet> {
        let before = self.pair.log.len();
        self.pair.inject(RIGHT, path, packet);
        self.pair.log[before..].iter().map(|sent| sent.packet.clone()).collect()
    }

    /// Passes a signed packet with one ASCONF to the right end on path 0.
    fn ask_by_asconf(&mut self, serial: Serial32, parameters: &[Vec<u8>]) -> Vec<Packet> {
        let packet = self.signed(&[asconf(serial, parameters)]);
        self.come(0, packet)
    }

    fn serial(&self) -> Serial32 {
        self.first_tsn(LEFT)
    }

    fn changes(&self) -> &[AddressChange] {
        &self.pair.addresses[RIGHT]
    }

    fn addresses(&self) -> &[IpAddr] {
        self.pair.ends[RIGHT].peer_addresses()
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

#[test]
fn without_a_code_nothing_is_answered_and_no_address_changes() {
    let mut victim = victim();
    let serial = victim.serial();
    let asks = [request(ADD, 1, ip("192.0.2.9")), request(DELETE, 2, address_of(1))];
    let ack = chunk(ASCONF_ACK, 0, &serial.0.to_be_bytes());
    let auth = |key: u16, hmac: u16, code: &[u8]| {
        chunk(AUTH, 0, &[&key.to_be_bytes()[..], &hmac.to_be_bytes(), code].concat())
    };
    let before = victim.all(RIGHT);
    for first in
        [None, Some(auth(0, 3, &[0; 32])), Some(auth(0, 1, &[7; 20])), Some(auth(9, 3, &[0; 32]))]
    {
        for body in [asconf(serial, &asks), ack.clone()] {
            let chunks: Vec<_> = first.clone().into_iter().chain([body]).collect();
            assert!(victim.hit(RIGHT, &chunks).is_empty(), "{first:?}");
        }
    }
    assert_eq!(victim.all(RIGHT).len(), before.len());
    assert_eq!(victim.addresses(), [address_of(0), address_of(1)]);
    // An algorithm that was not offered is reported, and the following chunks are discarded.
    let chunks = [heartbeat(b"one"), auth(0, 2, &[7; 20]), heartbeat(b"two")];
    let answer = victim.hit(RIGHT, &chunks);
    assert_eq!(names(&answer), ["ERROR", "HEARTBEAT ACK"]);
    assert!(victim.changes().is_empty());
}

/// The unspecified address stands for the source, which an attacker can forge.
#[test]
fn a_source_becomes_an_address_only_by_an_authentic_request_from_there() {
    let mut victim = victim();
    let serial = victim.serial();
    let any = ip("0.0.0.0");
    let asks = asconf(
        serial,
        &[request(ADD, 1, any), request(SET_PRIMARY, 2, any), request(DELETE, 3, any)],
    );
    let signed = victim.signed(std::slice::from_ref(&asks));
    let tag = victim.tags(RIGHT).0;
    let unsigned = read(&datagram(tag, &[asks])).expect("a packet");
    let mut forged = signed.clone();
    for chunk in &mut forged.chunks {
        if let Chunk::Extension(one) = chunk
            && let ExtensionChunk::Auth(auth) = &mut **one
        {
            let mut code = auth.code.to_vec();
            code[0] ^= 1;
            auth.code = code.into();
        }
    }
    let mut other = signed.clone();
    other.tag ^= 1;
    // From a foreign source, and from a known one.
    for packet in [unsigned, forged, other] {
        for link in [3, 1] {
            assert!(victim.come(link, packet.clone()).is_empty(), "{packet:?}");
            assert_eq!(victim.addresses(), [address_of(0), address_of(1)]);
        }
    }
    assert!(victim.changes().is_empty());
    assert!(answers(&victim.come(3, signed)).is_empty());
    assert_eq!(victim.addresses(), [address_of(3)]);
}

#[test]
fn a_repeated_request_gets_the_same_answer_and_others_are_discarded() {
    let mut victim = victim();
    let serial = victim.serial();
    for wrong in [1, 2, u32::MAX, 1 << 31] {
        assert!(
            victim
                .ask_by_asconf(serial.plus(wrong), &[request(DELETE, 1, address_of(1))])
                .is_empty()
        );
    }
    for at in 0..4 {
        let ask = victim.signed(&[asconf(serial.plus(at), &[request(DELETE, at, address_of(0))])]);
        let answer = victim.come(0, ask.clone());
        assert_eq!(answers(&answer), [(ERROR, at, Some(0xa2))]);
        // A copy that an attacker sends from another address.
        for path in [0, 1] {
            let again = victim.come(path, ask.clone());
            assert_eq!(answers(&again), answers(&answer));
            assert_eq!(again.len(), 1);
        }
        if at > 0 {
            let old = [request(DELETE, 1, address_of(1))];
            assert!(victim.ask_by_asconf(serial.plus(at - 1), &old).is_empty());
        }
    }
    assert!(victim.changes().is_empty());
}

#[test]
fn refused_requests_say_why_and_what_was_done_after_them_is_said_as_well() {
    let mut victim = victim();
    let serial = victim.serial();
    let host_name = parameter(ADD, &[&9_u32.to_be_bytes()[..], &parameter(11, b"name")].concat());
    let answer = victim.ask_by_asconf(
        serial,
        &[
            request(ADD, 0, ip("192.0.2.7")),
            request(ADD, 1, ip("224.0.0.1")),
            request(ADD, 2, ip("255.255.255.255")),
            request(DELETE, 3, address_of(0)),
            request(SET_PRIMARY, 4, ip("198.51.100.1")),
            host_name,
            request(DELETE, 6, ip("198.51.100.1")),
            request(ADD, 7, address_of(1)),
        ],
    );
    assert_eq!(
        answers(&answer),
        [
            (ERROR, 1, Some(5)),
            (ERROR, 2, Some(5)),
            (ERROR, 3, Some(0xa2)),
            (ERROR, 4, Some(5)),
            (ERROR, 9, Some(5)),
            (SUCCESS, 6, None),
            (SUCCESS, 7, None),
        ]
    );
    assert_eq!(victim.addresses(), [address_of(0), address_of(1), ip("192.0.2.7")]);
    // All except the source, then the last one.
    let answer = victim.ask_by_asconf(serial.plus(1), &[request(DELETE, 1, ip("0.0.0.0"))]);
    assert!(answers(&answer).is_empty() && names(&answer).contains(&"ASCONF ACK"));
    assert_eq!(victim.addresses(), [address_of(0)]);
    let answer = victim.ask_by_asconf(serial.plus(2), &[request(DELETE, 1, address_of(0))]);
    assert_eq!(answers(&answer), [(ERROR, 1, Some(0xa0))]);
    // The unspecified address stands for the source.
    let packet = victim.signed(&[asconf(
        serial.plus(3),
        &[request(ADD, 1, ip("0.0.0.0")), request(SET_PRIMARY, 2, ip("::"))],
    )]);
    assert!(answers(&victim.come(1, packet)).is_empty());
    assert_eq!(victim.addresses(), [address_of(0), address_of(1)]);
    assert_eq!(victim.pair.ends[RIGHT].primary(), PathId(1));
}

#[test]
fn a_peer_has_sixteen_addresses_at_most_and_as_many_paths() {
    let mut victim = victim();
    let serial = victim.serial();
    let mut refused = 0;
    for at in 0..60_u32 {
        let answer = victim
            .ask_by_asconf(serial.plus(at), &[request(ADD, at, address_of(at as usize % 30))]);
        refused += answers(&answer).iter().filter(|one| one.2 == Some(0xa1)).count();
        assert!(victim.addresses().len() <= 16);
        assert!(victim.pair.ends[RIGHT].path_count() <= 16);
    }
    assert_eq!(refused, 2 * 14);
    let before = victim.all(RIGHT).len();
    for at in 60..400_u32 {
        let path = 2 + at as usize / 2 % 14;
        let kind = if at % 2 == 0 { DELETE } else { ADD };
        victim.ask_by_asconf(serial.plus(at), &[request(kind, at, address_of(path))]);
    }
    assert_eq!(victim.addresses().len(), 16);
    assert_eq!(victim.pair.ends[RIGHT].path_count(), 16);
    assert!(victim.all(RIGHT).len() < before + 20_000, "nothing grows");
}

#[test]
fn the_answer_fits_into_a_packet_however_much_is_asked() {
    let mut victim = victim();
    let serial = victim.serial();
    let asks: Vec<_> = (0..60).map(|id| request(ADD, id, ip("ff02::1"))).collect();
    let answer = victim.ask_by_asconf(serial, &asks);
    assert_eq!(answer.len(), 1);
    let length = victim.pair.ends[RIGHT].config().packet_len(&answer[0]);
    assert!(length <= 1500, "{length} B");
    assert!(answers(&answer).len() > 20);
    // Many in one packet are answered by one packet.
    let chunks: Vec<_> = (1..40).map(|at| asconf(serial.plus(at), &[])).collect();
    let packet = victim.signed(&chunks);
    assert!(victim.come(0, packet).len() <= 1);
}

#[test]
fn an_answer_that_nobody_asked_for_is_illegal_and_an_old_one_is_nothing() {
    let ack = |serial: Serial32| chunk(ASCONF_ACK, 0, &serial.0.to_be_bytes());
    let mut victim = victim();
    let own = victim.first_tsn(RIGHT);
    victim.pair.ends[RIGHT].add_address(ip("192.0.2.1")).expect("it may be asked");
    victim.pair.drain(RIGHT);
    for old in [own.plus(u32::MAX), own.plus(u32::MAX - 5)] {
        let packet = victim.signed(&[ack(old)]);
        assert!(victim.come(0, packet).is_empty());
    }
    assert!(victim.changes().is_empty());
    let packet = victim.signed(&[ack(own.plus(1))]);
    let answer = victim.come(0, packet);
    assert_eq!(names(&answer), ["ABORT"]);
    let reason = CloseReason::Aborted(AbortCause::Other(163));
    assert_eq!(victim.state(RIGHT), &State::Ended(reason));
}

#[test]
fn a_new_source_is_admitted_for_an_authentic_asconf_of_the_next_number_only() {
    let mut victim = victim();
    let serial = victim.serial();
    let add = [request(ADD, 1, ip("0.0.0.0"))];
    let good = victim.signed(&[asconf(serial, &add)]);
    let admits = |victim: &Victim, packet: &Packet| victim.pair.ends[RIGHT].admits_source(packet);
    assert!(admits(&victim, &good));
    let unsigned = read(&datagram(victim.tags(RIGHT).0, &[asconf(serial, &add)])).expect("one");
    let later = victim.signed(&[asconf(serial.plus(1), &add)]);
    let elsewhere = [&serial.0.to_be_bytes()[..], &address(ip("192.0.2.1")), &add[0]].concat();
    let elsewhere = victim.signed(&[chunk(ASCONF, 0, &elsewhere)]);
    let other_tag = Packet { tag: good.tag ^ 1, ..good.clone() };
    let no_asconf = victim.signed(&[heartbeat(b"only")]);
    for (at, packet) in [unsigned, later, elsewhere, other_tag, no_asconf].iter().enumerate() {
        assert!(!admits(&victim, packet), "{at}");
    }
    victim.come(0, good.clone());
    assert!(admits(&victim, &good), "the answer may have been lost");
    victim.ask_by_asconf(serial.plus(1), &[]);
    assert!(!admits(&victim, &good), "a replay");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_an_authentic_peer_asks_the_addresses_stay_within_their_bounds(
        bodies in prop::collection::vec(
            prop::collection::vec((prop::sample::select(vec![ADD, DELETE, SET_PRIMARY, ERROR, SUCCESS, 0xc006, 0x0005, 0x4001]), 0_usize..20, 0_usize..24), 0..12),
            1..12,
        ),
        cut in 0_usize..200,
    ) {
        let mut victim = victim();
        let mut serial = victim.serial();
        for body in bodies {
            let parameters: Vec<_> = body.iter().map(|(kind, path, length)| {
                let mut one = request(*kind, 7, address_of(*path));
                // Some are truncated, and some have a wrong length.
                if *length < 12 && cut % 3 == 0 {
                    one.truncate(*length / 4 * 4);
                }
                one
            }).collect();
            let bytes = datagram(victim.tags(RIGHT).0, &[asconf(serial, &parameters)]);
            if let Ok(mut packet) = read(&bytes) {
                victim.pair.ends[LEFT].sign_packet(&mut packet);
                let answer = victim.come(cut % 2, packet);
                prop_assert!(answer.iter().all(|one| one.wire_len() <= 1280));
            }
            serial = serial.plus(u32::from(cut % 5 != 0));
            let end = &victim.pair.ends[RIGHT];
            prop_assert!(!end.peer_addresses().is_empty() && end.peer_addresses().len() <= 16);
            prop_assert!(end.path_count() <= 16);
            prop_assert_eq!(end.state(), &State::Established);
        }
    }

    #[test]
    fn a_signed_packet_with_a_changed_byte_changes_no_address(at in 12_usize..120, bit in 0_u8..8) {
        let mut victim = victim();
        let asks = [request(DELETE, 1, address_of(1)), request(ADD, 2, address_of(2))];
        let packet = victim.signed(&[asconf(victim.serial(), &asks)]);
        let mut bytes = bytes_of(&packet).to_vec();
        let at = 12 + at % (bytes.len() - 12);
        bytes[at] ^= 1 << bit;
        if let Ok(packet) = read(&super::kit::with_sum(bytes)) {
            let answer = victim.come(0, packet);
            prop_assert!(!names(&answer).contains(&"ASCONF ACK"));
        }
        prop_assert!(victim.changes().is_empty());
        prop_assert_eq!(victim.addresses(), &[address_of(0), address_of(1)]);
    }
}

#[test]
fn cut_auth_chunks_change_nothing() {
    // An AUTH chunk that is truncated, at the end of a packet, or without a code.
    let mut victim = victim();
    for length in 0..40 {
        let body = chunk(AUTH, 0, &vec![0; length]);
        let bytes = datagram(victim.tags(RIGHT).0, &[body, heartbeat(b"after")]);
        for end in 12..bytes.len() {
            let cut = super::kit::with_sum(bytes[..end].to_vec());
            victim.take(RIGHT, 0, &cut);
        }
    }
    assert_eq!(victim.state(RIGHT), &State::Established);
    assert!(victim.changes().is_empty());
}
