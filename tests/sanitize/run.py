#!/usr/bin/env python3
"""Runs the tests of `crates/sockets`, which has the unsafe code, under the address sanitizer: `make sanitize`.

    tests/sanitize/run.py                 all tests: also iperf3, ncat, lksctp-tools, Python, Erlang and usrsctp
    tests/sanitize/run.py calls::         those whose names contain this: the C programs alone
    tests/sanitize/run.py --quick         the C programs, after `make test-rust`: compiles little

The library, all crates below it and the tests are compiled with the sanitizer of the stable Rust compiler, which
`RUSTC_BOOTSTRAP` makes available. With `--quick` only the library itself is, and what is linked with it comes from the usual
build; the sanitizer then does not see what the crates below do with their own memory.

The compiler has the sanitizer's runtime as an archive, for Rust programs. C programs and programs of others need it before
the library, so this script links a shared library from the archive. The tests find it in `ROPEWALK_SANITIZER`; they compile
their C programs with the sanitizer too, and preload the runtime into others.

Leaks are reported at the end of the C programs. The programs of others are not free of leaks.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CARGO = os.environ.get("CARGO", "cargo")
SANITIZER = "-Zsanitizer=address"
PACKAGE = "ropewalk-sockets"


def output(*command: str | Path, **options) -> str:
    """What a command prints."""
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, **options).stdout


def archive(host: str) -> Path | None:
    """The sanitizer's runtime for Rust programs; None if the compiler has none for this machine."""
    libraries = Path(output("rustc", "--print", "sysroot").strip()) / "lib/rustlib" / host / "lib"
    return next(libraries.glob("librustc-*_rt.asan.a"), None)


def runtime(source: Path, folder: Path) -> Path:
    """The sanitizer's runtime as a shared library."""
    copy, shared = folder / "asan.a", folder / "libropewalk-asan.so"
    shutil.copyfile(source, copy)
    # This object begins the runtime before a program, which a shared library cannot.
    output("ar", "d", copy, "asan_preinit.cpp.o")
    whole = ["-Wl,--whole-archive", copy, "-Wl,--no-whole-archive"]
    output("cc", "-shared", "-o", shared, *whole, "-lpthread", "-ldl", "-lm", "-lrt", "-lresolv")
    return shared


def built() -> tuple[dict[str, Path], Path]:
    """The library of each package in the usual build of all tests, and the program with the tests of the sockets."""
    libraries, tests = {}, None
    told = output(CARGO, "test", "--workspace", "--no-run", "--quiet", "--message-format=json")
    for line in told.splitlines():
        message = json.loads(line)
        if message["reason"] != "compiler-artifact":
            continue
        if message["executable"] and message["target"]["name"] == "all" and f"{PACKAGE}@" in message["package_id"]:
            tests = Path(message["executable"])
        for file in message["filenames"]:
            if file.endswith(".rlib") and not message["profile"]["test"]:
                libraries[message["package_id"]] = Path(file)
    assert tests is not None, "cargo has built no test program of the sockets"
    return libraries, tests


def library(folder: Path, libraries: dict[str, Path]) -> Path:
    """The library alone, compiled with the sanitizer and linked with crates of the usual build."""
    metadata = json.loads(output(CARGO, "metadata", "--format-version", "1", "--quiet"))
    [package] = [package for package in metadata["packages"] if package["name"] == PACKAGE]
    [node] = [node for node in metadata["resolve"]["nodes"] if node["id"] == package["id"]]
    externs, folders = [], set()
    for needed in node["deps"]:
        if any(kind["kind"] is None for kind in needed["dep_kinds"]):
            file = libraries[needed["pkg"]]
            externs += ["--extern", f"{needed['name']}={file}"]
            folders.add(file.parent)
    [source] = [target for target in package["targets"] if "cdylib" in target["kind"]]
    result = folder / "libropewalk.so"
    options = ["-Copt-level=1", "-Cdebuginfo=line-tables-only", "-Cdebug-assertions=on", "--cap-lints=allow"]
    search = [f"-Ldependency={place}" for place in sorted(folders)]
    command = ["rustc", "--crate-name", source["name"], "--edition", source["edition"], "--crate-type", "cdylib"]
    command += [source["src_path"], "-o", result, SANITIZER, *options, *externs, *search]
    output(*command, env=os.environ | {"RUSTC_BOOTSTRAP": "1"})
    return result


def main() -> int:
    """Builds and runs the tests; the exit status is that of the tests, or 1 if the sanitizer has reported anything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="compile the library alone, and run the C programs")
    parser.add_argument("filters", nargs="*", help="tests whose names contain one of these (all)")
    asked = parser.parse_args()
    host = re.search(r"host: (\S+)", output("rustc", "-vV"))[1]
    source = archive(host)
    if source is None:
        print(f"skipped: the Rust compiler has no address sanitizer for {host}")
        return 0
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "sanitize"
    reports = target / "reports"
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    environment = os.environ | {
        "ROPEWALK_SANITIZER": str(runtime(source, target)),
        # Programs of others may close their standard error, and some tests do not look at it.
        "ROPEWALK_SANITIZER_REPORTS": str(reports / "report"),
    }
    if asked.quick:
        libraries, tests = built()
        environment["ROPEWALK_LIBRARY"] = str(library(target, libraries))
        command = [tests, *(asked.filters or ["calls::"])]
    else:
        environment |= {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": SANITIZER, "CARGO_TARGET_DIR": str(target)}
        # With `--target` the flags are not for build scripts.
        command = [CARGO, "test", "--package", PACKAGE, "--target", host, "--", *asked.filters]
    status = subprocess.run(command, cwd=ROOT, env=environment).returncode
    found = sorted(reports.iterdir())
    for report in found:
        print(f"\n== {report.name}\n{report.read_text(errors='replace')}", flush=True)
    return status or int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
