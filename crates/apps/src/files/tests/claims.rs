//! Neither end reports more than is true, regardless of what its peer sends.

use std::fs;

use proptest::prelude::*;

use super::hostile::{answered, bytes_of, entry, frames, listed, say_stages};
use super::*;
use crate::files::wire::{Decoder, Entry, Frame, Kind, WireItem, encode, frame_header};
use bytes::Bytes;

const CONTENT: [u8; 10] = [1; 10];

fn whole(place: u32, content: &[u8]) -> Vec<u8> {
    let mut bytes = frames(&[Frame::Begin(place, 0)]);
    bytes.extend_from_slice(&frame_header(content.len()));
    bytes.extend_from_slice(content);
    encode(&Frame::End(blake3::hash(content).into()), &mut bytes);
    bytes
}

fn list() -> Vec<Entry> {
    vec![
        entry("a", Kind::File(10)),
        entry("b", Kind::File(0)),
        entry("c", Kind::Folder),
        entry("d", Kind::File(10)),
    ]
}

/// A directory in which the last file of the list exists as the sender lists it.
fn dir_with_one_file() -> TempDir {
    let dir = TempDir::new("claims");
    dir.write("to/d", &CONTENT);
    let file = fs::File::options().write(true).open(dir.path("to/d")).expect("a file");
    file.set_modified(std::time::UNIX_EPOCH).expect("a time");
    dir
}

#[test]
fn entries_that_the_sender_does_not_mention_are_failures() {
    let dir = dir_with_one_file();
    let bytes = [whole(0, &CONTENT), frames(&[Frame::EndOfTransfer])].concat();
    let stages = [&bytes_of(&listed(list()))[..], &bytes];
    let ((heard, _), summary) = say_stages(&dir, &stages, 4, Rules::default());
    assert_eq!(heard.last(), Some(&Frame::Finished(1, 2)), "{heard:?}");
    let summary = summary.expect("a summary");
    assert_eq!((summary.received, summary.same, summary.not_sent), (1, 0, 2));
    assert_eq!(summary.failures.len(), 2, "{:?}", summary.failures);
}

#[test]
fn a_file_that_exists_is_offered_for_comparison_and_only_the_right_hash_makes_it_the_same() {
    for (hash, overwrite, end) in [
        (blake3::hash(&CONTENT), false, Frame::Finished(1, 2)),
        (blake3::hash(b"other"), false, Frame::Finished(0, 3)),
        (blake3::hash(b"other"), true, Frame::Finished(0, 3)),
    ] {
        let dir = dir_with_one_file();
        let bytes = frames(&[Frame::Check(3, hash.into()), Frame::EndOfTransfer]);
        let stages = [&bytes_of(&listed(list()))[..], &bytes];
        let rules = Rules { overwrite, ..Rules::default() };
        let ((heard, _), _) = say_stages(&dir, &stages, 4, rules);
        assert!(heard.contains(&Frame::Exists), "{heard:?}");
        assert_eq!(heard.last(), Some(&end), "{heard:?}");
    }
}

#[test]
fn nothing_is_told_of_a_file_that_did_not_come_from_the_sender_but_that_its_name_is_taken() {
    let mut said = Vec::new();
    for (content, modified) in [(&CONTENT[..], 5), (b"longer than listed", 0), (b"", 0)] {
        let dir = dir_with_one_file();
        dir.write("to/d", content);
        let file = fs::File::options().write(true).open(dir.path("to/d")).expect("a file");
        let time = std::time::UNIX_EPOCH + Duration::from_secs(modified);
        file.set_modified(time).expect("a time");
        let stages = [&bytes_of(&listed(list()))[..], &frames(&[Frame::EndOfTransfer])];
        let ((heard, _), _) = say_stages(&dir, &stages, 4, Rules::default());
        said.push(heard);
    }
    assert!(matches!(said[0][2], Frame::Refused(_)), "{said:?}");
    assert!(said.windows(2).all(|two| two[0] == two[1]), "{said:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Messages in any order, with numbers from a small range so that they often match.
    #[test]
    fn no_order_of_messages_makes_the_receiver_claim_what_is_not_on_disk(
        script in prop::collection::vec((0u8..11, 0u32..5, 0u64..12), 0..20),
        overwrite: bool,
        ends: bool,
    ) {
        let dir = dir_with_one_file();
        let mut bytes = Vec::new();
        for (kind, index, number) in script {
            let frame = match kind {
                0 => Frame::Begin(index, 0),
                1 => Frame::Begin(index, number),
                2 => Frame::End(blake3::hash(&CONTENT).into()),
                3 => Frame::Check(index, blake3::hash(&CONTENT).into()),
                4 => Frame::Skip(index, "no".into()),
                5 => Frame::Check(index, [7; 32]),
                6 => Frame::Alive(number, 0),
                7 => Frame::EndOfTransfer,
                8..=9 => {
                    let content = if index == 1 { &CONTENT[..0] } else { &CONTENT };
                    bytes.extend_from_slice(&whole(index, content));
                    continue;
                }
                _ => {
                    bytes.extend_from_slice(&frame_header(number as usize));
                    bytes.extend_from_slice(&vec![1; number as usize]);
                    continue;
                }
            };
            encode(&frame, &mut bytes);
        }
        if ends {
            encode(&Frame::EndOfTransfer, &mut bytes);
        }
        let stages = [&bytes_of(&listed(list()))[..], &bytes];
        let rules = Rules { overwrite, ..Rules::default() };
        let ((heard, _), summary) = say_stages(&dir, &stages, 4, rules);
        prop_assert_eq!(fs::read_dir(dir.path("")).expect("a room").count(), 1);
        prop_assert_eq!(dir.read("to/d"), CONTENT);
        let wanted = [("to/a", &CONTENT[..]), ("to/b", b""), ("to/d", &CONTENT)];
        let there = wanted.iter().filter(|(name, content)| {
            fs::read(dir.path(name)).is_ok_and(|found| found == *content)
        });
        let there = there.count() as u32;
        if let Some(summary) = summary {
            prop_assert!(summary.done() <= there, "{:?}", summary);
            prop_assert_eq!(summary.done() + summary.missing(), 3, "{:?}", summary);
            prop_assert_eq!(heard.last(), Some(&Frame::Finished(summary.done(), summary.missing())));
        }
        prop_assert!(!dir.path("to/a").exists() || dir.read("to/a") == CONTENT);
    }
}

/// Runs a sender of two files against a receiver that sends these bytes after the list and then only `Alive`. Returns
/// the sender's result, and the places that it has sent or checked.
fn sender_receives(dir: &TempDir, bytes: &[u8]) -> (Result<(), SendError>, Arc<Job>, Vec<u32>) {
    dir.write("from/a", &CONTENT);
    dir.write("from/b", b"");
    let job = Arc::new(Job::new(Manifest::of(&[dir.path("from")], false).expect("sources")));
    let ends = Ends::new(&[None]);
    let watch = Arc::new(TransferStatus::new(|_| ()));
    let offered = Mutex::new(Vec::new());
    let sent = runtime().block_on(async {
        let receiver = async {
            let Some(link) = ends.accept().await else { return };
            let (mut messages, mut decoder) = (Vec::new(), Decoder::default());
            let mut said = false;
            loop {
                messages.clear();
                link.receive_all(&mut messages).await;
                if messages.is_empty() {
                    return;
                }
                for mut message in messages.drain(..) {
                    while let Ok(Some(item)) = decoder.next(&mut message) {
                        let mut offered = offered.lock();
                        if let WireItem::Frame(Frame::Begin(place, _) | Frame::Check(place, _)) =
                            item
                        {
                            offered.push(place);
                        }
                    }
                }
                let all = [&bytes_of(&[])[..], bytes].concat();
                let alive = frames(&[Frame::Alive(0, 0)]);
                let next = if std::mem::replace(&mut said, true) { alive } else { all };
                let messages: Vec<_> = next.chunks(MESSAGE).map(Bytes::copy_from_slice).collect();
                let _ = link.send_all(&mut messages.into_iter()).await;
            }
        };
        tokio::select! {
            sent = send(&ends, &job, &watch, Duration::ZERO) => sent,
            () = receiver => Err(SendError::Lost("cut".into())),
        }
    });
    (sent, job, offered.into_inner())
}

#[test]
fn a_receiver_that_claims_files_which_were_never_sent_is_found_out() {
    for (said, why) in [
        (vec![Frame::Done(1)], "not sent"),
        (vec![Frame::Made(1), Frame::Done(1), Frame::Done(2), Frame::Finished(2, 0)], "not sent"),
        (vec![Frame::Finished(2, 0)], "without all entries"),
        (vec![Frame::Made(1), Frame::Differs(1)], "not requested"),
        (vec![Frame::Made(9)], "more answers"),
        (vec![Frame::Done(9)], "not on the list"),
    ] {
        let dir = TempDir::new("claiming");
        let (sent, job, _) = sender_receives(&dir, &frames(&said));
        let Err(SendError::Transfer(error)) = sent else { panic!("{said:?}: {sent:?}") };
        assert!(error.to_string().contains(why), "{said:?}: {error}");
        assert_eq!(job.files_done(), 0);
    }
}

#[test]
fn what_a_receiver_says_is_shown_escaped_and_with_its_origin() {
    let dir = TempDir::new("escapes");
    let hostile = "\x1b]0;owned\x07";
    let said = [Frame::Made(1), Frame::Refused(hostile.into()), Frame::Failed(2, hostile.into())];
    let (_, job, _) =
        sender_receives(&dir, &frames(&[&said[..], &[Frame::Finished(0, 2)]].concat()));
    let shown: Vec<_> = job.failures().iter().map(|(_, why)| why.to_string()).collect();
    assert_eq!(shown, ["receiver: \\u{1b}]0;owned\\u{7}"; 2]);
    let (sent, _, _) = sender_receives(&dir, &frames(&[Frame::Error(hostile.into())]));
    let shown = sent.expect_err("it gave up").to_string();
    assert!(shown.contains("the other side gave up") && !shown.contains('\x1b'), "{shown}");
}

#[test]
fn a_receiver_that_is_alive_and_moves_nothing_is_given_up() {
    let dir = TempDir::new("idle-receiver");
    // Growing numbers do not count as progress beyond the size of the transfer.
    let alive: Vec<_> = (0..50).map(|n| Frame::Alive(n << 40, n << 40)).collect();
    let (sent, _, _) = sender_receives(&dir, &frames(&alive));
    assert!(matches!(sent, Err(SendError::Transfer(TransferError::Stalled(_)))), "{sent:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_receiver_makes_a_sender_count_what_it_has_not_sent(
        script in prop::collection::vec((0u8..8, 0u32..4), 0..12),
    ) {
        let dir = TempDir::new("receiver-script");
        let mut said: Vec<Frame> = script.into_iter().map(|(kind, index)| match kind {
            0 => Frame::Made(index),
            1 => Frame::Fresh(index),
            2 => Frame::Exists,
            3 => Frame::Done(index),
            4 => Frame::Failed(index, "no".into()),
            5 => Frame::Differs(index),
            6 => Frame::Partial(u64::from(index), [9; 32]),
            _ => Frame::Refused("no".into()),
        }).collect();
        said.push(Frame::Finished(2, 0));
        let (sent, job, offered) = sender_receives(&dir, &frames(&said));
        prop_assert!(job.files_done() as usize <= offered.len(), "{:?}: {:?}", said, offered);
        if sent.is_ok() {
            prop_assert_eq!(job.files_pending(), 0);
            // The failures may also contain the folder.
            let failures = job.failures();
            let files = failures.iter().filter(|(name, _)| name.to_string() != "from").count();
            prop_assert_eq!(job.files_done() as usize + files, 2, "{:?}", failures);
        }
        prop_assert!(answered(&said) > 0 || sent.is_err());
    }
}
