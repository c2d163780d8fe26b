//! Requests of programs, and their answers.

use ropewalk_apps::proxy::exit::Policy;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::testbed::{
    anywhere, closed_port, echo_server, in_memory, near, say, short_timeouts, socks_connect,
};

/// Sends a large amount of data, ends, and receives the echo.
async fn echoes(mut socket: TcpStream) {
    let sent: Vec<u8> = (0..300_000u32).map(|i| (i * 7 + i / 251) as u8).collect();
    let mut back = Vec::new();
    let (mut read, mut write) = socket.split();
    let writer = async {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let (_, read) = tokio::join!(writer, read.read_to_end(&mut back));
    read.unwrap();
    assert!(back == sent, "{} of {} bytes", back.len(), sent.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn socks_http_connect_and_a_forwarded_port_lead_to_the_same_place() {
    let server = echo_server().await;
    let ports = near(in_memory(anywhere()), None, server, short_timeouts()).await;
    let (socket, code) = socks_connect(ports.socks, server.port()).await;
    assert_eq!(code, 0);
    echoes(socket).await;

    let mut socket = TcpStream::connect(ports.http).await.unwrap();
    let request = format!("CONNECT localhost:{} HTTP/1.1\r\n\r\n", server.port());
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 26];
    socket.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 Connected\r\n\r\n");
    echoes(socket).await;

    echoes(TcpStream::connect(ports.forward).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reached_or_may_not_gets_the_answer_of_its_language() {
    let server = echo_server().await;
    let closed = closed_port().await.port();
    let open = near(in_memory(anywhere()), None, server, short_timeouts()).await;
    let shut = near(in_memory(Policy::default()), None, server, short_timeouts()).await;
    assert_eq!(socks_connect(open.socks, closed).await.1, 5, "connection refused");
    assert_eq!(socks_connect(shut.socks, server.port()).await.1, 2, "not allowed by ruleset");
    for (ports, uri, status) in [
        (&open, format!("CONNECT 127.0.0.1:{closed} HTTP/1.1"), "502"),
        (&open, "CONNECT no.such.host.invalid:80 HTTP/1.1".into(), "502"),
        (&open, format!("GET http://127.0.0.1:{closed}/ HTTP/1.1"), "502"),
        (&open, "GET / HTTP/1.1".into(), "400"),
        (&shut, format!("CONNECT 127.0.0.1:{} HTTP/1.1", server.port()), "403"),
        (&shut, format!("GET http://127.0.0.1:{}/ HTTP/1.1", server.port()), "403"),
    ] {
        let answer = say(ports.http, &format!("{uri}\r\n\r\n")).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{uri}: {answer}");
    }
    // A program that uses no proxy protocol gets a reset, not an empty answer.
    let read = async { TcpStream::connect(shut.forward).await?.read(&mut [0; 9]).await };
    assert_eq!(read.await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plain_request_reaches_its_server_alone_and_rewritten() {
    for (framing, body) in
        [("Content-Length: 4", "body"), ("Transfer-Encoding: chunked", "4\r\nbody\r\n0\r\n\r\n")]
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = listener.local_addr().unwrap();
        let ports = near(in_memory(anywhere()), None, server, short_timeouts()).await;
        let end = format!("\r\n\r\n{body}");
        let heard = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut heard = vec![0; 4096];
            let mut length = 0;
            while !heard[..length].ends_with(end.as_bytes()) {
                length += socket.read(&mut heard[length..]).await.unwrap();
            }
            // Further bytes would belong to another server: nothing may arrive, not even an end.
            let more = socket.read(&mut heard[length..]);
            let quiet = tokio::time::timeout(std::time::Duration::from_millis(200), more).await;
            socket.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nfine").await.unwrap();
            (String::from_utf8(heard[..length].to_vec()).unwrap(), quiet.is_err())
        });
        let request = format!(
            "POST http://{server}/a HTTP/1.1\r\nProxy-Connection: keep-alive\r\n{framing}\r\n\r\n\
             {body}GET http://other.example/ HTTP/1.1\r\nProxy-Authorization: Basic x\r\n\r\n"
        );
        let answer = say(ports.http, &request).await;
        assert!(answer.ends_with("\r\n\r\nfine"), "{answer}");
        let expected = format!(
            "POST /a HTTP/1.1\r\nHost: {server}\r\n{framing}\r\nConnection: close\r\n\r\n{body}"
        );
        assert_eq!(heard.await.unwrap(), (expected, true));
    }
}

/// A program that reuses its connection learns from each answer that it must not do so.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_server_that_keeps_its_connection_closes_that_of_the_program() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    let ports = near(in_memory(anywhere()), None, server, short_timeouts()).await;
    tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let length = socket.read(&mut head).await.unwrap();
            let answer: &[u8] = if head[..length].starts_with(b"HEAD") {
                b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=9\r\n\r\n"
            } else {
                b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"
            };
            socket.write_all(answer).await.unwrap();
            open.push(socket);
        }
    });
    for (method, body) in [("GET", "ok"), ("HEAD", ""), ("DELETE", "ok")] {
        // Returns when the near end has ended the connection.
        let answer = say(ports.http, &format!("{method} http://{server}/ HTTP/1.1\r\n\r\n")).await;
        let expected =
            format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{body}");
        assert_eq!(answer, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_password_is_asked_for_nobody_gets_in_without_it() {
    let server = echo_server().await;
    let ports = near(in_memory(anywhere()), Some("anne:secret"), server, short_timeouts()).await;
    for (first, then, answer) in [
        (&b"\x05\x01\x00"[..], &b""[..], &b"\x05\xff"[..]),
        (b"\x05\x02\x00\x02", b"\x01\x04anne\x06secret", b"\x05\x02\x01\x00"),
        (b"\x05\x01\x02", b"\x01\x04anne\x06Secret", b"\x05\x02\x01\x01"),
    ] {
        let mut socket = TcpStream::connect(ports.socks).await.unwrap();
        socket.write_all(first).await.unwrap();
        socket.write_all(then).await.unwrap();
        let mut got = vec![0; answer.len()];
        socket.read_exact(&mut got).await.unwrap();
        assert_eq!(got, answer);
    }
    let uri = format!("CONNECT {server} HTTP/1.1\r\n");
    let answer = say(ports.http, &format!("{uri}\r\n")).await;
    assert!(answer.contains("407") && answer.contains("Proxy-Authenticate: Basic"), "{answer}");
}
