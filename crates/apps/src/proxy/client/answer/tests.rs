use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

use super::*;

const GET: AnswerContext = AnswerContext { head_only: false, interim: true };
const HEAD: AnswerContext = AnswerContext { head_only: true, interim: true };
const OLD: AnswerContext = AnswerContext { head_only: false, interim: false };

/// The bytes that the program reads if the server sends `answer` in segments of `step` bytes. The server closes the
/// connection afterwards only if that is needed to end the answer.
async fn read(answer: &str, context: AnswerContext, step: usize, close: bool) -> String {
    let (mut server, near) = duplex(step);
    let bytes = answer.as_bytes().to_vec();
    let writer = tokio::spawn(async move {
        // The near end stops reading at the end of the answer.
        let _ = server.write_all(&bytes).await;
        (!close).then_some(server)
    });
    let mut out = Vec::new();
    AnswerStream::new(near, context).read_to_end(&mut out).await.unwrap();
    writer.abort();
    String::from_utf8(out).unwrap()
}

async fn assert_read(context: AnswerContext, answer: &str, expected: &str) {
    for step in [1, 2, 3, 7, 64, 1 << 16] {
        let out = read(answer, context, step, false).await;
        assert_eq!(out, expected, "{answer:?} in segments of {step} bytes");
    }
}

#[tokio::test]
async fn answers_close_the_connection_and_end_with_their_body() {
    for (context, answer, expected) in [
        // Persistent servers, which do not close the connection after the answer.
        (
            GET,
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        ),
        (
            GET,
            "HTTP/1.1 200 OK\r\nConnection: keep-alive, X-Hop\r\nKeep-Alive: timeout=5\r\nX-Hop: 1\r\n\
             Proxy-Connection: keep-alive\r\nUpgrade: h2c\r\nX: end to end\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\nX: end to end\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        ),
        (
            GET,
            "HTTP/1.1 200 OK\r\nconnection: close\r\nconnection: content-length\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        ),
        (
            GET,
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 9\r\nTrailer: T\r\n\r\n2;a=b\r\nok\r\n0\r\nT: 1\r\n\r\nmore",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\nConnection: close\r\n\r\n2;a=b\r\nok\r\n0\r\nT: 1\r\n\r\n",
        ),
        // Answers without content.
        (
            HEAD,
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 12\r\nConnection: close\r\n\r\n",
        ),
        (
            GET,
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        ),
        (
            GET,
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\nConnection: close\r\n\r\n",
        ),
    ] {
        assert_read(context, answer, expected).await;
    }
}

#[tokio::test]
async fn interim_answers_precede_the_final_one_and_unusual_heads_become_regular() {
    let long =
        format!("HTTP/1.1 200 OK\r\nX: {}\r\nContent-Length: 2\r\n\r\nok", "y".repeat(30_000));
    let long_out = long.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    for (context, answer, expected) in [
        (
            GET,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nConnection: x\r\n\r\nHTTP/1.1 204 \r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 \r\nConnection: close\r\n\r\n",
        ),
        (
            OLD,
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 \r\n\r\n",
            "HTTP/1.1 204 \r\nConnection: close\r\n\r\n",
        ),
        // Answers that parsers read in different ways.
        (
            GET,
            "HTTP/1.1 200\r\nA : 1\r\nB: 2\r\n 3\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok",
            "HTTP/1.1 200 \r\nA: 1\r\nB: 2   3\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        ),
        (
            GET,
            "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok",
        ),
        (GET, &long, &long_out),
    ] {
        assert_read(context, answer, expected).await;
    }
}

#[tokio::test]
async fn answers_without_a_length_end_with_the_connection() {
    for (answer, expected) in [
        (
            "HTTP/1.0 200 OK\r\n\r\nall of it",
            "HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nall of it",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\nmore",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\nConnection: close\r\n\r\n0\r\n\r\nmore",
        ),
        // Chunks with a bare LF pass unchanged. Truncated bodies stay truncated.
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\nok\n0\n\n",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nok",
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nok",
        ),
        // Protocols that resemble HTTP.
        (
            "ICY 200 OK\r\nicy-name: radio\r\n\r\n\0\x01",
            "ICY 200 OK\r\nicy-name: radio\r\n\r\n\0\x01",
        ),
        ("HTML of HTTP/0.9", "HTML of HTTP/0.9"),
    ] {
        for step in [1, 5, 1 << 16] {
            assert_eq!(read(answer, GET, step, true).await, expected, "{answer:?}, {step}");
        }
    }
}

#[tokio::test]
async fn answers_that_cannot_be_forwarded_become_a_502() {
    let many = format!("HTTP/1.1 200 OK\r\n{}\r\n", "a: b\r\n".repeat(FIELD_LIMIT + 1));
    let endless = format!("HTTP/1.1 200 OK\r\na: {}", "b".repeat(2 * HEAD_LIMIT));
    for answer in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/2.7 200 OK\r\n\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        &many,
        &endless,
    ] {
        for step in [1, 1 << 18] {
            let out = read(answer, OLD, step, true).await;
            assert!(out.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{answer:.60}: {out}");
            assert!(out.contains("\r\nConnection: close\r\n"), "{out}");
        }
    }
}
