//! A random case: a network, the options of an association, and the actions of its users.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use ropewalk_engine::scheduler::{DelaySource, RetransmissionPolicy, Scheduler};
use ropewalk_engine::sctp::{PacketForm, Preset, StreamScheduler};

/// Packet loss until the network heals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loss {
    None,
    /// Each packet with this probability.
    Single(f64),
    /// In bursts: entered and left with these probabilities per packet.
    Bursts(f64, f64),
}

/// One path. Times are milliseconds.
#[derive(Clone, Debug)]
pub struct PathCase {
    pub kbit_s: u64,
    pub delay: u64,
    /// Additional delay of the return direction.
    pub delay_back: u64,
    /// Maximum number of queued packets.
    pub queue: u32,
    pub mtu: u32,
    pub loss: Loss,
    pub loss_back: Loss,
    pub jitter: u64,
    pub reorders: bool,
    pub duplication: f64,
    pub corruption: f64,
    /// Start and duration of an outage.
    pub outage: Option<(u64, u64)>,
}

/// Options of both ends.
#[derive(Clone, Debug)]
pub struct Knobs {
    pub preset: Preset,
    pub scheduler: &'static str,
    pub copies: f64,
    pub resends: bool,
    pub retransmission: RetransmissionPolicy,
    pub delay_source: DelaySource,
    pub packet_form: PacketForm,
    pub concurrent: bool,
    pub split: bool,
    pub delayed_ack: bool,
    pub hold: bool,
    pub sack_every: u32,
    pub sack_delay: u64,
    pub sacks_per_path: bool,
    pub sacks_on_request: bool,
    pub max_burst: u32,
    pub potentially_failed: u32,
    pub path_max_retrans: u32,
    /// Receive buffer, bytes.
    pub buffer: u64,
    pub streams: u16,
    pub interleaving: bool,
    pub stream_scheduler: StreamScheduler,
    /// Whether each end reports non-renegable data.
    pub nr_sack: (bool, bool),
    /// Send buffer, bytes. `None`: the preset's.
    pub send_buffer: Option<u64>,
}

/// Actions of the users.
#[derive(Clone, Debug)]
pub struct Load {
    /// Bytes to send in each direction.
    pub bytes: (u64, u64),
    /// Minimum and maximum message length, bytes.
    pub message: (u32, u32),
    /// Real bytes, or only lengths.
    pub real: bool,
    /// Share of unordered messages.
    pub unordered: f64,
    /// Interval between two messages, microseconds; 0: as fast as they are accepted.
    pub every: u64,
    /// Interval at which the reader reads, milliseconds; 0: immediately.
    pub reads_every: u64,
    /// Both ends send an INIT.
    pub collide: bool,
}

/// A case.
#[derive(Clone, Debug)]
pub struct Case {
    pub seed: u64,
    pub paths: Vec<PathCase>,
    pub knobs: Knobs,
    pub load: Load,
    /// When losses and outages end, milliseconds.
    pub heals: u64,
}

fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        3 => Just(Loss::None),
        2 => (0.001..0.3).prop_map(Loss::Single),
        1 => (0.001..0.1, 0.02..0.5).prop_map(|(p, r)| Loss::Bursts(p, r)),
        1 => Just(Loss::Single(1.0)),
    ]
}

prop_compose! {
    fn link()(
        kbit_s in prop_oneof![20u64..500, 500u64..20_000],
        delay in prop_oneof![0u64..50, 50u64..800],
        delay_back in prop_oneof![3 => Just(0u64), 1 => 0u64..300],
        // Shorter queues may drop the same packet of two synchronised timers forever.
        queue in prop_oneof![4u32..10, 10u32..200],
        mtu in prop_oneof![3 => Just(1500u32), 1 => 576u32..1500, 1 => 1500u32..9000],
        jitter in prop_oneof![2 => Just(0u64), 1 => 1u64..200],
        reorders in any::<bool>(),
    ) -> PathCase {
        PathCase {
            kbit_s, delay, delay_back, queue, mtu, jitter, reorders,
            loss: Loss::None, loss_back: Loss::None,
            duplication: 0.0, corruption: 0.0, outage: None,
        }
    }
}

prop_compose! {
    fn path()(
        link in link(),
        loss in loss(),
        loss_back in loss(),
        duplication in prop_oneof![3 => Just(0.0), 1 => 0.0..0.3],
        corruption in prop_oneof![3 => Just(0.0), 1 => 0.0..0.03],
        outage in option::weighted(0.25, (0u64..5000, 100u64..8000)),
    ) -> PathCase {
        PathCase { loss, loss_back, duplication, corruption, outage, ..link }
    }
}

fn policy() -> impl Strategy<Value = RetransmissionPolicy> {
    (0..RetransmissionPolicy::ALL.len()).prop_map(|i| RetransmissionPolicy::ALL[i].1)
}

fn delay_source() -> impl Strategy<Value = DelaySource> {
    prop_oneof![Just(DelaySource::HalfRtt), Just(DelaySource::Oracle), Just(DelaySource::Timestamp)]
}

prop_compose! {
    fn scheduling()(
        preset in prop_oneof![2 => Just(Preset::Rfc9260), 1 => Just(Preset::Paper2013)],
        scheduler in (0..Scheduler::NAMES.len()).prop_map(|i| Scheduler::NAMES[i]),
        copies in prop_oneof![Just(f64::INFINITY), 1.0..3.0],
        resends in any::<bool>(),
        retransmission in policy(),
        delay_source in delay_source(),
        packet_form in prop_oneof![Just(PacketForm::Standard), Just(PacketForm::Compact)],
        concurrent in prop_oneof![4 => Just(true), 1 => Just(false)],
        split in prop_oneof![4 => Just(true), 1 => Just(false)],
    ) -> Knobs {
        Knobs {
            preset, scheduler, copies, resends, retransmission, delay_source, packet_form,
            concurrent, split, delayed_ack: true, hold: false, sack_every: 2, sack_delay: 200,
            sacks_per_path: false, sacks_on_request: false, max_burst: 4, potentially_failed: 0, path_max_retrans: 5,
            buffer: 65_536, streams: 1, interleaving: false,
            stream_scheduler: StreamScheduler::FirstCome, nr_sack: (false, false), send_buffer: None,
        }
    }
}

prop_compose! {
    fn knobs()(
        base in scheduling(),
        delayed_ack in any::<bool>(),
        hold in prop_oneof![4 => Just(false), 1 => Just(true)],
        sack_every in 1u32..4,
        sack_delay in prop_oneof![2 => Just(200u64), 1 => 1u64..500],
        (sacks_per_path, sacks_on_request) in any::<(bool, bool)>(),
        max_burst in prop_oneof![Just(4u32), Just(0), 1u32..8],
        potentially_failed in prop_oneof![Just(0u32), Just(u32::MAX), 0u32..4],
        path_max_retrans in 0u32..6,
        buffer in prop_oneof![3000u64..12_000, 12_000u64..100_000],
        streams in prop_oneof![2 => Just(1u16), 1 => 2u16..9],
        interleaving in any::<bool>(),
        stream_scheduler in (0..StreamScheduler::ALL.len()).prop_map(|i| StreamScheduler::ALL[i].1),
        nr_sack in prop_oneof![
            3 => Just((true, true)), 2 => Just((false, false)), 1 => Just((true, false)), 1 => Just((false, true)),
        ],
        send_buffer in option::weighted(0.3, 1u64..12_000),
    ) -> Knobs {
        Knobs {
            delayed_ack, hold, sack_every, sack_delay, sacks_per_path, sacks_on_request, max_burst,
            potentially_failed, path_max_retrans, buffer, streams, interleaving, stream_scheduler,
            nr_sack, send_buffer, ..base
        }
    }
}

prop_compose! {
    fn load()(
        there in prop_oneof![1u64..20_000, 20_000u64..200_000],
        back in prop_oneof![3 => Just(0u64), 1 => 1u64..50_000],
        least in prop_oneof![1u32..100, 100u32..1500],
        more in prop_oneof![1 => Just(0u32), 2 => 0u32..1500, 1 => 0u32..6000, 1 => 0u32..40_000],
        real in any::<bool>(),
        unordered in prop_oneof![4 => Just(0.0), 1 => Just(1.0), 1 => 0.0..1.0],
        every in prop_oneof![3 => Just(0u64), 1 => 100u64..50_000],
        reads_every in prop_oneof![4 => Just(0u64), 1 => 1u64..3000],
        collide in prop_oneof![9 => Just(false), 1 => Just(true)],
    ) -> Load {
        // Unordered messages are identified by their content.
        let real = real || unordered > 0.0;
        let least = if unordered > 0.0 { least.max(8) } else { least };
        // At most a few thousand messages.
        let least = least.max((there.max(back) / 4000) as u32);
        Load {
            bytes: (there, back), message: (least, least + more), real, unordered, every,
            reads_every, collide,
        }
    }
}

/// Any case.
pub fn any_case() -> impl Strategy<Value = Case> {
    (any::<u64>(), vec(path(), 1..5), knobs(), load(), 0u64..20_000)
        .prop_map(|(seed, paths, knobs, load, heals)| Case { seed, paths, knobs, load, heals })
}
