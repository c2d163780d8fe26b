//! Programs on either side.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::addresses::Addresses;
use super::error::EmulateError;
use super::namespace::Namespace;
use super::namespace_init::NamespaceInit;

/// A program that runs, until this is dropped.
#[derive(Debug)]
pub struct Program {
    /// As it was asked for.
    pub name: String,
    child: Child,
    /// It leads a process group of its own, which signals are for.
    leads: bool,
}

impl Program {
    /// Starts `words` with our input and output.
    ///
    /// # Errors
    /// If it cannot be started.
    ///
    /// # Panics
    /// If there is no word.
    pub fn command(
        keeper: &NamespaceInit,
        network: &Namespace,
        words: &[String],
        addresses: Addresses<'_>,
        environment: &[(String, String)],
    ) -> Result<Self, EmulateError> {
        let words: Vec<String> = words.iter().map(|word| addresses.fill(word)).collect();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        let name = words.join(" ");
        let child = start(keeper, network, command, &name, addresses, environment)?;
        Ok(Self { name, child, leads: false })
    }

    /// Lets a shell run `line`, in a process group of its own and without input; what it says goes to stderr, for stdout belongs to the
    /// command.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn line(
        keeper: &NamespaceInit,
        network: &Namespace,
        line: &str,
        addresses: Addresses<'_>,
        environment: &[(String, String)],
    ) -> Result<Self, EmulateError> {
        let line = addresses.fill(line);
        let mut command = Command::new("sh");
        command.args(["-c", &line]).process_group(0).stdin(Stdio::null()).stdout(io::stderr());
        let child = start(keeper, network, command, &line, addresses, environment)?;
        Ok(Self { name: line, child, leads: true })
    }

    /// Its process number, as we see it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// If the system fails us.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, EmulateError> {
        self.child.try_wait().map_err(|e| EmulateError::system("cannot wait for a program", e))
    }

    /// Sends it, or its group, a signal; one that has ended hears nothing.
    pub fn signal(&mut self, signal: Signal) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let id = self.child.id() as i32;
            let _ = kill(Pid::from_raw(if self.leads { -id } else { id }), signal);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // A PID namespace does not end before its dead are buried, and only we can bury this one. The
        // program does not outlive us anyway.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(
    keeper: &NamespaceInit,
    network: &Namespace,
    mut command: Command,
    name: &str,
    addresses: Addresses<'_>,
    environment: &[(String, String)],
) -> Result<Child, EmulateError> {
    command.envs(environment.iter().cloned()).envs(addresses.environment());
    let started = keeper.spawn(network, &mut command);
    started.map_err(|error| EmulateError::Command { program: name.to_owned(), error })
}

/// The status that a shell would give: that of the program, or 128 and the signal that ended it.
pub fn status_of(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
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
