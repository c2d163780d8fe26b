"""What can go wrong: one base, :class:`RopewalkError`, and one class for each kind."""

from __future__ import annotations

from typing import Any

__all__ = [
    "BindError",
    "ClosedError",
    "ConnectError",
    "ModelError",
    "NetError",
    "OptionError",
    "RopewalkError",
    "RunError",
    "ScenarioError",
    "TimedOut",
]


class RopewalkError(Exception):
    """Base of every error that this package raises by itself."""


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
        Where, counted from 1; None if the source as a whole is meant.
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
    """A run that failed: the network could not be built, or the transfer came to a halt."""


class ModelError(RopewalkError, ValueError):
    """Numbers for which a model means nothing; the message names the argument and the value."""


class NetError(RopewalkError):
    """What goes wrong with sockets (:mod:`ropewalk.net`); its subclasses say what."""


class OptionError(NetError, ValueError):
    """An option or an argument that is not possible; the message has the value and a hint."""


class BindError(NetError, OSError):
    """An own address that cannot be used: taken, not of this machine, or not permitted."""


class ConnectError(NetError, ConnectionError):
    """An association that did not come about; the message says what may be the reason."""


class ClosedError(NetError, ConnectionError):
    """An association that has ended otherwise than in order, or a listener that was closed."""


class TimedOut(NetError, TimeoutError):
    """Something took longer than its ``timeout``; nothing is lost, and it may be tried again."""
