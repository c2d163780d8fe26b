"""Collects the licences of everything that a package contains besides Ropewalk itself."""

import json
import re
import subprocess
from collections import defaultdict
from pathlib import Path

from common import NATIVE, ROOT, cargo

LICENCE_FILE = re.compile(r"(licen[cs]e|copying|notice|unlicense|copyright)", re.IGNORECASE)
# Debian's copy of the licence of the C library, which the command contains.
LGPL = Path("/usr/share/common-licenses/LGPL-2.1")

HEAD = """Licences of the software that Ropewalk contains
===============================================

Ropewalk itself: MIT OR Apache-2.0, see LICENSE-MIT and LICENSE-APACHE.

The packages below are compiled into Ropewalk. Where a package offers a choice of licences, Ropewalk uses
it under MIT or Apache-2.0 if these are among them. The texts follow the list.

"""

LIBC = """The GNU C library (static command only)
---------------------------------------

The statically linked command contains the GNU C library, copyright the Free Software Foundation, under the
GNU Lesser General Public License 2.1 or later. Its source is Debian's source package `glibc`. To link
Ropewalk with another version of this library, run `make dist` in Ropewalk's source with that version
installed.

"""


def collected() -> str:
    """One text with all packages, their licences and the texts of these licences."""
    users: dict[str, list[str]] = defaultdict(list)
    listed = []
    for name, licence, texts in [*crates(), *vendored(), standard_library()]:
        listed.append(f"* {name}: {licence}")
        for text in texts:
            users[text].append(name)
    parts = [HEAD, "\n".join(listed), "\n\n"]
    for text, names in sorted(users.items(), key=lambda item: item[1]):
        title = ", ".join(names)
        parts.append(f"{title}\n{'-' * min(len(title), 100)}\n\n{text}\n\n")
    if not LGPL.is_file():
        raise SystemExit(f"{LGPL} is missing: the package base-files of Debian has it")
    parts.append(LIBC + LGPL.read_text())
    return "".join(parts)


def crates() -> list[tuple[str, str, list[str]]]:
    """The crates in the command and in the Python package, as (name, licence, texts)."""
    return [(f"{one['name']} {one['version']}", one["license"], texts_of(one)) for one in contained()[0]]


def contained() -> tuple[list[dict], dict[str, list[str]]]:
    """The crates in the command and in the Python package as cargo describes them, and what each crate needs."""
    command = [cargo(), "metadata", "--format-version", "1", "--locked", "--filter-platform", NATIVE.triple]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    metadata = json.loads(done.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    needs = {node["id"]: needed(node) for node in metadata["resolve"]["nodes"]}
    own = set(metadata["workspace_members"])
    pending = [one for one in own if packages[one]["name"] in ("ropewalk-cli", "ropewalk-py")]
    seen: set[str] = set()
    while pending:
        if (identifier := pending.pop()) not in seen:
            seen.add(identifier)
            pending.extend(needs[identifier])
    found = [packages[identifier] for identifier in seen - own]
    found.sort(key=lambda package: (package["name"], package["version"]))
    return found, needs


def needed(node: dict) -> list[str]:
    """What a crate contains: no dependencies of builds and tests."""
    return [one["pkg"] for one in node["deps"] if any(kind["kind"] is None for kind in one["dep_kinds"])]


def texts_of(package: dict) -> list[str]:
    """The licence files of a crate; the standard text if it has none and its licence is a usual one."""
    directory = Path(package["manifest_path"]).parent
    files = sorted(path for path in directory.iterdir() if LICENCE_FILE.match(path.name))
    texts = [path.read_text(errors="replace").strip() for path in files if path.is_file()]
    if texts:
        return texts
    if "Apache-2.0" in (package["license"] or ""):
        return [(ROOT / "LICENSE-APACHE").read_text().strip()]
    if "MIT" in (package["license"] or "") and package["authors"]:
        holders = f"Copyright (c) {', '.join(package['authors'])}"
        return [re.sub(r"^Copyright .*$", holders, (ROOT / "LICENSE-MIT").read_text().strip(), flags=re.MULTILINE)]
    raise SystemExit(f"{package['name']} {package['version']} has no licence file")


def vendored() -> list[tuple[str, str, list[str]]]:
    """The libraries in the report page."""
    found = []
    for licence in sorted((ROOT / "web" / "vendor").glob("*/LICENSE")):
        version = (licence.parent / "VERSION").read_text().split()
        name = f"{licence.parent.name} ({' '.join(version[:2])})"
        found.append((name, "see its text", [licence.read_text().strip()]))
    return found


def standard_library() -> tuple[str, str, list[str]]:
    """Rust's own library, which every Rust program contains."""
    text = (ROOT / "LICENSE-APACHE").read_text().strip()
    return "the Rust standard library (copyright The Rust Project Developers)", "MIT OR Apache-2.0", [text]
