//! Our round robin against another simulator's, row by row of its tables.

use super::csv::{Line, Table};
use super::data;
use super::judge::fraction;
use super::plan::{RunKey, Runs};
use super::quantity;
use super::row::{Row, Value, Verdict};

/// Goodput may differ by so much.
const GOODPUT_TOLERANCE: f64 = 0.10;
/// The longest wait, which one packet decides, by so much.
const WAIT_TOLERANCE: f64 = 0.15;

/// One row of a peer's table, and the run that answers it.
#[derive(Clone, Debug)]
pub struct PeerCase {
    /// Variant and set-up.
    pub case: String,
    /// The same without the variant, for figures.
    pub short: String,
    /// `base`, or `no_delayed_sack`.
    pub variant: &'static str,
    /// Our run.
    pub key: RunKey,
    /// The peer's goodput over the whole run, bit/s on the wire.
    pub goodput_bps: f64,
    /// The peer's goodput after the warm-up, bit/s on the wire.
    pub goodput_steady_bps: f64,
    /// The peer's longest wait after the warm-up, s.
    pub wait_max_s: f64,
    /// Packets that arrived on the second path.
    pub path2_packets: f64,
}

/// The rows of a peer's table: `sarwar`, `kuhn` or `blocking`.
///
/// # Errors
/// What is wrong with the table, in words.
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
    let key = match variant {
        // As the reference was made: one for every second packet, or after 200 ms.
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
    if queue == "10000" {
        return Ok((key, set_up));
    }
    let key = key
        .with(format!("path.fast.queue={queue} packets"))
        .with(format!("path.slow.queue={queue} packets"));
    Ok((key, format!("{set_up}, queue {queue}")))
}

fn sarwar(line: Line<'_>) -> Result<(RunKey, String), String> {
    let packets = line.text("rbuf_pkts")?;
    let key = RunKey::new("sarwar2013", "long-run.toml", "round-robin");
    // Packets of this paper are 1000 B.
    let key = key.with(format!("transfer.receive_buffer={packets} kB"));
    Ok((key, format!("{packets} packets")))
}

/// Our goodput as the peer counts it: all packets since the start, headers included, over the
/// whole run.
///
/// # Errors
/// Why the run failed.
pub fn whole_goodput_bps(key: &RunKey, runs: &Runs) -> Result<f64, String> {
    let scenario = key.scenario()?;
    let packets = runs.get(key)?.result.engine.packets as f64;
    let bits = packets * f64::from(scenario.transfer.packet) * 8.0;
    Ok(bits / scenario.transfer.duration.as_secs_f64())
}

/// The rows of a peer's table, judged.
///
/// # Errors
/// What is wrong with the table, in words.
pub fn rows(item: &str, runs: &Runs) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for case in cases(item)? {
        let goodput = whole_goodput_bps(&case.key, runs);
        let wait = runs.get(&case.key).map(|run| run.result.blocking_time_s.max);
        let tolerances = (GOODPUT_TOLERANCE, WAIT_TOLERANCE);
        rows.push(row(
            item,
            &case,
            ("goodput_wire_bps", "bit/s"),
            case.goodput_bps,
            goodput,
            tolerances.0,
        ));
        rows.push(row(
            item,
            &case,
            ("blocking_time_s.max", "s"),
            case.wait_max_s,
            wait,
            tolerances.1,
        ));
    }
    Ok(rows)
}

fn row(
    item: &str,
    case: &PeerCase,
    (quantity, unit): (&str, &str),
    peer: f64,
    ours: Result<f64, String>,
    tolerance: f64,
) -> Row {
    let (ours, failed) = match ours {
        Ok(ours) => (Some(ours), None),
        Err(error) => (None, Some(error)),
    };
    let difference = ours.and_then(|ours| fraction(ours, peer));
    let verdict = match (&failed, difference) {
        (Some(_), _) => Verdict::Failed,
        (None, d) => Verdict::of_value(d.is_some_and(|d| d.abs() <= tolerance)),
    };
    Row {
        paper: "ns2".to_owned(),
        item: item.to_owned(),
        case: case.case.clone(),
        quantity: quantity.to_owned(),
        unit: unit.to_owned(),
        simulated_value: ours.map(Value::Number),
        peer_value: Some(peer.into()),
        reference_value: Some(peer),
        difference,
        verdict,
        source: format!("ns-2 2.35, {item}.csv"),
        reason: failed,
        ..Row::default()
    }
}

/// Puts what was simulated, by us and by the peer, beside the slides' blocking times.
///
/// # Errors
/// What is wrong with the peer's table or a scenario, in words.
pub fn beside_blocking_times(rows: &mut [Row], runs: &Runs) -> Result<(), String> {
    let cases = cases("blocking")?;
    for row in rows {
        // The peer has not run every row of the slides.
        let known = cases.iter().find(|c| c.short == row.case && c.variant == "base");
        row.peer_value = known.map(|case| case.wait_max_s.into());
        let key = RunKey::new("slides2013", &format!("tmaxblock-{}.toml", row.case), "round-robin");
        let run = runs.get(&key).ok();
        row.simulated_value = run.map(|run| run.result.blocking_time_s.max.into());
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
