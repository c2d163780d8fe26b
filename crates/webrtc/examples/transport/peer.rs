//! One peer: its address, as found by ICE, its DTLS, and its data connection.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dimpl::{Dtls, Output};
use ropewalk_webrtc::{Config, Connection, DtlsRole, Secret, Time};

use super::sdp::Offer;
use super::stun::Request;
use super::{Server, hash, random};

/// RFC 7675, 5.1: a peer that has sent nothing for this time is gone. Both its checks and its data count: not all
/// stacks check a path that carries data.
const CONSENT: Duration = Duration::from_secs(30);
/// Maximum size of a record: that of a datagram.
const RECORD: usize = 2048;

/// A peer that has made an offer.
pub struct Peer {
    /// Its number, the count of offers.
    pub number: u64,
    pub(super) ufrag: String,
    pub(super) password: String,
    fingerprint: [u8; 32],
    config: Config,
    address: Option<SocketAddr>,
    last_seen: Instant,
    dtls: Dtls,
    dtls_deadline: Option<Instant>,
    connection: Option<Connection>,
    ended: Option<String>,
    record: Box<[u8; RECORD]>,
    packet: Vec<u8>,
}

/// Random letters for ICE.
fn token<const N: usize>() -> String {
    random::<N>().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Peer {
    pub(super) fn new(server: &Server, number: u64, offer: &Offer, is_active: bool) -> Self {
        let mut dtls =
            Dtls::new_auto(Arc::clone(&server.dtls), server.certificate.clone(), Instant::now());
        dtls.set_active(is_active);
        let config = Config {
            role: if is_active { DtlsRole::Client } else { DtlsRole::Server },
            remote_port: offer.sctp_port,
            peer_max_message_size: offer.max_message_size,
            ..server.config.clone()
        };
        Self {
            number,
            ufrag: token::<4>(),
            password: token::<12>(),
            fingerprint: offer.fingerprint,
            config,
            address: None,
            last_seen: Instant::now(),
            dtls,
            dtls_deadline: None,
            connection: None,
            ended: None,
            record: Box::new([0; RECORD]),
            packet: Vec::new(),
        }
    }

    /// The data connection, once the DTLS handshake is complete.
    pub fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().filter(|_| self.ended.is_none())
    }

    /// The address of the peer's last check.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Why the peer is gone. `None` if it is not.
    pub fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Ends the peer.
    pub fn end(&mut self, why: &str) {
        self.ended.get_or_insert_with(|| why.to_owned());
    }

    /// Time to the next deadline.
    pub(super) fn wait(&self, instant: Instant, now: Time) -> Option<Duration> {
        let dtls = self.dtls_deadline.map(|at| at.saturating_duration_since(instant));
        let due = self.connection.as_ref().and_then(Connection::next_deadline);
        let connection = due.map(|at| Duration::from_nanos(at.since(now.min(at)).as_nanos()));
        dtls.into_iter().chain(connection).min()
    }

    /// Handles an ICE connectivity check, and returns the answer.
    pub(super) fn on_check(&mut self, request: &Request, from: SocketAddr) -> Option<Vec<u8>> {
        if !request.is_authentic(&self.password) {
            return None;
        }
        self.last_seen = Instant::now();
        // RFC 8445, 7.3.1.5: the pair that the peer nominates is used. Until then, the first pair is used.
        if request.nominates || self.address.is_none() {
            self.address = Some(from);
        }
        Some(request.response(from, &self.password))
    }

    pub(super) fn on_time(&mut self, instant: Instant, now: Time) {
        if instant.duration_since(self.last_seen) > CONSENT {
            return self.end("the peer is silent");
        }
        if self.address.is_none() {
            return;
        }
        if let Err(error) = self.dtls.handle_timeout(instant) {
            return self.end(&format!("DTLS: {error}"));
        }
        if let Some(connection) = &mut self.connection {
            connection.handle_timeout(now);
        }
    }

    /// Handles a datagram of DTLS; `send` receives the records to send.
    pub(super) fn on_dtls(&mut self, datagram: &[u8], now: Time, send: impl FnMut(&[u8])) {
        self.last_seen = Instant::now();
        let handled = self
            .dtls
            .handle_timeout(Instant::now())
            .and_then(|()| self.dtls.handle_packet(datagram));
        if let Err(error) = handled {
            return self.end(&format!("DTLS: {error}"));
        }
        self.follow_dtls(now, send);
    }

    /// Handles the output of DTLS; `send` receives the records to send.
    fn follow_dtls(&mut self, now: Time, mut send: impl FnMut(&[u8])) {
        loop {
            match self.dtls.poll_output(&mut self.record[..]) {
                Output::Packet(record) => send(record),
                Output::Timeout(at) => {
                    self.dtls_deadline = Some(at);
                    return;
                }
                // The certificate is identified by its hash in the offer.
                Output::PeerCert(certificate) if hash(certificate) != self.fingerprint => {
                    return self.end("the certificate is not the one that was offered");
                }
                Output::Connected => {
                    let secret = Secret::new(random());
                    self.connection = Some(Connection::new(self.config.clone(), secret, now));
                }
                Output::ApplicationData(packet) => {
                    if let Some(connection) = &mut self.connection {
                        connection.handle_packet(now, packet.to_vec().into());
                    }
                }
                Output::CloseNotify => return self.end("the peer has closed DTLS"),
                _ => {}
            }
        }
    }

    /// Sends pending packets.
    pub(super) fn flush(&mut self, now: Time, mut send: impl FnMut(&[u8])) {
        self.follow_dtls(now, &mut send);
        let mut packet = std::mem::take(&mut self.packet);
        while let Some(connection) = &mut self.connection
            && self.ended.is_none()
            && connection.poll_transmit(now, &mut packet)
        {
            if let Err(error) = self.dtls.send_application_data(&packet) {
                self.end(&format!("DTLS: {error}"));
            }
            self.follow_dtls(now, &mut send);
        }
        self.packet = packet;
    }
}
