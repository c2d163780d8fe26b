//! The links of all paths in one simulated world, driven by whoever has the clock.

use std::collections::VecDeque;

use ropewalk_base::Time;
use ropewalk_netsim::{
    CrossPayload, Host, HostId, LinkId, LinkStats, Outbox, Packet, Port, RouteId, World,
};

use super::ecn;

/// What travels in the world.
#[derive(Clone, Debug)]
pub enum Frame {
    /// An IP packet from outside.
    Packet(Vec<u8>),
    /// Somebody else's, who lives in the world.
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

/// Where packets leave the world: they wait here until they are taken.
#[derive(Clone, Debug, Default)]
pub struct End {
    arrived: VecDeque<(Time, Port, Vec<u8>)>,
}

impl Host<Frame> for End {
    fn receive(&mut self, now: Time, port: Port, packet: Packet<Frame>, _: &mut Outbox<'_, Frame>) {
        if let Frame::Packet(mut bytes) = packet.payload {
            if packet.ce {
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

/// An end of all paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Where the command runs.
    Sender,
    /// Its peer.
    Receiver,
}

impl Side {
    /// Both.
    pub const BOTH: [Self; 2] = [Self::Sender, Self::Receiver];

    /// The opposite side.
    pub const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// A path's way through the world.
#[derive(Clone, Debug)]
pub struct PathWay {
    /// Its name in the scenario.
    pub name: String,
    /// Largest packet that it takes, bytes.
    pub mtu: u32,
    /// From the sender to the receiver, and back.
    pub routes: (RouteId, RouteId),
    /// The path's own link each way, for its counters.
    pub wires: (LinkId, LinkId),
}

/// A packet that has reached the other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrived, which may be a while ago if nobody looked.
    pub at: Time,
    /// At which end.
    pub side: Side,
    /// On which path.
    pub path: usize,
    /// The packet. Give it back with [`Links::recycle`].
    pub bytes: Vec<u8>,
}

/// What was carried in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Carried {
    /// Packets taken in.
    pub packets: u64,
    /// Bytes taken in, IP headers included.
    pub bytes: u64,
    /// Packets handed out, copies included.
    pub delivered_packets: u64,
    /// Bytes handed out.
    pub delivered_bytes: u64,
    /// What the path's own link counted, other people's packets included.
    pub wire: LinkStats,
}

/// What was carried on one path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathCarried {
    /// The path's name.
    pub name: String,
    /// From the sender to the receiver.
    pub up: Carried,
    /// From the receiver to the sender.
    pub down: Carried,
}

/// Most buffers that are kept to be used again.
const SPARE: usize = 4096;

/// The links, in virtual time. Times given to it must never go back.
#[derive(Debug)]
pub struct Links {
    world: World<Frame, End>,
    sender: HostId,
    receiver: HostId,
    ways: Vec<PathWay>,
    carried: Vec<PathCarried>,
    spare: Vec<Vec<u8>>,
    /// Length of a fresh buffer.
    room: usize,
}

impl Links {
    /// The links of `ways` in `world`, between two of its hosts.
    pub fn new(
        world: World<Frame, End>,
        sender: HostId,
        receiver: HostId,
        ways: Vec<PathWay>,
    ) -> Self {
        let named = |way: &PathWay| PathCarried { name: way.name.clone(), ..Default::default() };
        let carried = ways.iter().map(named).collect();
        let room = ways.iter().map(|way| way.mtu).max().unwrap_or(0) as usize;
        Self { world, sender, receiver, ways, carried, spare: Vec::new(), room }
    }

    /// The paths.
    pub fn ways(&self) -> &[PathWay] {
        &self.ways
    }

    /// Lets time pass until `now`.
    pub fn advance(&mut self, now: Time) {
        self.world.run_until(now);
    }

    /// When something may arrive next, if ever.
    pub fn next_wake(&self) -> Option<Time> {
        self.world.next_wake()
    }

    /// Puts a packet on a path. Its size is that of the IP packet, as in a simulation.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn offer(&mut self, now: Time, from: Side, path: usize, bytes: Vec<u8>) {
        self.world.run_until(now);
        let way = &self.ways[path];
        let carried = &mut self.carried[path];
        let (route, carried) = match from {
            Side::Sender => (way.routes.0, &mut carried.up),
            Side::Receiver => (way.routes.1, &mut carried.down),
        };
        carried.packets += 1;
        carried.bytes += bytes.len() as u64;
        // A packet from a device is never longer than its MTU.
        let size = bytes.len() as u32;
        // Whether the first link admits it is in the counters of that link.
        let ect = ecn::may_be_marked(&bytes);
        let mut packet = Packet::new(size, 0, Frame::Packet(bytes));
        packet.ect = ect;
        let _ = self.world.inject(route, packet);
    }

    /// Takes a packet that has arrived. Those of one end come in order; the sender's end is asked first.
    pub fn take(&mut self) -> Option<Arrival> {
        for side in Side::BOTH {
            let host = match side {
                Side::Sender => self.sender,
                Side::Receiver => self.receiver,
            };
            if let Some((at, port, bytes)) = self.world.host_mut(host).arrived.pop_front() {
                let path = port.0 as usize;
                let carried = &mut self.carried[path];
                let carried = match side {
                    Side::Receiver => &mut carried.up,
                    Side::Sender => &mut carried.down,
                };
                carried.delivered_packets += 1;
                carried.delivered_bytes += bytes.len() as u64;
                return Some(Arrival { at, side, path, bytes });
            }
        }
        None
    }

    /// A buffer with room for the longest packet of any path.
    pub fn buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(self.room, 0);
        buffer
    }

    /// Takes a buffer back.
    pub fn recycle(&mut self, buffer: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(buffer);
        }
    }

    /// What was carried until the present.
    pub fn carried(&self) -> Vec<PathCarried> {
        let mut all = self.carried.clone();
        for (carried, way) in all.iter_mut().zip(&self.ways) {
            carried.up.wire = self.world.link_stats(way.wires.0);
            carried.down.wire = self.world.link_stats(way.wires.1);
        }
        all
    }
}
