//! The last hour, one sample per second, for the live page.

use std::collections::VecDeque;

use serde::Serialize;

use super::status::{LinkStatus, Status};

/// Number of samples that are kept: an hour.
const SAMPLES: usize = 3600;
/// Maximum number of links per sample; those with the largest shares.
const LINKS_LIMIT: usize = 16;

/// The figures of one link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkSample {
    link: String,
    peer: String,
    remote: String,
    up_bps: f32,
    down_bps: f32,
    rtt_s: Option<f32>,
    queue_s: f32,
    in_flight_bytes: u64,
    is_up: bool,
}

/// One second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistorySample {
    time_s: f64,
    out_of_order_bytes: u64,
    links: Vec<LinkSample>,
}

impl HistorySample {
    fn of(status: &Status) -> Self {
        let mut links: Vec<&LinkStatus> = status.links.iter().collect();
        links.sort_by(|a, b| b.share.total_cmp(&a.share));
        links.truncate(LINKS_LIMIT);
        let sample = |link: &LinkStatus| LinkSample {
            link: link.link.clone(),
            peer: link.peer.clone(),
            remote: link.remote.clone(),
            up_bps: link.up_bps as f32,
            down_bps: link.down_bps as f32,
            rtt_s: link.rtt_s.map(|rtt| rtt as f32),
            queue_s: link.queue_s as f32,
            in_flight_bytes: link.in_flight_bytes,
            is_up: link.state == "active",
        };
        Self {
            time_s: status.time_s,
            out_of_order_bytes: status.associations.iter().map(|a| a.out_of_order_bytes).sum(),
            links: links.into_iter().map(sample).collect(),
        }
    }
}

/// The last hour.
#[derive(Debug, Default)]
pub struct History {
    samples: VecDeque<HistorySample>,
}

impl History {
    /// Adds a sample. Returns it as JSON.
    pub fn add(&mut self, status: &Status) -> String {
        let sample = HistorySample::of(status);
        let text = serde_json::to_string(&sample).unwrap_or_default();
        self.samples.push_back(sample);
        if self.samples.len() > SAMPLES {
            self.samples.pop_front();
        }
        text
    }

    /// All samples as a JSON array.
    pub fn json(&self) -> String {
        serde_json::to_string(&self.samples).unwrap_or_default()
    }
}
