//! Packets of a sealed association that arrive from other addresses than the peer's: the association
//! continues, and an address that has not answered receives at most three times the bytes that it sent.

use std::time::Duration;

use bytes::Bytes;
use ropewalk_runtime::endpoint::Association;

use crate::between::moving::{SealedPair, Way, sealed_pair};

/// Bytes that the server sends in a download.
const DOWNLOAD: usize = 3 << 20;
const MESSAGE: usize = 16 << 10;

async fn send(from: &Association, bytes: usize) {
    for _ in 0..bytes / MESSAGE {
        from.send(0, 0, Bytes::from(vec![7; MESSAGE])).await.expect("it is up");
    }
}

async fn receive(at: &Association, bytes: usize) {
    let mut got = 0;
    while got < bytes {
        got += at.receive().await.expect("it is up").bytes.len();
    }
}

/// Sends a short message in each direction.
async fn words(pair: &mut SealedPair) {
    let (near, far) = (&pair.near, &pair.far);
    let both = async {
        near.send(0, 0, Bytes::from_static(b"there")).await.expect("it is up");
        far.receive().await.expect("it is up");
        far.send(0, 0, Bytes::from_static(b"back")).await.expect("it is up");
        near.receive().await.expect("it is up");
    };
    pair.between.through(both).await;
}

#[tokio::test]
async fn an_address_that_has_not_answered_gets_no_more_than_three_times_what_it_sent() {
    for way in [Way::OneElsewhere, Way::ByTurns, Way::Elsewhere] {
        let mut pair = sealed_pair().await;
        words(&mut pair).await;
        // While the association is idle.
        pair.between.way = way;
        words(&mut pair).await;
        pair.between.through(tokio::time::sleep(Duration::from_millis(700))).await;
        // While the server sends as fast as it can, and receives acknowledgements for everything.
        pair.between.way = way;
        let (near, far) = (&pair.near, &pair.far);
        let both = async { tokio::join!(send(far, DOWNLOAD), receive(near, DOWNLOAD)) };
        pair.between.through(both).await;
        let (got, sent) = (pair.between.to_other, pair.between.from_other);
        assert!(got > 0 && got <= 3 * sent, "{way:?}: challenged with {got} B for {sent} B");
    }
}

#[tokio::test]
async fn copies_that_come_earlier_from_beside_the_way_stop_nothing() {
    for way in [Way::CopyFirst, Way::CopyFirstAndRelay] {
        let mut pair = sealed_pair().await;
        words(&mut pair).await;
        let home = pair.far.stats().expect("it is up").paths[0].remote;
        pair.between.way = way;
        for _ in 0..20 {
            words(&mut pair).await;
        }
        let (near, far) = (&pair.near, &pair.far);
        let down = async { tokio::join!(send(far, 1 << 20), receive(near, 1 << 20)) };
        let up = async { tokio::join!(send(near, 1 << 20), receive(far, 1 << 20)) };
        pair.between.through(async { tokio::join!(down, up) }).await;
        // The attacker may relay the challenge: the client also answers on its own path.
        assert_eq!(pair.far.stats().expect("it is up").paths[0].remote, home, "{way:?}");
    }
}

#[tokio::test]
async fn a_client_whose_address_changes_is_followed_to_where_it_answers() {
    let mut pair = sealed_pair().await;
    words(&mut pair).await;
    pair.between.way = Way::Rebound;
    for _ in 0..5 {
        words(&mut pair).await;
    }
    let (near, far) = (&pair.near, &pair.far);
    let both = async { tokio::join!(send(far, 1 << 20), receive(near, 1 << 20)) };
    pair.between.through(both).await;
    let remote = pair.far.stats().expect("it is up").paths[0].remote;
    assert_eq!(remote, Some(pair.between.other()));
}
