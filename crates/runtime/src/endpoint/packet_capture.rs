//! Records the packets of all associations in files, in the form inside the seal, and the measurements of their
//! paths.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::sctp::wire::{self, Checksum, Ports};
use ropewalk_engine::sctp::{Association as Machine, Packet};
use ropewalk_trace::qlog::{Metrics, Place};

use super::encapsulation::SEALED_PORTS;
use super::local_interfaces::{self, BoundInterface};
use super::peer::{Peer, Route};
use super::state::{AssociationKey, EndpointState};
use super::stats::LocalAddress;
use crate::capture::{Capture, Direction};

/// Maximum number of routes that are remembered. A forgotten route gets a new interface number in the capture.
const ROUTES_LIMIT: usize = 1024;
/// Maximum number of paths of one association that are remembered, counting each address that a path had.
const PATHS_LIMIT: usize = 128;

/// Where packets of one path go, as written to the files.
#[derive(Clone, Debug)]
struct CapturedRoute {
    interface: u32,
    local: IpAddr,
    link: String,
}

/// This end of a path: its interface or address, and its port.
#[derive(Clone, Copy)]
pub struct LocalEnd<'a> {
    pub link: &'a BoundInterface,
    pub port: u16,
}

/// An association in the qlog. Without a qlog it stays empty.
#[derive(Debug, Default)]
pub struct LoggedAssociation {
    /// Identifies it in the file.
    group: Option<String>,
    paths: Vec<LoggedPath>,
}

/// A path in the qlog.
#[derive(Debug)]
struct LoggedPath {
    socket: usize,
    remote: SocketAddr,
    tuple: String,
    /// The measurements written last.
    metrics: Metrics,
}

/// Writes packets to the files.
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

    /// Records a sent packet of `length` bytes on the wire. `association` is `None` if it belongs to no
    /// association.
    pub fn on_sent(
        &mut self,
        (route, local_end): (Route, LocalEnd<'_>),
        ports: Ports,
        (packet, length): (&Packet, u32),
        association: Option<&mut LoggedAssociation>,
    ) {
        if self.capture.has_pcapng() {
            let (interface, local) = self.captured(route, local_end);
            self.bytes.clear();
            wire::encode(packet, ports, Checksum::None, &mut self.bytes);
            let ends = (local, route.remote.ip());
            self.capture.packet(interface, Direction::Out, ends, &self.bytes);
        }
        self.log((route, local_end), Direction::Out, (packet, length), association);
        self.used = true;
    }

    /// Writes a received packet to the capture file.
    pub fn on_received(&mut self, route: Route, local_end: LocalEnd<'_>, packet: &[u8]) {
        if self.capture.has_pcapng() {
            let (interface, local) = self.captured(route, local_end);
            self.capture.packet(interface, Direction::In, (route.remote.ip(), local), packet);
            self.used = true;
        }
    }

    /// Writes a received packet that arrived in the compact form to the capture file, in the standard form.
    fn on_decoded(&mut self, route: Route, local_end: LocalEnd<'_>, packet: &Packet) {
        if self.capture.has_pcapng() {
            let mut bytes = std::mem::take(&mut self.bytes);
            bytes.clear();
            wire::encode(packet, SEALED_PORTS, Checksum::None, &mut bytes);
            self.on_received(route, local_end, &bytes);
            self.bytes = bytes;
        }
    }

    /// Writes a packet to the qlog.
    fn log(
        &mut self,
        (route, local_end): (Route, LocalEnd<'_>),
        direction: Direction,
        (packet, length): (&Packet, u32),
        association: Option<&mut LoggedAssociation>,
    ) {
        if !self.capture.has_qlog() {
            return;
        }
        let link = self.route(route, local_end).link.clone();
        match association {
            Some(association) => {
                let number = association.enter(&self.capture, route, &link);
                let place = association.place(number);
                self.capture.log_packet(place, direction, length, packet);
            }
            None => {
                let place = Place { path: &link, group: None };
                self.capture.log_packet(place, direction, length, packet);
            }
        }
        self.used = true;
    }

    /// Writes the measurements of a path to the qlog, if they have changed.
    fn log_metrics(
        &mut self,
        (route, local_end): (Route, LocalEnd<'_>),
        metrics: Metrics,
        association: &mut LoggedAssociation,
    ) {
        let link = self.route(route, local_end).link.clone();
        let number = association.enter(&self.capture, route, &link);
        if std::mem::replace(&mut association.paths[number].metrics, metrics) != metrics {
            self.capture.log_metrics(association.place(number), &metrics);
            self.used = true;
        }
    }

    /// Flushes the files while the endpoint is idle.
    pub fn flush(&mut self) {
        if std::mem::take(&mut self.used) {
            self.capture.flush();
        }
    }

    /// Interface number and own address of a route.
    fn captured(&mut self, route: Route, local_end: LocalEnd<'_>) -> (u32, IpAddr) {
        let route = self.route(route, local_end);
        (route.interface, route.local)
    }

    fn route(&mut self, route: Route, local_end: LocalEnd<'_>) -> &CapturedRoute {
        let key = (route.socket, route.remote);
        if self.routes.len() >= ROUTES_LIMIT && !self.routes.contains_key(&key) {
            self.routes.clear();
        }
        let capture = &self.capture;
        self.routes.entry(key).or_insert_with(|| {
            let (name, mut local) = local_interfaces::local_address_towards(
                local_end.link,
                route.source,
                &route.remote,
            );
            local.set_port(local_end.port);
            let description = format!("{local} to {}", route.remote);
            let interface = capture.interface(&name, &description);
            let link = LocalAddress { address: local, interface: Some(name) }.link_name();
            CapturedRoute { interface, local: local.ip(), link }
        })
    }
}

impl LoggedAssociation {
    /// The number of a path among `paths`; a new one is added. Two paths over one link differ in the peer's address.
    fn enter(&mut self, capture: &Capture, route: Route, link: &str) -> usize {
        self.group.get_or_insert_with(|| capture.next_group());
        let (socket, remote) = (route.socket, route.remote);
        let is_it = |path: &LoggedPath| (path.socket, path.remote) == (socket, remote);
        if let Some(number) = self.paths.iter().position(is_it) {
            return number;
        }
        if self.paths.len() >= PATHS_LIMIT {
            self.paths.clear();
        }
        let is_taken = self.paths.iter().any(|path| path.tuple == link);
        let tuple = if is_taken { format!("{link} to {remote}") } else { link.to_owned() };
        self.paths.push(LoggedPath { socket, remote, tuple, metrics: Metrics::default() });
        self.paths.len() - 1
    }

    fn place(&self, path: usize) -> Place<'_> {
        Place { path: &self.paths[path].tuple, group: self.group.as_deref() }
    }
}

impl EndpointState {
    fn local_end_of(&self, route: Route) -> LocalEnd<'_> {
        let port = self.sockets[route.socket].local().port();
        LocalEnd { link: &self.links[route.socket], port }
    }

    /// Calls `work` with the capture, temporarily taken out of the state, if there is one.
    fn with_capture(&mut self, work: impl FnOnce(&mut Self, &mut PacketCapture)) {
        if let Some(mut capture) = self.capture.take() {
            work(self, &mut capture);
            self.capture = Some(capture);
        }
    }

    /// Writes a received packet to the capture file, if there is one.
    pub(super) fn capture_received(&mut self, route: Route, packet: &[u8]) {
        self.with_capture(|state, capture| {
            capture.on_received(route, state.local_end_of(route), packet);
        });
    }

    /// Writes a received packet that arrived in the compact form to the capture file, if there is one.
    pub(super) fn capture_decoded(&mut self, route: Route, packet: &Packet) {
        self.with_capture(|state, capture| {
            capture.on_decoded(route, state.local_end_of(route), packet);
        });
    }

    /// Writes a received packet to the qlog, if there is one. `key` is `None` if it belongs to no association.
    pub(super) fn log_received(
        &mut self,
        key: Option<AssociationKey>,
        route: Route,
        packet: &Packet,
    ) {
        self.with_capture(|state, capture| {
            let mut peer = key.and_then(|key| state.take_out(key));
            let length = match &peer {
                Some(peer) => peer.machine.config().packet_len(packet),
                None => {
                    packet.wire_len() + super::path_validation::lower_headers(&route.remote) as u32
                }
            };
            let association = peer.as_mut().map(|peer| &mut peer.logged);
            let ends = (route, state.local_end_of(route));
            capture.log(ends, Direction::In, (packet, length), association);
            if let (Some(key), Some(peer)) = (key, peer) {
                state.put_back(key, peer);
            }
        });
    }

    /// Records a packet that is sent outside an association.
    pub(super) fn record_sent_alone(&mut self, route: Route, ports: Ports, packet: &Packet) {
        self.with_capture(|state, capture| {
            let header = super::path_validation::lower_headers(&route.remote) as u32;
            let sent = (packet, packet.wire_len() + header);
            capture.on_sent((route, state.local_end_of(route)), ports, sent, None);
        });
    }

    /// Writes the measurements of the association's paths to the qlog, if they have changed.
    pub(super) fn log_measurements(&mut self, now: Time, peer: &mut Peer) {
        self.with_capture(|state, capture| {
            if !capture.capture.has_qlog() {
                return;
            }
            let Peer { machine, routes, logged, .. } = peer;
            for (index, route) in routes.iter().enumerate() {
                if let (Some(route), Some(metrics)) = (route, metrics(now, machine, index)) {
                    capture.log_metrics((*route, state.local_end_of(*route)), metrics, logged);
                }
            }
        });
    }
}

/// The measurements of a path. `None` if it does not exist.
fn metrics(now: Time, machine: &Machine, path: usize) -> Option<Metrics> {
    let counters = machine.path_counters().nth(path)?;
    let view = machine.path_view(now, PathId::from_index(path));
    Some(Metrics::of(&view, counters))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_over_one_link_are_told_apart_and_their_number_is_bounded() {
        let (capture, mut association) = (Capture::default(), LoggedAssociation::default());
        let route = |port| Route::new(0, ([192, 0, 2, 7], port).into());
        let mut tuple = |port| {
            let number = association.enter(&capture, route(port), "wlan0");
            assert!(association.paths.len() <= PATHS_LIMIT);
            association.place(number).path.to_owned()
        };
        assert_eq!(tuple(1), "wlan0");
        assert_eq!(tuple(2), "wlan0 to 192.0.2.7:2");
        assert_eq!(tuple(1), "wlan0");
        (3..1000).for_each(|port| drop(tuple(port)));
        assert_eq!(association.group.as_deref(), Some("1"));
    }
}
