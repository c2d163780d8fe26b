//! Refused INITs: the host at an address reports that it does not receive SCTP (RFC 9260, 10).

use ropewalk_base::{PathId, Time};

use super::{Association, CloseReason, State};

impl Association {
    /// The peer's addresses on these paths have refused the INIT: an ICMP message arrived that quotes an
    /// INIT with this end's tag ([`Association::tags`]). The driver has verified the quotation.
    ///
    /// RFC 9260, 10 (ICMP8): in COOKIE-WAIT, such a message is handled like an ABORT. Another address of
    /// the peer may still answer, so the INIT is sent to the next one immediately, and the association
    /// ends when all have refused. In all other states, nothing happens.
    pub fn on_init_refused(&mut self, now: Time, refused: impl Fn(usize) -> bool) {
        let State::CookieWait { t1 } = &mut self.state else { return };
        let paths = 0..self.sender.paths.len();
        let before = self.handshake.refused_paths;
        for path in paths.clone().filter(|path| refused(*path)) {
            self.handshake.refused_paths |= 1_u16.checked_shl(path as u32).unwrap_or_default();
        }
        if self.handshake.refused_paths == before {
            return;
        }
        let Some(next) = paths.clone().find(|path| !self.handshake.has_refused(*path)) else {
            self.close(CloseReason::Refused);
            return;
        };
        // Like a first attempt: the timeouts of other addresses do not apply to this one.
        t1.at = now + self.config.rto.initial;
        self.push_init(PathId::from_index(next));
    }

    /// The path of an INIT's next attempt: paths take turns, except those whose addresses have refused.
    pub(super) fn next_init_path(&self, attempt: u32) -> PathId {
        let paths = self.sender.paths.len();
        let turn = |offset: usize| (attempt as usize + offset) % paths;
        let open = (0..paths).map(turn).find(|path| !self.handshake.has_refused(*path));
        PathId::from_index(open.unwrap_or(turn(0)))
    }
}
