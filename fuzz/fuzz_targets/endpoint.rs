//! An endpoint in the clear on real sockets: packets with tags, ports and addresses that belong together or not, while two
//! clients have associations. One of them is left alone by all packets with its tags or from its address, and stays.

#![no_main]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::LazyLock;
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ropewalk_base::Serial32;
use ropewalk_engine::sctp::wire::{Checksum, Ports, decode, encode};
use ropewalk_engine::sctp::{Chunk, Init, Packet};
use ropewalk_fuzz::Input;
use ropewalk_runtime::endpoint::{Association, Endpoint, Options, PORT};
use tokio::runtime::{Builder, Runtime};

/// Packets of one input: as many as a socket's buffer takes at once.
const PACKETS: usize = 40;
/// Longer than anything takes on one machine.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_micros(50);
/// What the clients say of themselves.
const TAGS: [u32; 2] = [0x0a0a_0a0a, 0x0b0b_0b0b];
const USUAL: Ports = Ports { source: PORT, destination: PORT };

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime")
});

/// Sockets at addresses of their own: those of the two clients, and somebody else's.
static SOCKETS: LazyLock<[UdpSocket; 3]> = LazyLock::new(|| {
    [2, 3, 4].map(|last| {
        let socket = UdpSocket::bind((Ipv4Addr::new(127, 0, 8, last), 0)).expect("loopback");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket
    })
});

fn written(packet: &Packet, ports: Ports) -> Vec<u8> {
    let mut out = Vec::new();
    encode(packet, ports, Checksum::Crc32c, &mut out);
    out
}

/// Sends a packet, and waits for one with our own tag and a chunk that `wanted` takes. Answers to packets of earlier
/// inputs may still be there: they came from another endpoint.
fn ask<T>(
    socket: &UdpSocket,
    to: SocketAddr,
    (packet, tag): (&Packet, u32),
    wanted: impl Fn(&Chunk) -> Option<T>,
) -> Option<T> {
    socket.send_to(&written(packet, USUAL), to).ok()?;
    let (mut room, until) = (vec![0; 1 << 16], Instant::now() + PATIENCE);
    while Instant::now() < until {
        let Ok((size, from)) = socket.recv_from(&mut room) else { continue };
        let mut answer = Packet::default();
        let bytes = Bytes::copy_from_slice(&room[..size]);
        if from == to
            && decode(&bytes, Checksum::Crc32c, &mut answer).is_ok()
            && answer.tag == tag
            && let Some(found) = answer.chunks.iter().find_map(&wanted)
        {
            return Some(found);
        }
    }
    None
}

/// Opens an association; the server's tag.
fn associate(socket: &UdpSocket, server: SocketAddr, tag: u32) -> u32 {
    let init = Init {
        tag,
        window: 1 << 16,
        outbound_streams: 4,
        inbound_streams: 4,
        initial_tsn: Serial32(100),
        ..Init::default()
    };
    let init = Packet::of(0, Chunk::Init(Box::new(init)));
    let both = ask(socket, server, (&init, tag), |chunk| match chunk {
        Chunk::InitAck(both) => Some(both.as_ref().clone()),
        _ => None,
    });
    let (theirs, cookie) = both.expect("an answer to an honest INIT");
    let echo = Packet::of(theirs.tag, Chunk::CookieEcho(cookie.expect("a cookie")));
    let taken =
        ask(socket, server, (&echo, tag), |chunk| (*chunk == Chunk::CookieAck).then_some(()));
    taken.expect("an honest cookie is taken");
    theirs.tag
}

/// Whether an association answers a HEARTBEAT with these bytes. The first tag is the server's, the other one the client's.
fn is_up(
    socket: &UdpSocket,
    server: SocketAddr,
    (tag, own): (u32, u32),
    word: &'static [u8],
) -> bool {
    let heartbeat = Packet::of(tag, Chunk::Heartbeat(Bytes::from_static(word)));
    let answer = |chunk: &Chunk| match chunk {
        Chunk::HeartbeatAck(info) => (info[..] == *word).then_some(()),
        _ => None,
    };
    ask(socket, server, (&heartbeat, own), answer).is_some()
}

/// One hostile packet: from the first client's address, or from somebody else's.
fn packet(input: &mut Input<'_>, tags: [u32; 2]) -> Option<(usize, Vec<u8>)> {
    let (what, low) = (input.byte(), input.byte());
    let from = if what & 1 == 0 { 0 } else { 2 };
    let ports = match what >> 1 & 3 {
        0 | 1 => USUAL,
        2 => Ports { source: PORT ^ u16::from(low), destination: PORT },
        _ => Ports { source: PORT, destination: u16::from(low) },
    };
    let mut packet = Packet::default();
    decode(&Bytes::copy_from_slice(input.block()), Checksum::None, &mut packet).ok()?;
    let tag = match what >> 3 & 7 {
        0 | 1 => tags[0],
        2 => TAGS[0],
        3 => 0,
        4 => packet.tag,
        5 => tags[0].wrapping_add(1),
        _ => u32::from(low),
    };
    // A fuzzer does not guess tags either.
    packet.tag = if tag == tags[1] || tag == TAGS[1] { 1 } else { tag };
    Some((from, written(&packet, ports)))
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let _runtime = RUNTIME.enter();
    let server = Endpoint::open(Options::listening(&[(Ipv4Addr::LOCALHOST, 0).into()]));
    let server = server.expect("a free port");
    let address = server.locals()[0];
    let tags = [0, 1].map(|at| associate(&SOCKETS[at], address, TAGS[at]));
    let accepted = RUNTIME.block_on(async { [server.accept().await, server.accept().await] });
    for _ in 0..PACKETS {
        if input.is_over() {
            break;
        }
        let before = server.counters().received;
        let Some((from, datagram)) = packet(&mut input, tags) else { continue };
        SOCKETS[from].send_to(&datagram, address).expect("sent");
        let until = Instant::now() + PATIENCE;
        while server.counters().received == before {
            assert!(Instant::now() < until, "the endpoint takes nothing any more");
            sleep(LOOK);
        }
    }
    // Nobody comes in without a cookie, and nobody has one but the two.
    assert!(server.associations() <= 2, "{} associations", server.associations());
    assert!(
        is_up(&SOCKETS[1], address, (tags[1], TAGS[1]), b"still there"),
        "another's association is gone"
    );
    // An association whose peer has gone would keep the socket for minutes.
    accepted.iter().for_each(Association::abort);
    drop(accepted);
    let until = Instant::now() + PATIENCE;
    while server.associations() > 0 {
        assert!(Instant::now() < until, "an aborted association stays");
        sleep(LOOK);
    }
});
