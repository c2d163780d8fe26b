//! `ropewalk compare`: several schedulers, or several values of a key, on one scenario.

use std::thread::available_parallelism;

use clap::Args;
use ropewalk_lab::compare::{CompareOptions, Comparison, Estimate, Summary, Variant, compare};
use ropewalk_scenario::{Named, SchedulerName};

use crate::args::ScenarioArgs;
use crate::failure::Failure;
use crate::files::OutputFiles;
use crate::output;
use crate::printer::{count, percent, rate, size, time};
use crate::progress::{Progress, with_bar};
use crate::table::Table;

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ropewalk compare scenarios/kuhn-2-200-45.toml\n  \
    ropewalk compare scenarios/wifi-lte.toml --schedulers daps,min-rtt --seeds 5 --json\n  \
    ropewalk compare scenarios/sarwar.toml --vary path.slow.rtt=50ms,200ms --report rtt.html")]
pub struct CompareArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Schedulers to compare [default: all]
    #[arg(long, value_name = "A,B,C", value_delimiter = ',', conflicts_with_all = ["scheduler", "vary"],
        value_parser = str::parse::<SchedulerName>)]
    schedulers: Vec<SchedulerName>,
    /// Compare values of any key instead
    #[arg(long, value_name = "KEY=V1,V2")]
    vary: Option<String>,
    /// Runs of each, with seeds that follow each other; means come with 95 % confidence intervals
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    seeds: u64,
    /// Threads; the results do not depend on it [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print the results as one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    files: OutputFiles,
}

/// Runs everything and shows it side by side.
///
/// # Errors
/// [`Failure`]; runs that failed are shown all the same, and make the command fail in the end.
pub fn execute(args: &CompareArgs) -> Result<(), Failure> {
    let variants = variants(args)?;
    let files = args.files.check()?;
    let cores = available_parallelism().map_or(1, usize::from);
    let options = CompareOptions {
        seeds: args.seeds,
        threads: args.threads.map_or(cores, usize::from),
        series: files.wants_series(),
        sequence: files.sequence(),
    };
    let progress = Progress::new(variants.len() as u64 * args.seeds);
    let label = format!("comparing on {}", args.scenario.title());
    let runs = with_bar(&label, &progress, || compare(&variants, &options, &|| progress.step()));
    let comparison = Comparison::new(&runs);
    files.write_compared(args.scenario.title(), &runs)?;
    if args.json {
        output::print_json(&comparison)?;
    } else {
        output::print(&table(&comparison))?;
    }
    let failed = comparison.runs.iter().filter(|run| run.error.is_some());
    let reasons: Vec<String> = failed
        .filter_map(|run| {
            Some(format!("{}, seed {}: {}", run.label, run.seed, run.error.as_ref()?))
        })
        .collect();
    if reasons.is_empty() { Ok(()) } else { Err(Failure::Run(reasons.join("\n"))) }
}

fn variants(args: &CompareArgs) -> Result<Vec<Variant>, Failure> {
    let overrides: Vec<(String, String)> = match &args.vary {
        Some(vary) => varied(vary)?,
        None if args.scenario.scheduler.is_some() => {
            let message = "--scheduler leaves only one scheduler to compare";
            return Err(Failure::input(message, "say what differs with --vary or --schedulers"));
        }
        None => {
            // `compare` shows at once what a scenario gains, so by default it tries everything.
            let all = || SchedulerName::ALL.iter().filter(|name| is_available(**name)).copied();
            let chosen = args.schedulers.iter().copied();
            let names: Vec<_> =
                if args.schedulers.is_empty() { all().collect() } else { chosen.collect() };
            let set =
                |name: SchedulerName| (name.to_string(), format!("transfer.scheduler={name}"));
            names.into_iter().map(set).collect()
        }
    };
    let load = |(label, set): (String, String)| {
        let scenario = args.scenario.load_with(&[set])?;
        Ok(Variant { label, scenario })
    };
    overrides.into_iter().map(load).collect()
}

/// Whether the scheduler can be used yet: a reserved name does not parse.
fn is_available(name: SchedulerName) -> bool {
    name.as_str().parse::<SchedulerName>().is_ok()
}

/// `key=v1,v2` as labels and overrides. A comma inside of brackets or quotes separates nothing.
fn varied(vary: &str) -> Result<Vec<(String, String)>, Failure> {
    let help = "for example --vary transfer.receive_buffer=30kB,45kB,90kB";
    let Some((key, list)) = vary.split_once('=') else {
        return Err(Failure::input(format!("--vary {vary}: there is no `=`"), help));
    };
    let values = split_list(list);
    if let Some(empty) = values.iter().position(|value| value.is_empty()) {
        let message = format!("--vary {vary}: value {} is empty", empty + 1);
        return Err(Failure::input(message, help));
    }
    // The last part of a key says enough: what varies is one key.
    let name = key.rsplit('.').next().unwrap_or(key).trim();
    let one = |value: &&str| (format!("{name} {}", unquoted(value)), format!("{key}={value}"));
    Ok(values.iter().map(one).collect())
}

fn unquoted(value: &str) -> &str {
    value.trim_matches(['"', '\''])
}

fn split_list(list: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut depth, mut quote) = (Vec::new(), 0, 0_i32, None);
    for (at, c) in list.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                pieces.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push(list[start..].trim());
    pieces
}

fn table(comparison: &Comparison) -> String {
    let headings = [
        "",
        "goodput",
        "of limit",
        "peak buffer",
        "shut for",
        "blocking p99",
        "delay mean",
        "delay p99",
        "needless",
    ];
    let mut table = Table::new(&headings);
    for summary in &comparison.summary {
        table.row(row(summary));
    }
    let most = comparison.summary.iter().map(|summary| summary.runs).max().unwrap_or(0);
    let note = if most > 1 { "\nMeans, with 95 % confidence intervals behind ±.\n" } else { "" };
    table.text() + note
}

fn row(summary: &Summary) -> Vec<String> {
    let cell = |estimate: Option<Estimate>, show: fn(f64) -> String| match estimate {
        None => "-".to_owned(),
        Some(Estimate { mean, half_width: None }) => show(mean),
        Some(Estimate { mean, half_width: Some(half) }) => {
            format!("{} ± {}", show(mean), show(half))
        }
    };
    let number = |value: f64| {
        if value.fract() == 0.0 { count(value as u64) } else { format!("{value:.1}") }
    };
    vec![
        summary.label.clone(),
        if summary.runs == 0 { "failed".to_owned() } else { cell(summary.goodput_bps, rate) },
        cell(summary.share_of_bound, percent),
        cell(summary.receive_buffer_max_bytes, size),
        cell(summary.blocked_s, time),
        cell(summary.blocking_time_p99_s, time),
        cell(summary.app_delay_mean_s, time),
        cell(summary.app_delay_p99_s, time),
        cell(summary.spurious_retransmissions, number),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_split_at_its_own_commas_only() {
        for (list, pieces) in [
            ("1,2", vec!["1", "2"]),
            ("\"2 s\", \"3 s\"", vec!["\"2 s\"", "\"3 s\""]),
            (
                "{ model = 'bernoulli', rate = 0.1 },none",
                vec!["{ model = 'bernoulli', rate = 0.1 }", "none"],
            ),
            ("[1,[2,3]],[4]", vec!["[1,[2,3]]", "[4]"]),
            ("'a,b',c", vec!["'a,b'", "c"]),
            ("", vec![""]),
        ] {
            assert_eq!(split_list(list), pieces, "{list}");
        }
    }

    #[test]
    fn labels_name_the_key_by_its_last_part_and_the_value_without_quotes() {
        let varied = varied("path.lte.rtt='40 ms',80ms").expect("two values");
        let expected = [("rtt 40 ms", "path.lte.rtt='40 ms'"), ("rtt 80ms", "path.lte.rtt=80ms")];
        assert_eq!(varied, expected.map(|(label, set)| (label.to_owned(), set.to_owned())));
    }

    #[test]
    fn a_list_without_key_or_with_a_hole_is_refused_with_an_example() {
        for wrong in ["transfer.seed", "transfer.seed=", "transfer.seed=1,,2"] {
            let Err(Failure::Input(text)) = varied(wrong) else { panic!("{wrong} was accepted") };
            assert!(text.contains(wrong) && text.contains("for example"), "{text}");
        }
    }
}
