"""Grids of values: every combination, each with several seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from typing import TYPE_CHECKING, Any

from ropewalk import _figures, _html
from ropewalk import _ropewalk as native
from ropewalk._progress import Progress, reporting
from ropewalk._scenario import Scenario, resolve, text_of
from ropewalk._table import Table
from ropewalk.errors import RunError, warn_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The figures of a plot.
_DRAWN = ("goodput_bps", "app_delay_p99_s")


class SweepTable(Table):
    """The means of a sweep, one row per point, and :attr:`runs`, one row per run."""

    __slots__ = ("_runs",)

    def __init__(self, tables: tuple[native.Table, native.Table]) -> None:
        """Not for use outside of the package."""
        runs, means = tables
        super().__init__(means)
        self._runs = Table(runs)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._runs._native.stored(), self._native.stored())

    @property
    def runs(self) -> Table:
        """The single runs, from which the means are computed.

        One row per run, by point and then by seed: ``point``; the varied keys, with their units;
        ``seed_number`` and the ``seed`` itself; every figure of the means, NaN where unknown;
        ``error``, None unless the run failed.
        """
        return self._runs

    @property
    def varied(self) -> list[str]:
        """The columns of the varied keys, with their units: ``path.lte.rtt_s``."""
        return self.columns[1 : self.columns.index("runs")]

    def plot(
        self,
        figures: Iterable[str] = _DRAWN,
        *,
        x: str | None = None,
        ax: Axes | Iterable[Any] | None = None,
    ) -> Figure:
        """Draw figures over a varied key; needs matplotlib.

        Parameters
        ----------
        figures
            Columns of means, one panel each.
        x
            The column of the horizontal axis, one of :attr:`varied`; the first one with numbers by
            default. Each combination of the other keys is a line.
        ax
            Axes to draw into, one for each panel; those of a new figure by default. A legend with more than
            six entries is to the right of the last one, which needs a figure with ``layout="constrained"``.

        Returns
        -------
        matplotlib.figure.Figure
            One axes for each figure. From two seeds on, error bars show the 95 % confidence intervals.

        Raises
        ------
        ValueError
            A figure or ``x`` is not a column that can be drawn, or the number of ``ax`` differs from that of figures.
        """
        from ropewalk import _plot

        if x is not None and x not in self.varied:
            raise ValueError(f"x = {x!r} was not varied; there are: {', '.join(self.varied)}")
        return _plot.sweep(self, figures, x, ax)

    def _repr_html_(self) -> str:
        columns: dict[str, list[str]] = {
            key: [f"{v:g}" if isinstance(v, float) else str(v) for v in self[key].tolist()]
            for key in self.varied
        }
        for figure in _figures.SWEPT_SHOWN:
            means, half_widths = self[figure.key], self[f"{figure.key}_half_width"]
            columns[figure.label] = [
                _html.with_interval(_known(mean), _known(half), figure.unit)
                for mean, half in zip(means.tolist(), half_widths.tolist(), strict=True)
            ]
        columns["runs"] = [str(count) for count in self["runs"].tolist()]
        if self["failed"].any():
            columns["failed"] = [str(count) for count in self["failed"].tolist()]
        return _html.table(columns) + _html.picture(
            "plot of the sweep", lambda plot: plot.sweep(self, _DRAWN, None, None, plot.unshown)
        )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


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
    progress: Progress = False,
) -> SweepTable:
    """Run every combination of the values of some keys, on all cores.

    Parameters
    ----------
    scenario
        A :class:`Scenario`, or the name of a scenario file.
    vary
        Keys and their values: a list, or a text with ranges as for the command's ``--vary``:
        ``{"path.lte.rtt": "20ms..400ms/20", "transfer.scheduler": ["round-robin", "daps"]}``.
        ``a..b/n`` has n values from a to b, ``a..b/n log`` spaces them by equal factors.
    seeds
        The number of seeds of each point, from 1 to 10000; or the numbers of the seeds, as
        ``range(11, 21)``, a list, or a text such as ``"1..10,15"``. From two seeds on, means have
        95 % confidence intervals. Number 1 is the scenario's own seed; all points share them.
    seed
        Root of the seeds, instead of ``transfer.seed``.
    set
        Changes that apply to every point, as in :meth:`Scenario.set`.
    threads, progress
        As in :func:`compare` and :func:`run`.
    out
        A Parquet file for the single runs. Finished runs go to a journal beside it. The same call resumes
        an interrupted sweep, and reads back the result of a finished one. Other ``seeds`` are added to
        those that the file has, without running these again; the means are then over all of them.
    shard
        ``"i/n"``: only every n-th point, beginning with the i-th. :func:`merge_sweeps` joins them.
    fresh
        Discard what ``out`` and its journal contain, of this sweep or another.

    Returns
    -------
    SweepTable
        One row per point, and one row per run in its attribute ``runs``. The rows of points have ``point``; the varied
        keys, with their units, as ``path.lte.rtt_s``; ``runs``, ``failed``; mean and ``..._half_width`` of the 95 %
        confidence interval of each figure that docs/reference/results.md lists for ``sweep``, without failed runs; ``error``.

    Raises
    ------
    ValueError
        ``vary``, ``shard`` or ``out`` is invalid, or ``out`` has another sweep; nothing was run.
    ScenarioError
        The scenario, or one of the points, is invalid; nothing was run.
    RunError
        Every run failed. Single failures are recorded in the columns ``failed`` and ``error``.

    Warns
    -----
    RunWarning
        Some runs failed.
    """
    base = resolve(scenario, seed=seed, set=set)
    with _resumable(out), reporting(progress, "sweep") as report:
        begun = native.Sweep(base, values_of(vary), numbers_of(seeds), out, shard, fresh)
        tables = begun.run(threads, report)
    return checked(SweepTable(tables))


@contextmanager
def _resumable(out: str | PathLike[str] | None) -> Iterator[None]:
    """Adds a note on how to resume a sweep that Ctrl-C stops."""
    try:
        yield
    except KeyboardInterrupt as interrupted:
        if out is not None:
            interrupted.add_note(f"Finished runs are kept next to {out}: the same call resumes the sweep.")
        raise


def merge_sweeps(
    paths: Iterable[str | PathLike[str]], *, out: str | PathLike[str] | None = None
) -> SweepTable:
    """Join the results of shards, or of one sweep with several sets of seeds.

    The table equals that of a single sweep.

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
    """The varied keys in the form of the native half."""
    return [
        (key, values if isinstance(values, str) else [text_of(key, value) for value in values])
        for key, values in vary.items()
    ]


def numbers_of(seeds: int | str | Iterable[int]) -> str:
    """Seeds in the form of the native half."""
    if isinstance(seeds, str):
        return seeds
    if isinstance(seeds, Iterable):
        # As ranges, because a single number would be a count.
        return ",".join(f"{int(number)}..{int(number)}" for number in seeds)
    return str(int(seeds))


def checked(table: SweepTable) -> SweepTable:
    """The table, unless it has no run that did not fail."""
    if len(table) > 0 and not table["runs"].any():
        reason = next(text for text in table["error"] if text is not None)
        raise RunError(f"all runs of all {len(table)} points failed, the first: {reason}")
    failed = [text for text in table.runs["error"] if text is not None]
    warn_of(len(failed), len(table.runs), next(iter(failed), ""), "table.runs['error']", level=3)
    return table


def _restored(runs: bytes, means: bytes) -> SweepTable:
    return SweepTable((native.Table.restore(runs), native.Table.restore(means)))
