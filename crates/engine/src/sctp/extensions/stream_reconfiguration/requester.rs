//! The requests of this end (RFC 6525, 5.1): at most one chunk with requests is outstanding, and others wait.

use std::collections::VecDeque;

use ropewalk_base::{PathId, Serial32, Time};
use smallvec::SmallVec;

use super::parameters::{Code, Parameter, Request, Response};
use super::{LISTED_LIMIT, Streams};
use crate::sctp::chunk::Chunk;
use crate::sctp::extension_chunk::{ExtensionChunk, RawParameter};

/// Maximum number of attempts at a request that the peer answers with "request already in progress", as
/// some stacks do while their own request is outstanding.
const ATTEMPTS_LIMIT: u8 = 10;

/// A request that waits to be sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Reset streams. `answers`: the request of the peer that this one answers.
    Reset { outgoing: bool, incoming: bool, streams: Streams, answers: Option<Serial32> },
    /// Reset TSNs and all streams.
    Association,
    /// Add streams.
    Add { outgoing: u16, incoming: u16 },
}

impl Wish {
    /// The streams that carry no new messages while the request waits or is outstanding (RFC 6525, 5.1.2 A1, 5.1.4 C3).
    pub const fn held_streams(&self) -> Option<&Streams> {
        match self {
            Self::Reset { outgoing: true, streams, .. } => Some(streams),
            Self::Association => Some(&Streams::All),
            Self::Reset { .. } | Self::Add { .. } => None,
        }
    }

    /// Splits the request so that each part fits into a packet.
    fn split(self) -> Vec<Self> {
        match &self {
            Self::Reset { outgoing, incoming, streams: Streams::Listed(each), answers: None }
                if each.len() > LISTED_LIMIT =>
            {
                let part = |part: &[_]| Self::Reset {
                    outgoing: *outgoing,
                    incoming: *incoming,
                    streams: Streams::of(part),
                    answers: None,
                };
                each.chunks(LISTED_LIMIT).map(part).collect()
            }
            _ => vec![self],
        }
    }
}

/// A request, and the conditions for sending it.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub wish: Wish,
    /// The last TSN of its streams, once all their data has been sent.
    pub last_tsn: Option<u64>,
    not_before: Time,
    attempts: u8,
}

/// A request that was sent.
#[derive(Clone, Debug)]
struct Asked {
    number: Serial32,
    request: Request,
    is_answered: bool,
}

/// The chunk with requests that was sent.
#[derive(Clone, Debug)]
struct Outstanding {
    asked: SmallVec<[Asked; 2]>,
    attempts: u8,
    path: PathId,
    timer: Time,
    /// The peer has answered that it will perform the request later.
    in_progress: bool,
}

/// The action when the timer expires.
#[derive(Clone, Debug)]
pub struct Repeat {
    /// The path of the last transmission.
    pub path: PathId,
    /// Whether the missing answer counts as an error. RFC 6525, 5.2.7 H2: not after "in progress".
    pub is_error: bool,
}

/// The requests of this end.
#[derive(Clone, Debug)]
pub struct Requester {
    next: Serial32,
    waiting: VecDeque<Waiting>,
    outstanding: Option<Outstanding>,
    /// Streams that this end has requested the peer to reset. The peer's request to do so is accepted
    /// regardless of the user's settings.
    invited: Option<Streams>,
    /// Number of streams that this end has requested the peer to add.
    invited_streams: u16,
}

impl Requester {
    pub const fn new(first: Serial32) -> Self {
        Self {
            next: first,
            waiting: VecDeque::new(),
            outstanding: None,
            invited: None,
            invited_streams: 0,
        }
    }

    /// Adds a request. [`Self::conflicts`] must be false for it.
    pub fn add(&mut self, wish: Wish) {
        for wish in wish.split() {
            let waiting = Waiting { wish, last_tsn: None, not_before: Time::ZERO, attempts: 0 };
            self.waiting.push_back(waiting);
        }
    }

    /// Whether an earlier request must end first: it concerns the same streams, or the association.
    pub fn conflicts(&self, wish: &Wish) -> bool {
        self.pending().any(|earlier| match (&earlier, wish) {
            (Wish::Association, _) | (_, Wish::Association) => true,
            (Wish::Add { outgoing: a, incoming: b }, Wish::Add { outgoing: c, incoming: d }) => {
                *a > 0 && *c > 0 || *b > 0 && *d > 0
            }
            (
                Wish::Reset { outgoing: a, incoming: b, streams: first, .. },
                Wish::Reset { outgoing: c, incoming: d, streams: second, .. },
            ) => (*a && *c || *b && *d) && first.overlap(second),
            (Wish::Reset { .. }, Wish::Add { .. }) | (Wish::Add { .. }, Wish::Reset { .. }) => {
                false
            }
        })
    }

    /// The waiting and the outstanding requests.
    fn pending(&self) -> impl Iterator<Item = Wish> {
        let asked = self.outstanding.iter().flat_map(|chunk| &chunk.asked);
        let asked = asked.filter(|one| !one.is_answered).map(|one| wish_of(&one.request));
        asked.chain(self.waiting.iter().map(|one| one.wish.clone()))
    }

    /// Whether this end already resets the outgoing streams of an incoming reset of the peer (RFC 6525,
    /// 5.2.3).
    pub fn covers_reset_of(&self, streams: &Streams) -> bool {
        self.pending().any(|wish| wish.held_streams().is_some_and(|held| held.cover(streams)))
    }

    /// Whether a chunk with requests is outstanding.
    pub const fn is_asking(&self) -> bool {
        self.outstanding.is_some()
    }

    /// Withdraws a waiting reset of the association, because the peer has requested one. Returns whether
    /// there was one.
    pub fn take_association_reset(&mut self) -> bool {
        let count = self.waiting.len();
        self.waiting.retain(|one| one.wish != Wish::Association);
        self.waiting.len() < count
    }

    /// Whether a reset of the association is outstanding: the peer may have reset it already.
    pub fn is_resetting_association(&self) -> bool {
        let asked = self.outstanding.iter().flat_map(|chunk| &chunk.asked);
        asked.into_iter().any(|one| one.request == Request::ResetAssociation)
    }

    /// Whether a request waits or is outstanding.
    pub fn is_busy(&self) -> bool {
        self.outstanding.is_some() || !self.waiting.is_empty()
    }

    /// The requests that wait and may be sent now.
    pub fn sendable(&mut self, now: Time) -> impl Iterator<Item = (usize, &mut Waiting)> {
        let free = self.outstanding.is_none();
        let all = self.waiting.iter_mut().enumerate().filter(move |_| free);
        all.filter_map(move |(at, one)| {
            let due = one.not_before <= now;
            if due {
                one.not_before = Time::ZERO;
            }
            due.then_some((at, one))
        })
    }

    /// Makes a chunk of the waiting requests at these positions, in ascending order. Several requests
    /// must all be resets of listed outgoing streams. `last_tsn`: the last assigned TSN; `last_of_peer`:
    /// the peer's last request.
    pub fn ask(
        &mut self,
        positions: &[usize],
        last_tsn: Serial32,
        last_of_peer: Serial32,
        timer: (PathId, Time),
    ) -> Chunk {
        let taken = positions.iter().rev().filter_map(|at| self.waiting.remove(*at));
        let taken: Vec<Waiting> = taken.collect();
        let attempts = taken.iter().map(|one| one.attempts).max().unwrap_or_default();
        let wish = merged(taken.into_iter().map(|one| one.wish).collect());
        let requests = requests_of(wish, last_tsn, last_of_peer);
        let asked = requests.into_iter().map(|request| {
            let number = self.next;
            self.next = number.plus(1);
            Asked { number, request, is_answered: false }
        });
        let asked: SmallVec<[Asked; 2]> = asked.collect();
        for one in &asked {
            match &one.request {
                Request::ResetIncoming(streams) => self.invited = Some(streams.clone()),
                Request::AddIncoming(count) => self.invited_streams = *count,
                _ => {}
            }
        }
        let (path, timer) = timer;
        let in_progress = false;
        let outstanding = Outstanding { asked, attempts, path, timer, in_progress };
        let chunk = outstanding.chunk();
        self.outstanding = Some(outstanding);
        chunk
    }

    /// The outstanding chunk, for retransmission.
    pub fn chunk(&self) -> Option<Chunk> {
        self.outstanding.as_ref().map(Outstanding::chunk)
    }

    /// When the next timer expires: a chunk is retransmitted, or a request is tried again.
    pub fn deadline(&self) -> Option<Time> {
        match &self.outstanding {
            Some(outstanding) => Some(outstanding.timer),
            None => {
                self.waiting.iter().map(|one| one.not_before).min().filter(|at| *at > Time::ZERO)
            }
        }
    }

    /// The chunk whose timer has expired.
    pub fn expired(&self, now: Time) -> Option<Repeat> {
        let outstanding = self.outstanding.as_ref().filter(|one| one.timer <= now)?;
        let Outstanding { path, in_progress, .. } = *outstanding;
        Some(Repeat { path, is_error: !in_progress })
    }

    /// Retransmits the outstanding chunk on `path`, with a timer until `timer`.
    pub fn repeat(&mut self, path: PathId, timer: Time) -> Option<Chunk> {
        let outstanding = self.outstanding.as_mut()?;
        (outstanding.path, outstanding.timer) = (path, timer);
        Some(outstanding.chunk())
    }

    /// The path of the outstanding chunk.
    pub fn path(&self) -> Option<PathId> {
        self.outstanding.as_ref().map(|outstanding| outstanding.path)
    }

    /// Renumbers the path of the outstanding chunk.
    pub fn renumber(&mut self, renumbered: impl Fn(PathId) -> Option<PathId>) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.path = renumbered(outstanding.path).unwrap_or(PathId(0));
        }
    }

    /// Processes a response (RFC 6525, 5.2.7). Returns the request that has ended. `timer`: when a
    /// request in progress is repeated. `retry_at`: when to retry a request that the peer cannot perform
    /// during another one.
    pub fn on_response(
        &mut self,
        response: Response,
        timer: Time,
        retry_at: Time,
    ) -> Option<Request> {
        let outstanding = self.outstanding.as_mut()?;
        // H1: a response to another request is ignored.
        let is_meant = |one: &&mut Asked| one.number == response.number && !one.is_answered;
        let asked = outstanding.asked.iter_mut().find(is_meant)?;
        if response.code == Code::InProgress {
            // H2: the timer is restarted, and its expiry is not an error.
            (outstanding.in_progress, outstanding.timer) = (true, timer);
            return None;
        }
        asked.is_answered = true;
        let request = asked.request.clone();
        let attempts = outstanding.attempts + 1;
        let again = response.code == Code::AlreadyInProgress && attempts < ATTEMPTS_LIMIT;
        self.end_if_answered();
        if again {
            let wish = wish_of(&request);
            let not_before = retry_at;
            self.waiting.push_front(Waiting { wish, last_tsn: None, not_before, attempts });
            return None;
        }
        Some(request)
    }

    /// Processes a reset of the peer's streams that answers the request `number` (RFC 6525, 5.2.2 E1).
    pub fn on_answer(&mut self, number: Serial32) {
        let Some(outstanding) = &mut self.outstanding else { return };
        for asked in &mut outstanding.asked {
            let incoming = matches!(asked.request, Request::ResetIncoming(_));
            asked.is_answered |= asked.number == number && incoming;
        }
        self.end_if_answered();
    }

    /// Processes an addition of streams by the peer at the request of this end.
    pub fn on_streams_added(&mut self) {
        let Some(outstanding) = &mut self.outstanding else { return };
        for asked in &mut outstanding.asked {
            asked.is_answered |= matches!(asked.request, Request::AddIncoming(_));
        }
        self.end_if_answered();
    }

    fn end_if_answered(&mut self) {
        self.outstanding.take_if(|outstanding| outstanding.asked.iter().all(|one| one.is_answered));
    }

    /// Whether this end has requested the peer to reset all of these streams. A further reset needs a new
    /// request.
    pub fn take_invited(&mut self, streams: &Streams) -> bool {
        self.invited.take_if(|invited| invited.cover(streams)).is_some()
    }

    /// Whether this end has requested the peer to add this many streams.
    pub fn take_invited_streams(&mut self, count: u16) -> bool {
        let invited = count > 0 && self.invited_streams == count;
        if invited {
            self.invited_streams = 0;
        }
        invited
    }

    /// Drops the state of a request to the peer, because the peer has refused it.
    pub fn uninvite(&mut self, request: &Request) {
        match request {
            Request::ResetIncoming(_) => self.invited = None,
            Request::AddIncoming(_) => self.invited_streams = 0,
            _ => {}
        }
    }

    /// Drops all requests.
    pub fn stop(&mut self) {
        self.waiting.clear();
        self.outstanding = None;
    }

    /// Drops the requests that were not sent.
    pub fn cancel_waiting(&mut self) -> Vec<Wish> {
        self.waiting.drain(..).map(|one| one.wish).collect()
    }
}

impl Outstanding {
    /// RFC 6525, 5.1.1: a retransmission is the same chunk, except for requests that have been answered.
    fn chunk(&self) -> Chunk {
        let open = self.asked.iter().filter(|one| !one.is_answered);
        chunk_of(
            open.map(|one| Parameter::Request(one.number, one.request.clone()).raw()).collect(),
        )
    }
}

/// A RE-CONFIG chunk.
pub fn chunk_of(parameters: Vec<RawParameter>) -> Chunk {
    Chunk::Extension(Box::new(ExtensionChunk::ReConfig(parameters)))
}

/// Merges several resets into one.
fn merged(mut wishes: Vec<Wish>) -> Wish {
    if wishes.len() == 1
        && let Some(only) = wishes.pop()
    {
        return only;
    }
    let each = wishes.iter().filter_map(Wish::held_streams).flat_map(Streams::listed).copied();
    let streams = Streams::of(&each.collect::<Vec<_>>());
    Wish::Reset { outgoing: true, incoming: false, streams, answers: None }
}

fn requests_of(wish: Wish, last_tsn: Serial32, last_of_peer: Serial32) -> Vec<Request> {
    match wish {
        Wish::Reset { outgoing, incoming, streams, answers } => {
            // RFC 6525, 5.1.2 A4: otherwise the number of the peer's last request.
            let answers = answers.unwrap_or(last_of_peer);
            let reset = Request::ResetOutgoing { answers, last_tsn, streams: streams.clone() };
            let first = outgoing.then_some(reset);
            first.into_iter().chain(incoming.then_some(Request::ResetIncoming(streams))).collect()
        }
        Wish::Association => vec![Request::ResetAssociation],
        Wish::Add { outgoing, incoming } => {
            let first = (outgoing > 0).then_some(Request::AddOutgoing(outgoing));
            let second = (incoming > 0).then_some(Request::AddIncoming(incoming));
            first.into_iter().chain(second).collect()
        }
    }
}

/// The request of the user that a sent request belongs to.
fn wish_of(request: &Request) -> Wish {
    let reset = |outgoing, streams: &Streams| Wish::Reset {
        outgoing,
        incoming: !outgoing,
        streams: streams.clone(),
        answers: None,
    };
    match request {
        Request::ResetOutgoing { streams, .. } => reset(true, streams),
        Request::ResetIncoming(streams) => reset(false, streams),
        Request::ResetAssociation => Wish::Association,
        Request::AddOutgoing(count) => Wish::Add { outgoing: *count, incoming: 0 },
        Request::AddIncoming(count) => Wish::Add { outgoing: 0, incoming: *count },
    }
}
