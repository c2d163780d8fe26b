//! The format of results, `ropewalk.run/1`: every figure is declared here, once.
//!
//! A declaration has the figure's name, type, meaning, unit and presentation. JSON documents, columns of
//! Parquet and CSV files, the tables of the command, the attributes in Python, the report page and the
//! reference page are made from it.

mod declare;
mod figure;
mod table;

use serde::{Deserialize, Serialize};

use declare::results;
use figure::Column::{Shown, Stored};
use figure::Value;
pub use figure::{Better, Column, Figure, Group, Show, Type, Unit};
pub use table::{
    Row, column, compared, direction_columns, figures, flow_columns, flow_swept, path_columns,
    ranked, swept, telling_flow_columns,
};

/// A figure in bit/s.
const fn rate(label: &'static str) -> Show {
    Show::new(Unit::BitsPerSecond, label)
}

/// A figure in bytes.
const fn bytes(label: &'static str) -> Show {
    Show::new(Unit::Bytes, label)
}

/// A figure in seconds.
const fn seconds(label: &'static str) -> Show {
    Show::new(Unit::Seconds, label)
}

/// A fraction.
const fn ratio(label: &'static str) -> Show {
    Show::new(Unit::Ratio, label)
}

/// A number of things.
const fn count(label: &'static str) -> Show {
    Show::new(Unit::Count, label)
}

/// A text.
const fn text(label: &'static str) -> Show {
    Show::new(Unit::Text, label)
}

results! {
    /// Result of a run. Rates are bits per second of user data unless said otherwise, sizes bytes,
    /// times seconds; all over the measured interval, which begins after the warm-up.
    struct RunResult {
        /// `ropewalk.run/1`.
        schema: String = text("Schema");
        /// Transport protocol.
        protocol: String = text("Protocol");
        /// Scheduler.
        scheduler: String = text("Scheduler");
        /// Root of the seed tree.
        seed: String = Show::new(Unit::WholeNumber, "Seed");
        /// Length of the measured interval, s.
        duration_s: f64 = seconds("Duration");
        /// Length of the warm-up, s.
        warmup_s: f64 = seconds("Warm-up");
        /// User data delivered to the application in order, bit/s.
        goodput_bps: f64 = rate("Goodput").of(Group::Goodput).phrase("{}").high()
            .compare(Shown).sweep(Shown).tournament(Shown);
        /// Goodput including the headers of full packets, as papers count it, bit/s on the wire.
        goodput_wire_bps: f64 = rate("Goodput with headers").of(Group::Goodput).phrase("{} with headers").high();
        /// User data delivered, bytes.
        delivered_bytes: u64 = bytes("Delivered").of(Group::Delivery).phrase("{}");
        /// Chunks delivered.
        delivered_packets: u64 = count("Delivered packets").of(Group::Delivery).phrase("{} packets");
        /// Time at which the wanted bytes had been delivered, s since the start; null if no number was set.
        completion_s: Option<f64> = seconds("Completion").of(Group::Delivery)
            .phrase("completed after {}").low().sweep(Stored);
        /// Time of the first arrival of data, s since the start; null if none arrived.
        first_arrival_s: Option<f64> = seconds("First arrival").of(Group::Delivery).phrase("first arrival after {}");
        /// Each path, summed over all associations; with a tunnel, over both directions.
        paths: Vec<PathResult> = text("Paths").of(Group::Paths);
        /// Each direction of a tunnel, `up` and `down`; left out without a tunnel. All other figures of a tunnel are over both
        /// directions.
        #[omit = "Vec::is_empty"]
        directions: Vec<DirectionResult> = text("Directions").of(Group::Directions);
        /// Each flow through the tunnel, or each source of messages; left out if there is none. With a tunnel, the goodput of the
        /// run is the user data of all.
        #[omit = "Vec::is_empty"]
        flows: Vec<FlowResult> = text("Flows").of(Group::Flows);
        /// Occupancy of the receive buffer by out-of-order data, weighted by time.
        receive_buffer: ReceiveBufferResult {
            /// Highest occupancy of the receive buffer, bytes.
            max_bytes: u64 = bytes("Peak buffer").phrase("{} peak").low()
                .compare(Shown).sweep(Shown).tournament(Shown);
            /// Mean occupancy of the receive buffer, bytes.
            mean_bytes: f64 = bytes("Mean buffer").phrase("{} mean").low().sweep(Stored);
            /// Occupancy that the receive buffer exceeds for 1 % of the time, bytes.
            p99_bytes: u64 = bytes("Buffer, p99").phrase("{} p99").low().sweep(Stored);
            /// Time for which a path had congestion window and there was data, but the receive window was closed,
            /// s, summed over all associations.
            blocked_s: f64 = seconds("Blocked").phrase("blocked for {}").column("blocked_s").low()
                .compare(Stored);
        } = Show::part(Group::ReceiveBuffer);
        /// Time from arrival to in-order delivery, per chunk, s.
        blocking_time_s: BlockingTime {
            /// Maximum time from arrival to in-order delivery, s.
            max: f64 = seconds("Blocking, max").phrase("{} max").low().sweep(Stored);
            /// Mean time from arrival to in-order delivery, s.
            mean: f64 = seconds("Blocking, mean").phrase("{} mean").low().sweep(Stored);
            /// Median time from arrival to in-order delivery, s.
            p50: f64 = seconds("Blocking, median").phrase("{} median").low();
            /// 99th percentile of the time from arrival to in-order delivery, s.
            p99: f64 = seconds("Blocking, p99").heading("blocking p99").phrase("{} p99").low()
                .compare(Shown).sweep(Stored);
        } = Show::part(Group::BlockingTime);
        /// Time from first transmission to in-order delivery, per chunk, s.
        app_delay_s: AppDelay {
            /// Mean time from first transmission to in-order delivery, s.
            mean: f64 = seconds("Delay, mean").heading("delay mean").phrase("{} mean").low()
                .compare(Shown).sweep(Shown);
            /// Median time from first transmission to in-order delivery, s.
            p50: f64 = seconds("Delay, median").heading("delay p50").phrase("{} median").low().tournament(Shown);
            /// 99th percentile of the time from first transmission to in-order delivery, s.
            p99: f64 = seconds("Delay, p99").heading("delay p99").phrase("{} p99").low()
                .compare(Shown).sweep(Shown).tournament(Shown);
            /// Maximum time from first transmission to in-order delivery, s.
            max: f64 = seconds("Delay, max").phrase("{} max").low();
        } = Show::part(Group::Delay);
        /// Reordering at the receiver.
        out_of_order: OutOfOrder {
            /// Stored chunks divided by received chunks, without duplicates.
            ratio: f64 = ratio("Out of order").phrase("{} of the packets").low().compare(Stored).sweep(Stored);
            /// Maximum number of bytes stored out of order.
            max_bytes: u64 = bytes("Out of order, peak").phrase("{} peak").low();
        } = Show::part(Group::OutOfOrder);
        /// Number of retransmissions of data that had arrived.
        spurious_retransmissions: u64 = count("Spurious retransmissions").of(Group::Retransmissions)
            .heading("spurious").phrase("{} spurious").low().compare(Shown).sweep(Stored).tournament(Shown);
        /// Upper bound of the goodput that windows and receive buffer set, bit/s on the wire; null with shared
        /// links, for which it is undefined, and with a tunnel, whose directions have bounds of their own.
        flow_control_bound_bps: Option<f64> = rate("Flow-control bound").of(Group::Goodput)
            .phrase("bound {}").sweep(Stored);
        /// Goodput with headers divided by the flow-control bound.
        share_of_bound: Option<f64> = ratio("Share of the bound").of(Group::Goodput).heading("of bound")
            .phrase("{} of the flow-control bound").high().compare(Shown).sweep(Shown).tournament(Shown);
        /// Goodput of each association, bit/s; left out if there is only one.
        #[omit = "Vec::is_empty"]
        association_goodput_bps: Vec<f64> = rate("Goodput of the associations").of(Group::Associations);
        /// Speed of the simulation. Only `cpu_s` and `packets_per_cpu_s` differ between two runs with the same
        /// seed.
        engine: EngineFigures {
            /// Events of the network.
            events: u64 = count("Events").phrase("{} events");
            /// Chunks delivered, warm-up included.
            packets: u64 = count("Packets").phrase("{} packets");
            /// CPU time, s.
            cpu_s: f64 = seconds("CPU time").phrase("{} of CPU time");
            /// `packets / cpu_s`.
            packets_per_cpu_s: f64 = count("Packets per CPU second").phrase("{} packets per second");
        } = Show::part(Group::Engine);
    }
}

results! {
    /// One path, summed over all associations, in one direction; in `paths` of a tunnel, over both directions.
    struct PathResult {
        /// Name in the scenario.
        name: String = text("Path");
        /// Packets with data sent.
        sent_packets: u64 = count("Sent");
        /// Chunks retransmitted.
        retransmitted_packets: u64 = count("Retransmitted").heading("resent");
        /// Transmissions that counted as lost.
        lost_packets: u64 = count("Lost");
        /// Expiries of the retransmission timer.
        timeouts: u64 = count("Timeouts");
        /// Window reductions that `tcp.recovery` found spurious and undid; left out if zero.
        #[omit = "is_zero"]
        undone_reductions: u64 = count("Undone reductions").heading("undone");
        /// User data acknowledged on this path, bytes.
        delivered_bytes: u64 = bytes("Delivered");
        /// What the link has carried for a tunnel since the run began, in both directions and with all headers, bytes; left
        /// out unless a path has a `cap`.
        #[omit = "is_zero"]
        carried_bytes: u64 = bytes("Carried");
        /// User data acknowledged per second, bit/s.
        throughput_bps: f64 = rate("Throughput");
        /// Delivered bits on the wire divided by the capacity of the path's own link. In `paths` of a tunnel, this figure, RTT
        /// and window are those of the direction that has delivered more on the path.
        utilisation: f64 = ratio("Utilisation").heading("used");
        /// Bytes that the path's own link has carried in the return direction, with all headers. Left out with a tunnel, which
        /// has data in both directions.
        #[omit = "is_zero"]
        return_bytes: u64 = bytes("Return traffic");
        /// Return traffic divided by the capacity of the path's own link in the return direction. Left out with a tunnel.
        #[omit = "is_no_share"]
        return_utilisation: f64 = ratio("Return utilisation").heading("return used");
        /// Smoothed RTT at the end, s; null without a sample.
        srtt_s: Option<f64> = seconds("Smoothed RTT").heading("RTT");
        /// Congestion window at the end, bytes.
        cwnd_bytes: u64 = bytes("Congestion window").heading("window");
    }
}

results! {
    /// One direction of a tunnel: `up` from the scenario's sender to its receiver, `down` the other way.
    struct DirectionResult {
        /// `up` or `down`.
        name: String = text("Direction");
        /// User data of the flows delivered in this direction, bit/s.
        goodput_bps: f64 = rate("Goodput");
        /// Upper bound of the goodput that windows and receive buffer set, bit/s on the wire; null with shared links.
        flow_control_bound_bps: Option<f64> = rate("Flow-control bound").heading("bound");
        /// Goodput with headers divided by the flow-control bound.
        share_of_bound: Option<f64> = ratio("Share of the bound").heading("of bound");
        /// Highest occupancy of the receive buffer, bytes.
        receive_buffer_max_bytes: u64 = bytes("Peak buffer");
        /// Time for which the receive window blocked the sender, s.
        blocked_s: f64 = seconds("Blocked");
        /// Median time from first transmission to delivery of a chunk, s, without the wait in the tunnel's queue before.
        app_delay_p50_s: f64 = seconds("Delay, median").heading("delay p50");
        /// 99th percentile of that time, s.
        app_delay_p99_s: f64 = seconds("Delay, p99").heading("delay p99");
        /// Maximum of that time, s.
        app_delay_max_s: f64 = seconds("Delay, max").heading("delay max");
        /// Stored chunks divided by received chunks, without duplicates.
        out_of_order_ratio: f64 = ratio("Out of order").heading("disordered");
        /// Number of retransmissions of data that had arrived.
        spurious_retransmissions: u64 = count("Spurious retransmissions").heading("spurious");
        /// Messages delivered, with the headers of the inner packets, bytes.
        delivered_bytes: u64 = bytes("Delivered").heading("data");
        /// Chunks delivered.
        delivered_packets: u64 = count("Delivered packets").heading("packets");
        /// Each path in this direction.
        paths: Vec<PathResult> = text("Paths").of(Group::Paths);
    }
}

results! {
    /// One flow through a tunnel, or one source of messages, over the part of the measured interval in which it is active.
    struct FlowResult {
        /// Name in the scenario.
        name: String = text("Flow");
        /// Its kind; `messages` for a source.
        kind: String = text("Kind");
        /// User data delivered, in both directions, bit/s; of datagrams, whole IP packets.
        goodput_bps: f64 = rate("Goodput").high().sweep(Shown);
        /// Messages of a source that were due in the measured interval; left out for flows through a tunnel.
        #[omit = "is_zero"]
        sent: u64 = count("Sent");
        /// Messages of these that were read.
        #[omit = "is_zero"]
        delivered: u64 = count("Delivered");
        /// Messages of these that the sender gave up, because of `lifetime` or `retransmissions`; left out if zero. With
        /// NR-SACK, also those of such a source that wait at the receiver for earlier ones at the end.
        #[omit = "is_zero"]
        abandoned: u64 = count("Abandoned");
        /// Messages of these that had been neither read nor given up at the end; left out if zero.
        #[omit = "is_zero"]
        under_way: u64 = count("Under way");
        /// Median delay, s: of packets with data from one end of the tunnel to the other, for `ping` and `dns` until the
        /// reply, of messages from when they are due until they are read; null if nothing arrived.
        delay_p50_s: Option<f64> = seconds("Delay, median").heading("delay p50");
        /// 99th percentile of the delay, s.
        delay_p99_s: Option<f64> = seconds("Delay, p99").heading("delay p99").low().sweep(Shown);
        /// Longest delay, s.
        delay_max_s: Option<f64> = seconds("Delay, max").heading("delay max");
        /// Share of the packets with data that did not arrive: dropped by the tunnel's queue, lost by a link, or given up.
        /// For `ping` and `dns`, share of the requests without a reply. Of messages, those given up, without those under way at
        /// the end. Null if nothing was sent.
        lost: Option<f64> = ratio("Lost").low().sweep(Shown);
        /// Share of the packets with data that arrived after a later one; of messages, after a later one of their stream.
        out_of_order: f64 = ratio("Out of order").heading("disordered");
        /// Longest time between two arrivals, s.
        longest_gap_s: Option<f64> = seconds("Longest gap").heading("gap max");
        /// Mean opinion score of a call by the E-model, 1 to 4.5; null for other kinds.
        mos: Option<f64> = Show::new(Unit::Score, "MOS").heading("MOS").high().sweep(Shown);
    }
}

/// Leaves out counters that are zero in most results.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Leaves out shares that are zero in most results.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature is serde's")]
fn is_no_share(share: &f64) -> bool {
    *share == 0.0
}

impl Value for Vec<PathResult> {
    const TYPE: Type = Type::Parts("Paths");
}

impl Value for Vec<DirectionResult> {
    const TYPE: Type = Type::Parts("list[DirectionResult]");
}

impl Value for Vec<FlowResult> {
    const TYPE: Type = Type::Parts("list[FlowResult]");
}
