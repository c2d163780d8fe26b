//! Values that are names: one list per kind, shared by parsing, errors, schema and reference.

use crate::choice::{Choice, Named};

macro_rules! choices {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $text:literal, $doc:literal;)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $(#[doc = $doc] $variant,)+
        }

        impl Named for $name {
            const CHOICES: &'static [Choice] = &[
                $(Choice { name: $text, doc: $doc },)+
            ];
            const ALL: &'static [Self] = &[$(Self::$variant,)+];
        }

        impl super::setting::Setting for $name {
            fn read(_: &mut super::builder::Builder<'_>, value: &crate::check::Value) -> Self {
                crate::check::FromValue::from_value(value)
            }

            fn toml(&self, _: &crate::keys::Kind, _: &crate::Scenario) -> Option<String> {
                Some(crate::toml_text::quoted(self))
            }
        }

        impl $name {
            /// The name in the file.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl core::str::FromStr for $name {
            type Err = crate::UnknownName;
            fn from_str(text: &str) -> Result<Self, Self::Err> {
                crate::choice::find_name(text, Self::CHOICES).map(|i| Self::ALL[i])
            }
        }
    };
}

choices! {
    /// The transport protocol.
    Protocol {
        CmtSctp = "cmt-sctp", "SCTP that sends new data on several paths at once (concurrent multipath transfer).";
        Sctp = "sctp", "SCTP (RFC 9260): data on the primary path, the others stand by.";
        Tcp = "tcp", "TCP on the first path.";
        Mptcp = "mptcp", "Multipath TCP (RFC 8684): a subflow on every path.";
    }
}

impl Protocol {
    /// Whether it is TCP, with one path or several.
    pub const fn is_tcp(self) -> bool {
        matches!(self, Self::Tcp | Self::Mptcp)
    }

    /// Whether it uses one path at a time.
    pub const fn is_single_path(self) -> bool {
        matches!(self, Self::Sctp | Self::Tcp)
    }
}

choices! {
    /// A set of rules and starting values for what `[sctp]` or `[tcp]` leaves open.
    Preset {
        Rfc9260 = "rfc9260", "RFC 9260, with the CMT rules of current stacks.";
        Live = "live", "Behaviour of `ropewalk send`, `recv` and the other live commands: pacing, an initial window of ten packets, timeouts from 250 ms on, and headers for UDP and the seal.";
        Paper2013 = "paper-2013", "The rules under which the papers of 2013 and 2014 were simulated.";
        Rfc8684 = "rfc8684", "TCP and Multipath TCP: RFC 8684, over the TCP of current stacks.";
        Linux6 = "linux-6", "TCP and Multipath TCP as the Linux kernel 6.x does them, with its scheduler.";
        Chihani2011 = "chihani2011", "TCP and Multipath TCP: the behaviour of a public ns-3 model (Chihani and Collange, 2011), to reproduce measurements made with it.";
    }
}

impl Preset {
    /// Whether it is one for TCP.
    pub const fn is_tcp(self) -> bool {
        matches!(self, Self::Rfc8684 | Self::Linux6 | Self::Chihani2011)
    }
}

choices! {
    /// Which scheduler assigns data to paths.
    SchedulerName {
        Lay = "lay", "Each path takes the data that is due when it arrives, and fills no queue.";
        RoundRobin = "round-robin", "Each open path in turn, regardless of delay.";
        Weighted = "weighted", "Shares in proportion to a weight per path (deficit round robin).";
        MinRtt = "min-rtt", "The open path with the least smoothed round-trip time.";
        Daps = "daps", "Delay-aware: data is assigned so that it arrives in order (Kuhn et al., 2014).";
        DapsLcm = "daps-lcm", "Delay-aware over one period of the delays, strictly by time (Sarwar et al., 2013).";
        Redundant = "redundant", "Copies of everything on several paths.";
        Backup = "backup", "The cheapest working path; the next one only when that path fails or is full.";
        Bas = "bas", "Bandwidth-aware: least outstanding data over estimated bandwidth; a queued chunk keeps its path (Casetti and Gaiotto, 2004).";
        ReceptionIndex = "reception-index", "The same index, recomputed whenever a path may send (Fiore et al., 2007).";
        Ods = "ods", "On demand: the first chunk that no other path delivers sooner (Wallace and Shami, 2012).";
        Otias = "otias", "Earliest arrival behind the data queued on each path, full or not (Yang, Wang and Amer, 2014).";
        Sttf = "sttf", "Shortest transfer time first, with window growth, recomputed at each acknowledgement (Hurtig et al., 2018).";
        Blest = "blest", "Least round trip, but a slow path stays idle if it would occupy window that the fast one needs (Ferlin et al., 2016).";
        Ecf = "ecf", "Least round trip, but a slow path stays idle if waiting for the fast one completes earlier (Lim et al., 2017).";
        Stms = "stms", "Slow paths send from a gap behind the head, which adapts to observed arrivals (Shi et al., 2018).";
        Linux = "linux", "The shortest queue counted in time, in bursts of 64 kB (Linux MPTCP since 5.x).";
    }
}

choices! {
    /// How `otias` counts the wait behind a queue.
    OtiasForm {
        Ceil = "ceil", "Rounds until the chunk has left: `ceil((n + 1) / w)`.";
        Floor = "floor", "Whole windows before it: `floor(n / w)`.";
        Real = "real", "Windows before it as a real number: `n / w`.";
    }
}

choices! {
    /// Where the scheduler's forward delays come from.
    ForwardDelay {
        Timestamp = "timestamp", "Measured: timestamps of sender and receiver; only differences between paths are used.";
        HalfRtt = "half-rtt", "Half of the smoothed round-trip time.";
        Oracle = "oracle", "The true delay of the simulated path; in simulations only.";
    }
}

choices! {
    /// The congestion windows from which a schedule is made.
    ScheduleWindows {
        Frozen = "frozen", "The windows as they are when the schedule is made.";
        Smoothed = "smoothed", "Moving average of the windows (gain 1/8).";
    }
}

choices! {
    /// How much of its congestion window a path emits in one forward delay.
    ScheduleCapacity {
        WindowPerRoundTrip = "window-per-round-trip", "The ratio of forward delay to round trip: a window is emitted once per round trip.";
        Window = "window", "All of it. Slow paths then take data from about twice as far ahead, which arrives before it is due.";
    }
}

choices! {
    /// What a scheduler does when the receive window is full.
    WhenBlocked {
        Nothing = "nothing", "Wait for the window to open.";
        ResendOldest = "resend-oldest", "Retransmit the oldest unacknowledged data on a path that has not carried it.";
    }
}

choices! {
    /// How much data a path gets in its turn.
    Quota {
        Window = "window", "A full congestion window, then the next path.";
        Packet = "packet", "One packet, then the next path.";
    }
}

choices! {
    /// Where the weights of `weighted` come from.
    Weights {
        Configured = "configured", "The `weight` of each path.";
        Measured = "measured", "The measured delivery rate of each path.";
    }
}

choices! {
    /// What the receiver counts to decide whether a SACK is due.
    SackCount {
        Association = "association", "Packets of the association, whatever their path.";
        Path = "path", "Packets of each path by itself.";
    }
}

choices! {
    /// When congestion windows may grow although the cumulative TSN stands still.
    CwndUpdate {
        Off = "off", "Never: plain RFC 9260.";
        Cuc = "cuc", "Per-path pseudo-cumulative TSN (Iyengar et al., 2006).";
        Cucv2 = "cucv2", "The same, with a second tracker for retransmitted data.";
    }
}

choices! {
    /// In which order messages of different streams are sent (RFC 8260 Section 3).
    StreamScheduler {
        FirstCome = "first-come", "In the order of submission.";
        RoundRobin = "round-robin", "Streams with messages take turns.";
        RoundRobinPerPacket = "round-robin-per-packet",
            "Streams take turns, and a packet holds chunks of one stream.";
        Priority = "priority", "By priority. All streams have the same here, and take turns.";
        FairCapacity = "fair-capacity", "Each stream gets the same share of the capacity.";
        WeightedFair = "weighted-fair", "In proportion to weights. All streams have the same here.";
    }
}

choices! {
    /// How losses are detected.
    Recovery {
        MissingReports = "missing-reports",
            "By three miss indications and the retransmission timer: RFC 9260 as published.";
        RackTlp = "rack-tlp",
            "By time, with tail loss probes (RFC 8985), and immediate SACKs requested for small windows.";
    }
}

choices! {
    /// Which path carries a retransmission.
    Retransmission {
        Same = "same", "The path it was lost on, until that path fails.";
        Ssthresh = "ssthresh", "The path with the largest slow-start threshold.";
        Cwnd = "cwnd", "The path with the largest congestion window.";
        LossRate = "loss-rate", "The path with the lowest measured loss.";
        Asap = "asap", "Any path that can send immediately.";
        Fastest = "fastest", "The path that delivers it soonest.";
    }
}

choices! {
    /// How congestion windows grow and shrink.
    Congestion {
        Rfc9260 = "rfc9260", "SCTP's own, each path independently (RFC 9260, Section 7.2).";
        NewReno = "newreno", "TCP's, each path independently (RFC 5681, byte counting of RFC 3465).";
        Lia = "lia", "Linked increases: all paths together take no more than one TCP on the best (RFC 6356).";
        FullyCoupled = "fully-coupled", "All paths as one window: only the best path keeps traffic.";
        Olia = "olia", "Opportunistic linked increases (Khalili et al., 2012).";
        Balia = "balia", "Balanced linked adaptation (Peng et al., 2016).";
        WVegas = "wvegas", "Weighted Vegas: coupled by queueing delay instead of loss (Cao et al., 2012).";
        Cubic = "cubic", "CUBIC, each path independently (RFC 9438).";
        Bbr = "bbr", "BBR version 3, each path independently: follows measured rates, and paces (draft-ietf-ccwg-bbr).";
        BbrV1 = "bbr-v1", "BBR version 1 as the Linux kernel has it, each path independently.";
        Prague = "prague", "Prague, each path independently: follows the share of marked data, paces, and sends ECT(1) for L4S queues; SCTP only (draft-briscoe-iccrg-prague-congestion-control).";
    }
}

choices! {
    /// Which paths a congestion control that is not coupled by itself treats as one flow.
    Coupling {
        None = "none", "None: each path takes a flow's share of a bottleneck.";
        Detected = "detected", "Paths whose forward delays show that they share a bottleneck.";
        All = "all", "All paths.";
    }
}

choices! {
    /// How the receive buffer is divided among congestion windows.
    WindowManager {
        None = "none", "None: the path that fills the buffer first gets it.";
        BufferSplitting = "buffer-splitting", "Equal shares of the buffer as limits of the windows.";
        BufferSplittingOutstanding = "buffer-splitting-outstanding", "Equal shares for the data that each path has in flight or waiting in the buffer.";
        Dynamic = "dynamic", "The path with more bandwidth grows at the cost of the others (Wallace and Shami, 2014, 5.1).";
        Static = "static", "The `window_limit` of each path (Wallace and Shami, 2014, 5.2).";
        Adaptive = "adaptive", "Limits on data in flight, derived at run time from measured rate, round trip and loss.";
    }
}

choices! {
    /// Unit in which congestion windows are counted.
    WindowRounding {
        Bytes = "bytes", "Bytes: halves are exact, and the last packet may exceed the window.";
        Packets = "packets", "Whole packets, rounded down, as throughput models have it.";
    }
}

choices! {
    /// Unit in which the receiver counts its buffer.
    WindowUnit {
        Bytes = "bytes", "Bytes of user data.";
        Packets = "packets", "Whole packets of `transfer.packet` bytes.";
    }
}

choices! {
    /// Which data counts against the receive window before new data is sent.
    WindowCheck {
        Span = "span", "Everything from the cumulative acknowledgement to the end of the new data. A schedule cannot block the data that it skipped.";
        Unacknowledged = "unacknowledged", "The data in flight or held by the receiver, wherever it lies in the stream (Kuhn et al., 2014, Eq 1). Data from far ahead can fill the buffer.";
    }
}

choices! {
    /// Direction of traffic.
    Side {
        Up = "up", "From the sender to the receiver: the data.";
        Down = "down", "From the receiver to the sender: the acknowledgements.";
    }
}

choices! {
    /// What a subflow's acknowledgement covers.
    SubflowAck {
        Independent = "independent", "What has arrived in order on the subflow (RFC 8684).";
        DataGated = "data-gated", "Only what is also in order at data level (Chihani and Collange, 2011).";
    }
}

choices! {
    /// How the retransmission timeout follows from the smoothed round trip and its deviation.
    RtoFormula {
        Rfc6298 = "rfc6298", "SRTT + 4 RTTVAR, at least `rto_min`, then doubled by each expiry (RFC 6298).";
        Linux = "linux", "As RFC 6298, but 4 RTTVAR is not below `rto_min`, so the timeout is longer by SRTT (Linux).";
        Ns3 = "ns-3", "Releases of ns-3 up to 3.13: 2 SRTT while RTTVAR is below SRTT / 4; doubled first, then at least `rto_min`.";
    }
}

choices! {
    /// How the receive window follows from the receive buffer.
    ReceiveRules {
        Payload = "payload", "The buffer less the data that has not been read.";
        Linux = "linux", "As Linux computes it: the buffer is twice `receive_buffer`, holds whole packets with their bookkeeping, and data out of order takes space. Each subflow announces its own window.";
    }
}

choices! {
    /// Whose rules a part of congestion control follows.
    Rules {
        Rfc = "rfc", "Those of the RFC.";
        Linux = "linux", "Those of Linux 6.x.";
    }
}

choices! {
    /// When the scheduler `linux` chooses a path again.
    LinuxTurns {
        Burst = "burst", "After a burst, or when the path is full.";
        Push = "push", "Also each time that acknowledgements have opened the receive window (Linux 6.x).";
    }
}

choices! {
    /// When data that a subflow has sent is also sent on another one.
    Reinjection {
        Never = "never", "Never: a failed subflow stops the session.";
        OnTimeout = "on-timeout", "When the subflow's timer expires.";
        OnLoss = "on-loss", "As soon as it is detected as lost.";
    }
}

choices! {
    /// How a TCP sender avoids mistaking reordering for loss.
    Reordering {
        None = "none", "Not at all: three duplicate or selective acknowledgements count as a loss (NewReno, RFC 6582, with RFC 6675).";
        DSack = "d-sack", "A window reduction is undone when all retransmissions are reported as duplicates (RFC 3708).";
        Eifel = "eifel", "A window reduction is undone when timestamps show that the original arrived (RFC 3522, RFC 4015).";
        TcpDoor = "tcp-door", "Transmissions and acknowledgements are numbered; during reordering, windows are kept or restored (Wang and Zhang, 2002).";
        FRto = "f-rto", "Spurious timeouts are detected and undone (RFC 5682).";
        RackTlp = "rack-tlp", "Losses are detected by time, with tail loss probes (RFC 8985); spurious retransmissions are detected as by `d-sack` and `eifel`.";
    }
}

choices! {
    /// Preamble of 802.11b frames.
    Preamble {
        Long = "long", "192 us, which every receiver supports.";
        Short = "short", "96 us; not with 1 Mbit/s.";
    }
}

choices! {
    /// An end of a path.
    End {
        Sender = "sender", "The sender of the data: data goes up to the access point, acknowledgements come down.";
        Receiver = "receiver", "The receiver: data comes down from the access point.";
    }
}

choices! {
    /// When a path carries data.
    PathUse {
        Always = "always", "Always.";
        WhenNeeded = "when-needed", "Only what exceeds the other paths: while each working path with `use = \"always\"`, and each with a lower cost, is full.";
        Backup = "backup", "Only while no path of the uses above works. Of several, the cheapest. A tunnel may send second copies of interactive packets over it while all of these owe acknowledgements.";
        Never = "never", "Never, even if no other path works.";
    }
}

choices! {
    /// When interactive packets of a tunnel are sent on two paths.
    Redundancy {
        Off = "off", "Never.";
        Auto = "auto", "While the quickest path loses packets and a copy arrives sooner than a repair, or while that path owes an acknowledgement; up to 64 kB/s and a tenth of all bytes.";
        Always = "always", "Each one, at twice the bytes.";
    }
}
