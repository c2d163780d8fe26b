//! Sealed datagrams between two ends: lost, repeated, reordered, changed, made up, over many epochs.
//! Each is opened at most once, as it was sealed; and what is sealed now is opened now.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use ropewalk_base::{Duration, Time};
use ropewalk_fuzz::Input;
use ropewalk_runtime::seal::{
    Allowed, Answer, Finish, Initiator, Limits, OVERHEAD, OpenError, RenewalMessage, Responder,
    SecretKey, Session, Timestamp, is_renewal,
};

static KEYS: LazyLock<[SecretKey; 2]> =
    LazyLock::new(|| [(); 2].map(|()| SecretKey::generate().expect("random numbers")));

/// A datagram that was sealed.
struct Sealed {
    by: usize,
    path: u8,
    content: Vec<u8>,
    bytes: Vec<u8>,
    opened: bool,
    /// Whether a session has made its content, to renew the keys.
    renews: bool,
}

struct World {
    ends: [Session; 2],
    now: Time,
    sealed: Vec<Sealed>,
}

fn pair(limits: Limits) -> [Session; 2] {
    let allowed = Allowed::Keys([KEYS[0].public()].into());
    let mut responder = Responder::new(KEYS[1].clone(), allowed).expect("random numbers");
    let sent = Timestamp::from_unix_nanos(1);
    let begun = Initiator::new(&KEYS[0], KEYS[1].public(), sent, 1, b"");
    let (mut initiator, first) = begun.expect("random numbers");
    let from = ([192, 0, 2, 1], 5000).into();
    let Answer::Established(made) = responder.handle(Time::ZERO, from, &first, 2) else {
        panic!("a known key")
    };
    let Ok(Finish::Established(near)) = initiator.finish(Time::ZERO, &made.reply) else {
        panic!("its own reply")
    };
    let mut ends = [*near, made.session];
    ends.iter_mut().for_each(|end| end.set_limits(limits));
    ends
}

impl World {
    fn seal(&mut self, by: usize, path: u8, content: &[u8]) {
        let mut bytes = Vec::new();
        let made = self.ends[by].seal(path, &mut bytes, |out| out.extend_from_slice(content));
        assert_eq!(made, Ok(0..content.len() + OVERHEAD));
        let content = content.to_vec();
        self.sealed.push(Sealed { by, path, content, bytes, opened: false, renews: false });
    }

    /// Seals what a session sends to renew the keys. It may be lost like all others.
    fn renew(&mut self, by: usize, path: u8, content: Option<RenewalMessage>) {
        if let Some(content) = content {
            self.seal(by, path, &content);
            self.sealed.last_mut().expect("it was sealed").renews = true;
        }
    }

    /// One of those that were sealed arrives, perhaps changed.
    fn deliver(&mut self, index: usize, input: Option<&mut Input<'_>>) -> Result<(), OpenError> {
        let one = &mut self.sealed[index];
        let mut bytes = one.bytes.clone();
        let changed = input.is_some_and(|input| input.spoil(&mut bytes));
        let opened = self.ends[1 - one.by].open(self.now, &mut bytes)?;
        assert!(!changed, "a changed datagram was opened");
        assert!(!one.opened, "it was opened twice");
        assert_eq!((opened.path, &bytes[opened.body]), (one.path, &one.content[..]));
        one.opened = true;
        let (to, path) = (1 - one.by, one.path);
        if one.renews {
            assert!(is_renewal(&one.content));
            let content = one.content.clone();
            let answer = self.ends[to].handle_renewal(self.now, &content);
            self.renew(to, path, answer);
        }
        let offer = self.ends[to].offer(self.now);
        self.renew(to, path, offer);
        Ok(())
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let what = input.byte();
        let by = usize::from(what >> 7);
        match what % 8 {
            0..=2 => {
                let path = input.byte();
                let length = usize::from(input.byte());
                self.seal(by, path, input.bytes(length));
            }
            3 | 4 if !self.sealed.is_empty() => {
                let index = self.sealed.len() - 1 - usize::from(input.byte()) % self.sealed.len();
                let _ = self.deliver(index, None);
            }
            5 if !self.sealed.is_empty() => {
                let index = usize::from(input.byte()) % self.sealed.len();
                let _ = self.deliver(index, Some(input));
            }
            6 => {
                let mut made_up = input.block().to_vec();
                assert!(self.ends[by].open(self.now, &mut made_up).is_err(), "made up");
            }
            _ => {
                self.now += Duration::from_millis(u64::from(input.byte()) * 64);
                self.ends.iter_mut().for_each(|end| end.handle_timeout(self.now));
                let late = |at: Time| at <= self.now;
                assert!(!self.ends[by].next_deadline().is_some_and(late), "it is never satisfied");
            }
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let limits = Limits {
        rekey_packets: 1 + u64::from(input.byte()),
        rekey_after: Duration::from_millis(1 + u64::from(input.number())),
        rekey_pause: Duration::from_millis(u64::from(input.byte())),
        keep_old: Duration::from_millis(u64::from(input.number())),
    };
    let mut world = World { ends: pair(limits), now: Time::ZERO, sealed: Vec::new() };
    while !input.is_over() {
        world.step(&mut input);
    }
    // Whatever happened before: what leaves now arrives.
    for by in [0, 1, 0, 1] {
        world.seal(by, 3, b"now");
        assert_eq!(world.deliver(world.sealed.len() - 1, None), Ok(()));
    }
    let tally = world.ends.map(|end| end.counters().opened);
    let opened = world.sealed.iter().filter(|one| one.opened).count() as u64;
    assert_eq!(tally[0] + tally[1], opened);
});
