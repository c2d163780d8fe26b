//! 802.11: the wireless hop of a path, and background stations.

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

    /// Supported rates, ascending, bit/s.
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

/// Radio parameters of a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    /// Physical layer.
    pub standard: WifiStandard,
    /// One of the layer's rates, constant.
    pub rate: Rate,
    /// Number of the channel, shared with other stations.
    pub channel: u32,
    /// Capacity of the station's queue.
    pub queue: Limit,
    /// Probability that a frame arrives damaged without a collision.
    pub frame_error: f64,
}

/// `wifi` of a path: a wireless hop between one of its ends and its links.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wifi {
    /// Radio parameters of the station, and of the access point towards it.
    pub radio: Radio,
    /// The end of the path that is the station.
    pub end: End,
}

/// `[[station]]`: background stations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Station {
    /// Radio parameters of each station.
    pub radio: Radio,
    /// Up: from the stations to the access point; down: from the access point to the stations.
    pub direction: Side,
    /// Mean rate of each station, bit/s, packets only; `None` for a saturated station.
    pub load: Option<Rate>,
    /// Packet size, bytes.
    pub packet: u32,
    /// Number of such stations, each with its own random stream.
    pub count: u32,
    /// Time at which the traffic starts.
    pub start: Time,
    /// Time at which it stops; `None` for the end of the run.
    pub stop: Option<Time>,
}
