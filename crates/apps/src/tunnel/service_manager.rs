//! Why systemd ends this process: the service is stopped, restarted, or the system shuts down.
//!
//! systemd sends SIGTERM in all of these cases. Its jobs distinguish them. `systemctl` reads them over systemd's own
//! socket, which exists without a message bus and until the end of a shutdown.

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Exists if and only if systemd runs (sd_booted(3)).
const BOOTED: &str = "/run/systemd/system";
/// How long systemd may take to answer.
const LIMIT: Duration = Duration::from_secs(2);

/// Why the end of this process is not the end of its tunnel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// systemd starts the service again.
    Restart,
    /// The system shuts down.
    Shutdown,
    /// systemd runs, but cannot be queried.
    Unknown(String),
}

impl fmt::Display for Continuation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restart => f.write_str("systemd starts the service again"),
            Self::Shutdown => f.write_str("the system shuts down"),
            Self::Unknown(why) => write!(f, "systemd does not say why it ends the service ({why})"),
        }
    }
}

/// What follows the end of this process, if systemd has requested it. `None` if the tunnel is stopped.
pub fn continuation() -> Option<Continuation> {
    if !Path::new(BOOTED).exists() {
        return None;
    }
    let unit = fs::read_to_string("/proc/self/cgroup").ok().and_then(|groups| unit_of(&groups));
    let (answer, answered) = mpsc::channel();
    // A query that is not answered in time ends with this process.
    std::thread::spawn(move || answer.send(jobs()));
    match answered.recv_timeout(LIMIT) {
        Ok(Ok(jobs)) => found(&jobs, unit.as_deref()),
        Ok(Err(error)) => Some(Continuation::Unknown(error.to_string())),
        Err(_) => Some(Continuation::Unknown(format!("no answer within {} s", LIMIT.as_secs()))),
    }
}

/// The jobs of systemd, one a line: number, unit, type, state.
fn jobs() -> io::Result<String> {
    let mut command = Command::new("systemctl");
    command.args(["list-jobs", "--no-legend", "--plain", "--full"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(format!("systemctl list-jobs: {}", output.status))),
    }
}

/// The service of a process, by its groups as in `/proc/self/cgroup`.
fn unit_of(groups: &str) -> Option<String> {
    let last = groups.lines().filter_map(|line| line.rsplit('/').next());
    last.into_iter().find(|name| name.ends_with(".service")).map(str::to_owned)
}

fn found(jobs: &str, unit: Option<&str>) -> Option<Continuation> {
    let job = |line: &str| {
        let mut words = line.split_whitespace().skip(1).map(str::to_owned);
        Some((words.next()?, words.next()?))
    };
    let jobs: Vec<(String, String)> = jobs.lines().filter_map(job).collect();
    if jobs.iter().any(|(of, kind)| of == "shutdown.target" && kind == "start") {
        return Some(Continuation::Shutdown);
    }
    let own = jobs.iter().find(|(of, _)| Some(of.as_str()) == unit);
    own.filter(|(_, kind)| kind != "stop").map(|_| Continuation::Restart)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_tells_a_restart_from_a_stop() {
        let unit = Some("ropewalk-tunnel@home.service");
        let restart = "473 ropewalk-tunnel@home.service restart running\n";
        let stop = "480 ropewalk-tunnel@home.service stop running\n";
        let other = "12 ropewalk-tunnel@work.service restart running\n";
        let shutdown = "600 shutdown.target start waiting\n601 poweroff.target start waiting\n";
        for (jobs, of, expected) in [
            (restart.to_owned(), unit, Some(Continuation::Restart)),
            (restart.replace(" restart ", " try-restart "), unit, Some(Continuation::Restart)),
            (stop.to_owned(), unit, None),
            (other.to_owned(), unit, None),
            (restart.to_owned(), None, None),
            (String::new(), unit, None),
            (stop.to_owned() + shutdown, unit, Some(Continuation::Shutdown)),
            (shutdown.to_owned(), None, Some(Continuation::Shutdown)),
        ] {
            assert_eq!(found(&jobs, of), expected, "{jobs}");
        }
    }

    #[test]
    fn the_service_is_that_of_the_cgroup() {
        let slice = "/system.slice/system-ropewalk\\x2dtunnel.slice/ropewalk-tunnel@home.service";
        let expected = Some("ropewalk-tunnel@home.service".to_owned());
        assert_eq!(unit_of(&format!("9:cpu:/\n1:name=systemd:{slice}\n0::{slice}\n")), expected);
        assert_eq!(unit_of("0::/user.slice/user-0.slice/session-2.scope\n"), None);
        assert_eq!(unit_of(""), None);
    }
}
