//! State of each packet when it was sent.

use std::collections::VecDeque;

/// State when a packet was sent (draft-ietf-ccwg-bbr, 4.1.2.1.2: `P`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct PacketState {
    /// `P.tx_in_flight`: bytes in flight, including the packet.
    pub tx_in_flight: u64,
    /// `P.lost`: bytes lost on the path so far.
    pub lost: u64,
    /// `P.is_app_limited`: whether the application or the receive window was the limit.
    pub app_limited: bool,
}

/// The packets in flight, by their number.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct SentLog {
    packets: VecDeque<PacketState>,
    first: u64,
}

impl SentLog {
    /// Records packet `number`. Packets are numbered consecutively; after a gap, the earlier ones are
    /// dropped.
    pub fn push(&mut self, number: u64, state: PacketState) {
        if number != self.first + self.packets.len() as u64 {
            self.packets.clear();
            self.first = number;
        }
        self.packets.push_back(state);
    }

    /// State of a packet that is still recorded.
    pub fn get(&self, number: u64) -> Option<PacketState> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.packets.get(at).copied()
    }

    /// Forgets the packets before `oldest`.
    pub fn forget_before(&mut self, oldest: u64) {
        let count = oldest.saturating_sub(self.first).min(self.packets.len() as u64);
        self.packets.drain(..count as usize);
        self.first += count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_found_by_number_until_they_are_forgotten() {
        let mut log = SentLog::default();
        let state = |lost| PacketState { tx_in_flight: 1, lost, app_limited: false };
        (7..12).for_each(|number| log.push(number, state(number)));
        log.forget_before(9);
        assert_eq!(
            [8, 9, 11, 12].map(|n| log.get(n).map(|s| s.lost)),
            [None, Some(9), Some(11), None]
        );
        log.push(40, state(40));
        assert_eq!([11, 40].map(|n| log.get(n).map(|s| s.lost)), [None, Some(40)], "after a gap");
        log.forget_before(100);
        log.push(100, state(1));
        assert!(log.get(100).is_some() && log.packets.len() == 1);
    }
}
