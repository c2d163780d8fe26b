//! Captive portals: networks that carry nothing until the user has logged in with a browser.
//!
//! Such a network answers HTTP requests to any host itself: with a redirection to its own page, or with status 511
//! (RFC 6585, Section 6). No third party is contacted: the request goes to the peer, which such a network hides.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::header::{HOST, LOCATION};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use ropewalk_base::PeerText;
use ropewalk_runtime::endpoint::BindAddress;
use socket2::SockRef;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Port of the request.
pub const HTTP: u16 = 80;
/// How long the answer may take.
const LIMIT: Duration = Duration::from_secs(3);

/// A network that answers in the name of another host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptivePortal {
    /// Its page, if it names one.
    page: Option<PeerText>,
}

impl fmt::Display for CaptivePortal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.page {
            Some(page) => {
                write!(f, "HTTP requests are redirected to {page}, as captive portals do")
            }
            None => f.write_str("the network asks for a login, as captive portals do"),
        }
    }
}

/// Whether the network of a link answers HTTP requests to a host itself. `None` also if there is no answer. The
/// socket has this mark (Linux), if the user may set it.
pub async fn find(link: &BindAddress, host: IpAddr, mark: u32) -> Option<CaptivePortal> {
    let answer = timeout(LIMIT, ask(link, host, mark)).await.ok()?.ok()?;
    of_answer(&answer, host)
}

async fn ask(link: &BindAddress, host: IpAddr, mark: u32) -> Result<Response<()>, Box<dyn Error>> {
    let stream = connect(link, SocketAddr::new(host, HTTP), mark).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let authority = SocketAddr::new(host, HTTP).to_string();
    let request = Request::get("/").header(HOST, authority).body(Empty::<Bytes>::new())?;
    // If the connection ends, so does the request, possibly with an answer.
    let driven = async {
        let _ = connection.await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        answer = sender.send_request(request) => Ok(answer?.map(drop)),
        never = driven => match never {},
    }
}

async fn connect(link: &BindAddress, to: SocketAddr, _mark: u32) -> std::io::Result<TcpStream> {
    let socket = if to.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    #[cfg(target_os = "linux")]
    {
        let options = SockRef::from(&socket);
        // Needed where a kill switch is closed, and there the user is privileged.
        let _ = options.set_mark(_mark);
        options.bind_device(link.interface.as_deref().map(str::as_bytes))?;
    }
    socket.bind(SocketAddr::new(link.address.ip(), 0))?;
    socket.connect(to).await
}

/// Evaluates an answer to a request to a host. The host may redirect to itself.
fn of_answer<T>(answer: &Response<T>, host: IpAddr) -> Option<CaptivePortal> {
    if answer.status() == StatusCode::NETWORK_AUTHENTICATION_REQUIRED {
        return Some(CaptivePortal { page: None });
    }
    let page = answer.headers().get(LOCATION).filter(|_| answer.status().is_redirection())?;
    let uri: Uri = page.to_str().ok()?.parse().ok()?;
    let to = uri.host()?.trim_matches(['[', ']']);
    let is_own = to.parse::<IpAddr>().is_ok_and(|to| to.to_canonical() == host.to_canonical());
    (!is_own).then(|| CaptivePortal { page: Some(PeerText::from_bytes(page.as_bytes())) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(status: u16, location: Option<&str>) -> Option<Option<String>> {
        let mut answer = Response::builder().status(status);
        if let Some(location) = location {
            answer = answer.header(LOCATION, location);
        }
        let answer = answer.body(()).expect("an answer");
        let found = of_answer(&answer, "2001:db8::1".parse().expect("an address"))?;
        Some(found.page.map(|page| page.to_string()))
    }

    #[test]
    fn a_redirection_to_another_host_or_status_511_is_a_portal() {
        for status in [301, 302, 303, 307, 308] {
            let page = "http://login.hotel.example/?back=1";
            assert_eq!(page_of(status, Some(page)), Some(Some(page.to_owned())), "{status}");
        }
        assert_eq!(page_of(511, None), Some(None));
        assert_eq!(
            page_of(302, Some("https://192.0.2.9:8443/")),
            Some(Some("https://192.0.2.9:8443/".to_owned()))
        );
    }

    #[test]
    fn what_a_web_server_of_the_peer_says_is_none() {
        for (status, location) in [
            (200, None),
            (404, None),
            (302, None),
            (200, Some("http://login.hotel.example/")),
            (301, Some("https://[2001:db8::1]/")),
            (302, Some("/login")),
            (302, Some("::no uri::")),
        ] {
            assert_eq!(page_of(status, location), None, "{status} {location:?}");
        }
    }
}
