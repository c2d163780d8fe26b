//! Blocks of frames between the disk and the association. Their memory is reused once the association has released
//! it, so that the system need not clear a page for all data sent.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc;

use crate::files::wire::{DATA_LIMIT, Frame, HEADER, encode, frame_header};

/// Approximate size of a block, bytes: large enough for disks, and small enough for a core's cache.
const BLOCK: usize = 256 << 10;
/// Minimum space for a data frame at the end of a block, bytes.
const LEAST_DATA: usize = 1 << 10;
/// Maximum number of blocks that are kept for reuse: 64 MiB.
const KEPT: usize = 256;

/// Complete frames, and the state of the files once the block is sent.
#[derive(Debug)]
pub struct Block {
    /// The frames.
    pub bytes: Bytes,
    /// Files whose end or hash is among the frames.
    pub marks: Vec<Mark>,
}

/// The part of a file that has been sent once a block was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// The entire file, by its index in the manifest.
    Sent(u32),
    /// Its hash.
    Checked(u32),
}

/// The association accepts no more blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

/// Fills blocks and sends them.
#[derive(Debug)]
pub struct Blocks {
    out: mpsc::Sender<Block>,
    /// Fully initialized; only the first `used` bytes are meaningful.
    block: BytesMut,
    used: usize,
    marks: Vec<Mark>,
    size: usize,
    /// Blocks that were sent, oldest first.
    lent: VecDeque<Bytes>,
    scratch: Vec<u8>,
}

impl Blocks {
    /// Creates blocks that hold an integral number of messages of this size.
    pub fn new(message: usize, out: mpsc::Sender<Block>) -> Self {
        let size = BLOCK.div_ceil(message).max(1) * message;
        let block = BytesMut::zeroed(size);
        let (lent, marks, scratch) = (VecDeque::new(), Vec::new(), Vec::new());
        Self { out, block, used: 0, marks, size, lent, scratch }
    }

    /// Appends bytes to a single block: other frames may be sent between two blocks.
    fn append(&mut self, bytes: &[u8], mark: Option<Mark>) -> Result<(), Closed> {
        if bytes.len() > self.free_bytes() {
            self.flush()?;
        }
        self.block[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
        self.marks.extend(mark);
        if self.free_bytes() == 0 { self.flush() } else { Ok(()) }
    }

    /// Appends a frame.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn frame(&mut self, frame: &Frame) -> Result<(), Closed> {
        self.marked_frame(frame, None)
    }

    /// Appends a frame that ends a file or contains its hash.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn last_frame(&mut self, frame: &Frame, mark: Mark) -> Result<(), Closed> {
        self.marked_frame(frame, Some(mark))
    }

    fn marked_frame(&mut self, frame: &Frame, mark: Option<Mark>) -> Result<(), Closed> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        encode(frame, &mut scratch);
        let result = self.append(&scratch, mark);
        self.scratch = scratch;
        result
    }

    /// Reads at most `most` bytes of a file into a data frame, and passes them to `seen`. Returns their number, which
    /// is zero at the end of the file, or why the file cannot be read.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn data(
        &mut self,
        file: &mut impl Read,
        most: u64,
        mut seen: impl FnMut(&[u8]),
    ) -> Result<io::Result<usize>, Closed> {
        if self.free_bytes() < HEADER + LEAST_DATA.min(most as usize) {
            self.flush()?;
        }
        let most = most.min((self.free_bytes() - HEADER).min(DATA_LIMIT) as u64) as usize;
        let start = self.used + HEADER;
        let got = match fill(file, &mut self.block[start..start + most]) {
            Ok(0) => return Ok(Ok(0)),
            Ok(got) => got,
            Err(error) => return Ok(Err(error)),
        };
        self.block[self.used..start].copy_from_slice(&frame_header(got));
        self.used = start + got;
        seen(&self.block[start..self.used]);
        if self.free_bytes() == 0 {
            self.flush()?;
        }
        Ok(Ok(got))
    }

    /// Sends the current block.
    ///
    /// # Errors
    /// [`Closed`].
    pub fn flush(&mut self) -> Result<(), Closed> {
        if self.used == 0 {
            return Ok(());
        }
        let fresh = self.fresh();
        let whole = std::mem::replace(&mut self.block, fresh).freeze();
        let filled = whole.slice(..self.used);
        self.used = 0;
        if self.lent.len() == KEPT {
            self.lent.pop_front();
        }
        self.lent.push_back(whole);
        let block = Block { bytes: filled, marks: std::mem::take(&mut self.marks) };
        self.out.blocking_send(block).map_err(|_| Closed)
    }

    fn free_bytes(&self) -> usize {
        self.size - self.used
    }

    /// Reuses the oldest block if it was released, otherwise allocates a new one.
    fn fresh(&mut self) -> BytesMut {
        if self.lent.front().is_some_and(Bytes::is_unique)
            && let Some(Ok(block)) = self.lent.pop_front().map(Bytes::try_into_mut)
            && block.len() == self.size
        {
            return block;
        }
        BytesMut::zeroed(self.size)
    }
}

/// Reads until `space` is full or the file ends.
fn fill(file: &mut impl Read, space: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < space.len() {
        match file.read(&mut space[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::wire::{Decoder, WireItem, greeting};

    #[test]
    fn no_frame_is_cut_by_the_end_of_a_block_and_marks_go_with_their_frames() {
        let (out, mut blocks) = mpsc::channel(1000);
        let mut writer = Blocks::new(1432, out);
        writer.append(&greeting(), None).expect("open");
        let why = "why".repeat(300);
        for index in 0..2000 {
            writer.frame(&Frame::Skip(index, why.as_str().into())).expect("open");
            writer.last_frame(&Frame::End([7; 32]), Mark::Sent(index)).expect("open");
            let file = &mut &[7; 700][..];
            writer.data(file, 1 + u64::from(index % 700), |_| ()).expect("open").expect("read");
        }
        writer.flush().expect("open");
        let (mut decoder, mut frames) = (Decoder::default(), 0);
        while let Ok(block) = blocks.try_recv() {
            // Frames that are sent while the disk is slow appear between blocks.
            let mut alive = Vec::new();
            encode(&Frame::Alive(0, 0), &mut alive);
            let mut ends = 0;
            for mut bytes in [block.bytes, alive.into()] {
                while let Some(item) = decoder.next(&mut bytes).expect("understood") {
                    frames += u32::from(matches!(item, WireItem::Frame(Frame::Skip(..))));
                    ends += usize::from(matches!(item, WireItem::Frame(Frame::End(_))));
                }
            }
            assert_eq!(block.marks.len(), ends, "each mark goes with its frame");
        }
        assert_eq!(frames, 2000);
    }

    #[test]
    fn blocks_hold_whole_messages_and_their_memory_is_used_again() {
        let (out, mut blocks) = mpsc::channel(100);
        let mut writer = Blocks::new(1432, out);
        let data: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
        let mut file = &data[..];
        let mut decoder = Decoder::default();
        let (mut found, mut places) = (Vec::new(), std::collections::BTreeSet::new());
        let mut take = |mut block: Bytes| {
            places.insert(block.as_ptr() as usize);
            while let Some(item) = decoder.next(&mut block).expect("understood") {
                if let WireItem::Data(bytes) = item {
                    found.extend_from_slice(&bytes);
                }
            }
        };
        writer.append(&greeting(), None).expect("open");
        loop {
            let left = file.len() as u64;
            if writer.data(&mut file, left, |_| ()).expect("open").expect("read") == 0 {
                break;
            }
            while let Ok(block) = blocks.try_recv() {
                assert_eq!(block.bytes.len() % 1432, 0);
                take(block.bytes);
            }
        }
        writer.flush().expect("open");
        take(blocks.try_recv().expect("the rest").bytes);
        assert_eq!(found, data);
        assert!(places.len() < 4, "{} blocks", places.len());
    }
}
