"""Window limits."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import ropewalk as rw

TWO = """\
[transfer]
duration       = "10 s"
receive_buffer = "126 kB"
[[path]]
name = "clean"
rate = "21 Mbit/s"
rtt  = "40 ms"
loss = 1e-4
[[path]]
name = "lossy"
rate = "21 Mbit/s"
rtt  = "40 ms"
loss = 3e-3
"""


def two() -> rw.Scenario:
    return rw.Scenario.parse(TWO, name="two.toml")


def test_limits_fit_into_the_buffer_and_promise_more_than_equal_parts() -> None:
    tuning = rw.tune(two(), reach=0.6, seeds=2)
    clean, lossy = tuning.limits_packets
    assert clean > lossy >= 1 and clean + lossy <= tuning.buffer_packets
    assert tuning.predicted_bps > tuning.equal_split["predicted_bps"]
    assert [path.limit_packets for path in tuning.paths] == tuning.limits_packets
    assert tuning.reach is not None and tuning.reach["least"]["predicted_bps"] >= 0.6 * 42e6
    simulated = tuning.reach["simulated"]
    robust = simulated["robust"]
    assert robust["trials"][0]["receive_buffer_bytes"] == simulated["least"]["receive_buffer_bytes"]
    if robust["least"] is not None:
        assert robust["least"]["reached"] == robust["variations"]
    assert simulated["least"]["share"]["mean"] >= 0.6 > simulated["less"]["share"]["mean"]
    assert tuning.check is None and tuning.simulated_bps is None
    assert f"{clean} packets" in tuning._repr_html_() and "two" in repr(tuning)


def test_a_check_simulates_all_managers() -> None:
    tuning = rw.tune(two(), check=True, seeds=2)
    assert tuning.check is not None and tuning.simulated_bps is not None
    names = [one["window_manager"] for one in tuning.check["managers"]]
    assert names == ["none", "dynamic", "adaptive", "static"]
    assert tuning.simulated_bps == tuning.check["managers"][-1]["goodput_bps"]


def test_the_document_is_that_of_the_command(tmp_path: Path, command: str) -> None:
    (tmp_path / "two.toml").write_text(TWO)
    words = [command, "tune", "two.toml", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == rw.tune(two()).to_dict()


def test_what_cannot_be_tuned_is_refused_with_a_hint() -> None:
    one = rw.Scenario.parse(TWO.rsplit("[[path]]", 1)[0], name="one.toml")
    with pytest.raises(rw.ModelError, match=r"only path(.|\n)*hint: "):
        rw.tune(one)
    for wrong in ({"tolerance": 0.5}, {"reach": 0.0}, {"reach": 1.5}, {"check": True, "seeds": 0}, {"threads": 0}):
        with pytest.raises(ValueError, match="must be"):
            rw.tune(two(), **wrong)
    with pytest.raises(rw.ScenarioError, match="receive_bufer"):
        rw.tune(two(), set={"transfer.receive_bufer": "3 kB"})


def test_the_plot_has_three_panels() -> None:
    pytest.importorskip("matplotlib")
    figure = rw.tune(two()).plot()
    titles = [axes.get_title() for axes in figure.axes[:3]]
    assert titles[:2] == ["Throughput against window", "Throughput against receive buffer"]
    assert "clean and lossy" in titles[2]
