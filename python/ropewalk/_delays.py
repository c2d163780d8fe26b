"""Distributions of delays: percentiles and empirical distribution functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ropewalk import _ropewalk as native
from ropewalk._figures import Delays


class Ecdf(NamedTuple):
    """An empirical distribution function."""

    delay_s: NDArray[np.float64]
    """The delays that occurred, s, ascending; shape (n,)."""
    share: NDArray[np.float64]
    """The share of the chunks whose delay does not exceed it, 0 to 1; shape (n,)."""


class DelayDistribution(Delays):
    """The delays of all chunks in the measured interval: statistics, percentiles and distribution.

    Percentiles are exact to 0.8 %. Maximum and mean are exact.
    """

    __slots__ = ("_key", "_native")

    _key: str
    _native: native.Delays

    def __init__(self, values: dict[str, Any], key: str, delays: native.Delays) -> None:
        """Not for use outside of the package: see :attr:`Run.app_delay_s`."""
        super().__init__(**values)
        # The base class is frozen.
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_native", delays)

    def percentile(self, percent: float) -> float:
        """The delay that ``percent`` % of the chunks do not exceed, s.

        ``percentile(99)`` equals ``p99``, and ``percentile(100)`` the maximum.

        Raises
        ------
        ValueError
            ``percent`` is not from 0 to 100, or no chunk was delivered in the measured interval.
        """
        if not 0 <= percent <= 100:
            raise ValueError(f"percent = {percent}: give a number from 0 to 100")
        found = self._native.quantile(percent / 100)
        if found is None:
            raise self._nothing()
        return found

    def percentiles(self, percents: Iterable[float]) -> NDArray[np.float64]:
        """Several percentiles, s, in the order given; as :meth:`percentile`."""
        return np.array([self.percentile(percent) for percent in percents], dtype=np.float64)

    def ecdf(self) -> Ecdf:
        """The empirical distribution function: arrays of delays, s, and of shares, 0 to 1.

        ``plt.step(*run.app_delay_s.ecdf(), where="post")`` draws it.

        Raises
        ------
        ValueError
            No chunk was delivered in the measured interval.
        """
        delays, shares = self._native.ecdf()
        if not delays:
            raise self._nothing()
        return Ecdf(np.array(delays, dtype=np.float64), np.array(shares, dtype=np.float64))

    def __reduce__(self) -> tuple[Any, ...]:
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(Delays)}
        return _restored, (values, self._key, self._native.stored())

    def _nothing(self) -> ValueError:
        return ValueError(
            f"{self._key}: no chunk was delivered in the measured interval; "
            "it begins after transfer.warmup"
        )


def _restored(values: dict[str, Any], key: str, stored: str) -> DelayDistribution:
    return DelayDistribution(values, key, native.Delays.restore(stored))
