//! Datagrams of a session: order, repetition and paths.

use proptest::prelude::*;
use ropewalk_base::Time;

use super::*;
use crate::seal::OpenError;
use crate::seal::wire::OVERHEAD;

const NOW: Time = Time::from_secs(1000);

#[test]
fn sealing_adds_the_overhead_and_appends_to_what_is_there() {
    let (mut client, mut server) = Pair::new().sessions();
    let mut out = b"before".to_vec();
    let first = client.seal(1, &mut out, |out| out.extend(b"one")).expect("sealed");
    let second = client.seal(2, &mut out, |out| out.extend(b"three")).expect("sealed");
    assert_eq!(&out[..6], b"before");
    assert_eq!(first, 6..6 + 3 + OVERHEAD);
    assert_eq!(second, first.end..first.end + 5 + OVERHEAD);
    assert!(!out.windows(3).any(|bytes| bytes == b"one"), "it is encrypted");
    assert_eq!(opened(&mut server, NOW, &out[first]), Ok((1, b"one".to_vec())));
    assert_eq!(opened(&mut server, NOW, &out[second]), Ok((2, b"three".to_vec())));
}

#[test]
fn every_part_may_move_to_another_thread() {
    fn may_move<T: Send>() {}
    may_move::<Session>();
    may_move::<Initiator>();
    may_move::<Responder>();
}

#[test]
fn the_same_content_never_looks_the_same() {
    let (mut client, _) = Pair::new().sessions();
    let datagrams: Vec<Vec<u8>> =
        (0..100).map(|n| sealed(&mut client, n % 4, &[0; 64])[10..].to_vec()).collect();
    for (index, datagram) in datagrams.iter().enumerate() {
        assert!(!datagrams[..index].contains(datagram), "datagram {index}");
    }
}

#[test]
fn a_datagram_is_opened_once() {
    let (mut client, mut server) = Pair::new().sessions();
    let datagrams: Vec<Vec<u8>> = (0..50).map(|n| sealed(&mut client, 0, &[n])).collect();
    for datagram in &datagrams {
        assert!(opened(&mut server, NOW, datagram).is_ok());
        assert_eq!(opened(&mut server, NOW, datagram), Err(OpenError::Replayed));
    }
    for datagram in &datagrams {
        assert_eq!(opened(&mut server, NOW, datagram), Err(OpenError::Replayed));
    }
    assert_eq!((server.counters().opened, server.counters().replayed), (50, 100));
}

#[test]
fn three_thousand_datagrams_backwards_are_no_replay() {
    let (mut client, mut server) = Pair::new().sessions();
    let datagrams: Vec<Vec<u8>> = (0..3000).map(|_| sealed(&mut client, 5, b"x")).collect();
    for (number, datagram) in datagrams.iter().enumerate().rev() {
        assert!(opened(&mut server, NOW, datagram).is_ok(), "datagram {number}");
    }
    assert_eq!(server.counters().opened, 3000);
}

#[test]
fn what_is_behind_the_window_is_refused() {
    let (mut client, mut server) = Pair::new().sessions();
    let old = sealed(&mut client, 0, b"old");
    client.halves().0.set_counter(0, 8192);
    let newest = sealed(&mut client, 0, b"new");
    client.halves().0.set_counter(0, 1);
    let oldest = sealed(&mut client, 0, b"just inside");
    assert!(opened(&mut server, NOW, &newest).is_ok());
    assert_eq!(opened(&mut server, NOW, &old), Err(OpenError::TooOld));
    assert!(opened(&mut server, NOW, &oldest).is_ok());
}

#[test]
fn a_path_knows_nothing_of_the_others() {
    let (mut client, mut server) = Pair::new().sessions();
    // The slow path's datagrams arrive when the fast path is a hundred thousand ahead.
    let slow: Vec<Vec<u8>> = (0..20).map(|n| sealed(&mut client, 1, &[n])).collect();
    client.halves().0.set_counter(0, 100_000);
    let quick = sealed(&mut client, 0, b"quick");
    assert!(opened(&mut server, NOW, &quick).is_ok());
    for (n, datagram) in slow.iter().enumerate() {
        assert_eq!(opened(&mut server, NOW, datagram), Ok((1, vec![n as u8])));
    }
    // A datagram of one path is not accepted for another.
    let mut moved = sealed(&mut client, 1, b"x");
    moved[1] = 2;
    assert_eq!(opened(&mut server, NOW, &moved), Err(OpenError::Forged));
    assert_eq!(server.halves().1.windows(), 2, "a forged datagram makes no window");
}

#[test]
fn a_counter_goes_on_past_its_24_bits() {
    let (mut client, mut server) = Pair::new().sessions();
    let mut last = Vec::new();
    for start in [0, (1 << 23) - 50, (1 << 24) - 50, (1 << 24) + (1 << 23) - 100, (1 << 25) - 50] {
        client.halves().0.set_counter(0, start);
        for n in 0..100 {
            last = sealed(&mut client, 0, &[n]);
            assert_eq!(opened(&mut server, NOW, &last), Ok((0, vec![n])), "{start} + {n}");
        }
    }
    assert_eq!(opened(&mut server, NOW, &last), Err(OpenError::Replayed));
}

#[test]
fn sessions_of_other_handshakes_open_nothing() {
    let mut pair = Pair::new();
    let (mut client, mut server) = pair.sessions();
    let (mut other_client, mut other_server) = pair.sessions();
    let datagram = sealed(&mut client, 0, b"x");
    // Both sessions have the same number: only the keys differ.
    assert_eq!(opened(&mut other_server, NOW, &datagram), Err(OpenError::Forged));
    assert_eq!(opened(&mut client, NOW, &datagram), Err(OpenError::OtherSession(SERVER)));
    assert!(opened(&mut server, NOW, &datagram).is_ok());
    // An end does not open its own datagrams, even with the session number changed.
    let mut reflected = sealed(&mut other_client, 0, b"x");
    reflected[2..6].copy_from_slice(&CLIENT.to_be_bytes());
    assert_eq!(opened(&mut other_client, NOW, &reflected), Err(OpenError::Forged));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_the_network_does_each_datagram_arrives_at_most_once_and_whole(
        paths in prop::collection::vec(0_u8..4, 1..200),
        order in prop::collection::vec(any::<prop::sample::Index>(), 1..600),
    ) {
        let (mut client, mut server) = Pair::new().sessions();
        let content = |n: usize| vec![n as u8; n % 50];
        let datagrams: Vec<Vec<u8>> = paths.iter().enumerate()
            .map(|(n, path)| sealed(&mut client, *path, &content(n))).collect();
        let mut arrived = vec![false; datagrams.len()];
        for index in order {
            let n = index.index(datagrams.len());
            let expected = if arrived[n] {
                Err(OpenError::Replayed)
            } else {
                Ok((paths[n], content(n)))
            };
            prop_assert_eq!(opened(&mut server, NOW, &datagrams[n]), expected);
            arrived[n] = true;
        }
    }

    #[test]
    fn noise_is_never_opened(mut noise in prop::collection::vec(any::<u8>(), 0..200), seal: bool) {
        let (_, mut server) = Pair::new().sessions();
        if seal && noise.len() > 5 {
            noise[0] |= 0x80;
            noise[2..6].copy_from_slice(&SERVER.to_be_bytes());
        }
        prop_assert!(server.open(NOW, &mut noise).is_err());
        prop_assert_eq!(server.halves().1.windows(), 0);
    }
}
