//! Address reconfiguration (ASCONF, RFC 5061): the requests of both ends and their serial numbers.
//!
//! ```text
//!   add_address() --> waiting --> ASCONF, outstanding --> ASCONF ACK --> AddressChange::Own..
//!   ASCONF of the peer --> answered (the last one is kept) --> AddressChange::Added, Removed, Primary
//! ```

pub(crate) mod parameters;

use core::net::{IpAddr, Ipv4Addr};
use std::collections::VecDeque;

use ropewalk_base::{PathId, Serial32, Time};

pub use self::parameters::Refusal;
use self::parameters::{Answer, Request, address_parameter, wire_len};
use super::super::chunk::Chunk;
use super::super::extension_chunk::{ExtensionChunk, RawParameter};

/// Maximum number of peer addresses that requests may create.
pub const ADDRESSES_LIMIT: usize = 16;
/// Maximum number of pending requests of the user.
const WISHES_LIMIT: usize = 32;
/// Maximum number of changes that wait for the driver.
const CHANGES_LIMIT: usize = 64;

/// A change of addresses, or the end of a request about them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AddressChange {
    /// The peer also has this address. The driver adds a path to it.
    Added(IpAddr),
    /// The peer no longer has this address. The driver retires its paths.
    Removed(IpAddr),
    /// The peer requests that data be sent to this address. The driver makes its path the primary one.
    Primary(IpAddr),
    /// The peer knows this address of this end, so paths may start there. Or it refused.
    OwnAdded(IpAddr, Result<(), Refusal>),
    /// The peer no longer uses this address of this end, or refused.
    OwnRemoved(IpAddr, Result<(), Refusal>),
    /// The peer sends to this address of this end first, or refused.
    OwnPrimary(IpAddr, Result<(), Refusal>),
}

/// Why a request was not made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AddressError {
    /// The ends did not agree on address reconfiguration.
    #[error("the peer does not support address reconfiguration, or it was not enabled")]
    NotSupported,
    /// The association is not established, or shuts down.
    #[error("the association is not established, or is closing")]
    Closing,
    /// Too many requests wait.
    #[error("too many requests wait for the peer's answer")]
    TooMany,
    /// The address is not a unicast address, or does not belong to this end.
    #[error("the address cannot be used: it is not a unicast address of this end")]
    Unsuitable,
    /// It is the only address of this end.
    #[error("the last address of an association cannot be removed")]
    LastAddress,
}

/// Whether an association can use the address: it belongs to a single host.
pub(crate) fn is_usable(ip: IpAddr) -> bool {
    let broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !ip.is_unspecified() && !ip.is_multicast() && !broadcast
}

/// A request of this end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wish {
    /// The request, with the address of this end.
    pub request: Request,
    /// The path whose source the request is about. The own address is hidden by a translator (NAT), so
    /// the unspecified address stands in its place (RFC 5061, 4.2.1, 4.2.2, 4.2.4), and the ASCONF is
    /// sent on this path. `None`: the request names the address.
    pub from: Option<PathId>,
}

impl Wish {
    fn raw(self, id: u32) -> RawParameter {
        let unnamed = self.from.is_some();
        if unnamed { self.request.unnamed().raw(id) } else { self.request.raw(id) }
    }
}

/// The ASCONF that has been sent.
#[derive(Clone, Debug)]
struct Outstanding {
    serial: Serial32,
    /// In order. The correlation identifier of a request is its index. All are about the same source, or
    /// name addresses.
    requests: Vec<Wish>,
    /// Whether it has also been sent from a source other than the one that it is about.
    elsewhere: bool,
    chunk: Chunk,
    path: PathId,
    timer: Time,
    /// Number of transmissions.
    attempts: u32,
}

/// Both directions of an association.
#[derive(Clone, Debug)]
pub struct AddressReconfiguration {
    next: Serial32,
    waiting: VecDeque<Wish>,
    outstanding: Option<Outstanding>,
    /// Serial number of the last ASCONF processed, initially one less than the peer's first.
    peer_serial: Serial32,
    /// The answer to it.
    answer: Option<Chunk>,
    changes: VecDeque<AddressChange>,
    /// The source address of the packet that is being processed, if the driver knows it.
    pub source: Option<IpAddr>,
}

/// How to treat an ASCONF.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Treatment {
    /// Process it.
    Process,
    /// It was processed: send the same answer again.
    Repeat(Chunk),
    /// Discard it.
    Discard,
}

impl AddressReconfiguration {
    /// RFC 5061, 4.1.1: serial numbers start at the initial TSN.
    pub const fn new(first: Serial32, first_of_peer: Serial32) -> Self {
        Self {
            next: first,
            waiting: VecDeque::new(),
            outstanding: None,
            peer_serial: Serial32(first_of_peer.0.wrapping_sub(1)),
            answer: None,
            changes: VecDeque::new(),
            source: None,
        }
    }

    /// RFC 5061, 5.2: the next serial number is processed, a repeated one is answered again, and others are discarded.
    pub fn treatment(&self, serial: Serial32) -> Treatment {
        if serial == self.peer_serial.plus(1) {
            return Treatment::Process;
        }
        match &self.answer {
            Some(answer) if serial == self.peer_serial => Treatment::Repeat(answer.clone()),
            _ => Treatment::Discard,
        }
    }

    /// Stores the answer to the ASCONF with the next serial number. One answer suffices: the peer sends
    /// the next ASCONF only after it has received the last answer.
    pub fn answered(&mut self, answer: Chunk) {
        self.peer_serial = self.peer_serial.plus(1);
        self.answer = Some(answer);
    }

    /// Whether more changes may be announced: the driver takes them in time.
    pub fn has_room(&self) -> bool {
        self.changes.len() < CHANGES_LIMIT
    }

    /// Announces a change.
    pub fn announce(&mut self, change: AddressChange) {
        self.changes.push_back(change);
    }

    /// The next change.
    pub fn take_change(&mut self) -> Option<AddressChange> {
        self.changes.pop_front()
    }

    /// Adds a request.
    pub fn wish(&mut self, request: Wish) -> Result<(), AddressError> {
        if self.waiting.len() >= WISHES_LIMIT {
            return Err(AddressError::TooMany);
        }
        self.waiting.push_back(request);
        Ok(())
    }

    /// Whether a request about this address waits or is outstanding.
    pub fn concerns(&self, address: IpAddr) -> bool {
        let sent = self.outstanding.iter().flat_map(|one| &one.requests);
        sent.chain(&self.waiting).any(|wish| wish.request.address().to_canonical() == address)
    }

    /// The path on which the next ASCONF must be sent, if it is about the source of its packet.
    pub fn next_source(&self) -> Option<PathId> {
        self.waiting.front().and_then(|wish| wish.from)
    }

    /// The path on which the outstanding ASCONF must be retransmitted. `None`: any path.
    ///
    /// If its path delivers no answer, an ASCONF that only adds its source may be sent from another
    /// address. The peer already knows that address, so the request changes nothing, and the next ASCONF
    /// can follow. A request to delete all but the source must not be sent elsewhere.
    pub fn bound_to(&self, attempts_limit: u32) -> Option<PathId> {
        let outstanding = self.outstanding.as_ref()?;
        let deletes = |wish: &Wish| matches!(wish.request, Request::Delete(_));
        let stays =
            outstanding.attempts < attempts_limit || outstanding.requests.iter().any(deletes);
        outstanding.requests.first()?.from.filter(|_| stays)
    }

    /// A path has ended. Requests about its source that have not been sent are given up and returned.
    pub fn leave(&mut self, path: PathId) -> Vec<Request> {
        if let Some(outstanding) = &mut self.outstanding {
            for wish in outstanding.requests.iter_mut().filter(|wish| wish.from == Some(path)) {
                (wish.from, outstanding.elsewhere) = (None, true);
            }
        }
        let (gone, stays): (Vec<_>, Vec<_>) =
            self.waiting.drain(..).partition(|wish| wish.from == Some(path));
        self.waiting = stays.into();
        gone.into_iter().map(|wish| wish.request).collect()
    }

    /// Whether a request can be sent: one waits, and none is outstanding (RFC 5061, 5.1 A2).
    pub fn is_ready(&self) -> bool {
        self.outstanding.is_none() && !self.waiting.is_empty()
    }

    /// The ASCONF for as many waiting requests as fit into `room` bytes. `own`: the addresses of this end
    /// that the peer knows.
    ///
    /// RFC 5061, 4.1.1: the first parameter is one of them. The unspecified address stands for the source
    /// of the packet: the peer finds the association by its tag.
    pub fn ask(&mut self, own: &[IpAddr], room: u32, path: PathId, timer: Time) -> Chunk {
        let from = self.next_source();
        let deleted = |ip: IpAddr| move |wish: &Wish| wish.request == Request::Delete(ip);
        let stays = |ip: &&IpAddr| !self.waiting.iter().any(deleted(**ip));
        let known = own.iter().filter(|_| from.is_none()).find(stays).copied();
        let known = known.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let mut parameters = vec![address_parameter(known)];
        let mut requests = Vec::new();
        // Chunk header and serial number.
        let mut length = 8 + wire_len(&parameters[0]);
        while let Some(request) = self.waiting.front().filter(|wish| wish.from == from) {
            let raw = request.raw(requests.len() as u32);
            length += wire_len(&raw);
            if length > room && !requests.is_empty() {
                break;
            }
            parameters.push(raw);
            requests.extend(self.waiting.pop_front());
        }
        let serial = self.next;
        self.next = serial.plus(1);
        let chunk = Chunk::Extension(Box::new(ExtensionChunk::Asconf(serial, parameters)));
        let copy = chunk.clone();
        let elsewhere = false;
        self.outstanding =
            Some(Outstanding { serial, requests, elsewhere, chunk, path, timer, attempts: 1 });
        copy
    }

    /// The path of the outstanding ASCONF.
    pub fn path(&self) -> Option<PathId> {
        self.outstanding.as_ref().map(|one| one.path)
    }

    /// The path of the outstanding ASCONF, if its timer has expired.
    pub fn expired(&self, now: Time) -> Option<PathId> {
        self.outstanding.as_ref().filter(|one| one.timer <= now).map(|one| one.path)
    }

    /// Number of transmissions of the outstanding ASCONF.
    pub fn attempts(&self) -> u32 {
        self.outstanding.as_ref().map_or(0, |one| one.attempts)
    }

    /// T4-rto: when the outstanding ASCONF is retransmitted.
    pub fn deadline(&self) -> Option<Time> {
        self.outstanding.as_ref().map(|one| one.timer)
    }

    /// Returns the same chunk for retransmission. RFC 5061, 5.1.1 B3: neither the serial number nor the
    /// content may change.
    pub fn repeat(&mut self, path: PathId, timer: Time) -> Option<Chunk> {
        let outstanding = self.outstanding.as_mut()?;
        (outstanding.path, outstanding.timer) = (path, timer);
        outstanding.attempts += 1;
        let source = outstanding.requests.first().and_then(|wish| wish.from);
        outstanding.elsewhere |= source.is_some_and(|source| source != path);
        Some(outstanding.chunk.clone())
    }

    /// Whether an ASCONF ACK with this serial number answers a request that was never sent. RFC 5061,
    /// 5.1: such an answer ends the association.
    pub fn is_illegal(&self, serial: Serial32) -> bool {
        // The next number and the 2^31 after it.
        serial.0.wrapping_sub(self.next.0) < 1 << 31
    }

    /// Processes the answer to the outstanding ASCONF. Returns each request with its result, or `None` if
    /// the answer belongs to another ASCONF.
    ///
    /// RFC 5061, 5.1 (V): requests without an answer have succeeded if no request before them has failed,
    /// and have failed otherwise. If the ASCONF was also sent from a source other than the one that it
    /// concerns, this end cannot know which of them the peer has added: the request counts as refused.
    pub fn on_answer(
        &mut self,
        serial: Serial32,
        parameters: &[RawParameter],
    ) -> Option<Vec<(Request, Result<(), Refusal>)>> {
        let outstanding = self.outstanding.take_if(|one| one.serial == serial)?;
        let answers: Vec<Answer> = parameters.iter().filter_map(Answer::read).collect();
        let mut failed = outstanding.elsewhere.then_some(Refusal::Unresolvable);
        let mut results = Vec::with_capacity(outstanding.requests.len());
        let elsewhere = outstanding.elsewhere;
        for (id, wish) in outstanding.requests.into_iter().enumerate() {
            let about = |answer: &&Answer| {
                let (Answer::Success(of) | Answer::Error(of, _)) = **answer;
                of == id as u32
            };
            let result = match answers.iter().find(about) {
                Some(Answer::Success(_)) if !elsewhere => Ok(()),
                Some(Answer::Error(_, refusal)) => {
                    failed = Some(*refusal);
                    Err(*refusal)
                }
                Some(Answer::Success(_)) | None => failed.map_or(Ok(()), Err),
            };
            results.push((wish.request, result));
        }
        Some(results)
    }

    /// The peer does not support ASCONF, or the association ends: all requests fail.
    pub fn give_up(&mut self) -> Vec<Request> {
        let sent = self.outstanding.take().map_or(Vec::new(), |one| one.requests);
        sent.into_iter().chain(self.waiting.drain(..)).map(|wish| wish.request).collect()
    }

    /// Applies the renumbering of paths.
    pub fn renumber(&mut self, renumbered: impl Fn(PathId) -> Option<PathId>) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.path = renumbered(outstanding.path).unwrap_or(PathId(0));
        }
        let sent = self.outstanding.iter_mut().flat_map(|one| &mut one.requests);
        for wish in sent.chain(&mut self.waiting) {
            wish.from = wish.from.map(|path| renumbered(path).unwrap_or(path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: PathId = PathId(0);

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    fn named(ip: IpAddr) -> Wish {
        Wish { request: Request::Add(ip), from: None }
    }

    fn parameters(chunk: &Chunk) -> (Serial32, &[RawParameter]) {
        match chunk {
            Chunk::Extension(one) => match &**one {
                ExtensionChunk::Asconf(serial, list) => (*serial, list),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_asconf_is_outstanding_and_it_is_repeated_unchanged() {
        let mut own = AddressReconfiguration::new(Serial32(u32::MAX), Serial32(5));
        for last in 1..=4 {
            own.wish(named(ip(last))).expect("room");
        }
        // Address parameter, then two requests of 16 bytes.
        let chunk = own.ask(&[ip(9)], 8 + 8 + 32, ONE, Time::from_millis(5));
        let (serial, list) = parameters(&chunk);
        assert_eq!((serial, list.len()), (Serial32(u32::MAX), 3));
        assert!(chunk.wire_len() <= 48 && !own.is_ready());
        assert_eq!(own.expired(Time::from_millis(4)), None);
        assert_eq!(own.expired(Time::from_millis(5)), Some(ONE));
        assert_eq!(own.repeat(PathId(1), Time::from_millis(9)), Some(chunk));
        assert_eq!((own.path(), own.deadline()), (Some(PathId(1)), Some(Time::from_millis(9))));
        assert_eq!(own.on_answer(Serial32(7), &[]), None);
        let results = own.on_answer(Serial32(u32::MAX), &[]).expect("it was outstanding");
        assert_eq!(results, [1, 2].map(|last| (Request::Add(ip(last)), Ok(()))));
        let next = own.ask(&[ip(9)], 0, ONE, Time::ZERO);
        assert_eq!(parameters(&next).0, Serial32(0), "one fits at least, and numbers wrap");
        assert_eq!(own.give_up(), [3, 4].map(|last| Request::Add(ip(last))));
    }

    #[test]
    fn requests_about_a_source_are_not_mixed_with_others_and_name_no_address() {
        let mut own = AddressReconfiguration::new(Serial32(0), Serial32(5));
        let source = |request| Wish { request, from: Some(PathId(2)) };
        let delete = Request::Delete(ip(2));
        let wishes = [source(Request::Add(ip(1))), source(delete), named(ip(3)), source(delete)];
        wishes.into_iter().for_each(|wish| own.wish(wish).expect("room"));
        let mut sizes = Vec::new();
        for (serial, from) in [Some(PathId(2)), None, Some(PathId(2))].into_iter().enumerate() {
            assert_eq!(own.next_source(), from);
            let chunk = own.ask(&[ip(9)], 1000, PathId(2), Time::ZERO);
            let (_, list) = parameters(&chunk);
            sizes.push(list.len() - 1);
            let any = &[0, 0, 0, 0][..];
            let unnamed = list.iter().all(|one| one.value.ends_with(any));
            assert_eq!(unnamed, from.is_some(), "{list:?}");
            assert!(own.concerns(ip(2)) || serial == 1);
            // An addition may be requested elsewhere if it gets no answer, a deletion must not.
            assert_eq!(own.bound_to(1), from);
            assert_eq!(own.bound_to(9), from);
            own.on_answer(Serial32(serial as u32), &[]).expect("it is outstanding");
        }
        assert_eq!(sizes, [2, 1, 1]);
        own.wish(source(Request::Add(ip(1)))).expect("room");
        own.ask(&[ip(9)], 1000, PathId(2), Time::ZERO);
        assert_eq!((own.bound_to(2), own.bound_to(1)), (Some(PathId(2)), None));
        own.repeat(ONE, Time::ZERO).expect("it is outstanding");
        let refused = (Request::Add(ip(1)), Err(Refusal::Unresolvable));
        assert_eq!(own.on_answer(Serial32(3), &[]), Some(vec![refused]));
    }

    #[test]
    fn requests_after_a_failure_have_failed_unless_the_answer_says_otherwise() {
        let refused = Refusal::Resources;
        let about = Request::Add(ip(1)).raw(0);
        let (success, error) =
            (|id| Answer::Success(id).raw(&about), |id| Answer::Error(id, refused).raw(&about));
        for (answers, expected) in [
            (vec![], [true; 4]),
            (vec![error(1)], [true, false, false, false]),
            (vec![error(1), success(3)], [true, false, false, true]),
            (vec![success(0), error(3)], [true, true, true, false]),
            (vec![error(77), about.clone()], [true; 4]),
        ] {
            let mut own = AddressReconfiguration::new(Serial32(3), Serial32(5));
            for last in 0..4 {
                own.wish(named(ip(last))).expect("room");
            }
            own.ask(&[ip(9)], 1000, ONE, Time::ZERO);
            let results = own.on_answer(Serial32(3), &answers).expect("it is outstanding");
            let found: Vec<bool> = results.iter().map(|(_, result)| result.is_ok()).collect();
            assert_eq!(found, expected, "{answers:?}");
        }
    }

    #[test]
    fn the_peer_s_next_number_is_processed_the_last_one_repeated_and_others_discarded() {
        let mut own = AddressReconfiguration::new(Serial32(3), Serial32(0));
        assert_eq!(own.treatment(Serial32(u32::MAX)), Treatment::Discard, "nothing was answered");
        for number in 0..3 {
            assert_eq!(own.treatment(Serial32(number)), Treatment::Process);
            own.answered(Chunk::CookieAck);
            assert_eq!(own.treatment(Serial32(number)), Treatment::Repeat(Chunk::CookieAck));
            for other in [number.wrapping_sub(1), number + 2, number + (1 << 31)] {
                assert_eq!(own.treatment(Serial32(other)), Treatment::Discard);
            }
        }
        assert!(own.is_illegal(Serial32(3)) && own.is_illegal(Serial32(9)));
        assert!(!own.is_illegal(Serial32(2)) && !own.is_illegal(Serial32(3 + (1 << 31))));
    }

    #[test]
    fn wishes_are_bounded() {
        let mut own = AddressReconfiguration::new(Serial32(3), Serial32(0));
        let made = (0..100).filter(|last| own.wish(named(ip(*last))).is_ok()).count();
        assert_eq!(made, WISHES_LIMIT);
        for (address, usable) in [
            ("192.0.2.1", true),
            ("2001:db8::1", true),
            ("0.0.0.0", false),
            ("::", false),
            ("224.0.0.1", false),
            ("ff02::1", false),
            ("255.255.255.255", false),
        ] {
            assert_eq!(is_usable(address.parse().expect("an address")), usable, "{address}");
        }
    }
}
