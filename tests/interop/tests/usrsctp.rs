//! Ropewalk against usrsctp over real sockets: two network namespaces, SCTP in UDP (RFC 6951).

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{all_paths, connect, echo, listen, receive, send};
use ropewalk_interop::peer::{Peer, usrsctp};
use ropewalk_runtime::endpoint::CloseReason;

const MB: usize = 1_000_000;

/// Arguments of a peer with one or two addresses, with the number of links.
const SINGLE: (usize, &str) = (1, "--bind 10.77.1.2");
const DOUBLE: (usize, &str) = (2, "--bind 10.77.1.2,10.77.2.2");

/// Arguments with which a peer connects to us.
const fn at_ours(links: usize) -> &'static str {
    if links == 1 { "--connect 10.77.1.1" } else { "--connect 10.77.1.1,10.77.2.1" }
}

#[test]
fn we_send_and_they_receive_and_we_shut_down() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    // Links and addresses, total bytes, bytes per message, streams, further arguments of the peer.
    let cases = [
        (SINGLE, 5 * MB, 1000, 1, ""),
        (DOUBLE, 5 * MB, 1000, 1, "--sysctl sctp_cmt_on_off=1"),
        (DOUBLE, 5 * MB, 1000, 1, "--sysctl sctp_nrsack_enable=1"),
        (DOUBLE, 2 * MB, 700, 1000, ""),
        (SINGLE, 4 * MB, 1 << 20, 1, ""),
        (DOUBLE, 4 * MB, 100_000, 7, "--interleave"),
    ];
    for ((links, bind), total, length, streams, more) in cases {
        let case = format!("{bind} {total} {length} {streams} {more}");
        let before = hosts.carried(2);
        let words = format!("--server {bind} --streams 1000 {more}");
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect(&hosts, links).await;
            all_paths(&association).await;
            send(&association, total, length, streams).await;
            association.shutdown().await.unwrap_or_else(|e| panic!("{case}: {e}"));
        });
        let report = peer.report();
        assert_eq!(report.ended(), "shutdown", "{case}");
        assert_eq!(report.received(), total.next_multiple_of(length), "{case}");
        assert_eq!(report.counted("checksum_errors"), 0, "{case}");
        let second = hosts.carried(2) - before;
        assert_eq!(second > total as u64 / 20, links == 2, "{second} B by link 2: {case}");
    }
}

#[test]
fn they_send_and_we_receive_and_they_shut_down() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let cases = [
        (SINGLE, 5 * MB, 1000, 1, ""),
        (DOUBLE, 5 * MB, 1000, 1, "--sysctl sctp_cmt_on_off=1"),
        (DOUBLE, 2 * MB, 700, 1000, "--sysctl sctp_cmt_on_off=1 --sysctl sctp_cmt_use_dac=1"),
        (SINGLE, 4 * MB, 1 << 20, 1, ""),
        (DOUBLE, 4 * MB, 100_000, 7, "--interleave"),
    ];
    for ((links, bind), total, length, streams, more) in cases {
        let case = format!("{bind} {total} {length} {streams} {more}");
        let before = hosts.carried(2);
        let words = format!(
            "--server {bind} --bytes {total} --message {length} --streams {streams} \
             --finish shutdown {more}"
        );
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect(&hosts, links).await;
            let received = receive(&association, usize::MAX).await;
            assert_eq!(received.bytes, total.next_multiple_of(length), "{case}");
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown), "{case}");
        });
        let report = peer.report();
        assert_eq!(report.ended(), "shutdown", "{case}");
        assert_eq!(report.counted("checksum_errors"), 0, "{case}");
        let second = hosts.carried(2) - before;
        let both = more.contains("cmt");
        assert_eq!(second > total as u64 / 20, both, "{second} B by link 2: {case}");
    }
}

#[test]
fn they_open_the_association_and_what_they_send_comes_back() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let cases = [
        (SINGLE, 2 * MB, 1000, 1, ""),
        (DOUBLE, 2 * MB, 1000, 100, ""),
        (DOUBLE, 3 * MB, 50_000, 3, "--sysctl sctp_cmt_on_off=1"),
    ];
    for ((links, bind), total, length, streams, more) in cases {
        let case = format!("{bind} {total} {length} {streams} {more}");
        hosts.live(async || {
            let listening = listen(&hosts, links).await;
            let words = format!(
                "{bind} {} --bytes {total} --expect {total} --message {length} \
                 --streams {streams} --finish shutdown {more}",
                at_ours(links)
            );
            let peer = Peer::start(&hosts, Side::Theirs, program, &words);
            let association = listening.accept().await;
            let came = echo(&association).await;
            assert_eq!(came, total, "{case}");
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown), "{case}");
            let report = tokio::task::spawn_blocking(|| peer.report()).await.expect("a report");
            assert_eq!(report.ended(), "shutdown", "{case}");
            assert_eq!(report.received(), total, "{case}");
            assert_eq!(report.counted("checksum_errors"), 0, "{case}");
        });
    }
}

#[test]
fn whoever_aborts_the_other_end_learns_of_it() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let (links, bind) = DOUBLE;
    let words = format!("--server {bind} --expect 100000 --finish abort");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, links).await;
        send(&association, 100_000, 1000, 1).await;
        let ended = association.ended().await;
        assert!(matches!(ended, Some(CloseReason::AbortedByPeer(_))), "{ended:?}");
    });
    assert_eq!(peer.report().ended(), "aborted");

    let words = format!("--server {bind}");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let (_endpoint, association) = connect(&hosts, links).await;
        send(&association, 100_000, 1000, 1).await;
        association.flushed().await;
        association.abort();
        let ended = association.ended().await;
        assert!(matches!(ended, Some(CloseReason::Aborted(_))), "{ended:?}");
        // The ABORT must leave before the socket is closed.
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    });
    let report = peer.report();
    assert_eq!((report.ended(), report.received()), ("lost", 100_000));
}
