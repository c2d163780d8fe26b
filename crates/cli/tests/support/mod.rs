//! Runs the real command in a temporary directory.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

/// The directory of the ready examples.
pub fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// All ready examples, by name. At least those that the documentation mentions must exist.
pub fn scenario_names() -> Vec<String> {
    let entries = fs::read_dir(scenarios()).expect("the examples");
    let names = entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    assert!(names.len() >= 10, "{names:?}");
    names
}

/// A fresh directory with the examples in `scenarios/`; it is removed when this value is dropped.
pub struct TestDir {
    path: PathBuf,
}

impl TestDir {
    /// Creates the directory for the test of this name.
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ropewalk-cli-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        copy(&scenarios(), &path.join("scenarios"));
        Self { path }
    }

    /// Runs the command in this directory with these arguments.
    pub fn ropewalk(&self, words: &[&str]) -> Done {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        let output = command.args(words).current_dir(&self.path).output().expect("the command");
        Done { words: words.join(" "), output }
    }

    /// The same in a separate network namespace, for commands that change the network before they fail. `None`,
    /// with a note, if the system does not permit it.
    pub fn ropewalk_apart(&self, words: &[&str]) -> Option<Done> {
        let apart = |command: &str, more: &[&str]| {
            let mut run = Command::new("unshare");
            run.args(["--net", command]).args(more).current_dir(&self.path);
            run.output().ok()
        };
        if !apart("true", &[]).is_some_and(|output| output.status.success()) {
            eprintln!("skipped: no network namespaces");
            return None;
        }
        let state = ["--state-directory", "state"];
        let output = apart(env!("CARGO_BIN_EXE_ropewalk"), &[words, &state].concat());
        Some(Done { words: words.join(" "), output: output.expect("the command") })
    }

    /// Creates a secret key in this file; returns the public key.
    pub fn key(&self, name: &str) -> String {
        let made = self.ropewalk(&["keygen", name]).good();
        made.stdout().trim().to_owned()
    }

    /// A file in the directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The files in the directory besides the examples, hidden files included.
    pub fn left_behind(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).expect("the room");
        let names =
            entries.map(|e| e.expect("an entry").file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name != "scenarios").collect();
        names.sort();
        names
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a new directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            copy(&source, &target);
        } else {
            fs::copy(&source, &target).expect("a copy");
        }
    }
}

/// A program that waits for its peer. It is killed when this value is dropped.
pub struct Server {
    pub child: Child,
    /// The printed command for the other side, as words after `ropewalk`.
    pub line: Vec<String>,
    /// All output up to this line.
    pub said: String,
}

impl Server {
    /// Starts it, and waits until it prints `ropewalk` with this command, which means that it
    /// listens.
    pub fn start(command: &mut Command, other: &str) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().expect("the command");
        let mut said = BufReader::new(child.stderr.take().expect("stderr"));
        let mut line = String::new();
        let mut all = String::new();
        while !line.trim_start().starts_with(&format!("ropewalk {other}")) {
            line.clear();
            assert!(said.read_line(&mut line).expect("text") > 0, "{command:?} ended: {all}");
            all.push_str(&line);
        }
        // A thread reads the rest, or the program would block on a full pipe.
        std::thread::spawn(move || said.lines().for_each(drop));
        let line = line.split_whitespace().skip(1).map(str::to_owned).collect();
        Self { child, line, said: all }
    }

    /// The printed command, with these files inserted.
    pub fn line_for<'a>(&'a self, files: &[&'a str]) -> Vec<&'a str> {
        let line = self.line.iter().map(String::as_str);
        line.flat_map(|word| if word == "FILES" { files.to_vec() } else { vec![word] }).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pseudo-random bytes, the same in every run.
pub fn noise(len: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let step = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(step).collect()
}

/// The result of a command.
pub struct Done {
    words: String,
    output: Output,
}

impl Done {
    pub fn status(&self) -> i32 {
        self.output.status.code().expect("an exit, not a signal")
    }

    pub fn stdout(&self) -> &str {
        std::str::from_utf8(&self.output.stdout).expect("text")
    }

    pub fn stderr(&self) -> &str {
        std::str::from_utf8(&self.output.stderr).expect("text")
    }

    /// Asserts that the command succeeded.
    pub fn good(self) -> Self {
        assert_eq!(self.status(), 0, "ropewalk {}: {}", self.words, self.stderr());
        self
    }

    /// Asserts that stdout is exactly one JSON document of this schema.
    pub fn json(&self, schema: &str) -> Value {
        // `from_str` refuses text after the document.
        let document: Value = serde_json::from_str(self.stdout())
            .unwrap_or_else(|error| panic!("ropewalk {}: {error}", self.words));
        assert_eq!(document["schema"], schema, "ropewalk {}", self.words);
        document
    }

    /// Asserts that the command refused its input: status 2, nothing on stdout, and all of `hints` in the message.
    pub fn refused(&self, hints: &[&str]) {
        let (words, stderr) = (&self.words, self.stderr());
        assert_eq!(self.status(), 2, "ropewalk {words}: {stderr}");
        assert_eq!(self.stdout(), "", "ropewalk {words}");
        for hint in hints {
            assert!(stderr.contains(hint), "ropewalk {words}: no {hint:?} in: {stderr}");
        }
    }
}

/// The emulator's maximum lateness according to its document, in seconds. Tests allow for delays of a busy
/// machine.
pub fn lateness(stats: &Value) -> f64 {
    let of = |kind: &str| stats[kind]["max"].as_f64().expect("a number");
    of("delivery_lateness_s").max(of("waking_lateness_s"))
}

/// Whether namespaces can be created here.
#[cfg(target_os = "linux")]
pub fn can_emulate() -> bool {
    let root =
        fs::metadata("/proc/self").is_ok_and(|of| std::os::unix::fs::MetadataExt::uid(&of) == 0);
    let tun = fs::File::options().read(true).write(true).open("/dev/net/tun").is_ok();
    if !(root && tun) {
        eprintln!("skipped: root {root}, /dev/net/tun {tun}");
    }
    root && tun
}
