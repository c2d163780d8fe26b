//! Compares our round robin with another simulator's, row by row of its tables.

use super::csv::{Line, Table};
use super::data;
use super::decide::Accepted;
use super::judge::{Pair, fraction};
use super::plan::{RunKey, Runs};
use super::quantity;
use super::row::{Row, Value};
use super::sample::{Sample, seeds};
use crate::Run;

/// Tolerance of goodput.
const GOODPUT_TOLERANCE: f64 = 0.10;
/// Tolerance of waiting times. It is larger: the maximum depends on a single packet, the mean on how bursts
/// interleave.
const WAIT_TOLERANCE: f64 = 0.15;
/// Number of our runs for each run of the peer.
const SEEDS: u32 = 10;
/// Packets over the entire run, headers included, as the papers count them.
pub const WHOLE_RUN: &str = "goodput_wire_bps.whole_run";

/// One row of a peer's table, with the run that answers it.
#[derive(Clone, Debug)]
pub struct PeerCase {
    /// Variant and set-up.
    pub case: String,
    /// The setup without the variant, for figures.
    pub short: String,
    /// `base`, or `no_delayed_sack`.
    pub variant: &'static str,
    /// Our run.
    pub key: RunKey,
    /// The peer's goodput over the entire run, bit/s on the wire.
    pub goodput_bps: f64,
    /// The peer's goodput after the warm-up, bit/s on the wire.
    pub goodput_steady_bps: f64,
    /// The peer's longest wait after the warm-up, s.
    pub wait_max_s: f64,
    /// The peer's mean wait after the warm-up, s.
    pub wait_mean_s: f64,
    /// Packets that arrived on the second path.
    pub path2_packets: f64,
}

/// The rows of a peer's table: `sarwar`, `kuhn` or `blocking`.
///
/// # Errors
/// A message if the table is malformed.
pub fn cases(item: &str) -> Result<Vec<PeerCase>, String> {
    let name = format!("{item}.csv");
    let file = data::folder("ns2").and_then(|folder| folder.file(&name));
    let table = Table::parse(file.ok_or_else(|| format!("there is no table {name}"))?)?;
    table.lines().map(|line| case(item, line)).collect()
}

fn case(item: &str, line: Line<'_>) -> Result<PeerCase, String> {
    let (key, short) = match item {
        "blocking" => blocking(line)?,
        "kuhn" => kuhn(line)?,
        _ => sarwar(line)?,
    };
    let variant = line.text("variant")?;
    // The peer's setup differs from that of the papers: see its README.
    let key = key.with("sctp.initial_ssthresh=receive-buffer");
    let key = match variant {
        // As in the reference: one SACK for every second packet, or after 200 ms.
        "base" => key.with("sctp.sack_every=2"),
        "no_delayed_sack" => key.with("sctp.sack_every=1"),
        other => return Err(format!("unknown variant `{other}` in {item}.csv")),
    };
    Ok(PeerCase {
        case: format!("{short}, {}", variant.replace('_', " ")),
        short,
        variant,
        key,
        goodput_bps: line.number("goodput_kbps")? * 1e3,
        goodput_steady_bps: line.number("goodput_steady_kbps")? * 1e3,
        wait_max_s: line.number("wait_max_ms")? * 1e-3,
        wait_mean_s: line.number("wait_mean_ms")? * 1e-3,
        path2_packets: line.number("path2_pkts")?,
    })
}

fn blocking(line: Line<'_>) -> Result<(RunKey, String), String> {
    let short =
        format!("{}-{}-{}", line.text("cf_mbps")?, line.text("cs_mbps")?, line.text("rs_ms")?);
    let file = format!("tmaxblock-{short}.toml");
    Ok((RunKey::new("slides2013", &file, "round-robin"), short))
}

fn kuhn(line: Line<'_>) -> Result<(RunKey, String), String> {
    let set_up =
        format!("{}-{}-{}", line.text("cs_mbps")?, line.text("rs_ms")?, line.text("rbuf_kB")?);
    let key = RunKey::new("kuhn2014", &format!("case-{set_up}.toml"), "round-robin");
    let queue = line.text("queue_pkts")?;
    let key = key
        .with(format!("path.fast.queue={queue} packets"))
        .with(format!("path.slow.queue={queue} packets"));
    let short = if queue == "10000" { set_up } else { format!("{set_up}, queue {queue}") };
    Ok((key, short))
}

fn sarwar(line: Line<'_>) -> Result<(RunKey, String), String> {
    let packets = line.text("rbuf_pkts")?;
    let key = RunKey::new("sarwar2013", "long-run.toml", "round-robin");
    // Packets of this paper have 1000 B.
    let key = key.with(format!("transfer.receive_buffer={packets} kB"));
    Ok((key, format!("{packets} packets")))
}

/// A quantity that both simulators report.
struct Compared {
    quantity: &'static str,
    unit: &'static str,
    tolerance: f64,
    peer: fn(&PeerCase) -> f64,
    ours: fn(&Run) -> f64,
}

/// Steady state begins after the warm-up. The quantities of the entire run include the start-up.
const COMPARED: [Compared; 4] = [
    Compared {
        quantity: "goodput_wire_bps",
        unit: "bit/s",
        tolerance: GOODPUT_TOLERANCE,
        peer: |case| case.goodput_steady_bps,
        ours: |run| run.result.goodput_wire_bps,
    },
    Compared {
        quantity: WHOLE_RUN,
        unit: "bit/s",
        tolerance: GOODPUT_TOLERANCE,
        peer: |case| case.goodput_bps,
        ours: whole_run_bps,
    },
    Compared {
        quantity: "blocking_time_s.mean",
        unit: "s",
        tolerance: WAIT_TOLERANCE,
        peer: |case| case.wait_mean_s,
        ours: |run| run.result.blocking_time_s.mean,
    },
    Compared {
        quantity: "blocking_time_s.max",
        unit: "s",
        tolerance: WAIT_TOLERANCE,
        peer: |case| case.wait_max_s,
        ours: |run| run.result.blocking_time_s.max,
    },
];

/// All packets since the start, divided by the length of the run, as the peer counts them.
fn whole_run_bps(run: &Run) -> f64 {
    let result = &run.result;
    let packet_bits = result.goodput_wire_bps * result.duration_s / result.delivered_packets as f64;
    result.engine.packets as f64 * packet_bits / (result.duration_s + result.warmup_s)
}

impl PeerCase {
    /// Our runs, with seeds of this case.
    pub fn keys(&self, item: &str) -> Vec<RunKey> {
        let name = format!("ns2/{item}/{}", self.case);
        let seeds = seeds(&name, SEEDS);
        seeds.map(|seed| self.key.clone().with(format!("transfer.seed={seed}"))).collect()
    }
}

/// The runs of a peer's table.
///
/// # Errors
/// A message if the table is malformed.
pub fn keys(item: &str) -> Result<Vec<RunKey>, String> {
    Ok(cases(item)?.iter().flat_map(|case| case.keys(item)).collect())
}

/// Judges the rows of a peer's table.
///
/// # Errors
/// A message if the table is malformed.
pub fn rows(item: &str, runs: &Runs) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for case in cases(item)? {
        let keys = case.keys(item);
        let done: Result<Vec<&Run>, String> = keys.iter().map(|key| runs.get(key)).collect();
        for compared in &COMPARED {
            rows.push(compared.row(item, &case, done.as_deref()));
        }
    }
    Ok(rows)
}

impl Compared {
    fn row(&self, item: &str, case: &PeerCase, runs: Result<&[&Run], &String>) -> Row {
        let peer = (self.peer)(case);
        let row = Row {
            paper: "ns2".to_owned(),
            item: item.to_owned(),
            case: case.case.clone(),
            quantity: self.quantity.to_owned(),
            unit: self.unit.to_owned(),
            peer_value: Some(peer.into()),
            reference_value: Some(peer),
            readings: vec!["sctp.initial_ssthresh=receive-buffer".to_owned()],
            source: format!("ns-2 2.35, {item}.csv"),
            ..Row::default()
        };
        let runs = match runs {
            Ok(runs) => runs,
            Err(error) => return Row { reason: Some(error.clone()), ..row },
        };
        let pair = |run: &&Run| Pair { subject: (self.ours)(run), reference: peer };
        let sample = Sample::new(runs.iter().map(pair).collect());
        let ours = sample.mean().subject;
        let off = sample.spread(|p| p.subject - p.reference);
        let decision = Accepted::around_zero(self.tolerance * peer).decide(off);
        Row {
            simulated_value: Some(Value::Number(ours)),
            difference: fraction(ours, peer),
            interval: sample.interval(off.over(peer)),
            seeds: Some(sample.seeds()),
            verdict: decision.of_value(),
            ..row
        }
    }
}

/// Adds our simulated values and the peer's to the rows of the slides' blocking times.
///
/// # Errors
/// A message if the peer's table or a scenario is malformed.
pub fn beside_blocking_times(rows: &mut [Row], runs: &Runs) -> Result<(), String> {
    let cases = cases("blocking")?;
    for row in rows {
        // The peer did not run every row of the slides.
        let known = cases.iter().find(|c| c.short == row.case && c.variant == "base");
        row.peer_value = known.map(|case| case.wait_max_s.into());
        let key = RunKey::new("slides2013", &format!("tmaxblock-{}.toml", row.case), "round-robin");
        let run = runs.get(&key).ok();
        row.simulated_value = run.map(|run| run.result.blocking_time_s.max.into());
        let by_model = row.claim.is_none() && row.simulated_value.is_some();
        row.judged_by = by_model.then(|| "model".to_owned());
        row.model_value = Some(quantity::of_model(&key.scenario()?, "blocking_time_max_s")?.into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_a_peer_has_a_scenario_that_stands() {
        for (item, expected) in [("sarwar", 10), ("kuhn", 24), ("blocking", 12)] {
            let cases = cases(item).unwrap();
            assert_eq!(cases.len(), expected, "{item}");
            for case in cases {
                case.key.scenario().unwrap();
                assert!(case.goodput_bps > 1e5 && case.wait_max_s > 0.0, "{}", case.case);
            }
        }
    }

    #[test]
    fn the_scenarios_are_set_up_as_the_peer_was() {
        let small = cases("kuhn").unwrap().into_iter().find(|c| c.case.contains("queue 50"));
        let scenario = small.unwrap().key.scenario().unwrap();
        let limits = scenario.paths.iter().map(|p| p.up.queue.limit);
        assert!(limits.eq([ropewalk_scenario::Limit::Packets(50); 2]));
        let every = cases("sarwar").unwrap().into_iter().find(|c| c.variant != "base");
        let every = every.unwrap().key.scenario().unwrap();
        assert_eq!((every.sctp.sack_every, every.transfer.receive_buffer), (Some(1), 10_000));
    }
}
