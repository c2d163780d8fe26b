//! The results of a run of the slot model.

use crate::order::PacketRange;

/// One instant: arrivals, the deliveries that they cause, and transmissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotInstant {
    /// Time, ticks.
    pub tick: u64,
    /// Arrivals per path, in the order in which the paths were given.
    pub arrived: Vec<Vec<PacketRange>>,
    /// In-order packets delivered before this instant.
    pub delivered_before: u64,
    /// In-order packets delivered by the end of this instant: the cumulative curve.
    pub delivered_to: u64,
    /// Arrivals that found the buffer full.
    pub discarded_packets: u64,
    /// Packets held out of order, after the arrivals.
    pub in_buffer_packets: u64,
    /// Transmissions per path.
    pub sent: Vec<Vec<PacketRange>>,
    /// Packets sent and not yet arrived, after the transmissions.
    pub in_flight_packets: u64,
    /// Packets sent and not yet acknowledged, after the transmissions.
    pub unacknowledged_packets: u64,
}

impl SlotInstant {
    /// The packets delivered in this instant.
    pub fn delivered(&self) -> Option<PacketRange> {
        let (before, last) = (self.delivered_before, self.delivered_to);
        (last > before).then_some(PacketRange { first: before + 1, last })
    }
}

/// A row in the form of the paper's tables: packets sent at one instant and received a step later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableRow {
    /// Time of sending, ticks.
    pub sent_tick: u64,
    /// Packets sent per path from that time until the end of the step.
    pub sent: Vec<Vec<PacketRange>>,
    /// Time of reception, ticks.
    pub received_tick: u64,
    /// Packets received per path after the previous row, up to this time.
    pub received: Vec<Vec<PacketRange>>,
    /// Packets delivered in order by them.
    pub delivered: Option<PacketRange>,
    /// Packets held out of order after it.
    pub in_buffer_packets: u64,
}

/// A complete run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotTrace {
    /// Every instant at which a path has an opportunity, in order of time. The state stays constant until the
    /// next one.
    pub instants: Vec<SlotInstant>,
    /// The last tick of the run.
    pub last_tick: u64,
    /// The shortest delay: the step of the paper's tables.
    pub step_ticks: u64,
}

impl SlotTrace {
    /// In-order packets delivered by the end of `tick`.
    pub fn delivered_by(&self, tick: u64) -> u64 {
        let after = self.instants.partition_point(|i| i.tick <= tick);
        if after == 0 { 0 } else { self.instants[after - 1].delivered_to }
    }

    /// The cumulative curve: tick and in-order packets delivered (Figures 5 and 8).
    pub fn cumulative(&self) -> Vec<(u64, u64)> {
        self.instants.iter().map(|i| (i.tick, i.delivered_to)).collect()
    }

    /// In-order packets delivered in each whole interval, `(k w, (k + 1) w]`. With the number of ticks per
    /// second this is the goodput per second of Figures 5 and 7.
    ///
    /// # Panics
    /// If `interval_ticks` is zero.
    pub fn delivered_per_interval(&self, interval_ticks: u64) -> Vec<u64> {
        assert!(interval_ticks > 0, "an interval of 0 ticks has no goodput");
        let ends = (1..=self.last_tick / interval_ticks).map(|k| k * interval_ticks);
        let mut before = self.delivered_by(0);
        ends.map(|end| {
            let now = self.delivered_by(end);
            let delivered = now - before;
            before = now;
            delivered
        })
        .collect()
    }

    /// Mean goodput from `from_tick` to the end, bit/s, for packets of `packet_bytes` and ticks of `quantum_s`.
    /// Zero if the run ends before `from_tick`.
    pub fn goodput_bps(&self, from_tick: u64, packet_bytes: f64, quantum_s: f64) -> f64 {
        if from_tick >= self.last_tick {
            return 0.0;
        }
        let packets = self.delivered_by(self.last_tick) - self.delivered_by(from_tick);
        let seconds = (self.last_tick - from_tick) as f64 * quantum_s;
        packets as f64 * 8.0 * packet_bytes / seconds
    }

    /// The longest time without a delivery after `from_tick`, ticks: the jitter for the application.
    pub fn longest_silence_ticks(&self, from_tick: u64) -> u64 {
        let mut last = from_tick;
        let mut longest = 0;
        for instant in self.instants.iter().filter(|i| i.tick > from_tick) {
            if instant.delivered().is_some() {
                longest = longest.max(instant.tick - last);
                last = instant.tick;
            }
        }
        longest.max(self.last_tick.saturating_sub(last))
    }

    /// Time-weighted mean of a count from `from_tick` to the end, packets; for instance
    /// `|i| i.in_buffer_packets` (Figure 6).
    pub fn mean_packets(&self, from_tick: u64, count: impl Fn(&SlotInstant) -> u64) -> f64 {
        let mut sum = 0_u128;
        for (k, instant) in self.instants.iter().enumerate() {
            let until = self.instants.get(k + 1).map_or(self.last_tick, |next| next.tick);
            let held = until.saturating_sub(instant.tick.max(from_tick));
            sum += u128::from(held) * u128::from(count(instant));
        }
        let length = self.last_tick.saturating_sub(from_tick);
        if length == 0 { 0.0 } else { sum as f64 / length as f64 }
    }

    /// The largest occupancy of the receive buffer, packets.
    pub fn in_buffer_max_packets(&self) -> u64 {
        self.instants.iter().map(|i| i.in_buffer_packets).max().unwrap_or(0)
    }

    /// The run in the form of the paper's Tables I and II, one row per step.
    pub fn table(&self) -> Vec<TableRow> {
        let step = self.step_ticks;
        let rows = (0..self.last_tick / step).map(|k| k * step);
        rows.map(|sent_tick| self.row(sent_tick, sent_tick + step)).collect()
    }

    fn row(&self, sent_tick: u64, received_tick: u64) -> TableRow {
        let from = self.instants.partition_point(|i| i.tick < sent_tick);
        let to = self.instants.partition_point(|i| i.tick <= received_tick);
        let span = &self.instants[from..to];
        let paths = span[0].sent.len();
        let mut sent = vec![Vec::new(); paths];
        let mut received = vec![Vec::new(); paths];
        for instant in span {
            for path in 0..paths {
                if instant.tick < received_tick {
                    sent[path].extend(instant.sent[path].iter().copied());
                }
                if instant.tick > sent_tick {
                    received[path].extend(instant.arrived[path].iter().copied());
                }
            }
        }
        let (first, last) = (span[0].delivered_to + 1, span[span.len() - 1].delivered_to);
        TableRow {
            sent_tick,
            sent,
            received_tick,
            received,
            delivered: (last >= first).then_some(PacketRange { first, last }),
            in_buffer_packets: span[span.len() - 1].in_buffer_packets,
        }
    }
}
