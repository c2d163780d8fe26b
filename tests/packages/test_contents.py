"""What the tarball and the Debian package contain. Nothing is installed."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "packaging"))

import sizes  # noqa: E402
import wheel  # noqa: E402

UNITS = [f"ropewalk-{name}@.service" for name in ("recv", "proxy", "tunnel", "hub", "closed")]
# The most that a unit may be exposed, in tenths.
EXPOSURE_MAX = 20
NEEDS_SYSTEMD = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed"
)


def commands(ropewalk: Path, *above: str) -> list[str]:
    """All commands that the help shows, with their own commands, as `proxy-exit`."""
    shown = subprocess.run([ropewalk, *above, "--help"], check=True, capture_output=True, text=True).stdout
    section = re.search(r"^Commands:\n((?:  .*\n)+)", shown, re.MULTILINE)
    names = re.findall(r"^  ([a-z-]+)", section[1], re.MULTILINE) if section else []
    found = []
    for name in names:
        if name != "help":
            found += ["-".join([*above, name]), *commands(ropewalk, *above, name)]
    return found


def test_the_checksums_are_those_of_the_files(packages: Path):
    lines = (packages / "SHA256SUMS").read_text().splitlines()
    sums = dict(reversed(line.split("  ")) for line in lines)
    files = {path.name: path for path in packages.glob("ropewalk[-_]*")}
    assert sums.keys() == files.keys()
    for name, path in files.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == sums[name], name


@pytest.mark.parametrize(
    "name", ["ropewalk", "libropewalk.so", "ropewalk-1-abi3-x.whl", "ropewalk_1_amd64.deb", "ropewalk-1-x-linux.tar.xz"]
)
def test_a_package_over_its_limit_is_found(tmp_path: Path, name: str):
    (limit,) = (limit for pattern, limit in sizes.LIMITS.items() if Path(name).match(pattern))
    for size, found in [(limit, 0), (limit + 1, 1)]:
        (tmp_path / name).write_bytes(b"")
        os.truncate(tmp_path / name, size)
        assert len(sizes.too_large([tmp_path / name])) == found


def test_the_first_steps_succeed(tarball: Path):
    """The jobs for Windows and macOS run this program alone, so it is tried here."""
    steps = ROOT / "tests" / "packages" / "first_steps.py"
    done = subprocess.run([sys.executable, steps, tarball / "ropewalk"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    # A program that only succeeds is not enough.
    done = subprocess.run([sys.executable, steps, "/bin/false"], capture_output=True, text=True)
    assert (done.returncode, "run wifi-lte" in done.stderr) == (1, True)


def test_the_tarball_has_a_page_for_each_command(tarball: Path):
    names = commands(tarball / "ropewalk")
    assert {"run", "recv", "proxy", "proxy-exit", "bench-serve"} <= set(names)
    expected = {"ropewalk.1"} | {f"ropewalk-{name}.1" for name in names}
    assert {page.name for page in (tarball / "man" / "man1").iterdir()} == expected


def test_the_command_finds_its_library(tarball: Path, unpacked: Path):
    for command, library in [
        (tarball / "ropewalk", tarball / "libropewalk.so"),
        (unpacked / "usr" / "bin" / "ropewalk", unpacked / "usr" / "lib" / "ropewalk" / "libropewalk.so"),
    ]:
        done = subprocess.run([command, "preload", "--library"], check=True, capture_output=True, text=True)
        assert done.stdout == f"{library}\n"
        made = "import socket; print(socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132).proto)"
        line = [command, "preload", "--", "python3", "-c", made]
        done = subprocess.run(line, check=True, capture_output=True, text=True)
        assert done.stdout == "132\n"
    header = "netinet/sctp.h"
    for place in (tarball / "include", unpacked / "usr" / "include" / "ropewalk"):
        assert "sctp_bindx" in (place / header).read_text()


def test_the_tarball_has_the_documents_and_completions(tarball: Path):
    expected = ["LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY.txt", "README.md", "CHANGELOG.md", "install.md"]
    for name in [*expected, "completions/_ropewalk", "completions/ropewalk.bash", "completions/ropewalk.fish"]:
        assert (tarball / name).stat().st_size > 300, name


def test_the_tarball_depends_neither_on_its_user_nor_on_the_clock(packages: Path):
    (path,) = packages.glob("ropewalk-*-x86_64-linux.tar.xz")
    with tarfile.open(path) as packed:
        members = packed.getmembers()
    assert [member.name for member in members] == sorted((m.name for m in members), key=lambda n: n.split("/"))
    assert {(member.uid, member.gid, member.uname) for member in members} == {(0, 0, "root")}
    assert len({member.mtime for member in members}) == 1
    assert {oct(member.mode) for member in members} == {"0o644", "0o755"}


def test_the_licences_name_every_package(tarball: Path):
    text = (tarball / "LICENSE-THIRD-PARTY.txt").read_text()
    for name in ["ring", "tokio", "parquet", "flatbuffers", "uPlot", "the Rust standard library"]:
        assert re.search(rf"^\* {name}\b", text, re.MULTILINE), name
    # A tool of the tests is in no package.
    assert not re.search(r"^\* (proptest|insta) ", text, re.MULTILINE)
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in text


def field(deb: Path, name: str) -> str:
    """A field of the package's control file."""
    done = subprocess.run(["dpkg-deb", "--field", deb, name], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_the_deb_has_the_fields_that_dpkg_needs(deb: Path):
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert field(deb, "Package") == "ropewalk"
    assert field(deb, "Version") == version[1]
    assert field(deb, "Architecture") == "amd64"
    assert int(field(deb, "Installed-Size")) > 10_000
    assert field(deb, "Maintainer") and field(deb, "Description")
    # The command is static.
    assert field(deb, "Depends") == ""


def test_the_deb_has_its_files_in_their_places(unpacked: Path, tarball: Path):
    share = unpacked / "usr" / "share"
    pages = {page.name for page in (share / "man" / "man1").iterdir()}
    assert pages == {f"{page.name}.gz" for page in (tarball / "man" / "man1").iterdir()}
    for place in [
        "bash-completion/completions/ropewalk",
        "zsh/vendor-completions/_ropewalk",
        "fish/vendor_completions.d/ropewalk.fish",
        "doc/ropewalk/install.md",
        "doc/ropewalk/examples/recv.conf",
        "doc/ropewalk/examples/proxy.conf",
        "doc/ropewalk/examples/exit.conf",
    ]:
        assert (share / place).is_file(), place
    assert (unpacked / "etc" / "ropewalk").is_dir()
    assert os.access(unpacked / "usr" / "bin" / "ropewalk", os.X_OK)
    assert gzip.decompress((share / "doc/ropewalk/changelog.gz").read_bytes()).startswith(b"# Changelog")
    rights = (share / "doc/ropewalk/copyright").read_text()
    assert "Apache License" in rights and "Permission is hereby granted" in rights


def test_the_scripts_of_the_deb_are_shell(deb: Path, tmp_path: Path):
    subprocess.run(["dpkg-deb", "--control", deb, tmp_path / "control"], check=True)
    for name in ["postinst", "prerm", "postrm"]:
        script = tmp_path / "control" / name
        assert os.access(script, os.X_OK)
        subprocess.run(["sh", "-n", script], check=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_is_accepted_by_its_shell(tarball: Path, shell: str):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    name = {"bash": "ropewalk.bash", "zsh": "_ropewalk", "fish": "ropewalk.fish"}[shell]
    subprocess.run([shell, "-n", tarball / "completions" / name], check=True)


def test_the_examples_of_the_units_are_accepted_command_lines(unpacked: Path, tarball: Path):
    examples = unpacked / "usr" / "share" / "doc" / "ropewalk" / "examples"
    for name, above in [("recv.conf", ["recv"]), ("proxy.conf", ["proxy"]), ("exit.conf", ["proxy"])]:
        (line,) = re.findall(r"^OPTIONS=(.*)$", (examples / name).read_text(), re.MULTILINE)
        key = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
        words = line.replace("PUBKEY", key).split()
        # With --help, nothing runs; an unknown option before it is an error all the same.
        done = subprocess.run([tarball / "ropewalk", *above, *words, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, f"{name}: {done.stderr}"


@NEEDS_SYSTEMD
@pytest.mark.parametrize("unit", UNITS)
def test_systemd_accepts_the_unit(unpacked: Path, unit: str):
    instance = unit.replace("@.", "@example.")
    # systemd looks for the programs of a unit below the same root.
    kill = unpacked / "bin" / "kill"
    kill.parent.mkdir(exist_ok=True)
    kill.write_text("#!/bin/sh\n")
    kill.chmod(0o755)
    command = ["systemd-analyze", "verify", "--root", unpacked, "--man=no", "--recursive-errors=no", instance]
    done = subprocess.run(command, capture_output=True, text=True)
    problems = [line for line in done.stderr.splitlines() if "ropewalk" in line]
    assert (done.returncode, problems) == (0, []), done.stderr


def test_the_tarball_has_the_units_for_its_own_place(tarball: Path, unpacked: Path):
    for unit in UNITS:
        text = (tarball / "systemd" / unit).read_text()
        assert re.search(r"^ExecStart=/usr/local/bin/ropewalk ", text, re.MULTILINE), unit
        packed = (unpacked / "lib" / "systemd" / "system" / unit).read_text()
        assert text.replace("/usr/local/bin/", "/usr/bin/") == packed


def test_the_units_of_tunnels_run_accepted_command_lines(unpacked: Path, tarball: Path):
    for unit in ["ropewalk-tunnel@.service", "ropewalk-hub@.service", "ropewalk-closed@.service"]:
        text = (unpacked / "lib" / "systemd" / "system" / unit).read_text()
        (line,) = re.findall(r"^ExecStart=/usr/bin/ropewalk (.*)$", text, re.MULTILINE)
        words = line.replace("%i", "home").split()
        done = subprocess.run([tarball / "ropewalk", *words, "--help"], capture_output=True, text=True)
        assert done.returncode == 0, f"{unit}: {done.stderr}"


@NEEDS_SYSTEMD
@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_is_exposed_no_more_than_it_may(unpacked: Path, unit: str):
    path = unpacked / "lib" / "systemd" / "system" / unit
    command = ["systemd-analyze", "security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE_MAX}", path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert re.search(r"exposure level.*: [0-2]\.\d", done.stdout), done.stdout


def test_the_sources_of_the_python_package_are_a_whole_workspace(tmp_path: Path):
    wheel.source_tree(tmp_path)
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--format-version", "1", "--no-deps", "--offline"]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr
    # Only what the package needs.
    assert (tmp_path / "crates" / "py").is_dir() and not (tmp_path / "crates" / "cli").exists()
