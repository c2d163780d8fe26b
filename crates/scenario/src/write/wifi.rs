//! `wifi` of a path, and `[[station]]`.

use super::{Out, limit, number, quoted, rate_text, size_text, time_text};
use crate::types::{Radio, Station, Wifi, WifiStandard};

/// The wireless hop of a path as an inline table.
pub(super) fn wifi(wifi: Wifi) -> String {
    let keys = radio(&wifi.radio).map(|(key, value)| format!("{key} = {value}, "));
    let keys: String = keys.collect();
    format!("{{ {keys}end = {} }}", quoted(wifi.end))
}

pub(super) fn station(out: &mut Out, station: &Station) {
    out.section("[[station]]");
    for (key, value) in radio(&station.radio) {
        out.plain(key, value);
    }
    out.text("direction", station.direction);
    out.opt_text("load", station.load.map(rate_text));
    out.text("packet", size_text(station.packet.into()));
    out.plain("count", station.count);
    out.text("start", time_text(station.start));
    out.opt_text("stop", station.stop.map(time_text));
}

/// The common keys of both, with values in TOML.
fn radio(radio: &Radio) -> impl Iterator<Item = (&'static str, String)> {
    let preamble = match radio.standard {
        WifiStandard::Dot11b(preamble) => Some(("preamble", quoted(preamble))),
        WifiStandard::Dot11g => None,
    };
    let first =
        [("standard", quoted(radio.standard.as_str())), ("rate", quoted(rate_text(radio.rate)))];
    let last = [
        ("channel", radio.channel.to_string()),
        ("queue", limit(radio.queue)),
        ("frame_error", number(radio.frame_error)),
    ];
    first.into_iter().chain(preamble).chain(last)
}
