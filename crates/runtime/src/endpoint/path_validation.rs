//! Path validation: verifies the peer's address of each path, and limits how much is sent to an address that has not
//! answered (RFC 9000, 8.2 and 9.3, with SCTP's HEARTBEATs as challenges).
//!
//! A packet that is sealed (or has the right verification tag) proves its author, but not its source address: an
//! on-path attacker can send a copy from its own address, or from that of a victim.
//!
//! ```text
//!                 packet from a new address
//!   route: old  ------------------------------>  route: old, candidate: new
//!       ^                                              |  both are challenged
//!       |   old answers                                |
//!       +----------------------------------------------+
//!       |                                              |  new answers, old stays silent for
//!   route: new  <--------------------------------------+  clearly longer than new took
//! ```
//!
//! Until it has answered, an address receives at most three times the bytes received from it. Sizes are those of IP
//! packets.

use std::net::SocketAddr;

use ropewalk_base::{Duration, Time};

use super::peer::Route;

/// Factor between the bytes from an unvalidated address and those that it may receive (RFC 9000, 8: three).
const AMPLIFICATION_LIMIT: u64 = 3;
/// Maximum number of candidates per path at a time. With two, a third party that sends copies cannot prevent the real
/// peer from moving.
const CANDIDATES_LIMIT: usize = 2;
/// How long a candidate keeps its place, even if other addresses send meanwhile.
const CANDIDATE_HOLD: Duration = Duration::from_millis(250);
/// After the route has moved or was confirmed, no candidate is accepted for this time. This bounds the challenges
/// that a third party can cause by sending copies.
const CANDIDATE_INTERVAL: Duration = Duration::from_secs(1);
/// First interval of repeated challenges. It doubles each time.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(250);
/// Challenges per candidate; then the candidate is dropped.
const CHALLENGES: u32 = 4;
/// Minimum extra time that the old route gets to answer after the candidate did.
const GRACE_MIN: Duration = Duration::from_millis(150);
/// Maximum extra time, regardless of the path's delay.
const GRACE_MAX: Duration = Duration::from_secs(3);

/// Size of the IP and UDP headers of a datagram to or from this address, bytes. An address without a port is IP
/// alone.
pub(super) const fn lower_headers(remote: &SocketAddr) -> u64 {
    let udp = if remote.port() == 0 { 0 } else { 8 };
    udp + if remote.is_ipv4() { 20 } else { 40 }
}

/// Bytes received from and sent to an address that has not answered a challenge.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    received: u64,
    sent: u64,
}

impl Budget {
    /// Charges a packet. Returns whether it may be sent.
    const fn charge(&mut self, bytes: u64) -> bool {
        let fits = self.sent + bytes <= AMPLIFICATION_LIMIT * self.received;
        if fits {
            self.sent += bytes;
        }
        fits
    }
}

/// State of the address that a path leads to.
#[derive(Clone, Copy, Debug)]
enum AddressState {
    /// The address has answered, or the application has named it.
    Validated,
    /// Validated for another path. The first address that answers for this path replaces it.
    Borrowed,
    /// Packets arrived from the address, but it has not answered.
    Unvalidated(Budget),
    /// The peer has listed the address, but no packet has arrived from it. Packets to it are charged to
    /// the bytes that the association has received.
    Listed,
}

/// An address that a path may have moved to.
#[derive(Debug)]
struct Candidate {
    route: Route,
    /// `None` once it has answered.
    budget: Option<Budget>,
    /// Nonce that is sent to the candidate only.
    nonce: u64,
    /// Nonce that is sent to the current route only.
    old_nonce: u64,
    began: Time,
    challenges: u32,
    challenge_due: Time,
    /// When the route moves here if the old address stays silent. Set once the candidate has answered.
    moves_at: Option<Time>,
}

/// Validation state of one path.
#[derive(Debug)]
struct ValidatedPath {
    path: usize,
    address_state: AddressState,
    candidates: Vec<Candidate>,
    /// The route before the last move. It is challenged again if the path fails.
    previous: Option<Route>,
    no_candidate_before: Time,
}

/// A move of a path to another route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The path.
    pub path: usize,
    /// Its new route.
    pub to: Route,
}

/// A HEARTBEAT that must be sent to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// The path.
    pub path: usize,
    /// The route to send it on.
    pub to: Route,
    /// The nonce that the answer must contain.
    pub nonce: u64,
}

/// Address validation of an association. A path without an entry leads to a validated address.
#[derive(Debug, Default)]
pub struct PathValidation {
    validated: Vec<ValidatedPath>,
    /// Challenges to send; each has been charged.
    queue: Vec<Challenge>,
    moves: Vec<Move>,
    /// Bytes received in the association, and bytes sent to listed addresses that have not answered.
    received: u64,
    sent_to_listed: u64,
}

impl PathValidation {
    /// Handles a packet of the peer that arrived on `path` by the route `from`; the path's own route
    /// is `current`.
    pub fn on_packet(&mut self, now: Time, path: usize, from: Route, current: Route, bytes: u64) {
        self.received += bytes;
        if from.is_like(&current) {
            if let Some(validated) = self.find(path)
                && let AddressState::Unvalidated(budget) = &mut validated.address_state
            {
                budget.received += bytes;
            }
            return;
        }
        let validated = self.examine(path);
        let known =
            validated.candidates.iter_mut().find(|candidate| candidate.route.is_like(&from));
        match known {
            Some(Candidate { budget: Some(budget), .. }) => budget.received += bytes,
            Some(_) => {}
            None => {
                let budget = Budget { received: bytes, sent: 0 };
                validated.add_candidate(now, from, Some(budget));
            }
        }
    }

    /// Handles the first packet of a path, of `bytes`: the path's address is not validated.
    pub fn on_new_path(&mut self, path: usize, bytes: u64) {
        self.received += bytes;
        self.examine(path).address_state =
            AddressState::Unvalidated(Budget { received: bytes, sent: 0 });
    }

    /// Starts a path at an address that was validated for another path.
    pub fn on_borrowed(&mut self, path: usize) {
        self.examine(path).address_state = AddressState::Borrowed;
    }

    /// Starts a path at an address that the peer has listed.
    pub fn on_listed(&mut self, path: usize) {
        self.examine(path).address_state = AddressState::Listed;
    }

    /// Removes the paths whose entry in `kept` is false and renumbers the others in order.
    pub fn retain_paths(&mut self, kept: &[bool]) {
        let stays = |path: usize| kept.get(path) == Some(&true);
        self.validated.retain(|validated| stays(validated.path));
        for validated in &mut self.validated {
            validated.path = kept[..validated.path].iter().filter(|kept| **kept).count();
        }
        self.queue.clear();
        self.moves.clear();
    }

    /// RFC 9260, 5.4: the address used to set up the association is confirmed. Only a peer that received the INIT ACK
    /// there can have sent the COOKIE ECHO, and only one that received the INIT can have answered it.
    pub fn on_set_up(&mut self, path: usize) {
        self.validated.retain(|validated| validated.path != path);
    }

    /// Whether the peer has listed the address of this path, and no packet has arrived from it yet.
    pub fn is_only_listed(&self, path: usize) -> bool {
        let only_listed =
            |validated: &ValidatedPath| matches!(validated.address_state, AddressState::Listed);
        self.validated.iter().any(|validated| validated.path == path && only_listed(validated))
    }

    /// Handles an answer to the engine's own HEARTBEAT, which is sent only on the path's route.
    pub fn on_confirmed(&mut self, path: usize) {
        if let Some(validated) = self.find(path)
            && matches!(
                validated.address_state,
                AddressState::Unvalidated(_) | AddressState::Listed
            )
        {
            validated.address_state = AddressState::Validated;
        }
    }

    /// Handles a failing path: its address may have moved back to the previous one.
    pub fn on_failing(&mut self, now: Time, path: usize) {
        if let Some(validated) = self.find(path)
            && let Some(previous) = validated.previous
            && validated.candidates.iter().all(|candidate| !candidate.route.is_like(&previous))
        {
            validated.add_candidate(now, previous, None);
        }
    }

    /// Handles a HEARTBEAT ACK with this nonce, on any path. `round_trip` is the path's recent round-trip time.
    pub fn on_answer(&mut self, now: Time, nonce: u64, round_trip: Option<Duration>) {
        for validated in &mut self.validated {
            if validated.candidates.iter().any(|candidate| candidate.old_nonce == nonce) {
                // The old route answers: the path does not move.
                validated.candidates.clear();
                validated.no_candidate_before = now + CANDIDATE_INTERVAL;
                return;
            }
            let at = validated.candidates.iter().position(|candidate| candidate.nonce == nonce);
            if let Some(at) = at {
                validated.on_candidate_answered(now, at, round_trip);
                return;
            }
        }
    }

    /// Whether packets on `path` must be charged with [`PathValidation::charge`].
    #[inline]
    pub fn is_send_limited(&self, path: usize) -> bool {
        let limited = |validated: &&ValidatedPath| {
            matches!(validated.address_state, AddressState::Unvalidated(_) | AddressState::Listed)
        };
        self.validated.iter().filter(limited).any(|validated| validated.path == path)
    }

    /// Charges a packet to the address of `path`. Returns whether it may be sent.
    pub fn charge(&mut self, path: usize, bytes: u64) -> bool {
        let listed = AMPLIFICATION_LIMIT * self.received;
        let spent = self.sent_to_listed + bytes;
        let Some(validated) = self.find(path) else { return true };
        match &mut validated.address_state {
            AddressState::Validated | AddressState::Borrowed => true,
            AddressState::Unvalidated(budget) => budget.charge(bytes),
            AddressState::Listed => {
                if spent <= listed {
                    self.sent_to_listed = spent;
                }
                spent <= listed
            }
        }
    }

    /// Finds the challenges and moves that are due. `routes` are the paths' routes, and `bytes` is the size of a
    /// challenge without IP and UDP headers.
    pub fn update(&mut self, now: Time, routes: &[Option<Route>], bytes: u64) {
        for validated in &mut self.validated {
            let current = routes.get(validated.path).copied().flatten();
            if let Some(to) = validated.decide(now, current) {
                self.moves.push(Move { path: validated.path, to });
            }
            validated.challenge(now, current, bytes, &mut self.queue);
        }
        self.validated.retain(|validated| !validated.is_settled(now));
    }

    /// The next challenge to send.
    pub fn poll_challenge(&mut self) -> Option<Challenge> {
        self.queue.pop()
    }

    /// The next move to apply.
    pub fn poll_move(&mut self) -> Option<Move> {
        self.moves.pop()
    }

    /// Whether no path is under validation: then [`PathValidation::on_answer`] need not be called.
    #[inline]
    pub const fn is_idle(&self) -> bool {
        self.validated.is_empty()
    }

    /// When [`PathValidation::update`] must be called.
    pub fn next_deadline(&self) -> Option<Time> {
        let candidates = self.validated.iter().flat_map(|validated| &validated.candidates);
        candidates.map(Candidate::deadline).min()
    }

    fn find(&mut self, path: usize) -> Option<&mut ValidatedPath> {
        self.validated.iter_mut().find(|validated| validated.path == path)
    }

    fn examine(&mut self, path: usize) -> &mut ValidatedPath {
        let known = self.validated.iter().position(|validated| validated.path == path);
        let at = known.unwrap_or_else(|| {
            self.validated.push(ValidatedPath {
                path,
                address_state: AddressState::Validated,
                candidates: Vec::new(),
                previous: None,
                no_candidate_before: Time::ZERO,
            });
            self.validated.len() - 1
        });
        &mut self.validated[at]
    }
}

impl Candidate {
    /// Charges a challenge. Returns whether it may be sent.
    fn charge(&mut self, bytes: u64) -> bool {
        let bytes = bytes + lower_headers(&self.route.remote);
        self.budget.as_mut().is_none_or(|budget| budget.charge(bytes))
    }

    fn deadline(&self) -> Time {
        self.moves_at.map_or(self.challenge_due, |at| at.min(self.challenge_due))
    }
}

impl ValidatedPath {
    fn add_candidate(&mut self, now: Time, route: Route, budget: Option<Budget>) {
        if now < self.no_candidate_before {
            return;
        }
        if self.candidates.len() >= CANDIDATES_LIMIT {
            let replaceable = |candidate: &Candidate| {
                candidate.moves_at.is_none() && now.since(candidate.began) >= CANDIDATE_HOLD
            };
            let Some(at) = self.candidates.iter().position(replaceable) else { return };
            self.candidates.remove(at);
        }
        // Without random numbers no address can be validated, and no path moves.
        let (Ok(nonce), Ok(old_nonce)) = (getrandom::u64(), getrandom::u64()) else { return };
        self.candidates.push(Candidate {
            route,
            budget,
            nonce,
            old_nonce,
            began: now,
            challenges: 0,
            challenge_due: now,
            moves_at: None,
        });
    }

    /// Whether the path moves only if its current address stays silent.
    const fn is_held(&self) -> bool {
        matches!(self.address_state, AddressState::Validated)
    }

    fn on_candidate_answered(&mut self, now: Time, at: usize, round_trip: Option<Duration>) {
        let held = self.is_held();
        let candidate = &mut self.candidates[at];
        candidate.budget = None;
        if candidate.moves_at.is_some() {
            return;
        }
        let took = now.since(candidate.began);
        let slow = round_trip.map_or(Duration::ZERO, |trip| trip * 2);
        let grace = (took * 2).max(slow).clamp(GRACE_MIN, GRACE_MAX);
        candidate.moves_at = Some(if held { now + grace } else { now });
        // Challenge the old route once more: the first challenge may have been lost.
        candidate.challenge_due = now;
    }

    /// The route to move to, once decided.
    fn decide(&mut self, now: Time, current: Option<Route>) -> Option<Route> {
        let due = |candidate: &Candidate| candidate.moves_at.is_some_and(|at| at <= now);
        let at = self.candidates.iter().position(due)?;
        let to = self.candidates.remove(at).route;
        let answered =
            matches!(self.address_state, AddressState::Validated | AddressState::Borrowed);
        self.previous = current.filter(|_| answered);
        self.candidates.clear();
        self.address_state = AddressState::Validated;
        self.no_candidate_before = now + CANDIDATE_INTERVAL;
        Some(to)
    }

    /// Queues the challenges that are due, to each candidate and to the current route.
    fn challenge(
        &mut self,
        now: Time,
        current: Option<Route>,
        bytes: u64,
        queue: &mut Vec<Challenge>,
    ) {
        let (path, old) = (self.path, current.filter(|_| self.is_held()));
        self.candidates.retain_mut(|candidate| {
            if candidate.challenge_due > now {
                return true;
            }
            if candidate.challenges >= CHALLENGES && candidate.moves_at.is_none() {
                return false;
            }
            candidate.challenge_due = now + CHALLENGE_INTERVAL * (1 << candidate.challenges.min(4));
            candidate.challenges += 1;
            let to = candidate.route;
            if candidate.moves_at.is_none() && candidate.charge(bytes) {
                queue.push(Challenge { path, to, nonce: candidate.nonce });
            }
            queue.extend(old.map(|to| Challenge { path, to, nonce: candidate.old_nonce }));
            true
        });
    }

    fn is_settled(&self, now: Time) -> bool {
        matches!(self.address_state, AddressState::Validated)
            && self.candidates.is_empty()
            && self.previous.is_none()
            && self.no_candidate_before <= now
    }
}

#[cfg(test)]
#[path = "path_validation_tests.rs"]
mod tests;
