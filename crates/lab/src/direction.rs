//! Figures of the directions in which the associations of a run carry data.
//!
//! A transfer has user data in one direction only, from the sender to the receiver (`up`). A tunnel has it in both.

use ropewalk_base::{Duration, Histogram, PathId, Time};
use ropewalk_scenario::Scenario;

use crate::bound::flow_control_bound_bps;
use crate::endpoint::Endpoint;
use crate::packet_log::Way;
use crate::result::{AppDelay, BlockingTime, DirectionResult, PathResult, ReceiveBufferResult};
use crate::series::{DelayHistogram, DelayHistograms};
use crate::setup::{Setup, Transfer};
use crate::tunnel::TunnelEnd;

const NANO: f64 = 1e-9;

/// The directions in which a scenario has user data.
pub fn ways(scenario: &Scenario) -> &'static [Way] {
    match scenario.flows.is_empty() {
        true => &[Way::Up],
        false => &[Way::Up, Way::Down],
    }
}

/// The end that sends the data of this direction, and the one that receives it.
pub fn ends<'a>(setup: &'a Setup, transfer: &Transfer, way: Way) -> [&'a Endpoint; 2] {
    let (from, to) = match way {
        Way::Up => (transfer.sender, transfer.receiver),
        Way::Down => (transfer.receiver, transfer.sender),
    };
    [setup.world.host(from), setup.world.host(to)]
}

/// For each path, bytes that its own links have delivered and could have carried in this direction, summed
/// over all associations. For a path over Wi-Fi, the wireless hop counts.
pub fn link_work(setup: &Setup, way: Way) -> Vec<LinkWork> {
    let paths = setup.links.first().map_or(0, Vec::len);
    let mut work = vec![LinkWork::default(); paths];
    for association in &setup.links {
        for (sum, path) in work.iter_mut().zip(association) {
            let (link, alone) = match path.air {
                Some((hop, alone)) => (way.of(hop), Some(alone)),
                None => (way.of(path.wire), None),
            };
            let stats = setup.world.link_stats(link);
            let elapsed = setup.world.now().since(Time::ZERO);
            let capacity = alone.map(|rate| rate.bytes_in(elapsed)).or(stats.capacity_bytes);
            sum.delivered_bytes += stats.delivered_bytes;
            sum.capacity_bytes += capacity.unwrap_or(0);
        }
    }
    work
}

/// Bytes delivered and capacity of links.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkWork {
    delivered_bytes: u64,
    capacity_bytes: u64,
}

impl LinkWork {
    /// The difference from an earlier state.
    fn since(self, before: Self) -> Self {
        Self {
            delivered_bytes: self.delivered_bytes - before.delivered_bytes,
            capacity_bytes: self.capacity_bytes - before.capacity_bytes,
        }
    }

    fn utilisation(self) -> f64 {
        self.delivered_bytes as f64 / self.capacity_bytes.max(1) as f64
    }
}

/// Adds the return traffic to the paths of a transfer. `before`: the work of the return links before the interval.
pub fn add_return_traffic(setup: &Setup, before: &[LinkWork], paths: &mut [PathResult]) {
    for ((path, now), before) in paths.iter_mut().zip(link_work(setup, Way::Down)).zip(before) {
        let work = now.since(*before);
        path.return_bytes = work.delivered_bytes;
        path.return_utilisation = work.utilisation();
    }
}

/// The paths in one direction, summed over all associations, in an interval of `seconds` that ends at `ended`.
/// `before`: the work of the links before the interval.
pub fn paths(
    setup: &Setup,
    scenario: &Scenario,
    (way, before): (Way, &[LinkWork]),
    (ended, seconds): (Time, f64),
) -> Vec<PathResult> {
    let links = link_work(setup, way);
    let mut out = Vec::with_capacity(scenario.paths.len());
    for (i, path) in scenario.paths.iter().enumerate() {
        let mut result = PathResult {
            name: path.name.clone(),
            sent_packets: 0,
            retransmitted_packets: 0,
            lost_packets: 0,
            timeouts: 0,
            undone_reductions: 0,
            delivered_bytes: 0,
            carried_bytes: 0,
            throughput_bps: 0.0,
            utilisation: links[i].since(before[i]).utilisation(),
            return_bytes: 0,
            return_utilisation: 0.0,
            srtt_s: None,
            cwnd_bytes: 0,
        };
        for transfer in &setup.transfers {
            let sender = &ends(setup, transfer, way)[0].machine;
            if let Some(counters) = sender.path_counters(i) {
                result.sent_packets += counters.sent_packets;
                result.retransmitted_packets += counters.retransmitted;
                result.lost_packets += counters.lost;
                result.timeouts += counters.timeouts;
                result.undone_reductions += counters.undone;
                result.delivered_bytes += counters.delivered_bytes;
            }
            let view = sender.path_view(ended, PathId::from_index(i));
            result.srtt_s = result.srtt_s.or(view.srtt.map(Duration::as_secs_f64));
            result.cwnd_bytes += view.cwnd;
        }
        result.throughput_bps = result.delivered_bytes as f64 * 8.0 / seconds;
        out.push(result);
    }
    out
}

/// The paths over both directions. Counts and rates are sums. A share, an RTT and a window cannot be added: they
/// are those of the direction that has delivered more on the path.
pub fn over_both(setup: &Setup, directions: &[Vec<PathResult>]) -> Vec<PathResult> {
    let (first, others) = directions.split_first().expect("a run has a direction");
    let mut all = first.clone();
    for (i, sum) in all.iter_mut().enumerate() {
        let mut busiest = sum.delivered_bytes;
        for other in others.iter().map(|paths| &paths[i]) {
            sum.sent_packets += other.sent_packets;
            sum.retransmitted_packets += other.retransmitted_packets;
            sum.lost_packets += other.lost_packets;
            sum.timeouts += other.timeouts;
            sum.undone_reductions += other.undone_reductions;
            sum.delivered_bytes += other.delivered_bytes;
            sum.throughput_bps += other.throughput_bps;
            if other.delivered_bytes > busiest {
                busiest = other.delivered_bytes;
                sum.utilisation = other.utilisation;
                sum.srtt_s = other.srtt_s;
                sum.cwnd_bytes = other.cwnd_bytes;
            }
        }
        for transfer in &setup.transfers {
            let tunnel = setup.world.host(transfer.sender).tunnel();
            let carried = tunnel.map(TunnelEnd::carried).unwrap_or_default();
            sum.carried_bytes += carried.get(i).copied().unwrap_or_default();
        }
    }
    all
}

/// The result of one direction of a tunnel. `bytes`: user data that its flows have delivered in an interval of `seconds`;
/// `on_wire`: bytes on the wire for each byte of it.
pub fn result(
    setup: &Setup,
    scenario: &Scenario,
    (way, paths): (Way, Vec<PathResult>),
    (bytes, seconds, on_wire): (u64, f64, f64),
) -> DirectionResult {
    let totals = Totals::of(setup, &[way]);
    let (buffer, delay) = (totals.receive_buffer(), totals.app_delay());
    let goodput = bytes as f64 * 8.0 / seconds;
    let bound = flow_control_bound_bps(scenario, way);
    DirectionResult {
        name: way.name().to_owned(),
        goodput_bps: goodput,
        flow_control_bound_bps: bound,
        share_of_bound: bound.map(|bound| goodput * on_wire / bound),
        receive_buffer_max_bytes: buffer.max_bytes,
        blocked_s: buffer.blocked_s,
        app_delay_p50_s: delay.p50,
        app_delay_p99_s: delay.p99,
        app_delay_max_s: delay.max,
        out_of_order_ratio: totals.out_of_order(),
        spurious_retransmissions: totals.duplicates,
        delivered_bytes: totals.delivered_bytes,
        delivered_packets: totals.delivered_chunks,
        paths,
    }
}

/// Sums over all associations, in one direction or in both.
#[derive(Default)]
pub struct Totals {
    occupancy: Histogram,
    blocking: Histogram,
    app_delay: Histogram,
    pub delivered_bytes: u64,
    pub delivered_chunks: u64,
    received: u64,
    stored: u64,
    pub duplicates: u64,
    blocked: Duration,
}

impl Totals {
    pub fn of(setup: &Setup, ways: &[Way]) -> Self {
        let mut all = Self::default();
        for way in ways {
            for transfer in &setup.transfers {
                all.add(ends(setup, transfer, *way));
            }
        }
        all
    }

    fn add(&mut self, [from, to]: [&Endpoint; 2]) {
        let stats = to.machine.receive_stats();
        self.occupancy.merge(&stats.occupancy);
        self.blocking.merge(&stats.blocking);
        self.app_delay.merge(&stats.app_delay);
        self.delivered_bytes += stats.delivered_bytes;
        self.delivered_chunks += stats.delivered_chunks;
        self.received += stats.received;
        self.stored += stats.stored;
        self.duplicates += stats.duplicates;
        self.blocked += from.machine.sender_stats().blocked;
    }

    /// Highest number of bytes stored out of order.
    pub fn stored_max(&self) -> u64 {
        self.occupancy.max()
    }

    /// Share of the chunks that were stored out of order.
    pub fn out_of_order(&self) -> f64 {
        self.stored as f64 / self.received.max(1) as f64
    }

    pub fn receive_buffer(&self) -> ReceiveBufferResult {
        ReceiveBufferResult {
            max_bytes: self.occupancy.max(),
            mean_bytes: self.occupancy.mean(),
            p99_bytes: self.occupancy.quantile(0.99),
            blocked_s: self.blocked.as_secs_f64(),
        }
    }

    pub fn blocking_time(&self) -> BlockingTime {
        BlockingTime {
            max: self.blocking.max() as f64 * NANO,
            mean: self.blocking.mean() * NANO,
            p50: self.blocking.quantile(0.5) as f64 * NANO,
            p99: self.blocking.quantile(0.99) as f64 * NANO,
        }
    }

    pub fn delays(self) -> DelayHistograms {
        DelayHistograms {
            app_delay: DelayHistogram::of_nanos(self.app_delay),
            blocking_time: DelayHistogram::of_nanos(self.blocking),
        }
    }

    pub fn app_delay(&self) -> AppDelay {
        AppDelay {
            mean: self.app_delay.mean() * NANO,
            p50: self.app_delay.quantile(0.5) as f64 * NANO,
            p99: self.app_delay.quantile(0.99) as f64 * NANO,
            max: self.app_delay.max() as f64 * NANO,
        }
    }
}
