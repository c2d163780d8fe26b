//! 802.11: the wireless hop of a path, and background stations.

use ropewalk_base::{Rate, Time};

use super::builder::Builder;
use super::cross::transfer_packet;
use super::queue::PLAIN_LIMIT;
use super::setting::Setting;
use super::{End, Limit, Preamble, Scenario, Side};
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::keys::{INSTANT, Key, Kind, PACKET, PROBABILITY, RATE, Tagged, Variant, names};
use crate::quantity::size_text;
use crate::suggest;
use crate::toml_text::{Entries, inline};

/// The largest packet that fits into a frame: 2304 bytes minus 8 for LLC and SNAP (IEEE 802.11-2012, 8.2.3).
const LARGEST_PACKET: u32 = 2296;

variants! {
    /// A physical layer.
    #[derive(Copy, Eq)]
    pub enum WifiStandard {
        /// DSSS and CCK, up to 11 Mbit/s.
        Dot11b = "802.11b" [Variant::PLAIN.extra(keys! {
            /// 1, 2, 5.5 or 11 Mbit/s, the same all the time.
            rate = RATE.is("11 Mbit/s").example("\"2 Mbit/s\"");
        })] {
            /// Preamble of every frame.
            preamble: Preamble = names::<Preamble>().is("long").example("\"short\"");
        },
        /// OFDM (ERP), up to 54 Mbit/s.
        Dot11g = "802.11g" [Variant::PLAIN.extra(keys! {
            /// 6, 9, 12, 18, 24, 36, 48 or 54 Mbit/s, the same all the time.
            rate = RATE.is("54 Mbit/s").example("\"6 Mbit/s\"");
        })],
    }
}

impl WifiStandard {
    /// Supported rates, ascending, bit/s.
    pub const fn rates_bps(self) -> &'static [u64] {
        match self {
            Self::Dot11b { preamble: Preamble::Long } => {
                &[1_000_000, 2_000_000, 5_500_000, 11_000_000]
            }
            Self::Dot11b { preamble: Preamble::Short } => &[2_000_000, 5_500_000, 11_000_000],
            Self::Dot11g => &[
                6_000_000, 9_000_000, 12_000_000, 18_000_000, 24_000_000, 36_000_000, 48_000_000,
                54_000_000,
            ],
        }
    }
}

table! {
    /// Radio parameters of a station.
    #[derive(Copy)]
    pub struct Radio {
        /// All stations of one channel contend, its one access point included: data with
        /// acknowledgements, path with path. Different channels do not interfere.
        channel: u32 = Kind::Integer { min: 1, max: 1_000 }.is("1").example("6");
        /// Queue of the station. The access point of a channel has a single queue, as long as the longest
        /// of its stations.
        queue: Limit = PLAIN_LIMIT.is("400 packets").example("\"100 packets\"");
        /// Share of frames that are damaged without a collision; each frame is sent up to seven times.
        frame_error: f64 = PROBABILITY.is("0.0").example("0.1");
        also {
            /// Physical layer.
            standard: WifiStandard => WifiStandard::read;
            /// One of the layer's rates, constant.
            rate: Rate => rate;
        }
    }
}

table! {
    /// A hop over the air.
    #[derive(Copy)]
    pub struct Wifi {
        /// Which end of the path is the station; between the access point and the other end lies
        /// the path's own `rate`, `delay` and `queue`.
        end: End = names::<End>().is("sender").example("\"receiver\"");
        also {
            /// Radio parameters of the station, and of the access point towards it.
            radio: Radio => Radio::read;
        }
    }
}

table! {
    /// Other stations on a channel of 802.11.
    #[derive(Copy)]
    pub struct Station {
        /// `up`: the stations send to the access point; `down`: the access point sends to them from its
        /// own queue.
        direction: Side = names::<Side>().is("up").example("\"down\"");
        /// Mean bits per second of each station, in packets at exponentially distributed intervals.
        load: Option<Rate> = RATE.derived("saturation").example("\"2 Mbit/s\"");
        /// Size of the packets without the overhead of 802.11.
        packet: u32 => transfer_packet = PACKET.derived("`transfer.packet`").example("\"1400 B\"");
        /// Number of such stations, each with its own random stream.
        count: u32 = Kind::Integer { min: 1, max: 10_000 }.is("1").example("5");
        /// When they begin.
        start: Time = INSTANT.is("0 s").example("\"10 s\"");
        /// When they end; later than `start`.
        stop: Option<Time> = INSTANT.derived("the end of the run").example("\"30 s\"");
        also {
            /// Radio parameters of each station.
            radio: Radio => Radio::read;
        }
    }
}

const fn by_standard(heading: &'static str, doc: &'static str, keys: &'static [Key]) -> Tagged {
    Tagged {
        tag: "standard",
        heading,
        doc,
        default: Some("802.11g"),
        before: &[],
        variants: WifiStandard::VARIANTS,
        after: [Radio::KEYS, keys],
    }
}

const HOP: Tagged = by_standard("wifi = { standard = \"?\", ... }", Wifi::ABOUT, Wifi::KEYS);
pub(super) const WIFI: Kind = Kind::Tagged(&HOP);
pub(super) const STATION: Tagged =
    by_standard("[[station]] standard = \"?\"", Station::ABOUT, Station::KEYS);

impl Radio {
    fn toml(&self, tagged: &Tagged, others: Entries, scenario: &Scenario) -> Entries {
        let rate = self.rate.toml(&RATE, scenario).map(|rate| ("rate", rate));
        let own = rate.into_iter().chain(self.standard.entries(scenario)).collect();
        let common = self.entries(scenario).into_iter().chain(others).collect();
        tagged.entries(self.standard.name(), own, common)
    }
}

impl Station {
    /// Reads one of `[[station]]`.
    pub(crate) fn checked(builder: &mut Builder<'_>, table: &Checked) -> Self {
        let station = Self::read(builder, table);
        builder.check_station(table, &station);
        builder.later_than_start(table, station.start, station.stop);
        station
    }

    pub(crate) fn toml(&self, scenario: &Scenario) -> Entries {
        self.radio.toml(&STATION, self.entries(scenario), scenario)
    }
}

impl Setting for Wifi {
    fn read(builder: &mut Builder<'_>, value: &Value) -> Self {
        let Value::Table(table) = value else { unreachable!("{value:?} as a hop") };
        Self::read(builder, table)
    }

    fn toml(&self, _: &Kind, scenario: &Scenario) -> Option<String> {
        Some(inline(self.radio.toml(&HOP, self.entries(scenario), scenario)))
    }
}

/// The hop of a path. Checks that the packets fit into a frame.
pub(super) fn wifi(builder: &mut Builder<'_>, path: &Checked, key: &str) -> Option<Wifi> {
    let Some(Value::Table(table)) = path.value(key) else { return None };
    let wifi = Wifi::read(builder, table);
    let packet = transfer_packet(builder, path, "mtu").min(builder.packet);
    if packet > LARGEST_PACKET {
        let message = too_large(&table.path, packet);
        let help = format!(
            "a frame takes {}; give the path an `mtu` or the transfer smaller packets",
            size_text(LARGEST_PACKET.into())
        );
        builder.wrong(path, key, ProblemKind::Conflict, message, help);
    }
    Some(wifi)
}

impl Builder<'_> {
    fn check_station(&mut self, table: &Checked, station: &Station) {
        if station.packet > LARGEST_PACKET {
            let message = too_large(&table.path, station.packet);
            let help = format!("the largest is {}", size_text(LARGEST_PACKET.into()));
            self.wrong(table, "packet", ProblemKind::OutOfRange, message, help);
        }
    }
}

/// The rate of a station. Checks that the standard has this rate.
fn rate(builder: &mut Builder<'_>, table: &Checked) -> Rate {
    let standard = WifiStandard::read(builder, table);
    let rate: Rate = table.get("rate");
    if !standard.rates_bps().contains(&rate.as_bps()) {
        let mbit = |bps: &u64| format!("{} Mbit/s", *bps as f64 / 1e6);
        let valid: Vec<_> = standard.rates_bps().iter().map(mbit).collect();
        let valid: Vec<_> = valid.iter().map(String::as_str).collect();
        let with = match standard {
            WifiStandard::Dot11b { preamble } => format!(" with the {preamble} preamble"),
            WifiStandard::Dot11g => String::new(),
        };
        let message = format!(
            "`{}.rate` = {} is no rate of {}{with}",
            table.path,
            builder.excerpt(table, "rate"),
            standard.name()
        );
        let help = format!("valid: {}", suggest::quoted_or_list(&valid));
        builder.wrong(table, "rate", ProblemKind::OutOfRange, message, help);
    }
    rate
}

fn too_large(place: &str, packet: u32) -> String {
    format!("`{place}`: packets of {} do not fit into a frame of 802.11", size_text(packet.into()))
}
