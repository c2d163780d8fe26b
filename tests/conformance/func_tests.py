#!/usr/bin/env python3
"""Runs the functional tests of lksctp-tools, which judge the SCTP of the Linux kernel, against the preload library.

`make func-tests LKSCTP=/path/to/lksctp-tools` builds the library, compiles the tests (github.com/sctp/lksctp-tools,
`src/func_tests`) and runs each of them in a network namespace of its own. Needs a C compiler and root, or user namespaces.
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

LIMIT_S = 90
"""Longest run of a test."""

V6 = ["-DCONFIG_IPV6=1", "-DTEST_V6=1"]


def names(source: Path) -> list[str]:
    """Returns the names of all tests: those that end with `_v6` are variants for IPv6."""
    makefile = (source / "src/func_tests/Makefile.am").read_text()
    lists = re.findall(r"^PASSING_(?:V6_)?KERN_TESTS \+?= \\\n((?:\s+test_.*\n)+)", makefile, re.MULTILINE)
    return [name for block in lists for name in re.findall(r"test_\w+", block)]


def build(source: Path, directory: Path) -> dict[str, Path]:
    """Compiles libsctp and all tests. Returns the programs by name."""
    header = (source / "src/include/netinet/sctp.h.in").read_text()
    (directory / "netinet").mkdir()
    # What `configure` finds in the headers of a present kernel.
    (directory / "netinet/sctp.h").write_text(re.sub(r"#undef (HAVE_\w+)", r"#define \1 1", header))
    compile_c = ["cc", "-O2", "-w", "-fno-strict-aliasing", f"-I{directory}", f"-I{source}/src/testlib"]
    (directory / "config.h").touch()
    libsctp = directory / "libsctp.so.1"
    script = f"-Wl,--version-script={source}/src/lib/Versions.map"
    parts = sorted((source / "src/lib").glob("*.c"))
    shared = ["-shared", "-fPIC", "-Wl,-soname,libsctp.so.1", script, "-o", libsctp]
    subprocess.run([*compile_c, *parts, *shared], check=True)
    programs = {}
    for name in names(source):
        programs[name] = directory / name
        test = source / f"src/func_tests/{name.removesuffix('_v6')}.c"
        more = [source / "src/testlib/sctputil.c", libsctp, "-pthread", f"-Wl,-rpath,{directory}"]
        variant = V6 if name.endswith("_v6") else []
        subprocess.run([*compile_c, *variant, test, *more, "-o", programs[name]], check=True)
    return programs


def verdict(library: Path, program: Path) -> str | None:
    """Runs one test. Returns what went wrong. `None` if it passes."""
    inner = 'ip link set lo up; exec env LD_PRELOAD="$0" "$@"'
    namespaces = ["-n"] if os.geteuid() == 0 else ["-rn"]
    try:
        done = subprocess.run(
            ["unshare", *namespaces, "sh", "-c", inner, library, program],
            cwd=program.parent,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        last = (late.stdout or b"").decode(errors="replace").splitlines()
        return f"not done after {LIMIT_S} s: {last[-1] if last else ''}"
    if done.returncode == 0:
        return None
    lines = (done.stdout + done.stderr).splitlines()
    bad = [line for line in lines if re.search(r"BROK|FAIL|DUMP_CORE|ERROR", line)]
    return (bad or lines or [f"status {done.returncode}"])[0]


def main() -> int:
    """Runs all tests and prints a line for each, then the count."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", type=Path, required=True, help="directory of lksctp-tools")
    parser.add_argument("--library", type=Path, required=True, help="libropewalk.so")
    parser.add_argument("--jobs", type=int, default=2, help="tests at a time (2)")
    parser.add_argument("--only", default="", help="run only tests whose name contains this")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(arguments.jobs) as pool:
        programs = build(arguments.source.resolve(), Path(directory))
        chosen = {name: path for name, path in programs.items() if arguments.only in name}
        passed = 0
        verdicts = pool.map(partial(verdict, arguments.library.resolve()), chosen.values())
        for name, problem in zip(chosen, verdicts, strict=True):
            print(f"pass  {name}" if problem is None else f"FAIL  {name}: {problem[:160]}", flush=True)
            passed += problem is None
    print(f"{passed} of {len(chosen)} tests pass")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
