//! `ropewalk bench compare`: Ropewalk, the kernel's transports and other programs over the same emulated links.

use std::path::PathBuf;

use clap::Args;
use ropewalk_base::Duration;
use ropewalk_scenario::parse_duration;

use crate::format::FormatArgs;

/// Arguments of `bench compare`.
#[derive(Debug, Args)]
#[command(
    after_help = "Compared are Ropewalk (sealed, and simulated beside it), TCP of the kernel on the fastest link with cubic and \
    with bbr, Multipath TCP of the kernel with both, and, where they are installed, iperf3, and the peers quinn-peer \
    and usrsctp-peer of Ropewalk's benchmarks. Each reads into the scenario's transfer.receive_buffer; quinn has its \
    own. Needs Linux and root.\n\n\
    Examples:\n  \
    sudo ropewalk bench compare --emulate wifi-lte\n  \
    sudo ropewalk bench compare --emulate links.toml --time 20s --runs 3 --report compared.html"
)]
pub struct CompareArgs {
    /// Scenario file, or the name of a ready scenario, whose links are emulated
    #[arg(long, value_name = "SCENARIO")]
    pub emulate: PathBuf,
    /// Change a key before the file is checked; may be repeated, and the last one wins
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Length of each transfer, its warm-up included
    #[arg(long, value_name = "TIME", default_value = "15 s", value_parser = parse_duration)]
    pub time: Duration,
    /// Initial time that all figures leave out
    #[arg(long, value_name = "TIME", default_value = "5 s", value_parser = parse_duration)]
    pub warmup: Duration,
    /// Runs of each; the median is shown
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub runs: u64,
    /// Seed of the first run
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Write a report, one file that opens in any browser
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatArgs,
}

#[cfg(not(target_os = "linux"))]
pub fn execute(_: &CompareArgs, _: crate::console::Console) -> Result<(), crate::failure::Failure> {
    Err(crate::failure::Failure::input(
        "an emulation needs Linux, for its network namespaces",
        "`ropewalk compare` simulates the same scenario anywhere",
    ))
}

#[cfg(target_os = "linux")]
pub use run::execute;

#[cfg(target_os = "linux")]
mod run {
    use ropewalk_lab::live::check_live;
    use ropewalk_lab::report::{Report, ReportKind};
    use ropewalk_lab::result::Unit;
    use ropewalk_lab::validate::{Flow, Observed, median, simulate};
    use ropewalk_runtime::kernel as linux;
    use ropewalk_scenario::{Override, Scenario};
    use serde::Serialize;
    use serde_json::json;

    use super::CompareArgs;
    use crate::args::{FileArgs, command_line};
    use crate::commands::emulated::others::OtherProgram;
    use crate::commands::emulated::{self, kernel, ropewalk};
    use crate::console::{Console, layout};
    use crate::failure::Failure;
    use crate::files::{VERSION, check_report, save_report};
    use crate::format::{Captioned, Format, print_tables};
    use crate::output;
    use crate::progress::{Progress, with_bar};
    use crate::table::{Cell, Table};

    /// What runs.
    #[derive(Clone, Copy, Debug)]
    enum Contender {
        Ropewalk { in_order: bool },
        Kernel(Flow),
        Other(OtherProgram),
    }

    /// One row of the result.
    #[derive(Debug, Serialize)]
    struct Row {
        transport: String,
        /// The paths that it uses.
        paths: Vec<String>,
        /// Median over the runs, bit/s.
        goodput_bps: f64,
        /// The least and the most, bit/s.
        range_bps: [f64; 2],
        /// Retransmitted part of the data sent; null if unknown.
        retransmitted: Option<f64>,
        /// Median round trip of the path that carries most, s; null if unknown. Ropewalk's is the last one.
        rtt_s: Option<f64>,
        /// The same in the simulator, bit/s; null for other programs.
        simulated_bps: Option<f64>,
        /// How late the emulator was at most, s.
        lateness_s: f64,
    }

    /// Compares.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn execute(args: &CompareArgs, console: Console) -> Result<(), Failure> {
        let scenario = load(args, &[])?;
        check_live(&scenario).map_err(|error| Failure::input(&error, error.hint))?;
        if let Some(path) = &args.report {
            check_report(path)?;
        }
        emulated::check(&scenario)?;
        let contenders = contenders(&scenario, console);
        let progress = Progress::steps(contenders.len() as u64 * args.runs);
        let rows: Vec<Row> = with_bar(console, "comparing", &progress, || {
            let each = contenders.iter().map(|one| row(args, &scenario, *one, &progress));
            each.collect::<Result<_, Failure>>()
        })?;
        if let Some(path) = &args.report {
            save_report(path, &report(args, &rows), console)?;
        }
        let table = table(&rows);
        match args.format.format() {
            Format::Json => output::print_json(&json!({
                "schema": "ropewalk.bench-compare/1", "version": VERSION, "kernel": linux::release(), "rows": rows,
            })),
            Format::Text => output::print(&table.text(layout())),
            format => print_tables(format, &table, || vec![Captioned::new("", table.clone())]),
        }
    }

    /// The scenario with the times of the options and `more`.
    fn load(args: &CompareArgs, more: &[&str]) -> Result<Scenario, Failure> {
        let times = [
            ("--time", format!("transfer.duration={}ns", args.time.as_nanos())),
            ("--warmup", format!("transfer.warmup={}ns", args.warmup.as_nanos())),
        ];
        let mut overrides: Vec<Override<'_>> =
            times.iter().map(|(option, change)| Override { option, change }).collect();
        overrides.extend(more.iter().map(|change| Override { option: "--set", change }));
        FileArgs::new(args.emulate.clone(), args.sets.clone(), None).load_with(&overrides)
    }

    /// Everything that can run here. What is missing is noted.
    fn contenders(scenario: &Scenario, console: Console) -> Vec<Contender> {
        let mut all =
            vec![Contender::Ropewalk { in_order: false }, Contender::Ropewalk { in_order: true }];
        let known = linux::congestion_controls();
        for multipath in [false, true] {
            if multipath && (!linux::has_mptcp() || scenario.paths.len() < 2) {
                console.note(
                    "left out: Multipath TCP, which this kernel or this scenario does not have",
                );
                continue;
            }
            for congestion in ["cubic", "bbr"] {
                if known.iter().any(|name| name == congestion) {
                    all.push(Contender::Kernel(Flow { multipath, congestion }));
                } else {
                    console.note(format_args!(
                        "left out: {congestion}, which this kernel does not have"
                    ));
                }
            }
        }
        for program in OtherProgram::ALL {
            if program.is_installed() {
                all.push(Contender::Other(program));
            } else {
                console
                    .note(format_args!("left out: {}, which is not installed", program.command()));
            }
        }
        all
    }

    /// The place of the path with the highest rate.
    fn fastest(scenario: &Scenario) -> usize {
        let rate = |at: &usize| scenario.paths[*at].up.capacity.mean_rate();
        (0..scenario.paths.len()).max_by_key(rate).unwrap_or(0)
    }

    fn row(
        args: &CompareArgs,
        scenario: &Scenario,
        contender: Contender,
        progress: &Progress,
    ) -> Result<Row, Failure> {
        let path = fastest(scenario);
        let (mut runs, mut latest): (Vec<Observed>, f64) = (Vec::new(), 0.0);
        for seed in args.seed..args.seed + args.runs {
            let (seen, lateness_s) = match contender {
                Contender::Ropewalk { in_order } => {
                    let options = if in_order { "--in-order" } else { "" };
                    ropewalk::run(scenario, None, options, seed)?
                }
                Contender::Kernel(flow) => {
                    kernel::run(scenario, flow, if flow.multipath { 0 } else { path }, seed, None)?
                }
                Contender::Other(program) => program.run(scenario, path, seed)?,
            };
            progress.step();
            runs.push(seen);
            latest = latest.max(lateness_s);
        }
        let middle = |figure: &dyn Fn(&Observed) -> Option<f64>| {
            median(runs.iter().filter_map(figure).collect())
        };
        let each = || runs.iter().map(|run| run.goodput_bps);
        let (transport, multipath) = name(contender);
        let all = scenario.paths.iter().map(|path| path.name.clone());
        Ok(Row {
            transport,
            paths: if multipath { all.collect() } else { vec![scenario.paths[path].name.clone()] },
            goodput_bps: middle(&|run| Some(run.goodput_bps)).unwrap_or(0.0),
            range_bps: [each().fold(f64::INFINITY, f64::min), each().fold(0.0, f64::max)],
            retransmitted: middle(&|run| Some(run.retransmitted).filter(|part| part.is_finite())),
            rtt_s: middle(&Observed::rtt_s),
            simulated_bps: simulated(args, contender)?,
            lateness_s: latest,
        })
    }

    /// How it is called, and whether it uses all paths.
    fn name(contender: Contender) -> (String, bool) {
        match contender {
            Contender::Ropewalk { in_order: false } => ("Ropewalk".to_owned(), true),
            Contender::Ropewalk { in_order: true } => ("Ropewalk in order".to_owned(), true),
            Contender::Kernel(Flow { multipath, congestion }) => {
                let protocol = if multipath { "Multipath TCP" } else { "TCP" };
                (format!("Linux {protocol}, {congestion}"), multipath)
            }
            Contender::Other(program) => (program.command().to_owned(), program.is_multipath()),
        }
    }

    /// The goodput of Ropewalk in the simulator, with the settings of its live transport.
    fn simulated(args: &CompareArgs, contender: Contender) -> Result<Option<f64>, Failure> {
        let Contender::Ropewalk { in_order } = contender else { return Ok(None) };
        let unordered = format!("transfer.unordered={}", !in_order);
        let live = ["transfer.protocol=cmt-sctp", "transfer.preset=live", &unordered];
        let same = load(args, &live)?;
        let runs: Result<Vec<f64>, _> = (args.seed..args.seed + args.runs)
            .map(|seed| simulate(&same, seed).map(|seen| seen.goodput_bps))
            .collect();
        Ok(median(runs?))
    }

    fn table(rows: &[Row]) -> Table {
        let mut table = Table::empty();
        table.name("transport", "transport");
        table.name("paths", "paths");
        for (shown, key) in [
            ("goodput", "goodput_bps"),
            ("least", "least_bps"),
            ("most", "most_bps"),
            ("simulated", "simulated_bps"),
            ("RTT", "rtt_s"),
            ("retransmitted", "retransmitted"),
        ] {
            table.column(shown, key);
        }
        for row in rows {
            table.row(vec![
                Cell::from(row.transport.as_str()),
                Cell::from(row.paths.join(" + ")),
                Cell::of(row.goodput_bps, Unit::BitsPerSecond),
                Cell::of(row.range_bps[0], Unit::BitsPerSecond),
                Cell::of(row.range_bps[1], Unit::BitsPerSecond),
                Cell::known(row.simulated_bps, Unit::BitsPerSecond),
                Cell::known(row.rtt_s, Unit::Seconds),
                Cell::known(row.retransmitted, Unit::Ratio),
            ]);
        }
        table
    }

    /// The report: a chart of bars for each figure.
    fn report(args: &CompareArgs, rows: &[Row]) -> Report {
        let scenario = args.emulate.display().to_string();
        let title = format!("Transports over {scenario}");
        let mut report =
            Report::new(title, ReportKind::Validate, VERSION.to_owned(), command_line());
        let names: Vec<&str> = rows.iter().map(|row| row.transport.as_str()).collect();
        let bars = |name: &str, source: &str, y: Vec<Option<f64>>| json!({ "name": name, "source": source, "style": "bars", "x": names, "y": y });
        let figure = |id: &str, title: &str, y_label: &str, series: Vec<serde_json::Value>| {
            json!({
                "id": id, "paper": scenario, "title": title, "note": null, "x_label": "", "y_label": y_label,
                "x_scale": "linear", "y_scale": "linear", "series": series,
            })
        };
        let of = |figure: &dyn Fn(&Row) -> Option<f64>| rows.iter().map(figure).collect::<Vec<_>>();
        report.figures = vec![
            figure(
                "goodput",
                "Goodput, median",
                "Mbit/s",
                vec![
                    bars("measured", "peer", of(&|row| Some(row.goodput_bps * 1e-6))),
                    bars(
                        "simulated",
                        "simulated",
                        of(&|row| row.simulated_bps.map(|bps| bps * 1e-6)),
                    ),
                ],
            ),
            figure(
                "rtt",
                "Round trip of the busiest path",
                "ms",
                vec![bars("measured", "peer", of(&|row| row.rtt_s.map(|s| s * 1e3)))],
            ),
        ];
        report
    }
}
