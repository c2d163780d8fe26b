//! The clients: associations with the hub, and the device that they share.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ropewalk_apps::tunnel::LaneSettings;
use ropewalk_apps::tunnel::client::greet;
use ropewalk_apps::tunnel::control::{PACKET_PPID, PACKET_STREAM, Welcome};
use ropewalk_apps::tunnel::counters::Counters;
use ropewalk_apps::tunnel::lane::{Lane, LaneInlet, PacketSink};
use ropewalk_apps::tunnel::packet::Headers;
use ropewalk_runtime::endpoint::{Association, Endpoint, Options, PORT, Target, Transport};
use ropewalk_runtime::seal::{Allowed, PublicKey, SecretKey};
use ropewalk_runtime::system::{TunDevice, TunWriter, routes};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::{JoinHandle, JoinSet};

use crate::Failure;
use crate::hub::Hub;
use crate::places::{HUB_ADDRESS, SERVER_ADDRESS, run, source};

/// Maximum number of concurrent handshakes.
const HANDSHAKES: usize = 64;
/// MTU of the device, which fits into every path.
const MTU: u32 = 1280;
/// A connected client.
#[derive(Debug)]
pub struct Client {
    /// Its IPv4 address in the tunnel.
    pub address: IpAddr,
    /// The hub's answer.
    pub welcome: Welcome,
    /// Its association.
    pub association: Association,
    endpoint: Endpoint,
    sent: AtomicU32,
}

impl Client {
    /// Connects with this key, and requests addresses.
    ///
    /// # Errors
    /// The hub refuses.
    pub async fn connect(
        secret: SecretKey,
        hub: PublicKey,
        from: Ipv4Addr,
    ) -> Result<Self, Failure> {
        let (association, endpoint) = Self::associate(secret, hub, from).await?;
        let (association, welcome) = greet(association).await?;
        let mut addresses = welcome.addresses.iter().map(ipnet::IpNet::addr);
        let address = addresses.find(IpAddr::is_ipv4).ok_or("no IPv4 address")?;
        Ok(Self { address, welcome, association, endpoint, sent: AtomicU32::new(0) })
    }

    /// Sends inner packets without a lane and without checks.
    ///
    /// # Errors
    /// The association has ended.
    pub async fn send(&self, packets: impl IntoIterator<Item = Vec<u8>>) -> Result<(), Failure> {
        for packet in packets {
            // Flow 0, in the order of arrival. The far end drops duplicate numbers.
            let header = self.sent.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            self.send_with_header(header, &packet).await?;
        }
        Ok(())
    }

    /// Sends an inner packet with a header of the tunnel's core.
    ///
    /// # Errors
    /// The association has ended.
    pub async fn send_with_header(&self, header: [u8; 4], packet: &[u8]) -> Result<(), Failure> {
        let bytes = [&header, packet].concat().into();
        Ok(self.association.send_unordered(PACKET_STREAM, PACKET_PPID, bytes).await?)
    }

    /// The next inner packet that arrives. `None` if the association has ended, or nothing arrives in
    /// time.
    pub async fn receive(&self, within: Duration) -> Option<Bytes> {
        let message = tokio::time::timeout(within, self.association.receive()).await.ok()??;
        (message.stream == PACKET_STREAM).then(|| message.bytes.slice(4.min(message.bytes.len())..))
    }

    /// Opens an association without sending anything.
    ///
    /// # Errors
    /// The hub does not answer.
    pub async fn associate(
        secret: SecretKey,
        hub: PublicKey,
        from: Ipv4Addr,
    ) -> Result<(Association, Endpoint), Failure> {
        let own = SocketAddr::new(from.into(), 0);
        let allowed = Allowed::Keys([hub].into());
        let mut options = Options::connecting(&[own]).sealed(secret, allowed);
        options.transport = Transport { streams: 2, ..Transport::default() };
        let endpoint = Endpoint::open(options)?;
        let addresses = vec![SocketAddr::new(HUB_ADDRESS.into(), PORT)];
        let association = endpoint.connect(&Target { addresses, key: Some(hub) }).await?;
        Ok((association, endpoint))
    }
}

/// All clients and their device. Dropping this closes them.
#[derive(Debug)]
pub struct Fleet {
    addresses: Vec<IpAddr>,
    _lanes: JoinSet<()>,
    _reader: Ended,
}

#[derive(Debug)]
struct Ended(JoinHandle<()>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Fleet {
    /// Connects this many clients.
    ///
    /// # Errors
    /// One of them cannot connect, or there is no device.
    pub async fn connect(hub: &Hub, count: usize) -> Result<Self, Failure> {
        let device = TunDevice::create("clients")?;
        routes::start_interface(device.index(), MTU)?;
        let line = format!("route add {SERVER_ADDRESS}/32 dev {}", device.name());
        run(std::path::Path::new("ip"), &line.split(' ').collect::<Vec<_>>())?;
        let connected = connect_all(hub, count).await?;
        let writer = Arc::new(Mutex::new(device.writer()));
        let counters = Arc::<Counters>::default();
        let (mut lanes, mut inlets, mut addresses) =
            (JoinSet::new(), BTreeMap::new(), Vec::with_capacity(count));
        for client in connected {
            let Client { address, association, endpoint, .. } = client;
            let (mut lane, inlet) =
                Lane::new(association, LaneSettings::default(), counters.clone());
            addresses.push(address);
            inlets.insert(address, inlet);
            let mut sink = DeviceSink(writer.clone());
            lanes.spawn(async move {
                lane.run(&mut sink).await;
                drop(endpoint);
            });
        }
        let reader = Ended(tokio::spawn(read_device(device, inlets)));
        Ok(Self { addresses, _lanes: lanes, _reader: reader })
    }

    /// The addresses of the clients in the tunnel.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

async fn connect_all(hub: &Hub, count: usize) -> Result<Vec<Client>, Failure> {
    let permits = Arc::new(Semaphore::new(HANDSHAKES));
    let mut connecting = JoinSet::new();
    for (number, secret) in hub.keys().iter().take(count).enumerate() {
        let (secret, public) = (secret.clone(), hub.public());
        let permits = permits.clone();
        connecting.spawn(async move {
            let _permit = permits.acquire().await?;
            Client::connect(secret, public, source(number)).await
        });
    }
    let mut connected = Vec::with_capacity(count);
    while let Some(client) = connecting.join_next().await {
        connected.push(client??);
    }
    connected.sort_by_key(|client| client.address);
    Ok(connected)
}

/// Writes what arrives to the device.
struct DeviceSink(Arc<Mutex<TunWriter>>);

impl PacketSink for DeviceSink {
    async fn deliver(&mut self, packets: Vec<Bytes>) {
        let _ = self.0.lock().await.write(packets.iter().map(AsRef::as_ref)).await;
    }
}

/// Passes each packet of the device to the client with its source address.
async fn read_device(device: TunDevice, inlets: BTreeMap<IpAddr, LaneInlet>) {
    let mut reader = device.reader();
    let mut batch = Vec::new();
    while reader.read(&mut batch).await.is_ok() {
        for packet in batch.drain(..) {
            if let Ok(headers) = Headers::read(&packet)
                && let Some(inlet) = inlets.get(&headers.source)
            {
                inlet.push(vec![(headers, packet)]);
            }
        }
    }
}
