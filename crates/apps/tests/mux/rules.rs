//! Violations by a peer, and the order of streams.

use bytes::Bytes;
use ropewalk_apps::mux::{
    Event, Limits, Message, Mux, Read, Refusal, Role, StreamError, Violation,
};

fn mux(role: Role) -> Mux {
    Mux::new(role, Limits::default(), 8)
}

fn tell(mux: &mut Mux, id: u16, message: Message) -> Result<(), Violation> {
    let (ppid, bytes) = message.encode();
    mux.handle(id, ppid, bytes)
}

fn open() -> Message {
    Message::Open { credit: 1 << 20, target: Bytes::from_static(b"there") }
}

fn data(n: usize) -> Message {
    Message::Data(vec![7; n].into())
}

#[test]
fn a_peer_that_breaks_the_rules_is_found_out() {
    let early = 16 << 10;
    for (said, last, expected) in [
        (vec![], (2, open()), Err(Violation::Number(2))),
        (vec![], (9, open()), Err(Violation::Number(9))),
        (vec![(1, open())], (1, open()), Err(Violation::Number(1))),
        (vec![(1, open())], (1, data(early)), Ok(())),
        (vec![(1, open()), (1, data(early))], (1, data(1)), Err(Violation::Credit(1))),
        (vec![(1, open()), (1, Message::Fin)], (1, data(1)), Err(Violation::Order(1))),
        (vec![(1, open()), (1, Message::Fin)], (1, Message::Fin), Err(Violation::Order(1))),
        (vec![(1, open())], (1, Message::Opened { credit: 1 }), Err(Violation::Order(1))),
        (vec![(1, open())], (1, Message::Refused(Refusal::new(9, ""))), Err(Violation::Order(1))),
        // For a stream that has ended: late, but not an error.
        (vec![], (3, data(1)), Ok(())),
        (vec![], (3, Message::Reset), Ok(())),
        // The number may not be reused before the peer has received the refusal.
        (vec![(1, open()), (1, Message::Reset)], (1, open()), Err(Violation::Number(1))),
    ] {
        let mut mux = mux(Role::Connector);
        for (id, message) in said.clone() {
            tell(&mut mux, id, message).unwrap();
        }
        assert_eq!(tell(&mut mux, last.0, last.1.clone()), expected, "{said:?}, then {last:?}");
    }
}

#[test]
fn what_is_late_of_a_stream_before_does_not_touch_the_one_that_has_its_number_now() {
    let mut mux = mux(Role::Connector);
    let key = mux.open(Bytes::from_static(b"x")).unwrap();
    for late in [Message::Credit(u64::MAX), Message::Reset, Message::Fin, data(5)] {
        tell(&mut mux, 0, late).unwrap();
    }
    assert_eq!(mux.is_open(key), Ok(false));
    tell(&mut mux, 0, Message::Opened { credit: 99 }).unwrap();
    assert_eq!(mux.is_open(key), Ok(true));
    assert_eq!(mux.read(key, &mut [0; 9]), Ok(Read::Nothing));
}

#[test]
fn a_refusal_tells_why_and_frees_the_number() {
    let mut mux = mux(Role::Connector);
    let keys: Vec<_> = (0..4).map(|_| mux.open(Bytes::new()).unwrap()).collect();
    assert!(mux.open(Bytes::new()).is_err(), "four even numbers below eight");
    let why = Refusal::new(5, "nobody there");
    tell(&mut mux, 4, Message::Refused(why.clone())).unwrap();
    let room =
        std::iter::from_fn(|| mux.poll_event()).filter(|e| *e == Event::StreamNumberFree).count();
    assert_eq!(room, 1);
    assert_eq!(mux.write(keys[2], b"a"), Err(StreamError::Refused(why)));
    mux.release(keys[2]);
    assert!(mux.open(Bytes::new()).is_ok());
}

#[test]
fn a_page_does_not_wait_for_a_download() {
    let mut mux = mux(Role::Acceptor);
    let mut keys = Vec::new();
    for id in [0, 2, 4] {
        tell(&mut mux, id, open()).unwrap();
    }
    while let Some(event) = mux.poll_event() {
        if let Event::Offered(key) = event {
            assert!(mux.accept(key));
            keys.push(key);
        }
    }
    while mux.poll_transmit(1000).is_some() {}
    let bulk = vec![0; 64 << 10];
    mux.write(keys[0], &bulk).unwrap();
    mux.write(keys[1], &bulk).unwrap();
    let ids = |mux: &mut Mux, n| -> Vec<u16> {
        (0..n).map(|_| mux.poll_transmit(1000).unwrap().0).collect()
    };
    assert_eq!(ids(&mut mux, 5), [0, 2, 0, 2, 0], "each in turn");
    mux.write(keys[2], &[0; 1500]).unwrap();
    let after = ids(&mut mux, 5);
    assert_eq!(after[0], 4, "who was idle goes first");
    assert_eq!(after[1..].iter().filter(|id| **id == 4).count(), 1, "then in turn: {after:?}");
}

#[test]
fn an_end_that_is_gone_leaves_what_was_whole_and_breaks_off_the_rest() {
    let mut mux = mux(Role::Acceptor);
    for id in [0, 2] {
        tell(&mut mux, id, open()).unwrap();
        tell(&mut mux, id, data(3)).unwrap();
    }
    tell(&mut mux, 2, Message::Fin).unwrap();
    let keys: Vec<_> = std::iter::from_fn(|| mux.poll_event())
        .filter_map(|event| if let Event::Offered(key) = event { Some(key) } else { None })
        .collect();
    keys.iter().for_each(|key| assert!(mux.accept(*key)));
    mux.end();
    let mut out = [0; 9];
    assert_eq!(mux.read(keys[0], &mut out), Err(StreamError::Reset));
    assert_eq!(mux.read(keys[1], &mut out), Ok(Read::Bytes(3)));
    assert_eq!(mux.read(keys[1], &mut out), Ok(Read::End));
    assert_eq!(mux.write(keys[1], b"x"), Err(StreamError::Reset));
    assert!(mux.open(Bytes::new()).is_err());
    keys.iter().for_each(|key| mux.release(*key));
    assert!(mux.is_empty());
    assert_eq!(mux.reserved(), 0);
}
