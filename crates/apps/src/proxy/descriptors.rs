//! Limit of open files, of which each connection needs one.

/// Raises the process's limit of open files to its hard limit. If that fails, connections beyond the limit wait or
/// are refused.
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
