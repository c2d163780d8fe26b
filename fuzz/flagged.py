"""Optimised builds with flags of the compiler's own, beside what the usual ones leave."""

import os
import re
import subprocess
from pathlib import Path


def host() -> str:
    """The triple of this machine."""
    version = subprocess.run(["rustc", "-vV"], check=True, capture_output=True, text=True).stdout
    return re.search(r"host: (\S+)", version)[1]


def target(name: str) -> Path:
    """The folder of such a build, in that of the usual ones."""
    usual = os.environ.get("CARGO_TARGET_DIR") or Path(__file__).resolve().parent.parent / "target"
    return Path(usual).resolve() / name


def build(room: Path, folder: Path, flags: str, packages: tuple[str, ...] = ()) -> Path:
    """Where the programs of these packages are, or of all in `room`."""
    # With `--target` the flags are not for build scripts.
    command = ["cargo", "build", "--release", "--target", host()]
    command += [argument for package in packages for argument in ("-p", package)]
    environment = os.environ | {"RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(folder)}
    subprocess.run(command, check=True, cwd=room, env=environment)
    return folder / host() / "release"
