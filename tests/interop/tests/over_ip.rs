//! SCTP directly over IP, without UDP: between two of our ends on two hosts, and with usrsctp over its raw
//! sockets.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Barrier;
use std::thread;

use ropewalk_interop::capture::Capture;
use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{all_paths, echo, open, receive, receive_into, send};
use ropewalk_interop::peer::{Peer, usrsctp};
use ropewalk_runtime::endpoint::{
    Association, Carrier, CloseReason, Endpoint, Options, PathStatus, RawError, Target,
};

const MB: usize = 1_000_000;

/// Socket addresses of a side that needs no UDP port.
fn at(ips: &[IpAddr]) -> Vec<SocketAddr> {
    ips.iter().map(|ip| SocketAddr::new(*ip, 0)).collect()
}

/// Two hosts, unless raw sockets cannot be used here.
fn hosts(links: u8) -> Result<Hosts, ropewalk_interop::Missing> {
    RawError::check().map_err(|error| ropewalk_interop::Missing(error.to_string()))?;
    Hosts::new(links)
}

/// Opens an association from these addresses to those.
async fn connect(from: &[IpAddr], to: &[IpAddr]) -> (Endpoint, Association) {
    let options = Options::connecting(&at(from)).over(Carrier::Ip);
    let endpoint = open(options).await;
    let target = Target { addresses: at(to), key: None };
    let association = endpoint.connect(&target).await.expect("an association");
    (endpoint, association)
}

/// Runs a server on their host and a client on ours. The client begins when the server listens.
fn both(
    hosts: &Hosts,
    server: impl AsyncFnOnce(Endpoint) + Send,
    client: impl AsyncFnOnce() + Send,
    at_theirs: &[IpAddr],
) {
    let ready = Barrier::new(2);
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            hosts.live_on(Side::Theirs, async || {
                let options = Options::listening(&at(at_theirs)).over(Carrier::Ip);
                let endpoint = open(options).await;
                ready.wait();
                server(endpoint).await;
            });
        });
        ready.wait();
        hosts.live(client);
        serving.join().expect("no panic");
    });
}

#[test]
fn two_ends_of_ours_use_both_links_over_either_family() {
    let hosts = or_skip!(hosts(2));
    let families = [
        (hosts.addresses(Side::Ours), hosts.addresses(Side::Theirs)),
        (hosts.addresses_v6(Side::Ours), hosts.addresses_v6(Side::Theirs)),
    ];
    for (ours, theirs) in families {
        let before = [1, 2].map(|link| hosts.carried(link));
        let used = |link: usize| hosts.carried(link as u8 + 1) - before[link] > MB as u64;
        let server = async |endpoint: Endpoint| {
            let association = endpoint.accept().await;
            assert!(echo(&association).await >= MB);
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown));
        };
        let client = async || {
            let (_endpoint, association) = connect(&ours, &theirs).await;
            all_paths(&association).await;
            // A path carries data once its MTU is known, and a busy machine may be slow to find it.
            while !(used(0) && used(1)) {
                let sending = send(&association, MB, 1000, 4);
                let (received, ()) = tokio::join!(receive(&association, MB), sending);
                assert_eq!(received.bytes, MB);
            }
            association.shutdown().await.expect("in order");
        };
        both(&hosts, server, client, &theirs);
    }
}

#[test]
fn an_address_that_is_removed_and_returns_is_used_again() {
    let hosts = or_skip!(hosts(2));
    let (ours, theirs) = (hosts.addresses(Side::Ours), hosts.addresses(Side::Theirs));
    let server = async |endpoint: Endpoint| {
        let association = endpoint.accept().await;
        let mut received = receive(&association, 2 * MB).await;
        received.restart();
        receive_into(&association, &mut received, usize::MAX).await;
        assert_eq!(received.bytes, 4 * MB);
        assert_eq!(association.ended().await, Some(CloseReason::Shutdown));
    };
    let client = async || {
        let (_endpoint, association) = connect(&ours, &theirs).await;
        all_paths(&association).await;
        send(&association, 2 * MB, 1000, 1).await;
        // The socket of that address is closed when the interface monitor sees that the address is gone.
        hosts.remove_address(Side::Ours, 1);
        while association.paths()[0] != PathStatus::Inactive {
            association.next_path_event().await.expect("it is up");
        }
        // Its socket is bound again, with its filter, when the address is back.
        hosts.add_address(Side::Ours, 1);
        while association.paths() != [PathStatus::Active; 2] {
            association.next_path_event().await.expect("it is up");
        }
        send(&association, 2 * MB, 1000, 1).await;
        association.shutdown().await.expect("in order");
    };
    both(&hosts, server, client, &theirs);
}

#[test]
fn packets_are_as_long_as_the_link_carries_without_a_udp_header() {
    let hosts = or_skip!(hosts(1));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("over-ip.pcapng");
    let capture = or_skip!(Capture::start(&hosts, Side::Theirs, &file));
    let theirs = hosts.addresses(Side::Theirs);
    let server = async |endpoint: Endpoint| {
        let association = endpoint.accept().await;
        assert_eq!(receive(&association, usize::MAX).await.bytes, MB);
    };
    let client = async || {
        let (_endpoint, association) = connect(&hosts.addresses(Side::Ours), &theirs).await;
        send(&association, MB, 100_000, 1).await;
        association.shutdown().await.expect("in order");
    };
    both(&hosts, server, client, &theirs);
    let dissection = capture.finish(&[]);
    assert!(dissection.packets > 700, "{} packets", dissection.packets);
    assert!(dissection.wrong.is_empty(), "{:#?}", dissection.wrong);
    assert_eq!(dissection.longest, 1500, "no packet fills the link");
}

#[test]
fn usrsctp_accepts_over_ip_and_sends_back() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(hosts(2)));
    for (links, length, more) in
        [(1, 1000, ""), (2, 1000, "--sysctl sctp_cmt_on_off=1"), (2, 200_000, "--interleave")]
    {
        let (ours, theirs) = (hosts.addresses(Side::Ours), hosts.addresses(Side::Theirs));
        let bind = if links == 1 { "10.77.1.2" } else { "10.77.1.2,10.77.2.2" };
        let words = format!(
            "--server --udp-port 0 --remote-udp-port 0 --bind {bind} --bytes {MB} --message {length} \
             --expect {MB} --streams 10 {more}"
        );
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect(&ours[..links], &theirs[..links]).await;
            all_paths(&association).await;
            send(&association, MB, length, 10).await;
            assert_eq!(receive(&association, MB).await.bytes, MB, "{words}");
            association.shutdown().await.expect("in order");
        });
        let report = peer.report();
        assert_eq!((report.ended(), report.received()), ("shutdown", MB), "{words}");
        assert_eq!(report.counted("checksum_errors"), 0, "{words}");
    }
}

#[test]
fn usrsctp_connects_over_ip() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(hosts(2)));
    for (links, bind, to) in
        [(1, "10.77.1.2", "10.77.1.1"), (2, "10.77.1.2,10.77.2.2", "10.77.1.1,10.77.2.1")]
    {
        hosts.live(async || {
            let ours = at(&hosts.addresses(Side::Ours)[..links]);
            let options = Options::listening(&ours).over(Carrier::Ip);
            let endpoint = open(options).await;
            let words = format!(
                "--udp-port 0 --remote-udp-port 0 --bind {bind} --connect {to} --bytes {MB} \
                 --expect {MB} --message 1000 --streams 10 --finish shutdown"
            );
            let peer = Peer::start(&hosts, Side::Theirs, program, &words);
            let association = endpoint.accept().await;
            assert_eq!(echo(&association).await, MB, "{words}");
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown), "{words}");
            let report = tokio::task::spawn_blocking(|| peer.report()).await.expect("a report");
            assert_eq!((report.ended(), report.received()), ("shutdown", MB), "{words}");
            assert_eq!(report.counted("checksum_errors"), 0, "{words}");
        });
    }
}
