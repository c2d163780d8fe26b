//! A session with the quirks of the model of Chihani and Collange: see [`super::super::chihani`].

use ropewalk_base::{PathId, Time};

use super::super::chihani::{Front, Verdict};
use super::super::reordering::Reordering;
use super::super::segment::{Sacks, Segment, Stamps};
use super::super::subflow::{Phase, Subflow};
use super::Session;
use super::board::MappingState;
use crate::congestion::{Congestion, CongestionControl};

const NS_PER_MS: u64 = 1_000_000;

impl Session {
    /// Whether data has to wait because a subflow is still being opened.
    pub(super) fn model_waits_for_subflows(&self) -> bool {
        let opening =
            |subflow: &Subflow| matches!(subflow.phase, Phase::SynSent(_) | Phase::SynReceived(_));
        self.config.quirks.is_some_and(|quirks| quirks.data_waits)
            && self.handshake.opens
            && self.sender.paths.iter().any(opening)
    }

    /// Handles data that is already in the buffer, `length` bytes from `dsn` on. It is held, or releases
    /// held data.
    pub(super) fn on_model_data(
        &mut self,
        now: Time,
        path: PathId,
        segment: &Segment,
        dsn: u64,
        length: u32,
    ) {
        let length = length as u64;
        let (next, seq_end) = (self.receiver.buffer.next(), segment.seq + length);
        let rule = self.config.reordering;
        if dsn >= next {
            let early = segment.seq > self.sender.paths[path.index()].received.next();
            let fresh = self.receiver.reorder_buffer.hold(dsn, dsn + length, path, seq_end);
            let told = match rule {
                // Each is acknowledged with the segment that caused it and the lowest held run.
                Reordering::DSack | Reordering::Eifel => true,
                // The first held segment is in order on its subflow, so it causes no acknowledgement.
                _ => early && fresh,
            };
            if told {
                let blocks = self.model_blocks((dsn, dsn + length));
                self.acknowledge(now, path, segment, blocks);
            }
            return;
        }
        self.sender.paths[path.index()].received.accept_to(seq_end);
        while let Some((path, end)) = self.receiver.reorder_buffer.release(next) {
            self.sender.paths[path.index()].received.accept_to(end);
            self.acknowledge(now, path, &Segment::default(), Sacks::new());
        }
        // The last acknowledgement covers all data released on this subflow, so it is a duplicate.
        self.acknowledge(now, path, segment, Sacks::new());
        self.push_readable();
    }

    /// Blocks of D-SACK: the segment that arrived, and the lowest held run, both at data level.
    fn model_blocks(&self, came: (u64, u64)) -> Sacks {
        let mut blocks = Sacks::new();
        if self.config.reordering == Reordering::DSack {
            blocks.push(came);
            blocks.extend(self.receiver.reorder_buffer.lowest_run());
        }
        blocks
    }

    /// Sends one acknowledgement on `path` immediately, which echoes the timestamp of `cause` if there is
    /// one.
    fn acknowledge(&mut self, now: Time, path: PathId, cause: &Segment, sacks: Sacks) {
        let echo = cause.stamps.map_or(0, |stamps| stamps.value);
        let stamps = self.stamps(now, path).map(|own| Stamps { echo, ..own });
        let ack = self.plain_ack(now, path);
        // The model does not acknowledge session data.
        let ack = Segment { data_ack: None, stamps, sacks, ..ack };
        self.control.queue.push_back((path, ack));
    }

    /// Handles a segment with an acknowledgement.
    pub(super) fn on_model_acks(&mut self, now: Time, path: PathId, segment: &Segment) {
        if !segment.payload.is_empty() {
            return;
        }
        if segment.data_ack.is_some() {
            // An acknowledgement of the end of the data, which the model signals differently.
            self.take_data_ack(segment);
            return;
        }
        let window = self.window_in_segments(path);
        let Some(model) = &mut self.model else { return };
        if model.bursts.throws_away(path, window) {
            return;
        }
        model.doubts.on_blocks(&segment.sacks);
        let subflow = &mut self.sender.paths[path.index()];
        if segment.ack < subflow.sent.next_seq() {
            model.timeouts.on_ack(path);
        }
        let una = subflow.sent.una();
        if segment.ack > una {
            let mut ackd = self.sender.take_subflow_ack(now, path, segment);
            ackd.measure_oldest();
            self.settle(now, path, &ackd);
            self.on_model_progress(path);
        } else if segment.ack == una && una < subflow.sent.next_seq() {
            self.on_model_duplicate(now, path, segment);
        }
    }

    fn window_in_segments(&self, path: PathId) -> f64 {
        match &self.sender.congestion {
            Congestion::Chihani2011(windows) => windows.segments(path),
            other => other.window(path) as f64 / self.sender.outstanding.segment_limit as f64,
        }
    }

    /// Data acknowledged by subflows is in order at data level; otherwise they would not acknowledge it.
    fn on_model_progress(&mut self, path: PathId) {
        let arrived = |state| matches!(state, MappingState::Arrived { .. });
        while let Some((_, unit)) =
            self.sender.outstanding.board.front().filter(|(_, unit)| arrived(unit.state))
        {
            self.pop_acked(unit.end());
        }
        let window = self.window_in_segments(path);
        if let Some(model) = &mut self.model {
            model.doubts.forget_below(self.sender.outstanding.board.una());
            model.doubts.on_window(path, window);
        }
        self.push_writable();
    }

    fn front_of(&self, path: PathId) -> Option<Front> {
        let (piece, mapped) = self.sender.paths[path.index()].sent.front()?;
        Some(Front { piece, dsn: mapped.dsn })
    }

    fn on_model_duplicate(&mut self, now: Time, path: PathId, segment: &Segment) {
        let fronts: Vec<_> = self.ids().map(|path| self.front_of(path)).collect();
        let echo = segment.stamps.map(|stamps| stamps.echo).filter(|echo| *echo != 0);
        let echo_ms = echo.map(|nanos| nanos / NS_PER_MS);
        let rule = self.config.reordering;
        let Some(model) = &mut self.model else { return };
        if rule == Reordering::FRto
            && model.timeouts.opens()
            && let Congestion::Chihani2011(windows) = &mut self.sender.congestion
        {
            windows.open(path);
        }
        match model.doubts.on_duplicate(rule, path, &fronts, echo_ms, &segment.sacks) {
            Verdict::None => {}
            Verdict::Lost(path) => {
                self.sender.paths[path.index()].tx.counters.fast_retransmits += 1;
                self.retransmit_and_cut(now, path);
                self.sender.congestion.on_loss(path, now);
            }
            Verdict::Restore(path) => {
                self.sender.paths[path.index()].tx.counters.undone += 1;
                self.sender.congestion.on_spurious(path, now);
            }
            Verdict::Regrow(path) => {
                self.sender.paths[path.index()].tx.counters.undone += 1;
                let segments = model.doubts.regrow(path);
                if let Congestion::Chihani2011(windows) = &mut self.sender.congestion {
                    windows.slow_start_to(path, segments);
                }
            }
        }
    }

    /// Retransmits the oldest segment of `path`, and doubles the timer.
    fn retransmit_and_cut(&mut self, now: Time, path: PathId) {
        let Some(front) = self.front_of(path) else { return };
        let window = self.window_in_segments(path);
        if let Some(model) = &mut self.model {
            model.doubts.on_cut(path, window);
            model.doubts.on_retransmission(now.as_nanos() / NS_PER_MS, path, front);
        }
        let subflow = &mut self.sender.paths[path.index()];
        subflow.tx.counters.lost += 1;
        subflow.tx.losses += 1;
        subflow.tx.rtt.back_off();
        subflow.probe = Some(front.piece);
        self.sender.epoch += 1;
    }

    /// Handles a timeout of `path`: only one segment is retransmitted.
    pub(super) fn on_model_timeout(&mut self, now: Time, path: PathId) {
        let subflow = &mut self.sender.paths[path.index()];
        subflow.timer = None;
        subflow.tx.counters.timeouts += 1;
        if let Some(model) = &mut self.model {
            model.timeouts.on_timeout(path);
        }
        self.retransmit_and_cut(now, path);
        self.sender.congestion.on_timeout(path, now);
    }
}
