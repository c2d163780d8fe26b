//! Changes of what one end says, frame by frame.

use std::collections::VecDeque;

use bytes::Bytes;
use ropewalk_apps::files::Name;
use ropewalk_apps::files::wire::{
    Decoder, Entry, Frame, HEADER, Kind, Stamp, WireItem, encode, frame_header, greeting,
};

use super::track::Digest;
use crate::Input;

/// Names that clash with those of the source tree, or would lie elsewhere.
const NAMES: [&str; 10] =
    ["a", "evil", "from", "from/a", "from/b", "from/d", "from/link", "from/link/x", "from/~", "zz"];
/// What may stand in place of `from/`.
const WAYS_OUT: [&[u8; 5]; 6] = [b"../x/", b"/tmp/", b"./../", b"fr\0m/", b"from\\", b"..//x"];

/// Something that happens to a frame.
#[derive(Clone, Debug)]
pub enum Edit {
    /// It does not arrive.
    Drop,
    /// It arrives twice.
    Twice,
    /// It arrives behind the next one.
    Later,
    /// This comes before it.
    Insert(Vec<u8>),
    /// One byte of it is another.
    Xor(u16, u8),
    /// An entry of its list says something else.
    Entry(u8, u8, u8),
    /// A name in it begins in another way.
    Escape(u8),
}

/// What made up frames are made of.
#[derive(Default)]
pub struct Vocabulary {
    pub hashes: Vec<Digest>,
}

/// Edits, each with the number of frames that pass before it.
pub fn edits(input: &mut Input<'_>, words: &Vocabulary) -> VecDeque<(u8, Edit)> {
    let count = input.byte() % 6;
    (0..count).map(|_| (input.byte() % 32, edit(input, words))).collect()
}

fn edit(input: &mut Input<'_>, words: &Vocabulary) -> Edit {
    match input.byte() % 16 {
        0 => Edit::Drop,
        1 => Edit::Twice,
        2 => Edit::Later,
        3 => Edit::Xor(input.number() % 64, input.byte()),
        4 => Edit::Escape(input.byte()),
        5 | 6 => Edit::Entry(input.byte(), input.byte(), input.byte()),
        7 => {
            let length = input.byte() % 32;
            Edit::Insert(input.bytes(length.into()).to_vec())
        }
        8 | 9 => {
            let data = vec![input.byte(); usize::from(input.byte())];
            Edit::Insert([&frame_header(data.len())[..], &data].concat())
        }
        _ => {
            let mut bytes = Vec::new();
            encode(&frame(input, words), &mut bytes);
            Edit::Insert(bytes)
        }
    }
}

/// A frame of either end.
fn frame(input: &mut Input<'_>, words: &Vocabulary) -> Frame {
    let (kind, small) = (input.byte(), input.byte());
    let place = if small == 255 { u32::MAX } else { u32::from(small) % 16 };
    let large = match input.byte() {
        255 => u64::MAX,
        254 => i64::MAX as u64,
        253 => 1 << 40,
        byte => u64::from(byte),
    };
    let hash = match words.hashes.get(large as usize % (words.hashes.len() + 1)) {
        Some(hash) => *hash,
        None => [0; 32],
    };
    match kind % 19 {
        0 => Frame::Entries((0..place % 4).map(|_| entry(input)).collect()),
        1 => Frame::Listed(place, large),
        2 => Frame::Begin(place, large),
        3 => Frame::End(hash),
        4 => Frame::Check(place, hash),
        5 => Frame::Skip(place, "no".into()),
        6 => Frame::EndOfTransfer,
        7 => Frame::Fresh(place),
        8 => Frame::Made(place),
        9 => Frame::Partial(large, hash),
        10 => Frame::Exists,
        11 => Frame::Refused("no\u{1b}".into()),
        12 => Frame::Done(place),
        13 => Frame::Failed(place, "no".into()),
        14 => Frame::Differs(place),
        15 => Frame::Finished(place, small.into()),
        16 => Frame::Alive(large, large),
        17 => Frame::Error("no".into()),
        _ => Frame::Entries(Vec::new()),
    }
}

fn name(choice: u8) -> Name {
    Name::new(NAMES[usize::from(choice) % NAMES.len()].as_bytes()).expect("a name")
}

fn entry(input: &mut Input<'_>) -> Entry {
    let (what, size) = (input.byte(), input.byte());
    let kind = if what & 128 == 0 { Kind::File(size.into()) } else { Kind::Folder };
    Entry { name: name(what), kind, mode: 0o1777, modified: Stamp::default() }
}

/// What one end says on one association, and what becomes of it.
#[derive(Default)]
pub struct Side {
    edits: VecDeque<(u8, Edit)>,
    decoder: Decoder,
    held: Vec<u8>,
    /// Bytes pass as they are.
    is_through: bool,
    /// Frames but signs of life.
    pub steps: u64,
}

impl Side {
    pub fn new(edits: VecDeque<(u8, Edit)>) -> Self {
        Self { is_through: edits.is_empty(), edits, ..Self::default() }
    }

    /// What arrives of these bytes.
    pub fn pass(&mut self, bytes: Bytes) -> Vec<u8> {
        if self.is_through {
            self.steps += u64::from(bytes.len() > 2 * HEADER + 16);
            return bytes.to_vec();
        }
        let (mut bytes, mut out) = (bytes, Vec::new());
        loop {
            match self.decoder.next(&mut bytes) {
                Ok(Some(piece)) => self.piece(piece, &mut out),
                Ok(None) => return out,
                Err(error) => panic!("an honest end says what makes no sense: {error}"),
            }
        }
    }

    fn piece(&mut self, piece: WireItem, out: &mut Vec<u8>) {
        let mut said = Vec::new();
        let mut frame = match piece {
            WireItem::Greeting => {
                said.extend_from_slice(&greeting());
                None
            }
            WireItem::Data(data) => {
                said.extend_from_slice(&frame_header(data.len()));
                said.extend_from_slice(&data);
                None
            }
            WireItem::Frame(frame) => Some(frame),
        };
        self.steps += u64::from(!matches!(frame, Some(Frame::Alive(..))));
        if let Some(frame) = &mut frame {
            if let Some((0, Edit::Entry(which, what, by))) = self.edits.front() {
                change_entry(frame, *which, *what, *by);
            }
            encode(frame, &mut said);
        }
        let edit = self.next_edit();
        let held = std::mem::take(&mut self.held);
        match edit {
            Some(Edit::Drop) => said.clear(),
            Some(Edit::Twice) => said = said.repeat(2),
            Some(Edit::Later) => self.held = std::mem::take(&mut said),
            Some(Edit::Insert(before)) => out.extend_from_slice(&before),
            Some(Edit::Xor(at, by)) => {
                let at = usize::from(at) % said.len();
                said[at] ^= by;
            }
            Some(Edit::Escape(way)) => escape(&mut said, way),
            Some(Edit::Entry(..)) | None => {}
        }
        out.extend_from_slice(&said);
        out.extend_from_slice(&held);
    }

    fn next_edit(&mut self) -> Option<Edit> {
        match self.edits.front_mut() {
            Some((0, _)) => self.edits.pop_front().map(|(_, edit)| edit),
            Some((frames, _)) => {
                *frames -= 1;
                None
            }
            None => None,
        }
    }
}

fn change_entry(frame: &mut Frame, which: u8, what: u8, by: u8) {
    let Frame::Entries(entries) = frame else { return };
    let count = entries.len();
    if count == 0 {
        return;
    }
    let entry = &mut entries[usize::from(which) % count];
    match what % 6 {
        0 => entry.name = name(by),
        1 => entry.kind = Kind::File(by.into()),
        2 => entry.kind = Kind::Folder,
        3 => entry.mode = 0o1700 | u16::from(by) & 0o77,
        4 => entry.modified.seconds = i64::from(by as i8) << 56,
        _ => {
            let other = entry.clone();
            entries.push(other);
        }
    }
}

fn escape(said: &mut [u8], way: u8) {
    let place = said.windows(5).position(|bytes| bytes == b"from/");
    if let Some(place) = place {
        said[place..place + 5].copy_from_slice(WAYS_OUT[usize::from(way) % WAYS_OUT.len()]);
    }
}
