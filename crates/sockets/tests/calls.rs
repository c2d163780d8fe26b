//! C programs that use the API, with the library preloaded and linked.

use std::path::Path;
use std::process::Command;

use ropewalk_interop::{Missing, or_skip};

use crate::support::{Running, compiled, free_udp_ports, installed, library, preloaded};

fn directory() -> String {
    library().parent().map(|path| path.display().to_string()).unwrap_or_default()
}

/// Runs a program that says "done" at its end. Returns what it wrote to standard error.
fn run(program: &Path, preload: bool) -> String {
    let [own, child] = free_udp_ports();
    let mut command = preloaded(program, own, own);
    // A child of the test leaves the state of its parent behind.
    command.env("CHILD_UDP_PORT", child.to_string()).env("ASAN_OPTIONS", "detect_leaks=0");
    if !preload {
        command.env_remove("LD_PRELOAD").env("LD_LIBRARY_PATH", directory());
    }
    let ended = Running::start(&mut command).end();
    assert!(ended.status.success() && ended.stdout == "done\n", "{ended:?}");
    ended.stderr
}

/// Compiles a program against the library and runs it, both ways.
fn check(name: &str) -> String {
    let directory = directory();
    let program = match compiled(name, &["-L", &directory, "-lropewalk"]) {
        Ok(program) => program,
        Err(missing) => {
            eprintln!("skipped: {missing}");
            return String::new();
        }
    };
    // The program needs the library for its functions; preloaded, it comes before the C library as well.
    let linked = run(&program, false);
    let unused = std::fs::remove_file(&program);
    assert!(unused.is_ok());
    linked
}

#[test]
fn one_to_one_sockets_behave_as_the_kernels_do() {
    assert_eq!(check("one_to_one"), "");
}

#[test]
fn options_are_set_and_shown_as_the_kernel_lays_them_out() {
    assert_eq!(check("options"), "");
}

#[test]
fn streams_are_reset_and_added_and_the_program_is_told() {
    assert_eq!(check("streams"), "");
}

#[test]
fn addresses_come_and_go_while_an_association_is_used() {
    assert_eq!(check("addresses"), "");
}

#[test]
fn chunks_are_authenticated_with_the_secrets_that_programs_set() {
    assert_eq!(check("authentication"), "");
}

#[test]
fn one_to_many_sockets_open_tell_and_give_away_associations() {
    assert_eq!(check("one_to_many"), "");
}

#[test]
fn children_are_refused_and_threads_are_safe() {
    let told = check("process");
    assert!(told.is_empty() || told.contains("uses an SCTP socket of its parent"), "{told}");
}

#[test]
fn a_program_for_the_kernels_sockets_runs_with_the_library_preloaded() {
    // Linked with nothing: the functions of the C library alone are replaced.
    let program = or_skip!(compiled("one_to_one", &[]));
    assert_eq!(run(&program, true), "");
    std::fs::remove_file(&program).expect("it is ours");
}

/// Whether the compiler has the runtime of the address sanitizer.
fn sanitizer() -> Result<(), Missing> {
    installed("cc", "gcc")?;
    let found = Command::new("cc").arg("-print-file-name=libasan.so").output();
    let found = found.map_err(|error| Missing(error.to_string()))?.stdout;
    // The name alone is printed if there is no such file.
    match String::from_utf8_lossy(&found).contains('/') {
        true => Ok(()),
        false => Err(Missing("the address sanitizer of gcc (libasan)".to_owned())),
    }
}

#[test]
fn no_memory_is_touched_that_the_library_or_the_program_does_not_own() {
    // The sanitizer's allocator serves the library as well, and its checks of `memcpy` and of the program's buffers
    // surround the library's calls.
    const SANITIZED: [&str; 3] =
        ["-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"];
    let directory = directory();
    for name in [
        "one_to_one",
        "options",
        "streams",
        "addresses",
        "authentication",
        "one_to_many",
        "process",
    ] {
        let arguments = [&SANITIZED[..], &["-L", &directory, "-lropewalk"]].concat();
        or_skip!(sanitizer());
        let program = or_skip!(compiled(name, &arguments));
        let told = run(&program, false);
        assert!(!told.contains("Sanitizer"), "{told}");
        std::fs::remove_file(&program).expect("it is ours");
    }
}
