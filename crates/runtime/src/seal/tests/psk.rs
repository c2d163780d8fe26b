//! Handshakes with a pre-shared key, and which of them fail.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ropewalk_base::Time;

use super::*;
use crate::seal::initiator::HandshakeError;
use crate::seal::{Grant, PresharedKey, Refusal};

const NOW: Time = Time::from_secs(1000);

fn psk() -> PresharedKey {
    PresharedKey::generate().expect("random numbers")
}

fn first_with(pair: &mut Pair, psk: Option<&PresharedKey>) -> (Initiator, Vec<u8>) {
    pair.date += 1;
    let date = Timestamp::from_unix_nanos(pair.date);
    let psk = psk.cloned();
    Initiator::with_psk(&pair.client, pair.server_key, psk, date, CLIENT, b"hi")
        .expect("a datagram")
}

/// A responder with these pre-shared keys: the peer's own, and that for all others.
fn pair_with(own: Option<&PresharedKey>, of_all: Option<&PresharedKey>) -> Pair {
    let client = secret();
    let grant = Grant { psk: own.cloned(), expires: None };
    let mut pair = Pair::with(client.clone(), Allowed::Peers([(client.public(), grant)].into()));
    pair.server.set_psk(of_all.cloned());
    pair
}

#[test]
fn there_is_a_session_where_both_have_the_same_psk_or_neither_has_one() {
    let (a, b) = (psk(), psk());
    for (client, own, of_all, refusal) in [
        (None, None, None, None),
        (Some(&a), Some(&a), None, None),
        (Some(&a), None, Some(&a), None),
        // The peer's own key takes precedence.
        (Some(&a), Some(&a), Some(&b), None),
        (None, Some(&a), None, Some(Refusal::PskMissing)),
        (None, None, Some(&a), Some(Refusal::PskMissing)),
        (Some(&a), None, None, Some(Refusal::PskUnexpected)),
    ] {
        let mut pair = pair_with(own, of_all);
        let (mut initiator, first) = first_with(&mut pair, client);
        assert_eq!(first[0], if client.is_some() { 5 } else { 1 });
        let answer = pair.answer(NOW, home(), &first);
        if let Some(why) = refusal {
            assert!(is_drop(&answer), "{answer:?}");
            let refused = pair.server.take_refused();
            assert_eq!((refused[0].peer, refused[0].why), (pair.client.public(), why));
            assert!(pair.server.take_refused().is_empty());
            continue;
        }
        let mut made = established(answer);
        assert_eq!(made.payload, b"hi");
        let mut client = session(initiator.finish(NOW, &made.reply));
        let datagram = sealed(&mut client, 0, b"x");
        assert_eq!(opened(&mut made.session, NOW, &datagram), Ok((0, b"x".to_vec())));
    }
}

#[test]
fn with_another_psk_there_is_no_session() {
    let (a, b) = (psk(), psk());
    for (own, of_all) in [(Some(&b), None), (None, Some(&b)), (Some(&b), Some(&a))] {
        let mut pair = pair_with(own, of_all);
        let (mut initiator, first) = first_with(&mut pair, Some(&a));
        let made = established(pair.answer(NOW, home(), &first));
        let error = initiator.finish(NOW, &made.reply).expect_err("another key");
        assert_eq!(error, HandshakeError::Forged);
    }
}

#[test]
fn the_kind_of_a_first_datagram_cannot_be_changed_on_its_way() {
    let key = psk();
    for (client, own) in [(Some(&key), None), (None, Some(&key))] {
        let mut pair = pair_with(own, None);
        let (_, mut first) = first_with(&mut pair, client);
        first[0] ^= 4;
        first.truncate(first.len() - 16);
        crate::seal::mac::MacKey::of(&pair.server_key).sign_first(&mut first);
        assert!(is_drop(&pair.answer(NOW, home(), &first)));
        // The responder could not decrypt it, so it does not know the initiator.
        assert!(pair.server.take_refused().is_empty());
    }
}

#[test]
fn anyone_who_has_the_psk_gets_in_and_nobody_else() {
    let key = psk();
    let mut pair = Pair::with(secret(), Allowed::Anyone);
    pair.server.set_psk(Some(key.clone()));
    for (client, gets_in) in [(Some(&key), true), (None, false)] {
        let (mut initiator, first) = first_with(&mut pair, client);
        let retry = reply(pair.answer(NOW, home(), &first));
        let Ok(Finish::Again(second)) = initiator.finish(NOW, &retry) else { panic!("no retry") };
        assert_eq!(second[0], first[0]);
        let answer = pair.answer(NOW, home(), &second);
        assert_eq!(matches!(answer, Answer::Established(_)), gets_in, "{answer:?}");
    }
}

#[test]
fn an_expired_entry_gets_no_session_from_that_date_on() {
    const EXPIRES: u64 = 1000;
    for (date, refusal) in [
        ((|| Timestamp::from_unix_nanos(EXPIRES - 1)) as fn() -> Timestamp, None),
        (|| Timestamp::from_unix_nanos(EXPIRES), Some(Refusal::Expired)),
    ] {
        let client = secret();
        let expires = Some(Timestamp::from_unix_nanos(EXPIRES));
        let grant = Grant { psk: None, expires };
        let mut pair =
            Pair::with(client.clone(), Allowed::Peers([(client.public(), grant)].into()));
        pair.server.set_date(date);
        let (_, first) = pair.first(b"");
        let answer = pair.answer(NOW, home(), &first);
        assert_eq!(is_drop(&answer), refusal.is_some(), "{answer:?}");
        assert_eq!(pair.server.take_refused().first().map(|refused| refused.why), refusal);
    }
}

#[test]
fn the_list_can_be_replaced_and_what_was_seen_of_those_who_stay_is_kept() {
    let mut pair = Pair::new();
    let (friend, other) = (pair.client.clone(), secret());
    let (_, old) = pair.first(b"");
    established(pair.answer(NOW, home(), &old));
    let list = |keys: &[&SecretKey]| -> BTreeMap<_, _> {
        keys.iter().map(|key| (key.public(), Grant::default())).collect()
    };
    pair.server.set_allowed(Allowed::Peers(list(&[&friend, &other])));
    assert!(is_drop(&pair.answer(NOW, home(), &old)), "a replay");
    pair.client = other;
    let (_, first) = pair.first(b"");
    established(pair.answer(NOW, home(), &first));
    assert_eq!(pair.server.remembered(), 2);

    pair.server.set_allowed(Allowed::Peers(list(&[&friend])));
    assert_eq!(pair.server.remembered(), 1);
    let (_, first) = pair.first(b"");
    assert!(is_drop(&pair.answer(NOW, home(), &first)));
    assert_eq!(pair.server.take_refused()[0].why, Refusal::NotListed);
    pair.server.set_allowed(Allowed::Anyone);
    let (_, first) = pair.first(b"");
    assert_eq!(reply(pair.answer(NOW, home(), &first))[0], 3, "the address is to be proved");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Without the key no handshake completes, however the Reply is modified.
    #[test]
    fn no_session_comes_of_a_changed_reply(at in 6_usize..59, by in 1_u8..) {
        let key = psk();
        let mut pair = pair_with(Some(&key), None);
        let (mut initiator, first) = first_with(&mut pair, Some(&key));
        let genuine = established(pair.answer(NOW, home(), &first)).reply;
        let mut changed = genuine[..genuine.len() - 16].to_vec();
        changed[at] ^= by;
        let mac = *first.last_chunk().expect("a MAC");
        crate::seal::mac::MacKey::of(&pair.server_key).sign_answer(&mac, &mut changed);
        prop_assert!(initiator.finish(NOW, &changed).is_err());
        session(initiator.finish(NOW, &genuine));
    }
}
