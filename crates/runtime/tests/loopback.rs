//! Associations between two endpoints on one machine.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use ring::hmac::{Context, HMAC_SHA256, Key};
use ropewalk_runtime::endpoint::{
    Association, CloseReason, Endpoint, Observer, Options, PathStats, Stats, Target,
    TransportEventKind,
};
use ropewalk_runtime::seal::{
    Allowed, Grant, PresharedKey, PublicKey, Refusal, SecretKey, is_first,
};
use tokio::net::UdpSocket;
use tokio::time::timeout;

/// Timeout that no step should reach.
const PATIENCE: Duration = Duration::from_secs(30);

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
    // Path probes and their answers would be counted too.
    for end in [&mut server, &mut client] {
        end.transport.discover_mtu = false;
    }
    let server = Endpoint::open(server).expect("free ports");
    let client = Endpoint::open(client).expect("free ports");
    let target = Target { addresses: server.locals().to_vec(), key };
    let _near = client.connect(&target).await.expect("the server listens");
    // INIT and COOKIE ECHO, each sent once.
    assert_eq!(client.counters().sent, 2);
}

#[tokio::test]
async fn who_waits_for_acknowledgements_is_told_of_the_last_one_and_of_the_end() {
    let (server, client, key) = both(true, 2);
    let server = Endpoint::open(server).expect("free ports");
    let client = Endpoint::open(client).expect("free ports");
    let target = Target { addresses: server.locals().to_vec(), key };
    let near = client.connect(&target).await.expect("the server listens");
    let far = server.accept().await;
    let message = Bytes::from_static(&[7; 1000]);
    for stream in 0..200 {
        near.send(stream, 0, message.clone()).await.expect("it is up");
    }
    // Two concurrent waits, and one with nothing to wait for.
    tokio::join!(near.flushed(), near.flushed());
    near.flushed().await;
    let paths = near.stats().expect("it is up").paths;
    let delivered = paths.iter().map(|path| path.counters.delivered_bytes);
    assert_eq!(delivered.sum::<u64>(), 200 * 1000);
    let paths = far.stats().expect("it is up").paths;
    assert_eq!(paths.iter().map(|path| path.received_bytes).sum::<u64>(), 200 * 1000);
    for path in paths {
        let local = path.local.expect("packets have arrived there");
        assert!(server.locals().contains(&local.address), "{local:?}");
        // On loopback all paths share one interface, so the address is shown.
        assert_eq!(local.to_string(), local.address.to_string());
    }
    near.send(0, 0, message).await.expect("it is up");
    tokio::join!(near.flushed(), async { near.abort() });
}

/// A Retry that anyone who saw a first datagram and knows the server's public key can forge.
fn forged_retry(server: &PublicKey, first: &[u8], number: u32) -> Vec<u8> {
    let named = [b"ropewalk 1 first", server.as_bytes().as_slice()].concat();
    let key = Key::new(HMAC_SHA256, digest(&SHA256, &named).as_ref());
    let mut retry = vec![3, 1];
    retry.extend(&first[2..6]);
    retry.extend(number.to_be_bytes().repeat(6));
    let mut mac = Context::with_key(&key);
    mac.update(&first[first.len() - 16..]);
    mac.update(&retry);
    retry.extend(&mac.sign().as_ref()[..16]);
    retry
}

/// Forwards datagrams both ways. Before each answer the client gets forged Retries to everything that it sent
/// without a token.
async fn flood(near: UdpSocket, far: UdpSocket, server: PublicKey, forged: u32) {
    let (mut up, mut down) = (vec![0; 2048], vec![0; 2048]);
    let mut client = None;
    let mut number = 0;
    loop {
        tokio::select! {
            Ok((length, from)) = near.recv_from(&mut up) => {
                client = Some(from);
                let datagram = &up[..length];
                if is_first(datagram) && datagram[6..30] == [0; 24] {
                    for _ in 0..forged {
                        number += 1;
                        let _ = near.send_to(&forged_retry(&server, datagram, number), from).await;
                    }
                }
                let _ = far.send(datagram).await;
            }
            Ok(length) = far.recv(&mut down) => {
                let Some(client) = client else { continue };
                let _ = near.send_to(&down[..length], client).await;
            }
        }
    }
}

#[tokio::test]
async fn a_handshake_succeeds_under_a_flood_of_forged_retries() {
    for anyone in [false, true] {
        let (mut server, client, key) = both(true, 1);
        let key = key.expect("it is sealed");
        if anyone {
            server.sealing.as_mut().expect("it is sealed").allowed = Allowed::Anyone;
        }
        let server = Endpoint::open(server).expect("free ports");
        let client = Endpoint::open(client).expect("free ports");
        let near = UdpSocket::bind(loopback()).await.expect("a free port");
        let far = UdpSocket::bind(loopback()).await.expect("a free port");
        far.connect(server.locals()[0]).await.expect("an address");
        let addresses = vec![near.local_addr().expect("an address")];
        let attacker = tokio::spawn(flood(near, far, key, 300));
        let target = Target { addresses, key: Some(key) };
        let connected = timeout(PATIENCE, client.connect(&target)).await.expect("in time");
        connected.expect("a session");
        attacker.abort();
    }
}

/// A client with this key, connected to the server.
async fn client(
    server: &Endpoint,
    key: PublicKey,
    own: &SecretKey,
    psk: Option<&PresharedKey>,
) -> (Endpoint, Association) {
    let options = Options::connecting(&[loopback()]);
    let options = options.sealed(own.clone(), Allowed::Keys([key].into())).with_psk(psk.cloned());
    let endpoint = Endpoint::open(options).expect("a free port");
    let target = Target { addresses: server.locals().to_vec(), key: Some(key) };
    let connected = timeout(PATIENCE, endpoint.connect(&target)).await.expect("in time");
    (endpoint, connected.expect("a session"))
}

#[tokio::test]
async fn a_removed_peer_loses_its_association_and_gets_no_other_and_the_rest_go_on() {
    let [server, anna, ben] = [(); 3].map(|()| SecretKey::generate().expect("random numbers"));
    let (key, psk) = (server.public(), PresharedKey::generate().expect("random numbers"));
    let grant = |psk: Option<&PresharedKey>| Grant { psk: psk.cloned(), expires: None };
    let peers = [(anna.public(), grant(None)), (ben.public(), grant(Some(&psk)))];
    let options = Options::listening(&[loopback()]);
    let options = options.sealed(server, Allowed::Peers(peers.into()));
    let server = Endpoint::open(options).expect("a free port");
    let (anna_end, anna_near) = client(&server, key, &anna, None).await;
    let (_ben_end, ben_near) = client(&server, key, &ben, Some(&psk)).await;
    let far = [server.accept().await, server.accept().await];
    let of = |key| far.iter().find(|far| far.peer_key() == Some(key)).expect("accepted");

    let admission = server.admission();
    let left = Allowed::Peers([(ben.public(), grant(Some(&psk)))].into());
    assert_eq!(admission.set_allowed(left), 1);
    timeout(PATIENCE, anna_near.ended()).await.expect("ended");
    timeout(PATIENCE, of(anna.public()).ended()).await.expect("ended");
    ben_near.send(0, 0, Bytes::from_static(b"still here")).await.expect("it is up");
    let message = timeout(PATIENCE, of(ben.public()).receive()).await.expect("in time");
    assert_eq!(&message.expect("a message").bytes[..], b"still here");

    let target = Target { addresses: server.locals().to_vec(), key: Some(key) };
    let refused = async {
        loop {
            let refused = admission.take_refused();
            if let Some(refused) = refused.first() {
                return (refused.peer, refused.why);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        connected = anna_end.connect(&target) => panic!("{connected:?}"),
        refused = timeout(PATIENCE, refused) => {
            assert_eq!(refused.expect("in time"), (anna.public(), Refusal::NotListed));
        }
    }
    drop(server);
}

#[tokio::test]
async fn an_observer_sees_what_each_path_carried_and_how_the_association_ended() {
    let (mut server, client, key) = both(true, 2);
    let (sender, mut events) = tokio::sync::mpsc::unbounded_channel();
    let listener = move |event| {
        let _ = sender.send(event);
    };
    let observer = Observer::new(ropewalk_base::Duration::from_millis(50), listener);
    server.observer = Some(observer.clone());
    let server = Endpoint::open(server).expect("free ports");
    let client = Endpoint::open(client).expect("free ports");
    let target = Target { addresses: server.locals().to_vec(), key };
    let near = client.connect(&target).await.expect("the server listens");
    let far = server.accept().await;
    let mut waiting: Vec<_> = server.locals().iter().map(|local| local.ip().to_string()).collect();
    let opened = events.recv().await.expect("an event");
    assert!(matches!(opened.kind, TransportEventKind::Established), "{opened:?}");
    assert!(opened.about.opened_by_peer && opened.about.peer == far.peer_key());
    while !waiting.is_empty() {
        let event = timeout(PATIENCE, events.recv()).await.expect("in time").expect("an event");
        let TransportEventKind::PathUp { link, .. } = event.kind else { panic!("{event:?}") };
        let at = waiting.iter().position(|known| *known == link).expect("an own address");
        waiting.remove(at);
    }
    for i in 0..50u8 {
        near.send(0, 0, Bytes::from(vec![i; 1000])).await.expect("it is up");
        far.receive().await.expect("a message");
    }
    let bytes = |stats: &Stats| stats.paths.iter().map(|path| path.received_bytes).sum::<u64>();
    let seen = || {
        let snapshots = observer.snapshots();
        let associations = snapshots.iter().flat_map(|endpoint| &endpoint.associations);
        associations.map(|association| bytes(&association.stats)).sum::<u64>()
    };
    let published = async {
        while seen() < 50_000 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, published).await.expect("a snapshot with all data");
    near.abort();
    let event = timeout(PATIENCE, events.recv()).await.expect("in time").expect("an event");
    let TransportEventKind::Closed { reason, last, .. } = event.kind else { panic!("{event:?}") };
    assert!(matches!(reason, CloseReason::AbortedByPeer(_)), "{reason}");
    assert_eq!(bytes(&last.stats), 50_000);
    let carried = |path: &PathStats| path.traffic.received_bytes > path.received_bytes;
    assert!(last.stats.paths.iter().any(carried), "headers count as well");
}

#[tokio::test]
async fn an_idle_endpoint_publishes_only_what_it_is_asked_for() {
    let (mut server, client, key) = both(true, 1);
    let observer = Observer::new(ropewalk_base::Duration::from_millis(50), |_| {});
    server.observer = Some(observer.clone());
    let server = Endpoint::open(server).expect("free ports");
    let client = Endpoint::open(client).expect("free ports");
    let target = Target { addresses: server.locals().to_vec(), key };
    let near = client.connect(&target).await.expect("the server listens");
    let far = server.accept().await;
    for _ in 0..2 {
        near.send(0, 0, Bytes::from_static(b"news")).await.expect("it is up");
        far.receive().await.expect("a message");
        timeout(PATIENCE, observer.news()).await.expect("a snapshot");
        let latest = || observer.snapshots()[0].at;
        let idle = async {
            let mut at = latest();
            loop {
                tokio::time::sleep(Duration::from_millis(300)).await;
                if std::mem::replace(&mut at, latest()) == at {
                    return at;
                }
            }
        };
        let at = timeout(PATIENCE, idle).await.expect("no more snapshots");
        observer.request();
        timeout(PATIENCE, observer.answered()).await.expect("a snapshot");
        assert!(latest() > at);
        let no_news = timeout(Duration::from_millis(50), async {
            // Earlier traffic may be reported once more.
            observer.news().await;
            observer.news().await;
        });
        assert!(no_news.await.is_err(), "a request is no news");
    }
}
