//! qlog files (draft-ietf-quic-qlog-main-schema): JSON text sequences (RFC 7464), one event per record.
//!
//! The events are those of this project's schema, [`SCHEMA`], which the reference page `qlog.md` describes. Times
//! are milliseconds since the trace began.

use std::io::{self, Write};

use ropewalk_base::{Duration, Serial32, Time};
use ropewalk_engine::PathCounters;
use ropewalk_engine::mptcp::{MpOption, Segment};
use ropewalk_engine::scheduler::PathView;
use ropewalk_engine::sctp::{
    Chunk, Data, DataFlags, ExtensionChunk, GapList, NrSack, Packet, Sack,
};
use serde_json::{Map, Value, json};

use crate::Direction;

/// Identifier of the event schema.
pub const SCHEMA: &str = "urn:ropewalk:qlog:events:multipath-1";
/// Separates the records (RFC 7464, 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// Writes a qlog file.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
}

/// Description of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// Title, such as the name of the scenario.
    pub title: &'a str,
    /// Name of the recording end, such as `sender`.
    pub vantage: &'a str,
    /// Whether this end opened the connection.
    pub opens: bool,
    /// When the trace began, in the format of RFC 3339. `None` in a simulation.
    pub wall_clock: Option<&'a str>,
}

/// The path and association of an event.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Name of the path.
    pub path: &'a str,
    /// Identifies one of several associations. `None` if the file records only one, or if the packet belongs to
    /// none.
    pub group: Option<&'a str>,
}

/// Congestion control and measurements of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Metrics {
    /// Smoothed round trip. `None` before the first sample.
    pub smoothed_rtt: Option<Duration>,
    /// Last sample of the round trip.
    pub latest_rtt: Option<Duration>,
    /// Variation of the round trip.
    pub rtt_variance: Duration,
    /// Congestion window, bytes.
    pub congestion_window: u64,
    /// Slow-start threshold, bytes. `None` before it was set.
    pub ssthresh: Option<u64>,
    /// Data in flight, bytes.
    pub bytes_in_flight: u64,
    /// Transmissions that counted as lost so far.
    pub lost_packets: u64,
    /// Retransmissions so far.
    pub retransmitted_packets: u64,
}

impl Metrics {
    /// The measurements of a path. A threshold of 0, or beyond all windows, has not been set yet.
    pub fn of(view: &PathView, counters: &PathCounters) -> Self {
        Self {
            smoothed_rtt: view.srtt,
            latest_rtt: view.last_rtt,
            rtt_variance: view.rttvar,
            congestion_window: view.cwnd,
            ssthresh: (1..u64::from(u32::MAX)).contains(&view.ssthresh).then_some(view.ssthresh),
            bytes_in_flight: view.in_flight,
            lost_packets: counters.lost,
            retransmitted_packets: counters.retransmitted,
        }
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

impl<W: Write> Writer<W> {
    /// Writes the header record.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(out: W, header: &Header<'_>) -> io::Result<Self> {
        let mut reference = json!({ "clock_type": "monotonic", "epoch": "unknown" });
        if let Some(at) = header.wall_clock {
            reference["wall_clock_time"] = at.into();
        }
        let mut writer = Self { out };
        writer.record(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": header.title,
            "trace": {
                "title": header.title,
                "common_fields": { "time_format": "relative_to_epoch", "reference_time": reference },
                "vantage_point": {
                    "name": header.vantage,
                    "type": if header.opens { "client" } else { "server" },
                },
                "event_schemas": [SCHEMA],
            },
        }))?;
        Ok(writer)
    }

    fn record(&mut self, record: &Value) -> io::Result<()> {
        self.out.write_all(&[RECORD_SEPARATOR])?;
        serde_json::to_writer(&mut self.out, record)?;
        self.out.write_all(b"\n")
    }

    fn event(&mut self, at: Time, place: Place<'_>, name: &str, data: Value) -> io::Result<()> {
        // The tuple is the generic field for the network path of an event.
        let time = millis(at.as_nanos());
        let mut record = json!({ "time": time, "name": name, "tuple": place.path, "data": data });
        if let Some(group) = place.group {
            record["group_id"] = group.into();
        }
        self.record(&record)
    }

    /// An SCTP packet of `length` bytes on the wire, headers below SCTP included.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn packet(
        &mut self,
        at: Time,
        place: Place<'_>,
        direction: Direction,
        length: u32,
        packet: &Packet,
    ) -> io::Result<()> {
        let name = match direction {
            Direction::In => "sctp:packet_received",
            Direction::Out => "sctp:packet_sent",
        };
        let chunks: Vec<Value> = packet.chunks.iter().map(chunk).collect();
        let mut data = json!({ "raw": { "length": length }, "chunks": chunks });
        if packet.ce {
            data["ecn"] = "CE".into();
        }
        self.event(at, place, name, data)
    }

    /// A TCP segment of `length` bytes on the wire, headers below TCP included.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn segment(
        &mut self,
        at: Time,
        place: Place<'_>,
        direction: Direction,
        length: u32,
        segment: &Segment,
    ) -> io::Result<()> {
        let name = match direction {
            Direction::In => "tcp:segment_received",
            Direction::Out => "tcp:segment_sent",
        };
        self.event(at, place, name, tcp(length, segment))
    }

    /// Measurements of a path. Write them when they have changed.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn metrics(&mut self, at: Time, place: Place<'_>, metrics: &Metrics) -> io::Result<()> {
        let mut data = json!({
            "congestion_window": metrics.congestion_window,
            "bytes_in_flight": metrics.bytes_in_flight,
            "lost_packets": metrics.lost_packets,
            "retransmitted_packets": metrics.retransmitted_packets,
        });
        if let Some(srtt) = metrics.smoothed_rtt {
            data["smoothed_rtt"] = millis(srtt.as_nanos()).into();
            data["rtt_variance"] = millis(metrics.rtt_variance.as_nanos()).into();
        }
        if let Some(latest) = metrics.latest_rtt {
            data["latest_rtt"] = millis(latest.as_nanos()).into();
        }
        if let Some(ssthresh) = metrics.ssthresh {
            data["ssthresh"] = ssthresh.into();
        }
        self.event(at, place, "path:metrics_updated", data)
    }

    /// Flushes the underlying writer.
    ///
    /// # Errors
    /// Those of the underlying writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Returns the underlying writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}

fn chunk(chunk: &Chunk) -> Value {
    match chunk {
        Chunk::Data(data) => data_chunk(data),
        Chunk::Sack(sack) => sack_chunk(sack),
        Chunk::Shutdown(cumulative) => {
            json!({ "type": chunk_name(chunk), "cumulative_tsn": cumulative.0 })
        }
        Chunk::Extension(extension) => extension_chunk(extension),
        _ => json!({ "type": chunk_name(chunk) }),
    }
}

/// The name of a chunk's type.
pub const fn chunk_name(chunk: &Chunk) -> &'static str {
    match chunk {
        Chunk::Data(data) if data.is_interleaved() => "I_DATA",
        Chunk::Data(_) => "DATA",
        Chunk::Sack(_) => "SACK",
        Chunk::Init(_) => "INIT",
        Chunk::InitAck(_) => "INIT_ACK",
        Chunk::CookieEcho(_) => "COOKIE_ECHO",
        Chunk::CookieAck => "COOKIE_ACK",
        Chunk::Error(_) => "ERROR",
        Chunk::Heartbeat(_) => "HEARTBEAT",
        Chunk::HeartbeatAck(_) => "HEARTBEAT_ACK",
        Chunk::Shutdown(_) => "SHUTDOWN",
        Chunk::ShutdownAck => "SHUTDOWN_ACK",
        Chunk::ShutdownComplete { .. } => "SHUTDOWN_COMPLETE",
        Chunk::Abort { .. } => "ABORT",
        Chunk::Extension(extension) => extension_name(extension),
        Chunk::Unknown(_) => "UNKNOWN",
    }
}

fn extension_chunk(extension: &ExtensionChunk) -> Value {
    match extension {
        ExtensionChunk::NrSack(sack) => nr_sack_chunk(sack),
        ExtensionChunk::DataFragment(fragment) => {
            let mut value = data_chunk(&fragment.part);
            value["type"] = "DATA_FRAGMENT".into();
            value["offset"] = fragment.offset.into();
            value["total"] = fragment.total.into();
            value
        }
        ExtensionChunk::ForwardTsn(forward) => skip_chunk("FORWARD_TSN", forward.cumulative),
        ExtensionChunk::IForwardTsn(forward) => skip_chunk("I_FORWARD_TSN", forward.cumulative),
        other => json!({ "type": extension_name(other) }),
    }
}

const fn extension_name(extension: &ExtensionChunk) -> &'static str {
    match extension {
        ExtensionChunk::NrSack(_) => "NR_SACK",
        ExtensionChunk::ForwardTsn(_) => "FORWARD_TSN",
        ExtensionChunk::IForwardTsn(_) => "I_FORWARD_TSN",
        ExtensionChunk::ReConfig(_) => "RE_CONFIG",
        ExtensionChunk::Asconf(..) => "ASCONF",
        ExtensionChunk::AsconfAck(..) => "ASCONF_ACK",
        ExtensionChunk::Auth(_) => "AUTH",
        ExtensionChunk::Pad(_) => "PAD",
        ExtensionChunk::Ecne(_) => "ECNE",
        ExtensionChunk::Cwr(_) => "CWR",
        ExtensionChunk::MarkCount(_) => "MARK_COUNT",
        ExtensionChunk::Heartbeat { answer: false, .. } => "HEARTBEAT",
        ExtensionChunk::Heartbeat { answer: true, .. } => "HEARTBEAT_ACK",
        ExtensionChunk::DataFragment(_) => "DATA_FRAGMENT",
    }
}

fn skip_chunk(name: &str, cumulative: Serial32) -> Value {
    json!({ "type": name, "cumulative_tsn": cumulative.0 })
}

fn data_chunk(data: &Data) -> Value {
    if data.is_interleaved() {
        return i_data_chunk(data);
    }
    let mut value = json!({
        "type": "DATA",
        "tsn": data.tsn.0,
        "stream_id": data.stream.0,
        "ssn": data.ssn.0,
        "length": data.payload.len(),
    });
    add_flags(&mut value, data.flags);
    value
}

fn i_data_chunk(data: &Data) -> Value {
    let mut value = json!({
        "type": "I_DATA",
        "tsn": data.tsn.0,
        "stream_id": data.stream.0,
        "message_id": data.message().0,
        "length": data.payload.len(),
    });
    // Only the first fragment has no number: the field contains the payload protocol identifier.
    if !data.flags.has(DataFlags::BEGIN) {
        value["fragment_number"] = data.fragment().into();
    }
    add_flags(&mut value, data.flags);
    value
}

/// Only unusual flags: a complete message in order has none of them.
fn add_flags(value: &mut Value, flags: DataFlags) {
    for (name, set) in [
        ("unordered", flags.has(DataFlags::UNORDERED)),
        ("immediate", flags.has(DataFlags::IMMEDIATE)),
        ("fragment", !flags.has(DataFlags::WHOLE)),
    ] {
        if set {
            value[name] = true.into();
        }
    }
}

/// Gap ack blocks as first and last TSN.
fn sack_chunk(sack: &Sack) -> Value {
    json!({
        "type": "SACK",
        "cumulative_tsn": sack.cumulative.0,
        "a_rwnd": sack.window,
        "gap_ack_blocks": gap_blocks(sack.cumulative, &sack.gaps),
        "duplicate_tsns": sack.duplicates.iter().map(|tsn| tsn.0).collect::<Vec<_>>(),
    })
}

fn nr_sack_chunk(sack: &NrSack) -> Value {
    json!({
        "type": "NR_SACK",
        "cumulative_tsn": sack.cumulative.0,
        "a_rwnd": sack.window,
        "gap_ack_blocks": gap_blocks(sack.cumulative, &sack.gaps),
        "nr_gap_ack_blocks": gap_blocks(sack.cumulative, &sack.kept),
        "duplicate_tsns": sack.duplicates.iter().map(|tsn| tsn.0).collect::<Vec<_>>(),
    })
}

fn gap_blocks(cumulative: Serial32, gaps: &GapList) -> Vec<[u32; 2]> {
    let tsn = |offset: u16| cumulative.plus(offset.into()).0;
    gaps.offsets(cumulative).map(|block| [tsn(block.start), tsn(block.end)]).collect()
}

fn tcp(length: u32, segment: &Segment) -> Value {
    let mut data = Map::new();
    let mut put = |key: &str, value: Value| data.insert(key.to_owned(), value);
    put("raw", json!({ "length": length }));
    put("seq", segment.seq.into());
    put("length", segment.payload.len().into());
    put("window", segment.window.into());
    if segment.acks {
        put("ack", segment.ack.into());
    }
    if !segment.payload.is_empty() {
        put("dsn", segment.dsn.into());
    }
    if let Some(data_ack) = segment.data_ack {
        put("data_ack", data_ack.into());
    }
    for (name, set) in [("syn", segment.syn), ("rst", segment.rst), ("data_fin", segment.data_fin)]
    {
        if set {
            put(name, true.into());
        }
    }
    if !segment.sacks.is_empty() {
        put("sack_blocks", segment.sacks.iter().map(|(a, b)| json!([a, b])).collect());
    }
    match segment.option {
        MpOption::None => {}
        MpOption::Capable { .. } => drop(put("option", "MP_CAPABLE".into())),
        MpOption::Join { .. } => drop(put("option", "MP_JOIN".into())),
        MpOption::FastClose => drop(put("option", "MP_FASTCLOSE".into())),
    }
    Value::Object(data)
}

#[cfg(test)]
mod tests {
    use ropewalk_base::{Serial16, StreamId};
    use ropewalk_engine::Payload;
    use ropewalk_engine::sctp::GapBlock;

    use super::*;

    fn records(bytes: &[u8]) -> Vec<Value> {
        let text = std::str::from_utf8(bytes).unwrap();
        let records = text.split('\u{1e}').skip(1);
        let read = |record: &str| serde_json::from_str(record.strip_suffix('\n').unwrap()).unwrap();
        records.map(read).collect()
    }

    fn on<'a>(path: &'a str, group: Option<&'a str>) -> Place<'a> {
        Place { path, group }
    }

    #[test]
    fn chunks_of_extensions_have_the_fields_that_an_analysis_needs() {
        let data = Data {
            tsn: Serial32(9),
            stream: StreamId(2),
            ssn: Serial16(5),
            ppid: 3,
            flags: DataFlags::INTERLEAVED,
            message_high: 1,
            payload: Payload::Length(100),
            first_sent: Time::ZERO,
        };
        assert_eq!(
            chunk(&Chunk::Data(data)),
            json!({ "type": "I_DATA", "tsn": 9, "stream_id": 2, "message_id": 65_541, "length": 100,
                    "fragment_number": 3, "fragment": true })
        );
        let cumulative = Serial32(100);
        let blocks = |start, end| GapList::from_offsets(cumulative, [GapBlock { start, end }]);
        let sack = NrSack {
            cumulative,
            window: 45_000,
            gaps: blocks(2, 3),
            kept: blocks(5, 5),
            duplicates: Vec::new(),
            data_packets: 0,
        };
        assert_eq!(
            chunk(&Chunk::Extension(Box::new(ExtensionChunk::NrSack(sack)))),
            json!({ "type": "NR_SACK", "cumulative_tsn": 100, "a_rwnd": 45_000,
                    "gap_ack_blocks": [[102, 103]], "nr_gap_ack_blocks": [[105, 105]],
                    "duplicate_tsns": [] })
        );
    }

    #[test]
    fn each_record_is_one_json_text_after_a_separator() {
        let header = Header { title: "wifi-lte", vantage: "sender", opens: true, wall_clock: None };
        let mut writer = Writer::new(Vec::new(), &header).unwrap();
        let data = Data {
            tsn: Serial32(u32::MAX),
            stream: StreamId(3),
            ssn: Serial16(4),
            ppid: 0,
            flags: DataFlags::WHOLE.and(DataFlags::UNORDERED),
            message_high: 0,
            payload: Payload::Length(1428),
            first_sent: Time::ZERO,
        };
        let at = Time::from_millis(7);
        let (wifi, lte) = (on("wifi", Some("1")), on("lte", None));
        let sent = Packet::of(1, Chunk::Data(data));
        writer.packet(at, wifi, Direction::Out, 1500, &sent).unwrap();
        let blocks = [GapBlock { start: 2, end: 3 }];
        let sack = Sack {
            cumulative: Serial32(u32::MAX),
            window: 45_000,
            gaps: GapList::from_offsets(Serial32(u32::MAX), blocks),
            duplicates: vec![Serial32(8)],
            data_packets: 1,
            number: None,
        };
        let received = Packet::of(1, Chunk::Sack(sack));
        writer.packet(at, lte, Direction::In, 52, &received).unwrap();
        let metrics = Metrics {
            smoothed_rtt: Some(Duration::from_micros(1500)),
            congestion_window: 4380,
            ..Metrics::default()
        };
        writer.metrics(at, lte, &metrics).unwrap();
        let segment =
            Segment { syn: true, option: MpOption::Capable { key: 1 }, ..Segment::default() };
        writer.segment(at, lte, Direction::Out, 60, &segment).unwrap();

        let found = records(&writer.into_inner());
        assert_eq!(found[0]["trace"]["event_schemas"], json!([SCHEMA]));
        assert_eq!(found[0]["trace"]["vantage_point"]["type"], "client");
        assert_eq!((&found[1]["time"], &found[1]["tuple"]), (&json!(7.0), &json!("wifi")));
        assert_eq!(found[1]["name"], "sctp:packet_sent");
        assert_eq!((&found[1]["group_id"], &found[2]["group_id"]), (&json!("1"), &Value::Null));
        assert_eq!(
            found[1]["data"]["chunks"][0],
            json!({ "type": "DATA", "tsn": u32::MAX, "stream_id": 3, "ssn": 4, "length": 1428,
                    "unordered": true })
        );
        assert_eq!(found[2]["data"]["chunks"][0]["gap_ack_blocks"], json!([[1, 2]]));
        assert_eq!(found[3]["data"]["smoothed_rtt"], 1.5);
        assert_eq!(found[4]["data"]["option"], "MP_CAPABLE");
        assert_eq!(found.len(), 5);
    }
}
