"""Other people's stacks that are measured beside ours, built where they can be."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
USRSCTP = Path(tempfile.gettempdir()) / "ropewalk-usrsctp" / "usrsctp-peer"
"""Where the peer of tests/interop in C is built."""


def build(what: str, line: list[str | Path], hint: str) -> bool:
    """Whether it is there now; if not, it is said why its rows are missing."""
    try:
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        built, said = done.returncode == 0, done.stderr
    except OSError as error:
        built, said = False, str(error)
    if not built:
        print(f"{what} is left out: {hint}\n{said}", file=sys.stderr)
    return built


def usrsctp() -> bool:
    """Whether that peer is there."""
    USRSCTP.parent.mkdir(exist_ok=True)
    line = ["make", "-s", "-C", ROOT / "tests" / "interop" / "usrsctp", f"OUT={USRSCTP.parent}"]
    return build("usrsctp", line, "it needs a C compiler and Debian's libusrsctp-dev")


def quinn() -> tuple[Path, str] | None:
    """The peer in `benches/peers/quinn`, and which version of quinn that is."""
    folder = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "peers"
    manifest = ROOT / "benches" / "peers" / "quinn" / "Cargo.toml"
    print("building quinn ...", file=sys.stderr)
    line = ["cargo", "build", "--quiet", "--locked", "--release", "--manifest-path", manifest, "--target-dir", folder]
    if not build("quinn", line, "it is built by cargo"):
        return None
    version = next(word for word in manifest.read_text(encoding="utf-8").split('"') if word.startswith("="))
    return folder.resolve() / "release" / "quinn-peer", version.strip("=")
