//! Packets between Ropewalk and usrsctp, checked by a dissector; also over IPv6, and with other ports.

use std::net::SocketAddr;
use std::path::Path;

use ropewalk_interop::capture::Capture;
use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{echo, open, receive, send};
use ropewalk_interop::peer::{Peer, usrsctp};
use ropewalk_runtime::endpoint::{CloseReason, Options, PORT, PathStatus, SctpPorts, Target};

#[test]
fn no_packet_of_either_end_is_malformed() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp.pcapng");
    let capture = or_skip!(Capture::start(&hosts, Side::Theirs, &file));
    let words = "--server --bind 10.77.1.2,10.77.2.2 --streams 20 --bytes 300000 --message 7000 \
                 --sysctl sctp_cmt_on_off=1";
    let peer = Peer::start(&hosts, Side::Theirs, program, words);
    hosts.live(async || {
        // Without offload: a capture shows a batch that the network card would segment as one long
        // datagram.
        let options = Options { offload: false, ..hosts.options(2) };
        let endpoint = open(options).await;
        let association = endpoint.connect(&hosts.target(2)).await.expect("an association");
        send(&association, 300_000, 7000, 20).await;
        let received = receive(&association, 300_000).await;
        assert_eq!(received.bytes, 301_000);
        association.shutdown().await.expect("in order");
    });
    assert_eq!(peer.report().ended(), "shutdown");
    let dissection = capture.finish(&[9899]);
    assert!(dissection.packets > 400, "{} packets", dissection.packets);
    assert!(dissection.wrong.is_empty(), "{:#?}", dissection.wrong);
}

#[test]
fn a_bulk_sender_gets_a_sack_for_every_second_of_its_packets() {
    const DATA: u8 = 0;
    const SACK: u8 = 3;
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(1)));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp-sacks.pcapng");
    let capture = or_skip!(Capture::start(&hosts, Side::Theirs, &file));
    let words = "--server --bind 10.77.1.2 --bytes 3000000 --message 1400";
    let peer = Peer::start(&hosts, Side::Theirs, program, words);
    hosts.live(async || {
        // Without offload: a capture shows several SACKs in one segment as one packet.
        let options = Options { offload: false, ..hosts.options(1) };
        let endpoint = open(options).await;
        let association = endpoint.connect(&hosts.target(1)).await.expect("an association");
        assert_eq!(receive(&association, 3_000_000).await.bytes, 3_000_200);
        association.shutdown().await.expect("in order");
    });
    assert_eq!(peer.report().ended(), "shutdown");
    let dissection = capture.finish(&[9899]);
    let (data, sacks) = (dissection.count("10.77.1.2", DATA), dissection.count("10.77.1.1", SACK));
    assert!(data > 2000, "{data} packets");
    // On a busy machine, a batch may have more than 128 packets. The last ones of such a batch share a
    // SACK.
    assert!(5 * sacks >= 2 * data, "{sacks} SACKs for {data} packets");
    assert!(dissection.wrong.is_empty(), "{:#?}", dissection.wrong);
}

#[test]
fn over_ipv6_it_is_the_same() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let at = |side| {
        let all = hosts.addresses_v6(side).into_iter();
        all.map(|ip| (ip, 9899).into()).collect::<Vec<_>>()
    };
    let words =
        "--server --bind fd77:1::2,fd77:2::2 --bytes 500000 --expect 500000 --finish shutdown";
    let peer = Peer::start(&hosts, Side::Theirs, program, words);
    hosts.live(async || {
        let endpoint = open(Options::connecting(&at(Side::Ours))).await;
        let target = Target { addresses: at(Side::Theirs), key: None };
        let association = endpoint.connect(&target).await.expect("an association");
        assert_eq!(echo(&association).await, 500_000);
        assert_eq!(association.ended().await, Some(CloseReason::Shutdown));
    });
    let report = peer.report();
    assert_eq!(report.ended(), "shutdown");
    assert_eq!(report.received(), 500_000);
}

#[test]
fn through_other_ports_it_is_the_same() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(1)));
    let words = "--bind 10.77.1.2 --connect 10.77.1.1 --udp-port 20000 --remote-udp-port 30000 \
                 --port 7 --remote-port 8 --bytes 500000 --expect 500000 --finish shutdown";
    hosts.live(async || {
        let ours = hosts.sockets(Side::Ours, 30_000);
        let options = Options::listening(&ours).on_sctp_ports(&[8]);
        let endpoint = open(options).await;
        let peer = Peer::start(&hosts, Side::Theirs, program, words);
        let association = endpoint.accept().await;
        assert_eq!(echo(&association).await, 500_000);
        let report = tokio::task::spawn_blocking(|| peer.report()).await.expect("a report");
        assert_eq!((report.ended(), report.received()), ("shutdown", 500_000));
    });
    let words = "--server --bind 10.77.1.2 --udp-port 20000 --remote-udp-port 30000 --port 5001 --finish wait";
    let peer = Peer::start(&hosts, Side::Theirs, program, words);
    hosts.live(async || {
        let ours = hosts.sockets(Side::Ours, 30_000);
        let endpoint = open(Options::connecting(&ours)).await;
        let target = Target { addresses: hosts.sockets(Side::Theirs, 20_000), key: None };
        let ports = SctpPorts { local: Some(6001), remote: 5001 };
        let association = endpoint.connect_with_ports(&target, ports).await;
        let association = association.expect("an association");
        assert_eq!(association.sctp_ports(), Some((6001, 5001)));
        send(&association, 500_000, 1000, 1).await;
        association.shutdown().await.expect("in order");
    });
    assert_eq!(peer.report().received(), 500_000);
}

/// The peer has two addresses, and we are bound to none: each end learns both addresses of the other, and both
/// ends confirm both paths.
#[test]
fn bound_to_no_address_we_are_multihomed_too() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let anywhere = [SocketAddr::from(([0, 0, 0, 0], PORT))];
    let bind = "--bind 10.77.1.2,10.77.2.2";
    for they_open in [false, true] {
        let words = if they_open {
            format!("{bind} --connect 10.77.1.1 --bytes 200000 --expect 200000 --finish shutdown")
        } else {
            format!("--server {bind} --bytes 200000 --expect 200000 --finish shutdown")
        };
        let report = hosts.live(async || {
            let endpoint = open(Options::listening(&anywhere)).await;
            let peer = Peer::start(&hosts, Side::Theirs, program, &words);
            let association = match they_open {
                true => endpoint.accept().await,
                false => endpoint.connect(&hosts.target(1)).await.expect("an association"),
            };
            while association.paths() != [PathStatus::Active; 2] {
                association.next_path_event().await.expect("it is up");
            }
            assert_eq!(echo(&association).await, 200_000);
            tokio::task::spawn_blocking(|| peer.report()).await.expect("a report")
        });
        assert_eq!((report.ended(), report.received()), ("shutdown", 200_000));
        // The address of the handshake is confirmed without a HEARTBEAT.
        let confirmed = |ip: &str| report.saw(&format!("path {ip} confirmed"));
        assert!(confirmed("10.77.2.1") || confirmed("10.77.1.1"), "{}", report.0);
    }
}
