//! A peer that violates RFC 8831 and RFC 8832: each fault is counted, memory stays bounded, and other channels
//! continue.

use ropewalk_base::StreamId;
use ropewalk_engine::sctp::AcceptedRequests;
use ropewalk_engine::sctp::association::ResetDirection;
use ropewalk_webrtc::{
    ChannelClosed, ChannelId, ChannelOptions, Config, Connection, Dcep, DtlsRole, Duration, Event,
    Message, Reliability, Time, Violation,
};

use crate::link::{Crafted, Link, Ours};

const DCEP: u32 = 50;
const STRING: u32 = 51;
const BINARY: u32 = 53;

/// This crate as the DTLS server, so that the peer opens even numbers.
fn up(config: Config) -> Link<Ours, Crafted> {
    let mut link = Link::new(Ours::new(config, 2), Crafted::new());
    link.run(|link| link.a.has(&Event::Connected));
    link
}

fn server() -> Config {
    Config::new(DtlsRole::Server)
}

fn open(label: &str) -> Vec<u8> {
    Dcep::Open(ChannelOptions::labelled(label)).encode()
}

fn count(connection: &Connection, violation: Violation) -> u64 {
    let stats = connection.stats(Time::ZERO);
    stats.violations.iter().find(|(one, _)| *one == violation).map_or(0, |(_, count)| *count)
}

fn total(connection: &Connection) -> u64 {
    connection.stats(Time::ZERO).violations.iter().map(|(_, count)| count).sum()
}

fn send(link: &mut Link<Ours, Crafted>, stream: u16, ppid: u32, bytes: &[u8]) {
    let now = link.now;
    link.b.send(now, stream, ppid, bytes);
}

/// A well-behaved channel still works alongside the others.
fn goes_on(link: &mut Link<Ours, Crafted>) {
    send(link, 1000, DCEP, &open("sound"));
    send(link, 1000, STRING, b"still here");
    let channel = ChannelId(1000);
    let arrived = Event::Message { channel, message: Message::from("still here") };
    link.run(|link| link.a.has(&arrived) && !link.b.on(1000).is_empty());
    assert_eq!(link.b.on(1000), [(DCEP, Dcep::Ack.encode().into())]);
}

#[test]
fn malformed_messages_of_the_protocol_are_counted_and_not_acknowledged() {
    let whole = open("label");
    let mut kind = whole.clone();
    kind[1] = 0x03;
    let mut text = whole.clone();
    text[12] = 0xff;
    let lies = [&whole[..8], &[0xff, 0xff, 0xff, 0xff], &whole[12..]].concat();
    let cases = [vec![0], vec![1, 2, 3], whole[..11].to_vec(), kind, text, lies];
    let mut link = up(server());
    for (at, bytes) in cases.iter().enumerate() {
        send(&mut link, 2 * at as u16, DCEP, bytes);
    }
    link.run(|link| count(&link.a.connection, Violation::Malformed) == cases.len() as u64);
    assert!(link.b.received.is_empty(), "nothing was acknowledged");
    assert_eq!(link.a.connection.channels().count(), 0);
    goes_on(&mut link);
}

#[test]
fn channels_with_numbers_of_this_end_are_refused() {
    let mut link = up(server());
    for stream in [1, 3, 65_533] {
        send(&mut link, stream, DCEP, &open("odd"));
    }
    link.run(|link| count(&link.a.connection, Violation::Parity) == 3);
    assert!(link.b.received.is_empty());
    // This end no longer uses the numbers: the peer may still send on them.
    let now = link.now;
    let own = link.a.connection.open(now, ChannelOptions::default());
    assert_eq!(own, Ok(ChannelId(5)));
    goes_on(&mut link);
}

#[test]
fn a_channel_that_is_opened_twice_is_closed() {
    let mut link = up(server());
    for _ in 0..2 {
        send(&mut link, 4, DCEP, &open("twice"));
    }
    let (channel, reason) = (ChannelId(4), ChannelClosed::Violation(Violation::InUse));
    link.run(|link| link.a.has(&Event::Closed { channel, reason }));
    goes_on(&mut link);
}

#[test]
fn thousands_of_channels_are_bounded_by_number_and_by_the_length_of_their_labels() {
    let mut link = up(server());
    for at in 0..5000 {
        send(&mut link, 2 * at, DCEP, &open("many"));
    }
    link.run(|link| count(&link.a.connection, Violation::TooMany) == 5000 - 1024);
    assert_eq!(link.a.connection.channels().count(), 1024);
    // None is left for this end either.
    let now = link.now;
    assert!(link.a.connection.open(now, ChannelOptions::default()).is_err());

    let mut link = up(server());
    let long = "l".repeat(65_535);
    for at in 0..100 {
        send(&mut link, 2 * at, DCEP, &open(&long));
    }
    link.run(|link| count(&link.a.connection, Violation::TooMany) == 100 - 16);
    assert_eq!(link.a.connection.channels().count(), 16, "16 labels of 65,535 B are in 1 MiB");
    goes_on(&mut link);
}

#[test]
fn messages_on_channels_that_were_not_opened_are_dropped_and_counted_once_for_each_stream() {
    let mut link = up(server());
    for stream in [6, 7] {
        for _ in 0..50 {
            send(&mut link, stream, BINARY, b"?");
        }
    }
    link.run(|link| count(&link.a.connection, Violation::Unopened) == 2);
    link.run_for(Duration::from_secs(5));
    assert_eq!(count(&link.a.connection, Violation::Unopened), 2);
    assert_eq!(link.a.connection.stats(link.now).messages_dropped, 98);
    assert!(!link.a.events.iter().any(|event| matches!(event, Event::Message { .. })));
    goes_on(&mut link);
}

#[test]
fn messages_of_unknown_kind_strings_that_are_not_text_and_unexpected_acks_close_their_channel() {
    let cases: [(u32, &[u8], Violation); 5] = [
        (0, b"x", Violation::Kind),
        // Deprecated fragments of messages (RFC 8831, 6.6).
        (52, b"x", Violation::Kind),
        (54, b"x", Violation::Kind),
        (STRING, &[b'a', 0xc3, 0x28], Violation::Text),
        (DCEP, &[2], Violation::UnexpectedAck),
    ];
    let mut link = up(server());
    for (at, (ppid, bytes, violation)) in cases.into_iter().enumerate() {
        let stream = 2 * at as u16;
        send(&mut link, stream, DCEP, &open("bad"));
        send(&mut link, stream, BINARY, b"before");
        send(&mut link, stream, ppid, bytes);
        send(&mut link, stream, BINARY, b"after");
        let (channel, reason) = (ChannelId(stream), ChannelClosed::Violation(violation));
        link.run(|link| link.a.has(&Event::Closed { channel, reason }));
        let here = |event: &&Event| matches!(event, Event::Message { channel: one, .. } if *one == channel);
        assert_eq!(link.a.events.iter().filter(here).count(), 1, "only what came before");
    }
    goes_on(&mut link);
}

#[test]
fn messages_longer_than_the_limit_close_their_channel_in_one_piece_or_in_parts() {
    // With a buffer of 64 KiB, a message of 300 kB arrives in parts.
    for receive_buffer in [64 << 10, 8 << 20] {
        let config = Config { max_message_size: 100_000, receive_buffer, ..server() };
        let mut link = up(config);
        send(&mut link, 0, DCEP, &open("long"));
        send(&mut link, 0, BINARY, &vec![1; 100_000]);
        send(&mut link, 0, BINARY, &vec![2; 300_000]);
        let (channel, reason) = (ChannelId(0), ChannelClosed::Violation(Violation::TooLong));
        link.run(|link| link.a.has(&Event::Closed { channel, reason }));
        let message = Message::from(vec![1; 100_000]);
        assert!(link.a.has(&Event::Message { channel, message }), "what fits is delivered");
        goes_on(&mut link);
    }
}

#[test]
fn other_data_than_sctp_packets_and_other_ports_are_dropped_and_counted() {
    let mut link = up(server());
    let now = link.now;
    let mut packet = Vec::new();
    for bytes in [&b""[..], b"short", &[0; 12], &[0xff; 1200]] {
        link.a.connection.handle_packet(now, bytes.to_vec().into());
    }
    let mut other = Connection::new(
        Config { remote_port: 5001, ..Config::new(DtlsRole::Client) },
        ropewalk_webrtc::Seed::root(9),
        now,
    );
    assert!(other.poll_transmit(now, &mut packet), "an INIT");
    link.a.connection.handle_packet(now, packet.into());
    assert_eq!(link.a.connection.stats(now).packets_refused, 5);
    goes_on(&mut link);
}

#[test]
fn a_peer_cannot_make_an_application_wait_for_the_answer_to_its_announcement() {
    // The peer never answers: messages arrive ordered, and the channel can be closed.
    let mut link = up(server());
    let now = link.now;
    let options = ChannelOptions {
        ordered: false,
        reliability: Reliability::Retransmissions(0),
        ..ChannelOptions::default()
    };
    let channel = link.a.connection.open(now, options).expect("room");
    for number in 0..20u8 {
        link.a.connection.send(now, channel, Message::from(vec![number])).expect("room");
    }
    link.run(|link| link.b.on(1).len() == 21);
    assert!(link.b.received.iter().all(|message| !message.unordered), "RFC 8832, 6");
    // Any message of the peer counts as an answer; later messages are unordered.
    send(&mut link, 1, STRING, b"yes");
    link.run(|link| link.a.has(&Event::Opened { channel, by_peer: false }));
    let now = link.now;
    link.a.connection.send(now, channel, Message::from("unordered")).expect("room");
    link.run(|link| link.b.received.last().is_some_and(|message| message.unordered));
    link.a.connection.close(channel);
    link.run(|link| link.a.has(&Event::Closed { channel, reason: ChannelClosed::Here }));
    assert_eq!(total(&link.a.connection), 0);
}

#[test]
fn a_peer_without_stream_reconfiguration_gets_its_data_and_a_closed_number_is_not_used_again() {
    let mut link = up(server());
    let now = link.now;
    let channel = link.a.connection.open(now, ChannelOptions::default()).expect("room");
    link.a.connection.send(now, channel, Message::from("last words")).expect("room");
    link.a.connection.close(channel);
    link.run(|link| link.a.has(&Event::Closed { channel, reason: ChannelClosed::Here }));
    link.run(|link| link.b.on(1).len() == 2);
    let now = link.now;
    let next = link.a.connection.open(now, ChannelOptions::default());
    assert_eq!(next, Ok(ChannelId(3)));
    goes_on(&mut link);
}

#[test]
fn a_peer_that_breaks_rules_on_every_stream_makes_few_requests() {
    let mut crafted = Crafted::reconfiguring();
    crafted.association.set_accepted_requests(AcceptedRequests::ALL);
    let mut link = Link::new(Ours::new(server(), 2), crafted);
    link.run(|link| link.a.has(&Event::Connected));
    for stream in 0..20_000 {
        send(&mut link, stream, BINARY, b"?");
    }
    link.run(|link| count(&link.a.connection, Violation::Unopened) == 20_000);
    link.run_for(Duration::from_secs(60));
    // The streams were reset by this end, and the peer may open channels on them once it has reset its own.
    let reset = link.b.reset_by_peer.iter().map(|streams| streams.listed().len()).sum::<usize>();
    assert_eq!(reset, 20_000);
    send(&mut link, 0, DCEP, &open("refused"));
    link.run(|link| count(&link.a.connection, Violation::InUse) == 1);
    let all: Vec<StreamId> = (0..100).map(StreamId).collect();
    link.b.association.reset_streams(&all, ResetDirection::Outgoing).expect("a request");
    link.run_for(Duration::from_secs(10));
    send(&mut link, 2, DCEP, &open("welcome"));
    let channel = ChannelId(2);
    link.run(|link| link.a.has(&Event::Opened { channel, by_peer: true }));
}
