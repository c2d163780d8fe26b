"""The Python package: an archive of its sources, and a wheel that is built from this archive.

The wheel also contains the command. The archive does not: who installs it needs Rust, and gets the Python package.
"""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from common import NATIVE, ROOT, Architecture, archive, put, target_directory, version

# What the archive contains of the files under version control.
SOURCES = ["Cargo.toml", "Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT", "crates", "papers", "python", "scenarios", "web"]
LEFT_OUT = ["python/tests/", "python/LICENSE", "python/requirements", "python/pyproject.toml"]


def build(out: Path, scratch: Path, architecture: Architecture, command: Path, licences: str) -> list[Path]:
    """Writes the wheel, and beside the native one the archive of the sources."""
    name = f"ropewalk-{version()}"
    tree = scratch / name
    source_tree(tree)
    work = scratch / "wheel"
    shutil.copytree(tree, work)
    put(work / "LICENSE-THIRD-PARTY.txt", licences)
    put(work / "ropewalk.data" / "scripts" / "ropewalk", command.read_bytes(), 0o755)
    manifest = work / "pyproject.toml"
    text = manifest.read_text()
    put(manifest, text.replace("[tool.maturin]\n", '[tool.maturin]\ndata = "ropewalk.data"\n'))
    wheel = by_maturin(work, out, architecture)
    if architecture is not NATIVE:
        return [wheel]
    put(tree / "PKG-INFO", metadata(wheel))
    sdist = out / f"{name}.tar.gz"
    archive(tree, sdist)
    return [wheel, sdist]


def source_tree(tree: Path) -> None:
    """Copies the sources that the Python package needs, with its project file at the top."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", *SOURCES], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith(tuple(LEFT_OUT)):
            executable = os.access(ROOT / name, os.X_OK)
            put(tree / name, (ROOT / name).read_bytes(), 0o755 if executable else 0o644)
    cargo = (tree / "Cargo.toml").read_text()
    crates = ", ".join(f'"crates/{path.name}"' for path in sorted((tree / "crates").iterdir()))
    put(tree / "Cargo.toml", re.sub(r"(?m)^members = .*$", f"members = [{crates}]", cargo))
    project = (ROOT / "python" / "pyproject.toml").read_text()
    for old, new in [
        ('manifest-path = "../crates/py/Cargo.toml"', 'manifest-path = "crates/py/Cargo.toml"'),
        ('python-source = "."', 'python-source = "python"'),
        ('readme = "README.md"', 'readme = "python/README.md"'),
    ]:
        if old not in project:
            raise SystemExit(f"python/pyproject.toml has no line `{old}`")
        project = project.replace(old, new)
    put(tree / "pyproject.toml", project)


def by_maturin(work: Path, out: Path, architecture: Architecture) -> Path:
    """Builds the wheel. Zig links it with an old C library, so that it runs on any Linux since 2014."""
    before = set(out.glob("*.whl"))
    environment = {k: v for k, v in os.environ.items() if k not in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS")}
    environment |= {"CARGO_TARGET_DIR": str(target_directory())}
    # maturin finds zig in this interpreter's packages.
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    options = ["--profile", "dist", "--target", architecture.triple, "--zig", "--compatibility", "manylinux2014"]
    command = [sys.executable, "-m", "maturin", "build", *options, "--out", out]
    subprocess.run(command, cwd=work, check=True, env=environment)
    (wheel,) = set(out.glob("*.whl")) - before
    return wheel


def metadata(wheel: Path) -> bytes:
    """The metadata of a wheel, which an archive of sources has as PKG-INFO."""
    with zipfile.ZipFile(wheel) as opened:
        return opened.read(f"ropewalk-{version()}.dist-info/METADATA")
