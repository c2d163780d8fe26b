//! `--config`: options from a file.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{Server, TestDir};

#[test]
fn what_a_file_says_wrongly_is_shown_at_its_line() {
    let dir = TestDir::new("config-errors");
    for (line, hints) in [
        ("listn = \"127.0.0.1\"", &["unknown option `listn`", "did you mean `listen`?"][..]),
        ("dir = \"inbox\"", &["unknown option `dir`"]),
        ("config = \"other.toml\"", &["unknown option `config`"]),
        ("quota = true", &["`quota` is a text or a number"]),
        ("once = \"yes\"", &["`once` is true or false"]),
        ("listen = [[]]", &["`listen` is a list of texts or numbers"]),
        ("receive_buffer = \"12 parsecs\"", &["12 parsecs", "is not a size"]),
        ("max-file = 100", &["`100` has no unit"]),
        ("once = ", &["file is TOML"]),
    ] {
        fs::write(dir.file("recv.toml"), format!("# A receiver.\n{line}\n")).expect("a file");
        let done = dir.ropewalk(&["recv", "--config", "recv.toml"]);
        done.refused(hints);
        done.refused(&[" --> recv.toml:2:", "2 | "]);
    }
    dir.ropewalk(&["recv", "--config", "none.toml"]).refused(&["cannot read `none.toml`"]);
    fs::write(dir.file("two.toml"), "max-file = \"1 kB\"\nmax_file = \"2 kB\"\n").expect("a file");
    dir.ropewalk(&["recv", "--config", "two.toml"]).refused(&["`max-file` is set twice"]);
}

#[test]
fn both_ends_take_their_options_from_files_and_the_command_line_has_precedence() {
    let dir = TestDir::new("config-transfer");
    let recv = "plain = true\nonce = true\nlisten = [\"127.0.0.1:0\"]\ninterval = \"2 s\"\n";
    fs::write(dir.file("recv.toml"), recv).expect("a file");
    fs::write(dir.file("send.toml"), "receive_buffer = \"1 MiB\"\njson = true\n").expect("a file");
    fs::write(dir.file("data"), "one\n").expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
    command.current_dir(dir.file("."));
    command.args(["recv", "inbox", "--listen", "127.0.0.2:0", "--config", "recv.toml"]);
    let mut server = Server::start(&mut command, "send");
    let words = [&server.line_for(&["data"])[..], &["--config", "send.toml"]].concat();
    assert!(words.iter().any(|word| word.starts_with("127.0.0.2:")), "{words:?}");
    let sent = dir.ropewalk(&words).good();
    let document: Value = serde_json::from_str(sent.stdout()).expect("`json` of the file");
    assert!(document["schema"].is_string());
    // `once` in the file ends the receiver.
    assert!(server.child.wait().expect("its end").success());
}

#[test]
fn the_schema_of_a_file_has_the_options_of_its_command() {
    let dir = TestDir::new("config-schema");
    let schema = |words: &[&str]| -> Value {
        let shown = dir.ropewalk(&[&["schema", "--config"], words].concat()).good();
        serde_json::from_str(shown.stdout()).expect("JSON")
    };
    for (words, option, kind) in [
        (&["recv"][..], "once", "boolean"),
        (&["proxy", "exit"], "allow_file", "string"),
        (&["bench", "serve"], "receive-buffer", "string"),
        (&["emulate"], "metrics", "string"),
    ] {
        let schema = schema(words);
        assert_eq!(schema["additionalProperties"], false);
        let found = &schema["properties"][option]["type"];
        assert!(found == kind || found[0] == kind, "{words:?} {option}: {found}");
        assert!(schema["properties"]["config"].is_null());
    }
    let refused = ["`run`", "recv", "proxy exit", "tunnel up", "tunnel serve", "measure"];
    dir.ropewalk(&["schema", "--config", "run"]).refused(&refused);
    let quoted = dir.ropewalk(&["schema", "--config", "tunnel up"]).good();
    let words = dir.ropewalk(&["schema", "--config", "tunnel", "up"]).good();
    assert_eq!(quoted.stdout(), words.stdout());
}

/// A command that runs in the background, with its notes in a file. It is killed when this value is dropped.
#[cfg(unix)]
struct Running {
    dir: TestDir,
    child: std::process::Child,
}

#[cfg(unix)]
impl Running {
    /// Starts it with the options of a file, and waits until its notes contain `ready`.
    fn start(name: &str, options: &str, words: &[&str], ready: &str) -> Self {
        let dir = TestDir::new(name);
        let public = dir.key("near.key");
        dir.key("far.key");
        let file = options.replace("PUBLIC", &public);
        fs::write(dir.file("options.toml"), file).expect("a file");
        let notes = fs::File::create(dir.file("notes")).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        command.args(words).args(["--config", "options.toml"]).current_dir(dir.file("."));
        let child = command.stdout(std::process::Stdio::null()).stderr(notes).spawn();
        let mut running = Self { dir, child: child.expect("the command") };
        running.wait(ready);
        assert!(running.child.try_wait().is_ok_and(|ended| ended.is_none()), "{}", running.notes());
        running
    }

    fn notes(&self) -> String {
        fs::read_to_string(self.dir.file("notes")).expect("the notes")
    }

    /// Waits until the notes contain the text.
    fn wait(&self, text: &str) {
        self.wait_for(|notes| notes.contains(text));
    }

    /// Waits until the notes are as expected.
    #[allow(clippy::disallowed_methods, reason = "waits for a real program, which takes real time")]
    #[track_caller]
    fn wait_for(&self, is_expected: impl Fn(&str) -> bool) {
        let begin = std::time::Instant::now();
        while !is_expected(&self.notes()) {
            assert!(begin.elapsed().as_secs() < 60, "{}", self.notes());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    /// Writes the file, sends a SIGHUP, and waits until the notes contain each text.
    fn reload(&self, options: &str, expected: &[&str]) {
        fs::write(self.dir.file("options.toml"), options).expect("a file");
        let process = self.child.id().to_string();
        let sent = Command::new("kill").args(["-HUP", &process]).status().expect("kill");
        assert!(sent.success(), "it has ended: {}", self.notes());
        expected.iter().for_each(|text| self.wait(text));
    }
}

#[cfg(unix)]
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn a_receiver_applies_changed_options_on_sighup_and_ignores_a_file_with_an_error() {
    let words = ["recv", "in", "--plain", "--listen", "127.0.0.1:0"];
    let options = "max_file = \"1 kB\"\nreceive_buffer = \"2 MiB\"\n";
    let receiver = Running::start("config-recv", options, &words, "ropewalk send FILES");
    let notes = receiver.notes();
    let (_, to) = notes.split_once("--to ").expect("the command for the other side");
    let to = to.split(' ').next().expect("an address");
    let dir = &receiver.dir;
    fs::write(dir.file("data"), vec![7; 5000]).expect("a file");
    let send = || dir.ropewalk(&["send", "data", "--to", to, "--plain"]);
    assert_eq!(send().status(), 1, "the file is too large");
    let wrong = "max-file = \"1 MB\"\nlog-level = \"loud\"\n";
    receiver.reload(
        wrong,
        &[
            "options.toml:2:",
            "invalid value 'loud'",
            "valid: error, warn, info, debug",
            "stay in force",
        ],
    );
    receiver.reload("max-file = \"1 MB\"\nmemory = \"1 kB\"\n", &["--memory 1000 B is too small"]);
    assert_eq!(send().status(), 1, "a file with an error changes nothing");
    receiver.reload(
        "max-file = \"1 MB\"\nreceive_buffer = \"3 MiB\"\nlog-level = \"debug\"\n",
        &[
            "options.toml: a restart is needed to change `receive-buffer`",
            "changed `max-file`, `log-level`",
        ],
    );
    send().good();
    receiver.wait("file started");
    receiver.reload("max-file = \"1 MB\"\n", &["changed `log-level`"]);
}

/// Starts a client with this key, and waits until the server reports the refusal.
#[cfg(unix)]
fn refused(server: &Running, line: &[&str], key: &str) {
    let before = server.notes().matches("association refused").count();
    let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
    command.args(line).args(["--key", key]).current_dir(server.dir.file("."));
    let quiet = std::process::Stdio::null;
    let mut client = command.stdout(quiet()).stderr(quiet()).spawn().expect("the command");
    server.wait_for(|notes| notes.matches("association refused").count() > before);
    let _ = client.kill();
    let _ = client.wait();
}

#[cfg(unix)]
#[test]
fn the_peers_of_a_server_are_those_of_its_file_after_each_sighup() {
    let words = ["bench", "serve", "--listen", "127.0.0.1:0", "--key", "far.key"];
    let options = "allow = [\"PUBLIC\"]\n";
    let server = Running::start("config-allow", options, &words, "listening");
    let dir = &server.dir;
    let first = dir.key("first.key");
    let notes = server.notes();
    let line = notes.lines().find(|line| line.trim_start().starts_with("ropewalk bench run"));
    let line: Vec<&str> = line.expect("the command").split_whitespace().skip(1).collect();
    let with = |key: &str| {
        let more = ["--key", key, "--time", "50 ms", "--warmup", "0 s", "--json"];
        dir.ropewalk(&[&line[..], &more].concat())
    };
    with("near.key").good();
    refused(&server, &line, "first.key");
    server.reload(
        &format!("allow = [\"{first}\"]\nassociations = 7\n"),
        &["changed `allow`, `associations`"],
    );
    with("first.key").good();
    refused(&server, &line, "near.key");
    server.reload("", &["a restart is needed to change `allow`"]);
    refused(&server, &line, "near.key");
}

#[cfg(unix)]
#[test]
fn both_ends_of_a_proxy_change_their_limits_on_sighup() {
    let words = ["proxy", "exit", "--listen", "127.0.0.1:0", "--key", "far.key"];
    let options = "allow = [\"PUBLIC\"]\nconnections = 5\n";
    let exit = Running::start("config-exit", options, &words, "listening");
    let public = exit.dir.ropewalk(&["keygen", "--public", "near.key"]).stdout().trim().to_owned();
    let changed = format!("allow = [\"{public}\"]\nconnections = 9\nallow_to = [\"*:443\"]\n");
    exit.reload(&changed, &["changed `allow-to`, `connections`"]);
    exit.reload(&format!("{changed}allow-to = [\"x\"]\n"), &["`allow-to` is set twice"]);

    let words = [
        "proxy",
        "--to",
        "127.0.0.1:9",
        "--from",
        "127.0.0.1",
        "--key",
        "near.key",
        "--socks",
        "0",
    ];
    let near = Running::start("config-near", "peer = \"PUBLIC\"\n", &words, "SOCKS 5 on");
    let same = fs::read_to_string(near.dir.file("options.toml")).expect("the file");
    near.reload(
        &format!("{same}connections = 3\nverbose = true\n"),
        &["options changed: read options.toml: changed `connections`, `verbose`"],
    );
    near.reload(&format!("{same}http = [\"0\"]\n"), &["a restart is needed to change `http`"]);
}
