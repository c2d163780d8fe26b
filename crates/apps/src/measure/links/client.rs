//! The client of a measurement of links: requests trains in both directions and collects their results.

use std::collections::BTreeMap;
use std::time::Duration;

use ropewalk_runtime::clock::Clock;
use ropewalk_runtime::endpoint::Association;

use super::super::{CONTROL, MeasureError, RESULT_TIMEOUT};
use super::message::{Arrival, Message, TRAIN_LIMIT, Train};
use super::pacer::{Logs, Pacer};
use super::server::TICK;
use crate::measure::Direction;
use crate::measure::estimate::Probe;

/// A train to run.
#[derive(Clone, Copy, Debug)]
pub struct TrainPlan {
    /// Direction of the train.
    pub direction: Direction,
    /// Seconds until it starts.
    pub start_s: f64,
    /// The train; its number is assigned when it runs.
    pub train: Train,
}

/// A client, and its remaining budget.
#[derive(Debug)]
pub struct Client<'a> {
    association: &'a Association,
    clock: Clock,
    /// Bytes that both ends together may still send.
    budget: u64,
    /// Bytes of probes that both ends have sent.
    sent_bytes: u64,
    next_id: u32,
    logs: Logs,
}

/// A train that runs.
#[derive(Debug)]
struct Running {
    plan: TrainPlan,
    /// Sends an upward train.
    pacer: Option<Pacer>,
    started: bool,
    reported: bool,
    /// Arrivals that the server has reported so far.
    arrivals: Vec<Arrival>,
    result: Option<Vec<Probe>>,
}

impl<'a> Client<'a> {
    /// Opens a measurement in which both ends together send at most `bytes`.
    ///
    /// # Errors
    /// The association has ended, is not encrypted, or its server does not measure links.
    pub async fn open(association: &'a Association, bytes: u64) -> Result<Self, MeasureError> {
        if !association.enable_probes() {
            return Err(MeasureError::NotSealed);
        }
        let open = Message::Open { bytes }.encode();
        association.send(CONTROL, 0, open).await.map_err(MeasureError::Send)?;
        let answer = tokio::time::timeout(RESULT_TIMEOUT, association.receive());
        let answer = answer.await.map_err(|_| MeasureError::Overdue)?;
        let Some(answer) = answer else {
            return Err(MeasureError::Ended(association.ended().await));
        };
        let Some(Message::Open { bytes: granted }) = Message::decode(&answer.bytes) else {
            return Err(MeasureError::Version);
        };
        let clock = association.clock();
        let (budget, logs) = (bytes.min(granted), Logs::default());
        Ok(Self { association, clock, budget, sent_bytes: 0, next_id: 1, logs })
    }

    /// Bytes that may still be sent.
    pub const fn budget(&self) -> u64 {
        self.budget
    }

    /// Bytes of probes that both ends have sent.
    pub const fn sent_bytes(&self) -> u64 {
        self.sent_bytes
    }

    /// Runs trains at the same time. Returns the probes of each. A train that exceeds the budget is shortened.
    ///
    /// # Errors
    /// The association has ended, or the server does not answer in time.
    pub async fn run(&mut self, plans: &[TrainPlan]) -> Result<Vec<Vec<Probe>>, MeasureError> {
        let mut trains: BTreeMap<u32, Running> = BTreeMap::new();
        let mut longest = 0f64;
        for plan in plans {
            let mut plan = *plan;
            let affordable = self.budget / u64::from(plan.train.bytes.max(1));
            plan.train.count = plan.train.count.min(affordable as u32).min(TRAIN_LIMIT);
            plan.train.id = self.next_id;
            self.next_id += 1;
            self.budget -= plan.train.total_bytes();
            longest = longest.max(plan.start_s + plan.train.seconds());
            let (started, reported) = (false, false);
            let (pacer, arrivals, result) = (None, Vec::new(), None);
            let running = Running { plan, pacer, started, reported, arrivals, result };
            trains.insert(plan.train.id, running);
        }
        let limit = Duration::from_secs_f64(longest) + RESULT_TIMEOUT;
        tokio::time::timeout(limit, self.drive(&mut trains))
            .await
            .map_err(|_| MeasureError::Overdue)??;
        let results: Vec<_> = trains.into_values().filter_map(|running| running.result).collect();
        let bytes =
            |probes: &Vec<Probe>| probes.iter().map(|probe| u64::from(probe.bytes)).sum::<u64>();
        self.sent_bytes += results.iter().map(bytes).sum::<u64>();
        Ok(results)
    }

    async fn drive(&mut self, trains: &mut BTreeMap<u32, Running>) -> Result<(), MeasureError> {
        let (association, began) = (self.association, self.clock.now());
        let mut probes = Vec::new();
        loop {
            self.advance(trains, began.as_secs_f64()).await?;
            if trains.values().all(|train| train.result.is_some()) {
                return Ok(());
            }
            tokio::select! {
                message = association.receive() => {
                    let Some(message) = message else {
                        return Err(MeasureError::Ended(association.ended().await));
                    };
                    match Message::decode(&message.bytes) {
                        Some(Message::Sent { id, count }) => self.logs.end(id, count, self.clock.now()),
                        Some(Message::Log { id, last, arrivals }) => on_log(trains, id, last, &arrivals),
                        Some(Message::Open { .. } | Message::Train(_)) | None => {
                            return Err(MeasureError::Version);
                        }
                    }
                }
                () = association.receive_probes(&mut probes) => {
                    if probes.is_empty() {
                        return Err(MeasureError::Ended(association.ended().await));
                    }
                    probes.drain(..).for_each(|probe| self.logs.push(&probe));
                }
                () = tokio::time::sleep(TICK) => {}
            }
        }
    }

    /// Starts the trains that are due, sends due probes, and takes trains that are complete.
    async fn advance(
        &mut self,
        trains: &mut BTreeMap<u32, Running>,
        began_s: f64,
    ) -> Result<(), MeasureError> {
        for running in trains.values_mut() {
            let now = self.clock.now();
            if !running.started && now.as_secs_f64() - began_s >= running.plan.start_s {
                running.started = true;
                match running.plan.direction {
                    Direction::Up => running.pacer = Some(Pacer::new(running.plan.train, now)),
                    Direction::Down => self.tell(&Message::Train(running.plan.train)).await?,
                }
            }
            let Some(pacer) = &mut running.pacer else { continue };
            pacer.advance(self.association, now);
            if pacer.is_over() && !running.reported {
                running.reported = true;
                let count = pacer.sent_ns().len() as u32;
                self.tell(&Message::Sent { id: pacer.id(), count }).await?;
            }
        }
        while let Some((id, log)) = self.logs.take_complete(self.clock.now()) {
            let down = trains.get_mut(&id).filter(|train| train.plan.direction == Direction::Down);
            let Some(running) = down else { continue };
            let sent = log.sent().min(running.plan.train.count) as usize;
            let mut times = vec![None; sent];
            for (arrival, sent_ns) in log.arrivals().iter().zip(log.sent_ns()) {
                if let Some(time) = times.get_mut(arrival.number as usize) {
                    *time = Some(*sent_ns);
                }
            }
            let times = interpolated(&times, running.plan.train.interval_ns);
            running.result = Some(probes(&times, log.arrivals(), running.plan.train.bytes));
        }
        Ok(())
    }

    async fn tell(&self, message: &Message) -> Result<(), MeasureError> {
        self.association.send(CONTROL, 0, message.encode()).await.map_err(MeasureError::Send)
    }
}

/// The server's report of an upward train.
fn on_log(trains: &mut BTreeMap<u32, Running>, id: u32, last: bool, arrivals: &[Arrival]) {
    let Some(running) = trains.get_mut(&id).filter(|train| train.reported) else { return };
    let Some(pacer) = running.pacer.as_ref().filter(|_| running.result.is_none()) else { return };
    if running.arrivals.len() + arrivals.len() <= TRAIN_LIMIT as usize {
        running.arrivals.extend_from_slice(arrivals);
    }
    if last {
        let arrivals = std::mem::take(&mut running.arrivals);
        running.result = Some(probes(pacer.sent_ns(), &arrivals, running.plan.train.bytes));
    }
}

/// The probes of a train, from the times of sending and arrival. The first of several copies counts.
fn probes(sent_ns: &[u64], arrivals: &[Arrival], bytes: u16) -> Vec<Probe> {
    let one =
        |sent: &u64| Probe { sent_s: *sent as f64 * 1e-9, arrived_s: None, bytes: bytes.into() };
    let mut all: Vec<Probe> = sent_ns.iter().map(one).collect();
    for arrival in arrivals {
        if let Some(probe) = all.get_mut(arrival.number as usize) {
            probe.arrived_s.get_or_insert(arrival.at_ns as f64 * 1e-9);
        }
    }
    all
}

/// The sending times of lost probes, which only the sender knows, interpolated between their neighbours.
fn interpolated(times: &[Option<u64>], interval_ns: u64) -> Vec<u64> {
    let known: Vec<(usize, u64)> =
        times.iter().enumerate().filter_map(|(at, time)| Some((at, (*time)?))).collect();
    let of = |at: usize| {
        let next = known.partition_point(|(other, _)| *other < at);
        match (next.checked_sub(1).map(|before| known[before]), known.get(next)) {
            (_, Some((other, time))) if *other == at => *time,
            (Some((a, from)), Some((b, to))) => {
                let share = (at - a) as f64 / (b - a) as f64;
                from.saturating_add((to.saturating_sub(from) as f64 * share) as u64)
            }
            (Some((a, from)), None) => from.saturating_add((at - a) as u64 * interval_ns),
            (None, Some((b, to))) => to.saturating_sub((b - at) as u64 * interval_ns),
            (None, None) => at as u64 * interval_ns,
        }
    };
    (0..times.len()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_probes_get_times_between_their_neighbours() {
        let times = [None, Some(100), None, None, Some(400), None];
        assert_eq!(interpolated(&times, 50), [50, 100, 200, 300, 400, 450]);
        assert_eq!(interpolated(&[None, None], 50), [0, 50]);
    }

    #[test]
    fn copies_and_invented_arrivals_do_not_count() {
        let at = |number, at_ns| Arrival { number, at_ns };
        let arrivals = [at(1, 7_000_000_000), at(1, 9_000_000_000), at(5, 1)];
        let found = probes(&[1_000_000_000, 2_000_000_000], &arrivals, 100);
        assert_eq!(found[0].arrived_s, None);
        assert_eq!(found[1].arrived_s, Some(7.0));
        assert_eq!(found.len(), 2);
    }
}
