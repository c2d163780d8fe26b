//! Ends of associations over a network that loses packets.

use std::net::{SocketAddr, UdpSocket};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ropewalk_interop::or_skip;

use crate::support::{Ended, Running, await_udp_port, free_udp_ports, installed, preloaded};

/// Type of a SHUTDOWN COMPLETE chunk.
const SHUTDOWN_COMPLETE: u8 = 14;

/// A relay of UDP between one client and a server.
struct Relay {
    port: u16,
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Relay {
    /// Loses packets by the type of their first chunk, as `loses` decides for each direction.
    fn new<L: FnMut(u8) -> bool + Send + 'static>(server: u16, loses: [L; 2]) -> Self {
        let bind = || {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
            socket.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
            Arc::new(socket)
        };
        let (near, far, ended) = (bind(), bind(), Arc::new(AtomicBool::new(false)));
        let port = near.local_addr().expect("bound").port();
        let server = SocketAddr::from(([127, 0, 0, 1], server));
        let client = Arc::new(Mutex::new(server));
        let sockets = [(near.clone(), far.clone()), (far, near)];
        let directions = sockets.into_iter().zip(loses).zip([true, false]);
        let threads = directions.map(|(((from, to), mut loses), is_client)| {
            let (ended, client) = (ended.clone(), client.clone());
            thread::spawn(move || {
                let mut packet = [0; 1 << 16];
                while !ended.load(Ordering::Relaxed) {
                    let Ok((length, source)) = from.recv_from(&mut packet) else { continue };
                    let target = if is_client { server } else { *client.lock().expect("held") };
                    if is_client {
                        *client.lock().expect("held") = source;
                    }
                    if !loses(packet[12]) {
                        let _ = to.send_to(&packet[..length], target);
                    }
                }
            })
        });
        let threads = threads.collect();
        Self { port, ended, threads }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.threads.drain(..).for_each(|thread| thread.join().expect("no panic"));
    }
}

/// Reads until the end of the stream, and prints the time between the last bytes and the end.
const SERVER: &str = "
import socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
s.bind(('127.0.0.1', 5000))
s.listen()
peer, _ = s.accept()
total = 0
while got := peer.recv(65536):
    total += len(got)
    last = time.monotonic()
print(total, time.monotonic() - last)
";

const CLIENT: &str = "
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
s.connect(('127.0.0.1', 5000))
for _ in range(10):
    s.sendall(bytes(10000))
";

/// Sends 100 kB from one program to another through a relay. Returns how both ended.
fn transfer<L: FnMut(u8) -> bool + Send + 'static>(loses: [L; 2]) -> [Ended; 2] {
    let [port, _] = free_udp_ports();
    let relay = Relay::new(port, loses);
    let server = Running::start(preloaded("python3", port, port).args(["-c", SERVER]));
    await_udp_port(port);
    let client = Running::start(preloaded("python3", port, relay.port).args(["-c", CLIENT]));
    [client.end(), server.end()]
}

/// Seconds between the last bytes and the end of the stream at the server.
fn delay_s(ended: &[Ended; 2]) -> f64 {
    for one in ended {
        assert!(one.status.success() && one.stderr.is_empty(), "{ended:?}");
    }
    let (total, delay) = ended[1].stdout.trim().split_once(' ').expect("two numbers");
    assert_eq!(total, "100000", "{ended:?}");
    delay.parse().expect("a number")
}

#[test]
fn the_end_of_stream_needs_no_shutdown_complete() {
    or_skip!(installed("python3", "python3"));
    let begun = Instant::now();
    let ended = transfer([|chunk| chunk == SHUTDOWN_COMPLETE; 2]);
    // Without the SHUTDOWN COMPLETE, the association would end only at the retransmission limit,
    // after minutes.
    assert!(delay_s(&ended) < 5.0, "{ended:?}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{ended:?}");
}

#[test]
fn programs_end_when_a_fifth_of_all_packets_is_lost() {
    or_skip!(installed("python3", "python3"));
    let transfers = (1..=12_u64).map(|seed| {
        thread::spawn(move || {
            let lost = |mut state: u64| {
                move |_| {
                    // xorshift64 (Marsaglia, 2003).
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 32).is_multiple_of(5)
                }
            };
            transfer([lost(seed << 32 | 1), lost(seed << 32 | 7)])
        })
    });
    let transfers: Vec<_> = transfers.collect();
    for transfer in transfers {
        delay_s(&transfer.join().expect("both programs end"));
    }
}

/// Reads the end of stream from a peer that never confirms the SHUTDOWN ACK, then waits for the error of the socket.
const SILENCED_SERVER: &str = "
import socket, struct, time
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
s.bind(('127.0.0.1', 5000))
s.listen()
peer, _ = s.accept()
SCTP_RTOINFO, SCTP_ASSOCINFO = 0, 1
peer.setsockopt(132, SCTP_RTOINFO, struct.pack('=iIII', 0, 100, 100, 100))
peer.setsockopt(132, SCTP_ASSOCINFO, struct.pack('=iHHIII', 0, 2, 0, 0, 0, 0))
while peer.recv(65536):
    pass
error = lambda: peer.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
ends = [len(peer.recv(100)), error()]
begun = time.monotonic()
while not (first := error()) and time.monotonic() < begun + 30:
    # The error stays until SO_ERROR reads it.
    ends.append(len(peer.recv(100)))
    time.sleep(0.01)
print(set(ends), first, error(), len(peer.recv(100)))
";

/// Shuts down, and stays until the server has ended.
const SHUTTING_CLIENT: &str = "
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)
s.connect(('127.0.0.1', 5000))
s.sendall(bytes(10000))
s.shutdown(socket.SHUT_WR)
sys.stdin.read()
";

#[test]
fn silence_after_the_peers_shutdown_is_an_end_of_stream_and_an_error_of_the_socket() {
    or_skip!(installed("python3", "python3"));
    let [port, _] = free_udp_ports();
    let relay = Relay::new(port, [|chunk| chunk == SHUTDOWN_COMPLETE; 2]);
    let server = Running::start(preloaded("python3", port, port).args(["-c", SILENCED_SERVER]));
    await_udp_port(port);
    let mut client = preloaded("python3", port, relay.port);
    let client = client.args(["-c", SHUTTING_CLIENT]).stdin(Stdio::piped());
    let mut client = Running::start(client);
    let ended = server.end();
    drop(client.child().stdin.take());
    let expected = format!("{{0}} {} 0 0\n", libc::ETIMEDOUT);
    assert_eq!(ended.good(), expected);
}
