//! The metrics and the live page over HTTP/1.1.
//!
//! A request is small and has no body that anyone reads. The number of connections, the size of a head and the time
//! to send one are bounded, so that clients cannot occupy the command.

use std::convert::Infallible;
use std::net::IpAddr;
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
use super::monitor::{Published, WebSettings, lock};

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

type Body = Either<Full<Bytes>, Channel<Bytes>>;

/// What is served.
#[derive(Debug)]
pub struct Pages {
    published: Arc<Published>,
    /// The live page; without it only metrics are served.
    web: Option<WebSettings>,
}

impl Pages {
    pub(super) fn metrics(published: Arc<Published>) -> Arc<Self> {
        Arc::new(Self { published, web: None })
    }

    pub(super) fn web(published: Arc<Published>, web: WebSettings) -> Arc<Self> {
        Arc::new(Self { published, web: Some(web) })
    }

    fn answer(&self, request: &Request<Incoming>) -> Response<Body> {
        if request.method() != Method::GET && request.method() != Method::HEAD {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            refusal.headers_mut().insert(ALLOW, "GET, HEAD".parse().expect("a valid value"));
            return refusal;
        }
        match &self.web {
            None => self.metrics_page(request),
            Some(web) => self.live_page(request, web),
        }
    }

    fn metrics_page(&self, request: &Request<Incoming>) -> Response<Body> {
        if request.uri().path() != "/metrics" {
            return text(StatusCode::NOT_FOUND, "the metrics are at /metrics\n");
        }
        let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
        let (body, kind) = metrics::encode(&self.published.figures, accept.unwrap_or_default());
        with_type(body, kind)
    }

    fn live_page(&self, request: &Request<Incoming>, web: &WebSettings) -> Response<Body> {
        if !is_permitted(web.token.as_deref(), request.headers(), request.uri().query()) {
            return text(
                StatusCode::FORBIDDEN,
                "this page needs ?token=... as the command printed it\n",
            );
        }
        match request.uri().path() {
            "/" => with_type(web.html.clone(), "text/html; charset=utf-8"),
            "/history" => with_type(lock(&self.published.history).json(), "application/json"),
            "/status" => with_type(self.published.status.borrow().to_string(), "application/json"),
            "/events" => self.event_stream(),
            _ => text(StatusCode::NOT_FOUND, "no such page\n"),
        }
    }

    /// Server-sent events: a `sample` and a `status` per second.
    fn event_stream(&self) -> Response<Body> {
        let (sender, body) = Channel::new(2);
        let (status, sample) =
            (self.published.status.subscribe(), self.published.sample.subscribe());
        tokio::spawn(stream(sender, status, sample));
        respond(StatusCode::OK, "text/event-stream", Either::Right(body))
    }
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

/// Whether a request may see the live page. Without a token, the host must be an address or `localhost`: the page of
/// another site could otherwise read it by a name that resolves to this machine (DNS rebinding).
fn is_permitted(token: Option<&str>, headers: &HeaderMap, query: Option<&str>) -> bool {
    match token {
        Some(token) => {
            let given =
                query.unwrap_or_default().split('&').find_map(|pair| pair.strip_prefix("token="));
            given.is_some_and(|given| given.as_bytes().ct_eq(token.as_bytes()).into())
        }
        None => {
            let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
            let name = match host.rsplit_once(':') {
                Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
                _ => host,
            };
            let address = name.trim_start_matches('[').trim_end_matches(']');
            name == "localhost" || address.parse::<IpAddr>().is_ok()
        }
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

/// Serves until the runtime ends.
pub async fn serve(listener: TcpListener, pages: Arc<Pages>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let (pages, stays) = (pages.clone(), pages.web.is_some());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = pages.answer(&request);
                async move { Ok::<_, Infallible>(answer) }
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
    fn without_a_token_the_host_must_be_an_address_and_with_one_it_must_match() {
        for (token, host, query, expected) in [
            (None, "127.0.0.1:8080", None, true),
            (None, "localhost", None, true),
            (None, "[::1]:8080", None, true),
            (None, "example.org:8080", None, false),
            (None, "", None, false),
            (Some("abc"), "example.org", Some("token=abc"), true),
            (Some("abc"), "127.0.0.1", Some("a=b&token=abc"), true),
            (Some("abc"), "127.0.0.1", Some("token=abd"), false),
            (Some("abc"), "127.0.0.1", None, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().expect("a header"));
            assert_eq!(
                is_permitted(token, &headers, query),
                expected,
                "{token:?} {host} {query:?}"
            );
        }
    }
}
