//! The vocabulary of results: `ropewalk.run/1`.

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
    /// Root of the seed tree; text, since it may exceed what JSON readers keep exactly.
    pub seed: String,
    /// Length of the measured interval, s.
    pub duration_s: f64,
    /// Left out before it, s.
    pub warmup_s: f64,
    /// User data handed to the application in order, bit/s.
    pub goodput_bps: f64,
    /// The same with the headers of a full packet counted, as papers do, bit/s on the wire.
    pub goodput_wire_bps: f64,
    /// User data handed over, bytes.
    pub delivered_bytes: u64,
    /// Chunks handed over.
    pub delivered_packets: u64,
    /// When the wanted bytes had been delivered, s since the start; none if there was no such wish.
    pub completion_s: Option<f64>,
    /// When the first data arrived, s since the start.
    pub first_arrival_s: Option<f64>,
    /// Each path.
    pub paths: Vec<PathResult>,
    /// Receive buffer.
    pub receive_buffer: ReceiveBufferResult,
    /// Arrival to in-order delivery, per chunk.
    pub blocking_time_s: BlockingTime,
    /// First transmission to in-order delivery, per chunk.
    pub app_delay_s: AppDelay,
    /// Reordering.
    pub out_of_order: OutOfOrder,
    /// Retransmissions of data that had arrived.
    pub spurious_retransmissions: u64,
    /// The physical limit, bit/s on the wire; see the guide. None where shared links make it
    /// meaningless.
    pub flow_control_bound_bps: Option<f64>,
    /// `goodput_wire_bps / flow_control_bound_bps`.
    pub share_of_bound: Option<f64>,
    /// With several associations: goodput of each, bit/s.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub association_goodput_bps: Vec<f64>,
    /// How fast it ran.
    pub engine: EngineFigures,
}

/// One path, all associations together.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct PathResult {
    /// Name.
    pub name: String,
    /// Packets with data sent.
    pub sent_packets: u64,
    /// Chunks sent again.
    pub retransmitted_packets: u64,
    /// Transmissions given up as lost.
    pub lost_packets: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Reductions of the window that `tcp.recovery` found needless and took back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub undone_reductions: u64,
    /// User data acknowledged on this path, bytes.
    pub delivered_bytes: u64,
    /// The same per second, bit/s.
    pub throughput_bps: f64,
    /// Delivered bits on the wire over capacity, of the path's own link, 0 to 1.
    pub utilisation: f64,
    /// Smoothed round trip at the end, s.
    pub srtt_s: Option<f64>,
    /// Congestion window at the end, bytes.
    pub cwnd_bytes: u64,
}

/// What most runs have none of is left out of their results.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Occupancy of the receive buffer by out-of-order data, weighted with time.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct ReceiveBufferResult {
    /// Most.
    pub max_bytes: u64,
    /// Mean.
    pub mean_bytes: f64,
    /// Exceeded 1 % of the time.
    pub p99_bytes: u64,
    /// Time in which a path had window and there was data, but the receive window was shut, s.
    pub blocked_s: f64,
}

/// Waiting in the receive buffer, s.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct BlockingTime {
    /// Longest.
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
    /// Longest.
    pub max: f64,
}

/// Reordering at the receiver.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub struct OutOfOrder {
    /// Stored chunks over chunks received, duplicates apart.
    pub ratio: f64,
    /// Most bytes stored.
    pub max_bytes: u64,
}

/// How fast it ran. Timing figures: the only ones that differ between two runs of one seed.
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
