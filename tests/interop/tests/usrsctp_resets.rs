//! Stream reconfiguration (RFC 6525) between Ropewalk and usrsctp.

use std::collections::BTreeMap;

use ropewalk_base::StreamId;
use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{connect_as, send};
use ropewalk_interop::pattern::Checker;
use ropewalk_interop::peer::{Peer, usrsctp};
use ropewalk_runtime::endpoint::{
    AcceptedRequests, Association, CloseReason, Outcome, Reconfigured, ResetDirection, Streams,
    Transport, UpToEvent,
};

const BIND: &str = "--bind 10.77.1.2";

/// Bytes between two resets, bytes per message, streams.
const CASES: [(usize, usize, u16); 3] =
    [(500_000, 1000, 1), (1_000_000, 100_000, 7), (50_000, 60, 100)];

fn transport(interleaving: bool) -> Transport {
    Transport {
        interleaving,
        reconfiguration: true,
        accepted_requests: AcceptedRequests::ALL,
        ..Transport::default()
    }
}

async fn next(association: &Association) -> Reconfigured {
    association.next_reconfiguration().await.expect("the association goes on")
}

#[test]
fn streams_that_we_reset_start_over_at_usrsctp() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(1)));
    for (total, length, streams) in CASES {
        let case = format!("{total} {length} {streams}");
        let words = format!("--server {BIND} --streams 1000 --reconfigure");
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect_as(&hosts, 1, transport(false)).await;
            assert!(association.reconfigures(), "{case}");
            send(&association, total, length, streams).await;
            for _ in 0..5 {
                association.reset_streams(&[], ResetDirection::Outgoing).expect("a request");
                // These messages wait for the reset. Their numbers begin with 0 again.
                send(&association, total, length, streams).await;
                let event = next(&association).await;
                assert_eq!(event, Reconfigured::Reset(Streams::All, Outcome::Performed), "{case}");
            }
            association.shutdown().await.unwrap_or_else(|e| panic!("{case}: {e}"));
        });
        let report = peer.report();
        assert_eq!(report.ended(), "shutdown", "{case}");
        assert_eq!(report.received(), 6 * total.next_multiple_of(length), "{case}");
    }
}

/// Receives until the association ends. After each reset, the message numbers of a stream begin with 0 again.
/// Returns the bytes, and the number of resets of each stream.
async fn receive(association: &Association) -> (usize, BTreeMap<u16, usize>) {
    let (mut checkers, mut resets) = (BTreeMap::<u16, Checker>::new(), BTreeMap::new());
    loop {
        let mut messages = Vec::new();
        let UpToEvent { event, more } = association.try_receive_up_to_event(&mut messages, 1 << 20);
        let came = !messages.is_empty();
        for message in messages {
            checkers.entry(message.stream).or_default().take(message.stream, &message.bytes);
        }
        if let Some(event) = event {
            let Reconfigured::ResetByPeer(streams) = event else { panic!("{event:?}") };
            for (stream, checker) in &mut checkers {
                if streams.has(StreamId(*stream)) {
                    checker.restart();
                    *resets.entry(*stream).or_default() += 1;
                }
            }
        } else if !more && !came {
            if association.close_reason().is_some() {
                return (checkers.values().map(|one| one.bytes).sum(), resets);
            }
            association.readable().await;
        }
    }
}

#[test]
fn streams_that_usrsctp_resets_start_over_here() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(1)));
    for (total, length, streams) in CASES {
        let case = format!("{total} {length} {streams}");
        let words = format!(
            "--server {BIND} --bytes {total} --message {length} --streams {streams} \
             --finish shutdown --reconfigure --resets 5"
        );
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect_as(&hosts, 1, transport(false)).await;
            let (bytes, resets) = receive(&association).await;
            assert_eq!(bytes, 6 * total.next_multiple_of(length), "{case}");
            assert_eq!(resets, (0..streams).map(|stream| (stream, 5)).collect(), "{case}");
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown), "{case}");
        });
        assert_eq!(peer.report().ended(), "shutdown", "{case}");
    }
}

#[test]
fn usrsctp_adds_streams_and_resets_the_association_when_we_ask() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(1)));
    let words = format!("--server {BIND} --streams 10 --reconfigure");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let rules = Transport { streams: 10, ..transport(false) };
        let (_endpoint, association) = connect_as(&hosts, 1, rules).await;
        assert_eq!(association.stream_counts(), (10, 10));
        association.add_streams(5, 0).expect("a request");
        let outcome = Outcome::Performed;
        let expected = Reconfigured::StreamsAdded { outgoing: 5, incoming: 0, outcome };
        assert_eq!(next(&association).await, expected);
        assert_eq!(association.stream_counts(), (15, 10));
        send(&association, 100_000, 1000, 15).await;
        association.add_streams(0, 3).expect("a request");
        let expected = Reconfigured::StreamsAdded { outgoing: 0, incoming: 3, outcome };
        assert_eq!(next(&association).await, expected);
        assert_eq!(association.stream_counts(), (15, 13));
        association.reset_association().expect("a request");
        send(&association, 100_000, 1000, 15).await;
        let event = next(&association).await;
        assert!(matches!(event, Reconfigured::Association { outcome: Outcome::Performed, .. }));
        association.shutdown().await.expect("a shutdown");
    });
    let report = peer.report();
    assert_eq!((report.ended(), report.received()), ("shutdown", 200_000));
}
