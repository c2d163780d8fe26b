//! One packet of every kind, and all packets of a short association.

use core::net::IpAddr;

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, Seed, Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::scheduler::{DelaySource, Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::{
    Answer, Association, Auth, Chunk, Config, Covered, Data, DataFlags, DelayEcho, DelayStamp,
    Echoed, ErrorCause, ExtensionChunk, Extensions, Families, ForwardTsn, GapBlock, GapList,
    IForwardTsn, Init, InitOptions, Listener, Negotiation, NrSack, Packet, PathConfig, Preset,
    RawParameter, Sack, Skipped,
};

/// A description of each packet, and the packet.
pub fn all() -> Vec<(String, Packet)> {
    let mut all = Vec::new();
    for (name, chunk) in control().into_iter().chain(data()).chain(rare()) {
        all.push((name.to_owned(), Packet::of(0x0102_0304, chunk)));
    }
    let mut stamped = Packet::of(7, data().remove(0).1);
    stamped.stamp = Some(DelayStamp { sent: 0x1122_3344_5566_7788 });
    stamped.echo = Some(DelayEcho { path: 3, of: Echoed::Time(1), received: u64::MAX });
    all.push(("delay".to_owned(), stamped));
    all.extend(association().into_iter().map(|packet| ("association".to_owned(), packet)));
    all
}

fn init() -> Init {
    let address = |text: &str| text.parse::<IpAddr>().expect("an address");
    Init {
        tag: 0xdead_beef,
        window: 1 << 20,
        outbound_streams: 10,
        inbound_streams: 65_535,
        initial_tsn: Serial32(u32::MAX),
        addresses: vec![address("192.0.2.1"), address("2001:db8::1"), address("198.51.100.7")],
        preserve_millis: 1500,
        options: InitOptions {
            families: Families { v4: true, v6: true },
            extensions: Extensions::DELAY.and(Extensions::PAD).and(Extensions::RE_CONFIG),
            forward_tsn: true,
            ecn: true,
            adaptation: Some(0x0102_0304),
            ..InitOptions::default()
        },
    }
}

fn control() -> Vec<(&'static str, Chunk)> {
    let cookie = Bytes::from_static(&[0xc0; 90]);
    let mut answer = init();
    answer.options.reported = vec![Bytes::from_static(&[0xff, 1, 0, 5, 9, 0, 0, 0])];
    let shown = Bytes::from_static(&[0xff, 0, 0, 6, 1, 2]);
    let address = Bytes::from_static(&[0, 5, 0, 8, 10, 0, 0, 9]);
    let causes = vec![
        ErrorCause::InvalidStream(StreamId(77)),
        ErrorCause::StaleCookie(1_000_000),
        ErrorCause::OutOfResource,
        ErrorCause::UnrecognisedChunk(shown.clone()),
        ErrorCause::InvalidParameter,
        ErrorCause::NoUserData(Serial32(5)),
        ErrorCause::CookieInShutdown,
        ErrorCause::ProtocolViolation(Bytes::from_static(b"why")),
    ];
    let abort = |reflected, causes| Chunk::Abort { reflected, causes };
    vec![
        ("INIT", Chunk::Init(Box::new(init()))),
        ("INIT_ACK", Chunk::InitAck(Box::new((answer, Some(cookie.clone()))))),
        ("COOKIE_ECHO", Chunk::CookieEcho(cookie)),
        ("COOKIE_ACK", Chunk::CookieAck),
        ("HEARTBEAT", Chunk::Heartbeat(Bytes::from_static(&[5; 16]))),
        ("HEARTBEAT_ACK", Chunk::HeartbeatAck(Bytes::from_static(&[6; 21]))),
        ("SHUTDOWN", Chunk::Shutdown(Serial32(0x8000_0000))),
        ("SHUTDOWN_ACK", Chunk::ShutdownAck),
        ("SHUTDOWN_COMPLETE", Chunk::SHUTDOWN_COMPLETE),
        ("SHUTDOWN_COMPLETE", Chunk::ShutdownComplete { reflected: true }),
        ("ABORT", abort(true, Vec::new())),
        ("ABORT", abort(false, vec![ErrorCause::NewAddresses(address.clone())])),
        ("ABORT", abort(false, vec![ErrorCause::UserAbort(Bytes::from_static(b"enough"))])),
        ("ABORT", abort(false, vec![ErrorCause::MissingParameters(vec![7])])),
        ("ERROR", Chunk::Error(causes)),
        ("ERROR", Chunk::error(ErrorCause::UnrecognisedParameters(shown))),
        ("ERROR", Chunk::error(ErrorCause::UnresolvableAddress(address))),
        ("UNKNOWN", Chunk::Unknown(Bytes::from_static(&[0xd7, 3, 0, 7, 1, 2, 3]))),
    ]
}

fn gaps(cumulative: u32, blocks: &[(u16, u16)]) -> GapList {
    let blocks = blocks.iter().map(|(start, end)| GapBlock { start: *start, end: *end });
    GapList::from_offsets(Serial32(cumulative), blocks)
}

fn data() -> Vec<(&'static str, Chunk)> {
    let data = |flags, payload: &'static [u8]| {
        Chunk::Data(Data {
            tsn: Serial32(0xffff_fffe),
            stream: StreamId(5),
            ssn: Serial16(65_535),
            ppid: 0x0a0b_0c0d,
            flags,
            message_high: 0,
            payload: Payload::from(Bytes::from_static(payload)),
            first_sent: Time::ZERO,
        })
    };
    let sack = |gaps, duplicates: &[u32], data_packets| {
        let duplicates = duplicates.iter().map(|tsn| Serial32(*tsn)).collect();
        let cumulative = Serial32(1000);
        Chunk::Sack(Sack { cumulative, window: 4321, gaps, duplicates, data_packets, number: None })
    };
    let i_data = Data {
        tsn: Serial32(1),
        stream: StreamId(2),
        ssn: Serial16(3),
        ppid: 0,
        flags: DataFlags::WHOLE.and(DataFlags::INTERLEAVED),
        message_high: 0,
        payload: Payload::from(Bytes::from_static(b"seven b")),
        first_sent: Time::ZERO,
    };
    vec![
        ("DATA", data(DataFlags::WHOLE, b"hello")),
        ("DATA", data(DataFlags::BEGIN.and(DataFlags::IMMEDIATE), b"1234")),
        ("DATA", data(DataFlags::END.and(DataFlags::UNORDERED), b"x")),
        ("I_DATA", Chunk::Data(i_data)),
        ("SACK", sack(GapList::default(), &[], 0)),
        ("SACK", sack(gaps(1000, &[(2, 3), (5, 5), (9, 65_535)]), &[999, 4], 3)),
    ]
}

fn rare() -> Vec<(&'static str, Chunk)> {
    let parameter = |kind, value: &'static [u8]| RawParameter { kind, value: value.into() };
    let nr_sack = NrSack {
        cumulative: Serial32(1000),
        window: 4321,
        gaps: gaps(1000, &[(2, 3)]),
        kept: gaps(1000, &[(5, 6), (9, 9)]),
        duplicates: vec![Serial32(999)],
        data_packets: 0,
    };
    let forward = ForwardTsn { cumulative: Serial32(9), streams: vec![(StreamId(1), Serial16(2))] };
    let skipped = Skipped { stream: StreamId(1), unordered: true, message: Serial32(2) };
    let i_forward = IForwardTsn { cumulative: Serial32(9), streams: vec![skipped] };
    let reset = parameter(13, &[0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 4, 0, 5]);
    let address = parameter(5, &[192, 0, 2, 1]);
    let add = parameter(0xc001, &[0, 0, 0, 7, 0, 5, 0, 8, 10, 0, 0, 2]);
    let success = parameter(0xc005, &[0, 0, 0, 7]);
    let code = Bytes::from_static(&[0xaa; 20]);
    let auth = Auth { key: 1, hmac: 1, code, covered: Covered::default() };
    let all = [
        ("NR_SACK", ExtensionChunk::NrSack(nr_sack)),
        ("FORWARD_TSN", ExtensionChunk::ForwardTsn(forward)),
        ("I_FORWARD_TSN", ExtensionChunk::IForwardTsn(i_forward)),
        ("RE_CONFIG", ExtensionChunk::ReConfig(vec![reset])),
        ("ASCONF", ExtensionChunk::Asconf(Serial32(5), vec![address, add])),
        ("ASCONF_ACK", ExtensionChunk::AsconfAck(Serial32(5), vec![success])),
        ("AUTH", ExtensionChunk::Auth(auth)),
        ("PAD", ExtensionChunk::Pad(8)),
        ("ECNE", ExtensionChunk::Ecne(Serial32(1))),
        ("CWR", ExtensionChunk::Cwr(Serial32(2))),
    ];
    all.map(|(name, rare)| (name, Chunk::Extension(Box::new(rare)))).into()
}

/// Both ends, and the packets that they sent.
struct Pair {
    ends: [Association; 2],
    sent: Vec<Packet>,
}

impl Pair {
    /// Lets both ends send until neither has anything to send. Every ninth packet is lost.
    fn settle(&mut self, now: Time) {
        for end in [0, 1].into_iter().cycle().take(40) {
            while let Some(transmit) = self.ends[end].poll_transmit(now) {
                self.sent.push(transmit.packet.clone());
                if !self.sent.len().is_multiple_of(9) {
                    self.ends[1 - end].handle_datagram(now, transmit.path, transmit.packet);
                }
                while self.ends[1 - end].read(now).is_some() {}
            }
        }
    }

    /// Runs for ten seconds in steps of 5 ms.
    fn run(&mut self, now: &mut Time) {
        for _ in 0..2000 {
            *now += Duration::from_millis(5);
            for end in &mut self.ends {
                if end.next_deadline().is_some_and(|at| at <= *now) {
                    end.handle_timeout(*now);
                }
            }
            self.settle(*now);
        }
    }
}

fn config() -> Config {
    let mut config = Config::preset(Preset::Rfc9260, vec![PathConfig::default(); 2], 1 << 17);
    config.negotiation = Negotiation::Listed(Extensions::DELAY);
    config.delay_source = DelaySource::Timestamp;
    config
}

fn association() -> Vec<Packet> {
    let in_turn = || Scheduler::from_name("round-robin", &SchedulerOptions::default());
    let in_turn = || in_turn().expect("a built-in scheduler");
    let mut now = Time::ZERO;
    let mut listener = Listener::new(config(), Seed::root(1));
    let mut client = Association::connect(config(), in_turn(), Seed::root(2), now);
    let mut sent = Vec::new();
    let server = loop {
        let mut packet = client.poll_transmit(now).expect("the client begins").packet;
        sent.push(packet.clone());
        match listener.handle(now, b"client", &mut packet) {
            Answer::Reply(answer) => {
                sent.push(answer.clone());
                client.handle_datagram(now, PathId(0), answer);
            }
            Answer::Accept(proof) => {
                let seed = Seed::root(3);
                break Association::accepted(config(), in_turn(), seed, now, PathId(0), *proof);
            }
            Answer::Nothing => unreachable!("both are ours"),
        }
    };
    let mut pair = Pair { ends: [client, server], sent };
    pair.settle(now);
    for size in [1, 2, 3, 4, 1000, 5000, 20_000] {
        let payload = Payload::from(Bytes::from(vec![size as u8; size]));
        for end in &mut pair.ends {
            end.send(StreamId(0), payload.clone(), size.is_multiple_of(2)).expect("room");
        }
        pair.settle(now);
    }
    pair.run(&mut now);
    pair.ends[0].shutdown(now);
    pair.settle(now);
    pair.run(&mut now);
    pair.sent
}
