//! A peer as a process: it prints one line when it is ready, and one line of JSON when it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::Missing;
use crate::hosts::{Hosts, Side};

/// The peer that is linked with usrsctp, built on first use.
///
/// # Errors
/// If the library or a compiler is missing.
///
/// # Panics
/// If they exist and the build fails.
pub fn usrsctp() -> Result<&'static Path, Missing> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let out = output("usrsctp");
        build(Command::new("make").arg("--silent").arg(format!("OUT={}", out.display())), "usrsctp")
            .map(|()| out.join("usrsctp-peer"))
    });
    built.as_deref().map_err(|e| Missing(format!("usrsctp (libusrsctp-dev, make, cc): {e}")))
}

/// The peer that uses pion/sctp, built on first use.
///
/// # Errors
/// If Go is missing, or cannot get the module.
pub fn pion() -> Result<&'static Path, Missing> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let program = output("pion").join("pion-peer");
        build(Command::new("go").args(["build", "-o"]).arg(&program).arg("."), "pion")
            .map(|()| program)
    });
    built.as_deref().map_err(|e| Missing(format!("pion/sctp (go): {e}")))
}

/// Directory of a peer's program, next to the test that uses it.
fn output(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test is a file");
    let out = test.parent().expect("in a directory").join("interop").join(name);
    fs::create_dir_all(&out).expect("the target directory can be written");
    out
}

fn build(command: &mut Command, directory: &str) -> Result<(), String> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let ended = command.current_dir(sources).output().map_err(|e| e.to_string())?;
    if ended.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&ended.stderr).into_owned())
}

/// A running peer.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts a peer and waits until it is ready.
    ///
    /// # Panics
    /// If it cannot be started, or ends before it is ready.
    pub fn start(hosts: &Hosts, side: Side, program: &Path, words: &str) -> Self {
        let mut command = Command::new(program);
        command.args(words.split_whitespace()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = hosts.spawn(side, &mut command).expect("the peer starts");
        let stdout = BufReader::new(child.stdout.take().expect("piped"));
        let mut peer = Self { child, stdout };
        let mut line = String::new();
        peer.stdout.read_line(&mut line).expect("the peer's output");
        assert!(!line.is_empty(), "the peer did not start: {}", peer.complaint());
        peer
    }

    /// Waits until it ends. Returns its report.
    ///
    /// # Panics
    /// If it failed, or received something wrong.
    pub fn report(mut self) -> Report {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("the peer's output");
        let complaint = self.complaint();
        let status = self.child.wait().expect("the peer ends");
        let last = text.lines().last().unwrap_or_default();
        assert!(status.success(), "the peer ended with {status}: {complaint}{last}");
        Report(serde_json::from_str(last).expect("the peer's report is JSON"))
    }

    /// Kills it: it sends no more packets, not even an ABORT.
    pub fn kill(self) {
        drop(self);
    }

    fn complaint(&mut self) -> String {
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut text).expect("the peer's complaints");
        }
        text
    }
}

impl Drop for Peer {
    /// A failed test leaves no process behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The report of a peer.
#[derive(Debug)]
pub struct Report(pub Value);

impl Report {
    /// How the association ended: `shutdown`, `lost`, `aborted`, `vanished`.
    pub fn ended(&self) -> &str {
        self.0["ended"].as_str().unwrap_or_default()
    }

    /// Bytes of complete messages received.
    ///
    /// # Panics
    /// If the report lacks them.
    pub fn received(&self) -> usize {
        self.0["received"]["bytes"].as_u64().expect("bytes received") as usize
    }

    /// Bytes of messages sent.
    ///
    /// # Panics
    /// If the report lacks them.
    pub fn sent(&self) -> usize {
        self.0["sent"]["bytes"].as_u64().expect("bytes sent") as usize
    }

    /// Whether the peer reported an event whose description begins with `event`.
    pub fn saw(&self, event: &str) -> bool {
        self.events().any(|said| said.starts_with(event))
    }

    /// Events in order.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        let all = self.0["events"].as_array().into_iter().flatten();
        all.filter_map(|event| event["event"].as_str())
    }

    /// A counter of the stack.
    ///
    /// # Panics
    /// If the report lacks it.
    pub fn counted(&self, what: &str) -> u64 {
        self.0["stack"][what].as_u64().expect("a counter")
    }
}
