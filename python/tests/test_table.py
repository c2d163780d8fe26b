"""Other libraries read series without a copy."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import ropewalk as rw


@pytest.fixture(scope="module")
def series(run: rw.Run) -> rw.Table:
    return run.series


def test_the_columns_are_named_with_their_units(series: rw.Table, run: rw.Run) -> None:
    assert series.columns[:2] == ["time_s", "goodput_bps"]
    assert {f"{path.name}.cwnd_bytes" for path in run.paths} <= set(series)
    assert series.shape == (len(series), len(series.columns))
    assert series.metadata["seed"] == "1" and series.metadata["schema"] == "ropewalk.series/1"
    assert "wifi" in series.metadata["scenario"]


def test_the_series_add_up_to_the_result(series: rw.Table, run: rw.Run) -> None:
    measured = series["time_s"] > run.warmup_s
    goodput = series["goodput_bps"][measured]
    assert goodput.mean() == pytest.approx(run.goodput_bps, rel=0.02)
    assert series["delivered_bytes"].dtype == np.uint64


def test_what_is_unknown_is_nan(series: rw.Table) -> None:
    srtt = series["lte.srtt_s"]
    assert srtt.dtype == np.float64 and np.nanmin(srtt) > 0.1


def test_an_unknown_column_is_a_key_error_with_the_names(series: rw.Table) -> None:
    with pytest.raises(KeyError, match="goodput_bps"):
        series["goodput"]


def test_a_run_without_series_has_none(scenario: rw.Scenario) -> None:
    with pytest.raises(rw.NotRecordedError, match="series=True"):
        _ = rw.run(scenario, series=False).series


def test_pyarrow_shares_the_memory(scenario: rw.Scenario) -> None:
    pyarrow = pytest.importorskip("pyarrow", minversion="15")
    table = rw.run(scenario).series
    assert table is not None
    one, two = pyarrow.table(table), table.to_pyarrow()
    assert one.column_names == table.columns and one.schema.metadata[b"schema"]

    def addresses(arrow: object) -> list[int]:
        chunks = [column.chunk(0) for column in arrow.columns]  # type: ignore[attr-defined]
        return [chunk.buffers()[1].address for chunk in chunks]

    # Two imports point to the same bytes, so neither made a copy.
    assert addresses(one) == addresses(two)
    expected = table["goodput_bps"]
    del table, two
    gc.collect()
    # The memory lives as long as a reader holds it.
    assert (one["goodput_bps"].to_numpy() == expected).all()


def test_polars_takes_it(series: rw.Table) -> None:
    polars = pytest.importorskip("polars", minversion="1.3")
    frame = polars.DataFrame(series)
    assert frame.columns == series.columns and frame.equals(series.to_polars())
    assert (frame["goodput_bps"].to_numpy() == series["goodput_bps"]).all()
    unknown = int(np.isnan(series["lte.srtt_s"]).sum())
    assert frame["lte.srtt_s"].null_count() == unknown


def test_pandas_takes_it(series: rw.Table) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", minversion="15")
    frame = series.to_pandas()
    assert list(frame.columns) == series.columns and len(frame) == len(series)
    assert frame["delivered_bytes"].iloc[-1] == series["delivered_bytes"][-1]


def test_a_capsule_that_nobody_takes_is_freed(series: rw.Table) -> None:
    for _ in range(100):
        assert type(series.__arrow_c_stream__()).__name__ == "PyCapsule"
        assert type(series.__arrow_c_schema__()).__name__ == "PyCapsule"


def test_a_table_can_be_made_of_columns() -> None:
    table = rw.Table.from_columns({"name": ["a", "b"], "x": [1, None]})
    assert table["name"].tolist() == ["a", "b"]
    assert table["x"][0] == 1.0 and np.isnan(table["x"][1])
    with pytest.raises(ValueError, match="length"):
        rw.Table.from_columns({"x": [1.0], "y": [1.0, 2.0]})


def test_a_notebook_shows_the_head_and_the_tail(series: rw.Table) -> None:
    html = series._repr_html_()
    assert f"{len(series)} rows" in html and html.count("<tr>") <= 22
