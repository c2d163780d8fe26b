//! Messages between the two ends of a measurement.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

/// Version of the messages; the first byte of each.
const VERSION: u8 = 2;

/// The sender of bulk data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
}

/// What to measure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct MeasurementPlan {
    /// Which end sends bulk data.
    pub direction: Direction,
    /// Whether bulk data is delivered in order, like TCP's byte stream. Otherwise each message is delivered as it
    /// arrives.
    pub in_order: bool,
    /// Warm-up after the first byte, excluded from all figures, seconds.
    pub warmup_s: f64,
    /// Duration of the measurement after the warm-up, seconds.
    pub seconds: f64,
}

/// Results of the receiver of bulk data.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Figures {
    /// User data delivered during the measurement, bytes.
    pub bytes: u64,
    /// Duration of the measurement, seconds.
    pub seconds: f64,
    /// Longest time without a byte during the measurement, seconds.
    pub gap_s: f64,
    /// Time-weighted mean of the bytes that wait out of order, over the entire association.
    pub mean_out_of_order_bytes: f64,
    /// Maximum of the bytes that wait out of order.
    pub max_out_of_order_bytes: u64,
    /// CPU time of the receiver's process since the measurement began, seconds.
    pub cpu_s: f64,
}

impl MeasurementPlan {
    /// How long bulk data is sent.
    pub fn time(&self) -> Duration {
        Duration::from_secs_f64(self.warmup_s + self.seconds)
    }

    /// Encodes the plan.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(18);
        out.put_u8(VERSION);
        out.put_u8((self.direction == Direction::Down) as u8 | (self.in_order as u8) << 1);
        out.put_f64(self.warmup_s);
        out.put_f64(self.seconds);
        out.freeze()
    }

    /// Decodes a plan. `None` if the version differs or a number is invalid.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (head, numbers) = bytes.split_at_checked(2)?;
        let (direction, in_order) = match head {
            [VERSION, what @ 0..=3] => {
                (if what & 1 == 0 { Direction::Up } else { Direction::Down }, what & 2 != 0)
            }
            _ => return None,
        };
        let (warmup_s, seconds) = (number(numbers, 0)?, number(numbers, 1)?);
        let plan = Self { direction, in_order, warmup_s, seconds };
        // At most a day, so that no client occupies a server longer.
        let sane = |seconds: f64| (0.0..=86_400.0).contains(&seconds);
        (sane(plan.warmup_s) && sane(plan.seconds)).then_some(plan)
    }
}

impl Figures {
    /// Encodes the results.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(49);
        out.put_u8(VERSION);
        for number in [self.bytes as f64, self.seconds, self.gap_s, self.mean_out_of_order_bytes] {
            out.put_f64(number);
        }
        out.put_f64(self.max_out_of_order_bytes as f64);
        out.put_f64(self.cpu_s);
        out.freeze()
    }

    /// Decodes results. `None` if the version differs.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, numbers) = bytes.split_first()?;
        if *version != VERSION {
            return None;
        }
        Some(Self {
            bytes: number(numbers, 0)? as u64,
            seconds: number(numbers, 1)?,
            gap_s: number(numbers, 2)?,
            mean_out_of_order_bytes: number(numbers, 3)?,
            max_out_of_order_bytes: number(numbers, 4)? as u64,
            cpu_s: number(numbers, 5)?,
        })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<f64> {
    let word = bytes.get(8 * at..8 * at + 8)?;
    let number = f64::from_be_bytes(word.try_into().ok()?);
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_back_and_nonsense_is_refused() {
        let directions = [Direction::Up, Direction::Down];
        for (direction, in_order) in directions.into_iter().flat_map(|d| [(d, false), (d, true)]) {
            let plan = MeasurementPlan { direction, in_order, warmup_s: 0.5, seconds: 10.0 };
            assert_eq!(MeasurementPlan::decode(&plan.encode()), Some(plan));
        }
        let figures =
            Figures { bytes: 7, seconds: 1.5, max_out_of_order_bytes: 9, ..Figures::default() };
        assert_eq!(Figures::decode(&figures.encode()), Some(figures));
        let endless = MeasurementPlan {
            direction: Direction::Up,
            in_order: false,
            warmup_s: 0.0,
            seconds: 1e9,
        };
        let not_a_number = MeasurementPlan { seconds: f64::NAN, ..endless };
        for nonsense in
            [&endless.encode()[..], &not_a_number.encode(), &[], &[2], &[3, 0, 0], &[2, 4]]
        {
            assert_eq!(MeasurementPlan::decode(nonsense), None, "{nonsense:?}");
        }
        assert_eq!(Figures::decode(&[2, 0, 0]), None);
        assert_eq!(Figures::decode(&[1; 49]), None, "another version");
    }
}
