//! Acknowledgement at the receiving end: when a SACK is due, its contents, and its path.
//!
//! There are three modes, depending on the negotiation:
//!
//! ```text
//!               a SACK is due                                  it lists
//! Standard      after every second packet, and with a gap      all gap ack blocks (RFC 9260, 6.2 and 6.7)
//!               after each packet
//! Cmt           after every second packet, even with gaps     all gap ack blocks (delayed acknowledgement for CMT)
//! OnRequest     when the sender requests it by the I bit, or   the blocks that changed recently
//!               a packet is missing on its path
//! ```
//!
//! In each mode, the SACK timer limits how long an arrival waits.

mod arrivals;
mod recent;
mod waiting;

use std::num::NonZeroU32;

use ropewalk_base::{Duration, PathId, Serial16, Serial32, Time};

use arrivals::Arrivals;
use recent::RecentBlocks;
use waiting::WaitingSacks;

use super::gaps::Gaps;
use super::{DataSummary, MarkEchoes};
use crate::sctp::chunk::{Chunk, DelayEcho, Echoed};
use crate::sctp::config::SackOptions;
use crate::sctp::gaps::{GapList, Word};

/// Upper limit of SACK.Delay (RFC 9260, 6.2: MUST NOT be more than 500 ms).
pub const SACK_DELAY_LIMIT: Duration = Duration::from_millis(500);

/// Maximum number of duplicate TSNs in one SACK.
const DUPLICATES_LIMIT: usize = 16;

/// Minimum number of packets between two SACKs that are caused only by duplicates, in mode `OnRequest`.
/// Without it, a spurious retransmission of a full window would be answered packet by packet.
const DUPLICATE_PACKETS: u32 = 4;

/// The negotiated mode, with its state.
#[derive(Clone, Debug)]
enum Mode {
    /// RFC 9260.
    Standard,
    /// Delayed acknowledgement for CMT.
    Cmt,
    /// The sender requests SACKs.
    OnRequest(OnRequest),
}

/// State of acknowledgement on request.
#[derive(Clone, Debug, Default)]
struct OnRequest {
    /// Data that arrived out of order, `None` while there is no gap.
    recent: Option<Box<RecentBlocks>>,
    /// Whether a packet was lost on its path since the last SACK.
    loss: bool,
    /// Number of the next SACK.
    next: Serial16,
}

/// How SACKs are sent to this peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SackMode {
    /// RFC 9260.
    Standard,
    /// Delayed acknowledgement for CMT.
    Cmt,
    /// The sender requests SACKs.
    OnRequest,
}

/// Decides when SACKs are due, and keeps their contents other than the state of the receive buffer.
///
/// `repr(C)` keeps the order of the fields, with those that every input accesses first.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Acknowledger {
    /// The SACK timer.
    deadline: Option<Time>,
    due: bool,
    /// The last packet with DATA had no room for the SACK that is due, or was sent on another path.
    deferred: bool,
    /// Whether no DATA has arrived yet.
    awaiting_first_data: bool,
    /// The path on which the newest DATA arrived: SACKs go there (RFC 9260, 6.4).
    path: PathId,
    /// Packets with DATA since the last SACK.
    packets: u32,
    options: SackOptions,
    mode: Mode,
    arrivals: Arrivals,
    duplicates: Vec<Serial32>,
    /// Marks of the network that are reported to the peer, `None` without ECN.
    marks: Option<Box<MarkEchoes>>,
    waiting: WaitingSacks,
}

impl Acknowledger {
    /// Creates the state for `paths` paths without arrivals.
    pub fn new(options: SackOptions, paths: usize) -> Self {
        Self {
            deadline: None,
            due: false,
            deferred: false,
            awaiting_first_data: true,
            path: PathId(0),
            packets: 0,
            options: SackOptions { delay: options.delay.min(SACK_DELAY_LIMIT), ..options },
            mode: Mode::Standard,
            arrivals: Arrivals::new(paths),
            duplicates: Vec::new(),
            marks: None,
            waiting: WaitingSacks::default(),
        }
    }

    /// Starts waiting for the first DATA of a peer.
    pub const fn await_first_data(&mut self) {
        self.awaiting_first_data = true;
    }

    /// Whether no DATA has arrived yet.
    pub const fn awaits_first_data(&self) -> bool {
        self.awaiting_first_data
    }

    /// Sets how SACKs are sent to the peer.
    pub fn set_mode(&mut self, mode: SackMode) {
        match (mode, &self.mode) {
            (SackMode::Standard, _) => self.mode = Mode::Standard,
            (SackMode::Cmt, _) => self.mode = Mode::Cmt,
            (SackMode::OnRequest, Mode::OnRequest(_)) => {}
            (SackMode::OnRequest, _) => self.mode = Mode::OnRequest(OnRequest::default()),
        }
    }

    /// Changes [`SackOptions::delay`] and [`SackOptions::every_packets`].
    pub const fn set_pace(&mut self, delay: Duration, every_packets: u32) {
        (self.options.delay, self.options.every_packets) = (delay, every_packets);
    }

    /// Sets whether marks of the network are reported.
    pub fn set_marks(&mut self, marks: Option<Box<MarkEchoes>>) {
        self.marks = marks;
    }

    /// The marks of the network that are reported to the peer.
    pub fn marks(&self) -> Option<&MarkEchoes> {
        self.marks.as_deref()
    }

    /// Like [`Self::marks`].
    pub fn marks_mut(&mut self) -> Option<&mut MarkEchoes> {
        self.marks.as_deref_mut()
    }

    /// Adds a path.
    pub fn add_path(&mut self) {
        self.arrivals.add_path();
        self.forget_recent();
        if let Some(marks) = &mut self.marks {
            marks.add_path();
        }
    }

    /// Keeps only these paths and renumbers them. `path`: the new number of [`Self::path`].
    pub fn retain_paths(&mut self, kept: &[bool], path: PathId) {
        self.arrivals.retain_paths(kept);
        self.path = path;
        self.forget_recent();
        if let Some(marks) = &mut self.marks {
            marks.retain_paths(kept);
        }
    }

    /// Drops all state, because the peer has restarted.
    pub fn forget(&mut self) {
        self.packets = 0;
        self.arrivals.forget();
        self.restart();
    }

    /// Drops the state of TSNs, because they start over.
    pub fn restart(&mut self) {
        self.duplicates.clear();
        self.forget_recent();
        self.stop();
    }

    fn forget_recent(&mut self) {
        if let Mode::OnRequest(state) = &mut self.mode {
            state.recent = None;
        }
    }

    /// Stops the timer and drops the queued SACKs.
    pub fn stop(&mut self) {
        self.deadline = None;
        self.due = false;
        self.deferred = false;
        self.waiting.clear();
    }

    /// Makes a SACK due now.
    pub const fn set_due(&mut self) {
        self.due = true;
    }

    /// Makes a window update due (RFC 9260, 6.2).
    pub const fn set_update_due(&mut self, now: Time) {
        self.due = true;
        self.deadline = Some(now);
    }

    /// Starts the SACK timer, unless it is running.
    pub fn start_timer(&mut self, now: Time) {
        if self.deadline.is_none() {
            self.deadline = Some(now + self.options.delay);
        }
    }

    /// When the SACK timer expires.
    #[inline]
    pub const fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    /// Handles the SACK timer (RFC 9260, 6.2: usually 200 ms).
    #[inline]
    pub fn on_timer(&mut self, now: Time) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.due = true;
            self.deadline = None;
        }
    }

    /// Whether a gap makes a SACK due, as without CMT (RFC 9260, 6.7).
    #[inline]
    pub const fn gap_is_urgent(&self) -> bool {
        matches!(self.mode, Mode::Standard)
    }

    /// Records a TSN (unwrapped) that arrived out of order.
    #[inline]
    pub fn on_out_of_order(&mut self, tsn: u64) {
        if let Mode::OnRequest(state) = &mut self.mode {
            let paths = self.arrivals.paths();
            let recent = state.recent.get_or_insert_with(|| Box::new(RecentBlocks::new(paths)));
            recent.on_arrival(tsn);
        }
    }

    /// Records a TSN (unwrapped) that arrived again.
    pub fn on_duplicate(&mut self, tsn: u64) {
        if self.duplicates.len() < DUPLICATES_LIMIT {
            self.duplicates.push(Serial32::wrap(tsn));
        }
        self.on_out_of_order(tsn);
    }

    /// Records the packet with DATA from `path` to be echoed.
    #[inline]
    pub fn on_echoed(&mut self, now: Time, path: PathId, of: Echoed) {
        self.arrivals.set_echo(path, DelayEcho { path: path.0, of, received: now.as_nanos() });
    }

    /// User data that was stored since the association began, by the path on which it arrived, bytes.
    pub fn bytes_on(&self, path: PathId) -> u64 {
        self.arrivals.bytes_on(path)
    }

    /// Records a FORWARD-TSN from `path`. `moved`: whether the cumulative TSN moved.
    pub fn after_forward_tsn(&mut self, now: Time, path: PathId, moved: bool) {
        self.path = path;
        if moved {
            // RFC 3758, 3.6: a FORWARD-TSN is acknowledged by the rules of DATA.
            self.start_timer(now);
        } else {
            // The last SACK was probably lost.
            self.due = true;
        }
    }

    /// Records the number that a packet of any kind has on its path, if packets are numbered.
    #[inline]
    pub fn on_number(&mut self, path: PathId, number: Option<NonZeroU32>) {
        if let (Mode::OnRequest(state), Some(number)) = (&mut self.mode, number) {
            state.loss |= self.arrivals.on_number(path, number);
        }
    }

    /// Completes the processing of a packet with DATA from `path`.
    #[inline]
    pub fn after_packet(&mut self, now: Time, path: PathId, summary: DataSummary) {
        self.path = path;
        self.packets += 1;
        let on_path = self.arrivals.on_packet(path, summary.bytes);
        let count = if self.options.count_per_path { on_path } else { self.packets };
        // RFC 9260, 5.1: the first DATA chunk MUST be acknowledged immediately.
        let begins = std::mem::take(&mut self.awaiting_first_data) && self.options.first_at_once;
        let due = match &mut self.mode {
            Mode::Standard | Mode::Cmt => summary.repeated || count >= self.options.every_packets,
            Mode::OnRequest(state) => {
                // A limit of 1 is the user's choice; other limits are replaced by requests.
                std::mem::take(&mut state.loss)
                    || summary.repeated && self.packets >= DUPLICATE_PACKETS
                    || self.options.every_packets == 1
                    || state.recent.as_ref().is_some_and(|recent| recent.is_full())
            }
        };
        if due || summary.urgent || begins {
            self.due = true;
        } else {
            self.start_timer(now);
        }
    }

    /// Whether a SACK is due now.
    #[inline]
    pub const fn is_due(&self) -> bool {
        self.due
    }

    /// Whether DATA has arrived on `path` since the last SACK.
    #[inline]
    pub fn is_owed_to(&self, path: PathId) -> bool {
        self.arrivals.has_news_of(path)
    }

    /// The path on which the newest DATA arrived.
    #[inline]
    pub const fn path(&self) -> PathId {
        self.path
    }

    /// Whether duplicates have arrived since the last SACK, because SACKs may have been lost.
    #[inline]
    pub fn has_duplicates(&self) -> bool {
        !self.duplicates.is_empty()
    }

    /// Whether a packet with data to the peer should carry a SACK: one is due, or DATA has arrived that
    /// no SACK has acknowledged. In mode `OnRequest`, an early SACK does not replace a requested one, so
    /// it is sent only if the timer would soon cause one.
    #[inline]
    pub fn may_ride(&self, now: Time) -> bool {
        let early = match self.mode {
            Mode::Standard | Mode::Cmt => self.packets > 0,
            Mode::OnRequest(_) => {
                self.deadline.is_some_and(|at| at.since(now) <= self.options.delay / 2)
            }
        };
        self.due || early
    }

    /// Whether a SACK is to be sent now.
    #[inline]
    pub fn has_sack_to_send(&self) -> bool {
        self.due || self.has_waiting()
    }

    /// Records that a packet with DATA was sent, with or without the SACK that was due.
    pub const fn defer(&mut self) {
        self.deferred = self.due;
    }

    /// Whether a SACK that is due should be sent in a packet with DATA, if such a packet may be sent now.
    /// If the last such packet had no room for it, it is sent next, before further DATA.
    pub fn should_ride(&self) -> bool {
        self.options.with_data && !self.deferred && !self.has_waiting()
    }

    /// Whether a SACK is queued that was due before the newest packets.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether the SACK that is due, of `length` bytes, must be built before more DATA is processed.
    /// Packets that a driver passes in one batch are acknowledged as if they had arrived individually
    /// (RFC 9260, 6.2: at least every second packet; 6.7: each packet while there is a gap). A peer with
    /// CMT does not need this.
    #[inline]
    pub fn must_keep(&self, length: impl FnOnce() -> u32) -> bool {
        self.due
            && self.packets > 0
            && matches!(self.mode, Mode::Standard)
            && self.waiting.has_room_for(length())
    }

    /// Keeps a SACK until it is sent on `path`.
    pub fn keep(&mut self, path: PathId, sack: Chunk) {
        let echo = self.take_echo();
        self.waiting.push(path, sack, echo);
    }

    /// Takes the oldest queued SACK and its path.
    pub fn take_waiting(&mut self) -> Option<(PathId, Chunk, Option<DelayEcho>)> {
        self.waiting.pop()
    }

    /// Maximum number of gap ack blocks and duplicates in the next SACK on `path`. `all`: the number of all blocks.
    pub fn entries_max(&self, path: PathId, all: usize) -> usize {
        let blocks = match &self.mode {
            Mode::Standard | Mode::Cmt => all,
            Mode::OnRequest(state) => {
                state.recent.as_ref().map_or(0, |recent| recent.len_max(path).min(all))
            }
        };
        blocks + self.duplicates.len()
    }

    /// At most `most` gap ack blocks of the next SACK, which is sent on `path`, in the memory of `spare`.
    #[inline]
    pub fn take_blocks(
        &mut self,
        path: PathId,
        gaps: &Gaps,
        most: usize,
        spare: Vec<Word>,
    ) -> GapList {
        match &mut self.mode {
            Mode::Standard | Mode::Cmt => {
                let words = gaps.words();
                // 16-bit offsets reach every TSN in the buffer: see `ReceiveBuffer`.
                GapList::copy_of(&words[..words.len().min(most)], spare)
            }
            Mode::OnRequest(state) => {
                // The cumulative TSN reports all arrivals.
                if gaps.is_empty() {
                    state.recent = None;
                }
                let mut words = spare;
                match &mut state.recent {
                    Some(recent) => recent.take(path, gaps, most, &mut words),
                    None => words.clear(),
                }
                GapList { words }
            }
        }
    }

    /// At most `most` duplicates of the next SACK.
    #[inline(always)]
    pub fn take_duplicates(&mut self, most: usize) -> Vec<Serial32> {
        if self.duplicates.is_empty() {
            return Vec::new();
        }
        let mut duplicates = std::mem::take(&mut self.duplicates);
        duplicates.truncate(most);
        duplicates
    }

    /// Packets with DATA since the last SACK, as the flags of a SACK report them.
    #[inline(always)]
    pub fn counted_packets(&self) -> u8 {
        if matches!(self.mode, Mode::Cmt) { self.packets.clamp(1, 3) as u8 } else { 0 }
    }

    /// The number of the next SACK, if SACKs are numbered.
    #[inline]
    pub fn take_number(&mut self) -> Option<Serial16> {
        let Mode::OnRequest(state) = &mut self.mode else { return None };
        let number = state.next;
        state.next = number.plus(1);
        Some(number)
    }

    /// A SACK was built.
    #[inline(always)]
    pub fn after_sack(&mut self) {
        self.packets = 0;
        self.arrivals.after_sack();
        self.due = false;
        self.deferred = false;
        self.deadline = None;
    }

    /// The timestamp echo that accompanies the SACK just built.
    #[inline]
    pub fn take_echo(&mut self) -> Option<DelayEcho> {
        self.arrivals.take_echo()
    }
}
