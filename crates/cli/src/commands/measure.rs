//! `ropewalk measure`: measures the links to a server and writes them as a scenario.

mod comparison;
mod iperf3;
mod pcap;
mod ping;
mod recorded;

use std::path::{Path, PathBuf};

use clap::Args;
use ropewalk_apps::measure::Direction;
use ropewalk_apps::measure::links::{
    self, Document, LinkEstimate, LinkMeasurement, LinkPlan, ScenarioFiles, Step,
};
use ropewalk_base::Duration;
use ropewalk_lab::result::Unit;
use ropewalk_scenario::{Scenario, parse_duration, parse_size};

use super::transfer::runtime;
use crate::args::quoted;
use crate::console::{Console, width};
use crate::failure::Failure;
use crate::format::{Captioned, Format, FormatArgs, print_tables};
use crate::live::{ExtensionArgs, ReachArgs, TransportArgs, help_for_connect};
use crate::output;
use crate::printer::{percent, rate, size, time, time_or_dash};
use crate::progress::{Progress, with_bar};
use crate::record_file;
use crate::table::{Cell, Table};

/// Shortest useful measurement, seconds.
const LEAST_SECONDS: f64 = 5.0;
/// The command for other records.
const LOGS: &str = "logs of rates over time: ropewalk new --from FILE";
/// Least number of bytes: with fewer, no link can be overloaded.
const LEAST_BYTES: u64 = 100_000;

/// Arguments of `measure`.
#[derive(Debug, Args)]
#[command(
    mut_arg("plain", |arg| arg.hide(true)),
    mut_arg("port", |arg| arg.hide(true)),
    after_help = "The other side runs `ropewalk bench serve`. The probes are encrypted like all other data. Each link is \
    overloaded for a few seconds in each direction, one after the other: other traffic on it is delayed meanwhile.\n\n\
    Examples:\n  \
    ropewalk measure --to 192.0.2.7 --peer PUBKEY --out links.toml\n  \
    ropewalk measure --to 192.0.2.7 --from wlan0,wwan0 --peer PUBKEY --max-bytes '20 MB'\n  \
    ropewalk measure --from-ping ping.txt --from-iperf3 iperf3.json --out link.toml\n  \
    ropewalk measure --from-pcap transfer.pcapng --out link.toml"
)]
pub struct MeasureArgs {
    #[command(flatten)]
    reach: ReachArgs,
    #[command(flatten)]
    transport: TransportArgs,
    /// About how long to measure. Many or slow links take longer
    #[arg(long, value_name = "TIME", default_value = "30 s", value_parser = parse_duration)]
    time: Duration,
    /// Most bytes of probes, of both directions and all links together
    #[arg(long, value_name = "SIZE", default_value = "200 MB", value_parser = parse_size)]
    max_bytes: u64,
    /// Send nothing: take round trip and loss of one link from the output of ping (Linux, BSD, macOS, BusyBox, Windows) or of
    /// fping -l or -C
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "peer", "from", "json", "csv", "markdown"])]
    from_ping: Option<PathBuf>,
    /// Send nothing: take rate and queue of one link from the output of iperf3, JSON or text
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "peer", "from", "json", "csv", "markdown"])]
    from_iperf3: Option<PathBuf>,
    /// Send nothing: take rate, round trip and loss of the paths of the largest transfer of TCP or SCTP in a capture, pcap
    /// or pcapng. This and the other records may be compressed by gzip
    #[arg(long, value_name = "FILE", conflicts_with_all = ["to", "peer", "from", "json", "csv", "markdown", "from_ping", "from_iperf3"])]
    from_pcap: Option<PathBuf>,
    /// Scenario file to write, with its traces beside it; without it the scenario is printed. An existing file is not
    /// overwritten
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArgs,
}

/// Measures, and writes the scenario.
///
/// # Errors
/// [`Failure`].
pub fn execute(args: &MeasureArgs, console: Console) -> Result<(), Failure> {
    check_out(args)?;
    if let Some(file) = &args.from_pcap {
        return from_pcap(args, file, console);
    }
    if args.from_ping.is_some() || args.from_iperf3.is_some() {
        return from_records(args, console);
    }
    check(args)?;
    console.note(format_args!(
        "sending up to {} of probes in total, for about {}; each link is overloaded for some seconds in each direction",
        size(args.max_bytes as f64),
        time(args.time.as_secs_f64())
    ));
    let plan = LinkPlan { seconds: args.time.as_secs_f64(), max_bytes: args.max_bytes };
    let progress = Progress::share();
    let (found, names) = with_bar(console, "measuring", &progress, || {
        runtime()?.block_on(async {
            let (endpoint, target) =
                args.reach.open(&args.transport, &ExtensionArgs::default(), None, console)?;
            let association = endpoint.connect(&target).await.map_err(|error| {
                let help = help_for_connect(&error, "ropewalk bench serve");
                Failure::Run(format!("{error}\n = help: {help}"))
            })?;
            let report = |_: Step, share| progress.on_progress(share);
            let measured = links::measure(&association, plan, report).await;
            let found = measured.map_err(|error| Failure::Run(error.to_string()))?;
            let names = links::names(&association, &found);
            // The driver sends the abort in its next turn.
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            Ok::<_, Failure>((found, names))
        })
    })?;
    if found.links.iter().all(|link| link.rtt_s.is_none()) {
        return Err(Failure::Run("no probe arrived on any link in both directions".to_owned()));
    }
    let stem = args.out.as_deref().and_then(|out| out.file_stem());
    let stem = stem.map_or_else(|| "links".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let files = links::scenario(&found, &names, &stem);
    finish(args, console, &found, &names, &files)
}

/// Refuses options that would fail after the measurement.
fn check(args: &MeasureArgs) -> Result<(), Failure> {
    if !args.reach.is_given() {
        return Err(Failure::input(
            "--to and --peer are missing",
            "give what `ropewalk bench serve` prints at the other side, or a record: --from-ping, --from-iperf3",
        ));
    }
    if args.reach.is_plain() {
        return Err(Failure::input(
            "--plain: links are measured over an encrypted association only",
            "give --peer with the public key that `ropewalk bench serve` prints",
        ));
    }
    if args.time.as_secs_f64() < LEAST_SECONDS {
        let message = format!("--time {}: too short", time(args.time.as_secs_f64()));
        return Err(Failure::input(message, "give at least 5 s; 30 s is usual"));
    }
    if args.max_bytes < LEAST_BYTES {
        let message = format!("--max-bytes {}: too little", size(args.max_bytes as f64));
        return Err(Failure::input(message, "give at least 100 kB; 20 MB suffice for slow links"));
    }
    Ok(())
}

/// Refuses a file that cannot be written.
fn check_out(args: &MeasureArgs) -> Result<(), Failure> {
    let Some(out) = &args.out else { return Ok(()) };
    let shown = out.display();
    if out.exists() {
        return Err(Failure::input(format!("--out {shown}: it exists"), "give another name"));
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    if folder.is_some_and(|folder| !folder.is_dir()) {
        return Err(Failure::input(
            format!("--out {shown}: its directory does not exist"),
            "give the name of a file in a directory that exists",
        ));
    }
    Ok(())
}

/// Writes or prints the scenario of the links that a capture shows.
fn from_pcap(args: &MeasureArgs, file: &Path, console: Console) -> Result<(), Failure> {
    let (tables, carried) = pcap::read(file).map_err(|error| {
        let message = format!("--from-pcap {}: {error}", file.display());
        Failure::input(
            message,
            format_args!(
                "give a capture of a transfer, as `tcpdump -s 128 -w FILE` or Wireshark writes it; {LOGS}"
            ),
        )
    })?;
    let toml = comparison::compared(&tables, &carried, console)?;
    let Some(out) = &args.out else { return output::print(&toml) };
    write(out, &toml, console)
}

/// Writes or prints a scenario of one link from what other programs have recorded.
fn from_records(args: &MeasureArgs, console: Console) -> Result<(), Failure> {
    let read = |option: &str, file: &Path| {
        let content =
            record_file::read(file, recorded::LARGEST_TEXT, console).map_err(|error| {
                let message = format!("{option} {}: {error}", file.display());
                let help = "give a text file that exists, or one that is compressed by gzip";
                Failure::input(message, help)
            })?;
        Ok::<_, Failure>(recorded::text(&content))
    };
    let wrong = |option: &str, file: &Path, program: &str, error: String| {
        let message = format!("{option} {}: {error}", file.display());
        Failure::input(message, format_args!("give the output of `{program}`; {LOGS}"))
    };
    let mut tables = String::from("[[path]]\n");
    let mut carried = None;
    if let Some(file) = &args.from_ping {
        let text = read("--from-ping", file)?;
        let found = ping::ping(&text);
        let found =
            found.map_err(|error| wrong("--from-ping", file, "ping -c 100 ADDRESS", error))?;
        tables.push_str(&found.keys());
    }
    if let Some(file) = &args.from_iperf3 {
        let text = read("--from-iperf3", file)?;
        let found = iperf3::iperf3(&text, args.from_ping.is_none());
        let program = "iperf3 --json -c ADDRESS";
        let found = found.map_err(|error| wrong("--from-iperf3", file, program, error))?;
        tables.push_str(&found.keys);
        carried = found.carried;
    }
    let toml = match carried {
        Some(carried) => comparison::compared(&tables, &carried, console)?,
        // There is no transfer to compare it with.
        None => format!("[transfer]\nprotocol = \"cmt-sctp\"\nduration = \"60 s\"\n\n{tables}"),
    };
    let Some(out) = &args.out else { return output::print(&toml) };
    write(out, &toml, console)
}

/// Writes the scenario, and checks that it can be simulated.
fn write(out: &Path, toml: &str, console: Console) -> Result<(), Failure> {
    let written = std::fs::write(out, toml);
    written.map_err(|error| Failure::Run(format!("cannot write `{}`: {error}", out.display())))?;
    Scenario::load(out)?;
    let word = quoted(&out.to_string_lossy());
    console.note(format_args!("wrote {}; next: ropewalk run {word}", out.display()));
    Ok(())
}

/// Writes the files, and prints the result.
fn finish(
    args: &MeasureArgs,
    console: Console,
    found: &LinkMeasurement,
    names: &[String],
    files: &ScenarioFiles,
) -> Result<(), Failure> {
    if let Some(out) = &args.out {
        for (name, text) in &files.traces {
            let beside = out.with_file_name(name);
            std::fs::write(&beside, text).map_err(|error| {
                Failure::Run(format!("cannot write `{}`: {error}", beside.display()))
            })?;
        }
        write(out, &files.toml, console)?;
    } else if !files.traces.is_empty() {
        console.note("a rate varies; give --out to write its trace");
    }
    match (args.format.format(), &args.out) {
        (Format::Json, _) => output::print_json(&Document::new(found, names, &files.toml)),
        (Format::Text, Some(_)) => output::print(&text(found, names)),
        (Format::Text, None) => output::print(&files.toml),
        (format, _) => {
            let table = table(found, names);
            print_tables(format, &table, || vec![Captioned::new("", table.clone())])
        }
    }
}

/// The estimates in base units, a row for each link and direction. A rate is a lower bound unless the link was
/// saturated, and a queue unless it was full.
fn table(found: &LinkMeasurement, names: &[String]) -> Table {
    let mut table = Table::empty();
    table.name("link", "link");
    table.name("direction", "direction");
    table.columns(&[
        ("rate", "rate_bps"),
        ("saturated", "saturated"),
        ("base RTT", "base_rtt_s"),
        ("queue", "queue_bytes"),
        ("full", "queue_full"),
        ("loss", "loss"),
        ("loss, low", "loss_low"),
        ("loss, high", "loss_high"),
    ]);
    let said = |known: Option<bool>| known.map_or(Cell::Unknown, |yes| yes.to_string().into());
    for (link, name) in found.links.iter().zip(names) {
        for direction in [Direction::Up, Direction::Down] {
            let (capacity, queue, loss) = {
                let estimate = link.of(direction);
                (estimate.capacity, estimate.queue, estimate.loss)
            };
            let side = if direction == Direction::Up { "up" } else { "down" };
            table.row(vec![
                name.as_str().into(),
                side.into(),
                Cell::known(capacity.map(|c| c.rate_bps), Unit::BitsPerSecond),
                said(capacity.map(|c| c.saturated)),
                Cell::known(link.rtt_s, Unit::Seconds),
                Cell::known(queue.map(|q| q.bytes.round()), Unit::Bytes),
                said(queue.map(|q| q.full)),
                Cell::known(loss.map(|loss| loss.rate), Unit::Ratio),
                Cell::known(loss.map(|loss| loss.low), Unit::Ratio),
                Cell::known(loss.map(|loss| loss.high), Unit::Ratio),
            ]);
        }
    }
    table
}

fn text(found: &LinkMeasurement, names: &[String]) -> String {
    let headings = ["link", "direction", "rate", "base RTT", "queue", "loss", "99 % interval"];
    let mut table = Table::new(&headings);
    for (link, name) in found.links.iter().zip(names) {
        for direction in [Direction::Up, Direction::Down] {
            table.row(row(link, name, direction));
        }
    }
    let mut text = table.text(width());
    for group in found.groups() {
        let members: Vec<_> = group.iter().map(|i| names[*i].as_str()).collect();
        text.push_str(&format!("{} share a bottleneck\n", members.join(" and ")));
    }
    text + &format!("{} of probes in {}\n", size(found.sent_bytes as f64), time(found.seconds))
}

fn row(link: &LinkEstimate, name: &str, direction: Direction) -> Vec<String> {
    let estimate = link.of(direction);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let bound = |is_known: bool| if is_known { "" } else { "at least " };
    vec![
        name.to_owned(),
        if direction == Direction::Up { "up" } else { "down" }.to_owned(),
        or_dash(estimate.capacity.map(|c| format!("{}{}", bound(c.saturated), rate(c.rate_bps)))),
        time_or_dash(link.rtt_s),
        or_dash(estimate.queue.map(|q| format!("{}{}", bound(q.full), size(q.bytes.round())))),
        or_dash(estimate.loss.map(|loss| percent(loss.rate))),
        or_dash(
            estimate.loss.map(|loss| format!("{} to {}", percent(loss.low), percent(loss.high))),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use ropewalk_apps::measure::estimate::{Capacity, Queue, Sharing};
    use ropewalk_apps::measure::links::{DirectionEstimate, SharingTest};

    use super::*;

    fn way(rate_bps: f64) -> DirectionEstimate {
        let capacity = Capacity {
            rate_bps,
            low_bps: 0.99 * rate_bps,
            high_bps: 1.01 * rate_bps,
            seconds: 1.5,
            saturated: true,
        };
        let quartiles_s = [0.05, 0.06];
        let queue = Queue { bytes: 7e4, delay_s: 0.055, quartiles_s, drops: 40, full: true };
        DirectionEstimate { capacity: Some(capacity), queue: Some(queue), ..Default::default() }
    }

    fn link(path: usize, rate_bps: f64) -> LinkEstimate {
        LinkEstimate {
            path,
            rtt_s: Some(0.03),
            rtt_quantiles_s: [0.031, 0.032, 0.033],
            mtu_bytes: 1485,
            up: way(rate_bps),
            down: way(rate_bps / 2.0),
        }
    }

    fn names() -> [String; 2] {
        ["wlan0", "wwan0"].map(str::to_owned)
    }

    #[test]
    fn a_shared_bottleneck_becomes_a_link_of_both_paths() {
        let found = Sharing { rise: 1.0, correlation: 0.99, delay_s: 0.055, shared: true };
        let test = SharingTest { direction: Direction::Up, overloaded: 0, watched: 1, found };
        let found = LinkMeasurement {
            links: vec![link(0, 10e6), link(1, 4e6)],
            sharing: vec![test],
            sent_bytes: 1_000_000,
            seconds: 30.0,
        };
        let files = links::scenario(&found, &names(), "links");
        let scenario = Scenario::parse(&files.toml, "links");
        scenario.unwrap_or_else(|error| panic!("{error}\n{}", files.toml));
        let (paths, bottleneck) = files.toml.split_once("[[link]]").expect("a shared link");
        assert!(bottleneck.contains("rate = \"10.000 Mbit/s\""), "{bottleneck}");
        assert!(bottleneck.contains("rate_down = \"1000 Gbit/s\""), "{bottleneck}");
        assert!(paths.contains("rate = \"20.000 Mbit/s\"\nqueue = \"unlimited\""), "{paths}");
        assert!(paths.contains("rate = \"4.000 Mbit/s\""), "the slower link has its own: {paths}");
        assert_eq!(paths.matches("via = [\"bottleneck1\"]").count(), 2);
    }

    /// A measurement over a link with hardly any queue.
    #[test]
    fn a_queue_of_less_than_a_packet_becomes_one_of_a_packet() {
        let mut links = vec![link(0, 10e6)];
        links[0].up.queue = links[0].up.queue.map(|queue| Queue { bytes: 776.0, ..queue });
        let found = LinkMeasurement { links, ..LinkMeasurement::default() };
        let files = links::scenario(&found, &names(), "links");
        let scenario = Scenario::parse(&files.toml, "links");
        scenario.unwrap_or_else(|error| panic!("{error}\n{}", files.toml));
        assert!(files.toml.contains("queue = \"1500 B\""), "{}", files.toml);
    }

    #[test]
    fn a_varying_rate_becomes_a_trace_and_what_is_missing_is_said() {
        let mut found = LinkMeasurement {
            links: vec![link(0, 10e6), link(1, 4e6)],
            ..LinkMeasurement::default()
        };
        found.links[0].down.trace = vec![1, 3, 8];
        found.links[1].down = DirectionEstimate::default();
        let files = links::scenario(&found, &names(), "mine");
        let trace = ("mine-wlan0-down.mahi".to_owned(), "1\n3\n8\n".to_owned());
        assert_eq!(files.traces, [trace]);
        assert!(files.toml.contains("trace_down = \"mine-wlan0-down.mahi\""), "{}", files.toml);
        assert!(files.toml.contains("# rate_down: not measured"), "{}", files.toml);
        assert!(text(&found, &names()).contains("wwan0"));
        let csv = table(&found, &names()).csv();
        let head = "link,direction,rate_bps,saturated,base_rtt_s,queue_bytes,queue_full,loss,loss_low,loss_high";
        let rows: Vec<&str> = csv.lines().collect();
        assert_eq!(rows[..2], [head, "wlan0,up,10000000,true,0.03,70000,true,,,"]);
        assert_eq!(rows[4], "wwan0,down,,,0.03,,,,,", "what was not measured is empty");
    }
}
