//! The receiver of Linux: when acknowledgements are sent, and with which window.

use ropewalk_base::{Duration, PathId, Time};

use super::super::config::{Config, ReceiveRules};
use super::super::rx::{LinuxWindow, Progress};
use super::super::segment::Segment;
use super::Session;

/// The windows of the receiver, and the measurements for their growth.
#[derive(Clone, Debug)]
pub(super) struct LinuxReceiver {
    windows: LinuxWindow,
    /// Smoothed round trip of each subflow as measured by the receiver, and the echo that gave the last
    /// sample.
    round_trips: Vec<(Option<Duration>, u64)>,
    /// When the last segment arrived.
    now: Time,
}

impl LinuxReceiver {
    /// The receiver of a session, if its configuration has the rules of Linux.
    pub fn of(config: &Config) -> Option<Box<Self>> {
        let ReceiveRules::Linux(size) = config.receive_rules else { return None };
        let (subflows, full) = (config.paths.len(), config.segment_limit());
        let packet = config.paths.iter().map(|path| path.mtu).min().unwrap_or(1500);
        let windows = LinuxWindow::new(size, subflows, full, packet);
        Some(Box::new(Self { windows, round_trips: vec![(None, 0); subflows], now: Time::ZERO }))
    }

    pub fn on_open(&mut self, path: PathId) {
        self.windows.on_open(path.index());
    }

    /// Whether data that ends at `end` lies beyond all windows announced so far (`mptcp_data_queue_ofo`).
    pub const fn refuses(&self, end: u64) -> bool {
        end > self.edge()
    }

    /// The right edge of all windows announced so far, as a data sequence number (exclusive).
    pub const fn edge(&self) -> u64 {
        self.windows.edge()
    }

    /// Records a segment of `bytes` bytes. `echo`: our clock when we sent the data that it acknowledges;
    /// 0 if unknown. Returns whether an acknowledgement must announce a larger window.
    pub fn on_segment(
        &mut self,
        now: Time,
        path: PathId,
        bytes: u32,
        in_order: bool,
        echo: u64,
    ) -> bool {
        self.now = now;
        let grows = self.windows.on_segment(path.index(), bytes as u64, in_order);
        let (smoothed, last) = &mut self.round_trips[path.index()];
        if echo > *last {
            // tcp_rcv_rtt_measure_ts: the weight of a sample is an eighth.
            *last = echo;
            let sample = Duration::from_nanos(now.as_nanos().saturating_sub(echo));
            *smoothed = Some(smoothed.map_or(sample, |before| (before * 7 + sample) / 8));
        }
        grows
    }
}

impl Session {
    /// State that determines the window of a subflow now. Data that is out of order on its subflow waits
    /// there, and is not charged to the connection.
    fn progress(&self, path: PathId) -> Progress {
        let early: u64 = match self.handshake.multipath {
            true => self.sender.paths.iter().map(|subflow| subflow.received.early_bytes()).sum(),
            false => 0,
        };
        Progress {
            next: self.sender.paths[path.index()].received.next(),
            data_next: self.receiver.buffer.next(),
            waiting: self.receiver.buffer.waiting().saturating_sub(early),
        }
    }

    /// The window of an acknowledgement on `path`.
    pub(super) fn linux_window(&mut self, path: PathId) -> u64 {
        let progress = self.progress(path);
        let Some(linux) = &mut self.receiver.linux else { return 0 };
        linux.windows.offer(path.index(), progress)
    }

    /// Sends the acknowledgement of a segment before the program reads the data, so the window does not
    /// include that data (`tcp_ack_snd_check`).
    pub(super) fn acknowledge_unread(&mut self, now: Time, path: PathId) {
        let subflow = &self.sender.paths[path.index()];
        if subflow.is_open() && subflow.received.is_due() {
            let mut ack = Segment::default();
            self.acknowledge_now(now, path, &mut ack);
            self.control.queue.push_back((path, ack));
        }
    }

    /// The program has read `bytes` bytes: the subflows announce the window if it has opened enough.
    pub(super) fn on_linux_read(&mut self, bytes: u64) {
        let waiting = self.progress(PathId(0)).waiting;
        let Some(linux) = &mut self.receiver.linux else { return };
        let longest = linux.round_trips.iter().filter_map(|(smoothed, _)| *smoothed).max();
        linux.windows.on_read();
        let round_trip = longest.unwrap_or(Duration::ZERO).as_nanos();
        linux.windows.on_copied(linux.now.as_nanos(), bytes, round_trip);
        // Plain TCP has no test before that of the subflow.
        let opened = !self.handshake.multipath || linux.windows.has_opened(waiting);
        for path in self.ids() {
            let progress = self.progress(path);
            let Some(linux) = &self.receiver.linux else { return };
            let received = &mut self.sender.paths[path.index()].received;
            let unannounced = received.is_scheduled()
                && linux.windows.has_unannounced(path.index(), progress.next);
            if unannounced || (opened && linux.windows.announces(path.index(), progress)) {
                received.make_due();
            }
        }
    }
}
