//! Associations between two endpoints of one machine.

use std::net::{Ipv4Addr, SocketAddr};

use bytes::Bytes;
use ropewalk_runtime::endpoint::{Endpoint, Options, Target};

fn loopback() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

#[tokio::test]
async fn messages_cross_between_two_endpoints_and_a_shutdown_delivers_all() {
    let server = Endpoint::open(Options::listening(&[loopback()])).expect("a free port");
    let client = Endpoint::open(Options::connecting(&[loopback()])).expect("a free port");
    let target = Target { addresses: server.locals().to_vec() };
    let near = client.connect(&target).await.expect("the server listens");
    let far = server.accept().await;
    let sender = async {
        for i in 0..1000u32 {
            let bytes = Bytes::from(i.to_be_bytes().repeat(1 + i as usize % 700));
            near.send((i % 4) as u16, i, bytes).await.expect("it is up");
        }
        near.shutdown().await
    };
    let receiver = async {
        let (mut count, mut next) = (0, [0, 1, 2, 3]);
        while let Some(message) = far.receive().await {
            assert_eq!(message.ppid, next[message.stream as usize], "in order on each stream");
            next[message.stream as usize] += 4;
            let expected = message.ppid.to_be_bytes().repeat(1 + message.ppid as usize % 700);
            assert_eq!(message.bytes, expected);
            count += 1;
        }
        count
    };
    let (sent, count) = tokio::join!(sender, receiver);
    assert_eq!((sent, count), (Ok(()), 1000));
}
