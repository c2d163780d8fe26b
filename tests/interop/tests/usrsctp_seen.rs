//! What travels between Ropewalk and usrsctp, as a dissector sees it; and the same over IPv6, and through other
//! ports.

use std::path::Path;

use ropewalk_interop::capture::Capture;
use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{echo, receive, send};
use ropewalk_interop::peer::{Peer, usrsctp};
use ropewalk_runtime::endpoint::{CloseReason, Endpoint, Options, Target};

#[test]
fn no_packet_of_either_end_is_malformed() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp.pcapng");
    let capture = or_skip!(Capture::start(&hosts, Side::Theirs, &file));
    let words = "--server --bind 10.77.1.2,10.77.2.2 --streams 20 --bytes 300000 --message 7000 \
                 --sysctl sctp_cmt_on_off=1";
    let peer = Peer::start(&hosts, Side::Theirs, program, words);
    hosts.live(async || {
        // A segment that the network card would have cut is one long datagram in a capture.
        let options = Options { offload: false, ..hosts.options(2) };
        let endpoint = Endpoint::open(options).expect("an endpoint");
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
        let endpoint = Endpoint::open(Options::connecting(&at(Side::Ours))).expect("an endpoint");
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
        let endpoint = Endpoint::open(Options::listening(&ours)).expect("an endpoint");
        let peer = Peer::start(&hosts, Side::Theirs, program, words);
        let association = endpoint.accept().await;
        assert_eq!(echo(&association).await, 500_000);
        let report = tokio::task::spawn_blocking(|| peer.report()).await.expect("a report");
        assert_eq!((report.ended(), report.received()), ("shutdown", 500_000));
    });
    let words = "--server --bind 10.77.1.2 --udp-port 20000 --remote-udp-port 30000 --finish wait";
    let peer = Peer::start(&hosts, Side::Theirs, program, words);
    hosts.live(async || {
        let ours = hosts.sockets(Side::Ours, 30_000);
        let endpoint = Endpoint::open(Options::connecting(&ours)).expect("an endpoint");
        let target = Target { addresses: hosts.sockets(Side::Theirs, 20_000), key: None };
        let association = endpoint.connect(&target).await.expect("an association");
        send(&association, 500_000, 1000, 1).await;
        association.shutdown().await.expect("in order");
    });
    assert_eq!(peer.report().received(), 500_000);
}
