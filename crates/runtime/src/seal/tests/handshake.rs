//! Which initiators get a session, and which are refused.

use ropewalk_base::{Duration, Time};

use super::*;
use crate::seal::cipher::{Cipher, CipherOffer};
use crate::seal::initiator::HandshakeError;
use crate::seal::wire::{FIRST_MAX, FIRST_MIN, Kind, PAYLOAD_MAX, VERSION, session_id};

const NOW: Time = Time::from_secs(1000);

#[test]
fn two_ends_agree_and_talk_both_ways() {
    let mut pair = Pair::new();
    let (mut initiator, first) = pair.first(b"hello");
    let made = established(pair.answer(NOW, home(), &first));
    assert_eq!(made.payload, b"hello");
    assert_eq!(made.peer, pair.client.public());
    assert_eq!(session_id(&made.reply), Some(CLIENT));
    let mut server = made.session;
    let mut client = session(initiator.finish(NOW, &made.reply));
    assert_eq!((client.id(), client.peer_id()), (CLIENT, SERVER));
    assert_eq!((server.id(), server.peer_id()), (SERVER, CLIENT));
    assert_eq!((client.peer(), server.peer()), (pair.server_key, pair.client.public()));
    assert!(client.is_confirmed() && !server.is_confirmed());

    let up = sealed(&mut client, 3, b"up");
    assert_eq!(session_id(&up), Some(SERVER));
    assert_eq!(opened(&mut server, NOW, &up), Ok((3, b"up".to_vec())));
    assert!(server.is_confirmed());
    let down = sealed(&mut server, 200, b"");
    assert_eq!(opened(&mut client, NOW, &down), Ok((200, Vec::new())));
}

#[test]
fn payloads_of_all_sizes_arrive_and_longer_ones_are_refused() {
    let mut pair = Pair::new();
    for (size, length) in [(0, FIRST_MIN), (1, FIRST_MIN), (500, 653), (PAYLOAD_MAX, FIRST_MAX)] {
        let payload = vec![7; size];
        let (_, first) = pair.first(&payload);
        assert_eq!(first.len(), length, "payload of {size}");
        assert_eq!(established(pair.answer(NOW, home(), &first)).payload, payload);
    }
    let (key, payload) = (pair.server_key, [0; PAYLOAD_MAX + 1]);
    let date = Timestamp::from_unix_nanos(1);
    let error = Initiator::new(&pair.client, key, date, CLIENT, &payload).expect_err("refused");
    assert_eq!(error, HandshakeError::PayloadTooLong(PAYLOAD_MAX + 1));
}

#[test]
fn a_key_that_is_not_allowed_gets_no_answer() {
    let mut pair = Pair::new();
    pair.client = secret();
    let (_, first) = pair.first(b"");
    assert!(is_drop(&pair.answer(NOW, home(), &first)));
    assert_eq!(pair.server.remembered(), 0);
}

#[test]
fn who_asks_for_another_responder_gets_no_answer() {
    let mut pair = Pair::new();
    pair.server_key = secret().public();
    let (_, first) = pair.first(b"");
    assert!(is_drop(&pair.answer(NOW, home(), &first)));
}

#[test]
fn a_responder_with_another_secret_cannot_answer() {
    let mut pair = Pair::new();
    let (mut initiator, first) = pair.first(b"");
    let mut other = Pair::with(pair.client.clone(), Allowed::Anyone);
    assert!(is_drop(&other.answer(NOW, home(), &first)));
    // A genuine reply to another handshake does not answer this one.
    let (_, second) = pair.first(b"");
    let reply = established(pair.answer(NOW, home(), &second)).reply;
    assert_eq!(initiator.finish(NOW, &reply).expect_err("refused"), HandshakeError::Forged);
}

#[test]
fn the_cipher_is_the_best_that_both_have() {
    let (aes, chacha) = (Cipher::Aes128Gcm, Cipher::ChaCha20Poly1305);
    let all = CipherOffer::of_byte(0xff);
    for (client, server, cipher) in [
        (all, all, Some(aes)),
        (all, CipherOffer::only(chacha), Some(chacha)),
        (CipherOffer::only(chacha), all, Some(chacha)),
        (CipherOffer::only(aes), CipherOffer::only(chacha), None),
    ] {
        let mut pair = Pair::new();
        pair.server.set_offer(server);
        let (mut initiator, _) = pair.first(b"");
        initiator.set_offer(client);
        let first = initiator.restart(Timestamp::from_unix_nanos(0)).expect("a datagram");
        let answer = pair.answer(NOW, home(), &first);
        let Some(cipher) = cipher else {
            assert!(is_drop(&answer), "{answer:?}");
            continue;
        };
        let mut made = established(answer);
        let mut session = session(initiator.finish(NOW, &made.reply));
        assert_eq!((session.cipher(), made.session.cipher()), (cipher, cipher));
        let datagram = sealed(&mut session, 0, b"x");
        assert_eq!(opened(&mut made.session, NOW, &datagram), Ok((0, b"x".to_vec())));
    }
}

#[test]
fn a_first_datagram_leads_to_one_session_and_an_older_one_to_none() {
    let mut pair = Pair::new();
    let (_, old) = pair.first(b"");
    let (mut initiator, new) = pair.first(b"");
    let made = established(pair.answer(NOW, home(), &new));
    // For a while, every source of the datagram gets the same Reply.
    for from in [home(), address("198.51.100.1:9")] {
        assert_eq!(reply(pair.answer(NOW, from, &new)), made.reply);
        assert!(is_drop(&pair.answer(NOW, from, &old)));
    }
    let late = NOW.saturating_add(Duration::from_secs(86_400 * 365));
    assert!(is_drop(&pair.answer(late, home(), &new)));
    let refused = reply(pair.answer(late, home(), &old));
    assert_eq!(refused[0], Kind::Clock as u8);
    assert_eq!(pair.server.remembered(), 1);
    session(initiator.finish(NOW, &made.reply));
}

#[test]
fn a_clock_that_was_set_back_is_named_and_a_repeated_datagram_is_not() {
    const DAY: u64 = 86_400_000_000_000;
    let mut pair = Pair::new();
    pair.date = 10 * DAY;
    let (_, first) = pair.first(b"");
    established(pair.answer(NOW, home(), &first));
    let hour = NOW.saturating_add(Duration::from_secs(3600));
    assert!(is_drop(&pair.answer(hour, home(), &first)));
    assert!(pair.server.take_refused().is_empty(), "the same datagram again");
    for _ in 0..3 {
        pair.date = 8 * DAY;
        let (_, back) = pair.first(b"");
        assert_eq!(reply(pair.answer(hour, home(), &back))[0], Kind::Clock as u8);
    }
    let refused = pair.server.take_refused();
    assert_eq!((refused.len(), refused[0].peer), (1, pair.client.public()));
    let why = refused[0].why.to_string();
    assert!(why.contains("clock") && why.contains("2 days"), "{why}");
    pair.date = 11 * DAY;
    let (_, right) = pair.first(b"");
    established(pair.answer(hour, home(), &right));
}

#[test]
fn a_lost_reply_is_made_good_by_another_first_datagram() {
    let mut pair = Pair::new();
    let (mut initiator, first) = pair.first(b"hello");
    let lost = established(pair.answer(NOW, home(), &first)).reply;
    // Although the clock stands still, the next timestamp is later.
    let second = initiator.restart(Timestamp::from_unix_nanos(pair.date)).expect("a datagram");
    let mut made = established(pair.answer(NOW, home(), &second));
    assert_eq!(made.payload, b"hello");
    assert_eq!(initiator.finish(NOW, &lost).expect_err("late"), HandshakeError::Forged);
    let mut client = session(initiator.finish(NOW, &made.reply));
    let datagram = sealed(&mut client, 0, b"x");
    assert_eq!(opened(&mut made.session, NOW, &datagram), Ok((0, b"x".to_vec())));
    assert_eq!(initiator.finish(NOW, &made.reply).expect_err("done"), HandshakeError::NotOurs);
}

#[test]
fn anyone_proves_the_address_first_and_is_known_by_its_key() {
    let mut pair = Pair::with(secret(), Allowed::Anyone);
    let (mut initiator, first) = pair.first(b"hello");
    let retry = reply(pair.answer(NOW, home(), &first));
    assert_eq!(pair.server.remembered(), 0, "nothing is kept of the unproved");
    let Ok(Finish::Again(second)) = initiator.finish(NOW, &retry) else { panic!("no retry") };
    let made = established(pair.answer(NOW, home(), &second));
    assert_eq!((made.peer, &made.payload[..]), (pair.client.public(), &b"hello"[..]));
    session(initiator.finish(NOW, &made.reply));
    // A replay gets the same Reply and creates no other session.
    assert_eq!(reply(pair.answer(NOW, home(), &second)), made.reply);
}

#[test]
fn a_peer_of_another_version_is_told_which_one_is_spoken() {
    let mut pair = Pair::new();
    let key = crate::seal::mac::MacKey::of(&pair.server_key);
    let (_, mut first) = pair.first(b"");
    for version in [0, 1, 255] {
        // As an initiator of that version would send it: only the first bytes and the MAC are in our format.
        first[1] = version;
        first.truncate(first.len() - 16);
        let mac = key.sign_first(&mut first);
        let answer = reply(pair.answer(NOW, home(), &first));
        assert!(answer.len() <= first.len());
        assert!(key.check_answer(&mac, &answer));
        assert_eq!((answer[0], &answer[6..answer.len() - 16]), (4, &[VERSION][..]));
    }
    assert_eq!(pair.server.remembered(), 0);
    let error = HandshakeError::OtherVersion(vec![2]).to_string();
    assert!(error.contains("same release"), "{error}");
}
