//! The C header declares what the library defines.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use ropewalk_interop::or_skip;

use crate::support::{installed, library};

const HEADER: &str = include_str!("../include/netinet/sctp.h");

/// The functions that the header declares.
fn declared() -> BTreeSet<String> {
    let after_int = HEADER.lines().filter_map(|line| line.strip_prefix("int "));
    after_int.filter_map(|rest| rest.split('(').next()).map(str::to_owned).collect()
}

#[test]
fn the_header_declares_each_function_of_the_library() {
    or_skip!(installed("nm", "binutils"));
    let shown = Command::new("nm").args(["-D", "--defined-only"]).arg(library()).output();
    let shown = String::from_utf8(shown.expect("nm").stdout).expect("text");
    let names = shown.lines().filter_map(|line| line.split_whitespace().nth(2));
    let defined: BTreeSet<String> =
        names.filter(|name| name.starts_with("sctp_")).map(str::to_owned).collect();
    assert!(defined.len() > 10, "{shown}");
    assert_eq!(declared(), defined);
}

#[test]
fn the_header_agrees_with_that_of_lksctp_tools() {
    or_skip!(installed("cc", "gcc"));
    if !Path::new("/usr/include/netinet/sctp.h").is_file() {
        eprintln!("skipped: /usr/include/netinet/sctp.h (package libsctp-dev)");
        return;
    }
    // Two declarations of one function must agree.
    let source = "#include \"include/netinet/sctp.h\"\n#define HAVE_SCTP_SENDV 1\n\
                  #include </usr/include/netinet/sctp.h>\nint main(void) { return 0; }\n";
    let mut command = Command::new("cc");
    command.args(["-x", "c", "-fsyntax-only", "-"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("cc");
    std::io::Write::write_all(&mut child.stdin.take().expect("piped"), source.as_bytes())
        .expect("cc reads");
    let ended = child.wait_with_output().expect("cc");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!said.contains("conflicting types"), "{said}");
}
