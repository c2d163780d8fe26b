//! The datagrams of a pairing.
//!
//! ```text
//! "RWP" | version (1) | kind (1) | identifier (16) | content
//! ```
//!
//! | kind | from | identifier | content |
//! | --- | --- | --- | --- |
//! | 1 begin | initiator | exchange | SPAKE2 message (33), cookie (16) or zeros, zeros up to 128 bytes in all |
//! | 2 answer | responder | exchange | token (16), SPAKE2 message (33) |
//! | 3 proof | initiator | token | Noise message 1 |
//! | 4 introduction | responder | exchange | Noise message 2 |
//! | 5 introduction | initiator | token | Noise message 3 |
//! | 6 confirmation | responder | exchange | an empty Noise transport message |
//! | 7 refused | responder | exchange | |
//! | 8 cookie | responder | exchange | cookie (16) |
//!
//! Each end draws one identifier, by which the other end addresses it. An initiator that cannot receive at its
//! source address learns neither the cookie nor the token: it cannot begin an exchange, send a proof, or use up a code.

use ropewalk_runtime::seal::PAKE_LEN;

/// First bytes of a datagram.
const PREFIX: &[u8; 4] = b"RWP\x01";
/// Size of an identifier, bytes.
pub(super) const ID_LEN: usize = 16;
/// Size of a cookie, bytes.
pub(super) const COOKIE_LEN: usize = 16;
/// Placeholder for the cookie in a first datagram.
pub(super) const NO_COOKIE: Cookie = [0; COOKIE_LEN];
const HEAD_LEN: usize = PREFIX.len() + 1 + ID_LEN;
/// Size of the first datagram: longer than its answer, so that an endpoint never amplifies traffic.
const BEGIN_LEN: usize = 128;
/// Largest datagram. It fits into every path's MTU.
pub(super) const DATAGRAM_MAX: usize = 1200;

/// Identifies an exchange to one of its ends.
pub(super) type Id = [u8; ID_LEN];

/// Proves that an initiator receives at its source address.
pub(super) type Cookie = [u8; COOKIE_LEN];

/// A datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Begin { exchange: Id, pake: &'a [u8], cookie: Cookie },
    Answer { exchange: Id, token: Id, pake: &'a [u8] },
    Proof { token: Id, noise: &'a [u8] },
    ResponderIntroduction { exchange: Id, noise: &'a [u8] },
    InitiatorIntroduction { token: Id, noise: &'a [u8] },
    Confirmation { exchange: Id, noise: &'a [u8] },
    Refused { exchange: Id },
    Cookie { exchange: Id, cookie: Cookie },
}

impl<'a> Message<'a> {
    /// Encodes the datagram.
    pub(super) fn encode(&self) -> Vec<u8> {
        let (kind, id, content): (u8, &Id, &[u8]) = match self {
            Self::Begin { exchange, pake, .. } => (1, exchange, pake),
            Self::Answer { exchange, pake, .. } => (2, exchange, pake),
            Self::Proof { token, noise } => (3, token, noise),
            Self::ResponderIntroduction { exchange, noise } => (4, exchange, noise),
            Self::InitiatorIntroduction { token, noise } => (5, token, noise),
            Self::Confirmation { exchange, noise } => (6, exchange, noise),
            Self::Refused { exchange } => (7, exchange, &[]),
            Self::Cookie { exchange, cookie } => (8, exchange, cookie),
        };
        let mut out = PREFIX.to_vec();
        out.push(kind);
        out.extend(id);
        if let Self::Answer { token, .. } = self {
            out.extend(token);
        }
        out.extend(content);
        if let Self::Begin { cookie, .. } = self {
            out.extend(cookie);
            out.resize(BEGIN_LEN, 0);
        }
        debug_assert!(out.len() <= DATAGRAM_MAX);
        out
    }

    /// Decodes a datagram. `None` if it is not a datagram of a pairing.
    pub(super) fn decode(datagram: &'a [u8]) -> Option<Self> {
        if datagram.len() > DATAGRAM_MAX {
            return None;
        }
        let (kind, rest) = datagram.strip_prefix(PREFIX)?.split_first()?;
        let (id, content) = rest.split_first_chunk::<ID_LEN>()?;
        let id = *id;
        match kind {
            1 if datagram.len() == BEGIN_LEN => {
                let (pake, rest) = content.split_at(PAKE_LEN);
                Some(Self::Begin { exchange: id, pake, cookie: *rest.first_chunk()? })
            }
            2 => {
                let (token, pake) = content.split_first_chunk::<ID_LEN>()?;
                let whole = pake.len() == PAKE_LEN;
                whole.then_some(Self::Answer { exchange: id, token: *token, pake })
            }
            3 => Some(Self::Proof { token: id, noise: content }),
            4 => Some(Self::ResponderIntroduction { exchange: id, noise: content }),
            5 => Some(Self::InitiatorIntroduction { token: id, noise: content }),
            6 => Some(Self::Confirmation { exchange: id, noise: content }),
            7 if content.is_empty() => Some(Self::Refused { exchange: id }),
            8 => {
                let cookie = content.try_into().ok()?;
                Some(Self::Cookie { exchange: id, cookie })
            }
            _ => None,
        }
    }
}

const _: () = assert!(BEGIN_LEN > HEAD_LEN + ID_LEN + PAKE_LEN && COOKIE_LEN <= ID_LEN);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: Id = [1; ID_LEN];
    const B: Id = [2; ID_LEN];

    #[test]
    fn every_kind_comes_back() {
        let (pake, noise) = (&[7; PAKE_LEN], &[8; 100]);
        for message in [
            Message::Begin { exchange: A, pake, cookie: NO_COOKIE },
            Message::Begin { exchange: A, pake, cookie: [3; COOKIE_LEN] },
            Message::Answer { exchange: A, token: B, pake },
            Message::Proof { token: B, noise },
            Message::ResponderIntroduction { exchange: A, noise },
            Message::InitiatorIntroduction { token: B, noise },
            Message::Confirmation { exchange: A, noise },
            Message::Refused { exchange: A },
            Message::Cookie { exchange: A, cookie: [3; COOKIE_LEN] },
        ] {
            assert_eq!(Message::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn an_answer_is_shorter_than_its_question() {
        let pake = &[7; PAKE_LEN];
        let question = Message::Begin { exchange: A, pake, cookie: NO_COOKIE }.encode();
        let answer = Message::Answer { exchange: A, token: B, pake }.encode();
        let cookie = Message::Cookie { exchange: A, cookie: NO_COOKIE }.encode();
        assert!(answer.len() < question.len() && cookie.len() < question.len());
    }

    proptest! {
        #[test]
        fn no_bytes_stop_the_decoder(
            bytes in prop::collection::vec(any::<u8>(), 0..1400),
            kind in 0u8..10,
            with_prefix: bool,
        ) {
            let mut datagram = if with_prefix { [&PREFIX[..], &[kind]].concat() } else { Vec::new() };
            datagram.extend(bytes);
            if let Some(message) = Message::decode(&datagram) {
                let again = message.encode();
                prop_assert_eq!(Message::decode(&again), Some(message));
            }
        }
    }
}
