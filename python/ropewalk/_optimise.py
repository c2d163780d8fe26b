"""The best window limit for each path, from tables of the paths' throughputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk import _ropewalk as native
from ropewalk._arrays import floats
from ropewalk.errors import ModelError


class Allocation(NamedTuple):
    """Limits of the paths' windows."""

    limits_packets: list[int]
    """The limit of each path, packets; 0 leaves the path out."""
    throughput: float
    """The total throughput of all paths by the tables, in their unit."""
    method: str
    """``greedy`` where all tables are concave, else ``dynamic``; both are exact."""


class LeastBuffer(NamedTuple):
    """A receive buffer and its best use."""

    packets: int
    """Its size, packets."""
    allocation: Allocation
    """The best limits within it."""


def allocate_windows(
    tables: Sequence[ArrayLike], packets: int, *, may_rest: bool = False
) -> Allocation:
    """The limits of the paths' windows that deliver the most through one receive buffer.

    Exact for any tables (Wallace and Shami 2014, Eq 56 to 60).

    Parameters
    ----------
    tables
        For each path its throughput with a limit of 1, 2, ... packets, such as
        :func:`markov_table_bps`; the length of a table is the largest limit of the path. Any unit.
    packets
        The receive buffer, packets.
    may_rest
        Whether a limit may be 0, which leaves out paths that are not worth their share.

    Raises
    ------
    ModelError
        No path, an empty table, or a buffer with less than a packet for each path.
    """
    return Allocation(*native.allocate(_tables(tables), _count("packets", packets), may_rest))


def allocate_windows_in_multiples(
    tables: Sequence[ArrayLike], packets: int, multiple: int
) -> Allocation:
    """The best limits that are multiples of some packets: the paper's heuristic (Eq 61).

    Raises
    ------
    ModelError
        As :func:`allocate_windows`; a multiple beyond the end of a table.
    """
    packets, multiple = _count("packets", packets), _count("multiple", multiple)
    return Allocation(*native.heuristic(_tables(tables), packets, multiple))


def least_buffer(
    tables: Sequence[ArrayLike], target: float, *, may_rest: bool = False
) -> LeastBuffer:
    """The smallest receive buffer with which the paths deliver ``target``, in the tables' unit.

    Raises
    ------
    ModelError
        No path; a target of 0 or less, or one that is out of reach: the message says what is in reach.
    """
    packets, allocation = native.least_buffer(_tables(tables), target, may_rest)
    return LeastBuffer(packets, Allocation(*allocation))


def _tables(tables: Sequence[ArrayLike]) -> list[NDArray[np.float64]]:
    columns = [np.ascontiguousarray(floats(table)) for table in tables]
    for column in columns:
        if column.ndim != 1:
            raise ModelError(f"a table of shape {column.shape}: give one list for each path")
    return columns


def _count(name: str, value: int) -> int:
    if not 0 <= value < 2**32:
        raise ModelError(f"{name} = {value} is out of range: it must be 0 to 2**32 - 1")
    return value
