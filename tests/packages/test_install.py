"""Installs each package of `make dist` in a clean place, and runs the first commands of README there."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif("ROPEWALK_DIST" not in os.environ, reason="`make test-dist` runs it")
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
sys.path.insert(0, str(ROOT / "packaging"))

import sizes  # noqa: E402


def first_commands(ropewalk: list[str | Path], directory: Path, environment: dict[str, str] | None = None) -> None:
    """`ropewalk new` and `ropewalk run`, as on README."""
    assert "\nropewalk run mine.toml\n" in (ROOT / "README.md").read_text()
    for words in (["new", "mine.toml"], ["run", "mine.toml"]):
        done = subprocess.run([*ropewalk, *words], cwd=directory, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert re.search(r"^goodput +2\.\d+ Mbit/s", done.stdout, re.MULTILINE), done.stdout


# All packages.


def test_no_package_is_over_its_limit(packages: Path):
    files = [*packages.glob("ropewalk[-_]*")]
    assert sizes.too_large(files) == []
    # Each limit is for one of the packages, except those of the command and of the library, which are inside them.
    unused = {pattern for pattern in sizes.LIMITS if not any(path.match(pattern) for path in files)}
    assert unused == {"ropewalk", "libropewalk.so"}


# The static command.


def test_the_command_is_static_and_small(tarball: Path):
    command = tarball / "ropewalk"
    assert sizes.too_large([command]) == []
    headers = subprocess.run(["readelf", "--wide", "--program-headers", command], check=True, capture_output=True)
    assert b"INTERP" not in headers.stdout
    needed = subprocess.run(["readelf", "--dynamic", command], check=True, capture_output=True, text=True).stdout
    assert "NEEDED" not in needed


@pytest.fixture
def empty_root(tarball: Path, tmp_path: Path) -> Path:
    """A root with nothing but the command: no library, no /dev, no /proc, no /etc."""
    shutil.copy(tarball / "ropewalk", tmp_path / "ropewalk")
    return tmp_path


@NEEDS_ROOT
def test_the_command_runs_in_an_empty_root(empty_root: Path):
    first_commands(["chroot", empty_root, "/ropewalk"], ROOT)
    assert (empty_root / "mine.toml").is_file()


@NEEDS_ROOT
def test_a_sealed_file_crosses_an_empty_root_by_a_name_of_its_hosts_file(empty_root: Path):
    (empty_root / "etc").mkdir()
    (empty_root / "etc" / "hosts").write_text("127.0.0.1 far.example\n")
    (empty_root / "data").write_bytes(os.urandom(200_000))
    within = ["chroot", empty_root, "/ropewalk"]
    for name in ("me.key", "far.key"):
        subprocess.run([*within, "keygen", f"/{name}"], check=True, capture_output=True)
    shown = subprocess.run([*within, "keygen", "--public", "/far.key"], check=True, capture_output=True, text=True)
    receive = [*within, "recv", "/inbox", "--once", "--key", "/far.key", "--listen", "127.0.0.1:9877"]
    with subprocess.Popen(receive, stderr=subprocess.PIPE, text=True) as receiver:
        time.sleep(1)
        send = [*within, "send", "/data", "--to", "far.example:9877", "--key", "/me.key"]
        done = subprocess.run([*send, "--peer", shown.stdout.strip()], capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            receiver.kill()
        log = receiver.communicate(timeout=60)[1]
    assert (done.returncode, receiver.returncode) == (0, 0), done.stderr + log
    (received,) = (path for path in (empty_root / "inbox").rglob("data") if path.is_file())
    assert received.read_bytes() == (empty_root / "data").read_bytes()


@contextmanager
def name_server(address: str) -> Iterator[list[str]]:
    """Answers every question for an IPv4 address with 127.0.0.1; yields the names that were asked for."""
    asked: list[str] = []

    def serve(server: socket.socket) -> None:
        while True:
            query, client = server.recvfrom(512)
            if not query:
                return
            end = query.index(b"\0", 12) + 5
            asked.append(b".".join(re.findall(rb"[a-z]+", query[12 : end - 5])).decode())
            is_a = query[end - 4 : end - 2] == b"\0\1"
            head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if is_a else b"\0\0") + b"\0\0\0\0"
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x7f\0\0\1" if is_a else b""
            server.sendto(head + query[12:end] + answer, client)

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((address, 53))
        thread = threading.Thread(target=serve, args=(server,))
        thread.start()
        yield asked
        server.sendto(b"", (address, 53))
        thread.join()


@NEEDS_ROOT
def test_a_name_is_resolved_in_an_empty_root_by_a_name_server(empty_root: Path):
    (empty_root / "etc").mkdir()
    (empty_root / "etc" / "resolv.conf").write_text("nameserver 127.0.0.77\n")
    within = ["chroot", empty_root, "/ropewalk"]
    receive = [*within, "recv", "/inbox", "--once", "--plain", "--listen", "127.0.0.1:9876"]
    with name_server("127.0.0.77") as asked, subprocess.Popen(receive, stderr=subprocess.DEVNULL) as receiver:
        time.sleep(1)
        send = [*within, "send", "/etc/resolv.conf", "--plain", "--to", "far.example:9876"]
        done = subprocess.run(send, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            receiver.kill()
    assert (done.returncode, receiver.returncode) == (0, 0), done.stderr
    assert "far.example" in asked


@NEEDS_ROOT
def test_an_unknown_name_is_an_error_that_names_the_cause(empty_root: Path):
    send = ["chroot", empty_root, "/ropewalk", "send", "/ropewalk", "--plain", "--to", "far.example"]
    done = subprocess.run(send, capture_output=True, text=True)
    # The name may exist later: the arguments are not wrong, but the run failed.
    assert done.returncode == 1
    assert "far.example" in done.stderr and "name servers" in done.stderr, done.stderr


@NEEDS_ROOT
@pytest.mark.skipif(shutil.which("buildah") is None, reason="buildah is not installed")
def test_the_container_has_the_command_and_the_licences_alone(packages: Path):
    def buildah(*words: str) -> str:
        return subprocess.run(["buildah", *words], check=True, capture_output=True, text=True).stdout.strip()

    name = f"ropewalk-test-{os.getpid()}"
    build = ["sh", ROOT / "packaging" / "container" / "build.sh", packages, name]
    subprocess.run(build, check=True, capture_output=True)
    container = buildah("from", name)
    try:
        root = Path(buildah("mount", container))
        files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        own = {name for name in files if not name.startswith(("proc/", "dev/", "etc/", "run/", "sys/"))}
        assert own == {"ropewalk"} | {f"licences/LICENSE-{which}" for which in ("MIT", "APACHE", "THIRD-PARTY.txt")}
        first_commands(["chroot", root, "/ropewalk"], ROOT)
    finally:
        buildah("rm", container)
        buildah("rmi", "--force", f"{name}:latest")


# The packages for aarch64, by an emulator.


@pytest.fixture(scope="session")
def foreign(packages: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """The command for aarch64 under qemu."""
    found = [*packages.glob("ropewalk-*-aarch64-linux.tar.xz")]
    if not found:
        pytest.skip("there are no packages for aarch64")
    if shutil.which("qemu-aarch64-static") is None:
        pytest.skip("qemu-user-static is not installed")
    target = tmp_path_factory.mktemp("aarch64")
    with tarfile.open(found[0]) as packed:
        packed.extractall(target, filter="data")
    (top,) = target.iterdir()
    return ["qemu-aarch64-static", top / "ropewalk"]


def test_the_command_for_aarch64_is_small_and_runs(foreign: list[str | Path], tmp_path: Path):
    assert sizes.too_large([Path(foreign[1])]) == []
    first_commands(foreign, tmp_path)


def test_the_command_for_aarch64_gives_the_results_of_x86_64(foreign: list[str | Path], tarball: Path, tmp_path: Path):
    results = []
    for command in ([tarball / "ropewalk"], foreign):
        words = ["run", "wifi-lte", "--seed", "7", "--json"]
        done = subprocess.run([*command, *words], cwd=tmp_path, capture_output=True, text=True, check=True)
        result = json.loads(done.stdout)
        del result["engine"]
        results.append(result)
    assert results[0] == results[1]


def test_the_command_for_aarch64_exchanges_a_sealed_file_with_x86_64(
    foreign: list[str | Path], tarball: Path, tmp_path: Path
):
    (tmp_path / "data").write_bytes(os.urandom(200_000))
    for name in ("me.key", "far.key"):
        subprocess.run([*foreign, "keygen", name], cwd=tmp_path, check=True, capture_output=True)
    public = [*foreign, "keygen", "--public", "far.key"]
    shown = subprocess.run(public, cwd=tmp_path, check=True, capture_output=True, text=True)
    # The emulator offers neither seccomp nor Landlock.
    receive = [*foreign, "recv", "inbox", "--once", "--no-confine", "--key", "far.key", "--listen", "127.0.0.1:9879"]
    with subprocess.Popen(receive, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as receiver:
        time.sleep(3)
        send = [tarball / "ropewalk", "send", "data", "--to", "127.0.0.1:9879", "--key", "me.key"]
        peer = ["--peer", shown.stdout.strip()]
        done = subprocess.run([*send, *peer], cwd=tmp_path, capture_output=True, text=True, timeout=120)
        if done.returncode != 0:
            receiver.kill()
        log = receiver.communicate(timeout=60)[1]
    assert (done.returncode, receiver.returncode) == (0, 0), done.stderr + log
    (received,) = (path for path in (tmp_path / "inbox").rglob("data") if path.is_file())
    assert received.read_bytes() == (tmp_path / "data").read_bytes()


def test_the_deb_for_aarch64_is_for_arm64(packages: Path):
    found = [*packages.glob("ropewalk_*_arm64.deb")]
    if not found:
        pytest.skip("there are no packages for aarch64")
    show = ["dpkg-deb", "--field", found[0], "Architecture"]
    shown = subprocess.run(show, check=True, capture_output=True, text=True)
    assert shown.stdout.strip() == "arm64"


# The Debian package.


@pytest.fixture(scope="session")
def fresh_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A minimal Debian: the essential packages, by mmdebstrap and this machine's package sources."""
    if os.geteuid() != 0:
        pytest.skip("chroot needs root")
    if shutil.which("mmdebstrap") is None:
        pytest.skip("mmdebstrap is not installed")
    root = tmp_path_factory.mktemp("debian") / "root"
    release = Path("/etc/os-release").read_text()
    suite = re.search(r"^VERSION_CODENAME=(\S+)", release, re.MULTILINE)
    candidates = ["sources.list.d/debian.sources", "sources.list.d/ubuntu.sources", "sources.list"]
    sources = [path for name in candidates if (path := Path("/etc/apt") / name).is_file()]
    if suite is None or not sources:
        pytest.skip("this machine has no package sources of Debian")
    command = ["mmdebstrap", "--variant=essential", "--mode=root", suite[1], root, sources[0]]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture(scope="session")
def installed(fresh_root: Path, deb: Path) -> Path:
    """This Debian with the package installed by its own dpkg."""
    shutil.copy(deb, fresh_root / "ropewalk.deb")
    install = ["chroot", fresh_root, "dpkg", "--install", "/ropewalk.deb"]
    done = subprocess.run(install, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return fresh_root


def test_the_deb_is_installed_and_its_command_runs(installed: Path):
    state = ["chroot", installed, "dpkg-query", "--show", "--showformat=${Status}", "ropewalk"]
    done = subprocess.run(state, check=True, capture_output=True, text=True)
    assert done.stdout == "install ok installed"
    subprocess.run(["chroot", installed, "dpkg", "--verify", "ropewalk"], check=True)
    first_commands(["chroot", installed, "ropewalk"], ROOT)


def test_the_line_that_a_unit_runs_receives_a_file_as_an_unprivileged_user(installed: Path):
    unit = (installed / "lib/systemd/system/ropewalk-recv@.service").read_text()
    (line,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    (key,) = re.findall(r"^Environment=(XDG_CONFIG_HOME=.*)$", unit, re.MULTILINE)
    # What systemd does: a directory of state for a user of its own, and the specifiers.
    state = installed / "var/lib/ropewalk/recv-a"
    state.mkdir(parents=True)
    os.chown(state, 61_234, 61_234)
    line, key = (text.replace("%S", "/var/lib").replace("%i", "a") for text in (line, key))
    options = "--once --plain --listen 127.0.0.1:9878"
    user = ["setpriv", "--reuid=61234", "--regid=61234", "--clear-groups"]
    receive = ["chroot", installed, *user, "env", key, *line.replace("$OPTIONS", options).split()]
    with subprocess.Popen(receive, stderr=subprocess.PIPE, text=True) as receiver:
        time.sleep(1)
        send = ["chroot", installed, "ropewalk", "send", "/etc/passwd", "--plain", "--to", "127.0.0.1:9878"]
        done = subprocess.run(send, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            receiver.kill()
        log = receiver.communicate(timeout=60)[1]
    assert (done.returncode, receiver.returncode) == (0, 0), done.stderr + log
    assert any(path.is_file() for path in (state / "inbox").rglob("passwd"))


def test_the_deb_leaves_nothing_but_state_behind(installed: Path):
    subprocess.run(["chroot", installed, "dpkg", "--purge", "ropewalk"], check=True, capture_output=True)
    for gone in ["usr/bin/ropewalk", "lib/systemd/system/ropewalk-recv@.service", "etc/ropewalk"]:
        assert not (installed / gone).exists(), gone


# The Python package.


@pytest.fixture(scope="session")
def wheel(packages: Path) -> Path:
    """The wheel."""
    (found,) = packages.glob("ropewalk-*x86_64.whl")
    return found


@pytest.fixture(scope="session")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with nothing but the wheel and what it requires."""
    venv = tmp_path_factory.mktemp("wheel") / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    pip = [venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--only-binary=:all:", wheel]
    subprocess.run(pip, check=True, env=without_rust(venv))
    return venv


def without_rust(venv: Path) -> dict[str, str]:
    """This environment with a PATH on which there is no cargo."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CARGO", "RUST"))}
    path = str(venv / "bin")
    assert shutil.which("cargo", path=path) is None
    return kept | {"PATH": path}


def test_the_wheel_is_for_any_python_and_linux(wheel: Path):
    assert "-cp311-abi3-" in wheel.name and "manylinux" in wheel.name and "x86_64" in wheel.name


def test_the_wheel_brings_the_command(environment: Path, tmp_path: Path):
    first_commands([environment / "bin" / "ropewalk"], tmp_path, without_rust(environment))


def test_the_wheel_brings_the_python_package(environment: Path, tmp_path: Path):
    subprocess.run([environment / "bin" / "ropewalk", "new", "mine.toml"], cwd=tmp_path, check=True)
    program = "import ropewalk as rw; run = rw.run('mine.toml'); assert 2e6 < run.goodput_bps < 3e6; print(rw.__file__)"
    python = [environment / "bin" / "python", "-c", program]
    done = subprocess.run(python, cwd=tmp_path, env=without_rust(environment), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert str(environment) in done.stdout


def test_the_wheel_has_the_licences(environment: Path):
    (licences,) = environment.glob("lib/python*/site-packages/ropewalk-*.dist-info/licenses")
    names = {path.name for path in licences.rglob("*") if path.is_file()}
    assert {"LICENSE-MIT", "LICENSE-APACHE", "LICENSE-THIRD-PARTY.txt"} <= names


def test_the_archive_of_sources_has_what_a_build_needs(packages: Path, tmp_path: Path):
    (sdist,) = packages.glob("ropewalk-*.tar.gz")
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    (top,) = tmp_path.iterdir()
    for name in ["PKG-INFO", "pyproject.toml", "Cargo.lock", "python/ropewalk/__init__.py", "web/report.html"]:
        assert (top / name).is_file(), name
    # Cargo reads all manifests, and finds all crates of the workspace.
    metadata = ["cargo", "metadata", "--format-version", "1", "--no-deps", "--offline"]
    subprocess.run(metadata, cwd=top, check=True, capture_output=True)
