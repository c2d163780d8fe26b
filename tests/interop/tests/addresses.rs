//! Peers with addresses of both families, and peers that remove addresses: hand-written ends, and usrsctp.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_engine::sctp::wire::{Checksum, Ports, encode};
use ropewalk_engine::sctp::{Chunk, ErrorCause, Init, Packet};
use ropewalk_interop::crafted::{Crafted, SILENCE};
use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{echo, open, receive, send};
use ropewalk_interop::peer::{Peer, usrsctp};
use ropewalk_runtime::endpoint::{
    Association, CloseReason, Endpoint, Options, PORT, PathStatus, Target,
};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(20);

/// Waits until both paths are confirmed.
async fn both_confirmed(association: &Association) {
    let both = async {
        while association.paths() != [PathStatus::Active; 2] {
            association.next_path_event().await.expect("it is up");
        }
    };
    timeout(PATIENCE, both).await.expect("both paths are confirmed");
}

/// ASCONF (RFC 5061, 4.1.1) from `own` that removes the address `gone`.
fn asconf(serial: u32, own: IpAddr, gone: IpAddr) -> Bytes {
    let address = |ip: IpAddr| {
        let IpAddr::V4(ip) = ip else { panic!("IPv4 only") };
        [&[0, 5, 0, 8][..], &ip.octets()].concat()
    };
    let delete = [&[0xc0, 2, 0, 16, 0, 0, 0, 7][..], &address(gone)].concat();
    let value = [&serial.to_be_bytes()[..], &address(own), &delete].concat();
    let length = (4 + value.len()) as u16;
    [&[0xc1, 0][..], &length.to_be_bytes(), &value].concat().into()
}

/// RFC 9260, 3.2: a chunk whose type begins with 11 is skipped and reported; the other chunks of the
/// packet are processed.
#[tokio::test]
async fn a_peer_that_would_delete_an_address_is_told_that_nobody_knows_how() {
    let at = |last: u8| SocketAddr::from(([127, 0, 0, last], 0));
    let server = Endpoint::open(Options::listening(&[at(1)])).expect("a free port");
    let ports = Ports { source: 5001, destination: PORT };
    let mut peer = Crafted::at(&[at(2), at(3)], server.locals()[0], ports).await;
    let own = [peer.address(0).ip(), peer.address(1).ip()];
    peer.open(0, 77, &own).await;
    let association = timeout(PATIENCE, server.accept()).await.expect("somebody has come");
    let mut number = 0;
    for (serial, gone) in [(1, own[1]), (2, own[0]), (2, own[0])] {
        for first in [true, false] {
            let wish = asconf(serial, own[0], gone);
            let mut chunks = vec![Chunk::Unknown(wish.clone()), peer.data(number, b"word")];
            number += 1;
            if !first {
                chunks.reverse();
            }
            let mut packet = Packet::of(peer.peer_tag, chunks.remove(0));
            packet.chunks.extend(chunks);
            peer.send_packet(0, peer.ports, &packet).await;
            let told = |chunk: &Chunk| matches!(chunk, Chunk::Error(_));
            let came = peer.wait_for(|chunk| told(chunk) || matches!(chunk, Chunk::Sack(_))).await;
            assert_eq!(came.to, 0);
            let mut answers = came.packet.chunks.into_vec();
            if !answers.iter().any(told) {
                answers.extend(peer.wait_for(told).await.packet.chunks);
            }
            let error = Chunk::error(ErrorCause::UnrecognisedChunk(wish));
            assert!(answers.contains(&error), "{answers:?}");
            let message = timeout(PATIENCE, association.receive()).await.expect("a message");
            assert_eq!(message.expect("it is up").bytes, b"word"[..]);
        }
    }
    // RFC 4895: an authenticated ASCONF follows an AUTH chunk, whose type ends the processing of the
    // packet without a report.
    let authentication = [&[0x0f, 0, 0, 28, 0, 0, 0, 1][..], &[9; 20]].concat();
    let mut packet = Packet::of(peer.peer_tag, Chunk::Unknown(authentication.into()));
    packet.chunks.push(Chunk::Unknown(asconf(3, own[0], own[1])));
    peer.send_packet(0, peer.ports, &packet).await;
    let answer = peer.wait_within(SILENCE, |chunk| matches!(chunk, Chunk::Error(_))).await;
    assert_eq!(answer, None);
    let data = peer.data(number, b"last");
    peer.send(0, data).await;
    let message = timeout(PATIENCE, association.receive()).await.expect("a message");
    assert_eq!(message.expect("it is up").bytes, b"last"[..]);
    assert!(association.paths().contains(&PathStatus::Active));
}

/// One address of each family on each side, at the first link and at the second.
fn of_both_families(hosts: &Hosts, side: Side) -> Vec<SocketAddr> {
    let ips = [hosts.addresses(side)[0], hosts.addresses_v6(side)[1]];
    ips.map(|ip| SocketAddr::new(ip, PORT)).to_vec()
}

#[test]
fn with_usrsctp_one_association_has_addresses_of_both_families() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let bind = "--bind 10.77.1.2,fd77:2::2 --sysctl sctp_cmt_on_off=1";
    let total = 2_000_000;
    for they_open in [false, true] {
        let before = [1, 2].map(|link| hosts.carried(link));
        let to = if they_open { "--connect 10.77.1.1,fd77:2::1" } else { "--server" };
        let words = format!("{bind} {to} --bytes {total} --expect {total} --finish shutdown");
        let report = hosts.live(async || {
            let ours = of_both_families(&hosts, Side::Ours);
            let options = Options { listen: they_open, ..Options::connecting(&ours) };
            let endpoint = open(options.on_sctp_ports(&[PORT])).await;
            let peer = Peer::start(&hosts, Side::Theirs, program, &words);
            let target = Target { addresses: of_both_families(&hosts, Side::Theirs), key: None };
            let association = match they_open {
                true => endpoint.accept().await,
                false => endpoint.connect(&target).await.expect("an association"),
            };
            both_confirmed(&association).await;
            assert_eq!(echo(&association).await, total);
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown));
            tokio::task::spawn_blocking(|| peer.report()).await.expect("a report")
        });
        assert_eq!((report.ended(), report.received()), ("shutdown", total), "{words}");
        assert_eq!(report.counted("checksum_errors"), 0, "{words}");
        for (link, before) in [1, 2].into_iter().zip(before) {
            let carried = hosts.carried(link) - before;
            // Congestion control decides the shares.
            assert!(carried > total as u64 / 20, "{carried} B by link {link}: {words}");
        }
    }
}

/// usrsctp only sends ASCONF to peers that list it. Later packets to the removed address must be dropped: usrsctp
/// would treat them as out of the blue, and its ABORT would end the association.
#[test]
fn a_peer_that_gives_an_address_up_keeps_the_association() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let total = 1_000_000;
    let words = format!(
        "--server --bind 10.77.1.2,10.77.2.2 --bytes 100000 --give-up 10.77.2.2 --expect {total} \
         --sysctl sctp_blackhole=2"
    );
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let endpoint = open(hosts.options(2)).await;
        let association = endpoint.connect(&hosts.target(2)).await.expect("an association");
        both_confirmed(&association).await;
        assert_eq!(receive(&association, 100_000).await.bytes, 100_000);
        // The peer removes the address once it knows that we have received everything.
        tokio::time::sleep(SILENCE).await;
        send(&association, total, 1000, 1).await;
        association.flushed().await;
        let paths = association.paths();
        assert_eq!(paths[0], PathStatus::Active);
        assert_ne!(paths[1], PathStatus::Active, "nobody answers there");
        association.shutdown().await.expect("in order");
    });
    let report = peer.report();
    assert!(report.saw("gave up 10.77.2.2"), "{}", report.0);
    assert_eq!((report.ended(), report.received()), ("shutdown", total));
}

/// RFC 9260, 8.4 (1): packets to a multicast or broadcast address are discarded.
#[test]
fn an_init_to_everybody_is_answered_by_nobody() {
    let hosts = or_skip!(Hosts::new(1));
    let ports = Ports { source: 5001, destination: PORT };
    let init = Init {
        tag: 77,
        window: 100_000,
        outbound_streams: 1,
        inbound_streams: 1,
        ..Init::default()
    };
    let mut bytes = Vec::new();
    encode(&Packet::of(0, Chunk::Init(Box::new(init))), ports, Checksum::Crc32c, &mut bytes);
    hosts.live(async || {
        let anywhere = [SocketAddr::from(([0, 0, 0, 0], PORT))];
        let endpoint = open(Options::listening(&anywhere)).await;
        for (to, answers) in [
            ([10, 77, 1, 255], 0),
            ([255, 255, 255, 255], 0),
            ([224, 0, 0, 1], 0),
            ([10, 77, 1, 1], 1),
        ] {
            let before = endpoint.counters();
            hosts.inside(Side::Theirs, || {
                let socket = UdpSocket::bind("10.77.1.2:0").expect("an address of this host");
                socket.set_broadcast(true).expect("allowed");
                socket.send_to(&bytes, SocketAddr::from((to, PORT))).expect("sent");
            });
            tokio::time::sleep(SILENCE).await;
            let after = endpoint.counters();
            assert_eq!(after.received - before.received, 1, "{to:?}: it came");
            assert_eq!(after.sent - before.sent, answers, "{to:?}");
        }
    });
}
