use std::fs;

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::files::wire::{
    Decoder, Entry, Frame, GREETING, Kind, Piece, Stamp, encode, frame_header, greeting,
};

fn entry(name: &str, kind: Kind) -> Entry {
    let name = Name::new(name.as_bytes()).expect("a name");
    Entry { name, kind, mode: 0o644, modified: Stamp::default() }
}

fn bytes_of(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = greeting().to_vec();
    frames.iter().for_each(|frame| encode(frame, &mut bytes));
    bytes
}

fn listed(entries: Vec<Entry>) -> Vec<Frame> {
    let count = entries.len() as u32;
    let bytes = entries.iter().map(Entry::size).sum();
    vec![Frame::Entries(entries), Frame::Listed(count, bytes)]
}

/// Says these bytes to a receiver and then nothing more; what the receiver says, and what it tells its user.
fn say(room: &Room, bytes: &[u8]) -> (Vec<Frame>, Vec<News>) {
    let store = Arc::new(Store::open(&room.path("to"), true).expect("a directory"));
    let news = Arc::new(Mutex::new(Vec::new()));
    let listener = {
        let news = news.clone();
        move |item| news.lock().expect("unharmed").push(item)
    };
    let watch = Arc::new(Watch::new(listener));
    let heard = runtime().block_on(async {
        let (here, there) = pair(MESSAGE, None);
        let ends = Ends::new(&[]);
        ends.out.send(there).expect("a receiver");
        let over = std::sync::atomic::AtomicBool::new(false);
        let finished = |_| {
            over.store(true, std::sync::atomic::Ordering::SeqCst);
            true
        };
        let receiving = receive(&ends, &store, &watch, finished);
        let talking = async {
            let messages: Vec<_> = bytes.chunks(MESSAGE).map(Bytes::copy_from_slice).collect();
            let _ = here.send_all(&mut messages.into_iter()).await;
            let mut heard = Vec::new();
            let (mut messages, mut decoder) = (Vec::new(), Decoder::default());
            // Until it says something final, or nothing but that it is alive.
            let enough = |heard: &[Frame]| {
                let alive = heard.iter().filter(|frame| matches!(frame, Frame::Alive(_))).count();
                alive >= 2 || matches!(heard.last(), Some(Frame::Trouble(_) | Frame::Finished(..)))
            };
            while !enough(&heard) {
                here.receive_all(&mut messages).await;
                if messages.is_empty() {
                    break;
                }
                for mut message in messages.drain(..) {
                    while let Some(piece) = decoder.next(&mut message).expect("understood") {
                        if let Piece::Frame(frame) = piece {
                            heard.push(frame);
                        }
                    }
                }
            }
            here.hang_up();
            let lost = |item: &News| matches!(item, News::Lost(_));
            while !over.load(std::sync::atomic::Ordering::SeqCst)
                && !news.lock().expect("unharmed").iter().any(lost)
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
    let news = news.lock().expect("unharmed").clone();
    (heard, news)
}

fn with(mut frames: Vec<Frame>, more: &[Frame]) -> Vec<u8> {
    frames.extend_from_slice(more);
    bytes_of(&frames)
}

#[test]
fn a_sender_that_breaks_the_rules_is_told_so_and_the_receiver_lives() {
    let two = || listed(vec![entry("a", Kind::File(10)), entry("b", Kind::Folder)]);
    let begun = with(two(), &[Frame::Begin(0, 0)]);
    let too_much = [&begun[..], &frame_header(11), &[0; 11]].concat();
    let unasked = [&with(two(), &[])[..], &frame_header(1), &[0]].concat();
    let mut other_version = bytes_of(&[]);
    other_version[GREETING - 4] = 9;
    let unsorted = listed(vec![entry("b", Kind::Folder), entry("a", Kind::Folder)]);
    let twice = listed(vec![entry("b", Kind::Folder), entry("b", Kind::Folder)]);
    let huge = vec![Frame::Entries(vec![
        entry("a", Kind::File(i64::MAX as u64)),
        entry("b", Kind::File(i64::MAX as u64)),
        entry("c", Kind::File(i64::MAX as u64)),
    ])];
    for (bytes, said) in [
        (other_version, "version 9"),
        (b"GET / HTTP/1.1\r\n".to_vec(), "does not transfer files"),
        (bytes_of(&[Frame::Begin(0, 0)]), "out of its turn"),
        (bytes_of(&[Frame::Fresh(1)]), "out of its turn"),
        (bytes_of(&[Frame::Listed(1, 0)]), "not as long as it says"),
        (bytes_of(&unsorted), "order of names"),
        (bytes_of(&twice), "order of names"),
        (bytes_of(&huge), "more bytes than there can be"),
        (with(two(), &[Frame::Entries(vec![])]), "out of its turn"),
        (with(two(), &[Frame::Begin(2, 0)]), "no such file"),
        (with(two(), &[Frame::Begin(1, 0)]), "no such file"),
        (with(two(), &[Frame::Begin(0, 5)]), "nobody offered"),
        (with(two(), &[Frame::Begin(0, 0), Frame::Begin(0, 0)]), "out of its turn"),
        (with(two(), &[Frame::Same(0), Frame::Same(0)]), "out of its turn"),
        (with(two(), &[Frame::Begin(0, 0), Frame::End([0; 32])]), "before its end"),
        (with(two(), &[Frame::Begin(0, 0), Frame::Over]), "within a file"),
        (too_much, "more data"),
        (unasked, "more data"),
    ] {
        let room = Room::new("rules");
        let (heard, news) = say(&room, &bytes);
        let told =
            heard.iter().any(|frame| matches!(frame, Frame::Trouble(why) if why.contains(said)));
        assert!(told, "{said}: {heard:?}");
        let lost = news.iter().any(|item| matches!(item, News::Lost(why) if why.contains(said)));
        assert!(lost, "{said}: {news:?}");
        assert!(!room.path("to/a").exists());
    }
}

#[cfg(unix)]
#[test]
fn links_in_the_directory_lead_nowhere_outside() {
    let room = Room::new("escape");
    room.write("outside/secret", b"precious");
    fs::create_dir(room.path("to")).expect("a directory");
    std::os::unix::fs::symlink(room.path("outside"), room.path("to/door")).expect("a link");
    std::os::unix::fs::symlink(room.path("outside/secret"), room.path("to/alias")).expect("a link");
    let entries = vec![
        entry("alias", Kind::File(4)),
        entry("door", Kind::Folder),
        entry("door/new", Kind::File(4)),
        entry("door/secret", Kind::File(8)),
        entry("door/way", Kind::Folder),
    ];
    let mut bytes = bytes_of(&listed(entries));
    let hash = blake3::hash(b"evil").into();
    for place in [0, 2] {
        encode(&Frame::Begin(place, 0), &mut bytes);
        bytes.extend_from_slice(&frame_header(4));
        bytes.extend_from_slice(b"evil");
        encode(&Frame::End(hash), &mut bytes);
    }
    encode(&Frame::Over, &mut bytes);
    let (heard, _) = say(&room, &bytes);
    assert_eq!(heard.last(), Some(&Frame::Finished(1, 5)), "{heard:?}");
    let inside: Vec<_> = fs::read_dir(room.path("outside")).expect("a directory").collect();
    assert_eq!(inside.len(), 1, "{inside:?}");
    assert_eq!(room.read("outside/secret"), b"precious");
    // With `--overwrite` the link itself was replaced, not what it pointed to.
    assert_eq!(room.read("to/alias"), b"evil");
    assert!(fs::symlink_metadata(room.path("to/alias")).expect("a file").is_file());
}

#[test]
fn a_file_with_another_hash_than_announced_gets_no_name() {
    let room = Room::new("hash");
    let mut bytes = bytes_of(&listed(vec![entry("a", Kind::File(4))]));
    encode(&Frame::Begin(0, 0), &mut bytes);
    bytes.extend_from_slice(&frame_header(4));
    bytes.extend_from_slice(b"data");
    encode(&Frame::End([7; 32]), &mut bytes);
    encode(&Frame::Over, &mut bytes);
    let (heard, _) = say(&room, &bytes);
    assert_eq!(heard.last(), Some(&Frame::Finished(0, 1)), "{heard:?}");
    assert!(heard.iter().any(|frame| matches!(frame, Frame::Failed(0, _))));
    assert!(!room.path("to/a").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Frames in any order, numbers in a small range so that they often fit.
    #[test]
    fn no_order_of_frames_crashes_the_receiver_or_writes_outside(
        script in prop::collection::vec((0u8..9, 0u32..4, 0u64..12), 0..30)
    ) {
        let room = Room::new("script");
        let mut bytes = bytes_of(&listed(vec![
            entry("a", Kind::File(10)), entry("b", Kind::File(0)), entry("c", Kind::Folder),
        ]));
        for (kind, index, number) in script {
            let frame = match kind {
                0 => Frame::Begin(index, 0),
                1 => Frame::Begin(index, number),
                2 => Frame::End(blake3::hash(&[1; 10]).into()),
                3 => Frame::Same(index),
                4 => Frame::Skip(index, "no".into()),
                5 => Frame::Over,
                6 => Frame::Alive(number),
                7 => Frame::Fresh(index),
                _ => {
                    bytes.extend_from_slice(&frame_header(number as usize));
                    bytes.extend_from_slice(&vec![1; number as usize]);
                    continue;
                }
            };
            encode(&frame, &mut bytes);
        }
        say(&room, &bytes);
        let inside: Vec<_> = fs::read_dir(room.path("")).expect("a room").collect();
        prop_assert_eq!(inside.len(), 1);
        if room.path("to/a").exists() {
            prop_assert_eq!(room.read("to/a"), vec![1; 10]);
        }
    }
}
