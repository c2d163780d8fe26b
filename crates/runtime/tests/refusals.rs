//! Closed UDP ports: ICMP reports that the port is unreachable, and setup ends early.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use ropewalk_runtime::endpoint::{
    Association, CloseReason, ConnectError, Endpoint, Options, SctpPorts, Target,
};
use tokio::time::timeout;

/// Longer than any answer takes.
const LIMIT: Duration = Duration::from_secs(30);

/// A UDP port that the system does not assign automatically.
const CLOSED: u16 = 9;

fn at(last: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, last], port))
}

fn to(addresses: &[SocketAddr]) -> Target {
    Target { addresses: addresses.to_vec(), key: None }
}

async fn connect(
    endpoint: &Endpoint,
    addresses: &[SocketAddr],
) -> Result<Association, ConnectError> {
    let target = to(addresses);
    timeout(LIMIT, endpoint.connect(&target)).await.expect("there is an answer")
}

#[tokio::test]
async fn an_association_that_all_addresses_refuse_ends_after_one_init_to_each() {
    let own = [at(1, 0)];
    let own_v6: [SocketAddr; 1] = ["[::1]:0".parse().expect("an address")];
    let closed_v6: SocketAddr = "[::1]:9".parse().expect("an address");
    let mut cases = vec![
        (&own, vec![at(1, CLOSED)]),
        (&own, vec![at(2, CLOSED), at(3, CLOSED), at(2, CLOSED + 2)]),
    ];
    if std::net::UdpSocket::bind(own_v6[0]).is_ok() {
        cases.push((&own_v6, vec![closed_v6]));
    }
    for (own, addresses) in cases {
        let endpoint = Endpoint::open(Options::connecting(own)).expect("a free port");
        let refused = connect(&endpoint, &addresses).await.map(|_| ());
        assert_eq!(refused, Err(ConnectError::Ended(CloseReason::Refused)), "{addresses:?}");
        assert_eq!(endpoint.counters().sent, addresses.len() as u64, "{addresses:?}");
    }
}

#[tokio::test]
async fn an_address_that_does_not_refuse_is_used() {
    let server = Endpoint::open(Options::listening(&[at(1, 0)])).expect("a free port");
    let client = Endpoint::open(Options::connecting(&[at(1, 0)])).expect("a free port");
    let addresses = [at(2, CLOSED), at(3, CLOSED), server.locals()[0]];
    let near = connect(&client, &addresses).await.expect("one of them listens");
    let far = timeout(LIMIT, server.accept()).await.expect("it comes");
    near.send(0, 7, Bytes::from_static(b"word")).await.expect("it is up");
    assert_eq!(far.receive().await.map(|message| message.ppid), Some(7));
}

/// While refusals are watched, the system reports them by the next call on the socket, whichever it is.
#[tokio::test]
async fn associations_of_the_same_sockets_go_on_while_others_are_refused() {
    let server = Endpoint::open(Options::listening(&[at(1, 0)])).expect("a free port");
    let client = Endpoint::open(Options::connecting(&[at(1, 0)])).expect("a free port");
    let near = connect(&client, server.locals()).await.expect("it listens");
    let far = server.accept().await;
    let receiving = async {
        let mut bytes = 0;
        while let Some(message) = far.receive().await {
            bytes += message.bytes.len();
        }
        bytes
    };
    let sending = async {
        for number in 0..100_u32 {
            let other = SctpPorts { local: None, remote: 7000 + number as u16 };
            let refused = client.start_connect(&to(&[at(1, CLOSED)]), other).expect("a way");
            near.send(0, number, vec![7; 50_000].into()).await.expect("it is up");
            let ended = timeout(LIMIT, refused.established()).await.expect("an answer");
            assert_eq!(ended, Err(CloseReason::Refused));
        }
        near.shutdown().await
    };
    let (received, ended) = tokio::join!(receiving, sending);
    assert_eq!((received, ended), (5_000_000, Ok(())));
}
