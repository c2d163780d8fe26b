"""The vocabulary of results. Bits per second of user data, bytes and seconds throughout."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PathResult:
    """One path over the measured interval, all associations together."""

    name: str
    """Name in the scenario."""
    sent_packets: int
    """Packets with data that were sent."""
    retransmitted_packets: int
    """Chunks sent again."""
    lost_packets: int
    """Transmissions given up as lost."""
    timeouts: int
    """Expiries of the retransmission timer."""
    delivered_bytes: int
    """User data acknowledged on this path, bytes."""
    throughput_bps: float
    """The same per second, bit/s."""
    utilisation: float
    """Delivered bits on the wire over capacity, 0 to 1."""
    srtt_s: float | None
    """Smoothed round trip at the end, s."""
    cwnd_bytes: int
    """Congestion window at the end, bytes."""


@dataclass(frozen=True, slots=True)
class ReceiveBuffer:
    """Occupancy of the receive buffer by out-of-order data, weighted with time."""

    max_bytes: int
    """Most, bytes."""
    mean_bytes: float
    """Mean, bytes."""
    p99_bytes: int
    """Exceeded 1 % of the time, bytes."""
    blocked_s: float
    """Time in which a path had window and there was data, but the receive window blocked it, s."""


@dataclass(frozen=True, slots=True)
class Delays:
    """A distribution of delays over packets, s."""

    mean: float
    """Mean, s."""
    p50: float
    """Median, s."""
    p99: float
    """99th percentile, s."""
    max: float
    """Longest, s."""


@dataclass(frozen=True, slots=True)
class OutOfOrder:
    """Reordering at the receiver."""

    ratio: float
    """Stored chunks over chunks received, duplicates apart, 0 to 1."""
    max_bytes: int
    """Most bytes stored."""


@dataclass(frozen=True, slots=True)
class EngineFigures:
    """How fast the run was: the only figures that differ between two runs of one seed."""

    events: int
    """Events of the network (the same for the same seed)."""
    packets: int
    """Chunks delivered, warm-up included (the same for the same seed)."""
    cpu_s: float
    """CPU time, s."""
    packets_per_cpu_s: float
    """``packets / cpu_s``."""


class Paths(tuple[PathResult, ...]):
    """The results of the paths: by position, or by name."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex | str) -> PathResult: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[PathResult, ...]: ...
    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        for path in self:
            if path.name == key:
                return path
        raise KeyError(f"no path {key!r}; there are: {', '.join(path.name for path in self)}")


class Arrivals(NamedTuple):
    """When which chunks arrived."""

    time_s: NDArray[np.float64]
    """When, s since the start; shape (n,)."""
    seq: NDArray[np.uint64]
    """Number of the chunk, or how many were released so far; shape (n,)."""


class Sequence(NamedTuple):
    """The first seconds of a run, packet by packet."""

    paths: dict[str, Arrivals]
    """Arrivals on each path."""
    delivered: Arrivals
    """Chunks released to the application so far."""


def record(kind: type[T], values: dict[str, Any]) -> T:
    """A dataclass from the part of a document that has its fields."""
    return kind(**{field.name: values[field.name] for field in fields(kind)})  # type: ignore[arg-type]


def sequence(columns: list[tuple[str, list[float], list[int]]] | None) -> Sequence | None:
    """The first arrivals as arrays; the last column is the application's."""
    if columns is None:
        return None
    arrays = [
        (name, Arrivals(np.array(time, dtype=np.float64), np.array(seq, dtype=np.uint64)))
        for name, time, seq in columns
    ]
    return Sequence(dict(arrays[:-1]), arrays[-1][1])
