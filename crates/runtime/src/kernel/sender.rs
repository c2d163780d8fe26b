//! The sending end of a bulk transfer.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use socket2::Socket;

use super::samples::SocketSamples;
use super::{PIECE, SAMPLE_INTERVAL, has_waited, socket, unix_s};

/// Longest wait for a receiver to listen.
const PATIENCE: Duration = Duration::from_secs(5);
/// Timeout of a write, after which the end of the transfer is checked.
const LOOK: Duration = Duration::from_millis(100);

/// What to send.
#[derive(Clone, Debug)]
pub struct SenderPlan {
    /// The receiver.
    pub to: SocketAddr,
    /// The congestion control of each connection, such as `cubic`.
    pub congestion: Vec<String>,
    /// Multipath TCP instead of TCP.
    pub multipath: bool,
    /// How long to send.
    pub time: Duration,
}

/// Result of the sender.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Sent {
    /// When the first connection was started, seconds since 1970.
    pub began_s: f64,
    /// Ten samples per second, as far as `ss` shows the sockets.
    pub samples: Vec<SocketSamples>,
}

/// Sends as fast as the kernel accepts data, and samples the sockets.
///
/// # Errors
/// A connection cannot be opened, or the kernel lacks a congestion control.
pub fn send(plan: &SenderPlan) -> io::Result<Sent> {
    let over = Arc::new(AtomicBool::new(false));
    let began_s = unix_s();
    let mut writers = Vec::new();
    for congestion in &plan.congestion {
        let socket = connect(plan, congestion)?;
        socket.set_write_timeout(Some(LOOK))?;
        let over = Arc::clone(&over);
        writers.push(thread::spawn(move || write(socket.into(), &over)));
    }
    let end = Instant::now() + plan.time;
    let (mut samples, mut next) = (Vec::new(), Instant::now());
    while Instant::now() < end {
        next += SAMPLE_INTERVAL;
        thread::sleep(next.min(end).saturating_duration_since(Instant::now()));
        samples.extend(SocketSamples::now());
    }
    over.store(true, Ordering::Relaxed);
    for writer in writers {
        let _ = writer.join();
    }
    Ok(Sent { began_s, samples })
}

/// Connects, once the receiver listens.
fn connect(plan: &SenderPlan, congestion: &str) -> io::Result<Socket> {
    let begun = Instant::now();
    loop {
        let socket = socket(plan.to, plan.multipath)?;
        socket.set_tcp_congestion(congestion.as_bytes())?;
        match socket.connect(&plan.to.into()) {
            Ok(()) => return Ok(socket),
            Err(error) if error.kind() != ErrorKind::ConnectionRefused => return Err(error),
            Err(error) if begun.elapsed() > PATIENCE => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
    }
}

fn write(mut connection: TcpStream, over: &AtomicBool) {
    let piece = vec![0; PIECE];
    while !over.load(Ordering::Relaxed) {
        match connection.write(&piece) {
            Ok(_) => {}
            Err(error) if has_waited(&error) => {}
            Err(_) => return,
        }
    }
}
