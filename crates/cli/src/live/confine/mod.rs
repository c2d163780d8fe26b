//! Confines a server that listens to the network: what it does not need is taken from it, so that a defect
//! in it does not hand the machine to an attacker.
//!
//! | measure | what it takes |
//! | --- | --- |
//! | `no_new_privs` | privileges by set-user-ID programs |
//! | seccomp | system calls that the server does not need: running programs, tracing, mounting, ... |
//! | Landlock | all files but those that are named |
//! | dumpable 0, core limit 0 | core dumps, which would contain keys, and other processes' access to its memory |
//!
//! All of it is Linux's; on other systems a note says that there is no confinement.

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

/// Which files a server needs from now on.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// Directories in which it may do everything but run programs.
    pub writable: Vec<PathBuf>,
    /// Files that it may read again. Their directories become readable, because a new version of a file is
    /// usually renamed into place.
    pub readable: Vec<PathBuf>,
}

impl Files {
    /// Everything below this directory.
    pub fn below(directory: &Path) -> Self {
        Self { writable: vec![directory.to_owned()], readable: Vec::new() }
    }

    /// No file but this one, if there is one.
    pub fn reading(file: Option<&Path>) -> Self {
        Self::default().and_reading(file)
    }

    /// The same, and this file, if there is one.
    pub fn and_reading(mut self, file: Option<&Path>) -> Self {
        self.readable.extend(file.map(Path::to_owned));
        self
    }
}

impl ConfineArgs {
    /// Restricts the files of this thread and of those that it will start. To be called before the threads
    /// of the server begin. Returns what there is to log.
    ///
    /// # Errors
    /// The kernel can do it, but did not.
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

    /// Takes system calls and core dumps from all threads. To be called when everything has been opened.
    /// Returns what there is to log.
    ///
    /// # Errors
    /// The kernel did not do it.
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

/// A core dump would contain secret keys. A process that is not dumpable cannot be traced by others of
/// the same user either.
#[cfg(target_os = "linux")]
fn forbid_core_dumps() -> Result<(), String> {
    use nix::sys::prctl::set_dumpable;
    use nix::sys::resource::{Resource, setrlimit};
    setrlimit(Resource::RLIMIT_CORE, 0, 0).map_err(|error| format!("core limit: {error}"))?;
    set_dumpable(false).map_err(|error| format!("dumpable attribute: {error}"))
}
