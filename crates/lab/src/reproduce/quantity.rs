//! Quantities that statements name, from a run or from a closed-form model.

use ropewalk_models::slot::SlotPath;
use ropewalk_models::{
    PathNumbers, asymmetry, blocking_time_max_s, packets_per_period, period,
    receive_buffer_min_bytes,
};
use ropewalk_scenario::Scenario;

use crate::RunResult;
use crate::bound::path_numbers;

/// A key of the results, such as `blocking_time_s.max` or `paths.slow.utilisation`; or `delivered_share`, which
/// is goodput on the wire divided by the sum of the path rates.
///
/// # Errors
/// A message if the key does not exist.
pub fn of_run(result: &RunResult, scenario: &Scenario, quantity: &str) -> Result<f64, String> {
    if quantity == "delivered_share" {
        return Ok(result.goodput_wire_bps / capacity_bps(scenario));
    }
    let document = serde_json::to_value(result).map_err(|e| e.to_string())?;
    let mut found = Some(&document);
    let mut keys = quantity.split('.');
    while let Some(key) = keys.next() {
        found = match found.and_then(|value| value.get(key)) {
            Some(serde_json::Value::Array(list)) => {
                let name = keys.next();
                list.iter().find(|one| one.get("name").and_then(|n| n.as_str()) == name)
            }
            other => other,
        };
    }
    found.and_then(serde_json::Value::as_f64).ok_or_else(|| format!("a run has no `{quantity}`"))
}

/// Sum of the rates of all paths, bit/s.
pub fn capacity_bps(scenario: &Scenario) -> f64 {
    scenario.paths.iter().map(|p| p.up.capacity.mean_rate().as_bps() as f64).sum()
}

/// The value of a closed-form model for the scenario.
///
/// # Errors
/// A message if the model does not exist, or does not support these paths.
pub fn of_model(scenario: &Scenario, quantity: &str) -> Result<f64, String> {
    let paths = path_numbers(scenario).ok_or("the closed forms know no shared links")?;
    let packet = f64::from(scenario.transfer.packet);
    let (family, name) = quantity.split_once('.').unwrap_or((quantity, ""));
    match family {
        // The simulated maximum has its own key; in the model both are equal.
        "blocking_time_max_s" | "blocking_time_s" => {
            blocking_time_max_s(&paths, packet).map_err(|e| e.to_string())
        }
        "receive_buffer_min_bytes" => receive_buffer_min_bytes(&paths).map_err(|e| e.to_string()),
        "asymmetry" => of_two(&paths),
        "capacity_packets" => {
            let slots = slot_paths(&paths, packet)?;
            let position = scenario.paths.iter().position(|p| p.name == name);
            let slot = position.map(|i| slots[i].capacity_packets as f64);
            slot.ok_or_else(|| format!("there is no path `{name}`"))
        }
        "packets_per_period" => per_period(scenario, &paths, name),
        _ => Err(format!("there is no closed form of `{quantity}`")),
    }
}

fn of_two(paths: &[PathNumbers]) -> Result<f64, String> {
    let [first, second] = paths else { return Err("asymmetry takes two paths".to_owned()) };
    asymmetry(first.rate_bps(), first.rtt_s(), second.rate_bps(), second.rtt_s())
        .map_err(|e| e.to_string())
}

fn slot_paths(paths: &[PathNumbers], packet: f64) -> Result<Vec<SlotPath>, String> {
    let slot = |path| SlotPath::from_numbers(path, packet, period::DELAY_QUANTUM_S);
    paths.iter().map(slot).collect::<Result<_, _>>().map_err(|e| e.to_string())
}

fn per_period(scenario: &Scenario, paths: &[PathNumbers], name: &str) -> Result<f64, String> {
    let slots = slot_paths(paths, f64::from(scenario.transfer.packet))?;
    let delays: Vec<u64> = slots.iter().map(|s| s.delay_ticks).collect();
    let capacities: Vec<u64> = slots.iter().map(|s| s.capacity_packets).collect();
    let packets = packets_per_period(&delays, &capacities, None).map_err(|e| e.to_string())?;
    if name == "total" {
        return Ok(packets.total as f64);
    }
    let position = scenario.paths.iter().position(|p| p.name == name);
    let of_path = position.map(|i| packets.per_path[i] as f64);
    of_path.ok_or_else(|| format!("there is no path `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::super::plan::RunKey;
    use super::*;
    use crate::{RunOptions, run};

    #[test]
    fn closed_forms_are_found_by_the_key_that_statements_use() {
        let scenario = |file| RunKey::new("sarwar2013", file, "daps").scenario().unwrap();
        let long = scenario("long-run.toml");
        let cases = [
            ("receive_buffer_min_bytes", 50_000.0),
            ("capacity_packets.wifi", 2.0),
            ("capacity_packets.3g", 5.0),
            ("packets_per_period.wifi", 20.0),
            ("packets_per_period.total", 25.0),
            ("asymmetry", 2.5),
        ];
        for (quantity, expected) in cases {
            let value = of_model(&long, quantity).unwrap();
            assert!((value - expected).abs() < 1e-9, "{quantity}: {value}");
        }
        assert!(of_model(&long, "capacity_packets.lte").unwrap_err().contains("`lte`"));
        assert!(of_model(&long, "luck").unwrap_err().contains("`luck`"));
    }

    #[test]
    fn quantities_of_a_run_are_found_by_path_name_and_by_dots() {
        let key = RunKey::new("sarwar2013", "figures-1-2.toml", "round-robin");
        let scenario = key.scenario().unwrap();
        let result = run(&scenario, &RunOptions::default()).unwrap().result;
        let value = |quantity| of_run(&result, &scenario, quantity);
        assert_eq!(value("goodput_bps"), Ok(result.goodput_bps));
        assert_eq!(value("paths.3g.utilisation"), Ok(result.paths[1].utilisation));
        assert_eq!(value("receive_buffer.mean_bytes"), Ok(result.receive_buffer.mean_bytes));
        assert_eq!(value("delivered_share"), Ok(result.goodput_wire_bps / 2e6));
        assert!(value("paths.lte.utilisation").is_err() && value("protocol").is_err());
    }
}
