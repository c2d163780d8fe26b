//! `[tcp]`: deviations from the preset.

use ropewalk_base::Duration;

use super::builder::Builder;
use super::sctp::{PRESET, TIMEOUT};
use super::{
    InitialWindow, Preset, ReceiveRules, Reinjection, Reordering, RtoFormula, Rules, SubflowAck,
};
use crate::check::Checked;
use crate::choice::Choice;
use crate::error::ProblemKind;
use crate::keys::{
    Kind, LARGEST_WINDOW, NS_PER_MS, PROBABILITY, WINDOW, choice, names, size, time,
};

const AUTO: &[Choice] = &[choice("auto", "The rule of RFC 6928: ten segments.")];

table! {
    /// Details of TCP and Multipath TCP. Whatever is left out has the value of `transfer.preset`.
    #[derive(Copy, Default)]
    pub struct TcpOptions {
        /// Segments per acknowledgement; 1 acknowledges each. RFC 9293 Section 3.8.6.3 requires at least
        /// every second.
        ack_every: Option<u32> = Kind::Packets { min: 1, max: 1_000 }.derived(PRESET).example("1");
        /// Longest delay of an acknowledgement; RFC 9293 allows 500 ms at most.
        ack_delay: Option<Duration> = time(0, 500 * NS_PER_MS).derived(PRESET).example("\"40 ms\"");
        /// Acknowledgements that are not delayed at the beginning of a subflow and after a pause of a
        /// retransmission timeout, so that the peer's window grows faster.
        quick_acks: Option<u32> = Kind::Integer { min: 0, max: 1_000 }.derived(PRESET).example("16");
        /// How the receive window follows from `transfer.receive_buffer`.
        receive_rules: Option<ReceiveRules> =
            names::<ReceiveRules>().derived(PRESET).example("\"linux\"");
        /// With `receive_rules = "linux"`: the buffer grows with the data that arrives in a round trip, up to this
        /// many bytes of memory, about 1.6 times the window. It begins with `transfer.receive_buffer` bytes of
        /// memory. Linux: from 128 KiB to 32 MiB, 6 MiB before 6.16.
        receive_buffer_max: Option<u64> = size(1, LARGEST_WINDOW)
            .derived("the buffer does not grow")
            .example("\"32 MiB\"");
        /// What a subflow's acknowledgement covers.
        subflow_ack: Option<SubflowAck> =
            names::<SubflowAck>().derived(PRESET).example("\"independent\"");
        /// How the retransmission timeout follows from the smoothed round trip and its deviation.
        rto_formula: Option<RtoFormula> =
            names::<RtoFormula>().derived(PRESET).example("\"rfc6298\"");
        /// The timestamps option (RFC 7323): 12 B per segment; it measures forward delays.
        timestamps: Option<bool> = Kind::Bool.derived(PRESET).example("true");
        /// Selective acknowledgements (RFC 2018). Without them each loss of a window takes a round
        /// trip (RFC 6582).
        sack: Option<bool> = Kind::Bool.derived(PRESET).example("true");
        /// How reordering is distinguished from loss.
        recovery: Option<Reordering> =
            names::<Reordering>().derived(PRESET).example("\"rack-tlp\"");
        /// Duplicate or selective acknowledgements that indicate a loss, if they are counted.
        duplicate_threshold: Option<u32> =
            Kind::Integer { min: 1, max: 1_000 }.derived(PRESET).example("3");
        /// When data that a subflow has sent is given to another one as well.
        reinjection: Option<Reinjection> =
            names::<Reinjection>().derived(PRESET).example("\"on-timeout\"");
        /// Initial congestion window of each subflow; a packet is a segment's payload.
        initial_window: Option<InitialWindow> =
            Kind::OneOf(&[Kind::Choice(AUTO), WINDOW]).derived(PRESET).example("\"10 packets\"");
        /// Initial slow-start threshold of each subflow; none: slow start ends with the first
        /// loss.
        initial_ssthresh: Option<u64> =
            size(1, LARGEST_WINDOW).derived(PRESET).example("\"65535 B\"");
        /// When a congestion window counts as in use, so that it may grow. `rfc`: when it was full (RFC 7661).
        /// `linux`: in slow start also up to twice the data in flight, so that a path which the
        /// receive window limits has a larger window than it uses. `wvegas`, `bbr` and `bbr-v1`
        /// have rules of their own.
        window_use: Option<Rules> = names::<Rules>().derived(PRESET).example("\"linux\"");
        /// Multipath TCP: data that a subflow gets as a whole, at least a segment. A segment at the end of
        /// such a fragment or of the receive window may be short.
        fragment: Option<u64> =
            size(1, LARGEST_WINDOW).derived("32704 B under the preset `linux-6`, otherwise a segment").example("\"32704 B\"");
        /// Whether a short segment behind which no data waits is held back while an earlier short segment is
        /// unacknowledged (Nagle's algorithm, Minshall's variant). Only Multipath TCP with `fragment` sends
        /// such segments in a bulk transfer.
        nagle: Option<bool> = Kind::Bool.derived("true under the preset `linux-6` with the scheduler `linux`, otherwise false").example("true");
        /// Whether only whole packets of a congestion window may be in flight, and windows are reduced to whole packets, as
        /// in Linux. Otherwise the last packet may exceed the window, which matters to windows of a few packets.
        whole_packets: Option<bool> = Kind::Bool.derived(PRESET).example("true");
        /// `cubic` with `transfer.hystart`: HyStart++ (`rfc`), or the HyStart of Linux, which ends slow start without
        /// a conservative phase, also when acknowledgements follow each other for half a round trip.
        hystart_rules: Option<Rules> = names::<Rules>().derived(PRESET).example("\"linux\"");
        /// `cubic`: RFC 9438, or the rules of Linux: 5 % of growth per round trip before the first loss, and an
        /// estimate of Reno that always grows by 0.53 segments per round trip.
        cubic_rules: Option<Rules> = names::<Rules>().derived(PRESET).example("\"linux\"");
        /// Retransmission timeout before the first sample.
        rto_initial: Option<Duration> = TIMEOUT.derived(PRESET).example("\"1 s\"");
        /// Least retransmission timeout; at most `rto_max`.
        rto_min: Option<Duration> = TIMEOUT.derived(PRESET).example("\"200 ms\"");
        /// Longest retransmission timeout.
        rto_max: Option<Duration> = TIMEOUT.derived(PRESET).example("\"60 s\"");
        /// Longest interval between probes of a failed subflow.
        probe_interval: Option<Duration> = TIMEOUT.derived(PRESET).example("\"2 s\"");
        /// Preset `chihani2011` only: probability that an acknowledgement begins a burst of about a
        /// window, which the sender discards.
        ack_burst_loss: Option<f64> =
            PROBABILITY.derived("0").example("0.03");
        /// Preset `chihani2011` only: each subflow draws its probability of such a burst when the session
        /// begins, uniformly from 0 to this value. Excludes `ack_burst_loss`.
        ack_burst_loss_max: Option<f64> =
            PROBABILITY.derived("0").example("0.061");
        /// Preset `chihani2011` only: data waits until all subflows are open. The model's programs
        /// begin to write one second after the connection is established.
        data_waits: Option<bool> = Kind::Bool.derived("`false`").example("true");
    }
}

impl Builder<'_> {
    pub(crate) fn tcp(&mut self, table: &Checked, preset: Preset) -> TcpOptions {
        self.ascending::<Duration>(table, "rto_min", "rto_initial");
        self.ascending::<Duration>(table, "rto_initial", "rto_max");
        self.ascending::<Duration>(table, "rto_min", "rto_max");
        self.recovery_needs(table);
        self.growth_needs(table, preset);
        self.model_knows(table, preset);
        TcpOptions::read(self, table)
    }

    /// Checks that the recovery's input is enabled: without it, the rule detects nothing.
    fn recovery_needs(&mut self, table: &Checked) {
        for (recovery, needs) in [(Reordering::DSack, "sack"), (Reordering::Eifel, "timestamps")] {
            let without = table.opt::<bool>(needs) == Some(false);
            if table.opt("recovery") == Some(recovery) && without {
                let message = format!("`tcp.recovery` = \"{recovery}\" needs `tcp.{needs}`");
                let help = format!("leave out `{needs} = false`, or take \"rack-tlp\"");
                self.wrong(table, needs, ProblemKind::Conflict, message, help);
            }
        }
    }

    /// Checks that a growing buffer is used only with rules for growth.
    fn growth_needs(&mut self, table: &Checked, preset: Preset) {
        let key = "receive_buffer_max";
        let usual =
            if preset == Preset::Linux6 { ReceiveRules::Linux } else { ReceiveRules::Payload };
        let rules = table.opt("receive_rules").unwrap_or(usual);
        if table.place(key).is_some() && rules != ReceiveRules::Linux {
            let message = format!("`tcp.{key}` needs `tcp.receive_rules` = \"linux\"");
            let help = "set that, or take the preset \"linux-6\"";
            self.wrong(table, key, ProblemKind::Conflict, message, help);
        }
    }

    /// Checks options that exist only in one preset.
    fn model_knows(&mut self, table: &Checked, preset: Preset) {
        let model = preset == Preset::Chihani2011;
        if model && table.opt("recovery") == Some(Reordering::RackTlp) {
            let message = format!("`tcp.recovery` = \"rack-tlp\" is not in the model `{preset}`");
            let help = "it knows \"none\", \"d-sack\", \"eifel\", \"tcp-door\" and \"f-rto\"";
            self.wrong(table, "recovery", ProblemKind::Conflict, message, help);
        }
        for key in ["ack_burst_loss", "ack_burst_loss_max"] {
            if !model && table.opt::<f64>(key).is_some_and(|chance| chance > 0.0) {
                let message = format!("`tcp.{key}` is a habit of the preset `chihani2011`");
                let help = "give a path `loss_down` to lose acknowledgements";
                self.wrong(table, key, ProblemKind::Conflict, message, help);
            }
        }
        let both = ["ack_burst_loss", "ack_burst_loss_max"];
        if both.iter().all(|key| table.opt::<f64>(key).is_some()) {
            let message = "`tcp.ack_burst_loss` and `tcp.ack_burst_loss_max` exclude each other";
            let help =
                "the first is the chance of all subflows, from the second each draws its own";
            self.wrong(table, both[1], ProblemKind::Conflict, message.to_owned(), help);
        }
        if !model && table.opt("data_waits") == Some(true) {
            let message = "`tcp.data_waits` is a habit of the preset `chihani2011`".to_owned();
            let help = "leave it out: RFC 8684 sends data on the first subflow at once";
            self.wrong(table, "data_waits", ProblemKind::Conflict, message, help);
        }
    }
}
