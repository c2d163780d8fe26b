//! Statistics of an association.

use std::net::SocketAddr;

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::{PathCounters, SenderStats};

use super::peer::Peer;

/// Statistics of one path.
#[derive(Clone, Copy, Debug)]
pub struct PathStats {
    /// The peer's address, if known.
    pub remote: Option<SocketAddr>,
    /// Index of the local socket, if known.
    pub socket: Option<usize>,
    /// Whether the path may carry data.
    pub status: PathStatus,
    /// Counters since the association began.
    pub counters: PathCounters,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Largest IP packet that the path is known to carry, bytes.
    pub mtu_bytes: u32,
    /// Smoothed round trip, seconds; none before the first sample.
    pub srtt_s: Option<f64>,
}

/// Statistics of an association. The names are those of the results of a run.
#[derive(Clone, Debug)]
pub struct Stats {
    /// When they were taken, in nanoseconds of the endpoint's clock.
    pub at: Time,
    /// Statistics of each path.
    pub paths: Vec<PathStats>,
    /// Statistics of the sender.
    pub sender: SenderStats,
    /// Bytes that wait out of order in the receive buffer now.
    pub out_of_order_bytes: u64,
    /// Time-weighted mean of the bytes that wait out of order.
    pub mean_out_of_order_bytes: f64,
    /// Maximum of the bytes that wait out of order.
    pub max_out_of_order_bytes: u64,
}

impl Stats {
    pub(super) fn of(peer: &mut Peer, now: Time) -> Self {
        peer.machine.settle_measurements(now);
        let machine = &peer.machine;
        let path = |(i, counters): (usize, &PathCounters)| {
            let id = PathId::from_index(i);
            let view = machine.path_view(now, id);
            let route = peer.routes.get(i).copied().flatten();
            PathStats {
                remote: route.map(|r| r.remote),
                socket: route.map(|r| r.socket),
                status: machine.path_status(id),
                counters: *counters,
                cwnd_bytes: view.cwnd,
                in_flight_bytes: view.in_flight,
                mtu_bytes: machine.path_mtu(id),
                srtt_s: view.srtt.map(|d| d.as_secs_f64()),
            }
        };
        let receive = machine.receive_stats();
        Self {
            at: now,
            paths: machine.path_counters().enumerate().map(path).collect(),
            sender: *machine.sender_stats(),
            out_of_order_bytes: machine.receive_occupancy().0,
            mean_out_of_order_bytes: receive.occupancy.mean(),
            max_out_of_order_bytes: receive.occupancy.max(),
        }
    }
}
