//! Memory that a peer can make the server allocate.

use std::path::Path;
use std::time::Duration;

use ropewalk_engine::sctp::{Chunk, DataFlags};
use ropewalk_runtime::seal::SecretKey;

use crate::client::Client;
use crate::figure::{Bound, Failure, Figure};
use crate::victim::{Server, Setup, loopback};

/// Permitted cost of an association: twice the receive buffer, and 64 KiB, in MB.
const ONE_ASSOCIATION_MB: f64 = (2.0 * (16 << 20) as f64 + 65_536.0) / 1e6;
const MEGABYTE: f64 = 1e6;
/// The largest step ahead that a stream sequence number can take (RFC 1982).
const FAR_SSN: u16 = 32_767;
/// Maximum distance of a gap block of a SACK from the cumulative TSN.
const FAR_TSN: u32 = 65_535;
const PACKET: u32 = 1200;
const PACE: Duration = Duration::from_micros(200);
const ASSOCIATIONS: usize = 1000;
const IDLE: usize = 2000;
const GIB_IN_KIB: u64 = 1 << 20;
/// Messages after a gap, on as many streams as necessary.
const MESSAGES: u32 = 800_000;

fn client(server: &Server, number: usize) -> Result<Client, Failure> {
    let secret = SecretKey::generate()?;
    Client::open(loopback(number + 1), server.address, server.key, &secret)
}

/// Growth in MB. Infinite if the server has ended.
fn growth(before: u64, after: Option<u64>) -> f64 {
    after.map_or(f64::INFINITY, |after| after.saturating_sub(before) as f64 / MEGABYTE)
}

/// One complete one-byte message per stream, with the furthest possible stream sequence number.
pub fn far_ssn(binary: &Path) -> Result<Figure, Failure> {
    let mut server = Server::recv(binary)?;
    let mut client = client(&server, 0)?;
    let before = server.process.memory().ok_or("the server has ended")?;
    let first = client.tsn;
    let chunks: Vec<Chunk> = (0..client.streams)
        .map(|stream| {
            let tsn = first + u32::from(stream);
            Chunk::Data(client.data(tsn, stream, FAR_SSN, DataFlags::WHOLE, b"x"))
        })
        .collect();
    let sent = client.send_chunks(chunks.iter().cloned(), PACKET, PACE)?;
    // Repeats chunks that were dropped because the socket's buffer was full.
    client.send_chunks(chunks.into_iter(), PACKET, PACE)?;
    let grown = growth(before, server.process.memory_settled());
    let bound = Bound::AtMost(ONE_ASSOCIATION_MB);
    Ok(Figure::new("growth of the server", "MB", grown, bound)
        .with("streams", client.streams)
        .with("bytes_sent", sent))
}

/// One fragment far ahead on each of many associations. Returns the number of associations that
/// were established, and the bytes sent.
fn fragments(server: &mut Server) -> Result<(usize, u64), Failure> {
    let (mut clients, mut sent) = (Vec::new(), 0);
    for number in 0..ASSOCIATIONS {
        // A server that refuses further associations limits them, as it should.
        let Ok(mut client) = client(server, number) else { break };
        let tsn = client.tsn.wrapping_sub(1).wrapping_add(FAR_TSN);
        let data = client.data(tsn, 0, 0, DataFlags::BEGIN, b"x");
        sent += client.send_chunks([Chunk::Data(data)].into_iter(), PACKET, PACE)?;
        clients.push(client);
        if server.process.memory().is_none() {
            break;
        }
    }
    Ok((clients.len(), sent))
}

/// Without a memory limit.
pub fn far_tsn(binary: &Path) -> Result<Figure, Failure> {
    let mut server = Server::recv(binary)?;
    drop(client(&server, ASSOCIATIONS)?);
    let before = server.process.memory().ok_or("the server has ended")?;
    let (associations, sent) = fragments(&mut server)?;
    let grown = growth(before, server.process.memory_settled());
    Ok(Figure::new("growth of the server", "MB", grown, Bound::AtMost(100.0))
        .with("associations", associations)
        .with("bytes_sent", sent))
}

/// With 1 GiB of address space: does the server survive?
pub fn far_tsn_limited(binary: &Path) -> Result<Figure, Failure> {
    let words = &["recv", "inbox"];
    let setup = Setup { words, memory: Some(GIB_IN_KIB), ..Setup::default() };
    let mut server = Server::start(binary, &setup)?;
    let (associations, sent) = fragments(&mut server)?;
    let survives = f64::from(u8::from(server.process.memory_settled().is_some()));
    Ok(Figure::new("the server survives", "1 or 0", survives, Bound::AtLeast(1.0))
        .with("associations", associations)
        .with("bytes_sent", sent))
}

/// One-byte messages that must wait for the first message of their stream.
pub fn one_byte(binary: &Path) -> Result<Figure, Failure> {
    let mut server = Server::recv(binary)?;
    let mut client = client(&server, 0)?;
    let before = server.process.memory().ok_or("the server has ended")?;
    let each = u32::from(FAR_SSN) - 1;
    let first = client.tsn;
    let data = |number: u32| {
        let (stream, ssn) = ((number / each) as u16, (number % each + 1) as u16);
        client.data(first + number, stream, ssn, DataFlags::WHOLE, b"x")
    };
    let chunks: Vec<Chunk> = (0..MESSAGES).map(|number| Chunk::Data(data(number))).collect();
    let sent = client.send_chunks(chunks.into_iter(), PACKET, PACE)?;
    let grown = growth(before, server.process.memory_settled());
    let bound = Bound::AtMost(ONE_ASSOCIATION_MB);
    Ok(Figure::new("growth of the server", "MB", grown, bound)
        .with("messages", MESSAGES)
        .with("bytes_sent", sent))
}

/// Idle associations.
pub fn idle(binary: &Path) -> Result<Figure, Failure> {
    let mut server = Server::recv(binary)?;
    drop(client(&server, IDLE)?);
    let before = server.process.memory().ok_or("the server has ended")?;
    let mut clients = Vec::new();
    while clients.len() < IDLE
        && let Ok(client) = client(&server, clients.len())
    {
        clients.push(client);
    }
    let after = server.process.memory_settled().ok_or("the server has ended")?;
    let each = after.saturating_sub(before) as f64 / 1024.0 / clients.len().max(1) as f64;
    Ok(Figure::new("memory of each", "KiB", each, Bound::AtMost(20.0))
        .with("associations", clients.len()))
}
