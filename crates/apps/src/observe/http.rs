//! The metrics and the live page over HTTP/1.1.
//!
//! A request is small and has no body that anyone reads. The number of connections, the size of a head and the time
//! to send one are bounded, so that clients cannot occupy the command.

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
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use super::metrics;
use super::monitor::{BindError, Published, WebSettings, lock};

/// Most connections at a time; further ones are closed.
const CONNECTIONS: usize = 32;
/// Most time until a request's head is complete; also ends idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Most time that a client of the metrics may stay, so that one that does not read leaves its place to others. A browser
/// that shows the live page stays.
const METRICS_CONNECTION: Duration = Duration::from_secs(60);
/// Most bytes of a head.
const HEAD_LIMIT: usize = 16 << 10;
/// Most headers of a request.
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

/// What is served.
pub enum Pages {
    /// Metrics only.
    Metrics(EncodeMetrics),
    /// The metrics of a command with associations only.
    Figures(Arc<Published>),
    /// The live page only.
    Web(Arc<Published>, WebSettings),
}

impl Pages {
    /// Has the figures updated that are about to be read.
    async fn refresh(&self) {
        if let Self::Figures(published) = self {
            drop(published.subscribe().await);
        }
    }

    fn answer(&self, bound: SocketAddr, request: &Request<Incoming>) -> Response<Body> {
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
            Self::Web(published, web) => live_page(published, web, request.uri().path()),
        }
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
        "/history" => with_type(lock(&published.history).json(), "application/json"),
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

/// Whether the request names this machine. The page of another site could otherwise read the answer in a browser here,
/// by a name of that site which resolves to this machine (DNS rebinding). It cannot choose these names:
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

/// A server of metrics alone, for commands without associations.
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

    /// Serves in a thread of its own until the process ends.
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

/// Serves until the runtime ends.
pub async fn serve(listener: TcpListener, pages: Pages) {
    let Ok(bound) = listener.local_addr() else { return };
    let pages = Arc::new(pages);
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let pages = pages.clone();
        let stays = matches!(&*pages, Pages::Web(..));
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let pages = pages.clone();
                async move {
                    pages.refresh().await;
                    Ok::<_, Infallible>(pages.answer(bound, &request))
                }
            });
            let mut server = http1::Builder::new();
            server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            server.max_buf_size(HEAD_LIMIT).max_headers(HEADERS_LIMIT);
            // A client that misbehaves only harms itself.
            let serving = server.serve_connection(TokioIo::new(socket), service);
            if stays {
                let _ = serving.await;
            } else {
                let _ = tokio::time::timeout(METRICS_CONNECTION, serving).await;
            }
            drop(place);
        });
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
