//! The links of all paths in one simulated world, driven by the owner of the clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use ropewalk_base::{Duration, Time};
use ropewalk_netsim::{
    CrossPayload, Host, HostId, LinkId, LinkStats, Outbox, Packet, Port, RouteId, World,
};

use super::ecn;

/// A packet in the simulated world.
#[derive(Clone, Debug)]
pub enum Frame {
    /// An IP packet from a device.
    Packet(Vec<u8>),
    /// A packet of cross traffic, which exists only in the simulated world.
    Cross(u64),
}

impl CrossPayload for Frame {
    fn cross(tag: u64) -> Self {
        Self::Cross(tag)
    }

    fn cross_tag(&self) -> Option<u64> {
        match self {
            Self::Cross(tag) => Some(*tag),
            Self::Packet(_) => None,
        }
    }
}

/// The end of the paths on one side. Packets wait here until they are taken.
#[derive(Clone, Debug, Default)]
pub struct End {
    arrived: VecDeque<(Time, Port, Vec<u8>)>,
}

impl Host<Frame> for End {
    fn receive(&mut self, now: Time, port: Port, packet: Packet<Frame>, _: &mut Outbox<'_, Frame>) {
        if let Frame::Packet(mut bytes) = packet.payload {
            if packet.ecn.is_marked() {
                ecn::mark(&mut bytes);
            }
            self.arrived.push_back((now, port, bytes));
        }
    }

    fn wake(&mut self, _: Time, _: &mut Outbox<'_, Frame>) {}

    fn next_wake(&self) -> Option<Time> {
        None
    }
}

/// A side of all paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// The side of the command.
    Sender,
    /// The side of its peer.
    Receiver,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::Sender, Self::Receiver];

    /// The opposite side.
    pub const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }

    /// The side's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// The routes of a path in the simulated world.
#[derive(Clone, Debug)]
pub struct PathRoutes {
    /// Its name in the scenario.
    pub name: String,
    /// The path's MTU, bytes.
    pub mtu: u32,
    /// From the sender to the receiver, and back.
    pub routes: (RouteId, RouteId),
    /// The path's own link in each direction, for its counters.
    pub links: (LinkId, LinkId),
}

/// A packet that has reached the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The arrival time, which may lie in the past.
    pub at: Time,
    /// The side where it arrived.
    pub side: Side,
    /// Index of its path.
    pub path: usize,
    /// The packet. Return the buffer with [`Links::recycle`].
    pub bytes: Vec<u8>,
}

/// Traffic in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traffic {
    /// Packets offered.
    pub packets: u64,
    /// Bytes offered, IP headers included.
    pub bytes: u64,
    /// Packets delivered, duplicates included.
    pub delivered_packets: u64,
    /// Bytes delivered.
    pub delivered_bytes: u64,
    /// Counters of the path's own link, including cross traffic.
    pub wire: LinkStats,
}

/// Traffic on one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathTraffic {
    /// The path's name.
    pub name: String,
    /// From the sender to the receiver.
    pub up: Traffic,
    /// From the receiver to the sender.
    pub down: Traffic,
}

/// The traffic of all paths while an emulation runs, for other threads. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LiveTraffic {
    inner: Arc<Mutex<TrafficSnapshot>>,
}

/// The traffic at one time.
#[derive(Clone, Debug, Default)]
pub struct TrafficSnapshot {
    /// When it was taken; zero when the emulation began.
    pub at: Time,
    /// Each path.
    pub paths: Vec<PathTraffic>,
    /// Packets that a device refused.
    pub refused: u64,
}

impl LiveTraffic {
    /// Interval between two snapshots.
    pub const INTERVAL: Duration = Duration::from_millis(250);

    /// The latest snapshot. It has no paths before the links are up.
    pub fn latest(&self) -> TrafficSnapshot {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn publish(&self, snapshot: TrafficSnapshot) {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

/// Maximum number of buffers that are kept for reuse.
const SPARE: usize = 4096;

/// The links, in virtual time. The times passed to it must never decrease.
#[derive(Debug)]
pub struct Links {
    world: World<Frame, End>,
    sender: HostId,
    receiver: HostId,
    paths: Vec<PathRoutes>,
    traffic: Vec<PathTraffic>,
    spare: Vec<Vec<u8>>,
    /// Length of a new buffer, bytes.
    buffer_len: usize,
}

impl Links {
    /// Creates the links of `paths` in `world`, between two of its hosts.
    pub fn new(
        world: World<Frame, End>,
        sender: HostId,
        receiver: HostId,
        paths: Vec<PathRoutes>,
    ) -> Self {
        let named =
            |path: &PathRoutes| PathTraffic { name: path.name.clone(), ..Default::default() };
        let traffic = paths.iter().map(named).collect();
        let largest = paths.iter().map(|path| path.mtu).max().unwrap_or(0) as usize;
        Self { world, sender, receiver, paths, traffic, spare: Vec::new(), buffer_len: largest }
    }

    /// The paths.
    pub fn paths(&self) -> &[PathRoutes] {
        &self.paths
    }

    /// Advances the time to `now`.
    pub fn advance(&mut self, now: Time) {
        self.world.run_until(now);
    }

    /// When a packet may arrive next, if any.
    pub fn next_wake(&self) -> Option<Time> {
        self.world.next_wake()
    }

    /// Sends a packet on a path. As in a simulation, its size is that of the IP packet.
    ///
    /// # Panics
    /// If the path does not exist.
    pub fn offer(&mut self, now: Time, from: Side, path: usize, bytes: Vec<u8>) {
        self.world.run_until(now);
        let routes = self.paths[path].routes;
        let traffic = &mut self.traffic[path];
        let (route, traffic) = match from {
            Side::Sender => (routes.0, &mut traffic.up),
            Side::Receiver => (routes.1, &mut traffic.down),
        };
        traffic.packets += 1;
        traffic.bytes += bytes.len() as u64;
        // A device never provides packets longer than its MTU.
        let size = bytes.len() as u32;
        // The counters of the first link show whether it admits the packet.
        let field = ecn::field(&bytes);
        let mut packet = Packet::new(size, 0, Frame::Packet(bytes));
        packet.ecn = field;
        let _ = self.world.inject(route, packet);
    }

    /// Takes a packet that has arrived. Packets of one side are in order; the sender's side comes first.
    pub fn take(&mut self) -> Option<Arrival> {
        for side in Side::BOTH {
            let host = match side {
                Side::Sender => self.sender,
                Side::Receiver => self.receiver,
            };
            if let Some((at, port, bytes)) = self.world.host_mut(host).arrived.pop_front() {
                let path = port.0 as usize;
                let traffic = &mut self.traffic[path];
                let traffic = match side {
                    Side::Receiver => &mut traffic.up,
                    Side::Sender => &mut traffic.down,
                };
                traffic.delivered_packets += 1;
                traffic.delivered_bytes += bytes.len() as u64;
                return Some(Arrival { at, side, path, bytes });
            }
        }
        None
    }

    /// A buffer large enough for the largest packet of any path.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(self.buffer_len, 0);
        buffer
    }

    /// Returns a buffer for reuse.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    /// Traffic of the paths so far.
    pub fn traffic(&self) -> Vec<PathTraffic> {
        let mut all = self.traffic.clone();
        for (traffic, path) in all.iter_mut().zip(&self.paths) {
            traffic.up.wire = self.world.link_stats(path.links.0);
            traffic.down.wire = self.world.link_stats(path.links.1);
        }
        all
    }
}
