//! Addresses behind a translator (NAT): the peer uses the source address of the packet (RFC 5061, 4.2.1,
//! 4.2.2, 4.2.4).

use std::net::IpAddr;

use ropewalk_base::{Duration, PathId};
use ropewalk_engine::sctp::association::State;
use ropewalk_engine::sctp::{
    AddressChange, AddressError, CmtOptions, Config, Extensions, Negotiation, Refusal,
};

use crate::driver::{Fate, LEFT, Pair, RIGHT, address_of, config, ms, numbered};

/// The left end's own address on a link. The right end sees [`address_of`].
fn hidden(link: usize) -> IpAddr {
    IpAddr::from([192, 168, link as u8, 7])
}

/// A pair on the first of two links, with its left end behind translators.
fn up() -> Pair {
    let base = config(1, 1 << 17);
    let settings = |addresses| Config {
        address_reconfiguration: true,
        cmt: CmtOptions { concurrent: true, ..base.cmt },
        addresses,
        negotiation: Negotiation::Listed(Extensions::OFFERED),
        ..base.clone()
    };
    let order = [crate::driver::in_turn(), crate::driver::in_turn()];
    let ends = [settings(None), settings(Some(vec![address_of(0)]))];
    let mut pair = Pair::with(&ends[0], &ends[1], &[10], order);
    pair.connect();
    pair.delays = [10, 20, 15].map(ms).to_vec();
    pair.ends[LEFT].note_own_address(hidden(0));
    pair
}

impl Pair {
    fn add_source(&mut self, link: usize) {
        self.announce(LEFT, link);
        let path = PathId::from_index(link);
        self.ends[LEFT].add_source(hidden(link), path).expect("it may be added");
        self.drain(LEFT);
    }

    /// The paths on which the left end has sent ASCONFs.
    fn asked_on(&self) -> Vec<usize> {
        let asked = self.log.iter().filter(|sent| sent.names().contains(&"ASCONF"));
        asked.filter(|sent| sent.from == LEFT).map(|sent| sent.path).collect()
    }
}

#[test]
fn a_source_is_told_on_its_own_path_and_then_all_others_are_given_up() {
    let mut pair = up();
    pair.add_source(1);
    assert!(pair.ends[LEFT].awaits_answer_about(hidden(1)));
    pair.run_for(Duration::from_secs(3));
    assert_eq!(pair.addresses[RIGHT], [AddressChange::Added(address_of(1))]);
    assert_eq!(pair.addresses[LEFT], [AddressChange::OwnAdded(hidden(1), Ok(()))]);
    assert_eq!(pair.ends[LEFT].own_addresses(), [hidden(0), hidden(1)]);
    // Although the other path works.
    assert_eq!(pair.asked_on(), [1]);
    let path = PathId(1);
    pair.ends[LEFT].request_primary_source(hidden(1), path).expect("it may be requested");
    pair.ends[LEFT].remove_all_but_source(hidden(0), path).expect("it may be removed");
    pair.retire(LEFT, 0);
    pair.drain(LEFT);
    pair.run_for(Duration::from_secs(3));
    assert_eq!(
        pair.addresses[RIGHT][1..],
        [AddressChange::Primary(address_of(1)), AddressChange::Removed(address_of(0))]
    );
    assert_eq!(pair.ends[RIGHT].peer_addresses(), [address_of(1)]);
    assert_eq!(pair.ends[LEFT].own_addresses(), [hidden(1)]);
    assert_eq!(pair.asked_on(), [1, 1]);
    for end in [LEFT, RIGHT] {
        pair.send_on(end, 0, numbered(60_000, 3), false);
    }
    pair.run_for(Duration::from_secs(5));
    assert_eq!((pair.read_bytes(LEFT), pair.read_bytes(RIGHT)), (60_000, 60_000));
    let last = pair.ends[LEFT].remove_all_but_source(hidden(1), path);
    assert_eq!(last, Err(AddressError::LastAddress));
}

#[test]
fn a_lost_request_about_a_source_leaves_from_there_again() {
    let mut pair = up();
    let mut left = 2;
    pair.script(move |sent| {
        let drops = left > 0 && sent.names().contains(&"ASCONF");
        left -= usize::from(drops);
        if drops { Fate::Drop } else { Fate::Arrive }
    });
    pair.add_source(1);
    pair.run_for(Duration::from_secs(20));
    assert_eq!(pair.asked_on(), [1, 1, 1]);
    assert_eq!(pair.addresses[RIGHT], [AddressChange::Added(address_of(1))]);
    assert_eq!(pair.addresses[LEFT], [AddressChange::OwnAdded(hidden(1), Ok(()))]);
}

/// The next request follows: the ASCONF about the source is sent from an address that the peer knows.
#[test]
fn a_source_from_which_nothing_arrives_is_refused_and_the_association_goes_on() {
    let mut pair = up();
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    pair.add_source(1);
    pair.run_for(Duration::from_secs(90));
    let refused = AddressChange::OwnAdded(hidden(1), Err(Refusal::Unresolvable));
    assert_eq!(pair.addresses[LEFT], [refused]);
    assert_eq!(pair.ends[RIGHT].peer_addresses(), [address_of(0)]);
    assert_eq!(pair.ends[LEFT].own_addresses(), [hidden(0)]);
    let asked = pair.asked_on();
    assert_eq!((&asked[..4], asked.last()), (&[1; 4][..], Some(&0)), "{asked:?}");
    pair.retire(LEFT, 1);
    assert_eq!(pair.ends[LEFT].state(), &State::Established);
    pair.send_on(LEFT, 0, numbered(50_000, 6), false);
    pair.run_for(Duration::from_secs(5));
    assert_eq!(pair.read_bytes(RIGHT), 50_000);
}

#[test]
fn requests_about_a_source_end_with_its_path() {
    let mut pair = up();
    pair.script(|sent| if sent.path == 1 { Fate::Drop } else { Fate::Arrive });
    pair.add_source(1);
    // It waits for the answer to the first one.
    pair.ends[LEFT].request_primary_source(hidden(1), PathId(1)).expect("it may be requested");
    pair.run_for(ms(100));
    pair.retire(LEFT, 1);
    pair.drain(LEFT);
    let refused = Err(Refusal::Unresolvable);
    assert_eq!(pair.addresses[LEFT], [AddressChange::OwnPrimary(hidden(1), refused)]);
    pair.run_for(Duration::from_secs(30));
    assert_eq!(pair.addresses[LEFT][1..], [AddressChange::OwnAdded(hidden(1), refused)]);
    assert_eq!(pair.ends[LEFT].own_addresses(), [hidden(0)]);
    assert_eq!(pair.ends[RIGHT].peer_addresses(), [address_of(0)]);
    assert_eq!(pair.ends[LEFT].state(), &State::Established);
}
