//! Receives messages and notifications.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use libc::c_int;
use ropewalk_runtime::endpoint::{Part, Received, UpToEvent};

use super::wait::{Attempted, Until, Wait};
use super::{Phase, Socket, State, Stop, Style};
use crate::abi::control::ReceiveInfo;
use crate::abi::notification::Notification;
use crate::abi::number::{message, notification};
use crate::address::shown;
use crate::errno::{Errno, Result};
use crate::interpose::raw::Buffers;

/// Maximum number of bytes to take from an association in one step. Data that the program has not read must stay
/// in the receive buffer, so that the peer sees its window close.
const PULL_LIMIT: usize = 256 << 10;

/// The message to which a part belongs. With interleaving (RFC 8260), parts of messages of different streams and
/// orders alternate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartOf {
    /// The association.
    pub id: i32,
    stream: u16,
    flags: u16,
}

/// A message that has arrived in part, without its end.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    message: PartOf,
    ssn: u16,
}

/// A message, part of a message, or notification that the program has not completely read.
#[derive(Debug)]
pub struct Item {
    id: i32,
    peer: Option<SocketAddr>,
    bytes: Bytes,
    part: Part,
    info: ReceiveInfo,
    notification: bool,
    /// The message that ends here without its last part. This item has its final bytes or the notification about
    /// it.
    cut_off: Option<PartOf>,
}

impl Item {
    /// A notification.
    pub fn notification(id: i32, peer: Option<SocketAddr>, bytes: Vec<u8>) -> Self {
        let info = ReceiveInfo::default();
        let (part, bytes) = (Part::Whole, bytes.into());
        Self { id, peer, bytes, part, info, notification: true, cut_off: None }
    }

    /// The association.
    pub const fn id(&self) -> i32 {
        self.id
    }

    /// Whether it is data, not a notification.
    pub const fn is_message(&self) -> bool {
        !self.notification
    }

    /// The message to which it belongs.
    const fn part_of(&self) -> PartOf {
        PartOf { id: self.id, stream: self.info.stream, flags: self.info.flags }
    }

    /// Whether this item continues the partly read message, or is the notification that its rest will not
    /// arrive.
    fn continues(&self, message: PartOf) -> bool {
        if self.notification {
            return self.cut_off == Some(message);
        }
        matches!(self.part, Part::Middle | Part::Last) && self.part_of() == message
    }
}

/// The result of one call that receives.
#[derive(Clone, Debug)]
pub struct Delivered {
    /// Length, bytes.
    pub length: usize,
    /// The peer, as the socket reports it.
    pub peer: Option<SocketAddr>,
    /// Flags of `recvmsg`.
    pub flags: c_int,
    /// Information about a message. `None` for a notification.
    pub info: Option<ReceiveInfo>,
    /// The next message and its length, if the program has requested them and the message has
    /// arrived.
    pub next: Option<(ReceiveInfo, u32)>,
    /// Whether the program has requested SNDRCV (`sctp_data_io_event`).
    pub wants_sndrcv: bool,
    /// Whether the program has requested RCVINFO.
    pub wants_rcvinfo: bool,
}

impl Delivered {
    /// The end of the association.
    const END: Self = Self {
        length: 0,
        peer: None,
        flags: 0,
        info: None,
        next: None,
        wants_sndrcv: false,
        wants_rcvinfo: false,
    };
}

impl State {
    /// The next item to deliver. After part of a message, this is its next part (RFC 6458, 8.1.20), unless the
    /// program has requested complete interleaving.
    pub(super) fn next_item(&self) -> Option<usize> {
        match self.in_part {
            None => (!self.inbox.is_empty()).then_some(0),
            Some(message) => self.inbox.iter().position(|item| item.continues(message)),
        }
    }

    /// Takes messages of an association that have arrived. Returns whether there are more.
    pub(super) fn pull(&mut self, id: i32, most: usize) -> bool {
        loop {
            let found = self.pull_up_to_event(id, most);
            let Some(event) = found.event else { return found.more };
            self.on_reconfigured(id, &event);
        }
    }

    /// Takes messages of an association up to the next stream event, so that the notification is delivered in its
    /// place.
    fn pull_up_to_event(&mut self, id: i32, most: usize) -> UpToEvent {
        let Some(link) = self.links.get_mut(&id) else {
            return UpToEvent { event: None, more: false };
        };
        let mut fresh = Vec::new();
        let found = link.association.try_receive_up_to_event(&mut fresh, most);
        let (peer, context) = (link.peer, link.messages.context);
        let item = |message: Received| Item {
            id,
            peer: Some(peer),
            info: ReceiveInfo {
                stream: message.stream,
                flags: if message.unordered { message::UNORDERED } else { 0 },
                ppid: message.ppid.to_be(),
                context,
                association: id,
                ssn: message.ssn,
                tsn: message.tsn,
                cumulative_tsn: message.cumulative_tsn,
            },
            bytes: message.bytes,
            part: message.part,
            notification: false,
            cut_off: None,
        };
        let fresh: Vec<Item> = fresh.into_iter().map(item).collect();
        fresh.into_iter().for_each(|item| self.queue(item));
        found
    }

    /// Queues a message or a part of one.
    fn queue(&mut self, item: Item) {
        let begun = Begun { message: item.part_of(), ssn: item.info.ssn };
        // An empty last part: the sender has abandoned the rest of the message.
        let is_abandoned = item.part == Part::Last && item.bytes.is_empty();
        if item.part != Part::Middle
            && let Some(link) = self.links.get_mut(&item.id)
        {
            let open = &mut link.history.begun;
            let before = open.iter().position(|other| other.message == begun.message);
            let before = before.map(|at| open.remove(at));
            if item.part == Part::First {
                open.push(begun);
            }
            // The beginning of a message ends an older one, because its sender has restarted.
            let is_cut = is_abandoned || item.part != Part::Last;
            before.filter(|_| is_cut).iter().for_each(|before| self.cut_short(before));
        }
        if !is_abandoned {
            self.inbox.push_back(item);
        }
    }

    /// Ends a message whose rest will not arrive. The part that has arrived ends without MSG_EOR. The program
    /// receives a notification if it has subscribed to it (RFC 6458, 6.1.7).
    fn cut_short(&mut self, begun: &Begun) {
        let Begun { message, ssn } = *begun;
        let is_part = |item: &Item| item.is_message() && item.part_of() == message;
        let is_open = |at: &usize| {
            let item = &self.inbox[*at];
            matches!(item.part, Part::First | Part::Middle) && item.cut_off.is_none()
        };
        let last = self.inbox.iter().rposition(is_part).filter(is_open);
        let what = Notification::PartialDeliveryAborted { stream: message.stream, sequence: ssn };
        if let Some(item) = self.notification(message.id, &what) {
            let item = Item { cut_off: Some(message), ..item };
            self.inbox.insert(last.map_or(self.inbox.len(), |at| at + 1), item);
        } else if let Some(at) = last {
            self.inbox[at].cut_off = Some(message);
        } else if self.in_part == Some(message) {
            self.in_part = None;
        }
    }

    /// Ends all messages that have arrived in part, after the association has ended or restarted.
    pub(super) fn cut_all_short(&mut self, id: i32) {
        let Some(link) = self.links.get_mut(&id) else { return };
        let begun = std::mem::take(&mut link.history.begun);
        begun.iter().for_each(|begun| self.cut_short(begun));
    }

    /// Takes messages from associations that have some, until one can be delivered.
    fn fetch(&mut self, style: Style) -> Option<usize> {
        if style == Style::OneToOne
            && self.ready.is_empty()
            && self.inbox.is_empty()
            && let Some((&id, _)) = self.links.first_key_value()
        {
            // Its task may not have run yet.
            self.pull(id, PULL_LIMIT);
        }
        loop {
            if let Some(index) = self.next_item() {
                return Some(index);
            }
            let id = self.ready.pop_front()?;
            self.pull_ready(id);
        }
    }

    /// Takes messages of an association that was removed from the list of those with messages.
    fn pull_ready(&mut self, id: i32) {
        if self.pull(id, PULL_LIMIT) {
            self.ready.push_back(id);
        } else if let Some(link) = self.links.get_mut(&id) {
            link.is_ready = false;
            link.wake.read.notify_one();
        }
    }

    /// Takes messages that have arrived, so that the notification of a later association follows them. Data that the
    /// program has not read must stay in the receive buffers, so messages are taken only up to a limit.
    pub(super) fn pull_before_notification(&mut self) {
        let waiting: usize = self.inbox.iter().map(|item| item.bytes.len()).sum();
        if waiting < PULL_LIMIT {
            for id in std::mem::take(&mut self.ready) {
                self.pull_ready(id);
            }
        }
    }
}

impl Socket {
    /// Receives one message, a part of it that fits, or a notification. `flags`: `MSG_DONTWAIT`, `MSG_PEEK`.
    ///
    /// # Errors
    /// `EFAULT`, `EAGAIN` if nothing has arrived and the call must not wait, `ENOTCONN`, and the error of the
    /// association, once.
    pub fn receive(self: &Arc<Self>, into: &mut Buffers, flags: c_int) -> Attempted<Delivered> {
        into.check()?;
        let waits = !self.is_nonblocking() && flags & libc::MSG_DONTWAIT == 0;
        if let Some(delivered) = self.try_receive(into, flags)? {
            let is_end = delivered.info.is_none() && delivered.flags == 0;
            return match waits && is_end && self.lock().has_shut_down_alone() {
                true => Err(Errno(libc::ENOTCONN).into()),
                false => Ok(delivered),
            };
        }
        if !waits {
            return Err(Errno(libc::EAGAIN).into());
        }
        if self.has_no_source() {
            return Err(Errno(libc::ENOTCONN).into());
        }
        Err(Stop::Wait(Wait::new(self, Until::Readable)))
    }

    /// Whether nothing can arrive: there is no association, and peers cannot open one. As in Linux
    /// (`sctp_wait_for_packet`), a call that would wait fails.
    fn has_no_source(&self) -> bool {
        let state = &*self.lock();
        self.style == Style::OneToMany && state.links.is_empty() && state.listening.is_none()
    }

    fn try_receive(&self, into: &mut Buffers, flags: c_int) -> Result<Option<Delivered>> {
        let state = &mut *self.lock();
        if state.closed {
            return Err(Errno(libc::EBADF));
        }
        if let Some(index) = state.fetch(self.style) {
            let delivered = self.deliver(state, index, into, flags & libc::MSG_PEEK != 0);
            self.show(state);
            return Ok(Some(delivered));
        }
        self.show(state);
        // After a clean end, only SO_ERROR and `send` give the error.
        if !state.has_clean_end()
            && let Some(error) = state.error.take()
        {
            self.show(state);
            return Err(error);
        }
        if state.is_over(self.style) {
            return Ok(Some(Delivered::END));
        }
        if self.style == Style::OneToOne && state.phase == Phase::Idle {
            return Err(Errno(libc::ENOTCONN));
        }
        Ok(None)
    }

    fn deliver(
        &self,
        state: &mut State,
        index: usize,
        into: &mut Buffers,
        peek: bool,
    ) -> Delivered {
        let item = &mut state.inbox[index];
        let length = into.fill(&item.bytes);
        let last = length == item.bytes.len();
        let ends = last && matches!(item.part, Part::Whole | Part::Last);
        let mut flags = if ends { libc::MSG_EOR } else { 0 };
        if item.notification {
            flags |= message::MSG_NOTIFICATION;
        }
        let (info, peer, message) = (item.info, item.peer, item.part_of());
        let cut_off = item.cut_off.filter(|_| last);
        let is_message = item.is_message();
        if !peek {
            item.bytes.advance(length);
            if last {
                state.inbox.remove(index);
            } else if matches!(state.inbox[index].part, Part::Whole | Part::First) && is_message {
                // The rest of the message is its continuation.
                let rest = &mut state.inbox[index];
                rest.part = if rest.part == Part::Whole { Part::Last } else { Part::Middle };
            }
            if is_message {
                let alternates = state.settings.fragment_interleave > 1;
                state.in_part = (!ends && !alternates).then_some(message);
            }
            if cut_off.is_some() && state.in_part == cut_off {
                state.in_part = None;
            }
        }
        let wants_next = state.settings.next_info && ends && !peek;
        if wants_next {
            // The next message may not have been taken from its association yet.
            state.fetch(self.style);
        }
        let next = || {
            let next = state.inbox.get(state.next_item()?)?;
            next.is_message().then(|| (next.info, next.bytes.len() as u32))
        };
        let settings = &state.settings;
        Delivered {
            length,
            peer: peer.map(|peer| shown(peer, self.ipv6, settings.mapped)),
            flags,
            info: is_message.then_some(info),
            next: if wants_next { next() } else { None },
            wants_sndrcv: settings.wants(notification::DATA_IO),
            wants_rcvinfo: settings.receive_info,
        }
    }

    /// Bytes of the next message that can be read (`FIONREAD`).
    ///
    /// # Errors
    /// `EINVAL` on a one-to-one socket that listens.
    pub fn readable_bytes(&self) -> Result<usize> {
        let state = &mut *self.lock();
        if self.style == Style::OneToOne && state.listening.is_some() {
            return Err(Errno(libc::EINVAL));
        }
        let next = state.fetch(self.style);
        self.show(state);
        Ok(next.map_or(0, |index| state.inbox[index].bytes.len()))
    }
}
