//! Events of a connection for the application, and the errors of its calls.

use bytes::Bytes;
use ropewalk_engine::sctp::association::CloseReason;

use crate::channel::ChannelId;

/// A message of a data channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// A string.
    Text(String),
    /// Bytes.
    Binary(Bytes),
}

impl Message {
    /// Length, bytes.
    pub const fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }

    /// Whether there are no bytes.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Bytes> for Message {
    fn from(bytes: Bytes) -> Self {
        Self::Binary(bytes)
    }
}

impl From<Vec<u8>> for Message {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Binary(bytes.into())
    }
}

/// An event for the application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The association is established.
    Connected,
    /// A channel is open at both ends: the peer has opened it, or has answered the announcement of this end, or it was
    /// negotiated by the applications. [`Connection::channel`](crate::Connection::channel) has its properties.
    Opened {
        /// The channel.
        channel: ChannelId,
        /// Whether the peer opened it.
        by_peer: bool,
    },
    /// A message has arrived.
    Message {
        /// The channel.
        channel: ChannelId,
        /// The message.
        message: Message,
    },
    /// The buffered amount of a channel has fallen to its threshold
    /// ([`Connection::set_low_threshold`](crate::Connection::set_low_threshold)).
    BufferedAmountLow {
        /// The channel.
        channel: ChannelId,
    },
    /// The send buffer, which was full ([`SendError::Full`]), has room again.
    Writable,
    /// A channel has ended. Its number may be reused.
    Closed {
        /// The channel.
        channel: ChannelId,
        /// Why.
        reason: ChannelClosed,
    },
    /// The association has ended. All channels were closed before.
    Disconnected(CloseReason),
}

/// Why a channel ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelClosed {
    /// This end closed it.
    Here,
    /// The peer closed it.
    ByPeer,
    /// This end closed it because the peer violated a rule.
    Violation(Violation),
    /// The peer has too few streams for the channel's number.
    NoSuchStream,
    /// The association ended or was restarted by the peer.
    Association,
}

/// A violation by the peer on a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Violation {
    /// A DATA_CHANNEL_OPEN or DATA_CHANNEL_ACK is not well formed (RFC 8832, 6).
    #[error("the peer sent a malformed message of the establishment protocol")]
    Malformed,
    /// The peer opened a channel on a stream that only this end may open (RFC 8832, 6).
    #[error("the peer opened a channel with a number that belongs to this end")]
    Parity,
    /// A channel was opened on a stream that is in use (RFC 8832, 6).
    #[error("the peer opened a channel that exists")]
    InUse,
    /// A channel was opened beyond [`Config::max_channels`](crate::Config::max_channels) or
    /// [`Config::text_limit`](crate::Config::text_limit).
    #[error("the peer opened more channels, or longer labels, than this end takes")]
    TooMany,
    /// A message arrived on a stream that no channel uses (RFC 8832, 6).
    #[error("the peer sent a message on a channel that was not opened")]
    Unopened,
    /// The payload protocol identifier of a message is unknown (RFC 8831, 6.6).
    #[error("the peer sent a message of unknown kind")]
    Kind,
    /// A string is not UTF-8.
    #[error("the peer sent a string that is not UTF-8")]
    Text,
    /// A message is longer than [`Config::max_message_size`](crate::Config::max_message_size).
    #[error("the peer sent a message longer than the limit of this end")]
    TooLong,
    /// A DATA_CHANNEL_ACK arrived on a channel that this end did not announce, or for the second time.
    #[error("the peer acknowledged a channel that waits for no acknowledgement")]
    UnexpectedAck,
}

impl Violation {
    /// Number of kinds.
    pub(crate) const COUNT: usize = 9;
    /// All kinds, in the order of their counters.
    pub const ALL: [Self; Self::COUNT] = [
        Self::Malformed,
        Self::Parity,
        Self::InUse,
        Self::TooMany,
        Self::Unopened,
        Self::Kind,
        Self::Text,
        Self::TooLong,
        Self::UnexpectedAck,
    ];
}

/// Why [`Connection::open`](crate::Connection::open) refused a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The number was negotiated, but another channel uses it.
    #[error("a channel with this number exists")]
    InUse,
    /// The number exceeds those of the streams.
    #[error("the association has fewer streams than this number needs")]
    NoSuchStream,
    /// The number of channels has reached [`Config::max_channels`](crate::Config::max_channels), or no number is
    /// free.
    #[error("there are as many channels as the configuration permits")]
    TooMany,
    /// The label or the protocol has more than 65,535 bytes.
    #[error("a label or protocol has at most 65535 bytes")]
    TextTooLong,
    /// The association is closing or has ended.
    #[error("the association is closing or closed")]
    Closing,
}

/// Why [`Connection::send`](crate::Connection::send) refused a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SendError {
    /// There is no such channel.
    #[error("there is no such channel")]
    NoSuchChannel,
    /// The association is not established yet.
    #[error("the association is not established yet")]
    NotConnected,
    /// The channel, or the association, is closing.
    #[error("the channel is closing")]
    Closing,
    /// The message is longer than the peer accepts
    /// ([`Config::peer_max_message_size`](crate::Config::peer_max_message_size)).
    #[error("a message of {length} bytes exceeds the peer's limit of {limit} bytes")]
    TooLong {
        /// Length of the message, bytes.
        length: usize,
        /// The peer's limit, bytes.
        limit: usize,
    },
    /// The send buffer is full. [`Event::Writable`] follows when it has room again.
    #[error("the send buffer is full; wait until it is writable")]
    Full,
}
