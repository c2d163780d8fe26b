//! A sealed transfer of Ropewalk over the links, as measured by `bench serve` and `bench run`.

use std::path::Path as FilePath;

use ropewalk_lab::validate::{Observed, PathObserved};
use ropewalk_runtime::seal::SecretKey;
use ropewalk_scenario::Scenario;
use serde::Deserialize;

use super::{Conditions, Folder, Line, NoFigures, counted, emulate, own, read};
use crate::failure::Failure;

/// The required fields of the document of `bench run`.
#[derive(Deserialize)]
struct Document {
    goodput_bps: f64,
    #[serde(default)]
    paths: Vec<Path>,
}

#[derive(Deserialize)]
struct Path {
    delivered_bytes: u64,
    srtt_s: Option<f64>,
    sent_packets: u64,
    retransmitted_packets: u64,
    remote: Option<String>,
}

/// Runs a transfer over all paths, or over the one with this index. Also returns the conditions of the
/// run.
///
/// # Errors
/// The emulation failed, or no attempt counted.
pub fn run(
    scenario: &Scenario,
    path: Option<usize>,
    options: &str,
    seed: u64,
) -> Result<(Observed, Conditions), NoFigures> {
    counted(scenario, seed, |seed| attempt(scenario, path, options, seed))
}

fn attempt(
    scenario: &Scenario,
    path: Option<usize>,
    options: &str,
    seed: u64,
) -> Result<(Observed, Conditions), Failure> {
    let folder = Folder::new(None)?;
    let (own, out) = (own()?, folder.file("bench.json"));
    let places: Vec<usize> =
        path.map_or_else(|| (1..=scenario.paths.len()).collect(), |path| vec![path + 1]);
    let each = |text: &str, separator: &str| {
        let parts: Vec<String> =
            places.iter().map(|place| text.replace('N', &place.to_string())).collect();
        parts.join(separator)
    };
    let (near, far) = (folder.file("near.key"), folder.file("far.key"));
    let transfer = &scenario.transfer;
    let warmup = transfer.warmup.as_secs_f64();
    let time = transfer.duration.as_secs_f64() - warmup;
    let (near_key, far_key) = (new_key(&near)?, new_key(&far)?);
    let receive = format!(
        "exec '{own}' bench serve --once {} --receive-buffer '{} B' --key '{}' --allow {}",
        each("--listen {localN}", " "),
        transfer.receive_buffer,
        far.display(),
        near_key
    );
    let send = format!(
        "exec '{own}' bench run --to {} --from {} --key '{}' --peer {} --time '{time} s' --warmup '{warmup} s' --json --quiet {options} > '{}'",
        each("{remoteN}", ","),
        each("{localN}", ","),
        near.display(),
        far_key,
        out.display()
    );
    let conditions = emulate(&folder, scenario, seed, Line { far: Some(&receive), near: &send })?;
    let document: Document = read(&out)?;
    let sum = |count: fn(&Path) -> u64| document.paths.iter().map(count).sum::<u64>();
    let [sent, again] = [sum(|path| path.sent_packets), sum(|path| path.retransmitted_packets)];
    let delivered = sum(|path| path.delivered_bytes).max(1) as f64;
    let name = |path: &Path| {
        // The third number of an address is that of the path.
        let place =
            path.remote.as_ref().and_then(|remote| remote.split('.').nth(2)?.parse::<usize>().ok());
        let known = place.and_then(|place| scenario.paths.get(place.checked_sub(1)?));
        known.map_or_else(String::new, |path| path.name.clone())
    };
    let paths = document.paths.iter().map(|path| PathObserved {
        name: name(path),
        share: path.delivered_bytes as f64 / delivered,
        rtt_s: path.srtt_s,
    });
    let seen = Observed {
        goodput_bps: document.goodput_bps,
        retransmitted: again as f64 / sent.max(1) as f64,
        paths: paths.collect(),
        ..Observed::default()
    };
    Ok((seen, conditions))
}

/// Writes a new secret key, and returns the public one.
fn new_key(file: &FilePath) -> Result<String, Failure> {
    let key = SecretKey::generate().map_err(|error| Failure::Run(error.to_string()))?;
    key.write_new_file(file)?;
    Ok(key.public().to_string())
}
