//! C programs that use the API, with the library preloaded and linked. `make test-memory` also runs them with the
//! address sanitizer.

use std::path::Path;

use ropewalk_interop::or_skip;

use crate::support::{
    Running, compiled, free_udp_ports, library, preloaded, sanitizer, sanitizer_options,
};

fn directory() -> String {
    library().parent().map(|path| path.display().to_string()).unwrap_or_default()
}

/// Runs a program that prints "done" at its end. Returns its standard error.
fn run(program: &Path, preload: bool) -> String {
    let [own, child] = free_udp_ports();
    let mut command = preloaded(program, own, own);
    command.env("CHILD_UDP_PORT", child.to_string());
    // A child of these programs leaks the state of its parent.
    let name = program.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let forks = ["process", "background"].iter().any(|other| name.starts_with(other));
    command.env("ASAN_OPTIONS", sanitizer_options(sanitizer().is_some() && !forks));
    if !preload {
        command.env_remove("LD_PRELOAD").env("LD_LIBRARY_PATH", directory());
    }
    let ended = Running::start(&mut command).end();
    assert!(ended.status.success() && ended.stdout == "done\n", "{ended:?}");
    ended.stderr
}

/// Compiles a program against the library, and runs it both linked and preloaded.
fn check(name: &str) -> String {
    let directory = directory();
    let program = match compiled(name, &["-L", &directory, "-lropewalk"]) {
        Ok(program) => program,
        Err(missing) => {
            eprintln!("skipped: {missing}");
            return String::new();
        }
    };
    // The program needs the library for its functions. If it is preloaded, it also precedes the C
    // library.
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
fn each_call_in_each_state_returns_what_the_kernel_returns() {
    assert_eq!(check("states"), "");
}

#[test]
fn each_call_in_each_state_of_a_one_to_many_socket_returns_what_linux_returns() {
    assert_eq!(check("states_of_many"), "");
}

#[test]
fn listening_sockets_of_one_program_reach_each_other() {
    assert_eq!(check("listeners"), "");
}

#[test]
fn sockets_share_a_port_as_the_kernels_do() {
    assert_eq!(check("sharing"), "");
}

#[test]
fn short_messages_have_room_beside_a_long_one_of_another_stream() {
    assert_eq!(check("short_beside_long"), "");
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
fn a_program_is_told_what_was_not_delivered_and_why_an_association_has_ended() {
    assert_eq!(check("undelivered"), "");
}

#[test]
fn messages_and_associations_that_end_early_do_not_look_complete() {
    assert_eq!(check("endings"), "");
}

#[test]
fn calls_that_open_associations_wait_for_the_outcome_and_addresses_return() {
    assert_eq!(check("connecting"), "");
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
fn programs_are_told_what_peers_say_in_the_handshake_and_idle_associations_end() {
    assert_eq!(check("indications"), "");
}

#[test]
fn messages_of_lower_priority_make_room_for_others_and_are_counted() {
    assert_eq!(check("priority"), "");
}

#[test]
fn one_to_many_sockets_open_tell_and_give_away_associations() {
    assert_eq!(check("one_to_many"), "");
}

#[test]
fn associations_of_a_socket_have_options_of_their_own_and_messages_to_all_arrive_at_each() {
    assert_eq!(check("associations"), "");
}

#[test]
fn threads_end_in_calls_and_leave_the_sockets_to_others() {
    assert_eq!(check("cancellation"), "");
}

#[test]
fn a_program_that_sends_only_when_the_socket_is_writable_sends_everything() {
    assert_eq!(check("writable"), "");
}

#[test]
fn memory_of_the_program_is_touched_within_the_lengths_that_it_states() {
    assert_eq!(check("memory"), "");
}

#[test]
fn children_are_refused_and_threads_are_safe() {
    let told = check("process");
    assert!(told.is_empty() || told.contains("has inherited an SCTP socket"), "{told}");
}

#[test]
fn programs_are_told_that_children_and_the_background_have_no_sockets() {
    let told = check("background");
    let count = |part: &str| told.lines().filter(|line| line.contains(part)).count();
    let skipped = told.is_empty();
    assert_eq!(told.lines().count(), if skipped { 0 } else { 4 }, "{told}");
    assert!(skipped || count("has inherited an SCTP socket") == 1, "{told}");
    assert!(skipped || count("cannot go to the background (EOPNOTSUPP)") == 1, "{told}");
    assert!(skipped || count("its child lives on without its SCTP sockets") == 2, "{told}");
}

/// The library is preloaded, so executed programs load it too. It explains their failures, and prints nothing about
/// programs that use no inherited socket.
#[test]
fn executed_programs_are_refused_sockets_and_take_nothing_from_their_owner() {
    let program = or_skip!(compiled("executed", &[]));
    let told = run(&program, true);
    std::fs::remove_file(&program).expect("it is ours");
    let lines: Vec<&str> = told.lines().collect();
    let (first, rest) = lines.split_first().expect("it says something");
    assert_eq!(*first, "quiet until here", "{told}");
    let why = rest.iter().filter(|line| line.contains("has inherited an SCTP socket"));
    // Five programs, each executed in two ways.
    assert_eq!(why.count(), 10, "{told}");
}

#[test]
fn a_program_for_the_kernels_sockets_runs_with_the_library_preloaded() {
    // Not linked with the library: only the functions of the C library are replaced.
    let program = or_skip!(compiled("one_to_one", &[]));
    assert_eq!(run(&program, true), "");
    std::fs::remove_file(&program).expect("it is ours");
}
