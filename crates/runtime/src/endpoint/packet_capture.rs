//! Captures the packets of all associations to a file, as they are inside the seal.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use ropewalk_engine::sctp::Packet;
use ropewalk_engine::sctp::wire::{self, Checksum, Ports};

use super::local_interfaces::{self, Link};
use super::peer::Route;
use crate::capture::{Capture, Direction};

/// Most routes that are remembered. A forgotten route gets a new interface number in the capture.
const WAYS_LIMIT: usize = 1024;

/// Where packets of one path go, as written to the capture.
#[derive(Clone, Copy, Debug)]
struct Way {
    interface: u32,
    local: IpAddr,
}

/// This end of a path: its interface or address, and its port.
#[derive(Clone, Copy)]
pub struct Near<'a> {
    pub link: &'a Link,
    pub port: u16,
}

/// Writes packets to a capture.
#[derive(Debug)]
pub struct PacketCapture {
    capture: Capture,
    ways: BTreeMap<(usize, SocketAddr), Way>,
    bytes: Vec<u8>,
    used: bool,
}

impl PacketCapture {
    pub fn new(capture: Capture) -> Self {
        Self { capture, ways: BTreeMap::new(), bytes: Vec::new(), used: false }
    }

    /// Records a sent packet.
    pub fn leaves(&mut self, route: Route, near: Near<'_>, ports: Ports, packet: &Packet) {
        let way = self.way(route, near);
        self.bytes.clear();
        wire::encode(packet, ports, Checksum::None, &mut self.bytes);
        let ends = (way.local, route.remote.ip());
        self.capture.packet(way.interface, Direction::Out, ends, &self.bytes);
        self.used = true;
    }

    /// Records a received packet.
    pub fn came(&mut self, route: Route, near: Near<'_>, packet: &[u8]) {
        let way = self.way(route, near);
        let ends = (route.remote.ip(), way.local);
        self.capture.packet(way.interface, Direction::In, ends, packet);
        self.used = true;
    }

    /// Flushes the capture while no packets pass.
    pub fn rest(&mut self) {
        if std::mem::take(&mut self.used) {
            self.capture.flush();
        }
    }

    fn way(&mut self, route: Route, near: Near<'_>) -> Way {
        let key = (route.socket, route.remote);
        if let Some(way) = self.ways.get(&key) {
            return *way;
        }
        let (name, mut local) = local_interfaces::standing(near.link, &route.remote);
        local.set_port(near.port);
        let description = format!("{local} to {}", route.remote);
        let interface = self.capture.interface(&name, &description);
        let way = Way { interface, local: local.ip() };
        if self.ways.len() >= WAYS_LIMIT {
            self.ways.clear();
        }
        self.ways.insert(key, way);
        way
    }
}
