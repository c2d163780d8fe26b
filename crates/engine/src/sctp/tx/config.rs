//! Configuration of a sender.

use ropewalk_base::Duration;

use super::queue::ChunkSizes;
use crate::congestion::IdleDecay;
use crate::path::MtuRange;
use crate::recovery::LossDetection;
use crate::scheduler::RetransmissionPolicy;
use crate::sctp::chunk::Data;
use crate::sctp::config::{CmtOptions, Config, WindowCheck};
use crate::sctp::packet::PacketForm;

/// The part of an association's configuration that its sender needs. It changes when the peer's
/// capabilities become known, and when the user changes parameters.
#[derive(Clone, Copy, Debug)]
pub struct TxConfig {
    pub cmt: CmtOptions,
    pub recovery: LossDetection,
    pub retransmission: RetransmissionPolicy,
    pub idle_decay: IdleDecay,
    pub window_check: WindowCheck,
    pub max_burst: u32,
    /// Maximum number of chunks with a TSN that are not acknowledged cumulatively.
    pub most_outstanding: u32,
    pub rto_max: Duration,
    pub send_buffer: u64,
    /// `u64::MAX` without a limit, because this takes less space than an `Option`; the next one too.
    pub unsent_limit: u64,
    pub peer_buffer_limit: u64,
    /// Path MTU discovery. `None`: the configured MTU is taken for granted.
    pub mtu_discovery: Option<MtuRange>,
    /// Bytes of a packet before its first chunk, headers of lower layers included.
    pub headers: u32,
    /// Bytes of a packet with DATA before its first chunk, headers of lower layers included.
    pub data_headers: u32,
    /// Bytes of a packet that no DATA chunk may use: headers, and a timestamp if one is configured.
    pub reserved: u32,
    /// The layout of packets on the wire.
    pub form: PacketForm,
    /// Whether packets with DATA carry a timestamp.
    pub stamps: bool,
    /// Whether the times of packets with DATA are recorded, since the peer echoes their TSNs.
    pub records_times: bool,
    /// Whether a chunk that is too long for a path is sent in pieces.
    pub pieces: bool,
    /// Whether the peer supports FORWARD-TSN, so that chunks with a TSN may be abandoned.
    pub abandons: bool,
    /// Whether messages are sent as I-DATA.
    pub interleaves: bool,
    /// Whether abandoned messages are kept until the user takes them.
    pub reports_abandoned: bool,
}

/// Maximum number of outstanding chunks: half of the SSN space, beyond which later and earlier SSNs
/// cannot be distinguished, and half of the reach of gap ack blocks (RFC 9260, 3.3.4, 6.6). With packets
/// of 1500 B this is a window of 48 MB.
const OUTSTANDING_LIMIT: u32 = (1 << 15) - 1;

const fn limit(limit: Option<u64>) -> u64 {
    match limit {
        Some(limit) => limit,
        None => u64::MAX,
    }
}

impl TxConfig {
    /// The configuration before the peer is known.
    pub const fn of(config: &Config) -> Self {
        Self {
            cmt: config.cmt,
            recovery: config.recovery,
            retransmission: config.retransmission,
            idle_decay: config.idle_decay,
            window_check: config.window_check,
            max_burst: config.max_burst,
            most_outstanding: OUTSTANDING_LIMIT,
            rto_max: config.rto.max,
            send_buffer: config.send_buffer,
            unsent_limit: limit(config.unsent_limit),
            peer_buffer_limit: limit(config.peer_buffer_limit),
            mtu_discovery: config.mtu_discovery,
            headers: config.headers(),
            data_headers: config.data_headers(),
            reserved: config.reserved(),
            form: config.packet_form,
            stamps: false,
            records_times: false,
            pieces: false,
            abandons: false,
            interleaves: false,
            reports_abandoned: config.reports_abandoned,
        }
    }

    /// Leaves room for a chunk of `bytes` in each packet.
    pub const fn reserve(&mut self, bytes: u32) {
        self.headers += bytes;
        self.data_headers += bytes;
        self.reserved += bytes;
    }

    /// The part of the peer's receive buffer that is used, bytes.
    #[inline]
    pub const fn used_buffer(&self, offered: u64) -> u64 {
        if self.peer_buffer_limit < offered { self.peer_buffer_limit } else { offered }
    }

    /// Whether path MTU discovery is enabled.
    #[inline]
    pub const fn discovers_mtu(&self) -> bool {
        self.mtu_discovery.is_some()
    }

    /// Largest DATA chunk in a packet of `mtu` bytes.
    pub const fn chunk_within(&self, mtu: u32) -> u32 {
        (mtu - self.reserved) / 4 * 4
    }

    /// The largest chunks in packets of `mtu` bytes.
    pub const fn chunk_sizes(&self, mtu: u32) -> ChunkSizes {
        let header = if self.interleaves { Data::INTERLEAVED_HEADER } else { Data::HEADER };
        let payload = self.chunk_within(mtu) - header;
        let (datagram, datagram_header) = match self.form {
            PacketForm::Standard => (payload, header),
            PacketForm::Compact => (mtu - self.data_headers - Data::COMPACT_HEADER, Data::HEADER),
        };
        ChunkSizes { payload, datagram, header, datagram_header }
    }

    /// Length of a packet with only this DATA chunk, without headers, bytes. `chunk` is its length with
    /// the header of RFC 9260, and `datagram` the length of its user data if it is a datagram.
    #[inline]
    pub const fn bytes_alone(&self, chunk: u32, datagram: Option<u32>) -> u32 {
        match (self.form, datagram) {
            (PacketForm::Compact, Some(payload)) => Data::COMPACT_HEADER + payload,
            _ => chunk,
        }
    }

    /// Length of a packet with only a DATA chunk of `chunk` bytes, headers included, or with a HEARTBEAT
    /// if `chunk` is 0. In the compact form it is a lower bound, because the size of a datagram depends
    /// on its padding.
    pub const fn packet_size(&self, chunk: u32) -> u32 {
        match self.form {
            PacketForm::Standard => self.headers + chunk,
            PacketForm::Compact => self.data_headers + chunk.saturating_sub(Data::HEADER),
        }
    }
}
