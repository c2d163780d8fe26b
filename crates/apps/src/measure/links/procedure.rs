//! The procedure of a measurement of links.
//!
//! 1. Small probes, then full-size ones, on all links in both directions at the same time: delays of idle links.
//! 2. One link and direction at a time: trains for a first guess of the capacity, then an overload at twice the guess
//!    that fills the queue once and drains it. Small probes on the other links show whether these wait too.
//! 3. Full-size probes on all links in both directions, well below the capacities: losses.

use std::time::Duration;

use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::{Association, PathStatus};

use super::client::{Client, TrainPlan};
use super::message::{TRAIN_LIMIT, Train};
use super::result::{LinkEstimate, LinkMeasurement, SharingTest};
use crate::measure::estimate::{
    Capacity, Probe, Queue, capacity, delay, loss, quantile, queue, shared,
};
use crate::measure::{Direction, MeasureError};

/// Size of a small probe, bytes: seal and headers fit in IPv6 as well.
const SMALL_BYTES: u16 = 100;
/// Idle phase: interval and number of the small probes.
const IDLE_INTERVAL_NS: u64 = 20_000_000;
const IDLE_COUNT: u32 = 100;
/// Maximum rate of all small probes during an overload, as a share of the overload's rate: a shared bottleneck also
/// carries these probes, and would seem slower.
const WATCH_SHARE: f64 = 0.005;
/// Minimum interval of these probes, seconds, and how many are sent before the overload.
const WATCH_INTERVAL_S: f64 = 0.01;
const WATCH_LEAD: f64 = 10.0;
/// Full-size probes of the idle phase, and their interval. They show how the size increases the delay: by the sum of
/// the transmission times of all hops (Jacobson, "pathchar", 1997).
const FULL_INTERVAL_NS: u64 = 60_000_000;
const FULL_COUNT: u32 = 20;
/// Probes of the first train; each further one is four times as long.
const FIRST_TRAIN: u32 = 32;
const TRAINS: usize = 3;
/// Dispersion that makes a train long enough for a first guess, seconds.
const DISPERSION_S: f64 = 0.02;
/// First guess if nothing of a train arrived, bit/s.
const FALLBACK_BPS: f64 = 1e6;
/// Offered rate of an overload, as a multiple of the guess.
const OVERLOAD_FACTOR: f64 = 2.0;
/// Duration of the first overload, and the factor by which it is extended if the queue was not full at its end.
const OVERLOAD_S: f64 = 1.5;
const LONGER: f64 = 3.0;
/// Maximum number of overloads per link and direction.
const ATTEMPTS: usize = 5;
/// Offered rate of the last overload of a shared bottleneck, as a multiple of its rate, and its duration after the
/// queue is full, seconds. The link in front of the bottleneck may be only slightly faster, and its own queue must
/// stay empty. The overload is sent if a link delays another one by this share of its own delay, with this
/// correlation: the share is small if the link's own queue was full as well.
const GENTLE_RISE: f64 = 0.1;
const GENTLE_CORRELATION: f64 = 0.6;
const GENTLE_FACTOR: f64 = 1.2;
const GENTLE_S: f64 = 1.0;
const GENTLE_MAX_S: f64 = 8.0;
/// Share of the bytes that overloads may use; the rest is for the losses.
const OVERLOAD_BYTES: f64 = 0.6;
/// Variation of the rate from which a trace is recorded, and for how long, seconds.
const VARIATION: f64 = 0.2;
const TRACE_S: f64 = 8.0;
/// Rate of the probes for losses, as a share of the capacity. Both directions of a shared medium fit.
const LOSS_SHARE: f64 = 0.4;
/// Minimum duration of the probes for losses, seconds.
const LOSS_MIN_S: f64 = 5.0;
/// Longest wait for all paths, seconds.
const PATHS_WAIT_S: f64 = 3.0;

/// Limits of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct LinkPlan {
    /// Approximate duration, seconds. With many or slow links it takes longer.
    pub seconds: f64,
    /// Maximum number of bytes of probes that both ends together send.
    pub max_bytes: u64,
}

/// The current step of the measurement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Step {
    /// Small probes on idle links.
    Idle,
    /// Trains and overload of one path.
    Overload {
        /// The path.
        path: usize,
        /// The direction.
        direction: Direction,
    },
    /// Probes for losses.
    Loss,
}

const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

/// Measures all paths of an association to a server of measurements. `report` receives each step and the share of
/// the work that is done before it. Ends the association.
///
/// # Errors
/// [`MeasureError`].
pub async fn measure(
    association: &Association,
    plan: LinkPlan,
    mut report: impl FnMut(Step, f64),
) -> Result<LinkMeasurement, MeasureError> {
    let clock = association.clock();
    let began = clock.now();
    let paths = wait_for_paths(association, clock).await;
    let client = Client::open(association, plan.max_bytes).await?;
    let mut procedure = Procedure::new(association, client, paths);
    report(Step::Idle, 0.0);
    procedure.idle().await?;
    let links = procedure.found.links.len();
    let work = (2 * links + 2) as f64;
    for (done, (i, direction)) in
        (0..links).flat_map(|i| DIRECTIONS.map(|direction| (i, direction))).enumerate()
    {
        let path = procedure.found.links[i].path;
        report(Step::Overload { path, direction }, (done + 1) as f64 / work);
        procedure.overload(i, direction).await?;
    }
    report(Step::Loss, (work - 1.0) / work);
    let left = plan.seconds - clock.now().since(began).as_secs_f64();
    procedure.losses(left).await?;
    let mut found = procedure.finish();
    found.seconds = clock.now().since(began).as_secs_f64();
    association.abort();
    Ok(found)
}

/// Waits briefly until all paths are in use. Returns those that are.
async fn wait_for_paths(association: &Association, clock: Clock) -> Vec<usize> {
    let began = clock.now();
    loop {
        let paths = association.paths();
        let active = |at: &usize| paths[*at] == PathStatus::Active;
        let found: Vec<usize> = (0..paths.len()).filter(active).collect();
        if found.len() == paths.len() || clock.now().since(began).as_secs_f64() > PATHS_WAIT_S {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

struct Procedure<'a> {
    association: &'a Association,
    client: Client<'a>,
    /// Bytes that each link and direction may use for overloads.
    overload_bytes: u64,
    found: LinkMeasurement,
    /// The overload of each link and direction that was evaluated.
    overloads: Vec<[Vec<Probe>; 2]>,
    /// The delay that it caused on another link, which shares its bottleneck; 0 if there is none.
    shared_s: Vec<[f64; 2]>,
}

/// Result of an overload.
struct Overload {
    carried: Capacity,
    queue: Option<Queue>,
    variation: Option<f64>,
    shared_s: f64,
}

impl<'a> Procedure<'a> {
    fn new(association: &'a Association, client: Client<'a>, paths: Vec<usize>) -> Self {
        let link = |path| LinkEstimate {
            path,
            rtt_s: None,
            rtt_quantiles_s: [0.0; 3],
            mtu_bytes: 0,
            up: Default::default(),
            down: Default::default(),
        };
        let links: Vec<_> = paths.into_iter().map(link).collect();
        let ends = 2 * links.len().max(1) as u64;
        let overload_bytes = (client.budget() as f64 * OVERLOAD_BYTES) as u64 / ends;
        let overloads = links.iter().map(|_| Default::default()).collect();
        let shared_s = vec![[0.0; 2]; links.len()];
        let found = LinkMeasurement { links, ..LinkMeasurement::default() };
        Self { association, client, overload_bytes, found, overloads, shared_s }
    }

    /// Size of a full probe on a link, bytes.
    fn full_bytes(&self, link: usize) -> u16 {
        let path = self.found.links[link].path;
        let stats = self.association.stats();
        let mtu = stats.and_then(|stats| stats.paths.get(path).map(|path| path.mtu_bytes));
        mtu.unwrap_or(1280).clamp(SMALL_BYTES.into(), 1500) as u16
    }

    fn train(&self, link: usize, bytes: u16, count: u32, interval_ns: u64) -> Train {
        let path = self.found.links[link].path as u8;
        Train { id: 0, path, bytes, count, group: 1, interval_ns }
    }

    async fn idle(&mut self) -> Result<(), MeasureError> {
        let ends = self.ends();
        let plan = |&(link, direction): &(usize, Direction)| {
            let train = self.train(link, SMALL_BYTES, IDLE_COUNT, IDLE_INTERVAL_NS);
            TrainPlan { direction, start_s: 0.0, train }
        };
        let plans: Vec<_> = ends.iter().map(plan).collect();
        let probes = self.client.run(&plans).await?;
        for ((link, direction), probes) in ends.iter().zip(&probes) {
            self.found.links[*link].of_mut(*direction).delays = delay::of(probes);
        }
        for (link, both) in self.found.links.iter_mut().zip(probes.chunks(2)) {
            let sums = delay::round_trips_s(&both[0], &both[1]);
            link.rtt_quantiles_s = [0.5, 0.95, 0.99].map(|share| quantile(&sums, share));
        }
        self.idle_full(&ends).await
    }

    /// Delays of full-size probes on idle links. Those of several links are sent in turn.
    async fn idle_full(&mut self, ends: &[(usize, Direction)]) -> Result<(), MeasureError> {
        let links = self.found.links.len().max(1) as f64;
        let plan = |&(link, direction): &(usize, Direction)| {
            let train = self.train(link, self.full_bytes(link), FULL_COUNT, FULL_INTERVAL_NS);
            let start_s = link as f64 / links * FULL_INTERVAL_NS as f64 * 1e-9;
            TrainPlan { direction, start_s, train }
        };
        let plans: Vec<_> = ends.iter().map(plan).collect();
        let probes = self.client.run(&plans).await?;
        for ((link, direction), probes) in ends.iter().zip(&probes) {
            let small = self.found.links[*link].of(*direction).delays;
            let full = delay::of(probes);
            let bytes = probes.first().map_or(0, |probe| probe.bytes);
            if let (Some(small), Some(full)) = (small, full)
                && bytes > u32::from(SMALL_BYTES)
            {
                let more = f64::from(bytes) - f64::from(SMALL_BYTES);
                let slope = (full.least_s - small.least_s).max(0.0) / more;
                self.found.links[*link].of_mut(*direction).seconds_per_byte = Some(slope);
            }
        }
        Ok(())
    }

    /// All links and directions, in the order that [`Procedure::idle`] relies on.
    fn ends(&self) -> Vec<(usize, Direction)> {
        let links = 0..self.found.links.len();
        links.flat_map(|link| DIRECTIONS.map(|direction| (link, direction))).collect()
    }

    /// One-way delay of a probe of `bytes` on the idle link, seconds. If no full-size probe has arrived, the link is
    /// assumed to have a single hop of `rate_bps`.
    fn idle_delay_s(&self, link: usize, direction: Direction, bytes: u16, rate_bps: f64) -> f64 {
        let estimate = self.found.links[link].of(direction);
        let least = estimate.delays.map_or(0.0, |found| found.least_s);
        let per_byte = estimate.seconds_per_byte.unwrap_or(8.0 / rate_bps.max(1.0));
        least + (f64::from(bytes) - f64::from(SMALL_BYTES)) * per_byte
    }

    /// Guesses the capacity by trains, bit/s. A train uses at most a quarter of the allowance.
    async fn guess(
        &mut self,
        link: usize,
        direction: Direction,
        allowance: &mut u64,
    ) -> Result<f64, MeasureError> {
        let (mut longest, mut found) = (FIRST_TRAIN, None);
        for _ in 0..TRAINS {
            let bytes = self.full_bytes(link);
            let affordable = *allowance / (4 * u64::from(bytes));
            let count = longest.min(affordable as u32);
            let train = Train { group: count as u16, ..self.train(link, bytes, count, 1_000_000) };
            *allowance -= train.total_bytes();
            let probes = self.client.run(&[TrainPlan { direction, start_s: 0.0, train }]).await?;
            found = capacity::of_train(&probes[0]).or(found);
            let lost = probes[0].iter().filter(|probe| probe.arrived_s.is_none()).count();
            if capacity::dispersion_s(&probes[0]) >= DISPERSION_S || lost > probes[0].len() / 4 {
                break;
            }
            longest *= 4;
        }
        Ok(found.unwrap_or(FALLBACK_BPS))
    }

    /// Capacity and queue of one link and direction.
    async fn overload(&mut self, link: usize, direction: Direction) -> Result<(), MeasureError> {
        if self.found.links[link].of(direction).delays.is_none() {
            return Ok(());
        }
        let (mut seconds, mut allowance) = (OVERLOAD_S, self.overload_bytes);
        let mut rate = OVERLOAD_FACTOR * self.guess(link, direction, &mut allowance).await?;
        for _ in 0..ATTEMPTS {
            let tests = self.found.sharing.len();
            let probes = self.send_overload(link, direction, rate, seconds, &mut allowance).await?;
            let Some(found) = self.evaluate(link, direction, &probes, tests) else { break };
            let (carried, full) = (found.carried, found.queue.is_some_and(|queue| queue.full));
            let best = self.found.links[link].of(direction).capacity;
            let better = best.is_none_or(|best| {
                (carried.saturated, carried.rate_bps) > (best.saturated, best.rate_bps)
                    || carried.saturated && carried.seconds > best.seconds
            });
            if better {
                self.keep(link, direction, found, probes);
            }
            if !carried.saturated {
                rate *= 1.25 * OVERLOAD_FACTOR;
            } else if !full && seconds < OVERLOAD_S * LONGER {
                rate = OVERLOAD_FACTOR * carried.rate_bps;
                seconds *= LONGER;
            } else {
                break;
            }
        }
        self.overload_gently(link, direction, &mut allowance).await?;
        let varies = self.found.links[link].of(direction).variation;
        if varies.is_some_and(|variation| variation > VARIATION) {
            self.record_trace(link, direction, &mut allowance).await?;
        }
        Ok(())
    }

    /// Evaluates an overload. Its tests for shared bottlenecks begin at index `tests`.
    fn evaluate(
        &self,
        link: usize,
        direction: Direction,
        probes: &[Probe],
        tests: usize,
    ) -> Option<Overload> {
        let shared = self.found.sharing[tests..].iter().filter(|test| test.found.shared);
        let shared_s = shared.map(|test| test.found.delay_s).fold(0.0, f64::max);
        let bytes = self.full_bytes(link);
        let first = capacity::of_overload(probes, 0.0, 0.0)?;
        let idle = self.idle_delay_s(link, direction, bytes, first.rate_bps);
        let carried = capacity::of_overload(probes, idle, 0.0)?;
        let queue = queue::depth(probes, idle, carried.rate_bps);
        let variation = capacity::variation(&capacity::rates(probes, idle, 0.0));
        Some(Overload { carried, queue, variation, shared_s })
    }

    fn keep(&mut self, link: usize, direction: Direction, found: Overload, probes: Vec<Probe>) {
        let estimate = self.found.links[link].of_mut(direction);
        estimate.capacity = Some(found.carried);
        estimate.queue = found.queue;
        estimate.variation = found.variation;
        self.shared_s[link][direction as usize] = found.shared_s;
        self.overloads[link][direction as usize] = probes;
    }

    /// Overloads a shared bottleneck once more, only slightly, so that no other queue fills.
    async fn overload_gently(
        &mut self,
        link: usize,
        direction: Direction,
        allowance: &mut u64,
    ) -> Result<(), MeasureError> {
        let delayed = self.found.sharing.iter().any(|test| {
            (test.overloaded, test.direction) == (link, direction)
                && test.found.rise >= GENTLE_RISE
                && test.found.correlation >= GENTLE_CORRELATION
        });
        let estimate = self.found.links[link].of(direction);
        let (Some(carried), Some(queue)) = (estimate.capacity, estimate.queue) else {
            return Ok(());
        };
        if !(delayed && carried.saturated) {
            return Ok(());
        }
        let seconds = (queue.delay_s / (GENTLE_FACTOR - 1.0) + GENTLE_S).min(GENTLE_MAX_S);
        let rate = GENTLE_FACTOR * carried.rate_bps;
        let tests = self.found.sharing.len();
        let probes = self.send_overload(link, direction, rate, seconds, allowance).await?;
        if let Some(mut found) = self.evaluate(link, direction, &probes, tests)
            && found.queue.is_some_and(|queue| queue.full)
        {
            found.carried.saturated = true;
            self.keep(link, direction, found, probes);
        }
        Ok(())
    }

    /// Overloads a link, and watches the others.
    async fn send_overload(
        &mut self,
        link: usize,
        direction: Direction,
        rate_bps: f64,
        seconds: f64,
        allowance: &mut u64,
    ) -> Result<Vec<Probe>, MeasureError> {
        let bytes = self.full_bytes(link);
        let per_s = rate_bps / (8.0 * f64::from(bytes));
        let affordable = (*allowance / u64::from(bytes)) as f64;
        let count = (per_s * seconds).max(50.0).min(affordable).min(TRAIN_LIMIT.into()) as u32;
        *allowance -= u64::from(count) * u64::from(bytes);
        let train = self.train(link, bytes, count, (1e9 / per_s) as u64);
        let others: Vec<usize> = (0..self.found.links.len()).filter(|i| *i != link).collect();
        let watched_bits = others.len() as f64 * f64::from(SMALL_BYTES) * 8.0;
        let interval_s = (watched_bits / (WATCH_SHARE * rate_bps)).max(WATCH_INTERVAL_S);
        let start_s = if others.is_empty() { 0.0 } else { WATCH_LEAD * interval_s };
        let mut plans = vec![TrainPlan { direction, start_s, train }];
        for other in &others {
            let count = ((start_s + train.seconds()) / interval_s) as u32;
            let train = self.train(*other, SMALL_BYTES, count, (interval_s * 1e9) as u64);
            plans.push(TrainPlan { direction, start_s: 0.0, train });
        }
        let mut results = self.client.run(&plans).await?.into_iter();
        let overload = results.next().unwrap_or_default();
        for (watched, probes) in others.into_iter().zip(results) {
            if let Some(found) = shared::compare(&overload, &probes) {
                let test = SharingTest { direction, overloaded: link, watched, found };
                self.found.sharing.push(test);
            }
        }
        Ok(overload)
    }

    /// Overloads a link of varying rate for longer, and records a trace.
    async fn record_trace(
        &mut self,
        link: usize,
        direction: Direction,
        allowance: &mut u64,
    ) -> Result<(), MeasureError> {
        let Some(carried) = self.found.links[link].of(direction).capacity else { return Ok(()) };
        let rate = OVERLOAD_FACTOR * carried.rate_bps;
        let probes = self.send_overload(link, direction, rate, TRACE_S, allowance).await?;
        let idle = self.idle_delay_s(link, direction, self.full_bytes(link), carried.rate_bps);
        let rates = capacity::rates(&probes, idle, 0.0);
        let estimate = self.found.links[link].of_mut(direction);
        if let (Some(longer), Some(variation)) =
            (capacity::of_overload(&probes, idle, 0.0), capacity::variation(&rates))
        {
            (estimate.capacity, estimate.variation) = (Some(longer), Some(variation));
            self.overloads[link][direction as usize] = probes;
        }
        Ok(())
    }

    /// Loss of all links in both directions, for about `seconds`.
    async fn losses(&mut self, seconds: f64) -> Result<(), MeasureError> {
        let ends = self.ends();
        let budget = self.client.budget() / ends.len().max(1) as u64;
        let groups = self.found.groups();
        let mut plans = Vec::new();
        for (link, direction) in &ends {
            let members = groups.iter().find(|group| group.contains(link)).map_or(1, Vec::len);
            let bytes = self.full_bytes(*link);
            let capacity = self.found.links[*link].of(*direction).capacity;
            let rate = capacity.map_or(0.0, |found| found.rate_bps) * LOSS_SHARE / members as f64;
            let most = (budget / u64::from(bytes)).min(TRAIN_LIMIT.into()) as f64;
            let seconds = seconds.max(LOSS_MIN_S);
            let count = (rate * seconds / (8.0 * f64::from(bytes))).min(most).floor();
            // If the bytes do not suffice for this rate, the probes are sent at a lower one.
            let interval_ns = (seconds * 1e9 / count.max(1.0)) as u64;
            self.found.links[*link].of_mut(*direction).loss_probes_per_s = count / seconds;
            let train = self.train(*link, bytes, count as u32, interval_ns);
            plans.push(TrainPlan { direction: *direction, start_s: 0.0, train });
        }
        let results = self.client.run(&plans).await?;
        for ((link, direction), probes) in ends.iter().zip(results) {
            let lost: Vec<bool> = probes.iter().map(|probe| probe.arrived_s.is_none()).collect();
            self.found.links[*link].of_mut(*direction).loss = loss::fit(&lost);
        }
        Ok(())
    }

    /// Values that depend on several phases.
    fn finish(mut self) -> LinkMeasurement {
        for (link, direction) in self.ends() {
            let probes = std::mem::take(&mut self.overloads[link][direction as usize]);
            let bytes = self.full_bytes(link);
            let estimate = self.found.links[link].of(direction);
            let Some(carried) = estimate.capacity else { continue };
            let idle = self.idle_delay_s(link, direction, bytes, carried.rate_bps);
            // Few probes fit into a slow link, so its loss rate is uncertain. There, the overload itself shows the
            // losses behind the queue.
            let seen = capacity::lost_behind_queue(&probes, idle);
            let lost = estimate.loss.map_or(0.0, |loss| match seen {
                Some(seen) => seen.clamp(0.0, loss.high),
                None => loss.rate,
            });
            let lost = lost.min(0.9);
            let saturated = carried.saturated;
            let shared_s = self.shared_s[link][direction as usize];
            let varies = estimate.variation.is_some_and(|variation| variation > VARIATION);
            let estimate = self.found.links[link].of_mut(direction);
            if let Some(corrected) = capacity::of_overload(&probes, idle, lost) {
                estimate.capacity = Some(Capacity { saturated, ..corrected });
                let depth = queue::depth(&probes, idle, corrected.rate_bps);
                estimate.queue = depth.map(|queue| queue.without_queue_in_front(shared_s));
            }
            if varies {
                estimate.trace = capacity::trace(&probes, idle, lost);
            }
        }
        let stats = self.association.stats();
        for link in &mut self.found.links {
            let own = stats.as_ref().and_then(|stats| stats.paths.get(link.path));
            link.mtu_bytes = own.map_or(0, |path| path.mtu_bytes);
            link.rtt_s = base_rtt_s(link);
        }
        self.found.sent_bytes = self.client.sent_bytes();
        self.found
    }
}

/// The minimum round-trip time without the serialisation delay of the probes, seconds.
fn base_rtt_s(link: &LinkEstimate) -> Option<f64> {
    let least = |direction| link.of(direction).delays.map(|found| found.least_s);
    let serialisation = |direction| {
        let estimate = link.of(direction);
        let by_rate = estimate.capacity.map_or(0.0, |found| 8.0 / found.rate_bps);
        f64::from(SMALL_BYTES) * estimate.seconds_per_byte.unwrap_or(by_rate)
    };
    let sum = least(Direction::Up)? + least(Direction::Down)?;
    let sent: f64 = DIRECTIONS.into_iter().map(serialisation).sum();
    Some((sum - sent).max(0.0))
}
