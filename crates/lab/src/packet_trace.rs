//! Records the packets of one simulated end in the formats of other programs: pcapng and qlog.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};

use ropewalk_base::{PathId, Time};
use ropewalk_engine::sctp::wire::{self, Checksum};
use ropewalk_scenario::Scenario;
pub use ropewalk_trace::Direction;
use ropewalk_trace::pcapng::{self, Interface};
use ropewalk_trace::qlog::{self, Header, Metrics, Place};
use ropewalk_trace::{Protocol, ip_header, tcp};

use crate::machine::{Machine, SimPayload};

/// Destination of a trace.
pub type Sink = Box<dyn Write + Send>;

/// Bytes that a capture keeps of each packet: all headers and the gap ack blocks of most SACKs. Simulated user data
/// is zeros, so nothing else is lost, and the file stays a tenth as large.
pub const SNAPSHOT_LENGTH: u32 = 256;

/// SCTP port of both ends (RFC 6951 assigns 9899 to SCTP over UDP).
const SCTP_PORTS: wire::Ports = wire::Ports { source: 9899, destination: 9899 };
/// TCP ports of sender and receiver.
const TCP_PORTS: [u16; 2] = [49_152, 5001];

/// The end whose packets are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Vantage {
    /// The end that sends data.
    #[default]
    Sender,
    /// The end that receives data.
    Receiver,
}

/// The files that record the packets of one end of an association.
pub struct PacketTrace {
    pub(crate) vantage: Vantage,
    paths: Vec<TracedPath>,
    pcapng: Option<pcapng::Writer<Sink>>,
    qlog: Option<qlog::Writer<Sink>>,
    tcp: tcp::Encoder,
    /// The first error. Nothing is written after it.
    failed: Option<io::Error>,
}

/// A path in a trace.
#[derive(Debug)]
struct TracedPath {
    name: String,
    interface: u32,
    /// The last written measurements.
    metrics: Metrics,
}

impl TracedPath {
    /// A run records one association, so its events need no group.
    fn place(&self) -> Place<'_> {
        Place { path: &self.name, group: None }
    }
}

impl core::fmt::Debug for PacketTrace {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PacketTrace").field("vantage", &self.vantage).finish_non_exhaustive()
    }
}

impl PacketTrace {
    /// Creates a trace of a scenario's first association. It is written to `pcapng`, to `qlog`, or
    /// to both.
    ///
    /// # Errors
    /// The header cannot be written.
    pub fn new(
        scenario: &Scenario,
        title: &str,
        vantage: Vantage,
        pcapng: Option<Sink>,
        qlog: Option<Sink>,
    ) -> io::Result<Self> {
        let opens = vantage == Vantage::Sender;
        let end = if opens { "sender" } else { "receiver" };
        let header = Header { title, vantage: end, opens, wall_clock: None };
        let mut pcapng = pcapng.map(pcapng::Writer::new).transpose()?;
        let qlog = qlog.map(|sink| qlog::Writer::new(sink, &header)).transpose()?;
        let path = |(number, path): (usize, &ropewalk_scenario::Path)| {
            let [local, remote] = addresses(number, opens);
            let description = format!("{} at the {end}: {local} to {remote}", path.name);
            let interface =
                Interface { name: &path.name, description: &description, snap: SNAPSHOT_LENGTH };
            let interface = pcapng.as_mut().map(|file| file.interface(&interface)).transpose()?;
            Ok(TracedPath {
                name: path.name.clone(),
                interface: interface.unwrap_or_default(),
                metrics: Metrics::default(),
            })
        };
        let paths = scenario.paths.iter().enumerate().map(path).collect::<io::Result<_>>()?;
        Ok(Self { vantage, paths, pcapng, qlog, tcp: tcp::Encoder::default(), failed: None })
    }

    /// Records a packet of `size` bytes, all headers included.
    pub(crate) fn on_packet(
        &mut self,
        now: Time,
        path: PathId,
        direction: Direction,
        size: u32,
        payload: &SimPayload,
    ) {
        if self.failed.is_some() {
            return;
        }
        let written = self
            .capture(now, path, direction, payload)
            .and_then(|()| self.log(now, path, direction, size, payload));
        self.failed = written.err();
    }

    fn capture(
        &mut self,
        now: Time,
        path: PathId,
        direction: Direction,
        payload: &SimPayload,
    ) -> io::Result<()> {
        let (Some(file), encoder) = (&mut self.pcapng, &mut self.tcp) else { return Ok(()) };
        let sender_is_source = (self.vantage == Vantage::Sender) == (direction == Direction::Out);
        let [from, to] = addresses(path.index(), sender_is_source);
        let put = |out: &mut Vec<u8>| {
            let mut bytes = Vec::new();
            let protocol = match payload {
                SimPayload::Sctp(packet, _) => {
                    wire::encode(packet, SCTP_PORTS, Checksum::Crc32c, &mut bytes);
                    Protocol::Sctp
                }
                SimPayload::Tcp(segment, _) => {
                    let [source, destination] = in_order(TCP_PORTS, sender_is_source);
                    let ports = tcp::Ports { source, destination };
                    encoder.encode(segment, sender_is_source, ports, &mut bytes);
                    Protocol::Tcp
                }
                SimPayload::Cross(_) => unreachable!("ends do not receive cross traffic"),
            };
            ip_header(out, protocol, (from, to), bytes.len());
            out.extend(bytes);
        };
        file.packet(now.as_nanos(), self.paths[path.index()].interface, direction, put)
    }

    fn log(
        &mut self,
        now: Time,
        path: PathId,
        direction: Direction,
        size: u32,
        payload: &SimPayload,
    ) -> io::Result<()> {
        let Some(file) = &mut self.qlog else { return Ok(()) };
        let place = self.paths[path.index()].place();
        match payload {
            SimPayload::Sctp(packet, _) => file.packet(now, place, direction, size, packet),
            SimPayload::Tcp(segment, _) => file.segment(now, place, direction, size, segment),
            SimPayload::Cross(_) => Ok(()),
        }
    }

    /// Called after each input: records the measurements of each path whose window or round trip has
    /// changed.
    pub(crate) fn on_input_processed(&mut self, now: Time, machine: &Machine) {
        let (Some(file), None) = (&mut self.qlog, &self.failed) else { return };
        for (number, path) in self.paths.iter_mut().enumerate() {
            let Some(metrics) = metrics(now, machine, number) else { continue };
            if metrics == path.metrics {
                continue;
            }
            path.metrics = metrics;
            if let Err(error) = file.metrics(now, path.place(), &metrics) {
                self.failed = Some(error);
                return;
            }
        }
    }

    /// Flushes the files.
    ///
    /// # Errors
    /// The first error that occurred.
    pub fn finish(mut self) -> io::Result<()> {
        match self.failed.take() {
            Some(error) => Err(error),
            None => {
                self.pcapng.as_mut().map_or(Ok(()), pcapng::Writer::flush)?;
                self.qlog.as_mut().map_or(Ok(()), qlog::Writer::flush)
            }
        }
    }
}

/// The measurements of a path. `None` before the handshake has created it.
fn metrics(now: Time, machine: &Machine, number: usize) -> Option<Metrics> {
    let counters = machine.path_counters(number)?;
    let view = machine.path_view(now, PathId::from_index(number));
    Some(Metrics::of(&view, &counters))
}

/// Addresses of a path. The sender's comes first if `sender_first` is set.
fn addresses(path: usize, sender_first: bool) -> [IpAddr; 2] {
    let end = |host| IpAddr::V4(Ipv4Addr::new(10, 0, path as u8, host));
    in_order([end(1), end(2)], sender_first)
}

fn in_order<T>([sender, receiver]: [T; 2], sender_first: bool) -> [T; 2] {
    if sender_first { [sender, receiver] } else { [receiver, sender] }
}
