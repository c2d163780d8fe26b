#!/usr/bin/env python3
"""Builds the packages of Ropewalk: a static command with a library to preload, a Debian package and a wheel.

`make dist` runs it. `--binary` packs a command that is already built, with the library beside it, and `--fast` compresses
little: tests use both.
"""

import argparse
import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import bill
import deb
import sizes
import wheel
from common import (
    ARCHITECTURES,
    NATIVE,
    PACKAGING,
    ROOT,
    Architecture,
    archive,
    cargo,
    put,
    target_directory,
    version,
)
from contents import LIBRARY, Contents, contents, tarball_tree

# For all crates. A static command needs no C library on the machine. getrandom would look for a function of the
# dynamic library, does not find it there, and would open /dev/urandom, which is missing in an empty root: it
# makes the system call instead.
FLAGS = ["-C", "target-feature=+crt-static", "--cfg", 'getrandom_backend="linux_raw"']
# Packed relocations save half a megabyte.
RELOCATIONS = ["-C", "link-arg=-Wl,-z,pack-relative-relocs"]
# For the command. Functions with equal code are stored once. This needs lld, which rustc uses by default on x86_64.
FOLD = ["-C", "link-arg=-Wl,--icf=all"]
PROFILE = "dist"


def main() -> None:
    """Builds what the options name."""
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    for pattern in ("ropewalk[-_]*", "SHA256SUMS*", "install.sh"):
        for old in options.out.glob(pattern):
            old.unlink()
    commands, libraries = {}, {}
    for architecture in selected(options):
        ready = options.binary if architecture is NATIVE else None
        commands[architecture] = (ready or built(architecture, options.profile)).resolve()
        libraries[architecture] = beside(ready) if ready else library(architecture, options.profile)
    made = []
    with tempfile.TemporaryDirectory(prefix="ropewalk-dist-") as scratch:
        parts = contents(commands[NATIVE], libraries[NATIVE], Path(scratch))
        made.append(bill.build(options.out))
        for architecture, command in commands.items():
            tree = Path(scratch) / architecture.name
            own = parts.of(command, libraries[architecture])
            made.append(tarball(options.out, tree, architecture, own, options.fast))
            made.append(deb.build(options.out, tree, architecture, own, options.fast))
            if not options.no_wheel:
                made += wheel.build(options.out, tree, architecture, command, parts.licences)
    sign(options.out, sorted(made), options.sign)
    for path in [*commands.values(), *libraries.values(), *made]:
        print(f"{path.stat().st_size / 1e6:7.2f} MB  {path}")
    # A command that was built elsewhere may be one with debug symbols, as in the tests.
    if not options.binary and (problems := sizes.too_large([*commands.values(), *libraries.values(), *made])):
        raise SystemExit("\n".join(problems))


def arguments() -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", type=Path, help="pack this command for x86_64 instead of building one")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="directory to write to")
    parser.add_argument("--arch", action="append", choices=ARCHITECTURES, help="default: all that can be built here")
    parser.add_argument("--profile", default=PROFILE, help="the profile of a command that is built (dist)")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign the checksums with this secret key of minisign")
    parser.add_argument("--fast", action="store_true", help="compress little")
    parser.add_argument("--no-wheel", action="store_true", help="leave out the Python package")
    return parser.parse_args()


def selected(options: argparse.Namespace) -> list[Architecture]:
    """The architectures to build for. The command of the first prints the manual pages for all."""
    if options.binary and not options.arch:
        return [NATIVE]
    found = [NATIVE]
    for architecture in ARCHITECTURES.values():
        if architecture is NATIVE or (options.arch and architecture.name not in options.arch):
            continue
        if (missing := architecture.missing()) is None:
            found.append(architecture)
        elif options.arch:
            raise SystemExit(f"{architecture.name} cannot be built: {missing} is missing")
        else:
            print(f"no packages for {architecture.name}: {missing} is missing")
    return found


def built(architecture: Architecture, profile: str) -> Path:
    """Builds the static command."""
    # With --target, the flags do not apply to build scripts and macros, which cannot be static.
    command = [cargo(), "rustc", "--locked", "--profile", profile, "--target", architecture.triple]
    flags, link = list(FLAGS), ["-C", "strip=symbols"]
    if architecture is NATIVE:
        flags, link = flags + RELOCATIONS, link + FOLD
    linker = f"CARGO_TARGET_{architecture.triple.upper().replace('-', '_')}_LINKER"
    environment = {"CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags), linker: architecture.linker}
    command += ["--package", "ropewalk-cli", "--bin", "ropewalk", "--", *link]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | environment)
    return target_directory() / architecture.triple / ("debug" if profile == "dev" else profile) / "ropewalk"


def library(architecture: Architecture, profile: str) -> Path:
    """Builds the library that `ropewalk preload` loads into programs. These have a dynamic C library."""
    command = [cargo(), "rustc", "--locked", "--profile", profile, "--target", architecture.triple]
    linker = f"CARGO_TARGET_{architecture.triple.upper().replace('-', '_')}_LINKER"
    environment = {"CARGO_ENCODED_RUSTFLAGS": "", linker: architecture.linker}
    command += ["--package", "ropewalk-sockets", "--lib", "--crate-type", "cdylib", "--", "-C", "strip=symbols"]
    subprocess.run(command, cwd=ROOT, check=True, env=os.environ | environment)
    return target_directory() / architecture.triple / ("debug" if profile == "dev" else profile) / LIBRARY


def beside(command: Path) -> Path:
    """The library that was built with a command: beside it, or where tests have it."""
    for place in (command.parent / LIBRARY, command.parent / "deps" / LIBRARY):
        if place.is_file():
            return place.resolve()
    raise SystemExit(f"{LIBRARY} is not beside {command}: cargo build -p ropewalk-sockets")


def tarball(out: Path, scratch: Path, architecture: Architecture, parts: Contents, fast: bool) -> Path:
    """Writes ropewalk-VERSION-ARCHITECTURE-linux.tar.xz."""
    name = f"ropewalk-{version()}-{architecture.name}-linux"
    tarball_tree(scratch / name, parts)
    target = out / f"{name}.tar.xz"
    archive(scratch / name, target, 0 if fast else 9)
    return target


def sign(out: Path, made: list[Path], key: Path | None) -> None:
    """Writes the checksums, their signature if there is a key, and the script that checks both and installs."""
    sums = out / "SHA256SUMS"
    put(sums, "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made))
    script = (PACKAGING / "install.sh").read_text()
    if key is not None:
        comment = f"ropewalk {version()}"
        # With a password it asks on the terminal.
        subprocess.run(["minisign", "-S", "-s", key, "-m", sums, "-t", comment], check=True, stdout=subprocess.DEVNULL)
        public = key.with_suffix(".pub").read_text().splitlines()[1]
        script = script.replace('public_key=""', f'public_key="{public}"')
    put(out / "install.sh", script, 0o755)


if __name__ == "__main__":
    main()
