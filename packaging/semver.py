#!/usr/bin/env python3
"""Compares the public API of each library with an earlier commit, by the rules of semantic versioning.

    packaging/semver.py v0.1.0

Fails if a change needs a higher version than Cargo.toml names. `make semver` installs cargo-semver-checks, which this
program runs, and passes the last tag.
"""

import subprocess
import sys

from common import LIBRARIES, ROOT, cargo


def main() -> int:
    """Checks all libraries, and then says which of them failed."""
    if len(sys.argv) == 1:
        print("semver: there is no tag v…, so there is nothing to compare with", file=sys.stderr)
        return 0
    (baseline,) = sys.argv[1:]
    failed = [name for name in LIBRARIES if not compatible(name, baseline)]
    if failed:
        print(f"semver: see above for {', '.join(f'ropewalk-{name}' for name in failed)}", file=sys.stderr)
    return 1 if failed else 0


def compatible(name: str, baseline: str) -> bool:
    """Whether the version of a library fits the changes of its API."""
    # With the manifest of the workspace, crates that are not published would be skipped without an error.
    manifest = ROOT / "crates" / name / "Cargo.toml"
    if was_absent(name, baseline):
        print(f"semver: ropewalk-{name} is new", file=sys.stderr)
        return True
    command = [cargo(), "semver-checks", "--manifest-path", manifest, "--package", f"ropewalk-{name}"]
    return subprocess.run([*command, "--baseline-rev", baseline], cwd=ROOT, check=False).returncode == 0


def was_absent(name: str, baseline: str) -> bool:
    """Whether the baseline has no such crate."""
    show = ["git", "cat-file", "-e", f"{baseline}:crates/{name}/Cargo.toml"]
    return subprocess.run(show, cwd=ROOT, check=False, stderr=subprocess.DEVNULL).returncode != 0


if __name__ == "__main__":
    sys.exit(main())
