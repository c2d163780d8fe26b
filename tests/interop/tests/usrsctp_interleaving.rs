//! I-DATA (RFC 8260) between Ropewalk and usrsctp.

use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{PPID, connect_as, receive, send};
use ropewalk_interop::pattern::message;
use ropewalk_interop::peer::{Peer, usrsctp};
use ropewalk_runtime::endpoint::{CloseReason, StreamScheduler, Transport};

const BIND: &str = "--bind 10.77.1.2";

/// With a small receive buffer, long messages arrive in parts.
fn transport(scheduler: StreamScheduler) -> Transport {
    Transport {
        interleaving: true,
        stream_scheduler: scheduler,
        receive_buffer: 200_000,
        ..Transport::default()
    }
}

/// Total bytes, bytes per message, streams. The number of short messages greatly exceeds the 512 chunks that
/// usrsctp holds.
const CASES: [(usize, usize, u16); 4] =
    [(2_000_000, 1000, 1), (4_000_000, 100_000, 7), (4 << 20, 1 << 20, 2), (1_200_000, 60, 100)];

#[test]
fn interleaved_messages_that_we_send_arrive_at_usrsctp() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(1)));
    for (_, scheduler) in StreamScheduler::ALL {
        for (total, length, streams) in CASES {
            let case = format!("{scheduler:?} {total} {length} {streams}");
            let words = format!("--server {BIND} --streams 1000 --interleave");
            let peer = Peer::start(&hosts, Side::Theirs, program, &words);
            hosts.live(async || {
                let (_endpoint, association) = connect_as(&hosts, 1, transport(scheduler)).await;
                assert!(association.interleaves(), "{case}");
                send(&association, total, length, streams).await;
                association.shutdown().await.unwrap_or_else(|e| panic!("{case}: {e}"));
            });
            let report = peer.report();
            assert_eq!(report.ended(), "shutdown", "{case}");
            assert_eq!(report.received(), total.next_multiple_of(length), "{case}");
        }
    }
}

#[test]
fn interleaved_messages_that_usrsctp_sends_arrive_here() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(1)));
    for (total, length, streams) in CASES {
        let case = format!("{total} {length} {streams}");
        let words = format!(
            "--server {BIND} --bytes {total} --message {length} --streams {streams} \
             --finish shutdown --interleave"
        );
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let rules = transport(StreamScheduler::FirstCome);
            let (_endpoint, association) = connect_as(&hosts, 1, rules).await;
            assert!(association.interleaves(), "{case}");
            let received = receive(&association, usize::MAX).await;
            assert_eq!(received.bytes, total.next_multiple_of(length), "{case}");
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown), "{case}");
        });
        assert_eq!(peer.report().ended(), "shutdown", "{case}");
    }
}

#[test]
fn an_end_that_does_not_interleave_gets_data() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(1)));
    for (words, interleaving) in [("", true), ("--interleave", false)] {
        let words = format!("--server {BIND} --streams 10 {words}");
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let rules = Transport { interleaving, ..transport(StreamScheduler::RoundRobin) };
            let (_endpoint, association) = connect_as(&hosts, 1, rules).await;
            assert!(!association.interleaves(), "{words}");
            for stream in 0..3 {
                let bytes = message(stream, 0, 50_000);
                association.send(stream, PPID, bytes).await.expect("taken");
            }
            association.shutdown().await.expect("a shutdown");
        });
        let report = peer.report();
        assert_eq!((report.ended(), report.received()), ("shutdown", 150_000), "{words}");
    }
}
