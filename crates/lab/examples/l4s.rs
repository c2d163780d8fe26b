//! The tables of docs/data/l4s.csv: Prague, CUBIC and BBR over a dual queue and over single queues.
//!
//! ```text
//! cargo run --release -p ropewalk-lab --example l4s -- 10
//! ```
//!
//! The number is that of the seeds; each has its own start times. Means come with 95 % intervals. Each run is repeated
//! for each of its flows, to list the packets of that flow.

use ropewalk_base::Time;
use ropewalk_lab::compare::{estimate, map_in_parallel};
use ropewalk_lab::packet_log::{PacketRecord, Packets, Way};
use ropewalk_lab::{Run, RunOptions, run};
use ropewalk_scenario::Scenario;

const RATE: &str = "50 Mbit/s";
const QUEUES: [(&str, &str); 3] = [
    ("DualPI2", "discipline = 'dualpi2', limit = '1000 packets'"),
    ("CoDel with ECN", "discipline = 'codel', ecn = true, limit = '1000 packets'"),
    ("drop-tail, 1 BDP", "limit = '125 packets'"),
];
const MIXES: [&[&str]; 7] = [
    &["prague"],
    &["cubic"],
    &["bbr"],
    &["prague", "prague"],
    &["prague", "cubic"],
    &["prague", "bbr"],
    &["cubic", "bbr"],
];

/// What one flow got in one run.
#[derive(Clone, Copy, Debug)]
struct Flow {
    goodput_mbps: f64,
    share: f64,
    /// Median and 99th percentile of the time that packets of data waited in queues, ms.
    waits_ms: [f64; 2],
    lost: f64,
}

fn main() {
    let word = std::env::args().nth(1);
    let seeds: u64 = word.map_or(5, |word| word.parse().expect("a number of seeds"));
    let seeds: Vec<u64> = (1..=seeds).collect();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    for (title, make) in [
        ("one path", one_path as fn(&str, &[&str], u64) -> String),
        ("two paths, `lay`", two_paths),
    ] {
        for (name, queue) in QUEUES {
            println!("\n{title}: {name}\n");
            println!(
                "| flows | flow | goodput, Mbit/s | share | wait, median, ms | wait, p99, ms | lost packets |"
            );
            println!("| --- | --- | ---: | ---: | ---: | ---: | ---: |");
            for mix in MIXES {
                let runs = map_in_parallel(&seeds, threads, |seed| {
                    flows(&make(queue, mix, *seed), mix.len())
                });
                for (number, flow) in mix.iter().enumerate() {
                    row(mix, flow, &runs.iter().map(|run| run[number]).collect::<Vec<_>>());
                }
            }
        }
    }
}

fn head(protocol: &str, mix: &[&str], seed: u64) -> String {
    let (first, other) = (mix[0], mix[mix.len() - 1]);
    format!(
        "[transfer]\nprotocol = '{protocol}'\ncongestion = '{first}'\nduration = '60 s'\nwarmup = '20 s'\nseed = {seed}\n\
         receive_buffer = '16 MB'\n[world]\nassociations = {}\nstagger = '{} ms'\nother_congestion = '{other}'\n\
         [sctp]\necn = true\n",
        mix.len(),
        100 + 61 * seed,
    )
}

fn link(name: &str, rate: &str, queue: &str) -> String {
    format!("[[link]]\nname = '{name}'\nrate = '{rate}'\ndelay = '5 ms'\nqueue = {{ {queue} }}\n")
}

fn path(name: &str, rtt: u32) -> String {
    format!(
        "[[path]]\nname = '{name}'\nrate = '1 Gbit/s'\nrtt = '{rtt} ms'\nvia = ['{name}-core']\n"
    )
}

fn one_path(queue: &str, mix: &[&str], seed: u64) -> String {
    head("sctp", mix, seed) + &path("a", 20) + &link("a-core", RATE, queue)
}

fn two_paths(queue: &str, mix: &[&str], seed: u64) -> String {
    let paths = path("a", 20) + &path("b", 50);
    head("cmt-sctp", mix, seed)
        + &paths
        + &link("a-core", RATE, queue)
        + &link("b-core", "20 Mbit/s", queue)
}

fn flows(text: &str, count: usize) -> Vec<Flow> {
    let scenario = Scenario::parse(text, "l4s.toml").unwrap_or_else(|error| panic!("{error}"));
    let flow = |number: usize| {
        let options = RunOptions {
            packets: Some(scenario.transfer.duration),
            association: number as u32,
            ..RunOptions::default()
        };
        let run = run(&scenario, &options).unwrap_or_else(|error| panic!("{error}"));
        flow(&run, number, Time::ZERO + scenario.transfer.warmup)
    };
    (0..count).map(flow).collect()
}

fn flow(run: &Run, number: usize, from: Time) -> Flow {
    let result = &run.result;
    let goodput = *result.association_goodput_bps.get(number).unwrap_or(&result.goodput_bps);
    let packets = run.packets.as_ref().expect("the packets were listed");
    let (waits_ms, lost) = waits(packets, from);
    Flow { goodput_mbps: goodput / 1e6, share: goodput / result.goodput_bps, waits_ms, lost }
}

/// Quantiles of the waits of full packets that were sent from `from` on, and the number of packets that were dropped.
/// The first packets meet empty queues, so the least delay of a path is that without a wait.
fn waits(packets: &Packets, from: Time) -> ([f64; 2], f64) {
    assert!(packets.cut.is_none(), "all packets are listed");
    let full = packets.records.iter().map(|packet| packet.size).max().unwrap_or(0);
    let data = || packets.records.iter().filter(|p| p.way == Way::Up && p.size == full);
    let delay =
        |packet: &PacketRecord| packet.received.map(|at| at.since(packet.sent).as_secs_f64() * 1e3);
    let mut least = vec![f64::INFINITY; packets.paths.len()];
    for packet in data() {
        let least = &mut least[packet.path as usize];
        *least = least.min(delay(packet).unwrap_or(f64::INFINITY));
    }
    let measured = || data().filter(|packet| packet.sent >= from);
    let mut waits: Vec<f64> =
        measured().filter_map(|p| Some(delay(p)? - least[p.path as usize])).collect();
    waits.sort_by(f64::total_cmp);
    let at = |share: f64| waits[((waits.len() - 1) as f64 * share) as usize];
    ([at(0.5), at(0.99)], measured().filter(|packet| packet.dropped).count() as f64)
}

fn row(mix: &[&str], name: &str, flows: &[Flow]) {
    let cell = |value: fn(&Flow) -> f64, digits: usize| {
        let values: Vec<f64> = flows.iter().map(value).collect();
        let found = estimate(&values).expect("at least one run");
        format!("{:.digits$} ± {:.digits$}", found.mean, found.half_width.unwrap_or(0.0))
    };
    println!(
        "| {} | `{name}` | {} | {} | {} | {} | {} |",
        mix.join(" + "),
        cell(|flow| flow.goodput_mbps, 1),
        cell(|flow| flow.share, 2),
        cell(|flow| flow.waits_ms[0], 1),
        cell(|flow| flow.waits_ms[1], 1),
        cell(|flow| flow.lost, 0),
    );
}
