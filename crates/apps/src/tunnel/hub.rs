//! The hub: the end of a tunnel that has a public address and serves many clients.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ipnet::IpNet;
use ropewalk_runtime::endpoint::{Association, Endpoint};
use ropewalk_runtime::seal::PublicKey;
use ropewalk_runtime::system::{TunDevice, TunWriter, routes};
use tokio::task::JoinSet;

use super::addresses::{Connected, Leases, Pool};
use super::client::{admit, clamp};
use super::control::{CONTROL_PPID, CONTROL_STREAM, Control, VERSION, Welcome};
use super::counters::{Counters, Refusal};
use super::error::TunnelError;
use super::journal::Journal;
use super::lane::{Lane, LaneInlet, LaneSettings, PacketSink};
use super::machine;
use super::packet::{Headers, decrement_ttl};
use crate::observe::{Event, PeerIdentity, Reporter, TunnelFigures};

/// How long a client may take to ask for its addresses.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// MTU of the hub's device, bytes. Packets that are too big for a client are answered for this client.
const DEVICE_MTU: u32 = 1500;

/// How a hub is set up.
#[derive(Clone, Debug)]
pub struct HubSettings {
    /// Name of the tunnel.
    pub name: String,
    /// Name of the TUN device.
    pub device: String,
    /// The networks of the tunnel.
    pub pool: Pool,
    /// Whether packets of clients leave with the hub's own address. If not, the network routes the tunnel's addresses to
    /// the hub.
    pub nat: bool,
    /// Whether clients may reach private networks of the hub.
    pub allow_private: bool,
    /// Whether clients may reach each other.
    pub client_to_client: bool,
    /// Name servers that clients are told.
    pub dns: Vec<IpAddr>,
    /// How packets are carried.
    pub lane: LaneSettings,
    /// File of the addresses that clients have.
    pub lease_file: PathBuf,
    /// Directory of the journal.
    pub run_directory: PathBuf,
}

/// Finds the addresses that the operator has configured for a client.
pub type AddressesOf = Arc<dyn Fn(&PublicKey) -> Vec<IpAddr> + Send + Sync>;

/// A hub whose machine is set up.
pub struct TunnelHub {
    device: TunDevice,
    shared: Arc<Shared>,
    reporter: Reporter,
    /// Undoes everything when the hub ends.
    _journal: Journal,
}

/// What the tasks of all clients share.
struct Shared {
    settings: HubSettings,
    hub: Vec<IpAddr>,
    leases: Mutex<Leases>,
    connected: RwLock<Connected<LaneInlet>>,
    addresses_of: AddressesOf,
    counters: Arc<Counters>,
    writer: tokio::sync::Mutex<TunWriter>,
}

/// Reads the figures of a running hub.
#[derive(Clone)]
pub struct HubFigures(Arc<Shared>);

impl HubFigures {
    /// The figures now.
    pub fn read(&self) -> TunnelFigures {
        let Shared { settings, counters, .. } = &*self.0;
        let addresses = settings.pool.hub().iter().map(ToString::to_string).collect();
        TunnelFigures { interface: settings.device.clone(), addresses, ..counters.figures() }
    }
}

impl TunnelHub {
    /// Undoes what an earlier run has left, creates the device, and sets up forwarding. Nothing stays changed if it
    /// fails.
    ///
    /// # Errors
    /// [`TunnelError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn prepare(
        settings: HubSettings,
        addresses_of: AddressesOf,
        reporter: Reporter,
    ) -> Result<Self, TunnelError> {
        let (mut journal, left) = Journal::open(&settings.run_directory, &settings.name)?;
        if left > 0 {
            reporter.report(PeerIdentity::default(), Event::TunnelUndone { changes: left });
        }
        let leases = read_leases(&settings)?;
        let device = TunDevice::create(&settings.device)?;
        let failed = |what: &str| TunnelError::system(format!("{what} {}", device.name()));
        routes::start_interface(device.index(), DEVICE_MTU).map_err(failed("starting"))?;
        for address in settings.pool.hub() {
            let added = routes::add_address(device.index(), address);
            added.map_err(failed(&format!("giving the address {address} to")))?;
        }
        let HubSettings { name, pool, nat, allow_private, .. } = &settings;
        let table = format!("ropewalk-{name}");
        let pool = pool.networks();
        journal.install(&machine::hub_rules(&table, device.name(), pool, *nat, *allow_private))?;
        machine::forward(&mut journal, pool)?;
        let hub = settings.pool.hub().iter().map(IpNet::addr).collect();
        let writer = tokio::sync::Mutex::new(device.writer());
        let shared = Arc::new(Shared {
            settings,
            hub,
            leases: Mutex::new(leases),
            connected: RwLock::default(),
            addresses_of,
            counters: Arc::default(),
            writer,
        });
        Ok(Self { device, shared, reporter, _journal: journal })
    }

    /// For status and metrics.
    pub fn figures(&self) -> HubFigures {
        HubFigures(self.shared.clone())
    }

    /// Serves clients. Everything is undone when the returned future is dropped.
    ///
    /// # Errors
    /// The device is gone.
    pub async fn run(self, endpoint: &Endpoint) -> Result<(), TunnelError> {
        let Self { device, shared, reporter, _journal } = self;
        let mut clients = JoinSet::new();
        let serve = async {
            loop {
                let association = endpoint.accept().await;
                while clients.try_join_next().is_some() {}
                clients.spawn(serve_client(association, shared.clone(), reporter.clone()));
            }
        };
        tokio::select! {
            () = serve => Ok(()),
            result = read_device(&device, &shared) => {
                result.map_err(TunnelError::system("the TUN device has ended"))
            }
        }
    }
}

fn read_leases(settings: &HubSettings) -> Result<Leases, TunnelError> {
    let file = &settings.lease_file;
    match fs::read_to_string(file) {
        Ok(text) => Ok(Leases::read(settings.pool.clone(), &text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let directory = file.parent().unwrap_or(file);
            let failed = TunnelError::system(format!("creating {}", directory.display()));
            fs::create_dir_all(directory).map_err(failed)?;
            Ok(Leases::new(settings.pool.clone()))
        }
        Err(error) => Err(TunnelError::System(format!("reading {}", file.display()), error)),
    }
}

/// Serves one client until its association ends.
async fn serve_client(association: Association, shared: Arc<Shared>, reporter: Reporter) {
    let Some(key) = association.peer_key() else { return association.abort() };
    let identity = PeerIdentity { key: Some(key), ..PeerIdentity::default() };
    let addresses = match shared.greet(&association, key).await {
        Ok(addresses) => addresses,
        Err(reason) => {
            reporter.report(identity, Event::AssociationRefused { reason });
            // Lets the answer arrive first.
            let _ = tokio::time::timeout(HELLO_TIMEOUT, association.shutdown()).await;
            return;
        }
    };
    let (mut lane, inlet) =
        Lane::new(association, shared.settings.lane.clone(), shared.counters.clone());
    shared.change_connected(|connected| connected.insert(&addresses, &inlet));
    let own: Vec<IpAddr> = addresses.iter().map(IpNet::addr).collect();
    lane.run(&mut ClientSink { shared: &shared, own: &own, inlet: &inlet }).await;
    shared.change_connected(|connected| connected.remove(&inlet));
}

/// Takes the packets of one client.
struct ClientSink<'a> {
    shared: &'a Shared,
    own: &'a [IpAddr],
    inlet: &'a LaneInlet,
}

impl PacketSink for ClientSink<'_> {
    async fn deliver(&mut self, packets: Vec<Bytes>) {
        self.shared.deliver(packets, self.own, self.inlet.mtu()).await;
    }
}

impl Shared {
    /// Waits until the client asks for its addresses, and answers. Returns the addresses, or why there are none.
    async fn greet(&self, association: &Association, key: PublicKey) -> Result<Vec<IpNet>, String> {
        let first = tokio::time::timeout(HELLO_TIMEOUT, association.receive()).await;
        let first = first.map_err(|_| "it did not ask for its addresses".to_owned())?;
        let first = first.ok_or_else(|| "it ended the association".to_owned())?;
        let assigned = match Control::decode(&first.bytes) {
            _ if first.stream != CONTROL_STREAM || first.ppid != CONTROL_PPID => {
                Err("it is no client of a tunnel".to_owned())
            }
            Ok(Control::Hello { version: VERSION }) => self.assign(key),
            Ok(Control::Hello { version }) => {
                Err(format!("it has version {version} of the tunnel, the hub has {VERSION}"))
            }
            Ok(_) => Err("it is no client of a tunnel".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let answer = match &assigned {
            Ok(addresses) => {
                let (hub, dns) = (self.hub.clone(), self.settings.dns.clone());
                Control::Welcome(Welcome { addresses: addresses.clone(), hub, dns })
            }
            Err(reason) => Control::Refused { reason: reason.clone() },
        };
        let sent = association.send(CONTROL_STREAM, CONTROL_PPID, answer.encode().into()).await;
        sent.map_err(|error| error.to_string())?;
        assigned
    }

    fn assign(&self, key: PublicKey) -> Result<Vec<IpNet>, String> {
        let wanted = (self.addresses_of)(&key);
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        let before = leases.text();
        let assigned = leases.assign(key, &wanted).map_err(|error| error.to_string())?;
        let text = leases.text();
        if text != before {
            let file = &self.settings.lease_file;
            fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Ok(assigned)
    }

    fn change_connected(&self, change: impl FnOnce(&mut Connected<LaneInlet>)) {
        let mut connected = self.connected.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut connected);
        self.counters.set_clients(connected.count());
    }

    fn find(&self, address: IpAddr) -> Option<LaneInlet> {
        let connected = self.connected.read().unwrap_or_else(PoisonError::into_inner);
        connected.find(address).cloned()
    }

    /// Checks packets of a client with the addresses `own`, and passes them on.
    async fn deliver(&self, mut packets: Vec<Bytes>, own: &[IpAddr], mtu: u32) {
        packets.retain_mut(|packet| match self.direct(packet, own) {
            Ok(None) => {
                self.counters.on_received(packet.len());
                clamp(packet, mtu);
                true
            }
            Ok(Some(other)) => {
                self.counters.on_received(packet.len());
                self.forward(std::mem::take(packet), &other);
                false
            }
            Err(why) => {
                self.counters.on_refused(why);
                false
            }
        });
        if packets.is_empty() {
            return;
        }
        let mut writer = self.writer.lock().await;
        if !matches!(writer.write(packets.iter().map(AsRef::as_ref)).await, Ok(true)) {
            self.counters.on_refused(Refusal::Device);
        }
    }

    /// Where a packet of a client goes: to another client, or to the device (none).
    fn direct(&self, packet: &[u8], own: &[IpAddr]) -> Result<Option<LaneInlet>, Refusal> {
        let headers = Headers::read(packet)?;
        if !own.contains(&headers.source) {
            return Err(Refusal::ForeignSource);
        }
        let to = headers.destination;
        if to.is_multicast() {
            return Err(Refusal::NoSuchDestination);
        }
        if !self.settings.pool.contains(to) || self.hub.contains(&to) {
            return Ok(None);
        }
        if !self.settings.client_to_client {
            return Err(Refusal::ClientToClient);
        }
        self.find(to).map(Some).ok_or(Refusal::NoSuchDestination)
    }

    /// Forwards a packet to another client, as a router does.
    fn forward(&self, packet: Bytes, to: &LaneInlet) {
        let mut packet = BytesMut::from(packet);
        match decrement_ttl(&mut packet) {
            Ok(()) => {
                let _ = admit(packet.freeze(), to.mtu(), &self.hub, to, &self.counters);
            }
            Err(why) => self.counters.on_refused(why.into()),
        }
    }
}

/// Reads packets of the device and gives each to the client that has its destination.
async fn read_device(device: &TunDevice, shared: &Shared) -> io::Result<()> {
    let mut reader = device.reader();
    let mut batch = Vec::new();
    loop {
        reader.read(&mut batch).await?;
        let mut answers = Vec::new();
        for packet in batch.drain(..) {
            match Headers::read(&packet) {
                Ok(headers) => match shared.find(headers.destination) {
                    Some(inlet) => {
                        let (mtu, hub) = (inlet.mtu(), &shared.hub);
                        answers.extend(admit(packet, mtu, hub, &inlet, &shared.counters));
                    }
                    None => shared.counters.on_refused(Refusal::NoSuchDestination),
                },
                Err(why) => shared.counters.on_refused(why.into()),
            }
        }
        if !answers.is_empty() {
            let mut writer = shared.writer.lock().await;
            writer.write(answers.iter().map(Vec::as_slice)).await?;
        }
    }
}
