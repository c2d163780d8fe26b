//! Path validation: which address of the peer a path leads to, and how much may be sent to an address
//! that has not answered (RFC 9000, 8.2 and 9.3, with SCTP's HEARTBEATs as challenges).
//!
//! A packet that is sealed (or has the right tag) proves who made it, and nothing about where it came
//! from: somebody beside the way can send a copy from his own address, or from that of a victim.
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
//! Until it has answered, an address gets at most three times the bytes that came from it. Sizes are
//! those of IP packets.

use std::net::SocketAddr;

use ropewalk_base::{Duration, Time};

use super::peer::Route;

/// Factor between what an unvalidated address sent and what it may get (RFC 9000, 8: three).
const AMPLIFICATION_LIMIT: u64 = 3;
/// Candidates per path at a time. With two, a third party that sends copies does not keep the real peer
/// from moving.
const CANDIDATES_LIMIT: usize = 2;
/// A candidate keeps its place for this long, even if other addresses send meanwhile.
const CANDIDATE_HOLD: Duration = Duration::from_millis(250);
/// After the route has moved or has proved to be right, no candidate is taken for so long: it bounds the
/// challenges that somebody who sends copies can cause.
const CANDIDATE_INTERVAL: Duration = Duration::from_secs(1);
/// A challenge is repeated after so long, then after twice as long each time.
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(250);
/// Challenges per candidate; then it is forgotten.
const CHALLENGES: u32 = 4;
/// The old route gets at least so much more time to answer than the candidate took.
const GRACE_MIN: Duration = Duration::from_millis(150);
/// It never gets more than this, however slow the path was.
const GRACE_MAX: Duration = Duration::from_secs(3);

/// Headers of IP and UDP in front of a datagram to or from this address, bytes.
pub(super) const fn lower_headers(remote: &SocketAddr) -> u64 {
    if remote.is_ipv4() { 28 } else { 48 }
}

/// Bytes from and to an address that has not answered a challenge.
#[derive(Clone, Copy, Debug, Default)]
struct Budget {
    received: u64,
    sent: u64,
}

impl Budget {
    /// Charges a packet; whether it may leave.
    const fn charge(&mut self, bytes: u64) -> bool {
        let fits = self.sent + bytes <= AMPLIFICATION_LIMIT * self.received;
        if fits {
            self.sent += bytes;
        }
        fits
    }
}

/// What is known of the address that a path leads to.
#[derive(Clone, Copy, Debug)]
enum Standing {
    /// It has answered, or this end's user has named it.
    Validated,
    /// It has answered, but as the address of another path: the first one that answers for this path
    /// takes its place.
    Borrowed,
    /// A packet came from there, no more.
    Unvalidated(Budget),
    /// The peer has listed it, and nothing came from there. What it gets is paid for by what the
    /// association has received.
    Listed,
}

/// An address that a path may have moved to.
#[derive(Debug)]
struct Candidate {
    route: Route,
    /// None: it has answered.
    budget: Option<Budget>,
    /// Sent to the candidate, and nowhere else.
    nonce: u64,
    /// Sent to the route as it is, and nowhere else.
    old_nonce: u64,
    began: Time,
    challenges: u32,
    challenge_due: Time,
    /// When the route moves here, if the old one stays silent: known once the candidate has answered.
    moves_at: Option<Time>,
}

/// What is under examination on one path.
#[derive(Debug)]
struct Examined {
    path: usize,
    standing: Standing,
    candidates: Vec<Candidate>,
    /// Where the path led before it moved: it is asked again if the path fails.
    previous: Option<Route>,
    no_candidate_before: Time,
}

/// The route of a path moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Which path.
    pub path: usize,
    /// Where it leads now.
    pub to: Route,
}

/// A HEARTBEAT that is to leave for one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// On which path.
    pub path: usize,
    /// To whom.
    pub to: Route,
    /// What must come back.
    pub nonce: u64,
}

/// Address validation of an association. A path without an entry leads to a validated address.
#[derive(Debug, Default)]
pub struct PathValidation {
    examined: Vec<Examined>,
    /// Challenges that have to leave; each has been charged.
    queue: Vec<Challenge>,
    moves: Vec<Move>,
    /// Bytes received in the association, and those sent to listed addresses that have not answered.
    received: u64,
    sent_to_listed: u64,
}

impl PathValidation {
    /// A packet of the peer came `from` there on `path`, which leads to `current`.
    pub fn on_packet(&mut self, now: Time, path: usize, from: Route, current: Route, bytes: u64) {
        self.received += bytes;
        if from.is_like(&current) {
            if let Some(examined) = self.find(path)
                && let Standing::Unvalidated(budget) = &mut examined.standing
            {
                budget.received += bytes;
            }
            return;
        }
        let examined = self.examine(path);
        let known = examined.candidates.iter_mut().find(|candidate| candidate.route.is_like(&from));
        match known {
            Some(Candidate { budget: Some(budget), .. }) => budget.received += bytes,
            Some(_) => {}
            None => {
                let budget = Budget { received: bytes, sent: 0 };
                examined.add_candidate(now, from, Some(budget));
            }
        }
    }

    /// A path begins with a packet of so many bytes: its address is not validated.
    pub fn on_new_path(&mut self, path: usize, bytes: u64) {
        self.received += bytes;
        self.examine(path).standing = Standing::Unvalidated(Budget { received: bytes, sent: 0 });
    }

    /// A path begins at an address that another path was validated for.
    pub fn on_borrowed(&mut self, path: usize) {
        self.examine(path).standing = Standing::Borrowed;
    }

    /// A path begins at an address that the peer has listed.
    pub fn on_listed(&mut self, path: usize) {
        self.examine(path).standing = Standing::Listed;
    }

    /// Paths whose place has no `kept` are gone; those that stay are renumbered, in their order.
    pub fn retain_paths(&mut self, kept: &[bool]) {
        let stays = |path: usize| kept.get(path) == Some(&true);
        self.examined.retain(|examined| stays(examined.path));
        for examined in &mut self.examined {
            examined.path = kept[..examined.path].iter().filter(|kept| **kept).count();
        }
        self.queue.clear();
        self.moves.clear();
    }

    /// RFC 9260, 5.4: the address that the association was set up with is confirmed. Only who got the INIT ACK
    /// there can have sent the COOKIE ECHO, and only who got the INIT its answer.
    pub fn on_set_up(&mut self, path: usize) {
        self.examined.retain(|examined| examined.path != path);
    }

    /// Whether the peer has listed the address of this path, and nothing came from there yet.
    pub fn is_only_listed(&self, path: usize) -> bool {
        let only_listed = |examined: &Examined| matches!(examined.standing, Standing::Listed);
        self.examined.iter().any(|examined| examined.path == path && only_listed(examined))
    }

    /// The engine's own HEARTBEAT on this path was answered. It goes only to the path's route.
    pub fn on_confirmed(&mut self, path: usize) {
        if let Some(examined) = self.find(path)
            && matches!(examined.standing, Standing::Unvalidated(_) | Standing::Listed)
        {
            examined.standing = Standing::Validated;
        }
    }

    /// The path does not answer: perhaps it has moved back.
    pub fn on_failing(&mut self, now: Time, path: usize) {
        if let Some(examined) = self.find(path)
            && let Some(previous) = examined.previous
            && examined.candidates.iter().all(|candidate| !candidate.route.is_like(&previous))
        {
            examined.add_candidate(now, previous, None);
        }
    }

    /// A HEARTBEAT ACK with this nonce has come, by whatever way. `round_trip` is what the path took of
    /// late.
    pub fn on_answer(&mut self, now: Time, nonce: u64, round_trip: Option<Duration>) {
        for examined in &mut self.examined {
            if examined.candidates.iter().any(|candidate| candidate.old_nonce == nonce) {
                // The old route is alive: nothing moves.
                examined.candidates.clear();
                examined.no_candidate_before = now + CANDIDATE_INTERVAL;
                return;
            }
            let at = examined.candidates.iter().position(|candidate| candidate.nonce == nonce);
            if let Some(at) = at {
                examined.on_candidate_answered(now, at, round_trip);
                return;
            }
        }
    }

    /// Whether what leaves on `path` is counted: then [`PathValidation::charge`] it.
    #[inline]
    pub fn is_limited(&self, path: usize) -> bool {
        let limited = |examined: &&Examined| {
            matches!(examined.standing, Standing::Unvalidated(_) | Standing::Listed)
        };
        self.examined.iter().filter(limited).any(|examined| examined.path == path)
    }

    /// Charges a packet to the address of `path`; whether it may leave.
    pub fn charge(&mut self, path: usize, bytes: u64) -> bool {
        let listed = AMPLIFICATION_LIMIT * self.received;
        let spent = self.sent_to_listed + bytes;
        let Some(examined) = self.find(path) else { return true };
        match &mut examined.standing {
            Standing::Validated | Standing::Borrowed => true,
            Standing::Unvalidated(budget) => budget.charge(bytes),
            Standing::Listed => {
                if spent <= listed {
                    self.sent_to_listed = spent;
                }
                spent <= listed
            }
        }
    }

    /// Time has passed, or something was taken in: finds out what is due. The paths lead to `routes`, and
    /// a challenge has `bytes`, without the headers of IP and UDP.
    pub fn update(&mut self, now: Time, routes: &[Option<Route>], bytes: u64) {
        for examined in &mut self.examined {
            let current = routes.get(examined.path).copied().flatten();
            if let Some(to) = examined.decide(now, current) {
                self.moves.push(Move { path: examined.path, to });
            }
            examined.challenge(now, current, bytes, &mut self.queue);
        }
        self.examined.retain(|examined| !examined.is_settled(now));
    }

    /// Challenges that have to leave.
    pub fn poll_challenge(&mut self) -> Option<Challenge> {
        self.queue.pop()
    }

    /// Routes that have to move.
    pub fn poll_move(&mut self) -> Option<Move> {
        self.moves.pop()
    }

    /// Whether nothing is under examination: then no HEARTBEAT ACK is meant for [`PathValidation::on_answer`].
    #[inline]
    pub const fn is_idle(&self) -> bool {
        self.examined.is_empty()
    }

    /// When [`PathValidation::update`] is to be called.
    pub fn next_deadline(&self) -> Option<Time> {
        let candidates = self.examined.iter().flat_map(|examined| &examined.candidates);
        candidates.map(Candidate::deadline).min()
    }

    fn find(&mut self, path: usize) -> Option<&mut Examined> {
        self.examined.iter_mut().find(|examined| examined.path == path)
    }

    fn examine(&mut self, path: usize) -> &mut Examined {
        let known = self.examined.iter().position(|examined| examined.path == path);
        let at = known.unwrap_or_else(|| {
            self.examined.push(Examined {
                path,
                standing: Standing::Validated,
                candidates: Vec::new(),
                previous: None,
                no_candidate_before: Time::ZERO,
            });
            self.examined.len() - 1
        });
        &mut self.examined[at]
    }
}

impl Candidate {
    /// Charges a challenge; whether it may leave.
    fn charge(&mut self, bytes: u64) -> bool {
        let bytes = bytes + lower_headers(&self.route.remote);
        self.budget.as_mut().is_none_or(|budget| budget.charge(bytes))
    }

    fn deadline(&self) -> Time {
        self.moves_at.map_or(self.challenge_due, |at| at.min(self.challenge_due))
    }
}

impl Examined {
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
        // Without random numbers nothing can be proved, and nothing moves.
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

    /// Whether the route must be shown to be dead before it moves.
    const fn is_held(&self) -> bool {
        matches!(self.standing, Standing::Validated)
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
        // One more challenge for the old route: the first may have been lost.
        candidate.challenge_due = now;
    }

    /// The route to move to, if that is settled.
    fn decide(&mut self, now: Time, current: Option<Route>) -> Option<Route> {
        let due = |candidate: &Candidate| candidate.moves_at.is_some_and(|at| at <= now);
        let at = self.candidates.iter().position(due)?;
        let to = self.candidates.remove(at).route;
        let answered = matches!(self.standing, Standing::Validated | Standing::Borrowed);
        self.previous = current.filter(|_| answered);
        self.candidates.clear();
        self.standing = Standing::Validated;
        self.no_candidate_before = now + CANDIDATE_INTERVAL;
        Some(to)
    }

    /// Queues the challenges that are due: to each candidate, and to the route as it is.
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
        matches!(self.standing, Standing::Validated)
            && self.candidates.is_empty()
            && self.previous.is_none()
            && self.no_candidate_before <= now
    }
}

#[cfg(test)]
#[path = "path_validation_tests.rs"]
mod tests;
