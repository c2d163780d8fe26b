//! A path with almost no capacity costs the other paths nothing, with two or more of them.

use ropewalk_lab::{RunOptions, run};
use ropewalk_scenario::Scenario;

/// Rate in Mbit/s, round trip in ms, share of packets lost.
type Path = (f64, u32, f64);

/// Carries at most 2 Mbit/s, and its data arrives after the others have filled any buffer used here.
const USELESS: Path = (2.0, 600, 0.0);
const SEEDS: [u64; 3] = [1, 2, 3];

/// Mean goodput over the seeds, bit/s.
fn goodput(paths: &[Path], buffer_kb: u32) -> f64 {
    let mut text = format!(
        "[transfer]\nduration = \"40 s\"\nwarmup = \"10 s\"\nreceive_buffer = \"{buffer_kb} kB\"\n"
    );
    for (i, (rate, rtt, loss)) in paths.iter().enumerate() {
        text += &format!(
            "[[path]]\nname = \"p{i}\"\nrate = \"{rate} Mbit/s\"\nrtt = \"{rtt} ms\"\nloss = {loss}\n"
        );
    }
    let of = |seed: &u64| {
        let seed = format!("transfer.seed={seed}");
        let scenario = Scenario::parse_with(&text, "useless path", &[seed]);
        let scenario = scenario.unwrap_or_else(|e| panic!("{e}"));
        let finished = run(&scenario, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        finished.result.goodput_bps
    };
    SEEDS.iter().map(of).sum::<f64>() / SEEDS.len() as f64
}

#[test]
fn a_useless_path_costs_paths_that_lose_a_little_nothing() {
    let bundles: [(&[Path], u32); 4] = [
        (&[(40.0, 30, 5e-4), (25.0, 20, 1e-3)], 512),
        (&[(60.0, 25, 2e-4), (40.0, 40, 5e-4)], 768),
        (&[(20.0, 15, 1e-3), (30.0, 35, 5e-4), (15.0, 50, 0.0)], 512),
        (&[(10.0, 20, 1e-3), (10.0, 25, 1e-3), (10.0, 30, 1e-3), (10.0, 35, 1e-3)], 256),
    ];
    for (useful, buffer_kb) in bundles {
        let without = goodput(useful, buffer_kb);
        for place in [0, useful.len()] {
            let mut all = useful.to_vec();
            all.insert(place, USELESS);
            let with = goodput(&all, buffer_kb);
            // With three seeds, some 3 % are random.
            assert!(
                with >= 0.95 * without,
                "{useful:?}, {buffer_kb} kB: {with:.0} bit/s with path {place}, {without:.0} without"
            );
        }
    }
}
