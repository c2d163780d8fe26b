"""One run and its result."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropewalk import _figures, _html
from ropewalk import _ropewalk as native
from ropewalk._document import Document
from ropewalk._delays import DelayDistribution
from ropewalk._figures import (
    DirectionResult,
    EngineFigures,
    Figures,
    FlowResult,
    OutOfOrder,
    PathResult,
    ReceiveBuffer,
)
from ropewalk._progress import Progress, reporting
from ropewalk._results import Paths, Sequence, record, sequence as sequence_of
from ropewalk._scenario import Scenario, resolve
from ropewalk._table import Table
from ropewalk.errors import NotRecordedError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def run(
    scenario: Scenario | str | PathLike[str],
    *,
    scheduler: str | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    series: bool = True,
    sequence: str | None = None,
    packets: bool | str = False,
    progress: Progress = False,
) -> Run:
    """Run a scenario in the simulator.

    The same scenario and seed give the same result, byte for byte, whatever else runs. Other
    Python threads go on meanwhile: a thread pool uses all cores. Ctrl-C stops the run.

    Parameters
    ----------
    scenario
        A :class:`Scenario`, or the name of a scenario file.
    scheduler
        Instead of ``transfer.scheduler``; :func:`schedulers` lists the names.
    seed
        Instead of ``transfer.seed``, 0 to 2**64 - 1.
    set
        Other changes, as in :meth:`Scenario.set`.
    series
        Keep time series, one row per ``record.interval``. They cost memory only.
    sequence
        Record every arrival of this initial time, with its unit: ``"5 s"``. For plots.
    packets
        List every packet in :attr:`Run.packets`: True, or only those sent in this initial time,
        ``"5 s"``. A packet costs about 100 bytes.
    progress
        True writes the completed share and the remaining time to stderr; a function is called with the
        completed share, 0 to 1, on this thread. An exception of the function stops the run.

    Returns
    -------
    Run
        Bits per second, bytes and seconds, over the time after the warm-up.

    Raises
    ------
    ScenarioError
        The scenario, or a change to it, is invalid; nothing was run.
    RunError
        The transfer could not start, or came to a halt.
    """
    checked = resolve(scenario, scheduler=scheduler, seed=seed, set=set)
    with reporting(progress, "run") as report:
        finished = native.run(checked, series, sequence, packets, report)
    return Run(finished, Path(checked.name).stem)


class Run(Figures, Document):
    """A finished run: the figures as attributes, the series as a table, plots and a report.

    Rates are bits per second of user data, sizes bytes, times seconds, over the measured
    interval, which begins after the warm-up. What a run did not record raises
    :class:`NotRecordedError`, which names the option.
    """

    def __init__(self, finished: native.Run, title: str) -> None:
        """Not for use outside of the package: see :func:`run`."""
        self._native = finished
        self._json = finished.json()
        self._title = title
        document = json.loads(self._json)
        document["seed"] = int(document["seed"])
        document["paths"] = Paths(record(PathResult, path) for path in document["paths"])
        document["directions"] = [
            record(
                DirectionResult,
                {**one, "paths": Paths(record(PathResult, path) for path in one["paths"])},
            )
            for one in document.get("directions", [])
        ]
        document["flows"] = [record(FlowResult, flow) for flow in document.get("flows", [])]
        document["receive_buffer"] = record(ReceiveBuffer, document["receive_buffer"])
        for key in ("blocking_time_s", "app_delay_s"):
            document[key] = DelayDistribution(document[key], key, finished.delays(key))
        document["out_of_order"] = record(OutOfOrder, document["out_of_order"])
        document["engine"] = record(EngineFigures, document["engine"])
        document.setdefault("association_goodput_bps", [])
        # The annotations of `Figures` are the keys of the document.
        vars(self).update(document)

    @property
    def title(self) -> str:
        """Heading of plots and reports: the scenario's file name without its extension."""
        return self._title

    @property
    def scenario_toml(self) -> str:
        """The scenario that was run, with every value written out."""
        return self._native.scenario_toml()

    @cached_property
    def series(self) -> Table:
        """Time series, one row per ``record.interval``.

        Columns: those of the whole, as ``goodput_bps``, and for each path those of the path, as
        ``<name>.srtt_s``. docs/reference/results.md lists them.
        """
        table = self._native.series()
        if table is None:
            raise NotRecordedError("this run kept no series: run it with series=True")
        return Table(table)

    @cached_property
    def sequence(self) -> Sequence:
        """The first arrivals packet by packet, recorded by ``sequence="5 s"``."""
        recorded = sequence_of(self._native.sequence())
        if recorded is None:
            raise NotRecordedError('this run kept no arrivals: run it with sequence="5 s"')
        return recorded

    @cached_property
    def packets(self) -> Table:
        """Every packet, in the order of sending, listed by ``packets=True``.

        Columns: ``sent_s``, ``received_s``, ``dropped``, ``path``, ``direction``, ``kind``, ``size_bytes``,
        ``payload_bytes``, ``chunks``, ``tsn``, ``dsn``, ``retransmission``. docs/reference/results.md
        explains them. With several associations, those of the first. Each end lists at most five million
        packets; ``metadata["cut_s"]`` then is the time from which packets are missing.
        """
        table = self._native.packets()
        if table is None:
            raise NotRecordedError("this run listed no packets: run it with packets=True")
        return Table(table)

    @cached_property
    def decisions(self) -> list[dict[str, Any]]:
        """Every decision of the scheduler with its reason, in order of time.

        Recorded by ``set={"record.decisions": True}``. Each is a dict
        with ``at_s``, ``chunk``, ``action`` (``send``, ``copies``, ``wait``, ``blocked``),
        ``sent_on``, ``position``, ``until_s``, ``reason``, ``sentence``, ``known``, ``sendable`` and
        ``paths``, what the scheduler saw.
        """
        explanation = self._native.explanation()
        if explanation is None:
            change = 'set={"record.decisions": True}'
            raise NotRecordedError(f"this run recorded no decisions: run it with {change}")
        decisions: list[dict[str, Any]] = json.loads(explanation)["decisions"]
        return decisions

    def plot(
        self,
        panels: Iterable[str] = ("sequence", "throughput", "buffer", "windows"),
        *,
        ax: Axes | Iterable[Any] | None = None,
    ) -> Figure:
        """Draw data, rates, buffer and windows over time; needs matplotlib.

        Parameters
        ----------
        panels
            What to draw: ``sequence`` (the first packets if ``sequence`` was recorded, else bytes over
            time), ``throughput`` of each path, occupancy of the receive ``buffer``, congestion ``windows``.
        ax
            Axes to draw into, one for each panel; those of a new figure by default. A legend with more than
            six entries is to the right of the last one, which needs a figure with ``layout="constrained"``.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, with one axes for each panel.

        Raises
        ------
        NotRecordedError
            The run recorded no series.
        ValueError
            There is no such panel, or the number of ``ax`` differs from that of panels.
        """
        from ropewalk import _plot

        return _plot.run(self, panels, ax)

    def report(self, path: str | PathLike[str], *, title: str | None = None) -> None:
        """Write the report page, one HTML file that opens in any browser.

        Raises
        ------
        OSError
            The file cannot be written.
        """
        origin = f"ropewalk {native.__version__} for Python"
        heading = title or f"{self._title}, {self.scheduler}"
        self._native.report(path, heading, self.scheduler, origin)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._native.stored(), self._title)

    def __repr__(self) -> str:
        goodput = _html.si(self.goodput_bps, "bit/s")
        return f"<Run {self._title}: {self.scheduler}, seed {self.seed}, goodput {goodput}>"

    def _repr_html_(self) -> str:
        facts: dict[str, list[str]] = {}
        for figure in _figures.RUN:
            value = _html.known(self, figure.key)
            if isinstance(value, (int, float)):
                shown = figure.phrase.format(_html.quantity(value, figure.unit))
                facts.setdefault(figure.group, []).append(shown)

        def cells(part: object, figures: tuple[_figures.Figure, ...]) -> list[str]:
            return [_html.quantity(getattr(part, f.key), f.unit) for f in figures]

        directions = [(one.name, *cells(one, _figures.DIRECTION)) for one in self.directions]
        # The paths of a tunnel, in each direction.
        paths = [
            (path.name, one.name, *cells(path, _figures.PATH))
            for place in range(len(self.paths))
            for one in self.directions
            for path in one.paths[place : place + 1]
        ] or [(path.name, *cells(path, _figures.PATH)) for path in self.paths]
        flows = [(flow.name, flow.kind, *cells(flow, _figures.FLOW)) for flow in self.flows]
        heading = f"{self._title}: {self.protocol}, {self.scheduler}, seed {self.seed}"
        pairs = _html.pairs((name.lower(), ", ".join(parts)) for name, parts in facts.items())
        page = _html.heading(heading) + pairs
        if directions:
            headings = ("direction", *(figure.heading for figure in _figures.DIRECTION))
            page += _html.grid(headings, directions)
        names = ("path", "direction") if directions else ("path",)
        page += _html.grid((*names, *(figure.heading for figure in _figures.PATH)), paths)
        if flows:
            headings = ("flow", "kind", *(figure.heading for figure in _figures.FLOW))
            page += _html.grid(headings, flows)
        if self._native.series() is None:
            return page
        return page + _html.picture("plot of the run", lambda plot: plot.run(self, plot.RUN_PANELS, None, plot.unshown))


def _restored(stored: native._StoredRun, title: str) -> Run:
    return Run(native.Run.restore(stored), title)
