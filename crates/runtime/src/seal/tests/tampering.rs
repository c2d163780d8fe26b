//! A change of any byte of any datagram is detected.

use proptest::prelude::*;
use ropewalk_base::Time;

use super::*;
use crate::seal::initiator::HandshakeError;

const NOW: Time = Time::from_secs(1000);

/// All datagrams that differ from this one in one bit, all truncated ones, and several longer ones.
fn changed(datagram: &[u8]) -> Vec<Vec<u8>> {
    let flipped = (0..datagram.len() * 8).map(|bit| {
        let mut changed = datagram.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        changed
    });
    let cut = (0..datagram.len()).map(|length| datagram[..length].to_vec());
    let longer = [1, 16, 1000].map(|more| [datagram, &vec![0; more]].concat());
    flipped.chain(cut).chain(longer).collect()
}

#[test]
fn a_changed_first_datagram_gets_no_answer_and_leaves_nothing() {
    let mut pair = Pair::new();
    let (_, first) = pair.first(b"hello");
    for changed in changed(&first) {
        assert!(is_drop(&pair.answer(NOW, home(), &changed)), "{changed:?}");
    }
    assert_eq!(pair.server.remembered(), 0);
    established(pair.answer(NOW, home(), &first));
}

#[test]
fn a_first_datagram_changed_by_one_who_can_make_the_mac_leads_to_no_session() {
    let mut pair = Pair::new();
    let (_, first) = pair.first(b"hello");
    let key = crate::seal::mac::MacKey::of(&pair.server_key);
    let body = &first[..first.len() - 16];
    // The token, bytes 6 to 30, is not authenticated by Noise. A wrong token counts as no token.
    for at in (0..6).chain(30..body.len()) {
        let mut changed = body.to_vec();
        changed[at] ^= 1;
        key.sign_first(&mut changed);
        // Spaced so far apart that the rate limiter admits all.
        let now = Time::from_secs(1000 + at as u64);
        let answer = pair.answer(now, home(), &changed);
        // Another version is answered with Versions.
        let right = if at == 1 { matches!(answer, Answer::Reply(_)) } else { is_drop(&answer) };
        assert!(right, "byte {at}: {answer:?}");
    }
    assert_eq!(pair.server.remembered(), 0);
}

#[test]
fn a_changed_reply_is_refused_and_the_genuine_one_still_counts() {
    let mut pair = Pair::new();
    let (mut initiator, first) = pair.first(b"");
    let genuine = established(pair.answer(NOW, home(), &first)).reply;
    for changed in changed(&genuine) {
        assert!(initiator.finish(NOW, &changed).is_err(), "{changed:?}");
    }
    session(initiator.finish(NOW, &genuine));
}

#[test]
fn a_reply_changed_by_one_who_can_make_the_mac_is_refused_as_well() {
    let mut pair = Pair::new();
    let (mut initiator, first) = pair.first(b"");
    let genuine = established(pair.answer(NOW, home(), &first)).reply;
    let key = crate::seal::mac::MacKey::of(&pair.server_key);
    let mac = *first.last_chunk().expect("a MAC");
    for at in 6..genuine.len() - 16 {
        let mut changed = genuine[..genuine.len() - 16].to_vec();
        changed[at] ^= 1;
        key.sign_answer(&mac, &mut changed);
        let error = initiator.finish(NOW, &changed).expect_err("refused");
        assert_eq!(error, HandshakeError::Forged, "byte {at}");
    }
    session(initiator.finish(NOW, &genuine));
}

#[test]
fn a_changed_retry_is_refused_and_the_genuine_one_still_counts() {
    let mut pair = Pair::with(secret(), Allowed::Anyone);
    let (mut initiator, first) = pair.first(b"");
    let genuine = reply(pair.answer(NOW, home(), &first));
    for changed in changed(&genuine) {
        assert!(initiator.finish(NOW, &changed).is_err(), "{changed:?}");
    }
    assert!(matches!(initiator.finish(NOW, &genuine), Ok(Finish::Again(_))));
}

#[test]
fn a_changed_datagram_of_a_session_is_refused_and_the_genuine_one_still_counts() {
    let (mut client, mut server) = Pair::new().sessions();
    let genuine = sealed(&mut client, 1, b"hello");
    for changed in changed(&genuine) {
        assert!(opened(&mut server, NOW, &changed).is_err(), "{changed:?}");
    }
    assert_eq!(server.halves().1.windows(), 0);
    assert!(!server.is_confirmed());
    assert_eq!(opened(&mut server, NOW, &genuine), Ok((1, b"hello".to_vec())));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Even by an attacker that saw the first datagram and can make the MAC.
    #[test]
    fn noise_is_never_taken_for_a_reply(
        mut noise in prop::collection::vec(any::<u8>(), 0..200),
        kind in 0_u8..6, version in 0_u8..3, signed: bool, length: bool,
    ) {
        let mut pair = Pair::new();
        let (mut initiator, first) = pair.first(b"");
        if length {
            noise.resize(75 - 16, 1);
        }
        if noise.len() > 5 {
            (noise[0], noise[1]) = (kind, version);
            noise[2..6].copy_from_slice(&CLIENT.to_be_bytes());
        }
        if signed {
            let mac = *first.last_chunk().expect("a MAC");
            crate::seal::mac::MacKey::of(&pair.server_key).sign_answer(&mac, &mut noise);
        }
        let established = matches!(initiator.finish(NOW, &noise), Ok(Finish::Established(_)));
        prop_assert!(!established);
    }
}
