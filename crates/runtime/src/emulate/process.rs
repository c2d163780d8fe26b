//! Programs that run on either side.

use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::addresses::Addresses;
use super::error::EmulateError;
use super::namespace::Namespace;
use super::namespace_init::NamespaceInit;

/// A running program, which is killed when this is dropped.
#[derive(Debug)]
pub struct Program {
    /// The program as it was given.
    pub name: String,
    child: Child,
    /// Whether the child leads its own process group. If so, signals are sent to the group.
    leads_group: bool,
}

impl Program {
    /// Starts the program `words` with this process's input and output.
    ///
    /// # Errors
    /// If it cannot be started.
    ///
    /// # Panics
    /// If `words` is empty.
    pub fn command(
        namespace_init: &NamespaceInit,
        network: &Namespace,
        words: &[String],
        addresses: Addresses<'_>,
        environment: &[(String, String)],
    ) -> Result<Self, EmulateError> {
        let words: Vec<String> = words.iter().map(|word| addresses.fill(word)).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        let name = words.join(" ");
        let child = start(namespace_init, network, command, &name, addresses, environment)?;
        Ok(Self { name, child, leads_group: false })
    }

    /// Starts a shell that runs `line`, in its own process group and without input. Its output goes to stderr,
    /// because stdout belongs to the command.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn line(
        namespace_init: &NamespaceInit,
        network: &Namespace,
        line: &str,
        addresses: Addresses<'_>,
        environment: &[(String, String)],
    ) -> Result<Self, EmulateError> {
        let line = addresses.fill(line);
        let mut command = Command::new("sh");
        command.args(["-c", &line]).process_group(0).stdin(Stdio::null()).stdout(io::stderr());
        let child = start(namespace_init, network, command, &line, addresses, environment)?;
        Ok(Self { name: line, child, leads_group: true })
    }

    /// Its process number in the outer namespace.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    ///
    /// # Errors
    /// If the system fails.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, EmulateError> {
        self.child.try_wait().map_err(|e| EmulateError::system("cannot wait for a program", e))
    }

    /// Sends a signal to the program, or to its group. Does nothing if it has ended.
    pub fn signal(&mut self, signal: Signal) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let id = self.child.id() as i32;
            let _ = kill(Pid::from_raw(if self.leads_group { -id } else { id }), signal);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A PID namespace ends only after its processes have been waited for, and only this process can wait for this
        // one. The program could not outlive this process anyway.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(
    namespace_init: &NamespaceInit,
    network: &Namespace,
    mut command: Command,
    name: &str,
    addresses: Addresses<'_>,
    environment: &[(String, String)],
) -> Result<Child, EmulateError> {
    command.envs(environment.iter().cloned()).envs(addresses.environment());
    let started = namespace_init.spawn(network, &mut command);
    started.map_err(|error| EmulateError::Command { program: name.to_owned(), error })
}

/// The exit status as a shell reports it: that of the program, or 128 plus the signal that ended it.
pub fn status_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Number of listening (TCP) or bound (UDP, UDP-Lite, SCTP) sockets in the network namespace of a process; 0 if it
/// cannot be read.
pub fn listening_sockets(process: u32) -> usize {
    let read = |name: &str| fs::read_to_string(format!("/proc/{process}/net/{name}"));
    let count = |name: &str, wanted: fn(&str) -> bool| {
        read(name).map_or(0, |text| text.lines().skip(1).filter(|line| wanted(line)).count())
    };
    // Column 4 of a TCP socket is its state; 0A means LISTEN.
    let listens = |line: &str| line.split_whitespace().nth(3) == Some("0A");
    ["tcp", "tcp6"].iter().map(|name| count(name, listens)).sum::<usize>()
        + ["udp", "udp6", "sctp/eps"].iter().map(|name| count(name, |_| true)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_what_a_shell_would_say() {
        for (line, status) in [("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -9 $$", 137)]
        {
            let ended = Command::new("sh").args(["-c", line]).status().expect("a shell");
            assert_eq!(status_of(ended), status, "{line}");
        }
    }
}
