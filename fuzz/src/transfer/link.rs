//! Associations in memory, one after the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_apps::files::{
    Accept, AssociationEnded, Dial, DialError, Figures, Link, PathFigures, Peer,
};
use ropewalk_base::PeerText;
use tokio::sync::{Notify, mpsc, watch};

use super::edits::{Edit, Side};
use super::track::{Claims, Track};

/// Messages on their way.
const QUEUE: usize = 64;
/// Real time in which something moves if anything does.
const TICK: Duration = Duration::from_millis(1);
const STILL_TICKS: u32 = 3;
/// How much virtual time passes when nothing moves, and how often before somebody should have given up.
const STEP: Duration = Duration::from_secs(8);
const MOST_STEPS: u32 = 100;

/// What happens to one association.
#[derive(Default)]
pub struct Plan {
    /// Bytes of both ends after which it is cut.
    pub cut_after: Option<u64>,
    pub sender: VecDeque<(u8, Edit)>,
    pub receiver: VecDeque<(u8, Edit)>,
}

impl Plan {
    pub fn is_honest(&self) -> bool {
        self.sender.is_empty() && self.receiver.is_empty()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What both ends of an association share.
struct Wire {
    cut: watch::Sender<bool>,
    left: AtomicI64,
    is_honest: bool,
    /// Messages that were sent or received, and what was said with them.
    moves: AtomicU64,
    steps: AtomicU64,
}

/// What reads along where the sender speaks: what it says, and what arrives of it.
struct Ears {
    said: (Track, Arc<Mutex<Claims>>),
    heard: (Track, Arc<Mutex<Claims>>),
}

/// One end.
pub struct End {
    out: Mutex<Option<mpsc::Sender<Bytes>>>,
    inbox: tokio::sync::Mutex<mpsc::Receiver<Bytes>>,
    side: Mutex<(Side, Option<Ears>)>,
    wire: Arc<Wire>,
    size: usize,
}

fn gone() -> AssociationEnded {
    AssociationEnded("cut".into())
}

impl End {
    /// What arrives of these messages.
    fn pass(&self, messages: &mut (dyn Iterator<Item = Bytes> + Send)) -> Vec<u8> {
        let mut said = Vec::new();
        for message in messages {
            assert!((1..=self.size).contains(&message.len()), "{} bytes", message.len());
            said.extend_from_slice(&message);
        }
        let (side, ears) = &mut *lock(&self.side);
        if let Some(Ears { said: (track, claims), .. }) = ears {
            track.read(&said, &mut lock(claims));
        }
        let heard = side.pass(said.into());
        if let Some(Ears { heard: (track, claims), .. }) = ears {
            track.read(&heard, &mut lock(claims));
        }
        self.wire.steps.fetch_add(std::mem::take(&mut side.steps), Ordering::Relaxed);
        heard
    }
}

impl Figures for End {
    fn paths(&self) -> Vec<PathFigures> {
        Vec::new()
    }

    fn abort(&self) {
        self.wire.cut.send_replace(true);
    }
}

impl Link for End {
    async fn send_all(
        &self,
        messages: &mut (dyn Iterator<Item = Bytes> + Send),
    ) -> Result<(), AssociationEnded> {
        let out = lock(&self.out).clone().ok_or_else(gone)?;
        let mut bytes = Bytes::from(self.pass(messages));
        let mut cut = self.wire.cut.subscribe();
        while !bytes.is_empty() {
            let message = bytes.split_to(self.size.min(bytes.len()));
            let length = message.len() as i64;
            if self.wire.left.fetch_sub(length, Ordering::SeqCst) < length {
                self.abort();
            }
            self.wire.moves.fetch_add(1, Ordering::Relaxed);
            tokio::select! {
                biased;
                _ = cut.wait_for(|cut| *cut) => return Err(gone()),
                sent = out.send(message) => sent.map_err(|_| gone())?,
            }
        }
        Ok(())
    }

    async fn receive_all(&self, into: &mut Vec<Bytes>) {
        let mut inbox = self.inbox.lock().await;
        let mut cut = self.wire.cut.subscribe();
        tokio::select! {
            biased;
            _ = cut.wait_for(|cut| *cut) => {}
            _ = inbox.recv_many(into, 16) => {}
        }
        self.wire.moves.fetch_add(1, Ordering::Relaxed);
    }

    fn peer(&self) -> Peer {
        Peer::default()
    }

    fn message_size(&self) -> usize {
        self.size
    }

    async fn end_reason(&self) -> PeerText {
        "cut".into()
    }

    async fn finish(&self) {
        lock(&self.out).take();
    }
}

/// Opens associations by their plans, and takes them at the other end.
pub struct Ends {
    plans: Mutex<VecDeque<Plan>>,
    size: usize,
    out: mpsc::UnboundedSender<End>,
    inbox: tokio::sync::Mutex<mpsc::UnboundedReceiver<End>>,
    current: Mutex<Option<Arc<Wire>>>,
    /// What the sender has said, and what of it has arrived, perhaps changed.
    pub said: Arc<Mutex<Claims>>,
    pub heard: Arc<Mutex<Claims>>,
}

impl Ends {
    pub fn new(plans: Vec<Plan>, size: usize) -> Self {
        let (out, inbox) = mpsc::unbounded_channel();
        Self {
            plans: Mutex::new(plans.into()),
            size,
            out,
            inbox: tokio::sync::Mutex::new(inbox),
            current: Mutex::default(),
            said: Arc::default(),
            heard: Arc::default(),
        }
    }
}

impl Dial for Ends {
    type Link = End;

    async fn dial(&self) -> Result<End, DialError> {
        let Some(plan) = lock(&self.plans).pop_front() else {
            return Err(DialError::Lasting("no more links".into()));
        };
        let wire = Arc::new(Wire {
            cut: watch::Sender::new(false),
            left: AtomicI64::new(plan.cut_after.map_or(i64::MAX, |bytes| bytes as i64)),
            is_honest: plan.is_honest(),
            moves: AtomicU64::new(0),
            steps: AtomicU64::new(0),
        });
        *lock(&self.current) = Some(wire.clone());
        let ears = Ears {
            said: (Track::default(), self.said.clone()),
            heard: (Track::default(), self.heard.clone()),
        };
        let ((here_out, there_in), (there_out, here_in)) =
            (mpsc::channel(QUEUE), mpsc::channel(QUEUE));
        let end = |out, inbox, side| End {
            out: Mutex::new(Some(out)),
            inbox: tokio::sync::Mutex::new(inbox),
            side: Mutex::new(side),
            wire: wire.clone(),
            size: self.size,
        };
        let there = end(there_out, there_in, (Side::new(plan.receiver), None));
        self.out.send(there).map_err(|_| DialError::Lasting("gone".into()))?;
        Ok(end(here_out, here_in, (Side::new(plan.sender), Some(ears))))
    }
}

impl Accept for Ends {
    type Link = End;

    async fn accept(&self) -> Option<End> {
        self.inbox.lock().await.recv().await
    }
}

static TICKS: Notify = Notify::const_new();
static IS_TICKING: AtomicBool = AtomicBool::new(false);

/// Ticks in real time while somebody wants it.
static TICKER: LazyLock<Thread> = LazyLock::new(|| {
    let ticks = || loop {
        match IS_TICKING.load(Ordering::Acquire) {
            true => std::thread::park_timeout(TICK),
            false => std::thread::park(),
        }
        TICKS.notify_one();
    };
    std::thread::spawn(ticks).thread().clone()
});

/// Stops the ticks.
struct Ticking;

impl Ticking {
    fn start() -> Self {
        IS_TICKING.store(true, Ordering::Release);
        TICKER.unpark();
        Self
    }
}

impl Drop for Ticking {
    fn drop(&mut self) {
        IS_TICKING.store(false, Ordering::Release);
    }
}

/// Where something was changed, both ends may wait for each other. Then either time passes, until one of them has had
/// enough, or the association is cut. Never ends. What hangs without a change is left to hang.
pub async fn watch_idle(ends: &Ends, is_patient: bool) {
    let _ticking = Ticking::start();
    let (mut before, mut still, mut waited) = ((0, 0), 0, 0);
    loop {
        TICKS.notified().await;
        let Some(wire) = lock(&ends.current).clone() else { continue };
        let read = |number: &AtomicU64| number.load(Ordering::Relaxed);
        let now = (read(&wire.moves), read(&wire.steps));
        if now.1 != before.1 {
            waited = 0;
        }
        still = if now == before { still + 1 } else { 0 };
        before = now;
        if still < STILL_TICKS || wire.is_honest || *wire.cut.borrow() {
            continue;
        }
        still = 0;
        if is_patient {
            waited += 1;
            assert!(waited < MOST_STEPS, "both ends wait for each other, and none gives up");
            tokio::time::advance(STEP).await;
        } else {
            wire.cut.send_replace(true);
        }
    }
}
