//! `send` and `recv`: two processes, real sockets, and failures between them.

#![allow(clippy::disallowed_methods, reason = "waits for real programs, which take real time")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Server, TestDir, noise};
use serde_json::Value;

pub const BINARY: &str = env!("CARGO_BIN_EXE_ropewalk");

/// A temporary directory with a home directory for keys.
pub struct TestHome(TestDir);

impl TestHome {
    pub fn new(name: &str) -> Self {
        let dir = TestDir::new(&format!("transfer-{name}"));
        fs::create_dir(dir.file("home")).expect("a home");
        Self(dir)
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(BINARY);
        command.args(words).current_dir(self.0.file("."));
        command.env("HOME", self.0.file("home")).env_remove("XDG_CONFIG_HOME");
        command
    }

    fn run(&self, words: &[&str]) -> Output {
        self.command(words).output().expect("the command")
    }

    /// Starts a receiver, and waits until it listens.
    pub fn receiver(&self, words: &[&str]) -> Server {
        Server::start(self.command(&[&["recv"], words].concat()).stdout(Stdio::piped()), "send")
    }

    /// Runs the receiver's command with these files and options.
    pub fn send(&self, receiver: &Server, files: &[&str], options: &[&str]) -> Output {
        self.sender(receiver, files, options).output().expect("send")
    }

    pub fn sender(&self, receiver: &Server, files: &[&str], options: &[&str]) -> Command {
        self.command(&[&receiver.line_for(files), options].concat())
    }

    pub fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.file(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, bytes).expect("a file");
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.file(name)
    }

    pub fn same(&self, one: &str, other: &str) {
        let [a, b] = [one, other].map(|name| fs::read(self.file(name)).expect(name));
        assert!(a == b, "{one} and {other} differ");
    }
}

pub fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

pub fn good(output: &Output) {
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}

pub fn failed(output: &Output, status: i32, hints: &[&str]) {
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    for hint in hints {
        assert!(stderr.contains(hint), "no {hint:?} in: {stderr}");
    }
}

pub const HERE: [&str; 2] = ["--listen", "127.0.0.1:0"];

#[test]
fn files_and_folders_arrive_sealed_by_the_line_that_the_receiver_prints() {
    let home = TestHome::new("sealed");
    home.write("large", &noise(3_000_000));
    home.write("tree/a/one", b"1");
    home.write("tree/empty", b"");
    let mut receiver = home.receiver(&[&["in", "--once"], &HERE[..]].concat());
    let sent = home.send(&receiver, &["large", "tree"], &[]);
    good(&sent);
    assert!(text(&sent.stdout).starts_with("sent 3 files: 3.000 MB in "), "{}", text(&sent.stdout));
    assert!(receiver.child.wait().expect("recv").success());
    home.same("large", "in/large");
    home.same("tree/a/one", "in/tree/a/one");
    home.same("tree/empty", "in/tree/empty");
    assert!(!home.file("in/.ropewalk").exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let key = fs::metadata(home.file("home/.config/ropewalk/identity.key")).expect("a key");
        assert_eq!(key.permissions().mode() & 0o777, 0o600);
    }
}

/// Makes standard input descriptor 3 and executes its arguments, as systemd does for a service with a socket unit.
#[cfg(target_os = "linux")]
const PASS_SOCKET: &str = r#"exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec "$@""#;

#[cfg(target_os = "linux")]
#[test]
fn a_sender_waits_at_the_socket_of_a_service_manager_while_the_receiver_restarts() {
    use std::net::{TcpListener, UdpSocket};
    use std::os::fd::OwnedFd;
    let home = TestHome::new("inherited");
    home.write("file", &noise(300_000));
    let kept = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let at = kept.local_addr().expect("an address").to_string();
    let receiver = |socket: OwnedFd| {
        let mut shell = Command::new("sh");
        shell.args(["-c", PASS_SOCKET, "sh", BINARY, "recv", "in", "--once", "--plain"]);
        shell.current_dir(home.file(".")).env("HOME", home.file("home")).stdin(socket);
        shell
    };
    let start = || {
        let socket = kept.try_clone().expect("a duplicate");
        Server::start(receiver(socket.into()).stdout(Stdio::piped()), "send")
    };
    let mut first = start();
    good(&home.run(&["send", "file", "--plain", "--to", &at]));
    assert!(first.child.wait().expect("recv").success());
    home.same("file", "in/file");
    fs::remove_file(home.file("in/file")).expect("the file");
    let mut sender = home.command(&["send", "file", "--plain", "--to", &at]);
    let sender = sender.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("send");
    std::thread::sleep(Duration::from_millis(200));
    let mut second = start();
    good(&sender.wait_with_output().expect("send"));
    assert!(second.child.wait().expect("recv").success());
    home.same("file", "in/file");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let refused = receiver(tcp.into()).output().expect("recv");
    failed(&refused, 2, &["service manager", "ListenDatagram="]);
}

#[test]
fn the_result_of_a_transfer_is_also_printed_as_csv_and_markdown() {
    let home = TestHome::new("csv");
    home.write("file", &noise(100_000));
    let mut receiver = home.receiver(&["in", "--plain", "--markdown", "--listen", "127.0.0.1:0"]);
    let sent = home.send(&receiver, &["file"], &["--csv"]);
    good(&sent);
    let mut received = String::new();
    let stdout = receiver.child.stdout.as_mut().expect("stdout");
    std::io::Read::read_to_string(stdout, &mut received).expect("text");
    assert!(receiver.child.wait().expect("recv").success(), "--markdown implies --once");
    let sent = String::from_utf8(sent.stdout).expect("text");
    let rows: Vec<&str> = sent.lines().collect();
    assert_eq!(rows[0], "link,remote,bytes,seconds,throughput_bps,share,srtt_s,retransmits");
    assert!(rows[1].starts_with("127.0.0.1:") && rows[2].starts_with("all,,100000,"), "{sent}");
    assert!(received.contains("| link | peer | data, kB |"), "{received}");
}

#[test]
fn in_the_clear_over_two_paths_both_ends_write_documents_that_agree() {
    let home = TestHome::new("plain");
    home.write("file", &noise(5_000_000));
    let options = ["in", "--plain", "--json", "--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0"];
    let mut receiver = home.receiver(&options);
    let sent = home.send(&receiver, &["file"], &["--json", "--interval", "50 ms"]);
    good(&sent);
    let mut received = String::new();
    let stdout = receiver.child.stdout.as_mut().expect("stdout");
    std::io::Read::read_to_string(stdout, &mut received).expect("text");
    assert!(receiver.child.wait().expect("recv").success());
    let sent: Value = serde_json::from_slice(&sent.stdout).expect("one document");
    let received: Value = serde_json::from_str(&received).expect("one document");
    assert_eq!(sent["schema"], "ropewalk.send/1");
    assert_eq!(received["schema"], "ropewalk.recv/1");
    for document in [&sent, &received] {
        assert_eq!(document["end"]["files"]["done"], 1);
        assert_eq!(document["end"]["files"]["bytes_placed"], 5_000_000);
        assert_eq!(document["end"]["files"]["bytes_moved"], 5_000_000);
        assert!(document["error"].is_null());
    }
    assert_eq!(sent["start"]["connected"].as_array().map(Vec::len), Some(2));
    assert_eq!(received["end"]["sum_received"]["bytes"], 5_000_000);
    // Frames and the list of files are included.
    let on_paths = sent["end"]["sum_sent"]["bytes"].as_u64().expect("a number");
    assert!((5_000_000..5_100_000).contains(&on_paths), "{on_paths}");
    let intervals = sent["intervals"].as_array().expect("intervals");
    let sums = intervals.iter().map(|i| i["sum"]["bytes"].as_u64().expect("a number"));
    assert_eq!(sums.sum::<u64>(), on_paths);
    home.same("file", "in/file");
}

#[test]
fn a_file_arrives_with_extensions_in_the_clear_and_sealed() {
    let clear = "interleaving,nr-sack,authentication,address-reconfiguration";
    for (words, extensions) in [(&["--plain"][..], clear), (&[], "interleaving,nr-sack")] {
        let home = TestHome::new(&format!("extensions-{}", words.len()));
        home.write("file", &noise(300_000));
        let here = ["in", "--once", "--listen", "127.0.0.1:0", "--extension", extensions];
        let mut receiver = home.receiver(&[&here[..], words].concat());
        good(&home.send(&receiver, &["file"], &[]));
        assert!(receiver.child.wait().expect("recv").success());
        home.same("file", "in/file");
    }
}

/// Waits until the receiver has this many bytes of an unfinished file.
fn wait_for_part(home: &TestHome, bytes: u64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    let len = || {
        let inside = fs::read_dir(home.file("in/.ropewalk")).ok()?;
        inside.filter_map(|item| item.ok()?.metadata().ok()).map(|found| found.len()).max()
    };
    while len().unwrap_or(0) < bytes {
        assert!(Instant::now() < deadline, "nothing arrives");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Large enough to be interrupted.
const LARGE: usize = 400_000_000;

#[test]
fn a_sender_that_was_killed_goes_on_where_it_was() {
    let home = TestHome::new("sender-killed");
    home.write("large", &noise(LARGE));
    let mut receiver = home.receiver(&[&["in", "--once"], &HERE[..]].concat());
    let mut sender = home.sender(&receiver, &["large"], &[]);
    let mut sender = sender.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("send");
    wait_for_part(&home, LARGE as u64 / 4);
    sender.kill().expect("killed");
    sender.wait().expect("dead");
    assert!(!home.file("in/large").exists(), "it was killed too late");
    let again = home.send(&receiver, &["large"], &["--json"]);
    good(&again);
    assert!(receiver.child.wait().expect("recv").success());
    let document: Value = serde_json::from_slice(&again.stdout).expect("one document");
    let moved = document["end"]["files"]["bytes_moved"].as_u64().expect("a number");
    assert!(moved <= LARGE as u64 * 3 / 4, "{moved} bytes were sent again");
    home.same("large", "in/large");
}

#[test]
fn a_receiver_that_was_killed_is_waited_for() {
    let home = TestHome::new("receiver-killed");
    home.write("large", &noise(LARGE));
    let receiver = home.receiver(&[&["in"], &HERE[..]].concat());
    let at = receiver.line.iter().position(|word| word == "--to").expect("an address");
    let address = receiver.line[at + 1].clone();
    let mut sender = home.sender(&receiver, &["large"], &["--json"]);
    let sender = sender.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("send");
    wait_for_part(&home, LARGE as u64 / 4);
    // The receiver is killed, without a chance to clean up.
    drop(receiver);
    assert!(!home.file("in/large").exists(), "it was killed too late");
    let mut receiver = home.receiver(&["in", "--once", "--listen", &address]);
    let sent = sender.wait_with_output().expect("send");
    good(&sent);
    assert!(receiver.child.wait().expect("recv").success());
    let document: Value = serde_json::from_slice(&sent.stdout).expect("one document");
    let moved = document["end"]["files"]["bytes_moved"].as_u64().expect("a number");
    // Data that was in buffers at the kill is sent twice.
    assert!(moved < LARGE as u64 + 150_000_000, "{moved} bytes were sent");
    home.same("large", "in/large");
}

#[test]
fn existing_files_are_kept_and_the_exit_status_says_that_not_all_was_sent() {
    let home = TestHome::new("exists");
    home.write("one", b"new");
    home.write("two", b"2");
    home.write("in/one", b"old");
    let receiver = home.receiver(&[&["in"], &HERE[..]].concat());
    let sent = home.send(&receiver, &["one", "two"], &[]);
    failed(&sent, 1, &["one: receiver: this name is taken", "1 entry was not sent"]);
    assert_eq!(fs::read(home.file("in/one")).expect("a file"), b"old");
    home.same("two", "in/two");
}

#[test]
fn wrong_input_is_refused_before_anything_is_sent() {
    let home = TestHome::new("refused");
    home.write("file", b"1");
    home.write("open.key", b"x");
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";
    let to = ["send", "file", "--to", "127.0.0.1", "--peer", key];
    let with = |words: &[&'static str]| [&to[..], words].concat();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::Permissions::from_mode(0o644);
        fs::set_permissions(home.file("open.key"), mode).expect("a mode");
    }
    for (words, hints) in [
        (vec!["send", "file"], vec!["--to"]),
        (vec!["send", "--to", "127.0.0.1"], vec!["<FILES>"]),
        (vec!["send", "nothing", "--to", "127.0.0.1", "--plain"], vec!["`nothing` cannot be read"]),
        (vec!["send", "file", "--to", "127.0.0.1"], vec!["--peer is missing", "ropewalk recv"]),
        (vec!["send", "file", "--to", "127.0.0.1", "--peer", "abc"], vec!["abc", "44 characters"]),
        (vec!["send", "file", "--to", "1.2.3.4:x", "--peer", key], vec!["1.2.3.4:x", "192.0.2.7"]),
        (with(&["--plain"]), vec!["--plain", "cannot be used with"]),
        (with(&["--key", "nokey"]), vec!["nokey", "ropewalk keygen"]),
        (with(&["--from", "nosuch0"]), vec!["nosuch0", "ip -brief address"]),
        (with(&["--from", "192.0.2.99"]), vec!["192.0.2.99", "no interface has this address"]),
        (with(&["--scheduler", "dasp"]), vec!["dasp", "daps"]),
        (with(&["--receive-buffer", "10 B"]), vec!["--receive-buffer", "1500"]),
        (with(&["--retry", "5"]), vec!["--retry", "no unit"]),
        (vec!["recv", "--listen", "eth0"], vec!["--listen eth0"]),
        (vec!["recv", "--listen", "192.0.2.99"], vec!["192.0.2.99", "no interface"]),
        (vec!["recv", "no/where", "--listen", "127.0.0.1:0"], vec!["no/where", "help:"]),
        (vec!["recv", "file", "--listen", "127.0.0.1:0"], vec!["cannot receive into `file`"]),
        (vec!["recv", "--plain", "--allow", key], vec!["--plain"]),
        (with(&["--extension", "authentication"]), vec!["needs --plain", "whole packets"]),
        (vec!["recv", "--extension", "address-reconfiguration"], vec!["needs --plain"]),
        (vec!["recv", "--extension", "asconf"], vec!["asconf", "address-reconfiguration"]),
    ] {
        let output = home.run(&words);
        failed(&output, 2, &hints);
        assert_eq!(text(&output.stdout), "", "{words:?}");
    }
    if cfg!(unix) {
        failed(&home.run(&with(&["--key", "open.key"])), 2, &["0644", "chmod 600"]);
    }
}

#[test]
fn a_port_or_a_directory_that_is_taken_is_refused() {
    let home = TestHome::new("taken");
    let receiver = home.receiver(&[&["in"], &HERE[..]].concat());
    let at = receiver.line.iter().position(|word| word == "--to").expect("an address");
    let address = &receiver.line[at + 1];
    let port = home.run(&["recv", "other", "--listen", address]);
    failed(&port, 2, &[address, "another program has this port"]);
    let directory = home.run(&["recv", "in", "--listen", "127.0.0.1:0"]);
    failed(&directory, 2, &["another `ropewalk recv` receives into `in`"]);
}

#[test]
fn nobody_at_the_other_end_is_told_with_what_to_check() {
    let home = TestHome::new("nobody");
    home.write("file", b"1");
    let key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE=";
    let to = ["send", "file", "--to", "127.0.0.1:9", "--peer", key, "--retry", "1 s"];
    failed(&home.run(&to), 1, &["cannot be reached", "ropewalk recv", "firewall"]);
}

#[test]
fn who_is_not_allowed_sends_nothing() {
    let home = TestHome::new("allowed");
    home.write("file", b"1");
    good(&home.run(&["keygen", "friend.key"]));
    let friend = home.run(&["keygen", "--public", "friend.key"]);
    let friend = text(&friend.stdout).trim();
    let receiver = home.receiver(&["in", "--allow", friend, "--listen", "127.0.0.1:0"]);
    let refused = home.send(&receiver, &["file"], &["--retry", "1 s"]);
    failed(&refused, 1, &["cannot be reached", "does it allow your key"]);
    good(&home.send(&receiver, &["file"], &["--key", "friend.key"]));
    home.same("file", "in/file");
}

/// The list is reloaded on SIGHUP; an invalid one changes nothing. A peer may have a pre-shared key.
#[cfg(unix)]
#[test]
fn the_peers_of_a_file_send_and_the_file_is_read_again_on_a_hangup() {
    let home = TestHome::new("peers");
    home.write("file", b"1");
    for words in [&["keygen", "friend.key"][..], &["keygen", "--psk", "friend.psk"]] {
        good(&home.run(words));
    }
    let friend = home.run(&["keygen", "--public", "friend.key"]);
    let entry = |name: &str, key: &str| {
        format!("[[peer]]\nname = \"{name}\"\nkey = \"{key}\"\npsk_file = \"friend.psk\"\n")
    };
    let other = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=";
    home.write("peers.toml", entry("other", other).as_bytes());
    let receiver = home.receiver(&["in", "--allow-file", "peers.toml", "--listen", "127.0.0.1:0"]);
    let options = ["--key", "friend.key", "--psk-file", "friend.psk", "--retry", "1 s"];
    failed(&home.send(&receiver, &["file"], &options), 1, &["cannot be reached"]);

    let hang_up = || {
        let id = receiver.child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &id]).status().expect("kill").success());
    };
    home.write("peers.toml", b"nonsense");
    hang_up();
    failed(&home.send(&receiver, &["file"], &options), 1, &["cannot be reached"]);
    home.write("peers.toml", entry("friend", text(&friend.stdout).trim()).as_bytes());
    hang_up();
    // The reload happens soon, at no fixed time.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !home.send(&receiver, &["file"], &options).status.success() {
        assert!(Instant::now() < deadline, "the list was not read again");
    }
    home.same("file", "in/file");
    let without = ["--key", "friend.key", "--retry", "1 s"];
    failed(&home.send(&receiver, &["file"], &without), 1, &["cannot be reached", "--psk-file"]);
}

#[cfg(unix)]
#[test]
fn an_interrupted_sender_says_how_to_go_on() {
    let home = TestHome::new("interrupted");
    home.write("large", &noise(LARGE));
    let receiver = home.receiver(&[&["in"], &HERE[..]].concat());
    let mut sender = home.sender(&receiver, &["large"], &[]);
    let sender = sender.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("send");
    wait_for_part(&home, LARGE as u64 / 4);
    let id = sender.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
    let output = sender.wait_with_output().expect("send");
    failed(
        &output,
        1,
        &["error: stopped", "0 of 1 file, ", "to resume where it stopped: ropewalk send large"],
    );
}

#[cfg(unix)]
#[test]
fn a_receiver_that_is_stopped_ends_with_0() {
    let home = TestHome::new("stopped");
    home.write("file", b"1");
    for signal in ["-TERM", "-INT"] {
        let mut receiver = home.receiver(&[&["in"], &HERE[..]].concat());
        good(&home.send(&receiver, &["file"], &[]));
        let id = receiver.child.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
        assert_eq!(receiver.child.wait().expect("recv").code(), Some(0), "{signal}");
    }
}

/// Arguments of `setpriv` for an unprivileged user.
#[cfg(target_os = "linux")]
pub const NOBODY: [&str; 3] = ["--reuid=65534", "--regid=65534", "--clear-groups"];

/// Whether receivers can run as another user. Needs root.
#[cfg(target_os = "linux")]
pub fn can_change_user() -> bool {
    let version = Command::new("setpriv").args(NOBODY).args([BINARY, "--version"]).output();
    let can = version.is_ok_and(|version| version.status.success());
    if !can {
        println!("skipped: this user cannot become another one (setpriv)");
    }
    can
}

/// If the receiver's user may not write a file, only this file fails, and the receiver continues. Needs root to
/// change the user.
#[cfg(target_os = "linux")]
#[test]
fn folders_of_another_owner_fail_as_entries_and_others_are_served() {
    let home = TestHome::new("owners");
    if !can_change_user() {
        return;
    }
    for name in ["tree/foreign/file", "tree/blind/file", "tree/own", "second"] {
        home.write(name, b"new");
    }
    home.write("in/tree/foreign/there", b"old");
    fs::create_dir(home.file("in/tree/blind")).expect("a directory");
    let own = |name: &str, mode: u32, owner: u32| {
        use std::os::unix::fs::{PermissionsExt, chown};
        chown(home.file(name), Some(owner), Some(owner)).expect("another owner");
        fs::set_permissions(home.file(name), fs::Permissions::from_mode(mode)).expect("a mode");
    };
    own("in", 0o755, 65_534);
    own("in/tree", 0o755, 65_534);
    own("in/tree/blind", 0o333, 65_534);
    own("in/tree/foreign", 0o755, 0);
    let mut command = Command::new("setpriv");
    command.args(NOBODY).args([BINARY, "recv", "in", "--plain", "--overwrite"]).args(HERE);
    command.current_dir(home.file(".")).stdout(Stdio::piped());
    let mut receiver = Server::start(&mut command, "send");
    let sent = home.send(&receiver, &["tree"], &[]);
    failed(&sent, 1, &["tree/foreign/file: receiver:", "2 entries were not sent"]);
    home.same("tree/own", "in/tree/own");
    home.same("tree/blind/file", "in/tree/blind/file");
    assert_eq!(fs::read(home.file("in/tree/foreign/there")).expect("kept"), b"old");
    good(&home.send(&receiver, &["second"], &[]));
    home.same("second", "in/second");
    assert!(receiver.child.try_wait().expect("recv").is_none(), "it has ended");
}

/// A file system that is smaller than the data; needs root.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_loses_nothing_and_goes_on_when_there_is_room() {
    let home = TestHome::new("full");
    fs::create_dir(home.file("in")).expect("a directory");
    let small = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4m", "none"])
        .arg(home.file("in"))
        .stderr(Stdio::null())
        .status();
    if !small.is_ok_and(|status| status.success()) {
        return;
    }
    let full = std::panic::catch_unwind(|| {
        home.write("large", &noise(9_000_000));
        // Without --once it continues for other senders. With it, the single sender has failed.
        let mut receiver = home.receiver(&[&["in"], &HERE[..]].concat());
        let sent = home.send(&receiver, &["large"], &[]);
        let hints =
            ["receiver could not write `large`", "No space left", "to resume where it stopped"];
        failed(&sent, 1, &hints);
        assert!(receiver.child.try_wait().expect("recv").is_none(), "it has ended");
        drop(receiver);
        let mut receiver = home.receiver(&[&["in", "--once"], &HERE[..]].concat());
        failed(&home.send(&receiver, &["large"], &[]), 1, &hints);
        assert_eq!(receiver.child.wait().expect("recv").code(), Some(1));
        grow(&home);
        let mut receiver = home.receiver(&[&["in", "--once"], &HERE[..]].concat());
        let sent = home.send(&receiver, &["large"], &["--json"]);
        good(&sent);
        assert!(receiver.child.wait().expect("recv").success());
        let document: Value = serde_json::from_slice(&sent.stdout).expect("one document");
        let moved = document["end"]["files"]["bytes_moved"].as_u64().expect("a number");
        assert!(moved < 6_000_000, "{moved} bytes were sent again");
        home.same("large", "in/large");
    });
    let _ = Command::new("umount").arg("-l").arg(home.file("in")).status();
    full.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[cfg(target_os = "linux")]
fn grow(home: &TestHome) {
    let mut command = Command::new("mount");
    command.args(["-o", "remount,size=40m"]).arg(home.file("in"));
    assert!(command.status().expect("mount").success());
}

/// The examples of the help, with addresses and keys that exist on this machine.
fn example(line: &str, addresses: &[String; 2], key: &str) -> Vec<String> {
    let line = line.replace("192.0.2.7", &addresses[0]).replace("198.51.100.7", &addresses[1]);
    let line = line.replace("127.0.0.1 --plain", &format!("{} --plain", addresses[0]));
    let line = line.replace("wlan0,wwan0", "lo,lo").replace("PUBKEY", key);
    line.split_whitespace().map(str::to_owned).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn the_examples_of_the_help_work() {
    let home = TestHome::new("help");
    home.write("video.mkv", &noise(200_000));
    home.write("photos/1", &noise(2000));
    let [send, recv] = ["send", "recv"].map(|command| {
        let help = home.run(&[command, "--help"]);
        let lines = text(&help.stdout).lines().filter_map(|line| line.strip_prefix("  ropewalk "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    });
    assert!(send.len() >= 3 && recv.len() >= 3, "{send:?} {recv:?}");
    good(&home.run(&["keygen", "own.key"]));
    good(&home.run(&["keygen", "--secrets", "secrets"]));
    let own = home.run(&["keygen", "--public", "own.key"]);
    let own = text(&own.stdout).trim();
    let two = ["--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0"];
    for (number, line) in send.iter().enumerate() {
        let directory = format!("in{number}");
        let mut words = vec![directory.as_str()];
        words.extend(two);
        if line.contains("--plain") {
            words.push("--plain");
        }
        if line.contains("--secrets-file secrets") {
            words.extend(["--secrets-file", "secrets"]);
        }
        let receiver = home.receiver(&words);
        let at = receiver.line.iter().position(|word| word == "--to").expect("addresses");
        let addresses: Vec<String> = receiver.line[at + 1].split(',').map(str::to_owned).collect();
        let key = receiver.line.last().expect("a key").clone();
        let addresses: [String; 2] = addresses.try_into().expect("two");
        let words = example(line, &addresses, &key);
        good(&home.run(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        home.same("video.mkv", &format!("{directory}/video.mkv"));
    }
    let places = ["127.0.0.1:0", "127.0.0.2:0"].map(str::to_owned);
    for line in &recv {
        let mut words = example(line, &places, own);
        if !line.contains("--listen") {
            // Another program on this machine may use the default port.
            words.extend(HERE.map(str::to_owned));
        }
        let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
        let receiver = home.receiver(&words);
        assert_eq!(receiver.line[0], "send", "{line}");
    }
}
