//! One association of a socket, and the tasks that watch it.

use std::convert::Infallible;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ropewalk_runtime::endpoint::{Association, CloseReason, State as AssociationState};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::history::History;
use super::wait::{Lingering, Waiter};
use super::{MessageSettings, Socket, State, Style, next_id};
use crate::errno::{Errno, Result};
use crate::process::{Claim, Ending, Phase, Service, current};

/// The descriptor becomes writable again when fewer bytes than this are unsent.
const WRITABLE_BELOW: u64 = 512 << 10;

/// Interval after which the descriptor is made readable again while messages are unread.
const SHOW_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Wakes the tasks of an association.
#[derive(Debug, Default)]
pub struct Wake {
    /// The program has read everything that had arrived.
    pub read: Notify,
    /// The send buffer is full.
    pub full: Notify,
    /// Something was sent, and the program wants a notification when everything has been
    /// acknowledged.
    pub dry: Notify,
    /// A message was sent or received.
    pub used: Notify,
}

/// An association of a socket.
#[derive(Debug)]
pub struct Link {
    /// The association.
    pub association: Arc<Association>,
    /// Endpoint of the association. Stays open at least as long.
    pub service: Arc<Service>,
    /// The peer's address with its SCTP port, at the start of the association.
    pub peer: SocketAddr,
    /// Outbound streams that the socket has requested.
    pub streams: u16,
    /// Inbound streams that the socket has offered.
    pub inbound_streams: u16,
    /// Options about its messages.
    pub messages: MessageSettings,
    /// Whether the peer is a socket of this process.
    pub has_own_peer: bool,
    /// Whether it was established.
    pub up: bool,
    /// Whether the peer's SHUTDOWN has arrived.
    pub peer_shut: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// History.
    pub history: History,
    /// The call that waits for its establishment.
    pub connecting: Option<Arc<Waiter>>,
    /// Whether the send buffer is full.
    pub full: bool,
    /// Whether it is in the list of those that can be read.
    pub is_ready: bool,
    /// Wakes its tasks.
    pub wake: Arc<Wake>,
    tasks: Vec<AbortHandle>,
}

impl Link {
    /// Number of outbound streams that the program may use.
    pub fn streams(&self) -> u16 {
        match self.association.streams() {
            0 => self.streams,
            agreed => agreed.min(self.streams),
        }
    }

    /// Number of inbound streams, on which the peer may send.
    pub fn inbound_streams(&self) -> u16 {
        match self.association.stream_counts().1 {
            0 => self.inbound_streams,
            agreed => agreed,
        }
    }

    /// Records that outbound streams were added. Returns the new numbers of inbound and outbound streams.
    pub fn add_streams(&mut self, outgoing: u16) -> (u16, u16) {
        self.streams = self.streams.saturating_add(outgoing);
        (self.inbound_streams(), self.streams())
    }

    /// Starts the shutdown.
    pub fn leave(&mut self) {
        self.history.leaving = true;
        self.association.start_shutdown();
    }

    /// Ends the call that waits for the establishment.
    pub fn end_connecting(&mut self, outcome: Result<()>) {
        if let Some(waiter) = self.connecting.take() {
            waiter.end(outcome);
        }
    }

    /// Stops the tasks, and the calls that wait for them.
    pub fn stop(&mut self) {
        self.end_connecting(Err(Errno(libc::EBADF)));
        self.tasks.drain(..).for_each(|task| task.abort());
    }

    /// Whether the handshake is in progress and no message waits for it.
    fn is_only_begun(&self) -> bool {
        let begun = self.association.status().is_some_and(|status| {
            matches!(
                status.state,
                AssociationState::CookieWait { .. } | AssociationState::CookieEchoed { .. }
            )
        });
        begun && self.association.is_flushed()
    }

    /// Ends the association: immediately with `abort`, otherwise in the background. `held` is dropped when it has ended.
    pub fn close(mut self, abort: bool, held: (Option<Arc<Claim>>, Option<Arc<Lingering>>)) {
        self.stop();
        let unread = self.association.can_receive();
        if self.ended {
            return;
        }
        // RFC 9260, 9.2: in COOKIE-WAIT or COOKIE-ECHOED, a SHUTDOWN has no data to wait for. Linux deletes the
        // association.
        if abort || unread && self.up || self.is_only_begun() {
            self.association.abort();
        }
        let Self { association, service, .. } = self;
        current().close_in_background(|mut phase| async move {
            // Data that was sent before the association was established is still delivered.
            if association.established().await.is_ok() {
                tokio::select! {
                    () = shut_down(&association, &mut phase) => {}
                    never = discard(&association) => match never {},
                }
            }
            drop((association, service, held));
        });
    }

    /// Why the association has ended, or `None`. If the peer has sent its SHUTDOWN and acknowledged everything,
    /// later silence means that its SHUTDOWN COMPLETE was lost.
    pub fn close_reason(&self) -> Option<CloseReason> {
        let association = &self.association;
        let is_silent = |reason| matches!(reason, CloseReason::NoAnswer | CloseReason::Unreachable);
        let has_all = || association.unacknowledged().is_empty() && association.unsent().is_empty();
        let reason = association.close_reason()?;
        let is_complete = self.peer_shut && is_silent(reason) && has_all();
        Some(if is_complete { CloseReason::Shutdown } else { reason })
    }
}

/// Shuts an association down, and waits for its end.
async fn shut_down(association: &Association, phase: &mut Ending) {
    phase.enter(Phase::Data);
    association.start_shutdown();
    association.flushed().await;
    phase.enter(Phase::Shutdown);
    if association.shut_down_by_peer().await {
        phase.enter(Phase::ShutdownAck);
    }
    association.ended().await;
}

/// Acknowledges and discards data that still arrives. Otherwise it would fill the receive buffer, and the peer
/// could not end.
async fn discard(association: &Association) -> Infallible {
    while association.receive().await.is_some() {}
    pending().await
}

/// Whether the peer of an association is a socket of this process.
fn is_own_peer(association: &Association) -> bool {
    let remote = association.stats().and_then(|stats| stats.paths.first()?.remote);
    remote.is_some_and(|remote| current().services().have(&remote))
}

/// Initial state of a new association of a socket.
pub struct NewLink {
    /// The association.
    pub association: Arc<Association>,
    /// Endpoint of the association.
    pub service: Arc<Service>,
    /// The peer's address with its SCTP port.
    pub peer: SocketAddr,
    /// Whether it is established.
    pub up: bool,
    /// Outbound streams.
    pub streams: u16,
    /// Identifier, if one has already been assigned.
    pub id: Option<i32>,
    /// History.
    pub history: History,
}

impl Socket {
    /// Adds an association. Returns its identifier.
    ///
    /// # Errors
    /// As the system says: no thread.
    pub fn add_link(self: &Arc<Self>, state: &mut State, new: NewLink) -> Result<i32> {
        let NewLink { association, service, peer, up, streams, id, history } = new;
        let handle = current().reactor()?;
        let id = id.unwrap_or_else(next_id);
        let wake = Arc::new(Wake::default());
        let link = |ready: bool| Watched {
            socket: Arc::downgrade(self),
            id,
            association: association.clone(),
            wake: wake.clone(),
            ready,
        };
        let mut tasks = vec![
            handle.spawn(link(up).watch_life()).abort_handle(),
            handle.spawn(link(up).watch_reading()).abort_handle(),
            handle.spawn(link(up).watch_writing()).abort_handle(),
            handle.spawn(link(up).watch_dry()).abort_handle(),
        ];
        let idle_s = u64::from(state.settings.autoclose_s);
        if self.style == Style::OneToMany && idle_s > 0 {
            let watching = link(up).watch_idle(Duration::from_secs(idle_s));
            tasks.push(handle.spawn(watching).abort_handle());
        }
        let link = Link {
            has_own_peer: is_own_peer(&association),
            association,
            service,
            peer,
            streams,
            inbound_streams: state.settings.init[1],
            messages: state.settings.messages,
            up,
            peer_shut: false,
            ended: false,
            history,
            connecting: None,
            full: false,
            is_ready: false,
            wake,
            tasks,
        };
        state.links.insert(id, link);
        Ok(id)
    }
}

/// An association from the view of its tasks.
struct Watched {
    socket: Weak<Socket>,
    id: i32,
    association: Arc<Association>,
    wake: Arc<Wake>,
    /// Whether it is established already.
    ready: bool,
}

impl Watched {
    /// Follows the association from its establishment to its end.
    async fn watch_life(self) {
        if !self.ready {
            let established = self.association.established().await;
            let Some(socket) = self.socket.upgrade() else { return };
            match established {
                Ok(()) => socket.on_established(self.id),
                Err(reason) => return socket.on_not_established(self.id, reason),
            }
        }
        let mut awaits_shutdown = true;
        loop {
            tokio::select! {
                // Messages that were abandoned before the end are reported before it.
                biased;
                Some(messages) = self.association.next_abandoned() => {
                    let Some(socket) = self.socket.upgrade() else { return };
                    socket.on_abandoned(self.id, messages);
                }
                event = self.association.next_path_event() => {
                    let Some(event) = event else { break };
                    let Some(socket) = self.socket.upgrade() else { return };
                    socket.on_path_event(self.id, event);
                }
                arrived = self.association.shut_down_by_peer(), if awaits_shutdown => {
                    awaits_shutdown = false;
                    let Some(socket) = self.socket.upgrade() else { return };
                    if arrived {
                        socket.on_peer_shutdown(self.id);
                    }
                }
            }
        }
        if let Some(socket) = self.socket.upgrade() {
            socket.on_ended(self.id);
        }
    }

    /// Makes the descriptor readable when messages have arrived.
    async fn watch_reading(self) {
        loop {
            self.association.readable().await;
            let Some(socket) = self.socket.upgrade() else { return };
            let waits = socket.on_readable(self.id);
            drop(socket);
            if self.association.close_reason().is_some() {
                return;
            }
            if waits {
                self.await_reading().await;
            }
        }
    }

    /// Waits until the program has read everything. Meanwhile, another program may consume the byte that makes the
    /// descriptor readable, if it has inherited the descriptor without loading this library.
    async fn await_reading(&self) {
        while tokio::time::timeout(SHOW_AGAIN_AFTER, self.wake.read.notified()).await.is_err() {
            let Some(socket) = self.socket.upgrade() else { return };
            socket.show_again();
        }
    }

    /// Makes the descriptor writable when a full send buffer has room again.
    async fn watch_writing(self) {
        loop {
            self.wake.full.notified().await;
            self.association.writable(WRITABLE_BELOW).await;
            let Some(socket) = self.socket.upgrade() else { return };
            socket.on_writable(self.id);
        }
    }

    /// Shuts the association down when it has neither sent nor received messages for this long (SCTP_AUTOCLOSE).
    async fn watch_idle(self, most: Duration) {
        if !self.ready && self.association.established().await.is_err() {
            return;
        }
        loop {
            if tokio::time::timeout(most, self.wake.used.notified()).await.is_ok() {
                continue;
            }
            // Sent data may still wait for the peer's acknowledgement.
            self.association.flushed().await;
            if tokio::time::timeout(Duration::ZERO, self.wake.used.notified()).await.is_ok() {
                continue;
            }
            let Some(socket) = self.socket.upgrade() else { return };
            return socket.on_idle(self.id);
        }
    }

    /// Reports that everything sent has arrived (SCTP_SENDER_DRY_EVENT).
    async fn watch_dry(self) {
        loop {
            self.wake.dry.notified().await;
            self.association.flushed().await;
            let Some(socket) = self.socket.upgrade() else { return };
            socket.on_dry(self.id);
        }
    }
}
