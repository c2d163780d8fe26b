"""Statistics of an association, and changes of its paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

#: ``unconfirmed``: not yet proved to be the peer's; ``active``: in use; ``potentially-failed``: after a
#: timeout, without new data while others are active; ``inactive``: failed, probed from time to time.
PathStatus = Literal["unconfirmed", "active", "potentially-failed", "inactive"]


@dataclass(frozen=True, slots=True)
class PathEvent:
    """A change of a path.

    Attributes
    ----------
    kind : str
        ``changed``: the path has another status. ``restarted``: the peer restarted, so messages
        may be missing; this concerns no path.
    path : int or None
        Its number, from 0, the index in :attr:`Stats.paths`.
    status : str or None
        ``unconfirmed``, ``active``, ``potentially-failed`` or ``inactive``.
    """

    kind: Literal["changed", "restarted"]
    path: int | None
    status: PathStatus | None


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


def stats_of(figures: dict[str, Any]) -> Stats:
    """From the native half's dict."""
    paths = tuple(PathStats(**path) for path in figures.pop("paths"))
    return Stats(paths=paths, **figures)


def event_of(news: tuple[str, int | None, str | None]) -> PathEvent:
    """From the native half's tuple."""
    kind, path, status = news
    return PathEvent(
        cast(Literal["changed", "restarted"], kind), path, cast(PathStatus | None, status)
    )
