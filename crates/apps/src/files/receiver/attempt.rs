//! The receiver's part of a transfer over one association.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;

use super::Summary;
use super::inbox::Inbox;
use super::ledger::{Counts, Ledger};
use super::progress::Progress;
use super::writer::{Batch, Tools, Writer};
use crate::files::broken::Broken;
use crate::files::link::Link;
use crate::files::stream::{SILENCE, next_messages, send_block};
use crate::files::watch::Watch;
use crate::files::wire::{Frame, encode, greeting};

/// Most batches between the association and the disk.
const QUEUE: usize = 64;
/// Most bytes in them, in units of [`UNIT`]: how far the disk may lag before the sender has to wait.
const BUDGET: usize = 32 << 10;
const UNIT: usize = 1 << 10;
/// Maximum interval between progress reports to the sender.
const ALIVE: Duration = Duration::from_millis(250);
/// Frames that are sent together.
const TOGETHER: usize = 256;
/// Most frames that wait for the sender to take them. Tasks with further frames wait.
const OUTSTANDING_FRAMES: usize = 1024;
/// Memory of a message besides its bytes, bytes.
const MESSAGE_COST: usize = 128;

/// Receives the files of one sender.
///
/// # Errors
/// [`Broken`]: the association ended early. The sender has been informed if possible.
pub async fn attempt<L: Link>(
    link: &Arc<L>,
    inbox: Inbox,
    watch: &Arc<Watch>,
    progress: &Arc<Progress>,
) -> Result<Summary, Broken> {
    let (out, frames) = mpsc::channel(OUTSTANDING_FRAMES);
    let (batches_in, batches) = mpsc::channel(QUEUE);
    let ledger = Arc::new(Ledger::new(watch.clone()));
    let peer = inbox.peer().clone();
    let tools = Tools {
        inbox: Arc::new(inbox),
        watch: watch.clone(),
        ledger: ledger.clone(),
        progress: progress.clone(),
        out: out.clone(),
    };
    let mut thread = tokio::task::spawn_blocking(move || Writer::new(tools).run(batches));
    let work = async move {
        let result = tokio::select! {
            result = &mut thread => joined(result),
            broken = listen(&**link, batches_in, progress) => match joined(thread.await) {
                // The thread only knows that no more data arrives.
                Err(Broken::Gone(_)) => Err(broken),
                result => result,
            }
        };
        if let Err(broken) = &result
            && broken.can_be_told()
        {
            let _ = out.send(Frame::Trouble(broken.to_string().into())).await;
        }
        result
    };
    let (result, ()) = tokio::join!(work, speak(&**link, frames, &ledger, progress));
    let Counts { received, same, failed, not_sent } = ledger.counts();
    let (bytes, failures) = (ledger.bytes().0, ledger.take_failures());
    result.map(|()| Summary { peer, received, same, failed, not_sent, bytes, failures })
}

fn joined<T>(result: Result<Result<T, Broken>, tokio::task::JoinError>) -> Result<T, Broken> {
    result.unwrap_or_else(|error| {
        Err(Broken::Transfer(format!("receiver's writing thread failed: {error}")))
    })
}

/// Passes received messages on until the association ends.
async fn listen<L: Link>(link: &L, batches: mpsc::Sender<Batch>, progress: &Progress) -> Broken {
    let budget = Arc::new(Semaphore::new(BUDGET));
    loop {
        let mut messages = Vec::new();
        tokio::select! {
            result = next_messages(link, &mut messages) => {
                if let Err(broken) = result {
                    return broken;
                }
            }
            broken = progress.ended() => return broken,
        }
        progress.beat(true);
        // The memory of a message besides its bytes is charged as well.
        let bytes: usize = messages.iter().map(|message| MESSAGE_COST + message.len()).sum();
        let share = bytes.div_ceil(UNIT).clamp(1, BUDGET) as u32;
        let pass_on = async {
            let permit = budget.clone().acquire_many_owned(share).await.ok()?;
            batches.send(Batch { messages, permit }).await.ok()
        };
        tokio::select! {
            passed = pass_on => if passed.is_none() {
                // The thread has ended; its result contains the reason.
                return Broken::Gone(link.why_ended().await);
            },
            broken = progress.ended() => return broken,
        }
        progress.beat(false);
    }
}

/// Sends queued frames and progress to the sender. Ends when no more frames can come.
async fn speak<L: Link>(
    link: &L,
    mut frames: mpsc::Receiver<Frame>,
    ledger: &Ledger,
    progress: &Progress,
) {
    let mut block = greeting().to_vec();
    let mut batch = Vec::new();
    loop {
        let sent = timeout(SILENCE, send_block(link, std::mem::take(&mut block).into())).await;
        if !matches!(sent, Ok(Ok(()))) {
            // The sender receives nothing any more. The other tasks still have to end.
            if sent.is_err() {
                progress.end(Broken::Silent(SILENCE.as_secs()));
            }
            while frames.recv().await.is_some() {}
            return;
        }
        match timeout(ALIVE, frames.recv_many(&mut batch, TOGETHER)).await {
            Ok(0) => return,
            Ok(_) => batch.drain(..).for_each(|frame| encode(&frame, &mut block)),
            Err(_) => {
                let (placed, read) = ledger.bytes();
                encode(&Frame::Alive(placed, read), &mut block);
            }
        }
    }
}
