//! `wifi` of a path, and `[[station]]`.

use ropewalk_base::Rate;

use super::Builder;
use crate::check::{Checked, Value};
use crate::error::ProblemKind;
use crate::quantity::size_text;
use crate::suggest;
use crate::types::{Limit, Radio, Station, Wifi, WifiStandard};

/// The largest packet that fits into a frame: 2304 bytes minus 8 for LLC and SNAP (IEEE 802.11-2012, 8.2.3).
const LARGEST_PACKET: u32 = 2296;

impl Builder<'_> {
    /// The hop of a path whose packets have at most `packet` bytes.
    pub(super) fn wifi(&mut self, path: &Checked, packet: u32) -> Option<Wifi> {
        let Some(Value::Tagged(variant, table)) = path.value("wifi") else { return None };
        let radio = self.radio(*variant, table);
        if packet > LARGEST_PACKET {
            let message = too_large(&table.path, packet);
            let help = format!(
                "a frame takes {}; give the path an `mtu` or the transfer smaller packets",
                size_text(LARGEST_PACKET.into())
            );
            self.wrong(path, "wifi", ProblemKind::Conflict, message, help);
        }
        Some(Wifi { radio, end: table.get("end") })
    }

    pub(super) fn stations(&mut self, root: &Checked) -> Vec<Station> {
        let mut all = Vec::new();
        for item in root.list("station") {
            let Value::Tagged(variant, table) = &item.value else {
                unreachable!("a station is a tagged table")
            };
            let station = Station {
                radio: self.radio(*variant, table),
                direction: table.get("direction"),
                load: table.opt("load"),
                packet: table.opt("packet").unwrap_or(self.packet),
                count: table.get("count"),
                start: table.get("start"),
                stop: table.opt("stop"),
            };
            self.check_station(table, &station);
            all.push(station);
        }
        all
    }

    fn check_station(&mut self, table: &Checked, station: &Station) {
        if station.packet > LARGEST_PACKET {
            let message = too_large(&table.path, station.packet);
            let help = format!("the largest is {}", size_text(LARGEST_PACKET.into()));
            self.wrong(table, "packet", ProblemKind::OutOfRange, message, help);
        }
        if station.stop.is_some_and(|stop| stop <= station.start) {
            let stop = self.excerpt(table, "stop");
            let message = format!("`{}.stop` = {stop} is not later than its start", table.path);
            let help = "leave `stop` out to go on until the run ends";
            self.wrong(table, "stop", ProblemKind::Conflict, message, help);
        }
    }

    fn radio(&mut self, variant: usize, table: &Checked) -> Radio {
        let standard = match variant {
            0 => WifiStandard::Dot11b(table.get("preamble")),
            _ => WifiStandard::Dot11g,
        };
        let rate: Rate = table.get("rate");
        if !standard.rates_bps().contains(&rate.as_bps()) {
            let mbit = |bps: &u64| format!("{} Mbit/s", *bps as f64 / 1e6);
            let valid: Vec<_> = standard.rates_bps().iter().map(mbit).collect();
            let valid: Vec<_> = valid.iter().map(String::as_str).collect();
            let with = match standard {
                WifiStandard::Dot11b(preamble) => format!(" with the {preamble} preamble"),
                WifiStandard::Dot11g => String::new(),
            };
            let message = format!(
                "`{}.rate` = {} is no rate of {}{with}",
                table.path,
                self.excerpt(table, "rate"),
                standard.as_str()
            );
            let help = format!("valid: {}", suggest::quoted_or_list(&valid));
            self.wrong(table, "rate", ProblemKind::OutOfRange, message, help);
        }
        Radio {
            standard,
            rate,
            channel: u32::try_from(table.get::<u64>("channel")).expect("limited to 1000"),
            queue: match table.value("queue") {
                Some(Value::Packets(n)) => {
                    Limit::Packets(u32::try_from(*n).expect("limited to 32 bits"))
                }
                Some(Value::Bytes(bytes)) => Limit::Bytes(*bytes),
                _ => Limit::Unlimited,
            },
            frame_error: table.get("frame_error"),
        }
    }
}

fn too_large(place: &str, packet: u32) -> String {
    format!("`{place}`: packets of {} do not fit into a frame of 802.11", size_text(packet.into()))
}
