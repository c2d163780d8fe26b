"""Errors state the problem, its place and a hint; all have one base class."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from conftest import TWO_PATHS

import ropewalk as rw


def test_a_wrong_line_is_shown_with_its_place_and_a_hint() -> None:
    text = TWO_PATHS.replace('"200 ms"', '"200 parsecs"')
    with pytest.raises(rw.ScenarioError) as caught:
        rw.Scenario.parse(text, name="wrong.toml")
    error = caught.value
    line = next(i for i, row in enumerate(text.splitlines(), 1) if "parsecs" in row)
    assert (error.line, error.column) == (line, 9)
    assert (error.kind, error.key, error.source) == ("wrong-unit", "path[1].rtt", "wrong.toml")
    assert "parsecs" in error.message and error.hint
    assert f"wrong.toml:{line}:9" in str(error) and "help:" in str(error)


def test_every_problem_is_told_at_once() -> None:
    text = TWO_PATHS.replace("scheduler ", "schedular ").replace('"2 Mbit/s"', "2")
    with pytest.raises(rw.ScenarioError) as caught:
        rw.Scenario.parse(text)
    assert [one["line"] for one in caught.value.problems] == [4, 15]
    assert "did you mean `scheduler`" in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"scheduler": "dapz"}, "did you mean `daps`"),
        ({"set": {"path.lte.delai": "4 ms"}}, "delai"),
        ({"set": {"transfer.receive_buffer": -1}}, "-1"),
    ],
)
def test_a_wrong_change_is_named(
    scenario: rw.Scenario, arguments: dict[str, Any], part: str
) -> None:
    with pytest.raises(rw.ScenarioError) as caught:
        rw.run(scenario, **arguments)
    assert part in str(caught.value)
    assert caught.value.source.startswith("set: ")


def test_a_file_that_is_not_there_is_a_scenario_error(tmp_path: Path) -> None:
    with pytest.raises(rw.ScenarioError) as caught:
        rw.run(tmp_path / "none.toml")
    assert (caught.value.kind, caught.value.line) == ("unreadable", None)


def test_a_transfer_that_cannot_finish_is_a_run_error(scenario: rw.Scenario) -> None:
    with pytest.raises(rw.RunError, match="raise transfer.duration"):
        rw.run(scenario, set={"transfer.bytes": "1 GB"})


def test_a_value_of_no_use_is_a_type_error(scenario: rw.Scenario) -> None:
    with pytest.raises(TypeError, match="path.lte.rtt"):
        scenario.set({"path.lte.rtt": None})
    with pytest.raises(ValueError, match="sequence"):
        rw.run(scenario, sequence="5 apples")


def test_all_errors_have_one_base_and_a_builtin_beside_it() -> None:
    for kind, builtin in [
        (rw.ScenarioError, ValueError),
        (rw.RunError, RuntimeError),
        (rw.ModelError, ValueError),
    ]:
        assert issubclass(kind, rw.RopewalkError) and issubclass(kind, builtin)


def test_an_error_survives_a_process_boundary() -> None:
    with pytest.raises(rw.ScenarioError) as caught:
        rw.Scenario.parse("[transfer]\nseeds = 1\n")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.line, copy.hint) == (
        str(caught.value),
        caught.value.line,
        caught.value.hint,
    )
