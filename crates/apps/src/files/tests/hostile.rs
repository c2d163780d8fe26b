use std::fs;

use bytes::Bytes;

use super::*;
use crate::files::wire::{
    Decoder, Entry, Frame, GREETING, Kind, Stamp, WireItem, encode, frame_header, greeting,
};

pub fn entry(name: &str, kind: Kind) -> Entry {
    let name = Name::new(name.as_bytes()).expect("a name");
    Entry { name, kind, mode: 0o644, modified: Stamp::default() }
}

pub fn bytes_of(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = greeting().to_vec();
    frames.iter().for_each(|frame| encode(frame, &mut bytes));
    bytes
}

pub fn listed(entries: Vec<Entry>) -> Vec<Frame> {
    let count = entries.len() as u32;
    let bytes = entries.iter().map(Entry::size).sum();
    vec![Frame::Entries(entries), Frame::Listed(count, bytes)]
}

/// Number of entries that the receiver has answered.
pub fn answered(heard: &[Frame]) -> usize {
    let count = |frame: &Frame| match frame {
        Frame::Fresh(count) | Frame::Made(count) => *count as usize,
        Frame::Partial(..) | Frame::Exists | Frame::Refused(_) => 1,
        _ => 0,
    };
    heard.iter().map(count).sum()
}

/// Whether the receiver has sent something final, or only `Alive` for a while.
fn enough(heard: &[Frame]) -> bool {
    let alive = heard.iter().filter(|frame| matches!(frame, Frame::Alive(..))).count();
    alive >= 2 || matches!(heard.last(), Some(Frame::Error(_) | Frame::Finished(..)))
}

/// Lists these entries to a receiver, waits for its answers and sends these bytes. Returns the receiver's frames and
/// events.
fn say(dir: &TempDir, entries: &[Entry], bytes: &[u8]) -> (Vec<Frame>, Vec<TransferEvent>) {
    let list = bytes_of(&listed(entries.to_vec()));
    say_stages(dir, &[&list, bytes], entries.len(), Rules { overwrite: true, ..Rules::default() }).0
}

/// Sends the first bytes, and the others after this number of answers. Returns the receiver's frames, events and
/// summary.
pub fn say_stages(
    dir: &TempDir,
    stages: &[&[u8]],
    entries: usize,
    rules: Rules,
) -> ((Vec<Frame>, Vec<TransferEvent>), Option<Summary>) {
    let store = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
    let admit = admit_all(&store, rules);
    let (watch, events) = status_with_log();
    let summary = Mutex::new(None);
    let heard = runtime().block_on(async {
        let (here, there) = pair(MESSAGE, None);
        let ends = Ends::new(&[]);
        ends.out.send(there).expect("a receiver");
        let is_over = std::sync::atomic::AtomicBool::new(false);
        let finished = |it: Result<Summary, String>| {
            *summary.lock() = it.ok();
            is_over.store(true, std::sync::atomic::Ordering::SeqCst);
            true
        };
        let receiving = receive(&ends, &admit, &watch, finished);
        let talking = async {
            let mut stages = stages.iter();
            let mut heard = Vec::new();
            let mut said = 0;
            let (mut messages, mut decoder) = (Vec::new(), Decoder::default());
            while !enough(&heard) {
                if (said == 0 || answered(&heard) == entries)
                    && let Some(bytes) = stages.next()
                {
                    said += 1;
                    let messages: Vec<_> =
                        bytes.chunks(MESSAGE).map(Bytes::copy_from_slice).collect();
                    let _ = here.send_all(&mut messages.into_iter()).await;
                }
                here.receive_all(&mut messages).await;
                if messages.is_empty() {
                    break;
                }
                for mut message in messages.drain(..) {
                    while let Some(item) = decoder.next(&mut message).expect("understood") {
                        if let WireItem::Frame(frame) = item {
                            heard.push(frame);
                        }
                    }
                }
            }
            here.abort();
            let lost = |item: &TransferEvent| matches!(item, TransferEvent::Lost(_));
            while !is_over.load(std::sync::atomic::Ordering::SeqCst)
                && !events.lock().iter().any(lost)
            {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            heard
        };
        tokio::select! {
            heard = talking => heard,
            result = receiving => panic!("the receiver has ended: {result:?}"),
        }
    });
    let events = events.lock().clone();
    ((heard, events), summary.into_inner())
}

pub fn frames(frames: &[Frame]) -> Vec<u8> {
    bytes_of(frames)[GREETING..].to_vec()
}

#[test]
fn a_sender_that_breaks_the_rules_is_told_so_and_the_receiver_lives() {
    let two = vec![entry("a", Kind::File(10)), entry("b", Kind::Folder)];
    let begun = frames(&[Frame::Begin(0, 0)]);
    let too_much = [&begun[..], &frame_header(11), &[0; 11]].concat();
    let unasked = [&frame_header(1)[..], &[0]].concat();
    for (bytes, said) in [
        (frames(&[Frame::Begin(7, 0)]), "not on its list"),
        (frames(&[Frame::Begin(1, 0)]), "out of order"),
        (frames(&[Frame::Begin(0, 3)]), "was not offered"),
        (frames(&[Frame::Begin(0, 0), Frame::Begin(0, 0)]), "within another"),
        (frames(&[Frame::Skip(0, "no".into()), Frame::Begin(0, 0)]), "out of order"),
        (frames(&[Frame::Check(0, [0; 32])]), "out of order"),
        (frames(&[Frame::Skip(1, "no".into())]), "out of order"),
        (frames(&[Frame::Begin(0, 0), Frame::End([0; 32])]), "before its end"),
        (frames(&[Frame::Begin(0, 0), Frame::EndOfTransfer]), "within a file"),
        (frames(&[Frame::Fresh(1)]), "out of order"),
        (frames(&[Frame::Listed(0, 0)]), "out of order"),
        (too_much, "more data"),
        (unasked, "more data"),
    ] {
        let dir = TempDir::new("rules");
        let (heard, events) = say(&dir, &two, &bytes);
        refused(&heard, &events, said);
        assert!(!dir.path("to/a").exists());
    }
}

fn refused(heard: &[Frame], events: &[TransferEvent], said: &str) {
    let told = |frame: &Frame| matches!(frame, Frame::Error(why) if why.unescaped().contains(said));
    assert!(heard.iter().any(told), "no {said}: {heard:?}");
    let lost = |item: &TransferEvent| matches!(item, TransferEvent::Lost(why) if why.unescaped().contains(said));
    assert!(events.iter().any(lost), "{said}: {events:?}");
}

#[test]
fn a_list_that_makes_no_sense_is_refused() {
    let mut other_version = bytes_of(&[]);
    other_version[GREETING - 4] = 9;
    let unsorted = listed(vec![entry("b", Kind::Folder), entry("a", Kind::Folder)]);
    let twice = listed(vec![entry("b", Kind::Folder), entry("b", Kind::Folder)]);
    let huge = vec![Frame::Entries(vec![
        entry("a", Kind::File(i64::MAX as u64)),
        entry("b", Kind::File(i64::MAX as u64)),
        entry("c", Kind::File(i64::MAX as u64)),
    ])];
    let miscounted = vec![Frame::Entries(vec![entry("a", Kind::Folder)]), Frame::Listed(2, 0)];
    for (bytes, said) in [
        (other_version, "version 9"),
        (b"GET / HTTP/1.1\r\n".to_vec(), "does not transfer files"),
        (bytes_of(&unsorted), "order of names"),
        (bytes_of(&twice), "order of names"),
        (bytes_of(&huge), "more bytes"),
        (bytes_of(&miscounted), "stated length"),
        (bytes_of(&[Frame::Begin(0, 0)]), "out of order"),
    ] {
        let dir = TempDir::new("list");
        let ((heard, events), _) = say_stages(&dir, &[&bytes], usize::MAX, Rules::default());
        refused(&heard, &events, said);
    }
}

#[cfg(unix)]
#[test]
fn links_in_the_directory_lead_nowhere_outside() {
    let dir = TempDir::new("escape");
    dir.write("outside/secret", b"precious");
    fs::create_dir(dir.path("to")).expect("a directory");
    std::os::unix::fs::symlink(dir.path("outside"), dir.path("to/door")).expect("a link");
    std::os::unix::fs::symlink(dir.path("outside/secret"), dir.path("to/alias")).expect("a link");
    let entries = vec![
        entry("alias", Kind::File(4)),
        entry("door", Kind::Folder),
        entry("door/new", Kind::File(4)),
        entry("door/secret", Kind::File(8)),
        entry("door/way", Kind::Folder),
    ];
    let mut bytes = Vec::new();
    let hash = blake3::hash(b"evil").into();
    encode(&Frame::Begin(0, 0), &mut bytes);
    bytes.extend_from_slice(&frame_header(4));
    bytes.extend_from_slice(b"evil");
    encode(&Frame::End(hash), &mut bytes);
    encode(&Frame::EndOfTransfer, &mut bytes);
    let (heard, _) = say(&dir, &entries, &bytes);
    assert_eq!(heard.last(), Some(&Frame::Finished(1, 4)), "{heard:?}");
    let inside: Vec<_> = fs::read_dir(dir.path("outside")).expect("a directory").collect();
    assert_eq!(inside.len(), 1, "{inside:?}");
    assert_eq!(dir.read("outside/secret"), b"precious");
    // With `--overwrite` the link itself was replaced, not its target.
    assert_eq!(dir.read("to/alias"), b"evil");
    assert!(fs::symlink_metadata(dir.path("to/alias")).expect("a file").is_file());
}

#[test]
fn a_file_with_another_hash_than_announced_gets_no_name() {
    let dir = TempDir::new("hash");
    let mut bytes = frames(&[Frame::Begin(0, 0)]);
    bytes.extend_from_slice(&frame_header(4));
    bytes.extend_from_slice(b"data");
    encode(&Frame::End([7; 32]), &mut bytes);
    encode(&Frame::EndOfTransfer, &mut bytes);
    let (heard, _) = say(&dir, &[entry("a", Kind::File(4))], &bytes);
    assert_eq!(heard.last(), Some(&Frame::Finished(0, 1)), "{heard:?}");
    assert!(heard.iter().any(|frame| matches!(frame, Frame::Failed(0, _))));
    assert!(!dir.path("to/a").exists());
}
