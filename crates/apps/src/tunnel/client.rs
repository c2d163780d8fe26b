//! The client's end of a tunnel.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use ipnet::IpNet;
use ropewalk_base::PeerText;
use ropewalk_runtime::endpoint::{Association, Endpoint, Options, Target};
use ropewalk_runtime::system::{TunDevice, TunWriter, routes};

use super::control::{CONTROL_PPID, CONTROL_STREAM, Control, VERSION, Welcome};
use super::counters::{Counters, Refusal};
use super::error::TunnelError;
use super::journal::Journal;
use super::lane::{Lane, LaneInlet, LaneSettings, PacketBatch, PacketSink};
use super::machine;
use super::packet::{Headers, Transport};
use super::path_mtu::{clamp_mss, too_big};
use crate::observe::{Event, PeerIdentity, Reporter, TunnelFigures};

/// How long the hub may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Waits between attempts to connect.
const SHORTEST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// How a client is set up.
#[derive(Clone, Debug)]
pub struct ClientSettings {
    /// Name of the tunnel.
    pub name: String,
    /// Name of the TUN device.
    pub device: String,
    /// Options of its endpoint.
    pub options: Options,
    /// The hub.
    pub target: Target,
    /// The networks that are reached through the tunnel.
    pub networks: Vec<IpNet>,
    /// Networks that are reached outside of the tunnel in spite of the kill switch.
    pub direct: Vec<IpNet>,
    /// Whether nothing else may leave this machine outside of the tunnel.
    pub kill_switch: bool,
    /// Name servers; none: those that the hub recommends.
    pub dns: Option<Vec<IpAddr>>,
    /// The file that names the name servers; none: name servers stay as they are.
    pub dns_file: Option<PathBuf>,
    /// How packets are carried.
    pub lane: LaneSettings,
    /// Directory of the journal.
    pub run_directory: PathBuf,
}

/// A client whose machine is set up as far as is possible before it has connected.
#[derive(Debug)]
pub struct TunnelClient {
    settings: ClientSettings,
    device: TunDevice,
    journal: Journal,
    reporter: Reporter,
    shared: Arc<Shared>,
}

/// What the tasks of a client share.
#[derive(Debug)]
struct Shared {
    counters: Arc<Counters>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    inlet: Option<LaneInlet>,
    addresses: Vec<IpNet>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the figures of a running client.
#[derive(Clone, Debug)]
pub struct ClientFigures {
    shared: Arc<Shared>,
    device: String,
}

impl ClientFigures {
    /// The figures now.
    pub fn read(&self) -> TunnelFigures {
        let addresses = self.shared.lock().addresses.iter().map(ToString::to_string).collect();
        let interface = self.device.clone();
        TunnelFigures { interface, addresses, ..self.shared.counters.figures() }
    }
}

impl TunnelClient {
    /// Undoes what an earlier run has left, creates the device and installs the kill switch. Nothing stays changed if it
    /// fails.
    ///
    /// # Errors
    /// [`TunnelError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn prepare(settings: ClientSettings, reporter: Reporter) -> Result<Self, TunnelError> {
        let (mut journal, left) = Journal::open(&settings.run_directory, &settings.name)?;
        if left > 0 {
            reporter.report(PeerIdentity::default(), Event::TunnelUndone { changes: left });
        }
        let device = TunDevice::create(&settings.device)?;
        let peers = &settings.target.addresses;
        if settings.kill_switch {
            let table = format!("ropewalk-{}", settings.name);
            let rules = machine::kill_switch(&table, device.name(), peers, &settings.direct);
            journal.install(&rules)?;
        }
        let shared =
            Arc::new(Shared { counters: Arc::default(), state: Mutex::new(State::default()) });
        Ok(Self { settings, device, journal, reporter, shared })
    }

    /// For status and metrics.
    pub fn figures(&self) -> ClientFigures {
        ClientFigures { shared: self.shared.clone(), device: self.device.name().to_owned() }
    }

    /// Connects to the hub, and again whenever the association ends. Everything is undone when the returned future is
    /// dropped.
    ///
    /// # Errors
    /// The machine could not be set up, or the device is gone.
    pub async fn run(mut self) -> Result<(), TunnelError> {
        let (device, shared) = (self.device.clone(), self.shared.clone());
        let peers = self.settings.target.addresses.clone();
        let mut wait = SHORTEST_WAIT;
        let connected = async {
            loop {
                match self.connect().await? {
                    true => wait = SHORTEST_WAIT,
                    false => wait = (wait * 2).min(LONGEST_WAIT),
                }
                tokio::time::sleep(wait).await;
            }
        };
        tokio::select! {
            result = connected => result,
            result = read_device(device, shared, peers) => {
                result.map_err(TunnelError::system("the TUN device has ended"))
            }
        }
    }

    /// Connects once, and carries packets until the association ends. Returns whether the hub had accepted it.
    async fn connect(&mut self) -> Result<bool, TunnelError> {
        let ClientSettings { options, target, .. } = &self.settings;
        machine::except_peers(&mut self.journal, &target.addresses)?;
        let endpoint = Endpoint::open(options.clone())?;
        let greeted = match endpoint.connect(target).await {
            Ok(association) => greet(association).await,
            Err(error) => Err(error.to_string()),
        };
        let (association, welcome) = match greeted {
            Ok(greeted) => greeted,
            Err(problem) => {
                self.report(Event::Problem(format!("no connection to the hub: {problem}")));
                return Ok(false);
            }
        };
        let (mut lane, inlet) =
            Lane::new(association, self.settings.lane.clone(), self.shared.counters.clone());
        self.set_up(&welcome, inlet.mtu())?;
        let previous = {
            let mut state = self.shared.lock();
            state.inlet = Some(inlet.clone());
            std::mem::replace(&mut state.addresses, welcome.addresses.clone())
        };
        self.shared.counters.set_clients(1);
        if previous != welcome.addresses {
            let addresses: Vec<_> = welcome.addresses.iter().map(ToString::to_string).collect();
            let device = self.device.name().to_owned();
            self.report(Event::TunnelUp { device, addresses: addresses.join(" and ") });
        }
        let mut sink = HubSink {
            own: welcome.addresses.iter().map(IpNet::addr).collect(),
            inlet,
            writer: self.device.writer(),
            counters: self.shared.counters.clone(),
        };
        let association = lane.association();
        let (journal, peers) = (&mut self.journal, &self.settings.target.addresses);
        // A link that has come back has lost its exceptions.
        let keep_exceptions = async {
            while association.next_path_event().await.is_some() {
                machine::except_peers(journal, peers)?;
            }
            Ok::<(), TunnelError>(())
        };
        tokio::select! {
            () = lane.run(&mut sink) => {}
            result = keep_exceptions => result?,
        }
        drop(association);
        self.shared.lock().inlet = None;
        self.shared.counters.set_clients(0);
        Ok(true)
    }

    /// Sets the addresses, routes and name servers that the hub's answer asks for, unless they are set.
    fn set_up(&mut self, welcome: &Welcome, mtu: u32) -> Result<(), TunnelError> {
        let before = self.shared.lock().addresses.clone();
        let index = self.device.index();
        let name = self.device.name().to_owned();
        routes::start_interface(index, mtu)
            .map_err(TunnelError::system(format!("starting {name}")))?;
        for old in before.iter().filter(|old| !welcome.addresses.contains(old)) {
            let _ = routes::remove_address(index, *old);
        }
        for address in &welcome.addresses {
            let failed = TunnelError::system(format!("giving {name} the address {address}"));
            routes::add_address(index, *address).map_err(failed)?;
        }
        if !before.is_empty() {
            return Ok(());
        }
        let failed = TunnelError::system(format!("routing into {name}"));
        let own = &welcome.addresses;
        machine::route_into_tunnel(index, &self.settings.networks, own).map_err(failed)?;
        let servers = self.settings.dns.as_ref().unwrap_or(&welcome.dns);
        if let Some(file) = self.settings.dns_file.as_ref().filter(|_| !servers.is_empty()) {
            machine::set_name_servers(&mut self.journal, file, &self.settings.name, servers)?;
        }
        Ok(())
    }

    fn report(&self, event: Event) {
        let peer = PeerIdentity { key: self.settings.target.key, ..PeerIdentity::default() };
        self.reporter.report(peer, event);
    }
}

/// Asks the hub for addresses. Returns the association and the answer, or what went wrong.
pub async fn greet(association: Association) -> Result<(Association, Welcome), String> {
    let hello = Control::Hello { version: VERSION }.encode();
    let sent = association.send(CONTROL_STREAM, CONTROL_PPID, hello.into()).await;
    sent.map_err(|error| error.to_string())?;
    let answer = async {
        while let Some(message) = association.receive().await {
            if message.stream == CONTROL_STREAM && message.ppid == CONTROL_PPID {
                return Some(message.bytes);
            }
        }
        None
    };
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, answer).await;
    let answer = answer.map_err(|_| "the hub did not answer".to_owned())?;
    let answer = answer.ok_or_else(|| "the hub ended the association".to_owned())?;
    match Control::decode(&answer).map_err(|error| error.to_string())? {
        Control::Welcome(welcome) => Ok((association, welcome)),
        Control::Refused { reason } => Err(format!("the hub refused: {}", PeerText::new(reason))),
        Control::Hello { .. } => Err("the peer is a client, not a hub".to_owned()),
    }
}

/// Checks packets from the hub, and writes them to the device.
struct HubSink {
    own: Vec<IpAddr>,
    inlet: LaneInlet,
    writer: TunWriter,
    counters: Arc<Counters>,
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

/// Clamps the MSS of a packet that opens a TCP connection. Other packets are not touched, because a packet that shares its
/// memory with others is copied.
pub(super) fn clamp(packet: &mut Bytes, headers: &Headers, mtu: u32) {
    if !matches!(headers.transport, Transport::Tcp { is_control: true }) {
        return;
    }
    let mut changed = BytesMut::from(std::mem::take(packet));
    clamp_mss(&mut changed, mtu);
    *packet = changed.freeze();
}

/// Reads packets of the device and gives them to the lane. Ends when the device is gone.
async fn read_device(
    device: TunDevice,
    shared: Arc<Shared>,
    peers: Vec<SocketAddr>,
) -> io::Result<()> {
    let (mut reader, mut writer) = (device.reader(), device.writer());
    let is_loop = |headers: &Headers| {
        let to = (headers.destination, headers.ports.1);
        let is_udp = matches!(headers.transport, Transport::Udp { .. });
        is_udp && peers.iter().any(|peer| (peer.ip().to_canonical(), peer.port()) == to)
    };
    let (mut batch, mut device_mtu) = (Vec::new(), 0);
    loop {
        reader.read(&mut batch).await?;
        let (inlet, own) = {
            let state = shared.lock();
            (state.inlet.clone(), state.addresses.iter().map(IpNet::addr).collect::<Vec<_>>())
        };
        let Some(inlet) = inlet else {
            batch.drain(..).for_each(|_| shared.counters.on_refused(Refusal::QueueFull));
            continue;
        };
        let mtu = inlet.mtu();
        if mtu != device_mtu && routes::start_interface(device.index(), mtu).is_ok() {
            device_mtu = mtu;
        }
        let (mut answers, mut admitted) = (Vec::new(), PacketBatch::with_capacity(batch.len()));
        for packet in batch.drain(..) {
            let headers = match Headers::read(&packet).map_err(Refusal::from) {
                Ok(headers) if is_loop(&headers) => Err(Refusal::Loop),
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

/// What becomes of a packet of the device.
pub(super) enum Admission {
    /// It is carried.
    Taken((Headers, Bytes)),
    /// It is too big; the answer to its source.
    Answered(Vec<u8>),
    /// It is refused, and counted.
    Refused,
}

/// Decides whether a packet is carried.
pub(super) fn admit(
    mut packet: Bytes,
    headers: Headers,
    mtu: u32,
    own: &[IpAddr],
    counters: &Counters,
) -> Admission {
    if packet.len() > mtu as usize && !headers.may_fragment {
        counters.on_refused(Refusal::TooBig);
        let from = own.iter().find(|own| own.is_ipv4() == headers.source.is_ipv4());
        let answer = from.and_then(|from| too_big(&packet, mtu, *from));
        return answer.map_or(Admission::Refused, Admission::Answered);
    }
    clamp(&mut packet, &headers, mtu);
    Admission::Taken((headers, packet))
}
