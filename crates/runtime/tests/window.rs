//! The receive window that an endpoint advertises.

use crate::between::{loopback, pair, pair_of};
use bytes::Bytes;
use ropewalk_runtime::endpoint::Options;

/// Small enough that a full packet is a significant part of it.
const BUFFER: u64 = 45_000;

fn small() -> Options {
    let mut options = Options::listening(&[loopback()]);
    options.transport.receive_buffer = BUFFER;
    options
}

#[tokio::test]
async fn a_small_buffer_is_said_to_be_free_of_what_a_waiting_reader_takes_at_once() {
    let mut pair = pair(small()).await;
    let count = 2000;
    pair.between
        .through(async {
            let mut messages = (0..count).map(|_| Bytes::from(vec![7; 1200]));
            let sending = pair.near.send_all(0, 0, &mut messages);
            let reading = async {
                for _ in 0..count {
                    pair.far.receive().await.expect("it is up");
                }
            };
            tokio::join!(sending, reading).0.expect("it is up");
            pair.near.flushed().await;
        })
        .await;
    // A packet may end with part of a message, which cannot be read yet.
    let windows = &pair.between.windows;
    let free = windows.iter().filter(|window| u64::from(**window) > BUFFER - 1200).count();
    assert!(windows.len() > 10 && free == windows.len(), "{windows:?}");
}

#[tokio::test]
async fn a_reader_who_does_not_come_holds_up_no_sack() {
    let mut pair = pair(small()).await;
    let mut messages = (0..20).map(|_| Bytes::from(vec![7; 1200]));
    pair.between
        .through(async {
            pair.near.send_all(0, 0, &mut messages).await.expect("it is up");
            pair.near.flushed().await;
        })
        .await;
    let least = pair.between.windows.iter().min().expect("all was acknowledged");
    assert!(u64::from(*least) < BUFFER - 20 * 1200, "{least}");
    for _ in 0..20 {
        pair.between.through(pair.far.receive()).await.expect("it was kept");
    }
}

#[tokio::test]
async fn no_more_of_the_peers_buffer_is_used_than_the_limit_says() {
    // Without a limit, the initial window allows ten packets immediately.
    for (limit, fits) in [(Some(6000), true), (None, false)] {
        let mut client = Options::connecting(&[loopback()]);
        client.transport.peer_buffer_limit = limit;
        let mut pair = pair_of(client, Options::listening(&[loopback()])).await;
        let mut messages = (0..50).map(|_| Bytes::from(vec![7; 1200]));
        pair.near.send_all(0, 0, &mut messages).await.expect("it is up");
        // No packet is forwarded, so nothing is acknowledged.
        let mut most = 0;
        for _ in 0..20 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            most = most.max(pair.near.stats().expect("it is up").paths[0].in_flight_bytes);
        }
        assert_eq!(most > 0 && most <= 6000, fits, "{limit:?}: {most}");
        // Everything arrives in the end.
        pair.between.through(pair.near.flushed()).await;
    }
}

#[tokio::test]
async fn the_time_to_the_delivery_is_measured_from_when_that_is_asked_for() {
    let mut pair = pair(Options::listening(&[loopback()])).await;
    assert_eq!(pair.near.delivery_delays(), None);
    pair.near.measure_delivery_delays();
    pair.between
        .through(async {
            pair.near.send(0, 0, Bytes::from_static(b"hello")).await.expect("it is up");
            pair.near.flushed().await;
        })
        .await;
    assert!(pair.near.delivery_delays().expect("measured").quantile(1.0) > 0);
    // Restarts the measurement.
    pair.near.measure_delivery_delays();
    assert_eq!(pair.near.delivery_delays().expect("measured").quantile(1.0), 0);
}
