//! Statistics of an association.

use std::fmt;
use std::net::SocketAddr;

use ropewalk_base::{PathId, Time};
use ropewalk_engine::path::{PathStatus, PathUse};
use ropewalk_engine::sctp::association::{PathCounters, SenderStats};

use super::peer::{Peer, Route};
use super::publish::PathTraffic;
use super::state::EndpointState;

/// The local end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalAddress {
    /// Address and port that packets are sent from. The address is unspecified while only the system knows it.
    pub address: SocketAddr,
    /// The interface, if known.
    pub interface: Option<String>,
}

impl LocalAddress {
    /// The interface that distinguishes this link from others. `None` on loopback, where all paths have the
    /// same one.
    pub fn link(&self) -> Option<&str> {
        self.interface.as_deref().filter(|_| !self.address.ip().is_loopback())
    }

    /// The name of the link if known, otherwise the address without its port, which may differ from run to run.
    pub fn link_name(&self) -> String {
        match self.link() {
            None if !self.address.ip().is_unspecified() => self.address.ip().to_string(),
            _ => self.to_string(),
        }
    }
}

/// The name of the link if known, otherwise the address.
impl fmt::Display for LocalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.link() {
            Some(link) => f.write_str(link),
            // The system chooses the interface for each packet.
            None if self.address.ip().is_unspecified() => f.write_str("default route"),
            None => self.address.fmt(f),
        }
    }
}

/// Statistics of one path.
#[derive(Clone, Debug)]
pub struct PathStats {
    /// The peer's address, if known.
    pub remote: Option<SocketAddr>,
    /// The local end, if known.
    pub local: Option<LocalAddress>,
    /// Whether the path may carry data.
    pub status: PathStatus,
    /// When the path carries data ([`super::Association::set_path_use`]).
    pub usage: PathUse,
    /// Counters since the association began.
    pub counters: PathCounters,
    /// User data that arrived on the path and was stored, bytes. Duplicates are not counted.
    pub received_bytes: u64,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
    /// Bytes in flight.
    pub in_flight_bytes: u64,
    /// Largest IP packet that the path is known to carry, bytes.
    pub mtu_bytes: u32,
    /// Smoothed round-trip time, seconds. `None` before the first sample.
    pub srtt_s: Option<f64>,
    /// The last round-trip time sample, seconds. `None` before the first sample.
    pub last_rtt_s: Option<f64>,
    /// Part of the delay that is queueing, caused by this end or by other flows, seconds.
    pub queueing_s: f64,
    /// Packets of the path, headers included.
    pub traffic: PathTraffic,
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
    /// Free bytes of the receive buffer.
    pub receive_free_bytes: u64,
    /// Chunks received again: their retransmission was spurious.
    pub duplicate_chunks: u64,
    /// Bytes that wait out of order in the receive buffer now.
    pub out_of_order_bytes: u64,
    /// Time-weighted mean of the bytes that wait out of order.
    pub mean_out_of_order_bytes: f64,
    /// Maximum of the bytes that wait out of order.
    pub max_out_of_order_bytes: u64,
}

impl Stats {
    pub(super) fn of(state: &mut EndpointState, peer: &mut Peer) -> Self {
        let now = state.clock.now();
        peer.machine.settle_measurements(now);
        let machine = &peer.machine;
        let path = |(i, counters): (usize, &PathCounters)| {
            let id = PathId::from_index(i);
            let view = machine.path_view(now, id);
            let route = peer.routes.get(i).copied().flatten();
            PathStats {
                remote: route.map(|route| route.remote),
                local: route.map(|route| state.local_end(now, route)),
                status: machine.path_status(id),
                usage: view.usage,
                counters: *counters,
                received_bytes: machine.received_bytes(id),
                cwnd_bytes: view.cwnd,
                in_flight_bytes: view.in_flight,
                mtu_bytes: machine.path_mtu(id),
                srtt_s: view.srtt.map(|d| d.as_secs_f64()),
                last_rtt_s: view.last_rtt.map(|d| d.as_secs_f64()),
                queueing_s: view.queueing.as_secs_f64(),
                traffic: peer.traffic.get(i).copied().unwrap_or_default(),
            }
        };
        let receive = machine.receive_stats();
        Self {
            at: now,
            paths: machine.path_counters().enumerate().map(path).collect(),
            sender: *machine.sender_stats(),
            receive_free_bytes: machine.receive_occupancy().1,
            duplicate_chunks: receive.duplicates,
            out_of_order_bytes: machine.receive_occupancy().0,
            mean_out_of_order_bytes: receive.occupancy.mean(),
            max_out_of_order_bytes: receive.occupancy.max(),
        }
    }
}

impl EndpointState {
    /// The local end of a route.
    pub(super) fn local_end(&mut self, now: Time, route: Route) -> LocalAddress {
        let link = &self.links[route.socket];
        let ip = route.source.unwrap_or_else(|| link.address().ip());
        let address = SocketAddr::new(ip, self.sockets[route.socket].local().port());
        let known = link.name().map(str::to_owned);
        let interface = known.or_else(|| self.own_addresses.interface_of(now, ip));
        LocalAddress { address, interface }
    }
}
