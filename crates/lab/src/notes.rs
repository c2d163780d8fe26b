//! Notes on figures that seem to contradict the scenario.

use ropewalk_scenario::Scenario;

use crate::result::RunResult;

/// A share of the flow-control bound that is shown as more than 100.0 %.
const ABOVE_BOUND: f64 = 1.0005;
/// A smoothed RTT below this fraction of the path's own RTT needs an explanation.
const BELOW_OWN_RTT: f64 = 0.98;

/// Sentences that explain figures of `result` that a reader of the scenario would not expect. They have the
/// same cause: an acknowledgement may return on a faster path than the packets that it acknowledges.
pub fn result_notes(scenario: &Scenario, result: &RunResult) -> Vec<String> {
    let shorter = scenario.paths.iter().zip(&result.paths).filter_map(|(path, found)| {
        let own = path.up.delay.saturating_add(path.down.delay);
        let srtt = found.srtt_s?;
        let fixed = path.up.steps.iter().chain(&path.down.steps).all(|step| step.delay.is_none());
        (fixed && srtt < BELOW_OWN_RTT * own.as_secs_f64()).then(|| {
            format!(
                "{} shows an RTT of {:.1} ms, less than the {} ms of its links: some SACKs return on a faster path \
                 than the packets that they acknowledge.",
                path.name,
                srtt * 1e3,
                // One digit after the point, if there is one.
                (own.as_secs_f64() * 1e4).round() / 10.0
            )
        })
    });
    let mut notes: Vec<String> = shorter.collect();
    if let Some(share) = result.share_of_bound.filter(|share| *share >= ABOVE_BOUND) {
        notes.push(format!(
            "{:.1} % of the flow-control bound is possible with several paths: the bound assumes that every \
             acknowledgement returns on the path of its packet.",
            share * 100.0
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::run;
    use crate::setup::RunOptions;

    fn notes(more: &str) -> Vec<String> {
        let text = format!(
            "[transfer]\nduration = '20 s'\nreceive_buffer = '45 kB'\nscheduler = 'lay'\n\
             [[path]]\nname = 'wifi'\nrate = '1 Mbit/s'\nrtt = '20 ms'\n{more}"
        );
        let scenario = Scenario::parse(&text, "test.toml").expect("a sound scenario");
        let run = run(&scenario, &RunOptions::default()).expect("a good run");
        result_notes(&scenario, &run.result)
    }

    #[test]
    fn an_rtt_below_that_of_the_links_and_a_share_above_the_bound_are_explained() {
        let lte = "[[path]]\nname = 'lte'\nrate = '2 Mbit/s'\nrtt = '200 ms'\n";
        let found = notes(lte);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("lte shows an RTT of 1") && found[0].contains("200 ms"));
        assert!(found[1].contains("% of the flow-control bound"));
        assert_eq!(notes(""), [""; 0], "a single path has its own RTT");
    }
}
