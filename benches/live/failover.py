"""What a path's outage costs: bulk over emulated links, the best of which falls silent for some seconds.

    sudo python3 benches/live/failover.py --binary target/release/ropewalk [--runs 5] [--in-order] [--case NAME]

A case is a scenario in `failover/` whose first path has one outage; its end is moved by up to a second from run to run.
Of each run are noted the longest time in which the receiver's application was handed nothing, and how long after the
end of the outage the first path carried a fifth again of what it carried before. Then one file goes over the same links,
and is compared with the one that came. A run in which the emulator was late by more than 20 ms is tried again.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

from run import LATEST_S, TRIES, keys, lateness

HERE = Path(__file__).resolve().parent
SAMPLE_S = 0.02
"""How often the first path's device is read."""
WINDOW_S = 0.2
"""Over how long a rate is taken."""
SHARE = 0.2
"""The path carries traffic again once it carries this share of what it did."""
GAP_S = 1.0
"""Longest gap that is aimed at, or three round trips of the path that stays, less than three of its timeouts."""
RETURN_S = 2.0
"""How soon the path is to be used again."""


@dataclass(frozen=True)
class Case:
    """A scenario, and when its first path falls silent."""

    file: Path
    start: float
    end: float
    seconds: float
    survivor_rtt: float
    text: str

    @property
    def gap_limit(self) -> float:
        return max(GAP_S, 3 * self.survivor_rtt)


def later(case: Case, seed: int, folder: Path) -> Case:
    """The same with an outage that ends up to a second later: a path that is away is asked once per second."""
    end = case.end + seed * 0.37 % 1.0
    text = case.text.replace(f'to = "{case.end:g} s"', f'to = "{end:g} s"')
    assert text != case.text, "the outage's end is written in whole seconds"
    (folder / case.file.name).write_text(text, encoding="utf-8")
    return replace(case, file=folder / case.file.name, end=end)


def seconds(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"s": 1.0, "ms": 1e-3}[unit]


def load(file: Path) -> Case:
    text = file.read_text(encoding="utf-8")
    scenario = tomllib.loads(text)
    outage = scenario["path"][0]["outages"][0]
    survivor = seconds(scenario["path"][1]["rtt"])
    duration = seconds(scenario["transfer"]["duration"])
    return Case(file, seconds(outage["from"]), seconds(outage["to"]), duration, survivor, text)


def sent_bytes(device: str) -> int:
    """What has left on a device of this network namespace."""
    for line in Path("/proc/self/net/dev").read_text(encoding="ascii").splitlines():
        name, _, figures = line.partition(":")
        if name.strip() == device:
            return int(figures.split()[8])
    raise SystemExit(f"no device {device}")


def sample(device: str, zero: float, until: float, out: Path) -> None:
    """Notes when how much had left, in seconds since `zero`."""
    rows: list[tuple[float, int]] = []
    while (now := time.time() - zero) < until:
        rows.append((now, sent_bytes(device)))
        time.sleep(SAMPLE_S)
    out.write_text(json.dumps(rows), encoding="ascii")


def rate(rows: list[tuple[float, int]], since: float, until: float) -> float:
    inside = [row for row in rows if since <= row[0] <= until]
    if len(inside) < 2:
        return 0.0
    return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])


def returned(rows: list[tuple[float, int]], case: Case) -> float:
    """How long after the outage the path carried traffic again; infinite if it never did."""
    before = rate(rows, 2.0, case.start)
    for at, _ in rows:
        if at >= case.end and rate(rows, at, at + WINDOW_S) >= SHARE * before:
            return at - case.end
    return float("inf")


def emulate(binary: Path, case: Case, seed: int, far: str, near: str, folder: Path) -> float:
    """Runs both lines over the links; returns how late the emulator was."""
    stats = folder / "stats.json"
    words = [binary, "emulate", case.file, "--seed", str(seed), "--stats", stats]
    words += ["--far", far, "--", "sh", "-c", near]
    done = subprocess.run(words, timeout=case.seconds * 3 + 30, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{case.file.stem}: status {done.returncode}\n{done.stderr}")
    return lateness(stats)


def bulk(binary: Path, case: Case, seed: int, options: str) -> tuple[float, float, float]:
    """Longest gap, time until the path is used again, and lateness of one run."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys(binary, folder)
        case = later(case, seed, folder)
        out, rows = folder / "bench.json", folder / "rows.json"
        far = (
            f"exec chrt --rr 40 {binary} bench serve --once --listen {{local1}} --listen {{local2}} "
            f"--key {folder}/far.key --allow $(cat {folder}/near.pub)"
        )
        near = (
            f"{sys.executable} {Path(__file__).resolve()} --sample {{device1}} --zero $(date +%s.%N) "
            f"--until {case.seconds} --out {rows} & "
            f"chrt --rr 40 {binary} bench run --to {{remote1}},{{remote2}} --from {{local1}},{{local2}} "
            f"--key {folder}/near.key --peer $(cat {folder}/far.pub) --warmup '1 s' --time '{case.seconds - 1.5} s' "
            f"--json {options} > {out} && wait"
        )
        late = emulate(binary, case, seed, far, near, folder)
        gap = json.loads(out.read_text(encoding="utf-8"))["longest_gap_s"]
        return gap, returned(json.loads(rows.read_text(encoding="ascii")), case), late


def file(binary: Path, case: Case, seed: int) -> bool:
    """Whether a file that travels during the outage arrives as it was."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys(binary, folder)
        data = os.urandom(14_000_000)
        (folder / "data").write_bytes(data)
        (folder / "in").mkdir()
        far = (
            f"exec {binary} recv {folder}/in --listen {{local1}} --listen {{local2}} "
            f"--key {folder}/far.key --allow $(cat {folder}/near.pub)"
        )
        near = (
            f"exec {binary} send {folder}/data --to {{remote1}},{{remote2}} --from {{local1}},{{local2}} "
            f"--key {folder}/near.key --peer $(cat {folder}/far.pub)"
        )
        emulate(binary, case, seed, far, near, folder)
        return (folder / "in" / "data").read_bytes() == data


def measure(binary: Path, case: Case, runs: int, options: str) -> None:
    gaps: list[float] = []
    returns: list[float] = []
    dropped = 0
    for seed in range(1, runs + 1):
        for _ in range(TRIES):
            gap, back, late = bulk(binary, case, seed, options)
            if late <= LATEST_S:
                gaps.append(gap)
                returns.append(back)
                break
            dropped += 1
    whole = "yes" if file(binary, case, runs + 1) else "NO"
    if not gaps:
        print(f"| {case.file.stem} | always late ({dropped} runs) | | {whole} | |", flush=True)
        return
    shown = [f"{statistics.median(of):.2f} ({min(of):.2f} to {max(of):.2f})" for of in (gaps, returns)]
    met = statistics.median(gaps) <= case.gap_limit and statistics.median(returns) <= RETURN_S
    verdict = "yes" if met else "no"
    print(f"| {case.file.stem} | {shown[0]} | {shown[1]} | {whole} | {verdict} | {len(gaps)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=lambda text: Path(text).resolve())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--in-order", action="store_true", help="one stream of bytes, as a proxy's, not messages as they come")
    parser.add_argument("--case", action="append", help="part of a file's name; all, if none is given")
    for name, kind in (("--sample", str), ("--zero", float), ("--until", float), ("--out", Path)):
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.sample:
        sample(arguments.sample, arguments.zero, arguments.until, arguments.out)
        return
    if not arguments.binary:
        parser.error("--binary is missing")
    print("| case | longest gap, s | path used again after, s | file whole | target met | runs |")
    print("| --- | --- | --- | --- | --- | --- |")
    for path in sorted((HERE / "failover").glob("*.toml")):
        if not arguments.case or any(part in path.stem for part in arguments.case):
            measure(arguments.binary, load(path), arguments.runs, "--in-order" * arguments.in_order)


if __name__ == "__main__":
    main()
