//! Endpoints with several shards.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{
    Association, ConnectError, Endpoint, OpenError, Options, SctpPorts, Target,
};
use ropewalk_runtime::seal::{Allowed, PublicKey, SecretKey};
use socket2::{Domain, Type};
use tokio::time::timeout;

/// Timeout that no step should reach.
const PATIENCE: Duration = Duration::from_secs(60);

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// An endpoint with three shards and one with two, on `paths` addresses each.
fn both(sealed: bool, paths: usize) -> (Endpoint, Endpoint, Option<PublicKey>) {
    let locals = vec![loopback(); paths];
    let server = Options { shards: 3, ..Options::listening(&locals) };
    let client = Options { shards: 2, ..Options::connecting(&locals) };
    let open = |options| Endpoint::open(options).expect("free ports");
    if !sealed {
        return (open(server), open(client), None);
    }
    let [one, other] = [(); 2].map(|()| SecretKey::generate().expect("random numbers"));
    let key = one.public();
    let allowed = Allowed::Keys([other.public()].into());
    let client = client.sealed(other, Allowed::Keys([key].into()));
    (open(server.sealed(one, allowed)), open(client), Some(key))
}

/// Sends 100 messages each way and returns how many arrived.
async fn exchange(near: &Association, far: &Association) -> [u32; 2] {
    let send = async |from: &Association| {
        for ppid in 0..100 {
            from.send(0, ppid, Bytes::from(vec![3; 3000])).await.expect("it is up");
        }
        from.flushed().await;
    };
    let receive = async |at: &Association| {
        let mut count = 0;
        while count < 100 {
            let message = at.receive().await.expect("it is up");
            assert_eq!(message.ppid, count, "in order");
            count += 1;
        }
        count
    };
    let ((), (), there, back) = tokio::join!(send(near), send(far), receive(far), receive(near));
    [there, back]
}

async fn many_associations(sealed: bool, paths: usize) {
    let (server, client, key) = both(sealed, paths);
    let target = Target { addresses: server.locals().to_vec(), key };
    let mut pairs = Vec::new();
    for _ in 0..24 {
        let near = client.connect(&target).await.expect("the server listens");
        pairs.push((near, server.accept().await));
    }
    assert_eq!((server.associations(), client.associations()), (24, 24));
    for (near, far) in &pairs {
        assert_eq!(exchange(near, far).await, [100, 100]);
        if sealed {
            let used = far.stats().expect("it is up").paths.len();
            assert_eq!(used, paths, "all paths of an association reach its shard");
        }
    }
    if cfg!(target_os = "linux") {
        let passed_on = [&server, &client].map(|end| end.counters().passed_on);
        assert_eq!(passed_on, [0, 0], "the kernel knows the rule");
    }
    drop(pairs);
    timeout(PATIENCE, async { tokio::join!(server.close(), client.close()) })
        .await
        .expect("both ends close");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn associations_over_several_paths_stay_in_their_shards() {
    timeout(PATIENCE, many_associations(true, 3)).await.expect("in time");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsealed_associations_are_told_apart_by_their_ports() {
    timeout(PATIENCE, many_associations(false, 1)).await.expect("in time");
}

#[tokio::test]
async fn a_peer_that_restarts_with_the_same_ports_finds_its_association() {
    let server = Options { shards: 4, ..Options::listening(&[loopback()]) };
    let server = Endpoint::open(server).expect("a free port");
    let target = Target { addresses: server.locals().to_vec(), key: None };
    for port in 50_000..50_008 {
        let ports = SctpPorts { local: Some(port), ..SctpPorts::default() };
        let connect = async || {
            let client = Endpoint::open(Options::connecting(&[loopback()])).expect("a free port");
            let near = client.connect_with_ports(&target, ports).await.expect("it listens");
            (client, near)
        };
        let first = connect().await;
        let far = server.accept().await;
        // Not closed: its memory is lost, as in a crash.
        std::mem::forget(first);
        let (_client, near) = connect().await;
        near.send(0, 9, Bytes::from_static(b"again")).await.expect("it is up");
        let message = timeout(PATIENCE, far.receive()).await.expect("in time");
        assert_eq!(message.map(|message| message.ppid), Some(9), "the same association");
        near.abort();
        while timeout(PATIENCE, far.receive()).await.expect("in time").is_some() {}
    }
}

#[tokio::test]
async fn ports_that_both_ends_name_are_used_once() {
    let (server, client, key) = both(false, 1);
    let target = Target { addresses: server.locals().to_vec(), key };
    let ports = SctpPorts { local: Some(50_000), ..SctpPorts::default() };
    let _near = client.connect_with_ports(&target, ports).await.expect("the server listens");
    let again = client.connect_with_ports(&target, ports).await;
    assert!(matches!(again, Err(ConnectError::Exists(..))), "{again:?}");
}

#[tokio::test]
async fn the_limit_of_associations_is_that_of_all_shards_together() {
    let mut options = Options { shards: 4, ..Options::listening(&[loopback()]) };
    options.limits.associations = 5;
    let server = Endpoint::open(options).expect("a free port");
    let client = Endpoint::open(Options::connecting(&[loopback()])).expect("a free port");
    let target = Target { addresses: server.locals().to_vec(), key: None };
    let mut held = Vec::new();
    for _ in 0..5 {
        held.push((client.connect(&target).await.expect("there is room"), server.accept().await));
    }
    let (near, far) = held.swap_remove(2);
    let one_more = timeout(Duration::from_millis(300), client.connect(&target)).await;
    assert!(one_more.is_err(), "{one_more:?}");
    near.abort();
    while far.receive().await.is_some() {}
    drop(far);
    let one_more = timeout(PATIENCE, client.connect(&target)).await.expect("in time");
    one_more.expect("there is room again");
}

#[tokio::test]
async fn another_endpoint_cannot_take_the_address_however_many_shards_it_has() {
    let (server, ..) = both(false, 1);
    for shards in [1, 2, 3] {
        let second = Options { shards, ..Options::listening(server.locals()) };
        let refused = Endpoint::open(second).map(|_| ()).expect_err("the address is taken");
        assert!(matches!(refused, OpenError::Bind(..)), "{refused}");
    }
    for shards in [0, 65] {
        let options = Options { shards, ..Options::listening(&[loopback()]) };
        let refused = Endpoint::open(options).map(|_| ()).expect_err("no such number");
        assert_eq!(
            refused.to_string(),
            format!(
                "{shards} shards: an endpoint has 1 to 64, and 1 if it finds its interfaces by itself"
            )
        );
    }
}

/// A socket as a service manager binds and keeps it.
fn kept_socket(shared: bool) -> UdpSocket {
    let socket = socket2::Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
    socket.set_reuse_port(shared).expect("an option that Linux has");
    socket.bind(&loopback().into()).expect("a free port");
    socket.into()
}

#[tokio::test]
async fn peers_wait_at_an_inherited_socket_while_a_server_restarts() {
    for shards in [1, 3] {
        let kept = kept_socket(shards > 1);
        let start = || {
            let socket = kept.try_clone().expect("a duplicate");
            let mut options = Options::inheriting(vec![socket]).expect("it is bound");
            // Path probes and their answers would be counted too.
            options.transport.discover_mtu = false;
            Endpoint::open(Options { shards, ..options }).expect("an adopted socket")
        };
        let server = start();
        assert_eq!(server.locals(), [kept.local_addr().expect("an address")]);
        let mut options = Options::connecting(&[loopback()]);
        options.transport.discover_mtu = false;
        let client = Endpoint::open(options).expect("a free port");
        let target = Target { addresses: server.locals().to_vec(), key: None };
        for _ in 0..6 {
            let near = client.connect(&target).await.expect("the server listens");
            let far = server.accept().await;
            assert_eq!(exchange(&near, &far).await, [100, 100]);
            near.abort();
            while far.receive().await.is_some() {}
        }
        timeout(PATIENCE, server.close()).await.expect("no association is left");
        let waiting = client.start_connect(&target, SctpPorts::default()).expect("ports");
        // Longer than the first retransmission would take if the datagram were refused or lost.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let sent = client.counters().sent;
        let server = start();
        timeout(PATIENCE, waiting.established()).await.expect("in time").expect("it is up");
        let far = server.accept().await;
        assert_eq!(client.counters().sent, sent + 1, "a COOKIE ECHO, and no second INIT");
        drop((waiting, far));
    }
}

#[tokio::test]
async fn an_inherited_socket_that_is_alone_serves_one_shard() {
    let options = Options::inheriting(vec![kept_socket(false)]).expect("it is bound");
    let refused = Endpoint::open(Options { shards: 2, ..options.clone() });
    let refused = refused.map(|_| ()).expect_err("no other socket may have its address");
    assert!(refused.to_string().contains("ReusePort=yes"), "{refused}");
    Endpoint::open(options).expect("one shard needs one socket");
}

/// An address of this machine that no other test uses.
fn at(last: u8) -> SocketAddr {
    (Ipv4Addr::new(127, 0, 77, last), 0).into()
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_shard_has_sockets_at_an_address_that_is_added_later() {
    use ropewalk_runtime::endpoint::{AddressChange, PathEvent, PathStatus, Transport};
    let transport = Transport { address_reconfiguration: true, ..Transport::default() };
    let options = Options { transport: transport.clone(), ..Options::listening(&[at(1)]) };
    let server = Endpoint::open(Options { shards: 3, ..options }).expect("a free port");
    let options = Options { transport, ..Options::connecting(&[at(3)]) };
    let client = Endpoint::open(options).expect("a free port");
    let target = Target { addresses: server.locals().to_vec(), key: None };
    let mut pairs = Vec::new();
    for _ in 0..12 {
        let near = client.connect(&target).await.expect("the server listens");
        pairs.push((near, server.accept().await));
    }
    let becomes = async |association: &Association, expected: AddressChange| {
        let found = async {
            while association.next_path_event().await.expect("it is up")
                != PathEvent::Address(expected)
            {}
        };
        timeout(PATIENCE, found).await.expect("in time");
    };
    for (near, far) in &pairs {
        far.add_address(at(2).ip()).expect("it may be added");
        becomes(far, AddressChange::OwnAdded(at(2).ip(), Ok(()))).await;
        let both = async {
            while near.paths() != [PathStatus::Active; 2] {
                near.next_path_event().await.expect("it is up");
            }
        };
        timeout(PATIENCE, both).await.expect("the new address answers");
    }
    for (near, far) in &pairs {
        far.remove_address(at(1).ip()).expect("there is another");
        becomes(near, AddressChange::Removed(at(1).ip())).await;
        assert_eq!(exchange(near, far).await, [100, 100]);
    }
    let passed_on = server.counters().passed_on;
    // Some may arrive while the sockets are being bound.
    assert!(passed_on < 10, "the kernel knows the rule: {passed_on}");
}
