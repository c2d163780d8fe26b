"""Plots with matplotlib, which is imported only here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from numpy.typing import NDArray

from ropewalk import _figures
from ropewalk.errors import NotRecordedError

if TYPE_CHECKING:
    from ropewalk._compare import Comparison
    from ropewalk._run import Run
    from ropewalk._sweep import SweepTable
    from ropewalk._table import Table

#: Axes to draw into: one, an array as ``plt.subplots`` returns it, or any other iterable.
Into: TypeAlias = Axes | Iterable[Any]

# More entries than this cover too much of a panel: they are listed to the right of it.
_INSIDE = 6
# Entries in a column of a legend.
_COLUMN = 24
_DASHES: Sequence[Any] = ("-", "--", "-.", (0, (1, 1)))
_MARKERS = ".^sD"


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


class _Panels:
    """The axes of a plot: those of the caller, or those of a new figure."""

    def __init__(self, names: Sequence[str], into: Into | None) -> None:
        if not names:
            raise ValueError("no panels: give at least one")
        self.names = names
        self.are_new = into is None
        self.axes: list[Axes] = []
        if into is not None:
            given = [into] if isinstance(into, Axes) else np.array(list(into), dtype=object).flat
            self.axes = list(given)
            if len(self.axes) != len(names):
                raise ValueError(
                    f"ax: {len(self.axes)} axes for {len(names)} panels ({', '.join(names)})"
                )

    def of(self, figure: Callable[[], Figure], columns: int, **options: Any) -> _Panels:
        """The same with axes; ``figure`` is called if the caller has not given any."""
        if self.are_new:
            columns = min(columns, len(self.names))
            rows = -(-len(self.names) // columns)
            made = figure().subplots(rows, columns, squeeze=False, **options).flat
            self.axes = list(made)[: len(self.names)]
            for spare in list(made)[len(self.names) :]:
                spare.set_axis_off()
        return self

    @property
    def figure(self) -> Figure:
        # The figure itself, also if the axes belong to a part of it.
        return self.axes[0].figure.canvas.figure

    def legends(self, shared: Iterable[str], title: str | None = None) -> None:
        """Explains the lines. Lines with a label in ``shared`` mean the same in all panels, and are numbered in this order."""
        common = {name: Line2D([], [], **_style(number)) for number, name in enumerate(shared)}
        outside: dict[str, Any] = {}
        for axes in self.axes:
            entries = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
            if len(entries) > _INSIDE:
                outside |= {name: common[name] for name in entries if name in common}
                entries = {name: entry for name, entry in entries.items() if name not in common}
            if entries:
                axes.legend(entries.values(), entries, loc="best", fontsize="small", title=title)
        if not outside:
            return
        options = {"fontsize": "small", "title": title, "ncols": -(-len(outside) // _COLUMN)}
        if self.are_new:
            self.figure.legend(outside.values(), outside, loc="outside right upper", **options)
            return
        last = self.axes[-1]
        if (inside := last.get_legend()) is not None:
            last.add_artist(inside)
        last.legend(
            outside.values(), outside, loc="upper left", bbox_to_anchor=(1.01, 1.0), **options
        )


def _style(number: int) -> dict[str, Any]:
    """Colour of a line; when all have been used, other dashes and another marker."""
    colours = plt.rcParams["axes.prop_cycle"].by_key().get("color", ["C0"])
    turn = number // len(colours) % len(_DASHES)
    return {"color": colours[number % len(colours)], "ls": _DASHES[turn], "marker": _MARKERS[turn]}


def _line_style(number: int) -> dict[str, Any]:
    """The same for a curve of so many points that markers would touch."""
    return {**_style(number), "marker": ""}


def run(
    result: Run, panels: Iterable[str], into: Into | None = None, new: NewFigure = new_figure
) -> Figure:
    """The chosen panels of one run."""
    series = result.series
    names = _chosen(panels, RUN_PANELS)
    place = _Panels(names, into)
    size = (10, 7) if len(names) > 2 else (5.5 * len(names), 4)
    place.of(lambda: new(*size), 2)
    for axes, name in zip(place.axes, names, strict=True):
        RUN_PANELS[name](axes, result, series)
        axes.set_xlabel("time (s)")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    place.legends(path.name for path in result.paths)
    if place.are_new:
        place.figure.suptitle(f"{result.title}: {result.scheduler}, seed {result.seed}")
    return place.figure


def _chosen(panels: Iterable[str], known: Iterable[str]) -> list[str]:
    names = [panels] if isinstance(panels, str) else list(panels)
    for name in names:
        if name not in known:
            raise ValueError(f"no panel {name!r}; there are: {', '.join(known)}")
    return names


def _sequence(axes: Axes, result: Run, series: Table) -> None:
    try:
        sequence = result.sequence
    except NotRecordedError:
        axes.plot(series["time_s"], series["delivered_bytes"] / 1e6, label="in order")
        axes.set(title="Delivered", ylabel="MB")
        return
    for number, (name, arrivals) in enumerate(sequence.paths.items()):
        style = {**_style(number), "ls": "", "markersize": 3}
        axes.plot(arrivals.time_s, arrivals.seq, label=name, **style)
    delivered = sequence.delivered
    axes.step(delivered.time_s, delivered.seq, where="post", color="black", lw=1, label="in order")
    axes.set(title="Sequence", ylabel="chunk")


def _throughput(axes: Axes, result: Run, series: Table) -> None:
    time = series["time_s"]
    for number, path in enumerate(result.paths):
        rate = series[f"{path.name}.throughput_bps"] / 1e6
        axes.plot(time, rate, lw=1, label=path.name, **_line_style(number))
    axes.plot(time, series["goodput_bps"] / 1e6, color="black", lw=1.2, label="goodput")
    if result.flow_control_bound_bps is not None:
        # The limit counts headers, the curves do not: shown in their unit.
        user = result.goodput_bps / result.goodput_wire_bps if result.goodput_wire_bps else 1.0
        limit = result.flow_control_bound_bps * user / 1e6
        axes.axhline(limit, color="grey", ls="--", lw=1, label="flow-control bound")
    axes.set(title="Throughput", ylabel="Mbit/s")


def _occupancy(axes: Axes, _: Run, series: Table) -> None:
    held = series["receive_buffer_bytes"] / 1e3
    axes.fill_between(series["time_s"], held, alpha=0.4, step="post", label="out of order")
    axes.plot(series["time_s"], series["receive_window_bytes"] / 1e3, lw=1, label="free")
    axes.set(title="Receive buffer", ylabel="kB")


def _window(axes: Axes, result: Run, series: Table) -> None:
    time = series["time_s"]
    for number, path in enumerate(result.paths):
        style = _line_style(number)
        window = series[f"{path.name}.cwnd_bytes"] / 1e3
        axes.plot(time, window, lw=1.2, label=path.name, **style)
        flight = series[f"{path.name}.in_flight_bytes"] / 1e3
        axes.plot(time, flight, color=style["color"], lw=0.8, ls=":")
    axes.plot([], [], color="grey", lw=0.8, ls=":", label="in flight")
    axes.set(title="Congestion windows", ylabel="kB")


#: The panels of a run.
RUN_PANELS: dict[str, Callable[[Axes, Run, Table], None]] = {
    "sequence": _sequence,
    "throughput": _throughput,
    "buffer": _occupancy,
    "windows": _window,
}


def comparison(
    result: Comparison,
    keys: Iterable[str],
    into: Into | None = None,
    new: NewFigure = new_figure,
) -> Figure:
    """Bars of each figure, one for each variant, with confidence intervals."""
    names = [keys] if isinstance(keys, str) else list(keys)
    shown = [_shown(key, _figures.COMPARED) for key in names]
    place = _Panels(names, into)
    height = 0.45 * len(result.labels) + 2
    place.of(lambda: new(11 / 3 * len(names), height), len(names), sharey=True)
    for axes, figure in zip(place.axes, shown, strict=True):
        scale, unit = _AXES[figure.unit]
        means, half_widths = result.table[figure.key], result.table[f"{figure.key}_half_width"]
        axes.barh(result.labels, means * scale, xerr=half_widths * scale, capsize=3, alpha=0.8)
        axes.set(title=figure.label, xlabel=unit)
        axes.grid(alpha=0.3, axis="x")
        # The first variant on top, as in the table.
        axes.set_ylim(len(result.labels) - 0.4, -0.6)
    return place.figure


def tuning(
    drawn: dict[str, Any],
    panels: Iterable[str],
    into: Into | None = None,
    new: NewFigure = new_figure,
) -> Figure:
    """Curves against window and buffer, and the map over two limits."""
    names = _chosen(panels, TUNING_PANELS)
    place = _Panels(names, into).of(lambda: new(14 / 3 * len(names), 4), len(names))
    by_id = {one["id"]: one for one in drawn["figures"]}
    shared: dict[str, None] = {}
    for axes, name in zip(place.axes, names, strict=True):
        if name == "map":
            _map(axes, drawn["surfaces"][0])
        else:
            shared |= _curves(axes, by_id[name])
    place.legends(shared)
    return place.figure


#: The panels of a tuning.
TUNING_PANELS = ("window", "buffer", "map")


def _curves(axes: Axes, figure: dict[str, Any]) -> dict[str, None]:
    """Lines, and circles at chosen limits; returns the names of the lines."""
    styles: dict[str, dict[str, Any]] = {}
    for series in figure["series"]:
        name = series["name"]
        style = styles.setdefault(name, _line_style(len(styles)))
        if series["source"] == "limit":
            mark = {"color": style["color"], "ls": "", "marker": "o", "mfc": "none"}
            axes.plot(series["x"], series["y"], **mark)
        else:
            axes.plot(series["x"], series["y"], label=name, **style)
    axes.set(title=figure["title"], xlabel=figure["x_label"], ylabel="Mbit/s")
    axes.grid(alpha=0.3)
    return dict.fromkeys(styles)


def _map(axes: Axes, surface: dict[str, Any]) -> None:
    mesh = axes.pcolormesh(surface["x"], surface["y"], surface["value"], shading="nearest")
    axes.figure.colorbar(mesh, ax=axes, label="Mbit/s")
    axes.plot([0, surface["most"]], [surface["most"], 0], color="white", lw=1)
    axes.plot(surface["mark"]["x"], surface["mark"]["y"], "wo", mfc="none")
    axes.set(title=surface["title"], xlabel=surface["x_label"], ylabel=surface["y_label"])
    axes.set(xlim=(1, surface["x"][-1]), ylim=(1, surface["y"][-1]))


#: Scale and unit of an axis, by the unit of the figure.
_AXES = {
    "bit/s": (1e-6, "Mbit/s"),
    "B": (1e-3, "kB"),
    "s": (1e3, "ms"),
    "0 to 1": (1e2, "%"),
    "count": (1.0, "count"),
    "1 to 5": (1.0, "1 to 5"),
}


def sweep(
    result: SweepTable,
    keys: Iterable[str],
    x: str | None,
    into: Into | None = None,
    new: NewFigure = new_figure,
) -> Figure:
    """One panel for each figure over the varied key ``x``, and a line for each combination of the others."""
    names = [keys] if isinstance(keys, str) else list(keys)
    shown = [_shown(key, _figures.SWEPT_SHOWN) for key in names]
    over = x or _first_numeric(result)
    others = [key for key in result.varied if key != over]
    lines = _lines(result, others)
    place = _Panels(names, into).of(lambda: new(5.5 * len(names), 4), len(names))
    for axes, figure in zip(place.axes, shown, strict=True):
        scale, unit = _AXES[figure.unit]
        for number, (label, rows) in enumerate(lines.items()):
            _line(axes, result, rows, (over, figure.key, scale), {**_style(number), "label": label})
        axes.set(title=figure.label, xlabel=over, ylabel=unit)
        axes.grid(alpha=0.3)
        if result[over].dtype.kind not in "fu":
            # Names are long, and stand next to one another.
            plt.setp(axes.get_xticklabels(), rotation=45, ha="right", rotation_mode="anchor")
    if others:
        place.legends((label for label in lines if label), title=", ".join(others))
    return place.figure


def _line(
    axes: Axes,
    result: SweepTable,
    rows: NDArray[np.intp],
    drawn: tuple[str, str, float],
    style: dict[str, Any],
) -> None:
    """A line of means, with the confidence intervals as error bars."""
    over, key, scale = drawn
    at = result[over][rows]
    order = np.argsort(at) if at.dtype.kind in "fu" else np.arange(len(at))
    means = result[key][rows][order] * scale
    half_widths = result[f"{key}_half_width"][rows][order] * scale
    drawn_line = axes.errorbar(at[order], means, yerr=half_widths, capsize=3, elinewidth=1, **style)
    # The intervals of many lines lie on top of each other: the lines must remain visible.
    plt.setp([*drawn_line[1], *drawn_line[2]], alpha=0.4)


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


def _shown(key: str, known: Sequence[_figures.Figure]) -> _figures.Figure:
    for figure in known:
        if figure.key == key:
            return figure
    flow, _, own = key.removeprefix("flow.").rpartition(".")
    if flow and key.startswith("flow."):
        for figure in _figures.FLOW:
            if figure.key == own:
                return figure._replace(key=key, label=f"{flow}: {figure.label}")
    names = ", ".join(figure.key for figure in known)
    raise ValueError(f"no figure {key!r} to plot; there are: {names}")
