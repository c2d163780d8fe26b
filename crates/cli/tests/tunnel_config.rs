//! Refused configurations of a tunnel, and new ones.
#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;

use crate::support::TestDir;
use crate::tunnel::{BINARY, Hosts};

#[test]
fn a_wrong_configuration_gives_one_message_with_its_line_and_changes_nothing() {
    let Some(hosts) = Hosts::new() else { return };
    let routes = hosts.routes();
    let hub = hosts.dir.key("hub.key");
    for (text, expected) in [
        ("rout = [\"10.0.0.0/8\"]\n", "did you mean `route`?"),
        ("route = [\"10.0.0.0/40\"]\n", "10.20.0.0/16"),
        ("kill_switch = 3\n", "true or false"),
        ("device = \"a-name-that-is-too-long\"\n", "at most 15 letters"),
    ] {
        fs::write(hosts.dir.file("w.toml"), format!("peer = \"{hub}\"\n{text}")).expect("written");
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &hosts.name("c"), BINARY, "tunnel", "up", "./w.toml"]);
        let output = command.current_dir(hosts.dir.file(".")).output().expect("the command");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(expected) && said.contains("w.toml:2"), "{said}");
        assert_eq!(said.matches("error").count(), 1, "{said}");
    }
    assert_eq!(hosts.routes(), routes);
}

#[test]
fn a_new_configuration_is_one_that_the_command_takes() {
    let dir = TestDir::new("tunnel-new");
    let key = dir.key("hub.key");
    dir.ropewalk(&["tunnel", "new", "./home.toml", "--to", "192.0.2.7", "--peer", &key]).good();
    dir.ropewalk(&["tunnel", "new", "./hub.toml", "--hub", "--allow", &key]).good();
    let refused = dir.ropewalk(&["tunnel", "new", "./hub.toml", "--hub"]);
    assert_eq!(refused.status(), 2);
    read_by("up", "./home.toml", &dir);
    read_by("serve", "./hub.toml", &dir);
}

/// Checks that a command accepts the options of a file.
fn read_by(command: &str, file: &str, dir: &TestDir) {
    // After all options are read, the first error is the missing key.
    let run = dir.ropewalk_apart(&["tunnel", command, file, "--key", "no.key"]);
    assert!(run.is_none_or(|run| run.status() == 2 && run.stderr().contains("no.key")), "{file}");
}

#[test]
fn a_new_configuration_has_all_options_that_are_given() {
    let dir = TestDir::new("tunnel-new-all");
    let key = dir.key("hub.key");
    let all = [
        "--from",
        "wlan0,wwan0",
        "--link",
        "wwan0 use=backup cap=20GB/month",
        "--link",
        "wlan0 cost=2",
        "--share",
        "--failover",
        "3 s",
        "--backup-hub",
        &format!("192.0.2.9={key}"),
        "--kill-switch",
        "--direct",
        "192.168.1.0/24",
        "--latency-budget",
        "300 ms",
        "--rule",
        "udp 5060-5080 interactive",
        "--leave-ipv6",
        "--scheduler",
        "lay",
    ];
    dir.ropewalk(
        &[&["tunnel", "new", "./all.toml", "--peer", &key, "--to", "192.0.2.7"], &all[..]].concat(),
    )
    .good();
    let written = fs::read_to_string(dir.file("all.toml")).expect("a file");
    for line in [
        "from = [\"wlan0\", \"wwan0\"]",
        "link = [\"wwan0 use=backup cap=20GB/month\", \"wlan0 cost=2\"]",
        "share = true",
        "failover = \"3 s\"",
        "kill_switch = true",
        "latency_budget = \"300 ms\"",
    ] {
        assert_eq!(written.matches(&format!("\n{line}\n")).count(), 1, "{line}:\n{written}");
    }
    assert!(!written.contains("# kill_switch") && written.contains("# route = "), "{written}");
    let limited = [
        "./limited.toml",
        "--hub",
        "--allow",
        &key,
        "--quota",
        "20 GB/month",
        "--network",
        "10.9.0.0/24",
    ];
    dir.ropewalk(&[&["tunnel", "new"], &limited[..]].concat()).good();
    dir.ropewalk(&[
        "tunnel",
        "new",
        "./x.toml",
        "--hub",
        "--allow",
        &key,
        "--link",
        "wwan0 cost=2",
    ])
    .refused(&["--link is no option of `ropewalk tunnel serve`", "without --hub"]);
    dir.ropewalk(&["tunnel", "new", "./x.toml", "--link", "wwan0"]).refused(&["no rule"]);
    assert!(!dir.file("x.toml").exists());
    read_by("up", "./all.toml", &dir);
    read_by("serve", "./limited.toml", &dir);
}

#[test]
fn networks_of_a_kill_switch_that_is_off_are_noted() {
    let dir = TestDir::new("tunnel-direct");
    let key = dir.key("hub.key");
    let words = [
        "tunnel",
        "up",
        "--peer",
        &key,
        "--to",
        "192.0.2.7",
        "--key",
        "no.key",
        "--direct",
        "10.0.0.0/8",
    ];
    let note = "--direct has no effect without --kill-switch";
    for (more, told) in [(&[][..], true), (&["--kill-switch"][..], false)] {
        let Some(run) = dir.ropewalk_apart(&[&words[..], more].concat()) else { return };
        assert_eq!((run.status(), run.stderr().contains(note)), (2, told), "{}", run.stderr());
    }
}

#[test]
fn a_latency_budget_has_the_limits_of_scenarios_and_a_missing_file_is_told_what_writes_it() {
    let dir = TestDir::new("tunnel-limits");
    for budget in ["60 min", "0 s", "6 s"] {
        let refused = dir.ropewalk(&["tunnel", "up", "--latency-budget", budget]);
        refused.refused(&["give 1 ms to 5 s"]);
    }
    dir.ropewalk(&["tunnel", "up", "./nosuch.toml"])
        .refused(&["nosuch.toml", "ropewalk tunnel new"]);
}
