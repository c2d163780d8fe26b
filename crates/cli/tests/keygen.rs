//! `ropewalk keygen`: keys in files. `ropewalk pair`: keys of peers.

use std::fs;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use crate::support::{Server, TestDir, noise};
use serde_json::Value;

#[test]
fn a_new_key_is_written_and_its_public_half_printed() {
    let dir = TestDir::new("keygen");
    let made = dir.ropewalk(&["keygen", "me.key"]).good();
    let public = made.stdout();
    assert_eq!(public.len(), 45, "44 characters and the end of the line: {public}");
    assert!(made.stderr().contains("me.key holds the secret"), "{}", made.stderr());
    assert_eq!(dir.left_behind(), ["me.key"]);
    let secret = fs::read_to_string(dir.file("me.key")).expect("the key");
    assert_eq!(secret.len(), 45);
    assert_ne!(secret, public);
    let read = dir.ropewalk(&["keygen", "--public", "me.key"]).good();
    assert_eq!((read.stdout(), read.stderr()), (public, ""));
}

#[test]
fn json_is_one_document_without_the_secret() {
    let dir = TestDir::new("keygen-json");
    let made = dir.ropewalk(&["keygen", "--json", "me.key"]).good();
    let secret = fs::read_to_string(dir.file("me.key")).expect("the key");
    assert!(!made.stdout().contains(secret.trim()));
    let made = made.json("ropewalk.keygen/1");
    let read = dir.ropewalk(&["keygen", "me.key", "--public", "--json"]).good();
    let read = read.json("ropewalk.keygen/1");
    assert_eq!(made["public_key"], read["public_key"]);
    assert_eq!((&made["file"], &made["created"]), (&"me.key".into(), &true.into()));
    assert_eq!(read["created"], false);
}

#[test]
fn a_pre_shared_key_is_written_and_never_printed() {
    let dir = TestDir::new("keygen-psk");
    let made = dir.ropewalk(&["keygen", "--psk", "shared.psk"]).good();
    assert_eq!(made.stdout(), "");
    assert!(made.stderr().contains("--psk-file shared.psk"), "{}", made.stderr());
    assert_eq!(fs::read_to_string(dir.file("shared.psk")).expect("the key").len(), 45);
    let json = dir.ropewalk(&["keygen", "--psk", "--json", "other.psk"]).good();
    let secret = fs::read_to_string(dir.file("other.psk")).expect("the key");
    assert!(!json.stdout().contains(secret.trim()));
    assert!(json.json("ropewalk.keygen/1").get("public_key").is_none());
    dir.ropewalk(&["keygen", "--psk", "shared.psk"]).refused(&["exists"]);
}

#[test]
fn a_secret_for_authenticated_chunks_is_written_and_never_printed() {
    let dir = TestDir::new("keygen-secrets");
    let made = dir.ropewalk(&["keygen", "--secrets", "secrets"]).good();
    assert_eq!(made.stdout(), "");
    assert!(made.stderr().contains("--secrets-file secrets"), "{}", made.stderr());
    let text = fs::read_to_string(dir.file("secrets")).expect("the secret");
    let digits = text.strip_prefix("1 hex:").and_then(|rest| rest.strip_suffix('\n'));
    assert!(digits.is_some_and(|hex| hex.len() == 64 && !made.stderr().contains(hex)), "{text}");
    dir.ropewalk(&["keygen", "--secrets", "secrets"]).refused(&["exists"]);
    dir.ropewalk(&["keygen", "--secrets", "--psk", "other"]).refused(&["--psk"]);
}

/// Each option that names a key file is given a path that would block or is not a file.
#[cfg(target_os = "linux")]
#[test]
fn a_fifo_a_directory_and_a_device_are_refused_at_once() {
    let dir = TestDir::new("keygen-kinds");
    let made = Command::new("mkfifo").arg(dir.file("fifo")).status();
    assert!(made.expect("mkfifo").success());
    for (file, kind) in [("fifo", "a FIFO"), (".", "a directory"), ("/dev/zero", "a device")] {
        for option in ["--key", "--psk-file", "--allow-file"] {
            let listen = ["recv", "--listen", "127.0.0.1:0", option, file];
            dir.ropewalk(&listen).refused(&[file, kind]);
        }
        dir.ropewalk(&["keygen", "--public", file]).refused(&[file, kind]);
    }
}

#[test]
fn two_keys_differ() {
    let dir = TestDir::new("keygen-two");
    let one = dir.ropewalk(&["--quiet", "keygen", "one.key"]).good();
    let two = dir.ropewalk(&["--quiet", "keygen", "two.key"]).good();
    assert_ne!(one.stdout(), two.stdout());
    assert_eq!(one.stderr(), "");
}

#[test]
fn a_key_is_never_overwritten() {
    let dir = TestDir::new("keygen-exists");
    dir.ropewalk(&["keygen", "me.key"]).good();
    let before = fs::read(dir.file("me.key")).expect("the key");
    dir.ropewalk(&["keygen", "me.key"]).refused(&["me.key", "exists", "another name"]);
    assert_eq!(fs::read(dir.file("me.key")).expect("the key"), before);
    assert_eq!(dir.left_behind(), ["me.key"]);
}

#[test]
fn what_cannot_be_read_or_written_is_refused_with_a_hint() {
    let dir = TestDir::new("keygen-wrong");
    dir.ropewalk(&["keygen", "no/such/me.key"]).refused(&["no/such/me.key", "directory"]);
    dir.ropewalk(&["keygen", "--public", "me.key"]).refused(&["me.key", "ropewalk keygen me.key"]);
    dir.ropewalk(&["keygen"]).refused(&["FILE"]);
}

#[cfg(unix)]
#[test]
fn a_key_that_others_may_read_is_refused_with_the_remedy() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TestDir::new("keygen-mode");
    dir.ropewalk(&["keygen", "me.key"]).good();
    let mode = fs::metadata(dir.file("me.key")).expect("the key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let open = fs::Permissions::from_mode(0o644);
    fs::set_permissions(dir.file("me.key"), open).expect("a mode");
    dir.ropewalk(&["keygen", "--public", "me.key"]).refused(&["0644", "chmod 600 me.key"]);
}

/// The command with a separate home directory.
fn command_of(dir: &TestDir, home: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
    fs::create_dir_all(dir.file(home)).expect("a home");
    command.args(words).current_dir(dir.file("."));
    command.env("HOME", dir.file(home)).env_remove("XDG_CONFIG_HOME");
    command
}

fn run_as(dir: &TestDir, home: &str, words: &[&str]) -> Output {
    command_of(dir, home, words).output().expect("the command")
}

/// The document that a command printed.
fn document(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    serde_json::from_slice(&output.stdout).expect("one document")
}

/// Starts the side that shows a code. Returns it with the words `pair --to ADDRESS` that it prints.
fn shows_code(dir: &TestDir, home: &str, words: &[&str]) -> Server {
    let words = [&["pair", "--listen", "127.0.0.1:0"], words].concat();
    Server::start(command_of(dir, home, &words).stdout(Stdio::piped()), "pair")
}

fn words_of(server: &Server) -> Vec<&str> {
    server.line.iter().map(String::as_str).collect()
}

/// The code that it shows.
fn code_of(server: &Server) -> &str {
    let (_, rest) = server.said.split_once("the code is ").expect("a code");
    rest.split(';').next().expect("a code")
}

/// Runs a command with this text on standard input.
fn run_with_input(dir: &TestDir, home: &str, words: &[&str], input: &str) -> Output {
    let mut command = command_of(dir, home, words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command");
    let mut stdin = child.stdin.take().expect("standard input");
    // A command that refuses its options does not read its input.
    let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    drop(stdin);
    child.wait_with_output().expect("the command")
}

fn list_of(dir: &TestDir, home: &str) -> String {
    fs::read_to_string(dir.file(home).join(Path::new(".config/ropewalk/peers.toml")))
        .expect("a list")
}

#[test]
fn after_pairing_files_are_sent_by_name_without_keys_and_addresses() {
    let dir = TestDir::new("pair");
    let server = shows_code(&dir, "far", &["--name", "server", "--json"]);
    let words = [&words_of(&server)[..], &["--name", "laptop", "--json"]].concat();
    let code = format!("{}\n", code_of(&server));
    let near = document(&run_with_input(&dir, "near", &words, &code));
    let to = server.line.last().expect("an address").clone();
    let mut server = server;
    let mut far = String::new();
    let mut stdout = server.child.stdout.take().expect("stdout");
    std::io::Read::read_to_string(&mut stdout, &mut far).expect("text");
    assert!(server.child.wait().expect("pair").success());
    let far: Value = serde_json::from_str(&far).expect("one document");
    assert_eq!((&near["name"], &far["name"]), (&"server".into(), &"laptop".into()));
    assert_eq!((&near["known"], &far["known"]), (&false.into(), &false.into()));
    assert_eq!(near["addresses"], serde_json::json!([to]));
    assert_eq!(near["release"], env!("CARGO_PKG_VERSION"));
    let key = |home: &str| {
        let file = dir.file(home).join(".config/ropewalk/identity.key");
        dir.ropewalk(&["keygen", "--public", &file.to_string_lossy()])
            .good()
            .stdout()
            .trim()
            .to_owned()
    };
    assert_eq!(
        (&near["public_key"], &far["public_key"]),
        (&key("far").into(), &key("near").into())
    );
    assert!(list_of(&dir, "near").contains(&key("far")), "{}", list_of(&dir, "near"));

    fs::write(dir.file("file"), noise(100_000)).expect("a file");
    let recv = ["recv", "in", "--once", "--listen", &to, "--allow", "laptop"];
    let mut receiver = Server::start(&mut command_of(&dir, "far", &recv), "send");
    let sent = run_as(&dir, "near", &["send", "file", "--peer", "server"]);
    assert!(sent.status.success(), "{}", String::from_utf8_lossy(&sent.stderr));
    assert!(receiver.child.wait().expect("recv").success());
    assert_eq!(fs::read(dir.file("in/file")).expect("a file"), noise(100_000));
}

#[test]
fn a_wrong_code_ends_both_sides_and_nobody_is_stored() {
    let dir = TestDir::new("pair-wrong");
    let mut server = shows_code(&dir, "far", &[]);
    let guessed = run_as(&dir, "near", &["pair", "K7QF-3M25", "--to", words_of(&server)[2]]);
    let stderr = String::from_utf8_lossy(&guessed.stderr).into_owned();
    assert!(stderr.contains("can see a code on the command line"), "{stderr}");
    assert_eq!(guessed.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("another code") && stderr.contains("new code"), "{stderr}");
    assert_eq!(server.child.wait().expect("pair").code(), Some(1));
    // The right code comes too late.
    for home in ["near", "far"] {
        assert!(!dir.file(home).join(".config/ropewalk/peers.toml").exists(), "{home}");
    }
}

#[test]
fn slips_and_unknown_names_are_refused_with_what_would_be_right() {
    let dir = TestDir::new("pair-refused");
    fs::create_dir_all(dir.file("home/.config/ropewalk")).expect("a home");
    let peers =
        "[[peer]]\nname = \"anna\"\nkey = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\n";
    fs::write(dir.file("home/.config/ropewalk/peers.toml"), peers).expect("a list");
    fs::write(dir.file("file"), "x").expect("a file");
    for (words, hints) in [
        (&["pair", "K7QF-3M24", "--to", "127.0.0.1"][..], &["mistyped", "K7QF-3M25"][..]),
        (&["pair", "K7QF-3M2", "--to", "127.0.0.1"], &["8 characters", "has 7"]),
        (&["pair", "K7QF-3M25"], &["--to is missing"]),
        (&["pair", "--to", "127.0.0.1"], &["no code on standard input", "K7QF-3M25"]),
        (&["pair", "-"], &["no code on standard input", "K7QF-3M25"]),
        (&["pair", "--to", "127.0.0.1", "--listen", "127.0.0.1:0"], &["--listen"]),
        (&["pair", "--name", "a b"], &["letters, digits"]),
        (&["pair", "--quiet"], &["--quiet"]),
        (&["pair", "--peers", "no/such/peers.toml"], &["no directory `no/such`"]),
        (&["pair", "--listen", "192.0.2.7"], &["192.0.2.7:9899"]),
        (
            &["send", "file", "--to", "127.0.0.1", "--peer", "ann"],
            &["ann", "anna", "ropewalk pair"],
        ),
        (&["send", "file", "--peer", "anna"], &["no address of anna"]),
        (&["recv", "in", "--allow", "bob"], &["--allow bob", "anna"]),
    ] {
        let done = run_with_input(&dir, "home", words, "");
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(2), "{words:?}: {stderr}");
        for hint in hints {
            assert!(stderr.contains(hint), "{words:?}: no {hint:?} in: {stderr}");
        }
    }
}

#[test]
fn a_code_that_nobody_types_expires() {
    let dir = TestDir::new("pair-expires");
    let done =
        run_as(&dir, "home", &["pair", "--listen", "127.0.0.1:0", "--valid", "100ms", "--qr"]);
    let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(1), "{stderr}");
    for part in ["\u{2588}", "valid once, for 100", "no peer came", "new code"] {
        assert!(stderr.contains(part), "no {part:?} in: {stderr}");
    }
}

/// The near side reaches the far side through NAT.
#[test]
fn a_side_behind_a_translator_of_addresses_is_paired() {
    let dir = TestDir::new("pair-nat");
    let server = shows_code(&dir, "far", &["--json"]);
    let words = words_of(&server);
    let [inside, outside] =
        [(); 2].map(|()| Arc::new(UdpSocket::bind("127.0.0.1:0").expect("a socket")));
    let (at, far) = (inside.local_addr().expect("an address").to_string(), words[2].to_owned());
    let client = Arc::new(Mutex::new(None));
    let (there, latest) = ((inside.clone(), outside.clone()), client.clone());
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, from)) = there.0.recv_from(&mut buffer) {
            *latest.lock().expect("no panic") = Some(from);
            let _ = there.1.send_to(&buffer[..length], &far);
        }
    });
    std::thread::spawn(move || {
        let mut buffer = [0; 2048];
        while let Ok((length, _)) = outside.recv_from(&mut buffer) {
            let to = *client.lock().expect("no panic");
            let _ = to.map(|to| inside.send_to(&buffer[..length], to));
        }
    });
    // The text of the QR code, with the address of the NAT.
    let code = format!("ropewalk:{}@{at}", code_of(&server));
    let near = ["pair", "-", "--as", "server", "--json"];
    let near = document(&run_with_input(&dir, "near", &near, &code));
    // It stores the address from which the far side answered.
    assert_eq!((&near["name"], &near["addresses"]), (&"server".into(), &serde_json::json!([at])));
}
