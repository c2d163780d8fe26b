"""Congestion controls over lossy and unequal links, on real sockets and simulated.

    sudo python3 benches/live/congestion.py --binary target/release/ropewalk [--runs 3] [--congestion bbr,cubic]

For each scenario in `congestion/` and each congestion control: the goodput of one association over all links, live and
sealed (median, least and most of the runs), and the round trip of each link under load beside its least; and the same
scenario in the simulator. A run in which the emulator was late by more than 20 ms does not count and is tried again.
"""

import argparse
import json
import statistics
import subprocess
import tomllib
from pathlib import Path

from run import LATEST_S, TRIES, Case, run
from run import ropewalk as transport

SCENARIOS = Path(__file__).resolve().parent / "congestion"
BUFFER = 16 << 20


def live(binary: Path, case: Case, congestion: str, runs: int) -> str:
    """Goodput in Mbit/s, and the smoothed round trip of each path at the end of the last run, ms."""
    goodputs, paths = [], []
    for seed in range(1, runs + 1):
        for _ in range(TRIES):
            figures, late = run(binary, case, transport("12", f"--congestion {congestion}"), seed)
            if late <= LATEST_S:
                goodputs.append(figures["goodput_bps"] / 1e6)
                paths = sorted(figures["paths"], key=lambda path: path["remote"])
                break
    if not goodputs:
        return "always late | "
    trips = ", ".join(f"{path['srtt_s'] * 1e3:.0f}" for path in paths)
    return f"{statistics.median(goodputs):.1f} ({min(goodputs):.1f} to {max(goodputs):.1f}) | {trips}"


def simulated(binary: Path, case: Case, congestion: str) -> str:
    """Goodput in Mbit/s in the simulator."""
    words = [binary, "run", case.file, "--json", "--quiet", "--set", f"transfer.congestion={congestion}"]
    words += ["--set", f"transfer.duration={case.seconds} s", "--set", f"transfer.warmup={case.warmup} s"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return f"{json.loads(done.stdout)['goodput_bps'] / 1e6:.1f}"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40.0, help="length of a run, its warm-up included")
    parser.add_argument("--warmup", type=float, default=5.0)
    parser.add_argument("--congestion", default="bbr,cubic,rfc9260")
    arguments = parser.parse_args()
    print("| links | congestion control | live, Mbit/s | RTT at the end, ms | simulated, Mbit/s |")
    print("| --- | --- | ---: | ---: | ---: |")
    for file in sorted(SCENARIOS.glob("*.toml")):
        rates = [path["rate"] for path in tomllib.loads(file.read_text(encoding="utf-8"))["path"]]
        case = Case(file, BUFFER, arguments.seconds, arguments.warmup, "cubic")
        for congestion in arguments.congestion.split(","):
            measured = live(arguments.binary, case, congestion, arguments.runs)
            beside = simulated(arguments.binary, case, congestion)
            print(f"| {file.stem}: {', '.join(rates)} | `{congestion}` | {measured} | {beside} |", flush=True)


if __name__ == "__main__":
    main()
