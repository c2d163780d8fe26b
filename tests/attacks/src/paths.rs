//! Bytes that a server sends to an address that has never answered, per byte received from that address.

use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ropewalk_apps::measure::{CONTROL, Direction, MeasurementPlan};
use ropewalk_engine::sctp::{Chunk, DataFlags, Packet};
use ropewalk_runtime::seal::SecretKey;

use crate::client::{BELOW, Client};
use crate::figure::{Bound, Failure, Figure};
use crate::victim::{Server, loopback};

/// RFC 9000, 8.1: "an endpoint MUST limit the amount of data it sends to the unvalidated address to three times the
/// amount of data received from that address".
const FACTOR: f64 = 3.0;
/// How long to watch the server after the last datagram.
const WATCH: Duration = Duration::from_secs(5);
const DOWNLOAD: Duration = Duration::from_secs(1);
const ATTACK: Duration = Duration::from_secs(8);

/// A socket at an address that never answers. It counts what arrives.
struct Elsewhere {
    socket: UdpSocket,
    bytes: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
    /// Received datagrams that the test has not examined.
    seen: Receiver<Vec<u8>>,
    counter: Option<JoinHandle<()>>,
}

impl Elsewhere {
    fn new() -> Result<Self, Failure> {
        let socket = UdpSocket::bind((loopback(40_000), 0))?;
        let (bytes, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (receiver, total, end) = (socket.try_clone()?, bytes.clone(), over.clone());
        receiver.set_read_timeout(Some(Duration::from_millis(50)))?;
        let (show, seen) = channel();
        let counter = thread::spawn(move || {
            let mut room = vec![0; 1 << 16];
            while !end.load(Ordering::Relaxed) {
                if let Ok((size, _)) = receiver.recv_from(&mut room) {
                    total.fetch_add(size as u64 + BELOW, Ordering::Relaxed);
                    let _ = show.send(room[..size].to_vec());
                }
            }
        });
        Ok(Self { socket, bytes, over, seen, counter: Some(counter) })
    }

    fn figure(mut self, sent: u64) -> Figure {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.counter.take().map(JoinHandle::join);
        let came = self.bytes.load(Ordering::Relaxed);
        let ratio = came as f64 / sent.max(1) as f64;
        Figure::new("bytes there per byte from there", "ratio", ratio, Bound::AtMost(FACTOR))
            .with("bytes_there", came)
            .with("bytes_from_there", sent)
    }
}

fn client(server: &Server) -> Result<Client, Failure> {
    let secret = SecretKey::generate()?;
    Client::open(loopback(1), server.address, server.key, &secret)
}

/// Requests an endless download, and receives it for a while.
fn download(server: &Server) -> Result<Client, Failure> {
    let mut client = client(server)?;
    let plan = MeasurementPlan {
        direction: Direction::Down,
        in_order: false,
        warmup_s: 0.0,
        seconds: 60.0,
    };
    let wish = client.data(client.tsn, CONTROL, 0, DataFlags::WHOLE, &plan.encode());
    client.send(&Packet::of(client.peer_tag, Chunk::Data(wish)))?;
    client.behave(Instant::now() + DOWNLOAD)?;
    if client.received.packets < 100 {
        return Err(format!("{} packets of the download came", client.received.packets).into());
    }
    Ok(client)
}

/// Sends a single datagram on the existing path or on another one, early or late. Returns the worst case.
pub fn one_datagram(binary: &Path) -> Result<Figure, Failure> {
    let server = Server::bench(binary)?;
    let mut figures = Vec::new();
    for (path, before) in [(0, DOWNLOAD), (1, DOWNLOAD), (0, Duration::ZERO), (1, Duration::ZERO)] {
        let mut client = client(&server)?;
        client.behave(Instant::now() + before)?;
        let elsewhere = Elsewhere::new()?;
        let heartbeat = Chunk::Heartbeat(Bytes::from_static(b"here"));
        let packet = Packet::of(client.peer_tag, heartbeat);
        let sent = client.send_from(&elsewhere.socket, path, &packet)?;
        figures.push((client, elsewhere, sent, path, before));
    }
    sleep(WATCH);
    let figures = figures.into_iter().map(|(_client, elsewhere, sent, path, before)| {
        let figure = elsewhere.figure(sent).with("path", path);
        figure.with("seconds_before", before.as_secs())
    });
    let worst = figures.max_by(|one, other| one.value.total_cmp(&other.value));
    worst.ok_or_else(|| "nothing was tried".into())
}

/// Uses the same path from two addresses in turn. One of them does not listen.
pub fn to_and_fro(binary: &Path) -> Result<Figure, Failure> {
    let server = Server::bench(binary)?;
    let mut client = download(&server)?;
    let elsewhere = Elsewhere::new()?;
    let (until, mut sent) = (Instant::now() + ATTACK, 0);
    while Instant::now() < until {
        let sack = client.sack(client.received.cumulative);
        sent += client.send_from(&elsewhere.socket, 0, &sack)?;
        client.behave(Instant::now() + Duration::from_millis(20))?;
        let sack = client.sack(client.received.cumulative);
        client.send(&sack)?;
    }
    Ok(elsewhere.figure(sent))
}

/// Sends one SACK from another address, and nothing else.
pub fn one_sack(binary: &Path) -> Result<Figure, Failure> {
    let server = Server::bench(binary)?;
    let mut client = download(&server)?;
    let elsewhere = Elsewhere::new()?;
    let sack = client.sack(client.received.cumulative);
    let sent = client.send_from(&elsewhere.socket, 0, &sack)?;
    sleep(WATCH);
    Ok(elsewhere.figure(sent))
}

/// Sends SACKs for new data from another address. The attacker guesses the TSN: the highest one seen, plus one for
/// each interval without further data, because that chunk was lost.
pub fn optimistic(binary: &Path) -> Result<Figure, Failure> {
    let server = Server::bench(binary)?;
    let mut client = download(&server)?;
    let elsewhere = Elsewhere::new()?;
    let (began, mut sent, mut guessed) = (Instant::now(), 0, client.received.highest);
    while began.elapsed() < ATTACK {
        let sack = client.sack(guessed);
        sent += client.send_from(&elsewhere.socket, 0, &sack)?;
        sleep(Duration::from_millis(5));
        let before = client.received.highest;
        for mut datagram in elsewhere.seen.try_iter() {
            client.open_datagram(&mut datagram);
        }
        let highest = client.received.highest;
        guessed = if highest == before { guessed.wrapping_add(1) } else { highest };
    }
    Ok(elsewhere.figure(sent))
}
