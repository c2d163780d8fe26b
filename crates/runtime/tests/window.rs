//! What an endpoint says of its receive buffer.

use crate::between::{loopback, pair};
use bytes::Bytes;
use ropewalk_runtime::endpoint::Options;

/// Of which a full packet is a part that matters.
const BUFFER: u64 = 45_000;

fn small() -> Options {
    let mut options = Options::listening(&[loopback()]);
    options.transport.receive_buffer = BUFFER;
    options
}

#[tokio::test]
async fn a_small_buffer_is_said_to_be_free_of_what_a_waiting_reader_takes_at_once() {
    let mut pair = pair(small()).await;
    let count = 200;
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
    // A packet may end with a part of a message, which nobody can read yet.
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
