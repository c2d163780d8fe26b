//! Observation of endpoints from other threads.
//!
//! The task that drives an endpoint publishes a snapshot of all figures a few times a second while data passes, and
//! reports events when they happen. An idle endpoint publishes only on request, so that it does not wake up for
//! unread snapshots. Observers read the latest snapshot. They never take the endpoint's lock, so a slow observer
//! cannot delay packets:
//!
//! ```text
//!   driver task --> EndpointSnapshot --> slot of the endpoint --> Observer::snapshots, any thread
//!          \------> TransportEvent  --> Observer's listener, which must not wait
//!   driver task <-- Observer::request
//! ```

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;

use ropewalk_base::{Duration, Histogram, PathId, PeerText, Time};
use ropewalk_engine::sctp::association::CloseReason;
use tokio::sync::Notify;

use super::state::Counters;
use super::stats::Stats;
use crate::seal::PublicKey;

/// Upper bounds of the delay classes, nanoseconds: powers of two from 0.5 ms to 8.2 s. One more class is
/// unbounded.
pub const DELAY_BOUNDS_NS: [u64; 15] = {
    let mut bounds = [500_000; 15];
    let mut i = 1;
    while i < bounds.len() {
        bounds[i] = bounds[i - 1] * 2;
        i += 1;
    }
    bounds
};

/// Number of delays in each class of [`DELAY_BOUNDS_NS`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DelayCounts {
    /// Counts per class. They are not cumulative.
    pub classes: [u64; DELAY_BOUNDS_NS.len() + 1],
    /// Sum of all delays, seconds.
    pub sum_s: f64,
}

impl DelayCounts {
    pub(super) fn of(histogram: &Histogram) -> Self {
        let below = histogram.weights_up_to(&DELAY_BOUNDS_NS);
        let total = histogram.total_weight();
        let mut classes = [0; DELAY_BOUNDS_NS.len() + 1];
        let mut before = 0;
        for (class, upper) in classes.iter_mut().zip(below.into_iter().chain([total])) {
            *class = upper - before;
            before = upper;
        }
        Self { classes, sum_s: histogram.mean() * total as f64 * 1e-9 }
    }

    /// Counts one delay.
    pub fn add(&mut self, delay: Duration) {
        let class = DELAY_BOUNDS_NS.partition_point(|bound| *bound < delay.as_nanos());
        self.classes[class] += 1;
        self.sum_s += delay.as_secs_f64();
    }
}

/// The figures of an endpoint at one time.
#[derive(Clone, Debug)]
pub struct EndpointSnapshot {
    /// Number of the endpoint, unique in this process.
    pub endpoint: u64,
    /// When the figures were taken, by the endpoint's clock.
    pub at: Time,
    /// Counters of the endpoint.
    pub counters: Counters,
    /// The associations that are or were established.
    pub associations: Vec<AssociationSnapshot>,
}

/// The figures of an association at one time.
#[derive(Clone, Debug)]
pub struct AssociationSnapshot {
    /// Which association.
    pub about: AssociationInfo,
    /// Whether it is established and has not ended.
    pub is_open: bool,
    /// Figures of the sender, the receive buffer and each path.
    pub stats: Stats,
    /// Delays of received chunks from arrival until the application could read them.
    pub blocking: DelayCounts,
}

/// Identifies an association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssociationInfo {
    /// Number of its endpoint.
    pub endpoint: u64,
    /// Number of the association, unique in its endpoint.
    pub association: u64,
    /// The peer's public key. `None` without sealing.
    pub peer: Option<PublicKey>,
    /// The peer's address on the first path, if known.
    pub address: Option<SocketAddr>,
    /// Whether the peer opened it.
    pub opened_by_peer: bool,
}

/// Why a path carries no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathCause {
    /// Nothing has arrived on the path for this time.
    NoReply(Duration),
    /// The interface is down or gone.
    InterfaceDown,
    /// The system refuses to send there.
    SendRefused,
}

impl fmt::Display for PathCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoReply(silence) => write!(f, "no reply for {:.1} s", silence.as_secs_f64()),
            Self::InterfaceDown => f.write_str("the interface is down"),
            Self::SendRefused => f.write_str("the system cannot send on it"),
        }
    }
}

/// The kind of a [`TransportEvent`].
#[derive(Clone, Debug)]
pub enum TransportEventKind {
    /// The association is established.
    Established,
    /// The peer has restarted.
    Restarted,
    /// A path carries data from now on.
    PathUp {
        /// The path.
        path: PathId,
        /// Name of the link: the interface, or the local address if there is none.
        link: String,
        /// The peer's address.
        remote: Option<SocketAddr>,
    },
    /// A path carries no new data until it answers again.
    PathDown {
        /// The path.
        path: PathId,
        /// Name of the link: the interface, or the local address if there is none.
        link: String,
        /// The peer's address.
        remote: Option<SocketAddr>,
        /// Why.
        cause: PathCause,
    },
    /// The association has ended.
    Closed {
        /// Why.
        reason: CloseReason,
        /// The reason given by the end that aborted it.
        said: Option<PeerText>,
        /// Its last figures.
        last: Box<AssociationSnapshot>,
    },
}

/// An event of an association.
#[derive(Clone, Debug)]
pub struct TransportEvent {
    /// Which association.
    pub about: AssociationInfo,
    /// The kind of event.
    pub kind: TransportEventKind,
}

type Listener = dyn Fn(TransportEvent) + Send + Sync;

/// What an endpoint shares with its observers.
#[derive(Debug, Default)]
struct Slot {
    latest: Mutex<Option<Arc<EndpointSnapshot>>>,
    /// Whether a newer snapshot is wanted.
    requested: AtomicBool,
    /// Wakes the driver, which sleeps and publishes nothing.
    driver: Mutex<Option<Waker>>,
}

impl Slot {
    fn request(&self) {
        self.requested.store(true, Ordering::SeqCst);
        if let Some(driver) = lock(&self.driver).take() {
            driver.wake();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Inner {
    interval: Duration,
    endpoints: AtomicU64,
    slots: Mutex<Vec<Weak<Slot>>>,
    listener: Box<Listener>,
    /// A snapshot was published because something has happened.
    news: Notify,
    /// A requested snapshot was published.
    answered: Notify,
}

/// Receives what endpoints publish. Clones observe the same endpoints.
#[derive(Clone)]
pub struct Observer {
    inner: Arc<Inner>,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl Observer {
    /// Creates an observer that receives a snapshot per `interval` while something happens, at most 20 per second.
    /// Endpoints with many associations publish less often, so that publishing takes at most 0.5 % of the time.
    ///
    /// `listener` is called by the task that drives the endpoint, under its lock: it must not wait.
    pub fn new(
        interval: Duration,
        listener: impl Fn(TransportEvent) + Send + Sync + 'static,
    ) -> Self {
        let interval = interval.max(Duration::from_millis(50));
        let (endpoints, slots, news, answered) = Default::default();
        let listener = Box::new(listener);
        Self { inner: Arc::new(Inner { interval, endpoints, slots, listener, news, answered }) }
    }

    /// The latest snapshot of each open endpoint.
    pub fn snapshots(&self) -> Vec<Arc<EndpointSnapshot>> {
        self.slots().iter().filter_map(|slot| lock(&slot.latest).clone()).collect()
    }

    /// Requests a snapshot from all open endpoints, even if nothing has happened since the last one.
    pub fn request(&self) {
        self.slots().iter().for_each(|slot| slot.request());
    }

    /// Waits until each open endpoint has published a snapshot since the call to [`Self::request`].
    pub async fn answered(&self) {
        loop {
            let answered = self.inner.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            if !self.slots().iter().any(|slot| slot.requested.load(Ordering::SeqCst)) {
                return;
            }
            answered.await;
        }
    }

    /// Waits until data has passed, or the set of associations or the state of a path has changed, and a snapshot
    /// with the change was published since the last call. At most one task may wait.
    pub async fn news(&self) {
        self.inner.news.notified().await;
    }

    fn slots(&self) -> Vec<Arc<Slot>> {
        lock(&self.inner.slots).iter().filter_map(Weak::upgrade).collect()
    }

    pub(super) fn publisher(&self) -> Publisher {
        let slot = Arc::new(Slot::default());
        let mut slots = lock(&self.inner.slots);
        slots.retain(|slot| slot.strong_count() > 0);
        slots.push(Arc::downgrade(&slot));
        let endpoint = self.inner.endpoints.fetch_add(1, Ordering::Relaxed);
        let observer = self.clone();
        Publisher { observer, endpoint, slot, has_news: true, next: Time::ZERO }
    }
}

/// An endpoint's side of an [`Observer`].
#[derive(Debug)]
pub(super) struct Publisher {
    observer: Observer,
    pub(super) endpoint: u64,
    slot: Arc<Slot>,
    /// Something has happened since the last snapshot.
    has_news: bool,
    /// When the next snapshot may be published.
    next: Time,
}

/// Inverse of the maximum share of time that publishing may take.
const COST_DIVISOR: u64 = 200;

impl Publisher {
    pub(super) fn report(&self, event: TransportEvent) {
        (self.observer.inner.listener)(event);
    }

    /// Notes an event that the next snapshot shows.
    pub(super) const fn note_news(&mut self) {
        self.has_news = true;
    }

    /// When the next snapshot is due. `None` if nothing has happened and none was requested.
    pub(super) fn due(&self) -> Option<Time> {
        let wanted = self.has_news || self.slot.requested.load(Ordering::SeqCst);
        wanted.then_some(self.next)
    }

    /// Called before the driver sleeps until [`Self::due`], which it reads after this call. A request wakes
    /// the driver.
    pub(super) fn on_sleep(&self, driver: &Waker) {
        if self.has_news {
            // The driver will wake up for the next snapshot.
            return;
        }
        let mut known = lock(&self.slot.driver);
        if !known.as_ref().is_some_and(|known| known.will_wake(driver)) {
            *known = Some(driver.clone());
        }
    }

    /// Stores a snapshot that was begun at `began` and complete at `now`.
    pub(super) fn publish(&mut self, snapshot: EndpointSnapshot, began: Time, now: Time) {
        *lock(&self.slot.latest) = Some(Arc::new(snapshot));
        if self.slot.requested.swap(false, Ordering::SeqCst) {
            self.observer.inner.answered.notify_waiters();
        }
        if std::mem::take(&mut self.has_news) {
            self.observer.inner.news.notify_one();
        }
        let cost = now.since(began);
        self.next = began + self.observer.inner.interval.max(cost * COST_DIVISOR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_counted_in_the_class_whose_bound_they_do_not_exceed() {
        let mut one_by_one = DelayCounts::default();
        let mut histogram = Histogram::new();
        for ns in [0, 400_000, 600_000, 3_000_000, 20_000_000_000] {
            one_by_one.add(Duration::from_nanos(ns));
            histogram.add(ns);
        }
        let classes = [(0, 2), (1, 1), (3, 1), (15, 1)];
        let mut expected = [0; 16];
        classes.iter().for_each(|(class, count)| expected[*class] = *count);
        assert_eq!(one_by_one.classes, expected);
        assert_eq!(DelayCounts::of(&histogram).classes, expected);
        assert!((one_by_one.sum_s - DelayCounts::of(&histogram).sum_s).abs() < 1e-9);
    }

    #[test]
    fn a_snapshot_that_took_long_is_followed_by_a_longer_pause() {
        let observer = Observer::new(Duration::from_millis(250), |_| {});
        let mut publisher = observer.publisher();
        let snapshot = |at| EndpointSnapshot {
            endpoint: 0,
            at,
            counters: Counters::default(),
            associations: Vec::new(),
        };
        let began = Time::from_nanos(1_000);
        publisher.publish(snapshot(began), began, began + Duration::from_micros(10));
        assert_eq!(publisher.next, began + Duration::from_millis(250));
        publisher.publish(snapshot(began), began, began + Duration::from_millis(5));
        assert_eq!(publisher.next, began + Duration::from_secs(1));
        assert_eq!(observer.snapshots().len(), 1);
        drop(publisher);
        assert!(observer.snapshots().is_empty(), "a closed endpoint is not observed");
    }
}
