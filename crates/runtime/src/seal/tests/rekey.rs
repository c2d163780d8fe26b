//! Key changes lose no datagrams.

use proptest::prelude::*;
use ropewalk_base::{Duration, Time};

use super::*;
use crate::seal::ratchet::DatagramKey;
use crate::seal::sender::KEY_LIMIT;
use crate::seal::{Limits, OpenError, SealError};

const NOW: Time = Time::from_secs(1000);

fn later(seconds: u64) -> Time {
    NOW.saturating_add(Duration::from_secs(seconds))
}

fn tag_of(key: &DatagramKey) -> Vec<u8> {
    key.seal(0, 0, b"", &mut []).as_ref().to_vec()
}

/// A pair of sessions that change keys every ten datagrams.
fn hasty() -> (Session, Session) {
    let (mut client, mut server) = Pair::new().sessions();
    let limits = Limits { rekey_packets: 10, rekey_pause: Duration::ZERO, ..Limits::default() };
    client.set_limits(limits);
    server.set_limits(limits);
    (client, server)
}

#[test]
fn both_ends_go_on_together_epoch_by_epoch() {
    let (mut client, mut server) = hasty();
    for n in 0..1000_u32 {
        let up = sealed(&mut client, 0, &n.to_be_bytes());
        assert!(opened(&mut server, NOW, &up).is_ok(), "datagram {n}");
        let down = sealed(&mut server, 1, &n.to_be_bytes());
        assert!(opened(&mut client, NOW, &down).is_ok(), "datagram {n}");
        renewed(NOW, &mut client, &mut server);
        assert!(client.epoch() - server.epoch() <= 1);
    }
    assert!((50..=100).contains(&client.epoch()), "{}", client.epoch());
}

#[test]
fn time_changes_keys_too_and_old_ones_are_forgotten() {
    let (mut client, mut server) = Pair::new().sessions();
    let late = sealed(&mut client, 0, b"late");
    let later_still = sealed(&mut client, 0, b"later still");
    for (seconds, messages) in [(119, 0), (120, 2)] {
        let down = sealed(&mut server, 0, b"down");
        assert!(opened(&mut client, later(seconds), &down).is_ok());
        assert_eq!(renewed(later(seconds), &mut client, &mut server), messages);
    }
    assert_eq!((client.epoch(), server.epoch()), (1, 0));

    let new = sealed(&mut client, 0, b"new");
    assert!(opened(&mut server, later(121), &new).is_ok());
    assert_eq!((server.epoch(), server.next_deadline()), (1, Some(later(151))));
    assert_eq!(opened(&mut server, later(150), &late), Ok((0, b"late".to_vec())));
    assert_eq!(opened(&mut server, later(150), &late), Err(OpenError::Replayed));
    server.handle_timeout(later(151));
    assert_eq!(server.next_deadline(), None);
    let error = opened(&mut server, later(152), &later_still);
    assert_eq!(error, Err(OpenError::UnknownEpoch));
}

/// A thief has the entire state of a session after `begin`, and sees each datagram after that.
#[test]
fn who_has_taken_the_keys_can_open_nothing_after_the_next_renewal() {
    let (mut client, mut server) = hasty();
    let (thief_sender, thief_receiver) = (server.halves().0.stolen(), server.halves().1.stolen());
    let mut stolen = [thief_sender, thief_receiver];
    for n in 0..30_u8 {
        let up = sealed(&mut client, 0, &[n]);
        assert!(opened(&mut server, NOW, &up).is_ok());
        let down = sealed(&mut server, 0, &[n]);
        assert!(opened(&mut client, NOW, &down).is_ok());
        renewed(NOW, &mut client, &mut server);
    }
    assert!(client.epoch() >= 2);
    let [theirs, mine] = [server.halves().0.stolen(), server.halves().1.stolen()];
    for stolen in &mut stolen {
        // What the thief could read if keys only changed by the ratchet.
        let guesses: Vec<_> = (0..10).map(|_| tag_of(&stolen.turn())).collect();
        for now in [&theirs, &mine] {
            assert!(!guesses.contains(&tag_of(&now.next_key())));
        }
    }
}

#[test]
fn an_offer_is_repeated_until_it_is_answered_and_so_is_the_answer() {
    let (mut client, mut server) = hasty();
    let mut offers = Vec::new();
    for n in 0..100_u64 {
        let now = NOW.saturating_add(Duration::from_millis(10 * n));
        let down = sealed(&mut server, 0, b"down");
        assert!(opened(&mut client, now, &down).is_ok());
        offers.extend(client.offer(now));
        assert_eq!(client.epoch(), 0, "it waits");
    }
    assert_eq!(offers.len(), 4, "one in 250 ms");
    assert!(offers.iter().all(|offer| *offer == offers[0]));
    let answers: Vec<_> = offers
        .iter()
        .map(|offer| server.handle_renewal(later(1), offer).expect("an answer"))
        .collect();
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    for answer in &answers {
        assert_eq!(client.handle_renewal(later(1), answer), None);
        assert_eq!(client.epoch(), 1, "it turns once");
    }
    let up = sealed(&mut client, 0, b"up");
    assert!(opened(&mut server, later(2), &up).is_ok());
    assert_eq!(server.epoch(), 1);
    assert_eq!(server.handle_renewal(later(3), &offers[0]), None, "that epoch has begun");
}

#[test]
fn a_peer_cannot_make_the_responder_compute_without_end() {
    let (mut client, mut server) = Pair::new().sessions();
    client.set_limits(Limits { rekey_packets: 1, ..Limits::default() });
    let mut turned = 0;
    for n in 0..10_000_u64 {
        let now = later(2).saturating_add(Duration::from_millis(n));
        let (up, down) = (sealed(&mut client, 0, b"up"), sealed(&mut server, 0, b"down"));
        assert!(opened(&mut server, now, &up).is_ok() && opened(&mut client, now, &down).is_ok());
        turned += usize::from(renewed(now, &mut client, &mut server) == 2);
    }
    assert!((5..=11).contains(&turned), "{turned} in 10 s");
}

#[test]
fn the_initiator_waits_until_the_peer_has_followed() {
    let (mut client, mut server) = hasty();
    let down = |server: &mut Session, client: &mut Session, time| {
        let datagram = sealed(server, 0, b"down");
        assert!(opened(client, time, &datagram).is_ok());
        renewed(time, client, server);
    };
    // A hundred datagrams are lost, on all paths and over the entire next epoch.
    for _ in 0..100 {
        sealed(&mut client, 0, b"lost");
        down(&mut server, &mut client, later(1));
    }
    down(&mut server, &mut client, later(1_000_000));
    assert_eq!(client.epoch(), 1);
    // The peer is still in the old epoch. It opens the first datagram that arrives.
    let up = sealed(&mut client, 0, b"up");
    assert!(opened(&mut server, later(2), &up).is_ok());
    assert_eq!(server.epoch(), 1);
    down(&mut server, &mut client, later(1_000_001));
    assert_eq!(client.epoch(), 2);
}

#[test]
fn a_key_that_has_sealed_its_number_of_datagrams_seals_no_more() {
    let (mut client, mut server) = Pair::new().sessions();
    client.halves().0.set_sealed(KEY_LIMIT - 3);
    let down = sealed(&mut server, 0, b"down");
    assert!(opened(&mut client, later(2), &down).is_ok());
    sealed(&mut client, 0, b"x");
    sealed(&mut client, 0, b"the last but one");
    let offer = client.offer(later(2)).expect("an offer");
    sealed(&mut client, 0, &offer);
    let mut out = b"before".to_vec();
    let error = client.seal(0, &mut out, |out| out.push(1));
    assert_eq!((error, &out[..]), (Err(SealError::KeyWornOut), &b"before"[..]));
    // Changing to the next epoch solves this.
    let answer = server.handle_renewal(later(2), &offer).expect("an answer");
    client.handle_renewal(later(2), &answer);
    sealed(&mut client, 0, b"it goes on");
}

#[test]
fn what_arrives_wears_a_key_out_as_well() {
    let (mut client, mut server) = Pair::new().sessions();
    client.halves().1.set_opened(Limits::default().rekey_packets - 1);
    assert_eq!(client.offer(NOW), None);
    let datagram = sealed(&mut server, 0, b"x");
    assert!(opened(&mut client, NOW, &datagram).is_ok());
    assert!(client.offer(NOW).is_some());
}

#[test]
fn a_datagram_of_an_old_epoch_is_a_replay_in_the_new_one() {
    let (mut client, mut server) = hasty();
    let mut all = Vec::new();
    for n in 0..100_u8 {
        let up = sealed(&mut client, n % 3, &[n]);
        assert!(opened(&mut server, NOW, &up).is_ok());
        all.push(up);
        let down = sealed(&mut server, 0, b"");
        assert!(opened(&mut client, NOW, &down).is_ok());
        renewed(NOW, &mut client, &mut server);
    }
    assert!(server.epoch() >= 5);
    for datagram in &all {
        assert!(opened(&mut server, NOW, datagram).is_err());
    }
}

#[test]
#[should_panic(expected = "rekey_packets")]
fn a_limit_above_that_of_the_cipher_is_a_mistake() {
    let (mut client, _) = Pair::new().sessions();
    client.set_limits(Limits { rekey_packets: KEY_LIMIT + 1, ..Limits::default() });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A genuine peer may send anything.
    #[test]
    fn what_is_no_offer_and_no_answer_renews_nothing(
        mut content in prop::collection::vec(any::<u8>(), 0..60),
        kind in 0_u8..6,
        epoch in prop::sample::select(vec![0, 1, 2, u64::MAX]),
        whole in any::<bool>(),
    ) {
        let (mut client, mut server) = hasty();
        if whole {
            content.resize(40, 9);
            content.splice(..0, [&[0, 0, 0, kind][..], &epoch.to_be_bytes()].concat());
        }
        prop_assert_eq!(client.handle_renewal(NOW, &content), None, "nothing was offered");
        prop_assert_eq!(server.handle_renewal(NOW, &content), None);
        for n in 0..40_u8 {
            let up = sealed(&mut client, 0, &[n]);
            prop_assert!(opened(&mut server, NOW, &up).is_ok());
            let down = sealed(&mut server, 0, &[n]);
            prop_assert!(opened(&mut client, NOW, &down).is_ok());
            prop_assert_eq!(client.handle_renewal(NOW, &content), None);
            renewed(NOW, &mut client, &mut server);
        }
        prop_assert!(client.epoch() >= 2);
    }

    /// With any losses in both directions and any pauses, the two ends stay synchronized.
    #[test]
    fn two_ends_never_lose_each_other(
        steps in prop::collection::vec(
            (any::<bool>(), any::<bool>(), 0_u64..70, any::<bool>(), any::<bool>()),
            1..300,
        ),
    ) {
        let (mut client, mut server) = hasty();
        let mut now = NOW;
        for (upwards, lost, wait, offer_arrives, answer_arrives) in steps {
            now = now.saturating_add(Duration::from_secs(wait));
            client.handle_timeout(now);
            server.handle_timeout(now);
            let (from, to) =
                if upwards { (&mut client, &mut server) } else { (&mut server, &mut client) };
            let datagram = sealed(from, 0, b"x");
            if !lost {
                prop_assert!(opened(to, now, &datagram).is_ok());
            }
            // An offer, or the answer to it, may be lost as well.
            if let Some(offer) = client.offer(now) {
                let offer = sealed(&mut client, 0, &offer);
                if offer_arrives {
                    let (_, offer) = opened(&mut server, now, &offer).expect("it is genuine");
                    let answer = server.handle_renewal(now, &offer);
                    let answer = answer.map(|answer| sealed(&mut server, 0, &answer));
                    if let Some(answer) = answer.filter(|_| answer_arrives) {
                        let (_, answer) = opened(&mut client, now, &answer).expect("it is genuine");
                        client.handle_renewal(now, &answer);
                    }
                }
            }
            let apart = client.epoch() - server.epoch();
            prop_assert!(apart <= 1, "{} epochs apart", apart);
        }
    }
}
