//! A listener answers each packet with one that is not much larger, or not at all, and stays as it is; and it
//! takes in only who comes back with a cookie, unchanged, from where it was sent.

#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use ropewalk_base::{Duration, Seed, Time};
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::wire::{Checksum, decode};
use ropewalk_engine::sctp::{
    Answer, Association, Chunk, Config, Listener, Packet, PathConfig, Preset,
};
use ropewalk_fuzz::Input;

/// The last cookie that was sent, to where, and the tag that belongs to it.
struct Sent {
    cookie: Bytes,
    to: u8,
    tag: u32,
}

struct World {
    listener: Listener,
    config: Config,
    now: Time,
    sent: Option<Sent>,
}

impl World {
    fn take(&mut self, from: u8, packet: &mut Packet, forged: bool) {
        let question = packet.wire_len();
        match self.listener.handle(self.now, &[from], packet) {
            Answer::Nothing => {}
            Answer::Reply(answer) => {
                // With the header of IPv4 below both.
                assert!(answer.wire_len() + 20 <= 3 * (question + 20));
                if let Some(Chunk::InitAck(both)) = answer.chunks.first() {
                    let (init, cookie) = both.as_ref();
                    self.sent = Some(Sent {
                        cookie: cookie.clone().expect("a cookie"),
                        to: from,
                        tag: init.tag,
                    });
                }
            }
            Answer::Accept(accepted) => {
                assert!(!forged, "a forged cookie");
                let scheduler = Scheduler::from_name("lay", &SchedulerOptions::default());
                let scheduler = scheduler.expect("a built-in scheduler");
                let seed = Seed::root(2);
                let (path, config) = (ropewalk_base::PathId(0), self.config.clone());
                let mut made =
                    Association::accepted(config, scheduler, seed, self.now, path, *accepted);
                made.handle_in_place(self.now, path, packet);
                let mut answers = 0;
                while made.poll_transmit(self.now).is_some() {
                    answers += 1;
                    assert!(answers < 4000, "it talks for ever");
                }
            }
        }
    }

    /// The cookie comes back, changed or not, from there or elsewhere; with what follows beside it.
    fn echo(&mut self, input: &mut Input<'_>) {
        let (from, changes) = (input.byte(), input.byte());
        let mut packet = Packet::default();
        let beside = Bytes::copy_from_slice(input.block());
        let _ = decode(&beside, Checksum::None, &mut packet);
        let Some(sent) = &self.sent else { return };
        let mut cookie = sent.cookie.to_vec();
        let changed = changes & 1 == 1 && input.spoil(&mut cookie);
        let elsewhere = changes & 2 == 2 && from != sent.to;
        let from = if changes & 2 == 2 { from } else { sent.to };
        let other_tag = u32::from(changes >> 2);
        packet.tag = sent.tag ^ other_tag;
        packet.chunks.insert(0, Chunk::CookieEcho(cookie.into()));
        self.take(from, &mut packet, changed || elsewhere || other_tag != 0);
    }
}

fuzz_target!(|input: &[u8]| {
    let mut input = Input(input);
    let config = Config::preset(Preset::Rfc9260, vec![PathConfig::default(); 2], 1 << 16);
    let listener = Listener::new(config.clone(), Seed::root(1));
    let mut world = World { listener, config, now: Time::ZERO, sent: None };
    while !input.is_over() {
        let (what, wait) = (input.byte(), input.byte());
        world.now += Duration::from_millis(u64::from(wait) * u64::from(wait) * 8);
        if what & 1 == 1 {
            world.echo(&mut input);
            continue;
        }
        let bytes = Bytes::copy_from_slice(input.block());
        let mut packet = Packet::default();
        if decode(&bytes, Checksum::None, &mut packet).is_ok() {
            // A cookie in it is nobody's.
            world.take(what, &mut packet, true);
        }
    }
});
