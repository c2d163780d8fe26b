"""Several runs side by side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropewalk import _figures, _html
from ropewalk import _ropewalk as native
from ropewalk._document import Document
from ropewalk._progress import Progress, reporting
from ropewalk._run import Run
from ropewalk._scenario import Scenario, resolve
from ropewalk._table import Table
from ropewalk.errors import RunError, warn_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The figures of a plot.
_DRAWN = ("goodput_bps", "receive_buffer_max_bytes", "app_delay_p99_s")


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One run of a comparison."""

    label: str
    """Which variant."""
    seed: int
    """Root of its randomness."""
    run: Run | None
    """Its result; None if it failed."""
    error: str | None
    """Why it failed; None if it did not."""


def compare(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Scenario | str | PathLike[str]],
    *,
    schedulers: Iterable[str] | None = None,
    vary: Mapping[str, Iterable[Any]] | None = None,
    seeds: int = 1,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    threads: int | None = None,
    series: bool = True,
    sequence: str | None = None,
    progress: Progress = False,
) -> Comparison:
    """Run several schedulers, several values of a key, or several scenarios, on all cores.

    Parameters
    ----------
    scenario
        A :class:`Scenario`, or the name of a scenario file. Several in a dict, by the names that the result has for them:
        ``{"home": "wifi-lte", "train": "lte-satellite"}``.
    schedulers
        Names. If neither this nor ``vary`` is given: all schedulers, or of several scenarios that of each.
    vary
        One key and its values, instead: ``{"transfer.receive_buffer": ["30 kB", "90 kB"]}``.
    seeds
        Runs of each variant, with consecutive seeds, at least 1. From 2 on, means have
        95 % confidence intervals.
    seed
        The first seed, instead of ``transfer.seed``.
    set
        Other changes, as in :meth:`Scenario.set`.
    threads
        Most runs at a time; one per core by default. The results do not depend on it.
    series, sequence
        As in :func:`run`, recorded in the first run of each variant.
    progress
        As in :func:`run`.

    Raises
    ------
    ScenarioError
        The scenario, or one of the variants, is invalid; nothing was run.
    RunError
        Every run failed. Single failures are recorded in :attr:`Comparison.runs`.

    Warns
    -----
    RunWarning
        Some runs failed.
    """
    changes = _changes(schedulers, vary, several=isinstance(scenario, Mapping))
    title, variants = _variants(scenario, changes, seed, set or {})
    with reporting(progress, "compare") as report:
        document, runs = native.compare(variants, seeds, threads, series, sequence, report)
    comparison = Comparison(document, runs, title)
    if all(one.run is None for one in comparison.runs):
        raise RunError("\n".join(f"{o.label}, seed {o.seed}: {o.error}" for o in comparison.runs))
    failed = [one.error for one in comparison.runs if one.error is not None]
    warn_of(len(failed), len(comparison.runs), next(iter(failed), ""), "one.error in runs", level=2)
    return comparison


def _variants(
    scenario: Scenario | str | PathLike[str] | Mapping[str, Scenario | str | PathLike[str]],
    changes: Mapping[str, Mapping[str, Any]],
    seed: int | None,
    others: Mapping[str, Any],
) -> tuple[str, list[tuple[str, native.Scenario]]]:
    """A title, and every scenario with every change by its label."""
    named = scenario if isinstance(scenario, Mapping) else {"": scenario}
    if not named:
        raise ValueError("scenario is empty: give at least one scenario")
    title, variants = "comparison", []
    for name, one in named.items():
        base = one if isinstance(one, Scenario) else Scenario.load(one)
        title = title if isinstance(scenario, Mapping) else Path(base.name).stem
        for label, change in changes.items():
            checked = resolve(base, seed=seed, set={**others, **change})
            variants.append((", ".join(filter(None, (name, label))), checked))
    return title, variants


def _changes(
    schedulers: Iterable[str] | None, vary: Mapping[str, Iterable[Any]] | None, *, several: bool
) -> dict[str, dict[str, Any]]:
    """What each variant changes, by label."""
    if vary is None:
        if schedulers is None and several:
            return {"": {}}
        names = native.scheduler_names() if schedulers is None else list(schedulers)
        if isinstance(schedulers, str) or not names:
            raise ValueError(f"schedulers={schedulers!r}: give a list of names, at least one")
        return {name: {"transfer.scheduler": name} for name in names}
    if schedulers is not None or len(vary) != 1:
        raise ValueError("give either schedulers, or vary with exactly one key")
    (key, values), *_ = vary.items()
    changes = {f"{key} {value}": {key: value} for value in values}
    if isinstance(values, str) or not changes:
        raise ValueError(f"vary={dict(vary)!r}: give a list of values, at least one")
    return changes


class Comparison(Document):
    """Runs side by side, displayed as a table in a notebook.

    ``for one in comparison`` goes through the runs that did not fail; ``comparison["daps"]`` is
    the first run of a variant.
    """

    schema: str
    """``ropewalk.compare/1``."""
    labels: list[str]
    """The variants, in the order given."""
    runs: list[ComparedRun]
    """Every run: those of the first variant by ascending seed, then those of the second."""
    table: Table
    """One row per variant: ``label``, ``runs``, and mean and ``..._half_width`` of the 95 %
    confidence interval of each figure that docs/reference/results.md lists for ``compare``; null
    where it is not known. Flows through a tunnel have columns such as ``flow.call.mos``. Failed runs do not count."""

    def __init__(self, document: str, runs: list[native.Run | None], title: str) -> None:
        """Not for use outside of the package: see :func:`compare`."""
        self._json = document
        self._natives = runs
        self._title = title
        parsed = json.loads(document)
        self.schema = parsed["schema"]
        self.labels = [row["label"] for row in parsed["summary"]]
        self.runs = [
            ComparedRun(
                one["label"], int(one["seed"]), None if run is None else Run(run, title), one["error"]
            )
            for one, run in zip(parsed["runs"], runs, strict=True)
        ]
        self.table = _summary(parsed["summary"])

    def __iter__(self) -> Any:
        return iter([one.run for one in self.runs if one.run is not None])

    def __len__(self) -> int:
        return len(self.runs)

    def __getitem__(self, label: str) -> Run:
        """The first run of a variant that did not fail."""
        for one in self.runs:
            if one.label == label and one.run is not None:
                return one.run
        raise KeyError(f"no run {label!r}; there are: {', '.join(self.labels)}")

    def plot(
        self, figures: Iterable[str] = _DRAWN, *, ax: Axes | Iterable[Any] | None = None
    ) -> Figure:
        """Draw figures of the variants as bars; needs matplotlib.

        Parameters
        ----------
        figures
            Columns of :attr:`table`, one panel each.
        ax
            Axes to draw into, one for each panel; those of a new figure by default.

        Returns
        -------
        matplotlib.figure.Figure
            The figure. Its panels have one bar for each variant and, from two seeds on, its confidence
            interval.

        Raises
        ------
        ValueError
            A figure cannot be drawn, or the number of ``ax`` differs from that of figures.
        """
        from ropewalk import _plot

        return _plot.comparison(self, figures, ax)

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> None:
        """Write a report page with the first run of each variant side by side.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        first: dict[str, native.Run] = {}
        for one, run in zip(self.runs, self._natives, strict=True):
            if run is not None:
                first.setdefault(one.label, run)
        origin = f"ropewalk {native.__version__} for Python"
        native.report_runs(path, title or self._title, origin, list(first.items()))

    def __reduce__(self) -> tuple[Any, ...]:
        stored = [None if run is None else run.stored() for run in self._natives]
        return _restored, (self._json, stored, self._title)

    def __repr__(self) -> str:
        return f"<Comparison {self._title}: {', '.join(self.labels)}; {len(self.runs)} runs>"

    def _repr_html_(self) -> str:
        headings = ("", *(figure.label for figure in _figures.COMPARED))
        rows = [
            (row["label"], *(_with_interval(row[f.key], f.unit) for f in _figures.COMPARED))
            for row in self.to_dict()["summary"]
        ]
        failed = [one for one in self.runs if one.error is not None]
        notes = [(f"{one.label}, seed {one.seed}", one.error or "") for one in failed]
        heading = f"{self._title}: {len(self.runs)} runs"
        half_widths = [
            (row[f.key] or {}).get("half_width")
            for row in self.to_dict()["summary"]
            for f in _figures.COMPARED
        ]
        page = _html.heading(heading) + _html.grid(headings, rows) + _html.equal_seeds(half_widths)
        page += _html.pairs(notes)
        return page + _html.picture(
            "plot of the comparison", lambda plot: plot.comparison(self, _DRAWN, None, plot.unshown)
        )


def _summary(rows: list[dict[str, Any]]) -> Table:
    columns: dict[str, list[Any]] = {
        "label": [row["label"] for row in rows],
        "runs": [row["runs"] for row in rows],
    }
    named = [_with_flows(row) for row in rows]
    unknown = {"mean": None, "half_width": None}
    for key in dict.fromkeys(key for row in named for key in row):
        if key not in columns:
            estimates = [row.get(key) or unknown for row in named]
            columns[key] = [estimate["mean"] for estimate in estimates]
            columns[f"{key}_half_width"] = [estimate["half_width"] for estimate in estimates]
    return Table.from_columns(columns)


def _with_flows(row: dict[str, Any]) -> dict[str, Any]:
    """A variant with the figures of its flows under their names in a sweep: ``flow.call.mos``."""
    figures = {key: value for key, value in row.items() if key != "flows"}
    for flow in row.get("flows", []):
        figures |= {f"flow.{flow['name']}.{key}": flow[key] for key in flow if key != "name"}
    return figures


def _with_interval(estimate: dict[str, float | None] | None, unit: str) -> str:
    known = estimate or {"mean": None, "half_width": None}
    return _html.with_interval(known["mean"], known["half_width"], unit)


def _restored(document: str, stored: list[native._StoredRun | None], title: str) -> Comparison:
    runs = [None if run is None else native.Run.restore(run) for run in stored]
    return Comparison(document, runs, title)
