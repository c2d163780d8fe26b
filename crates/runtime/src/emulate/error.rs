//! Errors of an emulation.

use std::io;

/// Why an emulation could not start, or failed.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// Creating namespaces or devices is not permitted.
    #[error("not allowed to {what}")]
    NotPermitted {
        /// The operation that was refused.
        what: &'static str,
    },
    /// `/dev/net/tun` does not exist.
    #[error("/dev/net/tun cannot be opened: {0}")]
    NoTun(io::Error),
    /// A required system program is missing.
    #[error("there is no `{program}`")]
    Missing {
        /// The program's name.
        program: &'static str,
        /// Where to get it.
        hint: &'static str,
    },
    /// A program could not be started.
    #[error("`{program}` cannot be run: {error}")]
    Command {
        /// The program as it was given.
        program: String,
        /// The error of the system.
        error: io::Error,
    },
    /// A program of the far side ended before the command began.
    #[error("`{program}` ended before the command began: {status}")]
    FarEnded {
        /// The program as it was given.
        program: String,
        /// Its exit status.
        status: String,
    },
    /// There are more paths than addresses.
    #[error("{0} paths; an emulation has 1 to 64")]
    Paths(usize),
    /// An operation of the system failed.
    #[error("{what}: {error}")]
    System {
        /// The operation.
        what: String,
        /// The error of the system.
        error: io::Error,
    },
}

impl EmulateError {
    /// A hint on how to solve the problem.
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

    /// Whether the input is wrong, as opposed to a failure.
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
