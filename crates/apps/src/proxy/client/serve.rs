//! Clients' connections, one task each.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::answer::AnswerStream;
use super::chunked::ChunkedBody;
use super::client_connection::{Body, ClientConnection, Framing, RequestError};
use super::credentials::Credentials;
use super::exit_connection::ExitConnection;
use super::http::{self, HttpError, Length, Request, RequestForm};
use super::{ListenProtocol, socks5};
use crate::mux::Stream;
use crate::pending::{Pending, source};
use crate::proxy::notice::{Notice, NoticeSink};
use crate::proxy::quota::{FairQuota, Permit};
use crate::proxy::reason::{Reason, ReasonKind};
use crate::proxy::relay::{relay, tune};
use crate::proxy::target::Target;

/// Maximum number of clients with incomplete requests. Each needs a socket and at most one request's head.
const PENDING_LIMIT: usize = 512;

/// How long a connection waits for a free place.
const SLOT_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause after a failed accept, usually because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A listening port.
#[derive(Debug)]
pub struct Service {
    /// The listening socket.
    pub listener: TcpListener,
    /// The protocol.
    pub protocol: ListenProtocol,
}

/// One source address may hold 8/9 of the places, because most near ends serve a single machine.
const SOURCE_WEIGHT: u64 = 8;

/// State that all connections of a near end share.
#[derive(Clone)]
pub struct ProxyClient {
    exit_connection: ExitConnection,
    credentials: Option<Arc<Credentials>>,
    pending: Pending,
    /// Places for connections, by source address.
    slots: FairQuota<IpAddr>,
    notify: NoticeSink,
}

/// A client with a complete request and a place.
struct Admitted {
    request: Request,
    _slot: Permit<IpAddr>,
}

impl ProxyClient {
    /// A near end with at most this number of open connections. Further ones wait for a while and are then refused.
    pub fn new(
        exit_connection: ExitConnection,
        credentials: Option<Credentials>,
        most: usize,
        notify: NoticeSink,
    ) -> Self {
        let slots = FairQuota::new(most.max(1) as u64, SOURCE_WEIGHT);
        let credentials = credentials.map(Arc::new);
        Self { exit_connection, credentials, pending: Pending::new(PENDING_LIMIT), slots, notify }
    }

    /// Changes the largest number of open connections. Open ones beyond a lower number continue.
    pub fn set_limit(&self, most: usize) {
        self.slots.set_total(most.max(1) as u64);
    }

    /// Serves these ports. Never returns.
    pub async fn serve(&self, services: Vec<Service>) {
        let mut tasks = JoinSet::new();
        for service in services {
            tasks.spawn(self.clone().listen(service));
        }
        while tasks.join_next().await.is_some() {}
    }

    /// Accepts every connection immediately: the table of pending clients limits their number.
    async fn listen(self, Service { listener, protocol }: Service) {
        let protocol = Arc::new(protocol);
        let mut tasks = JoinSet::new();
        loop {
            while tasks.try_join_next().is_some() {}
            let Ok((socket, address)) = listener.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            tune(&socket);
            let pending = self.pending.enter(address.ip());
            let (client_end, protocol) = (self.clone(), protocol.clone());
            tasks.spawn(async move {
                let mut client = ClientConnection::new(socket);
                let admitted = tokio::select! {
                    admitted = client_end.admit(&mut client, address, &protocol) => admitted,
                    () = pending.displaced() => {
                        client_end.bad_request(address, &RequestError::<HttpError>::Displaced)
                    }
                };
                drop(pending);
                if let Some(admitted) = admitted {
                    // The end that reset the connection knows the reason.
                    let _ = client_end.relay_request(client, address, &protocol, admitted).await;
                }
            });
        }
    }

    /// Reads the request of a client and waits for a place. `None` if the client was refused.
    async fn admit(
        &self,
        client: &mut ClientConnection,
        address: SocketAddr,
        protocol: &ListenProtocol,
    ) -> Option<Admitted> {
        let credentials = self.credentials.as_deref();
        let request = match protocol {
            ListenProtocol::Socks => match socks5::read_request(client, credentials).await {
                Ok(target) => Request { target, form: RequestForm::Tunnel },
                Err(error) => return self.bad_request(address, &error),
            },
            ListenProtocol::Http => {
                let parse = |bytes: &[u8]| http::parse(bytes, credentials);
                let read = client.read_message(http::HEAD_LIMIT, Framing::BlankLine, parse);
                match read.await {
                    Ok(request) => request,
                    Err(error) => {
                        if let Some(status) = status_of(&error) {
                            let answer = http::refusal(status, &error.to_string());
                            client.send_and_close(&answer).await;
                        }
                        return self.bad_request(address, &error);
                    }
                }
            }
            ListenProtocol::Forward(target) => {
                Request { target: target.clone(), form: RequestForm::Tunnel }
            }
        };
        match timeout(SLOT_TIMEOUT, self.slots.one(&source(address.ip()))).await {
            Ok(place) => Some(Admitted { request, _slot: place }),
            Err(_) => {
                let reason = Reason::new(ReasonKind::Busy, "too many connections are open");
                self.failed(address, &request.target, &reason);
                refuse(client, protocol, &reason).await;
                None
            }
        }
    }

    /// Opens a stream to the target, and relays bytes until both directions have ended.
    async fn relay_request(
        &self,
        mut client: ClientConnection,
        address: SocketAddr,
        protocol: &ListenProtocol,
        Admitted { request: Request { target, form }, _slot }: Admitted,
    ) -> io::Result<()> {
        if matches!(protocol, ListenProtocol::Forward(_)) {
            return match self.exit_connection.open(&target).await {
                Ok(stream) => self.forward(client, stream, address, &target).await,
                Err(reason) => {
                    self.failed(address, &target, &reason);
                    Ok(())
                }
            };
        }
        let first = match &form {
            RequestForm::Tunnel => &[][..],
            RequestForm::Plain { head, .. } => head,
        };
        let stream = match self.open(address, &target, first).await {
            Ok(stream) => stream,
            Err(reason) => {
                refuse(&mut client, protocol, &reason).await;
                return Ok(());
            }
        };
        match (protocol, form) {
            (ListenProtocol::Socks, _) => socks5::succeed(&mut client).await?,
            (_, RequestForm::Tunnel) => client.send(http::CONNECTED).await?,
            (_, RequestForm::Plain { body, answer, .. }) => {
                client.set_body(match body {
                    Length::Bytes(bytes) => Body::Length(bytes),
                    Length::Chunked => Body::Chunked(ChunkedBody::new()),
                });
                return relay(client, AnswerStream::new(stream, answer)).await.map(|_| ());
            }
        }
        relay(client, stream).await.map(|_| ())
    }

    async fn open(
        &self,
        address: SocketAddr,
        target: &Target,
        first: &[u8],
    ) -> Result<Stream, Reason> {
        let opened = self.exit_connection.connect_to(target, first).await;
        match &opened {
            Ok(_) => (self.notify)(Notice::Opened(address, target.clone())),
            Err(reason) => self.failed(address, target, reason),
        }
        opened
    }

    /// Relays bytes immediately, while the exit's answer is still pending.
    async fn forward(
        &self,
        client: ClientConnection,
        stream: Stream,
        address: SocketAddr,
        target: &Target,
    ) -> io::Result<()> {
        (self.notify)(Notice::Opened(address, target.clone()));
        let result = relay(client, stream).await;
        if let Err(error) = &result
            && error.kind() == io::ErrorKind::ConnectionRefused
        {
            self.failed(address, target, &Reason::of_io(error));
        }
        result.map(|_| ())
    }

    fn failed(&self, address: SocketAddr, target: &Target, reason: &Reason) {
        (self.notify)(Notice::Failed(address, target.clone(), reason.clone()));
    }

    fn bad_request<T>(&self, address: SocketAddr, what: &dyn std::fmt::Display) -> Option<T> {
        (self.notify)(Notice::BadRequest(address, what.to_string().into()));
        None
    }
}

/// Sends a client the reason for a failure in its protocol. A client of a forwarded port only sees that its
/// connection closes.
async fn refuse(client: &mut ClientConnection, protocol: &ListenProtocol, reason: &Reason) {
    match protocol {
        ListenProtocol::Socks => socks5::fail(client, reason.kind.socks()).await,
        ListenProtocol::Http => {
            let answer = http::refusal(reason.kind.http(), &reason.to_string());
            client.send_and_close(&answer).await;
        }
        ListenProtocol::Forward(_) => {}
    }
}

/// The status for an invalid request. `None` if the client gets no answer.
fn status_of(error: &RequestError<HttpError>) -> Option<u16> {
    match error {
        RequestError::Malformed(error) => Some(error.status()),
        RequestError::TooLong => Some(431),
        RequestError::TimedOut => Some(408),
        RequestError::Closed | RequestError::Displaced => None,
    }
}
