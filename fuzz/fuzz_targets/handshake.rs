//! The handshake of the sealing layer: strangers who know the responder's public key, peers who are
//! allowed and say nonsense, and datagrams that are changed on their way. No answer is larger than its question,
//! and there is a session only where nothing was changed.

#![no_main]

use std::net::SocketAddr;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign};
use ropewalk_base::{Duration, Time};
use ropewalk_fuzz::Input;
use ropewalk_runtime::seal::{
    Allowed, Answer, FIRST_MAX, FIRST_MIN, Finish, Initiator, PresharedKey, Responder, SecretKey,
    Timestamp,
};

/// The responder's key, one that is allowed, and one that is not: fixed, so that a finding happens again.
static KEYS: LazyLock<[SecretKey; 3]> =
    LazyLock::new(|| [0, 1, 2].map(|key| secret_text(key).parse().expect("32 bytes of base64")));

/// The pre-shared key of all peers, where one is used.
static PSK: LazyLock<PresharedKey> =
    LazyLock::new(|| secret_text(8).parse().expect("32 bytes of base64"));

/// A secret as in a key file.
fn secret_text(key: u8) -> String {
    STANDARD.encode([key + 1; 32])
}
const PREFIX: usize = 6;
const TOKEN: usize = 24;
const MAC: usize = 16;
const KNOWN: usize = 1;
/// Most that is done with one input: each handshake costs a Diffie-Hellman or four.
const STEPS: usize = 12;

/// As the responder's public key lets anybody make it (`docs/reference/sealing.md`).
fn mac(before: &[u8], body: &[u8]) -> [u8; MAC] {
    let named = [b"ropewalk 1 first", KEYS[0].public().as_bytes().as_slice()].concat();
    let key = Key::new(HMAC_SHA256, digest(&SHA256, &named).as_ref());
    let whole = sign(&key, &[before, body].concat());
    *whole.as_ref().first_chunk().expect("32 bytes")
}

/// All but the MAC.
fn sealed(datagram: &[u8]) -> &[u8] {
    &datagram[..datagram.len().saturating_sub(MAC)]
}

/// Writes the right MAC at the end.
fn sign_again(before: &[u8], datagram: &mut [u8]) {
    if let Some(at) = datagram.len().checked_sub(MAC) {
        let right = mac(before, &datagram[..at]);
        datagram[at..].copy_from_slice(&right);
    }
}

fn address(number: u8) -> SocketAddr {
    ([192, 0, 2, number % 8], 5000).into()
}

/// A handshake on its way.
struct Try {
    initiator: Initiator,
    datagram: Vec<u8>,
    key: usize,
    answer: Option<Vec<u8>>,
}

struct World {
    responder: Responder,
    /// Whether those who are not listed may come in too.
    anyone: bool,
    /// Whether a pre-shared key is used.
    psk: bool,
    now: Time,
    clock: u64,
    attempt: Try,
}

impl World {
    fn new(anyone: bool, psk: bool) -> Self {
        let allowed =
            if anyone { Allowed::Anyone } else { Allowed::Keys([KEYS[KNOWN].public()].into()) };
        let mut responder = Responder::new(KEYS[0].clone(), allowed).expect("random numbers");
        responder.set_psk(psk.then(|| PSK.clone()));
        let attempt = begin(KNOWN, psk, 1, 0, b"");
        Self { responder, anyone, psk, now: Time::from_secs(1), clock: 1, attempt }
    }

    /// What an unauthenticated peer sends. Right MACs can be made, sealed keys cannot.
    fn unauthenticated(&mut self, input: &mut Input<'_>) {
        let (from, signs, long) = (input.byte(), input.byte(), input.byte());
        let mut datagram = input.block().to_vec();
        if long & 1 == 1 {
            datagram.resize(datagram.len().clamp(FIRST_MIN, FIRST_MAX), 0);
        }
        if signs & 1 == 1 {
            sign_again(&[], &mut datagram);
        }
        let answer = self.responder.handle(self.now, address(from), &datagram, 5);
        match answer {
            Answer::Drop => {}
            Answer::Reply(reply) => {
                assert!(signs & 1 == 1 || datagram.len() >= FIRST_MIN);
                assert!(reply.len() <= datagram.len());
            }
            Answer::Established(_) => panic!("a session for nobody"),
        }
    }

    /// An initiator's first datagram, changed on its way or not.
    fn initiation(&mut self, input: &mut Input<'_>) {
        let (what, from) = (input.byte(), input.byte());
        let mut datagram = self.attempt.datagram.clone();
        let at = input.number() as usize % datagram.len();
        let by = if what & 3 == 0 { input.byte() } else { 0 };
        datagram[at] ^= by;
        if what & 4 == 4 {
            sign_again(&[], &mut datagram);
        }
        // The token is no part of what Noise seals, and the MAC is computed again.
        let free = PREFIX..PREFIX + TOKEN;
        let same = by == 0 || free.contains(&at) || at >= datagram.len() - MAC;
        match self.responder.handle(self.now, address(from), &datagram, 6) {
            Answer::Drop => {}
            Answer::Reply(reply) => {
                assert!(reply.len() <= datagram.len());
                self.attempt.answer = Some(reply);
            }
            Answer::Established(established) => {
                assert!(same, "byte {at} was changed by {by:#x}");
                assert!(self.anyone || self.attempt.key == KNOWN);
                assert_eq!(established.peer, KEYS[self.attempt.key].public());
                assert!(established.reply.len() <= datagram.len());
                self.attempt.answer = Some(established.reply);
            }
        }
    }

    /// The answer on its way back, changed or not, or something else in its place.
    fn answer(&mut self, input: &mut Input<'_>) {
        let (what, kind) = (input.byte(), input.byte());
        let Some(mut answer) = self.attempt.answer.clone() else { return };
        let mut same = true;
        if what & 3 == 0 {
            same = !input.spoil(&mut answer);
        } else if what & 3 == 1 {
            same = false;
            answer.truncate(PREFIX);
            answer[0] = kind;
            answer.extend_from_slice(input.block());
            answer.extend_from_slice(&[0; MAC]);
        }
        if what & 4 == 4 {
            let asked = &self.attempt.datagram;
            let first = asked[asked.len() - MAC..].to_vec();
            sign_again(&first, &mut answer);
            // Only the MAC itself may have been changed, and is right now. (It need not be what it was: the
            // answer may be one to this first datagram with another token.)
            same |= self.attempt.answer.as_deref().map(sealed) == Some(sealed(&answer));
        }
        match self.attempt.initiator.finish(self.now, &answer) {
            Ok(Finish::Established(session)) => {
                assert!(same, "a changed reply");
                assert_eq!(session.peer(), KEYS[0].public());
                self.attempt.answer = None;
            }
            Ok(Finish::Again(datagram)) => {
                assert!((FIRST_MIN..=FIRST_MAX).contains(&datagram.len()));
                self.attempt.datagram = datagram;
            }
            Err(_) => {}
        }
    }

    /// Somebody who has an allowed key says in its first message what it likes.
    fn nonsense(&mut self, input: &mut Input<'_>) {
        let (from, cut) = (input.byte(), input.byte());
        let mut content = input.block().to_vec();
        if cut & 1 == 0 {
            content.resize(content.len().max(FIRST_MIN), 0);
        }
        let Some(datagram) = first_with(&content) else { return };
        match self.responder.handle(self.now, address(from), &datagram, 7) {
            Answer::Drop => {}
            Answer::Reply(reply) => assert!(reply.len() <= datagram.len()),
            Answer::Established(made) => {
                assert!(made.payload.len() + 11 <= content.len());
                assert_eq!(made.payload, content[11..11 + made.payload.len()]);
            }
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        match input.byte() % 8 {
            0 | 1 => self.unauthenticated(input),
            2 | 3 => self.initiation(input),
            4 => self.answer(input),
            5 => self.nonsense(input),
            6 => {
                let (key, payload) = (input.byte(), input.byte());
                self.clock += u64::from(key >> 4);
                let payload = vec![1; usize::from(payload)];
                self.attempt =
                    begin(1 + usize::from(key & 1), self.psk, self.clock, key.into(), &payload);
            }
            _ => self.now += Duration::from_millis(u64::from(input.number())),
        }
        assert!(self.responder.remembered() <= STEPS);
    }
}

fn begin(key: usize, psk: bool, clock: u64, session: u32, payload: &[u8]) -> Try {
    let sent = Timestamp::from_unix_nanos(clock);
    let peer = KEYS[0].public();
    let psk = psk.then(|| PSK.clone());
    let made = Initiator::with_psk(&KEYS[key], peer, psk, sent, session, payload);
    let (initiator, datagram) = made.expect("a short payload");
    assert!((FIRST_MIN..=FIRST_MAX).contains(&datagram.len()));
    Try { initiator, datagram, key, answer: None }
}

/// A first datagram with this content, by the known initiator; none if it is too long for Noise.
fn first_with(content: &[u8]) -> Option<Vec<u8>> {
    const PATTERN: &str = "Noise_IK_25519_ChaChaPoly_SHA256";
    let mut datagram = vec![1, 1, 0, 0, 0, 9];
    let secret = STANDARD.decode(secret_text(KNOWN as u8)).expect("base64");
    let builder = snow::Builder::new(PATTERN.parse().expect("a pattern"));
    let builder = builder.prologue(&datagram).expect("once");
    let builder = builder.local_private_key(&secret).expect("once");
    let peer = KEYS[0].public();
    let builder = builder.remote_public_key(peer.as_bytes()).expect("once");
    let mut state = builder.build_initiator().expect("complete");
    datagram.extend([0; TOKEN]);
    let mut message = vec![0; 96 + content.len()];
    let length = state.write_message(content, &mut message).ok()?;
    datagram.extend(&message[..length]);
    datagram.extend([0; MAC]);
    sign_again(&[], &mut datagram);
    Some(datagram)
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let how = input.byte();
    let mut world = World::new(how & 1 == 1, how & 2 == 2);
    for _ in 0..STEPS {
        if input.is_over() {
            break;
        }
        world.step(&mut input);
    }
});
