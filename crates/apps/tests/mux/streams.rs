//! Streams in tasks, over a pair of queues.

use std::time::Duration;

use bytes::Bytes;
use ropewalk_apps::mux::{Connection, Limits, OpenError, Refusal, Role, pair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

fn connections(streams: u16) -> (Connection, Connection) {
    let (near, far) = pair(streams, 1400, 16);
    let near = Connection::start(near, Role::Connector, Limits::default());
    (near, Connection::start(far, Role::Acceptor, Limits::default()))
}

/// Echoes every stream.
async fn echo(connection: Connection) {
    let mut tasks = JoinSet::new();
    while let Some(incoming) = connection.accept().await {
        let Some(stream) = incoming.accept() else { continue };
        tasks.spawn(async move {
            let (mut read, mut write) = tokio::io::split(stream);
            tokio::io::copy(&mut read, &mut write).await.unwrap();
            write.shutdown().await.unwrap();
        });
    }
}

/// Bytes that differ from stream to stream.
fn content(seed: usize, n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 31 + i / 253 + seed * 17) as u8).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_streams_at_once_bring_back_all_that_was_sent_over_few_numbers() {
    // 64 numbers of ours for 200 streams: the others wait for one.
    let (near, far) = connections(128);
    let far = tokio::spawn(echo(far));
    let near = std::sync::Arc::new(near);
    let mut tasks = JoinSet::new();
    for i in 0..200 {
        let near = near.clone();
        tasks.spawn(async move {
            let stream = near.open(Bytes::from_static(b"echo")).await.unwrap();
            let sent = content(i, 1 + i * 997);
            let (mut read, mut write) = tokio::io::split(stream);
            let writer = async {
                write.write_all(&sent).await.unwrap();
                write.shutdown().await.unwrap();
            };
            let mut back = Vec::new();
            let (_, read) = tokio::join!(writer, read.read_to_end(&mut back));
            read.unwrap();
            assert!(back == sent, "stream {i}: {} of {} bytes", back.len(), sent.len());
        });
    }
    let all = async { while tasks.join_next().await.map(Result::unwrap).is_some() {} };
    timeout(Duration::from_secs(60), all).await.expect("none is stuck");
    assert_eq!(near.streams(), 0);
    assert_eq!(near.reserved(), 0);
    drop(near);
    timeout(Duration::from_secs(5), far).await.expect("the other end notices").unwrap();
}

#[tokio::test]
async fn a_reader_that_sleeps_stops_its_own_stream_only() {
    let (near, far) = connections(8);
    let slow = near.open(Bytes::from_static(b"slow")).await.unwrap();
    let quick = near.open(Bytes::from_static(b"quick")).await.unwrap();
    let mut writers = JoinSet::new();
    for _ in 0..2 {
        let mut stream = far.accept().await.unwrap().accept().unwrap();
        writers.spawn(async move {
            let result = stream.write_all(&content(1, 3 << 20)).await;
            result.and(stream.shutdown().await)
        });
    }
    let mut quick_bytes = Vec::new();
    let (mut quick, mut slow) = (quick, slow);
    timeout(Duration::from_secs(20), quick.read_to_end(&mut quick_bytes)).await.unwrap().unwrap();
    assert!(quick_bytes == content(1, 3 << 20));
    let most = Limits::default().first_window + Limits::default().send_queue as u64;
    assert!(most < 3 << 20, "otherwise the slow one would have been stopped by nothing");
    writers.join_next().await.unwrap().unwrap().unwrap();
    assert!(writers.try_join_next().is_none(), "the other writer waits for its reader");
    let mut slow_bytes = Vec::new();
    timeout(Duration::from_secs(20), slow.read_to_end(&mut slow_bytes)).await.unwrap().unwrap();
    assert!(slow_bytes == content(1, 3 << 20));
}

#[tokio::test]
async fn a_refusal_reaches_who_opened() {
    let (near, far) = connections(8);
    let stream = near.open(Bytes::from_static(b"nowhere")).await.unwrap();
    let incoming = far.accept().await.unwrap();
    assert_eq!(&incoming.target[..], b"nowhere");
    let why = Refusal::new(7, "there is no such place");
    incoming.refuse(why.clone());
    assert_eq!(stream.opened().await, Err(why.clone()));
    assert_eq!(stream.refusal(), Some(why));
}

#[tokio::test]
async fn what_is_dropped_unanswered_or_unread_is_broken_off_at_the_other_end() {
    let (near, far) = connections(8);
    // The peer does not answer.
    let unanswered = near.open(Bytes::new()).await.unwrap();
    drop(far.accept().await.unwrap());
    assert_eq!(unanswered.opened().await.unwrap_err().code, Refusal::CANCELLED);
    drop(unanswered);
    // The opener gives up first.
    let given_up = near.open(Bytes::new()).await.unwrap();
    let incoming = far.accept().await.unwrap();
    drop(given_up);
    timeout(Duration::from_secs(5), incoming.given_up()).await.expect("it hears of it");
    assert!(incoming.accept().is_none());
    // One end drops an open stream.
    let mut stream = near.open(Bytes::new()).await.unwrap();
    let mut other = far.accept().await.unwrap().accept().unwrap();
    other.write_all(b"begun").await.unwrap();
    let mut five = [0; 5];
    stream.read_exact(&mut five).await.unwrap();
    drop(other);
    let error = timeout(Duration::from_secs(5), stream.read(&mut five)).await.unwrap();
    assert_eq!(error.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    drop(stream);
    let empty = async {
        while near.streams() + far.streams() > 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(Duration::from_secs(5), empty).await.expect("all numbers come back");
}

#[tokio::test]
async fn what_was_finished_arrives_although_its_writer_has_gone() {
    let (near, far) = connections(8);
    let mut stream = near.open(Bytes::new()).await.unwrap();
    let mut other = far.accept().await.unwrap().accept().unwrap();
    let sent = content(5, 60 << 10);
    stream.write_all(&sent).await.unwrap();
    stream.shutdown().await.unwrap();
    drop(stream);
    let mut got = Vec::new();
    timeout(Duration::from_secs(5), other.read_to_end(&mut got)).await.unwrap().unwrap();
    assert!(got == sent);
}

#[tokio::test]
async fn when_the_association_ends_everybody_hears_of_it() {
    let (near, far) = connections(8);
    let mut stream = near.open(Bytes::new()).await.unwrap();
    let _other = far.accept().await.unwrap().accept().unwrap();
    stream.opened().await.unwrap();
    drop(far);
    let error = stream.read(&mut [0; 4]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    near.ended().await;
    assert_eq!(near.open(Bytes::new()).await.unwrap_err(), OpenError::Ended);
    assert!(near.accept().await.is_none());
}
