//! The end that gets the files.

mod attempt;
mod current;
mod finish;
mod list;
mod store;
mod survey;
mod tally;
mod writer;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use self::attempt::{Pulse, attempt};
pub use self::store::{Store, StoreError};
use super::broken::Broken;
use super::link::Link;
use super::stream::end;
use super::watch::{News, Watch};

/// A sender that was silent for so long makes room for another, which may be the same one, started again.
const MAKES_ROOM: Duration = Duration::from_secs(3);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Takes associations of senders.
pub trait Accept {
    /// What it takes.
    type Link: Link;

    /// The next one; none: there will be no more.
    fn accept(&self) -> impl Future<Output = Option<Self::Link>> + Send;
}

/// What a sender has brought.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// Files that are whole, those included that were there before.
    pub done: u32,
    /// Entries that are not.
    pub failed: u32,
    /// Bytes in their place.
    pub bytes: u64,
    /// What failed, and why.
    pub failures: Vec<(String, String)>,
}

/// Receives from one sender after the other; each that has brought all it has is told to `finished`, which
/// says whether to go on.
///
/// # Errors
/// [`Broken::Own`]: nothing more can be received, as when the disk is full.
pub async fn receive<A: Accept>(
    accept: &A,
    store: &Arc<Store>,
    watch: &Arc<Watch>,
    mut finished: impl FnMut(Summary) -> bool,
) -> Result<(), Broken> {
    let mut waiting = None;
    loop {
        let next = match waiting.take() {
            Some(link) => Some(link),
            None => accept.accept().await,
        };
        let Some(link) = next else { return Ok(()) };
        let link = Arc::new(link);
        watch.attach(link.clone());
        watch.tell(News::Connected);
        let pulse = Pulse::new();
        let result = {
            let attempt = attempt(&link, store, watch, &pulse);
            tokio::pin!(attempt);
            tokio::select! {
                result = &mut attempt => result,
                () = newcomer(accept, &mut waiting, &pulse) => {
                    pulse.stop.notify_one();
                    attempt.await
                }
            }
        };
        let in_order = !matches!(&result, Err(Broken::Gone(_) | Broken::Silent(_)));
        end(&*link, in_order).await;
        watch.detach();
        match result {
            Ok(summary) => {
                if !finished(summary) {
                    return Ok(());
                }
            }
            Err(broken @ Broken::Own(_)) => return Err(broken),
            Err(broken) => watch.tell(News::Lost(broken.to_string())),
        }
    }
}

/// Waits for another sender, then for the one of now to fall silent.
async fn newcomer<A: Accept>(accept: &A, waiting: &mut Option<A::Link>, pulse: &Pulse) {
    match accept.accept().await {
        Some(link) => *waiting = Some(link),
        None => std::future::pending().await,
    }
    while pulse.silent() < MAKES_ROOM {
        sleep(LOOK).await;
    }
}
