//! Why a tunnel could not start, or ended.

use std::io;
use std::path::PathBuf;

use ropewalk_runtime::endpoint::OpenError;
use ropewalk_runtime::system::TunError;

use super::addresses::PoolError;
use super::machine::{Change, EXTENSION, JournalError, NameServersError, Overlap};

/// Why a tunnel could not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// There is no TUN device.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The machine could not be set up.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The networks of the hub are wrong.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// The sockets could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The tunnel's addresses are in use on this machine.
    #[error("{0}")]
    Overlap(Overlap),
    /// A file of the tunnel's state cannot be used.
    #[error("{0}: {1}")]
    Store(String, io::Error),
    /// The manager of name servers that the user named cannot be used.
    #[error(transparent)]
    NameServers(#[from] NameServersError),
    /// Another operation of the system failed.
    #[error("{0}: {1}")]
    System(String, io::Error),
}

/// Privileges that a tunnel needs to change the machine.
const NEEDS_RIGHTS: &str = "run it as root, or with the capability CAP_NET_ADMIN";

/// Hint for a change that was denied: CAP_NET_ADMIN does not permit writing root's files.
fn denied(error: &JournalError) -> Option<&'static str> {
    let (file, error) = match error {
        JournalError::Io(file, error) => (Some(file), error),
        JournalError::Change(change, error) => match &**change {
            Change::File { file, .. } => (Some(file), error),
            _ => (None, error),
        },
        JournalError::Running(_) => return None,
    };
    if error.kind() != io::ErrorKind::PermissionDenied {
        return None;
    }
    let is_journal = |file: &PathBuf| file.extension().is_some_and(|it| it == EXTENSION);
    match file {
        Some(file) if is_journal(file) => {
            Some("run it as root, or give --state-directory DIR, which this user may write")
        }
        Some(file) if !file.starts_with("/proc") => {
            Some("run it as root, or leave the name servers as they are: --no-dns")
        }
        _ => Some(NEEDS_RIGHTS),
    }
}

impl TunnelError {
    /// How to solve the problem, if known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Tun(error) => Some(error.help()),
            Self::Journal(JournalError::Running(_)) => {
                Some("`ropewalk tunnel status` shows it; stop it first")
            }
            Self::Journal(error) => denied(error),
            Self::Store(_, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some("run it as root, or give --state-directory DIR, which this user may write")
            }
            Self::System(_, error) if error.kind() == io::ErrorKind::PermissionDenied => {
                Some(NEEDS_RIGHTS)
            }
            Self::NameServers(_) => Some("--dns-manager auto uses what this machine has"),
            Self::Overlap(_) => Some("give another --network, such as 10.89.0.0/16,fd89::/64"),
            Self::Pool(_) => Some("give for example --network 10.88.0.0/24,fd88::/64"),
            _ => None,
        }
    }

    pub(super) fn store(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Store(what, error)
    }

    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::System(what, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_change_is_answered_with_the_option_that_does_without_it() {
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let journal = |file: &str| JournalError::Io(PathBuf::from(file), denied()).into();
        for (error, expected) in [
            (journal("/var/lib/ropewalk/tunnel/home.journal"), "--state-directory"),
            (journal("/etc/resolv.conf"), "--no-dns"),
            (journal("/proc/sys/net/ipv4/conf/eth0/forwarding"), "CAP_NET_ADMIN"),
            (TunnelError::store("writing the leases")(denied()), "--state-directory"),
            (TunnelError::system("starting rw-home")(denied()), "CAP_NET_ADMIN"),
        ] {
            let help = error.help().expect("help");
            assert!(help.contains(expected), "{error}: {help}");
        }
    }
}
