//! A transfer as one JSON document in the format of iperf3.

use std::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use cpu_time::ProcessTime;
use ropewalk_apps::files::{Interval, Stretch};
use ropewalk_base::PeerText;
use serde::Serialize;

use super::Record;
use crate::files::VERSION;

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
    version: String,
    timestamp: Timestamp,
    connected: Vec<Connected>,
}

#[derive(Debug, Serialize)]
struct Timestamp {
    timesecs: u64,
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

#[derive(Debug, Serialize)]
struct End {
    streams: Vec<Streams>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_sent: Option<Stretch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sum_received: Option<Stretch>,
    cpu_utilization_percent: Cpu,
    /// CPU time of this end, seconds.
    cpu_s: f64,
    files: Files,
}

#[derive(Debug, Serialize)]
struct Streams {
    #[serde(skip_serializing_if = "Option::is_none")]
    sender: Option<Stretch>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receiver: Option<Stretch>,
}

#[derive(Debug, Serialize)]
struct Cpu {
    host_total: f64,
}

#[derive(Debug, Serialize)]
struct Files {
    total: u64,
    done: u64,
    /// Bytes of all files.
    bytes: u64,
    /// Bytes that are stored at the receiver.
    bytes_placed: u64,
    /// Those of them that this transfer has brought there.
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
        let connected = paths.iter().filter_map(connected).collect();
        let cpu_s = ProcessTime::now().as_duration().as_secs_f64();
        let host_total = 100.0 * cpu_s / record.seconds.max(1e-9);
        let stream = |path: Stretch| match path.sender {
            true => Streams { sender: Some(path), receiver: None },
            false => Streams { sender: None, receiver: Some(path) },
        };
        let (sum_sent, sum_received) =
            if sum.sender { (Some(sum), None) } else { (None, Some(sum)) };
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
        let cpu_utilization_percent = Cpu { host_total };
        let streams = paths.into_iter().map(stream).collect();
        let end = End { streams, sum_sent, sum_received, cpu_utilization_percent, cpu_s, files };
        let version = format!("ropewalk {VERSION}");
        let start = Start { version, timestamp: began(record.seconds), connected };
        Self { schema, start, intervals: record.recorder.intervals().to_vec(), end, error }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "says when a real transfer was; nothing depends on it"
)]
fn began(seconds: f64) -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp { timesecs: (now.as_secs_f64() - seconds).max(0.0) as u64 }
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
