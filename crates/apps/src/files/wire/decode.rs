//! Decodes the bytes of a peer. The decoder never holds more than one frame of [`FRAME_LIMIT`] bytes.

use bytes::{Buf, Bytes};
use ropewalk_base::PeerText;

use super::{
    DATA_LIMIT, Entry, FILE, FOLDER, FRAME_LIMIT, Frame, GREETING, HEADER, Hash, Kind, Name,
    SIZE_LIMIT, Stamp, TEXT_LIMIT, VERSION, WORD, WireError, WireItem, kind,
};

/// The mode bits that are accepted.
const MODE: u16 = 0o777 | super::EXACT;

/// Decodes the bytes of a peer, regardless of how they are split.
#[derive(Debug, Default)]
pub struct Decoder {
    state: DecoderState,
    /// The beginning of an incomplete frame.
    kept: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum DecoderState {
    #[default]
    Greeting,
    Header,
    Content {
        kind: u8,
        len: usize,
    },
    Data {
        left: usize,
    },
}

impl Decoder {
    /// The next piece of the input. `None` if the input is consumed and contains no further complete frame.
    ///
    /// # Errors
    /// [`WireError`]; the rest of the input cannot be decoded then.
    pub fn next(&mut self, input: &mut Bytes) -> Result<Option<WireItem>, WireError> {
        loop {
            match self.state {
                DecoderState::Greeting => {
                    let Some(bytes) = self.collect(GREETING, input) else { return Ok(None) };
                    check_greeting(&bytes)?;
                    self.state = DecoderState::Header;
                    return Ok(Some(WireItem::Greeting));
                }
                DecoderState::Header => {
                    let Some(bytes) = self.collect(HEADER, input) else { return Ok(None) };
                    self.state = begin(&bytes)?;
                }
                DecoderState::Content { kind, len } => {
                    let Some(bytes) = self.collect(len, input) else { return Ok(None) };
                    self.state = DecoderState::Header;
                    return frame(kind, bytes).map(|frame| Some(WireItem::Frame(frame)));
                }
                DecoderState::Data { left: 0 } => self.state = DecoderState::Header,
                DecoderState::Data { left } => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    let item = input.split_to(left.min(input.len()));
                    self.state = DecoderState::Data { left: left - item.len() };
                    return Ok(Some(WireItem::Data(item)));
                }
            }
        }
    }

    /// Takes `len` bytes, without a copy if the input contains them all.
    fn collect(&mut self, len: usize, input: &mut Bytes) -> Option<Bytes> {
        if self.kept.is_empty() && input.len() >= len {
            return Some(input.split_to(len));
        }
        let missing = len - self.kept.len();
        self.kept.extend_from_slice(&input.split_to(missing.min(input.len())));
        (self.kept.len() == len).then(|| std::mem::take(&mut self.kept).into())
    }
}

fn check_greeting(bytes: &[u8]) -> Result<(), WireError> {
    let (word, version) = bytes.split_at(WORD.len());
    if word != WORD {
        return Err(WireError::OtherProtocol);
    }
    let version = version.try_into().map_or(0, u32::from_le_bytes);
    if version == VERSION { Ok(()) } else { Err(WireError::Version(version)) }
}

fn begin(header: &[u8]) -> Result<DecoderState, WireError> {
    let &[kind, a, b, c] = header else { return Err(WireError::Malformed(0)) };
    let len = u32::from_le_bytes([a, b, c, 0]) as usize;
    let limit = if kind == kind::DATA { DATA_LIMIT } else { FRAME_LIMIT };
    if len > limit {
        return Err(WireError::TooLong(kind, len));
    }
    Ok(if kind == kind::DATA {
        DecoderState::Data { left: len }
    } else {
        DecoderState::Content { kind, len }
    })
}

fn frame(kind: u8, content: Bytes) -> Result<Frame, WireError> {
    let mut fields = Fields { kind, rest: content };
    let frame = fields.frame()?;
    if fields.rest.is_empty() { Ok(frame) } else { Err(WireError::Malformed(kind)) }
}

/// The fields of a frame's content.
struct Fields {
    kind: u8,
    rest: Bytes,
}

impl Fields {
    fn frame(&mut self) -> Result<Frame, WireError> {
        Ok(match self.kind {
            kind::ENTRIES => Frame::Entries(self.entries()?),
            kind::LISTED => Frame::Listed(self.u32()?, self.u64()?),
            kind::BEGIN => Frame::Begin(self.u32()?, self.u64()?),
            kind::END => Frame::End(self.hash()?),
            kind::CHECK => Frame::Check(self.u32()?, self.hash()?),
            kind::SKIP => Frame::Skip(self.u32()?, self.text()?),
            kind::END_OF_TRANSFER => Frame::EndOfTransfer,
            kind::FRESH => Frame::Fresh(self.u32()?),
            kind::MADE => Frame::Made(self.u32()?),
            kind::PARTIAL => Frame::Partial(self.u64()?, self.hash()?),
            kind::EXISTS => Frame::Exists,
            kind::DIFFERS => Frame::Differs(self.u32()?),
            kind::REFUSED => Frame::Refused(self.text()?),
            kind::DONE => Frame::Done(self.u32()?),
            kind::FAILED => Frame::Failed(self.u32()?, self.text()?),
            kind::FINISHED => Frame::Finished(self.u32()?, self.u32()?),
            kind::ALIVE => Frame::Alive(self.u64()?, self.u64()?),
            kind::ERROR => Frame::Error(self.text()?),
            kind => return Err(WireError::UnknownFrame(kind)),
        })
    }

    fn malformed(&self) -> WireError {
        WireError::Malformed(self.kind)
    }

    fn take(&mut self, len: usize) -> Result<Bytes, WireError> {
        if self.rest.remaining() < len {
            return Err(self.malformed());
        }
        Ok(self.rest.split_to(len))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let bytes = self.take(N)?;
        bytes[..].try_into().map_err(|_| self.malformed())
    }

    fn u32(&mut self) -> Result<u32, WireError> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, WireError> {
        self.array().map(u64::from_le_bytes)
    }

    fn hash(&mut self) -> Result<Hash, WireError> {
        self.array()
    }

    /// The rest as text. Bytes that are not UTF-8 are escaped.
    fn text(&mut self) -> Result<PeerText, WireError> {
        if self.rest.len() > TEXT_LIMIT {
            return Err(self.malformed());
        }
        let bytes = std::mem::take(&mut self.rest);
        Ok(PeerText::from_bytes(&bytes))
    }

    fn entries(&mut self) -> Result<Vec<Entry>, WireError> {
        let mut entries = Vec::new();
        while !self.rest.is_empty() {
            entries.push(self.entry()?);
        }
        Ok(entries)
    }

    fn entry(&mut self) -> Result<Entry, WireError> {
        let [kind] = self.array()?;
        let mode = u16::from_le_bytes(self.array()?) & MODE;
        let seconds = i64::from_le_bytes(self.array()?);
        let nanoseconds = self.u32()?;
        let size = self.u64()?;
        let len = u16::from_le_bytes(self.array()?);
        let name = Name::new(&self.take(usize::from(len))?).map_err(WireError::Name)?;
        let kind = match kind {
            FILE if size <= SIZE_LIMIT => Kind::File(size),
            FOLDER if size == 0 => Kind::Folder,
            _ => return Err(self.malformed()),
        };
        if nanoseconds >= 1_000_000_000 {
            return Err(self.malformed());
        }
        Ok(Entry { name, kind, mode, modified: Stamp { seconds, nanoseconds } })
    }
}
