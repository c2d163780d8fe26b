//! The exit: the far end of a proxy.

use std::sync::Arc;

use clap::Args;
use ropewalk_apps::access::AccessList;
use ropewalk_apps::mux::Limits;
use ropewalk_apps::observe::{Event, Observation, PeerIdentity, Reporter, Sources};
use ropewalk_apps::proxy::exit::{Client, Exit, ExitLimits, PermissionsOf, Policy, Resolver, Rule};
use ropewalk_apps::proxy::{Notice, NoticeSink, live};
use ropewalk_runtime::endpoint::{Endpoint, Options};
use ropewalk_runtime::seal::PublicKey;
use ropewalk_scenario::parse_size;

use super::CommonArgs;
use crate::console::Console;
use crate::failure::Failure;
use crate::live::{
    Access, AccessArgs, Announcer, ConfineArgs, Files, Flow, LimitArgs, Log, LogArgs, LogControl,
    LogLevel, Outputs, Reload, ShardArgs, identity, listening, refused, start,
};

/// Arguments of `proxy exit`.
#[derive(Clone, Debug, Args)]
#[command(
    after_help = "Without --allow-to the exit connects to the public Internet, but not to this machine or private networks.\n\n\
    Examples:\n  \
    ropewalk proxy exit --allow PUBKEY\n  \
    ropewalk proxy exit --listen 192.0.2.7 --listen 198.51.100.7:443 --allow PUBKEY --allow PUBKEY\n  \
    ropewalk proxy exit --allow PUBKEY --allow-to 10.0.0.0/8:22,wiki.lan"
)]
pub struct ExitArgs {
    /// Address of this machine, one per path; all addresses by default, of IPv4 and IPv6
    #[arg(long, value_name = "ADDR[:PORT]", value_delimiter = ',')]
    listen: Vec<String>,
    #[command(flatten)]
    access: AccessArgs,
    /// Permit these destinations only: networks, hosts, ports, such as 10.0.0.0/8, wiki.lan:443, *.example.org, *:443
    #[arg(long, value_name = "DEST", value_delimiter = ',')]
    allow_to: Vec<Rule>,
    /// Also permit this machine, and private and link-local networks
    #[arg(long)]
    allow_private: bool,
    /// Most connections at a time, of all near ends together; each key has a reserved share
    #[arg(long, value_name = "N", default_value_t = ExitLimits::default().connections, value_parser = clap::value_parser!(u64).range(1..))]
    connections: u64,
    /// Most memory for data that near ends have sent and destinations have not taken yet
    #[arg(long, value_name = "SIZE", default_value = "256 MiB", value_parser = parse_size)]
    buffers: u64,
    #[command(flatten)]
    shards: ShardArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    confine: ConfineArgs,
    #[command(flatten)]
    common: CommonArgs,
}

/// An exit whose options have been checked and whose files are open.
pub struct Prepared<'a> {
    args: &'a ExitArgs,
    options: Options,
    resolver: Resolver,
    access: Access,
    observation: Observation,
    public: PublicKey,
    console: Console,
    log: LogControl,
}

/// Reads and opens all files, and then gives up the right to open others. Must run before the server starts
/// threads.
///
/// # Errors
/// A problem of the options.
pub fn prepare(args: &ExitArgs, console: Console) -> Result<Prepared<'_>, Failure> {
    if args.access.is_anyone() {
        let help = "name the near ends: --allow PUBKEY for each, or --allow-file peers.toml";
        return Err(Failure::input("an exit without --allow would be open to everyone", help));
    }
    let level = if args.common.verbose { LogLevel::Debug } else { LogLevel::Info };
    let (console, log) = args.log.start(console, level);
    let secret = identity(args.common.key.as_deref(), console)?;
    let public = secret.public();
    let access = args.access.open()?;
    let mut options = access.seal(listening(&args.listen)?, secret);
    options.limits = args.limits.limits()?;
    options.shards = args.shards.count();
    options.transport = args.common.transport()?;
    let observation = args.common.observe.bind("proxy exit", console)?;
    options.observer = Some(observation.observer());
    let reporter = observation.reporter();
    let report = |event| reporter.report(PeerIdentity::default(), event);
    options.capture = args.common.transport.capture(false, console)?;
    let (resolver, problem) = Resolver::system().map_err(Failure::Run)?;
    if let Some(problem) = problem {
        report(Event::Problem(problem.to_string()));
    }
    let readable = Files::reading(access.list().file()).and_reading(args.common.transport.config());
    let files = args.confine.restrict_files(&readable)?;
    report(Event::Confined(files));
    Ok(Prepared { args, options, resolver, access, observation, public, console, log })
}

impl Prepared<'_> {
    /// Serves until the exit is interrupted.
    pub async fn run(self) -> Result<(), Failure> {
        let Self { args, options, resolver, access, observation, public, console, log } = self;
        let reporter = observation.reporter();
        let endpoint = Endpoint::open(options).map_err(refused)?;
        let notify: NoticeSink = {
            let reporter = reporter.clone();
            Arc::new(move |notice| report_notice(&reporter, notice))
        };
        let list = access.list().clone();
        let permissions: PermissionsOf = {
            let list = list.clone();
            Arc::new(move |key| list.policy(key).map(|peer| peer.exit.clone()))
        };
        let exit = Exit::new(args.policy(), args.exit_limits(), resolver, notify.clone())
            .with_permissions(permissions);
        let keys = |list: &AccessList| list.peers().map_or(0, |peers| peers.len() as u64);
        exit.expect_keys(keys(&list));
        let reloaded = {
            let exit = exit.clone();
            move |list: &AccessList| exit.expect_keys(keys(list))
        };
        access.watch(&endpoint, reporter.clone(), console, reloaded);
        let announcer = Announcer::with_log(reporter.clone(), console);
        reload(announcer, log, &endpoint, &list, &exit).watch(args.common.transport.config());
        let at: Vec<_> = endpoint.locals().iter().map(ToString::to_string).collect();
        let addresses = at.join(" and ");
        let report = |event| reporter.report(PeerIdentity::default(), event);
        report(Event::Confined(args.confine.restrict_calls(&Files::default())?));
        let known = list.clone();
        let sources =
            Sources { name: Box::new(move |key| known.listed_name(key)), ..Sources::default() };
        let outputs = Outputs::default().with(Log::default());
        let outputs = args.common.observe.stream(outputs, "proxy exit", Flow::Both, false)?;
        let _monitor = start(observation, sources, outputs)?;
        console.note(format_args!("exit at {addresses}; its public key: {public}"));
        report(Event::Listening { addresses, key: Some(public) });
        let names: live::NameOf = Arc::new(move |key| list.listed_name(key));
        live::serve(&endpoint, &exit, Limits::default(), &names, &notify).await;
        Ok(())
    }
}

impl ExitArgs {
    fn policy(&self) -> Policy {
        Policy { rules: self.allow_to.clone(), allow_private: self.allow_private }
    }

    fn exit_limits(&self) -> ExitLimits {
        ExitLimits {
            connections: self.connections,
            buffered_bytes: self.buffers,
            ..ExitLimits::default()
        }
    }
}

/// What a SIGHUP may change.
fn reload(
    announcer: Announcer,
    log: LogControl,
    endpoint: &Endpoint,
    access: &AccessList,
    exit: &Exit,
) -> Reload<ExitArgs> {
    let (list, admission, limits) = (access.clone(), endpoint.admission(), endpoint.admission());
    let [keys, policy, quotas] = [exit.clone(), exit.clone(), exit.clone()];
    Reload::<ExitArgs>::new(announcer)
        .set(&["log-level"], move |args| log.set(&args.log))
        .on(&["allow"], move |args| {
            let exit = keys.clone();
            Access::check_allow(&list, &admission, &args.access, true, move |list| {
                exit.expect_keys(list.peers().map_or(0, |peers| peers.len() as u64));
            })
        })
        .on(LimitArgs::NAMES, move |args| args.limits.check(&limits, |_| {}))
        .set(&["allow-to", "allow-private"], move |args| policy.set_policy(args.policy()))
        .set(&["connections", "buffers"], move |args| quotas.set_limits(args.exit_limits()))
}

/// Reports a notice of the exit as an event.
fn report_notice(reporter: &Reporter, notice: Notice) {
    let (client, event) = match notice {
        Notice::LimitReached(client, limit) => {
            (client, Event::LimitReached { limit: limit.to_string() })
        }
        Notice::TargetConnected(client, target) => {
            (client, Event::TargetConnected { target: target.to_string() })
        }
        Notice::TargetRefused(client, target, reason) => {
            let (target, reason) = (target.to_string(), reason.to_string());
            (client, Event::TargetRefused { target, reason })
        }
        // Notices of the client end.
        Notice::Connected(_)
        | Notice::Lost(_)
        | Notice::NotConnected(..)
        | Notice::Opened(..)
        | Notice::Failed(..)
        | Notice::BadRequest(..) => return,
    };
    let Client { key, name, address } = client;
    reporter.report(PeerIdentity { name, key, address }, event);
}
