//! Time series at a chosen interval, and the first arrivals for sequence-time plots.
//!
//! Every column of the series is declared here, once: documents, files and the reference page are made from it.

use ropewalk_base::{Histogram, HistogramParts};
use serde::{Deserialize, Serialize};

use crate::result::Unit;

/// Values of a column, one per interval.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Numbers.
    Numbers(&'a [f64]),
    /// Numbers, or null where unknown.
    NumbersOrNull(&'a [Option<f64>]),
    /// Whole numbers.
    Counts(&'a [u64]),
}

impl<'a> From<&'a Vec<f64>> for Values<'a> {
    fn from(values: &'a Vec<f64>) -> Self {
        Self::Numbers(values)
    }
}

impl<'a> From<&'a Vec<Option<f64>>> for Values<'a> {
    fn from(values: &'a Vec<Option<f64>>) -> Self {
        Self::NumbersOrNull(values)
    }
}

impl<'a> From<&'a Vec<u64>> for Values<'a> {
    fn from(values: &'a Vec<u64>) -> Self {
        Self::Counts(values)
    }
}

/// A column of the series `S`.
#[derive(Debug)]
pub struct SeriesColumn<S> {
    /// Name in documents and files.
    pub name: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Reads the values.
    pub values: fn(&S) -> Values<'_>,
    meaning: &'static str,
}

impl<S> SeriesColumn<S> {
    /// What it means.
    pub fn meaning(&self) -> &'static str {
        self.meaning.trim()
    }
}

/// Declares a struct of series and its list of columns, `COLUMNS`. Other fields may precede or follow the
/// columns.
macro_rules! series {
    (
        $(#[doc = $about:literal])+
        struct $name:ident {
            $($(#[doc = $before_doc:literal])+ $before:ident: $before_type:ty;)?
            columns {
                $($(#[doc = $doc:literal])+ $key:ident: $kind:ty = $unit:ident;)+
            }
            $($(#[doc = $after_doc:literal])+ $after:ident: $after_type:ty;)?
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
        pub struct $name {
            $($(#[doc = $before_doc])+ pub $before: $before_type,)?
            $($(#[doc = $doc])+ pub $key: Vec<$kind>,)+
            $($(#[doc = $after_doc])+ pub $after: $after_type,)?
        }

        impl $name {
            /// The columns in their order.
            pub const COLUMNS: &'static [SeriesColumn<Self>] = &[
                $(SeriesColumn {
                    name: stringify!($key),
                    unit: Unit::$unit,
                    values: |series| Values::from(&series.$key),
                    meaning: concat!($($doc),+),
                },)+
            ];
        }
    };
}

series! {
    /// Values per interval; `time_s` is its end.
    struct Series {
        columns {
            /// End of the interval, s since the start.
            time_s: f64 = Seconds;
            /// User data delivered in order in the interval, bit/s.
            goodput_bps: f64 = BitsPerSecond;
            /// User data delivered in order so far, bytes.
            delivered_bytes: u64 = Bytes;
            /// Occupancy of the receive buffer by out-of-order data, bytes.
            receive_buffer_bytes: u64 = Bytes;
            /// Highest occupancy in the interval, bytes; the sum over all associations.
            receive_buffer_peak_bytes: u64 = Bytes;
            /// Receive window that the receiver offers, bytes.
            receive_window_bytes: u64 = Bytes;
        }
        /// Each path.
        paths: Vec<PathSeries>;
    }
}

series! {
    /// One path over time.
    struct PathSeries {
        /// Name.
        name: String;
        columns {
            /// User data acknowledged in the interval, bit/s.
            throughput_bps: f64 = BitsPerSecond;
            /// Congestion window, bytes.
            cwnd_bytes: u64 = Bytes;
            /// Data in flight, bytes.
            in_flight_bytes: u64 = Bytes;
            /// Smoothed RTT, s; null before the first sample, and while the sender counts the path as failed.
            srtt_s: Option<f64> = Seconds;
            /// Transmissions that counted as lost in the interval.
            lost_packets: u64 = Count;
        }
    }
}

/// The first seconds packet by packet.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Sequence {
    /// Arrivals on each path.
    pub paths: Vec<SequencePath>,
    /// Chunks delivered to the application so far.
    pub delivered: SequencePath,
    /// Time from which data is missing because the limit was reached, s since the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_s: Option<f64>,
}

/// Times and chunk numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct SequencePath {
    /// Name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Times, s since the start.
    pub time_s: Vec<f64>,
    /// Chunk numbers.
    pub seq: Vec<u64>,
}

/// How delays are distributed over all chunks.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Distributions {
    /// Time from first transmission to in-order delivery.
    pub app_delay_s: Distribution,
    /// Time from arrival to in-order delivery.
    pub blocking_time_s: Distribution,
}

/// A distribution function: the share of the values that do not exceed each of some values.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq)]
pub struct Distribution {
    /// The values, s, ascending.
    pub values: Vec<f64>,
    /// The share of all values up to it, 0 to 1.
    pub shares: Vec<f64>,
}

/// The delays of all chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayHistograms {
    /// Times from first transmission to in-order delivery.
    pub app_delay: DelayHistogram,
    /// Times from arrival to in-order delivery.
    pub blocking_time: DelayHistogram,
}

impl DelayHistograms {
    /// The distribution functions in a fixed number of steps, for reports.
    pub fn distributions(&self) -> Distributions {
        Distributions {
            app_delay_s: self.app_delay.distribution(),
            blocking_time_s: self.blocking_time.distribution(),
        }
    }
}

/// Delays of one kind, exact to 0.8 %.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredHistogram", into = "StoredHistogram")]
pub struct DelayHistogram {
    nanos: Histogram,
}

/// The stored form: weight of 0, first bucket, buckets, high and low half of the sum, maximum. JSON has no 128-bit
/// numbers.
type StoredHistogram = (u64, usize, Vec<u64>, u64, u64, u64);

impl From<StoredHistogram> for DelayHistogram {
    fn from((zero, first, buckets, high, low, max): StoredHistogram) -> Self {
        let sum = u128::from(high) << 64 | u128::from(low);
        Self { nanos: HistogramParts { zero, first, buckets, sum, max }.into() }
    }
}

impl From<DelayHistogram> for StoredHistogram {
    fn from(delays: DelayHistogram) -> Self {
        let HistogramParts { zero, first, buckets, sum, max } = delays.nanos.parts();
        (zero, first, buckets, (sum >> 64) as u64, sum as u64, max)
    }
}

const NANO: f64 = 1e-9;

/// Number of equal steps of a distribution function.
const STEPS: u32 = 200;

impl DelayHistogram {
    /// Delays in nanoseconds.
    pub(crate) const fn of_nanos(nanos: Histogram) -> Self {
        Self { nanos }
    }

    /// The delay that a share of the chunks does not exceed, s. `None` if there is no chunk.
    ///
    /// # Panics
    /// If `share` is not in `[0, 1]`.
    pub fn quantile_s(&self, share: f64) -> Option<f64> {
        (self.nanos.total_weight() > 0).then(|| self.at(share))
    }

    /// The empirical distribution function: each delay that occurred, and the share of the chunks up to it.
    pub fn ecdf(&self) -> Distribution {
        let total = self.nanos.total_weight() as f64;
        let steps = self.nanos.cumulative();
        let (values, shares) =
            steps.map(|(delay, count)| (delay as f64 * NANO, count as f64 / total)).unzip();
        Distribution { values, shares }
    }

    /// Steps of half a percent, and finer ones at the end.
    fn distribution(&self) -> Distribution {
        let steps = (0..STEPS).map(|step| f64::from(step) / f64::from(STEPS));
        let shares: Vec<f64> = steps.chain([0.996, 0.997, 0.998, 0.999, 0.9995, 1.0]).collect();
        Distribution { values: shares.iter().map(|share| self.at(*share)).collect(), shares }
    }

    fn at(&self, share: f64) -> f64 {
        let nanos = if share < 1.0 { self.nanos.quantile(share) } else { self.nanos.max() };
        nanos as f64 * NANO
    }
}
