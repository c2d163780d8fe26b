"""What all parts of the packaging share: paths, the version, and archives that are equal if their contents are."""

import os
import platform
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
# The crates that other programs may use.
LIBRARIES = ("base", "engine", "trace", "netsim", "models", "scenario", "lab", "runtime", "apps")


@dataclass(frozen=True)
class Architecture:
    """A processor that packages are built for."""

    name: str
    debian: str

    @property
    def triple(self) -> str:
        """What rustc calls it."""
        return f"{self.name}-unknown-linux-gnu"

    @property
    def foreign(self) -> bool:
        """Whether this machine has another processor."""
        return self.name != platform.machine()

    @property
    def linker(self) -> str:
        """The C compiler that links for it: Debian's cross compiler if it is foreign."""
        return f"{self.name}-linux-gnu-gcc" if self.foreign else "cc"

    def missing(self) -> str | None:
        """What a build for it needs and this machine lacks."""
        rustc = os.environ.get("RUSTC", "rustc")
        command = [rustc, "--print", "target-libdir", "--target", self.triple]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        if not Path(done.stdout.strip()).is_dir():
            return f"Rust's library for {self.triple} (rustup target add {self.triple})"
        if shutil.which(self.linker) is None:
            return f"{self.linker} (Debian: gcc-{self.name}-linux-gnu libc6-dev-{self.debian}-cross)"
        return None


ARCHITECTURES = {one.name: one for one in (Architecture("x86_64", "amd64"), Architecture("aarch64", "arm64"))}
NATIVE = ARCHITECTURES["x86_64"]


def cargo() -> str:
    """The cargo to use."""
    return os.environ.get("CARGO", "cargo")


def target_directory() -> Path:
    """Where cargo builds."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()


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
