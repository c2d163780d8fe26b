//! `ropewalk tunnel status`: the running tunnels.

use clap::Args;

use super::super::status::print;
use crate::failure::Failure;
use crate::live::running;

/// Arguments of `tunnel status`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ropewalk tunnel status\n  ropewalk tunnel status --json")]
pub struct StatusArgs {
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

/// Prints the status of all running tunnels.
///
/// # Errors
/// [`Failure`]: also if the only tunnels that run are those of other users.
pub fn execute(args: &StatusArgs) -> Result<(), Failure> {
    let tunnels: Vec<_> = running()?.into_iter().filter(|status| status.tunnel.is_some()).collect();
    if let Some(pid) = tunnel_of_another_user().filter(|_| tunnels.is_empty()) {
        let message = format!("a tunnel of another user is running (process {pid})");
        let help = "only that user and root see its status: `sudo ropewalk tunnel status`";
        return Err(Failure::input(message, help));
    }
    print(tunnels, args.json, "no tunnel is running\n")
}

/// The process of a tunnel of another user, whose status this user may not see.
#[cfg(target_os = "linux")]
fn tunnel_of_another_user() -> Option<u32> {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    let own = fs::metadata("/proc/self").ok()?.uid();
    if own == 0 {
        return None;
    }
    let mut processes = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        Some((pid, entry.path()))
    });
    let is_tunnel = |(_, path): &(u32, std::path::PathBuf)| {
        let is_other = fs::metadata(path).is_ok_and(|process| process.uid() != own);
        let is_ropewalk = || {
            fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim_end() == "ropewalk")
        };
        is_other && is_ropewalk() && fs::read(path.join("cmdline")).is_ok_and(|it| runs_tunnel(&it))
    };
    processes.find(is_tunnel).map(|(pid, _)| pid)
}

#[cfg(not(target_os = "linux"))]
const fn tunnel_of_another_user() -> Option<u32> {
    None
}

/// Whether a command line, whose words end with zeros, starts a tunnel.
#[cfg(target_os = "linux")]
fn runs_tunnel(command_line: &[u8]) -> bool {
    let words: Vec<&[u8]> = command_line.split(|byte| *byte == 0).collect();
    words.windows(2).any(|pair| pair[0] == b"tunnel" && [&b"up"[..], b"serve"].contains(&pair[1]))
}
