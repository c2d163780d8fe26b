//! The cost of sealing a datagram: `cargo run --release -p ropewalk-runtime --example seal_speed`.
//!
//! The same AEAD on a bare buffer is measured for comparison. The difference is the cost of header,
//! counter and replay window.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use ropewalk_base::Time;
use ropewalk_runtime::seal::{
    Allowed, Answer, Finish, Initiator, Responder, SecretKey, Session, Timestamp,
};

/// Content of a datagram on a path of 1500 bytes.
const CONTENT: usize = 1400;
/// Datagrams per measurement, in batches as a socket takes them.
const DATAGRAMS: usize = 3200;
const BATCH: usize = 32;
/// Number of short measurements. The fastest counts: other load only slows the machine down. down.
const TRIES: usize = 300;

fn main() {
    let content = vec![7; CONTENT];
    let (mut client, mut server) = sessions();
    println!("{} in datagrams of {CONTENT} bytes", client.cipher());
    let (mut seal, mut open) = (f64::MAX, f64::MAX);
    for _ in 0..TRIES {
        let (sealed, opened) = measure(&mut client, &mut server, &content);
        (seal, open) = (seal.min(sealed), open.min(opened));
    }
    show("seal", seal);
    show("open", open);
    let bare = [
        ("bare AES-128-GCM", &AES_128_GCM),
        ("bare AES-256-GCM", &AES_256_GCM),
        ("bare ChaCha20-Poly1305", &CHACHA20_POLY1305),
    ];
    for (name, algorithm) in bare {
        let (mut seal, mut open) = (f64::MAX, f64::MAX);
        for _ in 0..TRIES {
            let (sealed, opened) = measure_bare(algorithm, &content);
            (seal, open) = (seal.min(sealed), open.min(opened));
        }
        show(&format!("{name} seal"), seal);
        show(&format!("{name} open"), open);
    }
    let (mut both, mut answer) = (u128::MAX, u128::MAX);
    for _ in 0..TRIES {
        let began = Instant::now();
        let (.., answered) = handshake();
        (both, answer) = (both.min(began.elapsed().as_nanos()), answer.min(answered));
    }
    println!("{:30} {:7.0} us", "two keys and a handshake", both as f64 / 1e3);
    println!("{:30} {:7.0} us", "of this, the responder", answer as f64 / 1e3);
}

fn show(what: &str, nanos: f64) {
    println!("{what:30} {nanos:7.1} ns {:6.2} GB/s", CONTENT as f64 / nanos);
}

fn sessions() -> (Session, Session) {
    let (client, server, _) = handshake();
    (client, server)
}

/// Both ends of a new session, and the nanoseconds that the responder took.
fn handshake() -> (Session, Session, u128) {
    let (client, server) = (SecretKey::generate().unwrap(), SecretKey::generate().unwrap());
    let allowed = Allowed::Keys([client.public()].into());
    let to = server.public();
    let mut responder = Responder::new(server, allowed).unwrap();
    let (mut initiator, first) = Initiator::new(&client, to, Timestamp::now(), 1, b"").unwrap();
    let from = "192.0.2.1:5000".parse().unwrap();
    let began = Instant::now();
    let answer = responder.handle(Time::ZERO, from, &first, 2);
    let took = began.elapsed().as_nanos();
    let Answer::Established(made) = answer else { panic!("no session") };
    let Ok(Finish::Established(session)) = initiator.finish(Time::ZERO, &made.reply) else {
        panic!("no session")
    };
    (*session, made.session, took)
}

/// Nanoseconds per datagram to seal and to open.
fn measure(client: &mut Session, server: &mut Session, content: &[u8]) -> (f64, f64) {
    let (mut sealing, mut opening) = (0, 0);
    let mut out = Vec::new();
    let mut ranges = Vec::with_capacity(BATCH);
    for batch in 0..DATAGRAMS / BATCH {
        out.clear();
        ranges.clear();
        let began = Instant::now();
        for _ in 0..BATCH {
            let path = (batch % 4) as u8;
            ranges.push(client.seal(path, &mut out, |out| out.extend_from_slice(content)).unwrap());
        }
        sealing += began.elapsed().as_nanos();
        let began = Instant::now();
        for range in &ranges {
            black_box(server.open(Time::ZERO, &mut out[range.clone()]).unwrap());
        }
        opening += began.elapsed().as_nanos();
        // An acknowledgement, so that keys can change.
        out.clear();
        server.seal(0, &mut out, |out| out.push(0)).unwrap();
        client.open(Time::ZERO, &mut out).unwrap();
    }
    (per_datagram(sealing), per_datagram(opening))
}

/// The same with the AEAD only; sealing includes copying the content into the buffer.
fn measure_bare(algorithm: &'static Algorithm, content: &[u8]) -> (f64, f64) {
    let key = vec![1; algorithm.key_len()];
    let key = LessSafeKey::new(UnboundKey::new(algorithm, &key).unwrap());
    let (mut sealing, mut opening) = (0, 0);
    let mut out = vec![0; BATCH * (CONTENT + 16)];
    for _ in 0..DATAGRAMS / BATCH {
        let began = Instant::now();
        for datagram in out.chunks_mut(CONTENT + 16) {
            let (body, place) = datagram.split_at_mut(CONTENT);
            body.copy_from_slice(content);
            let nonce = Nonce::assume_unique_for_key([0; 12]);
            let tag = key.seal_in_place_separate_tag(nonce, Aad::from([0; 10]), body).unwrap();
            place.copy_from_slice(tag.as_ref());
        }
        sealing += began.elapsed().as_nanos();
        let began = Instant::now();
        for datagram in out.chunks_mut(CONTENT + 16) {
            let nonce = Nonce::assume_unique_for_key([0; 12]);
            black_box(key.open_in_place(nonce, Aad::from([0; 10]), datagram).unwrap());
        }
        opening += began.elapsed().as_nanos();
    }
    (per_datagram(sealing), per_datagram(opening))
}

fn per_datagram(nanos: u128) -> f64 {
    nanos as f64 / (DATAGRAMS / BATCH * BATCH) as f64
}
