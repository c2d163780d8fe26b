//! Contents of the HTTP server: the page, and answers to the offers of its browsers.

use std::net::SocketAddr;

use crate::transport::http::{Request, Response};
use crate::transport::{Server, random};

const PAGE: &str = include_str!("page.html");

/// The page, at an unguessable path: other users of the machine cannot get the file.
pub struct Site {
    home: String,
}

impl Site {
    pub fn new() -> Self {
        Self { home: format!("/{:016x}", u64::from_le_bytes(random())) }
    }

    /// The URL of the page, if the HTTP server listens at `address`.
    pub fn url(&self, address: SocketAddr) -> String {
        format!("http://{address}{}", self.home)
    }

    /// Responds to a request. Returns the number of the peer if it was an offer.
    pub fn respond(&self, request: Request, server: &mut Server) -> Option<u64> {
        let text = "text/plain; charset=utf-8";
        let rest = request.path.strip_prefix(&self.home);
        let (response, peer) = match (request.method.as_str(), rest) {
            ("GET", Some("")) => {
                let kind = "text/html; charset=utf-8";
                (Response { status: "200 OK", kind, body: PAGE.to_owned() }, None)
            }
            ("POST", Some("/offer")) => match server.accept(&request.body) {
                Ok((body, number)) => {
                    (Response { status: "200 OK", kind: "application/sdp", body }, Some(number))
                }
                Err(body) => (Response { status: "400 Bad Request", kind: text, body }, None),
            },
            _ => {
                let body = "not here\n".to_owned();
                (Response { status: "404 Not Found", kind: text, body }, None)
            }
        };
        request.respond(response);
        peer
    }
}
