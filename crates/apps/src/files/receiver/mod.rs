//! The receiving end of a transfer.

mod admission;
mod attempt;
mod current;
mod finish;
mod inbox;
mod incoming;
mod ledger;
mod list;
mod part;
mod progress;
mod quota;
mod store;
mod survey;
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
pub use self::inbox::Found;
pub use self::inbox::Inbox;
#[cfg(test)]
pub use self::part::Part;
use self::progress::{PROGRESS_TIME, Progress, SILENCE_LIMIT, StallClock};
pub use self::store::{Rules, Store, StoreError};
use super::broken::Broken;
use super::link::Link;
use super::peer::Peer;
use super::stream::{SILENCE, end, send_block};
use super::watch::{News, Watch};
use super::wire::{Frame, encode, greeting};

/// Poll interval for a sender that keeps others waiting.
const LOOK: Duration = Duration::from_millis(200);

/// Returns the inbox of a sender, or why it may not send.
pub type Admit = dyn Fn(&Peer) -> Result<Inbox, String> + Send + Sync;

/// Accepts associations of senders.
pub trait Accept {
    /// The type of an association.
    type Link: Link;

    /// The next association; none if no more will come.
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
    /// Bytes in their place, including those of entries that failed.
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

/// Receives from one sender after the other. `finished` is called with the result of each transfer that was completed
/// or that this end could not accept (a full disk), and returns whether to continue. [`Watch::stop`] ends the
/// receiver in an orderly way.
///
/// # Errors
/// [`Broken::Own`]: no more files can be received, for example because the directory was deleted.
pub async fn receive<A: Accept>(
    accept: &A,
    admit: &Arc<Admit>,
    watch: &Arc<Watch>,
    mut finished: impl FnMut(Result<Summary, String>) -> bool,
) -> Result<(), Broken> {
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
        watch.tell(News::Connected(link.peer()));
        let result = serve(accept, &link, admit, watch, &mut waiting).await;
        let in_order = !matches!(&result, Err(Broken::Gone(_) | Broken::Silent(_)));
        end(&*link, in_order).await;
        watch.detach();
        match result {
            Ok(summary) => {
                if !finished(Ok(summary)) {
                    return Ok(());
                }
            }
            Err(broken @ Broken::Own(_)) => return Err(broken),
            Err(Broken::Transfer(why)) => {
                watch.tell(News::Lost(why.as_str().into()));
                if !finished(Err(why)) {
                    return Ok(());
                }
            }
            Err(broken) => watch.tell(News::Lost(broken.to_string().into())),
        }
    }
}

/// Serves one sender until it has finished, keeps others waiting for too long, or this end is stopped.
async fn serve<A: Accept>(
    accept: &A,
    link: &Arc<A::Link>,
    admit: &Arc<Admit>,
    watch: &Arc<Watch>,
    waiting: &mut Option<A::Link>,
) -> Result<Summary, Broken> {
    let (admit, peer) = (admit.clone(), link.peer());
    let admitted = tokio::task::spawn_blocking(move || admit(&peer)).await;
    let inbox = match admitted {
        Ok(Ok(inbox)) => inbox,
        Ok(Err(why)) => return refuse(&**link, why).await,
        Err(error) => return refuse(&**link, error.to_string()).await,
    };
    let progress = Arc::new(Progress::new());
    let attempt = attempt(link, inbox, watch, &progress);
    tokio::pin!(attempt);
    let why = tokio::select! {
        result = &mut attempt => return result,
        why = newcomer(accept, waiting, &progress) => why,
        () = watch.stopped() => Broken::Gone("the receiver was stopped".into()),
    };
    progress.end(why);
    attempt.await
}

/// Tells a sender why it may not send.
async fn refuse<L: Link>(link: &L, why: String) -> Result<Summary, Broken> {
    let why = format!("receiver refuses: {why}");
    let mut block = greeting().to_vec();
    encode(&Frame::Trouble(why.as_str().into()), &mut block);
    let _ = timeout(SILENCE, send_block(link, block.into())).await;
    Err(Broken::Refused(why))
}

/// Waits for another sender, then until the current one has lost its place.
async fn newcomer<A: Accept>(
    accept: &A,
    waiting: &mut Option<A::Link>,
    progress: &Progress,
) -> Broken {
    match accept.accept().await {
        Some(link) => *waiting = Some(link),
        None => std::future::pending().await,
    }
    let mut clock = StallClock::start(progress);
    loop {
        if progress.silent() >= SILENCE_LIMIT {
            return Broken::Silent(progress.silent().as_secs());
        }
        if clock.has_run_out(progress) {
            return Broken::Stalled(PROGRESS_TIME.as_secs());
        }
        sleep(LOOK).await;
    }
}
