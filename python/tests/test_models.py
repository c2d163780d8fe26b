"""Closed forms over arrays: the printed cases, shapes, errors."""

from __future__ import annotations

import numpy as np
import pytest

import ropewalk as rw
from ropewalk import models


def test_the_printed_cases_come_out() -> None:
    rates, round_trips = [1e6, 2e6], [0.020, 0.200]
    # Kuhn et al. 2014: 2 Mbit/s and 200 ms against 1 Mbit/s and 20 ms.
    assert models.receive_buffer_min_bytes(rates, round_trips) == 75_000
    blocking = models.blocking_time_max_s(rates, round_trips, packet_bytes=1500)
    assert blocking == pytest.approx(0.1 + 0.006 - 0.010 - 0.012)
    bound = models.flow_control_bound(rates, round_trips, receive_buffer_bytes=45e3)
    assert bound.bound_bps == pytest.approx(2.59e6, abs=5e3)
    assert bound.window_bytes.sum() == pytest.approx(45e3) and bound.spare_bytes == 0
    assert models.blocking_time_two_paths_s(2e6, 0.2, 1e6, 0.02) == pytest.approx(blocking)
    assert models.asymmetry(1e6, 0.02, 2e6, 0.2) == pytest.approx(20)


def test_a_single_case_gives_a_plain_number() -> None:
    assert type(models.receive_buffer_min_bytes([1e6], [0.1])) is float
    assert type(models.blocking_time_max_s([1e6, 1e6], 0.1)) is float
    assert type(models.asymmetry(1, 1, 1, 1)) is float
    one = models.receive_buffer_min_bytes([[1e6]], [0.1])
    assert isinstance(one, np.ndarray) and one.shape == (1,)


def test_arrays_broadcast_and_equal_the_single_cases() -> None:
    rng = np.random.default_rng(1)
    rates = rng.uniform(1e5, 1e8, size=(4, 1, 3))
    round_trips = rng.uniform(1e-3, 1, size=(5, 3))
    buffers = rng.uniform(1e3, 1e6, size=(4, 1))
    packets = np.array([500.0, 1000.0, 1500.0, 1200.0, 40.0])
    blocking = models.blocking_time_max_s(rates, round_trips, packet_bytes=packets)
    bound = models.flow_control_bound(
        rates, round_trips, receive_buffer_bytes=buffers, packet_bytes=packets
    )
    assert np.shape(blocking) == np.shape(bound.bound_bps) == (4, 5)
    assert bound.window_bytes.shape == bound.share_bps.shape == (4, 5, 3)
    for i, j in np.ndindex(4, 5):
        paths = (rates[i, 0], round_trips[j])
        assert blocking[i, j] == models.blocking_time_max_s(*paths, packet_bytes=packets[j])
        single = models.flow_control_bound(
            *paths, receive_buffer_bytes=buffers[i, 0], packet_bytes=packets[j]
        )
        assert bound.bound_bps[i, j] == single.bound_bps
        assert (bound.share_bps[i, j] == single.share_bps).all()
        assert bound.spare_bytes[i, j] == single.spare_bytes


def test_any_layout_and_type_of_array_is_taken() -> None:
    rates = np.asfortranarray(np.arange(1, 7, dtype=np.float32).reshape(3, 2) * 1e6)
    expected = models.receive_buffer_min_bytes(rates.tolist(), 0.1)
    assert (models.receive_buffer_min_bytes(rates, 0.1) == expected).all()
    backwards = models.receive_buffer_min_bytes(rates[::-1], 0.1)
    assert (backwards == np.asarray(expected)[::-1]).all()
    assert np.shape(models.receive_buffer_min_bytes(np.ones((0, 2)), 0.1)) == (0,)


def test_a_forward_delay_replaces_half_the_round_trip() -> None:
    paths = ([1e6, 1e6], [0.2, 0.2])
    assert models.blocking_time_max_s(*paths) == 0
    uneven = models.blocking_time_max_s(*paths, forward_delay_s=[0.15, 0.05])
    assert uneven == pytest.approx(0.1)


def test_a_slow_way_back_costs_window() -> None:
    given = {"receive_buffer_bytes": 20e3}
    fast = models.flow_control_bound([2e6], [0.2], **given).bound_bps
    slow = models.flow_control_bound([2e6], [0.2], reverse_rate_bps=10e3, **given).bound_bps
    assert slow < fast


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: models.blocking_time_max_s([1e6], [0.1]), "at least 2"),
        (lambda: models.receive_buffer_min_bytes([1e6, -3.0], 0.1), "rate_bps = -3"),
        (lambda: models.receive_buffer_min_bytes([[1e6], [np.nan]], 0.1), "case 1 of 2"),
        (lambda: models.receive_buffer_min_bytes([], []), "0 path"),
        (lambda: models.asymmetry(1, 1, 0, 1), "rate_1_bps = 0"),
        (lambda: models.blocking_time_max_s([1e6] * 2, 0.1, forward_delay_s=0.2), "forward_delay_s"),
        (lambda: models.receive_order([0, 1], 5), "0 ticks"),
        (lambda: models.packets_per_period([1, -2], [1, 1]), "negative"),
    ],
)
def test_numbers_that_make_no_sense_are_named(call, part: str) -> None:
    with pytest.raises(rw.ModelError, match=part):
        call()


def test_the_schedule_of_sarwar_2013_comes_out() -> None:
    period = models.packets_per_period([10, 100], [2, 5])
    assert (period.ticks, period.capped, period.packets) == (100, False, [20, 5])
    order = models.receive_order(np.array([10, 100]), period.ticks)
    # Ten turns of the fast path, the last one at the same instant as the slow path's.
    assert order == [0] * 10 + [1]
    with pytest.raises(TypeError, match="whole numbers"):
        models.receive_order([1.5], 10)
