//! Time series at a chosen interval, and the first arrivals for sequence-time plots.

use serde::{Deserialize, Serialize};

/// Values per interval; `time_s` is its end.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Series {
    /// End of the interval, s since the start.
    pub time_s: Vec<f64>,
    /// User data delivered in the interval, bit/s.
    pub goodput_bps: Vec<f64>,
    /// User data delivered so far, bytes.
    pub delivered_bytes: Vec<u64>,
    /// Bytes held out of order.
    pub receive_buffer_bytes: Vec<u64>,
    /// Receive window, bytes.
    pub receive_window_bytes: Vec<u64>,
    /// Each path.
    pub paths: Vec<PathSeries>,
}

/// One path over time.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct PathSeries {
    /// Name.
    pub name: String,
    /// User data acknowledged in the interval, bit/s.
    pub throughput_bps: Vec<f64>,
    /// Congestion window, bytes.
    pub cwnd_bytes: Vec<u64>,
    /// In flight, bytes.
    pub in_flight_bytes: Vec<u64>,
    /// Smoothed RTT, s.
    pub srtt_s: Vec<Option<f64>>,
}

/// The first seconds packet by packet.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Sequence {
    /// Arrivals on each path.
    pub paths: Vec<SequencePath>,
    /// Chunks delivered to the application so far.
    pub delivered: SequencePath,
    /// Time from which data is missing because the limit was reached, s since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_s: Option<f64>,
}

/// Times and chunk numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct SequencePath {
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Times, s since the start.
    pub time_s: Vec<f64>,
    /// Chunk numbers.
    pub seq: Vec<u64>,
}
