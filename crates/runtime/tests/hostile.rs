//! Unsealed datagrams of unauthenticated and spoofing senders on real sockets: the hostile inputs of
//! `docs/data/conformance.csv` that concern an endpoint and not its engine alone.

mod between;
#[path = "hostile_parts/limits.rs"]
mod limits;
#[path = "hostile_parts/memory.rs"]
mod memory;
#[path = "hostile_parts/validation.rs"]
mod validation;

use std::time::Duration;

use between::{PATIENCE, Translator, loopback, pair, read, receive_from, socket};
use bytes::Bytes;
use ropewalk_engine::sctp::wire::{Checksum, Ports, encode};
use ropewalk_engine::sctp::{AbortCause, Chunk, Packet};
use ropewalk_runtime::endpoint::{Association, CloseReason, Endpoint, Options};
use tokio::time::timeout;

fn written(packet: &Packet, ports: Ports) -> Vec<u8> {
    let mut out = Vec::new();
    encode(packet, ports, Checksum::Crc32c, &mut out);
    out
}

async fn crosses(between: &mut Translator, from: &Association, to: &Association, word: &str) {
    let bytes = Bytes::copy_from_slice(word.as_bytes());
    let message = between.through(async {
        from.send(0, 0, bytes.clone()).await.expect("it is up");
        to.receive().await.expect("it is up")
    });
    assert_eq!(message.await.bytes, bytes);
}

/// Makes the same client use another port from now on.
async fn change_port(between: &mut Translator) {
    between.outside = socket().await;
    between.asked = 0;
}

// 61.
#[tokio::test]
async fn another_port_is_followed_with_the_right_tag_and_not_with_a_wrong_one() {
    let mut pair = pair(Options::listening(&[loopback()])).await;
    crosses(&mut pair.between, &pair.near, &pair.far, "there").await;
    crosses(&mut pair.between, &pair.far, &pair.near, "and back").await;
    let (ports, newest) = pair.between.to_server.clone();
    let spoofer = socket().await;
    for tag in [newest.tag ^ 1, 0, 1] {
        let packet = Packet::of(tag, Chunk::Heartbeat(Bytes::from_static(b"here I am")));
        let bytes = written(&packet, ports);
        spoofer.send_to(&bytes, pair.between.server).await.expect("sent");
    }
    crosses(&mut pair.between, &pair.far, &pair.near, "still the old way").await;
    let mut got = vec![0; 65_536];
    let (server, hears) = (pair.between.server, Duration::from_millis(300));
    while let Ok(size) = timeout(hears, receive_from(&spoofer, server, &mut got)).await {
        let (_, packet) = read(&got[..size]);
        let gone = |chunk: &Chunk| matches!(chunk, Chunk::Abort { reflected: true, .. });
        assert!(
            packet.chunks.iter().all(gone),
            "an unknown peer receives nothing else: {packet:?}"
        );
    }
    change_port(&mut pair.between).await;
    crosses(&mut pair.between, &pair.near, &pair.far, "from elsewhere").await;
    crosses(&mut pair.between, &pair.far, &pair.near, "and back there").await;
    // Within the first second the new port is probed, although data shows that it works.
    pair.between.through(tokio::time::sleep(Duration::from_millis(900))).await;
    assert!(pair.between.asked > 0);
}

// 29.
#[tokio::test]
async fn an_abort_with_t_ends_an_association_on_real_sockets_too() {
    let mut pair = pair(Options::listening(&[loopback()])).await;
    crosses(&mut pair.between, &pair.near, &pair.far, "there").await;
    let (ports, newest) = pair.between.to_server.clone();
    let client = pair.between.client.expect("it has sent");
    let abort = |tag| Packet::of(tag, Chunk::Abort { reflected: true, causes: Vec::new() });
    for tag in [0, newest.tag ^ 1] {
        let wrong = written(&abort(tag), ports.swapped());
        pair.between.inside.send_to(&wrong, client).await.expect("sent");
    }
    crosses(&mut pair.between, &pair.near, &pair.far, "still there").await;
    // Like the answer of a server that has lost its state: with the tag of the received packet.
    let right = written(&abort(newest.tag), ports.swapped());
    pair.between.inside.send_to(&right, client).await.expect("sent");
    let ended = timeout(PATIENCE, pair.near.ended()).await.expect("at once");
    assert_eq!(ended, Some(CloseReason::AbortedByPeer(AbortCause::Unknown)));
}

// 1. 62.
#[tokio::test]
async fn datagrams_that_are_no_packets_are_counted_and_nothing_else() {
    let server = Endpoint::open(Options::listening(&[loopback()])).expect("a free port");
    let unknown = socket().await;
    let ports = Ports { source: 5001, destination: 9899 };
    let whole = written(&Packet::of(9, Chunk::ShutdownAck), ports);
    let mut changed = whole.clone();
    changed[9] ^= 1;
    let short = (1..12).map(|size| whole[..size].to_vec());
    let bad: Vec<_> = short.chain([changed, vec![0xff; 40_000]]).collect();
    for bytes in &bad {
        unknown.send_to(bytes, server.locals()[0]).await.expect("sent");
    }
    let all = async {
        while server.counters().unknown < bad.len() as u64 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, all).await.expect("all are counted");
    assert_eq!((server.counters().sent, server.associations()), (0, 0));
    let mut got = [0; 100];
    let (from, hears) = (server.locals()[0], Duration::from_millis(100));
    assert!(timeout(hears, receive_from(&unknown, from, &mut got)).await.is_err());
    // The complete packet is answered.
    unknown.send_to(&whole, from).await.expect("sent");
    let answer = timeout(PATIENCE, receive_from(&unknown, from, &mut got)).await;
    let (_, answer) = read(&got[..answer.expect("an answer")]);
    assert_eq!(answer, Packet::of(9, Chunk::ShutdownComplete { reflected: true }));
}
