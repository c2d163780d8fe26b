#!/usr/bin/env python3
"""Builds the packages of Ropewalk: a static command, a Debian package, a wheel and an archive of its sources.

`make dist` runs it. `--binary` packs a command that is already built, and `--fast` compresses little: tests use both.
"""

import argparse
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import deb
import wheel
from common import ROOT, TRIPLE, archive, cargo, version
from contents import Contents, contents, tarball_tree

# For all crates. A static command needs no C library on the machine. getrandom would look for a function of the
# dynamic library, does not find it there, and would open /dev/urandom, which is missing in an empty root: it
# makes the system call instead. Packed relocations save half a megabyte.
FLAGS = ["-C", "target-feature=+crt-static", "-C", "link-arg=-Wl,-z,pack-relative-relocs"]
FLAGS += ["--cfg", 'getrandom_backend="linux_raw"']
# For the command. Functions with equal code are stored once. This needs lld, which rustc uses by default here.
LINK = ["-C", "strip=symbols", "-C", "link-arg=-Wl,--icf=all"]


def main() -> None:
    """Builds what the options name."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, help="pack this command instead of building one")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="directory to write to")
    parser.add_argument("--fast", action="store_true", help="compress little")
    parser.add_argument("--no-wheel", action="store_true", help="leave out the Python package")
    options = parser.parse_args()
    command = (options.binary or built()).resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    for old in [*options.out.glob("ropewalk[-_]*"), *options.out.glob("SHA256SUMS")]:
        old.unlink()
    with tempfile.TemporaryDirectory(prefix="ropewalk-dist-") as scratch:
        parts = contents(command, Path(scratch))
        made = [
            tarball(options.out, Path(scratch), parts, options.fast),
            deb.build(options.out, Path(scratch), parts, options.fast),
        ]
        if not options.no_wheel:
            made += wheel.build(options.out, Path(scratch), command, parts.licences)
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(made)]
    (options.out / "SHA256SUMS").write_text("".join(sums))
    for path in [command, *made]:
        print(f"{path.stat().st_size / 1e6:7.2f} MB  {path}")


def built() -> Path:
    """Builds the static command."""
    # With --target, the flags do not apply to build scripts and macros, which cannot be static.
    command = [cargo(), "rustc", "--locked", "--profile", "dist", "--target", TRIPLE]
    environment = os.environ | {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join(FLAGS)}
    command += ["--package", "ropewalk-cli", "--bin", "ropewalk", "--", *LINK]
    subprocess.run(command, cwd=ROOT, check=True, env=environment)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / TRIPLE / "dist" / "ropewalk"


def tarball(out: Path, scratch: Path, parts: Contents, fast: bool) -> Path:
    """Writes ropewalk-VERSION-x86_64-linux.tar.xz."""
    name = f"ropewalk-{version()}-x86_64-linux"
    tarball_tree(scratch / name, parts)
    target = out / f"{name}.tar.xz"
    archive(scratch / name, target, 0 if fast else 9)
    return target


if __name__ == "__main__":
    main()
