//! A station: one queue and one backoff for all of its receivers.

use std::collections::VecDeque;

use ropewalk_base::{Rng, Seed};

use super::backoff::Backoff;
use crate::link::Limit;
use crate::packet::Packet;

/// Configuration of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationConfig {
    /// Capacity of the queue behind the frame in transmission; a packet that does not fit is dropped.
    pub queue: Limit,
}

impl Default for StationConfig {
    /// 400 packets.
    fn default() -> Self {
        Self { queue: Limit::Packets(400) }
    }
}

/// Counters of a station's MAC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StationStats {
    /// Transmissions, retries included.
    pub attempts: u64,
    /// Transmissions in the same slot as another station's.
    pub collisions: u64,
    /// Transmissions without a collision that arrived damaged.
    pub frame_errors: u64,
    /// Frames acknowledged.
    pub acknowledged: u64,
    /// Frames given up after the last attempt.
    pub given_up: u64,
}

/// A packet in transfer over a radio link.
#[derive(Clone, Debug)]
pub(super) struct Frame<P> {
    /// Position of the radio link.
    pub(super) radio: u32,
    pub(super) packet: Packet<P>,
}

#[derive(Clone, Debug)]
pub(super) struct Station<P> {
    limit: Limit,
    queue: VecDeque<Frame<P>>,
    queued_bytes: u64,
    /// The frame that the MAC contends for, or is sending.
    pub(super) current: Option<Frame<P>>,
    pub(super) backoff: Backoff,
    /// Slot in which the backoff expires, or the one after the last frame expired; on the channel's slot clock.
    pub(super) expires: u64,
    /// Random stream of frame errors, separate from that of backoffs.
    pub(super) errors: Rng,
    pub(super) stats: StationStats,
}

impl<P> Station<P> {
    /// The packets that wait or are being sent.
    pub(super) fn packets(&self) -> impl Iterator<Item = &Packet<P>> {
        self.current.iter().chain(&self.queue).map(|frame| &frame.packet)
    }

    pub(super) fn new(config: StationConfig, cw_min: u32, seed: Seed) -> Self {
        Self {
            limit: config.queue,
            queue: VecDeque::new(),
            queued_bytes: 0,
            current: None,
            backoff: Backoff::new(cw_min, seed.child("backoff")),
            expires: 0,
            errors: seed.child("frame-error").rng(),
            stats: StationStats::default(),
        }
    }

    pub(super) fn has_room(&self, size: u32) -> bool {
        self.limit.admits(self.queue.len(), self.queued_bytes, size)
    }

    pub(super) fn push(&mut self, frame: Frame<P>) {
        self.queued_bytes += u64::from(frame.packet.size);
        self.queue.push_back(frame);
    }

    /// Makes the head of the queue the current frame; returns its link and size.
    pub(super) fn advance(&mut self) -> Option<(u32, u32)> {
        debug_assert!(self.current.is_none(), "the MAC has one frame at a time");
        let frame = self.queue.pop_front()?;
        let (radio, size) = (frame.radio, frame.packet.size);
        self.queued_bytes -= u64::from(size);
        self.current = Some(frame);
        Some((radio, size))
    }
}
