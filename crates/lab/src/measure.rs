//! Collects the results of a run from the endpoints and links.

use ropewalk_base::{Duration, Histogram, PathId, Time};
use ropewalk_engine::path::SharedBottlenecks;
use ropewalk_engine::record::DecisionRecord;
use ropewalk_scenario::Scenario;

use crate::bound::flow_control_bound_bps;
use crate::endpoint::Endpoint;
use crate::machine::{EngineSettings, Machine};
use crate::packet_log::Packets;
use crate::result::{
    AppDelay, BlockingTime, EngineFigures, FlowResult, OutOfOrder, PathResult, ReceiveBufferResult,
    RunResult,
};
use crate::series::{DelayHistogram, DelayHistograms, PathSeries, Sequence, SequencePath, Series};
use crate::setup::Setup;
use crate::sources;
use crate::tunnel::TunnelEnd;
use crate::tunnel::flow_results;

const NANO: f64 = 1e-9;

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The figures.
    pub result: RunResult,
    /// Time series, if requested.
    pub series: Option<Series>,
    /// The delays of all chunks.
    pub delays: DelayHistograms,
    /// The first seconds, if requested.
    pub sequence: Option<Sequence>,
    /// The packets of the chosen association, if requested.
    pub packets: Option<Packets>,
    /// Decisions of the chosen association's sender, if the scenario records them.
    pub decisions: Vec<DecisionRecord>,
    /// What the sender of the chosen association found about paths that share a bottleneck, at the end. None unless
    /// `transfer.coupling` is `detected`.
    pub bottlenecks: Option<SharedBottlenecks>,
}

/// The flows through a tunnel, and the user data that they have delivered; none without a tunnel.
fn flows(
    setup: &Setup,
    scenario: &Scenario,
    interval: (Time, Time),
) -> Option<(Vec<FlowResult>, u64)> {
    let transfer = setup.transfers.first()?;
    let [one, other] = [transfer.sender, transfer.receiver].map(|host| setup.world.host(host));
    Some(flow_results(scenario, (one.tunnel()?, other.tunnel()?), interval))
}

/// The messages of each source; none if the scenario has no sources.
fn messages(setup: &Setup, scenario: &Scenario, interval: (Time, Time)) -> Option<Vec<FlowResult>> {
    let transfer = setup.transfers.first()?;
    let [one, other] = [transfer.sender, transfer.receiver].map(|host| setup.world.host(host));
    let Machine::Sctp(association) = &one.machine else { return None };
    Some(sources::results(scenario, (one.sources()?, other.sources()?), association, interval))
}

/// Measures one run.
pub struct Meter {
    /// Start of the measured interval.
    from: Time,
    links_before: Vec<LinkWork>,
    read_before: Vec<u64>,
    packets_before: u64,
    interval: Duration,
    next: Option<Time>,
    series: Series,
    last: LastSample,
}

#[derive(Default)]
struct LastSample {
    at: Time,
    delivered: u64,
    paths: Vec<u64>,
    lost: Vec<u64>,
}

impl Meter {
    /// A meter that starts with the run.
    pub fn new(scenario: &Scenario, setup: &mut Setup, with_series: bool) -> Self {
        if with_series {
            for transfer in &setup.transfers {
                setup.world.host_mut(transfer.receiver).track_peak();
            }
        }
        let interval = scenario.record.interval;
        let paths = scenario.paths.iter();
        let names = paths.map(|p| PathSeries { name: p.name.clone(), ..PathSeries::default() });
        Self {
            from: Time::ZERO,
            links_before: link_work(setup),
            read_before: vec![0; setup.transfers.len()],
            packets_before: 0,
            interval,
            next: with_series.then_some(Time::ZERO + interval),
            series: Series { paths: names.collect(), ..Series::default() },
            last: LastSample {
                paths: vec![0; scenario.paths.len()],
                lost: vec![0; scenario.paths.len()],
                ..LastSample::default()
            },
        }
    }

    /// Time of the next sample.
    pub const fn next_sample(&self) -> Option<Time> {
        self.next
    }

    /// Restarts the measurements after the warm-up.
    pub fn reset(&mut self, setup: &mut Setup, now: Time) {
        self.from = now;
        self.links_before = link_work(setup);
        self.last.paths.fill(0);
        self.last.lost.fill(0);
        for (i, transfer) in setup.transfers.iter().enumerate() {
            setup.world.host_mut(transfer.sender).reset_measurements(now);
            let receiver = setup.world.host_mut(transfer.receiver);
            self.read_before[i] = receiver.read_bytes;
            self.packets_before += receiver.machine.receive_stats().delivered_chunks;
            receiver.reset_measurements(now);
        }
    }

    /// Takes a sample of everything.
    pub fn sample(&mut self, setup: &mut Setup, now: Time) {
        let seconds = now.since(self.last.at).as_secs_f64().max(NANO);
        let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
        let (mut delivered, mut held, mut free, mut peak) = (0, 0, 0, 0);
        for transfer in &setup.transfers {
            let receiver = setup.world.host_mut(transfer.receiver);
            delivered += receiver.read_bytes;
            let (now_held, now_free) = receiver.machine.receive_occupancy();
            held += now_held;
            free += now_free;
            peak += receiver.take_peak();
        }
        self.series.time_s.push(now.as_secs_f64());
        self.series.goodput_bps.push(rate(delivered - self.last.delivered));
        self.series.delivered_bytes.push(delivered);
        self.series.receive_buffer_bytes.push(held);
        self.series.receive_buffer_peak_bytes.push(peak);
        self.series.receive_window_bytes.push(free);
        self.last.delivered = delivered;
        for (i, path) in self.series.paths.iter_mut().enumerate() {
            let (mut acked, mut lost, mut cwnd, mut in_flight) = (0, 0, 0, 0);
            let mut srtt = None;
            for transfer in &setup.transfers {
                let sender = &setup.world.host(transfer.sender).machine;
                let counters = sender.path_counters(i);
                acked += counters.map_or(0, |c| c.delivered_bytes);
                lost += counters.map_or(0, |c| c.lost);
                let view = sender.path_view(now, PathId::from_index(i));
                cwnd += view.cwnd;
                in_flight += view.in_flight;
                srtt = srtt.or(view.srtt.filter(|_| view.usable));
            }
            path.throughput_bps.push(rate(acked.saturating_sub(self.last.paths[i])));
            path.cwnd_bytes.push(cwnd);
            path.in_flight_bytes.push(in_flight);
            path.srtt_s.push(srtt.map(Duration::as_secs_f64));
            path.lost_packets.push(lost.saturating_sub(self.last.lost[i]));
            self.last.paths[i] = acked;
            self.last.lost[i] = lost;
        }
        self.last.at = now;
        self.next = self.next.map(|at| at + self.interval);
    }

    /// Computes the results of the run.
    pub fn finish(mut self, setup: &mut Setup, scenario: &Scenario, ended: Time) -> Run {
        for transfer in &setup.transfers {
            setup.world.host_mut(transfer.sender).machine.settle_measurements(ended);
            setup.world.host_mut(transfer.receiver).machine.settle_measurements(ended);
        }
        let series = self.next.take().map(|_| std::mem::take(&mut self.series));
        let delays = Totals::of(setup).delays();
        let result = self.result(setup, scenario, ended);
        // At most one association records decisions.
        let mut decisions = Vec::new();
        for transfer in &setup.transfers {
            decisions.append(&mut setup.world.host_mut(transfer.sender).machine.take_records());
        }
        Run { result, series, delays, sequence: None, packets: None, decisions, bottlenecks: None }
    }

    fn result(&self, setup: &mut Setup, scenario: &Scenario, ended: Time) -> RunResult {
        let seconds = ended.since(self.from).as_secs_f64().max(NANO);
        let totals = Totals::of(setup);
        let per_association: Vec<f64> = (setup.transfers.iter().zip(&self.read_before))
            .map(|(t, before)| {
                (setup.world.host(t.receiver).read_bytes - before) as f64 * 8.0 / seconds
            })
            .collect();
        // Through a tunnel, data goes in both directions.
        let (flows, goodput) = match flows(setup, scenario, (self.from, ended)) {
            None => {
                let messages = messages(setup, scenario, (self.from, ended));
                (messages.unwrap_or_default(), per_association.iter().sum())
            }
            Some((flows, bytes)) => (flows, bytes as f64 * 8.0 / seconds),
        };
        let on_wire =
            scenario.transfer.packet as f64 / EngineSettings::of(scenario).payload() as f64;
        let bound = flow_control_bound_bps(scenario);
        let first = setup.transfers.first().map(|t| setup.world.host(t.receiver));
        let seconds_of = |at: Option<Time>| at.map(Time::as_secs_f64);
        let completion = first.and_then(|end| seconds_of(end.done_at));
        let first_arrival = first.and_then(|end| seconds_of(end.first_data));
        RunResult {
            schema: "ropewalk.run/1".to_owned(),
            protocol: scenario.transfer.protocol.to_string(),
            scheduler: scenario.scheduler.label().to_owned(),
            seed: scenario.transfer.seed.to_string(),
            duration_s: seconds,
            warmup_s: scenario.transfer.warmup.as_secs_f64(),
            goodput_bps: goodput,
            goodput_wire_bps: goodput * on_wire,
            delivered_bytes: totals.delivered_bytes,
            delivered_packets: totals.delivered_chunks,
            completion_s: completion,
            first_arrival_s: first_arrival,
            paths: self.paths(setup, scenario, ended, seconds),
            flows,
            receive_buffer: totals.receive_buffer(),
            blocking_time_s: totals.blocking_time(),
            app_delay_s: totals.app_delay(),
            out_of_order: OutOfOrder {
                ratio: totals.stored as f64 / totals.received.max(1) as f64,
                max_bytes: totals.occupancy.max(),
            },
            spurious_retransmissions: totals.duplicates,
            flow_control_bound_bps: bound,
            share_of_bound: bound.map(|bound| goodput * on_wire / bound),
            association_goodput_bps: if per_association.len() > 1 {
                per_association
            } else {
                Vec::new()
            },
            engine: EngineFigures {
                events: setup.world.events(),
                packets: self.packets_before + totals.delivered_chunks,
                cpu_s: 0.0,
                packets_per_cpu_s: 0.0,
            },
        }
    }

    fn paths(
        &self,
        setup: &mut Setup,
        scenario: &Scenario,
        ended: Time,
        seconds: f64,
    ) -> Vec<PathResult> {
        let links = link_work(setup);
        let mut out = Vec::with_capacity(scenario.paths.len());
        for (i, path) in scenario.paths.iter().enumerate() {
            let (before, after) = (&self.links_before[i], &links[i]);
            let capacity = after.capacity_bytes - before.capacity_bytes;
            let carried = after.delivered_bytes - before.delivered_bytes;
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
                utilisation: carried as f64 / capacity.max(1) as f64,
                srtt_s: None,
                cwnd_bytes: 0,
            };
            for transfer in &setup.transfers {
                let host = setup.world.host(transfer.sender);
                let caps = host.tunnel().map(TunnelEnd::carried).unwrap_or_default();
                result.carried_bytes += caps.get(i).copied().unwrap_or_default();
                let sender = &host.machine;
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
}

/// Bytes that each path's own links towards the receiver have delivered and could have carried, summed over all
/// associations. For a path over Wi-Fi, the wireless hop counts.
fn link_work(setup: &Setup) -> Vec<LinkWork> {
    let paths = setup.links.first().map_or(0, Vec::len);
    let mut work = vec![LinkWork::default(); paths];
    for association in &setup.links {
        for (sum, path) in work.iter_mut().zip(association) {
            let (link, alone) = match path.air {
                Some((hop, alone)) => (hop, Some(alone)),
                None => (path.wire.0, None),
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
struct LinkWork {
    delivered_bytes: u64,
    capacity_bytes: u64,
}

/// Sums over all associations.
#[derive(Default)]
struct Totals {
    occupancy: Histogram,
    blocking: Histogram,
    app_delay: Histogram,
    delivered_bytes: u64,
    delivered_chunks: u64,
    received: u64,
    stored: u64,
    duplicates: u64,
    blocked: Duration,
}

impl Totals {
    fn of(setup: &Setup) -> Self {
        let mut all = Self::default();
        for transfer in &setup.transfers {
            let stats = setup.world.host(transfer.receiver).machine.receive_stats();
            all.occupancy.merge(&stats.occupancy);
            all.blocking.merge(&stats.blocking);
            all.app_delay.merge(&stats.app_delay);
            all.delivered_bytes += stats.delivered_bytes;
            all.delivered_chunks += stats.delivered_chunks;
            all.received += stats.received;
            all.stored += stats.stored;
            all.duplicates += stats.duplicates;
            all.blocked += setup.world.host(transfer.sender).machine.sender_stats().blocked;
        }
        all
    }

    fn receive_buffer(&self) -> ReceiveBufferResult {
        ReceiveBufferResult {
            max_bytes: self.occupancy.max(),
            mean_bytes: self.occupancy.mean(),
            p99_bytes: self.occupancy.quantile(0.99),
            blocked_s: self.blocked.as_secs_f64(),
        }
    }

    fn blocking_time(&self) -> BlockingTime {
        BlockingTime {
            max: self.blocking.max() as f64 * NANO,
            mean: self.blocking.mean() * NANO,
            p50: self.blocking.quantile(0.5) as f64 * NANO,
            p99: self.blocking.quantile(0.99) as f64 * NANO,
        }
    }

    fn delays(self) -> DelayHistograms {
        DelayHistograms {
            app_delay: DelayHistogram::of_nanos(self.app_delay),
            blocking_time: DelayHistogram::of_nanos(self.blocking),
        }
    }

    fn app_delay(&self) -> AppDelay {
        AppDelay {
            mean: self.app_delay.mean() * NANO,
            p50: self.app_delay.quantile(0.5) as f64 * NANO,
            p99: self.app_delay.quantile(0.99) as f64 * NANO,
            max: self.app_delay.max() as f64 * NANO,
        }
    }
}

/// The recorded beginning of a transfer, up to the time where both lists are complete.
pub fn sequence_of(receiver: &Endpoint, scenario: &Scenario) -> Sequence {
    let cut = receiver.arrivals_truncated();
    let kept = |at: Time| cut.is_none_or(|cut| at < cut);
    let mut sequence = Sequence { cut_s: cut.map(Time::as_secs_f64), ..Sequence::default() };
    for (i, path) in scenario.paths.iter().enumerate() {
        let arrivals = receiver.arrivals.iter().filter(|m| m.path as usize == i && kept(m.at));
        let (time_s, seq) = arrivals.map(|m| (m.at.as_secs_f64(), m.chunk)).unzip();
        sequence.paths.push(SequencePath { name: path.name.clone(), time_s, seq });
    }
    let releases = receiver.releases.iter().filter(|(at, _)| kept(*at));
    let (time_s, seq) = releases.map(|(at, n)| (at.as_secs_f64(), *n)).unzip();
    sequence.delivered = SequencePath { name: String::new(), time_s, seq };
    sequence
}
