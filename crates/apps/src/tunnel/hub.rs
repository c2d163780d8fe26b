//! The hub: the end of a tunnel that has a public address and serves many clients.

#[cfg(test)]
mod tests;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ipnet::IpNet;
use parking_lot::{Mutex, RwLock};
use ropewalk_base::Time;
use ropewalk_runtime::endpoint::{Association, Endpoint};
use ropewalk_runtime::seal::PublicKey;
use ropewalk_runtime::system::{TunDevice, TunWriter};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::addresses::{Connected, Leases, Pool};
use super::admission::{Admission, admit, clamp};
use super::control::{CONTROL_PPID, CONTROL_STREAM, Control, TAKEN_OVER, VERSION, Welcome};
use super::counters::{Counters, Refusal};
use super::error::TunnelError;
use super::lane::{Lane, LaneInlet, LaneSettings, PacketBatch, PacketSink};
use super::machine::{self, DeviceState, Machine, MachineSettings, Role};
use super::meters::Meters;
use super::packet::{Headers, Transport, decrement_ttl};
use super::path_mtu::prohibited;
use super::quota::{Direction, Excess, Meter, Month};
use super::store::LeaseFile;
use crate::access::TunnelPolicy;
use crate::destinations::is_public;
use crate::observe::{Event, PeerIdentity, Reporter, TunnelFigures};

/// How long a client may take to request its addresses.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Delay between a change of the clients' volumes and their storage. A crash loses the changes since.
const STORE_INTERVAL: Duration = Duration::from_secs(10);
/// MTU of the hub's device, bytes. The hub answers packets that are too big for a client.
const DEVICE_MTU: u32 = 1500;
/// Ports of DNS, including DNS over TLS (RFC 7858).
const DNS_PORTS: [u16; 2] = [53, 853];

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
    /// Name servers that are recommended to clients.
    pub dns: Vec<IpAddr>,
    /// How packets are carried.
    pub lane: LaneSettings,
    /// File of the addresses that clients have.
    pub lease_file: PathBuf,
    /// File of the volumes that clients have used.
    pub volume_file: PathBuf,
    /// Addresses and ports of the hub's endpoint. The tunnel does not carry packets to them.
    pub endpoint: Vec<SocketAddr>,
    /// Directory of the journal.
    pub journal_directory: PathBuf,
}

impl HubSettings {
    /// Whether a client's packet goes to the hub's own endpoint.
    fn is_own_endpoint(&self, headers: &Headers) -> bool {
        let is_udp = matches!(headers.transport, Transport::Udp { .. });
        let port = |one: &&SocketAddr| one.port() == headers.ports.1;
        let here = |one: &SocketAddr| {
            one.ip().to_canonical() == headers.destination || self.pool.is_hub(headers.destination)
        };
        is_udp && self.endpoint.iter().filter(port).any(here)
    }

    /// Whether a client's packet may leave the tunnel. Clients may query the recommended name servers even if these
    /// are in a private network.
    fn lets_out(&self, headers: &Headers) -> bool {
        let to = headers.destination;
        let is_question = DNS_PORTS.contains(&headers.ports.1) && self.dns.contains(&to);
        self.allow_private || self.pool.is_hub(to) || is_public(to) || is_question
    }
}

/// Finds the operator's configuration for a client. `None` if its key is not admitted.
pub type PolicyOf = Arc<dyn Fn(&PublicKey) -> Option<TunnelPolicy> + Send + Sync>;

/// A hub whose machine is set up.
pub struct TunnelHub {
    device: TunDevice,
    shared: Arc<Shared>,
    /// Undoes everything when the hub ends.
    machine: Machine,
}

/// State shared by the tasks of all clients.
struct Shared {
    settings: HubSettings,
    hub: Vec<IpAddr>,
    leases: Mutex<Leases>,
    lease_file: LeaseFile,
    connected: RwLock<Connected<Client>>,
    policy_of: PolicyOf,
    meters: Meters,
    counters: Arc<Counters>,
    reporter: Reporter,
    writer: tokio::sync::Mutex<TunWriter>,
}

/// A connected client.
#[derive(Clone, Debug)]
struct Client {
    key: PublicKey,
    inlet: LaneInlet,
    meter: Arc<Meter>,
    /// Notified when another association of the client has taken its addresses over.
    replaced: Arc<Notify>,
}

impl Client {
    /// Sends an answer about one of the client's packets.
    fn answer(&self, answer: Option<Vec<u8>>) {
        if let Some(answer) = answer
            && let Ok(headers) = Headers::read(&answer)
        {
            self.inlet.push(vec![(headers, answer.into())]);
        }
    }
}

impl PartialEq for Client {
    fn eq(&self, other: &Self) -> bool {
        self.inlet == other.inlet
    }
}

/// Reads the figures of a running hub.
#[derive(Clone)]
pub struct HubFigures(Arc<Shared>);

impl HubFigures {
    /// The figures now.
    pub fn read(&self) -> TunnelFigures {
        let Shared { settings, counters, meters, .. } = &*self.0;
        let addresses = settings.pool.hub().iter().map(ToString::to_string).collect();
        let interface = settings.device.clone();
        TunnelFigures { interface, addresses, volumes: meters.figures(), ..counters.figures() }
    }

    /// Applies the limits of the current configuration.
    pub fn refresh_limits(&self) {
        let policy_of = &self.0.policy_of;
        self.0.meters.refresh(&|key| policy_of(key).unwrap_or_default());
    }
}

impl TunnelHub {
    /// Undoes changes that an earlier run has left, creates the device, and sets up forwarding. If this fails,
    /// nothing stays changed.
    ///
    /// # Errors
    /// [`TunnelError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn prepare(
        mut settings: HubSettings,
        policy_of: PolicyOf,
        reporter: Reporter,
    ) -> Result<Self, TunnelError> {
        let listed = machine::overlap(settings.pool.networks(), &settings.device);
        let overlap =
            listed.map_err(TunnelError::system("listing the networks of this machine"))?;
        if let Some(overlap) = overlap {
            return Err(TunnelError::Overlap(overlap));
        }
        let machine = Machine::open(MachineSettings {
            name: settings.name.clone(),
            device: settings.device.clone(),
            kill_switch: false,
            direct: Vec::new(),
            journal_directory: settings.journal_directory.clone(),
        })?;
        let device = TunDevice::create(&settings.device)?;
        if !machine::permits_ipv6(device.name())
            && let Some(pool) = settings.pool.without_ipv6()
        {
            settings.pool = pool;
            let problem =
                "IPv6 is switched off on this machine: clients get addresses of IPv4 alone";
            reporter.report(PeerIdentity::default(), Event::Problem(problem.to_owned()));
        }
        let (lease_file, leases) = LeaseFile::open(&settings.lease_file, settings.pool.clone())?;
        let meters = Meters::open(&settings.volume_file)?;
        let addresses = settings.pool.hub();
        let state =
            DeviceState { index: device.index(), addresses, networks: Vec::new(), mtu: DEVICE_MTU };
        let set_up = machine.set_device(state, Vec::new());
        set_up.map_err(TunnelError::system(format!("setting up {}", device.name())))?;
        let pool = settings.pool.networks();
        let ports = settings.endpoint.iter().map(SocketAddr::port).collect();
        let role = Role::Hub { nat: settings.nat, ports };
        machine.set_forwarding(&role, pool)?;
        let hub = settings.pool.hub().iter().map(IpNet::addr).collect();
        let writer = tokio::sync::Mutex::new(device.writer());
        let shared = Arc::new(Shared {
            settings,
            hub,
            leases: Mutex::new(leases),
            lease_file,
            connected: RwLock::default(),
            policy_of,
            meters,
            counters: Arc::default(),
            reporter,
            writer,
        });
        Ok(Self { device, shared, machine })
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
        let Self { device, shared, machine } = self;
        let reporter = shared.reporter.clone();
        let mut clients = JoinSet::new();
        let serve = async {
            loop {
                let association = endpoint.accept().await;
                while clients.try_join_next().is_some() {}
                clients.spawn(serve_client(association, shared.clone()));
            }
        };
        tokio::select! {
            () = serve => Ok(()),
            () = store_volumes(&shared) => Ok(()),
            never = machine.keep(&reporter) => match never {},
            result = read_device(&device, &shared) => {
                result.map_err(TunnelError::system("the TUN device has ended"))
            }
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The hub is ending, so a problem could no longer be reported.
        let _ = self.meters.store();
    }
}

/// Stores the clients' volumes periodically.
async fn store_volumes(shared: &Arc<Shared>) {
    loop {
        shared.meters.changed().await;
        tokio::time::sleep(STORE_INTERVAL).await;
        let one = shared.clone();
        let stored = tokio::task::spawn_blocking(move || one.meters.store()).await;
        if let Ok(Err(problem)) = stored {
            let problem = format!("volumes of clients are not stored: {problem}");
            shared.reporter.report(PeerIdentity::default(), Event::Problem(problem));
        }
    }
}

/// Serves one client until its association ends.
async fn serve_client(association: Association, shared: Arc<Shared>) {
    let Some(key) = association.peer_key() else { return association.abort() };
    let identity = PeerIdentity { key: Some(key), ..PeerIdentity::default() };
    let policy = (shared.policy_of)(&key).unwrap_or_default();
    let addresses = match shared.greet(&association, key, &policy.addresses).await {
        Ok(addresses) => addresses,
        Err(None) => return,
        Err(Some(reason)) => {
            shared.reporter.report(identity, Event::AssociationRefused { reason });
            // Waits for the answer to arrive first.
            let _ = tokio::time::timeout(HELLO_TIMEOUT, association.shutdown()).await;
            return;
        }
    };
    let (mut lane, inlet) =
        Lane::new(association, shared.settings.lane.clone(), shared.counters.clone());
    let meter = shared.meters.of(key, policy.limits);
    let client = Client { key, inlet, meter, replaced: Arc::default() };
    for other in shared.change_connected(|connected| connected.insert(&addresses, &client)) {
        other.replaced.notify_one();
    }
    let own: Vec<IpAddr> = addresses.iter().map(IpNet::addr).collect();
    let association = lane.association();
    let mut sink = ClientSink { shared: &shared, own: &own, client: &client };
    tokio::select! {
        () = lane.run(&mut sink) => {}
        () = client.replaced.notified() => association.abort_because(TAKEN_OVER),
    }
    shared.change_connected(|connected| connected.remove(&addresses, &client));
}

/// Receives the packets of one client.
struct ClientSink<'a> {
    shared: &'a Shared,
    own: &'a [IpAddr],
    client: &'a Client,
}

impl PacketSink for ClientSink<'_> {
    async fn deliver(&mut self, packets: Vec<Bytes>) {
        self.shared.deliver(packets, self.own, self.client).await;
    }
}

impl Shared {
    /// Waits until the client requests its addresses, and answers. Returns the addresses, or why there are none.
    /// Returns nothing if the client has ended the association, which it does after checking that the hub works.
    async fn greet(
        &self,
        association: &Association,
        key: PublicKey,
        configured: &[IpAddr],
    ) -> Result<Vec<IpNet>, Option<String>> {
        let first = tokio::time::timeout(HELLO_TIMEOUT, association.receive()).await;
        let first = first.map_err(|_| Some("it did not ask for its addresses".to_owned()))?;
        let first = first.ok_or(None)?;
        let assigned = match Control::decode(&first.bytes) {
            _ if first.stream != CONTROL_STREAM || first.ppid != CONTROL_PPID => {
                Err("it is no client of a tunnel".to_owned())
            }
            Ok(Control::Hello { version: VERSION }) => self.assign(key, configured),
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
        sent.map_err(|error| Some(error.to_string()))?;
        assigned.map_err(Some)
    }

    fn assign(&self, key: PublicKey, configured: &[IpAddr]) -> Result<Vec<IpNet>, String> {
        let mut leases = self.leases.lock();
        let is_admitted = |key: &PublicKey| (self.policy_of)(key).is_some();
        let assigned = leases.assign(key, configured, is_admitted);
        let (addresses, is_new) = assigned.map_err(|error| error.to_string())?;
        if is_new {
            self.lease_file.append(&leases.line(&key))?;
        }
        Ok(addresses)
    }

    fn change_connected<T>(&self, change: impl FnOnce(&mut Connected<Client>) -> T) -> T {
        let mut connected = self.connected.write();
        let result = change(&mut connected);
        self.counters.set_clients(connected.count());
        result
    }

    /// Checks packets of a client with the addresses `own`, and forwards them.
    async fn deliver(&self, mut packets: Vec<Bytes>, own: &[IpAddr], client: &Client) {
        let (mtu, at) = (client.inlet.mtu(), self.meters.now());
        packets.retain_mut(|packet| match self.direct(packet, own) {
            Ok((headers, other)) => {
                if !self.admit(client, at, packet) {
                    return false;
                }
                self.counters.on_received(packet.len());
                match other {
                    None => clamp(packet, &headers, mtu),
                    Some(other) => self.forward(std::mem::take(packet), &other, at),
                }
                !packet.is_empty()
            }
            Err(Refusal::Private) => {
                // The client's limits apply to packets that are answered as well.
                if self.admit(client, at, packet) {
                    self.counters.on_refused(Refusal::Private);
                    client.answer(self.prohibited(packet));
                }
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

    /// Whether a packet of a client is within its limits. If its volume is used up, the client is notified from
    /// time to time.
    fn admit(&self, client: &Client, at: (Time, Month), packet: &[u8]) -> bool {
        let admitted = self.within_limits(client, at, Direction::Up, packet);
        admitted.map_err(|answer| client.answer(answer)).is_ok()
    }

    /// The answer to a packet that the hub does not permit.
    fn prohibited(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let ipv4 = packet.first().is_some_and(|byte| byte >> 4 == 4);
        let from = self.hub.iter().find(|hub| hub.is_ipv4() == ipv4)?;
        prohibited(packet, *from)
    }

    /// Counts a packet of a client, if its limits permit it.
    ///
    /// # Errors
    /// The limits do not permit it. Includes the answer to the sender, if one is due.
    fn within_limits(
        &self,
        client: &Client,
        at: (Time, Month),
        direction: Direction,
        packet: &[u8],
    ) -> Result<(), Option<Vec<u8>>> {
        let (why, answer) = match client.meter.admit(at, direction, packet.len()) {
            Ok(()) => {
                self.meters.note_change();
                return Ok(());
            }
            Err(Excess::Rate) => (Refusal::Rate, false),
            Err(Excess::Quota { answer, is_first }) => {
                if is_first {
                    self.report_used_up(client.key);
                }
                (Refusal::Quota, answer)
            }
        };
        self.counters.on_refused(why);
        Err(answer.then(|| self.prohibited(packet)).flatten())
    }

    fn report_used_up(&self, key: PublicKey) {
        let peer = PeerIdentity { key: Some(key), ..PeerIdentity::default() };
        let limit = "its volume is used up: it carries nothing until the month ends".to_owned();
        self.reporter.report(peer, Event::LimitReached { limit });
    }

    /// The destination of a client's packet: another client, or the device (`None`).
    fn direct(&self, packet: &[u8], own: &[IpAddr]) -> Result<(Headers, Option<Client>), Refusal> {
        let headers = Headers::read(packet)?;
        if !own.contains(&headers.source) {
            return Err(Refusal::ForeignSource);
        }
        let to = headers.destination;
        if self.settings.is_own_endpoint(&headers) {
            return Err(Refusal::Loop);
        }
        if to.is_multicast() {
            return Err(Refusal::NoSuchDestination);
        }
        if !self.settings.pool.contains(to) || self.hub.contains(&to) {
            let may_leave = self.settings.lets_out(&headers);
            return if may_leave { Ok((headers, None)) } else { Err(Refusal::Private) };
        }
        if !self.settings.client_to_client {
            return Err(Refusal::ClientToClient);
        }
        let connected = self.connected.read();
        let other = connected.find(to).cloned().ok_or(Refusal::NoSuchDestination)?;
        Ok((headers, Some(other)))
    }

    /// Forwards a packet to another client, as a router does.
    fn forward(&self, packet: Bytes, to: &Client, at: (Time, Month)) {
        let mut packet = BytesMut::from(packet);
        let headers = match decrement_ttl(&mut packet).and_then(|()| Headers::read(&packet)) {
            Ok(headers) => headers,
            Err(why) => return self.counters.on_refused(why.into()),
        };
        if self.within_limits(to, at, Direction::Down, &packet).is_ok() {
            let mtu = to.inlet.mtu();
            let admission = admit(packet.freeze(), headers, mtu, &self.hub, &self.counters);
            if let Admission::Taken(packet) = admission {
                to.inlet.push(vec![packet]);
            }
        }
    }

    /// Passes packets of the device to the clients that have their destinations. Adds answers for the senders.
    fn distribute(&self, packets: &mut Vec<Bytes>, answers: &mut Vec<Vec<u8>>) {
        let at = self.meters.now();
        // Locked once for all packets: connecting and disconnecting clients wait for at most one batch.
        let connected = self.connected.read();
        // Successive packets for one client are passed together.
        let mut run: Option<(&Client, PacketBatch)> = None;
        for packet in packets.drain(..) {
            let headers = match Headers::read(&packet) {
                Ok(headers) => headers,
                Err(why) => {
                    self.counters.on_refused(why.into());
                    continue;
                }
            };
            let Some(client) = connected.find(headers.destination) else {
                self.counters.on_refused(Refusal::NoSuchDestination);
                continue;
            };
            if let Err(answer) = self.within_limits(client, at, Direction::Down, &packet) {
                answers.extend(answer);
                continue;
            }
            match admit(packet, headers, client.inlet.mtu(), &self.hub, &self.counters) {
                Admission::Taken(packet) => match &mut run {
                    Some((same, batch)) if std::ptr::eq(*same, client) => batch.push(packet),
                    _ => {
                        if let Some((before, batch)) = run.replace((client, vec![packet])) {
                            before.inlet.push(batch);
                        }
                    }
                },
                Admission::Answered(answer) => answers.push(answer),
                Admission::Refused => {}
            }
        }
        if let Some((client, batch)) = run {
            client.inlet.push(batch);
        }
    }
}

/// Reads packets of the device and passes each to the client that has its destination.
async fn read_device(device: &TunDevice, shared: &Shared) -> io::Result<()> {
    let mut reader = device.reader();
    let (mut batch, mut answers) = (Vec::new(), Vec::new());
    loop {
        reader.read(&mut batch).await?;
        shared.distribute(&mut batch, &mut answers);
        if !answers.is_empty() {
            let mut writer = shared.writer.lock().await;
            writer.write(answers.iter().map(Vec::as_slice)).await?;
            answers.clear();
        }
    }
}
