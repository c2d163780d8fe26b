//! Clients whose request is incomplete.
//!
//! A client that sends nothing, or one byte at a time, must not exclude others. Incomplete requests therefore have a
//! table of their own, and only a complete request gets one of the places for connections. When the table is full,
//! the oldest client of the source address with the most entries is disconnected (compare OpenSSH's MaxStartups). A
//! normal request takes milliseconds, so it is among the newest entries.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Most clients with incomplete requests. Each needs a socket and at most one request's head.
pub const PENDING_LIMIT: usize = 512;

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Pending {
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// By source address, then by age.
    sources: BTreeMap<IpAddr, BTreeMap<u64, Arc<Notify>>>,
    len: usize,
}

/// An entry of the table, which is removed when this is dropped.
#[derive(Debug)]
pub struct PendingClient {
    table: Arc<Mutex<Table>>,
    source: IpAddr,
    number: u64,
    displaced: Arc<Notify>,
}

impl Pending {
    /// Adds a client. If the table is full, another client is displaced.
    pub fn enter(&self, source: IpAddr) -> PendingClient {
        let displaced = Arc::new(Notify::new());
        let mut table = lock(&self.table);
        if table.len >= PENDING_LIMIT {
            table.displace();
        }
        let number = table.next;
        table.next += 1;
        table.len += 1;
        table.sources.entry(source).or_default().insert(number, displaced.clone());
        assert!(table.len <= PENDING_LIMIT, "{} requests wait", table.len);
        PendingClient { table: self.table.clone(), source, number, displaced }
    }

    /// Number of clients in the table.
    #[cfg(test)]
    fn len(&self) -> usize {
        lock(&self.table).len
    }
}

impl PendingClient {
    /// Waits until a newer client needs this one's entry.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Drop for PendingClient {
    fn drop(&mut self) {
        lock(&self.table).remove(self.source, self.number);
    }
}

impl Table {
    fn displace(&mut self) {
        let largest = self.sources.iter().max_by_key(|(_, clients)| clients.len());
        let oldest = largest.and_then(|(source, clients)| {
            clients.first_key_value().map(|(number, displaced)| (*source, *number, displaced))
        });
        let Some((source, number, displaced)) = oldest else { return };
        displaced.notify_one();
        self.remove(source, number);
    }

    fn remove(&mut self, source: IpAddr, number: u64) {
        let Some(clients) = self.sources.get_mut(&source) else { return };
        if clients.remove(&number).is_some() {
            self.len -= 1;
        }
        if clients.is_empty() {
            self.sources.remove(&source);
        }
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_full_table_displaces_the_oldest_client_of_the_largest_source() {
        let pending = Pending::default();
        let [crowd, single]: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let patient = pending.enter(single);
        let clients: Vec<_> = (1..PENDING_LIMIT).map(|_| pending.enter(crowd)).collect();
        let newest = pending.enter(crowd);
        clients[0].displaced().await;
        let waits = |client: &PendingClient| {
            let mut future = Box::pin(client.displaced());
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            future.as_mut().poll(&mut context).is_pending()
        };
        assert!(waits(&patient) && waits(&newest) && waits(&clients[1]));
        assert_eq!(pending.len(), PENDING_LIMIT);
        drop((patient, newest, clients));
        assert_eq!(pending.len(), 0, "nothing is left behind");
        assert!(lock(&pending.table).sources.is_empty());
    }
}
