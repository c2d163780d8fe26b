//! A proxy in two parts: programs connect to the near end, their connections leave at the far end (the exit), and all
//! paths between the two carry them.
//!
//! Each connection uses a separate stream of the association, so that a loss on one does not delay the others. Names
//! are resolved at the exit.

pub mod client;
pub mod exit;
pub mod live;

mod notice;
mod quota;
mod reason;
mod relay;
mod target;

pub use self::notice::{Notice, NoticeSink};
pub use self::reason::Reason;
pub use self::target::{Host, Target, TargetError};

/// Raises the process's limit of open files to its hard limit. Each connection needs one file. If that fails,
/// connections beyond the limit wait or are refused.
pub fn raise_file_limit() {
    #[cfg(unix)]
    {
        use nix::sys::resource::{Resource, getrlimit, setrlimit};
        if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
            && soft < hard
        {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
    }
}
