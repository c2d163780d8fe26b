//! A sender that has nothing to send and stays connected.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;
use ropewalk_apps::files::wire::{Frame, encode, greeting};
use ropewalk_runtime::endpoint::{Endpoint, Options, Target};
use ropewalk_runtime::seal::{Allowed, SecretKey};

use crate::figure::{Bound, Failure, Figure};
use crate::victim::{Process, Server, loopback};

/// Payload protocol identifier of the first message of a file transfer. Later ones have ascending
/// numbers.
const PPID: u32 = 0x5257_4649;
const ALIVE_EVERY: Duration = Duration::from_millis(300);
/// If an honest sender has not got its turn by then, it never will.
const PATIENCE: Duration = Duration::from_secs(45);

/// Sends Alive messages until `enough` is set.
async fn stay(server: SocketAddr, target: Target, enough: Arc<AtomicBool>) -> Result<(), Failure> {
    let key = target.key.ok_or("a key")?;
    let locals: [SocketAddr; 1] = [(loopback(1), 0).into()];
    let options =
        Options::connecting(&locals).sealed(SecretKey::generate()?, Allowed::Keys([key].into()));
    let endpoint = Endpoint::open(options)?;
    let association = endpoint.connect(&target).await?;
    let mut first = greeting().to_vec();
    let mut number = 0;
    while !enough.load(Ordering::Relaxed) {
        encode(&Frame::Alive(0, 0), &mut first);
        let message = Bytes::from(std::mem::take(&mut first));
        let sent = association.send_unordered(0, PPID.wrapping_add(number), message).await;
        if sent.is_err() {
            eprintln!("{server} has ended the association of the one who only says Alive");
            return Ok(());
        }
        number += 1;
        tokio::time::sleep(ALIVE_EVERY).await;
    }
    Ok(())
}

/// Seconds until an honest `send` has finished.
fn honest(binary: &Path, server: &Server) -> Result<f64, Failure> {
    let file = server.folder.path().join("honest");
    std::fs::write(&file, b"a few words")?;
    let (_, key) = server.folder.key("honest.key")?;
    let mut command = Command::new(binary);
    command.arg("send").arg(&file).args(server.reach(server.address)).arg("--key").arg(key);
    let began = Instant::now();
    let mut child = Process(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
    while child.0.try_wait()?.is_none() {
        if began.elapsed() > PATIENCE {
            return Ok(f64::INFINITY);
        }
        sleep(Duration::from_millis(20));
    }
    let there = server.folder.path().join("inbox/honest").is_file();
    Ok(if there { began.elapsed().as_secs_f64() } else { f64::INFINITY })
}

/// How long an honest sender waits for a sender that only sends Alive messages.
pub fn alive(binary: &Path) -> Result<Figure, Failure> {
    let server = Server::recv(binary)?;
    let target = Target { addresses: vec![server.address], key: Some(server.key) };
    let enough = Arc::new(AtomicBool::new(false));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let staying = runtime.spawn(stay(server.address, target, enough.clone()));
    sleep(Duration::from_secs(2));
    let seconds = honest(binary, &server)?;
    enough.store(true, Ordering::Relaxed);
    runtime.block_on(staying)??;
    runtime.shutdown_timeout(Duration::from_secs(1));
    // JSON has no infinity: 60 s means never.
    let shown = if seconds.is_finite() { seconds } else { 60.0 };
    let figure = Figure::new("an honest sender is done after", "s", shown, Bound::AtMost(40.0));
    Ok(figure.with("arrived", seconds.is_finite()))
}
