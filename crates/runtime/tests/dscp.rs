//! The DSCP of packets, as a host on the path sees it.

use std::io::IoSliceMut;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::cmsg_space;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt::IpRecvTos,
};
use ropewalk_runtime::endpoint::{Association, Dscp, Endpoint, Options, Target};
use ropewalk_runtime::seal::{Allowed, SecretKey};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(30);
const AF31: u8 = 26;
const EF: u8 = 46;
/// ECT(0), which packets with data carry.
const ECT_0: u8 = 2;

/// The TOS bytes of packets of the client and of the server.
type Seen = Arc<Mutex<[Vec<u8>; 2]>>;

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

/// Receives one datagram with its TOS byte.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Option<(usize, SocketAddr, u8)> {
    let mut space = cmsg_space!(u8);
    let mut slices = [IoSliceMut::new(buffer)];
    let fd = socket.as_raw_fd();
    let got = recvmsg::<SockaddrIn>(fd, &mut slices, Some(&mut space), MsgFlags::empty()).ok()?;
    let tos = got.cmsgs().ok()?.find_map(|message| match message {
        ControlMessageOwned::Ipv4Tos(tos) => Some(tos),
        _ => None,
    })?;
    let from = got.address?;
    Some((got.bytes, SocketAddr::from((from.ip(), from.port())), tos))
}

/// Forwards datagrams between a server and the only client that sends to it here, and records their TOS bytes.
fn relay(server: SocketAddr) -> (SocketAddr, Seen) {
    let socket = UdpSocket::bind(loopback()).expect("a free port");
    setsockopt(&socket, IpRecvTos, &true).expect("Linux has it");
    let here = socket.local_addr().expect("bound");
    let seen = Seen::default();
    let noted = seen.clone();
    std::thread::spawn(move || {
        let (mut buffer, mut client) = ([0; 65_536], None);
        while let Some((length, from, tos)) = receive(&socket, &mut buffer) {
            let is_server = from == server;
            if !is_server {
                client = Some(from);
            }
            noted.lock().expect("no panic")[usize::from(is_server)].push(tos);
            let to = if is_server { client } else { Some(server) };
            to.into_iter().for_each(|to| drop(socket.send_to(&buffer[..length], to)));
        }
    });
    (here, seen)
}

/// The TOS bytes since the last call.
fn take(seen: &Seen) -> [Vec<u8>; 2] {
    std::mem::take(&mut *seen.lock().expect("no panic"))
}

/// Sends some messages and waits until they have been acknowledged.
async fn carry(near: &Association, far: &Association) {
    for number in 0..100_u32 {
        near.send(0, 0, vec![number as u8; 3000].into()).await.expect("it is up");
    }
    for _ in 0..100 {
        far.receive().await.expect("it is up");
    }
    near.flushed().await;
}

fn dscps(bytes: &[u8]) -> std::collections::BTreeSet<u8> {
    bytes.iter().map(|tos| tos >> 2).collect()
}

async fn all_packets_are_marked(sealed: bool) {
    let (mut server, mut client) =
        (Options::listening(&[loopback()]), Options::connecting(&[loopback()]));
    let mut key = None;
    if sealed {
        let secret = SecretKey::generate().expect("random numbers");
        key = Some(secret.public());
        server = server.sealed(secret, Allowed::Anyone);
        client = client.sealed(SecretKey::generate().expect("random numbers"), Allowed::Anyone);
    }
    for end in [&mut server, &mut client] {
        end.transport.dscp = Dscp::new(AF31).expect("six bits");
        // No spontaneous packets.
        end.transport.discover_mtu = false;
    }
    let server = Endpoint::open(server).expect("a free port");
    let client = Endpoint::open(client).expect("a free port");
    let (relayed, seen) = relay(server.locals()[0]);
    let near = client.connect(&Target { addresses: vec![relayed], key }).await.expect("answered");
    let far = server.accept().await;
    let window = || near.stats().expect("it is up").paths[0].cwnd_bytes;
    let initial = window();
    while window() == initial {
        carry(&near, &far).await;
    }
    let [sent, answered] = take(&seen);
    assert_eq!((dscps(&sent), dscps(&answered)), ([AF31].into(), [AF31].into()));
    assert!(sent.iter().any(|tos| tos & 3 == ECT_0), "the ECN field is kept");

    let ef = Dscp::new(EF).expect("six bits");
    assert!(!near.set_dscp(Some(1), ef), "there is no such path");
    assert!(near.set_dscp(None, ef));
    // RFC 9260, 7.2.5.1.
    assert_eq!(window(), initial);
    assert_eq!((near.dscp(None), near.dscp(Some(0))), (Some(ef), Some(ef)));
    take(&seen);
    carry(&near, &far).await;
    let [sent, answered] = take(&seen);
    let late = sent.iter().filter(|tos| **tos >> 2 == AF31).count();
    assert!(late <= 2 && dscps(&sent).contains(&EF), "{late} of {}", sent.len());
    assert_eq!(dscps(&answered), [AF31].into());

    assert!(near.set_dscp(None, ef) && near.set_dscp(Some(0), Dscp::DEFAULT));
    assert_eq!((near.dscp(None), near.dscp(Some(0))), (Some(ef), Some(Dscp::DEFAULT)));
    carry(&near, &far).await;
    take(&seen);
    carry(&near, &far).await;
    assert_eq!(dscps(&take(&seen)[0]), [0].into());
}

#[tokio::test(flavor = "multi_thread")]
async fn all_packets_of_an_association_have_its_dscp_and_their_own_ecn_field() {
    for sealed in [false, true] {
        timeout(PATIENCE, all_packets_are_marked(sealed)).await.expect("it goes on");
    }
}

#[test]
fn a_code_point_has_six_bits() {
    assert_eq!(Dscp::new(64), None);
    for value in 0..64 {
        let dscp = Dscp::new(value).expect("six bits");
        assert_eq!((dscp.value(), dscp.field()), (value, value << 2));
        assert!((0..4).all(|ecn| Dscp::of_field(dscp.field() | ecn) == dscp));
    }
}
