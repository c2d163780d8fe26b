"""The engine's codec as a command: `cargo build -p ropewalk-engine --example wire` builds it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wire() -> Path:
    """The command."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    command = target / "debug" / "examples" / "wire"
    if not command.exists():
        pytest.fail(f"{command} is missing: cargo build -p ropewalk-engine --example wire")
    return command


@pytest.fixture(scope="session")
def emitted(wire: Path) -> list[tuple[str, bytes]]:
    """A description of each packet of the engine, and its bytes."""
    done = subprocess.run([wire, "emit"], check=True, capture_output=True, text=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(rows) > 100
    return [(what, bytes.fromhex(packet)) for what, packet in rows]


@pytest.fixture(scope="session")
def understood(wire: Path):
    """The engine's reading of packets, and the bytes that it would have sent for them."""

    def read(packets: list[bytes]) -> list[tuple[bytes | None, str]]:
        lines = "".join(packet.hex() + "\n" for packet in packets)
        done = subprocess.run([wire, "read"], check=True, capture_output=True, text=True, input=lines)
        rows = [line.split("\t", 1) for line in done.stdout.splitlines()]
        assert len(rows) == len(packets)
        return [(None if first == "error" else bytes.fromhex(first), text) for first, text in rows]

    return read
