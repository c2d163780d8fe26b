//! A data channel: its properties, and the state that this end keeps of it.

use core::fmt;

use ropewalk_base::{Duration, StreamId};
use ropewalk_engine::sctp::Delivery;

use crate::event::ChannelClosed;

/// A data channel of a connection. Its number is that of its stream in both directions (RFC 8831, 6.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ChannelId(pub u16);

impl fmt::Display for ChannelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ChannelId {
    /// RFC 8831, 6.2: streams are numbered to 65,534, because their number is at most 65,535.
    pub const LAST: Self = Self(65_534);

    pub(crate) const fn stream(self) -> StreamId {
        StreamId(self.0)
    }
}

/// How long the messages of a channel are retransmitted (RFC 8832, 5.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Reliability {
    /// Until the peer has acknowledged them.
    #[default]
    Reliable,
    /// At most this number of times (`maxRetransmits` of the JavaScript API). With 0, each message is sent once.
    /// Limits above 254 are kept and announced, but this end then sends a message at most 255 times.
    Retransmissions(u32),
    /// For this time after [`Connection::send`](crate::Connection::send) (`maxPacketLifeTime`). Announced in
    /// milliseconds, rounded up.
    Lifetime(Duration),
}

/// The priority of a channel (RFC 8831, 6.4; W3C WebRTC priority control).
///
/// A channel's share of the capacity is proportional to its priority while several channels have messages to send.
pub mod priority {
    /// `very-low`.
    pub const VERY_LOW: u16 = 128;
    /// `low`, which browsers use by default.
    pub const LOW: u16 = 256;
    /// `medium`.
    pub const MEDIUM: u16 = 512;
    /// `high`.
    pub const HIGH: u16 = 1024;
}

/// The properties of a channel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChannelOptions {
    /// Label, at most 65,535 bytes. It need not be unique.
    pub label: String,
    /// Subprotocol, at most 65,535 bytes. May be empty.
    pub protocol: String,
    /// Whether messages are delivered in the order in which they were sent.
    pub ordered: bool,
    /// How long messages are retransmitted.
    pub reliability: Reliability,
    /// Priority: see [`priority`]. 0 is treated as 1.
    pub priority: u16,
    /// The channel's number, if both applications have agreed on it and on all other properties on their own (RFC
    /// 8831, 6.5). If `None`, this end chooses the number and announces the channel to the peer (RFC 8832).
    pub negotiated: Option<ChannelId>,
}

impl Default for ChannelOptions {
    fn default() -> Self {
        Self {
            label: String::new(),
            protocol: String::new(),
            ordered: true,
            reliability: Reliability::Reliable,
            priority: priority::LOW,
            negotiated: None,
        }
    }
}

impl ChannelOptions {
    /// A reliable, ordered channel with this label.
    pub fn labelled(label: &str) -> Self {
        Self { label: label.to_owned(), ..Self::default() }
    }

    /// Bytes of the label and the protocol.
    pub(crate) fn text_bytes(&self) -> usize {
        self.label.len() + self.protocol.len()
    }
}

/// Whether messages may be sent on a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChannelState {
    /// The association is not established yet. Nothing can be sent.
    Connecting,
    /// This end has announced the channel, and the peer has not answered yet. Messages may be sent; they are delivered in
    /// order even on an unordered channel (RFC 8832, 6).
    Announced,
    /// Both ends know the channel.
    Open,
    /// One end has closed the channel. Messages that were sent before are still delivered.
    Closing,
}

/// State of a channel at this end.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    pub options: ChannelOptions,
    pub state: ChannelState,
    /// Threshold of [`Event::BufferedAmountLow`](crate::Event::BufferedAmountLow), bytes.
    pub low_threshold: u64,
    /// Whether the peer has not answered the OPEN of this end with an ACK.
    pub awaits_ack: bool,
    /// Why the channel is closing.
    pub closed: Option<ChannelClosed>,
    /// User data passed to the association, bytes.
    pub queued_bytes: u64,
    pub counters: ChannelStats,
}

impl Channel {
    pub fn new(options: ChannelOptions, state: ChannelState) -> Self {
        Self {
            options,
            state,
            low_threshold: 0,
            awaits_ack: false,
            closed: None,
            queued_bytes: 0,
            counters: ChannelStats::default(),
        }
    }

    /// How the next message is delivered.
    pub fn delivery(&self) -> Delivery {
        let (lifetime, retransmissions) = match self.options.reliability {
            Reliability::Reliable => (None, None),
            // The engine's 255 means "any number".
            Reliability::Retransmissions(most) => (None, Some(most.min(254) as u8)),
            Reliability::Lifetime(most) => (Some(most), None),
        };
        // RFC 8832, 6: until the peer has answered the OPEN, messages are sent ordered on all channels, so that they
        // cannot overtake the OPEN.
        let ordered = self.options.ordered || self.state == ChannelState::Announced;
        Delivery { lifetime, retransmissions, ordered, ..Delivery::RELIABLE }
    }
}

/// Counters of a channel (those of `RTCDataChannelStats`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ChannelStats {
    /// Messages passed to [`Connection::send`](crate::Connection::send).
    pub messages_sent: u64,
    /// User data of these, bytes.
    pub bytes_sent: u64,
    /// Messages delivered by [`Event::Message`](crate::Event::Message).
    pub messages_received: u64,
    /// User data of these, bytes.
    pub bytes_received: u64,
}
