//! An attacker sees everything that the initiator sends, forges answers that need no secret, and duplicates and
//! reorders datagrams. A genuine Reply to the current attempt must always lead to a session.

use proptest::prelude::*;
use ropewalk_base::{Duration, Time};

use super::*;
use crate::seal::initiator::HandshakeError;
use crate::seal::mac::MacKey;
use crate::seal::wire::VERSION;

const NOW: Time = Time::from_secs(1000);
/// As in the documentation of the format.
const RETRY: u8 = 3;
const VERSIONS: u8 = 4;
const REPLY: u8 = 2;

/// An answer to a first datagram that any observer of the datagram can make.
fn forge(pair: &Pair, first: &[u8], kind: u8, version: u8, body: &[u8]) -> Vec<u8> {
    let mut answer = vec![kind, version];
    answer.extend(CLIENT.to_be_bytes());
    answer.extend(body);
    let mac = *first.last_chunk().expect("a MAC");
    MacKey::of(&pair.server_key).sign_answer(&mac, &mut answer);
    answer
}

fn forged_retry(pair: &Pair, first: &[u8], number: u32) -> Vec<u8> {
    let token: Vec<u8> = number.to_be_bytes().into_iter().cycle().take(24).collect();
    forge(pair, first, RETRY, VERSION, &token)
}

fn resent_datagram(finish: Result<Finish, HandshakeError>) -> Vec<u8> {
    match finish {
        Ok(Finish::Again(datagram)) => datagram,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_forged_retry_costs_one_datagram_and_the_genuine_reply_still_counts() {
    let mut pair = Pair::new();
    let (mut initiator, first) = pair.first(b"");
    let genuine = established(pair.answer(NOW, home(), &first)).reply;
    let forged = forged_retry(&pair, &first, 7);
    let resent = resent_datagram(initiator.finish(NOW, &forged));
    assert_eq!(initiator.finish(NOW, &forged).expect_err("twice"), HandshakeError::KnownToken);
    // The resent datagram leads to the same session. A Retry that answers it is not followed.
    let reply = reply(pair.answer(NOW, home(), &resent));
    let second = forged_retry(&pair, &resent, 8);
    assert_eq!(initiator.finish(NOW, &second).expect_err("refused"), HandshakeError::Forged);
    let mut other = pair.first(b"").0;
    assert!(other.finish(NOW, &reply).is_err());
    session(initiator.finish(NOW, &genuine));
}

#[test]
fn the_reply_to_a_resend_counts_where_the_first_one_was_lost() {
    let mut pair = Pair::new();
    let (mut initiator, first) = pair.first(b"");
    let resent = resent_datagram(initiator.finish(NOW, &forged_retry(&pair, &first, 7)));
    let made = established(pair.answer(NOW, home(), &resent));
    let mut client = session(initiator.finish(NOW, &made.reply));
    let mut server = made.session;
    let datagram = sealed(&mut client, 0, b"x");
    assert_eq!(opened(&mut server, NOW, &datagram), Ok((0, b"x".to_vec())));
}

#[test]
fn a_copy_that_overtakes_the_first_datagram_takes_nothing_away() {
    let mut pair = Pair::new();
    let (mut initiator, first) = pair.first(b"");
    // Its Reply goes to another address.
    let mut made = established(pair.answer(NOW, address("198.51.100.1:9"), &first));
    let reply = reply(pair.answer(NOW, home(), &first));
    assert!(reply.len() <= first.len());
    let mut client = session(initiator.finish(NOW, &reply));
    let datagram = sealed(&mut client, 0, b"x");
    assert_eq!(opened(&mut made.session, NOW, &datagram), Ok((0, b"x".to_vec())));
}

#[test]
fn forged_versions_end_nothing_and_show_what_can_be_true_only() {
    let mut pair = Pair::new();
    let (mut initiator, first) = pair.first(b"");
    let genuine = established(pair.answer(NOW, home(), &first)).reply;
    let many = [9; 1000];
    for (versions, error) in [
        (&[][..], HandshakeError::Forged),
        (&[3, VERSION], HandshakeError::Forged),
        (&[1, 2], HandshakeError::OtherVersion(vec![1, 2])),
        (&many, HandshakeError::OtherVersion(vec![9; 8])),
    ] {
        let forged = forge(&pair, &first, VERSIONS, 7, versions);
        assert_eq!(initiator.finish(NOW, &forged).expect_err("no session"), error);
    }
    session(initiator.finish(NOW, &genuine));
}

#[test]
fn an_attempt_obeys_a_bounded_number_of_retries_and_the_next_one_as_many() {
    let mut pair = Pair::new();
    let (mut initiator, mut first) = pair.first(b"");
    for attempt in 0..2 {
        let mut obeyed = 0;
        for number in 0..5000 {
            match initiator.finish(NOW, &forged_retry(&pair, &first, number)) {
                Ok(Finish::Again(_)) => obeyed += 1,
                Err(HandshakeError::TooManyRetries) => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(obeyed, 4096, "attempt {attempt}");
        first = initiator.restart(Timestamp::from_unix_nanos(0)).expect("a datagram");
    }
    let genuine = established(pair.answer(NOW, home(), &first)).reply;
    session(initiator.finish(NOW, &genuine));
}

/// The genuine path has a delay of 10 ms of virtual time. The attacker is 1 ms from the initiator and answers each of
/// its datagrams with so many forged Retries. Returns the time until there is a session.
fn time_under_a_flood(allowed: fn(&SecretKey) -> Allowed, forged_per_datagram: u32) -> Duration {
    const NEAR: Duration = Duration::from_millis(1);
    const FAR: Duration = Duration::from_millis(10);
    let client = secret();
    let allowed = allowed(&client);
    let mut pair = Pair::with(client, allowed);
    let (mut initiator, first) = pair.first(b"");
    // Datagrams in flight, by arrival time: to the server and to the client.
    let (mut up, mut down) = (vec![(NOW + FAR, first.clone())], Vec::new());
    let forge_all = |pair: &Pair, now: Time, first: &[u8], down: &mut Vec<(Time, Vec<u8>)>| {
        for number in 0..forged_per_datagram {
            down.push((now + NEAR, forged_retry(pair, first, number)));
        }
    };
    forge_all(&pair, NOW, &first, &mut down);
    for millisecond in 0..5000 {
        let now = NOW + Duration::from_millis(millisecond);
        for (_, datagram) in up.extract_if(.., |(at, _)| *at <= now) {
            let answer = match pair.answer(now, home(), &datagram) {
                Answer::Reply(answer) => answer,
                Answer::Established(made) => made.reply,
                Answer::Drop => continue,
            };
            down.push((now + FAR, answer));
        }
        let arrived: Vec<_> = down.extract_if(.., |(at, _)| *at <= now).collect();
        for (_, datagram) in arrived {
            match initiator.finish(now, &datagram) {
                Ok(Finish::Established(_)) => return now.since(NOW),
                Ok(Finish::Again(datagram)) => {
                    up.push((now + FAR, datagram));
                }
                Err(_) => {}
            }
        }
        if millisecond == 500 || millisecond == 1500 {
            let first = initiator.restart(Timestamp::from_unix_nanos(0)).expect("a datagram");
            forge_all(&pair, now, &first, &mut down);
            up.push((now + FAR, first));
        }
    }
    panic!("no session");
}

#[test]
fn a_handshake_succeeds_within_two_seconds_under_a_flood_of_forged_retries() {
    let listed = |client: &SecretKey| Allowed::Keys([client.public()].into());
    for (name, allowed) in
        [("listed", listed as fn(&SecretKey) -> Allowed), ("anyone", |_| Allowed::Anyone)]
    {
        for forged in [0, 1, 100, 2000] {
            let took = time_under_a_flood(allowed, forged);
            assert!(took <= Duration::from_secs(2), "{name}, {forged} forged: {took:?}");
        }
    }
}

/// The next event, drawn by proptest.
#[derive(Clone, Debug)]
enum Step {
    /// A datagram of the initiator arrives at the responder; it may arrive again.
    Up {
        which: usize,
        elsewhere: bool,
    },
    /// An answer of the responder arrives at the initiator; it may arrive again.
    Down {
        which: usize,
    },
    /// A forged answer to one of the initiator's datagrams arrives.
    Forged {
        to: usize,
        kind: u8,
        body: Vec<u8>,
    },
    /// No answer arrived in time.
    Again,
    Wait {
        milliseconds: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0_usize..8;
    let kind = prop::sample::select(vec![RETRY, RETRY, VERSIONS, REPLY, 1, 5, 0x80]);
    let length = prop::sample::select(vec![24_usize, 53, 1, 0, 70]);
    let body = (length, any::<u8>()).prop_map(|(length, byte)| vec![byte; length]);
    prop_oneof![
        3 => (which.clone(), any::<bool>()).prop_map(|(which, elsewhere)| Step::Up { which, elsewhere }),
        3 => which.clone().prop_map(|which| Step::Down { which }),
        4 => (which, kind, body).prop_map(|(to, kind, body)| Step::Forged { to, kind, body }),
        1 => Just(Step::Again),
        1 => (0_u64..400).prop_map(|milliseconds| Step::Wait { milliseconds }),
    ]
}

/// An answer, whether it is a Reply, and the attempt whose datagram it answers.
type Given = (Vec<u8>, bool, usize);

struct World {
    pair: Pair,
    initiator: Initiator,
    /// Each with the attempt that it belongs to.
    sent: Vec<(usize, Vec<u8>)>,
    answers: Vec<Given>,
    attempt: usize,
    now: Time,
}

impl World {
    /// Returns whether there is a session, and whether there must be one.
    fn take(&mut self, step: Step) -> (bool, bool) {
        match step {
            Step::Up { which, elsewhere } => {
                // Late datagrams are as likely as early ones.
                let at = self.sent.len().saturating_sub(1 + which);
                let (attempt, datagram) = self.sent[at].clone();
                let from = if elsewhere { address("198.51.100.1:9") } else { home() };
                match self.pair.answer(self.now, from, &datagram) {
                    Answer::Drop => {}
                    Answer::Reply(answer) => {
                        let is_reply = answer[0] == REPLY;
                        self.answers.push((answer, is_reply, attempt));
                    }
                    Answer::Established(made) => self.answers.push((made.reply, true, attempt)),
                }
                (false, false)
            }
            Step::Down { which } => {
                let Some(at) = self.answers.len().checked_sub(1 + which) else {
                    return (false, false);
                };
                let (answer, is_reply, attempt) = self.answers[at].clone();
                (self.deliver(&answer), is_reply && attempt == self.attempt)
            }
            Step::Forged { to, kind, body } => {
                let at = self.sent.len().saturating_sub(1 + to);
                let forged = forge(&self.pair, &self.sent[at].1, kind, VERSION, &body);
                (self.deliver(&forged), false)
            }
            Step::Again => {
                self.attempt += 1;
                let date = Timestamp::from_unix_nanos(0);
                let first = self.initiator.restart(date).expect("a datagram");
                self.sent.push((self.attempt, first));
                (false, false)
            }
            Step::Wait { milliseconds } => {
                self.now = self.now.saturating_add(Duration::from_millis(milliseconds));
                (false, false)
            }
        }
    }

    fn deliver(&mut self, answer: &[u8]) -> bool {
        match self.initiator.finish(self.now, answer) {
            Ok(Finish::Established(_)) => true,
            Ok(Finish::Again(datagram)) => {
                self.sent.push((self.attempt, datagram));
                false
            }
            Err(_) => false,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn a_genuine_reply_to_the_present_attempt_always_completes_the_handshake(
        anyone: bool, steps in prop::collection::vec(step(), 1..60),
    ) {
        let client = secret();
        let allowed =
            if anyone { Allowed::Anyone } else { Allowed::Keys([client.public()].into()) };
        let mut pair = Pair::with(client, allowed);
        let (initiator, first) = pair.first(b"");
        let (sent, answers) = (vec![(0, first)], Vec::new());
        let mut world = World { pair, initiator, sent, answers, attempt: 0, now: NOW };
        let mut done = false;
        for step in steps {
            let shown = format!("{step:?}");
            let (is_done, has_to_be) = world.take(step);
            prop_assert_eq!(is_done, has_to_be, "{}", shown);
            if is_done {
                done = true;
                break;
            }
        }
        if !done {
            // Then the network recovers, while the attacker continues.
            let (_, has_to_be) = world.take(Step::Again);
            prop_assert!(!has_to_be);
            let mut rounds = 0;
            while !done && rounds < 3 {
                rounds += 1;
                // Far below the allowance per source and second.
                world.take(Step::Wait { milliseconds: 1001 });
                world.take(Step::Forged { to: 0, kind: RETRY, body: vec![rounds; 24] });
                let fresh: Vec<_> = world.sent.iter().filter(|(attempt, _)| *attempt == world.attempt).cloned().collect();
                for (_, datagram) in fresh {
                    let answer = match world.pair.answer(world.now, home(), &datagram) {
                        Answer::Drop => continue,
                        Answer::Reply(answer) => answer,
                        Answer::Established(made) => made.reply,
                    };
                    done = done || world.deliver(&answer);
                }
            }
            prop_assert!(done, "no session after {} rounds", rounds);
        }
    }
}
