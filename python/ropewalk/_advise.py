"""Advice: which links to use, with which scheduler, congestion control and receive buffer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from ropewalk import _html
from ropewalk import _ropewalk as native
from ropewalk._document import Document
from ropewalk._progress import Progress, reporting
from ropewalk._results import record
from ropewalk._scenario import Scenario, resolve


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice with its simulated figures; a figure has ``mean`` and ``half_width`` of its 95 % interval."""

    paths: list[str]
    """Names of the links."""
    scheduler: str
    """Scheduler; it has no effect on a single link."""
    congestion: str
    """Congestion control."""
    receive_buffer_bytes: int
    """Receive buffer, bytes."""
    goodput_bps: dict[str, float]
    """Goodput, bit/s."""
    app_delay_p99_s: dict[str, float] | None
    """99th percentile of the delay between the applications, s; None if a run failed."""
    app_delay_p99_range_s: list[float] | None
    """The least and the most of these percentiles among the runs, s."""
    ratio: dict[str, float]
    """Figure of the goal divided by that of the advice, seed by seed; for calls through a
    tunnel, the goodput of the other flows."""
    tunnel: list[str] = field(default_factory=list)
    """Changes of the tunnel: of ``redundancy``, ``latency_budget`` and the use of links."""
    mos: dict[str, float] | None = None
    """Mean opinion score of the worst call through a tunnel; None for other goals."""


@dataclass(frozen=True, slots=True)
class AdvisedLink:
    """A link of the scenario."""

    name: str
    """Name."""
    used: bool
    """Whether the advice uses it."""
    carried_share: float
    """Share of the data that the link carries with the advice; 0 if the advice does not use it."""
    alone_bps: dict[str, float]
    """Goodput of the link alone, bit/s."""
    adds_bps: dict[str, float] | None
    """Goodput with this link less that without it, bit/s; None if it is the only link."""
    gain: dict[str, float] | None
    """Figure of the goal with this link divided by that without it; for calls through a tunnel,
    the goodput of the other flows."""
    adds_mos: dict[str, float] | None = None
    """Mean opinion score of the worst call with this link less that without it; None for other goals."""


@dataclass(frozen=True, slots=True)
class AdviseCase:
    """The advice on a link whose rate or RTT is 20 % off."""

    path: str
    """Name of the link."""
    quantity: str
    """``rate`` or ``rtt``."""
    factor: float
    """0.8 or 1.2."""
    goodput_ratio: float
    """Goodput of the advice divided by that on the link as it is."""
    loss: float
    """By which share a rival is better; 0 if none is."""
    better: str | None
    """That rival."""


class Advice(Document):
    """Advice, displayed as a table in a notebook."""

    schema: str
    """``ropewalk.advise/1``."""
    goal: str
    """``throughput``, ``latency`` or ``calls``."""
    advice: Choice
    """What to do."""
    current: Choice
    """The choice of the scenario as it is."""
    rival: Choice | None
    """The best choice with another scheduler, congestion control or set of links."""
    best_single: Choice
    """The best single link."""
    flow_control_bound_bps: float | None
    """Flow-control bound of the advice, bit/s on the wire; None with shared links."""
    paths: list[AdvisedLink]
    """Each link of the scenario."""
    buffers: list[Choice]
    """The advice with other receive buffers."""
    sensitivity: list[AdviseCase]
    """What changes if a rate or an RTT is 20 % off."""
    reason: str
    """The reason in a sentence."""
    seeds: int
    """Runs behind each figure."""
    measured_s: float
    """Measured interval of each of these runs, s."""
    simulations: int
    """Simulations in total."""
    scenario: Scenario
    """The scenario with the advice in effect."""

    def __init__(self, document: str, advised: str, name: str) -> None:
        """Not for use outside of the package: see :func:`advise`."""
        self._json = document
        self._title = Path(name).stem
        parsed = json.loads(document)
        for key in ("advice", "current", "rival", "best_single"):
            parsed[key] = record(Choice, parsed[key]) if parsed[key] else None
        parsed["paths"] = [record(AdvisedLink, link) for link in parsed["paths"]]
        parsed["buffers"] = [record(Choice, choice) for choice in parsed["buffers"]]
        parsed["sensitivity"] = [record(AdviseCase, case) for case in parsed["sensitivity"]]
        vars(self).update(parsed)
        self.scenario = Scenario.parse(advised, name=name)

    def __repr__(self) -> str:
        best = self.advice
        goodput = _html.si(best.goodput_bps["mean"], "bit/s")
        links = " + ".join(best.paths)
        return f"<Advice {self._title}: {links}, {best.scheduler}, {best.congestion}, {goodput}>"

    def _repr_html_(self) -> str:
        named = [
            ("advice", self.advice),
            ("rival", self.rival),
            ("best single link", self.best_single),
            ("as it is", self.current),
        ]
        rows = [
            (
                name,
                " + ".join(choice.paths),
                choice.scheduler,
                choice.congestion,
                _html.si(choice.receive_buffer_bytes, "B"),
                _html.quantity(choice.mos["mean"] if choice.mos else None, "1 to 5"),
                _html.si(choice.goodput_bps["mean"], "bit/s"),
                _html.si(choice.app_delay_p99_s["mean"] if choice.app_delay_p99_s else None, "s"),
                _html.percent(choice.ratio["mean"]),
            )
            for name, choice in named
            if choice is not None
        ]
        heads = (
            "",
            "links",
            "scheduler",
            "congestion",
            "buffer",
            "MOS",
            "goodput",
            "delay p99",
            "of the advice",
        )
        facts = [("why", self.reason)]
        title = _html.heading(f"{self._title}: advice for {self.goal}")
        return title + _html.grid(heads, rows) + _html.pairs(facts)


def advise(
    scenario: Scenario | str | PathLike[str],
    *,
    goal: Literal["throughput", "latency", "calls"] = "throughput",
    seeds: int = 5,
    set: Mapping[str, Any] | None = None,
    threads: int | None = None,
    progress: Progress = False,
) -> Advice:
    """Find out by simulation which links to use, and how.

    Parameters
    ----------
    scenario
        A :class:`Scenario`, or the name of a scenario file.
    goal
        ``throughput``; ``latency``, the ratio of goodput to the 99th percentile of delay; or ``calls``, the
        delay of a video call; if the scenario has flows, the mean opinion score of the worst call through
        the tunnel, and then the goodput of the other flows.
    seeds
        Runs behind each figure of the answer, at least 2.
    set
        Changes, as in :meth:`Scenario.set`.
    threads
        Most runs at a time; one per core by default. The answer does not depend on it.
    progress
        True writes the completed share and the remaining time to stderr; a function is called with the
        completed share, 0 to 1, on this thread. An exception of the function stops the simulations.

    Raises
    ------
    ScenarioError
        The scenario, or a change to it, is invalid.
    ModelError
        The protocol uses one path at a time; the message has a hint.
    """
    checked = resolve(scenario, set=set)
    with reporting(progress, "advise") as report:
        document, advised = native.advise(checked, goal, seeds, threads, report)
    return Advice(document, advised, checked.name)
