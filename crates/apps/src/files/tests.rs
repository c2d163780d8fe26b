//! Complete transfers over links in memory: interrupted, resumed, refused and attacked.

mod claims;
mod hostile;
mod quota;
mod resume;
mod safety;
mod sizes;
mod totals;
mod transfer;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ropewalk_base::PeerText;

use super::receiver::{Admit, Inbox, Rules};
use super::test_support::{MemoryLink, TempDir, pair};
use super::*;

/// Size of a message, bytes. Small, so that many frames are split.
const MESSAGE: usize = 700;

/// Both ends of successive associations, each cut after a number of bytes. After the last one, none can be
/// opened.
pub struct Ends {
    plan: Mutex<VecDeque<Option<u64>>>,
    out: tokio::sync::mpsc::UnboundedSender<MemoryLink>,
    inbox: tokio::sync::Mutex<tokio::sync::mpsc::UnboundedReceiver<MemoryLink>>,
}

impl Ends {
    pub fn new(plan: &[Option<u64>]) -> Self {
        let (out, inbox) = tokio::sync::mpsc::unbounded_channel();
        let plan = Mutex::new(plan.iter().copied().collect());
        Self { plan, out, inbox: tokio::sync::Mutex::new(inbox) }
    }
}

impl Dial for Ends {
    type Link = MemoryLink;

    async fn dial(&self) -> Result<MemoryLink, DialError> {
        let planned = self.plan.lock().pop_front();
        let Some(cut) = planned else {
            return Err(DialError::Lasting("no more links".into()));
        };
        let (one, other) = pair(MESSAGE, cut);
        self.out.send(other).expect("a receiver");
        Ok(one)
    }
}

impl Accept for Ends {
    type Link = MemoryLink;

    async fn accept(&self) -> Option<MemoryLink> {
        self.inbox.lock().await.recv().await
    }
}

/// Result of a transfer.
pub struct Outcome {
    pub sent: Result<(), SendError>,
    pub received: Result<(), TransferError>,
    pub summary: Option<Summary>,
    pub failures: Vec<(PeerText, PeerText)>,
    pub progress: Progress,
    /// Progress as the receiver counts it.
    pub arrived: Progress,
    pub events: Vec<TransferEvent>,
}

pub fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .expect("a runtime")
}

/// Gives every peer the same directory and the same rules.
pub fn admit_all(store: &Arc<Store>, rules: Rules) -> Arc<Admit> {
    let store = store.clone();
    Arc::new(move |peer: &Peer| {
        Inbox::new(store.clone(), peer.clone(), rules).map_err(|error| error.to_string())
    })
}

/// Sends `sources` of the directory `dir` to its subdirectory `to`, over links with this plan.
pub fn transfer(dir: &TempDir, sources: &[&str], plan: &[Option<u64>], overwrite: bool) -> Outcome {
    transfer_with(dir, sources, plan, Rules { overwrite, ..Rules::default() })
}

/// The same with these rules.
pub fn transfer_with(
    dir: &TempDir,
    sources: &[&str],
    plan: &[Option<u64>],
    rules: Rules,
) -> Outcome {
    let sources: Vec<PathBuf> = sources.iter().map(|name| dir.path(name)).collect();
    let manifest = Manifest::of(&sources, rules.exact_modes).expect("sources");
    transfer_job(dir, Arc::new(Job::new(manifest)), plan, rules)
}

/// The status of a transfer, and the events that it reports.
pub fn status_with_log() -> (Arc<TransferStatus>, Arc<Mutex<Vec<TransferEvent>>>) {
    let events = Arc::new(Mutex::new(Vec::new()));
    let log = events.clone();
    let status = TransferStatus::new(move |event| log.lock().push(event));
    (Arc::new(status), events)
}

/// The same with an existing list.
pub fn transfer_job(dir: &TempDir, job: Arc<Job>, plan: &[Option<u64>], rules: Rules) -> Outcome {
    let store = Arc::new(Store::open(&dir.path("to")).expect("a directory"));
    let admit = admit_all(&store, rules);
    let (here, events) = status_with_log();
    let there = Arc::new(TransferStatus::new(|_| ()));
    let ends = Ends::new(plan);
    let mut summary = None;
    let (sent, received) = runtime().block_on(async {
        let receiving = async {
            let finished = |it: Result<Summary, String>| {
                summary = it.ok();
                false
            };
            let receiving = receive(&ends, &admit, &there, finished);
            // A sender that has given up sends nothing more.
            tokio::time::timeout(Duration::from_secs(60), receiving).await.unwrap_or(Ok(()))
        };
        // If the last association is cut, there is nothing to wait for.
        let retry = if plan.last().is_some_and(Option::is_some) { 300 } else { 5000 };
        let sending = send(&ends, &job, &here, Duration::from_millis(retry));
        tokio::pin!(receiving, sending);
        tokio::select! {
            sent = &mut sending => {
                let patience = Duration::from_secs(if sent.is_ok() { 20 } else { 1 });
                let received = tokio::time::timeout(patience, receiving).await;
                (sent, received.unwrap_or(Ok(())))
            }
            received = &mut receiving => (sending.await, received),
        }
    });
    let events = events.lock().clone();
    let failures = job.failures();
    let (progress, arrived) = (here.progress(), there.progress());
    Outcome { sent, received, summary, failures, progress, arrived, events }
}
