//! Observers of running commands: metrics, status socket, `top`, live page, JSON stream.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{TestDir, noise};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_ropewalk");
/// Maximum time of a program on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A receiver that can be observed. It is killed when this value is dropped.
struct Observed {
    dir: TestDir,
    child: Child,
}

impl Observed {
    fn start(name: &str, options: &[&str]) -> Self {
        let dir = TestDir::new(name);
        let words = ["recv", "in", "--plain", "--listen", "127.0.0.1:0"];
        fs::create_dir(dir.file("in")).expect("a directory");
        let mut command = command(&dir, &[&words, options].concat());
        let out = File::create(dir.file("recv.out")).expect("a file");
        let notes = File::create(dir.file("recv.err")).expect("a file");
        let child = command.stdout(out).stderr(notes).spawn().expect("the command");
        let observed = Self { dir, child };
        observed.wait("ropewalk send FILES");
        observed
    }

    fn notes(&self) -> String {
        fs::read_to_string(self.dir.file("recv.err")).expect("the notes")
    }

    /// Waits until the receiver's notes contain the text.
    fn wait(&self, text: &str) {
        until(&format!("{text:?} among the notes"), || self.notes().contains(text).then_some(()));
    }

    /// The address that the notes name after this text.
    fn address_after(&self, text: &str) -> String {
        let notes = self.notes();
        let (_, rest) = notes.split_once(text).unwrap_or_else(|| panic!("no {text:?}: {notes}"));
        rest.split(['/', ' ', '\n']).next().expect("an address").to_owned()
    }

    fn send(&self, file: &str, options: &[&str]) -> Output {
        let to = self.address_after("--to ");
        let words = ["send", file, "--to", &to, "--plain"];
        let output = command(&self.dir, &[&words, options].concat()).output().expect("send");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }

    fn status(&self) -> Vec<Value> {
        let output = command(&self.dir, &["status", "--json"]).output().expect("status");
        let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
        assert_eq!(document["schema"], "ropewalk.running/1");
        document["commands"].as_array().expect("a list").clone()
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(dir: &TestDir, words: &[&str]) -> Command {
    command_of(Path::new(BINARY), dir, words)
}

fn command_of(program: &Path, dir: &TestDir, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words).current_dir(dir.file("."));
    command.env("ROPEWALK_RUNTIME_DIR", dir.file("run"));
    command
}

/// Calls `look` until it returns something.
fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "no {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The answer to a request, head and body.
fn request(address: &str, line: &str, host: &str, accept: &str) -> String {
    let mut socket = TcpStream::connect(address).expect("a server");
    let head =
        format!("{line} HTTP/1.1\r\nHost: {host}\r\nAccept: {accept}\r\nConnection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).expect("it reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer
}

/// The value of the first sample of a metric with these labels.
fn sample(metrics: &str, start: &str) -> Option<f64> {
    let line = metrics.lines().find(|line| line.starts_with(start))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// The full path of a program, if this machine has it.
fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|file| file.is_file());
    if found.is_none() {
        eprintln!("skipped: this machine has no {name}");
    }
    found
}

#[test]
fn metrics_and_status_show_what_a_receiver_received() {
    let mut observed = Observed::start("observe-status", &["--metrics", "0"]);
    fs::write(observed.dir.file("a.bin"), noise(300_000)).expect("a file");
    observed.send("a.bin", &[]);
    let metrics = observed.address_after("metrics at http://");
    let received =
        r#"ropewalk_path_data_bytes_total{link="127.0.0.1",peer="127.0.0.1",direction="received"}"#;
    let text = until("received bytes in the metrics", || {
        let text = request(&metrics, "GET /metrics", "localhost", "application/openmetrics-text");
        let enough = sample(&text, received).is_some_and(|bytes| bytes >= 300_000.0);
        enough.then_some(text)
    });
    assert!(
        text.contains("openmetrics-text; version=1.0.0") && text.trim_end().ends_with("# EOF"),
        "{text}"
    );
    let opened = r#"ropewalk_events_total{event="association opened"}"#;
    assert_eq!(sample(&text, opened), Some(1.0), "{text}");
    let plain = request(&metrics, "GET /metrics", "localhost", "text/plain");
    assert!(plain.contains("text/plain; version=0.0.4"), "{plain}");
    the_board_and_the_guide_know_the_metrics(&plain);
    let rebound = request(&metrics, "GET /metrics", "example.org", "*/*");
    assert!(rebound.starts_with("HTTP/1.1 421") && !rebound.contains("ropewalk_"), "{rebound}");
    for (line, code) in [("POST /metrics", "405"), ("GET /other", "404")] {
        let answer = request(&metrics, line, "localhost", "*/*");
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{answer}");
    }
    let names = ["link up", "file finished", "files received", "association closed"];
    let status = until("status with all events", || {
        let status = observed.status().pop()?;
        let events = status["events"].as_array().expect("a list");
        let all = names.iter().all(|name| events.iter().any(|event| event["event"] == *name));
        all.then_some(status)
    });
    assert_eq!(
        (&status["command"], &status["schema"]),
        (&"recv".into(), &"ropewalk.status/1".into())
    );
    observed.child.kill().expect("it runs");
    observed.child.wait().expect("it ends");
    assert!(observed.status().is_empty());
    let left = fs::read_dir(observed.dir.file("run")).expect("the directory").count();
    assert_eq!(left, 0, "the socket of a killed command is removed");
}

/// Every metric that the Grafana board queries exists, and every existing metric is in the guide.
fn the_board_and_the_guide_know_the_metrics(metrics: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |file: &str| fs::read_to_string(root.join(file)).expect(file);
    let types = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let exist: Vec<&str> = types.filter_map(|line| line.split(' ').next()).collect();
    assert!(exist.len() > 20, "{exist:?}");
    let board = read("packaging/grafana/ropewalk.json");
    let words = board.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    for word in words.filter(|word| word.starts_with("ropewalk_")) {
        let name = word.trim_end_matches("_bucket");
        assert!(exist.contains(&name), "the board queries {name}: {exist:?}");
    }
    let guide = read("docs/guides/observe.md");
    for name in exist.iter().filter(|name| **name != "ropewalk_build_info") {
        assert!(guide.contains(&format!("`{name}`")), "the guide has no {name}");
    }
}

#[test]
fn the_json_stream_has_a_start_intervals_events_and_an_end() {
    let observed = Observed::start("observe-stream", &["--json-stream"]);
    // Enough data for several intervals.
    fs::write(observed.dir.file("a.bin"), noise(200_000)).expect("a file");
    let output = observed.send("a.bin", &["--json-stream"]);
    let lines = |bytes: &[u8]| -> Vec<Value> {
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        text.lines().map(|line| serde_json::from_str(line).expect("JSON in each line")).collect()
    };
    let sent = lines(&output.stdout);
    let names: Vec<&str> =
        sent.iter().map(|line| line["event"].as_str().expect("a name")).collect();
    assert_eq!((names[0], names[names.len() - 1]), ("start", "end"), "{names:?}");
    for name in ["interval", "association opened", "link up", "file finished"] {
        assert!(names.contains(&name), "no {name:?}: {names:?}");
    }
    let end = &sent[sent.len() - 1]["data"];
    let bytes = end["sum_sent"]["bytes"].as_u64().expect("bytes");
    assert!(bytes >= 200_000, "{end}");
    assert_eq!(end["transfer"]["files_done"], 1, "{end}");
    let intervals = sent.iter().filter(|line| line["event"] == "interval");
    let sum: u64 =
        intervals.map(|line| line["data"]["sum"]["bytes"].as_u64().expect("bytes")).sum();
    assert_eq!(sum, bytes, "intervals and end agree");
    until("received bytes in the stream", || {
        let received = lines(&fs::read(observed.dir.file("recv.out")).expect("the stream"));
        let intervals = received.iter().filter(|line| line["event"] == "interval");
        let sum: u64 =
            intervals.map(|line| line["data"]["sum"]["bytes"].as_u64().unwrap_or(0)).sum();
        (sum >= 200_000).then_some(())
    });
}

#[test]
fn the_json_stream_reports_at_the_interval_that_is_given() {
    let observed = Observed::start("observe-interval", &["--json-stream", "--interval", "50 ms"]);
    fs::write(observed.dir.file("a.bin"), noise(1_000_000)).expect("a file");
    observed.send("a.bin", &[]);
    until("intervals that are shorter than a second", || {
        let text = fs::read_to_string(observed.dir.file("recv.out")).expect("the stream");
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let lines = whole.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let sums = lines
            .filter(|line| line["event"] == "interval")
            .map(|line| line["data"]["sum"].clone());
        let sums: Vec<Value> = sums.collect();
        let short = sums.iter().filter(|sum| sum["seconds"].as_f64().is_some_and(|s| s < 0.5));
        let bytes: u64 = sums.iter().filter_map(|sum| sum["bytes"].as_u64()).sum();
        (short.count() >= 5 && bytes >= 1_000_000).then_some(())
    });
}

#[test]
fn the_live_page_is_for_browsers_that_name_this_machine() {
    let observed = Observed::start("observe-web", &["--web", "0"]);
    let page = observed.address_after("live page at http://");
    let answer = request(&page, "GET /", "127.0.0.1", "*/*");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("EventSource"), "{answer}");
    let rebound = request(&page, "GET /status", "example.org", "*/*");
    assert!(rebound.starts_with("HTTP/1.1 421") && rebound.contains("DNS rebinding"), "{rebound}");
    let status = request(&page, "GET /status", "localhost", "*/*");
    assert!(status.contains("ropewalk.status/1"), "{status}");
}

#[test]
fn the_log_is_coloured_as_the_color_option_and_no_color_say() {
    let is_coloured = |name: &str, options: &[&str]| {
        let observed = Observed::start(name, options);
        until("a log line", || observed.notes().contains("listening").then_some(()));
        observed.notes().contains("\u{1b}[32m INFO")
    };
    assert!(is_coloured("observe-color-always", &["--color", "always"]));
    assert!(!is_coloured("observe-color-auto", &[]), "a file is no terminal");
    // On a terminal, NO_COLOR and --color decide.
    let Some(script) = program("script") else { return };
    for (variable, option, expected) in
        [("UNUSED", "auto", true), ("NO_COLOR", "auto", false), ("UNUSED", "never", false)]
    {
        let dir = TestDir::new(&format!("observe-color-{variable}-{option}"));
        let line = format!("{BINARY} bench serve --plain --listen 127.0.0.1:0 --color {option}");
        let mut command = command_of(&script, &dir, &["-qfec", &line, "typescript"]);
        let command = command.env_remove("NO_COLOR").env(variable, "1").env("TERM", "xterm");
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("script");
        let read = || fs::read(dir.file("typescript")).unwrap_or_default();
        let text = until("a log line", || {
            let text = String::from_utf8_lossy(&read()).into_owned();
            text.contains("listening").then_some(text)
        });
        let _ = child.kill();
        let _ = child.wait();
        assert_eq!(text.contains("\u{1b}[32m INFO"), expected, "{variable} {option}: {text}");
    }
}

#[test]
fn with_a_token_the_live_page_answers_only_who_presents_it() {
    let dir = TestDir::new("observe-token-file");
    fs::write(dir.file("token"), "0123456789abcdef\n").expect("a file");
    let token = dir.file("token").to_string_lossy().into_owned();
    let observed = Observed::start("observe-token", &["--web", "0", "--web-token", &token]);
    let page = observed.address_after("live page at http://");
    for (line, code) in [
        ("GET /?token=0123456789abcdef", "200"),
        ("GET /?token=0123456789abcdeX", "403"),
        ("GET /", "403"),
    ] {
        let answer = request(&page, line, "example.org", "*/*");
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{line}: {answer}");
    }
}

#[test]
fn a_directory_that_others_can_write_to_is_refused() {
    let dir = TestDir::new("observe-directory");
    let run = dir.file("run");
    fs::create_dir(&run).expect("a directory");
    fs::set_permissions(&run, fs::Permissions::from_mode(0o777)).expect("permissions");
    for words in [&["status"][..], &["status", "--json"], &["tunnel", "status"]] {
        let output = command(&dir, words).output().expect("the command");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("others can write to it"), "{said}");
    }
}

#[test]
fn connections_without_the_token_are_closed_soon_and_keep_nobody_out() {
    let dir = TestDir::new("observe-strangers-file");
    fs::write(dir.file("token"), "0123456789abcdef\n").expect("a file");
    let token = dir.file("token").to_string_lossy().into_owned();
    let observed = Observed::start("observe-strangers", &["--web", "0", "--web-token", &token]);
    let page = observed.address_after("live page at http://");
    let connect = || TcpStream::connect(&page).expect("a server");
    let mut owner = connect();
    let head = "GET /events?token=0123456789abcdef HTTP/1.1\r\nHost: localhost\r\n\r\n";
    owner.write_all(head.as_bytes()).expect("it reads");
    let mut bytes = [0; 512];
    assert!(owner.read(&mut bytes).expect("events") > 0);
    // Some send nothing, some part of a request, some a request without the token.
    let mut strangers: Vec<TcpStream> = (0..60).map(|_| connect()).collect();
    for (stranger, text) in
        strangers.iter_mut().zip(["", head, "GET / HTTP/1.1\r\n"].iter().cycle())
    {
        let text = text.replace("?token=0123456789abcdef", "");
        // Evicted ones do not read it.
        let _ = stranger.write_all(text.as_bytes());
    }
    let answer = request(&page, "GET /status?token=0123456789abcdef", "localhost", "*/*");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    for stranger in &mut strangers {
        stranger.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let ended = loop {
            match stranger.read(&mut bytes) {
                Ok(0) => break true,
                Ok(_) => {}
                Err(error) => break error.kind() == ErrorKind::ConnectionReset,
            }
        };
        assert!(ended, "it still has a place");
    }
    // The events continue.
    for _ in 0..3 {
        owner.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        assert!(owner.read(&mut bytes).expect("events") > 0);
    }
}

#[test]
fn a_client_that_does_not_read_its_metrics_is_closed_soon() {
    let observed = Observed::start("observe-unread", &["--metrics", "0"]);
    let metrics = observed.address_after("metrics at http://");
    let mut unread: Vec<TcpStream> =
        (0..40).map(|_| TcpStream::connect(&metrics).expect("a server")).collect();
    let answer = request(&metrics, "GET /metrics", "localhost", "*/*");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let begin = Instant::now();
    for socket in &mut unread {
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let _ = socket.read(&mut [0; 16]);
    }
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
}

#[test]
fn a_request_with_two_hosts_or_none_is_refused() {
    let observed = Observed::start("observe-hosts", &["--metrics", "0", "--web", "0"]);
    for at in ["metrics at http://", "live page at http://"] {
        let address = observed.address_after(at);
        for head in ["", "Host: localhost\r\nHost: example.org\r\n"] {
            let mut socket = TcpStream::connect(&address).expect("a server");
            let head = format!("GET /metrics HTTP/1.1\r\n{head}Connection: close\r\n\r\n");
            socket.write_all(head.as_bytes()).expect("it reads");
            let mut answer = String::new();
            socket.read_to_string(&mut answer).expect("an answer");
            assert!(answer.starts_with("HTTP/1.1 400"), "{head}: {answer}");
        }
    }
}

#[test]
fn wrong_options_are_refused_before_anything_runs() {
    let dir = TestDir::new("observe-refused");
    fs::write(dir.file("short"), "abc").expect("a file");
    let open = ["--plain", "--to", "127.0.0.1:9"];
    for (options, hints) in [
        (&["--web", "0.0.0.0:0"][..], &["--web-token", "other machines"][..]),
        (&["--web", "0", "--web-token", "short"], &["16 letters", "openssl rand"]),
        (&["--web-token", "short"], &["--web"]),
        (&["--metrics", "192.0.2.1:1"], &["192.0.2.1:1", "another port"]),
        (&["--json", "--json-stream"], &["--json-stream excludes"]),
        (&["--csv", "--json-stream"], &["--json-stream excludes"]),
        (&["--interval", "49 ms"], &["--interval 49 ms", "50 ms and 60 min", "500ms"]),
        (&["--interval", "61 min"], &["50 ms and 60 min"]),
    ] {
        dir.ropewalk(&[&["bench", "run"], &open[..], options].concat()).refused(hints);
    }
    dir.ropewalk(&["top"]).refused(&["not a terminal", "status --json"]);
}

#[test]
fn top_shows_links_and_events_on_a_terminal_of_80_by_24() {
    let Some(tmux) = program("tmux") else { return };
    let observed = Observed::start("observe-top", &[]);
    fs::write(observed.dir.file("a.bin"), noise(100_000)).expect("a file");
    observed.send("a.bin", &[]);
    let server = format!("ropewalk-{}", std::process::id());
    let tmux = |words: &[&str]| {
        let mut command = Command::new(&tmux);
        command.args(["-L", &server, "-f", "/dev/null"]).args(words);
        command.env("ROPEWALK_RUNTIME_DIR", observed.dir.file("run"));
        command.output().expect("tmux")
    };
    let line = format!("{BINARY} top; echo ended: $?; sleep 60");
    let started = tmux(&["new-session", "-d", "-x", "80", "-y", "24", &line]);
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    let screen = || String::from_utf8_lossy(&tmux(&["capture-pane", "-p"]).stdout).into_owned();
    let shown = until("screen of top", || {
        Some(screen()).filter(|text| text.contains("files received") && text.contains("q quit"))
    });
    for words in
        ["ropewalk recv", "LINK", "QUEUE", "events (UTC)", "link 127.0.0.1 from 127.0.0.1 up"]
    {
        assert!(shown.contains(words), "no {words:?} in:\n{shown}");
    }
    assert!(shown.lines().count() <= 24 && shown.lines().all(|line| line.chars().count() <= 80));
    tmux(&["send-keys", "q"]);
    until("end of top", || screen().contains("ended: 0").then_some(()));
    tmux(&["kill-server"]);
}

#[test]
fn prometheus_scrapes_the_metrics_and_promtool_finds_nothing_wrong() {
    let (Some(promtool), Some(prometheus)) = (program("promtool"), program("prometheus")) else {
        return;
    };
    let observed = Observed::start("observe-prometheus", &["--metrics", "0"]);
    fs::write(observed.dir.file("a.bin"), noise(100_000)).expect("a file");
    observed.send("a.bin", &[]);
    let metrics = observed.address_after("metrics at http://");
    let answer = request(&metrics, "GET /metrics", "localhost", "text/plain");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a body");
    fs::write(observed.dir.file("metrics.txt"), body).expect("a file");
    let checked = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(File::open(observed.dir.file("metrics.txt")).expect("the file"))
        .output()
        .expect("promtool");
    let text = [&checked.stdout[..], &checked.stderr].concat();
    assert!(checked.status.success() && text.is_empty(), "{}", String::from_utf8_lossy(&text));
    let config = format!(
        "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: ropewalk\n  static_configs: [{{targets: ['{metrics}']}}]\n"
    );
    fs::write(observed.dir.file("prometheus.yml"), config).expect("a file");
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.local_addr().expect("an address").port()
    };
    let listen = format!("127.0.0.1:{port}");
    let mut server = Command::new(prometheus)
        .args(["--config.file=prometheus.yml", "--storage.tsdb.path=tsdb"])
        .arg(format!("--web.listen-address={listen}"))
        .current_dir(observed.dir.file("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("prometheus");
    let query =
        "GET /api/v1/query?query=ropewalk_path_data_bytes_total%7Bdirection%3D%22received%22%7D";
    let found = until_or_end(&mut server, || {
        TcpStream::connect(&listen).ok()?;
        let answer = request(&listen, query, "localhost", "*/*");
        answer.contains("\"link\":\"127.0.0.1\"").then_some(answer)
    });
    let _ = server.kill();
    let _ = server.wait();
    assert!(found.is_some_and(|answer| answer.contains("\"peer\":\"127.0.0.1\"")));
}

/// Calls `look` until it returns something or the program has ended.
fn until_or_end<T>(child: &mut Child, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    while begin.elapsed() < PATIENCE && child.try_wait().is_ok_and(|status| status.is_none()) {
        if let Some(found) = look() {
            return Some(found);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    None
}
