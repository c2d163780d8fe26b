//! `ropewalk tunnel up`: the client.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use ipnet::IpNet;
use ropewalk_apps::access::PeerPolicy;
use ropewalk_apps::observe::{Event, EventRecord, Ledger, Observation, Sink, Sources, Status};
use ropewalk_apps::tunnel::client::{ClientSettings, Family, TunnelClient};
use ropewalk_apps::tunnel::hubs::{Hub, HubList};
use ropewalk_apps::tunnel::machine::{
    self, Machine, MachineSettings, Manager, OUTSIDE_MARK, RESOLV_CONF,
};
use ropewalk_apps::tunnel::service_manager::{self, Continuation};
use ropewalk_apps::tunnel::{LinkSpec, ThreadModeration};
use ropewalk_apps::whereabouts::{Finder, Whereabouts};
use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::{Observer, Options};
use ropewalk_runtime::seal::{Allowed, PresharedKey, PublicKey};
use ropewalk_runtime::system::routes;
use ropewalk_scenario::parse_duration;
use tokio::sync::oneshot;

use super::{CommonArgs, failed, links};
use crate::console::Console;
use crate::failure::Failure;
use crate::live::{Flow, Outputs, PeerArg, addresses, given, identity, locals, start};

/// How often the hubs are looked up until name servers answer, and the pause between attempts.
const LOOKUPS: u32 = 60;
const LOOKUP_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// Arguments of `tunnel up`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "All traffic goes through the tunnel, unless --route names networks. When the command ends, everything is \
    as it was before; after a crash, the next start undoes what was left.\n\n\
    Examples:\n  \
    ropewalk tunnel up home\n  \
    ropewalk tunnel up --to 192.0.2.7 --peer PUBKEY --route 10.20.0.0/16\n  \
    ropewalk tunnel up home --kill-switch --direct 192.168.1.0/24\n  \
    ropewalk tunnel up home --kill-switch --only-close          (at boot, before the network)\n  \
    ropewalk tunnel up home --backup-hub 198.51.100.9=PUBKEY\n  \
    ropewalk tunnel up home --link 'wwan0 use=backup cap=20GB/month'"
)]
pub struct UpArgs {
    #[command(flatten)]
    pub(super) common: CommonArgs,
    /// Addresses of the hub, one per path; with --peer NAME, the addresses at which it was paired by default
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',')]
    to: Vec<String>,
    /// Own address or network interface, one per path; one that is missing is used when it appears; by default all interfaces
    /// that are up, without TUN devices
    #[arg(long, value_name = "ADDR|INTERFACE", value_delimiter = ',')]
    pub(super) from: Vec<String>,
    /// The hub, by the name under which it was paired (`ropewalk pair`), or by the public key that it prints
    #[arg(long, value_name = "NAME|PUBKEY", value_parser = str::parse::<PeerArg>)]
    peer: Option<PeerArg>,
    /// Another hub, used while those before it do not answer: its addresses and its name or public key, or a paired name alone; may be repeated
    #[arg(long, value_name = "[ADDR,ADDR=]NAME|PUBKEY", value_parser = str::parse::<BackupHub>)]
    backup_hub: Vec<BackupHub>,
    /// How long a hub may be silent before others are asked
    #[arg(long, value_name = "TIME", default_value = "2 s", value_parser = parse_duration)]
    failover: Duration,
    /// Pre-shared key, if the hub requires one (`ropewalk keygen --psk FILE` makes it)
    #[arg(long, value_name = "FILE")]
    psk_file: Option<PathBuf>,
    /// Networks that are reached through the tunnel; everything by default
    #[arg(long, value_name = "NETWORK", value_delimiter = ',', value_parser = network)]
    route: Vec<IpNet>,
    /// Let IPv4 leave this machine outside of the tunnel if the hub has no IPv4 network; by default, it is unreachable then
    #[arg(long)]
    leave_ipv4: bool,
    /// Let IPv6 leave this machine outside of the tunnel if the hub has no IPv6 network; by default, it is unreachable then
    #[arg(long)]
    leave_ipv6: bool,
    /// Let nothing leave this machine outside of the tunnel, from now on until an orderly end: also while it is not connected,
    /// after a failure or a crash, and while systemd restarts its service
    #[arg(long)]
    kill_switch: bool,
    /// Close the kill switch and end; it stays closed, also when tunnels end, until `ropewalk tunnel undo`
    #[arg(long, requires = "kill_switch")]
    only_close: bool,
    /// Networks that --kill-switch lets through, such as the local one
    #[arg(long, value_name = "NETWORK", value_delimiter = ',', value_parser = network)]
    direct: Vec<IpNet>,
    /// Carry packets of networks behind this machine too, with the client's address; this machine must be their router
    #[arg(long)]
    share: bool,
    /// Interfaces of the networks that --share carries; by default those without a default route
    #[arg(long, value_name = "INTERFACE", value_delimiter = ',', requires = "share")]
    share_from: Vec<String>,
    /// Networks in which the hub may give this machine an address; private ones by default
    #[arg(long, value_name = "NETWORK", value_delimiter = ',', value_parser = network)]
    accept: Vec<IpNet>,
    /// When a link carries data, and how much: `wwan0 use=backup cap=20GB/month cost=5`; `use` is always, when-needed,
    /// backup or never; may be repeated
    #[arg(long, value_name = "RULE", value_parser = str::parse::<LinkSpec>)]
    pub(super) link: Vec<LinkSpec>,
    /// Name servers while the tunnel is up; those that the hub recommends by default
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    dns: Vec<IpAddr>,
    /// Leave the name servers as they are
    #[arg(long, conflicts_with = "dns")]
    no_dns: bool,
    /// What sets the name servers
    #[arg(long, value_name = "MANAGER", value_enum, default_value_t)]
    dns_manager: ManagerArg,
    /// Set the name servers in this file only, whatever manages them on this machine
    #[arg(long, value_name = "FILE")]
    dns_file: Option<PathBuf>,
}

/// What sets the name servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ManagerArg {
    /// What manages them on this machine: systemd-resolved, resolvconf, or else /etc/resolv.conf
    #[default]
    Auto,
    /// systemd-resolved, for the tunnel's device
    Resolved,
    /// The program resolvconf of openresolv
    Resolvconf,
    /// The client itself, in /etc/resolv.conf or in --dns-file
    File,
}

impl UpArgs {
    /// What sets the name servers; none if they stay as they are.
    fn dns_manager(&self) -> Result<Option<Manager>, Failure> {
        let manager = match (self.dns_manager, &self.dns_file) {
            (ManagerArg::Auto | ManagerArg::File, Some(file)) => Manager::File(file.clone()),
            (_, Some(_)) => {
                let help =
                    "leave one of them out: --dns-file sets the name servers in that file only";
                return Err(Failure::input("--dns-file and --dns-manager contradict", help));
            }
            (ManagerArg::Auto, None) => Manager::Auto,
            (ManagerArg::Resolved, None) => Manager::Resolved,
            (ManagerArg::Resolvconf, None) => Manager::Resolvconf,
            (ManagerArg::File, None) => Manager::File(RESOLV_CONF.into()),
        };
        // A tunnel to some networks does not change name resolution, unless name servers are given.
        let are_set = !self.no_dns && (self.route.is_empty() || !self.dns.is_empty());
        Ok(are_set.then_some(manager))
    }
}

/// A hub beside the first one.
#[derive(Clone, Debug)]
struct BackupHub {
    /// Its addresses; empty: those at which it was paired.
    to: Vec<String>,
    peer: PeerArg,
}

impl std::str::FromStr for BackupHub {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // A public key also ends with this character.
        let parts = text.split_once('=').filter(|(_, peer)| !peer.is_empty());
        let (to, peer) = parts.unwrap_or(("", text));
        let peer = peer.trim().parse().map_err(|error| {
            format!("{error}: give a name, or addresses and a public key: 192.0.2.9=PUBKEY")
        })?;
        let addresses = to.split(',').map(|one| one.trim().to_owned());
        Ok(Self { to: addresses.filter(|one| !one.is_empty()).collect(), peer })
    }
}

/// A network, or a single address.
pub fn network(text: &str) -> Result<IpNet, String> {
    let single = text.parse().map(machine::single);
    let found = text.parse::<IpNet>().map(|network| network.trunc()).or(single);
    found.map_err(|_| "give a network such as 10.20.0.0/16 or fd20::/48, or an address".to_owned())
}

/// Connects and carries packets until the client is interrupted.
pub async fn run(
    args: &UpArgs,
    console: Console,
    moderation: Arc<ThreadModeration>,
) -> Result<(), Failure> {
    // Must precede everything that can fail or takes time.
    let machine = Machine::open(machine_settings(args)).map_err(failed)?;
    if args.only_close {
        return machine.hold().map_err(failed);
    }
    // If this future is dropped, the user has ended the tunnel.
    let mut end = End { machine: &machine, console, is_orderly: true };
    let result = connect(args, &machine, console, moderation).await;
    end.is_orderly = false;
    if machine.is_closed() {
        let name = args.common.name();
        console.note(format_args!(
            "nothing leaves this machine outside of the tunnel: the kill switch stays closed until the tunnel runs again, or \
             `ropewalk tunnel undo {name}`"
        ));
    }
    result
}

/// How a tunnel ends: an orderly end opens the kill switch, unless systemd starts the tunnel again or the system shuts down.
struct End<'a> {
    machine: &'a Machine,
    console: Console,
    is_orderly: bool,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        if !self.is_orderly || std::thread::panicking() {
            return;
        }
        let follows = self.machine.is_closed().then(service_manager::continuation).flatten();
        let Some(follows) = follows else { return self.machine.opens_at_end() };
        let note = format!("{follows}: the kill switch stays closed");
        match follows {
            Continuation::Unknown(_) => {
                let name = self.machine.name();
                self.console.note(format_args!("{note}; `ropewalk tunnel undo {name}` opens it"));
            }
            _ => self.console.note(note),
        }
    }
}

fn machine_settings(args: &UpArgs) -> MachineSettings {
    MachineSettings {
        name: args.common.name(),
        device: args.common.device(),
        kill_switch: args.kill_switch,
        direct: args.direct.clone(),
        journal_directory: args.common.journal_directory().to_owned(),
    }
}

async fn connect(
    args: &UpArgs,
    machine: &Machine,
    console: Console,
    moderation: Arc<ThreadModeration>,
) -> Result<(), Failure> {
    let hubs = hubs(args)?;
    links::check(&args.from)?;
    links::note_missing(args, console);
    if !args.kill_switch && !args.direct.is_empty() {
        console.note(
            "--direct has no effect without --kill-switch: what it names is reached as without it",
        );
    }
    let observation = args.common.observe.bind("tunnel up", console)?;
    let reporter = observation.reporter();
    let connected = carry(args, hubs, machine, observation, console, moderation);
    tokio::select! {
        result = connected => result,
        never = machine.keep(&reporter) => match never {},
    }
}

/// Looks up the hubs, and carries packets until the tunnel ends.
async fn carry(
    args: &UpArgs,
    hubs: Vec<(Vec<String>, PeerPolicy)>,
    machine: &Machine,
    observation: Observation,
    console: Console,
    moderation: Arc<ThreadModeration>,
) -> Result<(), Failure> {
    let reporter = observation.reporter();
    let names: BTreeMap<PublicKey, String> =
        hubs.iter().map(|(_, hub)| (hub.key, hub.name.clone())).collect();
    let hubs = look_up(hubs, machine, console).await?;
    let mut settings = settings(args, hubs, &observation.observer(), console)?;
    settings.lane.moderation = moderation;
    let outputs = Outputs::default().with(ShownEvents(console));
    let outputs = args.common.observe.stream(outputs, "tunnel up", Flow::Both, false)?;
    let links = links::ledger(args)?.map(|ledger| ledger.reporting_to(reporter.clone()));
    settings.lane.links = links.map(Arc::new);
    let client =
        TunnelClient::prepare(settings, machine.clone(), reporter).await.map_err(failed)?;
    let figures = client.figures();
    let tunnel = Box::new(move || Some(figures.read()));
    let name = Box::new(move |key: &PublicKey| names.get(key).cloned());
    let _monitor = start(observation, Sources { name, tunnel, ..Sources::default() }, outputs)?;
    client.run().await.map_err(failed)
}

/// The hubs, the first one first: their addresses as they were given, and what is known of them.
fn hubs(args: &UpArgs) -> Result<Vec<(Vec<String>, PeerPolicy)>, Failure> {
    let hub = args.peer.as_ref().ok_or_else(|| {
        let help =
            "give the public key that `ropewalk tunnel serve` prints, or the name of a paired hub";
        Failure::input("--peer is missing", help)
    })?;
    let mut hubs = vec![(args.to.clone(), hub.find("--peer")?)];
    for backup in &args.backup_hub {
        hubs.push((backup.to.clone(), backup.peer.find("--backup-hub")?));
    }
    Ok(hubs)
}

/// A hub as it is looked up: its addresses, what is known of it, and how it is found again.
type FoundHub = (Vec<SocketAddr>, PeerPolicy, Option<Finder>);

/// Looks up the addresses of the hubs. Waits for name servers that do not answer: the network may not be there yet.
async fn look_up(
    hubs: Vec<(Vec<String>, PeerPolicy)>,
    machine: &Machine,
    console: Console,
) -> Result<Vec<FoundHub>, Failure> {
    let (mut found, mut failures) = (Vec::new(), 0);
    // Saved now, because the name servers of the tunnel are set later.
    let servers = machine.name_servers().to_vec();
    for (to, hub) in hubs {
        let texts = given(&to, Some(&hub))?.to_vec();
        let outside = Arc::new({
            let (texts, servers) = (texts.clone(), servers.clone());
            move || {
                let interfaces = ways_out();
                let lookup =
                    |host: &str| addresses::outside(host, &servers, OUTSIDE_MARK, &interfaces);
                addresses::remotes_by(&texts, &lookup)
            }
        });
        let addresses = loop {
            let (outside, texts, closed) = (outside.clone(), texts.clone(), machine.is_closed());
            let (answer, answered) = oneshot::channel();
            // Runs in its own thread, so that an interrupted command does not wait for name
            // servers.
            std::thread::spawn(move || {
                answer.send(if closed { outside() } else { addresses::remotes(&texts) })
            });
            let lost = |_| Err(Failure::Run("the lookup ended".to_owned()));
            match answered.await.unwrap_or_else(lost) {
                Err(Failure::Run(problem)) if failures < LOOKUPS => {
                    if failures == 0 {
                        console.note(format_args!("{problem}; trying again for a minute"));
                    }
                    failures += 1;
                    tokio::time::sleep(LOOKUP_INTERVAL).await;
                }
                other => break other?,
            }
        };
        let finder = addresses::has_name(&texts).then(|| Finder(Arc::new(move || outside().ok())));
        found.push((addresses, hub, finder));
    }
    Ok(found)
}

/// The interfaces with a default route, and last none: whatever the routes say.
fn ways_out() -> Vec<Option<String>> {
    let all = routes::default_interfaces().unwrap_or_default();
    let found = all.into_iter().filter(|one| !one.is_tun).map(|one| Some(one.name));
    found.chain([None]).collect()
}

fn settings(
    args: &UpArgs,
    hubs: Vec<FoundHub>,
    observer: &Observer,
    console: Console,
) -> Result<ClientSettings, Failure> {
    let common = &args.common;
    let secret = identity(common.key.as_deref(), console)?;
    console
        .note(format_args!("public key of this end, for the hub's --allow: {}", secret.public()));
    let psk = args.psk_file.as_deref().map(PresharedKey::read_file).transpose()?;
    let transport = common.transport()?;
    let capture = common.transport.capture(true, console)?;
    let hub = |(addresses, hub, finder): FoundHub| {
        let sealed =
            Options::connecting(&[]).sealed(secret.clone(), Allowed::Keys([hub.key].into()));
        let mut options = sealed.with_psk(psk.clone());
        options.locals = locals(&args.from, &addresses);
        options.wait_for_locals = !args.from.is_empty();
        options.transport = transport.clone();
        options.capture = capture.clone();
        options.observer = Some(observer.clone());
        if args.from.is_empty() {
            options = options.avoiding_tun().automatic(&addresses);
        }
        Hub::new(options, hub.key, Whereabouts::new(addresses, finder))
    };
    let failover = std::time::Duration::from_nanos(args.failover.as_nanos());
    let hubs = HubList { hubs: hubs.into_iter().map(hub).collect(), failover, on_moved: None };
    let everything = args.route.is_empty();
    Ok(ClientSettings {
        hubs,
        links: args.from.clone(),
        networks: if everything { machine::everything() } else { args.route.clone() },
        accept: args.accept.clone(),
        left_outside: [(args.leave_ipv4, Family::V4), (args.leave_ipv6, Family::V6)]
            .into_iter()
            .filter_map(|(left, family)| left.then_some(family))
            .collect(),
        share: args.share.then(|| args.share_from.clone()),
        dns: (!args.dns.is_empty()).then(|| args.dns.clone()),
        dns_manager: args.dns_manager()?,
        lane: common.lane()?,
    })
}

/// Shows a person what happens to the tunnel and its links.
struct ShownEvents(Console);

impl Sink for ShownEvents {
    fn event(&mut self, record: &EventRecord) {
        if !matches!(record.event, Event::AssociationOpened) {
            self.0.note(record.line(false));
        }
    }

    fn tick(&mut self, _: &Status, _: &Ledger) {}

    fn end(&mut self, _: &Status, _: &Ledger) {}
}
