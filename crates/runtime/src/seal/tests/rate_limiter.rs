//! Floods of handshakes: the state is constant, answers are small, and genuine initiators succeed.

use core::net::{IpAddr, SocketAddr};

use proptest::prelude::*;
use ropewalk_base::{Duration, Time};

use super::*;

const NOW: Time = Time::from_secs(1000);

fn somewhere(number: u32) -> SocketAddr {
    SocketAddr::new(IpAddr::from(number.to_be_bytes()), 5000)
}

#[test]
fn a_flood_of_unauthenticated_handshakes_costs_no_state_and_no_diffie_hellman_above_the_allowance()
{
    let mut pair = Pair::new();
    let friend = pair.client.clone();
    let (mut retries, mut drops) = (0, 0);
    for number in 0..500 {
        // Each knows the public key, has a key of its own, and claims another address.
        pair.client = secret();
        let (_, first) = pair.first(b"");
        match pair.answer(NOW, somewhere(number), &first) {
            Answer::Drop => drops += 1,
            Answer::Reply(retry) => {
                assert!(retry.len() <= first.len());
                retries += 1;
            }
            Answer::Established(_) => panic!("an unauthenticated peer got a session"),
        }
    }
    assert_eq!((drops, retries), (100, 400), "those within the allowance, and the others");
    assert_eq!(pair.server.remembered(), 0);

    // Meanwhile an allowed initiator proves its address and gets a session.
    pair.client = friend;
    let (mut initiator, first) = pair.first(b"");
    let retry = reply(pair.answer(NOW, home(), &first));
    let Ok(Finish::Again(second)) = initiator.finish(NOW, &retry) else { panic!("no retry") };
    let made = established(pair.answer(NOW, home(), &second));
    session(initiator.finish(NOW, &made.reply));
    assert_eq!(pair.server.remembered(), 1);
}

#[test]
fn a_flood_of_replays_leaves_one_entry() {
    let mut pair = Pair::new();
    let (_, first) = pair.first(b"");
    established(pair.answer(NOW, home(), &first));
    for number in 0..2000 {
        let now = NOW.saturating_add(Duration::from_nanos(u64::from(number) * 1_000_000));
        assert!(!matches!(pair.answer(now, somewhere(number), &first), Answer::Established(_)));
    }
    assert_eq!(pair.server.remembered(), 1);
}

#[test]
fn a_token_counts_only_where_it_was_sent_and_not_for_long() {
    let mut pair = Pair::with(secret(), Allowed::Anyone);
    let (mut initiator, first) = pair.first(b"");
    let retry = reply(pair.answer(NOW, home(), &first));
    let Ok(Finish::Again(second)) = initiator.finish(NOW, &retry) else { panic!("no retry") };
    let late = NOW.saturating_add(Duration::from_secs(11));
    for (now, from) in [
        (NOW, address("192.0.2.2:5000")),
        (NOW, address("192.0.2.1:5001")),
        (NOW, address("[2001:db8::1]:5000")),
        (late, home()),
    ] {
        reply(pair.answer(now, from, &second));
    }
    assert_eq!(pair.server.remembered(), 0);
    established(pair.answer(NOW, home(), &second));
}

#[test]
fn a_source_that_proved_itself_is_still_limited() {
    let mut pair = Pair::with(secret(), Allowed::Anyone);
    let mut made = 0;
    for _ in 0..30 {
        let (mut initiator, first) = pair.first(b"");
        let retry = reply(pair.answer(NOW, home(), &first));
        let Ok(Finish::Again(second)) = initiator.finish(NOW, &retry) else { panic!("no retry") };
        made += u32::from(matches!(pair.answer(NOW, home(), &second), Answer::Established(_)));
    }
    assert_eq!(made, 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For arbitrary datagrams, no answer is larger than the datagram, and no state is kept.
    #[test]
    fn no_answer_is_larger_than_its_question(
        mut noise in prop::collection::vec(any::<u8>(), 0..1400),
        kind in 0_u8..6, version in 0_u8..3, signed: bool, anyone: bool,
    ) {
        let client = secret();
        let allowed = if anyone {
            Allowed::Anyone
        } else {
            Allowed::Keys([client.public()].into())
        };
        let mut pair = Pair::with(client, allowed);
        if noise.len() > 2 {
            (noise[0], noise[1]) = (kind, version);
        }
        if signed {
            crate::seal::mac::MacKey::of(&pair.server_key).sign_first(&mut noise);
        }
        match pair.answer(NOW, home(), &noise) {
            Answer::Drop => {}
            Answer::Reply(answer) => {
                prop_assert!(signed && [1, 5].contains(&kind), "answered to {:?}", noise);
                prop_assert!(answer.len() <= noise.len());
            }
            Answer::Established(_) => prop_assert!(false, "noise was taken for a friend"),
        }
        prop_assert_eq!(pair.server.remembered(), 0);
    }
}
