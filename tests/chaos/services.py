"""The programs that run during an episode, and the faults that affect them."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hosts import Host

PAGE = os.sysconf("SC_PAGE_SIZE")
STOP_S = 10.0
"""How long a program may take to end after SIGTERM, or after the end of its input."""


@dataclass
class Service:
    """A program that is restarted after each kill."""

    name: str
    host: Host
    words: list[str | Path]
    folder: Path
    ends_with_input: bool = False
    """Whether it ends by itself, with a final message, when its input ends; other programs get SIGTERM."""
    may_end: Callable[[], bool] = lambda: False
    """Whether it may have ended by itself just now. It is then restarted, as a service manager would do."""
    restarts: int = 0
    process: subprocess.Popen[bytes] | None = None
    kills: list[float] = field(default_factory=list)
    """When it was killed, by the wall clock."""
    unexpected: list[str] = field(default_factory=list)
    """How it ended without having been killed."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    wanted: bool = False

    @property
    def log(self) -> Path:
        return self.folder / f"{self.name}.log"

    @property
    def output(self) -> Path:
        return self.folder / f"{self.name}.out"

    def start(self) -> None:
        with self.lock, self.log.open("ab") as log, self.output.open("ab") as output:
            stdin = subprocess.PIPE if self.ends_with_input else subprocess.DEVNULL
            self.process = self.host.spawn(self.words, stdin, output, log)
            self.wanted = True

    def kill(self) -> None:
        """Sends SIGKILL; does not restart the program."""
        with self.lock:
            if self.process and self.process.poll() is None:
                self.wanted = False
                self.kills.append(time.time())
                self.process.kill()
                self.process.wait()

    def signal(self, number: int) -> None:
        with self.lock:
            if self.process and self.process.poll() is None:
                self.process.send_signal(number)

    def watch(self) -> None:
        """Records that the program has ended by itself, or restarts it if that was expected."""
        with self.lock:
            if not self.wanted or not self.process or self.process.poll() is None:
                return
            self.wanted = False
            if not self.may_end():
                self.unexpected.append(f"{self.name} ended with status {self.process.returncode}")
                return
            self.restarts += 1
        self.start()

    def memory(self) -> int | None:
        """Resident bytes; none if it does not run."""
        process = self.process
        try:
            text = Path(f"/proc/{process.pid}/statm").read_text() if process else ""
            return int(text.split()[1]) * PAGE
        except (OSError, IndexError):
            return None

    def finish(self, until: float) -> str:
        """Ends it; returns what was wrong with its end."""
        process = self.process
        if not process or process.poll() is not None:
            return ""
        self.signal(signal.SIGCONT)
        with self.lock:
            self.wanted = False
            if process.stdin:
                process.stdin.close()
            else:
                process.terminate()
        try:
            status = process.wait(max(STOP_S, until - time.time()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return f"{self.name} did not end when it was asked to"
        allowed = (0,) if self.ends_with_input else (0, 1, -signal.SIGTERM)
        return "" if status in allowed else f"{self.name} ended with status {status}"


def until_memory_settles(
    services: list[Service], limits: dict[str, int], until: float, tell: Callable[[], None]
) -> dict[str, int]:
    """Resident bytes of each service as soon as all are within their limits, or at the end of the time."""
    while True:
        now = {service.name: service.memory() or 0 for service in services}
        if time.time() >= until or all(now[name] <= limit for name, limit in limits.items()):
            return now
        tell()
        time.sleep(0.5)
