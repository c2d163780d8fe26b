"""Plots with matplotlib, which is imported only here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from ropewalk import _figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from ropewalk._compare import Comparison
    from ropewalk._run import Run
    from ropewalk._sweep import SweepTable
    from ropewalk._table import Table


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that is shown once, in a notebook as well as by ``plt.show()``."""
    # A notebook's inline backend shows pyplot's figures at the end of a cell, and shows once more
    # the one that the cell returns; a figure that pyplot does not know is shown once.
    if "inline" in plt.get_backend():
        return unshown(width, height)
    return plt.figure(figsize=(width, height), layout="constrained")


def unshown(width: float, height: float) -> Figure:
    """An empty figure that pyplot does not know, to be written to a file."""
    return Figure(figsize=(width, height), layout="constrained")


NewFigure = Callable[[float, float], Figure]


def run(result: Run, new: NewFigure = new_figure) -> Figure:
    """Four panels of one run."""
    if result.series is None:
        raise ValueError("this run kept no series: run it with series=True")
    figure = new(10, 7)
    (sequence, throughput), (occupancy, window) = figure.subplots(2, 2)
    _sequence(sequence, result, result.series)
    _throughput(throughput, result, result.series)
    _occupancy(occupancy, result.series)
    _window(window, result, result.series)
    for axes in (sequence, throughput, occupancy, window):
        axes.set_xlabel("time (s)")
        axes.set_ylim(bottom=0)
        axes.legend(loc="best", fontsize="small")
        axes.grid(alpha=0.3)
    figure.suptitle(f"{result.title}: {result.scheduler}, seed {result.seed}")
    return figure


def _sequence(axes: Axes, result: Run, series: Table) -> None:
    if result.sequence is None:
        axes.plot(series["time_s"], series["delivered_bytes"] / 1e6, label="in order")
        axes.set(title="Delivered", ylabel="MB")
        return
    for name, arrivals in result.sequence.paths.items():
        axes.plot(arrivals.time_s, arrivals.seq, ".", markersize=3, label=name)
    delivered = result.sequence.delivered
    axes.step(delivered.time_s, delivered.seq, where="post", color="black", lw=1, label="in order")
    axes.set(title="Sequence", ylabel="chunk")


def _throughput(axes: Axes, result: Run, series: Table) -> None:
    time = series["time_s"]
    for path in result.paths:
        axes.plot(time, series[f"{path.name}.throughput_bps"] / 1e6, lw=1, label=path.name)
    axes.plot(time, series["goodput_bps"] / 1e6, color="black", lw=1.2, label="goodput")
    if result.flow_control_bound_bps is not None:
        # The limit counts headers, the curves do not: shown in their unit.
        user = result.goodput_bps / result.goodput_wire_bps if result.goodput_wire_bps else 1.0
        limit = result.flow_control_bound_bps * user / 1e6
        axes.axhline(limit, color="grey", ls="--", lw=1, label="flow-control bound")
    axes.set(title="Throughput", ylabel="Mbit/s")


def _occupancy(axes: Axes, series: Table) -> None:
    held = series["receive_buffer_bytes"] / 1e3
    axes.fill_between(series["time_s"], held, alpha=0.4, step="post", label="out of order")
    axes.plot(series["time_s"], series["receive_window_bytes"] / 1e3, lw=1, label="free")
    axes.set(title="Receive buffer", ylabel="kB")


def _window(axes: Axes, result: Run, series: Table) -> None:
    for path in result.paths:
        window = series[f"{path.name}.cwnd_bytes"] / 1e3
        (line,) = axes.plot(series["time_s"], window, lw=1.2, label=f"{path.name} window")
        flight = series[f"{path.name}.in_flight_bytes"] / 1e3
        label = f"{path.name} in flight"
        axes.plot(series["time_s"], flight, lw=0.8, ls=":", color=line.get_color(), label=label)
    axes.set(title="Windows", ylabel="kB")


def comparison(result: Comparison, new: NewFigure = new_figure) -> Figure:
    """Bars of goodput, buffer and delay, one for each variant, with confidence intervals."""
    figure = new(11, 0.45 * len(result.labels) + 2)
    panels = [
        ("goodput_bps", 1e-6, "Goodput", "Mbit/s"),
        ("receive_buffer_max_bytes", 1e-3, "Receive buffer, peak", "kB"),
        ("app_delay_p99_s", 1e3, "Delay, p99", "ms"),
    ]
    all_axes = figure.subplots(1, len(panels), sharey=True)
    for axes, (key, scale, title, unit) in zip(all_axes, panels, strict=True):
        means, half_widths = result.table[key], result.table[f"{key}_half_width"]
        axes.barh(result.labels, means * scale, xerr=half_widths * scale, capsize=3, alpha=0.8)
        axes.set(title=title, xlabel=unit)
        axes.grid(alpha=0.3, axis="x")
    # The first variant on top, as in the table.
    all_axes[0].invert_yaxis()
    return figure


def tuning(drawn: dict[str, Any], new: NewFigure = new_figure) -> Figure:
    """Curves against window and buffer, and the map over two limits."""
    figure = new(14, 4)
    window, buffer, over = figure.subplots(1, 3)
    by_id = {one["id"]: one for one in drawn["figures"]}
    for axes, key in ((window, "window"), (buffer, "buffer")):
        colours: dict[str, Any] = {}
        for series in by_id[key]["series"]:
            chosen = series["source"] == "limit"
            style: dict[str, Any] = {"ls": "", "marker": "o", "mfc": "none"} if chosen else {}
            if series["name"] in colours:
                style["color"] = colours[series["name"]]
            label = None if chosen else series["name"]
            (line,) = axes.plot(series["x"], series["y"], label=label, **style)
            colours[series["name"]] = line.get_color()
        axes.set(title=by_id[key]["title"], xlabel=by_id[key]["x_label"], ylabel="Mbit/s")
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    surface = drawn["surfaces"][0]
    mesh = over.pcolormesh(surface["x"], surface["y"], surface["value"], shading="nearest")
    figure.colorbar(mesh, ax=over, label="Mbit/s")
    over.plot([0, surface["most"]], [surface["most"], 0], color="white", lw=1)
    over.plot(surface["mark"]["x"], surface["mark"]["y"], "wo", mfc="none")
    over.set(title=surface["title"], xlabel=surface["x_label"], ylabel=surface["y_label"])
    over.set(xlim=(1, surface["x"][-1]), ylim=(1, surface["y"][-1]))
    return figure


#: Scale and unit of an axis, by the unit of the figure.
_AXES = {
    "bit/s": (1e-6, "Mbit/s"),
    "B": (1e-3, "kB"),
    "s": (1e3, "ms"),
    "0 to 1": (1e2, "%"),
    "count": (1.0, "count"),
}


def sweep(
    result: SweepTable, keys: Sequence[str], x: str | None, new: NewFigure = new_figure
) -> Figure:
    """One panel for each figure over the varied key ``x``, and a line for each combination of the others."""
    over = x or _first_numeric(result)
    others = [key for key in result.varied if key != over]
    lines = _lines(result, others)
    figure = new(5.5 * len(keys), 4)
    all_axes = figure.subplots(1, len(keys), squeeze=False)[0]
    for axes, key in zip(all_axes, keys, strict=True):
        shown = _shown(key)
        scale, unit = _AXES[shown.unit]
        for label, rows in lines.items():
            _line(axes, result, rows, (over, key, scale), label)
        axes.set(title=shown.label, xlabel=over, ylabel=unit)
        axes.grid(alpha=0.3)
    if others:
        all_axes[-1].legend(title=", ".join(others), fontsize="small")
    return figure


def _line(
    axes: Axes,
    result: SweepTable,
    rows: NDArray[np.intp],
    drawn: tuple[str, str, float],
    label: str | None,
) -> None:
    """A line of means, with the confidence intervals as error bars."""
    over, key, scale = drawn
    at = result[over][rows]
    order = np.argsort(at) if at.dtype.kind in "fu" else np.arange(len(at))
    means = result[key][rows][order] * scale
    half_widths = result[f"{key}_half_width"][rows][order] * scale
    axes.errorbar(at[order], means, yerr=half_widths, marker=".", capsize=3, label=label)


def _lines(result: SweepTable, others: Sequence[str]) -> dict[str | None, NDArray[np.intp]]:
    """The rows of each combination of the values of other keys, by its label."""
    if not others:
        return {None: np.arange(len(result))}
    columns = [result[key] for key in others]
    labels = [", ".join(_value(value) for value in values) for values in zip(*columns, strict=True)]
    return {
        label: np.array([row for row, own in enumerate(labels) if own == label])
        for label in dict.fromkeys(labels)
    }


def _value(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _first_numeric(result: SweepTable) -> str:
    """The first varied key that has numbers; the first one if none has."""
    numeric = [key for key in result.varied if result[key].dtype.kind in "fu"]
    return (numeric or result.varied)[0]


def _shown(key: str) -> _figures.Figure:
    for figure in _figures.SWEPT_SHOWN:
        if figure.key == key:
            return figure
    flow, _, own = key.removeprefix("flow.").rpartition(".")
    if flow and key.startswith("flow."):
        for figure in _figures.FLOW:
            if figure.key == own:
                return figure._replace(key=key, label=f"{flow}: {figure.label}")
    names = ", ".join(figure.key for figure in _figures.SWEPT_SHOWN)
    raise ValueError(f"no figure {key!r} to plot; there are: {names}")
