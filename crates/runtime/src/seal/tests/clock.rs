//! First datagrams with an old date: only a genuine initiator learns the responder's date.

use ropewalk_base::Time;

use super::*;
use crate::seal::HandshakeError;
use crate::seal::clock_refusal::ClockRefusal;
use crate::seal::psk::PresharedKey;
use crate::seal::wire::{CLOCK_LEN, FIRST_MIN, Kind, MAC_LEN};

const NOW: Time = Time::from_secs(1000);
const DAY: u64 = 86_400_000_000_000;
const RESPONDERS_DATE: Timestamp = Timestamp::from_unix_nanos(100 * DAY);

/// A pair whose client has had a session at day 10.
fn known() -> Pair {
    known_with(Pair::new())
}

fn known_with(mut pair: Pair) -> Pair {
    pair.server.set_date(|| RESPONDERS_DATE);
    pair.date = 10 * DAY;
    let (_, first) = pair.first(b"");
    established(pair.answer(NOW, home(), &first));
    pair
}

/// A first datagram whose date is that of day 8, and the answer.
fn set_back(pair: &mut Pair) -> (Initiator, Vec<u8>, Vec<u8>) {
    pair.date = 8 * DAY;
    let (initiator, first) = pair.first(b"");
    let answer = reply(pair.answer(NOW, home(), &first));
    (initiator, first, answer)
}

fn error(initiator: &mut Initiator, answer: &[u8]) -> HandshakeError {
    initiator.finish(NOW, answer).expect_err("no session")
}

#[test]
fn the_initiator_learns_both_dates_and_a_later_date_is_admitted() {
    let mut pair = known();
    let (mut initiator, first, answer) = set_back(&mut pair);
    assert!(answer.len() == CLOCK_LEN && answer.len() < FIRST_MIN && FIRST_MIN <= first.len());
    let at = Timestamp::from_unix_nanos;
    let expected =
        ClockRefusal { own: at(8 * DAY + 1), peer: RESPONDERS_DATE, newest: at(10 * DAY + 1) };
    assert_eq!(error(&mut initiator, &answer), HandshakeError::OldDate(expected));
    // The attempt has ended, and the next one gets a session.
    assert_eq!(error(&mut initiator, &answer), HandshakeError::NotOurs);
    let second = initiator.restart(at(11 * DAY)).expect("a datagram");
    let made = established(pair.answer(NOW, home(), &second));
    session(initiator.finish(NOW, &made.reply));
}

#[test]
fn refusing_a_date_leaves_no_state() {
    let mut pair = known();
    let (mut again, first, answer) = set_back(&mut pair);
    for _ in 0..3 {
        let another = reply(pair.answer(NOW, home(), &first));
        assert_ne!(another, answer, "nothing is kept, so each answer has keys of its own");
    }
    assert_eq!(pair.server.remembered(), 1);
    let at = Timestamp::from_unix_nanos(10 * DAY + 2);
    let newer = again.restart(at).expect("a datagram");
    established(pair.answer(NOW, home(), &newer));
}

#[test]
fn nobody_but_the_initiator_of_that_datagram_can_read_the_answer() {
    let mut pair = known();
    let (mut owner, _, answer) = set_back(&mut pair);
    // An attempt of the same key with another ephemeral key, as an attacker without either would have it.
    let (mut other, _) = pair.first(b"");
    assert_eq!(error(&mut other, &answer), HandshakeError::Forged);
    for date in [RESPONDERS_DATE.as_unix_nanos(), 10 * DAY + 1] {
        let clear = date.to_be_bytes();
        assert!(!answer.windows(clear.len()).any(|bytes| bytes == clear), "it is sealed");
    }
    assert!(matches!(error(&mut owner, &answer), HandshakeError::OldDate(_)));
}

#[test]
fn no_forged_answer_is_believed_and_none_keeps_the_genuine_one_out() {
    let mut pair = known();
    let key = crate::seal::mac::MacKey::of(&pair.server_key);
    let (mut initiator, first, answer) = set_back(&mut pair);
    let mac = *first.last_chunk::<MAC_LEN>().expect("a MAC");
    // Anyone who has seen the first datagram can compute the MAC.
    let signed = |mut body: Vec<u8>| {
        key.sign_answer(&mac, &mut body);
        body
    };
    let body = &answer[..answer.len() - MAC_LEN];
    for at in 6..body.len() {
        let mut changed = body.to_vec();
        changed[at] ^= 1;
        assert_eq!(error(&mut initiator, &signed(changed)), HandshakeError::Forged, "byte {at}");
    }
    for kind in [Kind::Reply, Kind::Retry] {
        let mut relabelled = body.to_vec();
        relabelled[0] = kind as u8;
        assert_eq!(error(&mut initiator, &signed(relabelled)), HandshakeError::Forged);
    }
    for length in [0, 16, body.len() - 1] {
        let cut = signed(body[..length.max(6)].to_vec());
        assert_eq!(error(&mut initiator, &cut), HandshakeError::Forged);
    }
    assert!(matches!(error(&mut initiator, &answer), HandshakeError::OldDate(_)));
}

#[test]
fn a_reply_is_not_taken_for_a_clock() {
    let mut pair = Pair::new();
    let key = crate::seal::mac::MacKey::of(&pair.server_key);
    let (mut initiator, first) = pair.first(b"");
    let genuine = established(pair.answer(NOW, home(), &first)).reply;
    let mut relabelled = genuine[..genuine.len() - MAC_LEN].to_vec();
    relabelled[0] = Kind::Clock as u8;
    key.sign_answer(first.last_chunk().expect("a MAC"), &mut relabelled);
    assert_eq!(error(&mut initiator, &relabelled), HandshakeError::Forged);
    session(initiator.finish(NOW, &genuine));
}

#[test]
fn keys_that_are_not_allowed_any_more_get_no_answer() {
    let mut pair = known();
    let (_, first, _) = set_back(&mut pair);
    pair.server.set_allowed(Allowed::Keys([secret().public()].into()));
    assert!(is_drop(&pair.answer(NOW, home(), &first)));
}

#[test]
fn the_answer_needs_the_pre_shared_key() {
    let psk = || PresharedKey::generate().expect("random numbers");
    let (right, wrong) = (psk(), psk());
    let mut pair = Pair::new();
    let allowed = Allowed::Keys([pair.client.public()].into());
    pair.server.set_psk(Some(right.clone()));
    pair.server.set_allowed(allowed);
    pair.server.set_date(|| RESPONDERS_DATE);
    let first = |pair: &Pair, psk: Option<&PresharedKey>, date| {
        let (date, key) = (Timestamp::from_unix_nanos(date), pair.server_key);
        Initiator::with_psk(&pair.client, key, psk.cloned(), date, CLIENT, b"").expect("started")
    };
    let (_, newest) = first(&pair, Some(&right), 10 * DAY);
    established(pair.answer(NOW, home(), &newest));
    let (_, without) = first(&pair, None, 8 * DAY);
    assert!(is_drop(&pair.answer(NOW, home(), &without)));
    let (mut initiator, old) = first(&pair, Some(&wrong), 8 * DAY);
    let answer = reply(pair.answer(NOW, home(), &old));
    assert_eq!(error(&mut initiator, &answer), HandshakeError::Forged);
    let (mut initiator, old) = first(&pair, Some(&right), 8 * DAY);
    let answer = reply(pair.answer(NOW, home(), &old));
    assert!(matches!(error(&mut initiator, &answer), HandshakeError::OldDate(_)));
}

#[test]
fn old_dates_count_as_handshakes_for_the_rate_limit() {
    let mut pair = known();
    pair.date = 8 * DAY;
    let answers: Vec<_> = (0..300)
        .map(|_| {
            let (_, first) = pair.first(b"");
            reply(pair.answer(NOW, home(), &first))
        })
        .collect();
    let clocks = answers.iter().filter(|answer| answer[0] == Kind::Clock as u8).count();
    assert_eq!(clocks, 99, "a hundred a second with that of `known`");
    let others = answers.iter().filter(|answer| answer[0] == Kind::Retry as u8).count();
    assert_eq!(clocks + others, 300);
}
