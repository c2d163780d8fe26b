//! Probes: sealed datagrams that measure a path independently of the association.
//!
//! Congestion control, retransmission and scheduling would hide what a measurement needs: when each datagram left,
//! when it arrived, and whether it was lost. A probe therefore carries no SCTP packet. It uses the session and the
//! path of the association, so that it is encrypted, authenticated and protected from replay like any other
//! datagram, and only a validated address receives probes.
//!
//! ```text
//! inside the seal:  0 (2)  0 (2)  train (4)  number (4)  sent, ns of the sender's clock (8)  zeros
//! ```
//!
//! RFC 9260, 3.1: "The port number 0 MUST NOT be used." An SCTP packet begins with its source port, so a peer that
//! does not know probes discards them.
//!
//! Received probes are dropped unless the application has called [`Association::enable_probes`].

use ropewalk_base::{PathId, Time};

use super::association::Association;
use super::batch::{Batch, Fit};
use super::encapsulation::Encapsulation;
use super::path_validation::lower_headers;
use super::peer::Peer;
use super::send_errors::is_too_long;
use super::state::EndpointState;
use crate::clock::Clock;
use crate::seal::OVERHEAD;

/// Maximum number of received probes that wait for the application; further ones are dropped and appear lost.
/// At 100 000 per second, the application has about half a second to take them.
const WAITING_LIMIT: usize = 1 << 16;
/// Bytes of a probe before its padding.
const HEADER: usize = 20;
/// Maximum number of bytes in one system call.
const CALL_LIMIT: usize = 60_000;

/// A received probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedProbe {
    /// The path, as the sender numbers it.
    pub path: usize,
    /// The train it belongs to, as the sender numbers it.
    pub train: u32,
    /// Its number in the train.
    pub number: u32,
    /// When it was sent, by the sender's clock.
    pub sent: Time,
    /// When it arrived, by the clock of this endpoint.
    pub arrived: Time,
    /// Size of its IP packet, bytes.
    pub bytes: u32,
}

/// Probes to send with one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeBurst {
    /// The path.
    pub path: usize,
    /// The train they belong to.
    pub train: u32,
    /// Number of the first one.
    pub first: u32,
    /// How many.
    pub count: u32,
    /// Size of each IP packet, bytes.
    pub bytes: u32,
}

/// Result of sending a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SentProbes {
    /// Number of probes that the system accepted, from the first one on.
    pub count: u32,
    /// When they were sent, by the clock of this endpoint.
    pub at: Time,
    /// The system refused the size: the interface cannot carry it.
    pub too_long: bool,
}

/// Received probes that wait for the application.
#[derive(Debug, Default)]
pub struct ProbeQueue {
    waiting: Vec<ReceivedProbe>,
}

impl ProbeQueue {
    /// Maximum number of probes that one call sends, however many are requested.
    pub const BURST_LIMIT: u32 = 64;

    /// Memory that the peer can make this end hold, bytes.
    pub fn memory(&self) -> u64 {
        (self.waiting.capacity() * size_of::<ReceivedProbe>()) as u64
    }

    fn push(&mut self, probe: ReceivedProbe) {
        if self.waiting.len() < WAITING_LIMIT {
            self.waiting.push(probe);
        }
    }
}

/// Whether the content of a sealed datagram is a probe.
#[inline]
pub fn is_probe(body: &[u8]) -> bool {
    body.starts_with(&[0; 4])
}

/// Smallest IP packet of a probe to this peer's address, bytes: headers and seal.
fn least_bytes(lower: u64) -> u32 {
    (lower as usize + OVERHEAD + HEADER) as u32
}

fn number<const N: usize>(body: &[u8], at: usize) -> Option<[u8; N]> {
    body.get(at..)?.first_chunk().copied()
}

impl Peer {
    /// Stores a received probe, if the application has enabled them.
    pub fn on_probe(&mut self, now: Time, path: PathId, body: &[u8]) {
        let remote = self.routes.get(path.index()).copied().flatten().map(|route| route.remote);
        let (Some(queue), Some(remote)) = (&mut self.probes, remote) else { return };
        let fields = (number(body, 4), number(body, 8), number(body, 12));
        let (Some(train), Some(first), Some(sent)) = fields else { return };
        queue.push(ReceivedProbe {
            path: path.index(),
            train: u32::from_be_bytes(train),
            number: u32::from_be_bytes(first),
            sent: Time::from_nanos(u64::from_be_bytes(sent)),
            arrived: now,
            bytes: (lower_headers(&remote) as usize + OVERHEAD + body.len()) as u32,
        });
        self.signals.probed.notify_waiters();
    }
}

impl EndpointState {
    /// Sends probes immediately. Probes that the socket does not accept are not sent later.
    fn send_probes(&mut self, peer: &mut Peer, burst: ProbeBurst) -> Option<SentProbes> {
        let now = self.clock.now();
        let mut sent = SentProbes { count: 0, at: now, too_long: false };
        let route = peer.routes.get(burst.path).copied().flatten()?;
        let Encapsulation::Sealed(session) = &mut peer.encapsulation else { return None };
        if peer.ended.is_some() {
            return None;
        }
        let (lower, dscp) = (lower_headers(&route.remote), peer.dscps.of(burst.path));
        if burst.bytes < least_bytes(lower) || peer.validation.is_send_limited(burst.path) {
            return Some(sent);
        }
        let body = burst.bytes as usize - lower as usize - OVERHEAD;
        let socket = &mut self.sockets[route.socket];
        let datagram = burst.bytes as usize - lower as usize;
        let most = socket.segments().min(CALL_LIMIT / datagram).max(1) as u32;
        while sent.count < burst.count.min(ProbeQueue::BURST_LIMIT) {
            let count = most.min(burst.count - sent.count);
            let mut batch = Batch::new(route.remote);
            batch.set_source(route.source);
            batch.set_dscp(dscp);
            for i in 0..count {
                let number = burst.first + sent.count + i;
                let fit = batch.push(|out| {
                    let _ = session.seal(burst.path as u8, out, |out| {
                        out.extend_from_slice(&[0; 4]);
                        out.extend_from_slice(&burst.train.to_be_bytes());
                        out.extend_from_slice(&number.to_be_bytes());
                        out.extend_from_slice(&now.as_nanos().to_be_bytes());
                        out.resize(out.len() + body - HEADER, 0);
                    });
                });
                if fit == Fit::Nothing {
                    // The session's keys are used up: nothing is sent until they change.
                    return Some(sent);
                }
            }
            match socket.send_now(&batch) {
                Ok(()) => sent.count += count,
                Err(error) => {
                    sent.too_long = is_too_long(&error);
                    break;
                }
            }
        }
        self.counters.sent += u64::from(sent.count);
        Some(sent)
    }
}

impl Association {
    /// The endpoint's clock, by which probes are timed.
    pub fn clock(&self) -> Clock {
        self.with_endpoint(|state| state.clock)
    }

    /// Accepts probes of the peer from now on. Returns false without sealing, and once the association is
    /// gone: probes need the authentication of a session.
    pub fn enable_probes(&self) -> bool {
        let enabled = self.with(|peer, _| {
            let sealed = matches!(peer.encapsulation, Encapsulation::Sealed(_));
            if sealed {
                peer.probes.get_or_insert_default();
            }
            sealed
        });
        enabled.unwrap_or(false)
    }

    /// Sends up to 64 probes on a path immediately, regardless of congestion control. The caller limits their
    /// number and rate. `None` if the path or the association is gone. No probe is sent if the path's address has
    /// not been validated, if the size is too small for a probe, or while the socket is full.
    pub fn send_probes(&self, burst: ProbeBurst) -> Option<SentProbes> {
        self.with_state(|state, peer| state.send_probes(peer, burst))?
    }

    /// Waits for probes of the peer and appends all that have arrived. Appends none once the association has ended.
    pub async fn receive_probes(&self, into: &mut Vec<ReceivedProbe>) {
        loop {
            let probed = self.signals().probed.notified();
            let changed = self.signals().changed.notified();
            tokio::pin!(probed, changed);
            probed.as_mut().enable();
            changed.as_mut().enable();
            let before = into.len();
            let ended = self.with(|peer, _| {
                if let Some(queue) = &mut peer.probes {
                    into.append(&mut queue.waiting);
                }
                peer.ended.is_some()
            });
            if into.len() > before || ended != Some(false) {
                return;
            }
            tokio::select! {
                () = probed => {}
                () = changed => {}
            }
        }
    }
}
