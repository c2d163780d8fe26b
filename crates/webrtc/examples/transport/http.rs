//! A small HTTP server for signalling: it passes each request to the main loop, and waits for the response.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

/// Maximum size of the head and of the body of a request, bytes.
const HEAD: usize = 16 << 10;
const BODY: usize = 64 << 10;
/// Longest wait for a request, and for the response of the main loop.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of connections at a time.
const CONNECTIONS: usize = 32;

/// A request for the main loop.
pub struct Request {
    pub method: String,
    pub path: String,
    pub body: String,
    response: SyncSender<Response>,
}

/// The response.
pub struct Response {
    pub status: &'static str,
    pub kind: &'static str,
    pub body: String,
}

impl Request {
    /// Responds. A disconnected client is ignored.
    pub fn respond(self, response: Response) {
        let _ = self.response.send(response);
    }
}

/// Listens, and returns the address and the requests.
///
/// # Errors
/// If the address cannot be bound.
pub fn listen(address: SocketAddr) -> io::Result<(SocketAddr, Receiver<Request>)> {
    let listener = TcpListener::bind(address)?;
    let address = listener.local_addr()?;
    let (to_loop, requests) = channel();
    let open = Arc::new(());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (to_loop, open) = (to_loop.clone(), Arc::clone(&open));
            if Arc::strong_count(&open) <= CONNECTIONS {
                thread::spawn(move || {
                    let _ = serve(stream, address, &to_loop);
                    drop(open);
                });
            }
        }
    });
    Ok((address, requests))
}

/// Serves one request.
fn serve(mut stream: TcpStream, address: SocketAddr, to_loop: &Sender<Request>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let response = match read(&mut stream, address) {
        Ok((method, path, body)) => {
            let (response, answer) = sync_channel(1);
            let request = Request { method, path, body, response };
            to_loop.send(request).map_err(io::Error::other)?;
            answer.recv_timeout(PATIENCE).map_err(io::Error::other)?
        }
        Err(error) => {
            let body = format!("{error}\n");
            Response { status: "400 Bad Request", kind: "text/plain; charset=utf-8", body }
        }
    };
    let Response { status, kind, body } = response;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Reads a request: method, path and body.
fn read(stream: &mut TcpStream, address: SocketAddr) -> io::Result<(String, String, String)> {
    let mut bytes = Vec::new();
    loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut headers);
        let parsed = head.parse(&bytes).map_err(io::Error::other)?;
        if let httparse::Status::Complete(length) = parsed {
            let value = |name: &str| {
                let found =
                    head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
                found.and_then(|header| std::str::from_utf8(header.value).ok())
            };
            // A page of another site whose name resolves to this address would send the name of that site.
            if value("host") != Some(&address.to_string()) {
                return Err(io::Error::other("the host is not the one of the printed URL"));
            }
            let size =
                value("content-length").map_or(Ok(0), str::parse).map_err(io::Error::other)?;
            // A page of another site cannot send this type without this server's consent.
            let own = size == 0 || value("content-type") == Some("application/sdp");
            if size > BODY || !own {
                return Err(io::Error::other("the body is too long, or no session description"));
            }
            let (method, path) = (head.method.unwrap_or_default(), head.path.unwrap_or_default());
            let (method, path) = (method.to_owned(), path.to_owned());
            let mut body = bytes.split_off(length);
            let rest = size.saturating_sub(body.len()) as u64;
            stream.take(rest).read_to_end(&mut body)?;
            let body = String::from_utf8(body).map_err(io::Error::other)?;
            return Ok((method, path, body));
        }
        if bytes.len() > HEAD {
            return Err(io::Error::other("the head is too long"));
        }
        let mut piece = [0; 4096];
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}
