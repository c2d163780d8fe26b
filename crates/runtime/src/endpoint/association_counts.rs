//! Admission of associations that peers open: counts by key and prefix, memory, and reports of limits.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ropewalk_base::{Duration, Time};

use super::incoming::{Decision, IncomingInfo, LimitReport};
use super::limits::{Limit, Limits, Prefix};
use super::peer::Peer;
use super::probes::ProbeQueue;
use super::state::{AssociationKey, EndpointState};
use crate::seal::PublicKey;

/// Minimum interval between two reports of the same limit.
const REPORT_INTERVAL: Duration = Duration::from_secs(1);

/// The key and the prefix under which an association of a peer is counted.
#[derive(Clone, Copy, Debug)]
pub struct Admitted {
    key: Option<PublicKey>,
    prefix: Prefix,
}

impl Admitted {
    /// Whether the end of this association would free a place under `limit` for that key and address.
    pub(super) fn counts_for(&self, limit: Limit, key: Option<PublicKey>, ip: IpAddr) -> bool {
        match limit {
            Limit::AssociationsPerKey => self.key == key,
            Limit::AssociationsPerPrefix => self.prefix == Prefix::of(ip),
            _ => true,
        }
    }
}

/// When a limit was last reported, and how often it was reached since.
#[derive(Clone, Copy, Debug, Default)]
struct Unreported {
    at: Option<Time>,
    times: u64,
}

/// Numbers of associations that peers have opened.
#[derive(Debug, Default)]
struct Numbers {
    total: usize,
    by_key: BTreeMap<PublicKey, usize>,
    by_prefix: BTreeMap<Prefix, usize>,
}

/// The counts of an endpoint, shared by all shards so that limits are exact. Their lock is taken when an
/// association begins or ends, not for packets.
#[derive(Clone, Debug, Default)]
pub struct Admissions(Arc<Mutex<Numbers>>);

impl Admissions {
    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts of the associations that peers have opened.
#[derive(Debug, Default)]
pub struct AssociationCounts {
    admissions: Admissions,
    /// Bytes that all associations hold.
    memory: u64,
    reports: [Unreported; Limit::ALL.len()],
    /// When silent associations were last searched for. The search visits all associations.
    searched_at: Option<Time>,
}

impl AssociationCounts {
    /// Creates empty counts that share `admissions` with other shards.
    pub fn new(admissions: Admissions) -> Self {
        Self { admissions, ..Self::default() }
    }

    /// The limit that one more association would exceed.
    pub(super) fn refuses(
        &self,
        limits: &Limits,
        key: Option<PublicKey>,
        ip: IpAddr,
    ) -> Option<Limit> {
        let numbers = self.admissions.lock();
        let of_key = key.and_then(|key| numbers.by_key.get(&key)).copied().unwrap_or(0);
        let of_prefix = numbers.by_prefix.get(&Prefix::of(ip)).copied().unwrap_or(0);
        [
            (Limit::Associations, numbers.total >= limits.associations),
            (Limit::AssociationsPerKey, of_key >= limits.associations_per_key),
            (Limit::AssociationsPerPrefix, of_prefix >= limits.associations_per_prefix),
            (Limit::Memory, self.memory + Limits::BASE_COST > limits.memory),
        ]
        .into_iter()
        .find_map(|(limit, reached)| reached.then_some(limit))
    }

    /// Counts one more association.
    pub(super) fn admit(&self, key: Option<PublicKey>, ip: IpAddr) -> Admitted {
        let prefix = Prefix::of(ip);
        let mut numbers = self.admissions.lock();
        numbers.total += 1;
        *numbers.by_prefix.entry(prefix).or_default() += 1;
        if let Some(key) = key {
            *numbers.by_key.entry(key).or_default() += 1;
        }
        Admitted { key, prefix }
    }

    /// Removes one association from the counts.
    pub(super) fn release(&self, admitted: Admitted) {
        let mut numbers = self.admissions.lock();
        numbers.total -= 1;
        decrease(&mut numbers.by_prefix, &admitted.prefix);
        if let Some(key) = admitted.key {
            decrease(&mut numbers.by_key, &key);
        }
    }

    /// Whether silent associations may be searched for now.
    pub(super) fn may_search_silent(&mut self, now: Time) -> bool {
        let due = self.searched_at.is_none_or(|at| now.since(at) >= REPORT_INTERVAL);
        if due {
            self.searched_at = Some(now);
        }
        due
    }

    /// Updates the total when an association that held `before` bytes holds `now` bytes.
    pub(super) const fn update_memory(&mut self, before: u64, now: u64) {
        self.memory = self.memory - before + now;
    }
}

fn decrease<K: Ord>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

impl Peer {
    /// Bytes that the association holds, as [`Limits::memory`] counts them.
    pub(super) fn memory(&self) -> u64 {
        let probes = self.probes.as_ref().map_or(0, ProbeQueue::memory);
        Limits::BASE_COST + self.machine.receive_memory() + probes
    }
}

impl EndpointState {
    /// Decides on a handshake before any state is kept for it. A handshake that exceeds a limit is ignored: an answer
    /// would cost more than the peer's own datagram.
    pub(super) fn decide(
        &mut self,
        now: Time,
        key: Option<PublicKey>,
        address: SocketAddr,
    ) -> Decision {
        let limits = &self.options.limits;
        if let Some(limit) = self.counts.refuses(limits, key, address.ip()) {
            self.drop_silent(now, key, address.ip(), limit);
            self.on_limit(now, limit, Some(address), 1);
            return Decision::Ignore;
        }
        let Some(filter) = &self.options.incoming else { return Decision::Accept };
        let decision = filter.decide(&IncomingInfo { key, address });
        if decision != Decision::Accept {
            self.on_limit(now, Limit::Filter, Some(address), 1);
        }
        decision
    }

    /// Counts that a limit was reached `times` times.
    pub(super) fn on_limit(
        &mut self,
        now: Time,
        limit: Limit,
        address: Option<SocketAddr>,
        times: u64,
    ) {
        if times == 0 {
            return;
        }
        self.counters.limits.add(limit, times);
        let unreported = &mut self.counts.reports[limit as usize];
        unreported.times += times;
        let due = unreported.at.is_none_or(|at| now.since(at) >= REPORT_INTERVAL);
        if due && let Some(listener) = &self.options.on_limit {
            let times = std::mem::take(&mut unreported.times);
            unreported.at = Some(now);
            listener.call(&LimitReport { limit, times, address });
        }
    }

    /// Updates the total with the bytes that an association holds now.
    pub(super) fn update_memory(&mut self, peer: &mut Peer) {
        let holds = peer.memory();
        if holds != peer.counted_memory {
            self.counts.update_memory(peer.counted_memory, holds);
            peer.counted_memory = holds;
        }
    }

    /// Applies [`Limits::memory`]: while associations hold more, aborts the largest association of the key (without
    /// sealing: the network) that holds most. Only associations that peers have opened are aborted.
    pub(super) fn enforce_memory(&mut self, now: Time) {
        while self.counts.memory > self.options.limits.memory {
            let Some(at) = self.largest_of_largest_holder() else { return };
            let Some(mut peer) = self.take_out(at) else { return };
            let address = peer.routes.iter().flatten().map(|route| route.remote).next();
            peer.machine.abort_out_of_resource(now);
            self.update_memory(&mut peer);
            self.put_back(at, peer);
            self.mark_ready(at);
            self.on_limit(now, Limit::Memory, address, 1);
        }
    }

    fn largest_of_largest_holder(&self) -> Option<AssociationKey> {
        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        enum Holder {
            Key(PublicKey),
            Network(Prefix),
        }
        let mut holders: BTreeMap<Holder, (u64, u64, AssociationKey)> = BTreeMap::new();
        for at in self.keys() {
            let Some(peer) = self.known(at).filter(|peer| peer.machine.receive_memory() > 0) else {
                continue;
            };
            let Some(admitted) = peer.admitted else { continue };
            let holder = admitted.key.map_or(Holder::Network(admitted.prefix), Holder::Key);
            let (total, largest, whose) = holders.entry(holder).or_insert((0, 0, at));
            *total += peer.counted_memory;
            if peer.counted_memory > *largest {
                (*largest, *whose) = (peer.counted_memory, at);
            }
        }
        holders.into_values().max_by_key(|(total, ..)| *total).map(|(.., whose)| whose)
    }

    /// Stops counting an association that is removed.
    pub(super) fn release(&mut self, peer: &Peer) {
        self.counts.update_memory(peer.counted_memory, 0);
        if let Some(admitted) = peer.admitted {
            self.counts.release(admitted);
        }
    }
}
