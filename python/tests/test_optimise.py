"""Window limits compared with HiGHS's integer programs, and refused inputs."""

from __future__ import annotations

import highspy
import numpy as np
import pytest
from numpy.typing import NDArray

import ropewalk as rw
from ropewalk import models

INSTANCES = 200


def integer_program(
    tables: list[NDArray[np.float64]], packets: int, may_rest: bool
) -> tuple[list[int], float]:
    """Eq 56 to 60 as printed: one binary variable for each limit of each path."""
    solver = highspy.Highs()
    solver.silent()
    solver.setOptionValue("mip_rel_gap", 0.0)
    solver.setOptionValue("mip_abs_gap", 0.0)
    chosen = [[solver.addBinary() for _ in table] for table in tables]
    for path in chosen:
        once = sum(path[1:], start=path[0] + 0.0)
        solver.addConstr(once <= 1 if may_rest else once == 1)
    pairs = [(c, x) for path in chosen for c, x in enumerate(path, start=1)]
    solver.addConstr(sum((c * x for c, x in pairs[1:]), start=pairs[0][0] * pairs[0][1]) <= packets)
    gains = [
        float(gain) * x
        for table, path in zip(tables, chosen, strict=True)
        for gain, x in zip(table, path, strict=True)
    ]
    solver.maximize(sum(gains[1:], start=gains[0]))
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    values = [np.round([solver.val(x) for x in path]) for path in chosen]
    limits = [int(np.arange(1, len(row) + 1) @ row) for row in values]
    # Recomputed, because the solver's objective is exact only to its tolerance.
    total = sum(float(table @ row) for table, row in zip(tables, values, strict=True))
    return limits, total


def instance(rng: np.random.Generator, number: int) -> tuple[list[NDArray[np.float64]], int]:
    """Tables of both models, or random ones, and a buffer smaller than their sum.

    Values are whole kbit/s: HiGHS accepts a solution within about 10^-6 as optimal, so only whole
    numbers distinguish the best allocation from the next best.
    """
    paths = int(rng.integers(1, 5))
    tables = []
    for _ in range(paths):
        window = int(rng.integers(1, 40))
        if number % 4 == 0:
            tables.append(rng.integers(0, 10_000, window).astype(float))
        else:
            loss = float(10 ** rng.uniform(-4, -0.7))
            kind = "independent" if number % 2 else "correlated"
            rate, rtt = rng.uniform(1, 50) * 1e6, rng.uniform(0.01, 0.1)
            path = {"window_packets": window, "loss_model": kind}
            tables.append(np.round(models.markov_table_bps(rate, rtt, loss, **path) / 1e3))
    all_packets = sum(map(len, tables))
    return tables, int(rng.integers(paths, max(paths, all_packets) + 1))


@pytest.mark.parametrize("part", range(4))
def test_the_optimum_is_that_of_an_integer_program(part: int) -> None:
    for number in range(part * INSTANCES // 4, (part + 1) * INSTANCES // 4):
        rng = np.random.default_rng(number)
        tables, packets = instance(rng, number)
        may_rest = bool(rng.integers(2))
        found = models.allocate_windows(tables, packets, may_rest=may_rest)
        limits, total = integer_program(tables, packets, may_rest)
        assert found.throughput == total, (number, found, limits)
        assert sum(found.limits_packets) <= packets


def test_multiples_cost_throughput_and_the_least_buffer_is_the_way_back() -> None:
    # Figure 13 and 14: 45 and 10 Mbit/s, 25 and 50 ms, 128 KiB.
    tables = [
        models.markov_table_bps(45e6, 0.025, 1e-3, window_packets=87),
        models.markov_table_bps(10e6, 0.050, 1e-3, window_packets=43),
    ]
    best = models.allocate_windows(tables, 87)
    coarse = models.allocate_windows_in_multiples(tables, 87, 10)
    assert coarse.throughput < best.throughput
    assert all(limit % 10 == 0 for limit in coarse.limits_packets)
    least = models.least_buffer(tables, best.throughput)
    assert (least.packets, least.allocation.throughput) == (87, best.throughput)


def test_a_path_may_be_left_out() -> None:
    slow_start = [0.0, 0.0, 1.0]
    assert models.allocate_windows([[5.0, 6.0], slow_start], 2).limits_packets == [1, 1]
    rests = models.allocate_windows([[5.0, 6.0], slow_start], 2, may_rest=True)
    assert rests.limits_packets == [2, 0]


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: models.allocate_windows([], 5), "0 path"),
        (lambda: models.allocate_windows([[1.0], [1.0]], 1), "too small"),
        (lambda: models.allocate_windows([[1.0], []], 5), "window_packets = 0"),
        (lambda: models.allocate_windows([[[1.0]]], 5), "shape"),
        (lambda: models.allocate_windows([[1.0]], -5), "packets = -5"),
        (lambda: models.allocate_windows([[np.nan]], 5), "NaN"),
        (lambda: models.allocate_windows_in_multiples([[1.0]], 5, 2), "multiple_packets = 2"),
        (lambda: models.least_buffer([[1.0, 3.0]], 3.5), "out of reach.* 3$"),
        (lambda: models.least_buffer([[1.0, 3.0]], -1.5), "target = -1.5 is out of range"),
    ],
)
def test_what_cannot_be_is_said(call, part: str) -> None:
    with pytest.raises(rw.ModelError, match=part):
        call()
