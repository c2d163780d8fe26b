//! Tests with both ends of a handshake and session.

mod clock;
mod forged;
mod handshake;
mod low_order;
mod psk;
mod rate_limiter;
mod rekey;
mod session;
mod tampering;
mod vectors;

use core::net::SocketAddr;

use ropewalk_base::Time;

use super::allowed::Allowed;
use super::initiator::{Finish, Initiator};
use super::is_renewal;
use super::keys::{PublicKey, SecretKey};
use super::responder::{Answer, Established, Responder};
use super::session::Session;
use super::timestamp::Timestamp;

/// Number of the initiator's session.
pub const CLIENT: u32 = 0x1111_2222;
/// Number of the responder's session.
pub const SERVER: u32 = 0x3333_4444;

pub fn secret() -> SecretKey {
    SecretKey::generate().expect("random numbers")
}

pub fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

pub fn home() -> SocketAddr {
    address("192.0.2.1:5000")
}

/// A responder, and an initiator that it allows.
pub struct Pair {
    pub client: SecretKey,
    pub server: Responder,
    pub server_key: PublicKey,
    /// The client's date, which increases with each handshake.
    pub date: u64,
}

impl Pair {
    pub fn new() -> Self {
        let client = secret();
        let allowed = Allowed::Keys([client.public()].into());
        Self::with(client, allowed)
    }

    pub fn with(client: SecretKey, allowed: Allowed) -> Self {
        let key = secret();
        let server_key = key.public();
        let server = Responder::new(key, allowed).expect("random numbers");
        Self { client, server, server_key, date: 1_000_000 }
    }

    /// A client's first datagram.
    pub fn first(&mut self, payload: &[u8]) -> (Initiator, Vec<u8>) {
        self.date += 1;
        let date = Timestamp::from_unix_nanos(self.date);
        Initiator::new(&self.client, self.server_key, date, CLIENT, payload).expect("a datagram")
    }

    pub fn answer(&mut self, now: Time, from: SocketAddr, datagram: &[u8]) -> Answer {
        self.server.handle(now, from, datagram, SERVER)
    }

    /// The two ends of a session, the initiator's first.
    pub fn sessions(&mut self) -> (Session, Session) {
        let now = Time::from_secs(1000);
        let (mut initiator, first) = self.first(b"hello");
        let established = established(self.answer(now, home(), &first));
        (session(initiator.finish(now, &established.reply)), established.session)
    }
}

pub fn established(answer: Answer) -> Established {
    match answer {
        Answer::Established(established) => *established,
        other => panic!("{other:?}"),
    }
}

pub fn reply(answer: Answer) -> Vec<u8> {
    match answer {
        Answer::Reply(datagram) => datagram,
        other => panic!("{other:?}"),
    }
}

pub fn is_drop(answer: &Answer) -> bool {
    matches!(answer, Answer::Drop)
}

pub fn session<E: core::fmt::Debug>(finish: Result<Finish, E>) -> Session {
    match finish {
        Ok(Finish::Established(session)) => *session,
        other => panic!("{other:?}"),
    }
}

/// A datagram of `session` with this content.
pub fn sealed(session: &mut Session, path: u8, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    session.seal(path, &mut out, |out| out.extend(content)).expect("sealed");
    out
}

/// Carries what renews the keys from one end to the other and back, until neither has anything to send. Returns the number
/// of datagrams.
pub fn renewed(now: Time, initiator: &mut Session, responder: &mut Session) -> usize {
    let Some(offer) = initiator.offer(now) else { return 0 };
    let offer = sealed(initiator, 0, &offer);
    let (_, offer) = opened(responder, now, &offer).expect("it is genuine");
    assert!(is_renewal(&offer));
    let Some(answer) = responder.handle_renewal(now, &offer) else { return 1 };
    let answer = sealed(responder, 0, &answer);
    let (_, answer) = opened(initiator, now, &answer).expect("it is genuine");
    assert_eq!(initiator.handle_renewal(now, &answer), None);
    2
}

/// Opens a datagram. Returns path and content, or the error.
pub fn opened(
    session: &mut Session,
    now: Time,
    datagram: &[u8],
) -> Result<(u8, Vec<u8>), super::OpenError> {
    let mut buffer = datagram.to_vec();
    let opened = session.open(now, &mut buffer)?;
    Ok((opened.path, buffer[opened.body].to_vec()))
}
