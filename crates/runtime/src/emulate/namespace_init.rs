//! The first process of a PID namespace, whose end is the end of all programs in it.
//!
//! It waits for the end of a pipe that we hold. However we end, the pipe closes; it exits; and the kernel
//! kills whatever else lives in the namespace, wherever it has forked itself to (pid_namespaces(7)).

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::SigSet;

use super::error::EmulateError;
use super::namespace::{Namespace, aside, refused};

/// Holds the two network namespaces open as files 3 and 4, so that programs find them under
/// `/proc/1/fd`, and gives the namespace a `/proc` that shows it, where that is allowed.
const SCRIPT: &str = "exec 3<\"$1\" 4<\"$2\"; shift 2; \
     mount -t proc proc /proc 2>/dev/null; echo ready; exec cat >/dev/null";

/// Where a program inside finds the sender's network namespace.
pub const SENDER_FILE: &str = "/proc/1/fd/3";
/// Where a program inside finds the receiver's network namespace.
pub const RECEIVER_FILE: &str = "/proc/1/fd/4";

/// The first process, and the namespaces that programs are put into.
#[derive(Debug)]
pub struct NamespaceInit {
    child: Child,
    /// Closing it ends everything.
    line: Option<ChildStdin>,
    pids: File,
    mounts: File,
    directory: PathBuf,
}

impl NamespaceInit {
    /// Starts it.
    ///
    /// # Errors
    /// If the system does not let us.
    pub fn new(sender: &Namespace, receiver: &Namespace) -> Result<Self, EmulateError> {
        let directory = std::env::current_dir()
            .map_err(|e| EmulateError::system("the working directory", e))?;
        let mut child = aside(|| start(sender, receiver))?;
        let line = child.stdin.take();
        let stdout = child.stdout.take().expect("asked for");
        // Looked up here, outside: the thread that started it has its `/proc`.
        let open = |kind: &str| {
            let file = format!("/proc/{}/ns/{kind}", child.id());
            File::open(&file).map_err(|e| EmulateError::system(file, e))
        };
        let (pids, mounts) = (open("pid")?, open("mnt")?);
        let keeper = Self { child, line, pids, mounts, directory };
        let mut word = String::new();
        let read = BufReader::new(stdout).read_line(&mut word);
        match read {
            Ok(_) if word == "ready\n" => Ok(keeper),
            Ok(_) => {
                let error = io::Error::other("it ended at once");
                Err(EmulateError::system("the first process of the PID namespace", error))
            }
            Err(e) => Err(EmulateError::system("the first process of the PID namespace", e)),
        }
    }

    /// Its process number, as we see it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts a program in its namespaces and in the given network.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(&self, network: &Namespace, command: &mut Command) -> io::Result<Child> {
        aside(|| {
            // A thread that shares its working directory with others may not change its mounts.
            unshare(CloneFlags::CLONE_FS)?;
            setns(&self.mounts, CloneFlags::CLONE_NEWNS)?;
            setns(&self.pids, CloneFlags::CLONE_NEWPID)?;
            network.enter()?;
            // A program inherits what its thread holds back, and must hear the signals that it is sent. One
            // that comes to us in this very moment ends us, as if we had not begun.
            SigSet::all().thread_unblock()?;
            // Entering the mounts led to their root.
            command.current_dir(&self.directory).spawn()
        })
    }
}

impl Drop for NamespaceInit {
    fn drop(&mut self) {
        drop(self.line.take());
        // It cannot be stopped from within, and ends with its input.
        let _ = self.child.wait();
    }
}

fn start(sender: &Namespace, receiver: &Namespace) -> Result<Child, EmulateError> {
    let flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    unshare(flags).map_err(|e| refused("make a PID namespace", e))?;
    // What is mounted inside must not be seen outside.
    let none: Option<&Path> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|e| refused("keep mounts to ourselves", e))?;
    Command::new("sh")
        .args(["-c", SCRIPT, "ropewalk-emulate"])
        .args([sender.file(), receiver.file()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| EmulateError::system("cannot run `sh`", e))
}
