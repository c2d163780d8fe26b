//! A peer as a process: it says one line when it can be spoken to, and one line of JSON at its end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

use crate::Missing;
use crate::hosts::{Hosts, Side};

/// The peer that is linked with usrsctp, built when it is first asked for.
///
/// # Errors
/// If the library or a compiler is missing.
///
/// # Panics
/// If they are there and it cannot be built.
pub fn usrsctp() -> Result<&'static Path, Missing> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| {
        let out = output("usrsctp");
        build(Command::new("make").arg("--silent").arg(format!("OUT={}", out.display())), "usrsctp")
            .map(|()| out.join("usrsctp-peer"))
    });
    built.as_deref().map_err(|e| Missing(format!("usrsctp (libusrsctp-dev, make, cc): {e}")))
}

/// The peer that is made of pion/sctp, built when it is first asked for.
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

/// Where a peer's program goes: beside the test that uses it.
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

/// A peer that runs.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts one and waits until it can be spoken to, or speaks itself.
    ///
    /// # Panics
    /// If it cannot be started, or ends without a word.
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

    /// Waits until it ends; what it has to say.
    ///
    /// # Panics
    /// If it failed, or found that something which came was wrong.
    pub fn report(mut self) -> Report {
        let mut text = String::new();
        self.stdout.read_to_string(&mut text).expect("the peer's output");
        let complaint = self.complaint();
        let status = self.child.wait().expect("the peer ends");
        let last = text.lines().last().unwrap_or_default();
        assert!(status.success(), "the peer ended with {status}: {complaint}{last}");
        Report(serde_json::from_str(last).expect("the peer's report is JSON"))
    }

    /// Kills it: no more packets come from there, and no goodbye.
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
    /// A test that has failed leaves nobody behind.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a peer has seen.
#[derive(Debug)]
pub struct Report(pub Value);

impl Report {
    /// How the association ended: `shutdown`, `lost`, `aborted`, `vanished`.
    pub fn ended(&self) -> &str {
        self.0["ended"].as_str().unwrap_or_default()
    }

    /// Bytes of messages that came whole.
    ///
    /// # Panics
    /// If it does not say.
    pub fn received(&self) -> usize {
        self.0["received"]["bytes"].as_u64().expect("bytes received") as usize
    }

    /// Bytes of messages that were sent.
    ///
    /// # Panics
    /// If it does not say.
    pub fn sent(&self) -> usize {
        self.0["sent"]["bytes"].as_u64().expect("bytes sent") as usize
    }

    /// Whether something happened whose description begins so.
    pub fn saw(&self, event: &str) -> bool {
        self.events().any(|said| said.starts_with(event))
    }

    /// What happened, in order.
    pub fn events(&self) -> impl Iterator<Item = &str> {
        let all = self.0["events"].as_array().into_iter().flatten();
        all.filter_map(|event| event["event"].as_str())
    }

    /// A counter of the stack.
    ///
    /// # Panics
    /// If it does not say.
    pub fn counted(&self, what: &str) -> u64 {
        self.0["stack"][what].as_u64().expect("a counter")
    }
}
