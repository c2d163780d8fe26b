//! Associations between two ports of one endpoint.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_engine::sctp::wire::{Checksum, Ports, encode};
use ropewalk_engine::sctp::{Chunk, Packet};
use ropewalk_runtime::endpoint::{
    Association, CloseReason, ConnectError, Endpoint, Options, SctpPorts, Target,
};
use tokio::time::timeout;

/// Timeout that no step should reach.
const LIMIT: Duration = Duration::from_secs(30);

/// An endpoint at this address that listens on two ports, and the address at which it reaches itself.
fn endpoint(ip: Ipv4Addr) -> (Endpoint, Target) {
    let options = Options::listening(&[SocketAddr::from((ip, 0))]).on_sctp_ports(&[7, 8]);
    let endpoint = Endpoint::open(options).expect("a free port");
    let port = endpoint.locals()[0].port();
    let addresses = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
    (endpoint, Target { addresses, key: None })
}

const fn ports(local: u16, remote: u16) -> SctpPorts {
    SctpPorts { local: Some(local), remote }
}

/// Sends a message each way.
async fn exchange(ends: [&Association; 2]) {
    for (from, to) in [(ends[0], ends[1]), (ends[1], ends[0])] {
        from.send(0, 0, Bytes::from_static(b"across")).await.expect("it is established");
        let received = timeout(LIMIT, to.receive()).await.expect("it arrives");
        assert_eq!(received.expect("a message").bytes, &b"across"[..]);
    }
}

#[tokio::test]
async fn two_ports_of_an_endpoint_reach_each_other() {
    for ip in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let (endpoint, target) = endpoint(ip);
        for (local, remote) in [(7, 8), (8, 7)] {
            let connected = endpoint.connect_with_ports(&target, ports(local, remote));
            let near = timeout(LIMIT, connected).await.expect("an answer").expect("it listens");
            let far = timeout(LIMIT, endpoint.accept()).await.expect("an association");
            assert_eq!(far.sctp_ports(), Some((remote, local)), "{ip}");
            exchange([&near, &far]).await;
            near.shutdown().await.expect("the other end answers");
            assert_eq!(far.ended().await, Some(CloseReason::Shutdown));
        }
    }
}

#[tokio::test]
async fn an_own_port_on_which_nothing_listens_refuses_associations() {
    for ip in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let (endpoint, target) = endpoint(ip);
        let connected = endpoint.connect_with_ports(&target, ports(7, 9));
        let refused = timeout(LIMIT, connected).await.expect("an answer");
        let by_peer = matches!(refused, Err(ConnectError::Ended(CloseReason::AbortedByPeer(_))));
        assert!(by_peer, "{refused:?}");
        let before = endpoint.counters().unknown;
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(endpoint.counters().unknown, before, "no reply is answered");
    }
}

/// Sends a packet that seems to come from the endpoint's own UDP socket on the loopback interface.
#[cfg(target_os = "linux")]
fn spoof(raw: &socket2::Socket, port: u16, packet: &Packet, ports: Ports) {
    let mut sctp = Vec::new();
    encode(packet, ports, Checksum::Crc32c, &mut sctp);
    let udp_length = (8 + sctp.len()) as u16;
    // The kernel fills in the checksum and the identification (raw(7)).
    let mut datagram = vec![0x45, 0];
    datagram.extend((20 + udp_length).to_be_bytes());
    datagram.extend([0, 0, 0, 0, 64, 17, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1]);
    for number in [port, port, udp_length, 0] {
        datagram.extend(number.to_be_bytes());
    }
    datagram.extend(sctp);
    let to = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    raw.send_to(&datagram, &to.into()).expect("it is sent");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn packets_that_seem_to_come_from_the_endpoint_itself_cause_no_replies() {
    let protocol = socket2::Protocol::from(255);
    let raw = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::RAW, Some(protocol));
    let Ok(raw) = raw else {
        eprintln!("skipped: raw sockets need root");
        return;
    };
    for ip in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED] {
        let (endpoint, target) = endpoint(ip);
        let port = target.addresses[0].port();
        // An association with another endpoint at the same address does not matter.
        let client = Endpoint::open(Options::connecting(&[(Ipv4Addr::LOCALHOST, 0).into()]));
        let client = client.expect("a free port");
        let connected = client.connect_with_ports(&target, ports(100, 7)).await;
        let _association = connected.expect("it listens");
        let chunks = [
            Chunk::ShutdownAck,
            Chunk::CookieEcho(Bytes::from_static(b"a cookie")),
            Chunk::Heartbeat(Bytes::from_static(b"is anybody there?")),
        ];
        let (mut sent, before) = (0, endpoint.counters().unknown);
        for (source, destination) in [(7, 8), (8, 7), (8, 9), (9, 8), (9, 9), (7, 7)] {
            for chunk in &chunks {
                let ports = Ports { source, destination };
                spoof(&raw, port, &Packet::of(1, chunk.clone()), ports);
                sent += 1;
            }
        }
        let counted = || endpoint.counters().unknown - before;
        let arrive = async {
            while counted() < sent {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        timeout(LIMIT, arrive).await.expect("they arrive");
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert_eq!(counted(), sent, "no reply has arrived");
    }
}
