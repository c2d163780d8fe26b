"""What the tarball and the Debian package contain besides the command: manual pages, completions, documents."""

import gzip
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import licences
from common import PACKAGING, ROOT, put, version

DOCUMENTS = ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"]
UNITS = [f"ropewalk-{name}@.service" for name in ("recv", "proxy", "tunnel", "closed", "hub")]
LIBRARY = "libropewalk.so"
HEADER = ROOT / "crates" / "sockets" / "include" / "netinet" / "sctp.h"
EXAMPLES = ["recv.conf", "proxy.conf", "exit.conf"]


@dataclass(frozen=True)
class Contents:
    """Everything that the packages are made of."""

    command: bytes
    library: bytes
    man: dict[str, bytes]
    completions: dict[str, bytes]
    licences: str

    def of(self, command: Path, library: Path) -> "Contents":
        """The same with another command and library: those for another processor cannot be asked here."""
        return replace(self, command=command.read_bytes(), library=library.read_bytes())


def contents(command: Path, library: Path, scratch: Path) -> Contents:
    """Asks the command for its pages and completions, so that they belong to its version."""
    subprocess.run([command, "man", scratch / "man"], check=True)
    man = {page.name: page.read_bytes() for page in sorted((scratch / "man").iterdir())}
    completions = {}
    for shell in ("bash", "zsh", "fish"):
        done = subprocess.run([command, "completions", shell], check=True, stdout=subprocess.PIPE)
        completions[shell] = done.stdout
    return Contents(command.read_bytes(), library.read_bytes(), man, completions, licences.collected())


def tarball_tree(tree: Path, from_: Contents) -> None:
    """Fills the directory that the tarball packs."""
    put(tree / "ropewalk", from_.command, 0o755)
    put(tree / LIBRARY, from_.library)
    put(tree / "include" / "netinet" / "sctp.h", HEADER.read_bytes())
    for name, page in from_.man.items():
        put(tree / "man" / "man1" / name, page)
    names = {"bash": "ropewalk.bash", "zsh": "_ropewalk", "fish": "ropewalk.fish"}
    for shell, script in from_.completions.items():
        put(tree / "completions" / names[shell], script)
    for name in DOCUMENTS:
        put(tree / name, (ROOT / name).read_bytes())
    for unit in UNITS:
        text = (PACKAGING / "systemd" / unit).read_text()
        put(tree / "systemd" / unit, text.replace("/usr/bin/ropewalk", "/usr/local/bin/ropewalk").encode())
    put(tree / "LICENSE-THIRD-PARTY.txt", from_.licences)
    put(tree / "install.md", (ROOT / "docs" / "guides" / "install.md").read_bytes())


def deb_tree(tree: Path, from_: Contents) -> None:
    """Fills the root directory of the Debian package, without DEBIAN/."""
    share = tree / "usr" / "share"
    put(tree / "usr" / "bin" / "ropewalk", from_.command, 0o755)
    put(tree / "usr" / "lib" / "ropewalk" / LIBRARY, from_.library)
    put(tree / "usr" / "include" / "ropewalk" / "netinet" / "sctp.h", HEADER.read_bytes())
    for name, page in from_.man.items():
        put(share / "man" / "man1" / f"{name}.gz", packed(page))
    put(share / "bash-completion" / "completions" / "ropewalk", from_.completions["bash"])
    put(share / "zsh" / "vendor-completions" / "_ropewalk", from_.completions["zsh"])
    put(share / "fish" / "vendor_completions.d" / "ropewalk.fish", from_.completions["fish"])
    for unit in UNITS:
        put(tree / "lib" / "systemd" / "system" / unit, (PACKAGING / "systemd" / unit).read_bytes())
    documents = share / "doc" / "ropewalk"
    for name in EXAMPLES:
        put(documents / "examples" / name, (PACKAGING / "examples" / name).read_bytes())
    put(documents / "install.md", (ROOT / "docs" / "guides" / "install.md").read_bytes())
    put(documents / "README.md", (ROOT / "README.md").read_bytes())
    put(documents / "changelog.gz", packed((ROOT / "CHANGELOG.md").read_bytes()))
    put(documents / "copyright", copyright_file(from_.licences))
    (tree / "etc" / "ropewalk").mkdir(parents=True)
    for directory in (tree / "etc", tree / "etc" / "ropewalk"):
        directory.chmod(0o755)


def copyright_file(third_party: str) -> str:
    """Debian wants all licences in one file."""
    own = "".join(f"\n{name}\n\n{(ROOT / name).read_text()}" for name in DOCUMENTS[:2])
    return f"Ropewalk {version()}, MIT OR Apache-2.0, at your choice.\n{own}\n{third_party}"


def packed(content: bytes) -> bytes:
    """By gzip, without a time."""
    return gzip.compress(content, 9, mtime=0)
