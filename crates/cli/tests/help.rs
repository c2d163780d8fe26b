//! The examples of `--help` work.

use std::fs::{self, File};
use std::process::Command;

use crate::support::TestDir;

/// The commands that the main help lists.
fn commands(dir: &TestDir) -> Vec<String> {
    let help = dir.ropewalk(&["--help"]).good();
    let (_, list) = help.stdout().split_once("Commands:\n").expect("a list of commands");
    let (list, _) = list.split_once("\n\n").expect("its end");
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned);
    let names: Vec<String> = names.filter(|name| name != "help").collect();
    assert!(names.len() >= 7, "{names:?}");
    names
}

/// Splits a command line into words; quotes keep a word together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            _ => words.last_mut().expect("a word").push(c),
        }
    }
    words
}

/// The examples in a help text.
fn examples(help: &str) -> Vec<&str> {
    help.lines().filter_map(|line| line.strip_prefix("  ropewalk ")).collect()
}

/// Whether emulation is possible on this machine and the example's program is installed.
fn can_emulate(words: &[String]) -> bool {
    let tun = File::options().read(true).write(true).open("/dev/net/tun").is_ok();
    let program = words.iter().skip_while(|word| *word != "--").nth(1).expect("a program");
    let installed = Command::new(program).arg("-V").output().is_ok();
    // Only root may read the namespaces of process 1.
    tun && installed && fs::read_link("/proc/1/ns/net").is_ok()
}

#[test]
fn the_help_of_each_command_shows_an_example_and_it_works() {
    let dir = TestDir::new("help");
    for command in commands(&dir) {
        let help = dir.ropewalk(&[&command, "--help"]).good();
        let examples = examples(help.stdout());
        assert!(!examples.is_empty(), "{command} --help has no example: {}", help.stdout());
        for example in examples {
            assert!(example.starts_with(&command), "{command}: {example}");
            // Packages include the ready scenarios, but not this directory.
            assert!(!example.contains("scenarios/"), "{command}: {example}");
            // These need a peer: transfer.rs, bench.rs, measure.rs, keygen.rs, proxy.rs and tunnel.rs run them against each other.
            if ["send", "recv", "bench", "measure", "pair", "proxy", "tunnel"]
                .contains(&command.as_str())
            {
                continue;
            }
            // doctor.rs runs this against a receiver.
            if command == "doctor" && example.contains("--peer") {
                continue;
            }
            // advise.rs runs this against a server.
            if command == "advise" && example.contains("--live") {
                continue;
            }
            // preload.rs runs a program; these need a peer, or iperf3.
            if command == "preload" && example.contains(" -- ") {
                continue;
            }
            // new_logs.rs runs this with logs.
            if command == "new" && example.contains(".log") {
                continue;
            }
            // validate.rs runs this with a record.
            if command == "validate" && example.contains("--recorded") {
                continue;
            }
            // observe.rs runs it on a terminal.
            if command == "top" {
                continue;
            }
            // The papers' simulations take minutes; their list does not.
            if command == "reproduce" && !example.ends_with("--list") {
                continue;
            }
            let words = words(example);
            if command == "emulate" && !can_emulate(&words) {
                eprintln!("skipped, for want of root, /dev/net/tun or the program: {example}");
                continue;
            }
            let done = dir.ropewalk(&words.iter().map(String::as_str).collect::<Vec<_>>()).good();
            // These write a file, and a pre-shared key or a secret is never printed.
            let writes =
                command == "new" || ["--psk", "--secrets"].iter().any(|one| example.contains(one));
            assert!(!done.stdout().is_empty() || writes, "{example}");
        }
    }
}

#[test]
fn the_examples_of_the_main_help_work() {
    let dir = TestDir::new("main-help");
    let help = dir.ropewalk(&["--help"]).good();
    let examples = examples(help.stdout());
    assert!(examples.len() >= 3, "{examples:?}");
    for example in examples {
        let words = words(example);
        dir.ropewalk(&words.iter().map(String::as_str).collect::<Vec<_>>()).good();
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    let dir = TestDir::new("version");
    let version = dir.ropewalk(&["--version"]).good();
    assert_eq!(version.stdout(), format!("ropewalk {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn without_a_command_the_help_is_shown_as_an_error() {
    let dir = TestDir::new("nothing");
    dir.ropewalk(&[]).refused(&["Commands:", "ropewalk run"]);
}
