//! Memory of idle associations, measured in a separate process.

use std::process::Command;

use crate::runs::simulate;

/// Kilobytes as counted by the kernel.
const KIB: u64 = 1024;

/// Runs this many associations that send almost nothing. Returns the peak memory of this process,
/// bytes.
///
/// # Errors
/// The run fails, or the system does not report the memory.
pub fn idle(associations: u32) -> Result<u64, String> {
    simulate(&idle_scenario(associations), &[])?;
    let status = std::fs::read_to_string("/proc/self/status");
    let status = status.map_err(|e| format!("/proc/self/status cannot be read: {e}"))?;
    peak(&status).ok_or_else(|| "/proc/self/status has no VmHWM".to_owned())
}

/// Two paths; 100 B every 8 s, so that every association is established and has nothing in flight.
fn idle_scenario(associations: u32) -> String {
    format!(
        "[transfer]\nduration = \"10 s\"\nreceive_buffer = \"64 KiB\"\n\
         application = {{ rate = \"100 bit/s\", message = \"100 B\" }}\n\
         [[path]]\nname = \"a\"\nrate = \"4 Mbit/s\"\nrtt = \"20 ms\"\nqueue = \"50 packets\"\n\
         [[path]]\nname = \"b\"\nrate = \"2 Mbit/s\"\nrtt = \"60 ms\"\nqueue = \"50 packets\"\n\
         [world]\nassociations = {associations}\nstagger = \"1 ms\"\n"
    )
}

/// Memory of one additional idle association, bytes: both ends and the links of both paths.
///
/// # Errors
/// This binary cannot be started again, or fails.
pub fn per_association() -> Result<f64, String> {
    let (few, many) = (1_000, 4_000);
    Ok((spawned(many)? as f64 - spawned(few)? as f64) / f64::from(many - few))
}

fn spawned(associations: u32) -> Result<u64, String> {
    let own = std::env::current_exe().map_err(|e| format!("this binary cannot be found: {e}"))?;
    let mut child = Command::new(own);
    child.args(["--idle", &associations.to_string()]);
    let done = child.output().map_err(|e| format!("this binary cannot be started: {e}"))?;
    let text = String::from_utf8_lossy(&done.stdout);
    let error = || String::from_utf8_lossy(&done.stderr).trim().to_owned();
    text.trim().parse().map_err(|_| format!("{associations} idle associations: {}", error()))
}

/// Peak of the resident memory, bytes.
fn peak(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_read_from_the_status_of_a_process() {
        let status = "Name:\tx\nVmPeak:\t  9000 kB\nVmHWM:\t  5120 kB\nVmRSS:\t 4000 kB\n";
        assert_eq!(peak(status), Some(5120 * 1024));
        assert_eq!(peak("Name:\tx\n"), None);
    }

    #[test]
    fn idle_associations_run() {
        assert!(idle(3).unwrap() > 100_000);
    }
}
