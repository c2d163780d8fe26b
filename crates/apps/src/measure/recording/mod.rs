//! A link from a recording of packets: round-trip time, rate and loss of the largest transfer in a capture file.
//!
//! The capture may come from either end or from a point between them. The round trip has two parts: from the
//! capture to the receiver and back, by data and its acknowledgement, and from the capture to the sender and back,
//! by TCP's timestamps (RFC 7323) or the handshake.

mod chunks;
mod congestion;
mod flow;
mod frames;
mod ip;
mod layers;
mod packets;
#[cfg(test)]
mod tests;
mod transfer;
#[cfg(test)]
mod variants;

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::net::SocketAddr;

use self::flow::Flows;
use self::frames::Frames;
use self::packets::Packet;
use self::transfer::Transfer;
use super::estimate::LossFit;
use super::gzip::{Damage, Plain};

/// A transfer in a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// The protocol of the transfer.
    pub protocol: RecordedProtocol,
    /// Packets in the file.
    pub packets: u64,
    /// The file ends within a packet, or within compressed data.
    pub cut: bool,
    /// Other flows of TCP or SCTP with data in the file.
    pub other_flows: usize,
    /// Time from the first to the last data packet, seconds.
    pub seconds: f64,
    /// The paths that carried data: one with TCP.
    pub paths: Vec<RecordedPath>,
}

/// A protocol whose transfers are evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordedProtocol {
    /// TCP.
    Tcp,
    /// SCTP, including SCTP in UDP.
    Sctp,
}

/// Properties of a path in a capture.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedPath {
    /// The sender of the data.
    pub from: SocketAddr,
    /// The receiver of the data.
    pub to: SocketAddr,
    /// Packets with data.
    pub packets: u64,
    /// Size of the largest IP packet with data, bytes. Larger than the MTU if a network card splits segments.
    pub largest_bytes: u32,
    /// Round trips, seconds, in the order of the acknowledgements; both parts together.
    pub rtts_s: Vec<f64>,
    /// The part of each round trip between the capture and the sender, if it is known, seconds.
    pub sender_part_s: Option<f64>,
    /// Round-trip time of a packet of size zero over the empty path, seconds. Zero if no round trip is known.
    pub empty_rtt_s: f64,
    /// Acknowledged bits of IP packets per second: 95th percentile over the seconds of the transfer.
    pub peak_bps: f64,
    /// The same over the entire transfer.
    pub mean_bps: f64,
    /// Rise of the delay at the queue, excluding the longest hundredth of the samples, seconds. Zero if the capture
    /// does not show it.
    pub rise_s: f64,
    /// The overflow of the queue, if losses show one.
    pub overflow: Option<Overflow>,
    /// Losses in sending order: data that was seen twice, or that filled a gap late. Excludes those of a full queue.
    pub loss: LossFit,
    /// Packets that filled a gap early enough to have been reordered.
    pub reordered: u64,
}

/// Properties of a queue that has overflowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Overflow {
    /// The delay of the full queue, seconds.
    pub delay_s: f64,
    /// Units of data that it has dropped.
    pub drops: usize,
}

/// Why there is no measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordingError {
    /// The file cannot be read.
    #[error("cannot be read")]
    Read,
    /// The file is neither pcap nor pcapng.
    #[error("is neither pcap nor pcapng")]
    Format,
    /// The file is damaged.
    #[error("is damaged")]
    Damaged,
    /// The file has no TCP or SCTP data.
    #[error("has no packet with data of TCP or SCTP that is not encrypted")]
    NoData,
    /// The file has no readable data; most packets are of this kind.
    #[error("has no data of TCP or SCTP that can be read: it has {0}")]
    Hidden(&'static str),
    /// The data of the largest flow is not acknowledged.
    #[error("has no acknowledgements of its largest flow of data")]
    NotAcknowledged,
    /// The recording is longer than the evaluation permits.
    #[error("has a flow that is too long to be evaluated: more than 6 000 000 packets, or a day")]
    TooLong,
}

/// Evaluates the largest transfer in a capture file, pcap or pcapng, also compressed by gzip. The file is read twice.
///
/// # Errors
/// [`RecordingError`].
pub fn from_capture(mut file: impl Read + Seek + Send) -> Result<Recording, RecordingError> {
    let mut flows = Flows::default();
    let mut hidden: BTreeMap<&'static str, u64> = BTreeMap::new();
    let frames = for_each(&mut file, |packet| {
        match packet {
            Ok(packet) => flows.count(packet),
            Err(Some(name)) => *hidden.entry(name).or_default() += 1,
            Err(None) => {}
        }
        Ok(())
    })?;
    let most = hidden.into_iter().max_by_key(|(_, packets)| *packets);
    let nothing = most.map_or(RecordingError::NoData, |(name, _)| RecordingError::Hidden(name));
    let (flow, other_flows) = flows.largest().ok_or(nothing)?;
    let mut transfer = Transfer::new(flow);
    for_each(&mut file, |packet| packet.map_or(Ok(()), |packet| transfer.take(packet)))?;
    let (protocol, seconds, paths) = transfer.finish()?;
    let Frames { number: packets, cut } = frames;
    Ok(Recording { protocol, packets, cut, other_flows, seconds, paths })
}

/// Calls `take` with each packet of the file, as [`packets::for_each`] does.
fn for_each(
    file: &mut (impl Read + Seek + Send),
    take: impl FnMut(Result<&Packet<'_>, layers::Hidden>) -> Result<(), RecordingError>,
) -> Result<Frames, RecordingError> {
    file.seek(SeekFrom::Start(0)).map_err(|_| RecordingError::Read)?;
    let mut plain = Plain::new(BufReader::new(file)).map_err(|_| RecordingError::Read)?;
    let found = packets::for_each(&mut plain, take);
    match plain.damage() {
        Some(Damage::Invalid) => Err(RecordingError::Damaged),
        Some(Damage::Cut) => found.map(|frames| Frames { cut: true, ..frames }),
        None => found,
    }
}

impl RecordedProtocol {
    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Sctp => "SCTP",
        }
    }
}
