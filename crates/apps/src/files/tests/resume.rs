use std::fs;
use std::io::Write;

use proptest::prelude::*;

use super::transfer::noise;
use super::*;
use crate::files::test_support::tree;

/// Data in transit when the link was cut, bytes: blocks of the sender and batches of the receiver.
const ON_ITS_WAY: u64 = 3 << 20;

#[test]
fn a_large_file_goes_on_where_it_was_cut() {
    let dir = TempDir::new("large");
    dir.write("large", &noise(20 << 20, 3));
    let cut = Some(6 << 20);
    let outcome = transfer(&dir, &["large"], &[cut, cut, cut, cut, None], false);
    assert_eq!((&outcome.sent, &outcome.received), (&Ok(()), &Ok(())));
    assert_eq!(dir.read("to/large"), noise(20 << 20, 3));
    let resumed =
        outcome.events.iter().filter(|event| matches!(event, TransferEvent::Resumed(..))).count();
    assert!(resumed >= 3, "{:?}", outcome.events);
    let moved = outcome.progress.moved;
    assert!(moved <= (20 << 20) + 4 * ON_ITS_WAY, "{moved} bytes were sent");
}

#[test]
fn files_that_are_done_are_not_spoken_of_again() {
    let dir = TempDir::new("rest");
    for n in 0..40 {
        dir.write(&format!("from/{n:02}"), &noise(200_000, n));
    }
    let cut = Some(5_000_000);
    let outcome = transfer(&dir, &["from"], &[cut, None], false);
    assert_eq!(outcome.sent, Ok(()));
    assert_eq!(tree(&dir.path("to/from")), tree(&dir.path("from")));
    assert_eq!(outcome.progress.placed, 8_000_000);
}

#[test]
fn a_sender_that_is_started_again_goes_on_as_well() {
    let dir = TempDir::new("again");
    dir.write("large", &noise(8 << 20, 4));
    let first = transfer(&dir, &["large"], &[Some(6 << 20)], false);
    assert!(matches!(first.sent, Err(SendError::Unreachable(_))), "{:?}", first.sent);
    assert!(!dir.path("to/large").exists());
    let second = transfer(&dir, &["large"], &[None], false);
    assert_eq!(second.sent, Ok(()));
    assert!(matches!(second.events[1], TransferEvent::Resumed(..)), "{:?}", second.events);
    assert!(second.progress.moved < 5 << 20, "{} bytes were sent", second.progress.moved);
    assert_eq!(dir.read("to/large"), noise(8 << 20, 4));
    assert!(!dir.path("to/.ropewalk").exists());
}

#[test]
fn a_beginning_that_is_not_the_senders_is_sent_again() {
    let dir = TempDir::new("other");
    dir.write("large", &noise(4 << 20, 5));
    let first = transfer(&dir, &["large"], &[Some(3 << 20)], false);
    assert!(first.sent.is_err());
    let parts = fs::read_dir(dir.path("to/.ropewalk")).expect("unfinished files");
    let mut parts = parts.map(|part| part.expect("a part").path());
    let part = parts.find(|path| path.extension().is_some_and(|e| e == "part")).expect("one");
    let mut bytes = fs::read(&part).expect("a part");
    bytes[1000] ^= 1;
    fs::write(&part, bytes).expect("written");
    let second = transfer(&dir, &["large"], &[None], false);
    assert_eq!(second.sent, Ok(()));
    assert_eq!(second.progress.moved, 4 << 20);
    assert_eq!(dir.read("to/large"), noise(4 << 20, 5));
}

#[test]
fn a_file_that_has_grown_in_between_goes_on_and_arrives_as_it_is_now() {
    let dir = TempDir::new("grown");
    dir.write("log", &noise(4 << 20, 6));
    assert!(transfer(&dir, &["log"], &[Some(3 << 20)], false).sent.is_err());
    let mut file = fs::File::options().append(true).open(dir.path("log")).expect("a file");
    file.write_all(&noise(1 << 20, 7)).expect("written");
    let second = transfer(&dir, &["log"], &[None], false);
    assert_eq!(second.sent, Ok(()));
    assert!(second.progress.moved < 4 << 20, "{}", second.progress.moved);
    assert_eq!(dir.read("to/log"), dir.read("log"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn however_often_it_is_cut_everything_arrives_once(
        sizes in prop::collection::vec(prop_oneof![0usize..3000, 200_000usize..1_500_000], 1..12),
        cuts in prop::collection::vec(12u64..3_000_000, 0..6),
    ) {
        let dir = TempDir::new("cuts");
        for (n, size) in sizes.iter().enumerate() {
            dir.write(&format!("from/{}/{n}", n % 3), &noise(*size, n as u64));
        }
        let plan: Vec<_> = cuts.iter().map(|cut| Some(*cut)).chain([None]).collect();
        let outcome = transfer(&dir, &["from"], &plan, false);
        prop_assert_eq!(outcome.sent, Ok(()));
        prop_assert_eq!(outcome.failures, []);
        prop_assert_eq!(tree(&dir.path("to/from")), tree(&dir.path("from")));
        let all: usize = sizes.iter().sum();
        prop_assert!(outcome.progress.moved <= all as u64 + cuts.len() as u64 * ON_ITS_WAY);
        prop_assert!(!dir.path("to/.ropewalk").exists());
    }
}

/// A hub of tunnels or another service accepts the association of a sender and ends it.
#[test]
fn a_peer_that_ends_each_association_without_a_message_is_named_as_another_service() {
    let dir = TempDir::new("other-service");
    dir.write("file", b"1");
    let job = Arc::new(Job::new(Manifest::of(&[dir.path("file")], false).expect("sources")));
    let (watch, events) = status_with_log();
    let ends = Ends::new(&[None; 20]);
    let sent = runtime().block_on(async {
        let other = async {
            while let Some(link) = ends.accept().await {
                Figures::abort(&link);
            }
        };
        tokio::select! {
            sent = send(&ends, &job, &watch, Duration::from_secs(60)) => sent,
            () = other => panic!("the sender holds the other end"),
        }
    });
    assert_eq!(sent, Err(SendError::OtherService));
    assert!(sent.unwrap_err().is_refusal());
    let events = events.lock();
    let attempts = events.iter().filter(|event| matches!(event, TransferEvent::Connected(_)));
    assert_eq!(attempts.count(), 5);
}
