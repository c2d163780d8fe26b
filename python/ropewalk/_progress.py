"""The progress of long work: a line on stderr, or calls of a function."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

#: False for none, True for a line on stderr, or a function that is called with the completed share, 0 to 1.
Progress: TypeAlias = bool | Callable[[float], object]

Report: TypeAlias = Callable[[float], object] | None

# Between two lines if stderr is a file, where each one stays.
_SECONDS_IN_FILES = 10.0


@contextmanager
def reporting(progress: Progress, label: str) -> Iterator[Report]:
    """What the native half calls with the completed share."""
    if not progress:
        yield None
    elif progress is True:
        line = _Line(label)
        try:
            yield line.show
        finally:
            line.close()
    else:
        yield progress


class _Line:
    """One line that is written again and again, as on a terminal and in a notebook."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._since = time.monotonic()
        # A notebook is no terminal, but writes a line again like one.
        self._again = sys.stderr.isatty() or "ipykernel" in sys.modules
        self._shown = ""
        self._next = 0.0

    def show(self, share: float) -> None:
        """Show this share, 0 to 1."""
        elapsed = time.monotonic() - self._since
        if not self._again and elapsed < self._next and share < 1:
            return
        self._next = elapsed + _SECONDS_IN_FILES
        text = f"{self._label}: {share:4.0%}, {_clock(elapsed)}"
        if 0 < share < 1:
            text += f", about {_clock(elapsed / share - elapsed)} left"
        if text == self._shown:
            return
        blank = " " * (len(self._shown) - len(text))
        self._shown = text
        line = f"\r{text}{blank}" if self._again else f"{text}\n"
        print(line, end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the last line as it is."""
        if self._again and self._shown:
            print(file=sys.stderr)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
