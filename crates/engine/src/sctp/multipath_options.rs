//! Options of concurrent multipath transfer and of its acknowledgements.

use ropewalk_base::Duration;

use super::extensions::Extensions;

/// When the congestion window of a path may grow (Iyengar et al., 2006, CUC).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum CwndUpdate {
    /// Only when the cumulative TSN of the association advances (SCTP without CMT).
    Off,
    /// When the path's pseudo-cumulative TSN is acknowledged: the oldest TSN that was outstanding there
    /// when it was determined. If that chunk is lost and retransmitted on another path, the window stays
    /// frozen until a TSN sent on this path is acknowledged cumulatively.
    Cuc,
    /// When the oldest transmission outstanding on the path is acknowledged, or the cumulative TSN
    /// advances. A lost chunk no longer counts on the path that lost it, so a retransmission on another
    /// path does not freeze the window.
    #[default]
    CucV2,
}

/// Options for sending SACKs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SackOptions {
    /// Number of packets with DATA after which a SACK is sent (RFC 9260, 6.2: 2). 1 costs twice the SACKs and
    /// saves the wait for the SACK timer at small windows.
    pub every_packets: u32,
    /// SACK.Delay: maximum delay of a SACK (200 ms; values above 500 ms are taken as 500 ms).
    pub delay: Duration,
    /// Acknowledge the first DATA of an association immediately (RFC 9260, 5.1: MUST). Off: as in the simulators
    /// that the papers used.
    pub first_at_once: bool,
    /// Count packets per path instead of per association.
    pub count_per_path: bool,
    /// Send SACKs to the source of the last packet, not to the fastest of the addresses whose DATA they
    /// acknowledge.
    pub to_last: bool,
    /// Bundle SACKs with DATA to the same address if both fit into the packet (RFC 9260, 6.1). Saves a packet
    /// if both ends send; a packet with a SACK holds less data.
    pub with_data: bool,
    /// Send SACKs when the sender of the data requests them by the I bit (RFC 7053), if the peer also
    /// offers this. The sender requests about eight per round trip, and they list only the gap ack blocks
    /// that changed. Off: at least every second packet, with all blocks (RFC 9260, 6.2), which fills the
    /// uplink of an asymmetric link.
    pub on_request: bool,
    /// Limit SACKs to the base MTU of path MTU discovery: a SACK that is dropped for its length is not
    /// repeated, and some three hundred gap ack blocks suffice. Off: as many as fit into the path MTU (RFC
    /// 9260, 6.2: MUST).
    pub within_base: bool,
}

/// Concurrent multipath transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CmtOptions {
    /// Send on all paths at the same time. Off: SCTP without CMT, with a primary path and failover.
    pub concurrent: bool,
    /// Disable CMT towards a peer that does not announce it (RFC 9260, 6.4: an endpoint SHOULD transmit
    /// to the primary path). Off: data is sent on all paths to any peer; its SACKs report the reordering
    /// immediately.
    pub if_agreed: bool,
    /// Split fast retransmit (SFR): reordering between paths does not indicate loss.
    pub split_fast_retransmit: bool,
    /// When congestion windows grow.
    pub cwnd_update: CwndUpdate,
    /// Delayed acknowledgement for CMT (DAC): a gap alone does not cause an immediate SACK.
    pub delayed_ack: bool,
    /// Send no data before every path is confirmed.
    pub hold_data_until_confirmed: bool,
}

impl CmtOptions {
    /// The options that may be used with a peer that supports `agreed`.
    pub(super) const fn towards(self, agreed: Extensions) -> Self {
        if agreed.has(Extensions::CMT) {
            return self;
        }
        if !self.if_agreed {
            return Self { delayed_ack: false, ..self };
        }
        Self {
            concurrent: false,
            split_fast_retransmit: false,
            cwnd_update: CwndUpdate::Off,
            delayed_ack: false,
            ..self
        }
    }
}
