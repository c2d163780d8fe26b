//! The thread that writes: what the sender says in, files out.

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

/// Messages, and the right to keep so many bytes.
pub struct Batch {
    /// In order.
    pub messages: Vec<Bytes>,
    /// Given back when they are written.
    pub permit: OwnedSemaphorePermit,
}

/// What every part of it needs.
#[derive(Clone, Debug)]
pub struct Tools {
    /// Where files go.
    pub inbox: Arc<Inbox>,
    /// Who looks.
    pub watch: Arc<Watch>,
    /// What has become of each entry.
    pub ledger: Arc<Ledger>,
    /// How far it moves on.
    pub progress: Arc<Progress>,
    /// What the sender is told. A sender that does not listen makes those wait that tell.
    pub out: Sender<Frame>,
}

impl Tools {
    /// Tells the sender something; waits while it takes no answers. If nobody hears it, it is found out next time.
    pub fn tell(&self, frame: Frame) {
        self.progress.tell(&self.out, frame);
    }
}

/// Writes what one association brings.
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
    /// Nothing has come.
    pub fn new(tools: Tools) -> Self {
        Self { tools, decoder: Decoder::default(), phase: Phase::Listing(List::default()) }
    }

    /// Writes until all is done.
    ///
    /// # Errors
    /// [`Broken`]; what had come of the file is in its unfinished part.
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
        Err(Broken::Gone("the sender has gone".into()))
    }

    /// Whether that was the last thing.
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
            _ => Err(Broken::Violation("a message out of its turn")),
        }
    }
}
