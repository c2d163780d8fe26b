//! Other programs: their location and CPU time.

use std::path::PathBuf;
use std::process::Command;

/// Output and CPU time of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// User and system time, s.
    pub cpu_s: f64,
}

/// Finds a program on PATH.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Runs a program and measures its CPU time with the shell's `time`, which resolves a millisecond.
/// The times of ended children in `/proc` have steps of 10 ms.
///
/// # Errors
/// The program or the shell cannot be started, or fails.
pub fn run_timed(program: &str, arguments: &[String]) -> Result<Output, String> {
    let script = "TIMEFORMAT='%3U %3S'; time \"$@\"";
    let mut shell = Command::new("bash");
    shell.args(["-c", script, "bash", program]).args(arguments).env("LC_ALL", "C");
    let done = shell.output().map_err(|e| format!("bash cannot be started: {e}"))?;
    let stderr = String::from_utf8_lossy(&done.stderr);
    if !done.status.success() {
        return Err(format!("{program} failed ({}): {}", done.status, stderr.trim()));
    }
    let stdout = String::from_utf8_lossy(&done.stdout).into_owned();
    Ok(Output { stdout, cpu_s: cpu_seconds(&stderr)? })
}

/// The last line of the shell's stderr: user and system seconds.
fn cpu_seconds(stderr: &str) -> Result<f64, String> {
    let line = stderr.lines().last().unwrap_or_default();
    let parts: Option<Vec<f64>> = line.split_whitespace().map(|part| part.parse().ok()).collect();
    match parts.as_deref() {
        Some([user, system]) => Ok(user + system),
        _ => Err(format!("`{line}` is not a user and a system time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_from_the_last_line() {
        for (text, expected) in [("0.143 0.013\n", 0.156), ("a warning\n21.500 0.020\n", 21.52)] {
            assert!((cpu_seconds(text).unwrap() - expected).abs() < 1e-9, "{text}");
        }
        for text in ["", "real 1.0", "1.0", "1 2 3"] {
            assert!(cpu_seconds(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_program_is_found_and_its_failure_is_told() {
        assert!(find("bash").is_some() && find("no-such-program-anywhere").is_none());
        let arguments = ["-c", "echo hello"].map(str::to_owned);
        assert_eq!(run_timed("bash", &arguments).unwrap().stdout, "hello\n");
        let fails = ["-c", "echo broken >&2; exit 3"].map(str::to_owned);
        assert!(run_timed("bash", &fails).unwrap_err().contains("broken"));
    }
}
