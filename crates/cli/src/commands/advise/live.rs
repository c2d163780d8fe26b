//! `advise --live`: runs the advice and its rival over the real links, and compares predicted with measured
//! figures.

use std::net::SocketAddr;
use std::time::Duration as StdDuration;

use clap::Args;
use ropewalk_apps::measure::{self, Direction, MeasurementPlan};
use ropewalk_base::Duration;
use ropewalk_base::statistics::mean;
use ropewalk_lab::advise::{Advice, Choice, Goal};
use ropewalk_lab::compare::Estimate;
use ropewalk_lab::result::Unit;
use ropewalk_runtime::endpoint::{BindAddress, Endpoint, Target, Transport};
use ropewalk_runtime::interfaces;
use ropewalk_scenario::{Protocol, Scenario, parse_duration};
use serde::Serialize;

use crate::commands::transfer::runtime;
use crate::console::{Console, layout, width, wrapped};
use crate::failure::Failure;
use crate::live::{ReachArgs, locals, refused};
use crate::printer::percent;
use crate::table::{Cell, Table};

/// Share of the time of a run that is left out at its beginning, and its maximum, seconds.
const WARMUP_SHARE: f64 = 0.25;
const WARMUP_MAX_S: f64 = 5.0;
/// Shortest run, seconds.
const LEAST_S: f64 = 1.0;
/// Pause before a run, so that the queues of the run before it are empty.
const PAUSE: StdDuration = StdDuration::from_secs(1);

/// Options of a live comparison.
#[derive(Debug, Args)]
pub struct LiveArgs {
    /// Run the advice and its rival over the real links, against `ropewalk bench serve` at the other side
    #[arg(long, conflicts_with = "csv")]
    live: bool,
    /// How long each of them runs
    #[arg(long, value_name = "TIME", default_value = "20 s", value_parser = parse_duration, requires = "live")]
    live_time: Duration,
    /// How often each of them runs, in turn; the table then has means
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100), requires = "live")]
    live_runs: u32,
    #[command(flatten)]
    reach: ReachArgs,
}

/// A choice, predicted and measured.
#[derive(Debug, Serialize)]
pub struct LiveRow {
    /// `advice` or `rival`.
    choice: &'static str,
    /// Measured time of a run, s; a mean over the runs.
    seconds: f64,
    predicted: Predicted,
    measured: Measured,
    /// Measured goodput divided by predicted goodput.
    goodput_ratio: f64,
}

#[derive(Debug, Serialize)]
struct Predicted {
    goodput_bps: Estimate,
    app_delay_p99_s: Option<Estimate>,
    /// The least and the most among the simulated runs.
    app_delay_p99_range_s: Option<[f64; 2]>,
}

#[derive(Debug, Serialize)]
struct Measured {
    /// Mean over the runs.
    goodput_bps: f64,
    /// Mean over the runs; null if nothing was acknowledged in one of them.
    app_delay_p99_s: Option<f64>,
    runs: Vec<LiveRun>,
}

#[derive(Debug, Serialize)]
struct LiveRun {
    seconds: f64,
    goodput_bps: f64,
    /// Null if nothing was acknowledged.
    app_delay_p99_s: Option<f64>,
}

impl Measured {
    fn new(runs: Vec<LiveRun>) -> Self {
        let delays: Option<Vec<f64>> = runs.iter().map(|run| run.app_delay_p99_s).collect();
        Self {
            goodput_bps: mean(runs.iter().map(|run| run.goodput_bps)),
            app_delay_p99_s: delays.map(mean),
            runs,
        }
    }
}

/// The live comparison, after its options were checked.
pub struct LivePlan<'a> {
    args: &'a LiveArgs,
    /// Name and own address or interface of each path of the scenario.
    paths: Vec<(String, BindAddress)>,
    target: Target,
}

impl LiveArgs {
    /// Checks the options. None without `--live`.
    ///
    /// # Errors
    /// They do not fit together or to the scenario.
    pub fn plan(
        &self,
        scenario: &Scenario,
        goal: Goal,
        console: Console,
    ) -> Result<Option<LivePlan<'_>>, Failure> {
        if !self.live {
            return Ok(None);
        }
        if !self.reach.is_given() {
            let help = "run `ropewalk bench serve` at the other side, and give what it prints: --to ... --peer ...";
            return Err(Failure::input("--live needs --to and --peer", help));
        }
        if goal == Goal::Calls {
            let help = "leave out --live, or choose --goal throughput or latency";
            return Err(Failure::input("--live sends bulk data, and no call", help));
        }
        if scenario.transfer.protocol != Protocol::CmtSctp {
            let message = format!(
                "--live runs cmt-sctp, and transfer.protocol is {}",
                scenario.transfer.protocol
            );
            return Err(Failure::input(message, "add --set transfer.protocol=cmt-sctp"));
        }
        if self.live_time.as_secs_f64() < LEAST_S {
            let message = format!("--live-time {}: too short", self.live_time);
            return Err(Failure::input(message, "give at least 1 s; 20 s is usual"));
        }
        let (_, target) = self.reach.options_with(Transport::default(), console)?;
        let paths = self.paths(scenario, &target)?;
        Ok(Some(LivePlan { args: self, paths, target }))
    }

    /// The own end of each path: those of `--from` in their order, else the interfaces of these names.
    fn paths(
        &self,
        scenario: &Scenario,
        target: &Target,
    ) -> Result<Vec<(String, BindAddress)>, Failure> {
        let names: Vec<&str> = scenario.paths.iter().map(|path| path.name.as_str()).collect();
        let given = self.reach.from();
        if !given.is_empty() && given.len() != names.len() {
            let message =
                format!("--from has {} links, and the scenario has {}", given.len(), names.len());
            let help = format!(
                "give an interface or address for each of {}, in this order",
                names.join(", ")
            );
            return Err(Failure::input(message, help));
        }
        let remotes = &target.addresses;
        if remotes.len() > 1 && remotes.len() != names.len() {
            let message = format!(
                "--to has {} addresses, and the scenario has {} links",
                remotes.len(),
                names.len()
            );
            return Err(Failure::input(
                message,
                "give one address, or one for each link, in the order of the scenario",
            ));
        }
        if given.is_empty() {
            let known = interfaces::list().unwrap_or_default();
            if let Some(name) = names.iter().find(|name| known.iter().all(|one| one.name != **name))
            {
                let message = format!("no interface has the name of the link {name}");
                let help = format!(
                    "give --from with an interface or address for each of {}, in this order",
                    names.join(", ")
                );
                return Err(Failure::input(message, help));
            }
        }
        let end = |(place, name): (usize, &&str)| {
            let own = given.get(place).map_or(*name, String::as_str).to_owned();
            let remote = remote_of(remotes, place);
            let found = locals(&[own], remote.as_slice()).into_iter().next();
            found.map(|local| ((*name).to_owned(), local)).ok_or_else(|| {
                Failure::input(
                    format!("{name} has no address of the peer's family"),
                    "give another address by --to",
                )
            })
        };
        names.iter().enumerate().map(end).collect()
    }
}

/// The peer's address for the path at this place: its own, or the only one.
fn remote_of(remotes: &[SocketAddr], place: usize) -> Option<SocketAddr> {
    remotes.get(if remotes.len() > 1 { place } else { 0 }).copied()
}

impl LivePlan<'_> {
    /// Runs the advice and its rival in turn.
    ///
    /// # Errors
    /// [`Failure::Run`].
    pub fn run(&self, advice: &Advice, console: Console) -> Result<Vec<LiveRow>, Failure> {
        let choices = [("advice", Some(&advice.advice)), ("rival", advice.rival.as_ref())];
        let choices = || choices.into_iter().filter_map(|(name, choice)| Some((name, choice?)));
        let mut runs: Vec<Vec<LiveRun>> = choices().map(|_| Vec::new()).collect();
        for count in 1..=self.args.live_runs {
            for ((name, choice), own) in choices().zip(&mut runs) {
                let of = match self.args.live_runs {
                    1 => String::new(),
                    all => format!(" ({count} of {all})"),
                };
                console.note(format_args!(
                    "running the {name} over {} for {}{of}",
                    choice.paths.join(" + "),
                    self.args.live_time
                ));
                own.push(self.run_choice(name, choice, console)?);
            }
        }
        Ok(choices()
            .zip(runs)
            .map(|((name, choice), own)| LiveRow::new(name, choice, own))
            .collect())
    }

    fn run_choice(
        &self,
        name: &str,
        choice: &Choice,
        console: Console,
    ) -> Result<LiveRun, Failure> {
        let transport = Transport {
            scheduler: choice.scheduler.clone(),
            congestion: Some(choice.congestion.clone()),
            peer_buffer_limit: Some(choice.receive_buffer_bytes),
            ..Transport::default()
        };
        let (mut options, _) = self.args.reach.options_with(transport, console)?;
        options.automatic = false;
        options.locals.clear();
        let mut target = Target { addresses: Vec::new(), key: self.target.key };
        for (place, (path, local)) in self.paths.iter().enumerate() {
            if choice.paths.contains(path) {
                options.locals.push(local.clone());
                target.addresses.extend(remote_of(&self.target.addresses, place));
            }
        }
        if self.target.addresses.len() == 1 {
            target.addresses.truncate(1);
        }
        let time = self.args.live_time.as_secs_f64();
        let warmup_s = (time * WARMUP_SHARE).min(WARMUP_MAX_S);
        let plan = MeasurementPlan {
            direction: Direction::Up,
            in_order: true,
            warmup_s,
            seconds: time - warmup_s,
        };
        let measured = runtime()?.block_on(async {
            tokio::time::sleep(PAUSE).await;
            let endpoint = Endpoint::open(options).map_err(refused)?;
            let help = "is `ropewalk bench serve` running there, with this public key, and does it allow yours?";
            let failed = |error: String| Failure::Run(format!("the {name} could not run: {error}\n = help: {help}"));
            let association = endpoint.connect(&target).await.map_err(|error| failed(error.to_string()))?;
            let measured = measure::run(&association, plan).await.map_err(|error| failed(error.to_string()))?;
            // The driver sends the abort in its next turn.
            tokio::time::sleep(StdDuration::from_millis(20)).await;
            Ok::<_, Failure>(measured)
        })?;
        let figures = measured.figures;
        Ok(LiveRun {
            seconds: figures.seconds,
            goodput_bps: figures.bytes as f64 * 8.0 / figures.seconds.max(1e-9),
            app_delay_p99_s: measured.delivery.map(|delay| delay.p99_s),
        })
    }
}

impl LiveRow {
    fn new(name: &'static str, choice: &Choice, runs: Vec<LiveRun>) -> Self {
        let seconds = mean(runs.iter().map(|run| run.seconds));
        let measured = Measured::new(runs);
        Self {
            choice: name,
            seconds,
            predicted: Predicted {
                goodput_bps: choice.goodput_bps,
                app_delay_p99_s: choice.app_delay_p99_s,
                app_delay_p99_range_s: choice.app_delay_p99_range_s,
            },
            goodput_ratio: measured.goodput_bps / choice.goodput_bps.mean.max(1.0),
            measured,
        }
    }
}

/// The rows as a table.
pub fn table(rows: &[LiveRow]) -> Table {
    let headings =
        ["live", "goodput", "predicted", "of it", "delay p99", "predicted", "least", "most"];
    let mut table = Table::new(&headings);
    for row in rows {
        let range = row.predicted.app_delay_p99_range_s;
        table.row(vec![
            Cell::from(if row.choice == "advice" { "use" } else { row.choice }),
            Cell::known(Some(row.measured.goodput_bps), Unit::BitsPerSecond),
            Cell::mean(Some(row.predicted.goodput_bps), Unit::BitsPerSecond),
            Cell::known(Some(row.goodput_ratio), Unit::Ratio),
            Cell::known(row.measured.app_delay_p99_s, Unit::Seconds),
            Cell::mean(row.predicted.app_delay_p99_s, Unit::Seconds),
            Cell::known(range.map(|[least, _]| least), Unit::Seconds),
            Cell::known(range.map(|[_, most]| most), Unit::Seconds),
        ]);
    }
    table
}

/// The rows as text.
pub fn text(rows: &[LiveRow]) -> String {
    let mut text = table(rows).text(layout());
    if let [advice, rival] = rows {
        let of = |a: f64, b: f64| a / b.max(1.0);
        let line = format!(
            "measured, the advice has {} of the rival's goodput; predicted were {}",
            percent(of(advice.measured.goodput_bps, rival.measured.goodput_bps)),
            percent(of(advice.predicted.goodput_bps.mean, rival.predicted.goodput_bps.mean)),
        );
        text += &wrapped("", &line, width());
    }
    text
}
