//! The receive window that Linux offers: `__tcp_select_window` and `tcp_select_window` in
//! net/ipv4/tcp_output.c, `mptcp_set_rwin` in net/mptcp/options.c, `mptcp_cleanup_rbuf` in
//! net/mptcp/protocol.c (6.18).
//!
//! ```text
//!   acknowledged        held out of order       right edge announced so far
//!        |                 ====    ==                   |
//!   -----+=====+-----------====----==-------------------+--> data sequence numbers
//!        unread|
//!              |<---- free space: buffer less the memory of all packets in it ---->
//! ```
//!
//! Three rules differ from a window that is the buffer less the unread data:
//!
//! - The buffer is charged with the memory of the packets, not with their payload, and the window is the
//!   part of the free memory that payload takes (`scaling_ratio`).
//! - Data out of order takes free space, although it lies within the window. The right edge therefore
//!   does not move until the acknowledgement has advanced by more than the held data.
//! - The window is computed for each acknowledgement on its subflow. The right edge of the connection is
//!   the maximum that any subflow has announced.

use crate::payload::packet_memory;

/// Part of the free memory, of 256, that the window may take before a packet has shown a larger part
/// (`TCP_DEFAULT_SCALING_RATIO`).
const DEFAULT_RATIO: u64 = 128;
/// Maximum window without scaling, bytes.
const UNSCALED: u64 = 65_535;
/// Assumed segment size before the first segment arrives, bytes (`TCP_MSS_DEFAULT`).
const ASSUMED_SEGMENT: u64 = 536;
/// Minimum segment whose arrival opens the window further, bytes (`tcp_event_data_recv`).
const GROWTH_LEAST: u64 = 128;
/// Number of segments per round trip that do not require a larger buffer (`TCP_INIT_CWND`).
const FIRST_WINDOW: u64 = 10;

/// Size of the receive buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferSize {
    /// Value that a program set by `SO_RCVBUF`, bytes. The kernel takes twice as much for its own
    /// overhead.
    Fixed(u64),
    /// Grows with the data that arrives in a round trip (`tcp_rcv_space_adjust`): initial and maximum
    /// bytes of memory (`tcp_rmem`).
    Growing {
        /// Initial size.
        first: u64,
        /// Maximum size.
        most: u64,
    },
}

/// The window of an empty buffer, bytes, when all segments are full: `full` bytes in packets of `packet` bytes.
pub fn window_limit(size: BufferSize, full: u32, packet: u32) -> u64 {
    let memory = match size {
        BufferSize::Fixed(asked) => 2 * asked,
        BufferSize::Growing { most, .. } => most,
    };
    scaled(memory, payload_ratio(full as u64, packet_memory(packet as u64)))
}

/// The part of `memory` bytes that `bytes` bytes of payload take, of 256.
fn payload_ratio(bytes: u64, memory: u64) -> u64 {
    (bytes * 256 / memory).clamp(1, 255)
}

/// The window of one subflow.
#[derive(Clone, Copy, Debug)]
struct SubflowWindow {
    /// Whether the subflow is open.
    open: bool,
    /// Part of the memory that payload takes, of 256 (`scaling_ratio`).
    ratio: u64,
    /// Limit of the window, bytes (`window_clamp`).
    clamp: u64,
    /// Limit of the window that grows with each segment, bytes (`rcv_ssthresh`).
    threshold: u64,
    /// The window announced last (`rcv_wnd`), and the acknowledgement that announced it (`rcv_wup`).
    window: u64,
    announced_at: u64,
    /// Maximum segment so far, bytes (`rcv_mss`).
    segment: u64,
}

/// How fast data arrives, for the growth of the buffer (`rcvq_space`).
#[derive(Clone, Copy, Debug)]
struct Demand {
    most: u64,
    /// Maximum amount read in a round trip, bytes.
    space: u64,
    /// Bytes read since `since_ns`.
    copied: u64,
    since_ns: u64,
}

/// The windows of a connection's receiver.
#[derive(Clone, Debug)]
pub struct LinuxWindow {
    /// The buffer, bytes of memory (`sk_rcvbuf`).
    buffer: u64,
    demand: Option<Demand>,
    /// Window scale (RFC 7323, 2.2).
    shift: u32,
    /// The smallest ratio of all subflows, of 256.
    ratio: u64,
    /// Right edge announced so far, as a data sequence number (exclusive; `rcv_wnd_sent`).
    edge: u64,
    /// The window announced last on any subflow (`old_wspace`).
    announced: u64,
    /// Payload of a full segment, and the size of its packet, bytes.
    full: u64,
    packet: u64,
    subflows: Vec<SubflowWindow>,
}

/// State of a subflow when its window is computed.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Next sequence number of the subflow in order.
    pub next: u64,
    /// Next data sequence number in order.
    pub data_next: u64,
    /// Bytes in the connection's buffer, unread or out of order.
    pub waiting: u64,
}

impl LinuxWindow {
    /// Creates the state for `subflows` subflows whose full segments have `full` bytes in packets of
    /// `packet` bytes.
    pub fn new(size: BufferSize, subflows: usize, full: u32, packet: u32) -> Self {
        let (full, packet) = (full as u64, packet as u64);
        let (buffer, demand) = match size {
            BufferSize::Fixed(asked) => (2 * asked, None),
            BufferSize::Growing { first, most } => {
                let space = FIRST_WINDOW * full;
                (first, Some(Demand { most, space, copied: 0, since_ns: 0 }))
            }
        };
        let whole = scaled(buffer, DEFAULT_RATIO);
        // tcp_select_initial_window: a growing buffer needs the scale of its maximum size.
        let largest = demand.map_or(whole, |demand| demand.most);
        let shift = largest.max(1).ilog2().saturating_sub(15).min(14);
        let first = (whole / full.max(1) * full).clamp(full.min(whole), UNSCALED);
        // tcp_init_buffer_space: a full segment stays in reserve.
        let clamp = whole.saturating_sub(full).max(2 * full);
        let subflow = SubflowWindow {
            open: false,
            ratio: DEFAULT_RATIO,
            clamp,
            threshold: first.min(clamp),
            window: first,
            announced_at: 1,
            segment: ASSUMED_SEGMENT.min(full),
        };
        let subflows = vec![subflow; subflows];
        let (edge, announced) = (first, first);
        let ratio = DEFAULT_RATIO;
        Self { buffer, demand, shift, ratio, edge, announced, full, packet, subflows }
    }

    /// The right edge announced so far, as a data sequence number (exclusive).
    pub const fn edge(&self) -> u64 {
        self.edge
    }

    /// The subflow was opened.
    pub fn on_open(&mut self, subflow: usize) {
        self.subflows[subflow].open = true;
    }

    /// Memory of `bytes` waiting bytes that arrived in full segments.
    fn memory(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.full.max(1)) * packet_memory(self.packet)
    }

    fn free(&self, waiting: u64) -> u64 {
        scaled(self.buffer.saturating_sub(self.memory(waiting)), self.ratio)
    }

    /// Records a segment of `bytes` bytes that arrived on a subflow. `in_order`: it was the next one
    /// there. Returns whether the limit of the window grew, which must be announced immediately.
    pub fn on_segment(&mut self, subflow: usize, bytes: u64, in_order: bool) -> bool {
        if !in_order {
            return false;
        }
        let (buffer, memory) = (self.buffer, packet_memory(self.packet - self.full + bytes));
        let advertised = self.full;
        let window = &mut self.subflows[subflow];
        if bytes > window.segment {
            // tcp_measure_rcv_mss.
            window.segment = bytes;
            let ratio = payload_ratio(bytes, memory);
            if ratio != window.ratio {
                window.ratio = ratio;
                window.clamp = scaled(buffer, ratio);
                window.threshold = window.threshold.min(window.clamp);
            }
        }
        if bytes < GROWTH_LEAST {
            return false;
        }
        // tcp_grow_window.
        let most = window.clamp.min(scaled(buffer.saturating_sub(memory), window.ratio));
        let room = most.saturating_sub(window.threshold);
        let grows = room > 0 && scaled(memory, window.ratio) <= bytes;
        if grows {
            window.threshold += room.min((2 * advertised).max(2 * bytes));
        }
        grows
    }

    /// The window of an acknowledgement that is sent on a subflow now, bytes.
    pub fn offer(&mut self, subflow: usize, at: Progress) -> u64 {
        let (free, whole) = (self.free(at.waiting), scaled(self.buffer, self.ratio));
        let shift = self.shift;
        let window = &mut self.subflows[subflow];
        // tcp_select_window: the subflow's own right edge does not move back either.
        let current = (window.announced_at + window.window).saturating_sub(at.next);
        let chosen = window.select(free, whole, shift);
        let chosen = if chosen < current { round_up(current, shift) } else { chosen };
        window.window = chosen.min(UNSCALED << shift);
        window.announced_at = at.next;
        // mptcp_set_rwin.
        let edge = at.data_next + window.window;
        if edge < self.edge {
            window.window = self.edge - at.data_next;
        }
        self.edge = self.edge.max(edge);
        self.announced = window.window;
        window.window.min(UNSCALED << shift) >> shift << shift
    }

    /// Updates the smallest ratio of the open subflows, after the program has read
    /// (`mptcp_rcv_space_adjust`).
    pub fn on_read(&mut self) {
        let open = self.subflows.iter().filter(|subflow| subflow.open);
        self.ratio = open.map(|subflow| subflow.ratio).min().unwrap_or(DEFAULT_RATIO);
    }

    /// Grows the buffer after `bytes` bytes were read. `round_trip_ns`: the maximum round trip of the
    /// subflows, as measured by the receiver.
    pub fn on_copied(&mut self, now_ns: u64, bytes: u64, round_trip_ns: u64) {
        let Some(demand) = &mut self.demand else { return };
        demand.copied += bytes;
        if round_trip_ns == 0 || now_ns.saturating_sub(demand.since_ns) < round_trip_ns {
            return;
        }
        let copied = std::mem::take(&mut demand.copied);
        demand.since_ns = now_ns;
        if copied <= demand.space {
            return;
        }
        // tcp_rcvbuf_grow: twice the amount, because the sender's window is a round trip ahead, and room for
        // the growth of slow start.
        let before = std::mem::replace(&mut demand.space, copied);
        let twice = 2 * copied;
        let wanted = twice + 2 * (twice * (copied - before) / before);
        let memory = (wanted * 256 / self.ratio).min(demand.most);
        if memory > self.buffer {
            self.buffer = memory;
            for subflow in &mut self.subflows {
                subflow.clamp = scaled(memory, subflow.ratio);
            }
        }
    }

    /// Whether the window has opened enough for all subflows to announce it (`mptcp_cleanup_rbuf`).
    pub fn has_opened(&self, waiting: u64) -> bool {
        let free = self.free(waiting);
        free > 0 && free >= 2 * self.announced
    }

    /// Whether a subflow announces a window that has opened (`tcp_cleanup_rbuf`).
    pub fn announces(&self, subflow: usize, at: Progress) -> bool {
        let window = &self.subflows[subflow];
        let current = (window.announced_at + window.window).saturating_sub(at.next);
        if 2 * current > window.clamp {
            return false;
        }
        let whole = scaled(self.buffer, self.ratio);
        let chosen = window.select(self.free(at.waiting), whole, self.shift);
        chosen > 0 && chosen >= 2 * current
    }

    /// Whether more than a segment has arrived on the subflow since its last acknowledgement.
    pub fn has_unannounced(&self, subflow: usize, next: u64) -> bool {
        let window = &self.subflows[subflow];
        next > window.announced_at + window.segment
    }
}

impl SubflowWindow {
    /// The window for `free` bytes of `whole` (`__tcp_select_window`).
    fn select(&self, free: u64, whole: u64, shift: u32) -> u64 {
        let full = self.clamp.min(whole);
        let segment = self.segment.min(full);
        let mut free = free;
        if free < full / 2 {
            free = free >> shift << shift;
            if free < whole / 16 || free < segment {
                return 0;
            }
        }
        let free = free.min(self.threshold);
        if shift > 0 {
            return round_up(free, shift);
        }
        // Full segments, so that the window does not open in small steps.
        if self.window + segment <= free || self.window > free {
            free / segment.max(1) * segment
        } else {
            self.window
        }
    }
}

/// The part `ratio` of 256 of `memory`.
const fn scaled(memory: u64, ratio: u64) -> u64 {
    (memory * ratio) >> 8
}

const fn round_up(bytes: u64, shift: u32) -> u64 {
    (bytes + (1 << shift) - 1) >> shift << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: u64 = 1424;

    /// Two open subflows and a buffer of 45 kB, as `SO_RCVBUF` is set.
    fn windows() -> LinuxWindow {
        let mut windows = LinuxWindow::new(BufferSize::Fixed(45_000), 2, FULL as u32, 1500);
        windows.on_open(0);
        windows.on_open(1);
        windows
    }

    fn at(next: u64, data_next: u64, waiting: u64) -> Progress {
        Progress { next: next * FULL + 1, data_next: data_next * FULL, waiting: waiting * FULL }
    }

    /// Both subflows have carried enough segments.
    fn warm() -> LinuxWindow {
        let mut windows = windows();
        for subflow in 0..2 {
            for _ in 0..20 {
                windows.on_segment(subflow, FULL, true);
            }
        }
        windows.on_read();
        windows
    }

    #[test]
    fn the_window_grows_from_half_of_the_memory_to_the_share_of_payload() {
        // Measured with Linux 6.18 for SO_RCVBUF = 45 kB: rcv_ssthresh 54124, window 54112.
        let mut windows = warm();
        assert_eq!(windows.subflows[0].threshold, 54_124);
        assert_eq!(windows.offer(0, at(20, 40, 1)), 38 * FULL);
    }

    #[test]
    fn the_limit_of_the_window_is_the_share_of_payload_in_the_memory() {
        // rcv_ssthresh of Linux 6.18 for SO_RCVBUF = 45 kB with Multipath TCP.
        assert_eq!(window_limit(BufferSize::Fixed(45_000), FULL as u32, 1500), 55_546);
    }

    #[test]
    fn data_out_of_order_keeps_the_right_edge_where_it_is() {
        let mut windows = warm();
        assert_eq!(windows.offer(0, at(20, 40, 0)), 38 * FULL);
        // Ten segments in order and twenty held: a window of the free space would end before the edge.
        assert_eq!(windows.offer(0, at(50, 50, 20)), 28 * FULL);
        assert_eq!(windows.edge(), 78 * FULL);
        // On the other subflow, which has received nothing since, its own edge applies.
        assert_eq!(windows.offer(1, at(20, 50, 0)), 38 * FULL);
        assert_eq!(windows.edge(), 88 * FULL);
    }

    #[test]
    fn unread_data_closes_the_window_and_reading_announces_it_on_every_subflow() {
        let mut windows = warm();
        windows.offer(0, at(20, 40, 0));
        windows.offer(1, at(20, 40, 0));
        // All 38 segments of the window arrive on the first subflow and are not read yet.
        assert_eq!(windows.offer(0, at(58, 78, 38)), 0);
        assert!(windows.has_opened(0));
        assert!(windows.announces(0, at(58, 78, 0)));
        assert!(!windows.announces(1, at(20, 78, 0)), "its own window is still open");
    }

    #[test]
    fn a_growing_buffer_doubles_with_the_data_of_a_round_trip() {
        let size = BufferSize::Growing { first: 131_072, most: 6 << 20 };
        let mut windows = LinuxWindow::new(size, 1, 1448, 1500);
        windows.on_open(0);
        windows.on_segment(0, 1448, true);
        windows.on_read();
        for (round, memory) in [(1, 131_072), (2, 278_016), (3, 278_016)] {
            windows.on_copied(round * 1000, round * 14_480, 1000);
            assert_eq!(windows.buffer, memory, "round {round}");
        }
        windows.on_copied(4000, 1 << 30, 1000);
        assert_eq!(windows.buffer, 6 << 20);
    }
}
