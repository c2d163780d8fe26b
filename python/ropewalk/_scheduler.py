"""Schedulers of one's own."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pickle
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar, overload

from ropewalk import _ropewalk as native
from ropewalk._ropewalk import SchedulerPath, SchedulerView, SentReport, Wait

__all__ = ["Scheduler", "SchedulerPath", "SchedulerView", "SentReport", "Wait", "register_scheduler", "schedulers"]


registered = native.CustomSchedulers()
"""The schedulers that this process has registered."""

_makers: dict[str, Callable[[], Any]] = {}
"""What makes each of them."""
_carried: dict[str, bytes] = {}
"""Those that came with a scenario of another process, in their pickled form."""


class Scheduler(Protocol):
    """The methods of a scheduler; it need not inherit from this class.

    It may also have ``on_sent(report)``, which is called with a :class:`SentReport` for each chunk that
    was sent: once for each copy, but not for chunks that the engine sends without asking the scheduler.
    """

    def select(self, view: SchedulerView, /) -> Any:
        """Decide on the next chunk.

        Called after each chunk, until it answers ``None`` or a :class:`Wait`, and only while some path
        may take a chunk: ``view.open`` is never empty.

        Parameters
        ----------
        view
            The state of the association. It and its paths are overwritten at each call: keep numbers,
            not objects.

        Returns
        -------
        SchedulerPath, int or str
            Send the first chunk that this path may take on it: an object of ``view.open``, a number
            from 0, or a name.
        tuple
            ``(path, position)``: send the chunk at this position of the unassigned queue, 0 is its head.
        set, frozenset or list
            Send the same chunk on each of these paths; also in a tuple with a position.
        Wait
            Send nothing for this time, or until something changes.
        None
            Send nothing until something changes.
        """


def schedulers() -> list[str]:
    """The names that ``transfer.scheduler`` may have: the built-in ones, then the registered ones."""
    return native.scheduler_names() + registered.names()


_Make = TypeVar("_Make", bound=Callable[[], Scheduler])


@overload
def register_scheduler(name: str) -> Callable[[_Make], _Make]: ...
@overload
def register_scheduler(name: str, make: _Make) -> _Make: ...
def register_scheduler(name: str, make: _Make | None = None) -> Any:
    """Register a scheduler written in Python under a name for scenarios.

    ``scheduler="name"`` then works in :func:`run`, :func:`compare`, :func:`sweep` and in
    ``transfer.scheduler``, in this process. A scenario that selects it takes it along to other processes
    (:mod:`multiprocessing`, Dask) if it can be pickled. Without ``make`` this function returns a decorator for a class.

    Parameters
    ----------
    name
        Lower-case letters, digits and hyphens, not the name of a built-in scheduler. Registering a name
        again replaces the scheduler.
    make
        A class, or another callable without arguments that returns a scheduler. It is called once for
        each run. :class:`Scheduler` describes the required methods.

    Returns
    -------
    Callable
        ``make``, or the decorator.

    Raises
    ------
    ValueError
        The name is invalid.
    TypeError
        ``make`` cannot be called, or is a class without ``select``.
    """
    if make is None:
        return lambda make: register_scheduler(name, make)
    if not callable(make):
        raise TypeError(f"{make!r} cannot be called: give the class, not one of its objects")
    if inspect.isclass(make) and not callable(getattr(make, "select", None)):
        raise TypeError(f"{make.__name__} has no method select(self, view)")
    registered.add(name, make)
    _makers[name] = make
    _carried.pop(name, None)
    return make


def carry(names: Iterable[str]) -> dict[str, bytes]:
    """The named schedulers that are registered here, for another process.

    cloudpickle, which Dask installs, also carries classes of ``__main__`` and notebooks, by value. One
    that cannot be pickled is left out: the other process then needs its own registration.
    """
    pickler: Any = pickle
    with contextlib.suppress(ImportError):
        pickler = importlib.import_module("cloudpickle")
    carried = {}
    for name in names:
        if name in _makers:
            with contextlib.suppress(Exception):
                carried[name] = _carried.get(name) or pickler.dumps(_makers[name])
    return carried


def take(carried: Mapping[str, bytes]) -> None:
    """Register schedulers of another process, unless this one has registered the name itself."""
    for name, pickled in carried.items():
        if name not in _makers or _carried.get(name, pickled) != pickled:
            register_scheduler(name, pickle.loads(pickled))
            _carried[name] = pickled
