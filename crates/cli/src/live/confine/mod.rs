//! Confines a server that listens to the network. It removes rights that the server does not need, to limit
//! what an attacker gains from a defect in the server.
//!
//! | measure | what it removes |
//! | --- | --- |
//! | `no_new_privs` | privileges by set-user-ID programs |
//! | seccomp | system calls that the server does not need: running programs, tracing, mounting, ... |
//! | Landlock | access to all files but the named ones |
//! | dumpable 0, core limit 0 | core dumps, which would contain keys, and other processes' access to its memory |
//!
//! All measures are specific to Linux. On other systems a note says that there is no confinement.

#[cfg(target_os = "linux")]
mod landlock;
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod seccomp;
#[cfg(all(test, target_os = "linux"))]
mod tests;

use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;

/// Whether a server confines itself.
#[derive(Clone, Debug, Args)]
pub struct ConfineArgs {
    /// Do not confine the process: keep all system calls, files and core dumps (Linux)
    #[arg(long)]
    no_confine: bool,
}

/// The files that a server needs from now on.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Directories with all rights but running programs.
    pub writable: Vec<PathBuf>,
    /// Files that are read again. Their directories become readable, because a new version of a file is usually
    /// renamed into place.
    pub readable: Vec<PathBuf>,
}

impl Files {
    /// Full access to this directory, and no other file.
    pub fn below(directory: &Path) -> Self {
        Self { writable: vec![directory.to_owned()], readable: Vec::new() }
    }

    /// Read access to this file, if there is one, and to no other.
    pub fn reading(file: Option<&Path>) -> Self {
        Self::default().and_reading(file)
    }

    /// Adds read access to this file, if there is one.
    pub fn and_reading(mut self, file: Option<&Path>) -> Self {
        self.readable.extend(file.map(Path::to_owned));
        self
    }
}

impl ConfineArgs {
    /// Restricts the files of this thread and of the threads that it will start. Must be called before the
    /// server starts its threads. Returns the log message.
    ///
    /// # Errors
    /// The kernel supports the restriction but refused it.
    pub fn restrict_files(&self, files: &Files) -> Result<String, Failure> {
        if self.no_confine {
            return Ok("files not restricted: --no-confine".to_owned());
        }
        #[cfg(target_os = "linux")]
        return landlock::restrict(files).map_err(failed);
        #[cfg(not(target_os = "linux"))]
        {
            let Files { writable: _, readable: _ } = files;
            Ok("files not restricted: only Linux has Landlock".to_owned())
        }
    }

    /// Restricts system calls and core dumps of all threads. Must be called when everything is open. Returns
    /// the log message.
    ///
    /// # Errors
    /// The kernel refused the restriction.
    pub fn restrict_calls(&self, files: &Files) -> Result<String, Failure> {
        if self.no_confine {
            return Ok("system calls not restricted: --no-confine".to_owned());
        }
        #[cfg(target_os = "linux")]
        {
            forbid_core_dumps().map_err(failed)?;
            nix::sys::prctl::set_no_new_privs()
                .map_err(|error| failed(format!("no_new_privs: {error}")))?;
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            return seccomp::restrict(!files.writable.is_empty()).map_err(failed);
            #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
            return Ok("system calls not restricted: no filter for this processor".to_owned());
        }
        #[cfg(not(target_os = "linux"))]
        {
            let Files { writable: _, readable: _ } = files;
            Ok("system calls not restricted: only Linux has seccomp".to_owned())
        }
    }
}

#[cfg(target_os = "linux")]
fn failed(why: String) -> Failure {
    let help = "run it on a kernel with seccomp, or without confinement by --no-confine";
    Failure::Run(format!("cannot confine this process: {why}\n = help: {help}"))
}

/// A core dump would contain secret keys. A process that is not dumpable cannot be traced by other processes of
/// the same user either.
#[cfg(target_os = "linux")]
fn forbid_core_dumps() -> Result<(), String> {
    use nix::sys::prctl::set_dumpable;
    use nix::sys::resource::{Resource, setrlimit};
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| format!("core limit: {error}"))?;
    set_dumpable(false).map_err(|error| format!("dumpable attribute: {error}"))
}
