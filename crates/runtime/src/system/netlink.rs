//! Requests to the kernel by netlink, each on its own socket.

use std::io;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader, NetlinkMessage,
    NetlinkPayload, NetlinkSerializable,
};
use netlink_sys::{Socket, SocketAddr};

/// Messages are padded to a multiple of this size, bytes (netlink(7)).
const ALIGNMENT: usize = 4;

/// A message to the kernel, with its flags in addition to `NLM_F_REQUEST`.
pub struct Request<M> {
    /// The message.
    pub message: M,
    /// Flags of the header.
    pub flags: u16,
}

/// Sends requests in one datagram, and waits until each one with `NLM_F_ACK` is acknowledged.
///
/// # Errors
/// The first error that the kernel reports.
pub fn send<M>(protocol: isize, requests: Vec<Request<M>>) -> io::Result<()>
where
    M: NetlinkSerializable + NetlinkDeserializable,
{
    send_by(&connect(protocol)?, requests)
}

/// The same on this socket.
///
/// # Errors
/// The first error that the kernel reports.
pub fn send_by<M>(socket: &Socket, requests: Vec<Request<M>>) -> io::Result<()>
where
    M: NetlinkSerializable + NetlinkDeserializable,
{
    let mut awaited = 0;
    let mut bytes = Vec::new();
    for (number, Request { message, flags }) in (1..).zip(requests) {
        awaited += usize::from(flags & NLM_F_ACK != 0);
        bytes.extend(encoded(message, flags, number));
    }
    socket.send(&bytes, 0)?;
    while awaited > 0 {
        let (datagram, _) = socket.recv_from_full()?;
        for reply in messages::<M>(&datagram) {
            if let NetlinkPayload::Error(error) = reply?.payload {
                if error.code.is_some() {
                    return Err(error.to_io());
                }
                awaited = awaited.saturating_sub(1);
            }
        }
    }
    Ok(())
}

/// Sends one request, and waits for its acknowledgement.
///
/// # Errors
/// The error of the kernel.
pub fn change<M>(protocol: isize, message: M, flags: u16) -> io::Result<()>
where
    M: NetlinkSerializable + NetlinkDeserializable,
{
    send(protocol, vec![Request { message, flags: flags | NLM_F_ACK }])
}

/// Lists all objects of the kind of `message`.
///
/// # Errors
/// The error of the kernel.
pub fn dump<M>(protocol: isize, message: M) -> io::Result<Vec<M>>
where
    M: NetlinkSerializable + NetlinkDeserializable,
{
    let socket = connect(protocol)?;
    socket.send(&encoded(message, NLM_F_DUMP, 1), 0)?;
    let mut found = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        for reply in messages::<M>(&datagram) {
            match reply?.payload {
                NetlinkPayload::InnerMessage(message) => found.push(message),
                NetlinkPayload::Error(error) if error.code.is_some() => return Err(error.to_io()),
                NetlinkPayload::Done(_) => return Ok(found),
                _ => {}
            }
        }
    }
}

/// A socket for requests.
///
/// # Errors
/// The error of the system.
pub fn connect(protocol: isize) -> io::Result<Socket> {
    let mut socket = Socket::new(protocol)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    Ok(socket)
}

fn encoded<M: NetlinkSerializable>(message: M, flags: u16, number: u32) -> Vec<u8> {
    let payload = NetlinkPayload::InnerMessage(message);
    let mut message = NetlinkMessage::new(NetlinkHeader::default(), payload);
    message.header.flags = flags | NLM_F_REQUEST;
    message.header.sequence_number = number;
    message.finalize();
    let mut bytes = vec![0; message.buffer_len().next_multiple_of(ALIGNMENT)];
    message.serialize(&mut bytes);
    bytes
}

/// The messages of a datagram.
fn messages<M: NetlinkDeserializable>(
    datagram: &[u8],
) -> impl Iterator<Item = io::Result<NetlinkMessage<M>>> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let decoded = NetlinkMessage::<M>::deserialize(rest).map_err(io::Error::other);
        let length = decoded.as_ref().map_or(rest.len(), |message| message.header.length as usize);
        rest = rest.get(length.next_multiple_of(ALIGNMENT).max(ALIGNMENT)..).unwrap_or_default();
        Some(decoded)
    })
}
