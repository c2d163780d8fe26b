#!/usr/bin/env python3
"""Runs packetdrill's SCTP scripts, the ETSI TS 102 369 test suite, against the preload library.

`make conformance PACKETDRILL=/path/to/packetdrill SUITE=/path/to/ETSI-SCTP-Conformance-Testsuite` builds the library and
runs all scripts. Both are public: github.com/nplab/packetdrill (linked dynamically: remove `-static` from its Makefile) and
github.com/nplab/ETSI-SCTP-Conformance-Testsuite. Needs root, for a network namespace and a TUN device for each script.

The scripts are written for a kernel's stack, directly over IP. They are changed in five ways:

- Packets are encapsulated in UDP between ports 9899 (RFC 6951), unless `--encapsulation none` is given.
- Calls that follow without delay are made 20 ms later: the stack is another thread of the program.
- Numbers that mean a full packet are 8 lower, for the UDP header, if there is one.
- `sysctl` lines are removed. They switch off extensions, which the library's settings do here.
- Where a script differs between Linux and FreeBSD, both variants are tried, and the script passes with either.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

SETTINGS = {
    "ROPEWALK_PROFILE": "rfc9260",
    "ROPEWALK_CLIENT_UDP_PORT": "9899",
    "ROPEWALK_EXTENSIONS": "false",
    "ROPEWALK_DISCOVER_MTU": "false",
    "ROPEWALK_LINGER_S": "0",
}
"""Settings of the library: what RFC 9260 alone says."""

SYSTEMS = ["Linux", "FreeBSD"]
TOLERANCE_US = 75_000
"""How much earlier or later than a script says an event may be."""

LIMIT_S = 90
"""Longest run of a script. One waits 65 s for a cookie to become stale."""

FULL_PACKET = {"1452": "1444", "1468": "1460", "564": "572"}
"""User data that fills an IP packet of 1500 bytes, its chunk, and the chunk of what 2000 bytes leave."""


def of_system(script: str, system: str) -> str:
    """Returns the script without the lines for other systems."""
    kept, skipped = [], False
    for line in script.splitlines():
        if found := re.match(r"\s*#ifdef\s+(\w+)", line):
            skipped = found[1] != system
        elif re.match(r"\s*#endif", line):
            skipped = False
        elif not skipped and "`sysctl" not in line:
            kept.append(line)
    return "\n".join(kept) + "\n"


def adapted(script: str, system: str, encapsulation: str) -> str:
    """Returns the script as it is run, for a stack in another thread."""
    script = of_system(script, system)
    script = re.sub(r"(?m)^\+ ?0\.0+ (?!socket\()(?=[a-z_]+\()", "+0.02 ", script)
    if encapsulation == "none":
        return script
    script = re.sub(r"([<>] *)sctp(\([^)]*\))?:", r"\1sctp\2/udp(9899 > 9899):", script)
    numbers = "|".join(FULL_PACKET)
    return re.sub(rf"\b({numbers})\b", lambda found: FULL_PACKET[found[1]], script)


def run(packetdrill: Path, library: Path, encapsulation: str, script: str) -> str | None:
    """Runs one script. Returns what went wrong; none: it passes."""
    with tempfile.TemporaryDirectory() as directory:
        (Path(directory) / "script.pkt").write_text(script)
        in_udp = ["--udp_encapsulation=sctp"] if encapsulation == "udp" else []
        command = [packetdrill, *in_udp, f"--tolerance_usecs={TOLERANCE_US}", "script.pkt"]
        inner = 'ip link set lo up; exec env LD_PRELOAD="$0" "$@"'
        try:
            done = subprocess.run(
                ["unshare", "-n", "sh", "-c", inner, library, *command],
                cwd=directory,
                env=os.environ | SETTINGS | {"ROPEWALK_ENCAPSULATION": encapsulation},
                capture_output=True,
                text=True,
                errors="replace",
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not done after {LIMIT_S} s"
    if done.returncode == 0:
        return None
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line and not line.startswith("libropewalk")]
    return re.sub(r"^script\.pkt:\d+: (error handling packet: )?", "", lines[0] if lines else f"status {done.returncode}")


def verdict(packetdrill: Path, library: Path, encapsulation: str, script: Path) -> str | None:
    """Tries the variants of a script. Returns what went wrong with the first one; none: one of them passes."""
    text = script.read_text()
    variants = dict.fromkeys(adapted(text, system, encapsulation) for system in SYSTEMS)
    problems = []
    for variant in variants:
        problem = run(packetdrill, library, encapsulation, variant)
        if problem is None:
            return None
        problems.append(problem)
    return problems[0]


def main() -> int:
    """Runs all scripts and prints a line for each, then the count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packetdrill", type=Path, required=True, help="the program, linked dynamically")
    parser.add_argument("--suite", type=Path, required=True, help="directory of the scripts")
    parser.add_argument("--library", type=Path, required=True, help="libropewalk.so")
    parser.add_argument("--jobs", type=int, default=3, help="scripts at a time (3); they mostly wait")
    parser.add_argument("--encapsulation", choices=["udp", "none"], default="udp", help="of packets (udp)")
    parser.add_argument("--only", default="", help="run only scripts whose name contains this")
    arguments = parser.parse_args()
    scripts = sorted(path for path in arguments.suite.rglob("*.pkt") if arguments.only in path.name)
    if not scripts:
        parser.error(f"no script in {arguments.suite}")
    packetdrill, library = arguments.packetdrill.resolve(), arguments.library.resolve()
    passed = 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        judge = partial(verdict, packetdrill, library, arguments.encapsulation)
        verdicts = pool.map(judge, scripts)
        for script, problem in zip(scripts, verdicts, strict=True):
            print(f"pass  {script.stem}" if problem is None else f"FAIL  {script.stem}: {problem[:160]}", flush=True)
            passed += problem is None
    print(f"{passed} of {len(scripts)} scripts pass")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
