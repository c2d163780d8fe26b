//! A transfer as one JSON document in the format of iperf3.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use cpu_time::ProcessTime;
use ropewalk_apps::files::{Interval, Stretch};
use ropewalk_base::PeerText;
use serde::Serialize;

use super::Record;
use crate::files::VERSION;

/// Bytes per read from a file.
const BLOCK_SIZE: u64 = 256 << 10;

/// The JSON document of a transfer.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: &'static str,
    start: Start,
    intervals: Vec<Interval>,
    end: End,
    /// Why the transfer did not complete; absent if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Start {
    connected: Vec<Connected>,
    version: String,
    system_info: String,
    timestamp: Timestamp,
    /// The peer, at the sender.
    #[serde(skip_serializing_if = "Option::is_none")]
    connecting_to: Option<Host>,
    /// The peer, at the receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    accepted_connection: Option<Host>,
    cookie: String,
    /// Unknown: each path has its own.
    tcp_mss_default: Option<u64>,
    /// Zero: unlimited.
    target_bitrate: u64,
    test_start: TestStart,
}

#[derive(Debug, Serialize)]
struct Timestamp {
    time: String,
    timesecs: u64,
}

#[derive(Debug, Serialize)]
struct Host {
    host: String,
    port: u16,
}

/// A path. Its number is the one that the streams use.
#[derive(Debug, Serialize)]
struct Connected {
    socket: u64,
    local_host: String,
    local_port: u16,
    remote_host: String,
    remote_port: u16,
}

/// Options of a test, in iperf3's terms. A transfer corresponds to a test with a number of bytes (`-n`).
#[derive(Debug, Serialize)]
struct TestStart {
    /// Readers only know `TCP` and `UDP`. The fields are those of `TCP`: a reliable stream of
    /// bytes.
    protocol: &'static str,
    num_streams: usize,
    blksize: u64,
    omit: u64,
    duration: u64,
    bytes: u64,
    blocks: u64,
    reverse: u64,
    tos: u64,
    /// Zero: unlimited.
    target_bitrate: u64,
}

#[derive(Debug, Serialize)]
struct End {
    streams: Vec<Streams>,
    sum_sent: Stretch,
    sum_received: Stretch,
    cpu_utilization_percent: Cpu,
    /// CPU time of this end, seconds.
    cpu_s: f64,
    files: Files,
}

/// Data counts as sent when it is acknowledged, so both ends of a path have the same bytes.
#[derive(Debug, Serialize)]
struct Streams {
    sender: Whole,
    receiver: Stretch,
}

/// A path over the entire transfer.
#[derive(Debug, Serialize)]
struct Whole {
    #[serde(flatten)]
    stretch: Stretch,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_snd_cwnd: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_rtt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mean_rtt: Option<u64>,
}

/// CPU time in percent of the duration. The time of the other end is unknown.
#[derive(Debug, Serialize)]
struct Cpu {
    host_total: f64,
    host_user: Option<f64>,
    host_system: Option<f64>,
    remote_total: Option<f64>,
    remote_user: Option<f64>,
    remote_system: Option<f64>,
}

#[derive(Debug, Serialize)]
struct Files {
    total: u64,
    done: u64,
    /// Bytes of all files.
    bytes: u64,
    /// Bytes that are stored at the receiver.
    bytes_placed: u64,
    /// Bytes that this transfer has stored there.
    bytes_moved: u64,
    failed: Vec<Failed>,
}

#[derive(Debug, Serialize)]
struct Failed {
    name: String,
    reason: String,
}

impl Document {
    /// Builds the document from a record, the files that failed, and the reason if the transfer did not complete.
    pub fn new(
        schema: &'static str,
        record: &Record,
        failed: Vec<(PeerText, PeerText)>,
        error: Option<String>,
    ) -> Self {
        let (paths, sum) = record.recorder.whole();
        let progress = record.progress;
        // JSON has its own escaping.
        let text = |text: PeerText| text.unescaped().to_owned();
        let name = |(name, reason)| Failed { name: text(name), reason: text(reason) };
        let files = Files {
            total: progress.files,
            done: progress.files_done,
            bytes: progress.bytes,
            bytes_placed: progress.placed,
            bytes_moved: progress.brought,
            failed: failed.into_iter().map(name).collect(),
        };
        let start = Start::of(record, &paths, sum.sender);
        let intervals = record.recorder.intervals().to_vec();
        let streams = paths.into_iter().map(|path| Streams::of(path, &intervals)).collect();
        let end = End {
            streams,
            sum_sent: Stretch { sender: true, ..sum.clone() },
            sum_received: received(sum),
            cpu_utilization_percent: Cpu::of(record.seconds),
            cpu_s: cpu_s(),
            files,
        };
        Self { schema, start, intervals, end, error }
    }
}

impl Start {
    fn of(record: &Record, paths: &[Stretch], is_sender: bool) -> Self {
        let connected: Vec<_> = paths.iter().filter_map(connected).collect();
        let peer = |wanted| {
            let first = connected.first().filter(|_| wanted)?;
            Some(Host { host: first.remote_host.clone(), port: first.remote_port })
        };
        Self {
            version: format!("ropewalk {VERSION}"),
            system_info: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
            timestamp: began(record.seconds),
            connecting_to: peer(is_sender),
            accepted_connection: peer(!is_sender),
            cookie: cookie(),
            tcp_mss_default: None,
            target_bitrate: 0,
            test_start: TestStart {
                protocol: "TCP",
                num_streams: paths.len(),
                blksize: BLOCK_SIZE,
                omit: 0,
                duration: 0,
                bytes: record.progress.bytes,
                blocks: 0,
                reverse: 0,
                tos: 0,
                target_bitrate: 0,
            },
            connected,
        }
    }
}

impl Streams {
    fn of(path: Stretch, intervals: &[Interval]) -> Self {
        let own = |stretch: &&Stretch| stretch.socket == path.socket;
        let samples = || intervals.iter().flat_map(|interval| &interval.streams).filter(own);
        let rtts: Vec<_> = samples().filter_map(|stretch| stretch.rtt).collect();
        let receiver = received(path.clone());
        let sender = Whole {
            max_snd_cwnd: samples().filter_map(|stretch| stretch.snd_cwnd).max(),
            max_rtt: rtts.iter().copied().max(),
            min_rtt: rtts.iter().copied().min(),
            mean_rtt: rtts.iter().sum::<u64>().checked_div(rtts.len() as u64),
            stretch: Stretch { sender: true, ..path },
        };
        Self { sender, receiver }
    }
}

/// The same data as the receiving end reports it.
fn received(stretch: Stretch) -> Stretch {
    Stretch { retransmits: None, snd_cwnd: None, rtt: None, sender: false, ..stretch }
}

impl Cpu {
    fn of(seconds: f64) -> Self {
        let percent = |cpu_s: f64| 100.0 * cpu_s / seconds.max(1e-9);
        let (user, system) = user_and_system_s().unzip();
        Self {
            host_total: percent(cpu_s()),
            host_user: user.map(percent),
            host_system: system.map(percent),
            remote_total: None,
            remote_user: None,
            remote_system: None,
        }
    }
}

fn cpu_s() -> f64 {
    ProcessTime::now().as_duration().as_secs_f64()
}

/// CPU time in the program and in the kernel.
#[cfg(target_os = "linux")]
fn user_and_system_s() -> Option<(f64, f64)> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
    let seconds = |time: nix::sys::time::TimeVal| time.num_microseconds() as f64 * 1e-6;
    Some((seconds(usage.user_time()), seconds(usage.system_time())))
}

#[cfg(not(target_os = "linux"))]
fn user_and_system_s() -> Option<(f64, f64)> {
    None
}

/// Identifies the transfer, as long as that of iperf3.
#[expect(clippy::disallowed_methods, reason = "only names a real transfer; nothing depends on it")]
fn cookie() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:026x}{:010x}", now.as_nanos(), std::process::id())
}

#[expect(
    clippy::disallowed_methods,
    reason = "says when a real transfer was; nothing depends on it"
)]
fn began(seconds: f64) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let timesecs = (now.as_secs_f64() - seconds).max(0.0) as u64;
    let time = httpdate::fmt_http_date(UNIX_EPOCH + std::time::Duration::from_secs(timesecs));
    Timestamp { time, timesecs }
}

fn connected(path: &Stretch) -> Option<Connected> {
    let (local, remote) = path.path.as_ref()?.split_once(" -> ")?;
    let [local, remote] = [local, remote].map(|text| text.parse::<SocketAddr>().ok());
    let (local, remote) = (local?, remote?);
    Some(Connected {
        socket: path.socket?,
        local_host: local.ip().to_string(),
        local_port: local.port(),
        remote_host: remote.ip().to_string(),
        remote_port: remote.port(),
    })
}
