//! `ropewalk preload`: programs with Ropewalk's sockets.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use ropewalk_runtime::endpoint::RawError;

use crate::support::TestDir;

#[test]
fn the_library_is_found_beside_the_command() {
    let dir = TestDir::new("preload-library");
    let shown = dir.ropewalk(&["preload", "--library"]).good();
    let path = shown.stdout().trim_end();
    assert!(path.ends_with("/libropewalk.so") && Path::new(path).is_file(), "{path}");
}

#[test]
fn a_program_gets_the_library_and_the_options() {
    let dir = TestDir::new("preload-options");
    let script = "echo $LD_PRELOAD $ROPEWALK_ENCAPSULATION $ROPEWALK_UDP_PORT $ROPEWALK_PEER_UDP_PORT $ROPEWALK_AVOID \
                  $ROPEWALK_SCHEDULER $ROPEWALK_RECEIVE_BUFFER";
    let options =
        ["--udp-port", "9000", "--peer-udp-port", "9001", "--avoid", "wg0", "--avoid", "eth1"];
    let more = ["--scheduler", "min-rtt", "--receive-buffer", "1 MiB", "--", "sh", "-c", script];
    let words = [&["preload"], &options[..], &more[..]].concat();
    let shown = dir.ropewalk(&words).good();
    let (library, rest) = shown.stdout().split_once(' ').expect("words");
    assert!(library.ends_with("/libropewalk.so"), "{library}");
    assert_eq!(rest, "udp 9000 9001 wg0,eth1 min-rtt 1048576\n");
}

#[test]
fn sockets_of_the_program_speak_sctp() {
    let dir = TestDir::new("preload-sockets");
    let script = "import socket\n\
                  s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)\n\
                  s.bind(('127.0.0.1', 5000))\n\
                  print(s.getsockname(), s.proto)";
    let shown = dir.ropewalk(&["preload", "--", "python3", "-c", script]).good();
    assert_eq!(shown.stdout(), "('127.0.0.1', 5000) 132\n");
}

/// Without the privilege, the program is not run; with it, it is.
#[test]
fn packets_over_ip_alone_need_a_privilege() {
    let dir = TestDir::new("preload-none");
    let words =
        ["preload", "--encapsulation", "none", "--", "sh", "-c", "echo $ROPEWALK_ENCAPSULATION"];
    match RawError::check() {
        Ok(()) => assert_eq!(dir.ropewalk(&words).good().stdout(), "none\n"),
        Err(RawError::NotPermitted) => {
            dir.ropewalk(&words).refused(&["raw sockets are not permitted", "CAP_NET_RAW"]);
        }
        Err(error) => return eprintln!("skipped: {error}"),
    }
    let without = ["--inh-caps=-net_raw", "--bounding-set=-net_raw", "--"];
    let mut setpriv = Command::new("setpriv");
    setpriv.args(without).arg(env!("CARGO_BIN_EXE_ropewalk")).args(words);
    let Ok(ended) = setpriv.output() else { return eprintln!("skipped: no `setpriv`") };
    let said = String::from_utf8_lossy(&ended.stderr);
    if said.contains("setpriv:") {
        return eprintln!("skipped: {said}");
    }
    assert_eq!(ended.status.code(), Some(2), "{said}");
    assert!(said.contains("raw sockets are not permitted") && ended.stdout.is_empty(), "{said}");
}

/// The exit statuses are those of `env`, `nice` and `timeout`.
#[test]
fn a_program_that_cannot_be_run_has_a_status_of_its_own() {
    let dir = TestDir::new("preload-cannot-run");
    fs::write(dir.file("text"), "no program").expect("it is ours");
    fs::write(dir.file("script"), "#!/no/such/interpreter\n").expect("it is ours");
    let script = dir.file("script");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("it is ours");
    let (text, script) = (dir.file("text"), script.display().to_string());
    for (program, status, why) in [
        ("no-such-program", 127, "there is no such program"),
        ("/no/such/program", 127, "there is no such program"),
        (&script, 127, "its interpreter is missing"),
        (&text.display().to_string(), 126, "it is not executable"),
        ("/tmp", 126, "it is a directory"),
    ] {
        let ended = dir.ropewalk(&["preload", "--", program]);
        assert_eq!((ended.status(), ended.stdout()), (status, ""), "{program}");
        let said = ended.stderr();
        assert!(said.contains(&format!("cannot run `{program}`: {why}")), "{said}");
    }
}

/// Programs of another group, whose loader ignores the library, and statically linked programs.
#[test]
fn a_program_that_the_library_does_not_reach_is_noted_and_run() {
    let dir = TestDir::new("preload-no-effect");
    let run = |program: &Path, quiet: bool| {
        let program = program.display().to_string();
        let quiet: &[&str] = if quiet { &["--quiet"] } else { &[] };
        dir.ropewalk(&[&["preload"], quiet, &["--", &program]].concat()).good().stderr().to_owned()
    };
    let copy = dir.file("true");
    fs::copy("/bin/true", &copy).expect("there is one");
    assert_eq!(run(&copy, false), "");
    let own = fs::metadata(&copy).expect("it is ours").gid();
    if std::os::unix::fs::chown(&copy, None, Some(own + 1)).is_err() {
        return eprintln!("skipped: a file cannot be given to another group");
    }
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o2755)).expect("it is ours");
    let why = format!(
        "warning: `ropewalk preload` has no effect: {} has the set-group-ID",
        copy.display()
    );
    assert!(run(&copy, false).starts_with(&why), "{}", run(&copy, false));
    assert_eq!(run(&copy, true), "");
}

#[test]
fn an_avoided_interface_that_is_not_there_is_noted() {
    let dir = TestDir::new("preload-avoid");
    let said =
        dir.ropewalk(&["preload", "--avoid", "nosuch0", "--avoid", "lo", "--", "true"]).good();
    assert!(said.stderr().starts_with("note: --avoid nosuch0: no interface of this name"));
    assert!(!said.stderr().contains("--avoid lo"), "{}", said.stderr());
}

#[test]
fn a_missing_program_or_a_wrong_port_is_refused() {
    let dir = TestDir::new("preload-refused");
    dir.ropewalk(&["preload"]).refused(&["PROGRAM"]);
    dir.ropewalk(&["preload", "iperf3", "-s"]).refused(&["'-- iperf3 ...'"]);
    for option in ["--udp-port", "--client-udp-port", "--peer-udp-port"] {
        let words = ["preload", "--encapsulation", "none", option, "5000", "--", "true"];
        dir.ropewalk(&words).refused(&[option, "no UDP ports"]);
    }
    dir.ropewalk(&["preload", "--encapsulation", "tcp", "--", "true"]).refused(&["udp, none"]);
    dir.ropewalk(&["preload", "--udp-port", "0", "--", "true"]).refused(&["--udp-port"]);
}
