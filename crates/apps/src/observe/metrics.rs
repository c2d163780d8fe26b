//! Metrics in OpenMetrics' text format, and in the older text format of Prometheus.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use ropewalk_runtime::endpoint::{DELAY_BOUNDS_NS, DelayCounts};

use super::event::Event;
use super::ledger::{Ledger, LinkTotals, PeerTotals, Track};
use super::status::{LinkCap, Transfer, TunnelFigures, use_word};

/// The figures for the metrics.
#[derive(Debug, Default)]
pub struct Figures {
    /// Totals and the current state.
    pub ledger: Ledger,
    /// Number of events of each kind, in the order of [`Event::NAMES`].
    pub events: [u64; Event::NAMES.len()],
    /// Progress of a file transfer.
    pub transfer: Option<Transfer>,
    /// State of a tunnel.
    pub tunnel: Option<TunnelFigures>,
    /// Version of Ropewalk.
    pub version: &'static str,
}

/// Media type of OpenMetrics.
pub const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Media type of the older format.
pub const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The metrics of the command, with their media type. `accept` lists the media types that the client accepts.
pub fn encode(figures: &Arc<Mutex<Figures>>, accept: &str) -> (String, &'static str) {
    encode_collector(Box::new(Shared(figures.clone())), accept)
}

/// Encodes a collector's metrics in a format that the client accepts, with its media type.
pub(super) fn encode_collector(
    collector: Box<dyn Collector>,
    accept: &str,
) -> (String, &'static str) {
    let mut registry = Registry::with_prefix("ropewalk");
    registry.register_collector(collector);
    let mut out = String::new();
    let is_open = accept.contains("application/openmetrics-text");
    let done = if is_open {
        text::encode(&mut out, &registry)
    } else {
        prometheus_text::encode(&mut out, &registry)
    };
    // Writing to a string does not fail.
    debug_assert!(done.is_ok());
    (out, if is_open { OPENMETRICS } else { PLAIN })
}

#[derive(Debug)]
struct Shared(Arc<Mutex<Figures>>);

impl Collector for Shared {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let figures = self.0.lock();
        let ledger = &figures.ledger;
        let mut out = Out { encoder: &mut encoder };
        out.gauge("build_info", "Version of Ropewalk", None, |m| {
            m.encode_family(&[("version", figures.version)])?.encode_gauge(&1)
        })?;
        link_counters(&mut out, ledger)?;
        path_gauges(&mut out, ledger)?;
        peers(&mut out, ledger)?;
        out.counter("events", "Events since the start, by kind", None, |m| {
            Event::NAMES.iter().zip(&figures.events).try_for_each(|(name, count)| {
                count_of(&mut m.encode_family(&[("event", *name)])?, *count)
            })
        })?;
        let help = "Received datagrams that belonged to no association";
        out.counter("unknown_datagrams", help, None, |m| count_of(m, ledger.unknown_datagrams))?;
        transfer(&mut out, figures.transfer)?;
        figures.tunnel.as_ref().map_or(Ok(()), |figures| tunnel(&mut out, figures))
    }
}

/// Writes families of metrics.
pub(super) struct Out<'a, 'b> {
    pub(super) encoder: &'a mut DescriptorEncoder<'b>,
}

impl Out<'_, '_> {
    fn family(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        kind: MetricType,
        write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        write(&mut self.encoder.encode_descriptor(name, help, unit.as_ref(), kind)?)
    }

    pub(super) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        self.family(name, help, unit, MetricType::Gauge, write)
    }

    pub(super) fn counter(
        &mut self,
        name: &str,
        help: &str,
        unit: Option<Unit>,
        write: impl FnOnce(&mut MetricEncoder<'_>) -> fmt::Result,
    ) -> fmt::Result {
        self.family(name, help, unit, MetricType::Counter, write)
    }

    /// A counter with a value per link and peer.
    fn per_link(
        &mut self,
        ledger: &Ledger,
        (name, help, unit): (&str, &str, Option<Unit>),
        value: impl Fn(&LinkTotals) -> u64,
    ) -> fmt::Result {
        self.counter(name, help, unit, |m| {
            ledger.links.iter().try_for_each(|((peer, link), totals)| {
                let labels = [("link", link.as_str()), ("peer", peer.as_str())];
                count_of(&mut m.encode_family(&labels)?, value(totals))
            })
        })
    }
}

/// Writes one value of a counter.
pub(super) fn count_of(metric: &mut MetricEncoder<'_>, count: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, _, u64>(&count, None)
}

fn histogram(metric: &mut MetricEncoder<'_>, delays: &DelayCounts) -> fmt::Result {
    let bounds = DELAY_BOUNDS_NS.iter().map(|ns| *ns as f64 * 1e-9).chain([f64::INFINITY]);
    let buckets: Vec<(f64, u64)> = bounds.zip(delays.classes).collect();
    let count = delays.classes.iter().sum();
    metric.encode_histogram::<NoLabelSet>(delays.sum_s, count, &buckets, None)
}

fn link_counters(out: &mut Out<'_, '_>, ledger: &Ledger) -> fmt::Result {
    let bytes = Some(Unit::Bytes);
    let sent = ("path_sent", "IP packets that were sent, headers included", bytes.clone());
    out.per_link(ledger, sent, |link| link.sent.1)?;
    let received = ("path_received", "IP packets that arrived, headers included", bytes.clone());
    out.per_link(ledger, received, |link| link.received.1)?;
    let sent = ("path_sent_packets", "IP packets that were sent", None);
    out.per_link(ledger, sent, |link| link.sent.0)?;
    let received = ("path_received_packets", "IP packets that arrived", None);
    out.per_link(ledger, received, |link| link.received.0)?;
    let resent = ("path_retransmitted_chunks", "DATA chunks that were sent again", None);
    out.per_link(ledger, resent, |link| link.retransmitted)?;
    let lost = ("path_lost_chunks", "Transmissions of DATA chunks that were counted as lost", None);
    out.per_link(ledger, lost, |link| link.lost)?;
    let timeouts = ("path_timeouts", "Expiries of the retransmission timer", None);
    out.per_link(ledger, timeouts, |link| link.timeouts)?;
    let help = "User data: sent and acknowledged by the peer, or received";
    out.counter("path_data", help, bytes, |m| {
        ledger.links.iter().try_for_each(|((peer, link), totals)| {
            let directions =
                [("sent", totals.data_sent_bytes), ("received", totals.data_received_bytes)];
            directions.iter().try_for_each(|(direction, count)| {
                let labels =
                    [("link", link.as_str()), ("peer", peer.as_str()), ("direction", *direction)];
                count_of(&mut m.encode_family(&labels)?, *count)
            })
        })
    })?;
    let help = "Round trips: the latest of each path, once a second";
    let kind = MetricType::Histogram;
    out.family("path_rtt_distribution", help, Some(Unit::Seconds), kind, |m| {
        ledger.links.iter().try_for_each(|((peer, link), totals)| {
            let labels = [("link", link.as_str()), ("peer", peer.as_str())];
            histogram(&mut m.encode_family(&labels)?, &totals.rtt)
        })
    })
}

/// The current values of paths. Several paths of one link and peer are combined.
fn path_gauges(out: &mut Out<'_, '_>, ledger: &Ledger) -> fmt::Result {
    let mut combined: std::collections::BTreeMap<(&str, &str), Vec<&Track>> = Default::default();
    for track in ledger.paths.values() {
        combined.entry((&track.link, &track.peer)).or_default().push(track);
    }
    let mut gauge = |name: &str, help: &str, unit, value: &dyn Fn(&[&Track]) -> Option<f64>| {
        out.gauge(name, help, unit, |m| {
            combined.iter().try_for_each(|((link, peer), tracks)| {
                let Some(value) = value(tracks) else { return Ok(()) };
                m.encode_family(&[("link", *link), ("peer", *peer)])?.encode_gauge(&value)
            })
        })
    };
    let sum = |tracks: &[&Track], of: &dyn Fn(&Track) -> u64| {
        Some(tracks.iter().map(|track| of(track)).sum::<u64>() as f64)
    };
    let greatest = |tracks: &[&Track], of: &dyn Fn(&Track) -> Option<f64>| {
        tracks.iter().filter_map(|track| of(track)).reduce(f64::max)
    };
    let (bytes, seconds) = (Some(Unit::Bytes), Some(Unit::Seconds));
    gauge("path_up", "Number of paths that carry data", None, &|tracks| {
        sum(tracks, &|track| u64::from(track.is_up()))
    })?;
    gauge(
        "path_rtt",
        "Smoothed round trip; the longest of several paths",
        seconds.clone(),
        &|tracks| greatest(tracks, &|track| track.stats.srtt_s),
    )?;
    gauge("path_queueing", "Part of the delay that is queueing", seconds, &|tracks| {
        greatest(tracks, &|track| Some(track.stats.queueing_s))
    })?;
    gauge(
        "path_loss_ratio",
        "Share of the transmissions of the last 10 s that was lost",
        None,
        &|tracks| greatest(tracks, &|track| track.loss()),
    )?;
    gauge("path_congestion_window", "Congestion window", bytes.clone(), &|tracks| {
        sum(tracks, &|track| track.stats.cwnd_bytes)
    })?;
    gauge("path_in_flight", "Sent, and neither acknowledged nor given up", bytes, &|tracks| {
        sum(tracks, &|track| track.stats.in_flight_bytes)
    })?;
    out.gauge("path_use", "Number of paths of this use", None, |m| {
        combined.iter().try_for_each(|((link, peer), tracks)| {
            let mut counts = std::collections::BTreeMap::<_, u64>::new();
            tracks.iter().for_each(|track| *counts.entry(track.stats.usage).or_default() += 1);
            counts.into_iter().try_for_each(|(usage, count)| {
                let labels = [("link", *link), ("peer", *peer), ("use", use_word(usage))];
                m.encode_family(&labels)?.encode_gauge(&count)
            })
        })
    })
}

fn peers(out: &mut Out<'_, '_>, ledger: &Ledger) -> fmt::Result {
    let count = |out: &mut Out<'_, '_>, name, help, value: &dyn Fn(&PeerTotals) -> u64| {
        out.counter(name, help, None, |m| {
            ledger.peers.iter().try_for_each(|(peer, totals)| {
                count_of(&mut m.encode_family(&[("peer", peer.as_str())])?, value(totals))
            })
        })
    };
    let help = "Associations that were established";
    count(out, "associations_established", help, &|totals| totals.established)?;
    let help = "DATA chunks that arrived again: their retransmission was spurious";
    count(out, "duplicate_chunks", help, &|totals| totals.duplicates)?;
    let help = "Time in which a path could send, but the receive window was closed";
    out.counter("blocked", help, Some(Unit::Seconds), |m| {
        ledger.peers.iter().try_for_each(|(peer, totals)| {
            let labels = [("peer", peer.as_str())];
            let mut metric = m.encode_family(&labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&totals.blocked_s, None)
        })
    })?;
    let help = "From the arrival of a DATA chunk until the application could read it";
    out.family("blocking_delay", help, Some(Unit::Seconds), MetricType::Histogram, |m| {
        ledger.peers.iter().try_for_each(|(peer, totals)| {
            histogram(&mut m.encode_family(&[("peer", peer.as_str())])?, &totals.blocking)
        })
    })?;
    current(out, ledger)
}

/// The current values of associations.
fn current(out: &mut Out<'_, '_>, ledger: &Ledger) -> fmt::Result {
    let mut per_peer: std::collections::BTreeMap<&str, [u64; 3]> = Default::default();
    for open in ledger.associations.values() {
        let stats = &open.snapshot.stats;
        let totals = per_peer.entry(&open.peer).or_default();
        totals[0] += 1;
        totals[1] += stats.out_of_order_bytes;
        totals[2] += stats.receive_free_bytes;
    }
    let bytes = Some(Unit::Bytes);
    let gauges = [
        ("associations", "Open associations", None),
        ("receive_buffer", "Data that waits out of order in the receive buffers", bytes.clone()),
        ("receive_buffer_free", "Free room of the receive buffers", bytes),
    ];
    for (i, (name, help, unit)) in gauges.into_iter().enumerate() {
        out.gauge(name, help, unit, |m| {
            per_peer.iter().try_for_each(|(peer, values)| {
                m.encode_family(&[("peer", *peer)])?.encode_gauge(&values[i])
            })
        })?;
    }
    Ok(())
}

/// The inner packets of a tunnel.
fn tunnel(out: &mut Out<'_, '_>, tunnel: &TunnelFigures) -> fmt::Result {
    out.gauge("tunnel_clients", "Clients that are connected; of a client 1 or 0", None, |m| {
        m.encode_gauge(&tunnel.clients)
    })?;
    let by_direction = [("sent", tunnel.sent_packets), ("received", tunnel.received_packets)];
    out.counter("tunnel_packets", "Inner packets that were carried", None, |m| {
        by_direction.into_iter().try_for_each(|(direction, count)| {
            count_of(&mut m.encode_family(&[("direction", direction)])?, count)
        })
    })?;
    let by_direction = [("sent", tunnel.sent_bytes), ("received", tunnel.received_bytes)];
    let bytes = Some(Unit::Bytes);
    out.counter("tunnel_data", "Bytes of these packets, IP headers included", bytes, |m| {
        by_direction.into_iter().try_for_each(|(direction, count)| {
            count_of(&mut m.encode_family(&[("direction", direction)])?, count)
        })
    })?;
    let plain = [
        ("tunnel_marked_packets", "Packets that were marked (ECN)", tunnel.marked_packets),
        ("tunnel_copied_packets", "Packets that were sent on two paths", tunnel.copied_packets),
        ("tunnel_duplicate_packets", "Packets that had arrived before", tunnel.duplicate_packets),
        ("tunnel_late_packets", "Packets delivered after later ones", tunnel.late_packets),
    ];
    for (name, help, count) in plain {
        out.counter(name, help, None, |m| count_of(m, count))?;
    }
    let help =
        "Inner packets of a client in this month; of clients that have used most of their volume";
    let bytes = Some(Unit::Bytes);
    out.gauge("tunnel_volume_used", help, bytes.clone(), |m| {
        tunnel.volumes.iter().try_for_each(|volume| {
            let labels = [("client", volume.client.as_str())];
            m.encode_family(&labels)?.encode_gauge(&volume.used_bytes)
        })
    })?;
    out.gauge("tunnel_volume_quota", "The most that this client may carry", bytes, |m| {
        tunnel.volumes.iter().try_for_each(|volume| {
            let labels = [("client", volume.client.as_str())];
            m.encode_family(&labels)?.encode_gauge(&volume.quota_bytes)
        })
    })?;
    let per_cap = |value: fn(&LinkCap) -> u64| {
        move |m: &mut MetricEncoder<'_>| {
            tunnel.caps.iter().try_for_each(|cap| {
                m.encode_family(&[("link", cap.link.as_str())])?.encode_gauge(&value(cap))
            })
        }
    };
    let help = "What a link with a cap has carried in this month, headers included";
    let bytes = Some(Unit::Bytes);
    out.gauge("tunnel_link_cap_used", help, bytes.clone(), |m| per_cap(|cap| cap.used_bytes)(m))?;
    let help = "The most that this link may carry in a month";
    out.gauge("tunnel_link_cap", help, bytes, |m| per_cap(|cap| cap.cap_bytes)(m))?;
    let help = "Inner packets that were not carried or not delivered, by reason";
    out.counter("tunnel_refused_packets", help, None, |m| {
        tunnel.refused.iter().try_for_each(|refused| {
            let labels = [("reason", refused.reason.as_str())];
            count_of(&mut m.encode_family(&labels)?, refused.packets)
        })
    })
}

fn transfer(out: &mut Out<'_, '_>, transfer: Option<Transfer>) -> fmt::Result {
    let Some(transfer) = transfer else { return Ok(()) };
    let gauges = [
        ("transfer_size", "Size of all files of the transfer", Some(Unit::Bytes), transfer.bytes),
        (
            "transfer_placed",
            "Bytes in place at the receiver",
            Some(Unit::Bytes),
            transfer.placed_bytes,
        ),
        ("transfer_files", "Files of the transfer", None, transfer.files),
        ("transfer_files_done", "Files that are complete", None, transfer.files_done),
    ];
    gauges.into_iter().try_for_each(|(name, help, unit, value)| {
        out.gauge(name, help, unit, |m| m.encode_gauge(&value))
    })
}
