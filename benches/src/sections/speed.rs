//! Delivered packets per second of CPU time, compared with ns-2 in the same run.

use ropewalk_lab::RunResult;

use crate::child::{find, run_timed};
use crate::row::{Findings, Row};
use crate::runs::{fastest, grouped};

/// Two paths of 100 Mbit/s.
const BIG: &str = include_str!("../../../scenarios/big.toml");
/// Schedulers for the unchanged large scenario.
const SCHEDULERS: [&str; 3] = ["daps", "min-rtt", "round-robin"];
/// Settings that make the large scenario equal to that of ns-2, so that the same work is compared.
const AS_PEER: [&str; 5] = [
    "transfer.scheduler=round-robin",
    "transfer.preset=paper-2013",
    "path.near.queue=10000 packets",
    "path.far.queue=10000 packets",
    "sctp.initial_ssthresh=65536 B",
];
/// Number of runs. The fastest counts.
const TIMES: usize = 3;
/// The small scenario is short and needs more runs.
const TIMES_SMALL: usize = 7;
/// Minimum speed relative to ns-2: with large windows, and with small ones.
const TARGET_BIG: f64 = 50.0;
const TARGET_SMALL: f64 = 10.0;
/// Delivered packets per CPU second with large windows.
const TARGET_PACKETS: f64 = 2e6;

/// Sarwar's paths as configured for ns-2: 600 s, a buffer of 100 packets.
const SMALL: &str = "[transfer]\nduration = \"600 s\"\npreset = \"paper-2013\"\n\
    scheduler = \"round-robin\"\nreceive_buffer = \"100 packets\"\npacket = \"1000 B\"\n\
    [[path]]\nname = \"fast\"\nrate = \"1.6 Mbit/s\"\nrtt = \"20 ms\"\nqueue = \"10000 packets\"\n\
    [[path]]\nname = \"slow\"\nrate = \"0.4 Mbit/s\"\nrtt = \"200 ms\"\nqueue = \"10000 packets\"\n";

/// The ns-2 script, embedded so that the bench runs in any directory.
const SCRIPT: &str = include_str!("../../peers/cmt.tcl");
/// With one stream, ns-2 stops when its 16-bit sequence number wraps. The initial threshold is far
/// below the window. With a threshold at the window, runs of ns-2 differ from each other.
const PEER_BIG: &str = "rate1 1e8 rtt1 20 rate2 1e8 rtt2 100 mtu 1500 buffer 2666 duration 60 \
                        ssthresh 65536 streams 64";
const PEER_SMALL: &str = "rate1 1.6e6 rtt1 20 rate2 4e5 rtt2 200 mtu 1000 buffer 100 duration 600";
/// A simulated second costs almost nothing, so this measures the start of ns-2.
const PEER_START: &str = "rate1 1.6e6 rtt1 20 rate2 4e5 rtt2 200 mtu 1000 buffer 100 duration 1";

/// Delivered packets and the CPU time for them.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    packets: f64,
    cpu_s: f64,
}

impl Cost {
    fn per_second(self) -> f64 {
        self.packets / self.cpu_s.max(1e-9)
    }

    fn row(self, what: &str) -> Row {
        let Self { packets, cpu_s } = self;
        let each = grouped(self.per_second());
        let text = format!("{each} packets per CPU second ({} in {cpu_s:.3} s)", grouped(packets));
        Row::told(what, self.per_second(), text)
    }

    /// The same, compared with the target for large windows.
    fn row_with_target(self, what: &str) -> Row {
        let met = self.per_second() >= TARGET_PACKETS;
        self.row(what).with_target(format!(">= {}", grouped(TARGET_PACKETS)), met)
    }

    fn of(run: &RunResult) -> Self {
        Self { packets: run.engine.packets as f64, cpu_s: run.engine.cpu_s }
    }
}

pub fn measure() -> Result<Findings, String> {
    let mut findings = Findings::default();
    let peer = match find("ns") {
        None => Err("`ns` is not on PATH (Debian package ns2)".to_owned()),
        Some(_) => Ok(Peer::new()?),
    };
    let on_peer = |what: &str, arguments: &str, times: usize| match &peer {
        Ok(peer) => peer.cost(arguments, times).map(Ok),
        Err(reason) => Ok(Err(Row::skipped(what, reason.clone()))),
    };

    let big_what = "ns-2, two paths of 100 Mbit/s: round robin";
    let peer_big = on_peer(big_what, PEER_BIG, 1)?;
    eprintln!("  speed: two paths of 100 Mbit/s");
    let what = "two paths of 100 Mbit/s, set up as ns-2: round robin";
    let cost = Cost::of(&fastest(TIMES, BIG, &AS_PEER)?);
    findings.rows.push(cost.row(what));
    findings.rows.extend(peer_big.as_ref().ok().map(|peer| ratio(what, cost, *peer, TARGET_BIG)));
    findings.rows.push(shown(big_what, peer_big));
    for scheduler in SCHEDULERS {
        let run = fastest(TIMES, BIG, &[&format!("transfer.scheduler={scheduler}")])?;
        findings
            .rows
            .push(Cost::of(&run).row_with_target(&format!("scenarios/big.toml: {scheduler}")));
    }

    let small_what = "ns-2, Sarwar's paths for 600 s: round robin";
    let peer_small = on_peer(small_what, PEER_SMALL, TIMES_SMALL)?;
    let cost = Cost::of(&fastest(TIMES_SMALL, SMALL, &[])?);
    let what = "Sarwar's paths for 600 s: round robin";
    findings.rows.push(cost.row(what));
    findings
        .rows
        .extend(peer_small.as_ref().ok().map(|peer| ratio(what, cost, *peer, TARGET_SMALL)));
    findings.rows.push(shown(small_what, peer_small));
    if let Ok(start) = on_peer("", PEER_START, TIMES_SMALL)? {
        findings.notes.push(format!(
            "Of ns-2's time, {:.3} s are its start, which weighs in the small scenario.",
            start.cpu_s
        ));
    }
    findings.notes.push(format!(
        "Fastest of {TIMES} runs ({TIMES_SMALL} of the small scenario; ns-2 runs the large one once). \
         CPU time of ns-2 is that of its process, start included; ours that of the run."
    ));
    Ok(findings)
}

fn ratio(what: &str, ours: Cost, peer: Cost, target: f64) -> Row {
    let ratio = ours.per_second() / peer.per_second();
    Row::told(format!("{what}: times as fast as ns-2"), ratio, format!("{ratio:.1}"))
        .with_target(format!(">= {target:.0}"), ratio >= target)
}

fn shown(what: &str, cost: Result<Cost, Row>) -> Row {
    cost.map_or_else(|skipped| skipped, |cost| cost.row(what))
}

/// ns-2 and the script for it.
struct Peer {
    script: String,
}

impl Peer {
    fn new() -> Result<Self, String> {
        let name = format!("ropewalk-cmt-{}.tcl", std::process::id());
        let script = std::env::temp_dir().join(name);
        std::fs::write(&script, SCRIPT).map_err(|e| format!("{}: {e}", script.display()))?;
        Ok(Self { script: script.display().to_string() })
    }

    fn cost(&self, arguments: &str, times: usize) -> Result<Cost, String> {
        eprintln!("  speed: ns-2, {arguments}");
        let all: Vec<String> = std::iter::once(self.script.as_str())
            .chain(arguments.split_whitespace())
            .map(str::to_owned)
            .collect();
        let mut best: Option<Cost> = None;
        for _ in 0..times {
            let output = run_timed("ns", &all)?;
            let cost = Cost { packets: delivered(&output.stdout)?, cpu_s: output.cpu_s };
            best = Some(best.filter(|b| b.cpu_s <= cost.cpu_s).unwrap_or(cost));
        }
        best.ok_or_else(|| "ns-2 was not run".to_owned())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A script that remains in the temporary directory does no harm.
        let _ = std::fs::remove_file(&self.script);
    }
}

/// Parses `delivered N`.
fn delivered(stdout: &str) -> Result<f64, String> {
    let count =
        stdout.lines().find_map(|line| line.strip_prefix("delivered ")?.parse::<u64>().ok());
    match count {
        Some(count) if count > 0 => Ok(count as f64),
        _ => Err(format!("ns-2 says `{}` where a count of packets was expected", stdout.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ropewalk_scenario::{Limit, Scenario};

    #[test]
    fn the_count_is_read_and_a_run_without_packets_is_an_error() {
        assert_eq!(delivered("delivered 44194\n"), Ok(44194.0));
        for text in ["", "delivered 0\n", "delivered many\n", "can't read \"x\"\n"] {
            assert!(delivered(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_ratio_is_of_packets_per_cpu_second() {
        let ours = Cost { packets: 1e6, cpu_s: 2.0 };
        let row = ratio("big", ours, Cost { packets: 1e5, cpu_s: 4.0 }, TARGET_SMALL);
        assert_eq!((row.value, row.met), (Some(20.0), Some(true)));
        assert_eq!(ratio("big", ours, ours, TARGET_SMALL).met, Some(false));
        let text = ours.row("big").measured;
        assert_eq!(text, "500 000 packets per CPU second (1 000 000 in 2.000 s)");
    }

    #[test]
    fn the_scenarios_are_those_that_ns2_gets() {
        let small = Scenario::parse(SMALL, "small").unwrap();
        let big = Scenario::parse_with(BIG, "big", &AS_PEER).unwrap();
        assert_eq!((small.sctp.sack_every, big.sctp.sack_every), (None, None));
        for (scenario, peer) in [(small, PEER_SMALL), (big, PEER_BIG)] {
            let words: Vec<&str> = peer.split_whitespace().collect();
            let of = |key: &str| -> f64 {
                let at = words.iter().position(|word| *word == key).unwrap();
                words[at + 1].parse().unwrap()
            };
            assert!((scenario.transfer.duration.as_secs_f64() - of("duration")).abs() < 1e-6);
            assert_eq!(f64::from(scenario.transfer.packet), of("mtu"));
            let packets = scenario.transfer.receive_buffer / u64::from(scenario.transfer.packet);
            assert_eq!(packets as f64, of("buffer"));
            for (path, (rate, rtt)) in
                scenario.paths.iter().zip([("rate1", "rtt1"), ("rate2", "rtt2")])
            {
                let round_trip = path.up.delay + path.down.delay;
                assert!((round_trip.as_secs_f64() * 1e3 - of(rtt)).abs() < 1e-6);
                assert_eq!(path.up.capacity.mean_rate().as_bps() as f64, of(rate));
                // The default of the script.
                assert_eq!(path.up.queue.limit, Limit::Packets(10_000));
            }
        }
    }
}
