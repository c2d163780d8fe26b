"""Sweeps on a local cluster of two worker processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ropewalk as rw

if TYPE_CHECKING:
    import distributed

VARY: dict[str, Any] = {
    "path.lte.rtt": "50ms..200ms/3",
    "transfer.scheduler": ["round-robin", "daps"],
}


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    with (
        distributed.LocalCluster(**options, dashboard_address=None, host="127.0.0.1") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_a_cluster_makes_the_same_bytes(
    client: distributed.Client, scenario: rw.Scenario, tmp_path: Path
) -> None:
    from ropewalk import dask

    here, there = tmp_path / "here.parquet", tmp_path / "there.parquet"
    rw.sweep(scenario, vary=VARY, seeds=2, seed=3, out=here)
    table = dask.sweep(scenario, vary=VARY, seeds=2, seed=3, out=there, client=client)
    assert here.read_bytes() == there.read_bytes()
    assert len(table) == 6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.parquet", "there.parquet"]
    # Both workers are there, each a process of its own.
    assert len(set(client.run(os.getpid).values())) == 2


def test_schedulers_and_results_travel_to_workers_and_back(
    client: distributed.Client, scenario: rw.Scenario
) -> None:
    from ropewalk import dask

    # Classes of a function cannot be imported on a worker.
    @rw.register_scheduler("travels")
    class Travels:
        def select(self, view: rw.SchedulerView) -> Any:
            return view.open[0]

    vary: dict[str, Any] = {"transfer.scheduler": "daps, travels"}
    there = dask.sweep(scenario, vary=vary, seeds=2, client=client)
    here = rw.sweep(scenario, vary=vary, seeds=2)
    assert there.to_pyarrow().equals(here.to_pyarrow())
    own = scenario.set({"transfer.scheduler": "travels"})
    runs = client.gather(client.map(rw.run, [own, scenario]))
    assert [run.delivered_bytes for run in runs] == [
        rw.run(one).delivered_bytes for one in (own, scenario)
    ]


def test_failed_runs_on_a_cluster_are_a_warning(
    client: distributed.Client, scenario: rw.Scenario
) -> None:
    from ropewalk import dask

    with pytest.warns(rw.RunWarning, match="1 of 2 runs failed"):
        dask.sweep(scenario, vary={"transfer.bytes": ["10 kB", "1 GB"]}, client=client)


def test_a_sweep_can_be_repeated_at_once(
    client: distributed.Client, scenario: rw.Scenario
) -> None:
    from ropewalk import dask

    vary: dict[str, Any] = {"transfer.scheduler": ["round-robin", "daps"]}
    first = dask.sweep(scenario, vary=vary, client=client).to_pyarrow()
    for _ in range(20):
        assert dask.sweep(scenario, vary=vary, client=client).to_pyarrow().equals(first)


def test_what_another_process_began_is_finished_on_the_cluster(
    client: distributed.Client, scenario: rw.Scenario, tmp_path: Path
) -> None:
    from ropewalk import _ropewalk as native
    from ropewalk import dask
    from ropewalk._sweep import values_of

    values = values_of(VARY)
    out = tmp_path / "x.parquet"
    begun = native.Sweep(scenario._native, values, "2", out, None, False)
    begun.keep(native.sweep_point(scenario._native, values, 4, [1, 2]))
    begun.keep(native.sweep_point(scenario._native, values, 0, [2]))
    assert begun.left() == [(0, [1]), (1, [1, 2]), (2, [1, 2]), (3, [1, 2]), (5, [1, 2])]
    del begun
    table = dask.sweep(scenario, vary=VARY, seeds=2, out=out, client=client)
    alone = rw.sweep(scenario, vary=VARY, seeds=2)
    assert table.to_pyarrow().equals(alone.to_pyarrow())
    assert table.runs.to_pyarrow().equals(alone.runs.to_pyarrow())


def test_seeds_are_added_on_the_cluster_and_here(
    client: distributed.Client, scenario: rw.Scenario, tmp_path: Path
) -> None:
    from ropewalk import dask

    whole, out = tmp_path / "whole.parquet", tmp_path / "x.parquet"
    rw.sweep(scenario, vary=VARY, seeds=4, out=whole)
    dask.sweep(scenario, vary=VARY, seeds=[2], out=out, client=client)
    rw.sweep(scenario, vary=VARY, seeds=[1, 4], out=out)
    table = dask.sweep(scenario, vary=VARY, seeds=4, out=out, client=client)
    assert out.read_bytes() == whole.read_bytes()
    assert table["runs"].tolist() == [4] * 6


def test_the_current_client_is_taken(client: distributed.Client, scenario_file: Path) -> None:
    from ropewalk import dask

    table = dask.sweep(scenario_file, vary={"path.lte.rtt": ["50 ms", "100 ms"]})
    assert table["path.lte.rtt_s"].tolist() == [0.05, 0.1]


def test_wrong_input_is_refused_before_anything_is_sent(
    client: distributed.Client, scenario: rw.Scenario
) -> None:
    from ropewalk import dask

    with pytest.raises(rw.ScenarioError, match="dasp"):
        dask.sweep(scenario, vary={"transfer.scheduler": ["daps", "dasp"]}, client=client)


def test_a_worker_of_another_version_is_refused() -> None:
    pytest.importorskip("distributed")
    from ropewalk import dask

    with pytest.raises(RuntimeError, match="but the sweep was started with 0.0.0"):
        dask._point((0, [1]), job=("0.0.0", ("", "", [], None), [], {}))
