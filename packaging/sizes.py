"""Limits for the sizes of what is installed: `make dist` fails if a package is larger than its limit."""

from pathlib import Path

MB = 1_000_000
# By pattern of the name. The archive holds the command compressed, and so does the Debian package.
LIMITS = {
    "ropewalk": 18 * MB,
    "libropewalk.so": 6 * MB,
    "ropewalk-*.whl": 12 * MB,
    "ropewalk_*.deb": 8 * MB,
    "ropewalk-*-linux.tar.xz": 8 * MB,
}


def too_large(files: list[Path]) -> list[str]:
    """A message for each file that is larger than its limit."""
    found = []
    for path in files:
        for pattern, limit in LIMITS.items():
            if path.match(pattern) and (size := path.stat().st_size) > limit:
                found.append(f"{path.name} has {size / MB:.2f} MB, more than its limit of {limit / MB:.0f} MB")
    return found
