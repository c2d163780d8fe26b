//! Encodes frames.

use ropewalk_base::PeerText;

use super::{Entry, FOLDER, Frame, GREETING, HEADER, Kind, TEXT_LIMIT, VERSION, WORD, kind};

/// The greeting that each end starts with.
pub fn greeting() -> [u8; GREETING] {
    let mut bytes = [0; GREETING];
    bytes[..WORD.len()].copy_from_slice(&WORD);
    bytes[WORD.len()..].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

/// The header of a frame with `data` bytes of data.
pub fn frame_header(data: usize) -> [u8; HEADER] {
    header(kind::DATA, data)
}

fn header(kind: u8, len: usize) -> [u8; HEADER] {
    let len = (len as u32).to_le_bytes();
    [kind, len[0], len[1], len[2]]
}

/// Appends a frame.
pub fn encode(frame: &Frame, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER]);
    let kind = content(frame, out);
    let len = out.len() - start - HEADER;
    debug_assert!(len <= super::FRAME_LIMIT, "a frame of {len} bytes");
    out[start..start + HEADER].copy_from_slice(&header(kind, len));
}

fn content(frame: &Frame, out: &mut Vec<u8>) -> u8 {
    match frame {
        Frame::Entries(entries) => {
            entries.iter().for_each(|entry| push_entry(entry, out));
            kind::ENTRIES
        }
        Frame::Listed(entries, bytes) => numbers(kind::LISTED, *entries, *bytes, out),
        Frame::Begin(index, offset) => numbers(kind::BEGIN, *index, *offset, out),
        Frame::End(hash) => raw(kind::END, hash, out),
        Frame::Check(index, hash) => {
            raw(kind::CHECK, &index.to_le_bytes(), out);
            raw(kind::CHECK, hash, out)
        }
        Frame::Skip(index, why) => reason(kind::SKIP, *index, why, out),
        Frame::EndOfTransfer => kind::END_OF_TRANSFER,
        Frame::Fresh(count) => raw(kind::FRESH, &count.to_le_bytes(), out),
        Frame::Made(count) => raw(kind::MADE, &count.to_le_bytes(), out),
        Frame::Partial(len, hash) => {
            raw(kind::PARTIAL, &len.to_le_bytes(), out);
            raw(kind::PARTIAL, hash, out)
        }
        Frame::Exists => kind::EXISTS,
        Frame::Refused(why) => text(kind::REFUSED, why, out),
        Frame::Done(index) => raw(kind::DONE, &index.to_le_bytes(), out),
        Frame::Failed(index, why) => reason(kind::FAILED, *index, why, out),
        Frame::Differs(index) => raw(kind::DIFFERS, &index.to_le_bytes(), out),
        Frame::Finished(done, failed) => {
            raw(kind::FINISHED, &done.to_le_bytes(), out);
            raw(kind::FINISHED, &failed.to_le_bytes(), out)
        }
        Frame::Alive(placed, read) => {
            raw(kind::ALIVE, &placed.to_le_bytes(), out);
            raw(kind::ALIVE, &read.to_le_bytes(), out)
        }
        Frame::Error(why) => text(kind::ERROR, why, out),
    }
}

fn raw(kind: u8, bytes: &[u8], out: &mut Vec<u8>) -> u8 {
    out.extend_from_slice(bytes);
    kind
}

fn numbers(kind: u8, short: u32, long: u64, out: &mut Vec<u8>) -> u8 {
    raw(kind, &short.to_le_bytes(), out);
    raw(kind, &long.to_le_bytes(), out)
}

/// Appends text, truncated if it is too long.
fn text(kind: u8, text: &PeerText, out: &mut Vec<u8>) -> u8 {
    let text = text.unescaped();
    let ends = (0..=TEXT_LIMIT.min(text.len())).rev();
    let end = ends.into_iter().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    raw(kind, &text.as_bytes()[..end], out)
}

fn reason(kind: u8, index: u32, why: &PeerText, out: &mut Vec<u8>) -> u8 {
    raw(kind, &index.to_le_bytes(), out);
    text(kind, why, out)
}

fn push_entry(entry: &Entry, out: &mut Vec<u8>) {
    let (kind, size) = match entry.kind {
        Kind::File(size) => (super::FILE, size),
        Kind::Folder => (FOLDER, 0),
    };
    out.push(kind);
    out.extend_from_slice(&entry.mode.to_le_bytes());
    out.extend_from_slice(&entry.modified.seconds.to_le_bytes());
    out.extend_from_slice(&entry.modified.nanoseconds.to_le_bytes());
    out.extend_from_slice(&size.to_le_bytes());
    let name = entry.name.bytes();
    out.extend_from_slice(&(name.len() as u16).to_le_bytes());
    out.extend_from_slice(name);
}
