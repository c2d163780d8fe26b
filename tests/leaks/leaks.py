#!/usr/bin/env python3
"""Tries to make a tunnel leak: steps drawn from a seed, while programs on the client and its neighbours send all the time.

    make leaks                       one minute of steps
    make leaks SEED=7                the steps of this seed

Needs root (network namespaces, TUN devices, packet sockets, a tmpfs); otherwise it says so and ends. Everything happens in
namespaces of network, mounts and processes that end with it. After each step it checks that nothing has left the closed client,
and that nothing was forwarded that was not forwarded before; after each orderly end, that everything is as it was before.
The findings and the logs of a failed run are kept in out/leaks-SEED/.
"""

import argparse
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steps import BY_NAME, Draw, finish, take_step, with_defects
from trial import Trial

ROOT = Path(__file__).resolve().parents[2]
ETC = ("ld.so.cache", "ld.so.conf", "nsswitch.conf", "passwd", "group", "protocols", "services", "localtime", "alternatives")
"""What programs need of /etc."""
RESERVE_S = 4.0
"""For the end of the run."""


def missing() -> str | None:
    """Why nothing can be tried here."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "needs Linux and root"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    for program in ("ip", "nft", "nsenter", "unshare", "mount"):
        if shutil.which(program) is None:
            return f"needs `{program}`"
    unshared = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "nft", "list", "tables"], capture_output=True)
    return None if unshared.returncode == 0 else "needs namespaces and nftables"


def private_directories(scratch: Path) -> None:
    """Replaces the directories that programs write to, for this process and its children."""
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    etc = scratch / "etc"
    etc.mkdir()
    for name in ETC:
        file = Path("/etc", name)
        if file.is_dir():
            shutil.copytree(file, etc / name, symlinks=True)
        elif file.exists():
            shutil.copy(file, etc / name)
    (etc / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    for name, place in (("etc", "/etc"), ("run", "/run"), ("lib", "/var/lib")):
        (scratch / name).mkdir(exist_ok=True)
        subprocess.run(["mount", "--bind", scratch / name, place], check=True)
    for name in ("state", "hub"):
        (scratch / name).mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", scratch / "state"], check=True)


def inside(arguments: argparse.Namespace) -> int:
    """Runs the steps, in namespaces that end with this process."""
    folder: Path = arguments.scratch
    private_directories(folder)
    trial = Trial(arguments.binary, arguments.seed, folder, arguments.verbose)
    try:
        if arguments.defects:
            missed = with_defects(trial)
            print(f"leaks: not found: {' '.join(missed)}" if missed else "leaks: all defects were found", flush=True)
            return 1 if missed else 0
        draw = Draw(trial, arguments.only)
        while time.time() < trial.began + arguments.seconds - RESERVE_S:
            take_step(trial, draw.next())
        finish(trial)
    finally:
        trial.stop()
    print(trial.summary(arguments.seed), flush=True)
    if trial.passed():
        return 0
    kept = ROOT / "out" / f"leaks-{arguments.seed}"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(parents=True)
    for log in folder.glob("*.log"):
        shutil.copy(log, kept)
    (kept / "findings.txt").write_text("\n".join([*trial.record, trial.summary(arguments.seed)]) + "\n", encoding="utf-8")
    again = f"make leaks SEED={arguments.seed} LEAKS_SECONDS={arguments.seconds:g}"
    if arguments.only:
        again = f"tests/leaks/leaks.py --binary {arguments.binary} --seed {arguments.seed} --seconds {arguments.seconds:g} --only "
        again += " ".join(arguments.only)
    print(f"kept in {kept}; again: {again}", flush=True)
    return 1


def outside(arguments: argparse.Namespace) -> int:
    """Starts the run in namespaces of its own."""
    if why := missing():
        print(f"leaks: left out: {why}")
        return 0
    with tempfile.TemporaryDirectory(prefix=f"ropewalk-leaks-{os.getpid()}-") as name:
        words = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, __file__]
        words += [*sys.argv[1:], "--seed", str(arguments.seed), "--scratch", name]
        return subprocess.run(words, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=lambda text: Path(text).resolve(), required=True, help="`ropewalk`")
    parser.add_argument("--seconds", type=float, default=60.0, help="no step is begun after this time (60)")
    parser.add_argument("--seed", type=int, help="of the steps")
    parser.add_argument("--only", nargs="+", choices=BY_NAME, help="these steps alone, in this order, again and again")
    parser.add_argument("--verbose", action="store_true", help="a line for each step")
    parser.add_argument("--defects", action="store_true", help="opens the client on purpose: is that found?")
    parser.add_argument("--scratch", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.seed is None:
        arguments.seed = secrets.randbelow(1_000_000)
    return inside(arguments) if arguments.scratch else outside(arguments)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
