//! The packets of a run as one Arrow table. Every column is declared here, once.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, UInt64Array};
use arrow_schema::{ArrowError, Metadata};
use ropewalk_base::Time;

use super::batch::SeriesOrigin;
use super::columns::Columns;
use crate::packet_log::{PacketRecord, Packets};

/// The schema's name in the table's metadata.
const SCHEMA: &str = "ropewalk.packets/1";

/// A column of the table of packets.
#[derive(Debug)]
pub struct PacketColumn {
    /// Name.
    pub name: &'static str,
    /// Unit, or type where there is none.
    pub unit: &'static str,
    /// What it means.
    pub meaning: &'static str,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Path,
    Text(fn(&PacketRecord) -> &'static str),
    Time(fn(&PacketRecord) -> Time),
    TimeOrNull(fn(&PacketRecord) -> Option<Time>),
    Count(fn(&PacketRecord) -> u32),
    CountOrNull(fn(&PacketRecord) -> Option<u64>),
    Flag(fn(&PacketRecord) -> bool),
}

const fn column(
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    values: Values,
) -> PacketColumn {
    PacketColumn { name, unit, meaning, values }
}

/// The columns in their order.
pub const PACKET_COLUMNS: &[PacketColumn] = &[
    column(
        "sent_s",
        "s",
        "When it was sent, s since the start.",
        Values::Time(|packet| packet.sent),
    ),
    column(
        "received_s",
        "s",
        "When it first arrived, s since the start; null if it has not arrived.",
        Values::TimeOrNull(|packet| packet.received),
    ),
    column(
        "dropped",
        "true or false",
        "Whether the network dropped it. A packet that was neither received nor dropped was on the way at the end.",
        Values::Flag(|packet| packet.dropped),
    ),
    column("path", "text", "Name of the path.", Values::Path),
    column(
        "direction",
        "text",
        "`up` from the sender of the data to its receiver, `down` from the receiver to the sender.",
        Values::Text(|packet| packet.way.name()),
    ),
    column(
        "kind",
        "text",
        "`DATA` with user data; otherwise the type of the first chunk, as `SACK`, or `SYN`, `ACK`, `DATA_FIN` or `RST` under TCP.",
        Values::Text(|packet| packet.contents.kind),
    ),
    column(
        "size_bytes",
        "B",
        "Size on the wire, all headers included, bytes.",
        Values::Count(|packet| packet.size),
    ),
    column(
        "payload_bytes",
        "B",
        "User data, bytes.",
        Values::Count(|packet| packet.contents.payload),
    ),
    column(
        "chunks",
        "count",
        "Number of DATA chunks; under TCP 1 with user data.",
        Values::Count(|packet| packet.contents.chunks),
    ),
    column(
        "tsn",
        "number",
        "TSN of the first DATA chunk; null without one, and under TCP.",
        Values::CountOrNull(|packet| packet.contents.tsn.map(u64::from)),
    ),
    column(
        "dsn",
        "number",
        "Under TCP, data sequence number of the first byte; null without user data, and under SCTP.",
        Values::CountOrNull(|packet| packet.contents.dsn),
    ),
    column(
        "retransmission",
        "true or false",
        "Whether an earlier packet carried some of its user data, on any path.",
        Values::Flag(|packet| packet.contents.retransmission),
    ),
];

impl Values {
    const fn is_nullable(&self) -> bool {
        matches!(self, Self::TimeOrNull(_) | Self::CountOrNull(_))
    }

    fn array(&self, packets: &Packets) -> ArrayRef {
        let records = packets.records.iter();
        match self {
            Self::Path => Arc::new(StringArray::from_iter_values(
                records.map(|packet| &packets.paths[usize::from(packet.path)]),
            )),
            Self::Text(read) => Arc::new(StringArray::from_iter_values(records.map(read))),
            Self::Time(read) => Arc::new(Float64Array::from_iter_values(
                records.map(|packet| read(packet).as_secs_f64()),
            )),
            Self::TimeOrNull(read) => Arc::new(
                records.map(|packet| read(packet).map(Time::as_secs_f64)).collect::<Float64Array>(),
            ),
            Self::Count(read) => Arc::new(UInt64Array::from_iter_values(
                records.map(|packet| u64::from(read(packet))),
            )),
            Self::CountOrNull(read) => Arc::new(records.map(read).collect::<UInt64Array>()),
            Self::Flag(read) => Arc::new(BooleanArray::from(records.map(read).collect::<Vec<_>>())),
        }
    }
}

/// The packets as a table: one row per packet, [`PACKET_COLUMNS`]. The metadata has `schema`, `scenario`, `seed`,
/// `version`, and `cut_s` if packets are missing from that time on.
///
/// # Errors
/// If the columns do not form a table.
pub fn packets_to_record_batch(
    packets: &Packets,
    origin: &SeriesOrigin,
) -> Result<RecordBatch, ArrowError> {
    let mut columns = Columns::default();
    for PacketColumn { name, values, .. } in PACKET_COLUMNS {
        columns.add(*name, values.array(packets), values.is_nullable());
    }
    let mut metadata = BTreeMap::from(
        [
            ("schema", SCHEMA),
            ("scenario", origin.scenario_toml.as_str()),
            ("seed", origin.seed.as_str()),
            ("version", origin.version.as_str()),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    if let Some(cut) = packets.cut {
        metadata.insert("cut_s".to_owned(), cut.as_secs_f64().to_string());
    }
    columns.into_batch(Metadata::from(metadata))
}
