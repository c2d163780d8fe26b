//! Options of one end of a tunnel.

use ropewalk_base::Duration;

/// When interactive packets are sent on two paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Redundancy {
    /// Never.
    Off,
    /// While the fastest path loses packets and the next one delivers a copy sooner than a repair would arrive, or
    /// while an acknowledgement of the fastest path is overdue; within a limit of a tenth of all bytes and 64 kB/s.
    #[default]
    Auto,
    /// Every interactive packet. Doubles their bytes.
    Always,
}

/// Parameters of CoDel (RFC 8289, 4.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelConfig {
    /// Acceptable standing delay of a flow's queue: 5 ms.
    pub target: Duration,
    /// How long the delay may exceed the target before a packet is dropped or marked: 100 ms, the round-trip time of
    /// typical flows.
    pub interval: Duration,
}

/// Estimated bookkeeping overhead of a waiting packet, bytes.
const BOOKKEEPING: u64 = 128;

/// Memory that a packet of `bytes` takes while it waits, bytes.
pub const fn packet_cost(bytes: u32) -> u64 {
    bytes as u64 + BOOKKEEPING
}

/// Options of one end.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// Copies of interactive packets (default: [`Redundancy::Auto`]).
    pub redundancy: Redundancy,
    /// The maximum time that a received packet waits for an earlier one of its flow, and that a packet may take
    /// beyond its undisturbed arrival time (default 500 ms). With a smaller value, packets that a longer wait would
    /// have repaired are delivered out of order or not at all.
    pub latency_budget: Duration,
    /// The maximum time for which the driver may pause although packets wait for it (default 2 ms: the same as one
    /// burst of pacing). With zero, each packet is handled immediately, for more CPU time.
    pub longest_pause: Duration,
    /// The queues' delay limit for interactive flows, and the minimum for others. For bulk flows both values grow
    /// with the round-trip time of the slowest path in use, because a flow needs a queue in proportion to that to
    /// fill the path.
    pub codel: CodelConfig,
    /// Inner bytes that may be queued in all flows together (default 4 MiB). Beyond it the longest queue is shortened.
    pub queue_bytes: u64,
    /// Bytes of received packets that may wait for earlier ones (default 8 MiB). Beyond it the longest wait ends.
    pub held_bytes: u64,
    /// Number of flows that are distinguished at one time (default and maximum: [`Config::FLOWS_MAX`]). Beyond
    /// it flows share queues.
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
