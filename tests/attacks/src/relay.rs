//! An attacker between a client and a server: delays datagrams, and sees each one before it arrives.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::figure::{Bound, Failure, Figure};
use crate::fragments::{goodput, shares};
use crate::victim::{Server, loopback};

/// One-way delay.
const DELAY: Duration = Duration::from_millis(5);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Called immediately for each datagram to the server, while the relay delays it. The sockets are the client's side
/// of the relay and the attacker's own; the address is the client's.
pub type OnDatagram = dyn FnMut(&[u8], &UdpSocket, SocketAddr) + Send;

/// A relay for one client. Dropping it stops the relay.
pub struct Relay {
    pub address: SocketAddr,
    stopped: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

type Waiting = (Instant, Vec<u8>, SocketAddr);

impl Relay {
    pub fn start(server: SocketAddr, mut on_datagram: Box<OnDatagram>) -> Result<Self, Failure> {
        let client_socket = UdpSocket::bind((loopback(50_000), 0))?;
        let server_socket = UdpSocket::bind((loopback(50_001), 0))?;
        let address = client_socket.local_addr()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let client = Arc::new(std::sync::Mutex::new(None));
        let mut threads = Vec::new();
        // Direction to the server.
        let (waiting, due) = channel();
        let (known, end, near) = (client.clone(), stopped.clone(), client_socket.try_clone()?);
        threads.push(thread::spawn(move || {
            read(&near, &end, |datagram, from| {
                if let Ok(mut known) = known.lock() {
                    *known = Some(from);
                }
                on_datagram(datagram, &near, from);
                queue(&waiting, datagram, server);
            });
        }));
        let (far, end) = (server_socket.try_clone()?, stopped.clone());
        threads.push(thread::spawn(move || release(&due, &far, &end)));
        // Direction to the client.
        let (waiting, due) = channel();
        let end = stopped.clone();
        threads.push(thread::spawn(move || {
            read(&server_socket, &end, |datagram, _| {
                let to = client.lock().ok().and_then(|known| *known);
                to.into_iter().for_each(|to| queue(&waiting, datagram, to));
            });
        }));
        let end = stopped.clone();
        threads.push(thread::spawn(move || release(&due, &client_socket, &end)));
        Ok(Self { address, stopped, threads })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn read(socket: &UdpSocket, stopped: &AtomicBool, mut take: impl FnMut(&[u8], SocketAddr)) {
    let _ = socket.set_read_timeout(Some(POLL_INTERVAL));
    let mut buffer = vec![0; 1 << 16];
    while !stopped.load(Ordering::Relaxed) {
        if let Ok((size, from)) = socket.recv_from(&mut buffer) {
            take(&buffer[..size], from);
        }
    }
}

fn queue(waiting: &Sender<Waiting>, datagram: &[u8], to: SocketAddr) {
    let _ = waiting.send((Instant::now() + DELAY, datagram.to_vec(), to));
}

fn release(due: &Receiver<Waiting>, socket: &UdpSocket, stopped: &AtomicBool) {
    while !stopped.load(Ordering::Relaxed) {
        match due.recv_timeout(POLL_INTERVAL) {
            Ok((at, datagram, to)) => {
                sleep(at.saturating_duration_since(Instant::now()));
                let _ = socket.send_to(&datagram, to);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Remembers the newest items.
pub struct Newest<T>(VecDeque<T>, usize);

impl<T: PartialEq> Newest<T> {
    pub const fn new(most: usize) -> Self {
        Self(VecDeque::new(), most)
    }

    /// Adds an item. Returns false if it was known.
    pub fn take(&mut self, one: T) -> bool {
        if self.0.contains(&one) {
            return false;
        }
        if self.0.len() == self.1 {
            self.0.pop_front();
        }
        self.0.push_back(one);
        true
    }
}

/// Measures the goodput of a client while copies of its datagrams overtake them from another address, as a share of
/// the goodput without the copies.
pub fn early_copies(binary: &Path) -> Result<Figure, Failure> {
    let server = Server::bench(binary)?;
    let address = server.address;
    let without = || {
        let relay = Relay::start(address, Box::new(|_, _, _| {}))?;
        goodput(binary, &server, relay.address)
    };
    let with = || {
        let beside = UdpSocket::bind((loopback(45_000), 0))?;
        let copy = move |datagram: &[u8], _: &UdpSocket, _| {
            let _ = beside.send_to(datagram, address);
        };
        let relay = Relay::start(address, Box::new(copy))?;
        goodput(binary, &server, relay.address)
    };
    let (share, all) = shares(without, with)?;
    let figure = Figure::new("goodput of the client", "share", share, Bound::AtLeast(0.9));
    Ok(figure.with("goodputs_mbps", all))
}
