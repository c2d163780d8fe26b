//! The addresses of a peer. A peer that was given by name may move: after a failed attempt to connect, its name is
//! looked up again.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Timeout of a lookup. After that, the known addresses are used.
const LOOKUP: Duration = Duration::from_secs(8);

/// Finds the addresses of a peer. Blocks.
#[derive(Clone)]
pub struct Finder(pub Arc<dyn Fn() -> Option<Vec<SocketAddr>> + Send + Sync>);

impl fmt::Debug for Finder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Finder")
    }
}

/// The addresses of a peer.
#[derive(Debug)]
pub struct Whereabouts {
    addresses: Mutex<Vec<SocketAddr>>,
    /// Looks its names up again. `None` if it was given by addresses.
    finder: Option<Finder>,
    /// Whether the latest attempt to connect has not succeeded.
    is_doubtful: AtomicBool,
}

impl Whereabouts {
    /// A peer at these addresses, until an attempt to connect fails.
    pub const fn new(addresses: Vec<SocketAddr>, finder: Option<Finder>) -> Self {
        Self { addresses: Mutex::new(addresses), finder, is_doubtful: AtomicBool::new(false) }
    }

    /// Its addresses.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.lock().clone()
    }

    /// Whether its names can be looked up again.
    pub const fn has_name(&self) -> bool {
        self.finder.is_some()
    }

    /// Starts an attempt to connect. If the previous one has not succeeded, the names are looked up. Returns whether
    /// the peer has moved.
    pub async fn begin_attempt(&self) -> bool {
        self.is_doubtful.swap(true, Ordering::Relaxed) && self.find().await
    }

    /// Records that the attempt to connect has succeeded.
    pub fn confirm(&self) {
        self.is_doubtful.store(false, Ordering::Relaxed);
    }

    async fn find(&self) -> bool {
        let Some(Finder(find)) = self.finder.clone() else { return false };
        // A separate thread: the end of the process does not wait for it.
        let (answer, answered) = oneshot::channel();
        std::thread::spawn(move || drop(answer.send(find())));
        let Ok(Ok(Some(mut found))) = timeout(LOOKUP, answered).await else { return false };
        found.sort_unstable();
        let mut addresses = self.addresses.lock();
        let mut known = addresses.clone();
        known.sort_unstable();
        let has_moved = !found.is_empty() && found != known;
        if has_moved {
            *addresses = found;
        }
        has_moved
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn at(port: u16) -> Vec<SocketAddr> {
        vec![SocketAddr::from(([127, 0, 0, 1], port))]
    }

    #[tokio::test]
    async fn names_are_looked_up_after_a_failed_attempt_only() {
        let lookups = Arc::new(AtomicUsize::new(0));
        let finder = Finder(Arc::new({
            let lookups = lookups.clone();
            move || match lookups.fetch_add(1, Ordering::Relaxed) {
                0 => None,
                1 => Some(Vec::new()),
                2 => Some(at(1)),
                _ => Some(at(2)),
            }
        }));
        let place = Whereabouts::new(at(1), Some(finder));
        for _ in 0..3 {
            assert!(!place.begin_attempt().await);
            place.confirm();
        }
        assert_eq!(lookups.load(Ordering::Relaxed), 0);
        // The lookup fails, finds nothing, finds the same.
        assert!(!place.begin_attempt().await);
        for _ in 0..3 {
            assert!(!place.begin_attempt().await);
            assert_eq!(place.addresses(), at(1));
        }
        assert!(place.begin_attempt().await);
        assert_eq!(place.addresses(), at(2));
    }
}
