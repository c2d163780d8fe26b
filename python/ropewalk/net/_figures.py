"""Statistics of an association, changes of its paths, and events about its streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

#: ``unconfirmed``: not yet proved to be the peer's; ``active``: in use; ``potentially-failed``: after a
#: timeout, without new data while others are active; ``inactive``: failed, probed from time to time.
PathStatus = Literal["unconfirmed", "active", "potentially-failed", "inactive"]


@dataclass(frozen=True, slots=True)
class PathEvent:
    """A change of a path, or of an address of either end (RFC 5061).

    Attributes
    ----------
    kind : str
        ``changed``: the path has another status. ``restarted``: the peer restarted, so messages
        may be missing; this concerns no path. ``peer-uses-key``: the peer has authenticated a packet with another
        secret for the first time (RFC 4895). The others concern an address, and no path:
        ``address-added``, ``address-removed`` and ``primary-requested`` by the peer; ``own-address-added``,
        ``own-address-removed`` and ``own-primary-requested`` when the peer has answered a request of this end.
    path : int or None
        Its number, from 0, the index in :attr:`Stats.paths`.
    status : str or None
        ``unconfirmed``, ``active``, ``potentially-failed`` or ``inactive``.
    address : str or None
        The address, without a port.
    refusal : str or None
        Why the peer refused a request of this end: ``unresolvable``, ``invalid``, ``last-address``, ``resources``,
        ``source-address``, ``not-permitted``, or ``cause`` and the number of another cause. None: it did not.
    key : int or None
        Number of the secret that the peer uses.
    """

    kind: Literal[
        "changed",
        "restarted",
        "peer-uses-key",
        "address-added",
        "address-removed",
        "primary-requested",
        "own-address-added",
        "own-address-removed",
        "own-primary-requested",
    ]
    path: int | None
    status: PathStatus | None
    address: str | None = None
    refusal: str | None = None
    key: int | None = None


@dataclass(frozen=True, slots=True)
class StreamEvent:
    """Streams were reset or added (RFC 6525), or a request of this end has ended without.

    Attributes
    ----------
    kind : str
        ``streams-reset``: streams of one direction start over, and so does the order of their messages.
        ``association-reset``: the streams of both directions start over. ``streams-added``.
    outcome : str
        ``performed``, ``denied`` by the peer, or ``failed``.
    direction : str or None
        Of a reset of streams: ``outgoing`` for streams on which this end sends, ``incoming`` for those on which
        the peer sends.
    streams : tuple of int
        The streams that were reset; empty if all were.
    outgoing, incoming : int
        Number of streams that were added, on which this end and the peer send.
    """

    kind: Literal["streams-reset", "association-reset", "streams-added"]
    outcome: Literal["performed", "denied", "failed"]
    direction: Literal["outgoing", "incoming"] | None
    streams: tuple[int, ...]
    outgoing: int
    incoming: int


@dataclass(frozen=True, slots=True)
class PathStats:
    """Figures of one path since the association began; the names are those of a run's results.

    Attributes
    ----------
    link : str or None
        The interface of this end; None on loopback and if it is not known.
    local : str or None
        Address and port of this end; None if it is not known yet.
    remote : str or None
        The peer's address; None if it is not known yet.
    status : str
        As in :class:`PathEvent`.
    sent_packets, retransmitted_packets, lost_packets : int
        Packets with data; retransmissions; transmissions given up as lost.
    delivered_bytes : int
        User data that the peer acknowledged on this path.
    received_bytes : int
        User data that arrived on this path and was stored; duplicates are not counted.
    timeouts : int
        Expiries of the retransmission timer.
    cwnd_bytes, in_flight_bytes : int
        Congestion window, and bytes in flight.
    srtt_s : float or None
        Smoothed round trip; None before the first sample.
    """

    link: str | None
    local: str | None
    remote: str | None
    status: PathStatus
    sent_packets: int
    retransmitted_packets: int
    lost_packets: int
    delivered_bytes: int
    received_bytes: int
    timeouts: int
    cwnd_bytes: int
    in_flight_bytes: int
    srtt_s: float | None


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of an association.

    Attributes
    ----------
    at_s : float
        When they were taken, since the opening of its sockets.
    paths : tuple of PathStats
        One for each path.
    blocked_s : float
        Time in which a path could have sent, but the peer's receive buffer was full.
    out_of_order_bytes, mean_out_of_order_bytes, max_out_of_order_bytes
        Out-of-order data in the own receive buffer: now, mean over time, maximum.
    """

    at_s: float
    paths: tuple[PathStats, ...]
    blocked_s: float
    out_of_order_bytes: int
    mean_out_of_order_bytes: float
    max_out_of_order_bytes: int


#: State of an association (RFC 9260, 4).
State = Literal[
    "closed",
    "cookie-wait",
    "cookie-echoed",
    "established",
    "shutdown-pending",
    "shutdown-sent",
    "shutdown-received",
    "shutdown-ack-sent",
    "ended",
]


@dataclass(frozen=True, slots=True)
class Status:
    """Status of an association (RFC 9260, 11.1.8).

    Attributes
    ----------
    state : str
        ``established``, ``shutdown-pending``, ``ended``, or another state of RFC 9260, 4.
    peer_window_bytes : int
        The receive window that the peer advertised last.
    chunks_in_flight : int
        DATA chunks that were sent and are neither acknowledged nor given up as lost.
    waiting_bytes : int
        User data that has not been sent.
    receive_free_bytes : int
        Free bytes of the own receive buffer.
    outgoing_streams, incoming_streams : int
        Number of streams on which this end sends, and on which the peer sends.
    primary : int
        Number of the primary path.
    """

    state: State
    peer_window_bytes: int
    chunks_in_flight: int
    waiting_bytes: int
    receive_free_bytes: int
    outgoing_streams: int
    incoming_streams: int
    primary: int


@dataclass(frozen=True, slots=True)
class Counters:
    """What has arrived at a listener and what was refused, since it was opened.

    Attributes
    ----------
    received, sent : int
        Datagrams.
    unknown : int
        Received datagrams that were not SCTP, had a wrong checksum, or belonged to no association.
    unauthenticated : int
        Received packets of which chunks were discarded because they lacked a valid code (AUTH, RFC 4895).
    limits : dict of str to int
        How often each limit was reached: the names of :class:`Limits` without ``_s``.
    """

    received: int
    sent: int
    unknown: int
    unauthenticated: int
    limits: dict[str, int]


@dataclass(frozen=True, slots=True)
class PathTimers:
    """Timers of a path.

    Attributes
    ----------
    rto_s : float
        Retransmission timeout.
    heartbeat_interval_s : float or None
        Interval of HEARTBEATs while the path is idle. None: they are disabled.
    """

    rto_s: float
    heartbeat_interval_s: float | None


@dataclass(frozen=True, slots=True)
class Parameters:
    """Protocol parameters of an association (RFC 9260, 16), in seconds or numbers.

    Attributes
    ----------
    rto_initial_s, rto_min_s, rto_max_s : float
        Retransmission timeout before the first sample of the round trip, and its limits.
    association_max_retrans : int
        Consecutive errors after which the association ends.
    path_max_retrans : int
        Consecutive errors after which a path is inactive; :meth:`Association.set_path_max_retrans` sets it for one path.
    potentially_failed_max_retrans : int
        Consecutive errors after which a path is potentially failed (RFC 7829).
    max_init_retransmits : int
        Retransmissions of INIT and COOKIE ECHO.
    heartbeat_interval_s : float
        Interval of HEARTBEATs of an idle path; :meth:`Association.set_heartbeats` sets it for one path.
    heartbeat_burst, max_burst : int
        Most HEARTBEATs at once, and most packets with data at once; 0: no limit.
    sack_delay_s : float
        Longest delay of an acknowledgement, at most 0.5.
    sack_every_packets : int
        Packets with data after which an acknowledgement is sent without delay.
    cookie_life_s : float
        How long a state cookie is valid.
    """

    rto_initial_s: float
    rto_min_s: float
    rto_max_s: float
    association_max_retrans: int
    path_max_retrans: int
    potentially_failed_max_retrans: int
    max_init_retransmits: int
    heartbeat_interval_s: float
    heartbeat_burst: int
    max_burst: int
    sack_delay_s: float
    sack_every_packets: int
    cookie_life_s: float


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A message that the peer has not acknowledged to its end, or the rest of one.

    Attributes
    ----------
    data : bytes
        Its bytes, without the beginning that the peer has acknowledged.
    stream, ppid : int
        As it was sent.
    unordered : bool
        As it was sent.
    whole : bool
        Whether ``data`` is the whole message.
    reported_bytes : int
        How many of these bytes the peer has reported as arrived, while earlier data is missing.
    """

    data: bytes
    stream: int
    ppid: int
    unordered: bool
    whole: bool
    reported_bytes: int


def stats_of(figures: dict[str, Any]) -> Stats:
    """From the native half's dict."""
    paths = tuple(PathStats(**path) for path in figures.pop("paths"))
    return Stats(paths=paths, **figures)


def event_of(event: dict[str, Any]) -> PathEvent:
    """From the native half's dict."""
    return PathEvent(**event)


def stream_event_of(event: dict[str, Any]) -> StreamEvent:
    """From the native half's dict."""
    return StreamEvent(streams=tuple(event.pop("streams")), **event)
