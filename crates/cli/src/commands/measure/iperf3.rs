//! Derives rate, queue and round trip of a link from a test of iperf3, as JSON or as text.

mod document;
mod report;

use std::fmt::Write;

use ropewalk_apps::measure::estimate::quantile;

use super::comparison::{Carried, CarriedBy};
use super::recorded::queue_bound;

/// Headers of IPv4 and TCP with timestamps, and of IPv4 and UDP, bytes.
const TCP_HEADERS: f64 = 52.0;
const UDP_HEADERS: f64 = 28.0;
/// Minimum of the maximum segment size (Linux permits 48), and its usual value, that of Ethernet with timestamps,
/// bytes.
const LEAST_MSS: f64 = 48.0;
const USUAL_MSS: f64 = 1448.0;

/// A record of iperf3.
#[derive(Debug)]
pub struct RecordedTest {
    /// Keys of the scenario, with comments.
    pub keys: String,
    /// Data carried by TCP in one direction.
    pub carried: Option<Carried>,
}

/// A test, whatever its format. Quantities that the writer did not know are `None`.
#[derive(Debug)]
struct Test {
    protocol: Protocol,
    /// One, or with `--bidir` both directions.
    ways: Vec<Way>,
}

#[derive(Debug)]
enum Protocol {
    Tcp {
        mss: Option<f64>,
        congestion: Option<String>,
    },
    /// With the bytes of a datagram.
    Udp {
        block: f64,
    },
}

/// The sum of all streams in one direction.
#[derive(Debug, Default)]
struct Way {
    /// From the server to the client.
    down: bool,
    seconds: f64,
    sent_bps: Option<f64>,
    received_bps: Option<f64>,
    retransmissions: Option<f64>,
    lost: Option<f64>,
    packets: Option<f64>,
    jitter_ms: Option<f64>,
    /// The smallest and the largest round trip of the streams, seconds.
    rtt_s: Option<(f64, f64)>,
    /// User data of the intervals, bit/s.
    rates_bps: Vec<f64>,
}

/// Parses the JSON or the text of iperf3. The keys include the round trip only if `with_rtt`.
///
/// # Errors
/// A message if the record is invalid.
pub fn iperf3(text: &str, with_rtt: bool) -> Result<RecordedTest, String> {
    let test = if text.contains('{') { document::read(text)? } else { report::read(text)? };
    let rtts = || test.ways.iter().filter_map(|way| way.rtt_s);
    let mut keys = String::new();
    if let Some(least) = rtts().map(|(least, _)| least).reduce(f64::min).filter(|_| with_rtt) {
        let _ = writeln!(
            keys,
            "# Least round trip of TCP, smoothed and under load.\nrtt = \"{:.3} ms\"",
            least * 1e3
        );
    }
    let mut carried = None;
    for way in &test.ways {
        match &test.protocol {
            Protocol::Tcp { mss, congestion } => {
                carried = Some(way.append_tcp(*mss, congestion.as_ref(), &mut keys)?);
            }
            Protocol::Udp { block } => way.append_udp(*block, &mut keys)?,
        }
        way.append_intervals(&mut keys);
    }
    if let [up, _] = &test.ways[..] {
        keys += "# The test sent in both directions simultaneously, so the acknowledgements of each shared its link with the data of \
                 the\n# other. A run has data in one direction only, and is not compared with it.\n";
        if up.rtt_s.is_some() {
            keys +=
                "# queue, queue_down: not known, because either may have raised the round trip.\n";
        }
        carried = None;
    } else if let (Some(carried), Some((least, most))) = (&carried, rtts().next()) {
        let rise = (most - least).max(0.0);
        keys += &queue_bound(test.ways[0].suffix(), rise * carried.bps / 8.0, rise);
    }
    Ok(RecordedTest { keys, carried })
}

impl Way {
    /// The ending of the keys of this direction.
    const fn suffix(&self) -> &'static str {
        if self.down { "_down" } else { "" }
    }

    fn append_tcp(
        &self,
        mss: Option<f64>,
        congestion: Option<&String>,
        keys: &mut String,
    ) -> Result<Carried, String> {
        // A server writes 0, because it does not know the size of the segments that it receives.
        let mss = mss.filter(|mss| *mss >= LEAST_MSS).unwrap_or(USUAL_MSS);
        // One end may not know what the other has received.
        let received = self.received_bps.filter(|rate| *rate > 0.0).or(self.sent_bps);
        let rate = positive(received.unwrap_or(0.0))? * (mss + TCP_HEADERS) / mss;
        let again = self.retransmissions;
        let again = again.map_or_else(String::new, |count| format!("; {count} retransmissions"));
        let _ = writeln!(
            keys,
            "# iperf3, TCP for {:.1} s{again}. Headers of {TCP_HEADERS} B are added to each segment of {mss} B. TCP may have \
             used less than the link carries.\nrate{} = \"{:.3} Mbit/s\"",
            self.seconds,
            self.suffix(),
            rate / 1e6
        );
        let by = CarriedBy::Tcp(congestion.cloned());
        Ok(Carried { bps: rate, seconds: self.seconds, by })
    }

    fn append_udp(&self, block: f64, keys: &mut String) -> Result<(), String> {
        let lost = self.lost.unwrap_or(0.0).max(0.0);
        let packets = self.packets.unwrap_or(0.0);
        if packets <= 0.0 || lost > packets {
            return Err(format!("{lost} of {packets} packets lost: nothing to evaluate"));
        }
        let known = |rate: Option<f64>| rate.filter(|rate| *rate > 0.0);
        let sent = known(self.sent_bps);
        let received = known(self.received_bps).or(sent.map(|sent| sent * (1.0 - lost / packets)));
        let count = self.rates_bps.len() as f64;
        // Until 3.9, a server does not know any total.
        let received =
            received.unwrap_or_else(|| self.rates_bps.iter().sum::<f64>() / count.max(1.0));
        let rate = positive(received)? * (block + UDP_HEADERS) / block;
        let sent =
            sent.map_or_else(String::new, |sent| format!("{:.3} Mbit/s were sent, ", sent / 1e6));
        let _ = writeln!(
            keys,
            "# iperf3, UDP for {:.1} s: {sent}{lost} of {packets} packets lost, jitter {:.2} ms. If hardly any were lost,\n# the \
             link was not full, and the rate is a lower bound.\nrate{} = \"{:.3} Mbit/s\"",
            self.seconds,
            self.jitter_ms.unwrap_or(0.0),
            self.suffix(),
            rate / 1e6
        );
        Ok(())
    }

    fn append_intervals(&self, keys: &mut String) {
        if self.rates_bps.len() >= 2 {
            let _ = writeln!(
                keys,
                "# The rates of {} intervals were between {:.3} and {:.3} Mbit/s of user data.",
                self.rates_bps.len(),
                quantile(&self.rates_bps, 0.0) / 1e6,
                quantile(&self.rates_bps, 1.0) / 1e6
            );
        }
    }
}

fn positive(rate: f64) -> Result<f64, String> {
    if rate.is_finite() && rate > 0.0 { Ok(rate) } else { Err(format!("a rate of {rate} bit/s")) }
}

#[cfg(test)]
mod tests;
