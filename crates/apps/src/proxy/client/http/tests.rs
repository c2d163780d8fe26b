use super::*;

fn parsed(text: &str) -> Result<Option<(Request, usize)>, HttpError> {
    parse(text.as_bytes(), None)
}

#[test]
fn connect_leads_to_its_authority_and_leaves_what_follows() {
    let text = "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n";
    for n in 0..text.len() {
        assert_eq!(parsed(&text[..n]), Ok(None), "{n}");
    }
    let (request, length) = parsed(&format!("{text}\x16\x03")).unwrap().unwrap();
    assert_eq!(request.target.to_string(), "example.org:443");
    assert_eq!((request.form, length), (RequestForm::Tunnel, text.len()));
}

#[test]
fn a_request_with_an_absolute_uri_is_written_anew_for_its_server() {
    for (text, target, head, body) in [
        (
            "GET http://example.org/a?b#c HTTP/1.1\r\nHost: evil\r\nAccept: */*\r\n\r\n",
            "example.org:80",
            "GET /a?b HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            Length::Bytes(0),
        ),
        (
            "POST HTTP://[::1]:81?q HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\
             Connection: X-Mine, content-length\r\nX-Mine: 1\r\nContent-Length: 12\r\n\r\n",
            "[::1]:81",
            "POST /?q HTTP/1.0\r\nHost: [::1]:81\r\nContent-Length: 12\r\nConnection: close\r\n\r\n",
            Length::Bytes(12),
        ),
        (
            "PUT http://a/ HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n",
            "a:80",
            "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n",
            Length::Chunked,
        ),
        (
            "OPTIONS http://a HTTP/1.1\r\n\r\n",
            "a:80",
            "OPTIONS * HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            Length::Bytes(0),
        ),
    ] {
        let (request, _) = parsed(text).unwrap().unwrap();
        assert_eq!(request.target.to_string(), target);
        let RequestForm::Plain { head: written, body: length, .. } = request.form else {
            panic!("{text}")
        };
        assert_eq!((String::from_utf8(written).unwrap().as_str(), length), (head, body));
    }
}

#[test]
fn what_is_no_request_for_a_proxy_gets_a_status_that_says_so() {
    let many = format!("GET http://a/ HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(FIELD_LIMIT + 1));
    for (text, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET index.html HTTP/1.1\r\n\r\n", 400),
        ("GET https://a/ HTTP/1.1\r\n\r\n", 501),
        ("GET ftp://a/ HTTP/1.1\r\n\r\n", 501),
        ("GET http://user@a/ HTTP/1.1\r\n\r\n", 400),
        ("GET http:///x HTTP/1.1\r\n\r\n", 400),
        ("CONNECT example.org HTTP/1.1\r\n\r\n", 400),
        ("CONNECT example.org:0 HTTP/1.1\r\n\r\n", 400),
        ("\x05\x01\x00", 400),
        ("\x16\x03\x01\x02", 400),
        (&many, 431),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 400),
        // Request smuggling: requests that two readers would frame differently (RFC 9112, 6.1, 6.3, 5.1,
        // 5.2, 11.2).
        ("POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (
            "POST http://a/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
            400,
        ),
        ("POST http://a/ HTTP/1.1\r\nTransfer-Encoding: chunked, identity\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nTransfer-Encoding: \x0bchunked\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nTransfer-Encoding:\r\n chunked\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\n 2\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length : 1\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 0x1\r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: \r\n\r\n", 400),
        ("POST http://a/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", 400),
        ("GET http://a/ HTTP/1.1\r\nX: a\rContent-Length: 5\r\n\r\n", 400),
        ("GET http://a/ HTTP/1.1\r\nX: a\0b\r\n\r\n", 400),
        ("GET http://a/ HTTP/1.1\r\n X: a\r\n\r\n", 400),
        ("GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("CONNECT a:1 HTTP/1.1\r\nContent-Length: 9\r\n\r\n", 400),
        ("CONNECT a:1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ] {
        let error = parsed(text).unwrap_err();
        assert_eq!(error.status(), status, "{text}: {error}");
        let answer = String::from_utf8(refusal(status, &error.to_string())).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
}

#[test]
fn where_a_password_is_asked_for_nothing_goes_without_it() {
    let credentials = Credentials::parse("anne:p:w").unwrap();
    for (field, status) in [
        ("", Some(407)),
        ("Proxy-Authorization: Basic YW5uZTpwOnc=\r\n", None),
        ("proxy-authorization: basic YW5uZTpwOnc=\r\n", None),
        ("Proxy-Authorization: Basic YW5uZTpwOng=\r\n", Some(407)),
        ("Proxy-Authorization: Basic YW5uZQ==\r\n", Some(407)),
        ("Proxy-Authorization: Basic !\r\n", Some(407)),
        ("Proxy-Authorization: Bearer YW5uZTpwOnc=\r\n", Some(407)),
        ("Authorization: Basic YW5uZTpwOnc=\r\n", Some(407)),
    ] {
        let text = format!("GET http://a/ HTTP/1.1\r\n{field}\r\n");
        let result = parse(text.as_bytes(), Some(&credentials));
        assert_eq!(result.as_ref().err().map(HttpError::status), status, "{field}");
        if let Ok(Some((Request { form: RequestForm::Plain { head, .. }, .. }, _))) = result {
            assert!(!String::from_utf8(head).unwrap().contains("YW5u"), "not for the server");
        }
    }
}
