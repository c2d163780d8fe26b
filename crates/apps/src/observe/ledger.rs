//! Folds snapshots of endpoints into totals and rates.
//!
//! Counters of an association start at zero and vanish with it. The totals of a peer and link only grow: each fold
//! adds the growth of a path's counters since the previous fold.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::RangeBounds;
use std::sync::Arc;

use ropewalk_base::{Duration, Time};
use ropewalk_runtime::endpoint::{
    AssociationSnapshot, Counters, DelayCounts, EndpointSnapshot, LocalAddress, PathStats,
    PathStatus,
};

/// Maximum number of pairs of peer and link with separate totals. Further peers share one label.
const SERIES_LIMIT: usize = 256;
/// The label that further peers share.
const OTHER_PEERS: &str = "other peers";
/// Number of samples per path for rates and losses: one per second.
const SAMPLES: usize = 11;

/// Identifies a path: endpoint, association, index.
pub type PathKey = (u64, u64, usize);

/// Totals of a link to a peer, over all associations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkTotals {
    /// IP packets and bytes that were sent, headers included.
    pub sent: (u64, u64),
    /// IP packets and bytes that arrived, headers included.
    pub received: (u64, u64),
    /// User data that the peer has acknowledged, bytes.
    pub data_sent_bytes: u64,
    /// User data that has arrived, bytes.
    pub data_received_bytes: u64,
    /// Retransmitted chunks.
    pub retransmitted: u64,
    /// Transmissions that were counted as lost.
    pub lost: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Round-trip times: the latest of each path at each sample.
    pub rtt: DelayCounts,
}

/// Totals of a peer, over all associations.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PeerTotals {
    /// Associations that were established.
    pub established: u64,
    /// Time in which only the receive window blocked sending, seconds.
    pub blocked_s: f64,
    /// Delays from the arrival of a chunk until the application could read it.
    pub blocking: DelayCounts,
    /// Duplicate chunks.
    pub duplicates: u64,
}

/// One sample of a path's counters.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    at: Time,
    data_sent_bytes: u64,
    data_received_bytes: u64,
    sent_chunks: u64,
    lost: u64,
    retransmitted: u64,
    received_packets: u64,
}

impl Sample {
    fn of(at: Time, path: &PathStats) -> Self {
        Self {
            at,
            data_sent_bytes: path.counters.delivered_bytes,
            data_received_bytes: path.received_bytes,
            sent_chunks: path.counters.sent_chunks,
            lost: path.counters.lost,
            retransmitted: path.counters.retransmitted,
            received_packets: path.traffic.received_packets,
        }
    }
}

/// A path of an open association.
#[derive(Clone, Debug)]
pub struct Track {
    /// Label of the peer.
    pub peer: String,
    /// Name of the link.
    pub link: String,
    /// Number of the path, counted from 1 over all associations.
    pub number: u64,
    /// The latest figures.
    pub stats: PathStats,
    /// When they were taken.
    at: Time,
    samples: VecDeque<Sample>,
}

/// Traffic of a path between two samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Growth {
    /// Length of the interval.
    pub seconds: f64,
    /// User data that the peer has acknowledged, bytes.
    pub data_sent_bytes: u64,
    /// User data that has arrived, bytes.
    pub data_received_bytes: u64,
    /// Retransmitted chunks.
    pub retransmitted: u64,
}

impl Track {
    /// Samples the path, if its figures are newer than the last sample. `was_idle` means that there was no traffic
    /// until at most a second before.
    fn sample(&mut self, totals: &mut LinkTotals, was_idle: bool) {
        let Some(last) = self.samples.back_mut() else { return };
        if last.at >= self.at {
            return;
        }
        if was_idle || last.at == Time::ZERO {
            // The time before the first snapshot is unknown; it counts as the previous second.
            let second_ago = self.at.as_nanos().saturating_sub(1_000_000_000);
            last.at = last.at.max(Time::from_nanos(second_ago));
        }
        let last = *last;
        // An idle path has no new round-trip time sample.
        let has_news = self.stats.traffic.received_packets > last.received_packets;
        if let Some(rtt_s) = self.stats.last_rtt_s.filter(|_| has_news) {
            totals.rtt.add(Duration::from_secs_f64(rtt_s));
        }
        self.samples.push_back(Sample::of(self.at, &self.stats));
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
    }

    /// Traffic of the path between the last two samples.
    pub fn growth(&self) -> Growth {
        let mut latest = self.samples.iter().rev();
        let (Some(now), Some(before)) = (latest.next(), latest.next()) else {
            return Growth::default();
        };
        Growth {
            seconds: now.at.since(before.at).as_secs_f64(),
            data_sent_bytes: now.data_sent_bytes - before.data_sent_bytes,
            data_received_bytes: now.data_received_bytes - before.data_received_bytes,
            retransmitted: now.retransmitted - before.retransmitted,
        }
    }

    /// Rates of user data at the last sample, bit/s: sent and received.
    pub fn rates_bps(&self) -> (f64, f64) {
        let growth = self.growth();
        let rate = |bytes: u64| {
            if growth.seconds > 0.0 { bytes as f64 * 8.0 / growth.seconds } else { 0.0 }
        };
        (rate(growth.data_sent_bytes), rate(growth.data_received_bytes))
    }

    /// Share of lost transmissions in the last ten seconds. `None` if nothing was sent.
    pub fn loss(&self) -> Option<f64> {
        let (first, last) = (self.samples.front()?, self.samples.back()?);
        let sent = last.sent_chunks - first.sent_chunks;
        let lost = last.lost - first.lost;
        (sent > 0).then(|| (lost as f64 / sent as f64).min(1.0))
    }

    /// Whether the path carries data.
    pub fn is_up(&self) -> bool {
        self.stats.status == PathStatus::Active
    }
}

/// An open association.
#[derive(Clone, Debug)]
pub struct OpenAssociation {
    /// Label of the peer.
    pub peer: String,
    /// The latest figures.
    pub snapshot: AssociationSnapshot,
}

/// Totals, and the state at the last fold.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Totals by peer and link.
    pub links: BTreeMap<(String, String), LinkTotals>,
    /// Totals by peer.
    pub peers: BTreeMap<String, PeerTotals>,
    /// Paths of open associations.
    pub paths: BTreeMap<PathKey, Track>,
    /// Open associations.
    pub associations: BTreeMap<(u64, u64), OpenAssociation>,
    /// Datagrams that belonged to no association, and limits that were reached, of all endpoints.
    pub unknown_datagrams: u64,
    endpoints: BTreeMap<u64, Counters>,
    /// Associations whose end was reported. A snapshot taken before must not add them again.
    closed: BTreeSet<(u64, u64)>,
    numbered: u64,
}

impl Ledger {
    /// Folds the latest snapshot of each endpoint. `label` names the peers.
    pub fn fold(
        &mut self,
        snapshots: &[Arc<EndpointSnapshot>],
        label: impl Fn(&AssociationSnapshot) -> String,
    ) {
        let mut present = BTreeSet::new();
        for endpoint in snapshots {
            let before = self.endpoints.insert(endpoint.endpoint, endpoint.counters);
            let before = before.unwrap_or_default();
            self.unknown_datagrams += endpoint.counters.unknown - before.unknown;
            for association in &endpoint.associations {
                let key = key_of(association);
                present.insert(key);
                if association.is_open && !self.closed.contains(&key) {
                    let label = self.bounded(label(association));
                    self.add(&label, association);
                }
            }
        }
        let open: BTreeSet<u64> = snapshots.iter().map(|one| one.endpoint).collect();
        self.endpoints.retain(|endpoint, _| open.contains(endpoint));
        self.closed.retain(|key| present.contains(key));
        // An endpoint may have been dropped without a report of its end.
        self.associations.retain(|key, _| present.contains(key));
        self.paths
            .retain(|(endpoint, association, _), _| present.contains(&(*endpoint, *association)));
    }

    /// Samples the paths, which determines their rates and losses. Called once per second, independently of folds.
    /// `was_idle` means that there was no traffic until at most a second before, and no sample since.
    pub fn sample(&mut self, was_idle: bool) {
        self.sample_paths(.., was_idle);
    }

    fn sample_paths(&mut self, which: impl RangeBounds<PathKey>, was_idle: bool) {
        for (_, track) in self.paths.range_mut(which) {
            let totals = self.links.entry((track.peer.clone(), track.link.clone())).or_default();
            track.sample(totals, was_idle);
        }
    }

    /// A number that changes whenever data has passed, or associations were opened or closed.
    pub fn activity(&self) -> u64 {
        let links = self.links.values().map(|link| {
            link.data_sent_bytes + link.data_received_bytes + link.retransmitted + link.lost
        });
        let established = self.peers.values().map(|peer| peer.established);
        links.chain(established).chain([self.unknown_datagrams]).sum()
    }

    /// Adds the last figures of an association that has ended, and forgets it.
    pub fn close(&mut self, label: String, last: &AssociationSnapshot) {
        let key = key_of(last);
        let label = self.bounded(label);
        self.add(&label, last);
        // Only its own paths: many associations may end at the same time.
        let own = (key.0, key.1, 0)..=(key.0, key.1, usize::MAX);
        self.sample_paths(own.clone(), false);
        self.associations.remove(&key);
        let paths: Vec<PathKey> = self.paths.range(own).map(|(path, _)| *path).collect();
        for path in paths {
            self.paths.remove(&path);
        }
        self.closed.insert(key);
    }

    /// Counts an association that is established.
    pub fn open(&mut self, label: String) {
        let label = self.bounded(label);
        self.peers.entry(label).or_default().established += 1;
    }

    /// The label if it has totals or there is room for them, otherwise the label that further peers share.
    fn bounded(&self, label: String) -> String {
        if self.peers.contains_key(&label) || self.peers.len() < SERIES_LIMIT {
            return label;
        }
        OTHER_PEERS.to_owned()
    }

    fn add(&mut self, label: &str, association: &AssociationSnapshot) {
        let key = key_of(association);
        let stats = &association.stats;
        let before = self.associations.get(&key).map(|open| &open.snapshot);
        if before.is_some_and(|before| before.stats.at >= stats.at) {
            return;
        }
        let peer = self.peers.entry(label.to_owned()).or_default();
        let (blocked, duplicates) = before
            .map_or((Duration::ZERO, 0), |b| (b.stats.sender.blocked, b.stats.duplicate_chunks));
        peer.blocked_s += (stats.sender.blocked.as_secs_f64() - blocked.as_secs_f64()).max(0.0);
        peer.duplicates += stats.duplicate_chunks - duplicates;
        let nothing = DelayCounts::default();
        grow(&mut peer.blocking, before.map_or(&nothing, |b| &b.blocking), &association.blocking);
        let open = OpenAssociation { peer: label.to_owned(), snapshot: association.clone() };
        self.associations.insert(key, open);
        for (index, path) in stats.paths.iter().enumerate() {
            self.add_path((key.0, key.1, index), label, stats.at, path);
        }
    }

    fn add_path(&mut self, key: PathKey, label: &str, at: Time, path: &PathStats) {
        let link = path.local.as_ref().map(LocalAddress::link_name).unwrap_or_default();
        let track = self.paths.entry(key).or_insert_with(|| {
            self.numbered += 1;
            let (peer, number) = (label.to_owned(), self.numbered);
            let samples = VecDeque::from([Sample { at: Time::ZERO, ..Sample::default() }]);
            let mut blank = path.clone();
            blank.counters = Default::default();
            blank.traffic = Default::default();
            blank.received_bytes = 0;
            Track { peer, link: String::new(), number, at, stats: blank, samples }
        });
        let totals = self.links.entry((label.to_owned(), link.clone())).or_default();
        totals.grow(&track.stats, path);
        track.link = link;
        track.stats = path.clone();
        track.at = at;
    }
}

impl LinkTotals {
    fn grow(&mut self, before: &PathStats, now: &PathStats) {
        let (was, is) = (&before.traffic, &now.traffic);
        self.sent.0 += is.sent_packets - was.sent_packets;
        self.sent.1 += is.sent_bytes - was.sent_bytes;
        self.received.0 += is.received_packets - was.received_packets;
        self.received.1 += is.received_bytes - was.received_bytes;
        let (was, is) = (&before.counters, &now.counters);
        self.data_sent_bytes += is.delivered_bytes - was.delivered_bytes;
        self.data_received_bytes += now.received_bytes - before.received_bytes;
        self.retransmitted += is.retransmitted - was.retransmitted;
        self.lost += is.lost.saturating_sub(was.lost);
        self.timeouts += is.timeouts - was.timeouts;
    }
}

fn key_of(association: &AssociationSnapshot) -> (u64, u64) {
    (association.about.endpoint, association.about.association)
}

fn grow(total: &mut DelayCounts, before: &DelayCounts, now: &DelayCounts) {
    let classes = total.classes.iter_mut().zip(before.classes.iter().zip(&now.classes));
    classes.for_each(|(total, (was, is))| *total += is.saturating_sub(*was));
    total.sum_s += (now.sum_s - before.sum_s).max(0.0);
}

#[cfg(test)]
mod tests {
    use ropewalk_runtime::endpoint::{
        AssociationInfo, LocalAddress, PathCounters, PathTraffic, PathUse, SenderStats, Stats,
    };

    use super::*;

    fn association(number: u64, at_s: u64, bytes: u64) -> AssociationSnapshot {
        let local = LocalAddress {
            address: ([192, 0, 2, 1], 4000).into(),
            interface: Some("wlan0".to_owned()),
        };
        let path = PathStats {
            remote: None,
            local: Some(local),
            status: PathStatus::Active,
            usage: PathUse::Always,
            counters: PathCounters {
                delivered_bytes: bytes,
                sent_chunks: bytes / 1000,
                lost: bytes / 10_000,
                ..PathCounters::default()
            },
            received_bytes: 0,
            cwnd_bytes: 0,
            in_flight_bytes: 0,
            mtu_bytes: 1500,
            srtt_s: Some(0.02),
            last_rtt_s: Some(0.02),
            queueing_s: 0.0,
            traffic: PathTraffic { received_packets: bytes, ..PathTraffic::default() },
        };
        let stats = Stats {
            at: Time::from_secs(at_s),
            paths: vec![path],
            sender: SenderStats { blocked: Duration::from_secs(at_s), ..SenderStats::default() },
            receive_free_bytes: 0,
            duplicate_chunks: 0,
            out_of_order_bytes: 0,
            mean_out_of_order_bytes: 0.0,
            max_out_of_order_bytes: 0,
        };
        let about = AssociationInfo {
            endpoint: 0,
            association: number,
            peer: None,
            address: None,
            opened_by_peer: false,
        };
        AssociationSnapshot { about, is_open: true, stats, blocking: DelayCounts::default() }
    }

    fn fold(ledger: &mut Ledger, associations: Vec<AssociationSnapshot>) {
        let at = associations.first().map_or(Time::ZERO, |one| one.stats.at);
        let counters = Counters::default();
        let snapshot = EndpointSnapshot { endpoint: 0, at, counters, associations };
        ledger.fold(&[Arc::new(snapshot)], |_| "anna".to_owned());
        ledger.sample(false);
    }

    fn totals(ledger: &Ledger) -> LinkTotals {
        ledger.links[&("anna".to_owned(), "wlan0".to_owned())]
    }

    #[test]
    fn totals_grow_over_associations_and_nothing_counts_twice() {
        let mut ledger = Ledger::default();
        fold(&mut ledger, vec![association(1, 10, 1_000_000)]);
        // The same snapshot again: the endpoint has published no other.
        fold(&mut ledger, vec![association(1, 10, 1_000_000)]);
        fold(&mut ledger, vec![association(1, 12, 3_000_000)]);
        assert_eq!(totals(&ledger).data_sent_bytes, 3_000_000);
        let track = ledger.paths.values().next().expect("a path");
        assert_eq!((track.rates_bps(), track.loss()), ((8e6, 0.0), Some(0.1)));
        ledger.close("anna".to_owned(), &association(1, 13, 3_500_000));
        // A snapshot from before the end.
        fold(&mut ledger, vec![association(1, 12, 3_000_000), association(2, 14, 100_000)]);
        assert_eq!(totals(&ledger).data_sent_bytes, 3_600_000);
        assert_eq!((ledger.paths.len(), ledger.associations.len()), (1, 1));
        assert_eq!(ledger.peers["anna"].blocked_s, 13.0 + 14.0);
        fold(&mut ledger, Vec::new());
        assert!(ledger.paths.is_empty(), "a dropped endpoint has no paths");
    }

    #[test]
    fn folding_more_often_changes_neither_rates_nor_the_number_of_round_trips() {
        let [mut seldom, mut often] = [Ledger::default(), Ledger::default()];
        for second in 1..=3 {
            let snapshot = |at, bytes| EndpointSnapshot {
                endpoint: 0,
                at: Time::from_secs(second),
                counters: Counters::default(),
                associations: vec![association(1, at, bytes)],
            };
            for part in 0..10 {
                let mut one = snapshot(second, second * 1_000_000 + part);
                let at = Time::from_millis(second * 1000 + part);
                one.associations[0].stats.at = at;
                often.fold(&[Arc::new(one)], |_| "anna".to_owned());
            }
            fold(&mut seldom, vec![association(1, second, second * 1_000_000)]);
            often.sample(false);
        }
        let rates = |ledger: &Ledger| ledger.paths.values().next().expect("a path").rates_bps();
        assert_eq!(rates(&often), rates(&seldom));
        assert_eq!(totals(&often).rtt, totals(&seldom).rtt);
        assert_eq!(totals(&often).data_sent_bytes, totals(&seldom).data_sent_bytes + 9);
    }

    #[test]
    fn the_number_of_labels_is_bounded() {
        let mut ledger = Ledger::default();
        (0..2 * SERIES_LIMIT).for_each(|i| ledger.open(format!("peer {i}")));
        assert_eq!(ledger.peers.len(), SERIES_LIMIT + 1);
        assert_eq!(ledger.peers[OTHER_PEERS].established as usize, SERIES_LIMIT);
    }
}
