#!/usr/bin/env python3
"""Runs all Rust tests of the workspace: `make test-rust`.

As `cargo test --workspace`, but two test programs run at a time: one of those that mostly wait for sockets and timers, and
beside it, at a lower priority, one of those that compute. The output of each is printed in one piece when it ends. After a
failure no further program starts.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CARGO = os.environ.get("CARGO", "cargo")

# Crates whose tests use sockets and real time.
WAITING = {"apps", "attacks", "cli", "interop", "load", "messages", "runtime", "sockets", "webrtc"}
# Crates with tests of minutes, which start first.
LONG = {"cli", "lab"}
# How much lower the priority of the tests that compute is.
NICENESS = 19


@dataclass(frozen=True)
class Program:
    """A command, and where and with what it runs."""

    name: str
    crate: str
    command: list[str]
    directory: Path
    environment: dict[str, str]


def build() -> list[Program]:
    """Builds all test programs."""
    command = [CARGO, "test", "--workspace", "--no-run", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found = []
    for message in map(json.loads, built.stdout.splitlines()):
        if not message.get("executable") or not message.get("profile", {}).get("test"):
            continue
        directory = Path(message["manifest_path"]).parent
        name, source = message["target"]["name"], Path(message["target"]["src_path"]).relative_to(ROOT)
        # What cargo sets for the programs that it runs.
        environment = {"CARGO": CARGO, "CARGO_MANIFEST_DIR": str(directory)}
        found.append(Program(f"{name} ({source})", directory.name, [message["executable"]], directory, environment))
    return sorted(found, key=lambda program: program.crate not in LONG)


class Run:
    """Test programs that run, and how they ended."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.printing = threading.Lock()
        self.failed: list[str] = []

    def one(self, program: Program, niceness: int) -> None:
        """Runs a program, and prints what it printed."""
        begun = time.monotonic()
        with self.printing:
            print(f"     Running {program.name}", flush=True)
        done = subprocess.run(
            ["nice", "-n", str(niceness), *program.command],
            cwd=program.directory,
            env=os.environ | program.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        now = time.monotonic()
        with self.printing:
            print(f"\n{program.name}: {now - begun:.0f} s, until {now - self.start:.0f} s")
            print(done.stdout, end="", flush=True)
            if done.returncode:
                self.failed.append(program.name)

    def all(self, programs: list[Program], niceness: int) -> None:
        """Runs programs one after another, until one fails anywhere."""
        for program in programs:
            if not self.failed:
                self.one(program, niceness)


def main() -> int:
    """The exit status is 1 if a test failed."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    try:
        programs = build()
    except subprocess.CalledProcessError as error:
        return error.returncode
    waiting = [program for program in programs if program.crate in WAITING]
    computing = [program for program in programs if program.crate not in WAITING]
    computing.append(Program("examples of the documentation", "", [CARGO, "test", "--workspace", "--doc"], ROOT, {}))
    run = Run()
    lane = threading.Thread(target=run.all, args=(computing, NICENESS))
    lane.start()
    run.all(waiting, 0)
    lane.join()
    for name in run.failed:
        print(f"FAILED: {name}")
    return 1 if run.failed else 0


if __name__ == "__main__":
    sys.exit(main())
