"""Exceptions: one base class, :class:`RopewalkError`, and one class for each kind of error."""

from __future__ import annotations

import warnings
from typing import Any

__all__ = [
    "BindError",
    "ClosedError",
    "ConnectError",
    "ModelError",
    "NetError",
    "NotRecordedError",
    "OptionError",
    "RopewalkError",
    "RunError",
    "RunWarning",
    "ScenarioError",
    "TimedOut",
]


class RopewalkError(Exception):
    """Base of every error that this package itself raises."""


class ScenarioError(RopewalkError, ValueError):
    """A scenario that cannot be used; nothing was run.

    ``str(error)`` shows everything that is wrong, each with its line and a hint. The attributes
    describe the first problem; ``problems`` has them all, in the order of the file.

    Attributes
    ----------
    kind : str
        ``unreadable``, ``syntax``, ``unknown-key``, ``wrong-type``, ``wrong-unit``,
        ``unknown-name``, ``out-of-range``, ``missing``, ``conflict`` or
        ``duplicate``.
    source : str
        Name of the file, or ``set: key=value`` for an override.
    line, column : int or None
        Its position, counted from 1; None for the source as a whole.
    key : str
        The key with its table, for example ``path[1].rtt``; empty for the file as a whole.
    message : str
        What is wrong, with the offending value.
    hint : str
        What would be right; may be empty.
    problems : list of dict
        All problems, each with the keys above.
    """

    def __init__(self, text: str, problems: list[dict[str, Any]]) -> None:
        # Both arguments go to the base, so that the error survives pickling.
        super().__init__(text, problems)
        first = problems[0]
        self.problems = problems
        self.kind: str = first["kind"]
        self.source: str = first["source"]
        self.line: int | None = first["line"]
        self.column: int | None = first["column"]
        self.key: str = first["key"]
        self.message: str = first["message"]
        self.hint: str = first["hint"]

    def __str__(self) -> str:
        return str(self.args[0])


class RunError(RopewalkError, RuntimeError):
    """A run that failed: the network could not be built, or the transfer stalled."""


class NotRecordedError(RopewalkError, ValueError):
    """A part of a result that the run did not record; the message names the option that records it."""


class RunWarning(UserWarning):
    """Some of several runs failed. Their figures are NaN, and means are those of the others."""


def warn_of(failed: int, runs: int, reason: str, where: str, *, level: int) -> None:
    """Warn the function that is ``level`` calls up if runs have failed."""
    if failed > 0:
        text = f"{failed} of {runs} runs failed (reasons: {where}), the first: {reason}"
        warnings.warn(text, RunWarning, stacklevel=level + 1)


class ModelError(RopewalkError, ValueError):
    """Numbers outside the domain of a model; the message names the argument and the value."""


class NetError(RopewalkError):
    """An error of the sockets (:mod:`ropewalk.net`); its subclasses tell which."""


class OptionError(NetError, ValueError):
    """An invalid option or argument; the message has the value and a hint."""


class BindError(NetError, OSError):
    """An own address that cannot be used: in use, not of this machine, or not permitted."""


class ConnectError(NetError, ConnectionError):
    """An association that could not be established; the message has possible reasons."""


class ClosedError(NetError, ConnectionError):
    """An association that did not end in an orderly way, or a listener that was closed."""


class TimedOut(NetError, TimeoutError):
    """A call exceeded its ``timeout``; nothing is lost, and it may be repeated."""
