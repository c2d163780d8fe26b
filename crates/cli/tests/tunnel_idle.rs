//! Idle tunnels: how often they wake up, and that they still notice immediately what other programs change. Needs
//! Linux and root; otherwise says so and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::fs;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::tunnel::{Hosts, POLL, Tunnel};

/// Time over which wake-ups are counted.
const WINDOW: Duration = Duration::from_secs(10);
/// Maximum number of wake-ups in this time. A task that runs once a second or more often exceeds
/// it.
const WAKE_UPS_MAX: u64 = 10;
/// Number of windows. One of them must be that quiet: every 30 s, each path has a heartbeat, which costs some
/// wake-ups at both ends.
const WINDOWS: usize = 6;
/// A third of the interval at which the programs look for changes without a notification.
const NOTICED: Duration = Duration::from_secs(10);

impl Tunnel {
    /// Number of times that its threads have waited.
    fn wake_ups(&self) -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let of = |status: String| {
            let count = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"));
            count.and_then(|count| count.trim().parse::<u64>().ok())
        };
        // A thread may have ended meanwhile.
        let statuses =
            tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
        statuses.filter_map(of).sum()
    }
}

#[test]
fn an_idle_client_and_its_hub_sleep_and_their_status_is_new_all_the_same() {
    let Some(hosts) = Hosts::new() else { return };
    let (serve, up) = hosts.bring_up(&[]);
    let mut seen = Vec::new();
    let is_quiet = |counts: &[u64; 2]| counts.iter().all(|count| *count <= WAKE_UPS_MAX);
    while !seen.last().is_some_and(is_quiet) {
        assert!(seen.len() < WINDOWS, "wake-ups of client and hub in {WINDOW:?}: {seen:?}");
        let before = [&up, &serve].map(Tunnel::wake_ups);
        thread::sleep(WINDOW);
        let after = [&up, &serve].map(Tunnel::wake_ups);
        seen.push([0, 1].map(|end| after[end].saturating_sub(before[end])));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    for command in ["tunnel up", "tunnel serve"] {
        let status = hosts.status(command);
        let at = status["time_s"].as_f64().expect("a time");
        assert!(at > now - WINDOW.as_secs_f64() / 2.0, "{command}: {at} before {now}");
        assert!(status["links"][0]["rtt_s"].as_f64().is_some_and(|rtt| rtt > 0.0), "{status}");
    }
}

/// Waits for less than the interval at which changes are noticed without a notification.
fn wait_briefly(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < NOTICED, "not {what} within {NOTICED:?}");
        thread::sleep(POLL);
    }
}

#[test]
fn an_idle_tunnel_notices_at_once_what_other_programs_change() {
    let Some(hosts) = Hosts::new() else { return };
    let (_serve, up) = hosts.bring_up(&[]);
    let said = |text: &str| up.said().contains(text);
    // A new link, which goes down, and is removed.
    hosts.pause();
    hosts.join(["c", "l9", "198.18.9.1/30"], ["h", "l9", "198.18.9.2/30"]);
    hosts.ip("c", &["route", "add", "default", "via", "198.18.9.2", "metric", "900"]);
    wait_briefly("used", || said("link l9 up"));
    // The hub's end of it forwards, even after another program has disabled forwarding.
    let value = "/proc/sys/net/ipv4/conf/l9/forwarding";
    let forwards =
        || hosts.inside("h", || fs::read_to_string(value)).is_ok_and(|value| value.trim() == "1");
    for _ in 0..2 {
        wait_briefly("forwarding", forwards);
        hosts.pause();
        hosts.inside("h", || fs::write(value, "0")).expect("a value");
    }
    wait_briefly("forwarding", forwards);
    hosts.pause();
    hosts.ip("c", &["link", "set", "l9", "down"]);
    wait_briefly("down", || said("link l9 down: the interface is down"));
    hosts.ip("c", &["link", "del", "l9"]);
    // Another program writes the name servers, into the file and into a new file that replaces it.
    let file = hosts.dir.file("resolv.conf");
    for (into, number) in [(true, 1), (false, 2), (true, 3)] {
        wait_briefly("set", || hosts.name_servers().contains("9.9.9.9"));
        hosts.pause();
        let text = format!("nameserver 192.0.2.{number}\n");
        let path = if into { file.clone() } else { hosts.dir.file("new") };
        fs::write(&path, text).expect("written");
        if !into {
            fs::rename(&path, &file).expect("renamed");
        }
    }
    wait_briefly("set", || hosts.name_servers().contains("9.9.9.9"));
    assert!(hosts.links_up("tunnel up").len() == 2, "{}", up.said());
}
