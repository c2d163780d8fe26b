//! The limits of an endpoint on real sockets: associations beyond a limit are refused, others are accepted,
//! and each refusal is counted and reported.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_base::Duration as Span;
use ropewalk_runtime::endpoint::{
    Association, CloseReason, ConnectError, Decision, Endpoint, IncomingFilter, Limit, Limits,
    OnLimit, Options, Target,
};
use ropewalk_runtime::seal::{Allowed, SecretKey};
use tokio::time::timeout;

use crate::between::{PATIENCE, loopback};

/// Longer than any handshake on one machine takes, and shorter than an initiator's timeout.
const NO_ANSWER: Duration = Duration::from_millis(900);

fn secret() -> SecretKey {
    SecretKey::generate().expect("random numbers")
}

/// A server with these limits, and how to reach it.
fn server(change: impl FnOnce(&mut Options)) -> (Endpoint, Target) {
    let own = secret();
    let key = Some(own.public());
    let allowed = Allowed::Anyone;
    let mut options = Options::listening(&[loopback()]).sealed(own, allowed);
    change(&mut options);
    let server = Endpoint::open(options).expect("a free port");
    let addresses = server.locals().to_vec();
    (server, Target { addresses, key })
}

fn client(key: &SecretKey) -> Endpoint {
    let options = Options::connecting(&[loopback()]).sealed(key.clone(), Allowed::Anyone);
    Endpoint::open(options).expect("a free port")
}

async fn reach(from: &Endpoint, target: &Target) -> Association {
    let reached = timeout(PATIENCE, from.connect(target)).await.expect("an answer");
    reached.expect("it is taken")
}

#[tokio::test]
async fn a_key_that_has_all_its_associations_gets_no_more_and_others_do() {
    let reports = Arc::new(AtomicU64::new(0));
    let told = reports.clone();
    let (server, target) = server(|options| {
        options.limits.associations_per_key = 2;
        let count = move |report: &ropewalk_runtime::endpoint::LimitReport| {
            assert!(report.to_string().contains("associations_per_key reached"), "{report}");
            told.fetch_add(report.times, Ordering::Relaxed);
        };
        options.on_limit = Some(OnLimit::new(count));
    });
    let (greedy, modest) = (client(&secret()), client(&secret()));
    let first = reach(&greedy, &target).await;
    let _second = reach(&greedy, &target).await;
    assert!(timeout(NO_ANSWER, greedy.connect(&target)).await.is_err(), "a third one");
    let _other = reach(&modest, &target).await;
    let counted = server.counters().limits.of(Limit::AssociationsPerKey);
    assert!(counted > 0 && counted == server.counters().limits.total());
    assert!(reports.load(Ordering::Relaxed) > 0);
    // When one association ends, there is room again.
    let closed = async {
        let far = server.accept().await;
        let both = tokio::join!(first.shutdown(), far.ended());
        drop(far);
        both
    };
    timeout(PATIENCE, closed).await.expect("it ends").0.expect("in order");
    reach(&greedy, &target).await;
}

#[tokio::test]
async fn an_endpoint_takes_no_more_than_fit_into_its_limits() {
    type Case = (Limit, fn(&mut Limits));
    let cases: [Case; 3] = [
        (Limit::Associations, |limits| limits.associations = 2),
        (Limit::AssociationsPerPrefix, |limits| limits.associations_per_prefix = 2),
        (Limit::Memory, |limits| limits.memory = 5 * Limits::BASE_COST / 2),
    ];
    for (limit, set) in cases {
        let (server, target) = server(|options| set(&mut options.limits));
        let clients = [(); 3].map(|()| client(&secret()));
        let _one = reach(&clients[0], &target).await;
        let _two = reach(&clients[1], &target).await;
        assert!(timeout(NO_ANSWER, clients[2].connect(&target)).await.is_err(), "{limit}");
        assert!(server.counters().limits.of(limit) > 0, "{limit}");
        assert_eq!(server.associations(), 2, "{limit}");
    }
}

#[tokio::test]
async fn the_application_refuses_or_ignores_whom_it_likes_before_anything_is_kept() {
    let keys = [(); 3].map(|()| secret());
    let [refused, ignored, taken] = [0, 1, 2].map(|i: usize| keys[i].public());
    let (server, target) = server(|options| {
        options.incoming = Some(IncomingFilter::new(move |info| match info.key {
            Some(key) if key == refused => Decision::Refuse,
            Some(key) if key == ignored => Decision::Ignore,
            Some(key) if key == taken => Decision::Accept,
            _ => panic!("an unproved key"),
        }));
    });
    let clients = keys.each_ref().map(client);
    let answer = timeout(PATIENCE, clients[0].connect(&target)).await.expect("an answer");
    let aborted = |reason: &CloseReason| matches!(reason, CloseReason::AbortedByPeer(_));
    assert!(matches!(answer, Err(ConnectError::Ended(reason)) if aborted(&reason)));
    assert!(timeout(NO_ANSWER, clients[1].connect(&target)).await.is_err());
    assert_eq!(server.associations(), 0);
    reach(&clients[2], &target).await;
    assert!(server.counters().limits.of(Limit::Filter) >= 2);
}

#[tokio::test]
async fn in_the_clear_the_application_refuses_by_address() {
    let mut options = Options::listening(&[loopback()]);
    options.incoming = Some(IncomingFilter::new(|info| {
        assert!(info.key.is_none() && info.address.ip().is_loopback());
        Decision::Refuse
    }));
    let server = Endpoint::open(options).expect("a free port");
    let client = Endpoint::open(Options::connecting(&[loopback()])).expect("a free port");
    let target = Target { addresses: server.locals().to_vec(), key: None };
    let answer = timeout(PATIENCE, client.connect(&target)).await.expect("an answer");
    assert!(matches!(answer, Err(ConnectError::Ended(CloseReason::AbortedByPeer(_)))));
    assert_eq!(server.associations(), 0);
}

#[tokio::test]
async fn who_is_not_accepted_is_let_go() {
    let (server, target) = server(|options| {
        options.limits.accept_queue = 1;
        options.limits.accept_timeout = Span::from_millis(400);
    });
    let client = client(&secret());
    let waits = reach(&client, &target).await;
    // The queue is full.
    let too_much = reach(&client, &target).await;
    for one in [&too_much, &waits] {
        let ended = timeout(PATIENCE, one.ended()).await.expect("it is let go");
        assert!(matches!(ended, Some(CloseReason::AbortedByPeer(_))), "{ended:?}");
    }
    let limits = server.counters().limits;
    assert_eq!((limits.of(Limit::AcceptQueue), limits.of(Limit::AcceptTimeout)), (1, 1));
    assert!(timeout(NO_ANSWER, server.accept()).await.is_err(), "none is left to accept");
    let gone = async {
        while server.associations() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, gone).await.expect("nothing is kept of them");
}

#[tokio::test]
async fn who_says_nothing_makes_room_and_who_does_not_need_to_stays() {
    let (server, target) = server(|options| {
        options.limits.associations = 2;
        options.limits.silent_timeout = Span::from_millis(300);
    });
    let clients = [(); 3].map(|()| client(&secret()));
    let talks = reach(&clients[0], &target).await;
    let hears = server.accept().await;
    let silent = reach(&clients[1], &target).await;
    let _holds = server.accept().await;
    talks.send(0, 0, Bytes::from_static(b"word")).await.expect("it is up");
    hears.receive().await.expect("it is up");
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(server.associations(), 2, "nobody needs the place yet");
    reach(&clients[2], &target).await;
    let ended = timeout(PATIENCE, silent.ended()).await.expect("it is let go");
    assert!(matches!(ended, Some(CloseReason::AbortedByPeer(_))), "{ended:?}");
    assert_eq!(server.counters().limits.of(Limit::SilentTimeout), 1);
    talks.send(0, 0, Bytes::from_static(b"more")).await.expect("it is up");
    assert_eq!(hears.receive().await.expect("it is up").bytes, &b"more"[..]);
}

#[tokio::test]
async fn an_idle_association_whose_peer_is_gone_ends_in_time() {
    let (server, far, _gone) = left_alone().await;
    let ended = timeout(PATIENCE, far.ended()).await.expect("it ends");
    assert_eq!(ended, Some(CloseReason::Unreachable));
    assert_eq!(server.counters().limits.of(Limit::VanishedTimeout), 1);
}

/// Without HEARTBEATs, an absent peer cannot be distinguished from a silent one.
#[tokio::test]
async fn an_idle_association_without_heartbeats_stays() {
    let (_server, far, _gone) = left_alone().await;
    assert!(far.set_heartbeats(0, false, None));
    assert_eq!(timeout(Duration::from_secs(3), far.ended()).await.ok(), None);
    // With HEARTBEATs the association ends, but the earlier silence does not count.
    assert!(far.set_heartbeats(0, true, None));
    assert_eq!(timeout(Duration::from_millis(300), far.ended()).await.ok(), None);
    let ended = timeout(PATIENCE, far.ended()).await.expect("it ends");
    assert_eq!(ended, Some(CloseReason::Unreachable));
}

/// A server with a silence limit of 600 ms, and an accepted association whose peer is gone.
async fn left_alone() -> (Endpoint, Association, (Endpoint, Association)) {
    let (server, target) = server(|options| {
        options.limits.vanished_timeout = Span::from_millis(600);
    });
    // Its task ends with its runtime, without notifying the server.
    let vanishing = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let near = runtime.block_on(async {
            let client = client(&secret());
            let near = reach(&client, &target).await;
            (client, near)
        });
        runtime.shutdown_background();
        near
    });
    let far = timeout(PATIENCE, server.accept()).await.expect("it comes");
    (server, far, vanishing.join().expect("a client"))
}

/// Unread data fills buffers. The key that holds the most loses associations; others keep theirs.
#[tokio::test]
async fn a_key_that_fills_the_memory_of_an_endpoint_loses_associations_and_others_do_not() {
    const LIMIT: u64 = 3 << 20;
    let (server, target) = server(|options| {
        options.limits.memory = LIMIT;
        options.transport.receive_buffer = 1 << 20;
    });
    let (greedy, modest) = (client(&secret()), client(&secret()));
    let honest = reach(&modest, &target).await;
    honest.send(0, 0, Bytes::from(vec![1; 64 << 10])).await.expect("room");
    let mut taken = Vec::new();
    for _ in 0..6 {
        let filling = reach(&greedy, &target).await;
        let fill = async {
            // Up to the window, until the association ends.
            while filling.send(0, 0, Bytes::from(vec![2; 64 << 10])).await.is_ok() {}
        };
        let _ = timeout(NO_ANSWER, fill).await;
        taken.push(filling);
    }
    assert!(server.counters().limits.of(Limit::Memory) > 0, "the limit was reached");
    let arrived = timeout(PATIENCE, server.accept()).await.expect("the honest one came first");
    let first = timeout(PATIENCE, arrived.receive()).await.expect("its message");
    assert_eq!(first.expect("it is up").bytes.len(), 64 << 10);
    honest.send(0, 0, Bytes::from_static(b"more")).await.expect("it is up");
    assert!(timeout(PATIENCE, arrived.receive()).await.expect("in time").is_some());
    let ended = taken.iter().map(|one| timeout(NO_ANSWER, one.ended()));
    let mut aborted = 0;
    for ended in ended {
        aborted += u32::from(matches!(ended.await, Ok(Some(CloseReason::AbortedByPeer(_)))));
    }
    assert!(aborted >= 1, "{aborted} of the greedy key's associations were ended");
}
