//! `ropewalk tunnel serve`: the hub.

use std::net::IpAddr;
use std::sync::Arc;

use clap::Args;
use ipnet::IpNet;
use ropewalk_apps::access::{AccessList, ClientLimits, TunnelPolicy, parse_monthly, parse_rate};
use ropewalk_apps::observe::{Event, PeerIdentity, Sources, TunnelFigures};
use ropewalk_apps::tunnel::addresses::Pool;
use ropewalk_apps::tunnel::hub::{HubFigures, HubSettings, PolicyOf, TunnelHub};
use ropewalk_apps::tunnel::{PacketMemory, ThreadModeration};
use ropewalk_runtime::endpoint::Endpoint;

use super::client::network;
use super::{CommonArgs, failed};
use crate::console::Console;
use crate::failure::Failure;
use crate::live::{
    Access, AccessArgs, Announcer, Flow, LimitArgs, Log, LogArgs, LogControl, LogLevel, Outputs,
    Reload, ShardArgs, identity, listed, listening, reachable, refused, start,
};

/// Arguments of `tunnel serve`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Each client gets addresses of --network and keeps them. A client may send only from its own addresses. \
    Clients reach the Internet, but neither private networks nor each other, unless options permit it.\n\n\
    Examples:\n  \
    ropewalk tunnel serve hub\n  \
    ropewalk tunnel serve --allow PUBKEY --network 10.99.0.0/24\n  \
    ropewalk tunnel serve hub --client-to-client --allow-private"
)]
pub struct ServeArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Address of this machine, one per path; all addresses by default, of IPv4 and IPv6
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',')]
    listen: Vec<String>,
    #[command(flatten)]
    access: AccessArgs,
    /// Networks of the tunnel, at most one of IPv4 and one of IPv6; the hub has the first address of each
    #[arg(long, value_name = "NETWORK", value_delimiter = ',', default_value = "10.88.0.0/16,fd88::/64", value_parser = network)]
    network: Vec<IpNet>,
    /// Do not translate the addresses of clients: the network routes them to this hub
    #[arg(long)]
    routed: bool,
    /// Let clients reach private and link-local networks of the hub
    #[arg(long)]
    allow_private: bool,
    /// Let clients reach each other
    #[arg(long)]
    client_to_client: bool,
    /// Most bits per second of a client in each direction, unless its entry in --allow-file has a rate
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    rate: Option<u64>,
    /// Most bytes of a client in a calendar month, both directions, such as `20 GB/month`, unless its entry in --allow-file has a quota
    #[arg(long, value_name = "SIZE/month", value_parser = parse_monthly)]
    quota: Option<u64>,
    /// Name servers that clients are told
    #[arg(long, value_name = "ADDR", value_delimiter = ',', default_value = "9.9.9.9,2620:fe::fe")]
    dns: Vec<IpAddr>,
    #[command(flatten)]
    shards: ShardArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// Serves until the hub is interrupted.
pub async fn run(
    args: &ServeArgs,
    console: Console,
    moderation: Arc<ThreadModeration>,
) -> Result<(), Failure> {
    if args.access.is_anyone() {
        let help = "name the clients: --allow PUBKEY for each, or --allow-file peers.toml";
        return Err(Failure::input("a hub without --allow would be open to everyone", help));
    }
    let (console, log) = args.log.start(console, LogLevel::Info);
    let common = &args.common;
    let secret = identity(common.key.as_deref(), console)?;
    let public = secret.public();
    let access = args.access.open()?;
    let mut options = access.seal(listening(&args.listen)?, secret);
    options.limits = args.limits.limits()?;
    options.shards = args.shards.count();
    options.transport = common.transport()?;
    options.capture = common.transport.capture(false, console)?;
    let mut settings = settings(args)?;
    settings.lane.moderation = moderation;
    let memory = Arc::new(PacketMemory::new(options.limits.memory));
    settings.lane.memory = memory.clone();
    let observation = common.observe.bind("tunnel serve", console)?;
    options.observer = Some(observation.observer());
    let endpoint = Endpoint::open(options).map_err(refused)?;
    // Must precede the creation of the device, whose addresses are useless to a client.
    let reachable = reachable(endpoint.locals());
    settings.endpoint = reachable.iter().map(|(address, _)| *address).collect();
    let to = listed(&reachable);
    let list = access.list().clone();
    let defaults = ClientLimits { rate_bps: args.rate, quota_bytes: args.quota };
    let policy_of: PolicyOf = {
        let list = list.clone();
        Arc::new(move |key| {
            let policy = list.policy(key)?.tunnel.clone();
            Some(TunnelPolicy { limits: policy.limits.or(defaults), ..policy })
        })
    };
    let reporter = observation.reporter();
    let hub = TunnelHub::prepare(settings, policy_of, reporter.clone()).map_err(failed)?;
    let limits = hub.figures();
    let reloaded = limits.clone();
    access.watch(&endpoint, reporter.clone(), console, move |_| reloaded.refresh_limits());
    let announcer = Announcer::with_log(reporter.clone(), console);
    reload(announcer, log, &endpoint, &list, limits, memory).watch(common.file());
    let figures = hub.figures();
    let names = list.clone();
    let tunnel = move || Some(named(figures.read(), &names));
    let sources = Sources {
        name: Box::new(move |key| list.listed_name(key)),
        tunnel: Box::new(tunnel),
        ..Sources::default()
    };
    let outputs = Outputs::default().with(Log::default());
    let outputs = common.observe.stream(outputs, "tunnel serve", Flow::Both, false)?;
    let _monitor = start(observation, sources, outputs)?;
    let at: Vec<_> = endpoint.locals().iter().map(ToString::to_string).collect();
    reporter.report(
        PeerIdentity::default(),
        Event::Listening { addresses: at.join(" and "), key: Some(public) },
    );
    console.note(format_args!("at the client:\n  ropewalk tunnel up --to {to} --peer {public}"));
    hub.run(&endpoint).await.map_err(failed)
}

/// The figures with the names of the clients.
fn named(mut figures: TunnelFigures, names: &AccessList) -> TunnelFigures {
    for volume in &mut figures.volumes {
        if let Ok(key) = volume.client.parse() {
            volume.client = names.name(&key);
        }
    }
    figures
}

/// What a SIGHUP may change.
fn reload(
    announcer: Announcer,
    log: LogControl,
    endpoint: &Endpoint,
    access: &AccessList,
    figures: HubFigures,
    memory: Arc<PacketMemory>,
) -> Reload<ServeArgs> {
    let (list, admission, limits) = (access.clone(), endpoint.admission(), endpoint.admission());
    Reload::<ServeArgs>::new(announcer)
        .set(&["log-level"], move |args| log.set(&args.log))
        .on(&["allow"], move |args| {
            let figures = figures.clone();
            let changed = move |_: &AccessList| figures.refresh_limits();
            Access::check_allow(&list, &admission, &args.access, true, changed)
        })
        .on(LimitArgs::NAMES, move |args| {
            let memory = memory.clone();
            args.limits.check(&limits, move |limits| memory.set_limit(limits.memory))
        })
}

fn settings(args: &ServeArgs) -> Result<HubSettings, Failure> {
    let common = &args.common;
    let pool = Pool::new(&args.network).map_err(|error| failed(error.into()))?;
    Ok(HubSettings {
        name: common.name(),
        device: common.device(),
        pool,
        nat: !args.routed,
        allow_private: args.allow_private,
        client_to_client: args.client_to_client,
        dns: args.dns.clone(),
        lane: common.lane()?,
        lease_file: common.state_directory.join(format!("{}.leases", common.name())),
        volume_file: common.state_directory.join(format!("{}.volumes", common.name())),
        endpoint: Vec::new(),
        journal_directory: common.journal_directory().to_owned(),
    })
}
