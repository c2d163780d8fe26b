//! Ropewalk against usrsctp in exceptional situations: ends that vanish and return, simultaneous opening, and a
//! failed path.

use std::time::Duration;

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::ours::{
    PPID, connect, connect_with_ports, listen, receive, receive_into, send,
};
use ropewalk_interop::peer::{Peer, Report, usrsctp};
use ropewalk_interop::{or_skip, pattern};
use ropewalk_runtime::endpoint::{
    Association, CloseReason, PORT, PathEvent, PathStatus, SctpPorts,
};

const BIND: &str = "--bind 10.77.1.2,10.77.2.2";
const TO_OURS: &str = "--connect 10.77.1.1,10.77.2.1";

/// Waits for a peer's end without blocking the endpoint.
async fn report(peer: Peer) -> Report {
    tokio::task::spawn_blocking(|| peer.report()).await.expect("a report")
}

#[test]
fn a_peer_that_went_without_a_word_and_comes_again_restarts_the_association() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    hosts.live(async || {
        let endpoint = listen(&hosts, 2).await;
        let words = format!("{BIND} {TO_OURS} --bytes 200000");
        let first = Peer::start(&hosts, Side::Theirs, program, &format!("{words} --finish vanish"));
        let association = endpoint.accept().await;
        let mut received = receive(&association, 200_000).await;
        assert_eq!(report(first).await.ended(), "vanished");

        let second =
            Peer::start(&hosts, Side::Theirs, program, &format!("{words} --finish shutdown"));
        received.restart();
        receive_into(&association, &mut received, usize::MAX).await;
        assert_eq!(received.bytes, 400_000);
        assert_eq!(association.ended().await, Some(CloseReason::Shutdown));
        let mut restarted = false;
        while let Some(news) = association.next_path_event().await {
            restarted |= news == PathEvent::Restarted;
        }
        assert!(restarted, "the user is told");
        assert_eq!(report(second).await.ended(), "shutdown");
    });
}

#[test]
fn when_we_go_without_a_word_and_come_again_the_peer_takes_it_for_a_restart() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let words = format!("--server {BIND} --expect 400000");
    // A client that returns with other ports is a new client, so the ports are fixed.
    let ports = SctpPorts { local: Some(PORT), remote: PORT };
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect_with_ports(&hosts, 2, ports).await;
        send(&association, 200_000, 1000, 1).await;
        association.flushed().await;
        // The driver ends with the runtime, before it could send an ABORT.
    });
    hosts.live(async || {
        let (_endpoint, association) = connect_with_ports(&hosts, 2, ports).await;
        send(&association, 200_000, 1000, 1).await;
        association.shutdown().await.expect("in order");
    });
    let report = peer.report();
    assert!(report.saw("restart"), "{:?}", report.0);
    assert_eq!((report.ended(), report.received()), ("shutdown", 400_000));
}

#[test]
fn when_both_open_it_there_is_one_association() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let words = format!("{BIND} {TO_OURS} --bytes 100000 --expect 200000 --finish shutdown");
    // Which end has sent an INIT in vain before the other end starts.
    for we_first in [true, false] {
        hosts.live(async || {
            let endpoint = listen(&hosts, 2).await;
            (1..=2).for_each(|link| hosts.cut(link));
            let target = hosts.target(2);
            let (association, peer) = if we_first {
                let peer = async {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    (1..=2).for_each(|link| hosts.mend(link));
                    Peer::start(&hosts, Side::Theirs, program, &words)
                };
                let (association, peer) = tokio::join!(endpoint.connect(&target), peer);
                (association.expect("it comes about"), peer)
            } else {
                let peer = Peer::start(&hosts, Side::Theirs, program, &words);
                tokio::time::sleep(Duration::from_millis(200)).await;
                (1..=2).for_each(|link| hosts.mend(link));
                (endpoint.connect(&target).await.expect("it comes about"), peer)
            };
            send(&association, 200_000, 1000, 1).await;
            let received = receive(&association, usize::MAX).await;
            assert_eq!(received.bytes, 100_000);
            let report = report(peer).await;
            assert_eq!((report.ended(), report.received()), ("shutdown", 200_000));
            assert_eq!(endpoint.associations(), 1, "we first: {we_first}");
        });
    }
}

/// Waits until a path has that status.
async fn until(association: &Association, path: usize, status: PathStatus) {
    while association.paths()[path] != status {
        let news = association.next_path_event().await;
        assert!(news.is_some(), "ended before");
    }
}

#[test]
fn a_path_that_dies_stops_nothing_and_is_used_again_when_it_is_back() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let words = format!("--server {BIND}");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    let sent = hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, 2).await;
        until(&association, 1, PathStatus::Active).await;
        hosts.cut(1);
        let mut messages = pattern::messages(100_000_000, 1000, 1);
        let mut sent = 0;
        while association.paths()[0] == PathStatus::Active {
            for (stream, bytes) in messages.by_ref().take(100) {
                sent += bytes.len();
                association.send(stream, PPID, bytes).await.expect("taken");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        association.flushed().await;
        hosts.mend(1);
        until(&association, 0, PathStatus::Active).await;
        association.shutdown().await.expect("in order");
        sent
    });
    let report = peer.report();
    assert_eq!((report.ended(), report.received()), ("shutdown", sent));
}

#[test]
fn a_path_that_dies_does_not_stop_what_they_send() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let words = format!(
        "--server {BIND} --bytes 5000000 --finish shutdown --sysctl sctp_cmt_on_off=1 \
         --sysctl sctp_rto_max_default=1000"
    );
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, 2).await;
        until(&association, 1, PathStatus::Active).await;
        let mut received = receive(&association, 1_000_000).await;
        hosts.cut(2);
        receive_into(&association, &mut received, usize::MAX).await;
        assert_eq!(received.bytes, 5_000_000);
    });
    assert_eq!(peer.report().ended(), "shutdown");
}
