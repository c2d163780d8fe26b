//! Configuration of a connection.

use ropewalk_base::Duration;
use ropewalk_engine::congestion::CongestionFlavour;
use ropewalk_engine::path::PathConfig;
use ropewalk_engine::sctp::wire::Ports;
use ropewalk_engine::sctp::{
    AcceptedRequests, Config as SctpConfig, Extensions, Negotiation, PacketForm, Preset,
    StreamScheduler,
};

/// The DTLS role of this end. It determines the numbers of the channels that this end opens (RFC 8832, 6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DtlsRole {
    /// DTLS client (`a=setup:active`): even numbers.
    Client,
    /// DTLS server (`a=setup:passive`): odd numbers.
    Server,
}

impl DtlsRole {
    /// Whether a channel with this number is one that this end may open.
    pub(crate) const fn owns(self, id: u16) -> bool {
        let odd = id % 2 == 1;
        matches!((self, odd), (Self::Client, false) | (Self::Server, true))
    }

    pub(crate) const fn first(self) -> u16 {
        match self {
            Self::Client => 0,
            Self::Server => 1,
        }
    }
}

/// Configuration of a [`Connection`](crate::Connection).
#[derive(Clone, Debug)]
pub struct Config {
    /// Role in the DTLS handshake.
    pub role: DtlsRole,
    /// SCTP port of this end (`a=sctp-port` of its session description; 5000).
    pub local_port: u16,
    /// SCTP port of the peer (`a=sctp-port` of the peer's session description; 5000).
    pub remote_port: u16,
    /// Maximum size of an SCTP packet, bytes: it must fit into one DTLS record and one datagram on the path (1132).
    /// RFC 8831, 5: IP packets should initially have at most 1200 bytes with IPv4. The headers of IPv4, UDP and a
    /// record of DTLS 1.2 with AES-GCM take 65 of them.
    pub max_packet: u32,
    /// Maximum size of a message that this end accepts, bytes (`a=max-message-size` of its session description;
    /// 262,144). A longer message closes its channel.
    pub max_message_size: usize,
    /// Maximum size of a message that the peer accepts, bytes (`a=max-message-size` of the peer's session
    /// description; 65,536 if that has none, RFC 8841, 6; 0 there means any length: use `usize::MAX`).
    pub peer_max_message_size: usize,
    /// Maximum amount of data that waits for a peer's acknowledgement, bytes (4 MiB). The last message may exceed it.
    pub send_buffer: u64,
    /// The receive window: maximum amount of data that the peer sends before the application takes it, bytes (1 MiB).
    /// It must be at least the product of rate and round-trip time. Data that the peer retransmits needs at most the
    /// same amount of memory again.
    pub receive_buffer: u64,
    /// Maximum number of channels that are open at the same time, including those of the peer (1024).
    pub max_channels: usize,
    /// Maximum number of bytes of labels and protocols of all open channels together (1 MiB).
    pub text_limit: usize,
    /// Name of the congestion control, as in [`ropewalk_engine::congestion::Congestion::NAMES`] (`cubic`).
    pub congestion: &'static str,
    /// Whether messages of different channels are interleaved (RFC 8260) if the peer supports it (true).
    pub interleaving: bool,
}

impl Config {
    /// The defaults for this role.
    pub const fn new(role: DtlsRole) -> Self {
        Self {
            role,
            local_port: 5000,
            remote_port: 5000,
            max_packet: 1132,
            max_message_size: 256 << 10,
            peer_max_message_size: 64 << 10,
            send_buffer: 4 << 20,
            receive_buffer: 1 << 20,
            max_channels: 1024,
            text_limit: 1 << 20,
            congestion: "cubic",
            interleaving: true,
        }
    }

    pub(crate) const fn ports(&self) -> Ports {
        Ports { source: self.local_port, destination: self.remote_port }
    }

    /// The configuration of the association.
    ///
    /// # Panics
    /// If [`Self::congestion`] is not the name of a congestion control.
    pub(crate) fn sctp(&self) -> SctpConfig {
        let path = PathConfig { mtu: self.max_packet, ..PathConfig::default() };
        let buffer = self.receive_buffer.saturating_mul(2);
        let mut sctp = SctpConfig::preset(Preset::Live, vec![path], buffer);
        // pion never retransmits a chunk that was acknowledged by a gap ack block and is then reported as missing.
        // With space for twice the window, nothing has to be dropped.
        sctp.window_headroom = u32::try_from(self.receive_buffer).unwrap_or(u32::MAX);
        // RFC 8261, 6.1: the association is single-homed, and INIT and INIT ACK list no addresses.
        sctp.addresses = Some(Vec::new());
        // RFC 8831, 5: partial reliability and stream reconfiguration are required.
        sctp.negotiation = Negotiation::Listed(Extensions::FORWARD_TSN);
        sctp.reconfiguration = true;
        sctp.accepted_requests = AcceptedRequests { stream_resets: true, ..Default::default() };
        sctp.interleaving = self.interleaving;
        // RFC 8831, 6.4: channels share the capacity by priority.
        sctp.stream_scheduler = StreamScheduler::WeightedFair;
        // RFC 8831, 6.2: the maximum number of streams, so that every number can be used.
        sctp.streams = u16::MAX;
        // RFC 8261, 4: DTLS carries complete packets, and ECN is not available above it.
        (sctp.lower_header, sctp.mtu_discovery) = (0, None);
        (sctp.ecn, sctp.accurate_ecn) = (false, false);
        sctp.packet_form = PacketForm::Standard;
        sctp.send_buffer = self.send_buffer;
        // The handshake is not secured by a loss of its first packets: the DTLS connection exists already.
        sctp.rto.initial = Duration::from_millis(500);
        let known = sctp.use_congestion(self.congestion, CongestionFlavour::Published);
        known.unwrap_or_else(|error| panic!("{error}"));
        sctp
    }
}
