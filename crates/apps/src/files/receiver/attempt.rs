//! The receiver's part of a transfer over one association.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::Summary;
use super::entry_states::{Counts, EntryStates};
use super::inbox::Inbox;
use super::sender_progress::SenderProgress;
use super::writer::{Batch, Writer, WriterContext};
use crate::files::error::TransferError;
use crate::files::link::Link;
use crate::files::stream::{SILENCE, next_messages, send_block};
use crate::files::watch::TransferStatus;
use crate::files::wire::{Frame, encode};

/// Maximum number of batches between the association and the disk.
const QUEUE: usize = 64;
/// Maximum amount of data in these batches, in units of [`BUDGET_UNIT`]: how far the disk may lag before the sender
/// has to wait.
const BUDGET: usize = 32 << 10;
const BUDGET_UNIT: usize = 1 << 10;
/// Maximum interval between progress reports to the sender.
const REPORT_INTERVAL: Duration = Duration::from_millis(250);
/// Frames that are sent together.
const FRAMES_PER_BLOCK: usize = 256;
/// Maximum number of frames that wait to be sent. Tasks with further frames wait.
const OUTSTANDING_FRAMES: usize = 1024;
/// Memory overhead of a message, bytes.
const MESSAGE_COST: usize = 128;

/// Receives the files of one sender. Sends `opening` first: the greeting, unless it was sent before.
///
/// # Errors
/// [`TransferError`]: the association ended early. The sender has been informed if possible.
pub async fn attempt<L: Link>(
    link: &Arc<L>,
    inbox: Inbox,
    opening: Vec<u8>,
    watch: &Arc<TransferStatus>,
    sender_progress: &Arc<SenderProgress>,
) -> Result<Summary, TransferError> {
    let (out, frames) = mpsc::channel(OUTSTANDING_FRAMES);
    let (batches_in, batches) = mpsc::channel(QUEUE);
    let entry_states = Arc::new(EntryStates::new(watch.clone()));
    let peer = inbox.peer().clone();
    let context = WriterContext {
        inbox: Arc::new(inbox),
        watch: watch.clone(),
        entry_states: entry_states.clone(),
        sender_progress: sender_progress.clone(),
        out: out.clone(),
    };
    let mut thread = tokio::task::spawn_blocking(move || Writer::new(context).run(batches));
    let work = async move {
        let result = tokio::select! {
            result = &mut thread => joined(result),
            error = receive_messages(&**link, batches_in, sender_progress) => match joined(thread.await) {
                // The thread only knows that no more data arrives.
                Err(TransferError::AssociationEnded(_)) => Err(error),
                result => result,
            }
        };
        if let Err(error) = &result
            && error.is_reportable()
        {
            let _ = out.send(Frame::Error(error.to_string().into())).await;
        }
        result
    };
    let (result, ()) =
        tokio::join!(work, send_frames(&**link, opening, frames, &entry_states, sender_progress));
    let Counts { received, same, failed, not_sent } = entry_states.counts();
    let (bytes, failures) = (entry_states.bytes().0, entry_states.take_failures());
    result.map(|()| Summary { peer, received, same, failed, not_sent, bytes, failures })
}

fn joined<T>(
    result: Result<Result<T, TransferError>, tokio::task::JoinError>,
) -> Result<T, TransferError> {
    result.unwrap_or_else(|error| {
        Err(TransferError::Transfer(format!("receiver's writing thread failed: {error}")))
    })
}

/// Forwards received messages until the association ends.
async fn receive_messages<L: Link>(
    link: &L,
    batches: mpsc::Sender<Batch>,
    sender_progress: &SenderProgress,
) -> TransferError {
    let budget = Arc::new(Semaphore::new(BUDGET));
    loop {
        let mut messages = Vec::new();
        tokio::select! {
            result = next_messages(link, &mut messages) => {
                if let Err(error) = result {
                    return error;
                }
            }
            error = sender_progress.ended() => return error,
        }
        sender_progress.on_received(true);
        // The memory overhead of a message is charged as well.
        let bytes: usize = messages.iter().map(|message| MESSAGE_COST + message.len()).sum();
        let share = bytes.div_ceil(BUDGET_UNIT).clamp(1, BUDGET) as u32;
        let pass_on = async {
            let permit = budget.clone().acquire_many_owned(share).await.ok()?;
            batches.send(Batch { messages, permit }).await.ok()
        };
        tokio::select! {
            passed = pass_on => if passed.is_none() {
                // The thread has ended; its result contains the reason.
                return TransferError::AssociationEnded(link.end_reason().await);
            },
            error = sender_progress.ended() => return error,
        }
        sender_progress.on_received(false);
    }
}

/// Sends a first block, then queued frames and progress to the sender. Ends when no more frames can come.
async fn send_frames<L: Link>(
    link: &L,
    mut block: Vec<u8>,
    mut frames: mpsc::Receiver<Frame>,
    entry_states: &EntryStates,
    sender_progress: &SenderProgress,
) {
    let mut batch = Vec::new();
    loop {
        let sent = timeout(SILENCE, send_block(link, std::mem::take(&mut block).into())).await;
        if !matches!(sent, Ok(Ok(()))) {
            // The sender no longer receives anything. The other tasks still have to end.
            if sent.is_err() {
                sender_progress.end(TransferError::Silent(SILENCE.as_secs()));
            }
            while frames.recv().await.is_some() {}
            return;
        }
        match timeout(REPORT_INTERVAL, frames.recv_many(&mut batch, FRAMES_PER_BLOCK)).await {
            Ok(0) => return,
            Ok(_) => batch.drain(..).for_each(|frame| encode(&frame, &mut block)),
            Err(_) => {
                let (placed, read) = entry_states.bytes();
                encode(&Frame::Alive(placed, read), &mut block);
            }
        }
    }
}
