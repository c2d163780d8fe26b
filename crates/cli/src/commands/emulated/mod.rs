//! Transfers over the emulated links of a scenario, with the kernel, Ropewalk, and other programs.

mod conditions;
pub mod kernel;
pub mod others;
pub mod ropewalk;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use ropewalk_scenario::Scenario;
use serde::de::DeserializeOwned;

pub use self::conditions::Conditions;
use self::conditions::shortest_rtt_s;
use crate::failure::Failure;

/// Maximum number of attempts: a run that does not count is repeated up to three times.
const ATTEMPTS: u64 = 4;

/// Why a transfer has no figures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoFigures {
    /// It failed.
    Failed(Failure),
    /// No attempt counted. States the shortage of the last one.
    ShortOfCpu(String),
}

impl From<Failure> for NoFigures {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<NoFigures> for Failure {
    fn from(reason: NoFigures) -> Self {
        match reason {
            NoFigures::Failed(failure) => failure,
            NoFigures::ShortOfCpu(lack) => {
                let help = "stop other programs, or run fewer transfers at the same time: --jobs 1";
                Self::Run(format!("short of CPU: {lack}\n = help: {help}"))
            }
        }
    }
}

/// The folder of a transfer's files.
struct Folder {
    path: PathBuf,
    /// Whether the files remain.
    is_kept: bool,
}

impl Folder {
    /// Creates a folder that is removed at the end, or uses `kept`, which remains.
    fn new(kept: Option<&Path>) -> Result<Self, Failure> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let path = kept.map_or_else(
            || {
                let number = NUMBER.fetch_add(1, Ordering::Relaxed);
                let name = format!("ropewalk-emulated-{}-{number}", std::process::id());
                std::env::temp_dir().join(name)
            },
            Path::to_owned,
        );
        fs::create_dir_all(&path).map_err(|error| broken(&error))?;
        Ok(Self { path, is_kept: kept.is_some() })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Shell lines of both ends.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    /// At the receiver, started first.
    far: Option<&'a str>,
    /// At the sender.
    near: &'a str,
}

/// The links of the scenario. Parallel flows are separate connections over the same links.
pub fn links(scenario: &Scenario) -> Scenario {
    let mut links = scenario.clone();
    links.world.associations = 1;
    links
}

/// Checks that links can be emulated on this machine.
///
/// # Errors
/// The reason why they cannot, with a hint.
pub fn check(scenario: &Scenario) -> Result<(), Failure> {
    emulate(&Folder::new(None)?, scenario, 1, Line { far: None, near: "true" }).map(|_| ())
}

/// This program, for a shell.
fn own() -> Result<String, Failure> {
    std::env::current_exe().map(|own| own.display().to_string()).map_err(|error| broken(&error))
}

/// Runs `attempt` with a seed, and repeats it with another seed if the run does not count.
fn counted<T>(
    scenario: &Scenario,
    seed: u64,
    attempt: impl Fn(u64) -> Result<(T, Conditions), Failure>,
) -> Result<(T, Conditions), NoFigures> {
    let shortest_rtt_s = shortest_rtt_s(scenario);
    let mut lack = String::new();
    for again in 0..ATTEMPTS {
        let (seen, conditions) = attempt(seed + 1000 * again)?;
        let Some(shortage) = conditions.shortage(shortest_rtt_s) else {
            return Ok((seen, conditions));
        };
        lack = format!("in the last of {ATTEMPTS} attempts, {shortage}");
    }
    Err(NoFigures::ShortOfCpu(lack))
}

/// Runs the lines over the links of the scenario.
fn emulate(
    folder: &Folder,
    scenario: &Scenario,
    seed: u64,
    line: Line<'_>,
) -> Result<Conditions, Failure> {
    let (file, stats) = (folder.file("links.toml"), folder.file("emulator.json"));
    fs::write(&file, links(scenario).to_toml()).map_err(|error| broken(&error))?;
    let mut process = Command::new(own()?);
    process.arg("emulate").arg(&file).args(["--quiet", "--seed", &seed.to_string(), "--stats"]);
    process.arg(&stats);
    if let Some(far) = line.far {
        process.args(["--far", far]);
    }
    process.args(["--", "sh", "-c", line.near]);
    let done = process.output().map_err(|error| broken(&error))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        let said = said.strip_prefix("error: ").unwrap_or(&said).to_owned();
        let failure = if done.status.code() == Some(2) { Failure::Input } else { Failure::Run };
        return Err(failure(said));
    }
    Ok(Conditions::read(&read(&stats)?))
}

/// Reads a JSON document that a program wrote. Text before it is ignored.
fn read<T: DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let text = fs::read_to_string(file).map_err(|error| broken(&error))?;
    let document = text.find('{').map_or("", |start| &text[start..]);
    serde_json::from_str(document)
        .map_err(|error| Failure::Run(format!("cannot read `{}`: {error}", file.display())))
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::Run(format!("the transfer failed: {error}"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_run_that_does_not_count_is_repeated_three_times_with_other_seeds() {
        let text = "[[path]]\nrtt = '20 ms'\n";
        let scenario = Scenario::parse(text, "a.toml").unwrap_or_else(|e| panic!("{e}"));
        for (late, expected) in [(0, Some(7)), (1, Some(1007)), (3, Some(3007)), (4, None)] {
            let attempts = Cell::new(0);
            let found = counted(&scenario, 7, |seed| {
                attempts.set(attempts.get() + 1);
                let lateness_s = if attempts.get() <= late { 0.5 } else { 0.0 };
                Ok((seed, Conditions { seconds: 10.0, lateness_s, ..Conditions::default() }))
            });
            assert_eq!(attempts.get(), ATTEMPTS.min(late + 1));
            assert_eq!(found.as_ref().ok().map(|(seed, _)| *seed), expected);
            if let Err(reason) = found {
                let text = Failure::from(reason).to_string();
                let part =
                    "short of CPU: in the last of 4 attempts, the emulator was late by 500.0 ms";
                assert!(text.contains(part), "{text}");
            }
        }
        let failed = counted(&scenario, 7, |_| Err::<((), _), _>(Failure::Status(3)));
        assert_eq!(failed.map(|_| ()), Err(NoFigures::Failed(Failure::Status(3))));
    }
}
