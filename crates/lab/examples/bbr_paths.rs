//! Measures BBR over several paths: queueing delays, shares of a shared bottleneck, and its detection.
//!
//! ```text
//! cargo run --release -p ropewalk-lab --example bbr_paths -- queueing 1..6 lay
//! ```
//!
//! `queueing SEEDS SCHEDULER [TRANSFER]`: median and 99th percentile of the queueing delay of each path, as shares of its
//! round trip, with queues of 4 BDP. `TRANSFER` is text for the table `[transfer]`.
//!
//! `detect SET PATHS NUMBERS CHANGES`: which pairs of paths of drawn scenarios are found to share a bottleneck, and what
//! `transfer.coupling = "detected"` does to goodput and delay there. `CHANGES` are overrides, separated by commas.

use std::ops::Range;

use ropewalk_base::PathId;
use ropewalk_lab::draw::{Draw, DrawSet, Family};
use ropewalk_lab::packet_log::Way;
use ropewalk_lab::{Run, RunOptions, run};
use ropewalk_scenario::{Override, Scenario};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["queueing", seeds, scheduler] => queueing(range(seeds), scheduler, ""),
        ["queueing", seeds, scheduler, transfer] => queueing(range(seeds), scheduler, transfer),
        ["detect", set, paths, numbers, transfer] => {
            detect(set, paths.parse().expect("a number of paths"), range(numbers), transfer);
        }
        _ => {
            eprintln!(
                "usage: bbr_paths queueing FROM..TO SCHEDULER [TRANSFER] | detect SET PATHS FROM..TO CHANGES"
            );
            std::process::exit(2);
        }
    }
}

fn range(text: &str) -> Range<u64> {
    let (from, to) = text.split_once("..").expect("FROM..TO");
    from.parse().expect("a number")..to.parse().expect("a number")
}

/// Paths, each with its rate in Mbit/s and its round trip in ms.
const BUNDLES: [(&str, &[(f64, f64)]); 5] = [
    ("50/20 + 10/100", &[(50.0, 20.0), (10.0, 100.0)]),
    ("10/20 + 10/200", &[(10.0, 20.0), (10.0, 200.0)]),
    ("100/10 + 20/40", &[(100.0, 10.0), (20.0, 40.0)]),
    ("80/40 + 18/60", &[(80.0, 40.0), (18.0, 60.0)]),
    ("50/10 + 20/40 + 10/100", &[(50.0, 10.0), (20.0, 40.0), (10.0, 100.0)]),
];

const WARMUP_S: f64 = 10.0;

fn queueing(seeds: Range<u64>, scheduler: &str, transfer: &str) {
    println!("| paths | path | p50 | p99 | goodput, Mbit/s |");
    for (name, paths) in BUNDLES {
        let mut shares = vec![[Vec::new(), Vec::new()]; paths.len()];
        let mut goodput = Vec::new();
        for seed in seeds.clone() {
            let mut text = format!(
                "[transfer]\npreset = 'live'\nduration = '40 s'\nwarmup = '{WARMUP_S} s'\nseed = {seed}\n\
                 receive_buffer = '16 MB'\n{transfer}\n[scheduler]\nname = '{scheduler}'\n"
            );
            for (i, (rate, rtt)) in paths.iter().enumerate() {
                text += &format!(
                    "[[path]]\nname = 'p{i}'\nrate = '{rate} Mbit/s'\nrtt = '{rtt} ms'\nqueue = '4 BDP'\n"
                );
            }
            let scenario = Scenario::parse(&text, "queueing.toml").expect("a valid scenario");
            let options =
                RunOptions { packets: Some(scenario.transfer.duration), ..RunOptions::default() };
            let run = run(&scenario, &options).expect("a run");
            goodput.push(run.result.goodput_bps / 1e6);
            for (i, (_, rtt)) in paths.iter().enumerate() {
                let delays = queueing_delays(&run, i);
                for (at, share) in [0.5, 0.99].into_iter().enumerate() {
                    shares[i][at].push(quantile(&delays, share) / (rtt / 1e3));
                }
            }
        }
        for (i, [p50, p99]) in shares.iter().enumerate() {
            let rate = if i == 0 { interval(&goodput) } else { String::new() };
            println!("| {name} | {i} | {} | {} | {rate} |", interval(p50), interval(p99));
        }
    }
}

/// Queueing delays of full packets on a path after the warm-up, ascending, in seconds.
fn queueing_delays(run: &Run, path: usize) -> Vec<f64> {
    let records = &run.packets.as_ref().expect("packets are listed").records;
    let full = records.iter().map(|packet| packet.size).max().unwrap_or(0);
    let mut delays: Vec<f64> = records
        .iter()
        .filter(|p| p.way == Way::Up && p.path as usize == path && p.size == full)
        .filter(|p| p.sent.as_secs_f64() >= WARMUP_S)
        .filter_map(|p| Some(p.received?.since(p.sent).as_secs_f64()))
        .collect();
    delays.sort_by(f64::total_cmp);
    let least = delays.first().copied().unwrap_or(0.0);
    delays.iter().map(|delay| delay - least).collect()
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(f64::NAN)
}

/// Mean and half of the 95 % confidence interval (Student's t up to ten values, then the normal distribution).
fn interval(values: &[f64]) -> String {
    const T: [f64; 10] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23];
    let n = values.len();
    let mean = values.iter().sum::<f64>() / n as f64;
    if n < 2 {
        return format!("{mean:.2}");
    }
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let t = T.get(n - 2).copied().unwrap_or(1.96);
    format!("{mean:.2} ± {:.2}", t * (squares / (n - 1) as f64 / n as f64).sqrt())
}

/// Where the bottlenecks of two paths of a drawn scenario are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Truth {
    /// Both lead over one link, which carries 90 % of its rate.
    Shared,
    /// Both lead over one link that is not the bottleneck.
    OtherLink,
    /// They have no link in common.
    Apart,
}

fn truth(run: &Run, scenario: &Scenario, a: usize, b: usize) -> Truth {
    let paths = &scenario.paths;
    let Some(link) = paths[a].via.iter().find(|link| paths[b].via.contains(link)) else {
        return Truth::Apart;
    };
    let members = (0..paths.len()).filter(|i| paths[*i].via.contains(link));
    let carried: f64 = members.map(|i| run.result.paths[i].throughput_bps).sum();
    let rate = scenario.links[*link].up.capacity.mean_rate().as_bps() as f64;
    let least = |i: usize| run.result.paths[i].throughput_bps >= 0.02 * carried;
    let is_full = carried >= 0.9 * rate && least(a) && least(b);
    if is_full { Truth::Shared } else { Truth::OtherLink }
}

/// What the detector finds in drawn scenarios, and what coupling does to goodput and delays there.
fn detect(set: &str, paths: usize, numbers: Range<u64>, transfer: &str) {
    let set = if set == "test" { DrawSet::Test } else { DrawSet::Training };
    let mut table = [[0; 3]; 3];
    for number in numbers {
        let draw = Draw { family: Family::Extreme, set, paths, number };
        let with = |coupling: &str| {
            let coupling = format!("transfer.coupling={coupling}");
            let mut changes = vec!["transfer.preset=live", "scheduler.name=lay", &coupling];
            changes.extend(transfer.split(',').filter(|change| !change.is_empty()));
            let changes: Vec<_> =
                changes.into_iter().map(|change| Override { option: "TRANSFER", change }).collect();
            let scenario = draw.scenario_with(&changes).expect("a scenario");
            Some((run(&scenario, &RunOptions::default()).ok()?, scenario))
        };
        let (Some((none, _)), Some((detected, scenario))) = (with("none"), with("detected")) else {
            continue;
        };
        let found = detected.bottlenecks.as_ref().expect("paths are compared");
        let mut is_shared = false;
        for b in 1..paths {
            for a in 0..b {
                let truth = truth(&none, &scenario, a, b);
                let sharing = found.sharing(PathId::from_index(a), PathId::from_index(b));
                is_shared |= truth == Truth::Shared;
                table[truth as usize][sharing as usize] += 1;
            }
        }
        let coupled = found.groups().iter().enumerate().any(|(i, group)| group.index() != i);
        let [before, after] = [&none.result, &detected.result];
        println!(
            "{draw} shared {} coupled {} goodput {:.4} p99 {:.4}",
            u8::from(is_shared),
            u8::from(coupled),
            after.goodput_bps / before.goodput_bps,
            after.app_delay_s.p99 / before.app_delay_s.p99
        );
    }
    println!("| truth | unknown | separate | shared |");
    for (name, row) in ["shared bottleneck", "shared link", "no shared link"].iter().zip(table) {
        println!("| {name} | {} | {} | {} |", row[0], row[1], row[2]);
    }
}
