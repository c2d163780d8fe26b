//! `--secrets-file`: authenticated chunks between `bench`, `send` and `recv` without sealing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::support::{TestDir, noise};

/// Longer than it takes for any note to appear.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program whose notes are read while it runs.
struct Noted {
    child: Child,
    notes: Receiver<String>,
}

impl Noted {
    fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command");
        let said = BufReader::new(child.stderr.take().expect("stderr"));
        let (send, notes) = channel();
        std::thread::spawn(move || {
            said.lines().map_while(Result::ok).try_for_each(|line| send.send(line).ok())
        });
        Self { child, notes }
    }

    /// Waits for a note with this text.
    fn note(&self, part: &str) -> String {
        loop {
            let line = self.notes.recv_timeout(PATIENCE).expect(part);
            if line.contains(part) {
                return line;
            }
        }
    }

    /// The printed command for the other side, as words after `ropewalk`, with these files.
    fn line(&self, other: &str, file: &str) -> Vec<String> {
        let line = self.note(&format!("ropewalk {other}"));
        let words = line.split_whitespace().skip_while(|word| *word != "ropewalk").skip(1);
        words.map(|word| if word == "FILES" { file } else { word }.to_owned()).collect()
    }
}

impl Drop for Noted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Home(TestDir);

impl Home {
    /// A directory with two files of different secrets.
    fn new(name: &str) -> Self {
        let dir = TestDir::new(&format!("secrets-{name}"));
        for file in ["right", "wrong"] {
            dir.ropewalk(&["keygen", "--secrets", file]).good();
        }
        Self(dir)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ropewalk"));
        command.args(words).current_dir(self.0.file(".")).env("HOME", self.0.file("."));
        command
    }

    fn serve(&self, more: &[&str]) -> Noted {
        let words = ["bench", "serve", "--plain", "--once", "--listen", "127.0.0.1:0"];
        Noted::start(&mut self.command(&[&words[..], more].concat()))
    }

    /// Runs a command with another secret file instead of the one that the server has printed.
    fn run(&self, line: &[String], secrets: Option<&str>, more: &[&str]) -> Output {
        let mut words: Vec<&str> = Vec::new();
        let mut line = line.iter().map(String::as_str);
        while let Some(word) = line.next() {
            match word {
                "--secrets-file" => {
                    assert_eq!(line.next(), Some("right"));
                    words.extend(secrets.iter().flat_map(|file| ["--secrets-file", file]));
                }
                _ => words.push(word),
            }
        }
        self.command(&[&words[..], more].concat()).output().expect("the command")
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn ends_with_the_same_secrets_measure_and_send_files() {
    let home = Home::new("same");
    for more in [&[][..], &["--authenticate", "data"], &["--extension", "nr-sack,interleaving"]] {
        let server = home.serve(&[&["--secrets-file", "right"], more].concat());
        let line = server.line("bench run", "");
        let done = home.run(&line, Some("right"), &["--time", "300 ms", "--warmup", "0 s"]);
        assert!(done.status.success(), "{more:?}: {}", stderr(&done));
        assert!(!stderr(&done).contains("without a valid code"), "{}", stderr(&done));
    }
    fs::write(home.0.file("file"), noise(3_000_000)).expect("a file");
    let words = ["recv", "in", "--once", "--plain", "--listen", "127.0.0.1:0"];
    let words = [&words[..], &["--secrets-file", "right"]].concat();
    let mut receiver = Noted::start(&mut home.command(&words));
    let done = home.run(&receiver.line("send", "file"), Some("right"), &[]);
    assert!(done.status.success(), "{}", stderr(&done));
    assert!(receiver.child.wait().expect("recv").success());
    assert_eq!(fs::read(home.0.file("in/file")).expect("it arrived"), noise(3_000_000));
}

/// Secrets are replaced at one end at a time.
#[test]
fn a_second_secret_of_the_file_is_accepted() {
    let home = Home::new("second");
    let [one, other] = ["right", "wrong"].map(|name| {
        let text = fs::read_to_string(home.0.file(name)).expect("secrets");
        text.trim_start_matches("1 ").to_owned()
    });
    for (name, text) in
        [("right", format!("1 {one}2 {other}")), ("wrong", format!("2 {other}1 {one}"))]
    {
        fs::write(home.0.file(name), text).expect("secrets");
    }
    let server = home.serve(&["--secrets-file", "right"]);
    let line = server.line("bench run", "");
    let done = home.run(&line, Some("wrong"), &["--time", "300 ms", "--warmup", "0 s"]);
    assert!(done.status.success(), "{}", stderr(&done));
}

#[test]
fn an_end_with_another_secret_or_none_gets_no_answer_and_both_are_told() {
    let home = Home::new("other");
    fs::write(home.0.file("file"), noise(1000)).expect("a file");
    for (secrets, extension) in
        [(Some("wrong"), &[][..]), (None, &["--extension", "authentication"]), (None, &[])]
    {
        let words = ["recv", "in", "--plain", "--listen", "127.0.0.1:0", "--secrets-file", "right"];
        let receiver = Noted::start(&mut home.command(&words));
        let line = receiver.line("send", "file");
        let more = [&["--retry", "1 s"], extension].concat();
        let done = home.run(&line, secrets, &more);
        assert_eq!(done.status.code(), Some(1), "{}", stderr(&done));
        if secrets.is_some() {
            assert!(stderr(&done).contains("same secrets"), "{}", stderr(&done));
        }
        receiver.note("without a valid code were discarded: does the peer have the same secrets");
        assert!(!home.0.file("in/file").exists());
    }
    // A client with secrets refuses a server without them.
    let server = home.serve(&[]);
    let mut client = Noted::start(
        &mut home.command(
            &[
                server.line("bench run", "").iter().map(String::as_str).collect::<Vec<_>>(),
                vec!["--secrets-file", "right"],
            ]
            .concat(),
        ),
    );
    client.note("without a valid code were discarded");
    assert!(client.child.try_wait().expect("its status").is_none(), "it tries on");
}

#[test]
fn a_file_that_others_may_read_and_a_wrong_line_are_refused() {
    let home = Home::new("refused");
    let lines = [
        ("short", "1 secret\n", "short:1: the secret has 6 bytes"),
        ("number", "# a comment\n\na secret of both ends\n", "number:3: there is no number"),
        ("empty", "# nothing\n", "empty: there is no secret"),
        ("right", "", "right"),
    ];
    for (name, text, part) in lines {
        if !text.is_empty() {
            home.0.ropewalk(&["keygen", "--secrets", name]).good();
            fs::write(home.0.file(name), text).expect("secrets");
        }
        let words = ["bench", "serve", "--plain", "--secrets-file", name];
        if text.is_empty() {
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                let open = fs::Permissions::from_mode(0o644);
                fs::set_permissions(home.0.file(name), open).expect("its mode");
                home.0.ropewalk(&words).refused(&[part, "0644", "chmod 600 right"]);
            }
        } else {
            home.0.ropewalk(&words).refused(&[part, "help:", "keygen --secrets"]);
        }
    }
    let missing = ["bench", "serve", "--plain", "--secrets-file", "missing"];
    home.0.ropewalk(&missing).refused(&["missing", "keygen --secrets missing"]);
    let sealed = ["recv", "--secrets-file", "wrong"];
    home.0.ropewalk(&sealed).refused(&["--secrets-file needs --plain", "--psk-file"]);
}
