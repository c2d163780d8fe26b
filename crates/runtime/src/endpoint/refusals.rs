//! ICMP messages about an INIT that could not be delivered, because the UDP port is closed or the host has no SCTP.
//!
//! ```text
//!   INIT ------------------------>  closed UDP port
//!        <-----  ICMP: destination unreachable, port unreachable
//!                IP | UDP | ports, tag 0 | INIT, initiate tag
//! ```
//!
//! RFC 6951, 4.7: over UDP, an unreachable port means the same as an unreachable protocol, and a message whose tag
//! cannot be verified is discarded. RFC 9260, 10 (ICMP6, ICMP8): in COOKIE-WAIT, a message that quotes an INIT with
//! the initiate tag that was sent is handled like an ABORT. Here the message counts only for the address that it
//! names: the association ends once all addresses have refused.
//!
//! The kernel queues such messages only while this end sets up an association. Otherwise it drops them, so that they
//! cannot disturb an established association. By ICMP8, a message that quotes a packet with the peer's tag would end
//! an established association too; this implementation relies on timers instead.

use std::net::SocketAddr;

use ropewalk_base::Time;
use ropewalk_engine::sctp::wire::Ports;

use super::association_table::PortPair;
use super::state::EndpointState;

#[cfg(target_os = "linux")]
pub use super::error_queue::ErrorQueue;

/// Does nothing: the system does not say which packet an ICMP message quotes.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub struct ErrorQueue(std::convert::Infallible);

#[cfg(not(target_os = "linux"))]
impl ErrorQueue {
    pub fn open(_: &tokio::net::UdpSocket, _: super::Carrier) -> std::io::Result<Self> {
        Err(std::io::ErrorKind::Unsupported.into())
    }

    pub fn close(self, _: &tokio::net::UdpSocket) {}

    pub fn poll(&mut self, _: &mut std::task::Context<'_>) -> std::task::Poll<Vec<Refusal>> {
        match self.0 {}
    }
}

/// An INIT that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its destination.
    pub remote: SocketAddr,
    /// What the message quotes of it.
    pub init: QuotedInit,
}

/// What identifies the association of an INIT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedInit {
    /// The ports that it was sent with.
    pub ports: Ports,
    /// Its initiate tag.
    pub initiate_tag: u32,
}

impl QuotedInit {
    /// The type of an INIT chunk (RFC 9260, 3.2).
    const CHUNK_TYPE: u8 = 1;

    /// Reads a quoted packet, which may be truncated. `None` if it is not an INIT, or too short to contain its
    /// initiate tag.
    pub fn read(quoted: &[u8]) -> Option<Self> {
        let word = |number: usize| {
            let bytes = quoted.get(4 * number..).and_then(<[u8]>::first_chunk);
            bytes.map(|bytes| u32::from_be_bytes(*bytes))
        };
        // Ports, tag, checksum; chunk type, flags and length; initiate tag.
        let (both, tag, chunk, initiate_tag) = (word(0)?, word(1)?, word(3)?, word(4)?);
        let ports = Ports { source: (both >> 16) as u16, destination: both as u16 };
        // RFC 9260, 8.5.1 (A): an INIT has the verification tag 0.
        let is_init = tag == 0 && (chunk >> 24) as u8 == Self::CHUNK_TYPE;
        is_init.then_some(Self { ports, initiate_tag })
    }
}

impl EndpointState {
    /// Enables the kernel's queue of ICMP messages exactly while this end sets up associations.
    pub(super) fn watch_refusals(&mut self) {
        let needed = !self.setting_up.is_empty();
        for socket in &mut self.sockets {
            socket.watch_refusals(needed);
        }
    }

    /// Handles the refusal of an INIT, if the association that sent it still waits for an answer.
    pub(super) fn on_refusal(&mut self, now: Time, refusal: Refusal) {
        let Refusal { remote, init } = refusal;
        let pair = PortPair::of_departure(init.ports);
        let ip = remote.ip().to_canonical();
        let Some(key) = self.associations.by_address(pair, [&ip]) else { return };
        let Some(peer) = self.peer(key) else { return };
        if peer.machine.tags().0 != init.initiate_tag {
            return;
        }
        let routes = &peer.routes;
        let refused = |path: usize| {
            let route = routes.get(path).copied().flatten();
            route.is_some_and(|route| {
                route.remote.ip().to_canonical() == ip && route.remote.port() == remote.port()
            })
        };
        peer.machine.on_init_refused(now, refused);
        self.mark_ready(key);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;
    use ropewalk_engine::sctp::wire::{Checksum, encode};
    use ropewalk_engine::sctp::{Chunk, Init, Packet};

    use super::*;

    fn encoded(tag: u32, chunk: Chunk, ports: Ports) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&Packet::of(tag, chunk), ports, Checksum::Crc32c, &mut bytes);
        bytes
    }

    proptest! {
        /// Routers may quote any length; 8 bytes after the IP header are required (RFC 792).
        #[test]
        fn an_init_is_recognised_as_soon_as_its_initiate_tag_is_quoted(
            initiate_tag in 1..=u32::MAX,
            source in any::<u16>(),
            destination in any::<u16>(),
            quoted in 0_usize..200,
        ) {
            let ports = Ports { source, destination };
            let init = Chunk::Init(Box::new(Init { tag: initiate_tag, ..Init::default() }));
            let bytes = encoded(0, init, ports);
            let quoted = quoted.min(bytes.len());
            let expected = (quoted >= 20).then_some(QuotedInit { ports, initiate_tag });
            prop_assert_eq!(QuotedInit::read(&bytes[..quoted]), expected);
        }

        #[test]
        fn no_other_packet_is_taken_for_an_init(tag in 1..=u32::MAX, cookie in prop::collection::vec(any::<u8>(), 4..40)) {
            let ports = Ports { source: 1, destination: 2 };
            for tag in [0, tag] {
                let echo = Chunk::CookieEcho(Bytes::from(cookie.clone()));
                prop_assert_eq!(QuotedInit::read(&encoded(tag, echo, ports)), None);
            }
            let init = Chunk::Init(Box::new(Init { tag, ..Init::default() }));
            prop_assert_eq!(QuotedInit::read(&encoded(tag, init, ports)), None);
        }

        #[test]
        fn no_bytes_stop_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Some(found) = QuotedInit::read(&bytes) {
                prop_assert_eq!(bytes[4..8].to_vec(), [0; 4]);
                prop_assert_eq!(bytes[16..20].to_vec(), found.initiate_tag.to_be_bytes());
            }
        }
    }
}
