//! The thread that decodes the sender's messages and writes the files.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::{Receiver, Sender};

use super::entry_states::EntryStates;
use super::inbox::Inbox;
use super::incoming::Files;
use super::list::List;
use super::sender_progress::SenderProgress;
use crate::files::error::TransferError;
use crate::files::watch::TransferStatus;
use crate::files::wire::{Decoder, Frame, WireItem};

/// Messages, and the permit for their bytes.
pub struct Batch {
    /// The messages, in order.
    pub messages: Vec<Bytes>,
    /// Released when the messages are written.
    pub permit: OwnedSemaphorePermit,
}

/// State that all parts of the receiver share.
#[derive(Clone, Debug)]
pub struct WriterContext {
    /// The directory of the files.
    pub inbox: Arc<Inbox>,
    /// Observation by the user.
    pub watch: Arc<TransferStatus>,
    /// State of each entry.
    pub entry_states: Arc<EntryStates>,
    /// Progress of the association.
    pub sender_progress: Arc<SenderProgress>,
    /// Frames to the sender. Threads wait here if the sender does not read.
    pub out: Sender<Frame>,
}

impl WriterContext {
    /// Sends a frame to the sender. Waits while it accepts none. A disconnected sender is detected elsewhere.
    pub fn tell(&self, frame: Frame) {
        self.sender_progress.send_frame(&self.out, frame);
    }
}

/// Writes the files of one association.
pub struct Writer {
    context: WriterContext,
    decoder: Decoder,
    phase: Phase,
}

enum Phase {
    Listing(List),
    Files(Files),
    Ended,
}

impl Writer {
    /// A writer that has received nothing.
    pub fn new(context: WriterContext) -> Self {
        Self { context, decoder: Decoder::default(), phase: Phase::Listing(List::default()) }
    }

    /// Writes until the transfer has finished.
    ///
    /// # Errors
    /// [`TransferError`]; the received part of the current file is in its unfinished file.
    pub fn run(mut self, mut batches: Receiver<Batch>) -> Result<(), TransferError> {
        let result = self.take_all(&mut batches);
        if let (Err(_), Phase::Files(files)) = (&result, self.phase) {
            files.interrupted();
        }
        result
    }

    fn take_all(&mut self, batches: &mut Receiver<Batch>) -> Result<(), TransferError> {
        while let Some(Batch { messages, permit }) = batches.blocking_recv() {
            let _task = self.context.sender_progress.begin_local_task();
            for mut message in messages {
                while let Some(item) = self.decoder.next(&mut message)? {
                    if self.take(item)? {
                        return Ok(());
                    }
                }
            }
            drop(permit);
        }
        Err(TransferError::AssociationEnded("the sender has disconnected".into()))
    }

    /// Returns whether that was the last piece.
    fn take(&mut self, item: WireItem) -> Result<bool, TransferError> {
        match (item, &mut self.phase) {
            (WireItem::Greeting | WireItem::Frame(Frame::Alive(..)), _) => Ok(false),
            (WireItem::Frame(Frame::Error(why)), _) => Err(TransferError::Peer(why)),
            (WireItem::Frame(Frame::Entries(entries)), Phase::Listing(list)) => {
                let bytes: usize = entries.iter().map(|entry| entry.name.bytes().len()).sum();
                self.context.sender_progress.add(bytes as u64);
                list.add(entries).map(|()| false)
            }
            (WireItem::Frame(Frame::Listed(count, bytes)), Phase::Listing(list)) => {
                let entries = std::mem::take(list).complete(count, bytes)?;
                self.phase = Phase::Files(Files::start(self.context.clone(), entries)?);
                Ok(false)
            }
            (WireItem::Data(bytes), Phase::Files(files)) => files.data(&bytes).map(|()| false),
            (WireItem::Frame(Frame::Begin(place, offset)), Phase::Files(files)) => {
                files.begin(place, offset).map(|()| false)
            }
            (WireItem::Frame(Frame::End(hash)), Phase::Files(files)) => {
                files.end(&hash).map(|()| false)
            }
            (WireItem::Frame(Frame::Check(place, hash)), Phase::Files(files)) => {
                files.check(place, hash).map(|()| false)
            }
            (WireItem::Frame(Frame::Skip(place, why)), Phase::Files(files)) => {
                files.skip(place, &why).map(|()| false)
            }
            (WireItem::Frame(Frame::EndOfTransfer), phase @ Phase::Files(_)) => {
                match std::mem::replace(phase, Phase::Ended) {
                    Phase::Files(files) => files.finish_transfer().map(|()| true),
                    _ => Ok(true),
                }
            }
            _ => Err(TransferError::Violation("a message out of order")),
        }
    }
}
