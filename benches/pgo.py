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
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "fuzz"))
sys.dont_write_bytecode = True

import flagged  # noqa: E402


def main() -> int:
    what = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what.add_argument("--missing", action="store_true", help="say what is missing, and build nothing")
    arguments = what.parse_args()
    asked = subprocess.run(["rustc", "--print", "sysroot"], check=True, capture_output=True, text=True)
    profdata = Path(asked.stdout.strip()) / "lib/rustlib" / flagged.host() / "bin/llvm-profdata"
    if not profdata.exists():
        print("llvm-profdata is missing: `rustup component add llvm-tools` brings it", file=sys.stderr)
        return 1
    if arguments.missing:
        return 0
    target, usual = flagged.target("pgo"), os.environ.get("RUSTFLAGS", "")
    raw, profile = target / "profiles", target / "ropewalk.profdata"
    shutil.rmtree(raw, ignore_errors=True)
    learner = flagged.build(ROOT, target, f"{usual} -Cprofile-generate={raw}".strip(), ("ropewalk-cli",))
    print("training ...", file=sys.stderr)
    subprocess.run([learner / "ropewalk", "tournament", "--quiet"], check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
    subprocess.run([profdata, "merge", "-o", profile, raw], check=True)
    os.environ["ROPEWALK_PROFILE_GUIDED"] = "yes"
    packages = ("ropewalk-cli", "ropewalk-bench")
    built = flagged.build(ROOT, target, f"{usual} -Cprofile-use={profile}".strip(), packages)
    print(built / "ropewalk")
    return 0


if __name__ == "__main__":
    sys.exit(main())
