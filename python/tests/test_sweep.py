"""Sweeps: in this process, in shards, on a cluster, and by the command."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ropewalk as rw

VARY = {"path.lte.rtt": "50ms..200ms/3", "transfer.scheduler": ["round-robin", "daps"]}


@pytest.fixture(scope="module")
def table(scenario: rw.Scenario) -> rw.SweepTable:
    return rw.sweep(scenario, vary=VARY, seeds=2)


def test_a_row_per_point_with_typed_columns(scenario: rw.Scenario, table: rw.SweepTable) -> None:
    assert table.shape[0] == len(table) == 6
    assert table["path.lte.rtt_s"].tolist() == [0.05, 0.05, 0.125, 0.125, 0.2, 0.2]
    assert table["transfer.scheduler"].tolist() == ["round-robin", "daps"] * 3
    assert table["runs"].tolist() == [2] * 6 and table["error"].tolist() == [None] * 6
    assert table.metadata["schema"] == "ropewalk.sweep/1"
    assert (table["goodput_bps_half_width"] >= 0).all()
    runs = table.runs
    assert len(runs) == 12 and runs.metadata["schema"] == "ropewalk.sweep-runs/1"
    assert runs["point"].tolist() == [n for n in range(6) for _ in range(2)]
    assert runs["seed_number"].tolist() == [1, 2] * 6 and runs["error"].tolist() == [None] * 12
    assert runs["goodput_bps"].reshape(6, 2).mean(axis=1).tolist() == table["goodput_bps"].tolist()
    flags = rw.sweep(scenario, vary={"transfer.unordered": [True, False]})
    assert flags["transfer.unordered"].dtype == np.bool_
    assert flags["transfer.unordered"].tolist() == [True, False]


def test_a_notebook_shows_means_with_intervals_and_a_plot(table: rw.SweepTable) -> None:
    html = table._repr_html_()
    assert table.varied == ["path.lte.rtt_s", "transfer.scheduler"]
    assert "<th>transfer.scheduler</th>" in html and "<td>daps</td>" in html
    assert html.count(" ± ") >= 2 * len(table) and "failed" not in html
    pytest.importorskip("matplotlib")
    assert html.count('src="data:image/png;base64,') == 1


def test_one_seed_is_the_run_itself(scenario: rw.Scenario) -> None:
    one = rw.sweep(scenario, vary={"transfer.receive_buffer": ["30 kB", "60 kB"]}, seed=5)
    alone = rw.run(scenario, seed=5, set={"transfer.receive_buffer": "60 kB"})
    assert one["transfer.receive_buffer_bytes"].tolist() == [30_000, 60_000]
    assert one["goodput_bps"][1] == alone.goodput_bps
    assert one["app_delay_p99_s"][1] == alone.app_delay_s.p99
    # A single run has no variance.
    assert np.isnan(one["goodput_bps_half_width"]).all()


def test_threads_and_shards_do_not_show(scenario: rw.Scenario, tmp_path: Path) -> None:
    files = []
    for threads in (1, 2):
        files.append(tmp_path / f"{threads}.parquet")
        rw.sweep(scenario, vary=VARY, seeds=2, threads=threads, out=files[-1])
    shards = [tmp_path / name for name in ("a.parquet", "b.parquet")]
    for number, path in enumerate(shards, 1):
        part = rw.sweep(scenario, vary=VARY, seeds=2, out=path, shard=f"{number}/2")
        assert len(part) == 3
    files.append(tmp_path / "all.parquet")
    rw.merge_sweeps(shards, out=files[-1])
    contents = {path.read_bytes() for path in files}
    assert len(contents) == 1
    with pytest.raises(ValueError, match="3 of 6 points are missing: 1, 3, 5"):
        rw.merge_sweeps(shards[:1])


def test_other_libraries_read_table_and_file(
    scenario: rw.Scenario, table: rw.Table, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rw.sweep(scenario, vary=VARY, seeds=2, out=tmp_path / "x.parquet")
    read = parquet.read_table(tmp_path / "x.parquet")
    assert read.equals(table.runs.to_pyarrow(), check_metadata=True)
    polars = pytest.importorskip("polars")
    frame = polars.read_parquet(tmp_path / "x.parquet")
    assert frame.equals(table.runs.to_polars())
    # The package computes the same means as another library.
    means = frame.group_by("point", maintain_order=True).agg(polars.col("goodput_bps").mean())
    assert means["goodput_bps"].to_list() == pytest.approx(table["goodput_bps"].tolist(), rel=1e-15)
    pandas = pytest.importorskip("pandas")
    assert isinstance(table.runs.to_pandas(), pandas.DataFrame)


def test_seeds_are_added_without_running_the_former_ones_again(
    scenario: rw.Scenario, tmp_path: Path
) -> None:
    whole, out = tmp_path / "whole.parquet", tmp_path / "x.parquet"
    expected = rw.sweep(scenario, vary=VARY, seeds=5, out=whole)
    first = rw.sweep(scenario, vary=VARY, seeds=2, out=out)
    assert first["runs"].tolist() == [2] * 6
    more = rw.sweep(scenario, vary=VARY, seeds=range(3, 5), out=out)
    assert more["runs"].tolist() == [4] * 6
    last = rw.sweep(scenario, vary=VARY, seeds="5..5", out=out)
    assert out.read_bytes() == whole.read_bytes()
    assert last.to_pyarrow().equals(expected.to_pyarrow())
    assert last.runs.to_pyarrow().equals(expected.runs.to_pyarrow())
    # Two files with different seeds are merged like shards.
    parts = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for path, seeds in zip(parts, ([1, 4], [2, 3, 5]), strict=True):
        rw.sweep(scenario, vary=VARY, seeds=seeds, out=path)
    assert rw.merge_sweeps(parts).runs.to_pyarrow().equals(expected.runs.to_pyarrow())
    # With fewer seeds than the file has, nothing runs and the result is unchanged.
    before = out.stat().st_mtime_ns
    assert len(rw.sweep(scenario, vary=VARY, seeds=1, out=out).runs) == 30
    assert out.stat().st_mtime_ns == before


def test_the_command_writes_the_same_bytes(
    command: str, scenario_file: Path, tmp_path: Path
) -> None:
    options = ["--vary", "path.lte.rtt=50ms..200ms/3", "--seeds", "2"]
    words = [command, "sweep", str(scenario_file), *options, "--out", str(tmp_path / "a.parquet")]
    subprocess.run(words, check=True, capture_output=True)
    vary = {"path.lte.rtt": "50ms..200ms/3"}
    rw.sweep(scenario_file, vary=vary, seeds=2, out=tmp_path / "b.parquet")
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vary": {}}, "nothing varies"),
        ({"vary": {"path.lte.rtt": []}}, "at least one value"),
        ({"vary": {"path.lte.rtt": "1ms..2ms"}}, "how many values"),
        ({"vary": {"path.lte.rtt": ["1 ms", "0.001 s"]}}, "given twice"),
        ({"vary": {"path.lte.rt": ["1 ms", "2 ms"]}}, "did you mean `rtt`"),
        ({"vary": VARY, "seeds": 0}, "1 to 10000"),
        ({"vary": VARY, "seeds": []}, "seeds: "),
        ({"vary": VARY, "seeds": [2, 2]}, "seed 2 is given twice"),
        ({"vary": VARY, "seeds": "5..3"}, "`5..3` is empty"),
        ({"vary": VARY, "shard": "3/2"}, "valid: 1/2 to 2/2"),
        ({"vary": VARY, "out": "x.csv"}, ".parquet"),
        ({"vary": VARY, "threads": 0}, "at least 1"),
    ],
)
def test_what_is_not_possible_is_refused(
    scenario: rw.Scenario, arguments: dict, message: str
) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        rw.sweep(scenario, **arguments)
    assert not re.search("--[a-z]", str(raised.value)), "no option of the command"


def test_only_a_total_failure_is_raised(scenario: rw.Scenario) -> None:
    with pytest.warns(rw.RunWarning, match="1 of 2 runs failed"):
        some = rw.sweep(scenario, vary={"transfer.bytes": ["10 kB", "1 GB"]})
    assert some["failed"].tolist() == [0, 1] and "transfer.duration" in some["error"][1]
    assert np.isnan(some["goodput_bps"][1])
    with pytest.raises(rw.RunError, match="all runs of all 1 points failed"):
        rw.sweep(scenario, vary={"transfer.bytes": ["1 GB"]})


LONG = """
import sys
import ropewalk as rw
vary = {"path.lte.rtt": "50ms..400ms/5000"}
rw.sweep(sys.argv[1], vary=vary, out=sys.argv[2], set={"transfer.duration": "300 s"})
"""


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_ctrl_c_stops_a_sweep_and_finished_points_are_kept(
    scenario_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "x.parquet"
    journal = tmp_path / "x.parquet.journal"
    words = [sys.executable, "-c", LONG, str(scenario_file), str(out)]
    # A shell without job control starts background jobs with SIGINT ignored, and `make test` may be one.
    listens = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    with subprocess.Popen(
        words, stderr=subprocess.PIPE, text=True, preexec_fn=listens
    ) as process:
        deadline = time.monotonic() + 60
        while not journal.exists() or journal.read_bytes().count(b"\n") < 3:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode != 0 and "KeyboardInterrupt" in said
    assert journal.read_bytes().count(b"\n") >= 3 and not out.exists()
