//! Key changes lose no datagrams.

use proptest::prelude::*;
use ropewalk_base::{Duration, Time};

use super::*;
use crate::seal::sender::KEY_LIMIT;
use crate::seal::{Limits, OpenError, SealError};

const NOW: Time = Time::from_secs(1000);

fn later(seconds: u64) -> Time {
    NOW.saturating_add(Duration::from_secs(seconds))
}

/// A pair of sessions that change keys every ten datagrams.
fn hasty() -> (Session, Session) {
    let (mut client, mut server) = Pair::new().sessions();
    let limits = Limits { rekey_packets: 10, ..Limits::default() };
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
        assert!(client.epoch() - server.epoch() <= 1);
    }
    assert!((50..=100).contains(&client.epoch()), "{}", client.epoch());
}

#[test]
fn time_changes_keys_too_and_old_ones_are_forgotten() {
    let (mut client, mut server) = Pair::new().sessions();
    let late = sealed(&mut client, 0, b"late");
    let later_still = sealed(&mut client, 0, b"later still");
    assert_eq!(client.next_deadline(), Some(later(120)));
    assert_eq!(server.next_deadline(), None, "it only follows");
    client.handle_timeout(later(119));
    assert_eq!(client.epoch(), 0);
    client.handle_timeout(later(120));
    assert_eq!((client.epoch(), client.next_deadline()), (1, None));

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

#[test]
fn the_initiator_waits_until_the_peer_has_followed() {
    let (mut client, mut server) = hasty();
    // A hundred datagrams are lost, on all paths and over the whole next epoch.
    for _ in 0..100 {
        sealed(&mut client, 0, b"lost");
        client.handle_timeout(later(1));
    }
    client.handle_timeout(later(1_000_000));
    assert_eq!(client.epoch(), 1);
    // The peer is still in the old epoch. Its datagrams are opened, and it opens the first one that arrives.
    let down = sealed(&mut server, 0, b"down");
    assert!(opened(&mut client, later(2), &down).is_ok());
    let up = sealed(&mut client, 0, b"up");
    assert!(opened(&mut server, later(2), &up).is_ok());
    assert_eq!(server.epoch(), 1);
    let down = sealed(&mut server, 0, b"down");
    assert!(opened(&mut client, later(2), &down).is_ok());
    assert_eq!(client.epoch(), 2);
}

#[test]
fn a_key_that_has_sealed_its_number_of_datagrams_seals_no_more() {
    let (mut client, mut server) = Pair::new().sessions();
    server.halves().0.set_sealed(KEY_LIMIT - 1);
    sealed(&mut server, 0, b"the last");
    let mut out = b"before".to_vec();
    let error = server.seal(0, &mut out, |out| out.push(1));
    assert_eq!((error, &out[..]), (Err(SealError::KeyWornOut), &b"before"[..]));
    // Changing to the next epoch solves this.
    client.handle_timeout(later(120));
    let datagram = sealed(&mut client, 0, b"x");
    assert!(opened(&mut server, later(120), &datagram).is_ok());
    sealed(&mut server, 0, b"it goes on");
}

#[test]
fn what_arrives_wears_a_key_out_as_well() {
    let (mut client, mut server) = Pair::new().sessions();
    client.halves().1.set_opened(Limits::default().rekey_packets - 1);
    assert_eq!(client.epoch(), 0);
    let datagram = sealed(&mut server, 0, b"x");
    assert!(opened(&mut client, NOW, &datagram).is_ok());
    assert_eq!(client.epoch(), 1);
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

    /// With any losses in both directions and any pauses, the two ends stay synchronized.
    #[test]
    fn two_ends_never_lose_each_other(
        steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0_u64..70), 1..300),
    ) {
        let (mut client, mut server) = hasty();
        let mut now = NOW;
        for (upwards, lost, wait) in steps {
            now = now.saturating_add(Duration::from_secs(wait));
            client.handle_timeout(now);
            server.handle_timeout(now);
            let (from, to) =
                if upwards { (&mut client, &mut server) } else { (&mut server, &mut client) };
            let datagram = sealed(from, 0, b"x");
            if !lost {
                prop_assert!(opened(to, now, &datagram).is_ok());
            }
            let apart = client.epoch() - server.epoch();
            prop_assert!(apart <= 1, "{} epochs apart", apart);
        }
    }
}
