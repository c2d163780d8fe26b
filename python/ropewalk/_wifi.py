"""Stations of 802.11 that contend for a channel, over arrays."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ropewalk import _ropewalk as native
from ropewalk._arrays import Answer, elementwise, plain

WifiStandard = Literal["802.11b", "802.11b-short", "802.11g"]


class Saturation(NamedTuple):
    """A channel whose stations always have a packet; every field has the shape of the cases."""

    throughput_bps: Answer
    """Total throughput of all stations, bits of packets per second."""
    transmission: Answer
    """Probability that a station sends in a slot."""
    collision: Answer
    """Probability that a transmission collides."""
    given_up: Answer
    """Share of frames given up after the last attempt."""


def bianchi(
    stations: ArrayLike,
    *,
    rate_bps: ArrayLike = 54e6,
    packet_bytes: ArrayLike = 1400,
    standard: WifiStandard = "802.11g",
    attempts: int | None = 7,
) -> Saturation:
    """Saturation of an 802.11 channel by its distributed coordination function, element by element.

    Bianchi 2000, Section IV; with a limit of attempts Wu et al. 2002, Section III. One station alone gives
    the arithmetic of the standard.

    Parameters
    ----------
    stations
        How many stations contend, a whole number from 1.
    rate_bps
        Rate of their frames, bit/s: one of the standard's rates.
    packet_bytes
        A packet with its IP header, bytes; the headers of 802.11 are added to it.
    standard
        ``802.11b``, the same with the short preamble (``802.11b-short``), or ``802.11g`` at its own rates.
    attempts
        How often a frame is sent before it is given up; None for no limit, which is Bianchi's own
        model.

    Raises
    ------
    ModelError
        A rate that the standard does not have, or a number out of range.
    """
    arguments, first = elementwise(stations, rate_bps, packet_bytes)
    out = [first, *(np.empty_like(first) for _ in range(3))]
    native.bianchi(arguments, standard, attempts, [each.reshape(-1) for each in out])
    return Saturation(*(plain(each) for each in out))
