//! Floods of handshakes from many addresses, on real sockets: they leave no state, no answer is longer than three
//! times its request, and genuine clients still connect.

#![allow(
    clippy::disallowed_methods,
    reason = "how long a flood took is told to people, and judges nothing"
)]

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use ropewalk_base::Serial32;
use ropewalk_engine::sctp::wire::{Checksum, Ports, encode};
use ropewalk_engine::sctp::{Chunk, Init, Packet};
use ropewalk_runtime::endpoint::{Endpoint, Options, Target};
use ropewalk_runtime::seal::{Allowed, Initiator, PublicKey, SecretKey, Timestamp};
use tokio::time::timeout;

/// Timeout for any step, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Number of source addresses of the flood, each with its own socket here.
const SOURCES: u8 = 250;
/// Headers of IPv4 and UDP, bytes: amplification is counted in bytes on the wire.
const BELOW: usize = 28;
/// Clients that connect in turn during the flood.
const CLIENTS: usize = 5;
/// More growth than this would mean state per datagram: it equals 600 B for each datagram of the
/// smallest flood.
const GROWTH_LIMIT: u64 = 24 << 20;

/// A flood: minimum number of datagrams, and when the next [`BURST`] is sent.
#[derive(Clone, Copy)]
struct Measure {
    datagrams: u64,
    pace: Pace,
}

#[derive(Clone, Copy)]
enum Pace {
    /// After this time. Datagrams that the server has no time for are lost, including those of its clients.
    After(Duration),
    /// When the server has taken the previous burst, so that the system loses nothing, even on a slow machine.
    Taken,
}

/// A flood short enough for a test.
const SHORT: Measure = Measure { datagrams: 40_000, pace: Pace::Taken };
/// Number of datagrams that fit into a socket buffer of the usual size.
const BURST: u64 = 50;
/// Time after which a missing datagram counts as lost.
const LOST: Duration = Duration::from_millis(100);

impl Pace {
    /// Waits after a burst; `sent` datagrams were sent in total.
    fn wait(self, sent: u64, server: &Endpoint) {
        let began = Instant::now();
        match self {
            Self::After(pause) => thread::sleep(pause),
            Self::Taken => {
                while server.counters().received < sent && began.elapsed() < LOST {
                    thread::sleep(Duration::from_micros(200));
                }
            }
        }
    }
}

/// Counts of a flood.
#[derive(Debug, Default)]
struct Tally {
    datagrams: AtomicU64,
    bytes: AtomicU64,
    answers: AtomicU64,
    answered_bytes: AtomicU64,
}

impl Tally {
    /// Datagrams, bytes, answers, and bytes of answers.
    fn figures(&self) -> [u64; 4] {
        let all = [&self.datagrams, &self.bytes, &self.answers, &self.answered_bytes];
        all.map(|one| one.load(Ordering::Relaxed))
    }
}

/// Memory of this process, bytes. `None` if the system does not report it.
fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(text.split(' ').nth(1)?.parse::<u64>().ok()? * 4096)
}

fn sources() -> Vec<UdpSocket> {
    let address = |n| SocketAddr::from(([127, 1, n, 1 + n], 0));
    let socket = |n| {
        let socket = UdpSocket::bind(address(n)).expect("an address of loopback");
        socket.set_nonblocking(true).expect("it can");
        socket
    };
    (0..SOURCES).map(socket).collect()
}

/// Sends datagrams that `datagram` creates from a running number, from all sources in turn, until
/// `enough`.
fn flood(
    server: &Endpoint,
    pace: Pace,
    tally: &Tally,
    enough: &AtomicBool,
    mut datagram: impl FnMut(u64) -> Vec<u8>,
) {
    let mut sources: Vec<_> = sources().into_iter().map(|socket| (socket, 0, 0)).collect();
    let (mut number, mut answer) = (0, [0; 2048]);
    let (address, before) = (server.locals()[0], server.counters().received);
    while !enough.load(Ordering::Relaxed) {
        for (socket, asked, heard) in &mut sources {
            number += 1;
            let bytes = datagram(number);
            // A datagram that does not fit into the socket's buffer is lost, as elsewhere.
            if socket.send_to(&bytes, address).is_ok() {
                *asked += bytes.len() + BELOW;
                tally.datagrams.fetch_add(1, Ordering::Relaxed);
                tally.bytes.fetch_add((bytes.len() + BELOW) as u64, Ordering::Relaxed);
            }
            while let Ok((size, _)) = socket.recv_from(&mut answer) {
                *heard += size + BELOW;
                assert!(*heard <= 3 * *asked, "{heard} B in answer to {asked} B");
                tally.answers.fetch_add(1, Ordering::Relaxed);
                tally.answered_bytes.fetch_add((size + BELOW) as u64, Ordering::Relaxed);
            }
            if number % BURST == 0 {
                pace.wait(before + tally.figures()[0], server);
            }
        }
    }
}

/// INITs that are all different, and occasionally another packet that belongs to no association.
fn unsealed_initiations(number: u64) -> Vec<u8> {
    let tag = (number as u32).wrapping_mul(0x9e37_79b9) | 1;
    let (tag, chunk) = match number % 16 {
        0 => (tag, Chunk::CookieEcho(Bytes::from(vec![7; 200]))),
        1 => (tag, Chunk::Shutdown(Serial32(3))),
        _ => {
            let addresses = (0..number % 9).map(|n| [10, 1, 2, n as u8].into()).collect();
            let init = Init {
                tag,
                window: 1 << 20,
                outbound_streams: 10,
                inbound_streams: 10,
                initial_tsn: Serial32(tag),
                addresses,
                ..Init::default()
            };
            (0, Chunk::Init(Box::new(init)))
        }
    };
    let mut out = Vec::new();
    let ports = Ports { source: 5001, destination: 9899 };
    encode(&Packet::of(tag, chunk), ports, Checksum::Crc32c, &mut out);
    out
}

/// First datagrams with a valid MAC and an invalid Noise message, with a wrong MAC, and a recorded one.
fn sealed_initiations_of_unlisted_keys(
    server: PublicKey,
    recorded: Vec<u8>,
) -> impl FnMut(u64) -> Vec<u8> {
    let named = [b"ropewalk 1 first", server.as_bytes().as_slice()].concat();
    let key = Key::new(HMAC_SHA256, digest(&SHA256, &named).as_ref());
    move |number| {
        if number % 16 == 1 {
            return recorded.clone();
        }
        let mut datagram = vec![1, 1, 0, 0, 0, 9];
        datagram.extend([0; 24]);
        datagram.extend(number.to_be_bytes().repeat(26));
        let mac = sign(&key, &datagram);
        let right = number % 16 != 0;
        datagram.extend(mac.as_ref()[..16].iter().map(|byte| byte ^ u8::from(!right)));
        datagram
    }
}

/// Clients connect in turn, and each gets a message echoed.
async fn clients(server: &Endpoint, options: &Options, key: Option<PublicKey>) -> Duration {
    let target = Target { addresses: server.locals().to_vec(), key };
    let mut longest = Duration::ZERO;
    for _ in 0..CLIENTS {
        let began = Instant::now();
        let client = Endpoint::open(options.clone()).expect("a free port");
        let near = timeout(PATIENCE, client.connect(&target)).await;
        let near = near.expect("it gets in").expect("it is taken");
        let far = timeout(PATIENCE, server.accept()).await.expect("it is there");
        near.send(0, 0, Bytes::from_static(b"word")).await.expect("it is up");
        let word = timeout(PATIENCE, far.receive()).await.expect("it comes").expect("it is up");
        assert_eq!(word.bytes, &b"word"[..]);
        longest = longest.max(began.elapsed());
        assert!(server.associations() <= 2, "{} associations", server.associations());
        let both = async { tokio::join!(near.shutdown(), far.receive()) };
        let (ended, nothing) = timeout(PATIENCE, both).await.expect("it ends");
        assert_eq!((ended, nothing.is_none()), (Ok(()), true));
    }
    longest
}

/// Clients during a flood; the counts are printed.
async fn clients_during(
    measure: Measure,
    server: Options,
    client: Options,
    key: Option<PublicKey>,
    datagram: impl FnMut(u64) -> Vec<u8> + Send + 'static,
) -> String {
    let server = Arc::new(Endpoint::open(server).expect("a free port"));
    let (tally, enough) = (Arc::new(Tally::default()), Arc::new(AtomicBool::new(false)));
    // Initializes everything that each end needs once.
    clients(&server, &client, key).await;
    let (before, began) = (memory(), Instant::now());
    let (at, own, end) = (server.clone(), tally.clone(), enough.clone());
    let flooder = thread::spawn(move || flood(&at, measure.pace, &own, &end, datagram));
    let begun = async {
        while tally.figures()[0] < 10 * u64::from(SOURCES) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(PATIENCE, begun).await.expect("the flood begins");
    let longest = clients(&server, &client, key).await;
    let more = async {
        while server.associations() > 0 || tally.figures()[0] < measure.datagrams {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, more).await.expect("the flood goes on, and nothing of it stays");
    assert_eq!(server.associations(), 0);
    enough.store(true, Ordering::Relaxed);
    flooder.join().expect("answers were small");
    let grown = before.zip(memory()).map(|(before, after)| after.saturating_sub(before));
    let [datagrams, bytes, answers, answered] = tally.figures();
    assert!(answered <= 3 * bytes && answers <= datagrams);
    assert!(answers > 0, "the flood reached it");
    assert!(grown.is_none_or(|grown| grown < GROWTH_LIMIT), "{grown:?} B more");
    let seconds = began.elapsed().as_secs_f64();
    format!(
        "{datagrams} datagrams ({bytes} B) in {seconds:.1} s, {} came, {answers} answers seen ({answered} B), \
         memory {:?} B more, the slowest of {CLIENTS} clients took {longest:?}",
        server.counters().received,
        grown,
    )
}

async fn in_the_clear(measure: Measure) -> String {
    let loopback = [(Ipv4Addr::LOCALHOST, 0).into()];
    let (server, client) = (Options::listening(&loopback), Options::connecting(&loopback));
    clients_during(measure, server, client, None, unsealed_initiations).await
}

async fn sealed(measure: Measure, anyone: bool) -> String {
    let loopback = [(Ipv4Addr::LOCALHOST, 0).into()];
    let [one, other] = [(); 2].map(|()| SecretKey::generate().expect("random numbers"));
    let key = one.public();
    let sent = Timestamp::from_unix_nanos(1);
    let (_, recorded) = Initiator::new(&other, key, sent, 9, &[1, 1]).expect("a handshake");
    let known = if anyone { Allowed::Anyone } else { Allowed::Keys([other.public()].into()) };
    let server = Options::listening(&loopback).sealed(one, known);
    let client = Options::connecting(&loopback).sealed(other, Allowed::Keys([key].into()));
    let datagram = sealed_initiations_of_unlisted_keys(key, recorded);
    clients_during(measure, server, client, Some(key), datagram).await
}

// 19.
#[tokio::test]
async fn a_flood_of_inits_from_everywhere_leaves_nothing_and_keeps_nobody_out() {
    in_the_clear(SHORT).await;
}

#[tokio::test]
async fn a_flood_of_first_datagrams_from_everywhere_leaves_nothing_and_keeps_nobody_out() {
    for anyone in [false, true] {
        sealed(SHORT, anyone).await;
    }
}

/// The figures of `docs/data/floods.csv`: with `--release -- --ignored --nocapture --test-threads 1`.
#[tokio::test]
#[ignore = "measures, for minutes"]
async fn floods_at_many_rates() {
    for micros in [10_000, 1000, 200] {
        let pause = Duration::from_micros(micros);
        let pace = Pace::After(pause);
        let measure = Measure { datagrams: 1_000_000.min(500_000_000 / micros), pace };
        eprintln!("{BURST} datagrams, then {pause:?}:");
        eprintln!("  in the clear: {}", in_the_clear(measure).await);
        eprintln!("  sealed, listed keys: {}", sealed(measure, false).await);
        eprintln!("  sealed, anyone: {}", sealed(measure, true).await);
    }
}
