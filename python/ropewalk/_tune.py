"""The best window limits of a scenario."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ropewalk import _html
from ropewalk import _ropewalk as native
from ropewalk._document import Document
from ropewalk._progress import Progress, reporting
from ropewalk._results import record
from ropewalk._scenario import Scenario, resolve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class TunedPath:
    """One path."""

    name: str
    """Name in the scenario."""
    rate_bps: float
    """Its rate, bit/s."""
    round_trip_s: float
    """Least round trip of a full packet, s."""
    loss: float
    """Share of packets that is lost."""
    p: float
    """The models' probability of a loss; with bursts, the probability that a burst begins."""
    loss_kind: str
    """How packets are lost: ``none``, ``independent``, ``correlated`` or ``bursts``."""
    useful_packets: int
    """The largest useful window, packets."""
    limit_packets: int
    """The best limit of its window, packets."""
    predicted_bps: float
    """Its throughput with this limit, bit/s on the wire."""
    pays: bool
    """Whether it is worth its share of the buffer."""


class Tuning(Document):
    """Window limits and their predicted throughput, displayed as a table in a notebook."""

    schema: str
    """``ropewalk.tune/1``."""
    scheduler: str
    """The scheduler, with which the receive buffer for ``reach`` is found."""
    preset: str
    """The preset."""
    receive_buffer_bytes: int
    """The receive buffer, bytes."""
    buffer_packets: int
    """Full packets that the receive buffer holds."""
    packet_bytes: float
    """A full packet on the wire, bytes."""
    payload_share: float
    """Share of a full packet that is user data: throughput times this is goodput."""
    limits_packets: list[int]
    """The best limit of each path's window, packets."""
    predicted_bps: float
    """Predicted throughput with these limits, bit/s on the wire."""
    equal_split: dict[str, Any]
    """``limits_packets`` and ``predicted_bps`` of an equal split."""
    paying: dict[str, Any]
    """``limits_packets`` and ``predicted_bps`` if paths may be left out, with a limit of 0."""
    unlimited_bps: float
    """Throughput of the paths if each had the whole buffer, bit/s on the wire."""
    rates_bps: float
    """Sum of the rates, bit/s."""
    paths: list[TunedPath]
    """Each path."""
    reach: dict[str, Any] | None
    """The smallest receive buffer for the share ``reach`` of the rates; None unless given.
    ``simulated["robust"]["least"]`` suffices for links that differ a little, ``simulated["least"]`` for exactly the
    scenario's links, and ``least`` is that of the models."""
    simulated_bps: dict[str, float | None] | None
    """``mean`` and ``half_width`` of the goodput with the limits, bit/s; None unless checked."""
    check: dict[str, Any] | None
    """Window managers side by side in simulation; None unless checked."""
    notes: list[str]
    """The aspects of this scenario that the models ignore."""

    def __init__(self, document: str, drawn: str, title: str) -> None:
        """Not for use outside of the package: see :func:`tune`."""
        self._json = document
        self._drawn: dict[str, Any] = json.loads(drawn)
        self._title = title
        parsed = json.loads(document)
        parsed["paths"] = [record(TunedPath, path) for path in parsed["paths"]]
        vars(self).update(parsed)

    @property
    def receive_buffer_for_reach_bytes(self) -> int | None:
        """The smallest receive buffer with which the simulation reaches the share ``reach``, also on links that differ by
        ``tolerance``, bytes; None if no buffer does, or without ``reach``."""
        found = (self.reach or {}).get("simulated") or {}
        found = found.get("robust") or found
        least: dict[str, int] | None = found.get("least")
        return None if least is None else least["receive_buffer_bytes"]

    def plot(
        self,
        panels: Iterable[str] = ("window", "buffer", "map"),
        *,
        ax: Axes | Iterable[Any] | None = None,
    ) -> Figure:
        """Draw throughput against window, and the prediction over two limits; needs matplotlib.

        Parameters
        ----------
        panels
            What to draw: throughput against ``window`` with the limit of each path, throughput against receive
            ``buffer``, and a ``map`` over the limits of two paths.
        ax
            Axes to draw into, one for each panel; those of a new figure by default.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, with one axes for each panel, and another one for the colours of the map.

        Raises
        ------
        ValueError
            There is no such panel, or the number of ``ax`` differs from that of panels.
        """
        from ropewalk import _plot

        return _plot.tuning(self._drawn, panels, ax)

    def __repr__(self) -> str:
        limits = " + ".join(str(limit) for limit in self.limits_packets)
        return f"<Tuning {self._title}: {limits} packets, {_html.si(self.predicted_bps, 'bit/s')}>"

    def _repr_html_(self) -> str:
        facts = [
            ("promised with limits", _html.si(self.predicted_bps, "bit/s")),
            ("equal split", _html.si(self.equal_split["predicted_bps"], "bit/s")),
            ("receive buffer", _html.si(self.receive_buffer_bytes, "B")),
            *(("note", note) for note in self.notes),
        ]
        rows = [
            (
                path.name,
                _html.si(path.rate_bps, "bit/s"),
                f"{path.limit_packets} packets",
                f"{path.useful_packets} packets",
                _html.si(path.predicted_bps, "bit/s"),
            )
            for path in self.paths
        ]
        grid = _html.grid(("path", "rate", "limit", "of use", "promised"), rows)
        page = _html.heading(f"{self._title}: window limits") + _html.pairs(facts) + grid
        return page + _html.picture(
            "plot of the limits", lambda plot: plot.tuning(self._drawn, plot.TUNING_PANELS, None, plot.unshown)
        )


def tune(
    scenario: Scenario | str | PathLike[str],
    *,
    reach: float | None = None,
    tolerance: float = 0.05,
    check: bool = False,
    seeds: int = 5,
    set: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Tuning:
    """Find the best window limits by the models.

    Parameters
    ----------
    scenario
        A :class:`Scenario`, or the name of a scenario file; two paths or more.
    reach
        Also find the smallest receive buffer that delivers this share of the sum of the rates, above
        0 and at most 1, by simulation and by the models.
    tolerance
        How far rates and round trips may be off with ``reach``, as a share below 0.5: the buffer suffices for all of
        these links, also with 1 ms of jitter. 0 finds the buffer for exactly the scenario's links alone.
    check
        Also simulate the window managers none, dynamic and adaptive, and static with the limits.
    seeds
        Runs of each for ``reach`` and ``check``, with consecutive seeds, at least 1.
    set
        Changes, as in :meth:`Scenario.set`.
    threads
        Most runs at a time; one per core by default. The results do not depend on it.
    progress
        True writes the completed share and the remaining time to stderr; a function is called with the
        completed share, 0 to 1, on this thread. An exception of the function stops the simulations.

    Raises
    ------
    ScenarioError
        The scenario, or a change to it, is invalid.
    ModelError
        The models do not support this scenario; the message has a hint.
    """
    checked = resolve(scenario, set=set)
    with reporting(progress, "tune") as report:
        document, drawn = native.tune(checked, (reach, tolerance), check, seeds, threads, report)
    return Tuning(document, drawn, Path(checked.name).stem)
