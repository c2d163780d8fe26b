//! What one association does for a transfer, at the receiver's end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};

use super::Summary;
use super::store::Store;
use super::tally::Tally;
use super::writer::{Batch, Tools, Writer};
use crate::files::broken::Broken;
use crate::files::link::Link;
use crate::files::stream::{SILENCE, next_messages, send_block};
use crate::files::watch::Watch;
use crate::files::wire::{Frame, encode, greeting};

/// Batches between the association and the disk.
const QUEUE: usize = 64;
/// Bytes in them, in units of [`UNIT`]: what a disk may be behind before the sender has to wait.
const BUDGET: usize = 32 << 10;
const UNIT: usize = 1 << 10;
/// The sender hears how far it is at least so often.
const ALIVE: Duration = Duration::from_millis(250);
/// Frames that go together.
const TOGETHER: usize = 256;

/// When something was heard last, and whether to stop.
#[derive(Debug)]
pub struct Pulse {
    heard: Mutex<Instant>,
    /// The disk is waited for; the sender may be as silent as it wants.
    disk: AtomicBool,
    /// Tells the attempt to end as if the sender were silent.
    pub stop: Notify,
}

impl Pulse {
    /// Heard just now.
    pub fn new() -> Self {
        let heard = Mutex::new(Instant::now());
        Self { heard, disk: AtomicBool::new(false), stop: Notify::new() }
    }

    /// For how long nothing has been heard, though somebody listened.
    pub fn silent(&self) -> Duration {
        if self.disk.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }

    fn beat(&self, disk: bool) {
        self.disk.store(disk, Ordering::Relaxed);
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Receives what one sender sends.
///
/// # Errors
/// [`Broken`]: it ended before. The sender has been told, if it can hear.
pub async fn attempt<L: Link>(
    link: &Arc<L>,
    store: &Arc<Store>,
    watch: &Arc<Watch>,
    pulse: &Pulse,
) -> Result<Summary, Broken> {
    let (out, frames) = mpsc::unbounded_channel();
    let (batches_in, batches) = mpsc::channel(QUEUE);
    let tally = Arc::new(Tally::new(watch.clone()));
    let tools = Tools {
        store: store.clone(),
        watch: watch.clone(),
        tally: tally.clone(),
        out: out.clone(),
    };
    let mut thread = tokio::task::spawn_blocking(move || Writer::new(tools).run(batches));
    let work = async move {
        let result = tokio::select! {
            result = &mut thread => joined(result),
            broken = listen(&**link, batches_in, pulse) => match joined(thread.await) {
                // The thread knows only that there is nothing more.
                Err(Broken::Gone(_)) => Err(broken),
                result => result,
            }
        };
        if let Err(broken @ (Broken::Own(_) | Broken::Wire(_) | Broken::Violation(_))) = &result {
            let _ = out.send(Frame::Trouble(broken.to_string()));
        }
        result
    };
    let (result, ()) = tokio::join!(work, speak(&**link, frames, &tally));
    let (done, failed) = tally.counts();
    let (bytes, failures) = (tally.bytes(), tally.failures());
    result.map(|()| Summary { done, failed, bytes, failures })
}

fn joined<T>(result: Result<Result<T, Broken>, tokio::task::JoinError>) -> Result<T, Broken> {
    result.unwrap_or_else(|error| Err(Broken::Own(format!("the writing thread: {error}"))))
}

/// Passes on what comes until nothing more comes.
async fn listen<L: Link>(link: &L, batches: mpsc::Sender<Batch>, pulse: &Pulse) -> Broken {
    let budget = Arc::new(Semaphore::new(BUDGET));
    loop {
        let mut messages = Vec::new();
        tokio::select! {
            result = next_messages(link, &mut messages) => {
                if let Err(broken) = result {
                    return broken;
                }
            }
            () = pulse.stop.notified() => return Broken::Silent(pulse.silent().as_secs()),
        }
        pulse.beat(true);
        let bytes: usize = messages.iter().map(Bytes::len).sum();
        let share = bytes.div_ceil(UNIT).clamp(1, BUDGET) as u32;
        let Ok(permit) = budget.clone().acquire_many_owned(share).await else {
            return Broken::Gone(link.why_ended().await);
        };
        if batches.send(Batch { messages, permit }).await.is_err() {
            // The thread has ended, and its result says why.
            return Broken::Gone(link.why_ended().await);
        }
        pulse.beat(false);
    }
}

/// Tells the sender everything that is to be told, and how far it is; ends when nothing more can come.
async fn speak<L: Link>(link: &L, mut frames: UnboundedReceiver<Frame>, tally: &Tally) {
    let mut block = greeting().to_vec();
    let mut batch = Vec::new();
    loop {
        let sent = timeout(SILENCE, send_block(link, std::mem::take(&mut block).into())).await;
        if !matches!(sent, Ok(Ok(()))) {
            // Nobody hears it. Everything else still has to come to its end.
            while frames.recv().await.is_some() {}
            return;
        }
        match timeout(ALIVE, frames.recv_many(&mut batch, TOGETHER)).await {
            Ok(0) => return,
            Ok(_) => batch.drain(..).for_each(|frame| encode(&frame, &mut block)),
            Err(_) => encode(&Frame::Alive(tally.bytes()), &mut block),
        }
    }
}
