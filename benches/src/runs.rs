//! Runs simulations of scenarios given as text.

use ropewalk_lab::{RunOptions, RunResult, run};
use ropewalk_scenario::Scenario;

/// Runs a scenario with changes of the form `key=value`.
///
/// # Errors
/// A message if the scenario is wrong or the run fails.
pub fn simulate(text: &str, sets: &[&str]) -> Result<RunResult, String> {
    let scenario = Scenario::parse_with(text, "bench.toml", sets).map_err(|e| e.to_string())?;
    simulate_scenario(&scenario)
}

/// Runs a scenario.
///
/// # Errors
/// A message if the run fails.
pub fn simulate_scenario(scenario: &Scenario) -> Result<RunResult, String> {
    run(scenario, &RunOptions::default()).map(|run| run.result).map_err(|e| e.to_string())
}

/// The run with the lowest CPU time of `times` runs, because interference from other programs only
/// increases it.
///
/// # Errors
/// As [`simulate`].
pub fn fastest(times: usize, text: &str, sets: &[&str]) -> Result<RunResult, String> {
    let mut best = simulate(text, sets)?;
    for _ in 1..times {
        let next = simulate(text, sets)?;
        if next.engine.cpu_s < best.engine.cpu_s {
            best = next;
        }
    }
    Ok(best)
}

/// Formats a count with spaces between thousands.
pub fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped_by_thousands() {
        for (number, text) in [(0.0, "0"), (999.4, "999"), (1e3, "1 000"), (1234567.0, "1 234 567")]
        {
            assert_eq!(grouped(number), text);
        }
    }
}
