//! Many clients of one hub: the short version of `make bench-hub`. Needs Linux and root; otherwise says so and passes.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::Duration;

use ropewalk_load::{Load, run};

use crate::support::can_emulate;

/// Maximum memory of the hub per idle client, bytes.
const MEMORY_MAX: f64 = 65_536.0;
/// Minimum fairness of the busy clients in each direction. `make bench-hub` measures longer and requires
/// 0.95.
const FAIRNESS_MIN: f64 = 0.85;

#[test]
fn busy_clients_share_a_hub_and_idle_ones_take_little_memory() {
    if !can_emulate() {
        return;
    }
    let load = Load {
        clients: 200,
        busy: 20,
        idle: Duration::from_secs(1),
        warmup: Duration::from_secs(3),
        measured: Duration::from_secs(5),
    };
    let report = run(Path::new(env!("CARGO_BIN_EXE_ropewalk")), load).expect("a run");
    let memory = report.idle_bytes_per_client;
    assert!((1.0..MEMORY_MAX).contains(&memory), "{report}");
    for group in [&report.downloads, &report.uploads] {
        assert!(group.clients == 10 && group.least_bps > 0.0, "{report}");
        assert!(group.fairness >= FAIRNESS_MIN, "{report}");
    }
}
