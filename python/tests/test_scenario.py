"""Scenarios: reading, changing, writing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from conftest import TWO_PATHS

import ropewalk as rw


def test_the_written_scenario_reads_as_the_same(scenario: rw.Scenario) -> None:
    again = rw.Scenario.parse(scenario.to_toml())
    assert again == scenario and hash(again) == hash(scenario)
    assert again != scenario.set({"transfer.seed": 77})


def test_a_file_and_its_text_are_the_same_scenario(scenario_file: Path) -> None:
    loaded = rw.Scenario.load(scenario_file)
    assert loaded == rw.Scenario.parse(TWO_PATHS)
    assert loaded.name == str(scenario_file)
    assert (loaded.protocol, loaded.scheduler) == ("cmt-sctp", "daps")
    assert loaded.path_names == ["wifi", "lte"]


def test_a_change_makes_another_scenario_and_keeps_earlier_changes(scenario: rw.Scenario) -> None:
    changed = scenario.set({"path.lte.rtt": "40 ms"}).set(transfer={"scheduler": "min-rtt"})
    assert (scenario.scheduler, changed.scheduler) == ("daps", "min-rtt")
    assert changed.set({"path.lte.rtt": "200 ms", "transfer.scheduler": "daps"}) == scenario


@pytest.mark.parametrize(
    ("value", "same"),
    [
        (0.25, "0.25"),
        (np.float64(0.25), "0.25"),
        ({"model": "bernoulli", "rate": 0.25}, '{ model = "bernoulli", rate = 0.25 }'),
    ],
)
def test_values_of_python_become_values_of_toml(
    scenario: rw.Scenario, value: object, same: str
) -> None:
    assert scenario.set({"path.wifi.loss": value}) == scenario.set({"path.wifi.loss": same})


def test_booleans_are_not_numbers(scenario: rw.Scenario) -> None:
    assert scenario.set({"record.decisions": True}) == scenario.set({"record.decisions": "true"})


def test_seeds_use_all_64_bits(scenario: rw.Scenario) -> None:
    assert scenario.with_seed(2**64 - 1).seed == 2**64 - 1
    # A later change keeps the seed.
    assert scenario.with_seed(2**63).set({"path.lte.rtt": "9 ms"}).seed == 2**63
    with pytest.raises(OverflowError):
        scenario.with_seed(-1)


def test_the_names_of_the_schedulers_can_be_run(scenario: rw.Scenario) -> None:
    assert {"daps", "round-robin", "min-rtt"} <= set(rw.schedulers())
    for name in rw.schedulers():
        assert scenario.set({"transfer.scheduler": name}).scheduler == name
