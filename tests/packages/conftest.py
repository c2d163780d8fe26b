"""The packages to try: those of `make dist` if ROPEWALK_DIST names their directory; else ones of a built command."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def new_key(directory: Path) -> Path:
    """A secret key of minisign without a password; its public key is beside it."""
    secret = directory / "minisign.key"
    generate = ["minisign", "-G", "-W", "-p", secret.with_suffix(".pub"), "-s", secret]
    subprocess.run(generate, check=True, capture_output=True)
    return secret


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory with the packages."""
    if given := os.environ.get("ROPEWALK_DIST"):
        return (ROOT / given).resolve()
    command = os.environ.get("ROPEWALK")
    if command is None:
        pytest.fail("set ROPEWALK to a built command, or ROPEWALK_DIST to the directory of `make dist`")
    out = tmp_path_factory.mktemp("dist")
    builder = [sys.executable, ROOT / "packaging" / "dist.py", "--binary", command, "--out", out]
    if shutil.which("minisign"):
        builder += ["--sign", new_key(tmp_path_factory.mktemp("key"))]
    subprocess.run([*builder, "--fast", "--no-wheel"], check=True)
    return out


@pytest.fixture(scope="session")
def deb(packages: Path) -> Path:
    """The Debian package."""
    (found,) = packages.glob("ropewalk_*_amd64.deb")
    return found


@pytest.fixture(scope="session")
def tarball(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked tarball."""
    (found,) = packages.glob("ropewalk-*-x86_64-linux.tar.xz")
    target = tmp_path_factory.mktemp("tarball")
    with tarfile.open(found) as packed:
        packed.extractall(target, filter="data")
    (top,) = target.iterdir()
    return top


@pytest.fixture(scope="session")
def unpacked(deb: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the Debian package, not installed."""
    target = tmp_path_factory.mktemp("deb")
    subprocess.run(["dpkg-deb", "--extract", deb, target], check=True)
    return target
