//! The format of results: `ropewalk.run/1`.

use serde::{Deserialize, Serialize};

/// Result of a run. Rates are bits per second of user data unless said otherwise, sizes bytes,
/// times seconds; all over the measured interval, which begins after the warm-up.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct RunResult {
    /// `ropewalk.run/1`.
    pub schema: String,
    /// Protocol.
    pub protocol: String,
    /// Scheduler.
    pub scheduler: String,
    /// Root of the seed tree; as text, because it can exceed the exact range of JSON readers.
    pub seed: String,
    /// Length of the measured interval, s.
    pub duration_s: f64,
    /// Length of the warm-up, s.
    pub warmup_s: f64,
    /// User data delivered to the application in order, bit/s.
    pub goodput_bps: f64,
    /// Goodput including the headers of full packets, as papers count it, bit/s on the wire.
    pub goodput_wire_bps: f64,
    /// User data delivered, bytes.
    pub delivered_bytes: u64,
    /// Chunks delivered.
    pub delivered_packets: u64,
    /// Time at which the wanted bytes had been delivered, s since the start; none if no number was set.
    pub completion_s: Option<f64>,
    /// Time of the first arrival of data, s since the start.
    pub first_arrival_s: Option<f64>,
    /// Each path.
    pub paths: Vec<PathResult>,
    /// Occupancy of the receive buffer.
    pub receive_buffer: ReceiveBufferResult,
    /// Time from arrival to in-order delivery, per chunk.
    pub blocking_time_s: BlockingTime,
    /// Time from first transmission to in-order delivery, per chunk.
    pub app_delay_s: AppDelay,
    /// Reordering.
    pub out_of_order: OutOfOrder,
    /// Number of retransmissions of data that had arrived.
    pub spurious_retransmissions: u64,
    /// The flow-control bound, bit/s on the wire; see the guide. None with shared links, for which it is
    /// undefined.
    pub flow_control_bound_bps: Option<f64>,
    /// `goodput_wire_bps / flow_control_bound_bps`.
    pub share_of_bound: Option<f64>,
    /// With several associations: goodput of each, bit/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub association_goodput_bps: Vec<f64>,
    /// Speed of the simulation.
    pub engine: EngineFigures,
}

/// One path, summed over all associations.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct PathResult {
    /// Name.
    pub name: String,
    /// Packets with data sent.
    pub sent_packets: u64,
    /// Chunks retransmitted.
    pub retransmitted_packets: u64,
    /// Transmissions that counted as lost.
    pub lost_packets: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Window reductions that `tcp.recovery` found spurious and undid.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undone_reductions: u64,
    /// User data acknowledged on this path, bytes.
    pub delivered_bytes: u64,
    /// User data acknowledged per second, bit/s.
    pub throughput_bps: f64,
    /// Delivered bits on the wire divided by the capacity of the path's own link, 0 to 1.
    pub utilisation: f64,
    /// Smoothed RTT at the end, s.
    pub srtt_s: Option<f64>,
    /// Congestion window at the end, bytes.
    pub cwnd_bytes: u64,
}

/// Leaves out counters that are zero in most results.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Time-weighted occupancy of the receive buffer by out-of-order data.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ReceiveBufferResult {
    /// Maximum.
    pub max_bytes: u64,
    /// Mean.
    pub mean_bytes: f64,
    /// 99th percentile.
    pub p99_bytes: u64,
    /// Time for which a path had window and data, but the receive window was closed, s.
    pub blocked_s: f64,
}

/// Waiting time in the receive buffer, s.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct BlockingTime {
    /// Maximum.
    pub max: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Delay between the applications, s.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct AppDelay {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

/// Reordering at the receiver.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct OutOfOrder {
    /// Stored chunks divided by received chunks, without duplicates.
    pub ratio: f64,
    /// Maximum number of bytes stored.
    pub max_bytes: u64,
}

/// Speed of the simulation. Only these figures differ between two runs with the same seed.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct EngineFigures {
    /// Events of the network.
    pub events: u64,
    /// Chunks delivered, warm-up included.
    pub packets: u64,
    /// CPU time, s.
    pub cpu_s: f64,
    /// `packets / cpu_s`.
    pub packets_per_cpu_s: f64,
}
