//! Why a tunnel could not start, or ended.

use std::fmt;
use std::io;

use ropewalk_runtime::endpoint::OpenError;
use ropewalk_runtime::system::TunError;

use super::addresses::PoolError;
use super::journal::JournalError;
use super::machine::Overlap;

/// Why a tunnel could not start, or ended.
#[derive(Debug)]
pub enum TunnelError {
    /// There is no TUN device.
    Tun(TunError),
    /// The machine could not be set up.
    Journal(JournalError),
    /// The networks of the hub are wrong.
    Pool(PoolError),
    /// The sockets could not be opened.
    Open(OpenError),
    /// The tunnel's addresses are in use on this machine.
    Overlap(Overlap),
    /// Something else on the machine failed.
    System(String, io::Error),
}

impl TunnelError {
    /// How to solve the problem, if known.
    pub fn help(&self) -> Option<&'static str> {
        match self {
            Self::Tun(error) => Some(error.help()),
            Self::Journal(JournalError::Running(_)) => {
                Some("`ropewalk tunnel status` shows it; stop it first")
            }
            Self::Journal(JournalError::Change(_, error) | JournalError::Io(_, error))
            | Self::System(_, error)
                if error.kind() == io::ErrorKind::PermissionDenied =>
            {
                Some("run it as root, or with the capability CAP_NET_ADMIN")
            }
            Self::Overlap(_) => Some("give another --network, such as 10.89.0.0/16,fd89::/64"),
            Self::Pool(_) => Some("give for example --network 10.88.0.0/24,fd88::/64"),
            _ => None,
        }
    }

    pub(super) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::System(what, error)
    }
}

impl fmt::Display for TunnelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tun(error) => error.fmt(f),
            Self::Journal(error) => error.fmt(f),
            Self::Pool(error) => error.fmt(f),
            Self::Open(error) => error.fmt(f),
            Self::Overlap(overlap) => overlap.fmt(f),
            Self::System(what, error) => write!(f, "{what}: {error}"),
        }
    }
}

impl std::error::Error for TunnelError {}

impl From<TunError> for TunnelError {
    fn from(error: TunError) -> Self {
        Self::Tun(error)
    }
}

impl From<JournalError> for TunnelError {
    fn from(error: JournalError) -> Self {
        Self::Journal(error)
    }
}

impl From<PoolError> for TunnelError {
    fn from(error: PoolError) -> Self {
        Self::Pool(error)
    }
}

impl From<OpenError> for TunnelError {
    fn from(error: OpenError) -> Self {
        Self::Open(error)
    }
}
