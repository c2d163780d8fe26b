"""The demonstration of README.md, whole: it needs root, network namespaces and /dev/net/tun."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from whole_machine import PAGES, whole

BINARY = os.environ.get("ROPEWALK")
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="no /dev/net/tun"),
    pytest.mark.skipif(not (shutil.which("ip") and shutil.which("ping")), reason="no iproute2, or no ping"),
    pytest.mark.skipif(not BINARY, reason="ROPEWALK does not name the command"),
]


def test_a_machine_uses_both_links_survives_the_loss_of_one_and_is_as_before_afterwards() -> None:
    results = whole(Path(BINARY or ""))
    # Two of them beside the loss of the first link, and after its return.
    assert len(results["pages_s"]) == PAGES + 2
    assert results["download_mbit_s"] > 0
    # The call goes on: a link that is gone for five seconds takes less than one second of it, on any machine.
    assert results["call_longest_gap_s"] < 1.0
    assert results["call_lost"] < results["call_packets"] / 5
