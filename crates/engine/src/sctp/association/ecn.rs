//! Explicit congestion notification (RFC 3168): the network marks packets instead of dropping them. RFC 4960,
//! Appendix A, defines ECN for SCTP; RFC 9260 omits it without deprecating it.
//!
//! The receiver of a marked packet reports it beside its SACKs (ECNE, with the lowest TSN of that packet)
//! until the sender confirms it (CWR). The sender reduces the window of the path that carried that TSN, once
//! per window.

use ropewalk_base::{Duration, PathId, Serial32, Time};

use super::super::chunk::Chunk;
use super::super::extension_chunk::ExtensionChunk;
use super::super::extensions::Extensions;
use super::super::packet::Packet;
use super::Association;
use crate::congestion::CongestionControl;
use crate::sctp::tx::RecordState;

/// Length of an ECNE chunk, bytes.
const ECNE: u32 = 8;
/// Consecutive timeouts after which ECN is disabled on a path that has never delivered an ECT packet: a
/// middlebox drops such packets.
const FAILURES: u8 = 2;
/// Minimum time between two answers to the same ECNE while the RTT is unknown.
const AGAIN: Duration = Duration::from_millis(100);

/// Whether a path delivers ECT packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trial {
    /// None has been acknowledged yet; number of timeouts so far.
    Open(u8),
    /// ECT packets arrive.
    Passed,
    /// ECT packets do not arrive: none are sent any more.
    Failed,
}

/// ECN on one path.
#[derive(Clone, Debug)]
pub(super) struct Ecn {
    trial: Trial,
    /// First TSN sent after the last reduction. Marks of earlier TSNs cause no further one.
    reduced_to: u64,
    /// The last ECNE that was answered, and when.
    answered: Option<(Serial32, Time)>,
    /// Lowest TSN of the last marked packet, until the peer has confirmed it (CWR).
    echo: Option<u64>,
}

impl Ecn {
    const fn new() -> Self {
        Self { trial: Trial::Open(0), reduced_to: 0, answered: None, echo: None }
    }

    /// Whether packets with data are sent as ECT.
    pub fn is_on(&self) -> bool {
        self.trial != Trial::Failed
    }

    /// An ECT packet was delivered.
    pub const fn on_arrival(&mut self) {
        if let Trial::Open(_) = self.trial {
            self.trial = Trial::Passed;
        }
    }

    /// T3 of the path expired.
    pub const fn on_timeout(&mut self) {
        if let Trial::Open(failures) = self.trial {
            self.trial =
                if failures + 1 >= FAILURES { Trial::Failed } else { Trial::Open(failures + 1) };
        }
    }
}

impl Association {
    /// Enables or disables ECN on all paths, as negotiated.
    pub(super) fn settle_ecn(&mut self) {
        let fresh = self.fresh_ecn();
        self.sender.paths.iter_mut().for_each(|path| path.ecn.clone_from(&fresh));
        self.marked = false;
    }

    /// ECN state of a new path; none if not negotiated.
    pub(super) fn fresh_ecn(&self) -> Option<Box<Ecn>> {
        self.peer.agreed.has(Extensions::ECN).then(|| Box::new(Ecn::new()))
    }

    /// Processes a packet that the network has marked.
    #[cold]
    pub(super) fn on_marked(&mut self, path: PathId, packet: &Packet) {
        let cumulative = self.inbound.buffer.cumulative();
        let tsn = |chunk: &Chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn.unwrap_near(cumulative)),
            _ => None,
        };
        let (Some(ecn), Some(lowest)) =
            (&mut self.sender.paths[path.index()].ecn, packet.chunks.iter().filter_map(tsn).min())
        else {
            return;
        };
        ecn.echo = ecn.echo.max(Some(lowest));
        self.marked = true;
    }

    /// Length of the ECNE chunks beside the next SACK, bytes.
    pub(super) fn echo_room(&self) -> u32 {
        if !self.marked {
            return 0;
        }
        let echoes = self.sender.paths.iter().filter_map(|path| path.ecn.as_ref()?.echo);
        ECNE * echoes.count() as u32
    }

    /// Puts ECNE chunks before the SACK, which would otherwise acknowledge their TSNs first.
    #[cold]
    pub(super) fn echo_marks(&self, packet: &mut Packet) {
        let echoes = self.sender.paths.iter().filter_map(|path| path.ecn.as_ref()?.echo);
        for tsn in echoes {
            let ecne = Chunk::Extension(Box::new(ExtensionChunk::Ecne(Serial32::wrap(tsn))));
            packet.chunks.insert(0, ecne);
        }
    }

    /// Processes an ECNE that arrived on `from`. A TSN that was never sent is ignored. For a TSN that is
    /// already acknowledged no window is reduced: either an earlier ECNE has reported it, or its path is no
    /// longer known.
    #[cold]
    pub(super) fn on_ecne(&mut self, now: Time, from: PathId, wire_tsn: Serial32) {
        let tsn = wire_tsn.unwrap_near(self.sender.outstanding.board.cumulative());
        if tsn >= self.sender.outstanding.board.next_tsn() {
            return;
        }
        let on = match self.sender.outstanding.board.get(tsn).map(|record| record.state) {
            Some(RecordState::Unsent) => return,
            Some(RecordState::InFlight { path, .. }) => Some(path),
            Some(RecordState::Acked { by }) => Some(by),
            Some(RecordState::Lost { on, .. }) => Some(on),
            None => None,
        };
        if let Some(on) = on {
            self.reduce_for_mark(now, on, tsn);
        }
        let srtt = self.sender.paths[from.index()].tx.rtt.srtt().unwrap_or(AGAIN);
        let Some(ecn) = &mut self.sender.paths[from.index()].ecn else { return };
        let fresh = |(tsn, at): (Serial32, Time)| tsn != wire_tsn || now.since(at) >= srtt;
        if ecn.answered.is_none_or(fresh) {
            ecn.answered = Some((wire_tsn, now));
            let cwr = Chunk::Extension(Box::new(ExtensionChunk::Cwr(wire_tsn)));
            self.reply(from, self.peer_tag, cwr);
        }
    }

    /// Reduces the window of a path once per window of data. A loss in the same window has reduced it
    /// already.
    fn reduce_for_mark(&mut self, now: Time, on: PathId, tsn: u64) {
        let next = self.sender.outstanding.board.next_tsn();
        let path = &mut self.sender.paths[on.index()];
        let recovers = path.in_recovery();
        let Some(ecn) = &mut path.ecn else { return };
        if recovers || tsn < ecn.reduced_to {
            return;
        }
        ecn.reduced_to = next;
        path.tx.counters.marked += 1;
        self.sender.congestion.on_ecn(on, now);
    }

    /// Processes a CWR: the peer has received all echoes up to that TSN.
    #[cold]
    pub(super) fn on_cwr(&mut self, tsn: Serial32) {
        let tsn = tsn.unwrap_near(self.inbound.buffer.cumulative());
        for path in &mut self.sender.paths {
            if let Some(ecn) = &mut path.ecn {
                ecn.echo = ecn.echo.filter(|echo| *echo > tsn);
            }
        }
        let echoes = |path: &super::Path| path.ecn.as_ref().is_some_and(|ecn| ecn.echo.is_some());
        self.marked = self.sender.paths.iter().any(echoes);
    }
}
