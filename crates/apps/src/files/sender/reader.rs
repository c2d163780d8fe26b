//! The thread that reads and hashes files, controlled by the receiver's answers.

use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, Ordering};

use ropewalk_base::PeerText;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TryRecvError;

use super::blocks::{Blocks, Closed, Mark};
use super::job::Job;
use super::source::Source;
use crate::files::watch::{TransferEvent, TransferStatus};
use crate::files::wire::{Entry, Frame, Hash};

/// Maximum size of the entries in one frame, bytes; below the limit of a frame.
const ENTRIES: usize = 32 << 10;
/// Size of an entry in addition to its name, bytes.
const ENTRY: usize = 25;
/// Bytes that are hashed at a time while nothing is sent.
const SCRATCH: usize = 256 << 10;

/// The receiver's answer for the next entries, or its decision about an earlier one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The receiver has none of the next files, this many.
    Fresh(u32),
    /// The next folders, this many, exist.
    Made(u32),
    /// The first part of the next file exists: its length and hash.
    Partial(u64, Hash),
    /// A file exists that may be identical.
    Exists,
    /// The next entry is refused.
    Refused,
    /// The file that was compared differs and must be sent.
    Differs(u32),
    /// The file that was compared has a final state.
    Decided,
}

/// Reads the files that one association has yet to send.
pub struct Reader<'a> {
    /// The files and their state.
    pub job: &'a Job,
    /// The entries to send.
    pub list: &'a [u32],
    /// The receiver's answers for the entries, in this order.
    pub answers: UnboundedReceiver<Answer>,
    /// Receives the blocks.
    pub out: Blocks,
    /// Observation by the user.
    pub watch: &'a TransferStatus,
    /// Whether this end hashes the beginning of a file, which can take long while the receiver waits.
    pub busy: &'a AtomicBool,
}

impl Reader<'_> {
    /// Sends the list, then what the receiver lacks. The greeting is sent elsewhere.
    ///
    /// # Errors
    /// [`Closed`]: the association has ended.
    pub fn run(mut self) -> Result<(), Closed> {
        self.announce()?;
        self.out.flush()?;
        let (mut place, mut undecided) = (0, 0_usize);
        while place < self.list.len() || undecided > 0 {
            let answer = self.next_answer()?;
            let taken = match answer {
                Answer::Made(count) | Answer::Fresh(count) => count as usize,
                Answer::Differs(_) | Answer::Decided => 0,
                Answer::Partial(..) | Answer::Exists | Answer::Refused => 1,
            };
            match answer {
                Answer::Made(_) | Answer::Refused => {}
                Answer::Fresh(_) => {
                    for place in place..place + taken {
                        self.send(place, 0, blake3::Hasher::new())?;
                    }
                }
                Answer::Partial(len, hash) => self.continue_file(place, len, hash)?,
                Answer::Exists => undecided += usize::from(self.check(place)?),
                Answer::Differs(differing) => {
                    undecided = undecided.saturating_sub(1);
                    self.send(differing as usize, 0, blake3::Hasher::new())?;
                }
                Answer::Decided => undecided = undecided.saturating_sub(1),
            }
            place += taken;
        }
        self.out.frame(&Frame::EndOfTransfer)?;
        self.out.flush()
    }

    fn announce(&mut self) -> Result<(), Closed> {
        let (mut batch, mut len, mut bytes) = (Vec::new(), 0, 0);
        for index in self.list {
            let entry = self.job.manifest.entries[*index as usize].clone();
            bytes += entry.size();
            len += ENTRY + entry.name.bytes().len();
            batch.push(entry);
            if len > ENTRIES {
                self.out.frame(&Frame::Entries(std::mem::take(&mut batch)))?;
                len = 0;
            }
        }
        self.out.frame(&Frame::Entries(batch))?;
        self.out.frame(&Frame::Listed(self.list.len() as u32, bytes))
    }

    /// The receiver's next answer. Frames that are ready are sent before waiting for it.
    fn next_answer(&mut self) -> Result<Answer, Closed> {
        match self.answers.try_recv() {
            Ok(answer) => Ok(answer),
            Err(TryRecvError::Disconnected) => Err(Closed),
            Err(TryRecvError::Empty) => {
                self.out.flush()?;
                self.answers.blocking_recv().ok_or(Closed)
            }
        }
    }

    fn entry(&self, place: usize) -> &Entry {
        &self.job.manifest.entries[self.list[place] as usize]
    }

    /// Tells the receiver that an entry is not sent.
    fn skip(&mut self, place: usize, why: &str) -> Result<(), Closed> {
        let why = PeerText::from(why);
        if self.job.fail(self.list[place], &why) {
            let name = PeerText::new(self.entry(place).name.to_string());
            self.watch.tell(TransferEvent::Failed(name, why.clone()));
            self.watch.lose(0, 0, self.entry(place).size());
        }
        self.out.frame(&Frame::Skip(place as u32, why))
    }

    fn open(&self, place: usize) -> Result<Source, String> {
        Source::open(&self.job.manifest, self.list[place])
    }

    /// Sends a file from an offset on. The hasher has processed the part before.
    fn send(&mut self, place: usize, offset: u64, hasher: blake3::Hasher) -> Result<(), Closed> {
        let opened = self.open(place).and_then(|mut file| {
            let found = file.seek(SeekFrom::Start(offset)).map_err(|error| error.to_string());
            found.map(|_| file)
        });
        match opened {
            Ok(file) => self.send_from(place, offset, hasher, file),
            Err(why) => self.skip(place, &why),
        }
    }

    fn send_from(
        &mut self,
        place: usize,
        offset: u64,
        mut hasher: blake3::Hasher,
        mut file: Source,
    ) -> Result<(), Closed> {
        let mut left = self.entry(place).size() - offset;
        let name = PeerText::new(self.entry(place).name.to_string());
        self.watch.tell(TransferEvent::Started(name, self.entry(place).size()));
        self.job.found(self.list[place], offset);
        self.out.frame(&Frame::Begin(place as u32, offset))?;
        while left > 0 {
            if self.job.has_failed(self.list[place]) {
                return self.skip(place, "the receiver could not write it");
            }
            let seen = |bytes: &[u8]| {
                hasher.update(bytes);
            };
            match self.out.data(&mut file, left, seen)? {
                Ok(0) => break,
                Ok(got) => {
                    left -= got as u64;
                    self.watch.add_moved(got as u64);
                }
                Err(error) => return self.skip(place, &error.to_string()),
            }
        }
        if let Err(why) = file.check_end(self.entry(place), left) {
            return self.skip(place, why);
        }
        let end = Frame::End(*hasher.finalize().as_bytes());
        self.out.last_frame(&end, Mark::Sent(self.list[place]))
    }

    /// Continues a file whose beginning the receiver has, if the hashes agree.
    fn continue_file(&mut self, place: usize, len: u64, theirs: Hash) -> Result<(), Closed> {
        if len > self.entry(place).size() {
            return self.send(place, 0, blake3::Hasher::new());
        }
        self.out.flush()?;
        match self.hash_of(place, len) {
            Ok(hasher) if *hasher.finalize().as_bytes() == theirs => {
                let name = PeerText::new(self.entry(place).name.to_string());
                self.watch.tell(TransferEvent::Resumed(name, len));
                self.send(place, len, hasher)
            }
            Ok(_) => self.send(place, 0, blake3::Hasher::new()),
            Err(why) => self.skip(place, &why),
        }
    }

    /// Sends the hash of a file, for comparison at the receiver. Returns false if the file cannot be read.
    fn check(&mut self, place: usize) -> Result<bool, Closed> {
        self.out.flush()?;
        let size = self.entry(place).size();
        match self.hash_of(place, size) {
            Ok(hasher) => {
                let check = Frame::Check(place as u32, hasher.finalize().into());
                self.out.last_frame(&check, Mark::Checked(self.list[place]))?;
                Ok(true)
            }
            Err(why) => self.skip(place, &why).map(|()| false),
        }
    }

    /// A hasher that has processed the first `len` bytes of a file.
    fn hash_of(&self, place: usize, len: u64) -> Result<blake3::Hasher, String> {
        let mut file = self.open(place)?;
        if let Some(hasher) = self.job.recall(self.list[place], len) {
            return Ok(hasher);
        }
        self.busy.store(true, Ordering::Relaxed);
        let hashed = hash_beginning(&mut file, len);
        self.busy.store(false, Ordering::Relaxed);
        let (hasher, seen) = hashed.map_err(|error| error.to_string())?;
        let size = self.entry(place).size();
        if seen < len || len == size {
            file.check_end(self.entry(place), len - seen)?;
        }
        self.job.remember(self.list[place], len, &hasher);
        Ok(hasher)
    }
}

/// Hashes at most `len` bytes. Returns the hasher and the number of bytes.
pub fn hash_beginning(file: impl Read, len: u64) -> io::Result<(blake3::Hasher, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut scratch = vec![0; SCRATCH.min(len.max(1) as usize)];
    let mut file = file.take(len);
    let mut seen = 0;
    loop {
        match file.read(&mut scratch) {
            Ok(0) => return Ok((hasher, seen)),
            Ok(got) => {
                hasher.update(&scratch[..got]);
                seen += got as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
