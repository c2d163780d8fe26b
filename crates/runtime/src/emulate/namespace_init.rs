//! The first process of a PID namespace. When it exits, all programs in the namespace are killed.
//!
//! It waits for the end of a pipe that this process holds. However this process ends, the pipe closes and the first
//! process exits. The kernel then kills all processes in the namespace, including forked ones (pid_namespaces(7)).

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::SigSet;

use super::error::EmulateError;
use super::namespace::{Namespace, on_own_thread, refused};

/// Opens the two network namespaces as files 3 and 4, so that programs find them under `/proc/1/fd`, and mounts a
/// `/proc` of the PID namespace if that is permitted.
const SCRIPT: &str = "exec 3<\"$1\" 4<\"$2\"; shift 2; \
     mount -t proc proc /proc 2>/dev/null; echo ready; exec cat >/dev/null";

/// Path of the sender's network namespace for programs in the PID namespace.
pub const SENDER_FILE: &str = "/proc/1/fd/3";
/// Path of the receiver's network namespace for programs in the PID namespace.
pub const RECEIVER_FILE: &str = "/proc/1/fd/4";

/// The first process, and the namespaces in which programs are started.
#[derive(Debug)]
pub struct NamespaceInit {
    child: Child,
    /// Closing this pipe ends all programs.
    line: Option<ChildStdin>,
    pids: File,
    mounts: File,
    directory: PathBuf,
}

impl NamespaceInit {
    /// Starts the first process.
    ///
    /// # Errors
    /// If the system does not permit it.
    pub fn new(sender: &Namespace, receiver: &Namespace) -> Result<Self, EmulateError> {
        let directory = std::env::current_dir()
            .map_err(|e| EmulateError::system("the working directory", e))?;
        let mut child = on_own_thread(|| start(sender, receiver))?;
        let line = child.stdin.take();
        let stdout = child.stdout.take().expect("asked for");
        // Opened here, outside: the thread that started the process still has the outer `/proc`.
        let open = |kind: &str| {
            let file = format!("/proc/{}/ns/{kind}", child.id());
            File::open(&file).map_err(|e| EmulateError::system(file, e))
        };
        let (pids, mounts) = (open("pid")?, open("mnt")?);
        let namespace_init = Self { child, line, pids, mounts, directory };
        let mut word = String::new();
        let read = BufReader::new(stdout).read_line(&mut word);
        match read {
            Ok(_) if word == "ready\n" => Ok(namespace_init),
            Ok(_) => {
                let error = io::Error::other("it ended at once");
                Err(EmulateError::system("the first process of the PID namespace", error))
            }
            Err(e) => Err(EmulateError::system("the first process of the PID namespace", e)),
        }
    }

    /// Its process number in the outer namespace.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts a program in the namespaces, with the given network.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn(&self, network: &Namespace, command: &mut Command) -> io::Result<Child> {
        on_own_thread(|| {
            // A thread that shares its working directory with others may not change its mount namespace.
            unshare(CloneFlags::CLONE_FS)?;
            setns(&self.mounts, CloneFlags::CLONE_NEWNS)?;
            setns(&self.pids, CloneFlags::CLONE_NEWPID)?;
            network.enter()?;
            // A program inherits the signal mask of its thread and must receive its signals. A signal to this process
            // at this moment ends it, as if nothing had been started.
            SigSet::all().thread_unblock()?;
            // Entering the mount namespace changed the directory to its root.
            command.current_dir(&self.directory).spawn()
        })
    }
}

impl Drop for NamespaceInit {
    fn drop(&mut self) {
        drop(self.line.take());
        // It cannot be stopped from within the namespace, and exits at the end of its input.
        let _ = self.child.wait();
    }
}

fn start(sender: &Namespace, receiver: &Namespace) -> Result<Child, EmulateError> {
    let flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    unshare(flags).map_err(|e| refused("create a PID namespace", e))?;
    // Mounts inside must not be visible outside.
    let none: Option<&Path> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .map_err(|e| refused("make mounts private", e))?;
    Command::new("sh")
        .args(["-c", SCRIPT, "ropewalk-emulate"])
        .args([sender.file(), receiver.file()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| EmulateError::system("cannot run `sh`", e))
}
