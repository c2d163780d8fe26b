//! Cases that once failed, in their minimal form, with the cause.

use ropewalk_engine::scheduler::{DelaySource, RetransmissionPolicy};
use ropewalk_engine::sctp::{PacketForm, Preset, StreamScheduler};

use super::case::{Case, Knobs, Load, Loss, PathCase};
use super::play::play;

fn path(kbit_s: u64, delay: u64, queue: u32) -> PathCase {
    PathCase {
        kbit_s,
        delay,
        delay_back: 0,
        queue,
        mtu: 1500,
        loss: Loss::None,
        loss_back: Loss::None,
        jitter: 0,
        reorders: false,
        duplication: 0.0,
        corruption: 0.0,
        outage: None,
    }
}

fn case(seed: u64, paths: Vec<PathCase>, buffer: u64, bytes: (u64, u64), message: u32) -> Case {
    let knobs = Knobs {
        preset: Preset::Rfc9260,
        scheduler: "round-robin",
        copies: f64::INFINITY,
        resends: false,
        retransmission: RetransmissionPolicy::Same,
        delay_source: DelaySource::HalfRtt,
        packet_form: PacketForm::Standard,
        concurrent: true,
        split: true,
        delayed_ack: false,
        hold: false,
        sack_every: 1,
        sack_delay: 200,
        sacks_per_path: false,
        sacks_on_request: false,
        max_burst: 4,
        potentially_failed: 0,
        path_max_retrans: 1,
        buffer,
        streams: 1,
        interleaving: false,
        stream_scheduler: StreamScheduler::FirstCome,
        nr_sack: (false, false),
        send_buffer: None,
    };
    let load = Load {
        bytes,
        message: (message, message),
        real: false,
        unordered: 0.0,
        every: 0,
        reads_every: 0,
        collide: false,
    };
    Case { seed, paths, knobs, load, heals: 0 }
}

fn passes(case: &Case) {
    if let Err(what) = play(case) {
        panic!("{what}\n{case:?}");
    }
}

/// The size of data in gap blocks was estimated from the mean size of a chunk, so the window was too
/// large.
#[test]
fn chunks_of_unequal_size_behind_a_gap() {
    let lossy = PathCase {
        loss: Loss::Single(0.202),
        duplication: 0.085,
        corruption: 0.011,
        ..path(20, 0, 9)
    };
    let mut case = case(5_960_460_500_318_850_632, vec![lossy], 4892, (55_941, 31_906), 7);
    case.load.message = (7, 9);
    case.heals = 20_000;
    passes(&case);
}

/// A lost SHUTDOWN COMPLETE was never retransmitted.
#[test]
fn the_last_packet_of_a_shutdown_is_lost() {
    let near = PathCase { jitter: 150, outage: Some((3504, 1016)), ..path(220, 163, 1) };
    let far = PathCase { jitter: 87, ..path(48, 687, 1) };
    let mut case = case(6_684_379_436_686_524_743, vec![far, near], 3000, (1, 0), 1);
    case.knobs.path_max_retrans = 0;
    case.heals = 10_000;
    passes(&case);
}

/// A stale cookie was refused although its association was up, and lost chunks were sent one per packet,
/// so that their burst drowned the answer every time.
#[test]
fn a_lost_cookie_ack_behind_a_burst_of_small_chunks() {
    let noisy = PathCase {
        loss: Loss::Single(0.123_382_246_673_945_72),
        loss_back: Loss::Single(0.128_953_244_068_132_16),
        duplication: 0.229_997_148_556_799_56,
        ..path(21, 0, 4)
    };
    let mut case = case(9_939_204_335_040_286_792, vec![noisy], 3032, (1, 2532), 2);
    case.knobs.max_burst = 0;
    case.knobs.potentially_failed = u32::MAX;
    case.knobs.path_max_retrans = 0;
    case.heals = 3139;
    passes(&case);
}

/// A complete message that waited made room for the next one of its stream, which was longer than the
/// buffer and never delivered in parts.
#[test]
fn a_message_longer_than_the_buffer_behind_one_that_waited() {
    let one = PathCase { loss_back: Loss::Single(1.0), ..path(31, 18, 4) };
    let mut case = case(9_651_629_734_835_663_033, vec![one], 4380, (135_558, 0), 33);
    case.load.message = (33, 14514);
    case.load.reads_every = 2276;
    case.knobs.scheduler = "lay";
    case.knobs.packet_form = PacketForm::Compact;
    case.knobs.sack_every = 2;
    case.knobs.sack_delay = 44;
    case.knobs.path_max_retrans = 0;
    case.knobs.streams = 3;
    case.knobs.interleaving = true;
    case.knobs.stream_scheduler = StreamScheduler::RoundRobin;
    case.heals = 7036;
    passes(&case);
}

/// A heartbeat preceded the SHUTDOWN ACK, and the ended association did not process further chunks.
#[test]
fn the_last_word_of_a_shutdown_that_is_lost() {
    let mut one = path(312, 0, 4);
    one.loss = Loss::Single(0.294_333_510_304_777_95);
    let mut case = case(13_552_903_535_921_245_881, vec![one], 3000, (1435, 8983), 683);
    case.load.message = (683, 1719);
    case.knobs.scheduler = "daps-lcm";
    case.heals = 2303;
    passes(&case);
}

/// The last chunk in the full buffer was unordered and delivered, so no chunk before it was dropped to
/// make room.
#[test]
fn tiny_messages_of_which_some_are_unordered_fill_the_bookkeeping() {
    let one = PathCase {
        mtu: 7248,
        loss: Loss::Single(1.0),
        jitter: 145,
        reorders: true,
        ..path(2010, 0, 4)
    };
    let mut case = case(535_765_968_053_989_155, vec![one], 3000, (20_000, 0), 8);
    case.knobs.scheduler = "lay";
    case.knobs.path_max_retrans = 0;
    case.load.real = true;
    case.load.unordered = 0.286_925_101_195_490_8;
    case.heals = 3001;
    passes(&case);
}
