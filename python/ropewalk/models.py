"""Closed forms over arrays: the analytic counterpart of the simulator.

Arguments that describe paths have the paths on their *last* axis: ``rate_bps=[1e6, 2e6]`` is one
case of two paths, an array of shape (1000, 2) is a thousand cases. Arguments of a whole case
(``packet_bytes``, ``receive_buffer_bytes``) have the shape of the cases. Functions of a single path
(``markov``, ``renewal``, ``pftk_bps``, ``mathis_bps``) and of a channel (``bianchi``) work element by
element. Everything broadcasts as in NumPy, and a single case gives a plain number. Numbers out of
range raise :class:`~ropewalk.ModelError`, which names the first bad case.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk import _ropewalk as native
from ropewalk._arrays import Answer, elementwise, floats, in_a_row, plain
from ropewalk._optimise import (
    Allocation,
    LeastBuffer,
    allocate_windows,
    allocate_windows_in_multiples,
    least_buffer,
)
from ropewalk._throughput import (
    LossModel,
    Markov,
    Renewal,
    loss_free_bps,
    markov,
    markov_table_bps,
    mathis_bps,
    pftk_bps,
    renewal,
)
from ropewalk._wifi import Saturation, WifiStandard, bianchi
from ropewalk.errors import ModelError

__all__ = [
    "Allocation",
    "FlowControlBound",
    "LeastBuffer",
    "LossModel",
    "Markov",
    "Period",
    "Renewal",
    "Saturation",
    "WifiStandard",
    "allocate_windows",
    "allocate_windows_in_multiples",
    "asymmetry",
    "bianchi",
    "blocking_time_max_s",
    "blocking_time_two_paths_s",
    "flow_control_bound",
    "least_buffer",
    "loss_free_bps",
    "markov",
    "markov_table_bps",
    "mathis_bps",
    "packets_per_period",
    "pftk_bps",
    "receive_buffer_min_bytes",
    "receive_order",
    "renewal",
]

#: Bytes of a SACK on the wire without gap blocks (RFC 791, RFC 9260 Section 3.3.4).
SACK_BYTES = 48.0


class FlowControlBound(NamedTuple):
    """The flow-control bound and one way to reach it."""

    bound_bps: Answer
    """The limit, which no scheduler exceeds, bit/s on the wire; shape of the cases."""
    window_bytes: NDArray[np.float64]
    """The window assigned to each path, bytes; shape (..., paths)."""
    share_bps: NDArray[np.float64]
    """The rate of each path with this window, bit/s; shape (..., paths)."""
    spare_bytes: Answer
    """Buffer left when every path runs at its full rate, bytes; shape of the cases."""


class Period(NamedTuple):
    """The period of a delay-aware schedule, and the packets in it."""

    ticks: int
    """Its length in ticks."""
    capped: bool
    """Whether the least common multiple was longer and has been cut."""
    packets: list[int]
    """Packets of each path in one period."""


def blocking_time_max_s(
    rate_bps: ArrayLike,
    rtt_s: ArrayLike,
    *,
    packet_bytes: ArrayLike = 1500,
    forward_delay_s: ArrayLike | None = None,
) -> Answer:
    """The longest that a packet waits for one sent at the same moment on another path, s.

    Kuhn et al. 2014, Eq 2, for any number of paths from two: the latest one-way arrival minus the
    earliest, with empty queues.

    Parameters
    ----------
    rate_bps, rtt_s
        Rate (bit/s, above 0) and propagation round trip (s) of each path; shape (..., paths).
    packet_bytes
        A full packet on the wire, bytes; shape of the cases.
    forward_delay_s
        One-way delay of each path, s, at most its round trip; half of it by default.

    Raises
    ------
    ModelError
        Fewer than two paths, or a number out of range.
    """
    cases = _Cases(rate_bps, rtt_s, forward_delay_s, None, sizes=[packet_bytes])
    out = cases.answers()
    native.blocking_time_max_s(cases.paths, cases.buffers, cases.sizes[0], out.reshape(-1))
    return plain(out)


def receive_buffer_min_bytes(rate_bps: ArrayLike, rtt_s: ArrayLike) -> Answer:
    """The smallest receive buffer that never blocks a path, bytes.

    The sum of the rates times the longest round trip (Kuhn et al. 2014, Eq 3; Sarwar et al. 2013,
    Eq 2). Without loss: each recovery needs one more round trip of data.

    Parameters
    ----------
    rate_bps, rtt_s
        Rate (bit/s, above 0) and propagation round trip (s) of each path; shape (..., paths).

    Raises
    ------
    ModelError
        No path, or a number out of range.
    """
    cases = _Cases(rate_bps, rtt_s, None, None, sizes=[])
    out = cases.answers()
    native.receive_buffer_min_bytes(cases.paths, cases.buffers, out.reshape(-1))
    return plain(out)


def flow_control_bound(
    rate_bps: ArrayLike,
    rtt_s: ArrayLike,
    *,
    receive_buffer_bytes: ArrayLike,
    packet_bytes: ArrayLike = 1500,
    sack_bytes: ArrayLike = SACK_BYTES,
    reverse_rate_bps: ArrayLike | None = None,
    whole_packets: bool = False,
) -> FlowControlBound:
    """The most that several paths can carry through one receive buffer.

    ``max sum(min(c_i, w_i / r_i))`` subject to ``sum(w_i) <= B``: a byte occupies space from
    its transmission to its acknowledgement (Little 1961). Filled greedily, the shortest round
    trip first, which is optimal.

    Parameters
    ----------
    rate_bps, rtt_s
        Rate (bit/s, above 0) and propagation round trip (s) of each path; shape (..., paths).
    receive_buffer_bytes
        The shared buffer, bytes; shape of the cases.
    packet_bytes, sack_bytes
        A full packet and its acknowledgement on the wire, bytes; 0 neglects serialisation.
    reverse_rate_bps
        Rate at which acknowledgements return, bit/s; equal to the forward rate by default.
    whole_packets
        Count only whole packets of the buffer.

    Raises
    ------
    ModelError
        No path, or a number out of range.
    """
    sizes = [receive_buffer_bytes, packet_bytes, sack_bytes]
    cases = _Cases(rate_bps, rtt_s, None, reverse_rate_bps, sizes=sizes)
    bound, spare = cases.answers(), cases.answers()
    windows, shares = cases.answers_per_path(), cases.answers_per_path()
    native.flow_control_bound(
        cases.paths,
        cases.buffers,
        (cases.sizes[0], cases.sizes[1], cases.sizes[2]),
        whole_packets,
        (bound.reshape(-1), windows.reshape(-1), shares.reshape(-1), spare.reshape(-1)),
    )
    return FlowControlBound(plain(bound), windows, shares, plain(spare))


def blocking_time_two_paths_s(
    slow_rate_bps: ArrayLike,
    slow_rtt_s: ArrayLike,
    fast_rate_bps: ArrayLike,
    fast_rtt_s: ArrayLike,
    *,
    packet_bytes: ArrayLike = 1500,
) -> Answer:
    """:func:`blocking_time_max_s` for one slow and one fast path, as printed, s.

    ``r_s/2 + 8L/c_s - r_f/2 - 8L/c_f`` (Kuhn et al. 2014, Eq 2), element by element; negative if
    the path called slow is the faster one.

    Raises
    ------
    ModelError
        A number out of range.
    """
    given = (slow_rate_bps, slow_rtt_s, fast_rate_bps, fast_rtt_s, packet_bytes)
    arguments, out = elementwise(*given)
    native.blocking_time_two_paths_s(arguments, out.reshape(-1))
    return plain(out)


def asymmetry(
    rate_0_bps: ArrayLike, rtt_0_s: ArrayLike, rate_1_bps: ArrayLike, rtt_1_s: ArrayLike
) -> Answer:
    """The asymmetry of two paths: ``(c_1 r_1) / (c_0 r_0)``, element by element, 1 for equal paths.

    Kuhn et al., DAPS slides, 2013.

    Raises
    ------
    ModelError
        A number that is not above 0.
    """
    arguments, out = elementwise(rate_0_bps, rtt_0_s, rate_1_bps, rtt_1_s)
    native.asymmetry(arguments, out.reshape(-1))
    return plain(out)


def receive_order(delays: Sequence[int], period_ticks: int) -> list[int]:
    """In which order paths deliver in one period: entry j is the path whose packets come j-th.

    Sarwar et al. 2013, Algorithm 1: path i is due at D_i, 2 D_i, ... up to the period.

    Parameters
    ----------
    delays
        Delay of each path, whole ticks from 1.
    period_ticks
        Length of the period, ticks; see :func:`packets_per_period`.

    Raises
    ------
    ModelError
        A delay of 0, or an order of more than 2**20 entries.
    """
    return native.receive_order(_counts("delays", delays), period_ticks)


def packets_per_period(
    delays: Sequence[int], capacities: Sequence[int], *, cap_ticks: int | None = None
) -> Period:
    """The period of a delay-aware schedule and the packets that each path carries in it.

    The least common multiple of the delays, and ``K_i = lcm C_i / D_i`` (Sarwar et al. 2013,
    Eq 3 and 4).

    Parameters
    ----------
    delays
        Delay of each path, whole ticks from 1.
    capacities
        Packets of each path per delay, from 1.
    cap_ticks
        Longest period; 64 times the longest delay by default.

    Raises
    ------
    ModelError
        A delay or capacity of 0, lists of different lengths, or a cap below the longest delay.
    """
    delays = _counts("delays", delays)
    ticks, capped, packets = native.packets_per_period(
        delays, _counts("capacities", capacities), cap_ticks
    )
    return Period(ticks, capped, packets)


class _Cases:
    """Arguments of paths and of cases, brought to one shape and into contiguous memory."""

    def __init__(
        self,
        rate_bps: ArrayLike,
        rtt_s: ArrayLike,
        forward_delay_s: ArrayLike | None,
        reverse_rate_bps: ArrayLike | None,
        *,
        sizes: list[ArrayLike],
    ) -> None:
        given = [rate_bps, rtt_s, forward_delay_s, reverse_rate_bps]
        columns = [None if each is None else floats(each) for each in given]
        flat = [np.atleast_1d(each) for each in columns if each is not None]
        of_case = [floats(each) for each in sizes]
        # A size has no axis of paths: it gets one of length 1, so that all broadcast together.
        shape = np.broadcast_shapes(*(each.shape for each in flat), *((*s.shape, 1) for s in of_case))
        self.shape = shape[:-1]
        self.paths = shape[-1]
        if self.paths == 0:
            raise ModelError("0 path(s) given: the last axis has one entry per path")
        rate, rtt, delay, reverse = (
            None if each is None else in_a_row(each, shape) for each in columns
        )
        assert rate is not None and rtt is not None
        self.buffers = (rate, rtt, delay, reverse)
        self.sizes = [in_a_row(each, self.shape) for each in of_case]

    def answers(self) -> NDArray[np.float64]:
        return np.empty(self.shape)

    def answers_per_path(self) -> NDArray[np.float64]:
        return np.empty((*self.shape, self.paths))


def _counts(name: str, values: Any) -> list[int]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(f"{name}={values!r}: give a list of whole numbers")
    if (array < 0).any():
        raise ModelError(f"{name}={values!r}: a count cannot be negative")
    counts: list[int] = array.tolist()
    return counts
