//! Bulk transfers over the kernel's own TCP and Multipath TCP, for comparison: a sender that never stops, a receiver
//! that reads as fast as it can, and samples of the sockets' state.

#![allow(
    clippy::disallowed_methods,
    reason = "the kernel's transports run in real time, and both ends name times by the clock of the machine"
)]

mod receiver;
mod samples;
mod sender;

pub use receiver::{ArrivalSample, Received, ReceiverPlan, receive};
pub use samples::{SocketSample, SocketSamples, parse_sockets};
pub use sender::{SenderPlan, Sent, send};

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use socket2::{Domain, Protocol, Socket, Type};

/// Interval of samples.
pub const SAMPLE_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes per read or write.
const PIECE: usize = 1 << 18;

/// A socket of TCP or Multipath TCP.
fn socket(address: SocketAddr, multipath: bool) -> io::Result<Socket> {
    let protocol = if multipath { Protocol::MPTCP } else { Protocol::TCP };
    Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol))
}

/// Whether a read or a write timed out, and must be repeated.
fn has_waited(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// Seconds since 1970, comparable because both ends run on the same machine.
fn unix_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// Whether this kernel has Multipath TCP.
pub fn has_mptcp() -> bool {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let enabled = std::fs::read_to_string("/proc/sys/net/mptcp/enabled");
    enabled.is_ok_and(|text| text.trim() == "1") && socket(any, true).is_ok()
}

/// The congestion controls that this kernel can use now.
pub fn congestion_controls() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    text.unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

/// The release of the kernel, such as `6.18.44`.
pub fn release() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn a_transfer_over_loopback_arrives_and_its_socket_is_sampled() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        let time = Duration::from_millis(600);
        let plan = ReceiverPlan { address, flows: 2, buffer: Some(65_536), multipath: false, time };
        let receiver = thread::spawn(move || receive(&plan));
        let plan = SenderPlan {
            to: address,
            congestion: vec!["reno".to_owned(), "reno".to_owned()],
            multipath: false,
            time,
        };
        let sent = send(&plan).expect("it connects");
        let received = receiver.join().expect("no panic").expect("it listens");
        let last = received.samples.last().expect("a sample");
        assert!(last.bytes.len() == 2 && last.bytes.iter().all(|bytes| *bytes > 0), "{last:?}");
        assert!(received.samples.is_sorted_by_key(|sample| sample.bytes[0]));
        // Without `ss`, which is part of iproute2, there are no samples.
        let Some(samples) = sent.samples.last() else { return };
        let own: Vec<_> =
            samples.sockets.iter().filter(|socket| socket.remote == address).collect();
        assert!(own.iter().all(|socket| socket.srtt_s.is_some() && socket.cwnd > 0), "{own:?}");
        // The last sample may be later than the end of the connections.
        let mut others = received.sockets.iter().flat_map(|sample| &sample.sockets);
        let other = others.find(|socket| socket.local == address);
        // The kernel reserves twice SO_RCVBUF (socket(7)).
        assert_eq!(other.map(|socket| socket.receive_buffer), Some(131_072));
    }
}
