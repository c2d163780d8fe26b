//! Duration of `ropewalk run` for a small scenario, including start and output.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::clock::timed;
use crate::row::{Findings, Row};

const SCENARIO: &str = include_str!("../../../scenarios/sarwar.toml");
const TIMES: usize = 20;
/// Maximum wall-clock time, ms.
const TARGET: f64 = 50.0;

pub fn measure() -> Result<Findings, String> {
    let (command, how) = command()?;
    let file = std::env::temp_dir().join(format!("ropewalk-startup-{}.toml", std::process::id()));
    std::fs::write(&file, SCENARIO).map_err(|e| format!("{}: {e}", file.display()))?;
    let times: Result<Vec<f64>, String> = (0..TIMES).map(|_| one(&command, &file)).collect();
    // A file that remains in the temporary directory does no harm.
    let _ = std::fs::remove_file(&file);
    let millis = median(times?) * 1e3;
    let what = format!("`ropewalk run scenarios/sarwar.toml --json`, 60 s, median of {TIMES}");
    let row = Row::told(what, millis, format!("{millis:.1} ms"));
    let row = row.with_target(format!("<= {TARGET:.0} ms"), millis <= TARGET);
    Ok(Findings { rows: vec![row], notes: vec![how] })
}

fn one(command: &Path, file: &Path) -> Result<f64, String> {
    let mut child = Command::new(command);
    child.arg("run").arg(file).args(["--set", "transfer.duration=60 s", "--json"]);
    child.stdin(Stdio::null());
    let (done, seconds) = timed(|| child.output());
    let done = done.map_err(|e| format!("{} cannot be started: {e}", command.display()))?;
    if !done.status.success() || !done.stdout.starts_with(b"{") {
        let error = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{} failed: {}", command.display(), error.trim()));
    }
    Ok(seconds)
}

/// The command in the directory of this binary. It is rebuilt if cargo is available, so that it is
/// never outdated.
fn command() -> Result<(PathBuf, String), String> {
    let own = std::env::current_exe().map_err(|e| format!("this binary cannot be found: {e}"))?;
    let sibling = own.with_file_name(format!("ropewalk{}", std::env::consts::EXE_SUFFIX));
    // Cargo sets this for `cargo run`. A binary that was copied elsewhere uses the command in its
    // directory.
    let Some(cargo) = std::env::var_os("CARGO") else {
        let how = "The command beside this binary was used as it is.".to_owned();
        return if sibling.is_file() { Ok((sibling, how)) } else { Err(missing(&sibling)) };
    };
    eprintln!("  startup: building the command");
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--package", "ropewalk-cli"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    build.current_dir(env!("CARGO_MANIFEST_DIR")).stdout(Stdio::null());
    let built = build.status().is_ok_and(|status| status.success());
    match (built, sibling.is_file()) {
        (true, true) => {
            Ok((sibling, "The command was built by cargo beside this binary.".to_owned()))
        }
        (false, _) => Err("cargo could not build the command".to_owned()),
        (true, false) => Err(missing(&sibling)),
    }
}

fn missing(sibling: &Path) -> String {
    format!(
        "there is no {}; build it with `cargo build --release -p ropewalk-cli`",
        sibling.display()
    )
}

/// The median: the middle value, or the mean of the two middle values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len().is_multiple_of(2) {
        (values[half - 1] + values[half]) / 2.0
    } else {
        values[half]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_does_not_care_for_order_or_outliers() {
        for (values, expected) in [
            (vec![3.0, 1.0, 2.0], 2.0),
            (vec![1.0, 100.0], 50.5),
            (vec![4.0, 1.0, 1000.0, 2.0], 3.0),
        ] {
            assert!((median(values) - expected).abs() < 1e-12);
        }
    }
}
