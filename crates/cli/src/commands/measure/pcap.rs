//! Creates a scenario from a packet capture.

use std::fmt::Write;
use std::fs::File;
use std::path::Path;

use ropewalk_apps::measure::estimate::quantile;
use ropewalk_apps::measure::recording::{
    RecordedPath, RecordedProtocol, Recording, RecordingError, from_capture,
};

use super::comparison::{Carried, CarriedBy};
use super::recorded::{loss_key, queue_bound};

/// Why a capture yields no scenario.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    #[error("{0}")]
    Open(std::io::Error),
    #[error("{0}")]
    Content(RecordingError),
}

/// The paths of the largest transfer in a capture, as tables of a scenario, and the data that it has
/// carried.
///
/// # Errors
/// [`PcapError`].
pub fn read(file: &Path) -> Result<(String, Carried), PcapError> {
    let opened = File::open(file).map_err(PcapError::Open)?;
    let found = from_capture(opened).map_err(PcapError::Content)?;
    let by = match found.protocol {
        RecordedProtocol::Tcp => CarriedBy::Tcp(None),
        RecordedProtocol::Sctp => CarriedBy::Sctp,
    };
    let bps = found.paths.iter().map(|path| path.mean_bps).sum();
    Ok((tables(&found), Carried { bps, seconds: found.seconds, by }))
}

fn tables(found: &Recording) -> String {
    let mut text = format!(
        "# Capture of {} packets: the largest transfer, {} for {:.1} s; {} other flows have data.\n",
        found.packets,
        found.protocol.name(),
        found.seconds,
        found.other_flows
    );
    if found.cut {
        text += "# The file is cut: it ends within a packet or within compressed data.\n";
    }
    for (number, path) in found.paths.iter().enumerate() {
        let _ = write!(text, "\n[[path]]\n# {} to {}\n", path.from, path.to);
        if found.paths.len() > 1 {
            let _ = writeln!(text, "name = \"path{}\"", number + 1);
        }
        text += &keys(found.protocol, path);
    }
    text
}

fn keys(protocol: RecordedProtocol, path: &RecordedPath) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "# What was acknowledged in the best seconds (95th percentile), IP headers included; {:.3} Mbit/s over the whole time. The link may \
         carry\n# more.\nrate = \"{:.3} Mbit/s\"",
        path.mean_bps / 1e6,
        path.peak_bps / 1e6
    );
    if !path.rtts_s.is_empty() {
        text += &round_trip(path);
    }
    let unit = match protocol {
        RecordedProtocol::Tcp => "segments",
        RecordedProtocol::Sctp => "chunks",
    };
    if let Some(overflow) = path.overflow {
        let _ = writeln!(
            text,
            "# {} {unit} were lost while the queue was full: they are the queue's, and not in `loss`.\nqueue = \"{:.0} B\"",
            overflow.drops,
            overflow.delay_s * path.peak_bps / 8.0
        );
    } else if !path.rtts_s.is_empty() {
        text += &queue_bound("", path.rise_s * path.peak_bps / 8.0, path.rise_s);
    }
    let loss = &path.loss;
    let others = if path.overflow.is_some() { ", sent while the queue was not full," } else { "" };
    let _ = writeln!(
        text,
        "# {} of {} {unit}{others} were sent again or filled a gap late: {:.3} % to {:.3} % with 99 % confidence. Those that \
         were sent again\n# without need are among them. {} packets came out of order.",
        loss.lost,
        loss.sent,
        loss.low * 100.0,
        loss.high * 100.0,
        path.reordered
    );
    text + &loss_key(loss)
}

fn round_trip(path: &RecordedPath) -> String {
    let at = |share| quantile(&path.rtts_s, share);
    let part = match path.sender_part_s {
        Some(part) => format!("{:.2} ms of it between the sender and the capture", part * 1e3),
        None => {
            "without the part between the sender and the capture, which is not known".to_owned()
        }
    };
    format!(
        "# Least of {} round trips, {part}, less the time that a packet takes to enter the link: median {:.1} ms, 95th percentile {:.1} ms, 99th {:.1} ms.\n\
         rtt = \"{:.3} ms\"\n",
        path.rtts_s.len(),
        at(0.5) * 1e3,
        at(0.95) * 1e3,
        at(0.99) * 1e3,
        (path.empty_rtt_s * 1e3).max(0.001),
    )
}
