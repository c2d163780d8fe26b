"""Predictions of the closed forms and of the slot model for a scenario."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ropewalk import _html
from ropewalk import _ropewalk as native
from ropewalk._document import Document
from ropewalk._results import record
from ropewalk._scenario import Scenario, resolve


@dataclass(frozen=True, slots=True)
class PathPrediction:
    """One path."""

    name: str
    """Name in the scenario."""
    rate_bps: float
    """Its rate, the mean of a trace, bit/s."""
    rtt_s: float
    """Propagation there and back, s."""
    round_trip_s: float | None
    """Least round trip of a full packet, serialisation included, s."""
    share_bps: float | None
    """Its share of the flow-control bound, bit/s on the wire."""
    window_bytes: float | None
    """The window that this share needs, bytes on the wire."""
    packets_per_period: int | None
    """Packets that it carries in one period of a delay-aware schedule."""
    window_packets: int | None
    """The window that the receive buffer allows, packets."""
    loss: float | None
    """Share of packets that is lost."""
    loss_kind: str | None
    """How: ``none``, ``independent``, ``correlated`` or ``bursts``."""
    markov_bps: dict[str, float | None]
    """Throughput by the Markov chain, ``independent`` and ``correlated``, bit/s on the wire."""
    renewal_bps: float | None
    """By the renewal model, bit/s on the wire."""
    pftk_bps: float | None
    """By Padhye et al. 2000, bit/s on the wire."""
    mathis_bps: float | None
    """By Mathis et al. 1997, bit/s on the wire."""
    validity: dict[str, str] | None
    """A statement on the validity of each of these figures, by model."""


@dataclass(frozen=True, slots=True)
class PeriodPrediction:
    """The time after which a delay-aware schedule repeats."""

    length_s: float
    """Its length, s."""
    capped: bool
    """Whether the least common multiple of the delays was longer and has been cut."""
    packets: int
    """Packets of all paths in one period."""


class Prediction(Document):
    """The figures of the models. A figure that a model cannot give is None; :attr:`notes` has the reason."""

    schema: str
    """``ropewalk.predict/1``."""
    formulas: str
    """``on-the-wire``, or ``as-printed`` in the papers."""
    blocking_time_max_s: float | None
    """The longest wait in the receive buffer with empty queues, s (Kuhn et al. 2014, Eq 2)."""
    receive_buffer_min_bytes: float | None
    """The smallest buffer that never blocks a path, bytes on the wire (Eq 3)."""
    flow_control_bound_bps: float | None
    """The flow-control bound of the paths and the receive buffer, bit/s on the wire."""
    receive_buffer_bytes: float
    """The receive buffer that the limit is computed for, bytes on the wire."""
    paths: list[PathPrediction]
    """Each path."""
    bundle: dict[str, Any]
    """Throughput of all paths by each model, with the best split of the buffer, bit/s on the wire."""
    period: PeriodPrediction | None
    """The period of a delay-aware schedule (Sarwar et al. 2013, Eq 3 and 4)."""
    notes: list[str]
    """Why something is None."""

    def __init__(self, document: str, title: str) -> None:
        """Not for use outside of the package: see :func:`predict`."""
        self._json = document
        self._title = title
        parsed = json.loads(document)
        parsed["paths"] = [record(PathPrediction, path) for path in parsed["paths"]]
        if parsed["period"] is not None:
            parsed["period"] = record(PeriodPrediction, parsed["period"])
        vars(self).update(parsed)

    def __repr__(self) -> str:
        limit = _html.si(self.flow_control_bound_bps, "bit/s")
        return f"<Prediction {self._title}: flow-control bound {limit}>"

    def _repr_html_(self) -> str:
        facts = [
            ("flow-control bound", _html.si(self.flow_control_bound_bps, "bit/s")),
            ("receive buffer without blocking", _html.si(self.receive_buffer_min_bytes, "B")),
            ("longest blocking", _html.si(self.blocking_time_max_s, "s")),
            *(("note", note) for note in self.notes),
        ]
        rows = [
            (
                path.name,
                _html.si(path.rate_bps, "bit/s"),
                _html.si(path.round_trip_s, "s"),
                _html.si(path.share_bps, "bit/s"),
                _html.si(path.window_bytes, "B"),
            )
            for path in self.paths
        ]
        grid = _html.grid(("path", "rate", "round trip", "share", "window"), rows)
        return _html.heading(f"{self._title}: prediction") + _html.pairs(facts) + grid


def predict(
    scenario: Scenario | str | PathLike[str],
    *,
    set: Mapping[str, Any] | None = None,
    paper: bool = False,
) -> Prediction:
    """Evaluate the closed forms for a scenario, without running it.

    The paths have their initial parameters: no changes, no other traffic. Only the throughput models
    consider losses.

    Parameters
    ----------
    scenario
        A :class:`Scenario`, or the name of a scenario file.
    set
        Changes, as in :meth:`Scenario.set`.
    paper
        Use the formulas as the papers print them: acknowledgements take no time, and the receive
        buffer holds ``floor(B / L)`` packets.

    Raises
    ------
    ScenarioError
        The scenario, or a change to it, is invalid.
    """
    checked = resolve(scenario, set=set)
    return Prediction(native.predict(checked, paper), Path(checked.name).stem)


@dataclass(frozen=True, slots=True)
class SlotRow:
    """A row in the form of Tables I and II of Sarwar et al. 2013; packet ranges read ``3-7``."""

    sent_tick: int
    """When sent, ticks."""
    sent: list[str]
    """Packets sent on each path; empty for none."""
    received_tick: int
    """When received, ticks."""
    received: list[str]
    """Packets received on each path; empty for none."""
    delivered: str
    """Packets delivered in order; empty for none."""
    in_buffer_packets: int
    """Packets held out of order after that."""


@dataclass(frozen=True, slots=True)
class SlotPath:
    """One path of the slot model."""

    name: str
    """Name in the scenario."""
    delay_ticks: int
    """Forward delay, ticks."""
    capacity_packets: int
    """Packets per forward delay."""
    delay_error: float
    """Error of the delay that the planner assumes, 1 for 100 %."""


@dataclass(frozen=True, slots=True)
class SlotScheduler:
    """One scheduler of the slot model."""

    name: str
    """``round-robin`` or ``delay-aware``."""
    goodput_bps: float
    """In-order packets per time, bit/s."""
    longest_silence_s: float
    """Longest time without a delivery to the application, s."""
    mean_in_buffer_packets: float
    """Mean number of packets held out of order, weighted by time."""
    max_in_buffer_packets: int
    """Largest number of packets held out of order."""
    mean_unacknowledged_packets: float
    """Mean number of packets sent and not yet acknowledged, weighted by time."""
    table: list[SlotRow]
    """The first period packet by packet."""


class SlotPrediction(Document):
    """The prediction of the slot model of Sarwar et al. 2013."""

    schema: str
    """``ropewalk.slot/1``."""
    quantum_s: float
    """Length of a tick, s."""
    packet_bytes: float
    """Bytes of a packet."""
    buffer_packets: int
    """Receive buffer, packets."""
    duration_s: float
    """Length of the run, s."""
    warmup_s: float
    """Start of the run that the figures leave out, s."""
    capacity_bps: float
    """Sum of the path rates in whole packets per forward delay, bit/s."""
    planned: str
    """What the planner keeps constant when it assumes a wrong delay: ``per-window`` or ``per-rate``."""
    paths: list[SlotPath]
    """Each path."""
    schedulers: list[SlotScheduler]
    """Round robin, then delay-aware."""

    def __init__(self, document: str, title: str) -> None:
        """Not for use outside of the package: see :func:`predict_slot`."""
        self._json = document
        self._title = title
        parsed = json.loads(document)
        parsed["paths"] = [record(SlotPath, path) for path in parsed["paths"]]
        for one in parsed["schedulers"]:
            one["table"] = [record(SlotRow, row) for row in one["table"]]
        parsed["schedulers"] = [record(SlotScheduler, one) for one in parsed["schedulers"]]
        vars(self).update(parsed)

    def __repr__(self) -> str:
        goodputs = (f"{one.name} {_html.si(one.goodput_bps, 'bit/s')}" for one in self.schedulers)
        return f"<SlotPrediction {self._title}: {', '.join(goodputs)}>"


def predict_slot(
    scenario: Scenario | str | PathLike[str],
    *,
    set: Mapping[str, Any] | None = None,
    planned: Literal["per-window", "per-rate"] = "per-window",
) -> SlotPrediction:
    """Run the slot model of Sarwar et al. 2013 on a scenario's paths: no loss, no queues.

    Parameters
    ----------
    scenario
        A :class:`Scenario`, or the name of a scenario file.
    set
        Changes, as in :meth:`Scenario.set`; ``path.NAME.delay_error`` makes the planner assume a
        wrong delay.
    planned
        What the planner keeps constant when it assumes a wrong delay: the packets per forward delay
        (``per-window``), or the rate (``per-rate``).

    Raises
    ------
    ScenarioError
        The scenario, or a change to it, is invalid.
    ValueError
        The slot model does not support the scenario: shared links, or a path that carries less than
        a packet per forward delay.
    """
    checked = resolve(scenario, set=set)
    return SlotPrediction(native.predict_slot(checked, planned), Path(checked.name).stem)
