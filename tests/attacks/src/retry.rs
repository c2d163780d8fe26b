//! The attacker answers each first datagram of a client with a forged Retry, which arrives before
//! the genuine answer.

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use ropewalk_runtime::seal::{PublicKey, is_first};

use crate::figure::{Bound, Failure, Figure};
use crate::relay::{Newest, Relay};
use crate::victim::Server;

/// Kind of a Retry, version, session, token, MAC: `docs/reference/sealing.md`.
const RETRY: [u8; 2] = [3, 1];
const TOKEN: usize = 24;
const MAC: usize = 16;
/// Maximum number of forged Retries per attempt: the attacker wants to do harm without flooding.
const REMEMBERED: usize = 1000;

/// A Retry that any observer of the first datagram can forge with the server's public key. Each has
/// another token, so the client's next datagram differs and has another MAC.
fn forge(server: &PublicKey, first: &[u8], token: u8) -> Option<Vec<u8>> {
    let named = [b"ropewalk 1 first", server.as_bytes().as_slice()].concat();
    let key = Key::new(HMAC_SHA256, digest(&SHA256, &named).as_ref());
    let (_, first_mac) = first.split_at_checked(first.len().checked_sub(MAC)?)?;
    let mut retry = [&RETRY, first.get(2..6)?, &[token; TOKEN]].concat();
    let mac = sign(&key, &[first_mac, &retry].concat());
    retry.extend(&mac.as_ref()[..MAC]);
    Some(retry)
}

/// Duration of a short measurement through the relay, s.
fn seconds(
    binary: &Path,
    server: &Server,
    through: SocketAddr,
    name: &str,
) -> Result<f64, Failure> {
    let (_, key) = server.folder.key(name)?;
    let began = Instant::now();
    let mut command = Command::new(binary);
    command.args(["bench", "run", "--time", "200 ms", "--warmup", "0 s"]);
    command.args(server.reach(through)).arg("--key").arg(key);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
    Ok(if status.success() { began.elapsed().as_secs_f64() } else { f64::INFINITY })
}

/// Additional time that a client needs to connect during the attack.
pub fn forged(binary: &Path) -> Result<Figure, Failure> {
    let server = Server::bench(binary)?;
    let quiet = Relay::start(server.address, Box::new(|_, _, _| {}))?;
    let usual = seconds(binary, &server, quiet.address, "usual.key")?;
    drop(quiet);
    let (key, mut seen, mut token) = (server.key, Newest::new(REMEMBERED), 0_u8);
    let answer = move |datagram: &[u8], inside: &UdpSocket, client: SocketAddr| {
        if is_first(datagram)
            && seen.take(datagram.to_vec())
            && let Some(retry) = forge(&key, datagram, token)
        {
            token = token.wrapping_add(1);
            let _ = inside.send_to(&retry, client);
        }
    };
    let relay = Relay::start(server.address, Box::new(answer))?;
    let attacked = seconds(binary, &server, relay.address, "attacked.key")?;
    // JSON has no infinity: 60 s means never.
    let later = (attacked.min(60.0) - usual).max(0.0);
    Ok(Figure::new("later connected by", "s", later, Bound::AtMost(2.0))
        .with("seconds_usual", usual)
        .with("connected", attacked.is_finite()))
}
