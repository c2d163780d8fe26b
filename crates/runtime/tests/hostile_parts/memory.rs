//! Memory that a thousand associations hold after one datagram each.

use std::net::SocketAddr;

use bytes::Bytes;
use ropewalk_base::{Serial16, Serial32, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::wire::Ports;
use ropewalk_engine::sctp::{Chunk, Data, DataFlags, Init, Packet};
use ropewalk_runtime::endpoint::{Association, Endpoint, Options};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::between::{PATIENCE, loopback, read, receive_from, socket};
use crate::written;

const ASSOCIATIONS: usize = 1000;
/// Maximum growth of the process for all of them together, bytes.
const GROWTH_LIMIT: u64 = 100_000_000;

/// Memory of this process, bytes. `None` if the system does not report it.
fn resident() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

async fn ask(from: &UdpSocket, server: SocketAddr, ports: Ports, packet: &Packet) -> Chunk {
    from.send_to(&written(packet, ports), server).await.expect("sent");
    let mut got = vec![0; 2048];
    let answer = async {
        loop {
            let size = receive_from(from, server, &mut got).await;
            let (came, answer) = read(&got[..size]);
            // An earlier association may have had this UDP port.
            if came == ports.swapped() {
                return answer.chunks.into_iter().next().expect("a chunk");
            }
        }
    };
    timeout(PATIENCE, answer).await.expect("an answer")
}

/// A fragment as far ahead of the acknowledged data as the sequence space allows, on a stream and with a sequence
/// number equally far ahead.
fn far_ahead(first: Serial32) -> Chunk {
    Chunk::Data(Data {
        tsn: Serial32(first.0.wrapping_add(65_534)),
        stream: StreamId(1023),
        ssn: Serial16(32_767),
        ppid: 0,
        flags: DataFlags::BEGIN,
        payload: Payload::from(Bytes::from_static(b"x")),
        message_high: 0,
        first_sent: Time::ZERO,
    })
}

/// Opens an association manually and sends that one datagram.
async fn hit(server: &Endpoint, far: &mut Vec<Association>) {
    let (socket, address) = (socket().await, server.locals()[0]);
    // One host has one association for each pair of SCTP ports.
    let ports = Ports { source: 5001 + far.len() as u16, destination: 9899 };
    let init = Init {
        tag: 77,
        window: 1 << 20,
        outbound_streams: 1024,
        inbound_streams: 1024,
        initial_tsn: Serial32(9),
        ..Init::default()
    };
    let first = init.initial_tsn;
    let answer = ask(&socket, address, ports, &Packet::of(0, Chunk::Init(Box::new(init)))).await;
    let Chunk::InitAck(both) = answer else { panic!("{answer:?}") };
    let (tag, cookie) = (both.0.tag, both.1.clone().expect("a cookie"));
    let answer = ask(&socket, address, ports, &Packet::of(tag, Chunk::CookieEcho(cookie))).await;
    assert!(matches!(answer, Chunk::CookieAck), "{answer:?}");
    far.push(timeout(PATIENCE, server.accept()).await.expect("it is up"));
    let worst = written(&Packet::of(tag, far_ahead(first)), ports);
    socket.send_to(&worst, address).await.expect("sent");
}

#[tokio::test]
async fn the_worst_datagram_on_each_of_a_thousand_associations_costs_less_than_100_megabytes() {
    let server = Endpoint::open(Options::listening(&[loopback()])).expect("a free port");
    let mut far = Vec::new();
    hit(&server, &mut far).await;
    let before = resident();
    for _ in 1..ASSOCIATIONS {
        hit(&server, &mut far).await;
    }
    let all = async {
        while server.counters().received < 3 * ASSOCIATIONS as u64 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, all).await.expect("each has come");
    assert_eq!(server.associations(), ASSOCIATIONS);
    let grown = before.zip(resident()).map(|(before, after)| after.saturating_sub(before));
    eprintln!("{ASSOCIATIONS} associations: {grown:?} B");
    assert!(grown.is_none_or(|grown| grown < GROWTH_LIMIT), "{grown:?} B");
}
