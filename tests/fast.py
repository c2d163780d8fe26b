#!/usr/bin/env python3
"""Tests what a change concerns, in a few minutes: `make test-fast`.

A change is everything that differs from the branch `main`, or from the commit that `--since` names. The crates that
it touches are tested without the tests that simulate for minutes, and the crates that depend on them are checked.
`make test` runs everything.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Tests of minutes, by the start of their names. `make test` runs them.
SLOW = ["reproduce::", "markov::", "pinned::", "ready_scenarios::", "tournament::", "response::"]
# Cases of the random transfers, of 10 000.
CASES = "500"


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def changed(since: str | None) -> list[str]:
    """The files that differ, new ones included."""
    base = since or output("git", "merge-base", "HEAD", "main").strip()
    listed = output("git", "diff", "--name-only", base)
    return sorted({*listed.split("\n"), *output("git", "ls-files", "--others", "--exclude-standard").split("\n")} - {""})


def packages() -> dict[str, tuple[str, set[str]]]:
    """The directory of each crate of the workspace, and the crates that it needs."""
    metadata = json.loads(output("cargo", "metadata", "--format-version", "1", "--no-deps"))
    found = {}
    for package in metadata["packages"]:
        directory = str(Path(package["manifest_path"]).parent.relative_to(ROOT))
        needs = {dependency["name"] for dependency in package["dependencies"] if dependency.get("path")}
        found[package["name"]] = (f"{directory}/", needs)
    return found


def touched(files: list[str], crates: dict[str, tuple[str, set[str]]]) -> set[str]:
    """The crates in which these files are."""
    return {name for name, (directory, _) in crates.items() if any(file.startswith(directory) for file in files)}


def dependents(names: set[str], crates: dict[str, tuple[str, set[str]]]) -> set[str]:
    """All crates that need one of these, directly or not, without these."""
    reached = set(names)
    while more := {name for name, (_, needs) in crates.items() if needs & reached} - reached:
        reached |= more
    return reached - names


def main() -> int:
    """Runs each step; the exit status is that of the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--since", help="the commit to compare with (where this branch left main)")
    files, crates = changed(parser.parse_args().since), packages()
    # The rules of the tree concern every change.
    names = touched(files, crates)
    print(f"{len(files)} changed files, in {', '.join(sorted(names)) or 'no crate'}", flush=True)
    steps = [["fmt", "--all", "--check"]]
    if others := dependents(names, crates):
        steps.append(["check", "--quiet", *(word for name in sorted(others) for word in ("-p", name))])
    selected = [word for name in sorted({*names, "ropewalk-tidy"}) for word in ("-p", name)]
    skipped = [word for name in SLOW for word in ("--skip", name)]
    steps.append(["test", *selected, "--lib", "--bins", "--tests", "--", *skipped])
    environment = {"ROPEWALK_CASES": CASES} | os.environ
    for step in steps:
        print(f"\n== cargo {' '.join(step)}", flush=True)
        if status := subprocess.run([os.environ.get("CARGO", "cargo"), *step], cwd=ROOT, env=environment).returncode:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
