//! `bas`: the bandwidth-aware scheduler (Casetti and Gaiotto, 2004).

use super::common::known_delay;
use super::path_queues::Queues;
use super::westwood::Westwood;
use super::{Decision, PathView, Reason, Schedule, SentReport, View};

/// Queues each chunk on the path with the smallest (outstanding + own bytes) / bandwidth, where it stays.
/// Outstanding data is all unacknowledged data that was assigned to the path, including the path's queue.
/// The bandwidth is the Westwood estimate.
#[derive(Clone, Debug, Default)]
pub struct Bas {
    with_delay: bool,
    westwood: Westwood,
    queues: Queues,
}

impl Bas {
    /// `with_delay` adds the forward delay. The published rule omits the delay: it compares the times at
    /// which chunks are *sent*, and on unequal paths they then arrive out of order.
    pub fn new(with_delay: bool) -> Self {
        Self { with_delay, ..Self::default() }
    }
}

impl Schedule for Bas {
    fn decide(&mut self, view: &View<'_>) -> Decision {
        let Self { with_delay, westwood, queues } = self;
        westwood.observe(view);
        queues.decide(view, Reason::SoonestDelivery, |queues, view| {
            let score = |p: &PathView| {
                let bytes = queues.load(view, p).0.saturating_add(view.chunk_bytes);
                let delay = if *with_delay { known_delay(view, p).as_nanos() as f64 } else { 0.0 };
                bytes as f64 / westwood.rate(view, p) + delay
            };
            queues.least(view, score).map(|p| p.id)
        })
    }

    fn on_sent(&mut self, sent: &SentReport) {
        self.queues.on_sent(sent);
    }

    #[cfg(test)]
    fn claims(&self) -> super::conformance::Claims {
        super::conformance::Claims { assigns_for_good: true, ..Default::default() }
    }
}

#[cfg(test)]
mod tests {
    use ropewalk_base::Duration;

    use super::super::conformance::{CHUNK, path_view, view};
    use super::super::{Action, DecisionKind};
    use super::*;

    /// Number of chunks that each path gets of `chunks` chunks that may all be sent.
    fn shares(bas: &mut Bas, paths: &mut [PathView], chunks: u64) -> Vec<u64> {
        let mut count = vec![0; paths.len()];
        for left in (1..=chunks).rev() {
            let view = View { sendable: left, ..view(paths) };
            let Action::Send { path, position } = bas.decide(&view).action else { break };
            bas.on_sent(&SentReport { path, position, sequence: 0, bytes: CHUNK });
            count[path.index()] += 1;
            paths[path.index()].in_flight += CHUNK;
        }
        count
    }

    /// 10 chunks per 20 ms and 30 chunks per 60 ms: equal rates.
    fn equal_rates() -> [PathView; 2] {
        let long = PathView {
            window: 30 * CHUNK,
            srtt: Some(Duration::from_millis(60)),
            forward_delay: Some(Duration::from_millis(30)),
            ..path_view(1)
        };
        [path_view(0), long]
    }

    #[test]
    fn chunks_divide_as_bandwidth_does_unless_delay_counts() {
        assert_eq!(shares(&mut Bas::new(false), &mut equal_rates(), 10), [5, 5]);
        // A difference of 20 ms is worth ten chunks.
        assert_eq!(shares(&mut Bas::new(true), &mut equal_rates(), 10), [10, 0]);
    }

    #[test]
    fn a_chunk_waits_for_the_full_path_that_it_was_given_to() {
        let mut paths = equal_rates();
        paths[0].in_flight = 10 * CHUNK;
        // Both have the same amount in flight. The first is full, but still gets every second chunk.
        paths[1].in_flight = 10 * CHUNK;
        assert_eq!(shares(&mut Bas::new(false), &mut paths, 10), [0, 5]);
    }

    #[test]
    fn cost_does_not_count() {
        let mut paths = equal_rates();
        paths[1].cost = 7;
        assert_eq!(shares(&mut Bas::new(false), &mut paths, 10), [5, 5]);
    }

    #[test]
    fn a_lost_chunk_does_not_wait() {
        let mut paths = equal_rates();
        paths[0].in_flight = 10 * CHUNK;
        let occasion = DecisionKind::Retransmission { lost_on: paths[0].id };
        let lost = View { occasion, sendable: 0, ..view(&paths) };
        let action = Bas::new(false).decide(&lost).action;
        assert_eq!(action, Action::Send { path: paths[1].id, position: 0 });
    }
}
