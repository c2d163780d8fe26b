#!/usr/bin/env python3
"""Measures the time from a package of `make dist` to the first result: the installation and the first commands of README.

    packaging/first_result.py dist              three times each by the wheel and by the Debian package; prints a table
    packaging/first_result.py dist --times 5

The wheel is installed into a new virtual environment without Rust on PATH, and pip downloads what it requires, without
its cache. The Debian package is installed by apt into a new minimal Debian, whose own installation is not counted; it
needs root and mmdebstrap.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path


def main() -> None:
    """Prints the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", type=Path, help="the directory of `make dist`")
    parser.add_argument("--times", type=int, default=3, help="how often each is measured (3)")
    options = parser.parse_args()
    (wheel,) = options.packages.resolve().glob("ropewalk-*x86_64.whl")
    (deb,) = options.packages.resolve().glob("ropewalk_*_amd64.deb")
    print(f"load before: {os.getloadavg()[0]:.2f}")
    for package, by in [(wheel, by_wheel), (deb, by_deb)]:
        seconds = sorted(measured(package, by) for _ in range(options.times))
        shown = ", ".join(f"{one:.1f}" for one in seconds)
        print(f"{package.name}: median {statistics.median(seconds):.1f} s of {shown} s")


def measured(package: Path, by: Callable[[Path, Path], float]) -> float:
    """The seconds of one installation in an empty directory."""
    with tempfile.TemporaryDirectory(prefix="ropewalk-first-") as directory:
        return by(package, Path(directory))


def by_wheel(package: Path, directory: Path) -> float:
    """A virtual environment, pip, and the first result."""
    venv = directory / "venv"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO", "RUST"))}
    environment = kept | {"PATH": str(venv / "bin")}
    if shutil.which("cargo", path=environment["PATH"]) is not None:
        raise SystemExit("cargo is on the PATH")
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, env=kept)
    pip = [venv / "bin" / "pip", "install", "--quiet", "--no-cache-dir", "--only-binary=:all:", package]
    subprocess.run(pip, check=True, env=environment)
    first_result([venv / "bin" / "ropewalk"], directory, environment)
    return time.monotonic() - began


def by_deb(package: Path, directory: Path) -> float:
    """apt, and the first result, in a Debian with apt."""
    root = directory / "root"
    make = ["mmdebstrap", "--quiet", "--variant=apt", "--mode=root", "bookworm", root]
    sources = [path for path in Path("/etc/apt").glob("sources.list.d/debian.sources")] or ["/etc/apt/sources.list"]
    subprocess.run([*make, sources[0]], check=True, stderr=subprocess.DEVNULL)
    shutil.copy(package, root / package.name)
    within = ["chroot", root, "env", "--ignore-environment", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
    began = time.monotonic()
    apt = [*within, "apt-get", "install", "--yes", "--quiet", f"/{package.name}"]
    subprocess.run(apt, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first_result([*within, "ropewalk"], directory, None)
    return time.monotonic() - began


def first_result(ropewalk: list, directory: Path, environment: dict[str, str] | None) -> None:
    """`ropewalk new` and `ropewalk run`, as on README."""
    for words in (["new", "mine.toml"], ["run", "mine.toml"]):
        command = [*ropewalk, *words]
        done = subprocess.run(command, check=True, cwd=directory, env=environment, capture_output=True, text=True)
    if "goodput" not in done.stdout:
        raise SystemExit(f"no result:\n{done.stdout}")


if __name__ == "__main__":
    main()
