//! Transfers over the emulated links of a scenario: of the kernel, of Ropewalk, and of other programs.

pub mod kernel;
pub mod others;
pub mod ropewalk;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use ropewalk_scenario::Scenario;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// A run does not count if the emulator was later than this, s, and is repeated.
const LATENESS_S: f64 = 0.020;
/// Most attempts.
const ATTEMPTS: u64 = 4;

/// The folder of a transfer's files.
struct Folder {
    path: PathBuf,
    /// Whether the files remain.
    is_kept: bool,
}

impl Folder {
    /// A new folder that is removed in the end, or this one, which remains.
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

/// Lines for the shells of both ends.
#[derive(Clone, Copy, Debug)]
struct Line<'a> {
    /// At the receiver, started first.
    far: Option<&'a str>,
    /// At the sender.
    near: &'a str,
}

/// The links of the scenario. Flows beside each other are separate connections over the same links.
pub fn links(scenario: &Scenario) -> Scenario {
    let mut links = scenario.clone();
    links.world.associations = 1;
    links
}

/// Whether links can be emulated here.
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

/// Runs what `attempt` does with a seed, and again with another one if the emulator was late. Returns also how late it
/// was, s.
fn in_time<T>(
    seed: u64,
    attempt: impl Fn(u64) -> Result<(T, f64), Failure>,
) -> Result<(T, f64), Failure> {
    let mut latest = 0.0;
    for again in 0..ATTEMPTS {
        let (seen, lateness_s) = attempt(seed + 1000 * again)?;
        if lateness_s <= LATENESS_S {
            return Ok((seen, lateness_s));
        }
        latest = lateness_s;
    }
    let help = "stop other programs, or run fewer transfers at the same time: --jobs 1";
    let ms = latest * 1e3;
    let message = format!("the emulator was late by {ms:.0} ms in each attempt");
    Err(Failure::Run(format!("{message}\n = help: {help}")))
}

/// Runs the lines over the links of the scenario. Returns how late the emulator was, s.
fn emulate(
    folder: &Folder,
    scenario: &Scenario,
    seed: u64,
    line: Line<'_>,
) -> Result<f64, Failure> {
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
    let stats: serde_json::Value = read(&stats)?;
    let late = |kind: &str| stats[kind]["max"].as_f64().unwrap_or(0.0);
    Ok(late("delivery_lateness_s").max(late("waking_lateness_s")))
}

/// Reads a JSON document that a program wrote. Text before it is left out.
fn read<T: DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let text = fs::read_to_string(file).map_err(|error| broken(&error))?;
    let document = text.find('{').map_or("", |start| &text[start..]);
    serde_json::from_str(document)
        .map_err(|error| Failure::Run(format!("cannot read `{}`: {error}", file.display())))
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::Run(format!("the transfer failed: {error}"))
}
