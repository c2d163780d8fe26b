//! `ropewalk emulate` with real packets. Needs Linux, root and /dev/net/tun; says so and passes without.
//!
//! Programs on either side are this file again: the function `a_role_of_another_test` plays the part that
//! the environment names.
#![cfg(target_os = "linux")]
#![allow(clippy::disallowed_methods, reason = "measures real time")]

mod support;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::UdpSocket;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Done, Room, can_emulate};

const PORT: u16 = 7_000;

/// This program in a role, as a line for a shell.
fn role(name: &str) -> String {
    let own = std::env::current_exe().expect("a path");
    format!(
        "exec env ROPEWALK_TEST_ROLE={name} {} --exact a_role_of_another_test --nocapture",
        own.display()
    )
}

#[test]
fn a_role_of_another_test() {
    let Ok(role) = std::env::var("ROPEWALK_TEST_ROLE") else { return };
    let address = |name: &str| std::env::var(name).expect("set by the emulator");
    let socket = UdpSocket::bind((address("ROPEWALK_LOCAL_1"), PORT)).expect("a socket");
    socket.connect((address("ROPEWALK_REMOTE_1"), PORT)).expect("an address");
    match role.as_str() {
        "echo" => echo(&socket),
        "sink" => sink(&socket),
        "ping" => ping(&socket),
        "flood" => flood(&socket),
        other => panic!("no role {other}"),
    }
}

fn echo(socket: &UdpSocket) {
    let mut room = [0; 2_000];
    loop {
        let length = socket.recv(&mut room).expect("a packet");
        socket.send(&room[..length]).expect("sent");
    }
}

/// Notes when packets come, until it is ended.
fn sink(socket: &UdpSocket) {
    let mut file = File::create("arrivals").expect("a file");
    let (mut room, start) = ([0; 2_000], Instant::now());
    loop {
        let length = socket.recv(&mut room).expect("a packet");
        writeln!(file, "{} {length}", start.elapsed().as_nanos()).expect("written");
    }
}

/// A hundred packets, 20 ms apart; prints for each the time until its echo, in microseconds, or `lost`.
fn ping(socket: &UdpSocket) {
    let start = Instant::now();
    let mut back = vec![None; 100];
    let (mut room, mut sent) = ([0; 100], Vec::new());
    while start.elapsed() < Duration::from_millis(2_600) {
        if sent.len() < 100 && start.elapsed() >= Duration::from_millis(20) * sent.len() as u32 {
            room[0] = sent.len() as u8;
            sent.push(Instant::now());
            socket.send(&room).expect("sent");
        }
        socket.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
        if socket.recv(&mut room).is_ok() {
            let number = usize::from(room[0]);
            back[number].get_or_insert(sent[number].elapsed().as_micros());
        }
    }
    let words = back.iter().map(|time| time.map_or("lost".to_owned(), |us| us.to_string()));
    fs::write("pings", words.collect::<Vec<_>>().join("\n")).expect("written");
}

/// Two thousand packets of 1000 bytes, IP and UDP headers included, 1 ms apart.
fn flood(socket: &UdpSocket) {
    let start = Instant::now();
    for number in 0..2_000 {
        while start.elapsed() < Duration::from_millis(number) {
            sleep(Duration::from_micros(200));
        }
        socket.send(&[0; 972]).expect("sent");
    }
    sleep(Duration::from_millis(500));
}

fn emulate(room: &Room, scenario: &str, far: &str, near: &str) -> Done {
    fs::write(room.file("s.toml"), scenario).expect("a file");
    let (far, near) = (role(far), role(near));
    let words =
        ["emulate", "s.toml", "--stats", "stats.json", "--far", &far, "--", "sh", "-c", &near];
    room.ropewalk(&words).good()
}

fn stats(room: &Room) -> Value {
    let text = fs::read_to_string(room.file("stats.json")).expect("the figures");
    let stats: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(stats["schema"], "ropewalk.emulate/1");
    stats
}

/// How late the emulator was at worst, in seconds: what a busy machine did to us is not our fault.
fn latest(stats: &Value) -> f64 {
    let of = |kind: &str| stats[kind]["max"].as_f64().expect("a number");
    of("delivery_lateness_s").max(of("waking_lateness_s"))
}

fn pings(room: &Room) -> Vec<Option<f64>> {
    let text = fs::read_to_string(room.file("pings")).expect("the times");
    text.lines().map(|word| word.parse().ok().map(|us: f64| us / 1e6)).collect()
}

#[test]
fn a_packet_takes_as_long_as_the_scenario_says() {
    if !can_emulate() {
        return;
    }
    let room = Room::new("emulate-rtt");
    emulate(&room, "[[path]]\nrate = \"10 Mbit/s\"\nrtt = \"80 ms\"\n", "echo", "ping");
    let mut times: Vec<f64> = pings(&room).into_iter().flatten().collect();
    assert_eq!(times.len(), 100, "{times:?}");
    times.sort_by(f64::total_cmp);
    // 128 bytes take 0.1 ms each way at 10 Mbit/s. Nothing is ever early.
    let least = 0.080 + 2.0 * 128.0 * 8.0 / 10e6;
    assert!(times[0] >= least, "{} s", times[0]);
    assert!(times[50] < least + 0.010 + latest(&stats(&room)), "{} s", times[50]);
}

#[test]
fn a_link_carries_its_rate_and_no_more() {
    if !can_emulate() {
        return;
    }
    let room = Room::new("emulate-rate");
    let scenario = "[[path]]\nrate = \"4 Mbit/s\"\nrtt = \"20 ms\"\nqueue = \"50 packets\"\n";
    // 8 Mbit/s into 4.
    emulate(&room, scenario, "sink", "flood");
    let text = fs::read_to_string(room.file("arrivals")).expect("arrivals");
    let at = |line: &str| line.split(' ').next().and_then(|word| word.parse::<f64>().ok());
    let arrivals: Vec<f64> = text.lines().filter_map(at).map(|nanos| nanos / 1e9).collect();
    let figures = stats(&room);
    let up = &figures["paths"][0]["up"];
    assert_eq!(up["sent_packets"], 2_000);
    let full = up["dropped"]["full"].as_u64().expect("a number");
    assert_eq!(arrivals.len() as u64 + full, 2_000, "{up}");
    // From the tenth to the hundredth but one the queue is never empty.
    let (from, to) = (10, arrivals.len() - 60);
    let rate = (to - from) as f64 * 8_000.0 / (arrivals[to] - arrivals[from]);
    let slack = latest(&figures) / (arrivals[to] - arrivals[from]);
    assert!((rate / 4e6 - 1.0).abs() < 0.03 + slack, "{rate} bit/s");
}

#[test]
fn losses_and_outages_are_those_of_the_scenario() {
    if !can_emulate() {
        return;
    }
    let room = Room::new("emulate-loss");
    let scenario = "[[path]]\nrate = \"100 Mbit/s\"\ndelay = \"5 ms\"\nqueue = \"1000 packets\"\n\
                    loss_up = { model = \"bernoulli\", rate = 0.1 }\n";
    let scenario = scenario.replace("loss_up", "loss");
    emulate(&room, &scenario, "sink", "flood");
    let first = stats(&room)["paths"][0]["up"].clone();
    emulate(&room, &scenario, "sink", "flood");
    let second = stats(&room)["paths"][0]["up"].clone();
    let lost = first["dropped"]["loss"].as_u64().expect("a number");
    // 2000 packets: 200 lost, with a deviation of 13.
    assert!(lost.abs_diff(200) < 54, "{lost}");
    assert_eq!(lost, second["dropped"]["loss"], "the same seed, the same luck");
    let text = fs::read_to_string(room.file("arrivals")).expect("arrivals");
    assert_eq!(text.lines().count() as u64, 2_000 - lost);

    let outage = "[[path]]\nrate = \"10 Mbit/s\"\nrtt = \"20 ms\"\n\
                  outages = [{ from = \"1 s\", to = \"1.5 s\" }]\n";
    emulate(&room, outage, "echo", "ping");
    let pings = pings(&room);
    let gone: Vec<usize> = (0..100).filter(|number| pings[*number].is_none()).collect();
    // 25 of them fall into half a second.
    assert!(gone.len().abs_diff(25) <= 4, "{gone:?}");
    assert_eq!(gone[gone.len() - 1] - gone[0], gone.len() - 1, "in one piece: {gone:?}");
    assert!((10..=51).contains(&gone[0]), "{gone:?}");
    let down = &stats(&room)["paths"][0];
    let dropped =
        ["up", "down"].map(|way| down[way]["dropped"]["outage"].as_u64().expect("a number"));
    assert_eq!(dropped[0] + dropped[1], gone.len() as u64);
}

#[test]
fn the_status_of_the_command_is_passed_on() {
    if !can_emulate() {
        return;
    }
    let room = Room::new("emulate-status");
    for (line, status) in [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)] {
        let done = room.ropewalk(&["emulate", "scenarios/two-dsl.toml", "--", "sh", "-c", line]);
        assert_eq!(done.status(), status, "{line}: {}", done.stderr());
    }
    let far = ["emulate", "scenarios/two-dsl.toml", "--far", "echo nope >&2; exit 3", "--", "true"];
    let done = room.ropewalk(&far);
    assert_eq!(done.status(), 1);
    assert!(done.stderr().contains("nope") && done.stderr().contains("exit status: 3"));
    room.ropewalk(&["emulate", "scenarios/two-dsl.toml", "--", "no-such-program"])
        .refused(&["`no-such-program` cannot be run"]);
}

#[test]
fn what_cannot_be_had_live_is_refused_before_anything_is_made() {
    let room = Room::new("emulate-refused");
    let round = "path[0].loss={ model = \"round\", rate = 0.01 }";
    for (set, hints) in [
        ("world.associations=3", ["`world.associations` = 3", "help"]),
        (round, ["gilbert-elliott", "help"]),
    ] {
        room.ropewalk(&["emulate", "scenarios/two-dsl.toml", "--set", set, "--", "true"])
            .refused(&hints);
    }
}

/// Starts an emulation whose programs sleep for `mark` seconds, and waits until they do.
fn sleepers(room: &Room, mark: &str) -> Child {
    let line = format!("sleep {mark} & sleep {mark}");
    let child = Command::new(env!("CARGO_BIN_EXE_ropewalk"))
        .args(["emulate", "scenarios/two-dsl.toml", "--far-ready", "1 ms", "--far", &line, "--"])
        .args([
            "sh",
            "-c",
            &format!("setsid sleep {mark} & trap 'exit 9' TERM; sleep {mark} & wait"),
        ])
        .current_dir(room.file("."))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    await_sleepers(mark, 4);
    child
}

/// Waits until so many programs sleep for `mark` seconds.
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
    let room = Room::new("emulate-kill");
    let links = || {
        let list = Command::new("ip").args(["-brief", "link"]).output().expect("`ip`");
        let named = Command::new("ip").args(["netns", "list"]).output().expect("`ip`");
        (list.stdout, named.stdout)
    };
    let before = links();
    let mut killed = sleepers(&room, "4711.25");
    assert_eq!(links(), before, "devices are in namespaces without a name");
    killed.kill().expect("kill -9");
    killed.wait().expect("its end");
    await_sleepers("4711.25", 0);
    assert_eq!(links(), before);

    // A polite end is passed on, and the command's answer is ours.
    let mut asked = sleepers(&room, "4712.25");
    let kill = Command::new("kill").arg(asked.id().to_string()).status().expect("`kill`");
    assert!(kill.success());
    assert_eq!(asked.wait().expect("its end").code(), Some(9));
    await_sleepers("4712.25", 0);
    assert_eq!(links(), before);
    let mut said = String::new();
    asked.stderr.take().expect("asked for").read_to_string(&mut said).expect("text");
    assert!(said.contains("packets in"), "{said}");
}
