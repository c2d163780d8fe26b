"""CPU time of processes that a run starts and ends by itself, read from /proc while it lasts."""

import os
import threading
from pathlib import Path

INTERVAL_S = 0.1
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _times(process: Path, marks: tuple[str, ...]) -> float | None:
    """CPU seconds of a process, if its command line contains one of the marks."""
    try:
        line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        # The command's name may contain blanks; it ends at the last parenthesis.
        fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    is_shell = line.startswith(("sh ", "/bin/sh "))
    if is_shell or not any(mark in line for mark in marks):
        return None
    user, system = (int(fields[at]) for at in (11, 12))
    return (user + system) / TICKS_PER_S


class ProcessTimes:
    """Sums the CPU time of all processes that live while it is entered and whose command line contains one of `marks`."""

    def __init__(self, *marks: str) -> None:
        self._marks = marks
        self._by_process: dict[str, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> "ProcessTimes":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def seconds(self) -> float:
        """CPU seconds so far, of both users and system. What a process used after the last look is missing: 0.1 s at most."""
        return sum(self._by_process.values())

    def _watch(self) -> None:
        while not self._over.wait(INTERVAL_S):
            for process in Path("/proc").glob("[0-9]*"):
                seconds = _times(process, self._marks)
                if seconds is not None:
                    self._by_process[process.name] = seconds
