//! pcapng files of raw IP packets (draft-ietf-opsawg-pcapng, sections 4.1 to 4.3).
//!
//! ```text
//!  section header | interface 0 | interface 1 | packet | packet | ...
//! ```

use std::io::{self, Write};

use crate::Direction;

/// Packets that begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u16 = 101;
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;

/// Options of blocks (4.1 to 4.3).
mod code {
    pub const END: u16 = 0;
    pub const NAME: u16 = 2;
    pub const DESCRIPTION: u16 = 3;
    pub const TIME_RESOLUTION: u16 = 9;
    pub const PACKET_FLAGS: u16 = 2;
}

/// Writes a pcapng file.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    block: Vec<u8>,
    /// The snapshot length of each interface.
    interfaces: Vec<u32>,
}

/// Description of an interface in a capture.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'a> {
    /// Name, such as that of a path.
    pub name: &'a str,
    /// Description, such as the addresses at both ends.
    pub description: &'a str,
    /// Bytes kept of each packet; 0 keeps all.
    pub snap: u32,
}

impl<W: Write> Writer<W> {
    /// Writes the section header.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut block = Vec::new();
        put_block(&mut block, SECTION, |out| {
            out.extend(0x1a2b_3c4d_u32.to_le_bytes());
            // Version 1.0.
            out.extend([1, 0, 0, 0]);
            // The length of the section is unknown.
            out.extend((-1_i64).to_le_bytes());
        });
        out.write_all(&block)?;
        Ok(Self { out, block, interfaces: Vec::new() })
    }

    /// Adds an interface. Returns its number.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn interface(&mut self, interface: &Interface<'_>) -> io::Result<u32> {
        let number = self.interfaces.len() as u32;
        self.interfaces.push(interface.snap);
        self.block.clear();
        put_block(&mut self.block, INTERFACE, |out| {
            out.extend(LINKTYPE_RAW.to_le_bytes());
            out.extend([0; 2]);
            out.extend(interface.snap.to_le_bytes());
            put_option(out, code::NAME, interface.name.as_bytes());
            put_option(out, code::DESCRIPTION, interface.description.as_bytes());
            // Timestamps are in units of 10^-9 s.
            put_option(out, code::TIME_RESOLUTION, &[9]);
            put_option(out, code::END, &[]);
        });
        self.out.write_all(&self.block)?;
        Ok(number)
    }

    /// Writes a packet at `time_ns`, nanoseconds since 1970. `put` appends the packet, which begins with its IP
    /// header. The interface's snapshot length limits how much is kept.
    ///
    /// # Errors
    /// Those of the underlying writer.
    ///
    /// # Panics
    /// If there is no such interface.
    pub fn packet(
        &mut self,
        time_ns: u64,
        interface: u32,
        direction: Direction,
        put: impl FnOnce(&mut Vec<u8>),
    ) -> io::Result<()> {
        let snap = self.interfaces[interface as usize];
        self.block.clear();
        put_block(&mut self.block, ENHANCED_PACKET, |out| {
            out.extend(interface.to_le_bytes());
            out.extend(((time_ns >> 32) as u32).to_le_bytes());
            out.extend((time_ns as u32).to_le_bytes());
            let lengths = out.len();
            out.extend([0; 8]);
            let start = out.len();
            put(out);
            let original = (out.len() - start) as u32;
            let kept = if snap == 0 { original } else { original.min(snap) };
            out.truncate(start + kept as usize);
            out[lengths..lengths + 4].copy_from_slice(&kept.to_le_bytes());
            out[lengths + 4..lengths + 8].copy_from_slice(&original.to_le_bytes());
            pad(out);
            let direction: u32 = match direction {
                Direction::In => 1,
                Direction::Out => 2,
            };
            put_option(out, code::PACKET_FLAGS, &direction.to_le_bytes());
            put_option(out, code::END, &[]);
        });
        self.out.write_all(&self.block)
    }

    /// Flushes the underlying writer.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// Appends a block of type `kind`. `write` appends its content, a multiple of four bytes.
fn put_block(out: &mut Vec<u8>, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
    out.extend(kind.to_le_bytes());
    out.extend([0; 4]);
    write(out);
    let length = (out.len() as u32 + 4).to_le_bytes();
    out[4..8].copy_from_slice(&length);
    out.extend(length);
}

/// Pads to a multiple of four bytes.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

fn put_option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = &value[..value.len().min(usize::from(u16::MAX))];
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    pad(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(bytes: &[u8], at: usize) -> u32 {
        u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
    }

    /// The type and content of each block.
    fn blocks(bytes: &[u8]) -> Vec<(u32, &[u8])> {
        let (mut at, mut found) = (0, Vec::new());
        while at < bytes.len() {
            let length = word(bytes, at + 4) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(bytes, at + length - 4) as usize, length, "the length stands twice");
            found.push((word(bytes, at), &bytes[at + 8..at + length - 4]));
            at += length;
        }
        found
    }

    #[test]
    fn a_file_consists_of_blocks_and_keeps_what_the_snapshot_length_permits() {
        let mut writer = Writer::new(Vec::new()).unwrap();
        let interface =
            |name, snap| Interface { name, description: "192.0.2.1 to 198.51.100.7", snap };
        let whole = writer.interface(&interface("wlan0", 0)).unwrap();
        let cut = writer.interface(&interface("wwan0", 10)).unwrap();
        assert_eq!((whole, cut), (0, 1));
        let packet: Vec<u8> = (0..21).collect();
        for (number, direction) in [(whole, Direction::Out), (cut, Direction::In)] {
            let put = |out: &mut Vec<u8>| out.extend(&packet);
            writer.packet(5_000_000_001, number, direction, put).unwrap();
        }
        let bytes = writer.into_inner();
        let blocks = blocks(&bytes);
        let kinds: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, [SECTION, INTERFACE, INTERFACE, ENHANCED_PACKET, ENHANCED_PACKET]);
        for (at, number, kept, direction) in [(3, 0, 21, 2), (4, 1, 10, 1)] {
            let content = blocks[at].1;
            assert_eq!((word(content, 0), word(content, 4)), (number, 1));
            assert_eq!(word(content, 8), 705_032_705);
            assert_eq!((word(content, 12), word(content, 16)), (kept, 21));
            let (kept, padded) = (kept as usize, kept.next_multiple_of(4) as usize);
            assert_eq!(content[20..20 + kept], packet[..kept]);
            assert_eq!(word(content, 20 + padded + 4), direction);
        }
    }
}
