"""Objects leave the process unchanged: pickle, copy, multiprocessing."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ropewalk as rw


def pickled(one: Any) -> Any:
    return pickle.loads(pickle.dumps(one))


WAYS: list[Callable[[Any], Any]] = [pickled, copy.copy, copy.deepcopy]


@pytest.fixture(scope="module")
def full(scenario: rw.Scenario) -> rw.Run:
    """A run with all that a run can have."""
    changes = {"record.decisions": True, "transfer.duration": "3 s"}
    return rw.run(scenario, seed=2**64 - 1, sequence="2 s", packets="1 s", set=changes)


def assert_same_table(one: rw.Table | None, other: rw.Table | None) -> None:
    assert one is not None and other is not None
    assert one.columns == other.columns
    assert one.metadata == other.metadata
    for name in one.columns:
        a, b = one[name], other[name]
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("way", WAYS)
def test_a_run_is_copied_with_all_that_it_has(full: rw.Run, way: Callable[[Any], Any], tmp_path: Path) -> None:
    again = way(full)
    assert again.json() == full.json()
    assert (again.title, again.seed, again.scenario_toml) == (full.title, full.seed, full.scenario_toml)
    assert_same_table(again.series, full.series)
    assert_same_table(again.packets, full.packets)
    assert again.decisions == full.decisions and full.decisions
    np.testing.assert_array_equal(again.sequence.delivered.seq, full.sequence.delivered.seq)
    assert again.paths == full.paths
    for run, name in ((full, "full.html"), (again, "again.html")):
        run.report(tmp_path / name)
    assert (tmp_path / "again.html").read_bytes() == (tmp_path / "full.html").read_bytes()
    # A copy can be copied.
    assert way(again).json() == full.json()


@pytest.mark.parametrize("way", WAYS)
def test_delays_keep_their_samples(run: rw.Run, way: Callable[[Any], Any]) -> None:
    for delays in (run.app_delay_s, run.blocking_time_s):
        again = way(delays)
        assert again == delays
        assert [again.percentile(p) for p in (0, 50, 99.9, 100)] == [
            delays.percentile(p) for p in (0, 50, 99.9, 100)
        ]
        np.testing.assert_array_equal(again.ecdf().share, delays.ecdf().share)


@pytest.mark.parametrize("way", WAYS)
def test_results_of_several_runs_are_copied(scenario: rw.Scenario, way: Callable[[Any], Any], tmp_path: Path) -> None:
    comparison = rw.compare(scenario, schedulers=["daps", "round-robin"], seeds=2)
    again = way(comparison)
    assert again.json() == comparison.json()
    assert_same_table(again.table, comparison.table)
    again.report(tmp_path / "again.html")
    assert_same_table(again["daps"].series, comparison["daps"].series)
    swept = rw.sweep(scenario, vary={"path.lte.rtt": ["50 ms", "90 ms"]}, seeds=2)
    table = way(swept)
    assert isinstance(table, rw.SweepTable) and table.varied == swept.varied
    assert_same_table(table, swept)
    assert_same_table(table.runs, swept.runs)


@pytest.mark.parametrize("way", WAYS)
def test_other_results_are_copied(scenario: rw.Scenario, way: Callable[[Any], Any]) -> None:
    assert way(scenario) == scenario
    assert way(rw.Wait(0.25)).seconds == 0.25
    for result in (rw.predict(scenario), rw.tune(scenario), rw.run(scenario, series=False)):
        assert way(result).to_dict() == result.to_dict()


def test_a_pool_of_fresh_processes_returns_runs(scenario: rw.Scenario) -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        runs = pool.starmap(rw.run, [(scenario.with_seed(seed),) for seed in range(3)])
    assert [run.json().split('"engine"')[0] for run in runs] == [
        rw.run(scenario, seed=seed).json().split('"engine"')[0] for seed in range(3)
    ]


MAIN = """
import pickle, subprocess, sys
import ropewalk as rw

@rw.register_scheduler("from-main")
class FromMain:
    def select(self, view):
        return view.open[0]

if __name__ == "__main__":
    scenario = rw.Scenario.parse(open("two.toml").read(), set={"transfer.scheduler": "from-main"})
    print(rw.run(scenario).delivered_bytes)
    load = "import pickle, sys, ropewalk as rw; print(rw.run(pickle.load(sys.stdin.buffer)).delivered_bytes)"
    subprocess.run([sys.executable, "-c", load], input=pickle.dumps(scenario), check=True)
"""


def test_a_scheduler_of_the_main_module_travels_with_its_scenario(scenario_file: Path) -> None:
    pytest.importorskip("cloudpickle")
    main = scenario_file.parent / "main.py"
    main.write_text(MAIN)
    done = subprocess.run([sys.executable, str(main)], cwd=main.parent, capture_output=True, text=True, check=True)
    here, there = done.stdout.split()
    assert here == there


def test_a_scheduler_that_cannot_be_pickled_stays_in_its_process(scenario: rw.Scenario) -> None:
    lock = multiprocessing.Lock()

    class Locked:
        def select(self, view: rw.SchedulerView) -> Any:
            with lock:
                return view.open[0]

    rw.register_scheduler("locked", lambda: Locked())
    own = scenario.set({"transfer.scheduler": "locked"})
    assert pickled(own) == own


def test_failed_runs_of_several_are_a_warning(scenario: rw.Scenario) -> None:
    class Fails:
        def select(self, view: rw.SchedulerView) -> Any:
            raise ValueError("no decision")

    rw.register_scheduler("fails", Fails)
    with pytest.warns(rw.RunWarning, match=r"(?s)^1 of 2 runs failed \(.*no decision") as caught:
        swept = rw.sweep(scenario, vary={"transfer.scheduler": ["daps", "fails"]})
    assert caught[0].filename == __file__
    assert np.isnan(swept["goodput_bps"]).tolist() == [False, True]
    with pytest.warns(rw.RunWarning, match="1 of 2 runs failed") as caught:
        rw.compare(scenario, schedulers=["daps", "fails"])
    assert caught[0].filename == __file__


def test_data_frames_have_the_data_of_a_table_or_are_refused(run: rw.Run) -> None:
    table = run.series
    assert table is not None
    for convert in (np.array, np.asarray):
        with pytest.raises(TypeError, match=r"t\['column'\]"):
            convert(table)
    pandas = pytest.importorskip("pandas")
    with pytest.raises(TypeError, match="to_pandas"):
        pandas.DataFrame(table)
    frames = [table.to_pandas()]
    if hasattr(pandas.DataFrame, "from_arrow"):
        frames.append(pandas.DataFrame.from_arrow(table))
    for frame in frames:
        assert frame.shape == table.shape and list(frame.columns) == table.columns
        np.testing.assert_array_equal(frame["goodput_bps"], table["goodput_bps"])
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(table).shape == table.shape


def test_a_printed_table_shows_its_first_rows() -> None:
    table = rw.Table.from_columns({"name": [f"row {n}" for n in range(12)], "value": [float(n) for n in range(12)]})
    lines = str(table).splitlines()
    assert lines[0].split() == ["name", "value"]
    assert lines[10].split() == ["row", "9", "9"]
    assert lines[11] == "... 2 more rows" and len(lines) == 12
