//! Non-blocking calls, and services that start and stop.

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{
    CloseReason, Delivery, Endpoint, Options, SctpPorts, State, Target, Transport, TrySendError,
};
use tokio::time::timeout;

/// Timeout that no step should reach.
const LIMIT: Duration = Duration::from_secs(30);

/// A server without services, and a client whose send buffer holds `send_buffer` bytes.
fn ends(send_buffer: u64) -> (Endpoint, Endpoint, Target) {
    let locals = [(Ipv4Addr::LOCALHOST, 0).into()];
    let server = Endpoint::open(Options::listening(&locals).on_sctp_ports(&[]));
    let server = server.expect("a free port");
    let mut options = Options::connecting(&locals);
    // Otherwise a stream with little unsent data could exceed the send buffer.
    let send_buffer = Some(send_buffer);
    options.transport = Transport { send_buffer, stream_reserve: 0, ..Transport::default() };
    let client = Endpoint::open(options).expect("a free port");
    let target = Target { addresses: server.locals().to_vec(), key: None };
    (server, client, target)
}

fn ports(remote: u16) -> SctpPorts {
    SctpPorts { local: None, remote }
}

#[tokio::test]
async fn an_endpoint_accepts_associations_on_the_ports_that_it_listens_on_now() {
    let (server, client, target) = ends(1 << 20);
    let refused = client.connect_with_ports(&target, ports(7)).await;
    assert!(refused.is_err(), "nothing listens on port 7");
    assert!(server.listen_on(7) && !server.listen_on(7) && !server.listen_on(0));
    let near = client.connect_with_ports(&target, ports(7)).await.expect("it listens");
    let far = timeout(LIMIT, server.accept()).await.expect("it comes");
    assert_eq!(far.sctp_ports().map(|(local, _)| local), Some(7));
    server.stop_listening_on(7);
    assert!(client.connect_with_ports(&target, ports(7)).await.is_err());
    near.shutdown().await.expect("the association goes on");
}

#[tokio::test]
async fn messages_are_queued_before_the_association_is_established() {
    let (server, client, target) = ends(1 << 20);
    server.listen_on(7);
    let near = client.start_connect(&target, ports(7)).expect("there is a way");
    let message = Bytes::from_static(b"early");
    near.try_send(3, 9, message.clone(), Delivery::RELIABLE).expect("room");
    assert!(matches!(near.status().expect("it exists").state, State::CookieWait { .. }));
    near.established().await.expect("the server listens");
    let far = server.accept().await;
    timeout(LIMIT, far.readable()).await.expect("it arrives");
    assert!(far.can_receive());
    let mut arrived = Vec::new();
    assert!(!far.try_receive(&mut arrived, 1), "there is one message");
    let [only] = &arrived[..] else { panic!("{arrived:?}") };
    assert_eq!((only.stream, only.ppid, &only.bytes), (3, 9, &message));
    assert!(!far.can_receive());
    near.start_shutdown();
    assert_eq!(timeout(LIMIT, far.ended()).await, Ok(Some(CloseReason::Shutdown)));
}

#[tokio::test]
async fn a_full_send_buffer_is_reported_and_writable_waits_for_room() {
    let (server, client, target) = ends(10_000);
    server.listen_on(7);
    let near = client.connect_with_ports(&target, ports(7)).await.expect("it listens");
    let far = server.accept().await;
    let message = Bytes::from(vec![7; 4000]);
    let send = || near.try_send(0, 0, message.clone(), Delivery::RELIABLE);
    let rooms: Vec<_> = (0..4).map(|_| send()).collect();
    let expected = [Ok(6000), Ok(2000), Ok(0), Err(TrySendError::Full)];
    assert_eq!(rooms, expected);
    timeout(LIMIT, near.writable(1 << 20)).await.expect("the peer acknowledges");
    assert!(send().is_ok());
    near.flushed().await;
    assert!(near.is_flushed());
    let mut arrived = Vec::new();
    assert!(far.try_receive(&mut arrived, 4000), "there are more");
    assert_eq!(arrived.len(), 1);
    assert!(!far.try_receive(&mut arrived, 1 << 20));
    assert_eq!(arrived.len(), 4);
}

#[tokio::test]
async fn the_shutdown_of_the_peer_is_noticed_while_messages_for_it_wait() {
    let (server, client, target) = ends(1 << 20);
    server.listen_on(7);
    let near = client.connect_with_ports(&target, ports(7)).await.expect("it listens");
    let far = server.accept().await;
    // The peer does not read, and one message is longer than its receive buffer.
    let message = Bytes::from(vec![7; 64 << 20]);
    near.try_send(0, 0, message, Delivery::RELIABLE).expect("room");
    far.start_shutdown();
    assert_eq!(timeout(LIMIT, near.shut_down_by_peer()).await, Ok(true));
    assert_eq!(near.close_reason(), None);
    near.abort_because_bytes(b"bytes \xff\0");
    timeout(LIMIT, far.ended()).await.expect("it is told");
    assert_eq!(far.abort_reason_bytes().as_deref(), Some(&b"bytes \xff\0"[..]));
    assert!(!far.shut_down_by_peer().await, "the peer has aborted it");
}
