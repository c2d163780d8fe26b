"""Scenarios: the paths, the transfer and the protocol of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from typing import Any

from ropewalk import _ropewalk as native
from ropewalk._scheduler import carry, registered, take


class Scenario:
    """A checked scenario. It never changes: :meth:`set` makes another one.

    Use :meth:`load` for a file, :meth:`parse` for a text. The keys are described in the
    scenario reference; every one has a default and a unit.
    """

    __slots__ = ("_native",)

    def __init__(self, checked: native.Scenario) -> None:
        """Not for use outside of the package: see :meth:`load` and :meth:`parse`."""
        self._native = checked

    @classmethod
    def load(cls, path: str | PathLike[str], *, set: Mapping[str, Any] | None = None) -> Scenario:
        """Read a scenario file.

        Parameters
        ----------
        path
            Name of the file (TOML).
        set
            Changes that are applied before the check, as in :meth:`set`.

        Raises
        ------
        ScenarioError
            The file cannot be read, or something in it is wrong.
        """
        return cls(native.Scenario.load(path, overrides(set), None, registered))

    @classmethod
    def parse(
        cls, text: str, *, name: str = "scenario.toml", set: Mapping[str, Any] | None = None
    ) -> Scenario:
        """Read the text of a scenario.

        Parameters
        ----------
        text
            TOML.
        name
            Its name in error messages; names of trace files are relative to its directory.
        set
            Changes that are applied before the check, as in :meth:`set`.

        Raises
        ------
        ScenarioError
            Something in the text is wrong.
        """
        return cls(native.Scenario.parse(text, name, overrides(set), None, registered))

    def set(self, changes: Mapping[str, Any] | None = None, /, **tables: Any) -> Scenario:
        """Return the same scenario with some keys changed.

        Parameters
        ----------
        changes
            Dotted keys and their new values: ``{"path.lte.rtt": "40 ms", "path[1].loss": 0.01}``.
            Paths are given by name or by position from 0. Text is read as the command's ``--set``
            reads it; numbers, booleans, lists and dicts become TOML.
        **tables
            The same by table: ``set(transfer={"scheduler": "daps"})`` changes
            ``transfer.scheduler`` and leaves the rest of ``[transfer]`` alone.

        Raises
        ------
        ScenarioError
            A key does not exist, or a value is invalid.
        """
        merged = dict(changes or {})
        for table, keys in tables.items():
            if not isinstance(keys, Mapping):
                raise TypeError(f"{table}={keys!r}: give a dict of the keys in [{table}]")
            merged |= {f"{table}.{key}": value for key, value in keys.items()}
        return Scenario(self._native.with_changes(overrides(merged), None))

    def with_seed(self, seed: int) -> Scenario:
        """Return the same scenario with another root seed, 0 to 2**64 - 1."""
        return Scenario(self._native.with_changes([], seed))

    def to_toml(self) -> str:
        """The scenario with every value written out, defaults included; equal scenarios have equal texts."""
        return self._native.to_toml()

    @property
    def name(self) -> str:
        """Name of the file from which it was read."""
        return self._native.name

    @property
    def protocol(self) -> str:
        """Transport protocol, for example ``cmt-sctp``."""
        return self._native.protocol

    @property
    def scheduler(self) -> str:
        """Name of the scheduler, for example ``daps``."""
        return self._native.scheduler

    @property
    def seed(self) -> int:
        """Root of all randomness."""
        return self._native.seed

    @property
    def path_names(self) -> list[str]:
        """Names of the paths, in order."""
        return self._native.path_names

    def __reduce__(self) -> tuple[Any, ...]:
        # Copied, and sent to other processes, as its source text, with its scheduler if that is the user's.
        return _from_parts, (*self._native.parts(), carry([self.scheduler]))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self.to_toml() == other.to_toml()

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __repr__(self) -> str:
        paths = ", ".join(self.path_names)
        return f"<Scenario {self.name!r}: {self.protocol}, {self.scheduler}, paths {paths}>"


def _from_parts(
    text: str, name: str, sets: list[str], seed: int | None, schedulers: Mapping[str, bytes]
) -> Scenario:
    take(schedulers)
    return Scenario(native.Scenario.parse(text, name, sets, seed, registered))


def resolve(
    scenario: Scenario | str | PathLike[str],
    *,
    scheduler: str | None = None,
    seed: int | None = None,
    set: Mapping[str, Any] | None = None,
) -> native.Scenario:
    """The checked scenario for an argument (a Scenario or a file name), with all changes."""
    changes = overrides(set)
    if scheduler is not None:
        changes.append(f"transfer.scheduler={scheduler}")
    if isinstance(scenario, Scenario):
        if not changes and seed is None:
            return scenario._native
        return scenario._native.with_changes(changes, seed)
    return native.Scenario.load(scenario, changes, seed, registered)


def overrides(changes: Mapping[str, Any] | None) -> list[str]:
    """Changes as ``key=value``; text stays as it is, as on the command line."""
    return [f"{key}={text_of(key, value)}" for key, value in (changes or {}).items()]


def text_of(key: str, value: Any) -> str:
    """The value of a key in the form of an override; text stays as it is."""
    return value if isinstance(value, str) else _toml(key, value)


def _toml(key: str, value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            # TOML's basic strings have JSON's escapes.
            return json.dumps(value, ensure_ascii=False)
        case Mapping():
            pairs = (f"{json.dumps(k)} = {_toml(key, v)}" for k, v in value.items())
            return "{ " + ", ".join(pairs) + " }"
        case list() | tuple():
            return "[" + ", ".join(_toml(key, v) for v in value) + "]"
        case int():
            return str(int(value))
        case float():
            # NumPy's float64 is a float, but its repr is not a number.
            return repr(float(value))
        case PathLike():
            return _toml(key, value.__fspath__())
    # NumPy's scalars convert to their Python value.
    if hasattr(value, "item") and getattr(value, "shape", None) == ():
        return _toml(key, value.item())
    raise TypeError(
        f"set: {key} = {value!r} is a {type(value).__name__}; "
        "give text with its unit, a number, a bool, a list or a dict"
    )
