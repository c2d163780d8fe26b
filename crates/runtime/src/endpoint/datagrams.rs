//! Messages that lose their value when they are late: the application keeps them until a path can take them.

use bytes::Bytes;
use ropewalk_base::{Duration, PathId, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::path::PathUse;
use ropewalk_engine::sctp::association::SendError as Refusal;
use ropewalk_engine::sctp::{Backlog, Delivery};

use super::association::{Association, SendError};
use super::peer::Peer;
use super::state::EndpointState;

/// The link of a path, and what it has carried for the association.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathLink {
    /// Name of the local interface, or the local address if there is none.
    pub link: String,
    /// Bytes of all packets of the path in both directions, IP and UDP headers included.
    pub carried_bytes: u64,
}

/// Estimates of a path, as the scheduler sees them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathEstimate {
    /// Whether the path carries data.
    pub usable: bool,
    /// One-way delay to the peer including queues, seconds. Only differences between the paths of an association
    /// are meaningful. Half the round-trip time before it is measured.
    pub forward_s: f64,
    /// Mean deviation of the round-trip time, seconds.
    pub deviation_s: f64,
    /// Smoothed round-trip time, seconds.
    pub round_trip_s: f64,
    /// The achievable rate of the path, bit/s; 0 if unknown.
    pub rate_bps: f64,
    /// Packet loss rate.
    pub loss: f64,
    /// How long an acknowledgement on this path has been overdue, seconds.
    pub overdue_s: f64,
}

impl Association {
    /// Queues messages. `next` receives the number of bytes that wait for a path, and returns the next
    /// message, or nothing if enough are waiting. Returns whether the send buffer was full; the last message
    /// is lost in that case.
    ///
    /// # Errors
    /// [`SendError`]. The message that was refused is lost.
    pub fn send_datagrams(
        &self,
        stream: u16,
        ppid: u32,
        next: &mut dyn FnMut(Time, Backlog) -> Option<(Bytes, Delivery)>,
    ) -> Result<bool, SendError> {
        let sent = self.with(|peer, now| {
            if let Some(reason) = peer.ended {
                return Err(SendError::Closed(Some(reason)));
            }
            while let Some((bytes, delivery)) = next(now, peer.machine.backlog()) {
                let (stream, payload) = (StreamId(stream), Payload::from(bytes));
                match peer.machine.send_message(now, stream, ppid, payload, delivery) {
                    Ok(()) => {}
                    Err(Refusal::Full) => return Ok(true),
                    Err(Refusal::Closing) => return Err(SendError::Closed(None)),
                    Err(misuse) => return Err(SendError::Misuse(misuse)),
                }
            }
            Ok(false)
        });
        sent.unwrap_or(Err(SendError::Closed(None)))
    }

    /// Waits until fewer than `bytes` wait for a path, or the association has ended.
    pub async fn waits_below(&self, bytes: u64) {
        let drained = self.signals().drained.notified();
        tokio::pin!(drained);
        drained.as_mut().enable();
        let is_below = self.with_if_needed(|peer, _| {
            let is_below = peer.ended.is_some() || peer.machine.waiting_bytes() < bytes;
            peer.awaited_below = (!is_below).then_some(bytes);
            (is_below, false)
        });
        if is_below == Some(false) {
            drained.await;
        }
    }

    /// The links of all paths; empty once the association is gone.
    pub fn path_links(&self) -> Vec<PathLink> {
        let links = |state: &mut EndpointState, peer: &mut Peer| {
            let now = state.clock.now();
            let link = |path: usize| {
                let route = peer.routes.get(path).copied().flatten();
                let traffic = peer.traffic.get(path).copied().unwrap_or_default();
                PathLink {
                    link: route
                        .map(|route| state.local_end(now, route).link_name())
                        .unwrap_or_default(),
                    carried_bytes: traffic.sent_bytes + traffic.received_bytes,
                }
            };
            (0..peer.machine.path_count()).map(link).collect()
        };
        self.with_state(links).unwrap_or_default()
    }

    /// Sets when a path carries data that this end sends, and the cost of a byte on it. Returns whether the path
    /// exists.
    pub fn set_path_use(&self, path: usize, usage: PathUse, cost: u32) -> bool {
        let set = self.with(|peer, _| {
            let exists = path < peer.machine.path_count();
            if exists {
                peer.machine.set_path_use(PathId::from_index(path), usage, cost);
            }
            exists
        });
        set.unwrap_or(false)
    }

    /// Estimates of all paths; empty once the association is gone.
    pub fn path_estimates(&self) -> Vec<PathEstimate> {
        self.inspect(|peer, now| {
            let ids = (0..peer.machine.path_count()).map(PathId::from_index);
            ids.map(|id| estimate(peer, now, id)).collect()
        })
        .unwrap_or_default()
    }
}

fn estimate(peer: &Peer, now: Time, id: PathId) -> PathEstimate {
    let view = peer.machine.path_view(now, id);
    let round_trip_s = view.srtt.unwrap_or_default().as_secs_f64();
    PathEstimate {
        usable: view.usable,
        forward_s: view.forward_delay.map_or(round_trip_s / 2.0, Duration::as_secs_f64),
        deviation_s: view.rttvar.as_secs_f64(),
        round_trip_s,
        rate_bps: view.potential_rate() * 8e9,
        loss: view.loss,
        overdue_s: view.overdue.as_secs_f64(),
    }
}
