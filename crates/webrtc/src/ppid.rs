//! Payload protocol identifiers of data channels (RFC 8831, 8; RFC 8832, 8.1): the kind of each message.

use bytes::Bytes;

use crate::event::Message;

/// WebRTC DCEP.
pub const DCEP: u32 = 50;
/// WebRTC String.
pub const STRING: u32 = 51;
/// WebRTC Binary.
pub const BINARY: u32 = 53;
/// WebRTC String Empty.
pub const STRING_EMPTY: u32 = 56;
/// WebRTC Binary Empty.
pub const BINARY_EMPTY: u32 = 57;

/// RFC 8831, 6.6: SCTP has no empty messages, so one zero byte is sent, which the receiver ignores.
const EMPTY: Bytes = Bytes::from_static(&[0]);

/// Why a message of the peer cannot be delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BadMessage {
    /// The payload protocol identifier is not one of user messages.
    Kind,
    /// A string is not UTF-8.
    Text,
}

/// The identifier and the user data of a message to send.
pub(crate) fn encode(message: Message) -> (u32, Bytes) {
    match message {
        Message::Text(text) if text.is_empty() => (STRING_EMPTY, EMPTY),
        Message::Text(text) => (STRING, text.into()),
        Message::Binary(bytes) if bytes.is_empty() => (BINARY_EMPTY, EMPTY),
        Message::Binary(bytes) => (BINARY, bytes),
    }
}

/// The message with this identifier and user data.
pub(crate) fn decode(ppid: u32, payload: Bytes) -> Result<Message, BadMessage> {
    match ppid {
        // RFC 8831, 6.6: strings are UTF-8.
        STRING => {
            String::from_utf8(payload.into()).map(Message::Text).map_err(|_| BadMessage::Text)
        }
        BINARY => Ok(Message::Binary(payload)),
        STRING_EMPTY => Ok(Message::Text(String::new())),
        BINARY_EMPTY => Ok(Message::Binary(Bytes::new())),
        _ => Err(BadMessage::Kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_message_is_written_and_read() {
        let cases = [
            (Message::Text("ß".into()), STRING, 2),
            (Message::Text(String::new()), STRING_EMPTY, 1),
            (Message::Binary(Bytes::from_static(&[1, 2, 3])), BINARY, 3),
            (Message::Binary(Bytes::new()), BINARY_EMPTY, 1),
        ];
        for (message, ppid, length) in cases {
            let (written, payload) = encode(message.clone());
            assert_eq!((written, payload.len()), (ppid, length));
            assert_eq!(decode(ppid, payload), Ok(message));
        }
    }

    #[test]
    fn other_kinds_and_strings_that_are_not_text_are_refused() {
        // 52 and 54: fragments of messages, deprecated by RFC 8831, 6.6.
        for ppid in [0, 49, 50, 52, 54, 55, 58, u32::MAX] {
            assert_eq!(decode(ppid, Bytes::from_static(b"x")), Err(BadMessage::Kind), "{ppid}");
        }
        assert_eq!(decode(STRING, Bytes::from_static(&[0xc3])), Err(BadMessage::Text));
    }
}
