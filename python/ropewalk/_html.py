"""The display of results in a notebook, and quantities in readable units."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from io import BytesIO
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.figure import Figure

# Dots per inch of plots in notebooks.
_DPI = 72

# Longer tables show their head and their tail.
_ROWS = 20


def si(value: float | None, unit: str) -> str:
    """A quantity with a decimal prefix: ``2.59 Mbit/s``, ``45 kB``, ``12.3 ms``."""
    if value is None:
        return "–"
    if value == 0:
        return f"0 {unit}"
    scale, prefix = _scale(value, unit)
    digits = f"{value / scale:.3g}"
    return f"{digits} {prefix}{unit}"


def _scale(value: float, unit: str) -> tuple[float, str]:
    """The decimal prefix in which a quantity reads well."""
    prefixes = [(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""), (1e-3, "m"), (1e-6, "µ")]
    if unit == "B":
        prefixes = prefixes[:4]
    # Half of the last digit shown counts as reaching the prefix: 999.96 k is 1 M.
    fits = (p for p in prefixes if abs(value) >= p[0] * 0.9995)
    return next(fits, prefixes[-1])


def percent(share: float | None) -> str:
    """A share, 1 for the whole."""
    return "–" if share is None else f"{share:.1%}"


def quantity(value: float | None, unit: str) -> str:
    """A figure in its unit, as ``ropewalk._figures`` names it."""
    if unit == "0 to 1":
        return percent(value)
    if unit == "1 to 5":
        return "–" if value is None else f"{value:.2f}"
    if unit == "count":
        return "–" if value is None else f"{value:.10g}"
    return si(value, unit)


def known(result: object, key: str) -> Any:
    """The figure of a result with this key, which has a dot between a part and its figure."""
    for name in key.split("."):
        result = getattr(result, name)
    return result


def grid(headings: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A table of cells, headings above."""
    head = "".join(f"<th>{escape(text)}</th>" for text in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def pairs(rows: Iterable[tuple[str, str]]) -> str:
    """A table of names and values."""
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(value)}</td></tr>"
        for name, value in rows
    )
    return f"<table><tbody>{body}</tbody></table>"


def table(columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> str:
    """Columns, shortened in the middle if there are many rows."""
    count = len(next(iter(columns.values()), ()))
    shown = list(range(count))
    if count > _ROWS:
        shown = [*range(_ROWS // 2), *range(count - _ROWS // 2, count)]
    rows: list[list[object]] = [[_cell(column[i]) for column in columns.values()] for i in shown]
    if count > _ROWS:
        rows.insert(_ROWS // 2, ["…"] * len(columns))
    note = f"<p>{count} rows × {len(columns)} columns</p>"
    return grid(columns, rows) + note


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def heading(text: str) -> str:
    """A line above a result."""
    return f"<p><strong>{escape(text)}</strong></p>"


def picture(alt: str, draw: Callable[[ModuleType], Figure]) -> str:
    """A plot as an image; nothing without matplotlib. ``draw`` gets the module ``_plot``."""
    try:
        from ropewalk import _plot
    except ImportError:
        return ""
    png = BytesIO()
    draw(_plot).savefig(png, format="png", dpi=_DPI)
    encoded = b64encode(png.getvalue()).decode("ascii")
    return f'<img alt="{escape(alt)}" src="data:image/png;base64,{encoded}">'


def with_interval(mean: float | None, half_width: float | None, unit: str) -> str:
    """A mean and half of its confidence interval, if that is known, with the digits that the interval leaves."""
    if mean is None or half_width is None:
        return quantity(mean, unit)
    if half_width == 0:
        return f"{quantity(mean, unit)} ± 0"
    scales = {"0 to 1": (0.01, "%"), "1 to 5": (1.0, ""), "count": (1.0, "")}
    if unit in scales:
        scale, symbol = scales[unit]
    else:
        scale, prefix = _scale(max(abs(mean), half_width), unit)
        symbol = prefix + unit
    # Two digits of the interval, and at most four of the mean.
    decimals = 1 - math.floor(math.log10(half_width / scale))
    if mean != 0:
        decimals = min(decimals, 3 - math.floor(math.log10(abs(mean) / scale)))
    decimals = min(max(decimals, 0), 6)
    shown = f"{mean / scale:.{decimals}f} ± {half_width / scale:.{decimals}f}"
    return f"{shown} {symbol}".rstrip()


def equal_seeds(half_widths: Iterable[float | None]) -> str:
    """A note if several seeds gave the same figures; nothing otherwise, or for a single seed."""
    known = [half for half in half_widths if half is not None]
    if not known or any(half > 0 for half in known):
        return ""
    return "<p>± 0: all seeds gave the same figures, because nothing in the scenario is random.</p>"
