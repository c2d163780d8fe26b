//! Work that a peer can cause at the server: repeated fragments of a chunk that is never complete.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ropewalk_engine::Payload;
use ropewalk_engine::sctp::{Chunk, DataFlags, DataFragment, ExtensionChunk, Packet};
use ropewalk_runtime::seal::SecretKey;
use serde_json::Value;

use crate::client::Client;
use crate::figure::{Bound, Failure, Figure};
use crate::victim::{Server, loopback};

/// Fragments that the server holds first: the limit of 256 KiB allows this many at 65 bytes each.
const FRAGMENTS: u16 = 3900;
/// Claimed length of the chunk's user data.
const CLAIMED_LENGTH: u16 = 60_000;
/// Size of a datagram of repeated fragments, bytes, and the interval between datagrams: 300 kB/s.
const DATAGRAM: u32 = 60_000;
const PERIOD: Duration = Duration::from_millis(200);
/// Pairs of measurements, without and with the attack.
const MEASUREMENT_PAIRS: usize = 3;
/// Longer than a measurement takes even during a successful attack.
const MEASUREMENT_TIMEOUT: Duration = Duration::from_secs(25);
const PACKET: u32 = 1200;
const SEND_INTERVAL: Duration = Duration::from_millis(1);

/// Goodput of a command-line client of the server, bit/s. 0 if it has not finished in time.
pub fn goodput(binary: &Path, server: &Server, through: SocketAddr) -> Result<f64, Failure> {
    let (_, key) = server.folder.key(&format!("client-{}.key", unused_number()))?;
    let mut command = Command::new(binary);
    command.args(["bench", "run", "--time", "3 s", "--warmup", "500 ms", "--json"]);
    command.args(server.reach(through)).arg("--key").arg(key);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let until = Instant::now() + MEASUREMENT_TIMEOUT;
    while child.try_wait()?.is_none() {
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            return Ok(0.0);
        }
        sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output()?;
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    Ok(document["goodput_bps"].as_f64().unwrap_or(0.0))
}

/// A number that is not yet part of a file name.
fn unused_number() -> u64 {
    use std::sync::atomic::AtomicU64;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Share of the goodput that remains during an attack, measured in pairs. Returns the median, and
/// all goodputs.
pub fn shares(
    mut without: impl FnMut() -> Result<f64, Failure>,
    mut with: impl FnMut() -> Result<f64, Failure>,
) -> Result<(f64, Vec<f64>), Failure> {
    let (mut shares, mut all) = (Vec::new(), Vec::new());
    for _ in 0..MEASUREMENT_PAIRS {
        let pair = [without()?, with()?];
        if pair[0] <= 0.0 {
            return Err("nothing was measured without the attack".into());
        }
        shares.push(pair[1] / pair[0]);
        all.extend(pair.map(|bps| (bps / 1e5).round() / 10.0));
    }
    shares.sort_by(f64::total_cmp);
    Ok((shares[MEASUREMENT_PAIRS / 2], all))
}

fn fragment(client: &Client, offset: u16) -> Chunk {
    let part = client.data(client.tsn, 0, 0, DataFlags::WHOLE, b"");
    let part =
        ropewalk_engine::sctp::Data { payload: Payload::from(Bytes::from_static(b"x")), ..part };
    Chunk::Extension(Box::new(ExtensionChunk::DataFragment(DataFragment {
        part,
        offset,
        total: CLAIMED_LENGTH,
    })))
}

/// Sends the repeated fragments until `stop` is set.
fn flood(mut client: Client, stop: &AtomicBool) -> Result<(), Failure> {
    let all: Vec<Chunk> = (0..FRAGMENTS).map(|offset| fragment(&client, offset)).collect();
    client.send_chunks(all.into_iter(), PACKET, SEND_INTERVAL)?;
    let mut packet = Packet::default();
    packet.begin(client.peer_tag);
    while packet.wire_len() < DATAGRAM {
        packet.chunks.push(fragment(&client, 0));
    }
    while !stop.load(Ordering::Relaxed) {
        client.send(&packet)?;
        sleep(PERIOD);
    }
    Ok(())
}

/// The goodput of another client during the attack, as a share of the goodput without the attack.
pub fn repeated(binary: &Path) -> Result<Figure, Failure> {
    // Each measurement uses a new server: the work of a flood lasts longer than the flood.
    let with = || {
        let server = Server::bench(binary)?;
        let secret = SecretKey::generate()?;
        let client = Client::open(loopback(1), server.address, server.key, &secret)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stop_flood = stop.clone();
        let flooder = thread::spawn(move || flood(client, &stop_flood));
        sleep(Duration::from_secs(1));
        let found = goodput(binary, &server, server.address);
        stop.store(true, Ordering::Relaxed);
        flooder.join().map_err(|_| "the flood panicked")??;
        found
    };
    let without = || {
        let server = Server::bench(binary)?;
        goodput(binary, &server, server.address)
    };
    let (share, all) = shares(without, with)?;
    let figure = Figure::new("goodput of another client", "share", share, Bound::AtLeast(0.9));
    Ok(figure.with("goodputs_mbps", all))
}
