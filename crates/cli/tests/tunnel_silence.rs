//! What a client says while its hub does not answer. Needs Linux and root; otherwise says so and passes.
#![cfg(target_os = "linux")]

use nix::sys::signal::Signal;

use crate::tunnel::{HOST, Hosts, echo};

#[test]
fn a_hub_that_does_not_answer_is_told_soon_and_once_with_what_may_be_wrong() {
    let Some(hosts) = Hosts::new() else { return };
    let (client, hub) = (hosts.dir.key("client.key"), hosts.dir.key("hub.key"));
    echo(&hosts, "i");
    let up = hosts.connect(&hub, &[]);
    let hint = "no answer from the hub yet";
    hosts.wait_for("told", || up.said().contains(hint));
    assert!(!up.said().contains("no connection to the hub"), "{}", up.said());
    let serve = hosts.serve(&[&client], &[]);
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    let said = up.said();
    assert_eq!([said.matches(hint).count(), said.matches("hub answers again").count()], [1, 1]);
}

#[test]
fn a_hub_that_becomes_silent_and_answers_again_is_told_once_each() {
    let Some(hosts) = Hosts::new() else { return };
    let (serve, up) = hosts.bring_up(&[]);
    serve.signal(Signal::SIGSTOP);
    // Something must be sent, and the old association ends after some seconds.
    hosts.wait_for("silent", || {
        let _ = hosts.answers("c", HOST);
        up.said().contains("hub silent")
    });
    serve.signal(Signal::SIGCONT);
    hosts.wait_for("answered", || up.said().contains("hub answers again"));
    hosts.wait_for_answer(HOST, &[&serve, &up]);
    let said = up.said();
    for event in ["hub silent", "hub answers again"] {
        assert_eq!(said.matches(event).count(), 1, "{event}: {said}");
    }
    // At most the old association: attempts that were given up are none.
    assert!(said.matches("association closed").count() <= 1, "{said}");
}
