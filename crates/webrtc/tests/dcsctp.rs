//! This crate against dcsctp, the SCTP of Chromium, in virtual time: channels are opened, carry messages, and are closed by
//! either end, over a link that loses and reorders packets.

use std::collections::VecDeque;

use bytes::Bytes;
use dcsctp::api::{
    DcSctpSocket, Message as TheirMessage, Options, PpId, SendOptions, Socket, SocketEvent,
    SocketTime, StreamId,
};
use ropewalk_webrtc::{
    ChannelClosed, ChannelId, ChannelOptions, Config, Dcep, DtlsRole, Event, Message, Time,
};

use crate::link::{End, Link, Ours, Weather};

const DCEP: u32 = 50;
const BINARY: u32 = 53;

/// dcsctp, and the messages that it has received.
struct Theirs {
    socket: Socket,
    out: VecDeque<Vec<u8>>,
    received: Vec<(u16, u32, Vec<u8>)>,
    events: Vec<SocketEvent>,
}

impl Theirs {
    fn new(interleaving: bool) -> Self {
        let options = Options {
            max_message_size: 1 << 20,
            enable_message_interleaving: interleaving,
            ..Options::default()
        };
        let mut socket = Socket::new("theirs", &options);
        // Both ends send an INIT, as in WebRTC.
        socket.connect();
        Self { socket, out: VecDeque::new(), received: Vec::new(), events: Vec::new() }
    }

    fn send(&mut self, stream: u16, ppid: u32, bytes: &[u8]) {
        let message = TheirMessage::new(StreamId(stream), PpId(ppid), bytes.to_vec());
        self.socket.send(message, &SendOptions::default()).expect("it is up");
    }

    fn has_reset(&self, wanted: u16) -> bool {
        let of = |event: &SocketEvent| match event {
            SocketEvent::OnIncomingStreamReset(streams) => streams.contains(&StreamId(wanted)),
            _ => false,
        };
        self.events.iter().any(of)
    }
}

impl End for Theirs {
    fn take(&mut self, _: Time, packet: Bytes) {
        self.socket.handle_input(&packet);
    }

    fn on_time(&mut self, now: Time) {
        let since = std::time::Duration::from_nanos(now.as_nanos());
        self.socket.advance_time(SocketTime::zero() + since);
    }

    fn drain(&mut self, _: Time) {
        while let Some(message) = self.socket.get_next_message() {
            self.received.push((message.stream_id.0, message.ppid.0, message.payload.clone()));
        }
        while let Some(event) = self.socket.poll_event() {
            match event {
                SocketEvent::SendPacket(packet) => self.out.push_back(packet),
                other => self.events.push(other),
            }
        }
    }

    fn next_packet(&mut self, _: Time) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Time> {
        let at = self.socket.poll_timeout();
        let since: std::time::Duration = at - SocketTime::zero();
        (at != SocketTime::infinite_future()).then(|| Time::from_nanos(since.as_nanos() as u64))
    }
}

fn messages_on(theirs: &Theirs, stream: u16, kind: u32) -> Vec<&[u8]> {
    let here = theirs.received.iter().filter(|(one, ppid, _)| (*one, *ppid) == (stream, kind));
    here.map(|(.., bytes)| &bytes[..]).collect()
}

#[test]
fn channels_of_both_ends_carry_messages_and_are_closed_by_either_end_again_and_again() {
    for (interleaving, weather) in [
        (false, Weather::FAIR),
        (true, Weather::FAIR),
        (false, Weather { loss_permille: 50, jitter_ms: 20 }),
        (true, Weather { loss_permille: 50, jitter_ms: 20 }),
    ] {
        let ours = Ours::new(Config::new(DtlsRole::Server), 2);
        let mut link = Link::new(ours, Theirs::new(interleaving));
        link.weather = weather;
        link.run(|link| link.a.has(&Event::Connected));
        assert_eq!(link.a.connection.interleaves(), interleaving);
        for round in 0..6 {
            let ours_closes = round % 2 == 0;
            their_channel(&mut link, ours_closes);
            our_channel(&mut link, ours_closes);
            (link.a.events, link.b.received, link.b.events) = Default::default();
        }
        let violations = link.a.connection.stats(link.now).violations;
        assert!(violations.iter().all(|(_, count)| *count == 0), "{violations:?}");
    }
}

/// dcsctp opens channel 0, and its messages are echoed.
fn their_channel(link: &mut Link<Ours, Theirs>, ours_closes: bool) {
    let (channel, content) = (ChannelId(0), vec![7; 150_000]);
    link.b.send(0, DCEP, &Dcep::Open(ChannelOptions::labelled("theirs")).encode());
    link.b.send(0, BINARY, &content);
    let message = Message::from(content.clone());
    let arrived = Event::Message { channel, message };
    link.run(|link| link.a.has(&arrived));
    let now = link.now;
    link.a.connection.send(now, channel, Message::from(content[..60_000].to_vec())).expect("room");
    link.run(|link| messages_on(&link.b, 0, BINARY) == [&content[..60_000]]);
    assert_eq!(messages_on(&link.b, 0, DCEP), [Dcep::Ack.encode()]);
    close(link, channel, ours_closes);
}

/// This end opens channel 1, and dcsctp echoes.
fn our_channel(link: &mut Link<Ours, Theirs>, ours_closes: bool) {
    let now = link.now;
    let options = ChannelOptions { ordered: false, ..ChannelOptions::labelled("ours") };
    let channel = link.a.connection.open(now, options.clone()).expect("a number is free");
    assert_eq!(channel, ChannelId(1));
    link.run(|link| messages_on(&link.b, 1, DCEP) == [Dcep::Open(options.clone()).encode()]);
    link.b.send(1, DCEP, &Dcep::Ack.encode());
    link.run(|link| link.a.has(&Event::Opened { channel, by_peer: false }));
    close(link, channel, ours_closes);
}

fn close(link: &mut Link<Ours, Theirs>, channel: ChannelId, ours_closes: bool) {
    if ours_closes {
        link.a.connection.close(channel);
        link.run(|link| link.b.has_reset(channel.0));
    }
    let now = link.now;
    link.b.on_time(now);
    link.b.socket.reset_streams(&[StreamId(channel.0)]).expect("it is up");
    let reason = if ours_closes { ChannelClosed::Here } else { ChannelClosed::ByPeer };
    link.run(|link| link.a.has(&Event::Closed { channel, reason }) && link.b.has_reset(channel.0));
    // Their reset has ended as well.
    let ended = |event: &SocketEvent| matches!(event, SocketEvent::OnStreamsResetPerformed(all) if all.contains(&StreamId(channel.0)));
    link.run(|link| link.b.events.iter().any(ended));
}
