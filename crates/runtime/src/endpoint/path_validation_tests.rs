//! Path validation in virtual time: one path, a peer that may move, and third parties that send copies.

use std::collections::BTreeMap;

use proptest::prelude::*;
use ropewalk_base::{Duration, Time};

use super::*;

/// Size of a challenge without IP and UDP headers, bytes: SCTP header, HEARTBEAT, seal.
const CHALLENGE: u64 = 12 + 24 + 26;
const STEP: Duration = Duration::from_millis(5);

fn at(host: u8) -> Route {
    Route::new(0, ([192, 0, 2, host], 9899).into())
}

/// Bytes sent to and received from an address.
#[derive(Default)]
struct AddressBytes {
    received: u64,
    sent: u64,
    answered: bool,
}

/// An end with one path, and the network around it.
struct World {
    now: Time,
    validation: PathValidation,
    routes: Vec<Option<Route>>,
    bytes_by_address: BTreeMap<Route, AddressBytes>,
    /// The addresses that answer challenges, and how long each takes.
    answers: BTreeMap<Route, Duration>,
    /// Answers in flight: arrival time, address and nonce.
    answers_in_flight: Vec<(Time, Route, u64)>,
    moves: usize,
}

impl World {
    /// The path leads to host 1, which is validated and answers after `trip`.
    fn new(trip: Duration) -> Self {
        let mut world = Self {
            now: Time::from_millis(1000),
            validation: PathValidation::default(),
            routes: vec![Some(at(1))],
            bytes_by_address: BTreeMap::new(),
            answers: BTreeMap::from([(at(1), trip)]),
            answers_in_flight: Vec::new(),
            moves: 0,
        };
        world
            .bytes_by_address
            .insert(at(1), AddressBytes { answered: true, ..AddressBytes::default() });
        world
    }

    fn route(&self) -> Route {
        self.routes[0].expect("a route")
    }

    /// A packet that the peer made arrives from host `from`.
    fn packet(&mut self, from: u8, bytes: u64) {
        self.bytes_by_address.entry(at(from)).or_default().received += bytes;
        self.validation.on_packet(self.now, 0, at(from), self.route(), bytes);
        self.update();
    }

    fn update(&mut self) {
        self.validation.update(self.now, &self.routes, CHALLENGE);
        while let Some(challenge) = self.validation.poll_challenge() {
            let book = self.bytes_by_address.entry(challenge.to).or_default();
            book.sent += CHALLENGE + 28;
            if let Some(trip) = self.answers.get(&challenge.to) {
                self.answers_in_flight.push((self.now + *trip, challenge.to, challenge.nonce));
            }
        }
        while let Some(moved) = self.validation.poll_move() {
            let book = &self.bytes_by_address[&moved.to];
            assert!(book.answered, "moved to {:?}, which never answered", moved.to);
            self.routes[moved.path] = Some(moved.to);
            self.moves += 1;
        }
        self.check();
    }

    fn check(&self) {
        for (address, book) in &self.bytes_by_address {
            let fair = book.answered || book.sent <= 3 * book.received;
            assert!(fair, "{address:?}: {} B in answer to {} B", book.sent, book.received);
        }
    }

    /// The engine sends a packet on the path, if it may.
    fn send(&mut self, bytes: u64) {
        let limited = self.validation.is_send_limited(0);
        if !limited || self.validation.charge(0, bytes) {
            let route = self.route();
            self.bytes_by_address.entry(route).or_default().sent += bytes;
        }
        self.check();
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.now += STEP;
            let arrived: Vec<_> =
                self.answers_in_flight.iter().filter(|one| one.0 <= self.now).copied().collect();
            self.answers_in_flight.retain(|one| one.0 > self.now);
            for (_, from, nonce) in arrived {
                self.bytes_by_address.entry(from).or_default().answered = true;
                self.validation.on_answer(self.now, nonce, None);
            }
            self.update();
        }
    }

    /// The peer's packets arrive from host `from` during `span`, one every 20 ms.
    fn send_every_20_ms(&mut self, from: u8, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            self.packet(from, 200);
            self.send(1500);
            self.run(Duration::from_millis(20));
        }
    }
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_peer_behind_a_translator_that_changes_its_address_is_followed_within_about_a_second() {
    for trip in [5, 50, 300] {
        let mut world = World::new(ms(trip));
        world.answers = BTreeMap::from([(at(2), ms(trip))]);
        world.send_every_20_ms(2, ms(200 + 3 * trip));
        assert_eq!((world.route(), world.moves), (at(2), 1), "{trip} ms");
    }
}

#[test]
fn copies_from_beside_the_way_move_nothing_while_the_peer_answers() {
    // The third party is silent, or relays the challenge and its answer, sooner or later than the peer answers.
    for relayed in [None, Some(ms(10)), Some(ms(45)), Some(ms(90))] {
        let mut world = World::new(ms(40));
        if let Some(trip) = relayed {
            world.answers.insert(at(66), trip);
        }
        world.send_every_20_ms(66, ms(20_000));
        assert_eq!((world.route(), world.moves), (at(1), 0), "{relayed:?}");
        // Both are challenged about once a second.
        assert!(world.bytes_by_address[&at(1)].sent < 20_000 / 20 * 1500 + 40 * 200);
    }
}

#[test]
fn a_path_that_was_drawn_away_finds_its_way_back() {
    let mut world = World::new(ms(20));
    // The peer is unreachable for a while, and a third party relays everything.
    world.answers = BTreeMap::from([(at(66), ms(20))]);
    world.send_every_20_ms(66, ms(1000));
    assert_eq!(world.route(), at(66));
    // The third party stops. The path fails, and the peer's address is challenged again.
    world.answers = BTreeMap::from([(at(1), ms(20))]);
    world.run(ms(2000));
    let now = world.now;
    world.validation.on_failing(now, 0);
    world.run(ms(1000));
    assert_eq!(world.route(), at(1));
}

#[test]
fn a_third_party_that_never_answers_does_not_keep_the_peer_from_moving() {
    let mut world = World::new(ms(20));
    world.answers = BTreeMap::from([(at(2), ms(20))]);
    for round in 0..100 {
        world.packet(60 + round % 3, 100);
        world.run(ms(5));
        world.packet(2, 100);
        world.run(ms(15));
    }
    assert_eq!(world.route(), at(2));
}

#[test]
fn a_new_path_gets_three_times_what_came_from_it_until_it_answers() {
    let mut world = World::new(ms(20));
    world.routes[0] = Some(at(9));
    world.bytes_by_address.insert(at(9), AddressBytes { received: 100, ..AddressBytes::default() });
    world.validation.on_new_path(0, 100);
    for _ in 0..50 {
        world.send(60);
    }
    assert_eq!(world.bytes_by_address[&at(9)].sent, 300);
    world.packet(9, 50);
    world.send(150);
    world.send(1);
    assert_eq!(world.bytes_by_address[&at(9)].sent, 450);
    world.bytes_by_address.get_mut(&at(9)).expect("it is known").answered = true;
    world.validation.on_confirmed(0);
    world.send(1500);
    assert_eq!(world.bytes_by_address[&at(9)].sent, 1950);
}

#[test]
fn listed_addresses_share_three_times_what_the_association_received() {
    let mut validation = PathValidation::default();
    validation.on_packet(Time::ZERO, 0, at(1), at(1), 100);
    for path in 1..4 {
        validation.on_listed(path);
    }
    let left = (0..30).filter(|n| validation.charge(1 + n % 3, 20)).count();
    assert_eq!(left, 15);
}

proptest! {
    /// Packets arrive in random order from the peer, from victims whose address is spoofed, and from third parties
    /// that answer. Then only the peer remains.
    #[test]
    fn no_address_gets_more_than_three_times_what_it_sent_before_it_answers(
        trip in 1_u64..400,
        steps in prop::collection::vec((1_u8..8, 30_u64..1500, 0_u64..300, 0_u64..4000), 1..80),
        home in 1_u8..3,
    ) {
        let mut world = World::new(ms(trip));
        // Third parties relay the challenge. Hosts from 5 on are victims and never answer.
        world.answers.extend((3..5).map(|host| (at(host), ms(trip / 2 + 1))));
        if home == 2 {
            world.answers.insert(at(2), ms(trip));
        }
        for (from, bytes, pause, sent) in steps {
            world.packet(from, bytes);
            world.send(sent);
            world.run(ms(pause));
        }
        world.answers.retain(|host, _| *host == at(home));
        world.send_every_20_ms(home, ms(12_000));
        prop_assert_eq!(world.route(), at(home));
    }
}
