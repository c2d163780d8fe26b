//! Address changes during an association of Ropewalk and usrsctp (ASCONF, RFC 5061).

use std::net::IpAddr;
use std::time::Duration;

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{open, receive, send};
use ropewalk_interop::peer::{Peer, Report, usrsctp};
use ropewalk_runtime::endpoint::{
    AddressChange, Association, Endpoint, Options, PORT, PathEvent, PathStatus, Transport,
};

const BIND: &str = "--bind 10.77.1.2,10.77.2.2";
const TOTAL: usize = 2_000_000;
/// A transfer of several seconds, bytes.
const LONG: usize = 40_000_000;

fn transport() -> Transport {
    Transport { address_reconfiguration: true, ..Transport::default() }
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// An association from our first `ours` links to both addresses of the peer.
async fn connect(hosts: &Hosts, ours: usize) -> (Endpoint, Association) {
    let options = Options { transport: transport(), ..hosts.options(ours) };
    let endpoint = open(options).await;
    let association = endpoint.connect(&hosts.target(2)).await.expect("an association");
    assert!(association.reconfigures_addresses());
    (endpoint, association)
}

/// Waits for this change of addresses.
async fn change(association: &Association, expected: AddressChange) {
    let found = async {
        loop {
            match association.next_path_event().await {
                Some(PathEvent::Address(change)) => return change,
                Some(_) => {}
                None => panic!("the association has ended; expected {expected:?}"),
            }
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(10), found).await;
    assert_eq!(found.ok(), Some(expected));
}

/// Adds our second address.
async fn add_second(association: &Association) {
    association.add_address(ip("10.77.2.1")).expect("it may be added");
    change(association, AddressChange::OwnAdded(ip("10.77.2.1"), Ok(()))).await;
    becomes_active(association, "10.77.2.1", "10.77.2.2").await;
}

/// Removes our first address.
async fn remove_first(association: &Association) {
    association.remove_address(ip("10.77.1.1")).expect("there is another");
    change(association, AddressChange::OwnRemoved(ip("10.77.1.1"), Ok(()))).await;
}

/// The status of the path to an address of the peer from one of ours.
fn status(association: &Association, from: &str, to: &str) -> Option<PathStatus> {
    let stats = association.stats()?;
    let path = stats.paths.iter().position(|path| {
        path.remote.is_some_and(|remote| remote.ip() == ip(to))
            && path.local.as_ref().is_some_and(|local| local.address.ip() == ip(from))
    });
    association.paths().get(path?).copied()
}

async fn becomes_active(association: &Association, from: &str, to: &str) {
    for _ in 0..1000 {
        if status(association, from, to) == Some(PathStatus::Active) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{from} to {to}: {:?}", association.stats());
}

/// The report of a peer that has received this many bytes, and whose association has ended with a
/// shutdown.
fn received(peer: Peer, bytes: usize) -> Report {
    let report = peer.report();
    assert_eq!((report.ended(), report.received()), ("shutdown", bytes), "{}", report.0);
    report
}

#[test]
fn usrsctp_follows_addresses_that_we_add_and_remove_and_sends_to_the_one_that_we_ask_for() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    // usrsctp sends no data here: if one of its destinations disappears, it may stop sending for a long time.
    let words = format!("--server {BIND} --streams 10 --expect {LONG}");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, 1).await;
        let changes = async {
            add_second(&association).await;
            association.request_primary(ip("10.77.2.1")).expect("it may be asked");
            change(&association, AddressChange::OwnPrimary(ip("10.77.2.1"), Ok(()))).await;
            // The first link fails permanently.
            remove_first(&association).await;
            hosts.cut(1);
        };
        tokio::join!(send(&association, LONG, 1000, 3), changes);
        association.shutdown().await.expect("a shutdown");
    });
    let report = received(peer, LONG);
    for event in ["path 10.77.2.1 added", "path 10.77.2.1 primary", "path 10.77.1.1 removed"] {
        assert!(report.saw(event), "{event}: {}", report.0);
    }
}

#[test]
fn usrsctp_accepts_a_new_address_that_is_announced_from_itself_because_the_old_one_is_gone() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let words = format!("--server {BIND} --streams 10 --expect {TOTAL}");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, 1).await;
        hosts.cut(1);
        add_second(&association).await;
        remove_first(&association).await;
        send(&association, TOTAL, 1000, 3).await;
        association.shutdown().await.expect("a shutdown");
    });
    let report = received(peer, TOTAL);
    for event in ["path 10.77.2.1 added", "path 10.77.1.1 removed"] {
        assert!(report.saw(event), "{event}: {}", report.0);
    }
}

/// The requests name no address, as behind a translator (RFC 5061, 4.2.1).
#[test]
fn usrsctp_takes_the_source_of_our_requests_for_our_address_and_gives_up_the_others() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let words = format!("--server {BIND} --streams 10 --expect {TOTAL}");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let transport = Transport { translated: true, ..transport() };
        let options = Options { transport, ..hosts.options(1) };
        let endpoint = Endpoint::open(options).expect("an endpoint");
        let association = endpoint.connect(&hosts.target(2)).await.expect("an association");
        add_second(&association).await;
        association.request_primary(ip("10.77.2.1")).expect("it may be asked");
        change(&association, AddressChange::OwnPrimary(ip("10.77.2.1"), Ok(()))).await;
        remove_first(&association).await;
        hosts.cut(1);
        send(&association, TOTAL, 1000, 3).await;
        association.shutdown().await.expect("a shutdown");
    });
    let report = received(peer, TOTAL);
    for event in ["path 10.77.2.1 added", "path 10.77.1.1 removed"] {
        assert!(report.saw(event), "{event}: {}", report.0);
    }
}

#[test]
fn our_ends_follow_each_other_when_all_old_addresses_of_one_are_gone() {
    let hosts = or_skip!(Hosts::new(2));
    let locals = hosts.sockets(Side::Theirs, PORT);
    let server = std::thread::scope(|scope| {
        let (listens, listening) = std::sync::mpsc::channel();
        let there = scope.spawn(|| {
            hosts.live_on(Side::Theirs, async move || {
                let options = Options::listening(&locals);
                let endpoint = open(Options { transport: transport(), ..options }).await;
                listens.send(()).expect("somebody waits");
                let association = endpoint.accept().await;
                assert_eq!(receive(&association, usize::MAX).await.bytes, TOTAL);
                let mut events = Vec::new();
                while let Some(event) = association.next_path_event().await {
                    events.push(event);
                }
                events
            })
        });
        listening.recv().expect("it listens");
        hosts.live(async || {
            let (_endpoint, association) = connect(&hosts, 1).await;
            hosts.cut(1);
            add_second(&association).await;
            remove_first(&association).await;
            send(&association, TOTAL, 1000, 3).await;
            association.shutdown().await.expect("a shutdown");
        });
        there.join().expect("the server")
    });
    for change in [AddressChange::Added(ip("10.77.2.1")), AddressChange::Removed(ip("10.77.1.1"))] {
        assert!(server.contains(&PathEvent::Address(change)), "{server:?}");
    }
}

#[test]
fn we_follow_an_address_that_usrsctp_adds_and_make_it_the_primary_one_if_usrsctp_asks() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let words = format!(
        "--server --bind 10.77.1.2 --bytes {TOTAL} --message 1000 --streams 10 --gain 10.77.2.2 \
         --ask-primary 10.77.2.2 --expect {TOTAL}"
    );
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, 2).await;
        assert_eq!(receive(&association, TOTAL).await.bytes, TOTAL);
        assert_eq!(status(&association, "10.77.2.1", "10.77.2.2"), None);
        change(&association, AddressChange::Added(ip("10.77.2.2"))).await;
        becomes_active(&association, "10.77.2.1", "10.77.2.2").await;
        change(&association, AddressChange::Primary(ip("10.77.2.2"))).await;
        hosts.cut(1);
        send(&association, TOTAL, 1000, 3).await;
        association.shutdown().await.expect("a shutdown");
    });
    received(peer, TOTAL);
}

#[test]
fn we_follow_an_address_that_usrsctp_removes() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let words = format!(
        "--server {BIND} --bytes {TOTAL} --message 1000 --streams 10 --give-up 10.77.2.2 \
         --expect {TOTAL}"
    );
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, 2).await;
        becomes_active(&association, "10.77.2.1", "10.77.2.2").await;
        assert_eq!(receive(&association, TOTAL).await.bytes, TOTAL);
        change(&association, AddressChange::Removed(ip("10.77.2.2"))).await;
        assert_eq!(status(&association, "10.77.2.1", "10.77.2.2"), None);
        hosts.cut(2);
        send(&association, TOTAL, 1000, 3).await;
        association.shutdown().await.expect("a shutdown");
    });
    received(peer, TOTAL);
}

#[test]
fn usrsctp_that_has_opened_the_association_follows_our_addresses_as_well() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let peer = hosts.live(async || {
        let locals = &hosts.sockets(Side::Ours, PORT)[..1];
        let options = Options { transport: transport(), ..Options::listening(locals) };
        let endpoint = open(options).await;
        let words = format!(
            "--connect 10.77.1.1 {BIND} --bytes {TOTAL} --message 1000 --expect {TOTAL} --finish wait"
        );
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        let association = endpoint.accept().await;
        assert_eq!(receive(&association, TOTAL).await.bytes, TOTAL);
        add_second(&association).await;
        hosts.cut(1);
        send(&association, TOTAL, 1000, 1).await;
        association.shutdown().await.expect("a shutdown");
        peer
    });
    let report = received(peer, TOTAL);
    assert!(report.saw("path 10.77.2.1 added"), "{}", report.0);
}
