//! Rules of RFC 9260 about addresses and ports, tested with hand-written packets over loopback addresses.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ropewalk_engine::sctp::wire::Ports;
use ropewalk_engine::sctp::{Chunk, ErrorCause, Init, Packet};
use ropewalk_interop::crafted::{Came, Crafted, SILENCE};
use ropewalk_interop::ours;
use ropewalk_runtime::endpoint::{
    Association, ConnectError, Endpoint, Options, PathEvent, PathStatus, SctpPorts, Target,
};
use tokio::time::timeout;

/// Long enough for every expected event.
const PATIENCE: Duration = Duration::from_secs(20);
const SERVICE: u16 = 9899;

/// An address of this machine, any port.
fn at(last: u8) -> SocketAddr {
    ([127, 0, 0, last], 0).into()
}

fn ip(last: u8) -> IpAddr {
    at(last).ip()
}

const fn to_service(from: u16) -> Ports {
    Ports { source: from, destination: SERVICE }
}

fn serve(locals: &[SocketAddr]) -> Endpoint {
    Endpoint::open(Options::listening(locals)).expect("free ports")
}

async fn accept(server: &Endpoint) -> Association {
    timeout(PATIENCE, server.accept()).await.expect("somebody has come")
}

async fn read(association: &Association) -> Vec<u8> {
    let message = timeout(PATIENCE, association.receive()).await.expect("a message");
    message.expect("it is up").bytes.to_vec()
}

const fn is_abort(chunk: &Chunk) -> bool {
    matches!(chunk, Chunk::Abort { .. })
}

/// The next ABORT: whether T is set, its tag and its causes.
async fn aborted(end: &Crafted) -> (bool, u32, Vec<ErrorCause>) {
    let came = end.wait_for(is_abort).await;
    let Chunk::Abort { reflected, causes } = came.packet.chunks[0].clone() else { unreachable!() };
    (reflected, came.packet.tag, causes)
}

/// Checks that the association accepts data from this end and acknowledges it.
async fn assert_takes(association: &Association, end: &mut Crafted, from: usize, number: u16) {
    let data = end.data(number, b"word");
    end.send(from, data).await;
    assert_eq!(read(association).await, b"word");
    end.wait_for(|chunk| matches!(chunk, Chunk::Sack(_))).await;
}

// 5.1.2, A.
#[tokio::test]
async fn a_target_that_the_peer_does_not_list_is_not_probed() {
    let client = Endpoint::open(Options::connecting(&[at(1)])).expect("a free port");
    let ports = to_service(SERVICE);
    let mut peer = Crafted::at(&[at(2), at(3)], client.locals()[0], ports).await;
    let target = Target { addresses: vec![peer.address(0), peer.address(1)], key: None };
    let connecting = client.connect(&target);
    let answering = async {
        let came = peer.wait_for(|chunk| matches!(chunk, Chunk::Init(_))).await;
        let Chunk::Init(init) = &came.packet.chunks[0] else { unreachable!() };
        peer.peer_tag = init.tag;
        peer.ports = came.ports.swapped();
        let own = peer.init(77, &[]);
        peer.send(0, Chunk::InitAck(Box::new((own, Some(vec![7; 40].into()))))).await;
        peer.wait_for(|chunk| matches!(chunk, Chunk::CookieEcho(_))).await;
        peer.send(0, Chunk::CookieAck).await;
    };
    let (association, ()) = tokio::join!(connecting, answering);
    let association = association.expect("it comes about");
    assert_eq!(association.paths(), [PathStatus::Active]);
    for number in 0..3 {
        assert_takes(&association, &mut peer, 0, number).await;
    }
    // Every packet goes to the source of the INIT ACK.
    while let Some(Came { to, packet, .. }) = peer.next_within(SILENCE).await {
        assert_eq!(to, 0, "{packet:?}");
    }
}

// 5.1: an association is identified by the addresses and both ports.
#[tokio::test]
async fn clients_of_one_host_and_services_of_one_endpoint_are_told_apart_by_their_ports() {
    let options = Options::listening(&[at(1)]).on_sctp_ports(&[SERVICE, 5000]);
    let server = Endpoint::open(options).expect("a free port");
    let mut end = Crafted::at(&[at(2)], server.locals()[0], to_service(5001)).await;
    let mut associations = Vec::new();
    let mut tags = Vec::new();
    for (number, (from, to)) in
        [(5001, SERVICE), (5002, SERVICE), (5001, 5000)].into_iter().enumerate()
    {
        end.ports = Ports { source: from, destination: to };
        end.open(0, 100 + number as u32, &[]).await;
        let association = accept(&server).await;
        assert_eq!(association.sctp_ports(), Some((to, from)));
        associations.push(association);
        tags.push((end.ports, end.peer_tag, end.next_tsn));
    }
    assert_eq!(server.associations(), 3);
    for (association, (ports, tag, tsn)) in associations.iter().zip(tags.clone()) {
        (end.ports, end.peer_tag, end.next_tsn) = (ports, tag, tsn);
        assert_takes(association, &mut end, 0, 0).await;
    }
    // 8.5: a packet with the ports of one association and the tag of another is discarded silently.
    (end.ports, end.peer_tag, end.next_tsn) = tags[0];
    end.peer_tag = tags[1].1;
    let stray = [end.data(1, b"stray"), Chunk::ShutdownAck];
    for chunk in stray {
        end.send(0, chunk).await;
        let ends =
            |chunk: &Chunk| is_abort(chunk) || matches!(chunk, Chunk::ShutdownComplete { .. });
        assert!(end.wait_within(SILENCE, ends).await.is_none());
    }
    // 8.4: a packet whose ports belong to no association is out of the blue.
    end.ports.source = 5003;
    let data = end.data(1, b"stray");
    end.send(0, data).await;
    let (reflected, tag, _) = aborted(&end).await;
    assert_eq!((reflected, tag), (true, tags[1].1));
    assert_eq!(server.associations(), 3);
    assert!(associations.iter().all(|one| one.status().is_some()));
}

// 8.4.
#[tokio::test]
async fn an_init_to_a_port_without_a_service_is_answered_with_an_abort() {
    let server = serve(&[at(1)]);
    let mut end = Crafted::at(&[at(2)], server.locals()[0], to_service(5001)).await;
    end.ports.destination = 9;
    let init = Chunk::Init(Box::new(end.init(55, &[])));
    end.send_packet(0, end.ports, &Packet::of(0, init)).await;
    assert_eq!(aborted(&end).await, (false, 55, Vec::new()));
    // An endpoint that does not listen also answers with an ABORT.
    let client = Endpoint::open(Options::connecting(&[at(1)])).expect("a free port");
    end.peer = client.locals()[0];
    end.ports.destination = SERVICE;
    let init = Chunk::Init(Box::new(end.init(56, &[])));
    end.send_packet(0, end.ports, &Packet::of(0, init)).await;
    assert_eq!(aborted(&end).await, (false, 56, Vec::new()));
    assert_eq!((server.associations(), client.associations()), (0, 0));
    // A connecting client is informed immediately.
    let target = Target { addresses: server.locals().to_vec(), key: None };
    let ports = SctpPorts { local: None, remote: 9 };
    let refused = timeout(PATIENCE, client.connect_with_ports(&target, ports)).await;
    assert!(matches!(refused, Ok(Err(ConnectError::Ended(_)))), "{refused:?}");
}

// 8.4, 8; RFC 6951, 5.4.
#[tokio::test]
async fn data_from_an_address_that_is_not_the_peer_s_is_out_of_the_blue_and_another_udp_port_is_not()
 {
    let server = serve(&[at(1)]);
    let addresses = [at(2), at(2), at(3)];
    let mut end = Crafted::at(&addresses, server.locals()[0], to_service(5001)).await;
    end.open(0, 21, &[]).await;
    let association = accept(&server).await;
    assert_takes(&association, &mut end, 0, 0).await;
    let tsn = end.next_tsn;
    let stray = end.data(1, b"stray");
    end.send(2, stray).await;
    assert_eq!(aborted(&end).await, (true, end.peer_tag, Vec::new()));
    end.next_tsn = tsn;
    assert_takes(&association, &mut end, 1, 1).await;
    let next = timeout(SILENCE, association.receive()).await;
    assert!(next.is_err(), "what was out of the blue was not taken: {next:?}");
}

/// A server with an association whose peer lists `listed` and has two sockets at each of 127.0.0.2 and 127.0.0.3.
async fn multihomed(listed: &[IpAddr]) -> (Endpoint, Association, Crafted) {
    let server = serve(&[at(1)]);
    let addresses = [at(2), at(3), at(2), at(3)];
    let mut end = Crafted::at(&addresses, server.locals()[0], to_service(5001)).await;
    end.open(0, 31, listed).await;
    let association = accept(&server).await;
    assert_takes(&association, &mut end, 0, 0).await;
    (server, association, end)
}

async fn restarted(association: &Association) {
    let news = async {
        while association.next_path_event().await.expect("it is up") != PathEvent::Restarted {}
    };
    timeout(PATIENCE, news).await.expect("the user is told of the restart");
}

// 5.1.2, 5.2.2.
#[tokio::test]
async fn a_peer_may_start_anew_from_any_of_its_addresses_and_udp_ports() {
    for from in 0..4 {
        let (server, association, mut end) = multihomed(&[ip(2), ip(3)]).await;
        end.open(from, 40 + from as u32, &[ip(2), ip(3)]).await;
        restarted(&association).await;
        assert_eq!(server.associations(), 1, "from {from}");
        assert_takes(&association, &mut end, from, 0).await;
        association.send(0, 0, b"back".as_slice().into()).await.expect("it is up");
        let data = end.wait_for(|chunk| matches!(chunk, Chunk::Data(_))).await;
        assert_eq!(data.packet.tag, 40 + from as u32);
    }
}

#[tokio::test]
async fn a_peer_that_starts_anew_may_list_the_address_that_it_is_at_and_no_other_one() {
    let (server, association, mut end) = multihomed(&[]).await;
    end.open(0, 41, &[ip(2)]).await;
    restarted(&association).await;
    assert_takes(&association, &mut end, 0, 0).await;
    for (from, listed, new) in [(0, [ip(2), ip(3)], ip(3)), (1, [ip(2), ip(3)], ip(3))] {
        let known = (end.own_tag, end.next_tsn);
        let init = Chunk::Init(Box::new(end.init(42, &listed)));
        end.send_packet(from, end.ports, &Packet::of(0, init)).await;
        let (reflected, tag, causes) = aborted(&end).await;
        (end.own_tag, end.next_tsn) = known;
        assert_eq!((reflected, tag), (false, 42));
        let IpAddr::V4(new) = new else { unreachable!() };
        let parameter = [&[0, 5, 0, 8][..], &new.octets()].concat();
        assert_eq!(causes, [ErrorCause::NewAddresses(parameter.into())]);
    }
    assert_takes(&association, &mut end, 0, 1).await;
    assert_eq!(server.associations(), 1);
}

// 5.2.1, 5.2.4 B.
#[tokio::test]
async fn an_init_collision_from_another_address_leaves_one_association() {
    let here = serve(&[at(1)]);
    let mut end = Crafted::at(&[at(2), at(3)], here.locals()[0], to_service(SERVICE)).await;
    let target = Target { addresses: vec![end.address(0)], key: None };
    let opening = async {
        let came = end.wait_for(|chunk| matches!(chunk, Chunk::Init(_))).await;
        assert_eq!(came.ports, to_service(SERVICE));
        // Our INIT crosses it from the other address, and lists the address that received the
        // peer's INIT.
        let init = Chunk::Init(Box::new(end.init(61, &[ip(2), ip(3)])));
        end.send_packet(1, end.ports, &Packet::of(0, init)).await;
        let came = end.wait_for(|chunk| matches!(chunk, Chunk::InitAck(_))).await;
        // 5.2.1: the answer goes to an address that the user named.
        assert_eq!((came.to, came.packet.tag), (0, 61));
        let Chunk::InitAck(both) = came.packet.chunks[0].clone() else { unreachable!() };
        end.peer_tag = both.0.tag;
        end.send(0, Chunk::CookieEcho(both.1.expect("a cookie"))).await;
        end.wait_for(|chunk| matches!(chunk, Chunk::CookieAck)).await;
    };
    let (association, ()) = tokio::join!(here.connect(&target), opening);
    let association = association.expect("it comes about");
    assert_eq!(here.associations(), 1);
    assert_takes(&association, &mut end, 0, 0).await;
    association.abort();
    drop(association);
    timeout(PATIENCE, here.close()).await.expect("no phantom is left");
}

#[tokio::test]
async fn connecting_again_between_the_same_ports_opens_nothing_on_the_wire() {
    let (there, here) = (serve(&[at(2)]), serve(&[at(1)]));
    let target = Target { addresses: there.locals().to_vec(), key: None };
    let ports = SctpPorts { local: Some(SERVICE), remote: SERVICE };
    let first = here.connect_with_ports(&target, ports).await.expect("it listens");
    let sent = here.counters().sent;
    for again in [here.connect(&target).await, here.connect_with_ports(&target, ports).await] {
        let Err(ConnectError::Exists(peer, exists)) = again else { panic!("{again:?}") };
        assert_eq!((peer, exists), (there.locals()[0], ports));
    }
    assert!(here.counters().sent <= sent + 2, "an INIT would be answered, and four packets more");
    assert_eq!((here.associations(), there.associations()), (1, 1));
    // From other ports, any number of associations is permitted.
    let mut more = Vec::new();
    for local in [7001, 7002] {
        let ports = SctpPorts { local: Some(local), remote: SERVICE };
        more.push(here.connect_with_ports(&target, ports).await.expect("it listens"));
    }
    assert_eq!(there.associations(), 3);
    // An ended association does not block a new one.
    first.abort();
    let again = timeout(PATIENCE, here.connect_with_ports(&target, ports)).await;
    again.expect("in time").expect("it listens");
}

#[tokio::test]
async fn an_endpoint_closes_though_nobody_has_accepted_what_came() {
    let server = serve(&[at(1)]);
    let mut end = Crafted::at(&[at(2)], server.locals()[0], to_service(5001)).await;
    end.open(0, 71, &[]).await;
    let closing = timeout(PATIENCE, server.close());
    let (closed, aborted) = tokio::join!(closing, aborted(&end));
    closed.expect("nothing keeps it");
    assert_eq!(aborted.1, 71);
}

// The source address of an answer is the destination address of the request.
#[tokio::test]
async fn an_endpoint_at_all_addresses_answers_from_the_one_that_was_asked() {
    for (asked, own) in [("127.0.0.5", "127.0.0.2"), ("127.0.0.7", "127.0.0.7")] {
        let server = serve(&["0.0.0.0:0".parse().expect("an address")]);
        let port = server.locals()[0].port();
        let peer = SocketAddr::new(asked.parse().expect("an address"), port);
        let own = SocketAddr::new(own.parse().expect("an address"), 0);
        let mut end = Crafted::at(&[own], peer, to_service(5001)).await;
        let init = Chunk::Init(Box::new(end.init(81, &[])));
        end.send_packet(0, end.ports, &Packet::of(0, init)).await;
        assert_eq!(end.wait_for(|chunk| matches!(chunk, Chunk::InitAck(_))).await.from, peer);
        end.open(0, 82, &[]).await;
        let association = accept(&server).await;
        association.send(0, 0, b"word".as_slice().into()).await.expect("it is up");
        assert_eq!(end.wait_for(|chunk| matches!(chunk, Chunk::Data(_))).await.from, peer);
        // The same applies to a packet without an association.
        let stray = Packet::of(5, Chunk::ShutdownAck);
        end.send_packet(0, to_service(7), &stray).await;
        let complete = |chunk: &Chunk| matches!(chunk, Chunk::ShutdownComplete { .. });
        assert_eq!(end.wait_for(complete).await.from, peer);
    }
}

/// The addresses that an endpoint with these local addresses lists to a peer at `from`.
async fn told(locals: &[&str], from: &str) -> Vec<IpAddr> {
    let locals: Vec<_> = locals.iter().map(|text| text.parse().expect("an address")).collect();
    let server = serve(&locals);
    let from: SocketAddr = from.parse().expect("an address");
    let same = |local: &&SocketAddr| local.is_ipv4() == from.is_ipv4();
    let port = server.locals().iter().find(same).expect("one of that family").port();
    let mut end = Crafted::at(&[from], SocketAddr::new(from.ip(), port), to_service(5001)).await;
    // The INIT must be long enough for an answer that lists both: an answer has at most three times
    // its bytes.
    let Init { mut addresses, .. } = end.open(0, 91, &[from.ip(), ip(9), ip(8)]).await;
    addresses.sort_unstable();
    addresses
}

#[tokio::test]
async fn both_families_are_told_where_there_are_sockets_of_both() {
    let both = ["127.0.0.1", "::1"].map(|text| text.parse::<IpAddr>().expect("an address"));
    let cases: [(&[&str], &str, &[IpAddr]); 4] = [
        (&["127.0.0.1:0", "[::1]:0"], "127.0.0.1:0", &both),
        (&["127.0.0.1:0", "[::1]:0"], "[::1]:0", &both),
        (&["0.0.0.0:0", "[::]:0"], "127.0.0.1:0", &both),
        (&["127.0.0.1:0"], "127.0.0.1:0", &[]),
    ];
    for (locals, from, expected) in cases {
        assert_eq!(told(locals, from).await, expected, "{locals:?} to {from}");
    }
}

#[tokio::test]
async fn ipv4_and_ipv6_are_two_paths_of_one_association() {
    // Two wildcard sockets may share a port: the IPv6 socket does not use IPv4.
    let any = ["0.0.0.0:0", "[::]:0"].map(|text| text.parse::<SocketAddr>().expect("an address"));
    for locals in [[at(1), "[::1]:0".parse().expect("an address")], any] {
        let server = serve(&locals);
        let here = [ip(1), "::1".parse().expect("an address")];
        let addresses = server.locals().iter().zip(here);
        let addresses = addresses.map(|(local, ip)| SocketAddr::new(ip, local.port())).collect();
        let client = Endpoint::open(Options::connecting(&locals)).expect("free ports");
        let near = client.connect(&Target { addresses, key: None }).await.expect("it listens");
        let far = accept(&server).await;
        for association in [&near, &far] {
            let both = async {
                while association.paths() != [PathStatus::Active; 2] {
                    association.next_path_event().await.expect("it is up");
                }
            };
            timeout(PATIENCE, both).await.expect("both paths are confirmed");
        }
        let total = 300_000;
        let (received, ()) =
            tokio::join!(ours::receive(&far, total), ours::send(&near, total, 1000, 1));
        assert_eq!(received.bytes, total);
    }
}
