"""Advice."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import ropewalk as rw

TWO = """\
[transfer]
duration = "3 s"
warmup   = "1 s"
[[path]]
name = "dsl"
rate = "5 Mbit/s"
rtt  = "20 ms"
[[path]]
name = "lte"
rate = "2 Mbit/s"
rtt  = "60 ms"
"""


def test_the_advice_is_that_of_the_command_and_its_scenario_runs(
    tmp_path: Path, command: str
) -> None:
    advice = rw.advise(rw.Scenario.parse(TWO, name="two.toml"), seeds=2)
    assert advice.advice.paths == ["dsl", "lte"] and advice.best_single.paths == ["dsl"]
    assert [link.used for link in advice.paths] == [True, True]
    assert advice.advice.goodput_bps["mean"] > 6e6 and advice.reason in advice._repr_html_()
    assert "dsl + lte" in repr(advice) and len(advice.sensitivity) == 8
    run = rw.run(advice.scenario)
    assert run.goodput_bps > 6e6 and run.scheduler == advice.advice.scheduler
    (tmp_path / "two.toml").write_text(TWO)
    words = [command, "advise", "two.toml", "--seeds", "2", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == advice.to_dict()


def test_a_wrong_goal_and_a_transport_of_one_path_are_refused() -> None:
    two = rw.Scenario.parse(TWO, name="two.toml")
    with pytest.raises(ValueError, match="`speed` is no goal"):
        rw.advise(two, goal="speed")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least"):
        rw.advise(two, seeds=1)
    with pytest.raises(rw.ModelError, match="one path at a time"):
        rw.advise(two, set={"transfer.protocol": "sctp"})
