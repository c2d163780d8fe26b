//! What a tunnel changes on its machine, and that it undoes all of it: after any signal, with a second hub, and
//! together with other programs that write the same files. Needs Linux and root; otherwise says so and passes.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::tunnel::{BINARY, HOST, HUB, Hosts, Tunnel, echo};

/// Longer than a hub and a client need to notice changes by others.
const NOTICE: Duration = Duration::from_millis(1500);

/// A host's settings for forwarding and dependent settings, without those of tunnels' devices.
fn settings(hosts: &Hosts, host: &str) -> BTreeMap<String, String> {
    hosts.inside(host, || {
        let mut all = BTreeMap::new();
        for family in ["ipv4", "ipv6"] {
            read_below(&Path::new("/proc/sys/net").join(family).join("conf"), &mut all);
        }
        let forwards = "/proc/sys/net/ipv4/ip_forward";
        all.insert(forwards.to_owned(), fs::read_to_string(forwards).expect("a value"));
        all.retain(|file, _| !file.contains("/rw-"));
        all
    })
}

fn read_below(directory: &Path, all: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            read_below(&path, all);
        } else if let Ok(value) = fs::read_to_string(&path) {
            all.insert(path.display().to_string(), value);
        }
    }
}

fn differences(before: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Vec<String> {
    let other = before.iter().filter(|(file, value)| now.get(*file) != Some(value));
    other.map(|(file, value)| format!("{file}: {value:?} -> {:?}", now.get(file))).collect()
}

fn set(hosts: &Hosts, host: &str, key: &str, value: &str) {
    let file = Path::new("/proc/sys/net").join(key);
    hosts.inside(host, || fs::write(&file, value).expect("root may"));
}

/// The nftables tables of a host.
fn tables(hosts: &Hosts, host: &str) -> String {
    let words = ["netns", "exec", &hosts.name(host), "nft", "list", "tables"];
    let shown = Command::new("ip").args(words).output();
    shown.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// Starts a second hub in addition to that of [`Hosts::serve`].
fn serve_second(hosts: &Hosts, client: &str) -> Tunnel {
    fs::write(hosts.dir.file("two.toml"), "network = [\"10.89.0.0/16\"]\n").expect("written");
    let at = ["--listen", "0.0.0.0:9900", "--key", "two.key", "--state-directory", "two"];
    let words = [&["serve", "./two.toml", "--allow", client][..], &at].concat();
    hosts.start_as("h", "two.log", &words)
}

#[test]
fn what_a_killed_client_has_left_is_undone_before_its_hub_is_looked_up_and_by_a_command() {
    let Some(hosts) = Hosts::new() else { return };
    let words = ["--kill-switch", "--dns", "9.9.9.9"];
    let before = (hosts.name_servers(), hosts.routes());
    let tables = || {
        let words = ["netns", "exec", &hosts.name("c"), "nft", "list", "tables"];
        let listed = Command::new("ip").args(words).output().expect("ip").stdout;
        String::from_utf8(listed).expect("text")
    };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let serve = hosts.serve(&[&client], &[]);
    let up = hosts.connect(&hub, &words);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    up.end(Signal::SIGKILL);
    assert!(hosts.name_servers().contains("9.9.9.9"), "{}", hosts.name_servers());
    // No name server answers here.
    let unknown = ["up", "--key", "client.key", "--peer", &hub, "--to", "hub.example"];
    let waiting = hosts.start("c", &[&unknown[..], &["--dns-file", "resolv.conf"]].concat());
    hosts.wait_for("undone", || (hosts.name_servers(), hosts.routes()) == before);
    assert_eq!(tables(), "");
    hosts.wait_for("told", || waiting.said().contains("hub.example"));
    waiting.end(Signal::SIGTERM);

    let up = hosts.connect(&hub, &words);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    let undo = || {
        let words = ["netns", "exec", &hosts.name("c"), BINARY, "tunnel", "undo"];
        let mut command = Command::new("ip");
        command.args(words).arg("--run-directory").arg(hosts.dir.file("run-c"));
        let done = command.output().expect("it runs");
        let text = [done.stdout, done.stderr].concat();
        (done.status.success(), String::from_utf8(text).expect("text"))
    };
    let (done, text) = undo();
    assert!(!done && text.contains("is running"), "{text}");
    up.end(Signal::SIGKILL);
    let (done, text) = undo();
    assert!(done && text.contains("are undone"), "{text}");
    assert_eq!(
        (hosts.name_servers(), hosts.routes(), tables()),
        (before.0, before.1, String::new())
    );
    assert!(undo().1.contains("nothing was left"));
}

#[test]
fn any_signal_that_ends_a_tunnel_undoes_everything() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let before = (hosts.routes(), settings(&hosts, "h"), tables(&hosts, "h"), tables(&hosts, "c"));
    for signal in [
        Signal::SIGHUP,
        Signal::SIGINT,
        Signal::SIGQUIT,
        Signal::SIGTERM,
        Signal::SIGALRM,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
    ] {
        let serve = hosts.serve(&[&client], &[]);
        let up = hosts.connect(&hub, &["--kill-switch"]);
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        up.end(signal);
        serve.end(signal);
        assert_eq!(hosts.name_servers(), "nameserver 192.0.2.53\n", "{signal}");
        assert_eq!(hosts.routes(), before.0, "{signal}");
        let left = differences(&before.1, &settings(&hosts, "h"));
        assert!(left.is_empty(), "{signal}: {left:?}");
        assert_eq!(
            (tables(&hosts, "h"), tables(&hosts, "c")),
            (before.2.clone(), before.3.clone())
        );
    }
}

#[test]
fn a_tunnel_whose_terminal_is_closed_undoes_everything() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let serve = hosts.serve(&[&client], &[]);
    let words = [
        "ip netns exec",
        &hosts.name("c"),
        BINARY,
        "tunnel up --run-directory run-c --key client.key --to",
        HUB[0],
        "--peer",
        &hub,
        "--dns-file resolv.conf --kill-switch",
    ];
    let mut terminal = Command::new("script");
    terminal.args(["-qfc", &words.join(" "), "/dev/null"]).current_dir(hosts.dir.file("."));
    terminal.env("ROPEWALK_RUNTIME_DIR", hosts.dir.file("status"));
    terminal.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut terminal) = terminal.spawn() else {
        return eprintln!("skipped: no `script`");
    };
    hosts.wait_for_answer(HOST, &[&serve]);
    terminal.kill().expect("it runs");
    terminal.wait().expect("a child");
    hosts.wait_for("undone", || hosts.name_servers() == "nameserver 192.0.2.53\n");
    hosts.wait_for("without rules", || !tables(&hosts, "c").contains("ropewalk"));
}

#[test]
fn a_hub_that_was_told_to_ignore_hangups_goes_on_and_so_does_one_with_a_file() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let words = ["--key", "hub.key", "--allow", &client, "--state-directory", "state"];
    let mut by_nohup = Command::new("nohup");
    by_nohup.args(["ip", "netns", "exec", &hosts.name("h"), BINARY, "tunnel", "serve"]).args(words);
    by_nohup.args(["--run-directory", "run-h"]).current_dir(hosts.dir.file("."));
    by_nohup.env("ROPEWALK_RUNTIME_DIR", hosts.dir.file("status"));
    for is_nohup in [true, false] {
        fs::write(hosts.dir.file("hub.toml"), "log_level = \"info\"\n").expect("written");
        let mut serve = match is_nohup {
            true => hosts.spawn("nohup.log", &mut by_nohup),
            false => hosts.start("h", &[&["serve", "./hub.toml"][..], &words].concat()),
        };
        let up = hosts.connect(&hub, &[]);
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        let changed = "log_level = \"debug\"\nrate = \"1 Mbit/s\"\n";
        fs::write(hosts.dir.file("hub.toml"), changed).expect("written");
        kill(Pid::from_raw(serve.child.id() as i32), Signal::SIGHUP).expect("it runs");
        if is_nohup {
            thread::sleep(NOTICE);
        } else {
            hosts.wait_for("read again", || serve.said().contains("changed `log-level`"));
            assert!(serve.said().contains("a restart is needed to change `rate`"));
        }
        assert!(serve.child.try_wait().is_ok_and(|ended| ended.is_none()), "{}", serve.said());
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        serve.end(Signal::SIGTERM);
        up.end(Signal::SIGTERM);
    }
}

#[test]
fn hubs_on_one_machine_forward_until_each_ends_and_leave_every_value_as_it_was() {
    let Some(hosts) = Hosts::new() else { return };
    let [client, hub, two] = ["client.key", "hub.key", "two.key"].map(|name| hosts.dir.key(name));
    echo(&hosts, "i");
    for (key, value) in [
        ("ipv4/conf/all/accept_redirects", "0"),
        ("ipv4/conf/out/forwarding", "1"),
        ("ipv6/conf/l3/forwarding", "1"),
    ] {
        set(&hosts, "h", key, value);
    }
    let before = settings(&hosts, "h");
    // Which starts first, which ends first, and how the first one ends.
    for (is_first, ends_first, signal) in [
        (true, true, Signal::SIGTERM),
        (true, false, Signal::SIGTERM),
        (false, true, Signal::SIGKILL),
    ] {
        let first = || hosts.serve(&[&client], &[]);
        let second = || serve_second(&hosts, &client);
        let (serve, other) = if is_first {
            (first(), second())
        } else {
            let other = second();
            (first(), other)
        };
        let to = HUB.map(|address| format!("{address}:9900")).join(",");
        let through = |key: &str, to: &str| {
            let words = ["up", "--key", "client.key", "--peer", key, "--to", to, "--no-dns"];
            hosts.start("c", &words)
        };
        let up = through(&hub, &HUB.join(","));
        hosts.wait_for_answer(HOST, &[&serve, &other, &up]);
        up.end(Signal::SIGTERM);
        let up = through(&two, &to);
        hosts.wait_for_answer(HOST, &[&serve, &other, &up]);
        let left = if ends_first {
            serve.end(signal);
            other
        } else {
            up.end(Signal::SIGTERM);
            other.end(signal);
            let up = through(&hub, &HUB.join(","));
            hosts.wait_for_answer(HOST, &[&serve, &up]);
            thread::sleep(NOTICE);
            hosts.wait_for_answer(HOST, &[&serve, &up]);
            up.end(Signal::SIGTERM);
            serve.end(Signal::SIGTERM);
            assert_eq!(differences(&before, &settings(&hosts, "h")), [""; 0]);
            continue;
        };
        thread::sleep(NOTICE);
        hosts.wait_for_answer(HOST, &[&left, &up]);
        up.end(Signal::SIGTERM);
        left.end(Signal::SIGTERM);
        if signal == Signal::SIGKILL {
            let serve = first();
            hosts.wait_for("undone", || serve.said().contains("listening"));
            serve.end(Signal::SIGTERM);
        }
        assert_eq!(differences(&before, &settings(&hosts, "h")), [""; 0]);
    }
}

#[test]
fn a_hub_that_ends_leaves_forwarding_on_for_a_program_that_has_switched_it_on_since() {
    let Some(hosts) = Hosts::new() else { return };
    let client = hosts.dir.key("client.key");
    hosts.dir.key("hub.key");
    let serve = hosts.serve(&[&client], &[]);
    let value = |key: &str| settings(&hosts, "h")[&format!("/proc/sys/net/ipv4/{key}")].clone();
    hosts.wait_for("forwarding", || value("conf/out/forwarding") == "1\n");
    set(&hosts, "h", "ipv4/ip_forward", "1");
    serve.end(Signal::SIGTERM);
    assert_eq!((value("ip_forward"), value("conf/out/forwarding")), ("1\n".into(), "1\n".into()));
}

#[test]
fn the_file_of_name_servers_keeps_its_mode_its_owner_and_its_other_lines() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let file = hosts.dir.file("resolv.conf");
    // A comment that is not UTF-8.
    let text = b"# caf\xe9\nnameserver 192.0.2.53\nsearch example.org\noptions timeout:1\n";
    fs::write(&file, text).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("an own file");
    chown(&file, Some(1), Some(2)).expect("root may");
    let serve = hosts.serve(&[&client], &[]);
    let state = || {
        let found = fs::metadata(&file).expect("a file");
        (found.mode() & 0o7777, found.uid(), found.gid())
    };
    let is_ours = || {
        let now = String::from_utf8_lossy(&fs::read(&file).expect("a file")).into_owned();
        ["9.9.9.9", "\nsearch example.org\n", "\noptions timeout:1\n"]
            .iter()
            .all(|it| now.contains(it))
    };
    let up = hosts.connect_masked(&hub);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    assert!(is_ours(), "{}", hosts.name_servers());
    assert_eq!(state(), (0o640, 1, 2));
    up.end(Signal::SIGTERM);
    assert_eq!(fs::read(&file).expect("a file"), text);
    assert_eq!(state(), (0o640, 1, 2));
    fs::remove_file(&file).expect("it exists");
    let up = hosts.connect_masked(&hub);
    hosts.wait_for("written", || file.exists());
    assert_eq!(fs::metadata(&file).expect("a file").mode() & 0o7777, 0o644);
    up.end(Signal::SIGTERM);
    assert!(!file.exists());
}

#[test]
fn name_servers_that_another_program_writes_are_used_only_after_the_tunnel() {
    let Some(hosts) = Hosts::new() else { return };
    let (_serve, up) = hosts.bring_up(&[]);
    let file = hosts.dir.file("resolv.conf");
    for theirs in ["nameserver 192.0.2.54\nsearch one.example\n", "nameserver 192.0.2.55\n"] {
        fs::write(&file, theirs).expect("written");
        let is_ours = || {
            let now = hosts.name_servers();
            now.contains("9.9.9.9") && !now.contains("192.0.2.5")
        };
        hosts.wait_for("written again", is_ours);
        assert_eq!(hosts.name_servers().contains("one.example"), theirs.contains("one.example"));
    }
    up.end(Signal::SIGTERM);
    assert_eq!(hosts.name_servers(), "nameserver 192.0.2.55\n");
}

#[test]
fn networks_that_overlap_those_of_the_machine_are_refused_before_anything_changes() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let before = (settings(&hosts, "h"), tables(&hosts, "h"));
    for (network, hint) in [
        ("203.0.113.0/24", "203.0.113.2/30, which l2"),
        ("192.0.2.128/25", "192.0.2.1/24, which out"),
        ("127.0.0.0/8", "no machine in a network can have"),
        ("224.0.0.0/8", "no machine in a network can have"),
        ("10.88.0.0/16,ff00::/64", "no machine in a network can have"),
    ] {
        let mut serve = hosts.serve(&[&client], &["--network", network]);
        let status = serve.child.wait().expect("a child");
        assert_eq!(status.code(), Some(2), "{network}: {}", serve.said());
        assert!(serve.said().contains(hint), "{network}: {}", serve.said());
        assert_eq!(serve.said().matches("error").count(), 1, "{}", serve.said());
        assert!(!hosts.dir.file("run-h").exists() && !hosts.dir.file("state").exists());
        assert_eq!((settings(&hosts, "h"), tables(&hosts, "h")), before);
    }
    hosts.ip("c", &["address", "add", "10.88.5.5/24", "dev", "l1"]);
    let routes = hosts.routes();
    let serve = hosts.serve(&[&client], &[]);
    let up = hosts.connect(&hub, &[]);
    let overlap = "10.88.0.0/16 overlaps 10.88.5.5/24, which l1 of this machine has";
    hosts.wait_for("refused", || up.said().contains(overlap));
    let without_exceptions = |routes: String| -> Vec<String> {
        let lines = routes.lines().filter(|line| !HUB.iter().any(|hub| line.starts_with(hub)));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(without_exceptions(hosts.routes()), without_exceptions(routes));
    assert_eq!(hosts.name_servers(), "nameserver 192.0.2.53\n");
    hosts.ip("c", &["address", "del", "10.88.5.5/24", "dev", "l1"]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
}

#[test]
fn a_hub_listens_at_all_addresses_of_both_families() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    for (host, address) in [("c", "2001:db8::1/64"), ("h", "2001:db8::2/64")] {
        hosts.ip(host, &["address", "add", address, "dev", "l1", "nodad"]);
    }
    let serve = hosts.serve(&[&client], &[]);
    for to in ["2001:db8::2", HUB[0]] {
        let words = ["up", "--key", "client.key", "--peer", &hub, "--to", to, "--no-dns"];
        let up = hosts.start("c", &words);
        hosts.wait_for_answer(HOST, &[&serve, &up]);
        up.end(Signal::SIGTERM);
    }
}

#[test]
fn a_network_behind_the_client_is_carried_if_the_client_shares_the_tunnel() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    // The other client is a machine in a network behind the client here.
    hosts.join(["c", "lan", "172.30.0.1/24"], ["d", "l4", "172.30.0.2/24"]);
    hosts.ip("d", &["route", "add", "default", "via", "172.30.0.1"]);
    set(&hosts, "c", "ipv4/ip_forward", "1");
    let before = (settings(&hosts, "c"), tables(&hosts, "c"));
    let serve = hosts.serve(&[&client], &[]);
    let from = ["--from", "l1,l2"];
    let up = hosts.connect(&hub, &from);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    hosts.wait_for("said why", || {
        assert!(!hosts.answers("d", HOST), "its address is not the client's");
        up.said().contains("172.30.0.2 are not carried") && up.said().contains("--share")
    });
    let counted = || hosts.refused("tunnel up", "foreign source") > 0;
    hosts.wait_for("counted", counted);
    assert_eq!(up.said().matches("--share").count(), 1, "{}", up.said());
    up.end(Signal::SIGTERM);
    set(&hosts, "c", "ipv4/ip_forward", "0");
    for more in [&["--share"][..], &["--share", "--kill-switch"]] {
        let up = hosts.connect(&hub, &[&from, more].concat());
        hosts.wait_for_answer_to("d", HOST, &[&serve, &up]);
        up.end(Signal::SIGTERM);
        assert!(!hosts.answers("d", HOST), "all is undone");
    }
    set(&hosts, "c", "ipv4/ip_forward", "1");
    assert_eq!(differences(&before.0, &settings(&hosts, "c")), [""; 0]);
    assert_eq!(tables(&hosts, "c"), before.1);
}

#[test]
fn the_status_tells_an_ordinary_user_that_a_tunnel_of_another_user_runs() {
    let Some(hosts) = Hosts::new() else { return };
    let client = hosts.dir.key("client.key");
    hosts.dir.key("hub.key");
    let serve = hosts.serve(&[&client], &[]);
    hosts.wait_for("listening", || serve.said().contains("listening"));
    for more in [&[][..], &["--json"]] {
        let mut status = Command::new("setpriv");
        status.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            BINARY,
            "tunnel",
            "status",
        ]);
        status.args(more).env("ROPEWALK_RUNTIME_DIR", "/nonexistent");
        let output = match status.output() {
            Ok(output) if output.status.code() != Some(127) => output,
            _ => return eprintln!("skipped: no `setpriv`, or others may not run the command"),
        };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("a tunnel of another user is running"), "{said}");
        assert!(said.contains("sudo ropewalk tunnel status"), "{said}");
    }
}
