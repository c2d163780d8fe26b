"""Measurement: a scenario of the links that this machine has to a server."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from ropewalk import _html, net
from ropewalk._document import Document
from ropewalk._results import record
from ropewalk._scenario import Scenario
from ropewalk.errors import OptionError
from ropewalk.net._options import KeyLike, Texts

LEAST_SECONDS = 5.0
LEAST_BYTES = 100_000


@dataclass(frozen=True, slots=True)
class MeasuredDirection:
    """One direction of a link. Rates and sizes are those of IP packets."""

    capacity: dict[str, Any] | None
    """``rate_bps`` with ``low_bps`` and ``high_bps`` of its 95 % interval, ``seconds``, and ``saturated``: whether
    the link was full."""
    queue: dict[str, Any] | None
    """``bytes``, ``delay_s``, ``drops``, and ``full``: whether the queue was full."""
    loss: dict[str, Any] | None
    """``rate`` with ``low`` and ``high`` of its 99 % interval, counts, and the fitted ``model``."""
    delay_s: dict[str, float] | None
    """Quantiles of the delay of small packets above the least one on the idle link, s."""
    jitter_s: float | None
    """Width of these delays from the 10th to the 90th percentile, s."""
    jitter_fit: dict[str, Any] | None
    """The fitted distribution of the jitter."""
    reordered: float | None
    """Share of small packets that arrived out of order."""
    rate_variation: float | None
    """Relative variation of the rate."""


@dataclass(frozen=True, slots=True)
class MeasuredLink:
    """A link, measured in both directions."""

    name: str
    """Interface, else the position of the path."""
    base_rtt_s: float | None
    """Least round trip, s; None if no probe arrived in one of the directions."""
    rtt_s: dict[str, float]
    """Quantiles of the round trip of small packets on the idle link, s."""
    mtu_bytes: int
    """Largest packet that the path is known to carry."""
    up: MeasuredDirection
    """From this end to the server."""
    down: MeasuredDirection
    """From the server to this end."""


class Measurement(Document):
    """Measured links, displayed as a table in a notebook."""

    schema: str
    """``ropewalk.measure/1``."""
    seconds: float
    """How long it took, s."""
    sent_bytes: int
    """Probes of both ends, bytes."""
    links: list[MeasuredLink]
    """The links."""
    shared_bottlenecks: list[list[str]]
    """Groups of links that share a bottleneck."""
    sharing_tests: list[dict[str, Any]]
    """The tests behind these groups."""
    scenario: Scenario
    """The scenario of the links, which can be run."""
    scenario_toml: str
    """Its text, with comments that say how each value was measured and how sure it is."""

    def __init__(self, document: str, directory: Path) -> None:
        """Not for use outside of the package: see :func:`measure`."""
        self._json = document
        parsed = json.loads(document)
        self.scenario_toml = parsed.pop("scenario")
        parsed["links"] = [_link(link) for link in parsed["links"]]
        vars(self).update(parsed)
        self.scenario = Scenario.parse(self.scenario_toml, name=str(directory / "links.toml"))

    def __repr__(self) -> str:
        names = " + ".join(link.name for link in self.links)
        return f"<Measurement {names}, {self.seconds:.1f} s>"

    def _repr_html_(self) -> str:
        rows = [
            (
                link.name,
                way,
                _html.si(found.capacity["rate_bps"] if found.capacity else None, "bit/s"),
                _html.si(link.base_rtt_s, "s"),
                _html.si(found.queue["bytes"] if found.queue else None, "B"),
                _html.percent(found.loss["rate"] if found.loss else None),
            )
            for link in self.links
            for way, found in (("up", link.up), ("down", link.down))
        ]
        heads = ("link", "direction", "rate", "base RTT", "queue", "loss")
        return _html.heading("measured links") + _html.grid(heads, rows)


def _link(values: dict[str, Any]) -> MeasuredLink:
    ways = {way: record(MeasuredDirection, values[way]) for way in ("up", "down")}
    return record(MeasuredLink, values | ways)


def measure(
    to: Texts | None = None,
    *,
    peer: str,
    peers: str | PathLike[str] | None = None,
    via: Texts | None = None,
    key: KeyLike | None = None,
    time: float = 30.0,
    max_bytes: int = 200_000_000,
    directory: str | PathLike[str] = ".",
    timeout: float = 10.0,
) -> Measurement:
    """Measure each link to a server that runs ``ropewalk bench serve``.

    Each link is overloaded for a few seconds in each direction, one after the other.

    Parameters
    ----------
    to, via, key, peers
        As for :func:`ropewalk.net.connect`.
    peer
        The server, by the name under which it was paired, or by its public key.
    time
        About how long to measure, at least 5 s. Many or slow links take longer.
    max_bytes
        Most bytes of probes, of both directions and all links together.
    directory
        Where traces are written, if a rate varies.
    timeout
        Seconds until the attempt to connect is given up.

    Raises
    ------
    OptionError
        An option is invalid, or a name does not resolve.
    BindError
        An own address cannot be used.
    ConnectError
        The server refused, or did not answer.
    ClosedError
        The association ended before the end of the measurement, or no probe arrived.
    """
    if not time >= LEAST_SECONDS:
        raise OptionError(f"time = {time}: give at least 5 s; 30 s is usual")
    if max_bytes < LEAST_BYTES:
        raise OptionError(f"max_bytes = {max_bytes}: give at least {LEAST_BYTES}")
    place = Path(directory)
    if not place.is_dir():
        raise OptionError(f"directory = {str(directory)!r}: no such directory")
    association = net.connect(to, peer=peer, peers=peers, via=via, key=key, timeout=timeout)
    work = association._native.measure_links(time, max_bytes, "links")
    try:
        document, _, traces = work.wait(None)
    finally:
        association.abort()
    for name, text in traces:
        (place / name).write_text(text)
    return Measurement(document, place)
