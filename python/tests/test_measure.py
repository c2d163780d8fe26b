"""Measurement of links, against a real server."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

import ropewalk as rw
from ropewalk.net import generate_key


@pytest.fixture
def server(tmp_path: Path, command: str) -> Iterator[tuple[str, str]]:
    """Address and public key of ``bench serve``."""
    own = ["--key", str(tmp_path / "server.key")]
    subprocess.run([command, "keygen", own[1]], check=True, capture_output=True)
    words = [command, "bench", "serve", "--listen", "127.0.0.1:0", *own]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if line.startswith("  ropewalk measure"))
        options = line.split()
        yield options[options.index("--to") + 1], options[options.index("--peer") + 1]
    finally:
        process.kill()
        process.communicate()


def test_links_are_measured_and_their_scenario_runs(
    tmp_path: Path, server: tuple[str, str]
) -> None:
    to, peer = server
    found = rw.measure(to, peer=peer, time=5, max_bytes=2_000_000, directory=tmp_path)
    assert found.schema == "ropewalk.measure/1" and found.sent_bytes <= 2_000_000
    [link] = found.links
    assert link.base_rtt_s is not None and 0 <= link.base_rtt_s < 0.1
    assert link.name in repr(found) and "base RTT" in found._repr_html_()
    assert found.to_dict()["scenario"] == found.scenario_toml
    paths = tomllib.loads(found.scenario.to_toml())["path"]
    assert [path["name"] for path in paths] == [link.name]


def test_options_that_would_fail_later_are_refused_before_anything_is_sent() -> None:
    peer = generate_key().public
    for options, said in [
        ({"time": 1}, "time = 1: give at least 5 s"),
        ({"time": float("nan")}, "time = nan"),
        ({"max_bytes": 5}, "max_bytes = 5"),
        ({"directory": "no/such"}, "no such directory"),
    ]:
        with pytest.raises(rw.NetError, match=said):
            rw.measure("127.0.0.1:9", peer=peer, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not a public key|44 characters"):
        rw.measure("127.0.0.1:9", peer="abc")
