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
    // `once` of the file ends the receiver.
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
    ] {
        let schema = schema(words);
        assert_eq!(schema["additionalProperties"], false);
        let found = &schema["properties"][option]["type"];
        assert!(found == kind || found[0] == kind, "{words:?} {option}: {found}");
        assert!(schema["properties"]["config"].is_null());
    }
    dir.ropewalk(&["schema", "--config", "run"]).refused(&["`run`", "recv"]);
}
