"""The Python package: an archive of its sources, and a wheel that is built from this archive.

The wheel also contains the command. The archive does not: who installs it needs Rust, and gets the Python package.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from common import NATIVE, ROOT, Architecture, archive, cargo, put, target_directory, version

# What the archive contains of the files under version control.
SOURCES = ["Cargo.toml", "Cargo.lock", "LICENSE-APACHE", "LICENSE-MIT", "papers", "python", "scenarios", "web"]
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


def needed_crates() -> list[str]:
    """The directories of the Python package's crate and of all crates of the workspace that it needs. Cargo reads the manifests
    of those that only tests need, too."""
    command = [cargo(), "metadata", "--format-version", "1", "--no-deps", "--locked"]
    shown = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    packages = {package["name"]: package for package in json.loads(shown.stdout)["packages"]}
    needed, waiting = set(), ["ropewalk-py"]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed.add(name)
            waiting += [one["name"] for one in packages[name]["dependencies"] if one["name"] in packages]
    places = (Path(packages[name]["manifest_path"]).parent for name in needed)
    return sorted(place.relative_to(ROOT).as_posix() for place in places)


def source_tree(tree: Path) -> None:
    """Copies the sources that the Python package needs, with its project file at the top."""
    crates = needed_crates()
    listed = subprocess.run(
        ["git", "ls-files", "-z", *SOURCES, *crates], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if not name.startswith(tuple(LEFT_OUT)):
            executable = os.access(ROOT / name, os.X_OK)
            put(tree / name, (ROOT / name).read_bytes(), 0o755 if executable else 0o644)
    manifest = (tree / "Cargo.toml").read_text()
    members = ", ".join(f'"{crate}"' for crate in crates)
    put(tree / "Cargo.toml", re.sub(r"(?m)^members = .*$", f"members = [{members}]", manifest))
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
    options += ["--compression-level", "9"]
    command = [sys.executable, "-m", "maturin", "build", *options, "--out", out]
    subprocess.run(command, cwd=work, check=True, env=environment)
    (wheel,) = set(out.glob("*.whl")) - before
    return wheel


def metadata(wheel: Path) -> bytes:
    """The metadata of a wheel, which an archive of sources has as PKG-INFO."""
    with zipfile.ZipFile(wheel) as opened:
        return opened.read(f"ropewalk-{version()}.dist-info/METADATA")
