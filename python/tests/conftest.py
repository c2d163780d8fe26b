"""A scenario for all tests, and the command if it is available."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import ropewalk as rw

TWO_PATHS = """\
[transfer]
duration       = "6 s"
warmup         = "1 s"
scheduler      = "daps"
receive_buffer = "45 kB"

[[path]]
name  = "wifi"
rate  = "1 Mbit/s"
rtt   = "20 ms"
queue = "50 packets"

[[path]]
name  = "lte"
rate  = "2 Mbit/s"
rtt   = "200 ms"
queue = "50 packets"
loss  = { model = "bernoulli", rate = 1e-2 }
"""


@pytest.fixture(scope="session")
def scenario() -> rw.Scenario:
    return rw.Scenario.parse(TWO_PATHS, name="two.toml")


@pytest.fixture(scope="session")
def run(scenario: rw.Scenario) -> rw.Run:
    return rw.run(scenario, seed=1, sequence="2 s")


@pytest.fixture
def scenario_file(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(TWO_PATHS)
    return path


@pytest.fixture(scope="session")
def command() -> str:
    binary = os.environ.get("ROPEWALK")
    if not binary:
        pytest.skip("set ROPEWALK to the ropewalk command to compare with it")
    return binary


@pytest.fixture
def heeds_ctrl_c() -> Iterator[None]:
    """Restores Python's handling of Ctrl-C: a shell makes background processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
