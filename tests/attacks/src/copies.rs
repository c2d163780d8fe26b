//! Copies of a client's datagrams that arrive before them, from somebody else's address.

use std::net::UdpSocket;
use std::path::Path;

use crate::figure::{Bound, Failure, Figure};
use crate::pieces::{goodput, shares};
use crate::relay::Relay;
use crate::victim::{Server, loopback};

/// The client's goodput, as a share of what it has without the copies.
pub fn early(binary: &Path) -> Result<Figure, Failure> {
    let server = Server::bench(binary)?;
    let address = server.address;
    let without = || {
        let relay = Relay::start(address, Box::new(|_, _, _| {}))?;
        goodput(binary, &server, relay.address)
    };
    let with = || {
        let beside = UdpSocket::bind((loopback(45_000), 0))?;
        let copy = move |datagram: &[u8], _: &UdpSocket, _| {
            let _ = beside.send_to(datagram, address);
        };
        let relay = Relay::start(address, Box::new(copy))?;
        goodput(binary, &server, relay.address)
    };
    let (share, all) = shares(without, with)?;
    let figure = Figure::new("goodput of the client", "share", share, Bound::AtLeast(0.9));
    Ok(figure.with("goodputs_mbps", all))
}
