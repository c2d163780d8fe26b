"""The script that checks the packages and installs the command, and the list of what they contain."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import new_key

NEEDS_MINISIGN = pytest.mark.skipif(shutil.which("minisign") is None, reason="minisign is not installed")


@pytest.fixture
def release(packages: Path, tmp_path: Path) -> Path:
    """A copy of the packages that a test may change."""
    if not (packages / "SHA256SUMS.minisig").exists():
        pytest.skip("these packages are not signed")
    target = tmp_path / "release"
    shutil.copytree(packages, target)
    return target


def install(release: Path, prefix: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Runs the script."""
    command = ["sh", release / "install.sh", "--prefix", prefix, *options]
    return subprocess.run(command, capture_output=True, text=True)


@NEEDS_MINISIGN
def test_a_signed_archive_is_installed_with_its_pages_and_completions(release: Path, tmp_path: Path):
    done = install(release, tmp_path / "prefix")
    assert done.returncode == 0, done.stderr
    shown = subprocess.run([tmp_path / "prefix/bin/ropewalk", "--version"], check=True, capture_output=True, text=True)
    assert shown.stdout.strip() in done.stdout
    for name in ["share/man/man1/ropewalk-run.1", "share/bash-completion/completions/ropewalk"]:
        assert (tmp_path / "prefix" / name).is_file(), name


def change_archive(release: Path) -> None:
    """Somebody exchanges the archive."""
    (archive,) = release.glob("*-linux.tar.xz")
    archive.write_bytes(archive.read_bytes() + b"x")


def change_archive_and_sums(release: Path) -> None:
    """Somebody exchanges the archive and its checksum."""
    change_archive(release)
    (archive,) = release.glob("*-linux.tar.xz")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    (release / "SHA256SUMS").write_text(f"{digest}  {archive.name}\n")


def sign_with_another_key(release: Path) -> None:
    """Somebody signs with a key of their own."""
    change_archive_and_sums(release)
    command = ["minisign", "-S", "-s", new_key(release), "-m", release / "SHA256SUMS"]
    subprocess.run(command, check=True, capture_output=True)


def remove_signature(release: Path) -> None:
    """The signature is missing."""
    (release / "SHA256SUMS.minisig").unlink()


@NEEDS_MINISIGN
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (change_archive, "the checksum of ropewalk-"),
        (change_archive_and_sums, "the signature of SHA256SUMS is not by"),
        (sign_with_another_key, "the signature of SHA256SUMS is not by"),
        (remove_signature, "these packages are not signed"),
    ],
)
def test_what_was_changed_is_not_installed(release: Path, tmp_path: Path, change, message: str):
    change(release)
    done = install(release, tmp_path / "prefix")
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / "prefix").exists()


@NEEDS_MINISIGN
def test_an_unsigned_archive_is_installed_only_on_request(release: Path, tmp_path: Path):
    script = (release / "install.sh").read_text().splitlines(keepends=True)
    lines = ['public_key=""\n' if line.startswith('public_key="RW') else line for line in script]
    (release / "install.sh").write_text("".join(lines))
    assert lines != script
    refused = install(release, tmp_path / "prefix")
    assert (refused.returncode, "--key" in refused.stderr) == (1, True)
    assert install(release, tmp_path / "prefix", "--no-signature").returncode == 0


def test_the_bill_of_materials_names_the_crates_with_licence_and_checksum(packages: Path):
    (path,) = packages.glob("ropewalk-*.cdx.json")
    bill = json.loads(path.read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "ropewalk")
    crates = {one["name"]: one for one in bill["components"]}
    assert {"ring", "tokio", "parquet", "clap", "pyo3"} <= crates.keys()
    # A tool of the tests is in no package.
    assert not {"proptest", "insta"} & crates.keys()
    for name, one in crates.items():
        assert one["purl"] == f"pkg:cargo/{name}@{one['version']}" or name in one["purl"]
        assert one["licenses"] and one["hashes"][0]["alg"] == "SHA-256", name
    needs = {one["ref"]: one.get("dependsOn", []) for one in bill["dependencies"]}
    assert len(needs["ropewalk"]) == len(bill["components"])
    assert crates["bytes"]["bom-ref"] in needs[crates["tokio"]["bom-ref"]]
