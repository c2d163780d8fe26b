//! The frames of a capture file, pcap or pcapng.

use std::io::Read;

use pcap_parser::pcapng::Block;
use pcap_parser::{Linktype, PcapBlockOwned, PcapError, create_reader};

use super::RecordingError;

/// Room for one block of the file. Segments that the network card splits have up to 64 KiB.
const BUFFER: usize = 1 << 20;
/// Maximum number of interfaces of a file.
const INTERFACES_LIMIT: usize = 4096;

/// The frames of a file.
#[derive(Clone, Copy)]
pub(super) struct Frames {
    pub(super) number: u64,
    /// The file ends within a frame.
    pub(super) cut: bool,
}

/// An interface of a capture.
#[derive(Clone, Copy)]
struct Interface {
    link: Linktype,
    /// Units of its timestamps per second.
    resolution: u64,
    /// Seconds to add.
    offset: i64,
}

/// Calls `take` with each frame.
///
/// # Errors
/// [`RecordingError`].
pub(super) fn for_each(
    reader: impl Read + Send,
    mut take: impl FnMut(&Frame<'_>) -> Result<(), RecordingError>,
) -> Result<Frames, RecordingError> {
    let mut reader = create_reader(BUFFER, reader).map_err(|error| wrong(&error))?;
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut frames = Frames { number: 0, cut: false };
    loop {
        let length = match reader.next() {
            Ok((length, block)) => {
                if let Some(frame) = frame(&block, &mut interfaces)? {
                    frames.number += 1;
                    take(&frame)?;
                }
                Some(length)
            }
            // A capture that was interrupted ends within a packet.
            Err(PcapError::Eof) => return Ok(frames),
            Err(PcapError::UnexpectedEof) => return Ok(Frames { cut: true, ..frames }),
            Err(PcapError::Incomplete(_)) => None,
            Err(error) => return Err(wrong(&error)),
        };
        match length {
            Some(length) => reader.consume(length),
            None if reader.reader_exhausted() => return Ok(Frames { cut: true, ..frames }),
            None => reader.refill().map_err(|error| wrong(&error))?,
        }
    }
}

fn wrong(error: &PcapError<&[u8]>) -> RecordingError {
    match error {
        PcapError::ReadError => RecordingError::Read,
        PcapError::Eof | PcapError::HeaderNotRecognized => RecordingError::Format,
        _ => RecordingError::Damaged,
    }
}

/// A captured frame.
pub(super) struct Frame<'a> {
    /// When it was captured, nanoseconds.
    pub(super) at_ns: u64,
    pub(super) link: i32,
    /// Its size on the link, bytes.
    pub(super) length: u32,
    pub(super) data: &'a [u8],
}

/// The frame of a block, if it has one. Blocks that describe interfaces are remembered.
fn frame<'a>(
    block: &'a PcapBlockOwned<'a>,
    interfaces: &mut Vec<Interface>,
) -> Result<Option<Frame<'a>>, RecordingError> {
    match block {
        PcapBlockOwned::LegacyHeader(header) => {
            let resolution =
                if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
            *interfaces = vec![Interface { link: header.network, resolution, offset: 0 }];
        }
        PcapBlockOwned::Legacy(block) => {
            let interface = interfaces.first().ok_or(RecordingError::Damaged)?;
            let fraction =
                u128::from(block.ts_usec) * 1_000_000_000 / u128::from(interface.resolution);
            let at_ns = u128::from(block.ts_sec) * 1_000_000_000 + fraction;
            let data = block.data.get(..block.caplen as usize).unwrap_or(block.data);
            return Ok(Some(Frame {
                at_ns: u64::try_from(at_ns).unwrap_or(u64::MAX),
                link: interface.link.0,
                length: block.origlen,
                data,
            }));
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => interfaces.clear(),
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            if interfaces.len() == INTERFACES_LIMIT {
                return Err(RecordingError::Damaged);
            }
            let resolution = interface.ts_resolution().filter(|units| *units > 0);
            interfaces.push(Interface {
                link: interface.linktype,
                resolution: resolution.ok_or(RecordingError::Damaged)?,
                offset: interface.ts_offset(),
            });
        }
        PcapBlockOwned::NG(Block::EnhancedPacket(block)) => {
            let interface = interfaces.get(block.if_id as usize).ok_or(RecordingError::Damaged)?;
            let units = u128::from(u64::from(block.ts_high) << 32 | u64::from(block.ts_low));
            let at = units * 1_000_000_000 / u128::from(interface.resolution);
            let at = i128::try_from(at).unwrap_or(i128::MAX);
            let at = at.saturating_add(i128::from(interface.offset) * 1_000_000_000);
            let data = block.data.get(..block.caplen as usize).unwrap_or(block.data);
            return Ok(Some(Frame {
                at_ns: u64::try_from(at.max(0)).unwrap_or(u64::MAX),
                link: interface.link.0,
                length: block.origlen,
                data,
            }));
        }
        // Simple packets have no time.
        PcapBlockOwned::NG(_) => {}
    }
    Ok(None)
}
