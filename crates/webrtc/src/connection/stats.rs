//! Counters of a connection.

use ropewalk_base::{Duration, Time};

use super::{Connection, PATH};
use crate::channel::{ChannelId, ChannelStats};
use crate::event::Violation;

#[derive(Clone, Debug, Default)]
pub(super) struct Counters {
    pub packets_sent: u64,
    pub packets_received: u64,
    pub packets_refused: u64,
    pub messages_dropped: u64,
    pub violations: [u64; Violation::COUNT],
}

/// Counters and measurements of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stats {
    /// SCTP packets returned by [`Connection::poll_transmit`].
    pub packets_sent: u64,
    /// SCTP packets accepted by [`Connection::handle_packet`].
    pub packets_received: u64,
    /// Data that [`Connection::handle_packet`] dropped: not an SCTP packet, a wrong checksum, or other ports.
    pub packets_refused: u64,
    /// Messages that arrived on a channel after this end had closed it.
    pub messages_dropped: u64,
    /// Number of violations of each rule by the peer.
    pub violations: Vec<(Violation, u64)>,
    /// Smoothed round-trip time. `None` before it was measured.
    pub rtt: Option<Duration>,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Retransmitted chunks.
    pub retransmitted_chunks: u64,
}

impl Connection {
    /// The counters and measurements so far.
    pub fn stats(&self, now: Time) -> Stats {
        let view = self.association.path_view(now, PATH);
        let Counters { packets_sent, packets_received, packets_refused, messages_dropped, .. } =
            self.counters;
        let counted = Violation::ALL.into_iter().zip(self.counters.violations);
        Stats {
            packets_sent,
            packets_received,
            packets_refused,
            messages_dropped,
            violations: counted.collect(),
            rtt: view.srtt,
            cwnd_bytes: view.cwnd,
            retransmitted_chunks: self
                .association
                .path_counters()
                .map(|path| path.retransmitted)
                .sum(),
        }
    }

    /// Counters of a channel. `None` if there is no such channel.
    pub fn channel_stats(&self, channel: ChannelId) -> Option<ChannelStats> {
        self.channels.get(&channel.0).map(|known| known.counters)
    }
}
