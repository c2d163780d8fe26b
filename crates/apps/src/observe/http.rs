//! The metrics and the live page over HTTP/1.1.
//!
//! A request is small, and its body is ignored. The number of connections, the size of a head and the time to send
//! one are bounded, so that clients cannot exhaust the command. A connection stays only once a request on it was
//! permitted to read the live page.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::channel::{Channel, Sender};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use subtle::ConstantTimeEq;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

use super::metrics;
use super::monitor::{BindError, Published, WebSettings};
use crate::pending::{Pending, PendingClient};

/// Maximum number of simultaneous connections that may read the live page.
const CONNECTIONS: usize = 32;
/// Maximum number of other simultaneous connections to the live page, and of connections to the metrics. A further
/// one closes the oldest one of the source with the most connections.
const PENDING_LIMIT: usize = 32;
/// How long such a connection may stay.
const PENDING_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for a complete request head; also ends idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of bytes of a head.
const HEAD_LIMIT: usize = 16 << 10;
/// Maximum number of headers of a request.
const HEADERS_LIMIT: usize = 64;
/// Pause after the system refused to accept a connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The page loads nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data:; connect-src 'self'; frame-ancestors 'none'; form-action 'none'";

/// Refusal of a request for another host.
const MISDIRECTED: &str = "This server answers requests for localhost, a loopback address and the address that it is bound \
                           to. Other names are refused, because a web page could use one to read this answer (DNS \
                           rebinding).\n";

type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// Writes the metrics in a format that the client accepts, which is the argument. Returns them with their media type.
pub type EncodeMetrics = Box<dyn Fn(&str) -> (String, &'static str) + Send + Sync>;

/// The pages that are served.
pub enum Pages {
    /// Metrics only.
    Metrics(EncodeMetrics),
    /// The metrics of a command with associations only.
    Figures(Arc<Published>),
    /// The live page only.
    Web(Arc<Published>, WebSettings),
}

impl Pages {
    /// Updates the figures before they are read.
    async fn refresh(&self) {
        if let Self::Figures(published) = self {
            drop(published.subscribe().await);
        }
    }

    fn answer(
        &self,
        bound: SocketAddr,
        request: &Request<Incoming>,
        admission: &Admission,
    ) -> Response<Body> {
        if !has_valid_host(request.version(), request.headers()) {
            return text(StatusCode::BAD_REQUEST, "a request needs one valid Host header\n");
        }
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            refusal.headers_mut().insert(ALLOW, "GET, HEAD".parse().expect("a valid value"));
            return refusal;
        }
        // A token is a better proof than a name.
        let token = match self {
            Self::Web(_, web) => web.token.as_deref(),
            Self::Metrics(_) | Self::Figures(_) => None,
        };
        if token.is_none() && !names_this_machine(bound, request.headers()) {
            return text(StatusCode::MISDIRECTED_REQUEST, MISDIRECTED);
        }
        if token.is_some_and(|token| !presents(token, request.uri().query())) {
            let refusal = "this page needs ?token=... as the command printed it\n";
            return text(StatusCode::FORBIDDEN, refusal);
        }
        match self {
            Self::Metrics(encode) => metrics_page(encode, request),
            Self::Figures(published) => {
                metrics_page(&|accept| metrics::encode(&published.figures, accept), request)
            }
            Self::Web(..) if !admission.admit() => {
                text(StatusCode::SERVICE_UNAVAILABLE, "too many connections\n")
            }
            Self::Web(published, web) => live_page(published, web, request.uri().path()),
        }
    }
}

/// RFC 9112, 3.2: a server must respond with 400 to a request of HTTP/1.1 without a Host header, and to any request with
/// more than one or an invalid one.
fn has_valid_host(version: Version, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) => version < Version::HTTP_11,
        (Some(host), None) => {
            let host = host.as_bytes();
            host.is_empty() || !host.contains(&b'@') && Authority::try_from(host).is_ok()
        }
        (Some(_), Some(_)) => false,
    }
}

fn metrics_page(
    encode: &dyn Fn(&str) -> (String, &'static str),
    request: &Request<Incoming>,
) -> Response<Body> {
    if request.uri().path() != "/metrics" {
        return text(StatusCode::NOT_FOUND, "the metrics are at /metrics\n");
    }
    let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    let (body, kind) = encode(accept.unwrap_or_default());
    with_type(body, kind)
}

fn live_page(published: &Published, web: &WebSettings, path: &str) -> Response<Body> {
    match path {
        "/" => with_type(web.html.clone(), "text/html; charset=utf-8"),
        "/history" => with_type(published.history.lock().json(), "application/json"),
        "/status" => with_type(published.status.borrow().to_string(), "application/json"),
        "/events" => event_stream(published),
        _ => text(StatusCode::NOT_FOUND, "no such page\n"),
    }
}

/// Server-sent events: a `sample` and a `status` per second.
fn event_stream(published: &Published) -> Response<Body> {
    let (sender, body) = Channel::new(2);
    let (status, sample) = (published.status.subscribe(), published.sample.subscribe());
    tokio::spawn(stream(sender, status, sample));
    respond(StatusCode::OK, "text/event-stream", Either::Right(body))
}

async fn stream(
    mut sender: Sender<Bytes>,
    mut status: watch::Receiver<Arc<str>>,
    sample: watch::Receiver<Arc<str>>,
) {
    loop {
        let text = format!(
            "event: sample\ndata: {}\n\nevent: status\ndata: {}\n\n",
            &*sample.borrow(),
            &*status.borrow_and_update()
        );
        // A client that does not read gets no further events.
        if sender.send_data(text.into()).await.is_err() || status.changed().await.is_err() {
            return;
        }
    }
}

/// Whether the query presents the token.
fn presents(token: &str, query: Option<&str>) -> bool {
    let given = query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("token="));
    given.is_some_and(|given| given.as_bytes().ct_eq(token.as_bytes()).into())
}

/// Whether the request names this machine. Otherwise the page of another site could read the answer in a browser
/// here, by a name of that site that resolves to this machine (DNS rebinding). Such a page cannot choose these names:
///
/// * `localhost` and loopback addresses,
/// * the address that the server is bound to; any address if it is bound to all,
/// * if other machines can reach the server, a name without a dot, which the public DNS does not resolve.
fn names_this_machine(bound: SocketAddr, headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.to_ascii_lowercase();
    let (bound, is_open) = (bound.ip().to_canonical(), !bound.ip().to_canonical().is_loopback());
    match name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(ip) => {
            let ip = ip.to_canonical();
            ip.is_loopback() || ip == bound || bound.is_unspecified()
        }
        Err(_) => name == "localhost" || is_open && !name.is_empty() && !name.contains(['.', ':']),
    }
}

fn with_type(body: String, kind: &'static str) -> Response<Body> {
    respond(StatusCode::OK, kind, Either::Left(Full::from(body)))
}

fn text(status: StatusCode, body: &'static str) -> Response<Body> {
    respond(status, "text/plain; charset=utf-8", Either::Left(Full::from(body)))
}

fn respond(status: StatusCode, kind: &'static str, body: Body) -> Response<Body> {
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .header(CACHE_CONTROL, "no-store")
        .header(CONTENT_SECURITY_POLICY, POLICY)
        .header(REFERRER_POLICY, "no-referrer")
        .header(X_CONTENT_TYPE_OPTIONS, "nosniff")
        .body(body)
        .expect("valid headers")
}

/// A server of only metrics, for commands without associations.
#[derive(Debug)]
pub struct MetricsServer {
    listener: std::net::TcpListener,
}

impl MetricsServer {
    /// Binds the address.
    ///
    /// # Errors
    /// [`BindError`].
    pub fn bind(address: SocketAddr) -> Result<Self, BindError> {
        let bound = std::net::TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(Self { listener })
        });
        bound.map_err(|error| BindError { place: address.to_string(), error })
    }

    /// The bound address.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Serves in a separate thread until the process ends.
    ///
    /// # Errors
    /// The system refuses a thread or an event queue.
    pub fn start(self, encode: EncodeMetrics) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let work = move || {
            runtime.block_on(async {
                if let Ok(listener) = TcpListener::from_std(self.listener) {
                    serve(listener, Pages::Metrics(encode)).await;
                }
            });
        };
        std::thread::Builder::new().name("metrics".to_owned()).spawn(work).map(drop)
    }
}

/// Whether a connection may stay.
struct Admission {
    places: Arc<Semaphore>,
    place: Mutex<Option<OwnedSemaphorePermit>>,
    admitted: Notify,
}

impl Admission {
    fn new(places: Arc<Semaphore>) -> Self {
        Self { places, place: Mutex::default(), admitted: Notify::new() }
    }

    /// Keeps the connection if there is a place. Returns whether there is.
    fn admit(&self) -> bool {
        let mut place = self.place.lock();
        if place.is_none() {
            *place = self.places.clone().try_acquire_owned().ok();
            if place.is_some() {
                self.admitted.notify_one();
            }
        }
        place.is_some()
    }

    /// Waits until the connection must be closed, because it was not admitted in time or a newer one has displaced it.
    async fn missed(&self, pending: PendingClient) {
        tokio::select! {
            biased;
            () = self.admitted.notified() => {}
            () = pending.displaced() => return,
            () = tokio::time::sleep(PENDING_TIMEOUT) => return,
        }
        drop(pending);
        std::future::pending().await
    }
}

/// Serves until the runtime ends.
pub async fn serve(listener: TcpListener, pages: Pages) {
    let Ok(bound) = listener.local_addr() else { return };
    let pages = Arc::new(pages);
    let (pending, places) = (Pending::new(PENDING_LIMIT), Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        let Ok((socket, from)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let (client, admission) = (pending.enter(from.ip()), Admission::new(places.clone()));
        tokio::spawn(serve_connection(socket, bound, pages.clone(), client, admission));
        // Lets the connection read a request that has arrived before others can displace it.
        tokio::task::yield_now().await;
    }
}

/// Serves a connection until it ends or must be closed.
async fn serve_connection(
    socket: TcpStream,
    bound: SocketAddr,
    pages: Arc<Pages>,
    pending: PendingClient,
    admission: Admission,
) {
    let mut server = http1::Builder::new();
    server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
    server.max_buf_size(HEAD_LIMIT).max_headers(HEADERS_LIMIT);
    server.keep_alive(matches!(&*pages, Pages::Web(..)));
    let (pages, admission) = (&pages, &admission);
    let service = service_fn(move |request| async move {
        pages.refresh().await;
        Ok::<_, Infallible>(pages.answer(bound, &request, admission))
    });
    tokio::select! {
        biased;
        // A client that misbehaves only harms itself.
        _ = server.serve_connection(TokioIo::new(socket), service) => {}
        () = admission.missed(pending) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_token_a_request_must_name_this_machine() {
        let (own, one, all) = ("127.0.0.1:8080", "192.0.2.1:8080", "0.0.0.0:8080");
        for (bound, host, expected) in [
            (own, "127.0.0.1:8080", true),
            (own, "127.0.0.2", true),
            (own, "LocalHost", true),
            (own, "[::1]:8080", true),
            (own, "example.org:8080", false),
            (own, "localhost.example.org", false),
            (own, "192.0.2.1", false),
            (own, "server", false),
            (own, "", false),
            (one, "192.0.2.1:8080", true),
            (one, "192.0.2.2:8080", false),
            (one, "server:8080", true),
            (one, "server.example.org", false),
            (one, ":8080", false),
            (all, "192.0.2.2", true),
            (all, "[2001:db8::1]:8080", true),
            ("[::1]:8080", "[::1]", true),
            ("[2001:db8::1]:8080", "[2001:db8::1]", true),
            ("[2001:db8::1]:8080", "[2001:db8::2]", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a header"));
            let bound = bound.parse().expect("an address");
            assert_eq!(names_this_machine(bound, &headers), expected, "{bound} {host}");
        }
        assert!(!names_this_machine(([127, 0, 0, 1], 80).into(), &HeaderMap::new()));
    }

    #[test]
    fn a_request_has_one_valid_host() {
        for (version, hosts, expected) in [
            (Version::HTTP_11, &["localhost:8080"][..], true),
            (Version::HTTP_11, &["[::1]:8080"], true),
            (Version::HTTP_11, &[""], true),
            (Version::HTTP_11, &[], false),
            (Version::HTTP_10, &[], true),
            (Version::HTTP_11, &["localhost", "localhost"], false),
            (Version::HTTP_11, &["localhost", "example.org"], false),
            (Version::HTTP_10, &["localhost", "example.org"], false),
            (Version::HTTP_11, &["a b"], false),
            (Version::HTTP_11, &["localhost/path"], false),
            (Version::HTTP_11, &["localhost, example.org"], false),
            (Version::HTTP_11, &["user@localhost"], false),
        ] {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, host.parse().expect("a header"));
            }
            assert_eq!(has_valid_host(version, &headers), expected, "{version:?} {hosts:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_stays_only_if_it_is_admitted() {
        let (pending, places) = (Pending::new(PENDING_LIMIT), Arc::new(Semaphore::new(1)));
        let enter = || (pending.enter([192, 0, 2, 1].into()), Admission::new(places.clone()));
        let ends = async |(client, admission): (PendingClient, &Admission)| {
            let hour = Duration::from_secs(3600);
            let begin = tokio::time::Instant::now();
            let missed = tokio::time::timeout(hour, admission.missed(client)).await;
            missed.ok().map(|()| begin.elapsed())
        };
        let ((owner, first), (stranger, second), (late, third)) = (enter(), enter(), enter());
        assert!(first.admit() && first.admit());
        assert_eq!(ends((owner, &first)).await, None);
        assert_eq!(ends((stranger, &second)).await, Some(PENDING_TIMEOUT));
        assert!(!third.admit(), "there is no place");
        assert_eq!(ends((late, &third)).await, Some(PENDING_TIMEOUT));
        drop(first);
        let (_, fourth) = enter();
        assert!(fourth.admit(), "the place is free again");
    }

    #[test]
    fn a_token_must_match_as_a_whole() {
        for (query, expected) in [
            (Some("token=abc"), true),
            (Some("a=b&token=abc"), true),
            (Some("token=abd"), false),
            (Some("token=ab"), false),
            (None, false),
        ] {
            assert_eq!(presents("abc", query), expected, "{query:?}");
        }
    }
}
