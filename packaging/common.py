"""What all parts of the packaging share: paths, the version, and archives that are equal if their contents are."""

import os
import re
import subprocess
import tarfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRIPLE = "x86_64-unknown-linux-gnu"


def cargo() -> str:
    """The cargo to use."""
    return os.environ.get("CARGO", "cargo")


@cache
def version() -> str:
    """The version of the workspace."""
    found = re.search(r'^version = "([^"]+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    if not found:
        raise SystemExit("Cargo.toml names no version")
    return found[1]


@cache
def epoch() -> int:
    """The time of all files in the packages: SOURCE_DATE_EPOCH, else that of the last commit."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return int(given)
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return int(done.stdout)


def put(path: Path, content: str | bytes, mode: int = 0o644) -> None:
    """Writes a file and the directories above it, with modes that do not depend on the umask."""
    missing = [parent for parent in path.parents if not parent.exists()]
    for parent in reversed(missing):
        parent.mkdir()
        parent.chmod(0o755)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def archive(directory: Path, target: Path, preset: int = 9) -> None:
    """Packs a directory as .tar.xz or .tar.gz: sorted, owned by root, and with one time."""

    def plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = "root"
        member.mtime = epoch()
        return member

    if target.suffix == ".xz":
        packed = tarfile.open(target, "w:xz", preset=preset)
    else:
        # The header of gzip has a time too.
        import gzip

        stream = gzip.GzipFile(filename="", mode="wb", fileobj=target.open("wb"), mtime=epoch())
        packed = tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT)
    with packed:
        packed.add(directory, arcname=directory.name, filter=plain)
    if target.suffix != ".xz":
        stream.close()
