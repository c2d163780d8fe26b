//! 802.11: the hop of a path, and other people's stations.

use ropewalk_base::{Rate, Time};

use super::{End, Limit, Preamble, Side};

/// A physical layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WifiStandard {
    /// 802.11b.
    Dot11b(Preamble),
    /// 802.11g at its own rates (ERP-OFDM).
    Dot11g,
}

impl WifiStandard {
    /// The name in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Dot11b(_) => "802.11b",
            Self::Dot11g => "802.11g",
        }
    }

    /// Its rates, ascending, bit/s.
    pub const fn rates_bps(self) -> &'static [u64] {
        match self {
            Self::Dot11b(Preamble::Long) => &[1_000_000, 2_000_000, 5_500_000, 11_000_000],
            Self::Dot11b(Preamble::Short) => &[2_000_000, 5_500_000, 11_000_000],
            Self::Dot11g => &[
                6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000,
                54_000_000,
            ],
        }
    }
}

/// How a station sends.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    /// Its layer.
    pub standard: WifiStandard,
    /// One of the layer's rates, the same all the time.
    pub rate: Rate,
    /// Stations of one channel contend.
    pub channel: u32,
    /// What waits in the station.
    pub queue: Limit,
    /// The share of frames that arrive damaged although nobody else sends.
    pub frame_error: f64,
}

/// `wifi` of a path: a hop over the air between one of its ends and the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wifi {
    /// How the station and, towards it, the access point send.
    pub radio: Radio,
    /// Which end of the path is the station.
    pub end: End,
}

/// `[[station]]`: other people's stations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// How each of them sends.
    pub radio: Radio,
    /// Up: the stations send to the access point; down: it sends to them.
    pub direction: Side,
    /// Bits per second on average, of each, packets only; `None` for as much as the channel takes.
    pub load: Option<Rate>,
    /// Bytes per packet.
    pub packet: u32,
    /// Number of such stations, each with its own luck.
    pub count: u32,
    /// When they begin.
    pub start: Time,
    /// When they end; `None` for the end of the run.
    pub stop: Option<Time>,
}
