"""Paths, first arrivals, and parts of a document as classes."""

from __future__ import annotations

from typing import Any, NamedTuple, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from ropewalk._figures import PathResult

T = TypeVar("T")


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
    """Arrival times and numbers of chunks."""

    time_s: NDArray[np.float64]
    """Times, s since the start; shape (n,)."""
    seq: NDArray[np.uint64]
    """Number of the chunk, or count of chunks released so far; shape (n,)."""


class Sequence(NamedTuple):
    """The first seconds of a run, packet by packet."""

    paths: dict[str, Arrivals]
    """Arrivals on each path."""
    delivered: Arrivals
    """Chunks released to the application so far."""


def record(kind: type[T], values: dict[str, Any]) -> T:
    """A dataclass from a part of a document; a key that the class does not have is an error."""
    return kind(**values)


def sequence(columns: list[tuple[str, list[float], list[int]]] | None) -> Sequence | None:
    """The first arrivals as arrays; the last column is the application's."""
    if columns is None:
        return None
    arrays = [
        (name, Arrivals(np.array(time, dtype=np.float64), np.array(seq, dtype=np.uint64)))
        for name, time, seq in columns
    ]
    return Sequence(dict(arrays[:-1]), arrays[-1][1])
