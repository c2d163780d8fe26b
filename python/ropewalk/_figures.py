"""The vocabulary of results. Bits per second of user data, bytes and seconds throughout.

Generated from the declarations in crates/lab/src/result; a test there compares them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ropewalk._delays import DelayDistribution
    from ropewalk._results import Paths


class Figure(NamedTuple):
    """How a figure is shown."""

    key: str
    """Key in the document, with a dot between a part and its figure."""
    label: str
    """Name in lists."""
    heading: str
    """Name in tables."""
    phrase: str
    """Text with ``{}`` for the value, in a line with the other figures of the group."""
    unit: str
    """``bit/s``, ``B``, ``s``, ``count``, ``0 to 1`` or ``text``."""
    group: str
    """Heading of the figures that are shown together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiveBuffer:
    """Occupancy of the receive buffer by out-of-order data, weighted by time."""

    max_bytes: int
    """Highest occupancy of the receive buffer, bytes."""
    mean_bytes: float
    """Mean occupancy of the receive buffer, bytes."""
    p99_bytes: int
    """Occupancy that the receive buffer exceeds for 1 % of the time, bytes."""
    blocked_s: float
    """Time for which a path had congestion window and there was data, but the receive window was closed, s, summed over all associations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """A distribution of delays over chunks, s."""

    max: float
    """The max, s."""
    mean: float
    """The mean, s."""
    p50: float
    """The median, s."""
    p99: float
    """The p99, s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutOfOrder:
    """Reordering at the receiver."""

    ratio: float
    """Stored chunks divided by received chunks, without duplicates."""
    max_bytes: int
    """Maximum number of bytes stored out of order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFigures:
    """Speed of the simulation. Only ``cpu_s`` and ``packets_per_cpu_s`` differ between two runs with the same seed."""

    events: int
    """Events of the network."""
    packets: int
    """Chunks delivered, warm-up included."""
    cpu_s: float
    """CPU time, s."""
    packets_per_cpu_s: float
    """``packets / cpu_s``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathResult:
    """One path over the measured interval, summed over all associations, and over the directions of a tunnel."""

    name: str
    """Name in the scenario."""
    sent_packets: int
    """Packets with data sent."""
    retransmitted_packets: int
    """Chunks retransmitted."""
    lost_packets: int
    """Transmissions that counted as lost."""
    timeouts: int
    """Expiries of the retransmission timer."""
    undone_reductions: int = 0
    """Window reductions that ``tcp.recovery`` found spurious and undid; empty or 0 if zero."""
    delivered_bytes: int
    """User data acknowledged on this path, bytes."""
    carried_bytes: int = 0
    """What the link has carried for a tunnel since the run began, in both directions and with all headers, bytes; left out unless a path has a ``cap``."""
    throughput_bps: float
    """User data acknowledged per second, bit/s."""
    utilisation: float
    """Delivered bits on the wire divided by the capacity of the path's own link. In ``paths`` of a tunnel, this figure, RTT and window are those of the direction that has delivered more on the path."""
    return_bytes: int = 0
    """Bytes that the path's own link has carried in the return direction, with all headers. Left out with a tunnel, which has data in both directions."""
    return_utilisation: float = 0
    """Return traffic divided by the capacity of the path's own link in the return direction. Left out with a tunnel."""
    srtt_s: float | None
    """Smoothed RTT at the end, s; None without a sample."""
    cwnd_bytes: int
    """Congestion window at the end, bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectionResult:
    """One direction of a tunnel over the measured interval."""

    name: str
    """``up`` or ``down``."""
    goodput_bps: float
    """User data of the flows delivered in this direction, bit/s."""
    flow_control_bound_bps: float | None
    """Upper bound of the goodput that windows and receive buffer set, bit/s on the wire; None with shared links."""
    share_of_bound: float | None
    """Goodput with headers divided by the flow-control bound."""
    receive_buffer_max_bytes: int
    """Highest occupancy of the receive buffer, bytes."""
    blocked_s: float
    """Time for which the receive window blocked the sender, s."""
    app_delay_p50_s: float
    """Median time from first transmission to delivery of a chunk, s, without the wait in the tunnel's queue before."""
    app_delay_p99_s: float
    """99th percentile of that time, s."""
    app_delay_max_s: float
    """Maximum of that time, s."""
    out_of_order_ratio: float
    """Stored chunks divided by received chunks, without duplicates."""
    spurious_retransmissions: int
    """Number of retransmissions of data that had arrived."""
    delivered_bytes: int
    """Messages delivered, with the headers of the inner packets, bytes."""
    delivered_packets: int
    """Chunks delivered."""
    paths: Paths
    """Each path in this direction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowResult:
    """One flow through a tunnel, over the part of the measured interval in which it is active."""

    name: str
    """Name in the scenario."""
    kind: str
    """Its kind; ``messages`` for a source."""
    goodput_bps: float
    """User data delivered, in both directions, bit/s; of datagrams, whole IP packets."""
    sent: int = 0
    """Messages of a source that were due in the measured interval; left out for flows through a tunnel."""
    delivered: int = 0
    """Messages of these that were read."""
    abandoned: int = 0
    """Messages of these that the sender gave up, because of ``lifetime`` or ``retransmissions``; empty or 0 if zero. With NR-SACK, also those of such a source that wait at the receiver for earlier ones at the end."""
    under_way: int = 0
    """Messages of these that had been neither read nor given up at the end; empty or 0 if zero."""
    delay_p50_s: float | None
    """Median delay, s: of packets with data from one end of the tunnel to the other, for ``ping`` and ``dns`` until the reply, of messages from when they are due until they are read; None if nothing arrived."""
    delay_p99_s: float | None
    """99th percentile of the delay, s."""
    delay_max_s: float | None
    """Longest delay, s."""
    lost: float | None
    """Share of the packets with data that did not arrive: dropped by the tunnel's queue, lost by a link, or given up. For ``ping`` and ``dns``, share of the requests without a reply. Of messages, those given up, without those under way at the end. Null if nothing was sent."""
    out_of_order: float
    """Share of the packets with data that arrived after a later one; of messages, after a later one of their stream."""
    longest_gap_s: float | None
    """Longest time between two arrivals, s."""
    mos: float | None
    """Mean opinion score of a call by the E-model, 1 to 4.5; None for other kinds."""


class Figures:
    """The figures of a run, over the measured interval, which begins after the warm-up."""

    schema: str
    """``ropewalk.run/1``."""
    protocol: str
    """Transport protocol."""
    scheduler: str
    """Scheduler."""
    seed: int
    """Root of the seed tree."""
    duration_s: float
    """Length of the measured interval, s."""
    warmup_s: float
    """Length of the warm-up, s."""
    goodput_bps: float
    """User data delivered to the application in order, bit/s."""
    goodput_wire_bps: float
    """Goodput including the headers of full packets, as papers count it, bit/s on the wire."""
    delivered_bytes: int
    """User data delivered, bytes."""
    delivered_packets: int
    """Chunks delivered."""
    completion_s: float | None
    """Time at which the wanted bytes had been delivered, s since the start; None if no number was set."""
    first_arrival_s: float | None
    """Time of the first arrival of data, s since the start; None if none arrived."""
    paths: Paths
    """Each path, summed over all associations; with a tunnel, over both directions."""
    directions: list[DirectionResult]
    """Each direction of a tunnel, ``up`` and ``down``; left out without a tunnel. All other figures of a tunnel are over both directions."""
    flows: list[FlowResult]
    """Each flow through the tunnel, or each source of messages; empty or 0 if there is none. With a tunnel, the goodput of the run is the user data of all."""
    receive_buffer: ReceiveBuffer
    """Occupancy of the receive buffer by out-of-order data, weighted by time."""
    blocking_time_s: DelayDistribution
    """Time from arrival to in-order delivery, per chunk, s."""
    app_delay_s: DelayDistribution
    """Time from first transmission to in-order delivery, per chunk, s."""
    out_of_order: OutOfOrder
    """Reordering at the receiver."""
    spurious_retransmissions: int
    """Number of retransmissions of data that had arrived."""
    flow_control_bound_bps: float | None
    """Upper bound of the goodput that windows and receive buffer set, bit/s on the wire; None with shared links, for which it is undefined, and with a tunnel, whose directions have bounds of their own."""
    share_of_bound: float | None
    """Goodput with headers divided by the flow-control bound."""
    association_goodput_bps: list[float]
    """Goodput of each association, bit/s; empty or 0 if there is only one."""
    engine: EngineFigures
    """Speed of the simulation. Only ``cpu_s`` and ``packets_per_cpu_s`` differ between two runs with the same seed."""

RUN = (
    Figure("goodput_bps", "Goodput", "goodput", "{}", "bit/s", "Goodput"),
    Figure("goodput_wire_bps", "Goodput with headers", "goodput with headers", "{} with headers", "bit/s", "Goodput"),
    Figure("flow_control_bound_bps", "Flow-control bound", "flow-control bound", "bound {}", "bit/s", "Goodput"),
    Figure("share_of_bound", "Share of the bound", "of bound", "{} of the flow-control bound", "0 to 1", "Goodput"),
    Figure("receive_buffer.max_bytes", "Peak buffer", "peak buffer", "{} peak", "B", "Receive buffer"),
    Figure("receive_buffer.mean_bytes", "Mean buffer", "mean buffer", "{} mean", "B", "Receive buffer"),
    Figure("receive_buffer.p99_bytes", "Buffer, p99", "buffer, p99", "{} p99", "B", "Receive buffer"),
    Figure("receive_buffer.blocked_s", "Blocked", "blocked", "blocked for {}", "s", "Receive buffer"),
    Figure("blocking_time_s.max", "Blocking, max", "blocking, max", "{} max", "s", "Blocking time"),
    Figure("blocking_time_s.mean", "Blocking, mean", "blocking, mean", "{} mean", "s", "Blocking time"),
    Figure("blocking_time_s.p50", "Blocking, median", "blocking, median", "{} median", "s", "Blocking time"),
    Figure("blocking_time_s.p99", "Blocking, p99", "blocking p99", "{} p99", "s", "Blocking time"),
    Figure("app_delay_s.mean", "Delay, mean", "delay mean", "{} mean", "s", "Delay"),
    Figure("app_delay_s.p50", "Delay, median", "delay p50", "{} median", "s", "Delay"),
    Figure("app_delay_s.p99", "Delay, p99", "delay p99", "{} p99", "s", "Delay"),
    Figure("app_delay_s.max", "Delay, max", "delay, max", "{} max", "s", "Delay"),
    Figure("out_of_order.ratio", "Out of order", "out of order", "{} of the packets", "0 to 1", "Out of order"),
    Figure("out_of_order.max_bytes", "Out of order, peak", "out of order, peak", "{} peak", "B", "Out of order"),
    Figure("spurious_retransmissions", "Spurious retransmissions", "spurious", "{} spurious", "count", "Retransmissions"),
    Figure("delivered_bytes", "Delivered", "delivered", "{}", "B", "Delivered"),
    Figure("delivered_packets", "Delivered packets", "delivered packets", "{} packets", "count", "Delivered"),
    Figure("completion_s", "Completion", "completion", "completed after {}", "s", "Delivered"),
    Figure("first_arrival_s", "First arrival", "first arrival", "first arrival after {}", "s", "Delivered"),
    Figure("association_goodput_bps", "Goodput of the associations", "goodput of the associations", "{} goodput of the associations", "bit/s", "Associations"),
    Figure("engine.events", "Events", "events", "{} events", "count", "Engine"),
    Figure("engine.packets", "Packets", "packets", "{} packets", "count", "Engine"),
    Figure("engine.cpu_s", "CPU time", "cpu time", "{} of CPU time", "s", "Engine"),
    Figure("engine.packets_per_cpu_s", "Packets per CPU second", "packets per cpu second", "{} packets per second", "count", "Engine"),
)
"""The figures of a run by group."""

PATH = (
    Figure("delivered_bytes", "Delivered", "delivered", "{} delivered", "B", "Run"),
    Figure("carried_bytes", "Carried", "carried", "{} carried", "B", "Run"),
    Figure("throughput_bps", "Throughput", "throughput", "{} throughput", "bit/s", "Run"),
    Figure("utilisation", "Utilisation", "used", "{} utilisation", "0 to 1", "Run"),
    Figure("return_bytes", "Return traffic", "return traffic", "{} return traffic", "B", "Run"),
    Figure("return_utilisation", "Return utilisation", "return used", "{} return utilisation", "0 to 1", "Run"),
    Figure("srtt_s", "Smoothed RTT", "RTT", "{} smoothed rtt", "s", "Run"),
    Figure("cwnd_bytes", "Congestion window", "window", "{} congestion window", "B", "Run"),
    Figure("sent_packets", "Sent", "sent", "{} sent", "count", "Run"),
    Figure("retransmitted_packets", "Retransmitted", "resent", "{} retransmitted", "count", "Run"),
    Figure("lost_packets", "Lost", "lost", "{} lost", "count", "Run"),
    Figure("timeouts", "Timeouts", "timeouts", "{} timeouts", "count", "Run"),
    Figure("undone_reductions", "Undone reductions", "undone", "{} undone reductions", "count", "Run"),
)
"""The figures of a path."""

DIRECTION = (
    Figure("goodput_bps", "Goodput", "goodput", "{} goodput", "bit/s", "Run"),
    Figure("flow_control_bound_bps", "Flow-control bound", "bound", "{} flow-control bound", "bit/s", "Run"),
    Figure("share_of_bound", "Share of the bound", "of bound", "{} share of the bound", "0 to 1", "Run"),
    Figure("receive_buffer_max_bytes", "Peak buffer", "peak buffer", "{} peak buffer", "B", "Run"),
    Figure("blocked_s", "Blocked", "blocked", "{} blocked", "s", "Run"),
    Figure("app_delay_p50_s", "Delay, median", "delay p50", "{} delay, median", "s", "Run"),
    Figure("app_delay_p99_s", "Delay, p99", "delay p99", "{} delay, p99", "s", "Run"),
    Figure("app_delay_max_s", "Delay, max", "delay max", "{} delay, max", "s", "Run"),
    Figure("out_of_order_ratio", "Out of order", "disordered", "{} out of order", "0 to 1", "Run"),
    Figure("spurious_retransmissions", "Spurious retransmissions", "spurious", "{} spurious retransmissions", "count", "Run"),
    Figure("delivered_bytes", "Delivered", "data", "{} delivered", "B", "Run"),
    Figure("delivered_packets", "Delivered packets", "packets", "{} delivered packets", "count", "Run"),
)
"""The figures of a direction of a tunnel."""

FLOW = (
    Figure("goodput_bps", "Goodput", "goodput", "{} goodput", "bit/s", "Run"),
    Figure("sent", "Sent", "sent", "{} sent", "count", "Run"),
    Figure("delivered", "Delivered", "delivered", "{} delivered", "count", "Run"),
    Figure("abandoned", "Abandoned", "abandoned", "{} abandoned", "count", "Run"),
    Figure("under_way", "Under way", "under way", "{} under way", "count", "Run"),
    Figure("delay_p50_s", "Delay, median", "delay p50", "{} delay, median", "s", "Run"),
    Figure("delay_p99_s", "Delay, p99", "delay p99", "{} delay, p99", "s", "Run"),
    Figure("delay_max_s", "Delay, max", "delay max", "{} delay, max", "s", "Run"),
    Figure("lost", "Lost", "lost", "{} lost", "0 to 1", "Run"),
    Figure("out_of_order", "Out of order", "disordered", "{} out of order", "0 to 1", "Run"),
    Figure("longest_gap_s", "Longest gap", "gap max", "{} longest gap", "s", "Run"),
    Figure("mos", "MOS", "MOS", "{} mos", "1 to 5", "Run"),
)
"""The figures of a flow."""

COMPARED = (
    Figure("goodput_bps", "Goodput", "goodput", "{}", "bit/s", "Goodput"),
    Figure("share_of_bound", "Share of the bound", "of bound", "{} of the flow-control bound", "0 to 1", "Goodput"),
    Figure("receive_buffer_max_bytes", "Peak buffer", "peak buffer", "{} peak", "B", "Receive buffer"),
    Figure("blocked_s", "Blocked", "blocked", "blocked for {}", "s", "Receive buffer"),
    Figure("blocked_share", "Blocked, share", "blocked", "{} of the time", "0 to 1", "Receive buffer"),
    Figure("blocking_time_p99_s", "Blocking, p99", "blocking p99", "{} p99", "s", "Blocking time"),
    Figure("app_delay_mean_s", "Delay, mean", "delay mean", "{} mean", "s", "Delay"),
    Figure("app_delay_p99_s", "Delay, p99", "delay p99", "{} p99", "s", "Delay"),
    Figure("out_of_order_ratio", "Out of order", "out of order", "{} of the packets", "0 to 1", "Out of order"),
    Figure("spurious_retransmissions", "Spurious retransmissions", "spurious", "{} spurious", "count", "Retransmissions"),
)
"""The figures of a comparison by column."""

SWEPT = (
    "goodput_bps",
    "flow_control_bound_bps",
    "share_of_bound",
    "receive_buffer_max_bytes",
    "receive_buffer_mean_bytes",
    "receive_buffer_p99_bytes",
    "blocked_share",
    "blocking_time_max_s",
    "blocking_time_mean_s",
    "blocking_time_p99_s",
    "app_delay_mean_s",
    "app_delay_p99_s",
    "out_of_order_ratio",
    "spurious_retransmissions",
    "retransmitted_packets",
    "lost_packets",
    "timeouts",
    "completion_s",
)
"""The columns of a sweep."""

SWEPT_SHOWN = (
    Figure("goodput_bps", "Goodput", "goodput", "{}", "bit/s", "Goodput"),
    Figure("share_of_bound", "Share of the bound", "of bound", "{} of the flow-control bound", "0 to 1", "Goodput"),
    Figure("receive_buffer_max_bytes", "Peak buffer", "peak buffer", "{} peak", "B", "Receive buffer"),
    Figure("blocked_share", "Blocked, share", "blocked", "{} of the time", "0 to 1", "Receive buffer"),
    Figure("app_delay_mean_s", "Delay, mean", "delay mean", "{} mean", "s", "Delay"),
    Figure("app_delay_p99_s", "Delay, p99", "delay p99", "{} p99", "s", "Delay"),
    Figure("retransmitted_packets", "Retransmitted", "resent", "{} in total", "count", "Retransmissions"),
)
"""The figures of a sweep that tables show."""

SERIES = (
    "time_s",
    "goodput_bps",
    "delivered_bytes",
    "receive_buffer_bytes",
    "receive_buffer_peak_bytes",
    "receive_window_bytes",
)
"""The columns of a time series."""

PATH_SERIES = (
    "throughput_bps",
    "cwnd_bytes",
    "in_flight_bytes",
    "srtt_s",
    "lost_packets",
)
"""The columns of a time series for each path, after its name."""

PACKETS = (
    "sent_s",
    "received_s",
    "dropped",
    "path",
    "direction",
    "kind",
    "size_bytes",
    "payload_bytes",
    "chunks",
    "tsn",
    "dsn",
    "retransmission",
)
"""The columns of the table of packets."""
