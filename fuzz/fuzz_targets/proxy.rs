//! What programs say to a proxy, SOCKS 5 and HTTP, in pieces; and what its near end tells its exit.
//! A beginning of something understood is never understood as something else, and nothing that a request says
//! becomes another line of what the server gets.

#![no_main]

use std::fmt::Debug;

use libfuzzer_sys::fuzz_target;
use ropewalk_apps::proxy::client::parsers::{
    AnswerContext, AnswerHead, Request, RequestForm, answer, greeting, http, password, request,
};
use ropewalk_apps::proxy::{Host, Target};
use ropewalk_fuzz::Input;

/// Hears all, and before that a part.
fn hears<T, E>(parser: impl Fn(&[u8]) -> Result<Option<(T, usize)>, E>, all: &[u8], part: usize)
where
    T: Debug + PartialEq,
    E: Debug + PartialEq,
{
    let whole = parser(all);
    let (part, end) = (part % (all.len() + 1), all.len());
    let before = parser(&all[..part]);
    match (&whole, &before) {
        // Once something is understood, or wrong, what follows changes nothing.
        (_, Ok(Some((_, used)))) => {
            assert!(*used <= part);
            assert_eq!(whole, before);
        }
        (_, Err(_)) => assert!(whole.is_err(), "{before:?}, then {whole:?}"),
        (Ok(Some((_, used))), Ok(None)) => assert!((part + 1..=end).contains(used)),
        (_, Ok(None)) => {}
    }
}

fn speaks_http(all: &[u8], part: usize) {
    let parser = |bytes: &[u8]| http(bytes, None);
    hears(parser, all, part);
    let Ok(Some((Request { target, form }, _))) = http(all, None) else { return };
    tells(&target);
    let RequestForm::Plain { head, .. } = form else { return };
    let mut fields = [httparse::EMPTY_HEADER; 140];
    let mut again = httparse::Request::new(&mut fields);
    let parsed = again.parse(&head);
    let Ok(httparse::Status::Complete(length)) = parsed else {
        panic!("the server gets {:?}: {parsed:?}", String::from_utf8_lossy(&head))
    };
    assert_eq!(length, head.len(), "something hides behind the head");
    let named = |name| again.headers.iter().filter(|f| f.name.eq_ignore_ascii_case(name)).count();
    assert_eq!((named("host"), named("connection")), (1, 1));
    assert_eq!(named("proxy-authorization"), 0);
    assert!(named("content-length") + named("transfer-encoding") <= 1);
}

/// Answers of servers: programs must read one head, one end and the end of the connection.
fn answers_http(all: &[u8], part: usize) {
    let context =
        AnswerContext { head_only: part.is_multiple_of(2), interim: part.is_multiple_of(3) };
    let whole = answer(all, context);
    if let Ok(Some((_, used))) = answer(&all[..part % (all.len() + 1)], context) {
        assert!(matches!(&whole, Ok(Some((_, again))) if *again == used), "{whole:?}");
    }
    let Ok(Some((head, _))) = whole else { return };
    let (head, closes) = match &head {
        AnswerHead::Interim(head) => (head, 0),
        AnswerHead::Final(head, _) => (head, 1),
    };
    let mut fields = [httparse::EMPTY_HEADER; 300];
    let mut again = httparse::Response::new(&mut fields);
    let parsed = again.parse(head);
    let Ok(httparse::Status::Complete(length)) = parsed else {
        panic!("the program gets {:?}: {parsed:?}", String::from_utf8_lossy(head))
    };
    assert_eq!(length, head.len(), "the head contains a second message");
    let named = |name| again.headers.iter().filter(|f| f.name.eq_ignore_ascii_case(name)).count();
    assert_eq!(named("connection"), closes);
    for name in ["keep-alive", "proxy-connection", "proxy-authenticate", "upgrade", "te"] {
        assert_eq!(named(name), 0, "{name}");
    }
    assert!(named("content-length") <= usize::from(named("transfer-encoding") == 0));
}

fn tells(target: &Target) {
    assert_ne!(target.port, 0);
    assert_eq!(Target::decode(&target.encode()).as_ref(), Ok(target));
    if let Host::Name(name) = &target.host {
        assert!(name.bytes().all(|c| c.is_ascii_graphic()), "{name:?}");
    }
    assert_eq!(Target::parse(&target.to_string(), None).as_ref(), Ok(target));
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let (kind, part) = (input.byte(), input.number() as usize);
    let said = input.0;
    match kind % 6 {
        0 => hears(greeting, said, part),
        1 => hears(password, said, part),
        2 => {
            hears(request, said, part);
            if let Ok(Some((target, _))) = request(said) {
                tells(&target);
            }
        }
        3 => speaks_http(said, part),
        4 => {
            if let Ok(target) = Target::decode(said) {
                tells(&target);
            }
        }
        _ => answers_http(said, part),
    }
});
