//! Clients whose request is incomplete or not permitted.
//!
//! A client that sends nothing, or one byte at a time, must not exclude others. Such clients therefore have a
//! separate table, and only a complete and permitted request gets one of the places for connections. When the table
//! is full, the oldest client of the source address with the most entries is disconnected (compare OpenSSH's
//! MaxStartups). A normal request takes milliseconds, so it is among the newest entries.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// The table.
#[derive(Clone, Debug)]
pub struct Pending {
    limit: usize,
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
    /// A table of at most `limit` clients.
    pub fn new(limit: usize) -> Self {
        Self { limit, table: Arc::default() }
    }

    /// Adds a client at this address. If the table is full, another client is displaced.
    pub fn enter(&self, ip: IpAddr) -> PendingClient {
        let source = source(ip);
        let displaced = Arc::new(Notify::new());
        let mut table = self.table.lock();
        if table.len >= self.limit {
            table.displace();
        }
        let number = table.next;
        table.next += 1;
        table.len += 1;
        table.sources.entry(source).or_default().insert(number, displaced.clone());
        assert!(table.len <= self.limit, "{} requests wait", table.len);
        PendingClient { table: self.table.clone(), source, number, displaced }
    }

    /// Number of clients in the table.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.table.lock().len
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
        self.table.lock().remove(self.source, self.number);
    }
}

impl Table {
    fn displace(&mut self) {
        // If several sources are equally large, the one with the oldest client.
        let size = |clients: &BTreeMap<u64, _>| {
            (clients.len(), Reverse(clients.first_key_value().map(|(number, _)| *number)))
        };
        let largest = self.sources.iter().max_by_key(|(_, clients)| size(clients));
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

/// The source address as limits count it: an IPv6 host has an entire /64 network.
pub fn source(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64)).into(),
        ip => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 16;

    fn waits(client: &PendingClient) -> bool {
        let mut future = Box::pin(client.displaced());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        future.as_mut().poll(&mut context).is_pending()
    }

    #[test]
    fn of_sources_of_one_size_the_oldest_client_is_displaced() {
        let pending = Pending::new(LIMIT);
        let clients: Vec<_> =
            (0..=LIMIT as u8).map(|n| pending.enter([192, 0, 2, n].into())).collect();
        let displaced: Vec<usize> = (0..=LIMIT).filter(|index| !waits(&clients[*index])).collect();
        assert_eq!(displaced, [0]);
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let of = |text: &str| source(text.parse().expect("an address"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:0:0:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:192.0.2.1"), of("192.0.2.1"));
    }

    #[tokio::test]
    async fn a_full_table_displaces_the_oldest_client_of_the_largest_source() {
        let pending = Pending::new(LIMIT);
        let [crowd, single]: [IpAddr; 2] = [[192, 0, 2, 1].into(), [192, 0, 2, 2].into()];
        let patient = pending.enter(single);
        let clients: Vec<_> = (1..LIMIT).map(|_| pending.enter(crowd)).collect();
        let newest = pending.enter(crowd);
        clients[0].displaced().await;
        assert!(waits(&patient) && waits(&newest) && waits(&clients[1]));
        assert_eq!(pending.len(), LIMIT);
        drop((patient, newest, clients));
        assert_eq!(pending.len(), 0, "nothing is left behind");
        assert!(pending.table.lock().sources.is_empty());
    }
}
