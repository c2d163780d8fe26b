"""Tables that data frame libraries read directly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ropewalk import _html
from ropewalk import _ropewalk as native

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


SHOWN_ROWS = 10
"""Rows that ``print(table)`` shows."""


class Table:
    """Named columns of equal length, in Arrow's memory layout.

    It implements the Arrow PyCapsule interface, so ``pyarrow.table(t)``, ``polars.DataFrame(t)`` and
    DuckDB read it without a copy; ``t["column"]`` is a NumPy array (a copy, unknown values are
    NaN). None of these libraries has to be installed.
    """

    __slots__ = ("_native", "_types")

    def __init__(self, table: native.Table) -> None:
        """Not for use outside of the package."""
        self._native = table
        self._types = dict(table.types())

    @classmethod
    def from_columns(cls, columns: Mapping[str, Sequence[Any]]) -> Table:
        """A table of columns, each all text or all numbers (None for unknown)."""
        return cls(native.Table.from_columns([(k, list(v)) for k, v in columns.items()]))

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._types)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self._types)

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the schema: ``schema``, ``scenario``, ``seed``, ``version``."""
        return self._native.metadata()

    def __len__(self) -> int:
        return len(self._native)

    def __iter__(self) -> Iterator[str]:
        return iter(self._types)

    def __contains__(self, name: object) -> bool:
        return name in self._types

    def __getitem__(self, name: str) -> NDArray[Any]:
        """The column ``name`` as a new array of shape (rows,): float64, uint64, bool or objects.

        Counts some of which are unknown are float64, with NaN.
        """
        if self._types.get(name) == "uint64":
            counts = np.empty(len(self), dtype=np.uint64)
            self._native.fill_counts(name, counts)
            return counts
        if self._types.get(name) == "bool":
            return np.array(self._native.flags(name), dtype=np.bool_)
        if self._types.get(name) == "string":
            return np.array(self._native.texts(name), dtype=object)
        # A name that does not exist fails here, with the names that do.
        floats = np.empty(len(self), dtype=np.float64)
        self._native.fill_floats(name, floats)
        return floats

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Not an array: NumPy and ``pandas.DataFrame(t)`` would take the names of the columns for the data."""
        raise TypeError(
            "a table is not one array: t['column'] is; t.to_pandas(), pandas.DataFrame.from_arrow(t) "
            "and polars.DataFrame(t) make a data frame"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._native.stored(),)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow C stream in a PyCapsule; the columns are shared, not copied."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Arrow C schema in a PyCapsule."""
        return self._native.__arrow_c_schema__()

    def to_pyarrow(self) -> pyarrow.Table:
        """As a ``pyarrow.Table``, without a copy; needs PyArrow 15 or later."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """As a ``polars.DataFrame``, without a copy; needs Polars 1.3 or later."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """As a ``pandas.DataFrame``; needs pandas and PyArrow."""
        return self.to_pyarrow().to_pandas()

    def __repr__(self) -> str:
        return f"<Table {len(self)} x {len(self._types)}: {', '.join(self._types)}>"

    def __str__(self) -> str:
        """The first rows as text, columns aligned."""
        columns = {name: self[name][:SHOWN_ROWS].tolist() for name in self.columns}
        cells = [[name, *map(_cell, values)] for name, values in columns.items()]
        widths = [max(map(len, column)) for column in cells]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in zip(*cells, strict=True)
        ]
        more = len(self) - SHOWN_ROWS
        if more > 0:
            lines.append(f"... {more} more row{'' if more == 1 else 's'}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html.table({name: self[name] for name in self.columns})


def _restored(stored: bytes) -> Table:
    return Table(native.Table.restore(stored))


def _cell(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
