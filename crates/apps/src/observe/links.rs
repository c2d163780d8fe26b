//! Metrics of emulated links.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Unit;

use super::metrics::{Out, count_of, encode_collector};

/// Counters of one direction of a link since the emulation began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkFigures {
    /// Name of the path.
    pub link: String,
    /// `up` or `down`.
    pub direction: &'static str,
    /// IP packets and bytes that programs sent.
    pub sent: (u64, u64),
    /// IP packets and bytes that arrived at the other side.
    pub delivered: (u64, u64),
    /// Packets that the path's own link dropped, by cause; packets of cross traffic are included.
    pub dropped: Vec<(&'static str, u64)>,
    /// Packets that the link copied.
    pub duplicated: u64,
    /// Bytes that wait in the queue now.
    pub queue_bytes: u64,
    /// Bytes that the link could have sent. `None` if its rate is unlimited or unknown.
    pub capacity_bytes: Option<u64>,
    /// Rate of the link now, bit/s.
    pub rate_bps: Option<f64>,
}

/// The figures for the metrics of an emulation.
#[derive(Clone, Debug, Default)]
pub struct EmulationFigures {
    /// Each direction of each path.
    pub links: Vec<LinkFigures>,
    /// Packets that a device refused.
    pub refused: u64,
    /// Version of Ropewalk.
    pub version: &'static str,
}

impl EmulationFigures {
    /// The metrics with their media type. `accept` lists the media types that the client accepts.
    pub fn encode(self, accept: &str) -> (String, &'static str) {
        encode_collector(Box::new(self), accept)
    }
}

impl Collector for EmulationFigures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut out = Out { encoder: &mut encoder };
        out.gauge("build_info", "Version of Ropewalk", None, |m| {
            m.encode_family(&[("version", self.version)])?.encode_gauge(&1)
        })?;
        let bytes = Some(Unit::Bytes);
        let (help, count) = ("IP packets that programs sent", |link: &LinkFigures| link.sent.0);
        self.counter(&mut out, ("link_sent_packets", help, None), count)?;
        let help = "Bytes of these packets, IP headers included";
        self.counter(&mut out, ("link_sent", help, bytes.clone()), |link| link.sent.1)?;
        let help = "IP packets that arrived at the other side, copies included";
        self.counter(&mut out, ("link_delivered_packets", help, None), |link| link.delivered.0)?;
        let help = "Bytes of these packets, IP headers included";
        self.counter(&mut out, ("link_delivered", help, bytes.clone()), |link| link.delivered.1)?;
        let help = "Packets that the link copied";
        self.counter(&mut out, ("link_duplicated_packets", help, None), |link| link.duplicated)?;
        self.drops(&mut out)?;
        self.state(&mut out)?;
        let help = "Packets that a device refused";
        out.counter("emulator_refused_packets", help, None, |m| count_of(m, self.refused))
    }
}

impl EmulationFigures {
    fn counter(
        &self,
        out: &mut Out<'_, '_>,
        (name, help, unit): (&str, &str, Option<Unit>),
        value: impl Fn(&LinkFigures) -> u64,
    ) -> fmt::Result {
        out.counter(name, help, unit, |m| {
            self.links
                .iter()
                .try_for_each(|link| count_of(&mut m.encode_family(&labels(link))?, value(link)))
        })
    }

    fn drops(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let help = "Packets that the link dropped, by cause; cross traffic is included";
        out.counter("link_dropped_packets", help, None, |m| {
            self.links.iter().try_for_each(|link| {
                link.dropped.iter().try_for_each(|(cause, count)| {
                    let [name, direction] = labels(link);
                    count_of(&mut m.encode_family(&[name, direction, ("cause", *cause)])?, *count)
                })
            })
        })
    }

    /// Queue and rate. A link without a limited rate has no series for it.
    fn state(&self, out: &mut Out<'_, '_>) -> fmt::Result {
        let bytes = Some(Unit::Bytes);
        out.gauge("link_queue", "Data that waits in the queue", bytes.clone(), |m| {
            self.links.iter().try_for_each(|link| {
                m.encode_family(&labels(link))?.encode_gauge(&link.queue_bytes)
            })
        })?;
        let help = "Data that the link could have carried";
        out.counter("link_capacity", help, bytes, |m| {
            let mut known = self.links.iter().filter_map(|link| Some((link, link.capacity_bytes?)));
            known
                .try_for_each(|(link, bytes)| count_of(&mut m.encode_family(&labels(link))?, bytes))
        })?;
        let unit = Some(Unit::Other("bits_per_second".to_owned()));
        out.gauge("link_rate", "Rate of the link, mean since the last scrape", unit, |m| {
            let mut known = self.links.iter().filter_map(|link| Some((link, link.rate_bps?)));
            known.try_for_each(|(link, rate)| m.encode_family(&labels(link))?.encode_gauge(&rate))
        })
    }
}

fn labels(link: &LinkFigures) -> [(&'static str, &str); 2] {
    [("link", &link.link), ("direction", link.direction)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_direction_has_its_series_and_an_unlimited_rate_has_none() {
        let up = LinkFigures {
            link: "lte".to_owned(),
            direction: "up",
            sent: (3, 4500),
            dropped: vec![("full", 1), ("loss", 0)],
            queue_bytes: 1500,
            capacity_bytes: Some(9000),
            rate_bps: Some(2e6),
            ..LinkFigures::default()
        };
        let down =
            LinkFigures { direction: "down", capacity_bytes: None, rate_bps: None, ..up.clone() };
        let figures = EmulationFigures { links: vec![up, down], refused: 2, version: "1.0" };
        let (text, kind) = figures.encode("application/openmetrics-text");
        assert_eq!(kind, super::super::metrics::OPENMETRICS);
        for line in [
            "ropewalk_link_sent_packets_total{link=\"lte\",direction=\"up\"} 3",
            "ropewalk_link_sent_bytes_total{link=\"lte\",direction=\"down\"} 4500",
            "ropewalk_link_dropped_packets_total{link=\"lte\",direction=\"up\",cause=\"full\"} 1",
            "ropewalk_link_queue_bytes{link=\"lte\",direction=\"up\"} 1500",
            "ropewalk_link_capacity_bytes_total{link=\"lte\",direction=\"up\"} 9000",
            "ropewalk_link_rate_bits_per_second{link=\"lte\",direction=\"up\"} 2000000",
            "ropewalk_emulator_refused_packets_total 2",
        ] {
            assert!(text.contains(line), "no {line}:\n{text}");
        }
        assert!(!text.contains("rate_bits_per_second{link=\"lte\",direction=\"down\"}"), "{text}");
    }
}
