//! Synthetic captures of links with known properties.

use std::io::Cursor;

use etherparse::{PacketBuilder, TcpOptionElement};
use proptest::prelude::*;

use super::*;
use crate::measure::gzip;

const SENDER: [u8; 4] = [192, 0, 2, 1];
const RECEIVER: [u8; 4] = [198, 51, 100, 7];
const PORTS: [u16; 2] = [40_000, 5001];
/// A link of 10 Mbit/s: a packet of 1500 B takes 1.2 ms.
const PACKET_NS: u64 = 1_200_000;
const RTT_NS: u64 = 40_000_000;
const PAYLOAD: u32 = 1448;

/// Packets with their times, in any order.
#[derive(Clone, Default)]
struct Trace(Vec<(u64, Vec<u8>)>);

impl Trace {
    fn tcp(
        &mut self,
        at_ns: u64,
        from_sender: bool,
        sequence: u32,
        ack: u32,
        stamps: [u32; 2],
        payload: u32,
    ) {
        let ends = if from_sender { (SENDER, RECEIVER) } else { (RECEIVER, SENDER) };
        let ports = if from_sender { PORTS } else { [PORTS[1], PORTS[0]] };
        let [own, echoed] = stamps;
        let options = [
            TcpOptionElement::Noop,
            TcpOptionElement::Noop,
            TcpOptionElement::Timestamp(own, echoed),
        ];
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4(ends.0, ends.1, 64)
            .tcp(ports[0], ports[1], sequence, 1000)
            .ack(ack)
            .options(&options)
            .expect("options");
        let mut packet = Vec::new();
        builder.write(&mut packet, &vec![0; payload as usize]).expect("a packet");
        self.0.push((at_ns, packet));
    }

    /// An SCTP packet in UDP with one chunk.
    fn sctp(&mut self, at_ns: u64, from_sender: bool, network: u8, chunk: &[u8]) {
        let [near, far] = [[10, 0, network, 1], [10, 0, network, 2]];
        let (from, to, tag) = if from_sender { (near, far, 7u32) } else { (far, near, 8) };
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4(from, to, 64).udp(9899, 9899);
        let mut content = [9899u16.to_be_bytes(), 9899u16.to_be_bytes()].concat();
        content.extend(tag.to_be_bytes());
        content.extend([0; 4]);
        content.extend(chunk);
        let mut packet = Vec::new();
        builder.write(&mut packet, &content).expect("a packet");
        self.0.push((at_ns, packet));
    }

    /// The capture in the format of `tcpdump`, with at most `kept` bytes of each packet.
    fn pcap(self, kept: usize) -> Vec<u8> {
        pcap(self.0, 1, kept)
    }

    /// The capture as pcapng, in microseconds.
    fn pcapng(mut self) -> Vec<u8> {
        self.0.sort_by_key(|(at, _)| *at);
        let mut out = Vec::new();
        let mut block = |kind: u32, body: &[u8]| {
            let length = (12 + body.len().next_multiple_of(4)) as u32;
            out.extend(kind.to_le_bytes());
            out.extend(length.to_le_bytes());
            out.extend(body);
            out.resize(out.len().next_multiple_of(4), 0);
            out.extend(length.to_le_bytes());
        };
        let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
        block(0x0a0d_0d0a, &section);
        block(1, &[1, 0, 0, 0, 0, 0, 0, 0]);
        for (at, packet) in self.0 {
            let at = at / 1000;
            let words = [0, (at >> 32) as u32, at as u32, packet.len() as u32, packet.len() as u32];
            let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            body.extend(packet);
            block(6, &body);
        }
        out
    }
}

/// Frames of link type `link` with their times, nanoseconds, in the format of `tcpdump`. Each keeps at most `kept` bytes.
pub(super) fn pcap(mut frames: Vec<(u64, Vec<u8>)>, link: u32, kept: usize) -> Vec<u8> {
    frames.sort_by_key(|(at, _)| *at);
    let mut out = Vec::new();
    for word in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 65_535, link] {
        out.extend(word.to_le_bytes());
    }
    for (at, frame) in frames {
        let data = &frame[..frame.len().min(kept)];
        let head = [at / 1_000_000_000, at % 1_000_000_000, data.len() as u64, frame.len() as u64];
        head.iter().for_each(|word| out.extend((*word as u32).to_le_bytes()));
        out.extend(data);
    }
    out
}

/// TCP packets; every 50th is lost and retransmitted 50 ms later. `share` is the part of the round trip
/// between the sender and the capture: 0 at the sender, 1 at the receiver.
fn tcp_trace(share: f64, packets: u32) -> Trace {
    let mut trace = Trace::default();
    let near = (RTT_NS as f64 / 2.0 * share) as u64;
    let ticks = |at: u64| (at / 1_000_000) as u32 + 100;
    for number in 0..packets {
        let sent = 1_000_000_000 + u64::from(number) * PACKET_NS;
        let sequence = 77u32.wrapping_add(number * PAYLOAD);
        let lost = number % 50 == 49;
        // The receiver echoes the sender's value; the sender echoes that of the last answer, a round trip old.
        let echo = ticks(sent.saturating_sub(RTT_NS / 2));
        let mut send =
            |at: u64| trace.tcp(at + near, true, sequence, 1, [ticks(at), echo], PAYLOAD);
        if share < 1.0 || !lost {
            send(sent);
        }
        let arrived = if lost { sent + 50_000_000 } else { sent };
        if lost {
            send(arrived);
        }
        let acked = arrived + RTT_NS / 2;
        let at = acked + (RTT_NS / 2 - near);
        trace.tcp(at, false, 1, sequence.wrapping_add(PAYLOAD), [ticks(acked), ticks(arrived)], 0);
    }
    trace
}

fn read(capture: &[u8]) -> Recording {
    from_capture(Cursor::new(capture)).expect("a recording")
}

fn least(path: &RecordedPath) -> f64 {
    path.rtts_s.iter().copied().fold(f64::INFINITY, f64::min)
}

#[test]
fn a_capture_of_tcp_shows_the_link_wherever_it_was_made() {
    // At the receiver, nothing shows that the last packet is late.
    for (share, lost) in [(0.0, 80), (0.5, 80), (1.0, 79)] {
        let trace = tcp_trace(share, 4000);
        for capture in [trace.clone().pcap(65_535), trace.clone().pcap(80), trace.pcapng()] {
            let found = read(&capture);
            assert_eq!((found.protocol, found.other_flows), (RecordedProtocol::Tcp, 0));
            let [path] = &found.paths[..] else { panic!("{} paths", found.paths.len()) };
            assert_eq!(path.to.to_string(), "198.51.100.7:5001");
            // Timestamps count milliseconds.
            assert!((least(path) - 0.04).abs() < 0.0025, "{share}: {}", least(path));
            assert!((path.peak_bps / 10e6 - 1.0).abs() < 0.05, "{share}: {}", path.peak_bps);
            assert_eq!((path.loss.sent, path.loss.lost), (4000, lost), "{share}");
            assert_eq!((path.reordered, path.largest_bytes), (0, 1500), "{share}");
        }
    }
}

#[test]
fn each_of_several_losses_in_a_row_counts_at_the_receiver() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut trace = Trace::default();
        for number in 0..1000_u32 {
            // Three of each fifty packets are lost and arrive one and a half round trips later, in this order.
            let place = order.iter().position(|place| number % 50 == 40 + place);
            let late = place.map_or(0, |place| RTT_NS * 3 / 2 + place as u64 * 1000);
            let at = 1_000_000_000 + u64::from(number) * PACKET_NS + late;
            trace.tcp(at, true, 77 + number * PAYLOAD, 1, [number, 0], PAYLOAD);
            trace.tcp(at, false, 1, 77 + (number + 1) * PAYLOAD, [1, number], 0);
        }
        let [path] = &read(&trace.pcap(65_535)).paths[..] else { panic!("one path") };
        assert_eq!((path.loss.lost, path.reordered), (60, 0), "{order:?}");
    }
}

#[test]
fn packets_that_overtake_each_other_are_not_lost() {
    let mut trace = Trace::default();
    for number in 0..1001_u32 {
        // Each tenth packet comes after the next one.
        let late = if number % 10 == 9 { 2 * PACKET_NS } else { 0 };
        let at = 1_000_000_000 + u64::from(number) * PACKET_NS + late;
        trace.tcp(at, true, 77 + number * PAYLOAD, 1, [number, 0], PAYLOAD);
        trace.tcp(at + RTT_NS, false, 1, 77 + (number + 1) * PAYLOAD, [1, number], 0);
    }
    let found = read(&trace.pcap(80));
    assert_eq!((found.paths[0].loss.lost, found.paths[0].reordered), (0, 100));
}

#[test]
fn an_association_of_sctp_shows_each_of_its_paths() {
    let mut trace = Trace::default();
    let chunk = |kind: u8, body: &[u8]| {
        let length = (4 + body.len()) as u16;
        [&[kind, 3][..], &length.to_be_bytes(), body].concat()
    };
    for number in 0..1000_u32 {
        let at = 1_000_000_000 + u64::from(number) * PACKET_NS;
        let (network, rtt) = if number % 2 == 0 { (1, 20_000_000) } else { (2, 60_000_000) };
        // TSNs wrap around.
        let first = u32::MAX - 500;
        let data = chunk(0, &[&first.wrapping_add(number).to_be_bytes()[..], &[0; 1400]].concat());
        trace.sctp(at, true, network, &data);
        // Each SACK reports only this chunk, beyond a cumulative TSN that does not advance.
        let block = (number as u16 + 1).to_be_bytes();
        let fields = [&[0, 1, 0, 0, 0, 1, 0, 0][..], &block, &block].concat();
        let sack = [&first.wrapping_sub(1).to_be_bytes()[..], &fields].concat();
        trace.sctp(at + rtt, false, network, &chunk(3, &sack));
    }
    let found = read(&trace.pcapng());
    assert_eq!(found.protocol, RecordedProtocol::Sctp);
    let rtts: Vec<f64> = found.paths.iter().map(least).collect();
    assert_eq!(rtts.len(), 2);
    for (rtt, expected) in rtts.iter().zip([0.02, 0.06]) {
        assert!((rtt - expected).abs() < 1e-4, "{rtts:?}");
    }
    assert_eq!(found.paths[1].from.to_string(), "10.0.2.1:9899");
    assert!(found.paths.iter().all(|path| path.loss.lost == 0 && path.packets == 500));
}

#[test]
fn what_is_no_capture_is_refused_and_an_interrupted_one_is_read() {
    for (bytes, expected) in [
        (&b""[..], RecordingError::Format),
        (b"hello, this is no capture file at all", RecordingError::Format),
        (&Trace::default().pcap(80), RecordingError::NoData),
        (&Trace::default().pcapng(), RecordingError::NoData),
    ] {
        assert_eq!(from_capture(Cursor::new(bytes)), Err(expected));
    }
    let mut silent = Trace::default();
    silent.tcp(1, true, 1, 1, [1, 1], PAYLOAD);
    assert_eq!(from_capture(Cursor::new(silent.pcap(80))), Err(RecordingError::NotAcknowledged));
    let whole = tcp_trace(0.0, 100).pcap(80);
    let found = read(&whole[..whole.len() - 7]);
    assert!(found.paths[0].loss.sent == 100 && found.cut);
    assert!(!read(&whole).cut);
}

#[test]
fn a_compressed_capture_gives_what_the_capture_gives() {
    for file in [tcp_trace(0.0, 400).pcap(80), tcp_trace(0.0, 400).pcapng()] {
        let compressed = gzip::tests::compressed(&file);
        assert_eq!(read(&compressed), read(&file));
        let part = read(&compressed[..compressed.len() * 9 / 10]);
        assert!(part.cut && part.packets > 400 && part.packets < 800, "{}", part.packets);
        let mut damaged = compressed;
        let checksum = damaged.len() - 8;
        damaged[checksum] ^= 1;
        assert_eq!(from_capture(Cursor::new(damaged)), Err(RecordingError::Damaged));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_file_stops_the_reader(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        length in any::<prop::sample::Index>(),
        modern: bool,
    ) {
        let trace = tcp_trace(0.0, 60);
        let mut file = if modern { trace.pcapng() } else { trace.pcap(100) };
        for (place, value) in changes {
            let at = place.index(file.len());
            file[at] = value;
        }
        file.truncate(length.index(file.len()) + 1);
        if let Ok(found) = from_capture(Cursor::new(&file)) {
            prop_assert!(!found.paths.is_empty());
        }
    }
}
