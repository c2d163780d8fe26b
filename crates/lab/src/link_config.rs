//! Converts the links of a scenario into those of the simulated network.

use std::sync::Arc;

use ropewalk_base::{Duration, Rate, Time};
use ropewalk_netsim::link::{CoDel, DualPi2, Jitter, Outage, Outages, Red, Reordering, Span};
use ropewalk_netsim::{LinkConfig, LossModel, QueueModel, RateModel, Schedule};
use ropewalk_scenario as file;

use crate::loss::loss_model;

/// The simulated link of one side of a scenario's link. `packet` is the size of a full packet, bytes.
pub(crate) fn link_config(
    side: &file::LinkSide,
    outages: &[file::Outage],
    packet: u32,
) -> Result<LinkConfig, Box<dyn core::error::Error>> {
    let mean = side.capacity.mean_rate();
    let mut config = LinkConfig::with_rate_model(rate_model(side)?, side.delay);
    config.queue = queue_model(&side.queue, mean, packet);
    config.loss = loss_schedule(side)?;
    config.corruption = side.corrupt;
    config.duplication = side.duplicate;
    // Normal jitter varies around its mean, which is then part of the delay.
    let mut mean_jitter = Duration::ZERO;
    if let Some(jitter) = side.jitter {
        config.jitter = Some(match jitter.shape {
            file::JitterShape::Uniform { max } => Jitter::Uniform(max),
            file::JitterShape::Normal { mean, deviation } => {
                mean_jitter = mean;
                Jitter::Normal(deviation)
            }
            file::JitterShape::Exponential { mean } => Jitter::Exponential(mean),
        });
        config.allow_reorder = !jitter.keep_order;
    }
    config.delay = delay_schedule(side, mean_jitter)?;
    config.reordering =
        side.reorder.map(|r| Reordering { probability: r.probability, extra: r.delay });
    config.outages = Outages {
        spans: outages.iter().map(|o| Span { from: o.from, until: o.to }).collect(),
        effect: Outage::Drop,
    };
    Ok(config)
}

fn rate_model(side: &file::LinkSide) -> Result<RateModel, Box<dyn core::error::Error>> {
    Ok(match &side.capacity {
        file::Capacity::Rate(rate) => {
            let steps: Vec<(Time, Rate)> =
                side.steps.iter().filter_map(|s| Some((s.at, s.rate?))).collect();
            if steps.is_empty() {
                RateModel::Constant(*rate)
            } else {
                RateModel::Steps { initial: *rate, steps }
            }
        }
        file::Capacity::Trace(trace) => {
            let millis = trace.opportunities.iter().map(|at| at.as_nanos() / 1_000_000).collect();
            RateModel::Trace(Arc::new(ropewalk_netsim::Trace::from_millis(millis)?))
        }
    })
}

pub(crate) fn limit(limit: file::Limit) -> ropewalk_netsim::link::Limit {
    match limit {
        file::Limit::Unlimited => ropewalk_netsim::link::Limit::Unlimited,
        file::Limit::Packets(n) => ropewalk_netsim::link::Limit::Packets(n),
        file::Limit::Bytes(n) => ropewalk_netsim::link::Limit::Bytes(n),
    }
}

fn queue_model(queue: &file::Queue, rate: Rate, packet: u32) -> QueueModel {
    let most = limit(queue.limit);
    let packets = match queue.limit {
        file::Limit::Unlimited => 1000.0,
        file::Limit::Packets(n) => n as f64,
        file::Limit::Bytes(n) => n as f64 / packet as f64,
    };
    match queue.discipline {
        file::Discipline::DropTail => QueueModel::DropTail(most),
        file::Discipline::Red { min, max, probability, weight, ecn } => QueueModel::Red(Red {
            min_threshold: min * packets,
            max_threshold: max * packets,
            max_probability: probability,
            weight,
            gentle: true,
            ecn,
            packet_time: rate.time_for(packet as u64),
            limit: most,
        }),
        file::Discipline::CoDel { target, interval, ecn } => {
            QueueModel::CoDel(CoDel { target, interval, mtu: packet, ecn, limit: most })
        }
        file::Discipline::DualPi2 {
            target,
            longest_rtt,
            coupling,
            ramp_from,
            ramp,
            classic_weight,
        } => QueueModel::DualPi2(DualPi2 {
            target,
            longest_rtt,
            coupling,
            ramp_from,
            ramp,
            classic_weight,
            mtu: packet,
            limit: most,
        }),
    }
}

fn delay_schedule(
    side: &file::LinkSide,
    more: Duration,
) -> Result<Schedule<Duration>, Box<dyn core::error::Error>> {
    let steps = side.steps.iter().filter_map(|s| Some((s.at, s.delay? + more))).collect();
    Ok(Schedule::steps(side.delay + more, steps)?)
}

fn loss_schedule(
    side: &file::LinkSide,
) -> Result<Schedule<LossModel>, Box<dyn core::error::Error>> {
    let mut steps = Vec::new();
    for step in &side.steps {
        if let Some(rate) = step.loss {
            steps.push((step.at, LossModel::bernoulli(rate)?));
        }
    }
    Ok(Schedule::steps(loss_model(&side.loss)?, steps)?)
}
