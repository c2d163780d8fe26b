//! The client's end of a tunnel.

mod acceptance;
mod packets;
mod settings;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ipnet::IpNet;
use parking_lot::Mutex;
use ropewalk_base::PeerText;
use ropewalk_runtime::endpoint::Association;
use ropewalk_runtime::interfaces;
use ropewalk_runtime::system::TunDevice;
use tokio::sync::Notify;

use self::acceptance::Acceptance;
use self::packets::{ForeignSources, HubSink, read_device};
pub use self::settings::{ClientSettings, Family};
use super::control::{CONTROL_PPID, CONTROL_STREAM, Control, TAKEN_OVER, VERSION, Welcome};
use super::counters::Counters;
use super::error::TunnelError;
use super::hubs::{Attempts, Condition, Fresh, NoAssociation, OnMoved};
use super::lane::{Lane, LaneInlet};
use super::links::LinkLedger;
use super::machine::{self, DeviceState, Machine, Overlap, Role};
use super::unusable_links::UnusableLinks;
use crate::observe::{Event, PeerIdentity, Reporter, TunnelFigures};

/// How long the hub may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a hub may take to open an association before the user gets a hint about possible causes.
const HINT_AFTER: Duration = Duration::from_secs(3);
const HINT: &str = "no answer from the hub yet. It may be unreachable, UDP may be blocked on the way, --peer may not be its \
    key, its --allow does not have the key of this end, or the clock of this machine was set back";

const NO_LINK: &str = "no link is up that could reach the hub: the client connects as soon as an interface is up with an \
    address of its family (IPv4 or IPv6)";

/// A client whose machine is set up as far as possible before it has connected.
#[derive(Debug)]
pub struct TunnelClient {
    settings: ClientSettings,
    device: TunDevice,
    machine: Machine,
    reporter: Reporter,
    shared: Arc<Shared>,
    /// The hub that was last reported as in use.
    reported: Option<usize>,
    /// Whether it was reported that a hub does not answer.
    silent: AtomicBool,
    /// Notified when the hub in use has become silent.
    fell_silent: Notify,
    /// Whether it was reported that no link is up, or that none may carry data.
    blocked: AtomicBool,
}

/// State shared by the tasks of a client.
#[derive(Debug)]
struct Shared {
    counters: Arc<Counters>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    inlet: Option<LaneInlet>,
    addresses: Vec<IpNet>,
    /// Addresses of the hubs.
    hubs: Arc<[SocketAddr]>,
}

/// Reads the figures of a running client.
#[derive(Clone, Debug)]
pub struct ClientFigures {
    shared: Arc<Shared>,
    device: String,
    links: Option<Arc<LinkLedger>>,
}

impl ClientFigures {
    /// The figures now.
    pub fn read(&self) -> TunnelFigures {
        let addresses =
            self.shared.state.lock().addresses.iter().map(ToString::to_string).collect();
        let interface = self.device.clone();
        let caps = self.links.iter().flat_map(|ledger| ledger.caps()).collect();
        TunnelFigures { interface, addresses, caps, ..self.shared.counters.figures() }
    }
}

impl TunnelClient {
    /// Creates the device. [`Machine::keep`] must run as long as the client does.
    ///
    /// # Errors
    /// [`TunnelError`].
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn prepare(
        mut settings: ClientSettings,
        machine: Machine,
        reporter: Reporter,
    ) -> Result<Self, TunnelError> {
        let hubs = settings.hubs.addresses();
        machine.set_hubs(&hubs)?;
        machine.find_name_servers(settings.dns_manager.as_ref(), &reporter).await?;
        let device = TunDevice::create(machine.device())?;
        let state = State { hubs: hubs.clone().into(), ..State::default() };
        let shared = Arc::new(Shared { counters: Arc::default(), state: Mutex::new(state) });
        machine.set_networks(&settings.networks, &settings.links);
        settings.hubs.on_moved = Some(OnMoved({
            let (machine, shared) = (machine.clone(), shared.clone());
            Arc::new(move |hubs| {
                // If the system refuses, it is tried again.
                let _ = machine.set_hubs(hubs);
                shared.state.lock().hubs = hubs.into();
            })
        }));
        Ok(Self {
            settings,
            device,
            machine,
            reporter,
            shared,
            reported: None,
            silent: AtomicBool::default(),
            fell_silent: Notify::default(),
            blocked: AtomicBool::default(),
        })
    }

    /// For status and metrics.
    pub fn figures(&self) -> ClientFigures {
        let links = self.settings.lane.links.clone();
        ClientFigures { shared: self.shared.clone(), device: self.device.name().to_owned(), links }
    }

    /// Connects to a hub, and reconnects whenever the association ends. Everything is undone when the returned
    /// future is dropped.
    ///
    /// # Errors
    /// The machine could not be set up, or the device is gone.
    pub async fn run(mut self) -> Result<(), TunnelError> {
        let (device, machine, shared) =
            (self.device.clone(), self.machine.clone(), self.shared.clone());
        let peers = self.settings.hubs.addresses();
        let foreign = ForeignSources::new(self.reporter.clone());
        let unusable = UnusableLinks::new(self.settings.links.clone(), peers);
        let unusable = unusable.report(self.reporter.clone());
        let connected = async {
            let mut attempts = Attempts::new(self.settings.hubs.hubs.len());
            let mut next = None;
            loop {
                let fresh = match next.take() {
                    Some(fresh) => Some(fresh),
                    None => self.open(attempts.index()).await?,
                };
                let ended = match fresh {
                    Some(fresh) => self.carry(fresh, &mut attempts).await?,
                    None => Ended::Refused,
                };
                let wait = match ended {
                    Ended::Refused => attempts.on_failed(),
                    Ended::Closed { taken_over } => attempts.on_ended(taken_over),
                    Ended::Replaced(fresh) => {
                        next = Some(fresh);
                        continue;
                    }
                };
                tokio::time::sleep(wait).await;
            }
        };
        tokio::select! {
            result = connected => result,
            never = unusable => match never {},
            result = read_device(device, machine, shared, foreign) => {
                result.map_err(TunnelError::system("the TUN device has ended"))
            }
        }
    }

    /// Opens an association with a hub.
    async fn open(&self, index: usize) -> Result<Option<Fresh>, TunnelError> {
        if !self.settings.hubs.has_link() {
            if !self.blocked.swap(true, Ordering::Relaxed) {
                self.report(index, Event::Problem(NO_LINK.to_owned()));
            }
            self.settings.hubs.link_up().await;
        }
        self.machine.look_at_routes();
        // The first association may use any link: until it has set up the machine, packets leave outside of the
        // tunnel.
        let rules = self.settings.lane.links.as_deref().filter(|_| self.reported.is_some());
        let hint = async {
            tokio::time::sleep(HINT_AFTER).await;
            if !self.silent.swap(true, Ordering::Relaxed) {
                self.report(index, Event::Problem(HINT.to_owned()));
                self.report_captive_portals(index).await;
            }
            std::future::pending::<Infallible>().await
        };
        let opened = tokio::select! {
            opened = self.settings.hubs.open(index, rules) => opened,
            never = hint => match never {},
        };
        match opened {
            Ok(fresh) => Ok(Some(fresh)),
            // Later, missing links may return.
            Err(NoAssociation::Local(error)) if self.reported.is_none() => Err(error.into()),
            Err(problem) => {
                let problem = format!("no connection to the hub: {problem}");
                self.report(index, Event::Problem(problem));
                Ok(None)
            }
        }
    }

    /// Requests addresses, and carries packets until the association ends or is replaced.
    async fn carry(&mut self, fresh: Fresh, attempts: &mut Attempts) -> Result<Ended, TunnelError> {
        let Fresh { index, endpoint: _endpoint, association } = fresh;
        let (association, welcome) = match greet(association).await {
            Ok(greeted) => greeted,
            Err(problem) => {
                let problem = format!("no connection to the hub: {problem}");
                self.report(index, Event::Problem(problem));
                return Ok(Ended::Refused);
            }
        };
        if let Some(problem) = self.overlap(&welcome)? {
            let problem = format!(
                "{problem}; help: the hub needs another --network, or this machine another network"
            );
            self.report(index, Event::Problem(problem));
            association.abort();
            return Ok(Ended::Refused);
        }
        let welcome = match self.acceptance()?.take(&welcome) {
            Ok(taken) => taken,
            Err(problem) => {
                self.report(index, Event::Problem(format!("the hub is not used: {problem}")));
                association.abort();
                return Ok(Ended::Refused);
            }
        };
        attempts.on_accepted(index);
        self.tell(index, Condition::Answers);
        let (mut lane, inlet) =
            Lane::new(association, self.settings.lane.clone(), self.shared.counters.clone());
        if let Err(error) = self.set_up(&welcome, inlet.mtu()).await {
            if self.reported.is_none() {
                return Err(error);
            }
            self.report(index, Event::Problem(error.to_string()));
            return Ok(Ended::Refused);
        }
        self.begin(index, &welcome, &inlet);
        let mut sink = HubSink {
            own: welcome.addresses.iter().map(IpNet::addr).collect(),
            inlet,
            writer: self.device.writer(),
            counters: self.shared.counters.clone(),
        };
        let (association, sent) = (lane.association(), lane.sent());
        let (hubs, rules) = (&self.settings.hubs, self.settings.lane.links.as_deref());
        let tell = |condition| self.tell(index, condition);
        let replaced = tokio::select! {
            () = lane.run(&mut sink) => None,
            fresh = hubs.replacement(index, &association, &sent, rules, tell) => Some(fresh),
            fresh = hubs.preferred(index, &association, rules) => Some(fresh),
            never = self.explain_silence(index) => match never {},
        };
        self.shared.state.lock().inlet = None;
        self.shared.counters.set_clients(0);
        if let Some(fresh) = replaced {
            // Its hub may still be running, and need not wait for this client.
            association.abort();
            return Ok(Ended::Replaced(fresh));
        }
        let reason = association.abort_reason();
        let taken_over = reason.is_some_and(|reason| reason.to_string() == TAKEN_OVER);
        if taken_over {
            self.report(index, Event::Problem(format!("the hub: {TAKEN_OVER}")));
        }
        Ok(Ended::Closed { taken_over })
    }

    /// The settings that a hub's answer may change on this machine.
    fn acceptance(&self) -> Result<Acceptance, TunnelError> {
        let failed = TunnelError::system("listing the networks of this machine");
        let others = interfaces::list().map_err(failed)?;
        let others = others.into_iter().filter(|one| one.name != self.device.name());
        let local = others.filter_map(|one| IpNet::new(one.ip, one.prefix).ok());
        Ok(Acceptance {
            networks: self.settings.accept.clone(),
            ipv6: machine::permits_ipv6(self.device.name()),
            local: local.map(|network| network.trunc()).collect(),
        })
    }

    /// A network of this machine that overlaps a new one of the hub.
    fn overlap(&self, welcome: &Welcome) -> Result<Option<Overlap>, TunnelError> {
        let before = self.shared.state.lock().addresses.clone();
        let is_known = |new: &IpNet| before.iter().any(|known| known.addr() == new.addr());
        let new = welcome.addresses.iter().filter(|address| !is_known(address));
        let networks: Vec<IpNet> = new.map(IpNet::trunc).collect();
        let failed = TunnelError::system("listing the networks of this machine");
        machine::overlap(&networks, self.device.name()).map_err(failed)
    }

    /// Starts to send packets of the device to the hub, and reports it unless nothing has changed.
    fn begin(&mut self, index: usize, welcome: &Welcome, inlet: &LaneInlet) {
        let previous = {
            let mut state = self.shared.state.lock();
            state.inlet = Some(inlet.clone());
            std::mem::replace(&mut state.addresses, welcome.addresses.clone())
        };
        self.shared.counters.set_clients(1);
        if previous != welcome.addresses || self.reported != Some(index) {
            let addresses: Vec<_> = welcome.addresses.iter().map(ToString::to_string).collect();
            let device = self.device.name().to_owned();
            self.report(index, Event::TunnelUp { device, addresses: addresses.join(" and ") });
            self.report_families(index, &welcome.addresses);
            self.reported = Some(index);
        }
    }

    /// Sets the addresses, routes and name servers from the hub's answer, unless they are set.
    async fn set_up(&mut self, welcome: &Welcome, mtu: u32) -> Result<(), TunnelError> {
        let (index, name) = (self.device.index(), self.device.name().to_owned());
        let (device, blocked) = self.device_state(index, welcome, mtu);
        self.machine
            .set_device(device, blocked)
            .map_err(TunnelError::system(format!("setting up {name}")))?;
        let servers = self.settings.servers(welcome);
        self.machine.set_name_servers(index, servers).await?;
        if let Some(inside) = self.settings.share.clone() {
            let role = Role::Client { inside, links: self.settings.links.clone() };
            self.machine.set_forwarding(&role, &welcome.addresses)?;
        }
        Ok(())
    }

    /// The state of the device, and the unreachable networks. The networks of the tunnel lead into the device, if the
    /// hub carries their family. Otherwise they are unreachable, unless they may leave outside of the tunnel.
    fn device_state(&self, index: u32, welcome: &Welcome, mtu: u32) -> (DeviceState, Vec<IpNet>) {
        let own = &welcome.addresses;
        let networks = self.settings.networks.iter().copied();
        let (mut networks, others): (Vec<IpNet>, Vec<IpNet>) =
            networks.partition(|network| Family::of(network.addr()).is_among(own));
        for hub in &welcome.hub {
            if !networks.iter().any(|network| network.contains(hub)) {
                networks.push(machine::single(*hub));
            }
        }
        let left = &self.settings.left_outside;
        let stays = |to: &IpNet| !left.contains(&Family::of(to.addr()));
        // If IPv6 is disabled, no packet can use it.
        let is_possible = |to: &IpNet| to.addr().is_ipv4() || machine::has_ipv6();
        let blocked = others.into_iter().filter(|to| stays(to) && is_possible(to)).collect();
        (DeviceState { index, addresses: own.clone(), networks, mtu }, blocked)
    }

    /// Reports the address families that are not in the tunnel although they should be.
    fn report_families(&self, index: usize, own: &[IpNet]) {
        for family in [Family::V4, Family::V6] {
            let networks = &self.settings.networks;
            let wanted = networks.iter().any(|network| Family::of(network.addr()) == family);
            if wanted && !family.is_among(own) {
                let outside = self.settings.left_outside.contains(&family);
                self.report(index, Event::NotInTunnel { family: family.name(), outside });
            }
        }
    }

    /// Reports captive portals whenever the hub in use becomes silent.
    async fn explain_silence(&self, index: usize) -> Infallible {
        loop {
            self.fell_silent.notified().await;
            self.report_captive_portals(index).await;
        }
    }

    /// Reports the links whose networks require a login.
    async fn report_captive_portals(&self, index: usize) {
        let help = match self.machine.is_closed() {
            false => "log in with a browser over this link",
            true => {
                "the kill switch keeps browsers from it: end the tunnel, `ropewalk tunnel undo`, log in over this link, start \
                 the tunnel again"
            }
        };
        for (link, portal) in self.settings.hubs.captive_portals(index).await {
            self.report(index, Event::Problem(format!("link {link}: {portal}; help: {help}")));
        }
    }

    /// Reports once that a hub is silent, that it answers again, and that no link may carry data.
    fn tell(&self, index: usize, condition: Condition) {
        let news = match condition {
            Condition::Silent => {
                self.fell_silent.notify_one();
                (!self.silent.swap(true, Ordering::Relaxed)).then_some(Event::HubSilent)
            }
            Condition::Answers => {
                self.silent.swap(false, Ordering::Relaxed).then_some(Event::HubAnswers)
            }
            Condition::Blocked(why) => {
                // The hub owes nothing now.
                self.silent.store(false, Ordering::Relaxed);
                let problem = format!("no link can carry data: {why}");
                let is_new = !self.blocked.swap(true, Ordering::Relaxed);
                is_new.then_some(Event::Problem(problem))
            }
            Condition::Unblocked => {
                self.blocked.store(false, Ordering::Relaxed);
                None
            }
        };
        if let Some(event) = news {
            self.report(index, event);
        }
    }

    /// Reports an event that concerns the hub with this number.
    fn report(&self, index: usize, event: Event) {
        let key = self.settings.hubs.hubs[index].key();
        let peer = PeerIdentity { key: Some(key), ..PeerIdentity::default() };
        self.reporter.report(peer, event);
    }
}

/// Why an association carries no more packets.
enum Ended {
    /// The hub did not accept it.
    Refused,
    /// The association has ended.
    Closed {
        /// Another association with the same key has taken its addresses over.
        taken_over: bool,
    },
    /// A hub has accepted another one.
    Replaced(Fresh),
}

/// Requests addresses from the hub. Returns the association and the answer, or the reason of the failure.
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
