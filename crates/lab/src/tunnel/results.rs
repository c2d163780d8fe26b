//! Results of the flows.

use ropewalk_base::{Histogram, Time};
use ropewalk_scenario::{Flow, FlowKind, Scenario};

use super::TunnelEnd;
use super::meter::FlowMeter;
use super::quality::mean_opinion_score;
use crate::result::FlowResult;

/// Shares of the packets for which a playout buffer may wait. An adaptive buffer comes close to the best
/// of them.
const PLAYOUT: [f64; 5] = [0.9, 0.95, 0.98, 0.99, 1.0];

/// The results of all flows over the measured interval, which begins at `from`, and the user data that all
/// flows have delivered in the directions `up` and `down`, bytes.
pub(crate) fn flow_results(
    scenario: &Scenario,
    (one, other): (&TunnelEnd, &TunnelEnd),
    (from, now): (Time, Time),
) -> (Vec<FlowResult>, [u64; 2]) {
    let mut results = Vec::with_capacity(scenario.flows.len());
    let mut delivered = [0; 2];
    for (flow, (one, other)) in scenario.flows.iter().zip(one.flows.iter().zip(&other.flows)) {
        let (begin, end) = (flow.start.max(from), flow.stop.unwrap_or(now).min(now));
        let meters = [&one.meter, &other.meter].map(|meter| {
            let mut meter = meter.clone();
            meter.finish(end);
            meter
        });
        // Data in direction `up` is counted where it arrives, at the other end.
        let [down, up] = &meters;
        delivered[0] += up.bytes;
        delivered[1] += down.bytes;
        results.push(result(flow, &meters, end.since(begin).as_secs_f64()));
    }
    (results, delivered)
}

/// The result of a flow that was active for this part of the measured interval, s.
fn result(flow: &Flow, meters: &[FlowMeter; 2], seconds: f64) -> FlowResult {
    let mut delays = Histogram::new();
    meters.iter().for_each(|meter| delays.merge(&meter.delays));
    let (sent, arrived) = sums(meters, |meter| (meter.sent, meter.arrived));
    let (bytes, disordered) = sums(meters, |meter| (meter.bytes, meter.out_of_order));
    let gap = meters.iter().map(|meter| meter.longest_gap).max().unwrap_or_default();
    let known = delays.total_weight() > 0;
    let delay = |share: f64| known.then(|| delays.quantile(share) as f64 * 1e-9);
    let ratio = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    FlowResult {
        name: flow.name.clone(),
        kind: flow.kind.name().to_owned(),
        goodput_bps: if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 },
        sent: 0,
        delivered: 0,
        abandoned: 0,
        under_way: 0,
        delay_p50_s: delay(0.5),
        delay_p99_s: delay(0.99),
        delay_max_s: delay(1.0),
        lost: (sent > 0).then(|| 1.0 - ratio(arrived, sent)),
        out_of_order: ratio(disordered, arrived),
        longest_gap_s: known.then(|| gap.as_secs_f64()),
        mos: matches!(flow.kind, FlowKind::Call).then(|| score(meters)),
    }
}

fn sums(meters: &[FlowMeter; 2], of: fn(&FlowMeter) -> (u64, u64)) -> (u64, u64) {
    meters.iter().map(of).fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// The score of the worse direction of a call. The sender of a direction is the other end.
fn score(meters: &[FlowMeter; 2]) -> f64 {
    let [one, other] = meters;
    let direction = |sender: &FlowMeter, receiver: &FlowMeter| {
        if receiver.arrived == 0 {
            return 1.0;
        }
        let arrived = receiver.arrived as f64 / sender.sent.max(1) as f64;
        let playout = PLAYOUT.map(|share| {
            let delay = receiver.delays.quantile(share) as f64 * 1e-9;
            mean_opinion_score((1.0 - arrived * share).max(0.0), delay)
        });
        playout.into_iter().fold(1.0, f64::max)
    };
    direction(one, other).min(direction(other, one))
}
