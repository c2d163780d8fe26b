//! The JSON of iperf3.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::{Protocol, Test, Way};

/// Ending of the names of sums of the data from the server in a test with `--bidir`.
const REVERSE: &str = "_bidir_reverse";

#[derive(Debug, Deserialize)]
struct Document {
    start: Option<Start>,
    #[serde(default)]
    intervals: Vec<Members>,
    end: Option<Members>,
    error: Option<String>,
    /// Only our own documents have it.
    schema: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Start {
    test_start: Option<TestStart>,
    tcp_mss_default: Option<f64>,
    /// Only a server writes it.
    accepted_connection: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct TestStart {
    protocol: String,
    #[serde(default)]
    blksize: f64,
    #[serde(default)]
    reverse: u8,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Sum {
    bits_per_second: Option<f64>,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    omitted: bool,
    /// Negative if packets of an earlier interval came late.
    retransmits: Option<f64>,
    lost_packets: Option<f64>,
    packets: Option<f64>,
    jitter_ms: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Stream {
    sender: Option<Sender>,
}

#[derive(Debug, Deserialize)]
struct Sender {
    /// Microseconds; 0 if this end does not send.
    #[serde(default)]
    max_rtt: f64,
    #[serde(default)]
    min_rtt: f64,
    /// Whether the end that wrote the document sends.
    sender: Option<bool>,
}

/// The members of an object in their order. With `--bidir`, iperf3 3.7 to 3.9 write each sum twice with one name.
#[derive(Debug)]
struct Members(Vec<(String, Value)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

impl Members {
    fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value)
    }

    /// The sums with this name: of the data from the client, and, with `--bidir`, of the data from the server.
    fn sums(&self, name: &str) -> Vec<Sum> {
        let reverse = format!("{name}{REVERSE}");
        let values = self.of(name).chain(self.of(&reverse));
        values.filter_map(|value| Sum::deserialize(value).ok()).collect()
    }
}

/// Reads the document of a client or of a server.
pub(super) fn read(text: &str) -> Result<Test, String> {
    // Some versions print warnings before the document (esnet/iperf, 3.7 to 3.9) or text after it.
    let document = text.find('{').map_or(text, |start| &text[start..]);
    let mut documents = serde_json::Deserializer::from_str(document).into_iter::<Document>();
    let found = documents.next().ok_or("it is empty")?;
    let found = found.map_err(|error| format!("it is no JSON document of iperf3 ({error})"))?;
    if let Some(error) = found.error {
        return Err(format!("iperf3 has failed: {error}"));
    }
    if found.schema.is_some_and(|schema| schema.starts_with("ropewalk.")) {
        return Err("it is a transfer of Ropewalk, over SCTP and any number of paths, not a test of one link by TCP".to_owned());
    }
    let (Some(start), Some(end)) = (found.start, found.end) else { return Err(other()) };
    let test = start.test_start.ok_or_else(other)?;
    let congestion = end.of("sender_tcp_congestion").find_map(Value::as_str).map(str::to_owned);
    let protocol = match test.protocol.as_str() {
        "TCP" => Protocol::Tcp { mss: start.tcp_mss_default, congestion },
        "UDP" => Protocol::Udp { block: test.blksize.max(1.0) },
        name => return Err(format!("protocol {name}: only TCP and UDP are evaluated")),
    };
    let (sent, received) = (end.sums("sum_sent"), end.sums("sum_received"));
    let both = end.sums("sum");
    let number = sent.len().max(received.len()).max(both.len());
    if number == 0 {
        return Err("no `end.sum_received` and no `end.sum`".to_owned());
    }
    let is_server = start.accepted_connection.is_some();
    let streams = end.of("streams").find_map(|value| Vec::<Stream>::deserialize(value).ok());
    let streams = streams.unwrap_or_default();
    let ways = (0..number.min(2)).map(|place| {
        let down = if number > 1 { place == 1 } else { test.reverse != 0 };
        let senders = streams.iter().filter_map(|stream| stream.sender.as_ref());
        let is_of_way = |sender: &&Sender| {
            number == 1 || sender.sender.is_none_or(|here| (here == is_server) == down)
        };
        Way {
            down,
            rtt_s: round_trips(senders.filter(is_of_way)),
            rates_bps: rates(&found.intervals, place),
            ..totals([both.get(place), sent.get(place), received.get(place)])
        }
    });
    Ok(Test { protocol, ways: ways.collect() })
}

fn other() -> String {
    "no `start.test_start` or no `end`: is it the output of `iperf3 --json`?".to_owned()
}

/// The totals of a direction: `sum`, which only UDP has, `sum_sent` and `sum_received`. The `sum` has the rate of the sender.
fn totals([both, sent, received]: [Option<&Sum>; 3]) -> Way {
    let counts = both.or(received).or(sent);
    Way {
        seconds: received.or(both).or(sent).map_or(0.0, |sum| sum.seconds),
        sent_bps: sent.or(both).and_then(|sum| sum.bits_per_second),
        received_bps: received.and_then(|sum| sum.bits_per_second),
        retransmissions: sent.and_then(|sum| sum.retransmits),
        lost: counts.and_then(|sum| sum.lost_packets),
        packets: counts.and_then(|sum| sum.packets),
        jitter_ms: counts.and_then(|sum| sum.jitter_ms),
        ..Way::default()
    }
}

fn round_trips<'a>(senders: impl Iterator<Item = &'a Sender>) -> Option<(f64, f64)> {
    let known = senders.filter(|sender| sender.min_rtt > 0.0);
    let range = known.map(|sender| (sender.min_rtt, sender.max_rtt));
    let range = range.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))?;
    Some((range.0 * 1e-6, range.1 * 1e-6))
}

/// The rates of complete intervals in this direction.
fn rates(intervals: &[Members], place: usize) -> Vec<f64> {
    let sums = intervals.iter().filter_map(|interval| interval.sums("sum").into_iter().nth(place));
    sums.filter(|sum| !sum.omitted && sum.seconds > 0.5)
        .filter_map(|sum| sum.bits_per_second)
        .collect()
}
