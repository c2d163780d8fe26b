//! `[sctp]`: deviations from the preset.

use ropewalk_base::Duration;

use super::builder::Builder;
use super::setting::Setting;
use super::{
    CwndUpdate, Recovery, Retransmission, SackCount, Scenario, StreamScheduler, WindowCheck,
    WindowRounding, WindowUnit,
};
use crate::check::{Checked, FromValue, Value, fitting};
use crate::choice::Choice;
use crate::error::ProblemKind;
use crate::keys::{
    Kind, LARGEST_WINDOW, MANY_PACKETS, NS_PER_MS, NS_PER_S, WINDOW, choice, names, size, time,
};
use crate::quantity::size_text;
use crate::toml_text::quoted;

/// The default of a key that deviates from the preset.
pub(super) const PRESET: &str = "the preset's";
pub(super) const TIMEOUT: Kind = time(NS_PER_MS, 3_600 * NS_PER_S);
const COUNT: Kind = Kind::Integer { min: 0, max: 1_000 };
const AUTO: &[Choice] = &[choice("auto", "The rule of RFC 9260 Section 7.2.1.")];
const SSTHRESH: &[Choice] = &[
    choice("receive-buffer", "The peer's receive buffer."),
    choice("unlimited", "Slow start ends with the first loss."),
];

table! {
    /// Details of SCTP and of concurrent multipath transfer. Keys that are left out have the value of
    /// `transfer.preset`.
    #[derive(Copy, Default)]
    pub struct SctpOptions {
        /// The sender requests SACKs, about eight in a round trip, and they list only what changed. Needs both ends to be
        /// of this project. Off: `sack_every`, `sack_delay` and `sack_count` say when SACKs are sent.
        sack_on_request: Option<bool> = Kind::Bool.derived(PRESET).example("true");
        /// Packets per SACK; 1 acknowledges every packet. RFC 9260 Section 6.2 requires at least every
        /// second.
        sack_every: Option<u32> = Kind::Packets { min: 1, max: 1_000 }.derived(PRESET).example("1");
        /// Longest delay of a SACK; RFC 9260 Section 6.2 allows 500 ms at most.
        sack_delay: Option<Duration> =
            time(0, 500 * NS_PER_MS).derived(PRESET).example("\"200 ms\"");
        /// What `sack_every` counts.
        sack_count: Option<SackCount> = names::<SackCount>().derived(PRESET).example("\"path\"");
        /// A gap alone does not trigger an immediate SACK (DAC), because gaps are normal with several paths.
        delayed_ack_for_cmt: Option<bool> = Kind::Bool.derived(PRESET).example("true");
        /// Initial congestion window of each path.
        initial_window: Option<InitialWindow> =
            Kind::OneOf(&[Kind::Choice(AUTO), WINDOW]).derived(PRESET).example("\"4 packets\"");
        /// Initial slow-start threshold of each path. Unlimited finds the rate of a path
        /// sooner and overshoots more.
        initial_ssthresh: Option<InitialSsthresh> = Kind::OneOf(&[Kind::Choice(SSTHRESH), size(1, LARGEST_WINDOW)])
            .derived(PRESET)
            .example("\"receive-buffer\"");
        /// Least slow-start threshold after a loss (RFC 9260 Section 7.2.3: 4).
        min_ssthresh: Option<u32> =
            Kind::Packets { min: 1, max: MANY_PACKETS }.derived(PRESET).example("\"4 packets\"");
        /// Unit of congestion windows. Whole packets send up to a packet less per round
        /// trip; they are for comparing with throughput models.
        window_rounding: Option<WindowRounding> =
            names::<WindowRounding>().derived(PRESET).example("\"bytes\"");
        /// Most that one SACK adds to the window in slow start (RFC 9260 Section 7.2.1: 1).
        byte_counting_limit: Option<u32> =
            Kind::Packets { min: 1, max: MANY_PACKETS }.derived(PRESET).example("\"1 packet\"");
        /// The window grows only when it was fully used (RFC 9260 Section 7.2.1).
        cwnd_growth_when_full_only: Option<bool> = Kind::Bool.derived(PRESET).example("true");
        /// Queues with `ecn = true` and `dualpi2` mark packets, and each mark reduces the window once per round
        /// trip (RFC 4960 Appendix A).
        ecn: Option<bool> =
            Kind::Bool.derived("the preset's; true with `prague`").example("true");
        /// With `ecn`: the receiver counts marked bytes instead of echoing marks. `prague` needs it; without it,
        /// `prague` sends ECT(0) and halves its window for a mark. An extension of Ropewalk.
        accurate_ecn: Option<bool> =
            Kind::Bool.derived("the preset's; true with `prague`").example("true");
        /// Most packets sent in response to one event (RFC 9260 Section 6.1: 4); 0 for no limit.
        max_burst: Option<u32> =
            Kind::Packets { min: 0, max: MANY_PACKETS }.derived(PRESET).example("4");
        /// Retransmission timeout before the first sample.
        rto_initial: Option<Duration> = TIMEOUT.derived(PRESET).example("\"1 s\"");
        /// Least retransmission timeout; at most `rto_max`.
        rto_min: Option<Duration> = TIMEOUT.derived(PRESET).example("\"1 s\"");
        /// Longest retransmission timeout.
        rto_max: Option<Duration> = TIMEOUT.derived(PRESET).example("\"60 s\"");
        /// How losses are detected. Detection by time lets small windows recover without waiting for a
        /// timer. Setting `fast_retransmit_threshold` or `split_fast_retransmit` selects `missing-reports`.
        recovery: Option<Recovery> =
            names::<Recovery>().derived(PRESET).example("\"missing-reports\"");
        /// Miss indications after which a chunk is lost, if they are counted. A higher value tolerates
        /// reordering and detects losses later.
        fast_retransmit_threshold: Option<u32> =
            Kind::Integer { min: 1, max: 1_000 }.derived(PRESET).example("3");
        /// Missing reports count only acknowledgements of data sent on the same path (SFR).
        split_fast_retransmit: Option<bool> = Kind::Bool.derived(PRESET).example("true");
        /// When windows may grow although the cumulative TSN does not advance.
        cwnd_update: Option<CwndUpdate> =
            names::<CwndUpdate>().derived(PRESET).example("\"cucv2\"");
        /// Messages of different streams are interleaved (I-DATA, RFC 8260): a message that is longer than a packet
        /// does not hold up those of other streams. Costs 4 B per chunk. Matters with `transfer.streams` above 1.
        interleaving: Option<bool> = Kind::Bool.derived(PRESET).example("true");
        /// Data that the receiver will not drop is reported as non-renegable (NR-SACK), and leaves the send buffer before it
        /// is acknowledged cumulatively. Costs 4 B per SACK. Matters if `send_buffer` limits the sender.
        nr_sack: Option<bool> = Kind::Bool.derived(PRESET).example("true");
        /// Most user data that is queued or unacknowledged.
        send_buffer: Option<u64> =
            size(1, LARGEST_WINDOW).derived("four times `transfer.receive_buffer`, at least 64 KiB").example("\"128 kB\"");
        /// Room beyond a full send buffer that only messages of streams with little unsent data may use: at most a quarter of
        /// it. A message that is longer than the buffer then does not hold up those of other streams.
        stream_reserve: Option<u64> = size(0, LARGEST_WINDOW).derived("0").example("\"64 kB\"");
        /// In which order messages of different streams are sent (RFC 8260 Section 3): after each chunk with
        /// `interleaving`, else after each message.
        stream_scheduler: Option<StreamScheduler> =
            names::<StreamScheduler>().derived(PRESET).example("\"round-robin\"");
        /// Which path carries a retransmission.
        retransmission: Option<Retransmission> =
            names::<Retransmission>().derived(PRESET).example("\"ssthresh\"");
        /// Send no data before a heartbeat has confirmed every path.
        hold_data_until_confirmed: Option<bool> = Kind::Bool.derived(PRESET).example("false");
        /// HB.interval of idle paths, on top of their timeout (RFC 9260 Section 8.3).
        heartbeat_interval: Option<Duration> =
            time(0, 86_400 * NS_PER_S).derived(PRESET).example("\"30 s\"");
        /// Longest interval between probes of a failed path. RFC 9260 Section 8.3 probes at the doubled
        /// timeout plus HB.interval, and so notices the return of a path only after up to 90 s.
        probe_interval: Option<Duration> = TIMEOUT.derived(PRESET).example("\"2 s\"");
        /// Timeouts in a row after which a path is inactive (RFC 9260 Section 8.2).
        path_max_retrans: Option<u32> = COUNT.derived(PRESET).example("5");
        /// Timeouts in a row after which the association fails (RFC 9260 Section 8.1).
        association_max_retrans: Option<u32> = COUNT.derived(PRESET).example("10");
        /// Timeouts in a row that a path may have before it counts as potentially failed (RFC
        /// 7829); at most `path_max_retrans`.
        pf_threshold: Option<u32> = COUNT.derived(PRESET).example("0");
        /// Unit in which the receiver counts its buffer.
        window_counted_in: Option<WindowUnit> =
            names::<WindowUnit>().derived(PRESET).example("\"packets\"");
        /// What must fit into the receive window when new data is sent. It matters only for schedulers
        /// that send out of order, such as `daps`.
        window_check: Option<WindowCheck> =
            names::<WindowCheck>().derived(PRESET).example("\"span\"");
    }
}

/// Initial congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// The rule of RFC 9260 Section 7.2.1.
    Auto,
    /// This many bytes.
    Bytes(u64),
    /// This many full packets.
    Packets(u32),
}

/// Initial slow-start threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialSsthresh {
    /// The peer's receive buffer.
    ReceiveBuffer,
    /// Unlimited: slow start ends with the first loss.
    Unlimited,
    /// This many bytes.
    Bytes(u64),
}

impl Setting for InitialWindow {
    fn read(_: &mut Builder<'_>, value: &Value) -> Self {
        match value {
            Value::Bytes(bytes) => Self::Bytes(*bytes),
            Value::Packets(n) => Self::Packets(fitting(*n)),
            _ => Self::Auto,
        }
    }

    fn toml(&self, _: &Kind, _: &Scenario) -> Option<String> {
        Some(quoted(match self {
            Self::Auto => "auto".into(),
            Self::Bytes(bytes) => size_text(*bytes),
            Self::Packets(n) => format!("{n} packets"),
        }))
    }
}

impl Setting for InitialSsthresh {
    fn read(_: &mut Builder<'_>, value: &Value) -> Self {
        match value {
            Value::Bytes(bytes) => Self::Bytes(*bytes),
            Value::Choice(at) if SSTHRESH[*at].name == "receive-buffer" => Self::ReceiveBuffer,
            _ => Self::Unlimited,
        }
    }

    fn toml(&self, _: &Kind, _: &Scenario) -> Option<String> {
        Some(quoted(match self {
            Self::ReceiveBuffer => "receive-buffer".into(),
            Self::Unlimited => "unlimited".into(),
            Self::Bytes(bytes) => size_text(*bytes),
        }))
    }
}

impl Builder<'_> {
    pub(crate) fn sctp(&mut self, table: &Checked) -> SctpOptions {
        self.ascending::<Duration>(table, "rto_min", "rto_initial");
        self.ascending::<Duration>(table, "rto_initial", "rto_max");
        self.ascending::<Duration>(table, "rto_min", "rto_max");
        self.ascending::<u64>(table, "pf_threshold", "path_max_retrans");
        SctpOptions::read(self, table)
    }

    /// Checks that `low` does not exceed `high`, if both are given.
    pub(super) fn ascending<T: FromValue + PartialOrd>(
        &mut self,
        table: &Checked,
        low: &str,
        high: &str,
    ) {
        let (Some(least), Some(most)) = (table.opt::<T>(low), table.opt::<T>(high)) else { return };
        if least > most {
            let path = &table.path;
            let message = format!(
                "`{path}.{low}` = {} is above `{path}.{high}` = {}",
                self.excerpt(table, low),
                self.excerpt(table, high)
            );
            let help = format!("lower `{low}` or raise `{high}`");
            self.wrong(table, low, ProblemKind::Conflict, message, help);
        }
    }
}
