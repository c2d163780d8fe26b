"""Real transports over emulated links: a table of goodputs, the median of several runs.

    sudo python3 benches/live/run.py --binary target/release/ropewalk [--runs 3] [--case NAME] [--transport NAME]

A case is a scenario file beside this one. A transport is a row of TRANSPORTS: how it receives, how it sends. A
run in which the emulator was late by more than 20 ms does not count and is tried again.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
STREAM = f"{sys.executable} {HERE / 'stream.py'}"
LATEST_S = 0.020
"""A run counts if no packet was handed out, and no waking up was, later than this."""
TRIES = 3
"""How often a run that was late is tried again."""
UNITS = {"B": 1, "kB": 1000, "MB": 1000_000, "KiB": 1024, "MiB": 1024**2}


@dataclass(frozen=True)
class Case:
    """A scenario, and what is measured of it."""

    file: Path
    buffer: int
    seconds: float
    warmup: float
    congestion: str

    @property
    def name(self) -> str:
        return self.file.stem


@dataclass(frozen=True)
class Transport:
    """How to receive and how to send. Lines are for a shell; {remote1} and the like are filled in by `emulate`.

    The receiver writes {"goodput_bps": ...} of what it read after the warm-up to the file it is given.
    """

    name: str
    receive: Callable[[Case, Path], str]
    send: Callable[[Case], str]


def tcp_send(case: Case, path: int, options: str = "") -> str:
    options += f" --congestion {case.congestion} --seconds {case.seconds}"
    return f"exec {STREAM} send --to {{remote{path}}} {options}"


def tcp_receive(case: Case, out: Path, options: str = "") -> str:
    times = f"--seconds {case.seconds} --warmup {case.warmup}"
    return f"exec {STREAM} recv --buffer {case.buffer} {times} --out {out} {options}"


def tcp_on(path: int) -> Transport:
    return Transport(f"TCP on path {path}", tcp_receive, lambda case: tcp_send(case, path))


def mptcp_receive(case: Case, out: Path) -> str:
    return "ip mptcp limits set subflow 8 add_addr_accepted 8 && " + tcp_receive(case, out, "--mptcp")


def mptcp_send(case: Case) -> str:
    endpoints = (
        "ip mptcp limits set subflow 8 add_addr_accepted 8 && "
        "for i in $(seq 2 $ROPEWALK_PATHS); do "
        "eval ip mptcp endpoint add \\$ROPEWALK_LOCAL_$i dev \\$ROPEWALK_DEVICE_$i subflow || exit 1; done && "
    )
    return endpoints + tcp_send(case, 1, "--mptcp")


TRANSPORTS = [
    tcp_on(1),
    tcp_on(2),
    Transport("Linux MPTCP", mptcp_receive, mptcp_send),
]


def size(text: str) -> int:
    number, unit = text.split()
    return round(float(number) * UNITS[unit])


def load(file: Path, arguments: argparse.Namespace) -> Case:
    transfer = tomllib.loads(file.read_text(encoding="utf-8"))["transfer"]
    buffer = size(transfer["receive_buffer"])
    return Case(file, buffer, arguments.seconds, arguments.warmup, arguments.congestion)


def run(binary: Path, case: Case, transport: Transport, seed: int) -> tuple[float, float]:
    """Goodput in bit/s, and how late the emulator was, in seconds."""
    with tempfile.TemporaryDirectory() as room:
        stats, out = Path(room) / "stats.json", Path(room) / "goodput.json"
        words = [binary, "emulate", case.file, "--quiet", "--seed", str(seed), "--stats", stats]
        words += ["--far", transport.receive(case, out), "--", "sh", "-c", transport.send(case)]
        limit = case.seconds + 30
        done = subprocess.run(words, timeout=limit, capture_output=True, text=True, check=False)
        if done.returncode != 0 or not out.exists():
            raise SystemExit(f"{case.name}, {transport.name}: status {done.returncode}\n{done.stderr}")
        figures = json.loads(stats.read_text(encoding="utf-8"))
        late = max(figures[f"{kind}_lateness_s"]["max"] for kind in ("delivery", "waking"))
        return json.loads(out.read_text(encoding="utf-8"))["goodput_bps"], late


def median(binary: Path, case: Case, transport: Transport, runs: int) -> str:
    good: list[float] = []
    worst, dropped = 0.0, 0
    for seed in range(1, runs + 1):
        for _ in range(TRIES):
            goodput, late = run(binary, case, transport, seed)
            if late <= LATEST_S:
                good.append(goodput)
                worst = max(worst, late)
                break
            dropped += 1
    if not good:
        return f"always late ({dropped} runs)"
    note = f", {dropped} late" if dropped else ""
    spread = f"{min(good) / 1e6:.2f} to {max(good) / 1e6:.2f}"
    return f"{statistics.median(good) / 1e6:.2f} ({spread}; {worst * 1e3:.1f} ms{note})"


def wanted(name: str, parts: list[str] | None) -> bool:
    return not parts or any(part in name for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--warmup", type=float, default=5.0)
    parser.add_argument("--congestion", default="cubic", help="congestion control of the TCP senders")
    parser.add_argument("--case", action="append", help="part of a file's name; all, if none is given")
    parser.add_argument("--transport", action="append", help="part of a name; all, if none is given")
    arguments = parser.parse_args()
    files = [file for file in sorted(HERE.glob("*.toml")) if wanted(file.stem, arguments.case)]
    transports = [t for t in TRANSPORTS if wanted(t.name, arguments.transport)]
    print("Goodput in Mbit/s: median (least to most; latest packet).\n")
    print("| case |", " | ".join(t.name for t in transports), "|")
    print("| --- |", " | ".join("---" for _ in transports), "|")
    for file in files:
        case = load(file, arguments)
        print(f"| {case.name} |", end="", flush=True)
        for transport in transports:
            print(f" {median(arguments.binary, case, transport, arguments.runs)} |", end="", flush=True)
        print(flush=True)


if __name__ == "__main__":
    main()
