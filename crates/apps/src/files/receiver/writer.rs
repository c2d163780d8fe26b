//! The thread that decodes the sender's messages and writes the files.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, Sender};

use super::inbox::Inbox;
use super::incoming::Files;
use super::ledger::Ledger;
use super::list::List;
use super::progress::Progress;
use crate::files::broken::Broken;
use crate::files::watch::Watch;
use crate::files::wire::{Decoder, Frame, Piece};

/// Messages, and the permit for their bytes.
pub struct Batch {
    /// The messages, in order.
    pub messages: Vec<Bytes>,
    /// Released when the messages are written.
    pub permit: OwnedSemaphorePermit,
}

/// State that all parts of the receiver share.
#[derive(Clone, Debug)]
pub struct Tools {
    /// The directory of the files.
    pub inbox: Arc<Inbox>,
    /// Observation by the user.
    pub watch: Arc<Watch>,
    /// State of each entry.
    pub ledger: Arc<Ledger>,
    /// Progress of the association.
    pub progress: Arc<Progress>,
    /// Frames to the sender. Threads wait here if the sender does not read.
    pub out: Sender<Frame>,
}

impl Tools {
    /// Sends a frame to the sender. Waits while it takes none. If the sender has disconnected, that is detected elsewhere.
    pub fn tell(&self, frame: Frame) {
        self.progress.tell(&self.out, frame);
    }
}

/// Writes the files of one association.
pub struct Writer {
    tools: Tools,
    decoder: Decoder,
    phase: Phase,
}

enum Phase {
    Listing(List),
    Files(Files),
    Over,
}

impl Writer {
    /// A writer that has received nothing.
    pub fn new(tools: Tools) -> Self {
        Self { tools, decoder: Decoder::default(), phase: Phase::Listing(List::default()) }
    }

    /// Writes until the transfer has finished.
    ///
    /// # Errors
    /// [`Broken`]; the received part of the current file is in its unfinished file.
    pub fn run(mut self, mut batches: Receiver<Batch>) -> Result<(), Broken> {
        let result = self.take_all(&mut batches);
        if let (Err(_), Phase::Files(files)) = (&result, self.phase) {
            files.interrupted();
        }
        result
    }

    fn take_all(&mut self, batches: &mut Receiver<Batch>) -> Result<(), Broken> {
        while let Some(Batch { messages, permit }) = batches.blocking_recv() {
            let _owed = self.tools.progress.owe();
            for mut message in messages {
                while let Some(piece) = self.decoder.next(&mut message)? {
                    if self.take(piece)? {
                        return Ok(());
                    }
                }
            }
            drop(permit);
        }
        Err(Broken::Gone("the sender has disconnected".into()))
    }

    /// Returns whether that was the last piece.
    fn take(&mut self, piece: Piece) -> Result<bool, Broken> {
        match (piece, &mut self.phase) {
            (Piece::Greeted | Piece::Frame(Frame::Alive(..)), _) => Ok(false),
            (Piece::Frame(Frame::Trouble(why)), _) => Err(Broken::Peer(why)),
            (Piece::Frame(Frame::Entries(entries)), Phase::Listing(list)) => {
                let bytes: usize = entries.iter().map(|entry| entry.name.bytes().len()).sum();
                self.tools.progress.add(bytes as u64);
                list.add(entries).map(|()| false)
            }
            (Piece::Frame(Frame::Listed(count, bytes)), Phase::Listing(list)) => {
                let entries = std::mem::take(list).complete(count, bytes)?;
                self.phase = Phase::Files(Files::start(self.tools.clone(), entries)?);
                Ok(false)
            }
            (Piece::Data(bytes), Phase::Files(files)) => files.data(&bytes).map(|()| false),
            (Piece::Frame(Frame::Begin(place, offset)), Phase::Files(files)) => {
                files.begin(place, offset).map(|()| false)
            }
            (Piece::Frame(Frame::End(hash)), Phase::Files(files)) => {
                files.end(&hash).map(|()| false)
            }
            (Piece::Frame(Frame::Check(place, hash)), Phase::Files(files)) => {
                files.check(place, hash).map(|()| false)
            }
            (Piece::Frame(Frame::Skip(place, why)), Phase::Files(files)) => {
                files.skip(place, &why).map(|()| false)
            }
            (Piece::Frame(Frame::Over), phase @ Phase::Files(_)) => {
                match std::mem::replace(phase, Phase::Over) {
                    Phase::Files(files) => files.over().map(|()| true),
                    _ => Ok(true),
                }
            }
            _ => Err(Broken::Violation("a message out of order")),
        }
    }
}
