//! Options of one end of a tunnel.

use ropewalk_base::Duration;

/// When interactive packets are sent on two paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Redundancy {
    /// Never.
    Off,
    /// While the quickest path loses packets and the next one delivers a copy sooner than a repair would arrive, or while
    /// the quickest path owes an acknowledgement; within a limit of a tenth of all bytes and 64 kB/s.
    #[default]
    Auto,
    /// Each one. Costs twice the bytes of all interactive packets.
    Always,
}

/// Parameters of CoDel (RFC 8289, 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelConfig {
    /// Acceptable standing delay of a flow's queue: 5 ms.
    pub target: Duration,
    /// How long the delay may exceed it before a packet is dropped or marked: 100 ms, the round trip of usual flows.
    pub interval: Duration,
}

/// Bookkeeping of a packet that waits, bytes: an estimate.
const BOOKKEEPING: u64 = 128;

/// What a packet of `bytes` takes of the memory while it waits, bytes.
pub const fn packet_cost(bytes: u32) -> u64 {
    bytes as u64 + BOOKKEEPING
}

/// Options of one end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Copies of interactive packets (default: [`Redundancy::Auto`]).
    pub redundancy: Redundancy,
    /// The longest time that a received packet waits for an earlier one of its flow, and that a packet may take beyond
    /// the time in which it would arrive undisturbed (default 500 ms). A smaller value delivers out of order, or not at
    /// all, what a longer wait would have repaired.
    pub latency_budget: Duration,
    /// The longest time for which the driver may do nothing although packets wait for it (default 2 ms: as much as pacing
    /// allows to be sent together). Zero: each packet is handled at once, for more CPU time.
    pub longest_pause: Duration,
    /// The queues' delay limit for interactive flows, and the least for others. For bulk flows both values grow with
    /// the round trip of the slowest path in use, because a flow over that path fills it only with a queue in
    /// proportion to it.
    pub codel: CodelConfig,
    /// Inner bytes that may be queued in all flows together (default 4 MiB). Beyond it the longest queue is shortened.
    pub queue_bytes: u64,
    /// Bytes of received packets that may wait for earlier ones (default 8 MiB). Beyond it the longest wait ends.
    pub held_bytes: u64,
    /// Flows that are told apart at one time (default and maximum: [`Config::FLOWS_MAX`]). Beyond it flows share
    /// queues.
    pub flows: u16,
}

impl Config {
    /// Number of flow slots that the header can name.
    pub const FLOWS_MAX: u16 = 1 << crate::header::SLOT_BITS;
}

impl Default for Config {
    fn default() -> Self {
        Self {
            redundancy: Redundancy::Auto,
            latency_budget: Duration::from_millis(500),
            longest_pause: Duration::from_millis(2),
            codel: CodelConfig {
                target: Duration::from_millis(5),
                interval: Duration::from_millis(100),
            },
            queue_bytes: 4 << 20,
            held_bytes: 8 << 20,
            flows: Self::FLOWS_MAX,
        }
    }
}
