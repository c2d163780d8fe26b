//! Associations between two endpoints of one machine.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Endpoint, Options, Target};
use ropewalk_runtime::seal::{Allowed, PublicKey, SecretKey};

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Options of a server and of a client on `paths` addresses each, and the key of the server.
fn both(sealed: bool, paths: usize) -> (Options, Options, Option<PublicKey>) {
    let locals = vec![loopback(); paths];
    let (server, client) = (Options::listening(&locals), Options::connecting(&locals));
    if !sealed {
        return (server, client, None);
    }
    let [one, other] = [(); 2].map(|()| SecretKey::generate().expect("random numbers"));
    let key = one.public();
    let allowed = Allowed::Keys([other.public()].into());
    (server.sealed(one, allowed), client.sealed(other, Allowed::Keys([key].into())), Some(key))
}

async fn messages_cross(sealed: bool, paths: usize) {
    let (server, client, key) = both(sealed, paths);
    let server = Endpoint::open(server).expect("free ports");
    let client = Endpoint::open(client).expect("free ports");
    let target = Target { addresses: server.locals().to_vec(), key };
    let near = client.connect(&target).await.expect("the server listens");
    let far = server.accept().await;
    let sender = async {
        for i in 0..1000u32 {
            let bytes = Bytes::from(i.to_be_bytes().repeat(1 + i as usize % 700));
            near.send((i % 4) as u16, i, bytes).await.expect("it is up");
        }
        near.shutdown().await
    };
    let receiver = async {
        let (mut count, mut next) = (0, [0, 1, 2, 3]);
        while let Some(message) = far.receive().await {
            assert_eq!(message.ppid, next[message.stream as usize], "in order on each stream");
            next[message.stream as usize] += 4;
            let expected = message.ppid.to_be_bytes().repeat(1 + message.ppid as usize % 700);
            assert_eq!(message.bytes, expected);
            count += 1;
        }
        count
    };
    let (sent, count) = tokio::join!(sender, receiver);
    assert_eq!((sent, count), (Ok(()), 1000));
}

#[tokio::test]
async fn messages_cross_in_the_clear_and_a_shutdown_delivers_all() {
    messages_cross(false, 1).await;
}

#[tokio::test]
async fn messages_cross_sealed_on_one_path_and_on_several() {
    messages_cross(true, 1).await;
    messages_cross(true, 3).await;
}

#[tokio::test]
async fn a_new_socket_sends_at_once_and_not_only_when_a_timer_expires() {
    let (mut server, mut client, key) = both(false, 1);
    // Probes of the path and their answers would be counted too.
    for end in [&mut server, &mut client] {
        end.transport.discover_mtu = false;
    }
    let server = Endpoint::open(server).expect("free ports");
    let client = Endpoint::open(client).expect("free ports");
    let target = Target { addresses: server.locals().to_vec(), key };
    let _near = client.connect(&target).await.expect("the server listens");
    // INIT and COOKIE ECHO, neither of them again.
    assert_eq!(client.counters().sent, 2);
}

#[tokio::test]
async fn who_waits_for_acknowledgements_is_told_of_the_last_one_and_of_the_end() {
    let (server, client, key) = both(true, 2);
    let server = Endpoint::open(server).expect("free ports");
    let client = Endpoint::open(client).expect("free ports");
    let target = Target { addresses: server.locals().to_vec(), key };
    let near = client.connect(&target).await.expect("the server listens");
    let _far = server.accept().await;
    let message = Bytes::from_static(&[7; 1000]);
    for stream in 0..200 {
        near.send(stream, 0, message.clone()).await.expect("it is up");
    }
    // Two at once, and one for whom there is nothing to wait for.
    tokio::join!(near.flushed(), near.flushed());
    near.flushed().await;
    let paths = near.stats().expect("it is up").paths;
    let delivered = paths.iter().map(|path| path.counters.delivered_bytes);
    assert_eq!(delivered.sum::<u64>(), 200 * 1000);
    near.send(0, 0, message).await.expect("it is up");
    tokio::join!(near.flushed(), async { near.abort() });
}
