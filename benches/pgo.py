#!/usr/bin/env python3
"""Builds the command and the bench as fast as the compiler can: guided by a profile of training runs.

    benches/pgo.py            target/pgo/HOST/release/ropewalk, and ropewalk-bench beside it
    benches/pgo.py --missing  says what it needs and has not; builds nothing

The profile tells what is taken how often, so that what is seldom taken moves out of the way. It comes from a
tournament: the ready scenarios under all schedulers and both protocols, without the large ones by which speed is
measured. Needs `rustup component add llvm-tools`, and twice the time of an optimised build. Results are the same
to the last byte.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def ask(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def build(target: Path, host: str, flags: str, packages: list[str]) -> Path:
    # With `--target` the flags are not for build scripts.
    command = ["cargo", "build", "--release", "--target", host]
    command += [argument for package in packages for argument in ("-p", package)]
    flags = f"{os.environ.get('RUSTFLAGS', '')} {flags}".strip()
    environment = os.environ | {"RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(target)}
    subprocess.run(command, check=True, cwd=ROOT, env=environment)
    return target / host / "release"


def main() -> int:
    what = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what.add_argument("--missing", action="store_true", help="say what is missing, and build nothing")
    arguments = what.parse_args()
    host = re.search(r"host: (\S+)", ask("rustc", "-vV"))[1]
    profdata = Path(ask("rustc", "--print", "sysroot").strip()) / "lib/rustlib" / host / "bin/llvm-profdata"
    if not profdata.exists():
        print("llvm-profdata is missing: `rustup component add llvm-tools` brings it", file=sys.stderr)
        return 1
    if arguments.missing:
        return 0
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve() / "pgo"
    raw, profile = target / "profiles", target / "ropewalk.profdata"
    shutil.rmtree(raw, ignore_errors=True)
    learner = build(target, host, f"-Cprofile-generate={raw}", ["ropewalk-cli"])
    print("training ...", file=sys.stderr)
    subprocess.run([learner / "ropewalk", "tournament", "--quiet"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    subprocess.run([profdata, "merge", "-o", profile, raw], check=True)
    os.environ["ROPEWALK_PROFILE_GUIDED"] = "yes"
    built = build(target, host, f"-Cprofile-use={profile}", ["ropewalk-cli", "ropewalk-bench"])
    print(built / "ropewalk")
    return 0


if __name__ == "__main__":
    sys.exit(main())
