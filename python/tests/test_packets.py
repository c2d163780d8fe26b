"""The table of packets, and how other libraries take it."""

from __future__ import annotations

import numpy as np
import pytest

import ropewalk as rw
from ropewalk import _figures

SHORT = {"transfer.duration": "3 s", "transfer.warmup": "0 s"}


@pytest.fixture(scope="module")
def listed(scenario: rw.Scenario) -> rw.Run:
    return rw.run(scenario, packets=True, set=SHORT)


@pytest.fixture(scope="module")
def packets(listed: rw.Run) -> rw.Table:
    return listed.packets


def test_the_columns_are_those_that_are_documented(packets: rw.Table) -> None:
    assert tuple(packets.columns) == _figures.PACKETS
    assert packets.metadata["schema"] == "ropewalk.packets/1" and "cut_s" not in packets.metadata


def test_the_packets_are_those_of_the_figures(listed: rw.Run, packets: rw.Table) -> None:
    data = (packets["kind"] == "DATA") & (packets["direction"] == "up")
    for path in listed.paths:
        assert (data & (packets["path"] == path.name)).sum() == path.sent_packets
    resent = sum(path.retransmitted_packets for path in listed.paths)
    assert packets["retransmission"].sum() == resent > 0
    assert packets["dropped"].sum() > 0
    assert {"DATA", "SACK", "INIT", "COOKIE_ECHO"} <= set(packets["kind"])
    assert (packets["size_bytes"] > packets["payload_bytes"]).all()


def test_one_way_delays_are_at_least_those_of_the_links(packets: rw.Table) -> None:
    delay = packets["received_s"] - packets["sent_s"]
    # Half of the RTT and the serialisation of the packet; the times are exact to a nanosecond.
    for name, rtt, rate in (("wifi", 0.02, 1e6), ("lte", 0.2, 2e6)):
        arrived = (packets["path"] == name) & ~np.isnan(delay)
        least = rtt / 2 + packets["size_bytes"] * 8 / rate
        assert (delay[arrived] > least[arrived] - 2e-9).all()
        assert delay[arrived].min() < rtt / 2 + 0.02
    assert not packets["dropped"][~np.isnan(delay)].any()


def test_unknown_numbers_are_nan_and_tcp_has_data_sequence_numbers(
    scenario: rw.Scenario, packets: rw.Table
) -> None:
    has_data = packets["chunks"] > 0
    assert (np.isnan(packets["tsn"]) == ~has_data).all() and np.isnan(packets["dsn"]).all()
    changes = SHORT | {"transfer.protocol": "mptcp"}
    tcp = rw.run(scenario, scheduler="min-rtt", packets="1 s", set=changes).packets
    assert tcp is not None and tcp["sent_s"].max() < 1.0
    assert (np.isnan(tcp["dsn"]) == (tcp["payload_bytes"] == 0)).all()
    assert np.isnan(tcp["tsn"]).all() and {"SYN", "DATA", "ACK"} <= set(tcp["kind"])


def test_only_runs_that_list_packets_have_them(scenario: rw.Scenario, run: rw.Run) -> None:
    with pytest.raises(rw.NotRecordedError, match="packets=True"):
        _ = run.packets
    with pytest.raises(ValueError, match="packets"):
        rw.run(scenario, packets="5")


def test_pyarrow_and_polars_and_pandas_take_it(packets: rw.Table) -> None:
    pyarrow = pytest.importorskip("pyarrow", minversion="15")
    arrow = pyarrow.table(packets)
    assert arrow.column_names == packets.columns
    assert arrow.schema.field("tsn").type == pyarrow.uint64()
    assert arrow["received_s"].null_count == np.isnan(packets["received_s"]).sum()

    def addresses(table: object) -> list[int]:
        numbers = [table[name].chunk(0) for name in ("sent_s", "tsn", "path")]  # type: ignore[index]
        return [chunk.buffers()[1].address for chunk in numbers]

    # A second import points to the same bytes, so neither made a copy.
    assert addresses(arrow) == addresses(packets.to_pyarrow())
    polars = pytest.importorskip("polars", minversion="1.3")
    counted = polars.DataFrame(packets).group_by("path", "direction").len()
    assert counted["len"].sum() == len(packets) and len(counted) == 4
    pandas = pytest.importorskip("pandas")
    frame = packets.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame.groupby("path")["size_bytes"].sum().sum() == packets["size_bytes"].sum()


def test_duckdb_takes_it(packets: rw.Table) -> None:
    duckdb = pytest.importorskip("duckdb")
    table = packets  # noqa: F841, DuckDB finds it by its name.
    (count,) = duckdb.sql("select count(*) from table where dropped").fetchone()
    assert count == packets["dropped"].sum()
