//! Packets between the TUN device of a client and the hub.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use ipnet::IpNet;
use ropewalk_runtime::interfaces;
use ropewalk_runtime::system::{TunDevice, TunWriter};

use super::super::admission::{Admission, admit, clamp};
use super::super::counters::{Counters, Refusal};
use super::super::lane::{LaneInlet, PacketBatch, PacketSink};
use super::super::machine::Machine;
use super::super::packet::{Headers, Transport};
use super::Shared;
use crate::observe::{Event, PeerIdentity, Reporter};

/// Checks packets from the hub, and writes them to the device.
pub struct HubSink {
    pub own: Vec<IpAddr>,
    pub inlet: LaneInlet,
    pub writer: TunWriter,
    pub counters: Arc<Counters>,
}

impl PacketSink for HubSink {
    async fn deliver(&mut self, mut packets: Vec<Bytes>) {
        packets.retain_mut(|packet| self.accept(packet));
        if !matches!(self.writer.write(packets.iter().map(AsRef::as_ref)).await, Ok(true)) {
            self.counters.on_refused(Refusal::Device);
        }
    }
}

impl HubSink {
    /// Whether a packet goes to this machine.
    fn accept(&self, packet: &mut Bytes) -> bool {
        let checked = Headers::read(packet).map_err(Refusal::from).and_then(|headers| {
            let is_own = self.own.contains(&headers.destination);
            if is_own { Ok(headers) } else { Err(Refusal::NoSuchDestination) }
        });
        match &checked {
            Ok(headers) => {
                self.counters.on_received(packet.len());
                clamp(packet, headers, self.inlet.mtu());
            }
            Err(why) => self.counters.on_refused(*why),
        }
        checked.is_ok()
    }
}

/// Reports once why packets of other machines are not carried.
pub struct ForeignSources {
    reporter: Reporter,
    is_told: bool,
}

impl ForeignSources {
    pub const fn new(reporter: Reporter) -> Self {
        Self { reporter, is_told: false }
    }

    fn tell(&mut self, headers: &Headers) {
        let source = headers.source;
        let is_link_local = matches!(source, IpAddr::V6(ip) if ip.is_unicast_link_local());
        if self.is_told || is_link_local || headers.destination.is_multicast() {
            return;
        }
        // Programs on this machine may still use an address of an earlier hub.
        if interfaces::list().is_ok_and(|all| all.iter().any(|own| own.ip == source)) {
            return;
        }
        self.is_told = true;
        let problem = format!(
            "packets from {source} are not carried: the hub takes only those from the addresses of this \
             client; --share translates the addresses of networks behind this machine"
        );
        self.reporter.report(PeerIdentity::default(), Event::Problem(problem));
    }
}

/// Reads packets of the device and passes them to the lane. Ends when the device is gone.
pub async fn read_device(
    device: TunDevice,
    machine: Machine,
    shared: Arc<Shared>,
    mut foreign: ForeignSources,
) -> io::Result<()> {
    let (mut reader, mut writer) = (device.reader(), device.writer());
    let is_loop = |headers: &Headers, hubs: &[SocketAddr]| {
        let to = (headers.destination, headers.ports.1);
        let is_udp = matches!(headers.transport, Transport::Udp { .. });
        is_udp && hubs.iter().any(|hub| (hub.ip().to_canonical(), hub.port()) == to)
    };
    let (mut batch, mut device_mtu) = (Vec::new(), 0);
    loop {
        reader.read(&mut batch).await?;
        let (inlet, own, hubs) = {
            let state = shared.state.lock();
            let own: Vec<_> = state.addresses.iter().map(IpNet::addr).collect();
            (state.inlet.clone(), own, state.hubs.clone())
        };
        let Some(inlet) = inlet else {
            batch.drain(..).for_each(|_| shared.counters.on_refused(Refusal::QueueFull));
            continue;
        };
        let mtu = inlet.mtu();
        if mtu != device_mtu && machine.set_mtu(mtu).is_ok() {
            device_mtu = mtu;
        }
        let (mut answers, mut admitted) = (Vec::new(), PacketBatch::with_capacity(batch.len()));
        for packet in batch.drain(..) {
            let headers = match Headers::read(&packet).map_err(Refusal::from) {
                Ok(headers) if is_loop(&headers, &hubs) => Err(Refusal::Loop),
                Ok(headers) if !own.contains(&headers.source) => {
                    foreign.tell(&headers);
                    Err(Refusal::ForeignSource)
                }
                other => other,
            };
            let headers = match headers {
                Ok(headers) => headers,
                Err(why) => {
                    shared.counters.on_refused(why);
                    continue;
                }
            };
            match admit(packet, headers, mtu, &own, &shared.counters) {
                Admission::Taken(packet) => admitted.push(packet),
                Admission::Answered(answer) => answers.push(answer),
                Admission::Refused => {}
            }
        }
        inlet.push(admitted);
        if !answers.is_empty() {
            writer.write(answers.iter().map(Vec::as_slice)).await?;
        }
    }
}
