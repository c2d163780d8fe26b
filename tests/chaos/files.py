"""Files that are sent again and again by `ropewalk send`, each compared with what arrives."""

import hashlib
import random
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from hosts import Host

LARGEST = 8_000_000
RETRY = "20 s"
"""How long `send` itself retries when the receiver does not answer."""


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def content_of(folder: Path) -> dict[str, str]:
    """Every file below, with its hash; the receiver's own folder is left out."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        str(path.relative_to(folder)): digest(path)
        for path in files
        if path.relative_to(folder).parts[0] != ".ropewalk"
    }


@dataclass
class Attempt:
    """One `ropewalk send` that did not succeed."""

    began: float
    ended: float
    status: int
    said: str


@dataclass
class Files:
    """A worker that sends one item after the other."""

    host: Host
    words: list[str | Path]
    """The command line; the item to send is inserted after the second word."""
    outbox: Path
    inbox: Path
    log: Path
    seed: str
    defect: bool = False
    """Changes every file before the comparison: the check must find it."""
    done: int = 0
    bytes: int = 0
    wrong: list[str] = field(default_factory=list)
    failed: list[Attempt] = field(default_factory=list)
    kills: list[float] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)
    given_up: threading.Event = field(default_factory=threading.Event)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        source = random.Random(f"{self.seed}/files")
        number = 0
        while not self.ending.is_set():
            number += 1
            name = f"{self.seed}-{number}"
            self.make(name, source)
            if self.send(name):
                self.compare(name)
            shutil.rmtree(self.outbox / name)

    def make(self, name: str, source: random.Random) -> None:
        """A folder with one large file, or with many small ones."""
        folder = self.outbox / name
        folder.mkdir()
        sizes = [int(LARGEST ** source.uniform(0.5, 1.0))]
        if source.random() < 0.3:
            sizes = [int(20_000 ** source.random()) - 1 for _ in range(source.randrange(1, 40))]
        for index, size in enumerate(sizes):
            (folder / f"{index}").write_bytes(source.randbytes(size))

    def send(self, name: str) -> bool:
        """Sends until it succeeds; `False` if it is given up before."""
        while not self.given_up.is_set():
            began = time.time()
            with self.log.open("ab") as log:
                at = log.tell()
                words = [*self.words[:2], self.outbox / name, *self.words[2:]]
                self.process = self.host.spawn(words, subprocess.DEVNULL, log, log)
                status = self.process.wait()
            if status == 0:
                return True
            said = self.log.read_bytes()[at:].decode(errors="replace")
            self.failed.append(Attempt(began, time.time(), status, said[-2000:]))
            time.sleep(0.3)
        return False

    def give_up(self) -> None:
        """Ends the worker when the time is over."""
        self.given_up.set()
        if self.process:
            self.process.kill()
        self.thread.join()

    def compare(self, name: str) -> None:
        if self.defect:
            (self.inbox / name / "0").write_bytes(b"something else")
        sent, came = content_of(self.outbox / name), content_of(self.inbox / name)
        if sent != came:
            both = set(sent.items()) ^ set(came.items())
            self.wrong.append(f"{name}: {len(both)} entries differ, such as {sorted(both)[:4]}")
        self.done += 1
        self.bytes += sum(path.stat().st_size for path in (self.outbox / name).iterdir())
        shutil.rmtree(self.inbox / name, ignore_errors=True)

    def kill(self) -> None:
        process = self.process
        if process and process.poll() is None:
            self.kills.append(time.time())
            process.kill()
