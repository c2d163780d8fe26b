//! The receiving end of a transfer.

mod admission;
mod attempt;
mod current;
mod entry_states;
mod finish;
mod folder_check;
mod inbox;
mod incoming;
mod inventory;
mod list;
mod part;
mod quota;
mod sender_progress;
mod store;
mod walk;
mod workdir;
mod writer;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ropewalk_base::PeerText;
use tokio::time::{sleep, timeout};

pub use self::admission::Admission;
use self::attempt::attempt;
#[cfg(test)]
pub use self::inbox::ExistingEntry;
pub use self::inbox::Inbox;
#[cfg(test)]
pub use self::part::Part;
use self::sender_progress::{PROGRESS_TIME, SILENCE_LIMIT, SenderProgress, StallClock};
pub use self::store::{Rules, Store, StoreError};
use super::error::{REFUSES, TransferError};
use super::link::Link;
use super::peer::Peer;
use super::stream::{SILENCE, end, send_block};
use super::watch::{TransferEvent, TransferStatus};
use super::wire::{Frame, encode, greeting};

/// Poll interval for a sender that keeps others waiting.
const WATCHED_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Interval of messages to a sender that is being admitted.
const ADMISSION_REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// Returns the inbox of a sender, or why it may not send.
pub type Admit = dyn Fn(&Peer) -> Result<Inbox, String> + Send + Sync;

/// Accepts associations of senders.
pub trait Accept {
    /// The type of an association.
    type Link: Link;

    /// The next association. `None` if no more will arrive.
    fn accept(&self) -> impl Future<Output = Option<Self::Link>> + Send;
}

/// Result of one sender's transfer. Each listed entry counts once; folders count only if they failed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// The sender.
    pub peer: Peer,
    /// Files that arrived, and are on disk under their names.
    pub received: u32,
    /// Files that existed before, as compared by their hash.
    pub same: u32,
    /// Entries that could not be accepted.
    pub failed: u32,
    /// Entries that were listed and not sent.
    pub not_sent: u32,
    /// Bytes of these files that are in their place.
    pub bytes: u64,
    /// The failed entries and the reasons.
    pub failures: Vec<(PeerText, PeerText)>,
}

impl Summary {
    /// Files that exist here now.
    pub const fn done(&self) -> u32 {
        self.received + self.same
    }

    /// Entries that failed or were not sent.
    pub const fn missing(&self) -> u32 {
        self.failed + self.not_sent
    }
}

/// Receives from senders in turn. `finished` is called with the result of each transfer that was completed or that
/// this end could not accept (a full disk), and returns whether to continue. [`TransferStatus::stop`] ends the
/// receiver in an orderly way.
///
/// # Errors
/// [`TransferError::Local`]: no more files can be received, for example because the directory was deleted.
pub async fn receive<A: Accept>(
    accept: &A,
    admit: &Arc<Admit>,
    watch: &Arc<TransferStatus>,
    mut finished: impl FnMut(Result<Summary, String>) -> bool,
) -> Result<(), TransferError> {
    let mut waiting = None;
    loop {
        let next = match waiting.take() {
            Some(link) => Some(link),
            None => tokio::select! {
                next = accept.accept() => next,
                () = watch.stopped() => None,
            },
        };
        let Some(link) = next else { return Ok(()) };
        let link = Arc::new(link);
        watch.attach(link.clone());
        watch.tell(TransferEvent::Connected(link.peer()));
        let result = serve(accept, &link, admit, watch, &mut waiting).await;
        let in_order =
            !matches!(&result, Err(TransferError::AssociationEnded(_) | TransferError::Silent(_)));
        end(&*link, in_order).await;
        watch.detach();
        match result {
            Ok(summary) => {
                if !finished(Ok(summary)) {
                    return Ok(());
                }
            }
            Err(error @ TransferError::Local(_)) => return Err(error),
            Err(TransferError::Transfer(why)) => {
                watch.tell(TransferEvent::Lost(why.as_str().into()));
                if !finished(Err(why)) {
                    return Ok(());
                }
            }
            Err(error) => watch.tell(TransferEvent::Lost(error.to_string().into())),
        }
    }
}

/// Serves one sender until it has finished, keeps others waiting for too long, or this end is stopped.
async fn serve<A: Accept>(
    accept: &A,
    link: &Arc<A::Link>,
    admit: &Arc<Admit>,
    watch: &Arc<TransferStatus>,
    waiting: &mut Option<A::Link>,
) -> Result<Summary, TransferError> {
    let (admitted, opening) = admit_peer(&**link, admit).await;
    let inbox = match admitted {
        Ok(inbox) => inbox,
        Err(why) => return refuse(&**link, opening, why).await,
    };
    let sender_progress = Arc::new(SenderProgress::new());
    let attempt = attempt(link, inbox, opening, watch, &sender_progress);
    tokio::pin!(attempt);
    let why = tokio::select! {
        result = &mut attempt => return result,
        why = accept_next(accept, waiting, &sender_progress) => why,
        () = watch.stopped() => TransferError::AssociationEnded("the receiver was stopped".into()),
    };
    sender_progress.end(why);
    attempt.await
}

/// Calls `admit` on a separate thread. Measuring a large directory can take longer than the sender waits for a silent
/// receiver, so the sender receives keep-alive messages meanwhile. Also returns the greeting if it has not been sent
/// yet.
async fn admit_peer<L: Link>(link: &L, admit: &Arc<Admit>) -> (Result<Inbox, String>, Vec<u8>) {
    let (admit, peer) = (admit.clone(), link.peer());
    let mut admitting = tokio::task::spawn_blocking(move || admit(&peer));
    let mut block = greeting().to_vec();
    loop {
        if let Ok(admitted) = timeout(ADMISSION_REPORT_INTERVAL, &mut admitting).await {
            return (admitted.unwrap_or_else(|error| Err(error.to_string())), block);
        }
        encode(&Frame::Alive(0, 0), &mut block);
        // A failure ends the association, which is detected after the admission.
        let _ = timeout(SILENCE, send_block(link, std::mem::take(&mut block).into())).await;
    }
}

/// Tells a sender why it may not send, after the greeting if that has not been sent yet.
async fn refuse<L: Link>(
    link: &L,
    mut block: Vec<u8>,
    why: String,
) -> Result<Summary, TransferError> {
    let why = format!("{REFUSES}{why}");
    encode(&Frame::Error(why.as_str().into()), &mut block);
    let _ = timeout(SILENCE, send_block(link, block.into())).await;
    Err(TransferError::Refused(why))
}

/// Waits for another sender, then until the current one has lost its place.
async fn accept_next<A: Accept>(
    accept: &A,
    waiting: &mut Option<A::Link>,
    sender_progress: &SenderProgress,
) -> TransferError {
    match accept.accept().await {
        Some(link) => *waiting = Some(link),
        None => std::future::pending().await,
    }
    let mut clock = StallClock::start(sender_progress);
    loop {
        if sender_progress.silence() >= SILENCE_LIMIT {
            return TransferError::Silent(sender_progress.silence().as_secs());
        }
        if clock.has_expired(sender_progress) {
            return TransferError::Stalled(PROGRESS_TIME.as_secs());
        }
        sleep(WATCHED_POLL_INTERVAL).await;
    }
}
