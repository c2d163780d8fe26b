//! NR-SACK (draft-natarajan-tsvwg-sctp-nrsack) and SACK-IMMEDIATELY (RFC 7053) between Ropewalk and usrsctp.

use std::path::Path;
use std::time::Duration;

use ropewalk_interop::capture::{Capture, Dissection};
use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{open, receive, send};
use ropewalk_interop::peer::{Peer, usrsctp};
use ropewalk_runtime::endpoint::{Association, CloseReason, Endpoint, Options, Transport};

const SACK: u8 = 3;
const NR_SACK: u8 = 16;
const BIND: &str = "--bind 10.77.1.2,10.77.2.2 --sysctl sctp_cmt_on_off=1";
const OFFERS: &str = "--sysctl sctp_nrsack_enable=1";

/// Total bytes, bytes per message, streams.
const CASES: [(usize, usize, u16); 3] =
    [(20_000_000, 1000, 1), (20_000_000, 30_000, 7), (2_000_000, 60, 100)];

/// A small send buffer, and a small receive buffer that data beyond gaps fills.
fn transport(nr_sack: bool) -> Transport {
    Transport {
        nr_sack,
        send_buffer: Some(100_000),
        receive_buffer: 200_000,
        ..Transport::default()
    }
}

async fn connect(hosts: &Hosts, nr_sack: bool) -> (Endpoint, Association) {
    // Without offload: a capture shows a batch that the network card would segment as one long
    // datagram.
    let transport = transport(nr_sack);
    let options = Options { transport, offload: false, ..hosts.options(2) };
    let endpoint = open(options).await;
    let association = endpoint.connect(&hosts.target(2)).await.expect("an association");
    (endpoint, association)
}

/// Cuts each link briefly during the transfer, so that losses leave gaps.
async fn lose(hosts: &Hosts) {
    for _ in 0..4 {
        for link in [1, 2] {
            tokio::time::sleep(Duration::from_millis(60)).await;
            hosts.cut(link);
            tokio::time::sleep(Duration::from_millis(15)).await;
            hosts.mend(link);
        }
    }
}

/// NR-SACKs from us and from them, and SACKs of both.
fn counts(dissection: &Dissection) -> [usize; 3] {
    let of = |end: u8, kind| {
        let links = [1, 2].map(|link| format!("10.77.{link}.{end}"));
        links.iter().map(|from| dissection.count(from, kind)).sum::<usize>()
    };
    [of(1, NR_SACK), of(2, NR_SACK), of(1, SACK) + of(2, SACK)]
}

/// Non-renegable gap ack blocks that an end has reported.
fn non_renegable(dissection: &Dissection, end: u8) -> u32 {
    let links = [1, 2].map(|link| format!("10.77.{link}.{end}"));
    let reports = dissection.non_renegable.iter().filter(|(from, _)| links.contains(from));
    reports.map(|(_, blocks)| blocks).sum()
}

#[test]
fn usrsctp_reports_what_it_will_not_drop_of_our_data() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp-nr-theirs.pcapng");
    let mut blocks = 0;
    for (total, length, streams) in CASES {
        let case = format!("{total} {length} {streams}");
        let capture = or_skip!(Capture::start(&hosts, Side::Theirs, &file));
        let words = format!("--server {BIND} {OFFERS} --streams 1000");
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect(&hosts, true).await;
            assert!(association.reports_non_renegable(), "{case}");
            tokio::join!(send(&association, total, length, streams), lose(&hosts));
            association.shutdown().await.unwrap_or_else(|e| panic!("{case}: {e}"));
        });
        let report = peer.report();
        assert_eq!(report.ended(), "shutdown", "{case}");
        assert_eq!(report.received(), total.next_multiple_of(length), "{case}");
        let dissection = capture.finish(&[9899]);
        let [_, theirs, plain] = counts(&dissection);
        assert!(theirs > 20 && plain == 0, "{case}: {theirs} NR-SACKs, {plain} SACKs");
        blocks += non_renegable(&dissection, 2);
        assert!(dissection.wrong.is_empty(), "{case}: {:#?}", dissection.wrong);
    }
    // A busy machine may send nothing during a cut, but this cannot happen in all cases.
    assert!(blocks > 0);
}

#[test]
fn we_report_what_we_will_not_drop_of_the_data_of_usrsctp() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp-nr-ours.pcapng");
    let mut blocks = 0;
    for (total, length, streams) in CASES {
        let case = format!("{total} {length} {streams}");
        let capture = or_skip!(Capture::start(&hosts, Side::Theirs, &file));
        let words = format!(
            "--server {BIND} {OFFERS} --bytes {total} --message {length} --streams {streams} \
             --send-buffer 100000 --finish shutdown"
        );
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect(&hosts, true).await;
            assert!(association.reports_non_renegable(), "{case}");
            let (received, ()) = tokio::join!(receive(&association, usize::MAX), lose(&hosts));
            assert_eq!(received.bytes, total.next_multiple_of(length), "{case}");
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown), "{case}");
        });
        assert_eq!(peer.report().ended(), "shutdown", "{case}");
        let dissection = capture.finish(&[9899]);
        let [ours, _, plain] = counts(&dissection);
        assert!(ours > 20 && plain == 0, "{case}: {ours} NR-SACKs, {plain} SACKs");
        blocks += non_renegable(&dissection, 1);
        assert!(dissection.wrong.is_empty(), "{case}: {:#?}", dissection.wrong);
    }
    // A busy machine may send nothing during a cut, but this cannot happen in all cases.
    assert!(blocks > 0);
}

#[test]
fn without_agreement_both_ends_send_sacks() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp-nr-neither.pcapng");
    for (words, nr_sack) in [("", true), (OFFERS, false)] {
        let capture = or_skip!(Capture::start(&hosts, Side::Theirs, &file));
        let words = format!("--server {BIND} {words} --echo --streams 10");
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect(&hosts, nr_sack).await;
            assert!(!association.reports_non_renegable(), "{words}");
            let (received, ()) =
                tokio::join!(receive(&association, 500_000), send(&association, 500_000, 1000, 3));
            assert_eq!(received.bytes, 500_000);
            association.shutdown().await.expect("a shutdown");
        });
        assert_eq!(peer.report().ended(), "shutdown", "{words}");
        let [ours, theirs, plain] = counts(&capture.finish(&[9899]));
        assert!(ours + theirs == 0 && plain > 20, "{words}: {ours} {theirs} {plain}");
    }
}
