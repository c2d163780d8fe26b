//! Captures, read by an independent dissector (tshark).

#![expect(clippy::disallowed_methods, reason = "waits for a program that tells only by its file")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::Missing;
use crate::hosts::{Hosts, Side};

/// A running capture.
#[derive(Debug)]
pub struct Capture {
    child: Child,
    file: PathBuf,
}

/// The dissector's report.
#[derive(Debug)]
pub struct Dissection {
    /// SCTP packets.
    pub packets: usize,
    /// One line per packet that is malformed or has a wrong checksum.
    pub wrong: Vec<String>,
    /// The source and the types of the chunks of each packet over IPv4, in order.
    pub chunks: Vec<(String, Vec<u8>)>,
    /// Length of the longest IPv4 packet, bytes.
    pub longest: usize,
    /// The source of each packet over IPv4 with an NR-SACK, and the number of its non-renegable gap ack blocks.
    pub non_renegable: Vec<(String, u32)>,
}

impl Dissection {
    /// Packets from an address that have a chunk of that type.
    pub fn count(&self, source: &str, kind: u8) -> usize {
        self.chunks.iter().filter(|(from, kinds)| from == source && kinds.contains(&kind)).count()
    }
}

impl Capture {
    /// Starts to capture all packets of UDP, and of SCTP without UDP, at a host's interfaces. Returns once the
    /// capture runs.
    ///
    /// # Errors
    /// If tshark is not installed.
    ///
    /// # Panics
    /// If it is installed and cannot capture.
    pub fn start(hosts: &Hosts, side: Side, file: &Path) -> Result<Self, Missing> {
        let missing = |e| Missing(format!("tshark: {e}"));
        Command::new("tshark").arg("--version").stdout(Stdio::null()).status().map_err(missing)?;
        let mut command = Command::new("dumpcap");
        // Small blocks are written to the file without delay.
        let filter = "udp or ip proto 132 or ip6 proto 132";
        command.args(["-q", "-p", "-i", "any", "-f", filter, "-B", "16", "-w"]).arg(file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = hosts.spawn(side, &mut command).map_err(missing)?;
        let mut said = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        while !said.contains("File:") {
            let more = stderr.read_line(&mut said).expect("its words");
            assert!(more > 0, "dumpcap does not capture: {said}");
        }
        // Keep the pipe open although nothing reads it from now on: dumpcap writes only a few more
        // lines.
        child.stderr = Some(stderr.into_inner());
        Ok(Self { child, file: file.to_owned() })
    }

    /// Ends the capture. Returns the dissector's report on packets from or to these UDP ports.
    ///
    /// # Panics
    /// If the dissector fails.
    pub fn finish(mut self, ports: &[u16]) -> Dissection {
        self.settle();
        self.end();
        let mut dissector = Command::new("tshark");
        dissector.arg("-r").arg(&self.file).args(["-o", "sctp.checksum:CRC 32c"]);
        for port in ports {
            dissector.args(["-d", &format!("udp.port=={port},sctp")]);
        }
        dissector.args(["-Y", "sctp", "-T", "fields", "-E", "separator=|"]);
        let fields = [
            "frame.number",
            "sctp.checksum.status",
            "_ws.malformed",
            "ip.src",
            "sctp.chunk_type",
            "ip.len",
            "sctp.nr_sack_number_of_nr_gap_blocks",
            "_ws.col.Info",
        ];
        fields.iter().for_each(|field| {
            dissector.args(["-e", field]);
        });
        let ended = dissector.output().expect("tshark runs");
        let text = String::from_utf8_lossy(&ended.stdout);
        let wrong = text.lines().filter(|line| {
            let mut parts = line.split('|').skip(1);
            // 1 means a good checksum.
            let good = parts.next() == Some("1");
            !good || parts.next() != Some("")
        });
        let wrong = wrong.map(str::to_owned).collect();
        let chunks = text.lines().map(|line| {
            let mut parts = line.split('|').skip(3);
            let source = parts.next().unwrap_or_default().to_owned();
            let kinds = parts.next().unwrap_or_default().split(',');
            (source, kinds.filter_map(|kind| kind.parse().ok()).collect())
        });
        let chunks = chunks.collect();
        let length = |line: &str| line.split('|').nth(5)?.parse().ok();
        let longest = text.lines().filter_map(length).max().unwrap_or_default();
        let non_renegable = text.lines().filter_map(|line| {
            let mut parts = line.split('|').skip(3);
            let source = parts.next()?.to_owned();
            Some((source, parts.nth(2)?.parse().ok()?))
        });
        let non_renegable = non_renegable.collect();
        Dissection { packets: text.lines().count(), wrong, chunks, longest, non_renegable }
    }

    /// Waits until the file stops growing, because packets that are still buffered at the end are lost. dumpcap
    /// writes twice a second.
    fn settle(&self) {
        let size = || fs::metadata(&self.file).map_or(0, |file| file.len());
        let mut before = None;
        while before != Some(size()) {
            before = Some(size());
            thread::sleep(Duration::from_millis(700));
        }
    }

    /// Stops dumpcap and waits until it has written the file.
    fn end(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let id = self.child.id().to_string();
            let _ = Command::new("kill").args(["-INT", &id]).status();
            let _ = self.child.wait();
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.end();
    }
}
