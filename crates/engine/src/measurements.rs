//! Measurements of the sending side.

use ropewalk_base::{Duration, Time};

/// Counters of one path since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounters {
    /// Packets with DATA sent.
    pub sent_packets: u64,
    /// Chunks sent, copies and retransmissions included.
    pub sent_chunks: u64,
    /// Chunks that had been sent before.
    pub retransmitted: u64,
    /// Transmissions counted as lost.
    pub lost: u64,
    /// User data that the peer reported for this path, bytes.
    pub delivered_bytes: u64,
    /// Expiries of T3.
    pub timeouts: u64,
    /// Fast retransmits that halved the window.
    pub fast_retransmits: u64,
    /// Reductions of the window because of packets marked by the network (ECN).
    pub marked: u64,
    /// Reductions of the window that were spurious and undone.
    pub undone: u64,
}

/// Measurements of the sender since the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Time during which a path had congestion window and there was data, but the receive window was
    /// closed.
    pub blocked: Duration,
    /// SACKs processed.
    pub sacks: u64,
    /// Chunks retransmitted on another path to open a blocked window.
    pub unblocked: u64,
    /// Messages abandoned at the end of their lifetime or of their retransmissions (RFC 3758).
    pub abandoned: u64,
    /// Windows halved because the data of their path kept the receive window closed.
    pub penalised: u64,
}

/// Accumulates [`SenderStats`].
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Measurements {
    blocked_since: Option<Time>,
    pub stats: SenderStats,
}

impl Measurements {
    /// Records whether the receive window is closed from now on.
    #[inline]
    pub fn set_blocked(&mut self, now: Time, blocked: bool) {
        match (self.blocked_since, blocked) {
            (None, true) => self.blocked_since = Some(now),
            (Some(since), false) => {
                self.stats.blocked += now.since(since);
                self.blocked_since = None;
            }
            _ => {}
        }
    }

    /// Adds the blocked time up to now.
    pub fn settle(&mut self, now: Time) {
        if let Some(since) = self.blocked_since {
            self.stats.blocked += now.since(since);
            self.blocked_since = Some(now);
        }
    }
}
