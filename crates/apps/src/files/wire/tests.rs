use bytes::Bytes;
use proptest::prelude::*;

use super::*;

fn entry(name: &str, kind: Kind) -> Entry {
    let name = Name::new(name.as_bytes()).expect("a name");
    Entry { name, kind, mode: 0o640, modified: Stamp { seconds: -5, nanoseconds: 7 } }
}

fn all_frames() -> Vec<Frame> {
    vec![
        Frame::Entries(vec![entry("a", Kind::Folder), entry("a/b", Kind::File(1 << 40))]),
        Frame::Listed(3, 1 << 40),
        Frame::Begin(7, 1 << 33),
        Frame::End([9; 32]),
        Frame::Check(1, [5; 32]),
        Frame::Skip(2, "changed".into()),
        Frame::EndOfTransfer,
        Frame::Fresh(4),
        Frame::Made(5),
        Frame::Partial(1 << 33, [3; 32]),
        Frame::Exists,
        Frame::Differs(6),
        Frame::Refused("no".into()),
        Frame::Done(8),
        Frame::Failed(9, "disk".into()),
        Frame::Finished(10, 11),
        Frame::Alive(12, 13),
        Frame::Error("full".into()),
    ]
}

fn bytes_of(frame: &Frame) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes);
    bytes
}

/// All pieces that result from these bytes, split into parts of length `cut`.
fn decoded(bytes: &[u8], cut: usize) -> Result<Vec<WireItem>, WireError> {
    let mut decoder = Decoder::default();
    let mut pieces = Vec::new();
    for part in bytes.chunks(cut) {
        let mut input = Bytes::copy_from_slice(part);
        while let Some(item) = decoder.next(&mut input)? {
            pieces.push(item);
        }
        assert!(input.is_empty());
    }
    Ok(pieces)
}

#[test]
fn every_frame_comes_out_as_it_went_in_however_it_is_cut() {
    let frames = all_frames();
    let mut bytes = greeting().to_vec();
    frames.iter().for_each(|frame| encode(frame, &mut bytes));
    for cut in [1, 2, 3, 7, 64, bytes.len()] {
        let pieces = decoded(&bytes, cut).expect("understood");
        assert_eq!(pieces[0], WireItem::Greeting);
        let found = pieces[1..].iter().map(|item| match item {
            WireItem::Frame(frame) => frame.clone(),
            other => panic!("{other:?}"),
        });
        assert_eq!(found.collect::<Vec<_>>(), frames, "cut into {cut}");
    }
}

#[test]
fn data_come_out_in_order_and_nothing_is_added() {
    let data: Vec<u8> = (0..5000u32).map(|i| i as u8).collect();
    let mut bytes = greeting().to_vec();
    for part in data.chunks(1700) {
        bytes.extend_from_slice(&frame_header(part.len()));
        bytes.extend_from_slice(part);
    }
    encode(&Frame::EndOfTransfer, &mut bytes);
    for cut in [1, 5, 1400, bytes.len()] {
        let pieces = decoded(&bytes, cut).expect("understood");
        let found = pieces.iter().filter_map(|item| match item {
            WireItem::Data(bytes) => Some(&bytes[..]),
            _ => None,
        });
        assert_eq!(found.collect::<Vec<_>>().concat(), data);
        assert_eq!(pieces.last(), Some(&WireItem::Frame(Frame::EndOfTransfer)));
    }
}

#[test]
fn another_version_or_another_protocol_is_told_apart() {
    let mut newer = greeting();
    newer[8] += 1;
    assert_eq!(decoded(&newer, 12), Err(WireError::Version(VERSION + 1)));
    assert!(WireError::Version(VERSION + 1).to_string().contains("newer ropewalk here"));
    assert!(WireError::Version(0).to_string().contains("newer ropewalk there"));
    assert_eq!(decoded(b"GET / HTTP/1.1\r\n", 5), Err(WireError::OtherProtocol));
}

#[test]
fn what_no_honest_peer_sends_is_refused() {
    let entries = |edit: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes_of(&Frame::Entries(vec![entry("abc", Kind::File(1))]));
        edit(&mut bytes);
        bytes
    };
    // Offsets in the frame: header 4, kind 1, mode 2, seconds 8, nanoseconds 4, size 8, length 2, name.
    for (bytes, expected) in [
        (vec![99, 0, 0, 0], WireError::UnknownFrame(99)),
        (vec![kind::END_OF_TRANSFER, 1, 0, 0, 0], WireError::Malformed(kind::END_OF_TRANSFER)),
        (vec![kind::DONE, 3, 0, 0, 0, 0, 0], WireError::Malformed(kind::DONE)),
        (vec![kind::DATA, 1, 0, 16], WireError::TooLong(kind::DATA, DATA_LIMIT + 1)),
        (vec![kind::ENTRIES, 1, 0, 1], WireError::TooLong(kind::ENTRIES, FRAME_LIMIT + 1)),
        (vec![kind::ERROR, 0, 255, 255], WireError::TooLong(kind::ERROR, 0xFF_FF00)),
        (entries(&|b| b[29..].copy_from_slice(b"/bc")), WireError::Name(BadName::Absolute)),
        (entries(&|b| b[29..].copy_from_slice(b"a\0c")), WireError::Name(BadName::Zero)),
        (entries(&|b| b[27] = 200), WireError::Malformed(kind::ENTRIES)),
        (entries(&|b| b[4] = 2), WireError::Malformed(kind::ENTRIES)),
        (entries(&|b| b[4] = FOLDER), WireError::Malformed(kind::ENTRIES)),
        (entries(&|b| b[26] = 0x80), WireError::Malformed(kind::ENTRIES)),
        (entries(&|b| b[18] = 0xFF), WireError::Malformed(kind::ENTRIES)),
    ] {
        let all = [&greeting()[..], &bytes].concat();
        assert_eq!(decoded(&all, 3), Err(expected), "{bytes:?}");
    }
}

#[test]
fn a_text_that_is_too_long_is_cut_between_characters() {
    let bytes = bytes_of(&Frame::Error("ü".repeat(800).into()));
    let pieces = decoded(&[&greeting()[..], &bytes].concat(), 100).expect("understood");
    assert_eq!(pieces[1], WireItem::Frame(Frame::Error("ü".repeat(TEXT_LIMIT / 2).into())));
}

proptest! {
    #[test]
    fn the_decoder_takes_anything_without_a_crash_and_keeps_little(
        bytes in prop::collection::vec(any::<u8>(), 0..3000),
        cut in 1usize..200,
        greeted in any::<bool>(),
    ) {
        let start = if greeted { greeting().to_vec() } else { Vec::new() };
        let mut decoder = Decoder::default();
        for part in [start, bytes].concat().chunks(cut) {
            let mut input = Bytes::copy_from_slice(part);
            loop {
                match decoder.next(&mut input) {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return Ok(()),
                }
            }
        }
    }

    #[test]
    fn a_changed_byte_is_never_worse_than_an_error(
        which in 0usize..18, at in any::<prop::sample::Index>(), to in any::<u8>(),
    ) {
        let mut bytes = bytes_of(&all_frames()[which]);
        let at = at.index(bytes.len());
        bytes[at] = to;
        let all = [&greeting()[..], &bytes].concat();
        // The result may be a frame, an error, or the beginning of a longer frame.
        if let Ok(pieces) = decoded(&all, 9) {
            let own = decoded(&all, all.len()).expect("understood before");
            prop_assert_eq!(pieces.len() >= own.len(), true);
        }
    }
}
