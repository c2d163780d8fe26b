"""What the live transport promises on bad paths, over emulated links and sealed.

    sudo python3 benches/live/robust.py overrun --binary target/release/ropewalk
    sudo python3 benches/live/robust.py lossy   --binary target/release/ropewalk [--runs 3]
    sudo python3 benches/live/robust.py file    --binary target/release/ropewalk [--megabytes 1000]

`overrun`: a minute over two fast unequal paths whose short queues overflow, with a receive buffer of 16 MB, goes on to its end.
`lossy`: a clean path and one that loses a packet in twenty have together at least 95 % of what the clean one has alone.
`file`: a large file arrives whole though its paths fall silent in turn, and sender and receiver are killed once each.

Scenarios are in `robust/`. What fails makes the exit status 1. How late the emulator was is shown with each figure.
"""

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from run import ropewalk as transport
from run import Case, keys, lateness, run

SCENARIOS = Path(__file__).resolve().parent / "robust"
ENOUGH = 0.95
"""Share of the clean path's goodput that the bundle must have."""
POINTS = [("64 kB", 64_000, 20, 20), ("1 MB", 1_000_000, 20, 20), ("1 MB", 1_000_000, 50, 20), ("16 MB", 16_000_000, 10, 60)]
"""Receive buffer as text and in bytes, rate of the clean path (Mbit/s), its round trip (ms)."""
LARGE = 300
"""From so many MB on the links are as the scenario has them; a tenth as fast below."""


def overrun(arguments: argparse.Namespace) -> bool:
    case = Case(SCENARIOS / "overrun.toml", 16_000_000, arguments.seconds or 60.0, 1.0, "cubic")
    for paths in ("12", "1"):
        figures, late = run(arguments.binary, case, transport(paths), 1)
        rate, gap = figures["goodput_bps"] / 1e6, figures["longest_gap_s"]
        print(f"path {' and '.join(paths)}: {rate:.1f} Mbit/s, longest gap {gap:.3f} s, latest packet {late * 1e3:.1f} ms")
        for path in figures.get("paths", []):
            print("  ", json.dumps(path))
    # The run would have failed if the association had ended.
    return True


def with_changes(name: str, changes: dict[str, str], folder: str) -> Path:
    """The scenario with other words in it."""
    text = (SCENARIOS / name).read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text, f"`{old}` in {name}"
        text = text.replace(old, new, 1)
    file = Path(folder) / name
    file.write_text(text, encoding="utf-8")
    return file


def lossy(arguments: argparse.Namespace) -> bool:
    good = True
    print("| buffer | clean path | alone | with the lossy one | share | latest packet |\n| --- | --- | ---: | ---: | ---: | ---: |")
    for shown, size, rate, rtt in POINTS:
        # A queue of what is on its way, as the scenario has it.
        queue = max(20, round(rate * rtt * 1e3 / 8 / 1500))
        changes = {'"20 Mbit/s"': f'"{rate} Mbit/s"', '"20 ms"': f'"{rtt} ms"', '"34 packets"': f'"{queue} packets"'}
        with tempfile.TemporaryDirectory() as folder:
            case = Case(with_changes("lossy.toml", changes, folder), size, arguments.seconds or 20.0, 5.0, "cubic")
            found: dict[str, list[float]] = {"1": [], "12": []}
            latest = 0.0
            for seed in range(1, arguments.runs + 1):
                for paths, rates in found.items():
                    figures, late = run(arguments.binary, case, transport(paths), seed)
                    rates.append(figures["goodput_bps"] / 1e6)
                    latest = max(latest, late)
        alone, both = (statistics.median(found[paths]) for paths in ("1", "12"))
        print(f"| {shown} | {rate} Mbit/s, {rtt} ms | {alone:.2f} | {both:.2f} | {both / alone:.3f} | {latest * 1e3:.1f} ms |", flush=True)
        good &= both >= ENOUGH * alone
    return good


def noise(file: Path, megabytes: int) -> None:
    with file.open("wb") as out:
        for _ in range(megabytes):
            out.write(os.urandom(1_000_000))


def digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def persist(command: list[str], kill_at: float) -> int:
    """Runs a command, kills it once after so long if it still runs, and runs it again until it ends by itself."""
    process = subprocess.Popen(command)
    try:
        return process.wait(kill_at)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        print(f"killed after {kill_at} s: {command[1]}", file=sys.stderr, flush=True)
    return subprocess.run(command, check=False).returncode


def file(arguments: argparse.Namespace) -> bool:
    binary, size = arguments.binary.resolve(), arguments.megabytes
    with tempfile.TemporaryDirectory(dir=arguments.room) as name:
        room = Path(name)
        near, far = keys(binary, room)
        noise(room / "large", size)
        # At a third and two thirds of the time that the links need without outages.
        wholly = size * 8 / (300 if size >= LARGE else 30)
        again = f"{sys.executable} {Path(__file__).resolve()} persist --kill-at"
        ends = (
            f"exec {again} {2 * wholly / 3:.2f} {binary} recv {room}/in --once --quiet --listen {{local1}} --listen {{local2}} "
            f"--key {room}/far.key --allow {near}",
            f"exec {again} {wholly / 3:.2f} {binary} send {room}/large --quiet --to {{remote1}},{{remote2}} "
            f"--from {{local1}},{{local2}} --key {room}/near.key --peer {far}",
        )
        stats = room / "stats.json"
        scenario = with_changes("flapping.toml", arguments.changes, name)
        words = [binary, "emulate", scenario, "--quiet", "--stats", stats, "--far", ends[0], "--", "sh", "-c", ends[1]]
        began = time.monotonic()
        done = subprocess.run(words, timeout=600 + size, capture_output=True, text=True, check=False)
        seconds = time.monotonic() - began
        print(done.stderr, file=sys.stderr, end="")
        if done.returncode != 0 or not (room / "in" / "large").exists():
            print(f"the file did not arrive: status {done.returncode}")
            return False
        same = digest(room / "large") == digest(room / "in" / "large")
        kills = done.stderr.count("killed after")
        late = lateness(stats)
        rate = size * 8 / seconds
        print(
            f"{size} MB in {seconds:.1f} s ({rate:.0f} Mbit/s), {kills} ends killed, {'equal' if same else 'NOT EQUAL'}, "
            f"latest packet {late * 1e3:.1f} ms"
        )
        return same and kills == 2


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("what", choices=["overrun", "lossy", "file"])
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3, help="of each point of `lossy`")
    parser.add_argument("--seconds", type=float, help="how long a run takes")
    parser.add_argument("--megabytes", type=int, default=1000, help="size of the file")
    parser.add_argument("--room", type=Path, help="where the files are put meanwhile")
    arguments = parser.parse_args()
    arguments.changes = shorter(arguments.megabytes)
    parts = {"overrun": overrun, "lossy": lossy, "file": file}
    return 0 if parts[arguments.what](arguments) else 1


def shorter(megabytes: int) -> dict[str, str]:
    """A small file would be there before the first outage: slower links for it."""
    if megabytes >= LARGE:
        return {}
    return {'"200 Mbit/s"': '"20 Mbit/s"', '"100 Mbit/s"': '"10 Mbit/s"'}


if __name__ == "__main__":
    if sys.argv[1:2] == ["persist"]:
        sys.exit(persist(sys.argv[4:], float(sys.argv[3])))
    sys.exit(main())
