//! The same transfer with variants of sender, link and capture: the count of losses stays exact.

use std::io::Cursor;

use etherparse::{PacketBuilder, TcpOptionElement};
use proptest::prelude::*;

use super::*;

const PORTS: [u16; 2] = [40_000, 5001];
const SEGMENTS: u32 = 400;
const RTT_US: u64 = 40_000;
const ETHERNET: u32 = 1;
const RAW: u32 = 101;

/// IP packets with their times, microseconds.
type Packets = Vec<(u64, Vec<u8>)>;

#[derive(Clone, Copy, Debug)]
struct Sender {
    mss: u16,
    /// Bytes that are sent first, such as a request.
    first: u32,
    /// One of this number of segments is lost once.
    every: u32,
    isn: u32,
    /// Segments in each packet of the capture, as with network cards that do segmentation.
    merged: u32,
    ipv6: bool,
}

fn tcp(
    sender: &Sender,
    syn: bool,
    up: bool,
    [sequence, ack]: [u32; 2],
    payload: u32,
    ms: u64,
) -> Vec<u8> {
    let ends = |a: u8, b: u8| if up { (a, b) } else { (b, a) };
    let (from, to) = ends(1, 2);
    let stamp = TcpOptionElement::Timestamp(ms as u32, 0);
    let maximum = TcpOptionElement::MaximumSegmentSize(sender.mss);
    let plain = [TcpOptionElement::Noop, TcpOptionElement::Noop, stamp.clone()];
    let opening = [maximum, stamp];
    let options = if syn { &opening[..] } else { &plain[..] };
    let ports = if up { PORTS } else { [PORTS[1], PORTS[0]] };
    let builder = if sender.ipv6 {
        let address = |last: u8| [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last];
        PacketBuilder::ipv6(address(from), address(to), 64)
    } else {
        PacketBuilder::ipv4([192, 0, 2, from], [192, 0, 2, to], 64)
    };
    let builder =
        builder.tcp(ports[0], ports[1], sequence, 1000).options(options).expect("options");
    let builder = if syn { builder.syn() } else { builder };
    let builder = if syn && up { builder } else { builder.ack(ack) };
    let mut packet = Vec::new();
    builder.write(&mut packet, &vec![0; payload as usize]).expect("a packet");
    packet
}

/// A transfer as captured at the sender, and the number of its losses.
fn transfer(sender: &Sender) -> (Packets, usize) {
    let size = u32::from(sender.mss) - 12;
    let (mut packets, mut lost, mut next) = (Vec::new(), 0, sender.isn.wrapping_add(1));
    let mut add = |at: u64, syn: bool, up: bool, numbers: [u32; 2], payload: u32| {
        packets.push((at, tcp(sender, syn, up, numbers, payload, at / 1000)));
    };
    add(0, true, true, [sender.isn, 0], 0);
    add(RTT_US, true, false, [0, next], 0);
    add(RTT_US + 10, false, true, [next, 1], 0);
    if sender.first > 0 {
        add(RTT_US + 20, false, true, [next, 1], sender.first);
        next = next.wrapping_add(sender.first);
        add(2 * RTT_US, false, false, [1, next], 0);
    }
    for number in 0..SEGMENTS / sender.merged {
        let sent = 3 * RTT_US + u64::from(number * sender.merged) * 1200;
        add(sent, false, true, [next, 1], size * sender.merged);
        let mut arrived = sent;
        if number % sender.every == sender.every - 1 {
            lost += 1;
            // The last segment of the packet is lost.
            arrived += 50_000;
            add(arrived, false, true, [next.wrapping_add(size * (sender.merged - 1)), 1], size);
        }
        next = next.wrapping_add(size * sender.merged);
        add(arrived + RTT_US, false, false, [1, next], 0);
    }
    (packets, lost)
}

/// A capture of these packets, each behind a header of the link.
fn pcap(packets: Packets, link: u32, header: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let framed = |(at, packet): (u64, Vec<u8>)| (at * 1000, [header(&packet), packet].concat());
    tests::pcap(packets.into_iter().map(framed).collect(), link, usize::MAX)
}

fn lost(capture: &[u8]) -> usize {
    from_capture(Cursor::new(capture)).expect("a recording").paths[0].loss.lost
}

fn senders() -> impl Strategy<Value = Sender> {
    (500u16..9000, 0u32..4000, 5u32..60, any::<u32>(), 1u32..7, any::<bool>()).prop_map(
        |(mss, first, every, isn, merged, ipv6)| Sender { mss, first, every, isn, merged, ipv6 },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn losses_are_exact_for_any_size_and_place_of_segments(sender in senders()) {
        let (packets, truth) = transfer(&sender);
        prop_assert_eq!(lost(&pcap(packets, RAW, |_| Vec::new())), truth);
    }

    #[test]
    fn packets_that_a_capture_has_twice_are_not_lost(sender in senders(), later in 0u64..900, copies in 1usize..3) {
        let (mut packets, truth) = transfer(&sender);
        for (at, packet) in packets.clone() {
            packets.extend((1..=copies).map(|copy| (at + later * copy as u64 / copies as u64, packet.clone())));
        }
        prop_assert_eq!(lost(&pcap(packets, RAW, |_| Vec::new())), truth);
    }
}

/// Headers in front of a packet of IPv4, by the name of the link.
fn headers(name: &str, packet: &[u8]) -> Vec<u8> {
    let ethernet = |rest: &[u8]| [&[2; 12][..], rest].concat();
    let length = |more: usize| ((packet.len() + more) as u16).to_be_bytes();
    let outer = |protocol: u8, more: usize| {
        let [a, b] = length(20 + more);
        vec![0x45, 0, a, b, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]
    };
    let udp = |port: u16, inner: &[u8]| {
        let head =
            [&port.to_be_bytes()[..], &port.to_be_bytes(), &length(8 + inner.len()), &[0; 2]];
        [&outer(17, 8 + inner.len())[..], &head.concat(), inner].concat()
    };
    let gre = |flags: u8, kind: [u8; 2], inner: &[u8]| {
        let head = [flags, 0, kind[0], kind[1]];
        [&outer(47, 4 + inner.len())[..], &head, inner].concat()
    };
    match name {
        "VLAN" => ethernet(&[0x81, 0, 0, 7, 8, 0]),
        "QinQ" => ethernet(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0]),
        "MPLS" => ethernet(&[0x88, 0x47, 0, 1, 0, 64, 0, 2, 1, 64]),
        "PPPoE" => ethernet(&[&[0x88, 0x64, 0x11, 0, 0, 7][..], &length(2), &[0, 0x21]].concat()),
        "PPPoE in a VLAN" => ethernet(
            &[&[0x81, 0, 0, 7, 0x88, 0x64, 0x11, 0, 0, 7][..], &length(2), &[0, 0x21]].concat(),
        ),
        "PPP" => vec![0xff, 3, 0, 0x21],
        "PPP, short" => vec![0x21],
        "IP in IP" => outer(4, 0),
        "GRE" => gre(0, [8, 0], &[]),
        "GRE with a key" => gre(0x20, [8, 0], &[0; 4]),
        "Ethernet in GRE" => gre(0, [0x65, 0x58], &ethernet(&[8, 0])),
        "VXLAN" => udp(4789, &[&[8, 0, 0, 0, 0, 0, 7, 0][..], &ethernet(&[8, 0])].concat()),
        "Geneve" => udp(6081, &[0, 0, 8, 0, 0, 0, 7, 0]),
        "GTP-U" => udp(2152, &[0x30, 255, 0, 0, 0, 0, 0, 1]),
        "GTP-U of 5G" => udp(2152, &[0x34, 255, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0x85, 1, 0x10, 9, 0]),
        "L2TP" => udp(1701, &[0, 2, 0, 1, 0, 2, 0xff, 3, 0, 0x21]),
        "SLL" => [&[0, 4, 0, 1, 0, 6][..], &[2; 8], &[8, 0]].concat(),
        "SLL2" => [&[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6][..], &[2; 8]].concat(),
        "Wi-Fi" => {
            let radiotap = [0, 0, 8, 0, 0, 0, 0, 0, 0x88, 1, 0, 0];
            [&radiotap[..], &[2; 20], &[0, 0], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0]].concat()
        }
        "loopback" => vec![2, 0, 0, 0],
        other => panic!("{other}"),
    }
}

const SENDER: Sender =
    Sender { mss: 1400, first: 37, every: 40, isn: u32::MAX - 90_000, merged: 1, ipv6: false };

#[test]
fn links_and_tunnels_that_do_not_encrypt_are_read() {
    let (packets, truth) = transfer(&SENDER);
    for (link, name) in [
        (ETHERNET, "VLAN"),
        (ETHERNET, "QinQ"),
        (ETHERNET, "MPLS"),
        (ETHERNET, "PPPoE"),
        (ETHERNET, "PPPoE in a VLAN"),
        (9, "PPP"),
        (9, "PPP, short"),
        (RAW, "IP in IP"),
        (RAW, "GRE"),
        (RAW, "GRE with a key"),
        (RAW, "Ethernet in GRE"),
        (RAW, "VXLAN"),
        (RAW, "Geneve"),
        (RAW, "GTP-U"),
        (RAW, "GTP-U of 5G"),
        (RAW, "L2TP"),
        (113, "SLL"),
        (276, "SLL2"),
        (127, "Wi-Fi"),
        (0, "loopback"),
    ] {
        let capture = pcap(packets.clone(), link, |packet| headers(name, packet));
        assert_eq!(lost(&capture), truth, "{name}");
    }
}

#[test]
fn what_hides_the_packets_is_named() {
    let (packets, _) = transfer(&SENDER);
    let esp = [0x45, 0, 0, 60, 0, 0, 0, 0, 64, 50, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let mut wireguard = esp.to_vec();
    wireguard[9] = 17;
    wireguard.extend([0xca, 0x6c, 0xca, 0x6c, 0, 40, 0, 0, 4, 0, 0, 0]);
    let hidden = [&[2; 12][..], &[0x88, 0xe5, 0, 0]].concat();
    for (link, header, name) in [
        (RAW, &esp[..], "IPsec"),
        (RAW, &wireguard, "WireGuard"),
        (ETHERNET, &hidden, "MACsec"),
        (9, &[0, 0x3d], "multilink PPP"),
        (220, &[], "frames of USB"),
    ] {
        let capture = pcap(packets.clone(), link, |_| header.to_vec());
        assert_eq!(from_capture(Cursor::new(&capture)), Err(RecordingError::Hidden(name)));
    }
}
