//! Binding requests: an end asks its peer from which address its datagrams arrive, and which release the peer runs.
//! The terms are those of STUN (RFC 8489); the datagrams are our own.
//!
//! Behind a NAT, no end knows its own public (reflexive) address. The peer sees it as the source of each datagram.
//! Requests and responses are separate datagrams, sealed like probes, so only an authenticated peer can send a
//! request and only the peer can respond:
//!
//! ```text
//! request    0 (2)  1 (2)  zeros up to 64 bytes
//! response   0 (2)  2 (2)  family, 4 or 6 (1)  address (16; IPv4: the first 4)  port (2)  length (1)  release (at most 32)
//!            date, nanoseconds since 1970 (8)
//! ```
//!
//! RFC 9260, 3.1: "The port number 0 MUST NOT be used." An SCTP packet begins with its source port, so a peer that
//! does not know these datagrams discards them.
//!
//! The response goes to the source of the request. It is not longer than the request, so a forged source gains
//! nothing. The endpoint responds without the application and stores nothing. Unsolicited responses are dropped.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::{Buf, BufMut};
use ropewalk_base::{PathId, PeerText};
use tokio::time::Instant;

use super::association::Association;
use super::batch::{Batch, Fit};
use super::encapsulation::Encapsulation;
use super::peer::{Peer, Route};
use super::state::{AssociationKey, EndpointState};
use crate::seal::{Timestamp, difference};

/// First four bytes of both datagrams; the first two are the source port 0.
const REQUEST: [u8; 4] = [0, 0, 0, 1];
const RESPONSE: [u8; 4] = [0, 0, 0, 2];
/// Size of a request inside the seal, bytes.
const REQUEST_LEN: usize = 64;
/// Maximum length of a release, bytes.
const RELEASE_MAX: usize = 32;
/// The release of this end.
const RELEASE: &str = env!("CARGO_PKG_VERSION");
/// Interval of requests while no response arrives.
const REPEAT: Duration = Duration::from_millis(250);

const _: () = assert!(4 + 1 + 16 + 2 + 1 + RELEASE_MAX + 8 <= REQUEST_LEN);
const _: () = assert!(RELEASE.len() <= RELEASE_MAX);

/// The peer's response about a path.
#[derive(Clone, Debug, PartialEq)]
pub struct BindingResponse {
    /// The address from which the peer receives the datagrams of the path.
    pub address: SocketAddr,
    /// The release of Ropewalk that the peer runs.
    pub release: PeerText,
    /// Time from the request to the response. `None` if the request was repeated: the response may belong to any of
    /// them.
    pub rtt: Option<Duration>,
    /// How far the peer's clock is ahead of this machine's, seconds; negative if it is behind. Accurate to half the
    /// round-trip time. `None` if the peer's release does not send its date.
    pub clock_ahead_s: Option<f64>,
}

/// Whether the content of a sealed datagram is a Binding request or response.
#[inline]
pub(super) fn is_binding(body: &[u8]) -> bool {
    body.starts_with(&REQUEST) || body.starts_with(&RESPONSE)
}

fn put_response(from: SocketAddr, date: Timestamp, out: &mut Vec<u8>) {
    out.put_slice(&RESPONSE);
    match from.ip().to_canonical() {
        IpAddr::V4(ip) => {
            out.put_u8(4);
            out.put_slice(&ip.octets());
            out.put_bytes(0, 12);
        }
        IpAddr::V6(ip) => {
            out.put_u8(6);
            out.put_slice(&ip.octets());
        }
    }
    out.put_u16(from.port());
    out.put_u8(RELEASE.len() as u8);
    out.put_slice(RELEASE.as_bytes());
    out.put_u64(date.as_unix_nanos());
}

/// Decodes a response that arrived at the date `now`. `None` if it is malformed. Earlier releases do not send their
/// date, and later ones may append more.
fn decode_response(now: Timestamp, body: &[u8]) -> Option<BindingResponse> {
    let mut rest = body.strip_prefix(&RESPONSE)?;
    let family = rest.try_get_u8().ok()?;
    let mut octets = [0; 16];
    rest.try_copy_to_slice(&mut octets).ok()?;
    let ip: IpAddr = match family {
        4 => octets.first_chunk::<4>().copied()?.into(),
        6 => octets.into(),
        _ => return None,
    };
    let port = rest.try_get_u16().ok()?;
    let length = usize::from(rest.try_get_u8().ok()?);
    let release = rest.get(..length).filter(|_| length <= RELEASE_MAX)?;
    let date = rest.get(length..).and_then(|mut rest| rest.try_get_u64().ok());
    let date = date.map(Timestamp::from_unix_nanos);
    Some(BindingResponse {
        address: SocketAddr::new(ip, port),
        release: PeerText::from_bytes(release),
        rtt: None,
        clock_ahead_s: date.map(|date| difference(date, now)),
    })
}

impl EndpointState {
    /// Handles a request or a response that arrived by `route`.
    pub(super) fn on_binding(
        &mut self,
        key: AssociationKey,
        path: PathId,
        route: Route,
        body: &[u8],
    ) {
        let Some(mut peer) = self.take_out(key) else { return };
        if body.starts_with(&RESPONSE) {
            peer.on_binding_response(path, body);
        } else if body.len() >= REQUEST_LEN {
            self.send_beside(&mut peer, path, route, |out| {
                put_response(route.remote, Timestamp::now(), out);
            });
        }
        self.put_back(key, peer);
    }

    /// Sends one sealed datagram that is not an SCTP packet. It is lost if the socket does not accept it.
    pub(super) fn send_beside(
        &mut self,
        peer: &mut Peer,
        path: PathId,
        route: Route,
        content: impl FnOnce(&mut Vec<u8>),
    ) {
        let Encapsulation::Sealed(session) = &mut peer.encapsulation else { return };
        let mut batch = Batch::new(route.remote);
        batch.set_source(route.source);
        batch.set_dscp(peer.dscps.of(path.index()));
        let fit = batch.push(|out| {
            // If the session's keys are used up, nothing is written.
            let _ = session.seal(path.0, out, content);
        });
        if fit == Fit::Nothing {
            return;
        }
        if self.sockets[route.socket].send_now(&batch).is_ok() {
            self.counters.sent += 1;
        }
    }
}

impl Peer {
    fn on_binding_response(&mut self, path: PathId, body: &[u8]) {
        let Some(asked) = self.bindings.get_mut(&path.0) else { return };
        if let Some(response) = decode_response(Timestamp::now(), body) {
            *asked = Some(response);
            self.signals.probed.notify_waiters();
        }
    }
}

impl Association {
    /// Asks the peer from which address the datagrams of a path arrive, and waits at most `limit` for the response.
    /// `None` without a response, without sealing, if the path or the association is gone, and if the peer's release
    /// does not know the request.
    pub async fn request_binding(&self, path: usize, limit: Duration) -> Option<BindingResponse> {
        let number = u8::try_from(path).ok()?;
        let begin = Instant::now();
        let requests = async {
            for repeated in 0_u32.. {
                let answered = self.signals().probed.notified();
                tokio::pin!(answered);
                answered.as_mut().enable();
                let asked = self.with_state(|state, peer| ask(state, peer, number))?;
                asked.then_some(())?;
                if tokio::time::timeout(REPEAT, answered).await.is_ok()
                    && let Some(response) = self.take_binding_response(number)
                {
                    let rtt = (repeated == 0).then(|| begin.elapsed());
                    // The peer read its clock when it sent the response.
                    let travelled_s = rtt.unwrap_or_default().as_secs_f64() / 2.0;
                    let clock_ahead_s = response.clock_ahead_s.map(|ahead| ahead + travelled_s);
                    return Some(BindingResponse { rtt, clock_ahead_s, ..response });
                }
            }
            None
        };
        let response = tokio::time::timeout(limit, requests).await.ok().flatten();
        self.with(|peer, _| peer.bindings.remove(&number));
        response
    }

    fn take_binding_response(&self, path: u8) -> Option<BindingResponse> {
        self.with(|peer, _| peer.bindings.get_mut(&path).and_then(Option::take)).flatten()
    }
}

/// Sends the request, unless a response is waiting. False if it cannot be sent on this path.
fn ask(state: &mut EndpointState, peer: &mut Peer, path: u8) -> bool {
    let route = peer.routes.get(usize::from(path)).copied().flatten();
    let sealed = matches!(peer.encapsulation, Encapsulation::Sealed(_));
    let Some(route) = route.filter(|_| sealed && peer.ended.is_none()) else { return false };
    if peer.bindings.entry(path).or_default().is_none() {
        state.send_beside(peer, PathId(path), route, |out| {
            out.put_slice(&REQUEST);
            out.put_bytes(0, REQUEST_LEN - REQUEST.len());
        });
    }
    true
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_response_comes_back_and_is_no_longer_than_its_request() {
        const SECOND: u64 = 1_000_000_000;
        let now = Timestamp::from_unix_nanos(100 * SECOND);
        let date = Timestamp::from_unix_nanos(97 * SECOND);
        for address in ["192.0.2.7:9899", "[2001:db8::1]:1"] {
            let address = address.parse().expect("an address");
            let mut body = Vec::new();
            put_response(address, date, &mut body);
            assert!(body.len() <= REQUEST_LEN && is_binding(&body));
            let release = PeerText::new(RELEASE);
            let response =
                BindingResponse { address, release, rtt: None, clock_ahead_s: Some(-3.0) };
            assert_eq!(decode_response(now, &body), Some(response.clone()));
            let undated = body.len() - 8;
            let without = BindingResponse { clock_ahead_s: None, ..response };
            assert_eq!(decode_response(now, &body[..undated]), Some(without));
            for length in 0..undated {
                assert_eq!(decode_response(now, &body[..length]), None, "{length} bytes");
            }
            body[4] = 5;
            assert_eq!(decode_response(now, &body), None);
        }
        let mapped = "[::ffff:192.0.2.7]:5".parse().expect("an address");
        let mut body = Vec::new();
        put_response(mapped, date, &mut body);
        let found = decode_response(now, &body).expect("a response").address;
        assert_eq!(found.to_string(), "192.0.2.7:5");
    }

    proptest! {
        #[test]
        fn no_bytes_stop_the_decoder(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let body = [&RESPONSE[..], &bytes].concat();
            if let Some(response) = decode_response(Timestamp::from_unix_nanos(0), &body) {
                prop_assert!(response.release.unescaped().len() <= 3 * RELEASE_MAX);
            }
        }
    }
}
