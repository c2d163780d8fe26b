//! Input that no correct program sends.

use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::testbed::{anywhere, echo_server, in_memory, near, short_timeouts, socks_connect};

/// Valid beginnings, to be corrupted.
const BEGINNINGS: [&[u8]; 6] = [
    b"",
    b"\x05\x01\x00",
    b"\x05\x01\x00\x05\x01\x00\x03",
    b"GET http://a",
    b"CONNECT ",
    b"POST http://127.0.0.1:1/ HTTP/1.1\r\nContent-Length: ",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn whatever_is_said_the_proxy_lives_on(
        rest in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..600), 6)
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = echo_server().await;
            let ports = near(in_memory(anywhere()), None, server, short_timeouts()).await;
            for (beginning, rest) in BEGINNINGS.iter().zip(&rest) {
                for port in [ports.socks, ports.http] {
                    let mut socket = TcpStream::connect(port).await.unwrap();
                    // The peer may close the connection before everything is sent.
                    let _ = socket.write_all(&[beginning, rest.as_slice()].concat()).await;
                    let _ = socket.shutdown().await;
                    let mut sink = Vec::new();
                    let end = timeout(Duration::from_secs(8), socket.read_to_end(&mut sink)).await;
                    assert!(end.is_ok(), "{port} neither answers nor hangs up");
                }
            }
            assert_eq!(socks_connect(ports.socks, server.port()).await.1, 0, "it still works");
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_an_end_is_cut_off() {
    let server = echo_server().await;
    let ports = near(in_memory(anywhere()), None, server, short_timeouts()).await;
    let mut socket = TcpStream::connect(ports.http).await.unwrap();
    let line = format!("A: {}\r\n", "b".repeat(1000));
    let mut request = "GET http://a/ HTTP/1.1\r\n".to_owned() + &line.repeat(80);
    request.push_str("A: ");
    let _ = socket.write_all(request.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = timeout(Duration::from_secs(5), socket.read_to_end(&mut answer)).await.expect("an end");
    assert!(answer.starts_with(b"HTTP/1.1 431 "), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_that_never_complete_a_request_do_not_delay_others() {
    let server = echo_server().await;
    let ports = near(in_memory(anywhere()), None, server, short_timeouts()).await;
    let mut slow = Vec::new();
    for port in [ports.socks, ports.http] {
        for _ in 0..700 {
            let mut socket = TcpStream::connect(port).await.unwrap();
            // The connection may have been displaced already.
            let _ = socket.write_all(b"\x05").await;
            slow.push(socket);
        }
    }
    // Much less than the 15 s that each of them may take.
    let served = timeout(Duration::from_secs(5), socks_connect(ports.socks, server.port())).await;
    assert_eq!(served.expect("served beside them").1, 0);
    drop(slow);
}
