#!/usr/bin/env python3
"""Builds the fuzz targets with the stable compiler and runs each for a while.

    fuzz/run.py                        each target for 10 s of CPU time
    fuzz/run.py --seconds 1800         for half an hour each
    fuzz/run.py --only decode mux      these alone
    fuzz/run.py --minimise             what was found in fuzz/corpus joins fuzz/seeds, as few files as reach it

The seeds in fuzz/seeds/TARGET are where each run begins; what it finds beyond goes to fuzz/corpus/TARGET, which
is kept between runs on one machine and not in the tree. An input that breaks a target is left in fuzz/artifacts.
Nothing has to be installed but Rust and a C++ compiler: libFuzzer is built from its crate, and the code is watched
by the compiler's own pass. `cargo fuzz` works as well, with a nightly compiler.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import flagged

HERE = Path(__file__).resolve().parent
TARGETS = [
    "decode", "association", "listener", "handshake", "session", "proxy", "mux", "files", "transfer", "access", "endpoint", "scenario",
]  # fmt: skip
# What `cargo fuzz build --sanitizer none` passes. The code that is fuzzed has no unsafe blocks, so that an address
# sanitizer would watch others' alone.
FLAGS = (
    "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
    " -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
    " -Cllvm-args=-sanitizer-coverage-trace-compares"
)
# What takes so long, in seconds, is a hang.
HANG_S = 10


def build() -> Path:
    """Where the targets are."""
    return flagged.build(HERE, flagged.target("fuzz"), FLAGS)


def limits(hang_s: int) -> list[str]:
    """Bounds of one input: nothing here needs a GiB."""
    return [f"-timeout={hang_s}", "-rss_limit_mb=1024", "-max_len=4096"]


def cpu_seconds(pid: int, began: float) -> float:
    """CPU time of a process so far; where the system does not tell, how long it has been running."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return time.monotonic() - began
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fuzz(binaries: Path, target: str, seconds: float, hang_s: int) -> bool:
    """Runs one target; whether nothing was found. An input that takes `hang_s` is a finding."""
    corpus, seeds = HERE / "corpus" / target, HERE / "seeds" / target
    artifacts = HERE / "artifacts" / target
    for folder in (corpus, seeds, artifacts):
        folder.mkdir(parents=True, exist_ok=True)
    log = artifacts / "log.txt"
    said = ["-print_final_stats=1", f"-artifact_prefix={artifacts}/"]
    command = [binaries / target, *limits(hang_s), *said]
    began, spent = time.monotonic(), 0.0
    with log.open("w") as out:
        process = subprocess.Popen([*command, corpus, seeds], stdout=out, stderr=out)
        while process.poll() is None:
            spent = cpu_seconds(process.pid, began)
            if spent >= seconds:
                process.send_signal(signal.SIGINT)
                process.wait()
            time.sleep(min(0.2, seconds))
    # Interrupted as planned: 72, by libFuzzer; what it finds has other codes.
    fine = process.returncode in (0, 72)
    print(summary(target, log.read_text(errors="replace"), spent, fine), flush=True)
    if not fine:
        found = max(artifacts.glob("*-*"), key=lambda path: path.stat().st_mtime, default=log)
        print(f"  {target} ended with {process.returncode}; the log is {log}")
        print(f"  again: {binaries / target} {found}", flush=True)
    return fine


def summary(target: str, log: str, seconds: float, fine: bool) -> str:
    """One line about a run."""
    runs = re.findall(r"^(?:stat::number_of_executed_units:|#)\s*(\d+)", log, re.M)
    edges = re.search(r"\((\d+) inline 8-bit counters\)", log)
    covered = re.findall(r"cov: (\d+) ft: (\d+)", log)
    cov, features = covered[-1] if covered else ("?", "?")
    share = f"{cov} of {edges[1] if edges else '?'} edges"
    verdict = "nothing found" if fine else "FOUND SOMETHING"
    count = max(map(int, runs), default=0)
    return f"{target:12} {seconds:7.0f} s of CPU {count:11} inputs  {share}, {features} features: {verdict}"


def minimise(binaries: Path, target: str) -> None:
    """Puts into the seeds as few files as reach what they and the corpus do."""
    corpus, seeds = HERE / "corpus" / target, HERE / "seeds" / target
    fresh = seeds.with_name(f".{target}")
    fresh.mkdir(parents=True)
    # Edges alone, not how often each is passed: a tenth of the files.
    what = ["-set_cover_merge=1", "-use_counters=0"]
    command = [binaries / target, *what, *limits(HANG_S), fresh, seeds, corpus]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    shutil.rmtree(seeds)
    fresh.rename(seeds)
    size = sum(path.stat().st_size for path in seeds.iterdir())
    print(f"{target}: {len(list(seeds.iterdir()))} files, {size} B")


def main() -> int:
    """Does as the arguments say."""
    what = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    what.add_argument("--seconds", type=float, default=10, help="CPU time of each target, s (10)")
    what.add_argument("--jobs", type=int, default=os.cpu_count(), help="targets at a time (all cores)")
    what.add_argument(
        "--hang",
        type=int,
        default=HANG_S,
        help=f"an input that takes so long is a finding, s ({HANG_S}); more with `nice`",
    )
    what.add_argument("--only", nargs="+", choices=TARGETS, default=TARGETS, help="these targets (all)")
    what.add_argument("--build", action="store_true", help="build the targets and run none")
    what.add_argument("--minimise", action="store_true", help="refresh the seeds instead")
    asked = what.parse_args()
    binaries = build()
    if asked.build:
        return 0
    if asked.minimise:
        for target in asked.only:
            minimise(binaries, target)
        return 0
    with ThreadPoolExecutor(max_workers=asked.jobs) as pool:
        fine = list(pool.map(lambda target: fuzz(binaries, target, asked.seconds, asked.hang), asked.only))
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
