//! A transfer of the kernel over the emulated links of a scenario.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use ropewalk_lab::validate::{Flow, Observed, PathObserved, Trace, TracePath, median};
use ropewalk_runtime::kernel::{Received, Sent, SocketSample};
use ropewalk_scenario::Scenario;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// A run does not count if the emulator was later than this, s, and is repeated.
const LATENESS_S: f64 = 0.020;
/// Most attempts.
const ATTEMPTS: u64 = 4;
/// Port of the receiver.
const PORT: u16 = 5001;

/// A folder that is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("ropewalk-validate-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The links of the scenario. The flows beside each other are the kernel's.
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
    let folder = Folder::new().map_err(|error| broken(&error))?;
    emulate(&folder, scenario, 1, &[], &["true".to_owned()]).map(|_| ())
}

/// Runs the kernel's transport, and once more if the emulator was late. Returns also how late it was, s.
///
/// # Errors
/// The emulation failed, or was always late.
pub fn run(scenario: &Scenario, flow: Flow, seed: u64) -> Result<(Observed, f64), Failure> {
    let mut latest = 0.0;
    for attempt in 0..ATTEMPTS {
        let (seen, lateness_s) = attempt_run(scenario, flow, seed + 1000 * attempt)?;
        if lateness_s <= LATENESS_S {
            return Ok((seen, lateness_s));
        }
        latest = lateness_s;
    }
    let help = "stop other programs, or run fewer transfers at the same time: --jobs 1";
    let ms = latest * 1e3;
    Err(Failure::Run(format!(
        "the emulator was late by {ms:.0} ms in each attempt\n = help: {help}"
    )))
}

fn attempt_run(scenario: &Scenario, flow: Flow, seed: u64) -> Result<(Observed, f64), Failure> {
    let folder = Folder::new().map_err(|error| broken(&error))?;
    let (far, near) = (folder.file("far.json"), folder.file("near.json"));
    let flows = scenario.world.associations as usize;
    let seconds = scenario.transfer.duration.as_secs_f64();
    let own = std::env::current_exe().map_err(|error| broken(&error))?;
    let (own, time) = (own.display(), format!("--time '{seconds} s'"));
    let mptcp = if flow.multipath { "--mptcp" } else { "" };
    let limits =
        if flow.multipath { "ip mptcp limits set subflow 8 add_addr_accepted 8 && " } else { "" };
    let receive = format!(
        "{limits}exec '{own}' kernel-peer receive --listen 0.0.0.0:{PORT} --flows {flows} --buffer {} {mptcp} {time} --out '{}'",
        scenario.transfer.receive_buffer,
        far.display()
    );
    let endpoints = if flow.multipath {
        "for i in $(seq 2 $ROPEWALK_PATHS); do eval ip mptcp endpoint add \\$ROPEWALK_LOCAL_$i dev \\$ROPEWALK_DEVICE_$i subflow || exit 1; done && "
    } else {
        ""
    };
    let congestion = format!(" --congestion {}", flow.congestion).repeat(flows);
    // The receiver ends a little later, and then writes what it has.
    let send = format!(
        "{limits}{endpoints}'{own}' kernel-peer send --to {{remote1}}:{PORT}{congestion} {mptcp} {time} --out '{}' && sleep 0.5",
        near.display()
    );
    let words = ["sh", "-c", &send].map(str::to_owned);
    let lateness_s = emulate(&folder, scenario, seed, &[receive], &words)?;
    let (sent, received): (Sent, Received) = (read(&near)?, read(&far)?);
    let names: Vec<String> = scenario.paths.iter().map(|path| path.name.clone()).collect();
    Ok((observed(&sent, &received, &names, scenario), lateness_s))
}

/// Runs `command` over the links of the scenario. Returns how late the emulator was, s.
fn emulate(
    folder: &Folder,
    scenario: &Scenario,
    seed: u64,
    far: &[String],
    command: &[String],
) -> Result<f64, Failure> {
    let (file, stats) = (folder.file("links.toml"), folder.file("stats.json"));
    fs::write(&file, links(scenario).to_toml()).map_err(|error| broken(&error))?;
    let own = std::env::current_exe().map_err(|error| broken(&error))?;
    let mut process = Command::new(own);
    process.arg("emulate").arg(&file).args(["--quiet", "--seed", &seed.to_string(), "--stats"]);
    process.arg(&stats);
    far.iter().for_each(|line| {
        process.args(["--far", line]);
    });
    let done = process.arg("--").args(command).output().map_err(|error| broken(&error))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr).trim().to_owned();
        let failure = if done.status.code() == Some(2) { Failure::Input } else { Failure::Run };
        return Err(failure(said));
    }
    let stats: serde_json::Value = read(&stats)?;
    let late = |kind: &str| stats[kind]["max"].as_f64().unwrap_or(0.0);
    Ok(late("delivery_lateness_s").max(late("waking_lateness_s")))
}

fn read<T: DeserializeOwned>(file: &Path) -> Result<T, Failure> {
    let text = fs::read_to_string(file).map_err(|error| broken(&error))?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::Run(format!("cannot read `{}`: {error}", file.display())))
}

fn broken(error: &std::io::Error) -> Failure {
    Failure::Run(format!("the transfer of the kernel failed: {error}"))
}

/// The name of the path whose device has the address: the third number of `10.77.N.1`.
fn path_of<'a>(socket: &SocketSample, names: &'a [String]) -> Option<&'a String> {
    let std::net::IpAddr::V4(own) = socket.local.ip() else { return None };
    names.get((own.octets()[2] as usize).checked_sub(1)?)
}

fn observed(sent: &Sent, received: &Received, names: &[String], scenario: &Scenario) -> Observed {
    let warm_s = sent.began_s + scenario.transfer.warmup.as_secs_f64();
    let end_s = sent.began_s + scenario.transfer.duration.as_secs_f64();
    let within = |at: f64| at >= warm_s && at <= end_s + 0.05;
    let arrivals: Vec<(f64, u64)> =
        received.samples.iter().map(|one| (one.at_s, one.bytes.iter().sum())).collect();
    let measured: Vec<&(f64, u64)> = arrivals.iter().filter(|(at, _)| within(*at)).collect();
    let goodput_bps = match (measured.first(), measured.last()) {
        (Some(first), Some(last)) if last.0 > first.0 => {
            (last.1 - first.1) as f64 * 8.0 / (last.0 - first.0)
        }
        _ => 0.0,
    };
    let later: Vec<_> = sent.samples.iter().filter(|sample| within(sample.at_s)).collect();
    let grown = |count: fn(&SocketSample) -> u64, of: &dyn Fn(&SocketSample) -> bool| {
        let sum = |sample: &&ropewalk_runtime::kernel::SocketSamples| -> u64 {
            sample.sockets.iter().filter(|socket| of(socket)).map(count).sum()
        };
        let [first, last] = [later.first(), later.last()].map(|one| one.map_or(0, sum));
        last.saturating_sub(first) as f64
    };
    let all = |_: &SocketSample| true;
    let (bytes, again) = (grown(|s| s.bytes_sent, &all), grown(|s| s.bytes_retrans, &all));
    let acked = grown(|s| s.bytes_acked, &all);
    let path = |name: &String| {
        let own = |socket: &SocketSample| path_of(socket, names) == Some(name);
        let trips = later.iter().flat_map(|sample| sample.sockets.iter().filter(|s| own(s)));
        PathObserved {
            name: name.clone(),
            share: grown(|s| s.bytes_acked, &own) / acked.max(1.0),
            rtt_s: median(trips.filter_map(|socket| socket.srtt_s).collect()),
        }
    };
    let windows = later.iter().flat_map(|sample| sample.sockets.iter().map(|s| s.snd_wnd));
    Observed {
        goodput_bps,
        retransmitted: again / bytes.max(1.0),
        paths: names.iter().map(path).collect(),
        receive_window_bytes: windows.max(),
        trace: trace(sent, &arrivals, names),
    }
}

fn trace(sent: &Sent, arrivals: &[(f64, u64)], names: &[String]) -> Trace {
    let rate = |pair: &[(f64, u64)]| {
        (pair[1].1 - pair[0].1) as f64 * 8.0 / (pair[1].0 - pair[0].0).max(1e-3)
    };
    let path = |name: &String| {
        let mut path = TracePath { name: name.clone(), ..TracePath::default() };
        for sample in &sent.samples {
            let own = sample.sockets.iter().find(|socket| path_of(socket, names) == Some(name));
            let Some(own) = own else { continue };
            path.time_s.push(sample.at_s - sent.began_s);
            path.srtt_s.push(own.srtt_s);
            path.cwnd_bytes.push((own.cwnd * own.mss) as f64);
        }
        path
    };
    Trace {
        time_s: arrivals.iter().skip(1).map(|(at, _)| at - sent.began_s).collect(),
        goodput_bps: arrivals.windows(2).map(rate).collect(),
        paths: names.iter().map(path).collect(),
    }
}
