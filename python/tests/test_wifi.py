"""Saturation of 802.11: the standard's arithmetic, shapes, errors."""

from __future__ import annotations

import numpy as np
import pytest

import ropewalk as rw
from ropewalk import models


@pytest.mark.parametrize(
    ("standard", "rate_bps", "cycle_us"),
    [
        # DIFS, mean backoff, frame of 1400 + 36 bytes, SIFS, acknowledgement.
        ("802.11g", 54e6, 28 + 67.5 + 242 + 10 + 34),
        ("802.11g", 6e6, 28 + 67.5 + 1946 + 10 + 50),
        ("802.11b", 2e6, 50 + 310 + 5936 + 10 + 248),
        ("802.11b-short", 11e6, 50 + 310 + 1141 + 10 + 152),
    ],
)
def test_one_station_carries_what_the_standard_leaves_it(
    standard: models.WifiStandard, rate_bps: float, cycle_us: float
) -> None:
    found = models.bianchi(1, rate_bps=rate_bps, standard=standard)
    assert found.throughput_bps == pytest.approx(11_200 / cycle_us * 1e6, rel=1e-9)
    assert found.collision == pytest.approx(0, abs=1e-9)


def test_more_stations_collide_more_and_carry_less() -> None:
    found = models.bianchi([2, 5, 10, 20])
    assert (np.diff(found.collision) > 0).all() and (np.diff(found.throughput_bps) < 0).all()
    # The two halves of the model meet.
    stations = np.array([2, 5, 10, 20])
    implied = 1 - (1 - np.asarray(found.transmission)) ** (stations - 1)
    assert implied == pytest.approx(found.collision, rel=1e-9)
    assert np.asarray(found.given_up) == pytest.approx(np.asarray(found.collision) ** 7, rel=1e-9)
    assert (np.asarray(models.bianchi([2, 20], attempts=None).given_up) == 0).all()


def test_arguments_broadcast_and_a_single_case_is_a_number() -> None:
    found = models.bianchi([[1], [5]], packet_bytes=[200, 800, 1400])
    assert np.shape(found.throughput_bps) == (2, 3)
    assert np.asarray(found.throughput_bps)[1, 2] == models.bianchi(5).throughput_bps
    assert isinstance(models.bianchi(5).throughput_bps, float)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"rate_bps": 50e6}, "48 or 54 Mbit/s"),
        ({"standard": "802.11n"}, '"802.11g"'),
        ({"stations": 0}, "stations = 0"),
        ({"stations": [1, 2.5]}, r"case 1 of 2"),
        ({"attempts": 0}, "attempts = 0"),
        ({"packet_bytes": 0}, "packet_bytes = 0"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, object], part: str) -> None:
    arguments: dict[str, object] = {"stations": 2, **change}
    with pytest.raises(rw.ModelError, match=part):
        models.bianchi(**arguments)  # type: ignore[arg-type]
