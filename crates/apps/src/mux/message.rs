//! The protocol of the multiplexer. Each message is one SCTP message.
//!
//! The payload protocol identifier contains the kind, so data needs no header. All messages about a stream are sent
//! on that stream, and therefore in order.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use ropewalk_base::PeerText;

/// Kinds of messages, as payload protocol identifiers ("RWM" and a number; IANA has assigned none of them).
mod kind {
    const BASE: u32 = 0x5257_4d00;
    pub const OPEN: u32 = BASE + 1;
    pub const OPENED: u32 = BASE + 2;
    pub const REFUSED: u32 = BASE + 3;
    pub const DATA: u32 = BASE + 4;
    pub const LAST: u32 = BASE + 5;
    pub const CREDIT: u32 = BASE + 6;
    pub const FIN: u32 = BASE + 7;
    pub const RESET: u32 = BASE + 8;
}

/// Maximum length of a target, bytes.
pub const LONGEST_TARGET: usize = 512;
/// Maximum length of a refusal's text, bytes.
pub const LONGEST_DETAIL: usize = 200;

/// Why a stream was refused. The multiplexer itself uses only the two codes that are named here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Code for programs.
    pub code: u8,
    /// Text for users, at most 200 bytes.
    pub detail: PeerText,
}

impl Refusal {
    /// There is no memory for another stream.
    pub const BUSY: u8 = 0;
    /// The opener has cancelled the stream, or no application accepted it.
    pub const CANCELLED: u8 = 1;

    /// Creates a refusal.
    pub fn new(code: u8, detail: impl Into<PeerText>) -> Self {
        let detail: PeerText = detail.into();
        let text = detail.unescaped();
        let mut end = text.len().min(LONGEST_DETAIL);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        Self { code, detail: PeerText::from(&text[..end]) }
    }
}

/// A message about one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Request to open the stream.
    Open {
        /// Position up to which the receiver of this message may send.
        credit: u64,
        /// The target; only the accepting application interprets it.
        target: Bytes,
    },
    /// The stream is open.
    Opened {
        /// Position up to which the opener may send.
        credit: u64,
    },
    /// The stream is refused. Its number is free again.
    Refused(Refusal),
    /// The next bytes.
    Data(Bytes),
    /// The next and last bytes.
    Last(Bytes),
    /// The receiver of this message may send up to this position.
    Credit(u64),
    /// No bytes follow.
    Fin,
    /// The sender of this message no longer sends or reads. May follow a FIN.
    Reset,
}

/// A violation of the protocol by the peer: it is faulty, or uses another protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An unknown kind of message.
    #[error(
        "the peer sent a message of kind {0:#x}, which is not the proxy's: is `ropewalk proxy` \
         of the same version at the other end?"
    )]
    Kind(u32),
    /// A message that is too short or too long.
    #[error("the peer sent a malformed message, kind {0:#x}")]
    Malformed(u32),
    /// More bytes than permitted, on this stream.
    #[error("the peer sent more on stream {0} than its window allows")]
    Credit(u16),
    /// A stream number that is in use, not the peer's to open, or too high.
    #[error("the peer opened stream {0}, which is not allowed now")]
    Number(u16),
    /// A message that is invalid in the state of this stream.
    #[error("the peer sent an unexpected message on stream {0}")]
    Order(u16),
}

impl Message {
    /// Encodes the message as payload protocol identifier and bytes.
    pub fn encode(self) -> (u32, Bytes) {
        match self {
            Self::Open { credit, target } => {
                let mut out = BytesMut::with_capacity(8 + target.len());
                out.put_u64(credit);
                out.put_slice(&target);
                (kind::OPEN, out.freeze())
            }
            Self::Opened { credit } => (kind::OPENED, number(credit)),
            Self::Refused(Refusal { code, detail }) => {
                let detail = detail.unescaped();
                let mut out = BytesMut::with_capacity(1 + detail.len());
                out.put_u8(code);
                out.put_slice(detail.as_bytes());
                (kind::REFUSED, out.freeze())
            }
            Self::Data(bytes) => (kind::DATA, bytes),
            Self::Last(bytes) => (kind::LAST, bytes),
            Self::Credit(credit) => (kind::CREDIT, number(credit)),
            // An SCTP message has at least one byte.
            Self::Fin => (kind::FIN, Bytes::from_static(&[0])),
            Self::Reset => (kind::RESET, Bytes::from_static(&[0])),
        }
    }

    /// Decodes a message.
    ///
    /// # Errors
    /// [`Violation::Kind`] or [`Violation::Malformed`].
    pub fn decode(ppid: u32, mut bytes: Bytes) -> Result<Self, Violation> {
        let length = bytes.len();
        let fits = match ppid {
            kind::OPEN => (8..=8 + LONGEST_TARGET).contains(&length),
            kind::OPENED | kind::CREDIT => length == 8,
            kind::REFUSED => (1..=1 + LONGEST_DETAIL).contains(&length),
            kind::DATA | kind::LAST => length > 0,
            kind::FIN | kind::RESET => length == 1,
            _ => return Err(Violation::Kind(ppid)),
        };
        if !fits {
            return Err(Violation::Malformed(ppid));
        }
        Ok(match ppid {
            kind::OPEN => Self::Open { credit: bytes.get_u64(), target: bytes },
            kind::OPENED => Self::Opened { credit: bytes.get_u64() },
            kind::CREDIT => Self::Credit(bytes.get_u64()),
            kind::REFUSED => {
                let code = bytes.get_u8();
                Self::Refused(Refusal::new(code, PeerText::from_bytes(&bytes)))
            }
            kind::DATA => Self::Data(bytes),
            kind::LAST => Self::Last(bytes),
            kind::FIN => Self::Fin,
            _ => Self::Reset,
        })
    }
}

fn number(value: u64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_is_read_as_it_was_written() {
        for message in [
            Message::Open { credit: 7, target: Bytes::from_static(b"x:1") },
            Message::Open { credit: u64::MAX, target: Bytes::new() },
            Message::Opened { credit: 1 << 40 },
            Message::Refused(Refusal::new(3, "nobody is there")),
            Message::Refused(Refusal::new(255, "")),
            Message::Data(Bytes::from_static(b"a")),
            Message::Last(Bytes::from_static(b"bc")),
            Message::Credit(0),
            Message::Fin,
            Message::Reset,
        ] {
            let (ppid, bytes) = message.clone().encode();
            assert!(!bytes.is_empty(), "SCTP sends no empty message: {message:?}");
            assert_eq!(Message::decode(ppid, bytes), Ok(message));
        }
    }

    #[test]
    fn what_is_cut_or_too_long_or_unknown_is_refused() {
        let long_target = vec![0; 8 + LONGEST_TARGET + 1];
        let long_detail = vec![b'x'; 2 + LONGEST_DETAIL];
        for (ppid, bytes) in [
            (kind::OPEN, &[0; 7][..]),
            (kind::OPEN, &long_target),
            (kind::OPENED, &[0; 7]),
            (kind::OPENED, &[0; 9]),
            (kind::CREDIT, &[]),
            (kind::REFUSED, &[]),
            (kind::REFUSED, &long_detail),
            (kind::DATA, &[]),
            (kind::LAST, &[]),
            (kind::FIN, &[]),
            (kind::RESET, &[0, 0]),
        ] {
            let decoded = Message::decode(ppid, Bytes::copy_from_slice(bytes));
            assert_eq!(decoded, Err(Violation::Malformed(ppid)));
        }
        assert_eq!(Message::decode(0, Bytes::new()), Err(Violation::Kind(0)));
    }

    #[test]
    fn words_of_a_refusal_are_short_and_harmless() {
        let long = Refusal::new(9, "é".repeat(150));
        assert_eq!(long.detail.unescaped().len(), LONGEST_DETAIL);
        let (ppid, _) = Message::Refused(long).encode();
        let hostile = Bytes::from_static(b"\x09\x1b[2Jboo\xff");
        let Ok(Message::Refused(shown)) = Message::decode(ppid, hostile) else { panic!() };
        assert_eq!(shown.detail.to_string(), "\\u{1b}[2Jboo\u{fffd}");
    }
}
