//! Why an emulation cannot be.

use core::fmt;
use std::io;

/// Why an emulation cannot be, or broke.
#[derive(Debug)]
pub enum EmulateError {
    /// Not allowed to make namespaces or devices.
    NotPermitted {
        /// What was refused.
        what: &'static str,
    },
    /// There is no `/dev/net/tun`.
    NoTun(io::Error),
    /// A program of the system that is needed is not there.
    Missing {
        /// Its name.
        program: &'static str,
        /// Where to get it.
        hint: &'static str,
    },
    /// A program could not be started.
    Command {
        /// As it was asked for.
        program: String,
        /// What the system said.
        error: io::Error,
    },
    /// A program of the far side ended before the command began.
    FarEnded {
        /// As it was asked for.
        program: String,
        /// How.
        status: String,
    },
    /// More paths than addresses.
    Paths(usize),
    /// Something that the system should do, and did not.
    System {
        /// What it was.
        what: String,
        /// What the system said.
        error: io::Error,
    },
}

impl EmulateError {
    /// What can be done about it.
    pub const fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NotPermitted { .. } => Some(
                "network namespaces need root: run it with `sudo`, or in a user namespace of your \
                 own with `unshare --user --map-root-user`; a container needs CAP_SYS_ADMIN and \
                 CAP_NET_ADMIN",
            ),
            Self::NoTun(_) => {
                Some("load it with `modprobe tun`; a container needs `--device /dev/net/tun`")
            }
            Self::Missing { hint, .. } => Some(hint),
            Self::FarEnded { .. } => {
                Some("try the command of --far by itself; its output is above")
            }
            Self::Command { .. } | Self::Paths(_) | Self::System { .. } => None,
        }
    }

    /// Whether what was asked for is wrong, rather than that it failed.
    pub const fn is_input(&self) -> bool {
        matches!(
            self,
            Self::NotPermitted { .. } | Self::NoTun(_) | Self::Missing { .. } | Self::Paths(_)
        ) || matches!(self, Self::Command { .. })
    }

    pub(crate) fn system(what: impl Into<String>, error: impl Into<io::Error>) -> Self {
        Self::System { what: what.into(), error: error.into() }
    }
}

impl fmt::Display for EmulateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPermitted { what } => write!(f, "not allowed to {what}"),
            Self::NoTun(error) => write!(f, "/dev/net/tun cannot be opened: {error}"),
            Self::Missing { program, .. } => write!(f, "there is no `{program}`"),
            Self::Command { program, error } => write!(f, "`{program}` cannot be run: {error}"),
            Self::FarEnded { program, status } => {
                write!(f, "`{program}` ended before the command began: {status}")
            }
            Self::Paths(count) => write!(f, "{count} paths; an emulation has 1 to 64"),
            Self::System { what, error } => write!(f, "{what}: {error}"),
        }
    }
}

impl core::error::Error for EmulateError {}
