//! The layers below a data connection, for the examples and the tests: ICE-lite and DTLS on one UDP socket.
//!
//! ```text
//!   UDP datagram --> STUN        answered, and its source is the peer's address
//!                --> DTLS        dimpl: handshake, records
//!                      |
//!                      v application data
//!                  Connection    of this crate
//! ```
//!
//! It serves only the machine that it runs on. A server on the Internet needs limits on peers and on their
//! handshakes.

#![expect(clippy::disallowed_methods, reason = "real sockets need a clock")]

pub mod http;
mod peer;
mod sdp;
mod stun;

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dimpl::{DtlsCertificate, crypto::rust_crypto};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256};
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ropewalk_webrtc::{Config, Time};

pub use self::peer::Peer;
use self::sdp::{Answer, Offer};

/// Maximum size of a datagram.
const DATAGRAM: usize = 2048;
/// Datagrams that are read before packets are sent.
const BATCH: usize = 64;
/// Maximum wait for a datagram, so that new offers are handled.
const LONGEST_WAIT: Duration = Duration::from_millis(20);

/// One UDP socket, and the peers that have made an offer.
pub struct Server {
    socket: UdpSocket,
    address: SocketAddr,
    certificate: DtlsCertificate,
    dtls: Arc<dimpl::Config>,
    started: Instant,
    peers: Vec<Peer>,
    /// Number of offers so far.
    offers: u64,
    /// Settings of the connections, except for the role and the values from offers.
    pub config: Config,
    /// Whether this end is the DTLS client where the offer leaves the choice.
    pub is_active: bool,
}

/// Random bytes of the operating system.
pub fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    SystemRandom::new().fill(&mut bytes).expect("the system has random numbers");
    bytes
}

fn hash(certificate: &[u8]) -> [u8; 32] {
    digest(&SHA256, certificate).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// A self-signed certificate: peers identify it by its hash.
fn new_certificate() -> Result<DtlsCertificate, rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut parameters = CertificateParams::new(Vec::new())?;
    parameters.serial_number = Some(random::<16>().to_vec().into());
    let certificate = parameters.self_signed(&key)?.der().to_vec();
    Ok(DtlsCertificate { certificate, private_key: key.serialize_der() })
}

impl Server {
    /// Binds the socket.
    ///
    /// # Errors
    /// If the address cannot be bound, or no certificate can be made.
    pub fn bind(address: SocketAddr, config: Config) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let dtls = dimpl::Config::builder()
            .with_crypto_provider(rust_crypto::default_provider())
            .build()
            .map_err(io::Error::other)?;
        Ok(Self {
            address: socket.local_addr()?,
            socket,
            certificate: new_certificate().map_err(io::Error::other)?,
            dtls: Arc::new(dtls),
            started: Instant::now(),
            peers: Vec::new(),
            offers: 0,
            config,
            is_active: false,
        })
    }

    /// Time since the start, the clock of all connections.
    pub fn now(&self) -> Time {
        Time::from_nanos(self.started.elapsed().as_nanos() as u64)
    }

    /// Accepts a peer's offer, and returns the answer and the peer's number.
    ///
    /// # Errors
    /// If the offer is incomplete.
    pub fn accept(&mut self, offer: &str) -> Result<(String, u64), String> {
        let offer = Offer::read(offer)?;
        self.offers += 1;
        let is_active = self.is_active || offer.is_passive;
        let peer = Peer::new(self, self.offers, &offer, is_active);
        let answer = Answer {
            mid: &offer.mid,
            ufrag: &peer.ufrag,
            password: &peer.password,
            fingerprint: hash(&self.certificate.certificate),
            is_active,
            address: self.address,
            max_message_size: self.config.max_message_size,
        };
        let answer = (answer.write(), peer.number);
        self.peers.push(peer);
        Ok(answer)
    }

    /// The peers. Those that have ended are removed by the next [`Self::receive`].
    pub fn peers(&mut self) -> &mut [Peer] {
        &mut self.peers
    }

    /// Waits for datagrams, at most until the next deadline and 20 ms, and passes them to the peers.
    ///
    /// # Errors
    /// If the socket fails.
    pub fn receive(&mut self) -> io::Result<()> {
        self.peers.retain(|peer| !peer.has_ended());
        let instant = Instant::now();
        let wait = self.peers.iter().filter_map(|peer| peer.wait(instant, self.now())).min();
        let wait = wait.unwrap_or(LONGEST_WAIT).clamp(Duration::from_micros(50), LONGEST_WAIT);
        self.socket.set_read_timeout(Some(wait))?;
        self.socket.set_nonblocking(false)?;
        let mut buffer = [0; DATAGRAM];
        for count in 0..BATCH {
            match self.socket.recv_from(&mut buffer) {
                Ok((length, from)) => self.take(&buffer[..length], from),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                // A peer that is gone: the kernel reports the refusal of an earlier datagram.
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => {}
                Err(e) => return Err(e),
            }
            if count == 0 {
                self.socket.set_nonblocking(true)?;
            }
        }
        let (instant, now) = (Instant::now(), self.now());
        self.peers.iter_mut().for_each(|peer| peer.on_time(instant, now));
        Ok(())
    }

    fn take(&mut self, datagram: &[u8], from: SocketAddr) {
        let now = self.now();
        if stun::is_stun(datagram) {
            let Some(request) = stun::Request::read(datagram) else { return };
            let asked = self.peers.iter_mut().find(|peer| peer.ufrag == request.ufrag);
            if let Some(peer) = asked
                && let Some(response) = peer.on_check(&request, from)
            {
                let _ = self.socket.send_to(&response, from);
            }
        } else if let Some(peer) = self.peers.iter_mut().find(|peer| peer.address() == Some(from)) {
            peer.on_dtls(datagram, now, |record| drop(self.socket.send_to(record, from)));
        }
    }

    /// Sends the pending packets of all peers.
    pub fn flush(&mut self) {
        let now = self.now();
        for peer in &mut self.peers {
            let Some(address) = peer.address() else { continue };
            // The network may lose datagrams, and so may the socket.
            peer.flush(now, |datagram| drop(self.socket.send_to(datagram, address)));
        }
    }
}
