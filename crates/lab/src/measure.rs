//! Collects the results of a run from the endpoints and links.

use ropewalk_base::{Duration, PathId, Time};
use ropewalk_engine::path::SharedBottlenecks;
use ropewalk_engine::record::DecisionRecord;
use ropewalk_netsim::HostId;
use ropewalk_scenario::Scenario;

use crate::bound::flow_control_bound_bps;
use crate::direction::{self, LinkWork, Totals, ends, link_work, ways};
use crate::endpoint::Endpoint;
use crate::machine::{EngineSettings, Machine};
use crate::packet_log::{Packets, Way};
use crate::result::{EngineFigures, FlowResult, OutOfOrder, PathResult, RunResult};
use crate::series::{DelayHistograms, PathSeries, Sequence, SequencePath, Series};
use crate::setup::{Setup, Transfer};
use crate::sources;
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
    /// Detection results of the chosen association's sender about paths that share a bottleneck, at the end. `None`
    /// unless `transfer.coupling` is `detected`.
    pub bottlenecks: Option<SharedBottlenecks>,
}

/// The flows through a tunnel, and the user data that they have delivered in each direction. `None` if there is no
/// tunnel.
fn flows(
    setup: &Setup,
    scenario: &Scenario,
    interval: (Time, Time),
) -> Option<(Vec<FlowResult>, [u64; 2])> {
    let transfer = setup.transfers.first()?;
    let [one, other] = [transfer.sender, transfer.receiver].map(|host| setup.world.host(host));
    Some(flow_results(scenario, (one.tunnel()?, other.tunnel()?), interval))
}

/// The messages of each source. `None` if the scenario has no sources.
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
    /// The directions in which there is user data.
    ways: &'static [Way],
    /// Work of the links before the interval, for each direction.
    links_before: Vec<Vec<LinkWork>>,
    /// Work of the links in the return direction before the interval.
    return_before: Vec<LinkWork>,
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
        let ways = ways(scenario);
        if with_series {
            for host in receivers(setup, ways) {
                setup.world.host_mut(host).track_peak();
            }
        }
        let interval = scenario.record.interval;
        let paths = scenario.paths.iter();
        let names = paths.map(|p| PathSeries { name: p.name.clone(), ..PathSeries::default() });
        Self {
            from: Time::ZERO,
            ways,
            links_before: ways.iter().map(|way| link_work(setup, *way)).collect(),
            return_before: link_work(setup, Way::Down),
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
        self.links_before = self.ways.iter().map(|way| link_work(setup, *way)).collect();
        self.return_before = link_work(setup, Way::Down);
        self.packets_before = Totals::of(setup, self.ways).delivered_chunks;
        self.last.paths.fill(0);
        self.last.lost.fill(0);
        for (i, transfer) in setup.transfers.iter().enumerate() {
            setup.world.host_mut(transfer.sender).reset_measurements(now);
            let receiver = setup.world.host_mut(transfer.receiver);
            self.read_before[i] = receiver.read_bytes;
            receiver.reset_measurements(now);
        }
    }

    /// Takes a sample of all series.
    pub fn sample(&mut self, setup: &mut Setup, now: Time) {
        let seconds = now.since(self.last.at).as_secs_f64().max(NANO);
        let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
        let (mut delivered, mut held, mut free, mut peak) = (0, 0, 0, 0);
        for host in receivers(setup, self.ways) {
            let receiver = setup.world.host_mut(host);
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
            let both = setup
                .transfers
                .iter()
                .flat_map(|transfer| self.ways.iter().map(|way| ends(setup, transfer, *way)[0]));
            for sender in both {
                let sender = &sender.machine;
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
        let delays = Totals::of(setup, self.ways).delays();
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
        let totals = Totals::of(setup, self.ways);
        let per_association: Vec<f64> = (setup.transfers.iter().zip(&self.read_before))
            .map(|(t, before)| {
                (setup.world.host(t.receiver).read_bytes - before) as f64 * 8.0 / seconds
            })
            .collect();
        let on_wire =
            scenario.transfer.packet as f64 / EngineSettings::of(scenario).payload() as f64;
        let paths = self.paths(setup, scenario, ended, seconds);
        let over_both = self.over_both(setup, &paths);
        // Through a tunnel, data goes in both directions.
        let (flows, goodput, bound, directions) = match flows(setup, scenario, (self.from, ended)) {
            None => {
                let messages = messages(setup, scenario, (self.from, ended));
                let bound = flow_control_bound_bps(scenario, Way::Up);
                (messages.unwrap_or_default(), per_association.iter().sum(), bound, Vec::new())
            }
            Some((flows, bytes)) => {
                let each = self.ways.iter().zip(paths).zip(bytes).map(|((way, paths), bytes)| {
                    let amount = (bytes, seconds, on_wire);
                    direction::result(setup, scenario, (*way, paths), amount)
                });
                let goodput = bytes.iter().sum::<u64>() as f64 * 8.0 / seconds;
                (flows, goodput, None, each.collect())
            }
        };
        let [completion, first_arrival] = self.times(setup);
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
            paths: over_both,
            directions,
            flows,
            receive_buffer: totals.receive_buffer(),
            blocking_time_s: totals.blocking_time(),
            app_delay_s: totals.app_delay(),
            out_of_order: OutOfOrder {
                ratio: totals.out_of_order(),
                max_bytes: totals.stored_max(),
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

    /// Times at which the first transfer had delivered the wanted bytes, and at which its first data arrived, s
    /// since the start.
    fn times(&self, setup: &Setup) -> [Option<f64>; 2] {
        let Some(transfer) = setup.transfers.first() else { return [None; 2] };
        let done = setup.world.host(transfer.receiver).done_at;
        let arrivals = self.ways.iter().map(|way| ends(setup, transfer, *way)[1].first_data);
        [done, arrivals.flatten().min()].map(|at| at.map(Time::as_secs_f64))
    }

    /// The paths over all directions, with the return traffic of a transfer.
    fn over_both(&self, setup: &Setup, paths: &[Vec<PathResult>]) -> Vec<PathResult> {
        let mut over_both = direction::over_both(setup, paths);
        if self.ways == [Way::Up] {
            direction::add_return_traffic(setup, &self.return_before, &mut over_both);
        }
        over_both
    }

    /// The paths in each direction.
    fn paths(
        &self,
        setup: &Setup,
        scenario: &Scenario,
        ended: Time,
        seconds: f64,
    ) -> Vec<Vec<PathResult>> {
        let each = self.ways.iter().zip(&self.links_before);
        let paths = each.map(|(way, before)| {
            direction::paths(setup, scenario, (*way, before), (ended, seconds))
        });
        paths.collect()
    }
}

/// The ends that receive user data in these directions.
fn receivers(setup: &Setup, ways: &[Way]) -> Vec<HostId> {
    let of = |transfer: &Transfer| {
        ways.iter().map(|way| way.of((transfer.receiver, transfer.sender))).collect::<Vec<_>>()
    };
    setup.transfers.iter().flat_map(of).collect()
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
