//! Results of a measurement of links.

use crate::measure::Direction;
use crate::measure::estimate::{Capacity, Delays, LossFit, Queue, Sharing};

/// One direction of a link. A value is missing if no probe arrived, or the byte limit did not permit the
/// measurement.
#[derive(Clone, Debug, Default)]
pub struct DirectionEstimate {
    /// Delays while the link was nearly idle.
    pub delays: Option<Delays>,
    /// Increase of a packet's delay per byte on the idle link, seconds; the sum over all hops.
    pub seconds_per_byte: Option<f64>,
    /// Capacity, corrected for the loss rate.
    pub capacity: Option<Capacity>,
    /// Depth of the queue.
    pub queue: Option<Queue>,
    /// Losses well below capacity.
    pub loss: Option<LossFit>,
    /// Probes per second that gave `loss`.
    pub loss_probes_per_s: f64,
    /// (largest - smallest) / mean of the rates in intervals of 0.35 s or more. `None` if the overload was too
    /// short.
    pub variation: Option<f64>,
    /// If the rate varies: a Mahimahi trace, milliseconds.
    pub trace: Vec<u64>,
}

/// One link.
#[derive(Clone, Debug)]
pub struct LinkEstimate {
    /// Index of the path in the association.
    pub path: usize,
    /// Base round-trip time: propagation only, seconds.
    pub rtt_s: Option<f64>,
    /// Median, 95th and 99th percentile of the round trips of small probes, seconds.
    pub rtt_quantiles_s: [f64; 3],
    /// Largest IP packet that the path is known to carry, bytes.
    pub mtu_bytes: u32,
    /// From this end to the server.
    pub up: DirectionEstimate,
    /// From the server to this end.
    pub down: DirectionEstimate,
}

impl LinkEstimate {
    /// The estimate of one direction.
    pub const fn of(&self, direction: Direction) -> &DirectionEstimate {
        match direction {
            Direction::Up => &self.up,
            Direction::Down => &self.down,
        }
    }

    pub(super) const fn of_mut(&mut self, direction: Direction) -> &mut DirectionEstimate {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}

/// Effect of the overload of one link on another one.
#[derive(Clone, Copy, Debug)]
pub struct SharingTest {
    /// Direction of the overload.
    pub direction: Direction,
    /// The overloaded link, an index into [`LinkMeasurement::links`].
    pub overloaded: usize,
    /// The other link.
    pub watched: usize,
    /// The result.
    pub found: Sharing,
}

/// A measurement of all links.
#[derive(Clone, Debug, Default)]
pub struct LinkMeasurement {
    /// The links.
    pub links: Vec<LinkEstimate>,
    /// The tests for shared bottlenecks.
    pub sharing: Vec<SharingTest>,
    /// Bytes of IP packets with probes that both ends have sent.
    pub sent_bytes: u64,
    /// How long it took, seconds.
    pub seconds: f64,
}

impl LinkMeasurement {
    /// Whether two links share a bottleneck in a direction: the overload of one of them delays the other. If only one
    /// of them has its bottleneck in the shared part, only that link's overload shows it.
    pub fn shares(&self, direction: Direction, a: usize, b: usize) -> bool {
        self.sharing.iter().any(|test| {
            let pair = (test.overloaded, test.watched);
            test.direction == direction && test.found.shared && (pair == (a, b) || pair == (b, a))
        })
    }

    /// Groups of links that share a bottleneck in at least one direction; each has two links or more.
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut group: Vec<usize> = (0..self.links.len()).collect();
        for test in self.sharing.iter().filter(|test| test.found.shared) {
            let (a, b) = (group[test.overloaded], group[test.watched]);
            group.iter_mut().filter(|of| **of == a).for_each(|of| *of = b);
        }
        let members = |of: usize| (0..group.len()).filter(|i| group[*i] == of).collect::<Vec<_>>();
        (0..group.len()).map(members).filter(|members| members.len() > 1).collect()
    }
}
