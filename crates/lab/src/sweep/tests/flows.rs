//! Columns of flows.

use super::*;

const TUNNEL: &str = "[transfer]\nduration = '3 s'\nwarmup = '1 s'\n\
    [[path]]\nname = 'a'\nrate = '8 Mbit/s'\nrtt = '20 ms'\n\
    [[path]]\nname = 'b'\nrate = '4 Mbit/s'\nrtt = '60 ms'\n\
    [[flow]]\nname = 'download'\nkind = 'tcp'\ndirection = 'down'\n\
    [[flow]]\nname = 'talk'\nkind = 'call'\n";

fn tunnel(vary: &str, seeds: u32) -> Result<SweepPlan, SweepError> {
    let source = Source { text: TUNNEL.into(), ..source() };
    let seeds = Seeds::first(seeds).expect("a number of seeds");
    SweepPlan::new(source, vec![Axis::parse(vary)?], seeds)
}

#[test]
fn a_sweep_has_the_figures_of_each_flow_as_run_has_them() {
    let plan = tunnel("path.b.use=always,backup", 2).expect("a plan");
    let dir = Room::new("flows");
    let out = dir.file("flows.parquet");
    let (tables, _) = finish(&plan, options(&out, None), 2);
    let columns = [
        ("download", "goodput_bps"),
        ("download", "delay_p99_s"),
        ("download", "lost"),
        ("talk", "goodput_bps"),
        ("talk", "delay_p99_s"),
        ("talk", "lost"),
        ("talk", "mos"),
    ];
    let schema = tables.runs.schema();
    let found: Vec<_> = schema.fields().iter().filter_map(|f| flow_column(f.name())).collect();
    let found: Vec<_> = found.iter().map(|(flow, figure)| (*flow, figure.key)).collect();
    assert_eq!(found, columns);
    for row in 0..tables.runs.num_rows() {
        let mut scenario = plan.grid().scenario(row / 2).expect("a scenario");
        scenario.transfer.seed = plan.grid().seed((row % 2 + 1) as u32);
        let result = run(&scenario, &RunOptions::default()).expect("a run").result;
        for (flow, key) in columns {
            let own = result.flows.iter().find(|one| one.name == flow).expect("the flow");
            let own = serde_json::to_value(own).expect("a document");
            let name = format!("flow.{flow}.{key}");
            assert_eq!(value(&tables.runs, &name, row), own[key], "{name} of {row}");
        }
    }
    // A backup carries nothing of the download while the other path works.
    let means =
        |row| value(&tables.means, "flow.download.goodput_bps", row).as_f64().unwrap_or(0.0);
    assert!(means(0) > 1.3 * means(1), "{} {}", means(0), means(1));
    let half = value(&tables.means, "flow.talk.mos_half_width", 0);
    assert!(half.is_number(), "{half}");
    // The written file can be read again: nothing is left to do.
    let again = Sweep::open(&plan, options(&out, None)).expect("the same sweep");
    assert!(again.left().is_empty());
    assert_eq!(again.close().expect("a result"), tables);
}

#[test]
fn a_flow_whose_kind_varies_has_a_score_where_it_is_a_call() {
    let plan = tunnel("flow.download.kind=call,game", 1).expect("a plan");
    let rows = [0, 1].map(|point| plan.grid().run(point, 1));
    let runs = runs_table(&plan, None, &rows).expect("a table");
    assert!(value(&runs, "flow.download.mos", 0).is_number());
    assert!(value(&runs, "flow.download.mos", 1).is_null());
}

#[test]
fn figures_of_flows_count_for_the_largest_sweep() {
    let plain = plan_of(&["path.lte.rtt=1ms..100ms/1000"], 10_000);
    assert!(plain.is_ok(), "{plain:?}");
    let error = tunnel("path.b.rtt=1ms..100ms/1000", 10_000).expect_err("too many").to_string();
    assert!(error.contains("25 figures are too many"), "{error}");
    tunnel("path.b.rtt=1ms..100ms/1000", 8_000).expect("200 million figures");
}
