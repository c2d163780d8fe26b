"""One run and its result."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropewalk import _html
from ropewalk import _ropewalk as native
from ropewalk._document import Document
from ropewalk._results import (
    Delays,
    EngineFigures,
    OutOfOrder,
    PathResult,
    Paths,
    ReceiveBuffer,
    Sequence,
    record,
    sequence as sequence_of,
)
from ropewalk._scenario import Scenario, resolve
from ropewalk._table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run(
    scenario: Scenario | str | PathLike[str],
    *,
    scheduler: str | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
    series: bool = True,
    sequence: str | None = None,
) -> Run:
    """Run a scenario in the simulator.

    The same scenario and seed give the same result, byte for byte, whatever else runs. Other
    Python threads go on meanwhile: a thread pool uses all cores.

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
        Record every packet of this initial time, with its unit: ``"5 s"``. For plots.

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
    return Run(native.run(checked, series, sequence), Path(checked.name).stem)


class Run(Document):
    """A finished run: the figures as attributes, the series as a table, plots and a report.

    Rates are bits per second of user data, sizes bytes, times seconds, over the measured
    interval, which begins after the warm-up.
    """

    schema: str
    """``ropewalk.run/1``."""
    protocol: str
    """Transport protocol."""
    scheduler: str
    """Scheduler."""
    seed: int
    """Root of all randomness."""
    duration_s: float
    """Length of the measured interval, s."""
    warmup_s: float
    """Length of the warm-up before it, s."""
    goodput_bps: float
    """User data delivered to the application in order, bit/s."""
    goodput_wire_bps: float
    """Goodput plus the headers of full packets, bit/s on the wire."""
    delivered_bytes: int
    """User data delivered, bytes."""
    delivered_packets: int
    """Chunks handed over."""
    completion_s: float | None
    """When ``transfer.bytes`` had been delivered, s since the start; None if it is not set."""
    first_arrival_s: float | None
    """When the first data arrived, s since the start."""
    paths: Paths
    """Each path; ``paths[0]`` or ``paths["lte"]``."""
    receive_buffer: ReceiveBuffer
    """Occupancy by out-of-order data."""
    blocking_time_s: Delays
    """Arrival to in-order delivery, per chunk, s."""
    app_delay_s: Delays
    """First transmission to in-order delivery, per chunk, s."""
    out_of_order: OutOfOrder
    """Reordering at the receiver."""
    spurious_retransmissions: int
    """Retransmissions of data that had arrived."""
    flow_control_bound_bps: float | None
    """The flow-control bound, bit/s on the wire; None where shared links make it meaningless."""
    share_of_bound: float | None
    """``goodput_wire_bps / flow_control_bound_bps``."""
    association_goodput_bps: list[float]
    """With several associations: goodput of each, bit/s; else empty."""
    engine: EngineFigures
    """Speed of the simulation; the only part that differs between two runs of one seed."""

    def __init__(self, finished: native.Run, title: str) -> None:
        """Not for use outside of the package: see :func:`run`."""
        self._native = finished
        self._json = finished.json()
        self._title = title
        document = json.loads(self._json)
        document["seed"] = int(document["seed"])
        document["paths"] = Paths(record(PathResult, path) for path in document["paths"])
        document["receive_buffer"] = record(ReceiveBuffer, document["receive_buffer"])
        document["blocking_time_s"] = record(Delays, document["blocking_time_s"])
        document["app_delay_s"] = record(Delays, document["app_delay_s"])
        document["out_of_order"] = record(OutOfOrder, document["out_of_order"])
        document["engine"] = record(EngineFigures, document["engine"])
        document.setdefault("association_goodput_bps", [])
        # The annotations above are the document's keys; a test keeps them in step.
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
    def series(self) -> Table | None:
        """Time series, one row per ``record.interval``; None if they were not recorded.

        Columns: ``time_s`` (end of the interval), ``goodput_bps``, ``delivered_bytes``,
        ``receive_buffer_bytes``, ``receive_window_bytes``, and for each path
        ``<name>.throughput_bps``, ``<name>.cwnd_bytes``, ``<name>.in_flight_bytes``,
        ``<name>.srtt_s``.
        """
        table = self._native.series()
        return None if table is None else Table(table)

    @cached_property
    def sequence(self) -> Sequence | None:
        """The first arrivals packet by packet; None if they were not recorded."""
        return sequence_of(self._native.sequence())

    @cached_property
    def decisions(self) -> list[dict[str, Any]] | None:
        """Every decision of the scheduler with its reason, in order of time.

        None unless the scenario records them: ``set={"record.decisions": True}``. Each is a dict
        with ``at_s``, ``chunk``, ``action`` (``send``, ``copies``, ``wait``, ``blocked``),
        ``sent_on``, ``position``, ``until_s``, ``reason``, ``sentence``, ``known``, ``sendable`` and
        ``paths``, what the scheduler saw.
        """
        explanation = self._native.explanation()
        return None if explanation is None else json.loads(explanation)["decisions"]

    def plot(self) -> Figure:
        """Draw data, rates, buffer and windows over time; needs matplotlib.

        Returns
        -------
        matplotlib.figure.Figure
            Four axes: sequence (the first packets if ``sequence`` was recorded, else bytes over
            time), throughput of each path, occupancy of the receive buffer, windows.

        Raises
        ------
        ValueError
            The run recorded no series.
        """
        from ropewalk import _plot

        return _plot.run(self)

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

    def __repr__(self) -> str:
        goodput = _html.si(self.goodput_bps, "bit/s")
        return f"<Run {self._title}: {self.scheduler}, seed {self.seed}, goodput {goodput}>"

    def _repr_html_(self) -> str:
        buffer, waiting, delay = self.receive_buffer, self.blocking_time_s, self.app_delay_s
        facts = [
            ("goodput", _html.si(self.goodput_bps, "bit/s")),
            ("flow-control bound", _html.si(self.flow_control_bound_bps, "bit/s")),
            ("share of it", _html.percent(self.share_of_bound)),
            ("receive buffer", f"{_html.si(buffer.max_bytes, 'B')} peak"),
            ("window blocked", _html.si(buffer.blocked_s, "s")),
            ("blocking time", f"{_html.si(waiting.p99, 's')} p99"),
            ("delay", f"{_html.si(delay.mean, 's')} mean, {_html.si(delay.p99, 's')} p99"),
            ("out of order", _html.percent(self.out_of_order.ratio)),
        ]
        rows = [
            (
                path.name,
                _html.si(path.throughput_bps, "bit/s"),
                _html.percent(path.utilisation),
                _html.si(path.srtt_s, "s"),
                _html.si(path.cwnd_bytes, "B"),
                path.retransmitted_packets,
                path.lost_packets,
            )
            for path in self.paths
        ]
        headings = ("path", "throughput", "used", "RTT", "window", "sent again", "lost")
        heading = f"{self._title}: {self.protocol}, {self.scheduler}, seed {self.seed}"
        return _html.heading(heading) + _html.pairs(facts) + _html.grid(headings, rows)
