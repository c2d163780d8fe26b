//! Addresses that are added and removed during an association (ASCONF, RFC 5061).

use bytes::Bytes;
use proptest::prelude::*;
use ropewalk_base::{Duration, PathId, Seed};
use ropewalk_engine::Payload;
use ropewalk_engine::path::PathStatus;
use ropewalk_engine::sctp::association::{CloseReason, State};
use ropewalk_engine::sctp::{
    AddressChange, AddressError, Association, Chunk, CmtOptions, Config, Delivery, ErrorCause,
    Event, Extensions, Negotiation, Packet, Refusal,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, address_of, config, in_turn, ms, numbered};

/// An end with this many paths and address reconfiguration.
fn settings(paths: usize) -> Config {
    let base = config(paths, 1 << 17);
    Config {
        address_reconfiguration: true,
        cmt: CmtOptions { concurrent: true, ..base.cmt },
        addresses: Some((0..paths).map(address_of).collect()),
        negotiation: Negotiation::Listed(Extensions::OFFERED),
        ..base
    }
}

/// A pair on the first `paths` of four links.
fn up(paths: usize) -> Pair {
    let delays = [10, 20, 15, 30];
    let mut pair = Pair::new(&settings(paths), &delays[..paths]);
    pair.connect();
    pair.delays = delays.map(ms).to_vec();
    pair
}

impl Pair {
    fn add(&mut self, end: usize, path: usize) {
        self.ends[end].add_address(address_of(path)).expect("it may be added");
        self.drain(end);
    }

    /// The end stops using the address immediately.
    fn remove(&mut self, end: usize, path: usize) {
        self.ends[end].remove_address(address_of(path)).expect("it may be removed");
        self.ends[end].retire_path(self.now, PathId::from_index(path));
        self.drain(end);
    }

    fn is_active(&self, end: usize, path: usize) -> bool {
        let end = &self.ends[end];
        path < end.path_count() && end.path_status(PathId::from_index(path)) == PathStatus::Active
    }

    /// Bytes of packets with DATA that an end sent on a path.
    fn data_on(&self, end: usize, path: usize) -> usize {
        let sent = self.log.iter().filter(|sent| (sent.from, sent.path) == (end, path));
        sent.filter(|sent| sent.data().next().is_some()).count()
    }
}

#[test]
fn an_added_address_is_confirmed_and_carries_data_of_both_ends() {
    for delay_of_the_answer in [false, true] {
        let mut pair = up(1);
        if delay_of_the_answer {
            pair.script(|sent| match sent.names().contains(&"ASCONF ACK") {
                true => Fate::Late(ms(300)),
                false => Fate::Arrive,
            });
        }
        pair.add(LEFT, 1);
        pair.run_for(Duration::from_secs(3));
        assert_eq!(pair.addresses[RIGHT], [AddressChange::Added(address_of(1))]);
        assert_eq!(pair.addresses[LEFT], [AddressChange::OwnAdded(address_of(1), Ok(()))]);
        assert!(pair.events[LEFT].iter().any(|(_, event)| *event == Event::AddressesChanged));
        for end in [LEFT, RIGHT] {
            assert!(pair.is_active(end, 1), "end {end}");
            pair.send_on(end, 0, numbered(60_000, 3), false);
        }
        pair.run_for(Duration::from_secs(3));
        for end in [LEFT, RIGHT] {
            assert_eq!(pair.read[end][0].payload, numbered(60_000, 3));
            assert!(pair.data_on(end, 0) > 0 && pair.data_on(end, 1) > 0);
        }
        // Until it was confirmed, only HEARTBEATs were sent there.
        let early = pair.log.iter().filter(|sent| sent.path == 1);
        let first = early.map(|sent| sent.names()).next().expect("a packet");
        assert_eq!(first, ["HEARTBEAT"]);
    }
}

#[test]
fn an_address_is_announced_from_itself_if_all_others_are_gone() {
    for busy in [false, true] {
        let mut pair = up(1);
        if busy {
            pair.send_on(LEFT, 0, numbered(80_000, 5), false);
            pair.run_for(ms(25));
        }
        pair.script(|sent| if sent.path == 0 { Fate::Drop } else { Fate::Arrive });
        let from = pair.log.len();
        pair.ends[LEFT].add_address(address_of(1)).expect("it may be added");
        pair.announce(LEFT, 1);
        pair.ends[LEFT].remove_address(address_of(0)).expect_err("the other is not known yet");
        pair.drain(LEFT);
        pair.run_for(Duration::from_secs(20));
        assert!(pair.is_active(LEFT, 1) && pair.is_active(RIGHT, 1));
        let first = pair.log[from..].iter().find(|sent| (sent.from, sent.path) == (LEFT, 1));
        assert_eq!(first.expect("it was announced").names(), ["of an extension", "ASCONF"]);
        pair.ends[LEFT].remove_address(address_of(0)).expect("there is another");
        pair.retire(LEFT, 0);
        pair.drain(LEFT);
        pair.send_on(LEFT, 0, numbered(50_000, 6), false);
        pair.run_for(Duration::from_secs(60));
        let read = pair.read[RIGHT].iter().map(|one| one.payload.len()).sum::<u32>();
        assert_eq!(read, 50_000 + u32::from(busy) * 80_000);
        assert_eq!(pair.ends[RIGHT].peer_addresses(), [address_of(1)]);
        assert_eq!(pair.ends[LEFT].state(), &State::Established);
    }
}

#[test]
fn an_address_that_the_peer_does_not_know_sends_nothing_but_requests() {
    let mut pair = up(2);
    pair.script(|sent| match sent.names().contains(&"ASCONF ACK") {
        true => Fate::Drop,
        false => Fate::Arrive,
    });
    pair.ends[LEFT].add_address(address_of(2)).expect("it may be added");
    pair.announce(LEFT, 2);
    pair.send_on(LEFT, 0, numbered(50_000, 6), false);
    pair.send_on(RIGHT, 0, numbered(50_000, 6), false);
    pair.run_for(Duration::from_secs(5));
    let there = pair.log.iter().filter(|sent| (sent.from, sent.path) == (LEFT, 2));
    let kinds: Vec<_> = there.flat_map(|sent| sent.names()).collect();
    let allowed = ["of an extension", "ASCONF", "HEARTBEAT ACK"];
    assert!(kinds.iter().all(|kind| allowed.contains(kind)), "{kinds:?}");
}

#[test]
fn a_removed_address_gets_nothing_more_and_no_message_is_lost() {
    for (end, busy) in [(LEFT, false), (RIGHT, false), (LEFT, true), (RIGHT, true)] {
        let mut pair = up(3);
        if busy {
            for one in [LEFT, RIGHT] {
                pair.send_on(one, 0, numbered(100_000, one as u32), false);
            }
            pair.run_for(ms(35));
        }
        pair.remove(end, 1);
        pair.run_for(ms(45));
        assert_eq!(pair.addresses[1 - end], [AddressChange::Removed(address_of(1))]);
        let from = pair.log.len();
        pair.run_for(Duration::from_secs(20));
        assert_eq!(pair.addresses[end], [AddressChange::OwnRemoved(address_of(1), Ok(()))]);
        assert!(pair.log[from..].iter().all(|sent| sent.path != 1));
        for one in [LEFT, RIGHT] {
            if busy {
                assert_eq!(pair.read[one][0].payload, numbered(100_000, 1 - one as u32));
            }
            assert!(pair.ends[one].is_flushed() && pair.ends[one].is_retired(PathId(1)));
            assert_eq!(pair.ends[one].state(), &State::Established);
        }
        assert_eq!(pair.ends[end].own_addresses(), [address_of(0), address_of(2)]);
        assert_eq!(pair.ends[1 - end].peer_addresses(), [address_of(0), address_of(2)]);
    }
}

#[test]
fn numbers_of_retired_paths_are_used_again() {
    let mut pair = up(2);
    for round in 0..40 {
        pair.remove(LEFT, 1);
        pair.run_for(ms(200));
        pair.send_on(RIGHT, 0, Payload::Length(5000), false);
        pair.run_for(ms(200));
        pair.add(LEFT, 1);
        pair.run_for(Duration::from_secs(3));
        assert!(pair.is_active(LEFT, 1) && pair.is_active(RIGHT, 1), "round {round}");
        pair.send_on(LEFT, 0, Payload::Length(5000), false);
        pair.run_for(ms(500));
    }
    for end in [LEFT, RIGHT] {
        assert_eq!(pair.ends[end].path_count(), 2);
        assert_eq!(pair.read_bytes(end), 40 * 5000);
    }
}

#[test]
fn a_lost_request_or_answer_is_repeated_unchanged_and_performed_once() {
    for lost in ["ASCONF", "ASCONF ACK"] {
        for times in 1..4 {
            let mut pair = up(2);
            let mut left = times;
            pair.script(move |sent| {
                let drops = left > 0 && sent.names().contains(&lost);
                left -= usize::from(drops);
                if drops { Fate::Drop } else { Fate::Arrive }
            });
            pair.add(LEFT, 2);
            pair.run_for(Duration::from_secs(20));
            assert_eq!(pair.addresses[RIGHT], [AddressChange::Added(address_of(2))], "{lost}");
            assert_eq!(pair.addresses[LEFT], [AddressChange::OwnAdded(address_of(2), Ok(()))]);
            assert_eq!(pair.count(LEFT, "ASCONF"), times + 1);
            assert_eq!(
                pair.count(RIGHT, "ASCONF ACK"),
                times + 1 - usize::from(lost == "ASCONF") * times
            );
            let chunks = |name: &str| {
                let sent = pair.log.iter().filter(|sent| sent.names().contains(&name));
                let mut all: Vec<_> =
                    sent.map(|sent| format!("{:?}", sent.packet.chunks)).collect();
                all.dedup();
                all
            };
            assert_eq!((chunks("ASCONF").len(), chunks("ASCONF ACK").len()), (1, 1));
            // The second attempt takes the other path.
            let paths: Vec<_> = pair.log.iter().filter(|s| s.names().contains(&"ASCONF")).collect();
            assert_ne!(paths[0].path, paths[1].path);
        }
    }
}

/// Drops each ASCONF.
fn lose_requests(pair: &mut Pair) {
    pair.script(|sent| match sent.names().contains(&"ASCONF") {
        true => Fate::Drop,
        false => Fate::Arrive,
    });
}

#[test]
fn a_request_that_is_never_answered_ends_the_association() {
    let mut pair = up(2);
    lose_requests(&mut pair);
    pair.add(LEFT, 2);
    // HEARTBEATs are answered in the meantime and do not reset the count.
    pair.run_for(Duration::from_secs(900));
    assert_eq!(pair.closed(LEFT), Some(CloseReason::Unreachable));
    assert!(pair.count(LEFT, "ASCONF") <= 12);
}

#[test]
fn both_ends_change_their_addresses_at_the_same_time() {
    let mut pair = up(3);
    pair.send_on(LEFT, 0, numbered(50_000, 1), false);
    pair.remove(LEFT, 1);
    pair.remove(RIGHT, 2);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.ends[LEFT].own_addresses(), [address_of(0), address_of(2)]);
    assert_eq!(pair.ends[LEFT].peer_addresses(), [address_of(0), address_of(1)]);
    assert_eq!(pair.ends[RIGHT].own_addresses(), [address_of(0), address_of(1)]);
    assert_eq!(pair.ends[RIGHT].peer_addresses(), [address_of(0), address_of(2)]);
    assert_eq!(pair.read[RIGHT][0].payload, numbered(50_000, 1));
}

#[test]
fn requests_share_a_chunk_and_their_order_is_kept() {
    let mut pair = up(2);
    // The first is sent immediately; the others wait for its answer.
    pair.add(LEFT, 2);
    pair.add(LEFT, 3);
    pair.ends[LEFT].request_primary(address_of(3)).expect("it may be asked");
    pair.ends[LEFT].remove_address(address_of(1)).expect("there are others");
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.count(LEFT, "ASCONF"), 2);
    let [two, three, one] = [2, 3, 1].map(address_of);
    assert_eq!(
        pair.addresses[RIGHT],
        [
            AddressChange::Added(two),
            AddressChange::Added(three),
            AddressChange::Primary(three),
            AddressChange::Removed(one)
        ]
    );
    assert_eq!(pair.ends[RIGHT].primary(), PathId(3));
    assert_eq!(pair.ends[LEFT].own_addresses(), [address_of(0), two, three]);
}

#[test]
fn it_is_used_only_if_both_ends_offer_it_and_not_for_unsuitable_addresses() {
    let on = settings(2);
    let off = Config { address_reconfiguration: false, ..on.clone() };
    let auth_only = Config { authentication: true, ..off.clone() };
    for (left, right) in [(&on, &off), (&off, &on), (&auth_only, &on), (&on, &auth_only)] {
        let mut pair = Pair::with(left, right, &[10, 20], [in_turn(), in_turn()]);
        pair.connect();
        for end in [LEFT, RIGHT] {
            assert!(!pair.ends[end].reconfigures_addresses());
            let refused = pair.ends[end].add_address(address_of(2));
            assert_eq!(refused, Err(AddressError::NotSupported));
        }
        assert_eq!(pair.ends[LEFT].authenticates(), left.authentication || right.authentication);
    }
    let mut pair = up(1);
    let end = &mut pair.ends[LEFT];
    assert_eq!(end.remove_address(address_of(0)), Err(AddressError::LastAddress));
    for unsuitable in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "ff02::1"] {
        let refused = end.add_address(unsuitable.parse().expect("an address"));
        assert_eq!(refused, Err(AddressError::Unsuitable), "{unsuitable}");
    }
    let made = (0..99).filter(|_| end.add_address(address_of(2)).is_ok()).count();
    assert_eq!(made, 32, "requests that wait are bounded");
    end.shutdown(pair.now);
    assert_eq!(end.add_address(address_of(2)), Err(AddressError::Closing));
}

#[test]
fn a_restart_forgets_requests_and_serial_numbers_start_over() {
    let mut pair = up(2);
    for _ in 0..3 {
        pair.remove(LEFT, 1);
        pair.run_for(ms(300));
        pair.add(LEFT, 1);
        pair.run_for(ms(300));
    }
    let fresh = Association::connect(settings(2), in_turn(), Seed::root(99), pair.now);
    pair.replace(LEFT, fresh);
    pair.connect();
    pair.addresses = [Vec::new(), Vec::new()];
    pair.remove(RIGHT, 1);
    pair.remove(LEFT, 0);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.addresses[RIGHT].len() + pair.addresses[LEFT].len(), 4);
}

#[test]
fn a_peer_that_does_not_know_asconf_gets_no_more_of_them() {
    let mut pair = up(2);
    lose_requests(&mut pair);
    pair.add(LEFT, 2);
    pair.add(LEFT, 3);
    let whole = Bytes::from_static(&[0xc1, 0, 0, 8, 0, 0, 0, 1]);
    let tag = pair.ends[LEFT].tags().0;
    let error = Packet::of(tag, Chunk::error(ErrorCause::UnrecognisedChunk(whole)));
    pair.inject(LEFT, 0, error);
    let refused = Err(Refusal::NotPermitted);
    let expected = [2, 3].map(|path| AddressChange::OwnAdded(address_of(path), refused));
    assert_eq!(pair.addresses[LEFT], expected);
    assert!(!pair.ends[LEFT].reconfigures_addresses());
    pair.run_for(Duration::from_secs(100));
    assert_eq!(pair.count(LEFT, "ASCONF"), 1);
    assert_eq!(pair.ends[LEFT].state(), &State::Established);
}

/// An action of the user: at an end, with the address of a link, and this many milliseconds before the
/// next step.
#[derive(Clone, Copy, Debug)]
enum Step {
    Add(usize, usize, u64),
    Remove(usize, usize, u64),
    Send(usize, u32, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let wait = || prop_oneof![Just(0_u64), 0_u64..60, 0_u64..2000];
    prop_oneof![
        (0_usize..2, 1_usize..4, wait()).prop_map(|(end, link, wait)| Step::Add(end, link, wait)),
        (0_usize..2, 1_usize..4, wait())
            .prop_map(|(end, link, wait)| Step::Remove(end, link, wait)),
        (0_usize..2, 1_u32..60_000, wait())
            .prop_map(|(end, size, wait)| Step::Send(end, size, wait)),
    ]
}

fn sorted(addresses: &[std::net::IpAddr]) -> Vec<std::net::IpAddr> {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn whatever_comes_and_goes_every_message_arrives_once_and_both_ends_agree(
        steps in prop::collection::vec(step(), 1..25),
        lost in 0_u64..8,
        seed in any::<u64>(),
    ) {
        let mut pair = up(2);
        let mut rng = Seed::root(seed).rng();
        pair.script(move |_| if rng.below(100) < 3 * lost { Fate::Drop } else { Fate::Arrive });
        let mut sent = [Vec::new(), Vec::new()];
        for step in steps {
            let wait = match step {
                Step::Add(end, link, wait) => {
                    let _ = pair.ends[end].add_address(address_of(link));
                    pair.drain(end);
                    wait
                }
                Step::Remove(end, link, wait) => {
                    if pair.ends[end].remove_address(address_of(link)).is_ok() {
                        pair.retire(end, link);
                    }
                    pair.drain(end);
                    wait
                }
                Step::Send(end, size, wait) => {
                    let message = numbered(size, sent[end].len() as u32);
                    if pair.try_send(end, 0, message.clone(), Delivery::RELIABLE).is_ok() {
                        sent[end].push(message);
                    }
                    wait
                }
            };
            pair.run_for(ms(wait));
        }
        pair.heal();
        pair.run_for(Duration::from_secs(400));
        for end in [LEFT, RIGHT] {
            prop_assert_eq!(pair.ends[end].state(), &State::Established);
            let read: Vec<_> = pair.read[1 - end].iter().map(|one| one.payload.clone()).collect();
            prop_assert_eq!(read.len(), sent[end].len());
            prop_assert!(read == sent[end]);
            let [own, peer] = [&pair.ends[end], &pair.ends[1 - end]];
            prop_assert_eq!(sorted(own.own_addresses()), sorted(peer.peer_addresses()));
            prop_assert!(own.path_count() <= 4);
        }
    }
}
