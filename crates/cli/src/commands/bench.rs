//! `ropewalk bench`: throughput, and latency under load, over all paths at the same time.

mod compare;
mod document;

use clap::{Args, Subcommand};
use ropewalk_apps::access::AccessList;
use ropewalk_apps::measure::{self, Direction, Measurement, MeasurementPlan};
use ropewalk_apps::observe::{
    Event, EventRecord, Ledger, PeerIdentity, Reporter, Sink, Sources, Status, clock,
};
use ropewalk_base::Duration;
use ropewalk_runtime::endpoint::{Endpoint, PathStats};
use ropewalk_scenario::parse_duration;

use self::document::Document;
use super::transfer::{rates, runtime};
use crate::console::{Console, width};
use crate::failure::Failure;
use crate::format::{Captioned, Format, FormatArgs, print_tables};
use crate::live::{
    Access, Announcer, ExtensionArgs, Flow, LimitArgs, ListenArgs, Listening, Log, LogArgs,
    LogLevel, Notes, ObserveArgs, Outputs, ReachArgs, Reload, TransportArgs, help_for_connect,
    listed, reachable, start,
};
use crate::output;
use crate::printer::{count, percent, rate, size, time, time_or_dash};
use crate::table::Table;

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "Examples:\n  \
    ropewalk bench serve --plain --listen 127.0.0.1 --once\n  \
    ropewalk bench run --to 127.0.0.1 --plain --time 2s"
)]
pub struct BenchArgs {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, Subcommand)]
enum Side {
    /// Wait for clients and measure with them
    Serve(Box<ServeArgs>),
    /// Measure against a server
    Run(Box<RunArgs>),
    /// Compare Ropewalk with Linux TCP, Multipath TCP and other programs over emulated links
    Compare(Box<compare::CompareArgs>),
}

/// Arguments of `bench serve`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk bench serve\n  \
    ropewalk bench serve --plain --listen 127.0.0.1 --once\n  \
    ropewalk bench serve --plain --listen 127.0.0.1 --secrets-file secrets")]
struct ServeArgs {
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    extensions: ExtensionArgs,
    /// End after one client
    #[arg(long)]
    once: bool,
    #[command(flatten)]
    observe: ObserveArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// Arguments of `bench run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Goodput counts user data delivered to the receiver's application, without headers and seal. Bulk data is \
    delivered as it arrives, like the pieces of a file. With --in-order it is one stream of bytes, as in TCP: data \
    that arrives out of order waits in the receive buffer.\n\n\
    Examples:\n  \
    ropewalk bench run --to 127.0.0.1 --plain --time 2s\n  \
    ropewalk bench run --to 127.0.0.1 --plain --time 2s --in-order --csv\n  \
    ropewalk bench run --to 127.0.0.1 --plain --time 2s --extension nr-sack,interleaving\n  \
    ropewalk bench run --to 127.0.0.1 --plain --time 2s --secrets-file secrets\n  \
    ropewalk bench run --to 192.0.2.7,198.51.100.7 --from wlan0,wwan0 --peer PUBKEY --json"
)]
struct RunArgs {
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    extensions: ExtensionArgs,
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "10 s", value_parser = parse_duration)]
    time: Duration,
    /// Leave out this time after the first byte
    #[arg(long, value_name = "TIME", default_value = "1 s", value_parser = parse_duration)]
    warmup: Duration,
    /// Measure from the server to this end
    #[arg(long)]
    reverse: bool,
    /// Send one ordered stream of bytes instead of messages that are delivered as they arrive
    #[arg(long)]
    in_order: bool,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    observe: ObserveArgs,
}

/// Serves or runs a measurement.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &BenchArgs, console: Console) -> Result<(), Failure> {
    match &args.side {
        Side::Serve(args) => serve(args, console),
        Side::Run(args) => run(args, console),
        Side::Compare(args) => compare::execute(args, console),
    }
}

fn serve(args: &ServeArgs, console: Console) -> Result<(), Failure> {
    let (console, log) = args.log.start(console, LogLevel::Info);
    let observation = args.observe.bind("bench serve", console)?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let Listening { endpoint, public, access } =
            args.listen.listen(&args.transport, &args.extensions, &observation, console)?;
        let reporter = observation.reporter();
        let (list, admission) = (access.clone(), endpoint.admission());
        let limits = endpoint.admission();
        Reload::<ServeArgs>::new(Announcer::with_log(reporter.clone(), console))
            .set(&["log-level"], move |args| log.set(&args.log))
            .on(&["allow"], move |args| {
                Access::check_allow(&list, &admission, args.listen.access(), false, |_| {})
            })
            .on(LimitArgs::NAMES, move |args| args.listen.limits().check(&limits, |_| {}))
            .watch(args.transport.config());
        let names = access.clone();
        let sources =
            Sources { name: Box::new(move |key| names.listed_name(key)), ..Sources::default() };
        let outputs = Outputs::default().with(Log::default());
        let outputs = args.observe.stream(outputs, "bench serve", Flow::Both, false)?;
        let _monitor = start(observation, sources, outputs)?;
        let to = listed(&reachable(endpoint.locals()));
        let who = public.map_or_else(|| args.listen.plain_options(), |key| format!("--peer {key}"));
        // Probes need the authentication of a sealed session.
        let measure =
            public.map_or_else(String::new, |_| format!("\n  ropewalk measure --to {to} {who}"));
        let run = format!("ropewalk bench run --to {to} {who}{}", args.extensions.options());
        console.note(format_args!("at the other side:\n  {run}{measure}"));
        reporter.report(PeerIdentity::default(), Event::Listening { addresses: to, key: public });
        clients(args, &endpoint, &access, &reporter).await;
        Ok(())
    })
}

/// Serves clients concurrently, with `--once` a single one.
async fn clients(args: &ServeArgs, endpoint: &Endpoint, access: &AccessList, reporter: &Reporter) {
    loop {
        let association = endpoint.accept().await;
        let key = association.peer_key();
        let name = key.and_then(|key| access.listed_name(&key));
        let reporter = reporter.clone();
        let serving = async move {
            let paths = association.stats().map(|stats| stats.paths).unwrap_or_default();
            let address = paths.iter().find_map(|path| path.remote);
            let event = match measure::serve(&association).await {
                Some(seconds) => Event::Measured { seconds },
                None => {
                    let reason = "the client did not ask for a measurement of this version";
                    Event::AssociationRefused { reason: reason.to_owned() }
                }
            };
            reporter.report(PeerIdentity { name, key, address }, event);
            // The association must be kept until the figures are delivered.
            association.ended().await;
        };
        if args.once {
            serving.await;
            return;
        }
        tokio::spawn(serving);
    }
}

fn run(args: &RunArgs, console: Console) -> Result<(), Failure> {
    let direction = if args.reverse { Direction::Down } else { Direction::Up };
    let plan = MeasurementPlan {
        direction,
        in_order: args.in_order,
        warmup_s: args.warmup.as_secs_f64(),
        seconds: args.time.as_secs_f64(),
    };
    if plan.seconds <= 0.0 {
        return Err(Failure::input("--time 0: nothing to measure", "give a time such as 10s"));
    }
    let observation = args.observe.bind("bench run", console)?;
    let observer = Some(observation.observer());
    let notes = Notes(move |text: &str| console.note(text));
    let outputs = Outputs::default().with(notes).with(Seconds { console });
    let flow = if args.reverse { Flow::Received } else { Flow::Sent };
    let outputs = args.observe.stream(outputs, "bench run", flow, args.format.is_data())?;
    let measured = runtime()?.block_on(async {
        let (endpoint, target) =
            args.reach.open(&args.transport, &args.extensions, observer, console)?;
        let announcer = Announcer::with_notes(observation.reporter(), console);
        Reload::<RunArgs>::new(announcer).watch(args.transport.config());
        let _monitor = start(observation, Sources::default(), outputs)?;
        let association = endpoint.connect(&target).await.map_err(|error| {
            let help = help_for_connect(&error, "ropewalk bench serve");
            Failure::Run(format!("{error}\n = help: {help}{}", args.extensions.question()))
        })?;
        args.extensions.tell(&association, console);
        let measuring = measure::run(&association, plan);
        let measured = measuring.await.map_err(|error| Failure::Run(error.to_string()))?;
        // The driver sends the abort in its next turn.
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        Ok::<_, Failure>(measured)
    })?;
    match args.format.format() {
        Format::Json => output::print_json(&Document::new(&measured, plan)),
        Format::Text if args.observe.is_streaming() => Ok(()),
        Format::Text => output::print(&text(&measured, plan)),
        format => {
            let document = Document::new(&measured, plan);
            let tables = || {
                let paths = paths(&measured).map(|table| Captioned::new("", table));
                std::iter::once(Captioned::new("", document.summary())).chain(paths).collect()
            };
            print_tables(format, &document.tidy(), tables)
        }
    }
}

/// Shows the rate of each second.
struct Seconds {
    console: Console,
}

impl Sink for Seconds {
    fn event(&mut self, _: &EventRecord) {}

    fn tick(&mut self, status: &Status, _: &Ledger) {
        if !status.links.is_empty() {
            self.console.note(format_args!("{} {}", clock(status.time_s), rates(status)));
        }
    }

    fn uses_time(&self) -> bool {
        true
    }

    fn end(&mut self, _: &Status, _: &Ledger) {}
}

fn text(measured: &Measurement, plan: MeasurementPlan) -> String {
    let figures = &measured.figures;
    let goodput = figures.bytes as f64 * 8.0 / figures.seconds.max(1e-9);
    let mut text = format!(
        "{} of user data{}, {} in {}\n",
        rate(goodput),
        if plan.in_order { " in order" } else { "" },
        size(figures.bytes as f64),
        time(figures.seconds)
    );
    text.push_str(&format!(
        "held out of order: {} on average, {} at most; longest silence {}\n",
        size(figures.mean_out_of_order_bytes),
        size(figures.max_out_of_order_bytes as f64),
        time(figures.gap_s)
    ));
    if let Some([p50, p99]) = document::percentiles(&measured.latencies_s) {
        text.push_str(&format!(
            "round trip of a small message beside it: {} median, {} p99\n",
            time(p50),
            time(p99)
        ));
    }
    if let Some(delay) = measured.delivery {
        text.push_str(&format!(
            "from first transmission to delivery{}: {} median, {} p99\n",
            if plan.in_order { " in order" } else { "" },
            time(delay.p50_s),
            time(delay.p99_s)
        ));
    }
    text + &paths(measured).map_or_else(String::new, |table| table.text(width()))
}

/// The path as users name it: its link and the peer's address.
fn name(path: &PathStats) -> String {
    let link = path.local.as_ref().map(ToString::to_string).unwrap_or_default();
    let remote = path.remote.map(|remote| remote.to_string()).unwrap_or_default();
    format!("{link} -> {remote}")
}

/// A table of the paths. Only the sender of bulk data knows what became of each path.
fn paths(measured: &Measurement) -> Option<Table> {
    let stats = measured.stats.as_ref()?;
    let total: u64 = stats.paths.iter().map(|path| path.counters.delivered_bytes).sum();
    if total == 0 {
        return None;
    }
    let mut table = Table::new(&["path", "share", "RTT", "window", "retransmitted"]);
    for path in &stats.paths {
        table.row(vec![
            name(path),
            percent(path.counters.delivered_bytes as f64 / total as f64),
            time_or_dash(path.srtt_s),
            size(path.cwnd_bytes as f64),
            count(path.counters.retransmitted),
        ]);
    }
    Some(table)
}
