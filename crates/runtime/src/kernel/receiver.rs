//! The receiving end of a bulk transfer.

use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::socket::setsockopt;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce};
use serde::{Deserialize, Serialize};

use super::samples::SocketSamples;
use super::{PIECE, SAMPLE_INTERVAL, has_waited, socket, unix_s};

/// Longest wait for the sender's connections.
const PATIENCE: Duration = Duration::from_secs(20);
/// Timeout of a read, after which the end of the transfer is checked.
const LOOK: Duration = Duration::from_millis(100);

/// What to receive.
#[derive(Clone, Debug)]
pub struct ReceiverPlan {
    /// Address to listen on.
    pub address: SocketAddr,
    /// Number of connections.
    pub flows: usize,
    /// SO_RCVBUF of each connection, bytes. `None` lets the kernel tune it. The kernel reserves twice this size, for
    /// its own overhead (socket(7)).
    pub buffer: Option<usize>,
    /// Multipath TCP instead of TCP.
    pub multipath: bool,
    /// How long to receive, starting with the first connection.
    pub time: Duration,
}

/// Bytes read so far.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ArrivalSample {
    /// When, seconds since 1970.
    pub at_s: f64,
    /// Bytes of each connection.
    pub bytes: Vec<u64>,
}

/// Result of the receiver.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct Received {
    /// Ten samples per second.
    pub samples: Vec<ArrivalSample>,
    /// The state of the sockets at the same times, as far as `ss` shows them.
    pub sockets: Vec<SocketSamples>,
}

/// Receives, and samples the arriving bytes.
///
/// # Errors
/// The socket cannot be opened, or not all connections arrive.
pub fn receive(plan: &ReceiverPlan) -> io::Result<Received> {
    let listener = socket(plan.address, plan.multipath)?;
    listener.set_reuse_address(true)?;
    if let Some(bytes) = plan.buffer {
        // Only root may exceed net.core.rmem_max.
        setsockopt(&listener, RcvBufForce, &bytes)
            .or_else(|_| setsockopt(&listener, RcvBuf, &bytes))?;
    }
    listener.bind(&plan.address.into())?;
    listener.listen(plan.flows.max(1) as i32)?;
    listener.set_nonblocking(true)?;
    let counters: Vec<Arc<AtomicU64>> = (0..plan.flows).map(|_| Arc::default()).collect();
    let over = Arc::new(AtomicBool::new(false));
    let mut readers = Vec::new();
    let begun = Instant::now();
    for counter in &counters {
        let connection = loop {
            match listener.accept() {
                Ok((connection, _)) => break connection,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if begun.elapsed() > PATIENCE {
                return Err(ErrorKind::TimedOut.into());
            }
            thread::sleep(Duration::from_millis(2));
        };
        connection.set_nonblocking(false)?;
        connection.set_read_timeout(Some(LOOK))?;
        let (counter, over) = (Arc::clone(counter), Arc::clone(&over));
        readers.push(thread::spawn(move || read(connection.into(), &counter, &over)));
    }
    let (mut samples, mut sockets) = (Vec::new(), Vec::new());
    let (end, mut next) = (Instant::now() + plan.time, Instant::now());
    while Instant::now() < end {
        next += SAMPLE_INTERVAL;
        thread::sleep(next.min(end).saturating_duration_since(Instant::now()));
        let bytes = counters.iter().map(|counter| counter.load(Ordering::Relaxed)).collect();
        samples.push(ArrivalSample { at_s: unix_s(), bytes });
        sockets.extend(SocketSamples::now());
    }
    over.store(true, Ordering::Relaxed);
    for reader in readers {
        let _ = reader.join();
    }
    Ok(Received { samples, sockets })
}

fn read(mut connection: TcpStream, counter: &AtomicU64, over: &AtomicBool) {
    let mut piece = vec![0; PIECE];
    while !over.load(Ordering::Relaxed) {
        match connection.read(&mut piece) {
            Ok(0) => return,
            Ok(bytes) => {
                counter.fetch_add(bytes as u64, Ordering::Relaxed);
            }
            Err(error) if has_waited(&error) => {}
            Err(_) => return,
        }
    }
}
