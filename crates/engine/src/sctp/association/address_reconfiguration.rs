//! Address reconfiguration (ASCONF, RFC 5061): the effects of requests of both ends.
//!
//! The association knows addresses, and its driver maps paths to them. The association therefore
//! announces a change by [`Event::AddressesChanged`], and the driver adds and retires paths.

use core::net::IpAddr;

use ropewalk_base::{PathId, Serial32, Time};

use super::super::cause::ErrorCause;
use super::super::chunk::Chunk;
use super::super::extension_chunk::{ExtensionChunk, RawParameter};
use super::super::extensions::Extensions;
use super::super::extensions::address_reconfiguration::parameters::{
    Answer, Asked, Refusal, Request, read_address, wire_len,
};
use super::super::extensions::address_reconfiguration::{
    ADDRESSES_LIMIT, AddressChange, AddressError, AddressReconfiguration, Treatment, Wish,
    is_usable,
};
use super::super::packet::Packet;
use super::super::wire::goes_on;
use super::{Association, Event, State};
use crate::path::PathStatus;

/// Transmissions of a request about a source on its own path, before it is also sent on other working
/// paths.
const SOURCE_ATTEMPTS: u32 = 4;
/// Chunk header and serial number of an ASCONF ACK, bytes.
const ACK_HEADER: u32 = 8;

/// The ASCONF chunk of a packet.
fn asconf_in(packet: &Packet) -> Option<(Serial32, &[RawParameter])> {
    packet.chunks.iter().find_map(|chunk| match chunk {
        Chunk::Extension(extension) => match &**extension {
            ExtensionChunk::Asconf(serial, parameters) => Some((*serial, &parameters[..])),
            _ => None,
        },
        _ => None,
    })
}

impl Association {
    /// Whether addresses can be added and removed: both ends have listed ASCONF, and chunks are authenticated. False before
    /// the handshake.
    pub const fn reconfigures_addresses(&self) -> bool {
        self.handshake.peer.agreed.has(Extensions::ASCONF) && self.handshake.auth.is_some()
    }

    /// Announces to the peer that this end also has this address. [`AddressChange::OwnAdded`] follows.
    /// Until then, the driver must not send from the address (RFC 5061, 5.3).
    ///
    /// # Errors
    /// [`AddressError`]; nothing is requested then.
    pub fn add_address(&mut self, address: IpAddr) -> Result<(), AddressError> {
        self.request_address(Request::Add(address), None)
    }

    /// Like [`Association::add_address`], for an address behind a translator (NAT): the request names no
    /// address, and the peer adds the source address of the packet. It is sent on this path only, which
    /// starts at `address`, as long as it gets answers.
    ///
    /// RFC 5061, 4.2.1: the unspecified address stands for the source of the packet.
    ///
    /// # Errors
    /// [`AddressError`]; nothing is requested then.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn add_source(&mut self, address: IpAddr, path: PathId) -> Result<(), AddressError> {
        self.request_address(Request::Add(address), Some(path))
    }

    /// Announces to the peer that this end gives up this address. The driver must no longer send from it.
    /// [`AddressChange::OwnRemoved`] follows.
    ///
    /// # Errors
    /// [`AddressError`]; nothing is requested then.
    pub fn remove_address(&mut self, address: IpAddr) -> Result<(), AddressError> {
        let own = self.own_addresses();
        if own == [address.to_canonical()] {
            return Err(AddressError::LastAddress);
        }
        self.request_address(Request::Delete(address), None)
    }

    /// Like [`Association::remove_address`], for an address behind a translator (NAT): the peer removes
    /// all addresses of this end except the source of packets on this path (RFC 5061, 4.2.2).
    ///
    /// # Errors
    /// [`AddressError`]; nothing is requested then.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn remove_all_but_source(
        &mut self,
        address: IpAddr,
        path: PathId,
    ) -> Result<(), AddressError> {
        if self.own_addresses() == [address.to_canonical()] {
            return Err(AddressError::LastAddress);
        }
        self.request_address(Request::Delete(address), Some(path))
    }

    /// Asks the peer to send to this address of this end first. [`AddressChange::OwnPrimary`] follows.
    ///
    /// # Errors
    /// [`AddressError`]; nothing is requested then.
    pub fn request_primary(&mut self, address: IpAddr) -> Result<(), AddressError> {
        self.request_address(Request::SetPrimary(address), None)
    }

    /// Like [`Association::request_primary`], for an address behind a translator (NAT): the source of
    /// packets on this path.
    ///
    /// # Errors
    /// [`AddressError`]; nothing is requested then.
    ///
    /// # Panics
    /// If there is no such path.
    pub fn request_primary_source(
        &mut self,
        address: IpAddr,
        path: PathId,
    ) -> Result<(), AddressError> {
        self.request_address(Request::SetPrimary(address), Some(path))
    }

    /// The next change of addresses that [`Event::AddressesChanged`] announced.
    pub fn poll_address_change(&mut self) -> Option<AddressChange> {
        self.control.addresses.as_mut()?.take_change()
    }

    /// Whether a request about this address of this end waits for the peer's answer.
    pub fn awaits_answer_about(&self, address: IpAddr) -> bool {
        let known = self.control.addresses.as_ref();
        known.is_some_and(|addresses| addresses.concerns(address.to_canonical()))
    }

    /// The addresses of this end that are known to the peer, if they are listed.
    pub fn own_addresses(&self) -> &[IpAddr] {
        self.config.addresses.as_deref().unwrap_or_default()
    }

    /// Records an unlisted address of this end that the peer knows: the source of packets to the peer.
    pub fn note_own_address(&mut self, address: IpAddr) {
        let own = self.config.addresses.get_or_insert_default();
        if !own.contains(&address.to_canonical()) {
            own.push(address.to_canonical());
        }
    }

    /// Like [`Association::handle_in_place`], for a packet from this address.
    pub fn handle_from(&mut self, now: Time, path: PathId, source: IpAddr, packet: &mut Packet) {
        if self.reconfigures_addresses() {
            self.addresses().source = Some(source.to_canonical());
        }
        self.handle_in_place(now, path, packet);
        if let Some(addresses) = &mut self.control.addresses {
            addresses.source = None;
        }
    }

    /// Whether this association may handle a packet from an address that the peer does not have. The
    /// packet must contain an authentic ASCONF whose address parameter names an address of the peer, and
    /// whose serial number is the next or the last one.
    ///
    /// RFC 5061, 5.2: the address parameter identifies the association if the source address does not.
    pub fn admits_source(&self, packet: &Packet) -> bool {
        let (Some(auth), Some((serial, parameters))) = (&self.handshake.auth, asconf_in(packet))
        else {
            return false;
        };
        let looked_up = parameters.first().and_then(read_address).is_some_and(|address| {
            address.is_unspecified() || self.handshake.peer.has(&address.to_canonical())
        });
        let numbers = (self.handshake.local_tsn, self.receiver.first().unwrap_or_default());
        let fresh = AddressReconfiguration::new(Serial32(numbers.0), numbers.1);
        let known = self.control.addresses.as_deref().unwrap_or(&fresh);
        packet.tag == self.handshake.local_tag
            && self.reconfigures_addresses()
            && self.state.reconfigures()
            && looked_up
            && known.treatment(serial) != Treatment::Discard
            && auth.is_authentic(packet)
    }

    fn request_address(
        &mut self,
        request: Request,
        from: Option<PathId>,
    ) -> Result<(), AddressError> {
        let count = self.sender.paths.len();
        assert!(from.is_none_or(|path| path.index() < count), "there is no {from:?}");
        if !matches!(self.state, State::Established) {
            return Err(AddressError::Closing);
        }
        if !self.reconfigures_addresses() {
            return Err(AddressError::NotSupported);
        }
        if !is_usable(request.address()) {
            return Err(AddressError::Unsuitable);
        }
        self.addresses().wish(Wish { request, from })
    }

    fn addresses(&mut self) -> &mut AddressReconfiguration {
        let numbers = (self.handshake.local_tsn, self.receiver.first().unwrap_or_default());
        let new = || Box::new(AddressReconfiguration::new(Serial32(numbers.0), numbers.1));
        self.control.addresses.get_or_insert_with(new)
    }

    fn announce_address(&mut self, change: AddressChange) {
        self.addresses().announce(change);
        if self.control.events.back() != Some(&Event::AddressesChanged) {
            self.push_event(Event::AddressesChanged);
        }
    }

    /// Sends the next ASCONF if a request waits. RFC 5061, 5.1 A2: at most one is outstanding.
    #[cold]
    pub(super) fn follow_addresses(&mut self, now: Time) {
        let ready = self.control.addresses.as_ref().is_some_and(|one| one.is_ready());
        // Requests made before a shutdown are still sent.
        if !ready || !self.state.sends_data() {
            return;
        }
        let best = self.sender.best_path();
        let path = match (self.addresses().next_source(), self.path_status(best)) {
            (Some(path), _) => path,
            (None, PathStatus::Active) => best,
            _ => self.announcing_path().unwrap_or(best),
        };
        let timer = now + self.sender.paths[path.index()].tx.rtt.rto();
        let room = self.sender.packet_room(path) - self.auth_room();
        let own = self.own_addresses().to_vec();
        let chunk = self.addresses().ask(&own, room, path, timer);
        self.sender.outstanding.deadline.invalidate();
        self.send_control(path, chunk);
    }

    /// The path of the next transmission of an ASCONF: another active path, else one from an address that
    /// the peer does not know yet. RFC 5061, 5.3: an ASCONF may be sent from there, because its address
    /// parameter identifies the association.
    fn next_request_path(&self, last: PathId) -> PathId {
        let known = self.control.addresses.as_ref();
        if let Some(path) = known.and_then(|one| one.bound_to(SOURCE_ATTEMPTS)) {
            return path;
        }
        let next = self.next_path(last);
        if next != last {
            return next;
        }
        let count = self.sender.paths.len();
        let after = (1..=count).map(|step| (last.index() + step) % count);
        let announcing = after.into_iter().find(|at| self.sender.paths[*at].announcing);
        announcing.map_or_else(|| self.sender.best_path(), PathId::from_index)
    }

    fn announcing_path(&self) -> Option<PathId> {
        self.sender.paths.iter().position(|path| path.announcing).map(PathId::from_index)
    }

    /// Bytes of the AUTH chunk in a packet with an ASCONF.
    fn auth_room(&self) -> u32 {
        self.handshake.auth.as_ref().map_or(0, |auth| auth.chunk_len())
    }

    /// A path has ended: requests about its source can no longer be sent.
    pub(super) fn leave_source(&mut self, path: PathId) {
        let given_up = self.control.addresses.as_mut().map_or(Vec::new(), |one| one.leave(path));
        for request in given_up {
            self.finish_address_request(request, Err(Refusal::Unresolvable));
        }
    }

    /// Handles T4-rto (RFC 5061, 5.1.1): the timeout counts as an error, and the ASCONF is retransmitted,
    /// on another path if possible.
    #[cold]
    pub(super) fn on_addresses_timer(&mut self, now: Time) {
        let known = self.control.addresses.as_ref();
        let Some(path) = known.and_then(|one| one.expired(now)) else { return };
        let attempts = known.map_or(0, |one| one.attempts());
        self.sender.paths[path.index()].tx.rtt.back_off();
        self.note_path_error(now, path, true);
        // Answered HEARTBEATs reset the association's error count, but not the attempts of the unanswered
        // ASCONF.
        if attempts > self.config.association_max_retrans {
            self.give_up();
        }
        if !self.state.reconfigures() {
            self.fail_address_requests();
            return;
        }
        let path = self.next_request_path(path);
        let timer = now + self.sender.paths[path.index()].tx.rtt.rto();
        let repeated = self.control.addresses.as_mut().and_then(|one| one.repeat(path, timer));
        if let Some(chunk) = repeated {
            self.send_control(path, chunk);
        }
    }

    /// Fails all requests of this end.
    pub(super) fn fail_address_requests(&mut self) {
        let Some(addresses) = &mut self.control.addresses else { return };
        for request in addresses.give_up() {
            self.finish_address_request(request, Err(Refusal::NotPermitted));
        }
    }

    /// Processes an ASCONF of the peer (RFC 5061, 5.2) that arrived on `path`.
    #[cold]
    pub(super) fn on_asconf(&mut self, path: PathId, serial: Serial32, list: &[RawParameter]) {
        // Only a driver that knows addresses can follow the changes.
        let Some(source) = self.addresses().source else { return };
        if !self.state.reconfigures() {
            return;
        }
        match self.addresses().treatment(serial) {
            Treatment::Discard => {}
            // RFC 5061, 5.2: the answer goes to the source of the ASCONF.
            Treatment::Repeat(answer) => self.reply_to_peer(path, answer),
            Treatment::Process => {
                // Without its first parameter the chunk is malformed. Until the driver has applied
                // earlier changes, the peer has to try again.
                let sound = list.first().is_some_and(|first| read_address(first).is_some());
                if sound && self.addresses().has_room() {
                    let answers = self.answer_asconf(source, path, &list[1..]);
                    let answer = ExtensionChunk::AsconfAck(serial, answers);
                    let answer = Chunk::Extension(Box::new(answer));
                    self.addresses().answered(answer.clone());
                    self.reply_to_peer(path, answer);
                }
            }
        }
    }

    /// Performs the requests in the parameters of an ASCONF, in order, as far as the answers fit into a
    /// packet.
    ///
    /// RFC 5061, 5.2: success is reported only after the first failure, because before that no answer
    /// means success.
    fn answer_asconf(
        &mut self,
        source: IpAddr,
        path: PathId,
        list: &[RawParameter],
    ) -> Vec<RawParameter> {
        let mut answers = Vec::new();
        let room = self.sender.packet_room(path).saturating_sub(self.auth_room() + ACK_HEADER);
        let mut left = room;
        for raw in list {
            let answer = match Asked::read(raw) {
                Some(Asked::Request(id, request)) => {
                    if left < wire_len(raw) + 12 {
                        break;
                    }
                    let done = request.ok_or(Refusal::Unresolvable);
                    let done = done.and_then(|request| self.perform(source, request));
                    match done {
                        Ok(()) => Answer::Success(id),
                        Err(refusal) => Answer::Error(id, refusal),
                    }
                }
                // RFC 9260, 3.2.1: the highest bit of an unknown type determines whether to continue.
                Some(Asked::Unknown(kind)) if goes_on((kind >> 8) as u8) => continue,
                Some(Asked::Unknown(_)) | None => break,
            };
            if !answers.is_empty() || matches!(answer, Answer::Error(..)) {
                let raw = answer.raw(raw);
                left -= wire_len(&raw);
                answers.push(raw);
            }
        }
        answers
    }

    /// Performs one request of the peer.
    fn perform(&mut self, source: IpAddr, request: Request) -> Result<(), Refusal> {
        let named = request.address().to_canonical();
        let peer = &mut self.handshake.peer;
        match request {
            // RFC 5061, 4.2.1: the unspecified address stands for the source.
            Request::Add(_) => {
                let ip = if named.is_unspecified() { source } else { named };
                if !is_usable(ip) {
                    return Err(Refusal::Unresolvable);
                }
                if !peer.has(&ip) {
                    if peer.all().len() >= ADDRESSES_LIMIT {
                        return Err(Refusal::Resources);
                    }
                    peer.add(ip);
                }
                self.announce_address(AddressChange::Added(ip));
            }
            // 4.2.2: all except the source.
            Request::Delete(_) if named.is_unspecified() => {
                if !peer.has(&source) {
                    return Err(Refusal::Unresolvable);
                }
                for ip in peer.all().into_iter().filter(|ip| *ip != source) {
                    self.handshake.peer.remove(ip);
                    self.announce_address(AddressChange::Removed(ip));
                }
            }
            Request::Delete(_) => {
                // 5.3 D7, D8: neither the last address nor the source of the packet can be deleted.
                if peer.all() == [named] {
                    return Err(Refusal::LastAddress);
                }
                if named == source {
                    return Err(Refusal::SourceAddress);
                }
                // 5.2: deleting an address that the association does not have succeeds.
                if peer.has(&named) {
                    peer.remove(named);
                    self.announce_address(AddressChange::Removed(named));
                }
            }
            Request::SetPrimary(_) => {
                let ip = if named.is_unspecified() { source } else { named };
                if !peer.has(&ip) {
                    return Err(Refusal::Unresolvable);
                }
                self.announce_address(AddressChange::Primary(ip));
            }
        }
        Ok(())
    }

    /// Processes an ASCONF ACK (RFC 5061, 5.1).
    #[cold]
    pub(super) fn on_asconf_ack(&mut self, serial: Serial32, list: &[RawParameter]) {
        let addresses = self.addresses();
        let path = addresses.path();
        if addresses.is_illegal(serial) {
            self.abort_with(ErrorCause::IllegalAsconfAck);
            return;
        }
        let Some(results) = addresses.on_answer(serial, list) else { return };
        // 5.1: the answer ends the error counts of the association and of the destination.
        self.control.errors = 0;
        if let Some(path) = path {
            let state = &mut self.sender.paths[path.index()].tx.state;
            if state.status() == PathStatus::Active {
                state.on_success();
            }
        }
        for (request, result) in results {
            self.finish_address_request(request, result);
        }
    }

    fn finish_address_request(&mut self, request: Request, result: Result<(), Refusal>) {
        let ip = request.address().to_canonical();
        let own = self.config.addresses.get_or_insert_default();
        let change = match request {
            Request::Add(_) => {
                if result.is_ok() && !own.contains(&ip) {
                    own.push(ip);
                }
                AddressChange::OwnAdded(ip, result)
            }
            Request::Delete(_) => {
                if result.is_ok() {
                    own.retain(|known| *known != ip);
                }
                AddressChange::OwnRemoved(ip, result)
            }
            Request::SetPrimary(_) => AddressChange::OwnPrimary(ip, result),
        };
        self.announce_address(change);
    }

    /// The peer has reported an ASCONF as unknown (RFC 5061, 5.1 (A9)): no more are sent.
    pub(super) fn on_asconf_unknown(&mut self) {
        let agreed = self.handshake.peer.agreed;
        self.handshake.peer.agreed = agreed.without(Extensions::ASCONF.and(Extensions::ASCONF_ACK));
        self.fail_address_requests();
    }
}
