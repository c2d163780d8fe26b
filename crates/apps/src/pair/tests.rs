//! Both ends of a pairing, without sockets.

use std::net::SocketAddr;

use proptest::prelude::*;
use ropewalk_base::{Duration, Time};
use ropewalk_runtime::seal::{PairingError, SecretKey};

use super::initiator::Initiator;
use super::message::Message;
use super::responder::Responder;
use super::{Code, Introduction};

const NOW: Time = Time::from_secs(1);

struct Ends {
    initiator: Initiator,
    responder: Responder,
    keys: [SecretKey; 2],
}

fn target() -> SocketAddr {
    ([192, 0, 2, 7], 9899).into()
}

fn named(name: &str) -> Introduction {
    Introduction { name: name.to_owned(), ..Introduction::default() }
}

fn code() -> Code {
    Code::generate().expect("random numbers")
}

fn secret() -> SecretKey {
    SecretKey::generate().expect("random numbers")
}

/// Where an honest initiator sends from.
fn home() -> SocketAddr {
    ([198, 51, 100, 1], 50_000).into()
}

fn responder(code: Code, secret: &SecretKey) -> Responder {
    Responder::new(code, secret.clone(), &named("server"), NOW).expect("random numbers")
}

fn initiator(code: &Code, secret: &SecretKey) -> Initiator {
    Initiator::new(code, secret, &named("laptop"), vec![target()]).expect("random numbers")
}

impl Ends {
    fn new(typed: &Code, shown: Code) -> Self {
        let keys = [secret(), secret()];
        let responder = responder(shown, &keys[1]);
        Self { initiator: initiator(typed, &keys[0]), responder, keys }
    }

    /// The initiator's current datagram.
    fn sent(&self) -> Vec<u8> {
        self.initiator.transmit().0.to_vec()
    }

    /// One datagram to the responder and its answer to the initiator.
    fn exchange(&mut self) -> Option<Vec<u8>> {
        let sent = self.sent();
        let answer = self.responder.handle_datagram(NOW, home(), &sent)?;
        self.initiator.handle_datagram(target(), &answer);
        Some(answer)
    }

    fn assert_paired(&self) {
        let joined = self.initiator.joined().expect("the initiator has a peer");
        let peer = self.responder.paired().expect("the responder has a peer");
        assert_eq!((joined.peer.key, peer.key), (self.keys[1].public(), self.keys[0].public()));
        assert_eq!(joined.introduction, named("server"));
        assert_eq!(Introduction::decode(&peer.introduction), Some(named("laptop")));
    }
}

#[test]
fn two_ends_with_one_code_learn_each_others_keys_in_four_round_trips() {
    let code = code();
    let mut ends = Ends::new(&code, code.clone());
    for round in 0..4 {
        assert!(ends.initiator.joined().is_none(), "round {round}");
        ends.exchange().expect("an answer");
    }
    ends.assert_paired();
    // The next transmission goes to further addresses of the peer, and is answered there.
    let other: SocketAddr = ([198, 51, 100, 7], 9899).into();
    let answer = ends.responder.handle_datagram(NOW, home(), &ends.sent()).expect("an answer");
    ends.initiator.handle_datagram(other, &answer);
    assert_eq!(ends.initiator.joined().expect("a peer").answered, [target(), other]);
}

#[test]
fn a_wrong_code_ends_both_ends_and_the_right_one_comes_too_late() {
    let shown = code();
    let mut ends = Ends::new(&code(), shown.clone());
    ends.exchange().expect("a cookie");
    ends.exchange().expect("an answer");
    ends.exchange().expect("a refusal");
    assert!(ends.responder.is_refused());
    assert_eq!(ends.initiator.failed(), Some(PairingError::WrongCode));
    assert!(ends.initiator.transmit().1.is_empty());
    let late = initiator(&shown, &ends.keys[0]);
    assert_eq!(ends.responder.handle_datagram(NOW, home(), late.transmit().0), None);
}

/// An exchange that began before another one used a wrong code must not be continued.
#[test]
fn a_wrong_code_ends_the_exchanges_that_had_begun() {
    let shown = code();
    let mut ends = Ends::new(&shown, shown.clone());
    ends.exchange().expect("a cookie");
    ends.exchange().expect("an answer");
    let mut guess = initiator(&code(), &secret());
    for expected in ["a cookie", "an answer", "a refusal"] {
        let sent = guess.transmit().0.to_vec();
        let answer = ends.responder.handle_datagram(NOW, home(), &sent).expect(expected);
        guess.handle_datagram(target(), &answer);
    }
    assert!(ends.responder.is_refused());
    assert_eq!(ends.exchange(), None);
    assert!(ends.responder.paired().is_none());
}

/// Without the token of an answer, a sender with a forged source address cannot use up the code.
#[test]
fn a_proof_under_another_token_does_not_use_up_the_code() {
    let shown = code();
    let mut ends = Ends::new(&shown, shown.clone());
    ends.exchange().expect("a cookie");
    ends.exchange().expect("an answer");
    let forged = Message::Proof { token: [7; 16], noise: &[0; 48] }.encode();
    assert_eq!(ends.responder.handle_datagram(NOW, home(), &forged), None);
    ends.exchange().expect("an introduction");
    ends.exchange().expect("a confirmation");
    ends.assert_paired();
}

#[test]
fn a_responder_without_the_code_is_not_accepted() {
    let shown = code();
    let mut ends = Ends::new(&code(), shown);
    // It answers everything, but cannot check the proof.
    let begun = ends.sent();
    let Some(Message::Begin { exchange, .. }) = Message::decode(&begun) else { panic!("begins") };
    ends.exchange().expect("a cookie");
    ends.exchange().expect("an answer");
    let answer = Message::ResponderIntroduction { exchange, noise: &[9; 96] }.encode();
    ends.initiator.handle_datagram(target(), &answer);
    assert_eq!(ends.initiator.failed(), Some(PairingError::WrongCode));
}

/// An attacker that starts exchanges from many sources. `forged` means that it does not receive the answers.
struct Flood {
    guess: Vec<u8>,
    sources: u16,
    forged: bool,
    sent: u32,
}

impl Flood {
    fn new(sources: u16, forged: bool) -> Self {
        let guess = initiator(&code(), &secret()).transmit().0.to_vec();
        Self { guess, sources, forged, sent: 0 }
    }

    /// Begins one exchange.
    fn begin(&mut self, responder: &mut Responder, now: Time) {
        self.sent += 1;
        let [high, low] = ((self.sent % u32::from(self.sources)) as u16).to_be_bytes();
        let from = SocketAddr::from(([203, 0, high, low], 4000));
        let mut datagram = self.guess.clone();
        datagram[5..9].copy_from_slice(&self.sent.to_be_bytes());
        let answer = responder.handle_datagram(now, from, &datagram);
        let cookie = answer.as_deref().and_then(Message::decode);
        if let (Some(Message::Cookie { cookie, .. }), false) = (cookie, self.forged)
            && let Some(Message::Begin { exchange, pake, .. }) = Message::decode(&datagram)
        {
            let again = Message::Begin { exchange, pake, cookie }.encode();
            responder.handle_datagram(now, from, &again);
        }
    }
}

/// The initiator sends one datagram per 300 ms, and the attacker 200 and more per second.
#[test]
fn a_flood_of_beginnings_from_other_sources_does_not_keep_a_peer_out() {
    for (sources, forged, per_second) in [
        (1, true, 200),
        (u16::MAX, true, 200),
        (u16::MAX, true, 5000),
        (1, false, 5000),
        (20, false, 200),
    ] {
        let shown = code();
        let mut ends = Ends::new(&shown, shown.clone());
        let mut flood = Flood::new(sources, forged);
        for round in 0..4 {
            for number in 0..per_second * 3 / 10 {
                let ms = 300 * round + number * 1000 / per_second;
                let now = NOW.saturating_add(Duration::from_millis(ms));
                flood.begin(&mut ends.responder, now);
            }
            assert!(ends.responder.half_open() <= 256);
            let now = NOW.saturating_add(Duration::from_millis(300 * (round + 1)));
            let sent = ends.sent();
            let answer = ends.responder.handle_datagram(now, home(), &sent);
            let answer = answer.unwrap_or_else(|| panic!("{sources} sources, round {round}"));
            ends.initiator.handle_datagram(target(), &answer);
        }
        ends.assert_paired();
    }
}

#[test]
fn beginnings_without_a_cookie_leave_no_state_and_those_of_a_source_are_few() {
    let mut responder = responder(code(), &secret());
    let mut forged = Flood::new(u16::MAX, true);
    (0..1000).for_each(|_| forged.begin(&mut responder, NOW));
    assert_eq!(responder.half_open(), 0);
    let mut one = Flood::new(1, false);
    (0..1000).for_each(|_| one.begin(&mut responder, NOW));
    assert_eq!(responder.half_open(), 4);
    let mut many = Flood::new(u16::MAX, false);
    (0..1000).for_each(|_| many.begin(&mut responder, NOW));
    assert_eq!(responder.half_open(), 32, "what may begin immediately");
}

/// A cookie only serves the address to which it was sent.
#[test]
fn a_cookie_of_another_address_begins_nothing() {
    let shown = code();
    let mut ends = Ends::new(&shown, shown.clone());
    ends.exchange().expect("a cookie");
    for other in [([198, 51, 100, 1], 50_001), ([198, 51, 100, 2], 50_000)] {
        let answer = ends.responder.handle_datagram(NOW, other.into(), &ends.sent());
        let answer = answer.expect("another cookie");
        assert!(matches!(Message::decode(&answer), Some(Message::Cookie { .. })));
    }
    assert_eq!(ends.responder.half_open(), 0);
}

/// The fate of a datagram.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    Twice,
    /// The datagram arrives, followed by a copy in which this byte has changed.
    WithChangedCopy(usize),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        2 => Just(Fate::Twice),
        2 => (0usize..600).prop_map(Fate::WithChangedCopy),
    ]
}

fn copies(datagram: &[u8], fate: Fate) -> Vec<Vec<u8>> {
    match fate {
        Fate::Arrives => vec![datagram.to_vec()],
        Fate::Lost => Vec::new(),
        Fate::Twice => vec![datagram.to_vec(); 2],
        Fate::WithChangedCopy(at) => {
            let mut copy = datagram.to_vec();
            let at = at % copy.len();
            copy[at] ^= 0x40;
            vec![datagram.to_vec(), copy]
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn loss_repetition_and_changed_copies_leave_both_ends_with_the_right_keys(
        fates in prop::collection::vec((fate(), fate()), 0..12),
    ) {
        let code = code();
        let mut ends = Ends::new(&code, code.clone());
        // Afterwards the network recovers.
        let healed = std::iter::repeat_n((Fate::Arrives, Fate::Arrives), 5);
        for (there, back) in fates.into_iter().chain(healed) {
            for datagram in copies(&ends.sent(), there) {
                let answer = ends.responder.handle_datagram(NOW, home(), &datagram);
                let Some(answer) = answer else { continue };
                for datagram in copies(&answer, back) {
                    ends.initiator.handle_datagram(target(), &datagram);
                }
            }
        }
        ends.assert_paired();
    }

    #[test]
    fn no_datagram_stops_either_end(
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
        kind in 0u8..10,
    ) {
        let code = code();
        let mut ends = Ends::new(&code, code.clone());
        for mut datagram in datagrams {
            ends.responder.handle_datagram(NOW, home(), &datagram);
            ends.initiator.handle_datagram(target(), &datagram);
            if datagram.len() > 5 {
                datagram[..4].copy_from_slice(b"RWP\x01");
                datagram[4] = kind;
                ends.responder.handle_datagram(NOW, home(), &datagram);
                ends.initiator.handle_datagram(target(), &datagram);
            }
        }
        for _ in 0..4 {
            ends.exchange();
        }
        ends.assert_paired();
    }
}
