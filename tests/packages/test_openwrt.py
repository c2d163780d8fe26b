"""The package for OpenWrt, as far as it can be tried without OpenWrt.

The init script and the Makefile run for real, with stand-ins for the functions of OpenWrt that they call: these record
what procd would be told, and execute the recipe that installs the files.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FEED = ROOT / "packaging" / "openwrt" / "ropewalk"
SCRIPT, CONFIG = FEED / "files" / "ropewalk.init", FEED / "files" / "ropewalk.config"
KEY = "hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo="
# OpenWrt's shell is that of busybox.
SHELLS = [["sh"], ["busybox", "ash"]]

# The functions of rc.common and procd.sh, which print their arguments. Settings are variables: S_section_option.
STAND_IN = r"""
say() { printf '%s\037' "$@"; echo; }
config_load() { [ "$1" = ropewalk ]; }
config_foreach() { for s in $SECTIONS; do [ "${s%%:*}" != "$2" ] || "$1" "${s#*:}"; done; }
config_get() { eval "$1=\"\${S_$2_$3:-$4}\""; }
config_get_bool() { config_get "$@"; }
procd_open_instance() { say open "$1"; }
procd_set_param() { say "$@"; }
procd_append_param() { say "$@"; }
procd_close_instance() { say close; }
procd_add_reload_trigger() { say trigger "$@"; }
procd_send_signal() { say signal "$@"; }
logger() { say log "$@"; }
mkdir() { say mkdir "$@"; }
chmod() { say chmod "$@"; }
chown() { say chown "$@"; }
"""


@dataclass
class Section:
    """A section of a UCI file."""

    kind: str
    name: str
    options: dict[str, list[str]] = field(default_factory=dict)


def sections(text: str) -> list[Section]:
    """What a UCI file contains."""
    found: list[Section] = []
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        match words:
            case []:
                pass
            case ["config", kind, name]:
                found.append(Section(kind, name))
            case ["option", name, value]:
                assert name not in found[-1].options, line
                found[-1].options[name] = [value]
            case ["list", name, value]:
                found[-1].options.setdefault(name, []).append(value)
            case _:
                raise AssertionError(f"not a line of UCI: {line}")
    return found


@dataclass
class Instance:
    """What procd is told about one process."""

    name: str
    command: list[str] = field(default_factory=list)
    params: dict[str, list[str]] = field(default_factory=dict)


def call(function: str, config: list[Section], shell: list[str]) -> list[list[str]]:
    """Calls a function of the init script; returns what the stand-ins were told."""
    program = [STAND_IN, f"SECTIONS={shlex.quote(' '.join(f'{one.kind}:{one.name}' for one in config))}"]
    for one in config:
        program += [f"S_{one.name}_{k}={shlex.quote(' '.join(v))}" for k, v in one.options.items()]
    program += [SCRIPT.read_text(), function]
    done = subprocess.run([*shell, "-c", "\n".join(program)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\037")[:-1] for line in done.stdout.splitlines()]


def instances(told: list[list[str]]) -> list[Instance]:
    """The processes that procd would start."""
    found: list[Instance] = []
    for what, *words in told:
        if what == "open":
            found.append(Instance(*words))
        elif what == "command":
            found[-1].command += words
        elif what not in ("close", "log", "mkdir", "chmod", "chown"):
            found[-1].params[what] = words
    return found


@pytest.fixture(params=SHELLS, ids=[shell[0] for shell in SHELLS])
def shell(request: pytest.FixtureRequest) -> list[str]:
    """A shell to run the init script with."""
    if shutil.which(request.param[0]) is None:
        pytest.skip(f"{request.param[0]} is not installed")
    return request.param


@pytest.fixture
def config() -> list[Section]:
    """The configuration that the package installs, with all sections enabled and a key."""
    found = sections(CONFIG.read_text().replace("PUBKEY", KEY))
    for one in found:
        one.options["enabled"] = ["1"]
    return found


def test_nothing_runs_as_it_is_installed(shell: list[str]):
    assert call("start_service", sections(CONFIG.read_text()), shell) == []


def test_each_enabled_section_is_a_command_line_that_ropewalk_accepts(
    shell: list[str], config: list[Section], tarball: Path
):
    started = instances(call("start_service", config, shell))
    assert [one.name for one in started] == ["proxy", "exit", "recv"]
    for one in started:
        assert one.command[0] == "/usr/bin/ropewalk"
        # With --help, nothing runs; an unknown option before it is an error all the same.
        words = [tarball / "ropewalk", *one.command[1:], "--help"]
        done = subprocess.run(words, capture_output=True, text=True)
        assert done.returncode == 0, f"{one.command}: {done.stderr}"
    assert started[0].command[1:] == [
        "proxy",
        "--to=192.0.2.7",
        "--from=eth1",
        "--from=wwan0",
        f"--peer={KEY}",
        "--socks=192.168.1.1:1080",
        "--open",
    ]
    assert started[1].command[1:4] == ["proxy", "exit", "--listen=0.0.0.0"]
    assert started[2].command[1:3] == ["recv", "/tmp/ropewalk-inbox"]
    assert "--quota=1GB" in started[2].command


def test_commands_run_without_privileges_and_with_a_directory_for_their_key(shell: list[str], config: list[Section]):
    told = call("start_service", config, shell)
    for one in instances(told):
        state = f"/etc/ropewalk/{one.name}"
        assert one.params["user"] == ["ropewalk"] and one.params["no_new_privs"] == ["1"]
        assert one.params["env"] == [f"XDG_CONFIG_HOME={state}"]
        made = [line for line in told if state in line]
        assert made == [["mkdir", "-p", state], ["chmod", "700", state], ["chown", "ropewalk:ropewalk", state]]


@pytest.mark.parametrize(("name", "option"), [("proxy", "peer"), ("proxy", "to"), ("recv", "folder")])
def test_a_section_without_a_necessary_option_is_logged_and_not_started(
    shell: list[str], config: list[Section], name: str, option: str
):
    (section,) = (one for one in config if one.name == name)
    del section.options[option]
    told = call("start_service", config, shell)
    assert name not in [one.name for one in instances(told)]
    (logged,) = (line for line in told if line[0] == "log")
    assert f"section '{name}' has no option '{option}'" in logged[-1]


def test_the_commands_of_the_script_reach_procd(shell: list[str]):
    assert call("reload_peers", [], shell) == [["signal", "ropewalk", "*", "HUP"]]
    assert call("service_triggers", [], shell) == [["trigger", "ropewalk"]]


RULES = """
ARCH := x86_64
BUILD_DIR := {build}
INSTALL_DIR := install -d -m 755
INSTALL_BIN := install -m 755
INSTALL_DATA := install -m 644
INSTALL_CONF := install -m 600
"""
PACKAGE = """
define BuildPackage
install:
\tmkdir -p $$(BUILD_DIR)
\techo "$$(PKG_HASH)  $$(PKG_SOURCE_URL:file://%=%)/$$(PKG_SOURCE)" | sha256sum --check --status
\ttar -xf $$(PKG_SOURCE_URL:file://%=%)/$$(PKG_SOURCE) -C $$(BUILD_DIR)
\t$$(call Package/$(1)/install,$$(ROOT))
endef
"""


def test_the_recipe_installs_the_command_of_the_archive(packages: Path, tarball: Path, tmp_path: Path):
    (tmp_path / "rules.mk").write_text(RULES.format(build=tmp_path / "build"))
    (tmp_path / "package.mk").write_text(PACKAGE)
    root = tmp_path / "root"
    variables = [f"TOPDIR={tmp_path}", f"INCLUDE_DIR={tmp_path}", f"ROPEWALK_DIST={packages}", f"ROOT={root}"]
    done = subprocess.run(["make", "--directory", FEED, *variables, "install"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    files = [path for path in root.rglob("*") if path.is_file()]
    assert {str(path.relative_to(root)): oct(path.stat().st_mode & 0o777) for path in files} == {
        "usr/bin/ropewalk": "0o755",
        "etc/init.d/ropewalk": "0o755",
        "etc/config/ropewalk": "0o600",
        **{f"usr/share/licenses/ropewalk/LICENSE-{n}": "0o644" for n in ("MIT", "APACHE", "THIRD-PARTY.txt")},
    }
    assert (root / "usr/bin/ropewalk").read_bytes() == (tarball / "ropewalk").read_bytes()


def test_the_recipe_has_the_version_of_the_workspace():
    version = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert f"\nPKG_VERSION:={version[1]}\n" in (FEED / "Makefile").read_text()
