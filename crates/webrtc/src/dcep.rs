//! The Data Channel Establishment Protocol (RFC 8832, 5): the formats of DATA_CHANNEL_OPEN and DATA_CHANNEL_ACK.

use ropewalk_base::Duration;

use crate::channel::{ChannelOptions, Reliability};

/// Message types (RFC 8832, 8.2.1).
const ACK: u8 = 0x02;
const OPEN: u8 = 0x03;
/// Channel types (RFC 8832, 5.1): the bit that makes a type unordered, and the ordered types.
const UNORDERED: u8 = 0x80;
const RELIABLE: u8 = 0x00;
const RETRANSMISSIONS: u8 = 0x01;
const TIMED: u8 = 0x02;
/// Bytes of a DATA_CHANNEL_OPEN before its label.
const OPEN_HEADER: usize = 12;

/// A message of the protocol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Dcep {
    /// DATA_CHANNEL_OPEN: the sender has opened a channel on the stream of this message.
    Open(ChannelOptions),
    /// DATA_CHANNEL_ACK: the sender has accepted the channel.
    Ack,
}

/// Why bytes are not a message of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DcepError {
    /// The message is empty, or its type is unknown.
    #[error("the message type is unknown")]
    Type,
    /// The length contradicts the fields.
    #[error("the length differs from what the fields say")]
    Length,
    /// The channel type is not assigned.
    #[error("the channel type is not assigned")]
    ChannelType,
    /// The label or the protocol is not UTF-8.
    #[error("the label or the protocol is not UTF-8")]
    Text,
}

impl Dcep {
    /// Encodes the message. The label and the protocol of an OPEN have at most 65,535 bytes each, which
    /// [`Connection::open`](crate::Connection::open) checks; longer ones are truncated.
    pub fn encode(&self) -> Vec<u8> {
        let Self::Open(options) = self else { return vec![ACK] };
        let (kind, parameter) = channel_type(options);
        let (label, protocol) = (cut(&options.label), cut(&options.protocol));
        let mut out = Vec::with_capacity(OPEN_HEADER + label.len() + protocol.len());
        out.extend_from_slice(&[OPEN, kind]);
        out.extend_from_slice(&options.priority.to_be_bytes());
        out.extend_from_slice(&parameter.to_be_bytes());
        out.extend_from_slice(&(label.len() as u16).to_be_bytes());
        out.extend_from_slice(&(protocol.len() as u16).to_be_bytes());
        out.extend_from_slice(label);
        out.extend_from_slice(protocol);
        out
    }

    /// Reads a message.
    ///
    /// # Errors
    /// [`DcepError`] if it is not well formed.
    pub fn decode(bytes: &[u8]) -> Result<Self, DcepError> {
        match bytes {
            // RFC 8832, 5.2: the message has one byte. pion sends three more, which have no meaning.
            [ACK, ..] => Ok(Self::Ack),
            [OPEN, rest @ ..] => decode_open(rest).map(Self::Open),
            _ => Err(DcepError::Type),
        }
    }
}

fn cut(text: &str) -> &[u8] {
    &text.as_bytes()[..text.len().min(usize::from(u16::MAX))]
}

/// The channel type and the reliability parameter (RFC 8832, 5.1).
fn channel_type(options: &ChannelOptions) -> (u8, u32) {
    let (kind, parameter) = match options.reliability {
        // RFC 8832, 5.1: the parameter of a reliable channel is 0, and ignored.
        Reliability::Reliable => (RELIABLE, 0),
        Reliability::Retransmissions(most) => (RETRANSMISSIONS, most),
        Reliability::Lifetime(most) => {
            let millis = most.as_nanos().div_ceil(1_000_000);
            (TIMED, u32::try_from(millis).unwrap_or(u32::MAX))
        }
    };
    (if options.ordered { kind } else { kind | UNORDERED }, parameter)
}

/// Reads the part of an OPEN after the message type.
fn decode_open(rest: &[u8]) -> Result<ChannelOptions, DcepError> {
    let Some((header, texts)) = rest.split_first_chunk::<{ OPEN_HEADER - 1 }>() else {
        return Err(DcepError::Length);
    };
    let [kind, p0, p1, r0, r1, r2, r3, l0, l1, s0, s1] = *header;
    let parameter = u32::from_be_bytes([r0, r1, r2, r3]);
    let reliability = match kind & !UNORDERED {
        RELIABLE => Reliability::Reliable,
        RETRANSMISSIONS => Reliability::Retransmissions(parameter),
        TIMED => Reliability::Lifetime(Duration::from_millis(parameter.into())),
        _ => return Err(DcepError::ChannelType),
    };
    let label_bytes = usize::from(u16::from_be_bytes([l0, l1]));
    let protocol_bytes = usize::from(u16::from_be_bytes([s0, s1]));
    if texts.len() != label_bytes + protocol_bytes {
        return Err(DcepError::Length);
    }
    let (label, protocol) = texts.split_at(label_bytes);
    let text =
        |bytes: &[u8]| core::str::from_utf8(bytes).map(str::to_owned).map_err(|_| DcepError::Text);
    Ok(ChannelOptions {
        label: text(label)?,
        protocol: text(protocol)?,
        ordered: kind & UNORDERED == 0,
        reliability,
        priority: u16::from_be_bytes([p0, p1]),
        negotiated: None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Channel type, reliability parameter, ordered, reliability (RFC 8832, 5.1).
    const TYPES: [(u8, u32, bool, Reliability); 6] = [
        (0x00, 0, true, Reliability::Reliable),
        (0x80, 0, false, Reliability::Reliable),
        (0x01, 3, true, Reliability::Retransmissions(3)),
        (0x81, 3, false, Reliability::Retransmissions(3)),
        (0x02, 250, true, Reliability::Lifetime(Duration::from_millis(250))),
        (0x82, 250, false, Reliability::Lifetime(Duration::from_millis(250))),
    ];

    fn bytes(kind: u8, parameter: u32) -> Vec<u8> {
        let mut all = vec![0x03, kind, 0x01, 0x00];
        all.extend_from_slice(&parameter.to_be_bytes());
        all.extend_from_slice(&[0, 4, 0, 2]);
        all.extend_from_slice("fileft".as_bytes());
        all
    }

    #[test]
    fn each_channel_type_is_read_and_written() {
        for (kind, parameter, ordered, reliability) in TYPES {
            let options = ChannelOptions {
                label: "file".into(),
                protocol: "ft".into(),
                ordered,
                reliability,
                priority: 256,
                negotiated: None,
            };
            let message = Dcep::Open(options);
            assert_eq!(message.encode(), bytes(kind, parameter));
            assert_eq!(Dcep::decode(&bytes(kind, parameter)), Ok(message));
        }
        assert_eq!(Dcep::Ack.encode(), [0x02]);
        for ack in [&[0x02][..], &[0x02, 0, 0, 0]] {
            assert_eq!(Dcep::decode(ack), Ok(Dcep::Ack));
        }
    }

    #[test]
    fn the_parameter_of_a_reliable_channel_is_ignored() {
        let Ok(Dcep::Open(options)) = Dcep::decode(&bytes(0, 77)) else { panic!("an OPEN") };
        assert_eq!(options.reliability, Reliability::Reliable);
    }

    #[test]
    fn malformed_messages_are_refused() {
        let whole = bytes(0, 0);
        for length in 1..whole.len() {
            assert_eq!(Dcep::decode(&whole[..length]), Err(DcepError::Length), "{length}");
        }
        let longer = [whole.clone(), vec![0]].concat();
        let mut text = whole.clone();
        text[12] = 0xff;
        let cases: [(&[u8], DcepError); 6] = [
            (&[], DcepError::Type),
            (&[0x00], DcepError::Type),
            (&[0x01, 0], DcepError::Type),
            (&longer, DcepError::Length),
            (&bytes(0x7f, 0), DcepError::ChannelType),
            (&text, DcepError::Text),
        ];
        for (message, expected) in cases {
            assert_eq!(Dcep::decode(message), Err(expected), "{message:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_read_is_written_as_it_was(message in prop::collection::vec(any::<u8>(), 0..64), kind in 0..6usize) {
            let mut message = message;
            // Random bytes are rarely a message, so half of the cases start like one.
            if message.len() > 12 && message[0] % 2 == 0 {
                message[..2].copy_from_slice(&[OPEN, TYPES[kind].0]);
                let texts = message.len() - 12;
                let label = texts.min(usize::from(message[2]));
                message[8..12].copy_from_slice(&[0, label as u8, 0, (texts - label) as u8]);
            }
            if let Ok(read) = Dcep::decode(&message) {
                let written = read.encode();
                prop_assert_eq!(Dcep::decode(&written), Ok(read.clone()));
                let plain = match &read {
                    Dcep::Open(options) => options.reliability == Reliability::Reliable,
                    Dcep::Ack => true,
                };
                prop_assert!(plain || written == message);
            }
        }
    }
}
