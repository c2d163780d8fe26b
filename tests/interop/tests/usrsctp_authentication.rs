//! Authenticated chunks (AUTH, RFC 4895) between Ropewalk and usrsctp.

use std::path::Path;
use std::time::Duration;

use ropewalk_interop::capture::{Capture, Dissection};
use ropewalk_interop::hosts::{Hosts, Side};
use ropewalk_interop::or_skip;
use ropewalk_interop::ours::{open, receive, send};
use ropewalk_interop::peer::{Peer, usrsctp};
use ropewalk_runtime::endpoint::{
    Association, ChunkTypes, CloseReason, Endpoint, Options, PORT, SharedKeys, Transport,
};

const AUTH: u8 = 15;
const BIND: &str = "--bind 10.77.1.2,10.77.2.2";
const TOTAL: usize = 3_000_000;

/// Types of chunks for which each end requires authentication, and the secret: its identifier and
/// its bytes.
struct Case {
    ours: &'static [u8],
    theirs: &'static [u8],
    secret: Option<(u16, &'static str)>,
}

/// DATA, SACK, HEARTBEAT, HEARTBEAT ACK, ABORT, SHUTDOWN, SHUTDOWN ACK, COOKIE ECHO, COOKIE ACK.
const MANY: &[u8] = &[0, 3, 4, 5, 6, 7, 8, 10, 11];
const CASES: [Case; 4] = [
    Case { ours: &[], theirs: &[0], secret: None },
    Case { ours: &[0], theirs: &[], secret: None },
    Case { ours: MANY, theirs: MANY, secret: None },
    Case { ours: MANY, theirs: MANY, secret: Some((7, "a-secret-of-both-ends")) },
];

impl Case {
    fn transport(&self) -> Transport {
        let mut shared_keys = SharedKeys::default();
        if let Some((id, secret)) = self.secret {
            shared_keys.set(id, secret.as_bytes()).expect("room");
            shared_keys.activate(id).expect("it was set");
        }
        Transport {
            authentication: true,
            authenticated_chunks: ChunkTypes::of(self.ours),
            shared_keys,
            ..Transport::default()
        }
    }

    fn words(&self) -> String {
        let types: Vec<String> = self.theirs.iter().map(u8::to_string).collect();
        let types = match types.is_empty() {
            true => String::new(),
            false => format!(" --authenticate {}", types.join(",")),
        };
        let secret = self.secret.map(|(id, secret)| format!(" --auth-key {id}:{secret}"));
        types + &secret.unwrap_or_default()
    }

    fn name(&self) -> String {
        format!("{:?} {:?} {:?}", self.ours, self.theirs, self.secret)
    }
}

async fn connect(hosts: &Hosts, case: &Case) -> (Endpoint, Association) {
    // Without offload: a capture shows a batch that the network card would segment as one long
    // datagram.
    let options = Options { transport: case.transport(), offload: false, ..hosts.options(2) };
    let endpoint = open(options).await;
    let association = endpoint.connect(&hosts.target(2)).await.expect("an association");
    (endpoint, association)
}

/// AUTH chunks from us and from them.
fn counts(dissection: &Dissection) -> [usize; 2] {
    [1, 2].map(|end: u8| {
        let links = [1, 2].map(|link| format!("10.77.{link}.{end}"));
        links.iter().map(|from| dissection.count(from, AUTH)).sum()
    })
}

fn check(dissection: &Dissection, case: &Case) {
    let [ours, theirs] = counts(dissection);
    let name = case.name();
    let required = |types: &[u8], count| match types {
        [] => count == 0,
        _ => count > 300,
    };
    assert!(required(case.theirs, ours) && required(case.ours, theirs), "{name}: {ours} {theirs}");
    assert!(dissection.longest <= 1500, "{name}: {} B", dissection.longest);
    assert!(dissection.wrong.is_empty(), "{name}: {:#?}", dissection.wrong);
}

#[test]
fn what_usrsctp_requires_is_authenticated_and_what_we_require_is_too() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp-auth-we-open.pcapng");
    for case in &CASES {
        let capture = or_skip!(Capture::start(&hosts, Side::Theirs, &file));
        let words = format!("--server {BIND} --echo --streams 10{}", case.words());
        let peer = Peer::start(&hosts, Side::Theirs, program, &words);
        hosts.live(async || {
            let (_endpoint, association) = connect(&hosts, case).await;
            assert!(association.authenticates(), "{}", case.name());
            let (received, ()) =
                tokio::join!(receive(&association, TOTAL), send(&association, TOTAL, 1000, 3));
            assert_eq!(received.bytes, TOTAL, "{}", case.name());
            association.shutdown().await.expect("a shutdown");
        });
        let report = peer.report();
        assert_eq!((report.ended(), report.received()), ("shutdown", TOTAL), "{}", case.name());
        check(&capture.finish(&[9899]), case);
    }
}

#[test]
fn usrsctp_opens_an_association_with_authenticated_chunks_and_shuts_it_down() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("usrsctp-auth-they-open.pcapng");
    for case in &CASES {
        let capture = or_skip!(Capture::start(&hosts, Side::Theirs, &file));
        let peer = hosts.live(async || {
            let locals = hosts.sockets(Side::Ours, PORT);
            let options = Options::listening(&locals);
            let options = Options { transport: case.transport(), offload: false, ..options };
            let endpoint = open(options).await;
            let words = format!(
                "--connect 10.77.1.1,10.77.2.1 {BIND} --bytes {TOTAL} --message 1000 --finish shutdown{}",
                case.words()
            );
            let peer = Peer::start(&hosts, Side::Theirs, program, &words);
            let association = endpoint.accept().await;
            assert!(association.authenticates(), "{}", case.name());
            let received = receive(&association, usize::MAX).await;
            assert_eq!(received.bytes, TOTAL, "{}", case.name());
            assert_eq!(association.ended().await, Some(CloseReason::Shutdown), "{}", case.name());
            peer
        });
        assert_eq!(peer.report().ended(), "shutdown", "{}", case.name());
        let [ours, theirs] = counts(&capture.finish(&[9899]));
        assert_eq!([ours > 300, theirs > 300], [case.theirs == MANY, !case.ours.is_empty()]);
    }
}

#[test]
fn with_another_secret_usrsctp_hears_nothing_of_our_data() {
    let (program, hosts) = (or_skip!(usrsctp()), or_skip!(Hosts::new(2)));
    let words = format!("--server {BIND} --authenticate 0 --auth-key 7:another --streams 10");
    let peer = Peer::start(&hosts, Side::Theirs, program, &words);
    hosts.live(async || {
        let case = Case { ours: &[], theirs: &[0], secret: Some((7, "a-secret")) };
        let (_endpoint, association) = connect(&hosts, &case).await;
        send(&association, 1000, 1000, 1).await;
        let flushed = tokio::time::timeout(Duration::from_millis(500), association.flushed());
        assert!(flushed.await.is_err(), "it was acknowledged");
        association.abort();
        tokio::time::sleep(Duration::from_millis(100)).await;
    });
    assert_eq!(peer.report().received(), 0);
}
