"""Grids of values: every combination, each with several seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

from ropewalk import _ropewalk as native
from ropewalk._scenario import Scenario, resolve, text_of
from ropewalk._table import Table
from ropewalk.errors import RunError


class SweepTable(Table):
    """The means of a sweep, one row per point, and :attr:`runs`, one row per run."""

    __slots__ = ("_runs",)

    def __init__(self, tables: tuple[native.Table, native.Table]) -> None:
        """Not for use outside of the package."""
        runs, means = tables
        super().__init__(means)
        self._runs = Table(runs)

    @property
    def runs(self) -> Table:
        """The single runs, from which the means are computed.

        One row per run, by point and then by seed: ``point``; the varied keys, with their units;
        ``seed_number`` and the ``seed`` itself; every figure of the means, NaN where unknown;
        ``error``, None unless the run failed.
        """
        return self._runs


def sweep(
    scenario: Scenario | str | PathLike[str],
    *,
    vary: Mapping[str, str | Iterable[Any]],
    seeds: int | str | Iterable[int] = 1,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    threads: int | None = None,
    out: str | PathLike[str] | None = None,
    shard: str | None = None,
    fresh: bool = False,
) -> SweepTable:
    """Run every combination of the values of some keys, on all cores.

    Parameters
    ----------
    scenario
        A :class:`Scenario`, or the name of a scenario file.
    vary
        Keys and their values: a list, or a text as the command's ``--vary`` has it, with ranges:
        ``{"path.lte.rtt": "20ms..400ms/20", "transfer.scheduler": ["round-robin", "daps"]}``.
        ``a..b/n`` has n values from a to b, ``a..b/n log`` spaces them by equal factors.
    seeds
        How many seeds each point runs with, from 1 to 10000; or their numbers, as
        ``range(11, 21)``, a list, or a text such as ``"1..10,15"``. From two seeds on, means have
        95 % confidence intervals. Number 1 is the scenario's own seed; all points share them.
    seed
        Root of the seeds, instead of ``transfer.seed``.
    set
        Changes that hold at every point, as in :meth:`Scenario.set`.
    threads
        At most so many at once; one per core unless given. The results do not depend on it.
    out
        A Parquet file for the single runs. Finished runs go to a journal beside it; the same call
        after an interruption goes on there, and after the end reads the result back. Other
        ``seeds`` are added to those that the file has, without running these again; the means
        are then over all of them.
    shard
        ``"i/n"``: only every n-th point, beginning with the i-th. :func:`merge_sweeps` joins them.
    fresh
        Throw away what ``out`` and its journal have, of this sweep or another.

    Returns
    -------
    SweepTable
        One row per point, and one row per run in its attribute ``runs``. The former has ``point``; the varied keys, with their units, as ``path.lte.rtt_s``;
        ``runs``, ``failed``; mean and ``..._half_width`` of the 95 % confidence interval of
        each figure that docs/reference/results.md lists for ``sweep``; ``error``. Failed runs do not
        count in the means.

    Raises
    ------
    ValueError
        ``vary``, ``shard`` or ``out`` is not possible, or ``out`` has another sweep; nothing was
        run.
    ScenarioError
        The scenario, or one of the points, is not possible; nothing was run.
    RunError
        Every run failed. A single failure stands in the columns ``failed`` and ``error``.
    """
    base = resolve(scenario, seed=seed, set=set)
    begun = native.Sweep(base, values_of(vary), numbers_of(seeds), out, shard, fresh)
    return checked(SweepTable(begun.run(threads)))


def merge_sweeps(
    paths: Iterable[str | PathLike[str]], *, out: str | PathLike[str] | None = None
) -> SweepTable:
    """Join the results of shards, or of one sweep with several sets of seeds.

    The table is that of the sweep in one piece.

    Parameters
    ----------
    paths
        The Parquet files; together they have every run once.
    out
        A Parquet file for the single runs of the whole.

    Raises
    ------
    ValueError
        The files do not make one sweep.
    """
    return SweepTable(native.merge_sweeps(list(paths), out))


def values_of(vary: Mapping[str, str | Iterable[Any]]) -> list[tuple[str, str | list[str]]]:
    """What varies, as the native half takes it."""
    return [
        (key, values if isinstance(values, str) else [text_of(key, value) for value in values])
        for key, values in vary.items()
    ]


def numbers_of(seeds: int | str | Iterable[int]) -> str:
    """Seeds, as the native half takes them."""
    if isinstance(seeds, str):
        return seeds
    if isinstance(seeds, Iterable):
        # As ranges: a single number would be a count.
        return ",".join(f"{int(number)}..{int(number)}" for number in seeds)
    return str(int(seeds))


def checked(table: SweepTable) -> SweepTable:
    """The table, unless it has no run that did not fail."""
    if len(table) > 0 and not table["runs"].any():
        reason = next(text for text in table["error"] if text is not None)
        raise RunError(f"all runs of all {len(table)} points failed, the first: {reason}")
    return table
