//! Somebody between a client and a server: carries datagrams with a delay, and sees each before it arrives.

use std::collections::VecDeque;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use crate::figure::Failure;
use crate::victim::loopback;

/// One way.
const DELAY: Duration = Duration::from_millis(5);
const LOOK: Duration = Duration::from_millis(20);

/// What is done with a datagram to the server at once, while it waits: the sockets are the client's side of the relay
/// and somebody else's; the address is the client's.
pub type Early = dyn FnMut(&[u8], &UdpSocket, SocketAddr) + Send;

/// A relay for one client; it ends when this is dropped.
pub struct Relay {
    pub address: SocketAddr,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

type Waiting = (Instant, Vec<u8>, SocketAddr);

impl Relay {
    pub fn start(server: SocketAddr, mut early: Box<Early>) -> Result<Self, Failure> {
        let inside = UdpSocket::bind((loopback(50_000), 0))?;
        let outside = UdpSocket::bind((loopback(50_001), 0))?;
        let address = inside.local_addr()?;
        let over = Arc::new(AtomicBool::new(false));
        let client = Arc::new(std::sync::Mutex::new(None));
        let mut threads = Vec::new();
        // To the server.
        let (waiting, due) = channel();
        let (known, end, near) = (client.clone(), over.clone(), inside.try_clone()?);
        threads.push(thread::spawn(move || {
            read(&near, &end, |datagram, from| {
                if let Ok(mut known) = known.lock() {
                    *known = Some(from);
                }
                early(datagram, &near, from);
                queue(&waiting, datagram, server);
            });
        }));
        let (far, end) = (outside.try_clone()?, over.clone());
        threads.push(thread::spawn(move || release(&due, &far, &end)));
        // And back.
        let (waiting, due) = channel();
        let end = over.clone();
        threads.push(thread::spawn(move || {
            read(&outside, &end, |datagram, _| {
                let to = client.lock().ok().and_then(|known| *known);
                to.into_iter().for_each(|to| queue(&waiting, datagram, to));
            });
        }));
        let end = over.clone();
        threads.push(thread::spawn(move || release(&due, &inside, &end)));
        Ok(Self { address, over, threads })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn read(socket: &UdpSocket, over: &AtomicBool, mut take: impl FnMut(&[u8], SocketAddr)) {
    let _ = socket.set_read_timeout(Some(LOOK));
    let mut room = vec![0; 1 << 16];
    while !over.load(Ordering::Relaxed) {
        if let Ok((size, from)) = socket.recv_from(&mut room) {
            take(&room[..size], from);
        }
    }
}

fn queue(waiting: &Sender<Waiting>, datagram: &[u8], to: SocketAddr) {
    let _ = waiting.send((Instant::now() + DELAY, datagram.to_vec(), to));
}

fn release(due: &Receiver<Waiting>, socket: &UdpSocket, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        match due.recv_timeout(LOOK) {
            Ok((at, datagram, to)) => {
                sleep(at.saturating_duration_since(Instant::now()));
                let _ = socket.send_to(&datagram, to);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Remembers the newest of something.
pub struct Newest<T>(VecDeque<T>, usize);

impl<T: PartialEq> Newest<T> {
    pub const fn new(most: usize) -> Self {
        Self(VecDeque::new(), most)
    }

    /// Whether it is new.
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
