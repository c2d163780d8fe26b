//! `ropewalk emulate` with real packets. Needs Linux, root and /dev/net/tun; otherwise says so and passes.
//!
//! The programs on both sides are this test binary: the function `a_role_of_another_test` plays the role
//! that the environment selects.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "measures real time")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::support::{Done, TestDir, can_emulate, lateness};
use serde_json::Value;

const PORT: u16 = 7_000;

/// A shell command that runs this program in a role.
fn role(name: &str) -> String {
    let own = std::env::current_exe().expect("a path");
    format!(
        "exec env ROPEWALK_TEST_ROLE={name} {} --exact emulate::a_role_of_another_test --nocapture",
        own.display()
    )
}

#[test]
fn a_role_of_another_test() {
    let Ok(role) = std::env::var("ROPEWALK_TEST_ROLE") else { return };
    let address = |name: &str| std::env::var(name).expect("set by the emulator");
    let socket = UdpSocket::bind((address("ROPEWALK_LOCAL_1"), PORT)).expect("a socket");
    socket.connect((address("ROPEWALK_REMOTE_1"), PORT)).expect("an address");
    note_stalls(&role);
    match role.as_str() {
        "echo" => echo(&socket),
        "sink" => sink(&socket),
        "ping" => ping(&socket),
        "flood" => flood(&socket),
        other => panic!("no role {other}"),
    }
}

/// Writes the total time for which this program was suspended, in nanoseconds, to a file of that name. Links
/// do not cause these delays.
fn note_stalls(name: &str) {
    const TICK: Duration = Duration::from_millis(1);
    let file = format!("stalls-{name}");
    fs::write(&file, "0").expect("written");
    std::thread::spawn(move || {
        let mut all = Duration::ZERO;
        loop {
            let before = Instant::now();
            sleep(TICK);
            let late = before.elapsed() - TICK;
            if late > TICK {
                all += late;
                fs::write(&file, all.as_nanos().to_string()).expect("written");
            }
        }
    });
}

fn echo(socket: &UdpSocket) {
    let mut dir = [0; 2_000];
    loop {
        let length = socket.recv(&mut dir).expect("a packet");
        socket.send(&dir[..length]).expect("sent");
    }
}

/// Records the arrival times of packets until it is ended.
fn sink(socket: &UdpSocket) {
    let mut file = File::create("arrivals").expect("a file");
    let (mut dir, start) = ([0; 2_000], Instant::now());
    loop {
        let length = socket.recv(&mut dir).expect("a packet");
        writeln!(file, "{} {length}", start.elapsed().as_nanos()).expect("written");
    }
}

/// Sends a hundred packets, 20 ms apart. Records for each the time of sending and the time until its echo,
/// in microseconds, or `lost`.
fn ping(socket: &UdpSocket) {
    let start = Instant::now();
    let mut back = vec![None; 100];
    let (mut dir, mut sent, mut last) = ([0; 100], Vec::new(), start);
    while sent.len() < 100 || back.contains(&None) && last.elapsed() < Duration::from_secs(3) {
        if sent.len() < 100 && start.elapsed() >= Duration::from_millis(20) * sent.len() as u32 {
            dir[0] = sent.len() as u8;
            last = Instant::now();
            sent.push(last);
            socket.send(&dir).expect("sent");
        }
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
        if socket.recv(&mut dir).is_ok() {
            last = Instant::now();
            let number = usize::from(dir[0]);
            back[number].get_or_insert(sent[number].elapsed().as_micros());
        }
    }
    let word = |time: &Option<u128>| time.map_or("lost".to_owned(), |us| us.to_string());
    let line =
        |(sent, back): (&Instant, _)| format!("{} {}\n", (*sent - start).as_micros(), word(back));
    fs::write("pings", sent.iter().zip(&back).map(line).collect::<String>()).expect("written");
}

/// Sends two thousand packets of 1000 bytes, IP and UDP headers included, 1 ms apart.
fn flood(socket: &UdpSocket) {
    let start = Instant::now();
    for number in 0..2_000 {
        while start.elapsed() < Duration::from_millis(number) {
            sleep(Duration::from_micros(200));
        }
        socket.send(&[0; 972]).expect("sent");
    }
    // Wait for packets in transit, until none has arrived for a while.
    let mut came = None;
    while came != fs::metadata("arrivals").ok().map(|file| file.len()) {
        came = fs::metadata("arrivals").ok().map(|file| file.len());
        sleep(Duration::from_millis(500));
    }
}

fn emulate(dir: &TestDir, scenario: &str, far: &str, near: &str) -> Done {
    fs::write(dir.file("s.toml"), scenario).expect("a file");
    let (far, near) = (role(far), role(near));
    let words =
        ["emulate", "s.toml", "--stats", "stats.json", "--far", &far, "--", "sh", "-c", &near];
    dir.ropewalk(&words).good()
}

fn stats(dir: &TestDir) -> Value {
    let text = fs::read_to_string(dir.file("stats.json")).expect("the figures");
    let stats: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(stats["schema"], "ropewalk.emulate/1");
    stats
}

/// Total time for which these roles were suspended, in seconds.
fn stalls(dir: &TestDir, roles: &[&str]) -> f64 {
    let of = |role: &&str| {
        let text = fs::read_to_string(dir.file(&format!("stalls-{role}"))).expect("a number");
        text.parse::<f64>().map_or(0.0, |nanos| nanos / 1e9)
    };
    roles.iter().map(of).sum()
}

/// The number of packets that the link delivered. The sink has seen all of them, unless it or the emulator was
/// suspended: then more packets arrive together than a socket's buffer holds.
fn came_out(dir: &TestDir, figures: &Value, seen: usize) -> u64 {
    let up = &figures["paths"][0]["up"];
    let delivered = up["delivered_packets"].as_u64().expect("a number");
    let still = lateness(figures) + stalls(dir, &["sink"]);
    assert!(seen as u64 == delivered || still > 0.05, "{seen} seen, {still} s still: {up}");
    delivered
}

/// For each packet of `ping`, the time of sending and the time until its echo, both in seconds.
fn pings(dir: &TestDir) -> Vec<(f64, Option<f64>)> {
    let text = fs::read_to_string(dir.file("pings")).expect("the times");
    let seconds = |word: &str| word.parse().ok().map(|us: f64| us / 1e6);
    let both = text.lines().filter_map(|line| line.split_once(' '));
    both.map(|(sent, back)| (seconds(sent).expect("a time"), seconds(back))).collect()
}

#[test]
fn a_packet_takes_as_long_as_the_scenario_says() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("emulate-rtt");
    emulate(&dir, "[[path]]\nrate = \"10 Mbit/s\"\nrtt = \"80 ms\"\n", "echo", "ping");
    let mut times: Vec<f64> = pings(&dir).into_iter().filter_map(|(_, back)| back).collect();
    assert_eq!(times.len(), 100, "{times:?}");
    times.sort_by(f64::total_cmp);
    // 128 bytes take 0.1 ms each way at 10 Mbit/s. No packet may be early.
    let least = 0.080 + 2.0 * 128.0 * 8.0 / 10e6;
    assert!(times[0] >= least, "{} s", times[0]);
    let slack = lateness(&stats(&dir)) + stalls(&dir, &["ping", "echo"]);
    assert!(times[50] < least + 0.010 + slack, "{} s", times[50]);
}

#[test]
fn a_link_carries_its_rate_and_no_more() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("emulate-rate");
    let scenario = "[[path]]\nrate = \"4 Mbit/s\"\nrtt = \"20 ms\"\nqueue = \"600 packets\"\n";
    // 8 Mbit/s into a link of 4.
    emulate(&dir, scenario, "sink", "flood");
    let text = fs::read_to_string(dir.file("arrivals")).expect("arrivals");
    let at = |line: &str| line.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    let arrivals: Vec<f64> = text.lines().filter_map(at).map(|nanos| nanos / 1e9).collect();
    let figures = stats(&dir);
    let up = &figures["paths"][0]["up"];
    assert_eq!(up["sent_packets"], 2_000);
    let full = up["dropped"]["full"].as_u64().expect("a number");
    let out = came_out(&dir, &figures, arrivals.len());
    assert_eq!(out + full, 2_000, "{up}");
    // The last six hundred packets were in the queue together, so the timing of the roles does not affect them.
    let (from, to) = (arrivals.len() - 560, arrivals.len() - 60);
    let rate = (to - from) as f64 * 8_000.0 / (arrivals[to] - arrivals[from]);
    assert!(full > 0, "{up}");
    let still = lateness(&figures) + stalls(&dir, &["sink"]);
    let unseen = out as f64 - arrivals.len() as f64;
    let slack = still / (arrivals[to] - arrivals[from]) + unseen / (to - from) as f64;
    assert!((rate / 4e6 - 1.0).abs() < 0.03 + slack, "{rate} bit/s");
}

#[test]
fn losses_and_outages_are_those_of_the_scenario() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("emulate-loss");
    let scenario = "[[path]]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"1000 packets\"\n\
                    loss_up = { model = \"bernoulli\", rate = 0.1 }\n";
    let scenario = scenario.replace("loss_up", "loss");
    emulate(&dir, &scenario, "sink", "flood");
    let first = stats(&dir)["paths"][0]["up"].clone();
    emulate(&dir, &scenario, "sink", "flood");
    let figures = stats(&dir);
    let second = &figures["paths"][0]["up"];
    let lost = first["dropped"]["loss"].as_u64().expect("a number");
    // 2000 packets: 200 lost, with a deviation of 13.
    assert!(lost.abs_diff(200) < 54, "{lost}");
    assert_eq!(lost, second["dropped"]["loss"], "the same seed gives the same losses");
    let text = fs::read_to_string(dir.file("arrivals")).expect("arrivals");
    assert_eq!(came_out(&dir, &figures, text.lines().count()), 2_000 - lost);

    let outage = "[[path]]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n\
                  outages = [{ from = \"1 s\", to = \"1.5 s\" }]\n";
    emulate(&dir, outage, "echo", "ping");
    let pings = pings(&dir);
    let gone: Vec<usize> = (0..100).filter(|number| pings[*number].1.is_none()).collect();
    let (first, last) = (gone[0], gone[gone.len() - 1]);
    assert_eq!(last - first, gone.len() - 1, "in one piece: {gone:?}");
    // Half a second, plus the delay between the programs and what a busy machine adds.
    let (figures, at) = (stats(&dir), |number: usize| pings[number].0);
    let slack = 0.030 + lateness(&figures) + stalls(&dir, &["ping", "echo"]);
    assert!(first > 0 && at(first) <= 1.0 + slack, "{pings:?}");
    assert!(at(last) - at(first) <= 0.5 + slack, "{pings:?}");
    assert!(at(last + 1) - at(first - 1) >= 0.5 - slack, "{pings:?}");
    let down = &figures["paths"][0];
    let dropped =
        ["up", "down"].map(|way| down[way]["dropped"]["outage"].as_u64().expect("a number"));
    assert_eq!(dropped[0] + dropped[1], gone.len() as u64);
}

#[test]
fn metrics_of_each_link_are_served_while_the_command_runs_and_options_may_be_in_a_file() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("emulate-metrics");
    let config = "metrics = \"127.0.0.1:0\"\nno-realtime = true\nset = [\"transfer.seed=7\"]\n";
    fs::write(dir.file("emulate.toml"), config).expect("a file");
    // The command ends when its standard input does.
    let line = format!("({}) >ping.out && cat", role("ping"));
    let mut child = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args([
            "emulate",
            "scenarios/two-dsl.toml",
            "--config",
            "emulate.toml",
            "--far",
            &role("echo"),
            "--",
            "sh",
            "-c",
            &line,
        ])
        .current_dir(dir.file("."))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    let mut notes = std::io::BufReader::new(child.stderr.take().expect("stderr"));
    let mut note = String::new();
    std::io::BufRead::read_line(&mut notes, &mut note).expect("a note");
    let (_, address) = note.trim().split_once("http://").unwrap_or_else(|| panic!("{note}"));
    let address = address.trim_end_matches("/metrics");
    let until = Instant::now() + Duration::from_secs(20);
    let text = loop {
        let mut text = String::new();
        let mut socket = std::net::TcpStream::connect(address).expect("a server");
        socket
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .expect("it reads");
        socket.read_to_string(&mut text).expect("an answer");
        let arrived = text
            .lines()
            .filter(|line| line.starts_with("ropewalk_link_delivered_packets_total"))
            .filter(|line| {
                line.rsplit(' ')
                    .next()
                    .is_some_and(|count| count.parse::<u64>().is_ok_and(|n| n >= 3))
            });
        if arrived.count() >= 2 {
            break text;
        }
        assert!(Instant::now() < until, "the pings have not arrived: {text}");
        sleep(Duration::from_millis(50));
    };
    for name in ["link_rate_bits_per_second{", "link_queue_bytes{", "cause=\"full\"}"] {
        assert!(text.contains(name), "no {name}: {text}");
    }
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let guide = include_str!("../../../docs/guides/emulate.md");
    for name in types.filter_map(|line| line.split(' ').next()) {
        let is_known = name == "ropewalk_build_info" || guide.contains(&format!("`{name}`"));
        assert!(is_known, "the guide has no {name}");
    }
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn the_status_of_the_command_is_passed_on() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("emulate-status");
    for (line, status) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let done = dir.ropewalk(&["emulate", "scenarios/two-dsl.toml", "--", "sh", "-c", line]);
        assert_eq!(done.status(), status, "{line}: {}", done.stderr());
    }
    let far = ["emulate", "scenarios/two-dsl.toml", "--far", "echo nope >&2; exit 3", "--", "true"];
    let done = dir.ropewalk(&far);
    assert_eq!(done.status(), 1);
    assert!(done.stderr().contains("nope") && done.stderr().contains("exit status: 3"));
    dir.ropewalk(&["emulate", "scenarios/two-dsl.toml", "--", "no-such-program"])
        .refused(&["`no-such-program` cannot be run"]);
}

#[test]
fn what_cannot_be_had_live_is_refused_before_anything_is_made() {
    let dir = TestDir::new("emulate-refused");
    let round = "path[0].loss={ model = \"round\", rate = 0.01 }";
    for (set, hints) in [
        ("world.associations=3", ["`world.associations` = 3", "help"]),
        (round, ["gilbert-elliott", "help"]),
    ] {
        dir.ropewalk(&["emulate", "scenarios/two-dsl.toml", "--set", set, "--", "true"])
            .refused(&hints);
    }
}

/// Starts an emulation whose programs sleep for `mark` seconds, and waits until they do.
fn sleepers(dir: &TestDir, mark: &str) -> Child {
    let line = format!("sleep {mark} & sleep {mark}");
    let child = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(["emulate", "scenarios/two-dsl.toml", "--far-ready", "1 ms", "--far", &line, "--"])
        .args([
            "sh",
            "-c",
            &format!("setsid sleep {mark} & trap 'exit 9' TERM; sleep {mark} & wait"),
        ])
        .current_dir(dir.file("."))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    await_sleepers(mark, 4);
    child
}

/// Waits until this many programs sleep for `mark` seconds.
fn await_sleepers(mark: &str, wanted: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    let is_one = |line: &[u8]| line == format!("sleep\0{mark}\0").as_bytes();
    loop {
        let processes = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        let count = lines.filter(|line| is_one(line)).count();
        if count == wanted {
            return;
        }
        assert!(Instant::now() < until, "{count} programs sleep, not {wanted}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn nothing_is_left_behind_however_it_ends() {
    if !can_emulate() {
        return;
    }
    let dir = TestDir::new("emulate-kill");
    let links = || {
        let list = Command::new("ip").args(["-brief", "link"]).output().expect("`ip`");
        let named = Command::new("ip").args(["netns", "list"]).output().expect("`ip`");
        (list.stdout, named.stdout)
    };
    let before = links();
    let mut killed = sleepers(&dir, "4711.25");
    assert_eq!(links(), before, "devices are in namespaces without a name");
    killed.kill().expect("kill -9");
    killed.wait().expect("its end");
    await_sleepers("4711.25", 0);
    assert_eq!(links(), before);

    // SIGTERM is passed on to the command, and its exit status is returned.
    let mut asked = sleepers(&dir, "4712.25");
    let kill = Command::new("kill").arg(asked.id().to_string()).status().expect("`kill`");
    assert!(kill.success());
    assert_eq!(asked.wait().expect("its end").code(), Some(9));
    await_sleepers("4712.25", 0);
    assert_eq!(links(), before);
    let mut said = String::new();
    asked.stderr.take().expect("asked for").read_to_string(&mut said).expect("text");
    assert!(said.contains("packets in"), "{said}");
}
