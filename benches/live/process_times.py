"""CPU time of processes that a run starts and ends by itself, read from /proc while it lasts."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

INTERVAL_S = 0.1
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def is_tunnel(words: list[str]) -> bool:
    """Whether these are the words of `ropewalk tunnel ...`."""
    return words[1:2] == ["tunnel"]


def is_wireguard(words: list[str]) -> bool:
    """Whether these are the words of `wireguard-go ...`."""
    return Path(words[0]).name == "wireguard-go"


def _times(process: Path, wanted: Callable[[list[str]], bool]) -> float | None:
    """CPU seconds of a process, if its command line is wanted."""
    try:
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
        # The command's name may contain blanks; it ends at the last parenthesis.
        fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    if not wanted(words):
        return None
    user, system = (int(fields[at]) for at in (11, 12))
    return (user + system) / TICKS_PER_S


class ProcessTimes:
    """Sums the CPU time of all processes that live while it is entered and whose words are `wanted`."""

    def __init__(self, wanted: Callable[[list[str]], bool]) -> None:
        self._wanted = wanted
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
                seconds = _times(process, self._wanted)
                if seconds is not None:
                    self._by_process[process.name] = seconds
