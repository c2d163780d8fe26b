//! Explicit congestion notification: the network marks packets where it would have to drop them soon (RFC 3168).
//! For SCTP it stands in RFC 4960, Appendix A; RFC 9260 has left it out without a word against it.
//!
//! The receiver of a marked packet says so beside its SACKs (ECNE, with the lowest TSN of that packet) until the
//! sender answers (CWR), which reduces the window of the path on which that TSN went, once per window.

use ropewalk_base::{Duration, PathId, Serial32, Time};

use super::super::chunk::Chunk;
use super::super::extension_chunk::ExtensionChunk;
use super::super::extensions::Extensions;
use super::super::packet::Packet;
use super::Association;
use crate::congestion::CongestionControl;
use crate::sctp::tx::RecordState;

/// Bytes of an ECNE chunk.
const ECNE: u32 = 8;
/// So many timeouts in a row on a path that has never delivered a packet that may be marked: somebody on the way
/// drops those.
const FAILURES: u8 = 2;
/// The same echo is answered no sooner again where the round trip is not known.
const AGAIN: Duration = Duration::from_millis(100);

/// What becomes of packets that may be marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trial {
    /// None was acknowledged yet; timeouts so far.
    Open(u8),
    /// They arrive.
    Passed,
    /// They do not: none are sent.
    Failed,
}

/// ECN on one path.
#[derive(Clone, Debug)]
pub(super) struct Ecn {
    trial: Trial,
    /// What is sent from this TSN on did not know of the last reduction.
    reduced_to: u64,
    /// The last echo that was answered, and when.
    answered: Option<(Serial32, Time)>,
    /// The last marked packet from the peer that the peer has not answered for yet.
    echo: Option<u64>,
}

impl Ecn {
    const fn new() -> Self {
        Self { trial: Trial::Open(0), reduced_to: 0, answered: None, echo: None }
    }

    /// Whether packets with data may be marked.
    pub fn is_on(&self) -> bool {
        self.trial != Trial::Failed
    }

    /// A packet that may have been marked arrived.
    pub const fn on_arrival(&mut self) {
        if let Trial::Open(_) = self.trial {
            self.trial = Trial::Passed;
        }
    }

    /// All that was on its way is lost.
    pub const fn on_timeout(&mut self) {
        if let Trial::Open(failures) = self.trial {
            self.trial =
                if failures + 1 >= FAILURES { Trial::Failed } else { Trial::Open(failures + 1) };
        }
    }
}

impl Association {
    /// Both ends have agreed upon it, or have not.
    pub(super) fn settle_ecn(&mut self) {
        let fresh = self.fresh_ecn();
        self.paths.iter_mut().for_each(|path| path.ecn.clone_from(&fresh));
        self.marked = false;
    }

    /// For a path of which nothing is known yet.
    pub(super) fn fresh_ecn(&self) -> Option<Box<Ecn>> {
        self.peer.agreed.has(Extensions::ECN).then(|| Box::new(Ecn::new()))
    }

    /// A packet came that the network has marked.
    #[cold]
    pub(super) fn on_marked(&mut self, path: PathId, packet: &Packet) {
        let cumulative = self.inbound.buffer.cumulative();
        let tsn = |chunk: &Chunk| match chunk {
            Chunk::Data(data) => Some(data.tsn.unwrap_near(cumulative)),
            _ => None,
        };
        let (Some(ecn), Some(lowest)) =
            (&mut self.paths[path.index()].ecn, packet.chunks.iter().filter_map(tsn).min())
        else {
            return;
        };
        ecn.echo = ecn.echo.max(Some(lowest));
        self.marked = true;
    }

    /// Bytes of the echoes that go beside the next SACK.
    pub(super) fn echo_room(&self) -> u32 {
        if !self.marked {
            return 0;
        }
        let echoes = self.paths.iter().filter_map(|path| path.ecn.as_ref()?.echo);
        ECNE * echoes.count() as u32
    }

    /// Puts the echoes before the SACK, which would else acknowledge what they speak of.
    #[cold]
    pub(super) fn echo_marks(&self, packet: &mut Packet) {
        let echoes = self.paths.iter().filter_map(|path| path.ecn.as_ref()?.echo);
        for tsn in echoes {
            let ecne = Chunk::Extension(Box::new(ExtensionChunk::Ecne(Serial32::wrap(tsn))));
            packet.chunks.insert(0, ecne);
        }
    }

    /// ECNE that came on `from`. What was never sent is nobody's congestion; what is acknowledged already was told
    /// before, or cannot be told of any path.
    #[cold]
    pub(super) fn on_ecne(&mut self, now: Time, from: PathId, wire_tsn: Serial32) {
        let tsn = wire_tsn.unwrap_near(self.outstanding.board.cumulative());
        if tsn >= self.outstanding.board.next_tsn() {
            return;
        }
        let on = match self.outstanding.board.get(tsn).map(|record| record.state) {
            Some(RecordState::Unsent) => return,
            Some(RecordState::InFlight { path, .. }) => Some(path),
            Some(RecordState::Acked { by }) => Some(by),
            Some(RecordState::Lost { on, .. }) => Some(on),
            None => None,
        };
        if let Some(on) = on {
            self.reduce_for_mark(now, on, tsn);
        }
        let srtt = self.paths[from.index()].tx.rtt.srtt().unwrap_or(AGAIN);
        let Some(ecn) = &mut self.paths[from.index()].ecn else { return };
        let fresh = |(tsn, at): (Serial32, Time)| tsn != wire_tsn || now.since(at) >= srtt;
        if ecn.answered.is_none_or(fresh) {
            ecn.answered = Some((wire_tsn, now));
            let cwr = Chunk::Extension(Box::new(ExtensionChunk::Cwr(wire_tsn)));
            self.reply(from, self.peer_tag, cwr);
        }
    }

    /// Once per window; a loss in it has reduced it as well.
    fn reduce_for_mark(&mut self, now: Time, on: PathId, tsn: u64) {
        let next = self.outstanding.board.next_tsn();
        let path = &mut self.paths[on.index()];
        let recovers = path.in_recovery();
        let Some(ecn) = &mut path.ecn else { return };
        if recovers || tsn < ecn.reduced_to {
            return;
        }
        ecn.reduced_to = next;
        path.tx.counters.marked += 1;
        self.sender.congestion.on_ecn(on, now);
    }

    /// CWR: the peer has heard of all marks up to that TSN.
    #[cold]
    pub(super) fn on_cwr(&mut self, tsn: Serial32) {
        let tsn = tsn.unwrap_near(self.inbound.buffer.cumulative());
        for path in &mut self.paths {
            if let Some(ecn) = &mut path.ecn {
                ecn.echo = ecn.echo.filter(|echo| *echo > tsn);
            }
        }
        let echoes = |path: &super::Path| path.ecn.as_ref().is_some_and(|ecn| ecn.echo.is_some());
        self.marked = self.paths.iter().any(echoes);
    }
}
