//! Delays of short messages that are sent alongside a long one, over a link with a rate, in virtual time.

use ropewalk_base::{Duration, PathId, Rate, Seed, StreamId, Time};
use ropewalk_engine::Payload;
use ropewalk_engine::congestion::CongestionFlavour;
use ropewalk_engine::scheduler::{Scheduler, SchedulerOptions};
use ropewalk_engine::sctp::{Association, Config, Packet, PathConfig, Preset, StreamScheduler};
use ropewalk_netsim::link::Limit;
use ropewalk_netsim::topology::{Duplex, DuplexConfig, disjoint};
use ropewalk_netsim::{Host, LinkConfig, Outbox, Port, QueueModel, RouteId, World};

const LONG: u32 = 1_000_000;
const SHORT: u32 = 100;
/// Start of the short messages, times of the long ones, and end of the run.
const BEGIN: Time = Time::from_millis(1_000);
const LONG_AT: [Time; 2] = [Time::from_millis(2_005), Time::from_millis(4_505)];
const END: Time = Time::from_millis(7_000);
/// Interval between two short messages.
const EVERY: Duration = Duration::from_millis(20);

struct End {
    association: Association,
    routes: Vec<RouteId>,
    sends: bool,
    /// When the next long message is sent.
    long: std::slice::Iter<'static, Time>,
    next: Time,
    /// When each short message was passed to `send`, and when each was read.
    handed_over: Vec<Time>,
    read: Vec<Time>,
    long_read: Vec<Time>,
}

impl End {
    fn drain(&mut self, now: Time, out: &mut Outbox<'_, Packet>) {
        while let Some(message) = self.association.read(now) {
            match message.payload.len() {
                LONG => self.long_read.push(now),
                _ => self.read.push(now),
            }
        }
        if self.sends && self.long.as_slice().first().is_some_and(|at| *at <= now) {
            self.long.next();
            self.association.send(StreamId(0), Payload::Length(LONG), false).expect("room");
        }
        while self.sends && self.next <= now && self.next < END {
            let stream = StreamId(1 + (self.handed_over.len() % 4) as u16);
            self.association.send(stream, Payload::Length(SHORT), false).expect("room");
            self.handed_over.push(self.next);
            self.next += EVERY;
        }
        while let Some(transmit) = self.association.poll_transmit(now) {
            let config = self.association.config();
            let size = transmit.packet.wire_len_in(config.packet_form) + config.lower_header;
            let mut packet = ropewalk_netsim::Packet::new(size, 0, transmit.packet);
            packet.round = transmit.round;
            out.send(self.routes[transmit.path.index()], packet);
        }
        while self.association.poll_event().is_some() {}
    }
}

impl Host<Packet> for End {
    fn receive(
        &mut self,
        now: Time,
        port: Port,
        packet: ropewalk_netsim::Packet<Packet>,
        out: &mut Outbox<'_, Packet>,
    ) {
        self.association.handle_datagram(now, PathId(port.0 as u8), packet.payload);
        self.drain(now, out);
    }

    fn wake(&mut self, now: Time, out: &mut Outbox<'_, Packet>) {
        self.association.handle_timeout(now);
        self.drain(now, out);
    }

    fn next_wake(&self) -> Option<Time> {
        let long = self.long.as_slice().first().copied().filter(|_| self.sends);
        let short = Some(self.next).filter(|at| self.sends && *at < END);
        [long, short, self.association.next_deadline()].into_iter().flatten().min()
    }
}

/// A setting: preset, congestion control, and capacity of the link's queue in packets.
type Setting = (Preset, &'static str, u32);

/// Maximum delay of the short messages from `send` to the reader, ms: before the first long message,
/// during it, and during the second. `scheduler`: with interleaving. `None`: without interleaving, in the
/// order of submission.
fn play((preset, congestion, queue): Setting, scheduler: Option<StreamScheduler>) -> [f64; 3] {
    let mut config = Config::preset(preset, vec![PathConfig::default()], 4 << 20);
    config.use_congestion(congestion, CongestionFlavour::Published).expect("a known name");
    config.streams = 5;
    config.interleaving = scheduler.is_some();
    config.stream_scheduler = scheduler.unwrap_or_default();
    let lay = || Scheduler::from_name("lay", &SchedulerOptions::default()).expect("built in");
    let mut left = Association::connect(config.clone(), lay(), Seed::root(1), Time::ZERO);
    let right = Association::listen(config, lay(), Seed::root(2));
    // The long message has the highest value, and thus the last turn or the lowest weight.
    for stream in 0..5 {
        left.set_stream_value(StreamId(stream), if stream == 0 { 9 } else { 1 }).unwrap_or(());
    }
    let mut world = World::new(Seed::root(3).child("network"));
    let end = |association, sends| End {
        association,
        routes: Vec::new(),
        sends,
        long: LONG_AT.iter(),
        next: BEGIN,
        handed_over: Vec::new(),
        read: Vec::new(),
        long_read: Vec::new(),
    };
    let ends = [world.add_host(end(left, true)), world.add_host(end(right, false))];
    let link = || {
        LinkConfig::new(Rate::from_bps(10_000_000), Duration::from_millis(10))
            .queue(QueueModel::DropTail(Limit::Packets(queue)))
    };
    let path = DuplexConfig { name: "path".to_owned(), forward: link(), backward: link() };
    let links: Vec<Duplex> = disjoint(&mut world, ends[0], ends[1], &[path]).expect("links");
    world.host_mut(ends[0]).routes = links.iter().map(|l| l.forward).collect();
    world.host_mut(ends[1]).routes = links.iter().map(|l| l.backward).collect();
    ends.iter().for_each(|id| world.wake_host_at_once(*id));
    while world.step_until(END + Duration::from_secs(5)).is_some() {}
    let (sent, read) = (&world.host(ends[0]).handed_over, &world.host(ends[1]).read);
    assert_eq!((sent.len(), read.len()), (300, 300), "all arrive");
    assert_eq!(world.host(ends[1]).long_read.len(), 2);
    let mut all = read.clone();
    all.sort_unstable();
    let mut longest = [0.0_f64; 3];
    for (sent, read) in sent.iter().zip(&all) {
        let phase = LONG_AT.iter().filter(|at| *at <= sent).count();
        longest[phase] = longest[phase].max(read.since(*sent).as_secs_f64() * 1e3);
    }
    longest
}

const WITHIN_STREAMS: [StreamScheduler; 3] =
    [StreamScheduler::Priority, StreamScheduler::FairCapacity, StreamScheduler::WeightedFair];

/// The packets in the queue of the link take 8.4 ms, and no scheduler of the sender can overtake them.
#[test]
fn short_messages_beside_a_long_one_wait_ten_milliseconds_more_than_alone_at_most() {
    let setting = (Preset::Rfc9260, "cubic", 7);
    for scheduler in WITHIN_STREAMS {
        let [alone, first, second] = play(setting, Some(scheduler));
        assert!(second <= alone + 10.0, "{scheduler:?}: {second} ms, and {alone} ms alone");
        // Losses at the end of the first slow start are retransmitted after a round trip.
        assert!(first <= alone + 30.0, "{scheduler:?}: {first} ms, and {alone} ms alone");
    }
    let [.., plain] = play(setting, None);
    assert!(plain > 500.0, "they wait for the rest of the long message: {plain} ms");
}

/// The figures of `docs/data/interleaving-engine.csv`.
#[test]
fn interleaving_saves_short_messages_most_of_their_wait_under_every_setting() {
    for setting in [
        (Preset::Live, "bbr", 17),
        (Preset::Rfc9260, "rfc9260", 17),
        (Preset::Rfc9260, "cubic", 17),
        (Preset::Rfc9260, "cubic", 7),
    ] {
        let plain = play(setting, None);
        println!("{setting:?} DATA {plain:.1?}");
        for (name, scheduler) in StreamScheduler::ALL {
            let longest = play(setting, Some(scheduler));
            println!("{setting:?} {name} {longest:.1?}");
            if scheduler != StreamScheduler::FirstCome {
                assert!(longest[1] < plain[1] / 5.0, "{setting:?} {name}: {longest:?} {plain:?}");
                assert!(longest[2] < plain[2] / 5.0, "{setting:?} {name}: {longest:?} {plain:?}");
            }
        }
    }
}
