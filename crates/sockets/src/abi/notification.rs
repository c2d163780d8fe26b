//! Notifications (RFC 6458, 6.1) in the kernel's layout.

use std::net::SocketAddr;

use super::Image;
use super::control::SendInfo;
use super::number::notification as number;
use crate::address;

/// `SCTP_PARTIAL_DELIVERY_ABORTED`.
const ABORTED: u32 = 0;

/// Authentication events that the program is notified of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum KeyState {
    /// `SCTP_AUTH_NEW_KEY`: the peer uses the key for the first time.
    New = 0,
    /// `SCTP_AUTH_FREE_KEY`: this end no longer sends with the key.
    Free = 1,
    /// `SCTP_AUTH_NO_AUTH`: the peer does not support authenticated chunks.
    NoAuthentication = 2,
}

/// State changes of an association.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum AssociationState {
    /// The association is established.
    CommUp = 0,
    /// The association has failed.
    CommLost = 1,
    /// The peer has restarted.
    Restart = 2,
    /// The association was shut down.
    ShutdownComplete = 3,
    /// The association could not be established.
    CannotStart = 4,
}

/// Changes of an address of the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum AddressState {
    /// The address is reachable again.
    Available = 0,
    /// The address is unreachable.
    Unreachable = 1,
    /// The peer has removed the address.
    Removed = 2,
    /// The peer has added the address.
    Added = 3,
    /// The address has become the primary address at the peer's request.
    MadePrimary = 4,
    /// The address was confirmed.
    Confirmed = 5,
}

/// A notification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notification {
    /// `SCTP_ASSOC_CHANGE`.
    Association {
        /// The change.
        state: AssociationState,
        /// Code of the error cause. 0 for none. Programs see it in network byte order, as with
        /// Linux.
        error: u16,
        /// Outbound and inbound streams.
        streams: (u16, u16),
        /// The peer's ABORT chunk, if there was one.
        abort: Vec<u8>,
    },
    /// `SCTP_PEER_ADDR_CHANGE`.
    Address {
        /// The change.
        state: AddressState,
        /// The address, as the socket reports it.
        address: SocketAddr,
    },
    /// `SCTP_SEND_FAILED` and `SCTP_SEND_FAILED_EVENT`.
    SendFailed {
        /// Whether some of the message was sent.
        sent: bool,
        /// Send parameters of the message.
        info: SendInfo,
        /// Bytes of the message.
        bytes: Vec<u8>,
    },
    /// `SCTP_SHUTDOWN_EVENT`.
    Shutdown,
    /// `SCTP_PARTIAL_DELIVERY_EVENT`: a message was delivered in part, and the rest will not arrive.
    PartialDeliveryAborted {
        /// Stream of the message.
        stream: u16,
        /// Stream sequence number of the message.
        sequence: u16,
    },
    /// `SCTP_SENDER_DRY_EVENT`.
    SenderDry,
    /// `SCTP_STREAM_RESET_EVENT`.
    StreamsReset {
        /// Direction and outcome.
        flags: u16,
        /// The streams. Empty for all streams.
        streams: Vec<u16>,
    },
    /// `SCTP_ADAPTATION_INDICATION`.
    Adaptation {
        /// The peer's adaptation layer indication.
        layer: u32,
    },
    /// `SCTP_AUTHENTICATION_EVENT`.
    Key {
        /// The event.
        state: KeyState,
        /// Number of the shared key.
        number: u16,
    },
    /// `SCTP_ASSOC_RESET_EVENT`.
    AssociationReset {
        /// Outcome.
        flags: u16,
        /// The next TSN of this end and of the peer.
        tsns: (u32, u32),
    },
    /// `SCTP_STREAM_CHANGE_EVENT`.
    StreamsChanged {
        /// Outcome.
        flags: u16,
        /// Inbound and outbound streams of the association. On failure, the numbers that were
        /// requested.
        streams: (u16, u16),
    },
}

impl Notification {
    /// Types under which a program may have subscribed to it. The first subscribed type is used.
    pub const fn types(&self) -> &'static [u16] {
        match self {
            Self::Association { .. } => &[number::ASSOC_CHANGE],
            Self::Address { .. } => &[number::PEER_ADDR_CHANGE],
            Self::SendFailed { .. } => &[number::SEND_FAILED_EVENT, number::SEND_FAILED],
            Self::Shutdown => &[number::SHUTDOWN],
            Self::PartialDeliveryAborted { .. } => &[number::PARTIAL_DELIVERY],
            Self::SenderDry => &[number::SENDER_DRY],
            Self::StreamsReset { .. } => &[number::STREAM_RESET],
            Self::Adaptation { .. } => &[number::ADAPTATION],
            Self::Key { .. } => &[number::AUTHENTICATION],
            Self::AssociationReset { .. } => &[number::ASSOC_RESET],
            Self::StreamsChanged { .. } => &[number::STREAM_CHANGE],
        }
    }

    /// The bytes of a notification of type `kind` about an association.
    pub fn image(&self, kind: u16, id: i32) -> Vec<u8> {
        let body = match self {
            Self::Association { state, error, streams, abort } => Image::new()
                .u16(*state as u16)
                .u16(error.to_be())
                .u16(streams.0)
                .u16(streams.1)
                .i32(id)
                .bytes(abort),
            Self::Address { state, address } => {
                Image::new().bytes(&address::storage(*address)).i32(*state as i32).i32(0).i32(id)
            }
            Self::SendFailed { info, bytes, .. } => {
                let info = SendInfo { association: id, ..*info };
                let info = match kind {
                    number::SEND_FAILED => info.to_sndrcv(),
                    _ => info.to_sndinfo(),
                };
                Image::new().u32(0).bytes(&info).i32(id).bytes(bytes)
            }
            Self::Shutdown | Self::SenderDry => Image::new().i32(id),
            Self::PartialDeliveryAborted { stream, sequence } => {
                Image::new().u32(ABORTED).i32(id).u32((*stream).into()).u32((*sequence).into())
            }
            Self::StreamsReset { streams, .. } => {
                streams.iter().fold(Image::new().i32(id), |image, stream| image.u16(*stream))
            }
            Self::Adaptation { layer } => Image::new().u32(*layer).i32(id),
            // The second number is not used.
            Self::Key { state, number } => {
                Image::new().u16(*number).u16(0).u32(*state as u32).i32(id)
            }
            Self::AssociationReset { tsns, .. } => Image::new().i32(id).u32(tsns.0).u32(tsns.1),
            Self::StreamsChanged { streams, .. } => {
                Image::new().i32(id).u16(streams.0).u16(streams.1)
            }
        };
        let body = body.finish();
        let flags = match self {
            Self::SendFailed { sent, .. } => u16::from(*sent),
            Self::StreamsReset { flags, .. }
            | Self::AssociationReset { flags, .. }
            | Self::StreamsChanged { flags, .. } => *flags,
            _ => 0,
        };
        Image::new()
            .u16(number::BASE + kind)
            .u16(flags)
            .u32(8 + body.len() as u32)
            .bytes(&body)
            .finish()
    }
}
