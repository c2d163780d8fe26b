//! `ropewalk proxy` with realistic use: refused command lines, and a page of thirty objects that a real
//! browser loads through it over emulated links.

#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use crate::support::TestDir;
use serde_json::Value;

/// A public key that belongs to no peer.
const KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";

#[test]
fn what_would_open_the_proxy_to_others_or_to_nobody_is_refused_with_a_hint() {
    let dir = TestDir::new("proxy-refusals");
    fs::write(dir.file("wrong"), "no colon\n").expect("a file");
    for (words, said) in [
        (&["proxy", "--to", "192.0.2.7", "--peer", KEY][..], "--socks 1080"),
        (&["proxy", "--to", "192.0.2.7", "--socks", "1080"], "--peer is missing"),
        (
            &["proxy", "--to", "192.0.2.7", "--peer", KEY, "--socks", "0.0.0.0:1080"],
            "--credentials",
        ),
        (&["proxy", "--to", "192.0.2.7", "--peer", KEY, "--forward", "[::]:80=a:80"], "--open"),
        (&["proxy", "--to", "192.0.2.7", "--peer", KEY, "--forward", "80=a"], "HOST:PORT"),
        (
            &[
                "proxy",
                "--to",
                "192.0.2.7",
                "--peer",
                KEY,
                "--socks",
                "1",
                "--credentials",
                "wrong",
            ],
            "NAME:PASSWORD",
        ),
        (&["proxy", "exit"], "--allow"),
        (&["proxy", "exit", "--allow", KEY, "--allow-to", "10.0.0.0/99"], "10.0.0.0/8"),
    ] {
        let done = dir.ropewalk(words);
        let (status, text) = (done.status(), done.stderr());
        assert_eq!(status, 2, "{words:?}: {text}");
        assert!(text.contains(said), "{words:?}: {text}");
    }
}

/// An end of a proxy that runs until it is dropped, and its stderr.
struct End {
    child: Child,
    log: PathBuf,
}

impl End {
    /// Starts `ropewalk proxy` with these arguments. `journal`: in the way systemd starts a
    /// service.
    fn start(dir: &TestDir, name: &str, words: &[&str], journal: bool) -> Self {
        let log = dir.file(name);
        let stderr = File::create(&log).expect("a log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        command.arg("proxy").args(words).current_dir(dir.file("")).env("HOME", dir.file(""));
        #[cfg(unix)]
        if journal {
            use std::os::unix::fs::MetadataExt;
            let meta = stderr.metadata().expect("its numbers");
            command.env("JOURNAL_STREAM", format!("{}:{}", meta.dev(), meta.ino()));
        }
        Self { child: command.stderr(stderr).spawn().expect("the command"), log }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.log).expect("its log")
    }

    /// Waits until the log contains this text, and returns the log.
    fn wait_for(&self, what: &str) -> String {
        let until = Instant::now() + Duration::from_secs(20);
        loop {
            let text = self.text();
            if text.contains(what) {
                return text;
            }
            assert!(Instant::now() < until, "no {what:?} in: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the log has an address after this text, and returns the address.
    fn address_after(&self, what: &str) -> SocketAddr {
        let text = self.wait_for(what);
        let (_, rest) = text.split_once(what).expect("it is there");
        let address = rest.split(['"', ';', '\n', ' ']).next().expect("text");
        address.parse().unwrap_or_else(|_| panic!("no address behind {what:?} in: {text}"))
    }

    /// Ends it with SIGTERM, as systemd does. Returns its status.
    #[cfg(target_os = "linux")]
    fn stop(&mut self) -> i32 {
        let id = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).expect("a number"));
        nix::sys::signal::kill(id, nix::sys::signal::Signal::SIGTERM).expect("it runs");
        self.child.wait().expect("its end").code().expect("a status, not a signal")
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests a connection by SOCKS 5. Returns the reply's code.
fn socks_connect(proxy: SocketAddr, to: SocketAddr) -> (TcpStream, u8) {
    let SocketAddr::V4(to) = to else { panic!("{to} is no address of IPv4") };
    let mut socket = TcpStream::connect(proxy).expect("the near end");
    socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let mut request = b"\x05\x01\x00\x05\x01\x00\x01".to_vec();
    request.extend(to.ip().octets());
    request.extend(to.port().to_be_bytes());
    socket.write_all(&request).expect("it reads");
    let mut reply = [0; 12];
    socket.read_exact(&mut reply).expect("a reply");
    (socket, reply[3])
}

#[cfg(target_os = "linux")]
#[test]
fn a_confined_exit_serves_and_its_log_says_which_key_did_what() {
    let dir = TestDir::new("proxy-log");
    let (exit_key, near_key) = (dir.key("exit.key"), dir.key("near.key"));
    let target = TcpListener::bind("127.0.0.1:0").expect("a port");
    let target_at = target.local_addr().expect("its address");
    let elsewhere = SocketAddr::from(([127, 0, 0, 1], 9));
    fs::write(
        dir.file("peers.toml"),
        format!(
            "[[peer]]\nname = \"anna\"\nkey = \"{near_key}\"\n\n[peer.exit]\n\
             targets = [\"127.0.0.1:{}\"]\n",
            target_at.port()
        ),
    )
    .expect("an access list");
    let common = ["--key", "exit.key", "--allow-file", "peers.toml", "--allow-private"];
    let json = ["--listen", "127.0.0.1:0", "--log-format", "json", "--log-level", "debug"];
    let words = [&["exit"], &common[..], &json[..]].concat();
    let mut exit = End::start(&dir, "exit.log", &words, false);
    exit.wait_for("listening");
    let at = event(&exit.text(), "listening")["object"].as_str().expect("addresses").to_owned();
    let words = ["--to", &at, "--peer", &exit_key, "--key", "near.key", "--socks", "0"];
    let mut near = End::start(&dir, "near.log", &words, false);
    let proxy = near.address_after("SOCKS 5 on ");
    let (mut socket, code) = socks_connect(proxy, target_at);
    assert_eq!(code, 0, "{}", exit.text());
    let (mut served, _) = target.accept().expect("the exit's connection");
    served.write_all(b"through").expect("it reads");
    let mut through = [0; 7];
    socket.read_exact(&mut through).expect("bytes");
    assert_eq!(socks_connect(proxy, elsewhere).1, 2, "not allowed by ruleset");
    near.stop();
    exit.wait_for("association closed");
    assert_eq!(exit.stop(), 0);
    let text = exit.text();
    let short: String = near_key.chars().take(8).collect();
    for (message, object) in [
        ("association opened", None),
        ("target connected", Some(target_at.to_string())),
        ("target refused", Some(elsewhere.to_string())),
        ("association closed", None),
    ] {
        let event = event(&text, message);
        assert_eq!((&event["name"], &event["key"]), (&"anna".into(), &short[..].into()), "{text}");
        assert_eq!(event["object"].as_str(), object.as_deref(), "{text}");
    }
    assert!(text.contains("system calls restricted by seccomp"), "{text}");
}

/// The first event of a JSON log with this message. Every line must be a JSON object.
fn event(log: &str, message: &str) -> Value {
    let events = log.lines().map(|line| {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    let mut events: Vec<Value> = events.collect();
    let at = events.iter().position(|event| event["message"] == message);
    events.swap_remove(at.unwrap_or_else(|| panic!("no {message:?} in: {log}")))
}

/// A killed exit, whose port is closed, is distinguished from a silent one: connections of the former are reset
/// soon, and those of the latter continue.
#[cfg(target_os = "linux")]
#[test]
fn connections_survive_a_silent_exit_and_are_reset_soon_after_it_was_killed() {
    use nix::sys::signal::{Signal, kill};
    let dir = TestDir::new("proxy-killed");
    let (exit_key, near_key) = (dir.key("exit.key"), dir.key("near.key"));
    let target = TcpListener::bind("127.0.0.1:0").expect("a port");
    let words = ["exit", "--key", "exit.key", "--allow", &near_key, "--allow-private"];
    let json = ["--listen", "127.0.0.1:0", "--log-format", "json"];
    let exit = End::start(&dir, "exit.log", &[&words[..], &json].concat(), false);
    exit.wait_for("listening");
    let at = event(&exit.text(), "listening")["object"].as_str().expect("addresses").to_owned();
    let words = ["--to", &at, "--peer", &exit_key, "--key", "near.key", "--socks", "0"];
    let mut near = End::start(&dir, "near.log", &words, false);
    let proxy = near.address_after("SOCKS 5 on ");
    let (mut socket, code) = socks_connect(proxy, target.local_addr().expect("an address"));
    assert_eq!(code, 0, "{}", exit.text());
    let (mut served, _) = target.accept().expect("the exit's connection");
    let send = |signal| {
        let id = nix::unistd::Pid::from_raw(i32::try_from(exit.child.id()).expect("a number"));
        kill(id, signal).expect("it runs");
    };
    let mut bytes = [0; 5];
    // Silent for longer than it takes to detect a killed exit.
    send(Signal::SIGSTOP);
    socket.write_all(b"heard").expect("it reads");
    std::thread::sleep(Duration::from_secs(18));
    send(Signal::SIGCONT);
    served.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    served.read_exact(&mut bytes).expect("the connection continues");
    served.write_all(b"reply").expect("it reads");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    socket.read_exact(&mut bytes).expect("the connection continues");
    assert_eq!(&bytes, b"reply");
    // The program waits and has sent nothing.
    send(Signal::SIGKILL);
    let begin = Instant::now();
    let ended = socket.read(&mut bytes);
    assert!(matches!(ended, Ok(0) | Err(_)), "{ended:?}");
    assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
    assert!(near.text().contains("its port is closed"), "{}", near.text());
    near.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn under_systemd_lines_have_priorities_and_no_times_and_a_stopped_exit_has_status_0() {
    let dir = TestDir::new("proxy-journal");
    let near_key = dir.key("near.key");
    let words = ["exit", "--key", "exit.key", "--allow", &near_key, "--listen", "127.0.0.1:0"];
    dir.key("exit.key");
    let unconfined = [&words[..], &["--no-confine"]].concat();
    for (journal, words) in [(true, &words[..]), (false, &words), (true, &unconfined)] {
        let mut exit = End::start(&dir, "exit.log", words, journal);
        exit.wait_for("listening");
        assert_eq!(exit.stop(), 0, "{}", exit.text());
        let text = exit.text();
        let line = text.lines().find(|line| line.contains("listening")).expect("a line");
        assert_eq!(line.starts_with("<6>listening"), journal, "{text}");
        assert_eq!(text.contains("<4>confinement"), journal && text.contains(" not "), "{text}");
        assert_eq!(text.contains("--no-confine"), words.contains(&"--no-confine"), "{text}");
    }
}

/// Number of objects of the page.
const OBJECTS: u32 = 30;

/// A page whose title, once everything has loaded, shows the elapsed milliseconds and the number of
/// objects.
fn write_page(at: &Path) {
    fs::create_dir_all(at).expect("a directory");
    let mut page = "<!doctype html><title>page</title><body>".to_owned();
    for i in 0..OBJECTS {
        // 4 to 60 kB, as on current pages: many objects are small.
        let bytes = [4_000, 10_000, 20_000, 30_000, 40_000, 60_000][i as usize * 7 % 6];
        let mut text = String::new();
        let mut state = u64::from(i) + 1;
        while text.len() < bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            write!(text, "{state:016x}").expect("a string");
        }
        let image = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\"><!--{text}--></svg>"
        );
        fs::write(at.join(format!("{i}.svg")), image).expect("an object");
        write!(page, "<img src=\"{i}.svg\">").expect("a string");
    }
    page += "<script>addEventListener('load', () => setTimeout(() => {
        const after = performance.getEntriesByType('navigation')[0].loadEventStart;
        const there = [...document.images].filter(i => i.complete && i.naturalWidth > 0).length;
        document.body.innerHTML = `<p>LOADED ${Math.round(after)} ${there}</p>`;
    }, 0))</script>";
    fs::write(at.join("index.html"), page).expect("the page");
}

/// Loads the page `$ROUNDS` times over both paths, and over each alone.
const LOADS: &str = r#"
once() {
  ropewalk proxy -q --to "$2" --from "$3" --key near.key --peer "$EXIT" --socks "$4" &
  near=$!
  sleep 1.5
  seen=$(timeout 90 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
    --disable-background-networking --disable-component-update --user-data-dir="$PWD/profile-$4" \
    --proxy-server=socks5://127.0.0.1:$4 --proxy-bypass-list='<-loopback>' --timeout=60000 \
    --dump-dom http://localhost:8000/ 2>browser.log | grep -o 'LOADED [0-9]* [0-9]*')
  echo "$1 $seen"
  kill $near; wait $near
}
port=1080
for round in $(seq "$ROUNDS"); do
  port=$((port + 3))
  once both "$ROPEWALK_REMOTE_1,$ROPEWALK_REMOTE_2" "$ROPEWALK_LOCAL_1,$ROPEWALK_LOCAL_2" $port
  once path-1 "$ROPEWALK_REMOTE_1" "$ROPEWALK_LOCAL_1" $((port + 1))
  once path-2 "$ROPEWALK_REMOTE_2" "$ROPEWALK_LOCAL_2" $((port + 2))
done
"#;

/// Whether this program can be run.
fn is_there(word: &str) -> bool {
    Command::new(word).arg("--version").output().is_ok_and(|done| done.status.success())
}

/// The times of one variant in milliseconds, sorted. All objects must have loaded.
fn times(output: &str, way: &str) -> Vec<u64> {
    let lines = output.lines().filter_map(|line| line.strip_prefix(way));
    let mut times: Vec<u64> = lines
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let [_, after, there] = words[..] else {
                panic!("{way}: the page did not load: {output}")
            };
            assert_eq!(there, OBJECTS.to_string(), "{way}: not all objects came: {output}");
            after.parse().expect("milliseconds")
        })
        .collect();
    times.sort_unstable();
    times
}

#[test]
fn a_page_of_thirty_objects_loads_in_a_browser_over_wifi_and_lte() {
    let root = Command::new("id").arg("-u").output().is_ok_and(|done| done.stdout == b"0\n");
    let missing: Vec<_> =
        ["chromium", "python3", "bash"].into_iter().filter(|word| !is_there(word)).collect();
    if !root || !missing.is_empty() {
        println!("skipped: needs root (for namespaces: {root}), and not there is: {missing:?}");
        return;
    }
    let dir = TestDir::new("proxy-page");
    write_page(&dir.file("www"));
    fs::write(dir.file("loads.sh"), LOADS).expect("a script");
    let (exit, near) = (dir.key("exit.key"), dir.key("near.key"));
    let binary = Path::new(env!("CARGO_BIN_EXE_ropewalk"));
    let others = std::env::var("PATH").expect("a path");
    let path = format!("{}:{others}", binary.parent().expect("a directory").display());
    let rounds = std::env::var("ROUNDS").unwrap_or_else(|_| "1".to_owned());
    let done = Command::new(binary)
        .args(["emulate", "scenarios/wifi-lte.toml", "-q"])
        .args([
            "--far",
            &format!("ropewalk proxy exit -q --key exit.key --allow {near} --allow-private"),
        ])
        .args(["--far", "cd www && exec python3 -m http.server --bind 127.0.0.1 8000 2>/dev/null"])
        .args(["--", "bash", "loads.sh"])
        .current_dir(dir.file(""))
        .env("PATH", path)
        .env("EXIT", exit)
        .env("ROUNDS", &rounds)
        .output()
        .expect("the command");
    let output = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{output}{}", String::from_utf8_lossy(&done.stderr));
    for way in ["both", "path-1", "path-2"] {
        let times = times(&output, way);
        assert_eq!(times.len().to_string(), rounds, "{output}");
        println!("{way}: median {} ms of {times:?}", times[times.len() / 2]);
    }
}
