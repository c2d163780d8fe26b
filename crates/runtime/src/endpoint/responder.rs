//! The responder's side of sealed handshakes: answers initiations and stores the half-open sessions, which their
//! initiators have not used yet.

use std::collections::{BTreeMap, VecDeque};

use ropewalk_base::Time;

use super::handshake_payload::Hello;
use super::limits::{Limits, Prefix};
use super::options::Sealing;
use super::peer::Route;
use crate::seal::{Allowed, Answer, Established, KeyError, PublicKey, Refused, Responder, Session};

/// A session whose initiator has not used it yet.
pub struct HalfOpen {
    /// Its keys.
    pub session: Session,
    /// The payload of the initiation.
    pub handshake_payload: Hello,
    /// The route of the reply.
    pub replied_to: Route,
    /// Whether the application refuses it: its first datagram is answered with an ABORT.
    pub refused: bool,
    since: Time,
}

impl HalfOpen {
    /// The initiator's key.
    pub const fn key(&self) -> PublicKey {
        self.session.peer()
    }

    fn prefix(&self) -> Prefix {
        Prefix::of(self.replied_to.remote.ip())
    }
}

/// Result of an initiation.
#[derive(Default)]
pub struct Initiation {
    /// The reply to send to the source of the initiation.
    pub reply: Option<Vec<u8>>,
    /// Number of half-open sessions that were dropped early to make room.
    pub dropped: usize,
}

/// Answers initiations and stores half-open sessions.
pub struct HandshakeResponder {
    responder: Responder,
    sessions: BTreeMap<u32, Box<HalfOpen>>,
    /// Numbers of the sessions, oldest first. Numbers of sessions that have been used may remain here.
    order: VecDeque<u32>,
}

impl std::fmt::Debug for HandshakeResponder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HandshakeResponder({} half open)", self.sessions.len())
    }
}

impl HandshakeResponder {
    /// Creates a responder for the initiators that the options allow.
    ///
    /// # Errors
    /// If the system provides no random numbers.
    pub fn new(sealing: &Sealing) -> Result<Self, KeyError> {
        let mut responder = Responder::new(sealing.secret.clone(), sealing.allowed.clone())?;
        responder.set_psk(sealing.psk.clone());
        Ok(Self { responder, sessions: BTreeMap::new(), order: VecDeque::new() })
    }

    /// Replaces the list of allowed peers. Half-open sessions of peers that are no longer listed are dropped.
    pub fn set_allowed(&mut self, allowed: Allowed) {
        self.sessions.retain(|_, half| allowed.lists(&half.key()));
        self.responder.set_allowed(allowed);
    }

    /// Whether initiators were refused since the last call of [`Self::take_refused`].
    pub fn has_refused(&self) -> bool {
        self.responder.has_refused()
    }

    /// Initiators that were refused since the last call.
    pub fn take_refused(&mut self) -> Vec<Refused> {
        self.responder.take_refused()
    }

    /// Whether there is a half-open session with this number.
    pub fn contains(&self, id: u32) -> bool {
        self.sessions.contains_key(&id)
    }

    /// Handles an initiation. `decide` returns for an authenticated key whether its session is accepted
    /// (`Some(true)`), refused (`Some(false)`) or ignored (`None`).
    pub fn on_initiation(
        &mut self,
        now: Time,
        from: Route,
        datagram: &[u8],
        session_id: u32,
        limits: &Limits,
        decide: impl FnOnce(PublicKey) -> Option<bool>,
    ) -> Initiation {
        self.expire(now, limits);
        match self.responder.handle(now, from.remote, datagram, session_id) {
            Answer::Drop => Initiation::default(),
            Answer::Reply(reply) => Initiation { reply: Some(reply), dropped: 0 },
            Answer::Established(established) => {
                let Some(handshake_payload) = Hello::decode(&established.payload) else {
                    return Initiation::default();
                };
                let Some(taken) = decide(established.peer) else { return Initiation::default() };
                self.hold(now, from, *established, handshake_payload, taken, limits)
            }
        }
    }

    fn hold(
        &mut self,
        now: Time,
        from: Route,
        established: Established,
        handshake_payload: Hello,
        taken: bool,
        limits: &Limits,
    ) -> Initiation {
        let Established { session, reply, peer, .. } = established;
        // The initiator repeated this attempt because no reply arrived: its older session is useless.
        let attempt = (peer, session.peer_id());
        self.remove_oldest(|one| (one.key(), one.session.peer_id()) == attempt);
        let id = session.id();
        let half =
            HalfOpen { session, handshake_payload, replied_to: from, refused: !taken, since: now };
        let dropped = self.make_room(&half, limits);
        self.sessions.insert(id, Box::new(half));
        self.order.push_back(id);
        Initiation { reply: Some(reply), dropped }
    }

    /// Drops sessions until one more fits within the limits: first of the same key, then of the same prefix, then of
    /// the prefix that holds the most.
    fn make_room(&mut self, fresh: &HalfOpen, limits: &Limits) -> usize {
        let mut dropped = 0;
        let count = |own: &Self, of: &dyn Fn(&HalfOpen) -> bool| {
            own.sessions.values().filter(|one| of(one)).count()
        };
        let (key, prefix) = (fresh.key(), fresh.prefix());
        while count(self, &|one| one.key() == key) >= limits.half_open_per_key.max(1) {
            dropped += self.remove_oldest(|one| one.key() == key);
        }
        while count(self, &|one| one.prefix() == prefix) >= limits.half_open_per_prefix.max(1) {
            dropped += self.remove_oldest(|one| one.prefix() == prefix);
        }
        while self.sessions.len() >= limits.half_open.max(1) {
            let mut by_prefix: BTreeMap<Prefix, usize> = BTreeMap::new();
            for one in self.sessions.values() {
                *by_prefix.entry(one.prefix()).or_default() += 1;
            }
            let most = by_prefix.into_iter().max_by_key(|(_, count)| *count);
            dropped += self.remove_oldest(|one| most.is_some_and(|(p, _)| one.prefix() == p));
        }
        dropped
    }

    /// Removes the oldest matching session. Returns how many were removed.
    fn remove_oldest(&mut self, of: impl Fn(&HalfOpen) -> bool) -> usize {
        let kind = |id: &u32| self.sessions.get(id).is_some_and(|one| of(one));
        let Some(at) = self.order.iter().position(kind) else { return 0 };
        let removed = self.order.remove(at).and_then(|id| self.sessions.remove(&id));
        usize::from(removed.is_some())
    }

    fn expire(&mut self, now: Time, limits: &Limits) {
        while let Some(id) = self.order.front() {
            let lives = self
                .sessions
                .get(id)
                .is_some_and(|one| now.since(one.since) <= limits.half_open_timeout);
            if lives {
                return;
            }
            self.sessions.remove(id);
            self.order.pop_front();
        }
    }

    /// Takes the half-open session with that number if its peer has sealed this datagram, which is opened in place.
    pub fn confirm(&mut self, now: Time, id: u32, datagram: &mut [u8]) -> Option<Confirmed> {
        let opened = self.sessions.get_mut(&id)?.session.open(now, datagram).ok()?;
        let half = self.sessions.remove(&id)?;
        self.order.retain(|known| *known != id);
        Some(Confirmed { half, path: opened.path, form: opened.form, body: opened.body })
    }
}

/// A session that its initiator has used.
pub struct Confirmed {
    /// The session.
    pub half: Box<HalfOpen>,
    /// The path of its first datagram.
    pub path: u8,
    /// The form of the datagram's content.
    pub form: u8,
    /// Byte range of the datagram's content.
    pub body: std::ops::Range<usize>,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::seal::{Initiator, SecretKey, Timestamp};

    /// Initiators with different keys, at addresses of several networks.
    struct Crowd {
        responder: HandshakeResponder,
        server: PublicKey,
        keys: Vec<SecretKey>,
        next: u32,
    }

    impl Crowd {
        fn new(keys: usize) -> Self {
            let secret = || SecretKey::generate().expect("random numbers");
            let (own, keys): (_, Vec<_>) = (secret(), (0..keys).map(|_| secret()).collect());
            let server = own.public();
            let allowed: BTreeSet<_> = keys.iter().map(SecretKey::public).collect();
            let allowed = Allowed::Keys(allowed);
            let responder = HandshakeResponder::new(&Sealing { secret: own, allowed, psk: None });
            Self { responder: responder.expect("random numbers"), server, keys, next: 0 }
        }

        /// Performs the handshake of a key from a network, with this attempt number. Returns the session's
        /// number and how many other sessions were dropped.
        fn initiate(
            &mut self,
            key: usize,
            network: u8,
            attempt: u32,
            limits: &Limits,
        ) -> (u32, usize) {
            self.next += 1;
            let sent = Timestamp::from_unix_nanos(u64::from(self.next));
            let (_, first) = Initiator::new(&self.keys[key], self.server, sent, attempt, &[1, 1])
                .expect("a handshake");
            let from = Route::new(0, ([10, 0, network, 7], 9).into());
            // Slowly enough for the rate limiter.
            let now = Time::from_millis(u64::from(self.next) * 20);
            let id = 1000 + self.next;
            let done = self.responder.on_initiation(now, from, &first, id, limits, |_| Some(true));
            assert!(done.reply.is_some());
            (id, done.dropped)
        }
    }

    #[test]
    fn one_key_or_one_network_cannot_drop_the_sessions_of_others() {
        let limits = Limits {
            half_open: 8,
            half_open_per_key: 2,
            half_open_per_prefix: 6,
            ..Limits::default()
        };
        let mut crowd = Crowd::new(20);
        let (slow, dropped) = crowd.initiate(0, 1, 1, &limits);
        assert_eq!(dropped, 0);
        // The same key repeatedly.
        let dropped: usize = (0..10).map(|n| crowd.initiate(1, 2, n, &limits).1).sum();
        assert_eq!((dropped, crowd.responder.sessions.len()), (8, 3));
        // Many keys from one network.
        for key in 2..20 {
            crowd.initiate(key, 3, 1, &limits);
        }
        assert_eq!(crowd.responder.sessions.len(), 8);
        assert!(crowd.responder.contains(slow));
    }

    #[test]
    fn an_attempt_that_begins_again_takes_no_other_place() {
        let limits = Limits::default();
        let mut crowd = Crowd::new(1);
        let others: Vec<u32> = (1..4).map(|n| crowd.initiate(0, 1, n, &limits).0).collect();
        for _ in 0..5 {
            assert_eq!(crowd.initiate(0, 1, 9, &limits).1, 0);
        }
        assert_eq!(crowd.responder.sessions.len(), 4);
        assert!(others.iter().all(|id| crowd.responder.contains(*id)));
    }

    #[test]
    fn a_session_that_is_not_used_in_time_goes() {
        let limits =
            Limits { half_open_timeout: ropewalk_base::Duration::ZERO, ..Limits::default() };
        let mut crowd = Crowd::new(2);
        let (first, _) = crowd.initiate(0, 1, 1, &limits);
        crowd.initiate(1, 1, 1, &limits);
        assert!(!crowd.responder.contains(first));
    }
}
