//! Captures the packets of all associations to a file, as they are inside the seal.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use ropewalk_engine::sctp::Packet;
use ropewalk_engine::sctp::wire::{self, Checksum, Ports};

use super::local_interfaces::{self, BoundInterface};
use super::peer::Route;
use crate::capture::{Capture, Direction};

/// Most routes that are remembered. A forgotten route gets a new interface number in the capture.
const ROUTES_LIMIT: usize = 1024;

/// Where packets of one path go, as written to the capture.
#[derive(Clone, Copy, Debug)]
struct CapturedRoute {
    interface: u32,
    local: IpAddr,
}

/// This end of a path: its interface or address, and its port.
#[derive(Clone, Copy)]
pub struct LocalEnd<'a> {
    pub link: &'a BoundInterface,
    pub port: u16,
}

/// Writes packets to a capture.
#[derive(Debug)]
pub struct PacketCapture {
    capture: Capture,
    routes: BTreeMap<(usize, SocketAddr), CapturedRoute>,
    bytes: Vec<u8>,
    used: bool,
}

impl PacketCapture {
    pub fn new(capture: Capture) -> Self {
        Self { capture, routes: BTreeMap::new(), bytes: Vec::new(), used: false }
    }

    /// Records a sent packet.
    pub fn on_sent(
        &mut self,
        route: Route,
        local_end: LocalEnd<'_>,
        ports: Ports,
        packet: &Packet,
    ) {
        let captured_route = self.captured_route(route, local_end);
        self.bytes.clear();
        wire::encode(packet, ports, Checksum::None, &mut self.bytes);
        let ends = (captured_route.local, route.remote.ip());
        self.capture.packet(captured_route.interface, Direction::Out, ends, &self.bytes);
        self.used = true;
    }

    /// Records a received packet.
    pub fn on_received(&mut self, route: Route, local_end: LocalEnd<'_>, packet: &[u8]) {
        let captured_route = self.captured_route(route, local_end);
        let ends = (route.remote.ip(), captured_route.local);
        self.capture.packet(captured_route.interface, Direction::In, ends, packet);
        self.used = true;
    }

    /// Flushes the capture while no packets pass.
    pub fn flush(&mut self) {
        if std::mem::take(&mut self.used) {
            self.capture.flush();
        }
    }

    fn captured_route(&mut self, route: Route, local_end: LocalEnd<'_>) -> CapturedRoute {
        let key = (route.socket, route.remote);
        if let Some(captured_route) = self.routes.get(&key) {
            return *captured_route;
        }
        let (name, mut local) =
            local_interfaces::local_address_towards(local_end.link, &route.remote);
        local.set_port(local_end.port);
        let description = format!("{local} to {}", route.remote);
        let interface = self.capture.interface(&name, &description);
        let captured_route = CapturedRoute { interface, local: local.ip() };
        if self.routes.len() >= ROUTES_LIMIT {
            self.routes.clear();
        }
        self.routes.insert(key, captured_route);
        captured_route
    }
}
