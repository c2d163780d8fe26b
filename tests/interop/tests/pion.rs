//! Ropewalk against pion/sctp (Go) over real sockets. pion supports one address.

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{connect, connect_as, echo, listen, receive, send};
use ropewalk_interop::peer::{Peer, pion};
use ropewalk_runtime::endpoint::{CloseReason, StreamScheduler, Transport};

const THEIRS: &str = "--bind 10.77.1.2:9899";

/// Total bytes, bytes per message, streams.
const CASES: [(usize, usize, u16); 4] =
    [(3_000_000, 1000, 1), (1_000_000, 700, 200), (2_000_000, 100_000, 3), (2_097_152, 1 << 20, 1)];

#[test]
fn what_we_send_comes_back_and_we_shut_down() {
    let (program, hosts) = (or_skip!(pion()), or_skip!(Hosts::new(1)));
    for (total, length, streams) in CASES {
        let case = format!("{total} {length} {streams}");
        let words = format!("--server {THEIRS} --echo");
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect(&hosts, 1).await;
            let whole = total.next_multiple_of(length);
            let back = receive(&association, whole);
            let ((), back) = tokio::join!(send(&association, total, length, streams), back);
            if back.bytes < whole {
                panic!("{case}: {} of {whole} B, then {:?}", back.bytes, association.ended().await);
            }
            association.shutdown().await.unwrap_or_else(|e| panic!("{case}: {e}"));
        });
        let report = peer.report();
        assert_eq!(report.ended(), "shutdown", "{case}: {}", report.0);
        assert_eq!(report.received(), total.next_multiple_of(length), "{case}");
    }
}

#[test]
fn they_open_the_association_and_what_they_send_comes_back_and_they_shut_down() {
    let (program, hosts) = (or_skip!(pion()), or_skip!(Hosts::new(1)));
    for (total, length, streams) in CASES {
        let case = format!("{total} {length} {streams}");
        hosts.live(async || {
            let listening = listen(&hosts, 1).await;
            let whole = total.next_multiple_of(length);
            let words = format!(
                "{THEIRS} --connect 10.77.1.1:9899 --bytes {total} --expect {whole} --message {length} \
                 --streams {streams} --finish shutdown"
            );
            let peer = Peer::start(&hosts, Side::Theirs, program, &words);
            let association = listening.accept().await;
            assert_eq!(echo(&association).await, whole, "{case}");
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown), "{case}");
            let report = tokio::task::spawn_blocking(|| peer.report()).await.expect("a report");
            assert_eq!(report.ended(), "shutdown", "{case}: {}", report.0);
            assert_eq!(report.received(), whole, "{case}");
        });
    }
}

#[test]
fn whoever_aborts_the_other_end_learns_of_it() {
    let (program, hosts) = (or_skip!(pion()), or_skip!(Hosts::new(1)));
    let words = format!("--server {THEIRS} --expect 10000 --finish abort");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, 1).await;
        send(&association, 10_000, 1000, 1).await;
        let ended = association.ended().await;
        assert!(matches!(ended, Some(CloseReason::AbortedByPeer(_))), "{ended:?}");
    });
    assert_eq!(peer.report().ended(), "aborted");

    let words = format!("--server {THEIRS}");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, 1).await;
        send(&association, 10_000, 1000, 1).await;
        association.flushed().await;
        association.abort();
        let ended = association.ended().await;
        assert!(matches!(ended, Some(CloseReason::Aborted(_))), "{ended:?}");
        // The ABORT must leave before the socket is closed.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    });
    let report = peer.report();
    assert_eq!((report.ended(), report.received()), ("lost", 10_000), "{}", report.0);
}

#[test]
fn what_we_send_interleaved_comes_back_interleaved() {
    let (program, hosts) = (or_skip!(pion()), or_skip!(Hosts::new(1)));
    for (_, stream_scheduler) in StreamScheduler::ALL {
        for (total, length, streams) in CASES {
            let case = format!("{stream_scheduler:?} {total} {length} {streams}");
            let peer =
                Peer::start(&hosts, Side::Theirs, program, &format!("--server {THEIRS} --echo"));
            hosts.live(async || {
                // pion lists I-DATA by default.
                let rules =
                    Transport { interleaving: true, stream_scheduler, ..Transport::default() };
                let (_endpoint, association) = connect_as(&hosts, 1, rules).await;
                assert!(association.interleaves(), "{case}");
                let whole = total.next_multiple_of(length);
                let back = receive(&association, whole);
                let ((), back) = tokio::join!(send(&association, total, length, streams), back);
                assert_eq!(back.bytes, whole, "{case}");
                association.shutdown().await.unwrap_or_else(|e| panic!("{case}: {e}"));
            });
            let report = peer.report();
            assert_eq!(report.ended(), "shutdown", "{case}: {}", report.0);
            assert_eq!(report.received(), total.next_multiple_of(length), "{case}");
        }
    }
}
