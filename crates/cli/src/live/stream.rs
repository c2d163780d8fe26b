//! `--json-stream`: one JSON object per line on stdout, in the shape of iperf3's option of that name.
//!
//! ```text
//!   {"event":"start","data":{...}}      once
//!   {"event":"interval","data":{...}}   each interval: streams (links), and their sum
//!   {"event":"link down","data":{...}}  each event of the vocabulary
//!   {"event":"end","data":{...}}        once
//! ```

use std::collections::BTreeMap;

use ropewalk_apps::observe::{EventRecord, EventStatus, Ledger, Sink, Status, Track, state_word};
use serde_json::{Map, Value, json};

use crate::files::VERSION;
use crate::output;

/// Direction of the counted user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Data that this end sends.
    Sent,
    /// Data that this end receives.
    Received,
    /// Both.
    Both,
}

impl Flow {
    /// The directions, as the value of `sender`.
    const fn senders(self) -> &'static [bool] {
        match self {
            Self::Sent => &[true],
            Self::Received => &[false],
            Self::Both => &[true, false],
        }
    }
}

/// Counters of one link to one peer.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    sent_bytes: u64,
    received_bytes: u64,
    retransmits: u64,
}

impl Count {
    const fn bytes(&self, sender: bool) -> u64 {
        if sender { self.sent_bytes } else { self.received_bytes }
    }
}

/// A link to a peer.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    socket: u64,
    count: Count,
}

/// Writes the stream.
#[derive(Debug)]
pub struct JsonStream {
    flow: Flow,
    streams: BTreeMap<(String, String), Stream>,
    /// End of the last interval, seconds since the start.
    last_s: f64,
}

impl JsonStream {
    /// Writes the first line.
    pub fn start(command: &str, flow: Flow) -> Self {
        let time_s = ropewalk_runtime::clock::unix_time().as_secs();
        let data = json!({
            "schema": "ropewalk.stream/1",
            "version": format!("ropewalk {VERSION}"),
            "command": command,
            "pid": std::process::id(),
            "timestamp": { "timesecs": time_s },
        });
        put("start", data);
        Self { flow, streams: BTreeMap::new(), last_s: 0.0 }
    }

    /// The objects of an interval: one per link and direction, and the sum of each direction.
    fn carried(&mut self, end_s: f64, ledger: &Ledger) -> Value {
        let mut streams = Vec::new();
        let mut sum = Count::default();
        for (key, totals) in &ledger.links {
            let next = self.streams.len() as u64 + 1;
            let stream = self
                .streams
                .entry(key.clone())
                .or_insert(Stream { socket: next, ..Stream::default() });
            let now = Count {
                sent_bytes: totals.data_sent_bytes,
                received_bytes: totals.data_received_bytes,
                retransmits: totals.retransmitted,
            };
            let grown = Count {
                sent_bytes: now.sent_bytes - stream.count.sent_bytes,
                received_bytes: now.received_bytes - stream.count.received_bytes,
                retransmits: now.retransmits - stream.count.retransmits,
            };
            stream.count = now;
            sum.sent_bytes += grown.sent_bytes;
            sum.received_bytes += grown.received_bytes;
            sum.retransmits += grown.retransmits;
            let is_it = |track: &&Track| (&track.peer, &track.link) == (&key.0, &key.1);
            let track = ledger.paths.values().find(is_it);
            for sender in self.flow.senders() {
                let mut object = stretch(&grown, *sender, (self.last_s, end_s));
                object.insert("socket".to_owned(), json!(stream.socket));
                describe(&mut object, key, track, *sender);
                streams.push(Value::Object(object));
            }
        }
        let mut data = json!({ "streams": streams });
        for (sender, name) in self.flow.senders().iter().zip(["sum", "sum_bidir_reverse"]) {
            data[name] = Value::Object(stretch(&sum, *sender, (self.last_s, end_s)));
        }
        self.last_s = end_s;
        data
    }

    /// The objects that summarise the entire run.
    fn whole(&self, end_s: f64) -> Value {
        let mut sum = Count::default();
        let mut streams = Vec::new();
        for ((peer, link), stream) in &self.streams {
            let count = &stream.count;
            sum.sent_bytes += count.sent_bytes;
            sum.received_bytes += count.received_bytes;
            sum.retransmits += count.retransmits;
            let mut both = Map::new();
            for sender in self.flow.senders() {
                let mut object = stretch(count, *sender, (0.0, end_s));
                object.insert("socket".to_owned(), json!(stream.socket));
                object.insert("link".to_owned(), json!(link));
                object.insert("peer".to_owned(), json!(peer));
                let name = if *sender { "sender" } else { "receiver" };
                both.insert(name.to_owned(), Value::Object(object));
            }
            streams.push(Value::Object(both));
        }
        let mut data = json!({ "streams": streams });
        for sender in self.flow.senders() {
            let name = if *sender { "sum_sent" } else { "sum_received" };
            data[name] = Value::Object(stretch(&sum, *sender, (0.0, end_s)));
        }
        data
    }
}

/// Data carried in a period, with iperf3's names.
fn stretch(count: &Count, sender: bool, (start, end): (f64, f64)) -> Map<String, Value> {
    let (bytes, seconds) = (count.bytes(sender), end - start);
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let object = json!({
        "start": start,
        "end": end,
        "seconds": seconds,
        "bytes": bytes,
        "bits_per_second": rate,
        "sender": sender,
    });
    let Value::Object(mut object) = object else { unreachable!("an object was written above") };
    if sender {
        object.insert("retransmits".to_owned(), json!(count.retransmits));
    }
    object
}

fn describe(
    object: &mut Map<String, Value>,
    (peer, link): &(String, String),
    track: Option<&Track>,
    sender: bool,
) {
    object.insert("link".to_owned(), json!(link));
    object.insert("peer".to_owned(), json!(peer));
    let Some(track) = track else { return };
    object.insert("state".to_owned(), json!(state_word(track.stats.status)));
    if let Some(srtt_s) = track.stats.srtt_s {
        object.insert("rtt".to_owned(), json!((srtt_s * 1e6) as u64));
    }
    if sender {
        object.insert("snd_cwnd".to_owned(), json!(track.stats.cwnd_bytes));
    }
}

fn put(event: &str, data: Value) {
    // Errors are ignored: a reader that is gone needs no further lines.
    let _ = output::print(&format!("{{\"event\":{},\"data\":{data}}}\n", json!(event)));
}

impl Sink for JsonStream {
    fn event(&mut self, record: &EventRecord) {
        if record.event.is_private() {
            return;
        }
        let event = EventStatus::of(record);
        put(
            &event.event,
            json!({ "time_s": event.time_s, "peer": event.peer, "link": event.link, "text": event.text }),
        );
    }

    fn tick(&mut self, _: &Status, _: &Ledger) {}

    fn uses_time(&self) -> bool {
        true
    }

    fn interval(&mut self, status: &Status, ledger: &Ledger) {
        if !ledger.links.is_empty() && status.uptime_s > self.last_s {
            let data = self.carried(status.uptime_s, ledger);
            put("interval", data);
        }
    }

    fn end(&mut self, status: &Status, _: &Ledger) {
        let mut data = self.whole(self.last_s);
        if let Some(transfer) = status.transfer {
            data["transfer"] = json!(transfer);
        }
        put("end", data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ledger(sent: u64, received: u64, retransmitted: u64) -> Ledger {
        let mut ledger = Ledger::default();
        let totals = ledger.links.entry(("anna".to_owned(), "wlan0".to_owned())).or_default();
        totals.data_sent_bytes = sent;
        totals.data_received_bytes = received;
        totals.retransmitted = retransmitted;
        ledger
    }

    #[test]
    fn intervals_have_what_came_in_them_and_the_end_has_everything() {
        let mut stream = JsonStream { flow: Flow::Both, streams: BTreeMap::new(), last_s: 0.0 };
        let first = stream.carried(1.0, &ledger(1_000, 500, 1));
        assert_eq!(first["sum"]["bits_per_second"], 8_000.0);
        let second = stream.carried(3.0, &ledger(4_000, 700, 1));
        let sent = &second["streams"][0];
        assert_eq!(
            (&sent["socket"], &sent["bytes"], &sent["retransmits"]),
            (&json!(1), &json!(3_000), &json!(0))
        );
        assert_eq!(
            (&sent["start"], &sent["end"], &sent["sender"]),
            (&json!(1.0), &json!(3.0), &json!(true))
        );
        assert_eq!((&sent["link"], &sent["peer"]), (&json!("wlan0"), &json!("anna")));
        assert_eq!(second["sum_bidir_reverse"]["bytes"], 200);
        let end = stream.whole(3.0);
        assert_eq!(
            (&end["sum_sent"]["bytes"], &end["sum_received"]["bytes"]),
            (&json!(4_000), &json!(700))
        );
        assert_eq!(end["streams"][0]["receiver"]["bytes"], 700);
    }
}
