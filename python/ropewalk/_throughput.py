"""Throughput of a single path with loss: the models and the reference formulas, over arrays."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ropewalk import _ropewalk as native
from ropewalk._arrays import Answer, elementwise, plain
from ropewalk.errors import ModelError

LossModel = Literal["independent", "correlated"]


class Markov(NamedTuple):
    """What the Markov chain says of a path; every field has the shape of the cases."""

    throughput_bps: Answer
    """What arrives, bit/s on the wire."""
    sent_bps: Answer
    """What is sent, bit/s on the wire."""
    window_mean_packets: Answer
    """Mean of the window over time, packets."""
    timeouts_per_s: Answer
    """Expired retransmission timers per second."""
    recoveries_per_s: Answer
    """Fast recoveries per second."""
    timer_share: Answer
    """Share of the time spent waiting for a retransmission timer."""


class Renewal(NamedTuple):
    """What the renewal model says of a path; every field has the shape of the cases."""

    throughput_bps: Answer
    """What arrives, bit/s on the wire."""
    window_packets: Answer
    """Window at the end of a congestion avoidance period, packets."""
    rounds: Answer
    """Rounds of such a period, up to the first loss."""
    timeout_probability: Answer
    """Chance that the period ends in a timeout."""


def markov(
    rate_bps: ArrayLike,
    rtt_s: ArrayLike,
    loss: ArrayLike,
    *,
    window_packets: ArrayLike,
    packet_bytes: ArrayLike = 1500,
    rto_max_s: ArrayLike = 60,
    loss_model: LossModel = "independent",
) -> Markov:
    """The Markov chain of a path's window, element by element.

    Wallace and Shami 2014, Section 4.3, solved exactly whatever the window.

    Parameters
    ----------
    rate_bps, rtt_s
        Rate of the bottleneck (bit/s, above 0) and propagation round trip (s).
    loss
        Probability that a packet is lost, above 0 and below 1.
    window_packets
        Largest window: the receive buffer in packets, a whole number from 1.
    packet_bytes
        A packet on the wire, bytes.
    rto_max_s
        Longest retransmission timeout, s; at least the first one, three round trips.
    loss_model
        ``independent``: each packet by itself (a lossy link); ``correlated``: a loss takes the
        rest of its round along (a full queue).

    Raises
    ------
    ModelError
        A number out of range, or a loss model that does not exist.
    """
    given = (rate_bps, rtt_s, loss, rto_max_s, packet_bytes, window_packets)
    arguments, first = elementwise(*given)
    out = [first, *(np.empty_like(first) for _ in range(5))]
    native.markov(arguments, loss_model, [each.reshape(-1) for each in out])
    return Markov(*(plain(each) for each in out))


def markov_table_bps(
    rate_bps: float,
    rtt_s: float,
    loss: float,
    *,
    window_packets: int,
    packet_bytes: float = 1500,
    rto_max_s: float = 60,
    loss_model: LossModel = "independent",
) -> NDArray[np.float64]:
    """Throughput of one path for every limit of its window, bit/s: entry c - 1 is for c packets.

    All entries together take no longer than the last one alone. Parameters as :func:`markov`.

    Raises
    ------
    ModelError
        A number out of range, or a loss model that does not exist.
    """
    if window_packets < 1:
        message = f"window_packets = {window_packets} is out of range: it must be 1 or more"
        raise ModelError(message)
    out = np.empty(window_packets)
    path = [rate_bps, rtt_s, loss, rto_max_s, packet_bytes]
    native.markov_table(path, loss_model, out)
    return out


def renewal(
    rate_bps: ArrayLike,
    rtt_s: ArrayLike,
    loss: ArrayLike,
    *,
    window_packets: ArrayLike,
    packet_bytes: ArrayLike = 1500,
    rto_max_s: ArrayLike = 60,
    lost_per_period: Literal["half-window", "first-loss"] = "half-window",
) -> Renewal:
    """The renewal model of a path, element by element.

    Wallace and Shami 2014, Section 4.4, with correlated losses. Parameters as :func:`markov`.

    Parameters
    ----------
    lost_per_period
        ``half-window``: a congestion avoidance period loses half a window; ``first-loss``: as many
        as Eq 62 says, the authors' proposal for more accuracy.

    Raises
    ------
    ModelError
        A number out of range; a loss that leaves less than a packet of window (above 0.615).
    """
    kinds = {"half-window": False, "first-loss": True}
    if lost_per_period not in kinds:
        known = ", ".join(kinds)
        raise ModelError(f"lost_per_period = {lost_per_period!r} is not known: take one of {known}")
    given = (rate_bps, rtt_s, loss, rto_max_s, packet_bytes, window_packets)
    arguments, first = elementwise(*given)
    out = [first, *(np.empty_like(first) for _ in range(3))]
    native.renewal(arguments, kinds[lost_per_period], [each.reshape(-1) for each in out])
    return Renewal(*(plain(each) for each in out))


def pftk_bps(
    rate_bps: ArrayLike,
    rtt_s: ArrayLike,
    loss: ArrayLike,
    *,
    window_packets: ArrayLike,
    packet_bytes: ArrayLike = 1500,
    rto_max_s: ArrayLike = 60,
    packets_per_ack: float = 1,
    short: bool = False,
) -> Answer:
    """What TCP Reno sends by Padhye, Firoiu, Towsley and Kurose 2000, bit/s, element by element.

    The full model, or its ``short`` approximation; cut at the rate of the link. Parameters as
    :func:`markov`; ``packets_per_ack`` is 2 with delayed acknowledgements.

    Raises
    ------
    ModelError
        A number out of range.
    """
    given = (rate_bps, rtt_s, loss, rto_max_s, packet_bytes, window_packets)
    arguments, out = elementwise(*given)
    native.pftk(arguments, packets_per_ack, short, out.reshape(-1))
    return plain(out)


def mathis_bps(
    rate_bps: ArrayLike,
    rtt_s: ArrayLike,
    loss: ArrayLike,
    *,
    window_packets: ArrayLike,
    packet_bytes: ArrayLike = 1500,
    rto_max_s: ArrayLike = 60,
    packets_per_ack: float = 1,
) -> Answer:
    """What TCP sends by Mathis, Semke, Mahdavi and Ott 1997, bit/s, element by element.

    ``sqrt(3 / (2 b p))`` packets per round trip, cut at window and rate. Parameters as
    :func:`pftk_bps`.

    Raises
    ------
    ModelError
        A number out of range.
    """
    given = (rate_bps, rtt_s, loss, rto_max_s, packet_bytes, window_packets)
    arguments, out = elementwise(*given)
    native.mathis(arguments, packets_per_ack, out.reshape(-1))
    return plain(out)


def loss_free_bps(
    rate_bps: ArrayLike,
    rtt_s: ArrayLike,
    *,
    window_packets: ArrayLike,
    packet_bytes: ArrayLike = 1500,
) -> Answer:
    """What a path without loss carries, bit/s, element by element: a window per round trip.

    The limit of :func:`markov` and :func:`renewal` for a loss that goes to 0, which they refuse.

    Raises
    ------
    ModelError
        A number out of range.
    """
    arguments, out = elementwise(rate_bps, rtt_s, packet_bytes, window_packets)
    native.loss_free(arguments, out.reshape(-1))
    return plain(out)
