//! Ropewalk against usrsctp over real sockets: two network namespaces, SCTP in UDP (RFC 6951).

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{connect, receive, send};
use ropewalk_interop::peer::{Peer, usrsctp};

const MB: usize = 1_000_000;

/// How a peer with one or two addresses is reached.
const SINGLE: (u8, &str) = (1, "--bind 10.77.1.2");
const DOUBLE: (u8, &str) = (2, "--bind 10.77.1.2,10.77.2.2");

#[test]
fn we_send_and_they_receive_and_we_shut_down() {
    let program = or_skip!(usrsctp());
    // Links and addresses, bytes, bytes of a message, streams, what else the peer is told.
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
        let hosts = or_skip!(Hosts::new(links));
        let words = format!("--server {bind} --streams 1000 {more}");
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect(&hosts).await;
            send(&association, total, length, streams).await;
            association.shutdown().await.unwrap_or_else(|e| panic!("{case}: {e}"));
        });
        let report = peer.report();
        assert_eq!(report.ended(), "shutdown", "{case}");
        assert_eq!(report.received(), total.next_multiple_of(length), "{case}");
        assert_eq!(report.counted("checksum_errors"), 0, "{case}");
    }
}
