"""Percentiles and distributions of delays."""

from __future__ import annotations

import numpy as np
import pytest

import ropewalk as rw


@pytest.mark.parametrize("key", ["app_delay_s", "blocking_time_s"])
def test_percentiles_are_the_figures_of_the_document(run: rw.Run, key: str) -> None:
    delays = getattr(run, key)
    assert isinstance(delays, rw.DelayDistribution) and isinstance(delays, rw.Delays)
    assert delays.percentile(50) == delays.p50 == run.to_dict()[key]["p50"]
    assert delays.percentile(99) == delays.p99
    assert delays.percentile(100) == delays.max > delays.p99
    several = delays.percentiles([100, 0, 99])
    assert several.dtype == np.float64
    assert several.tolist() == [delays.percentile(percent) for percent in (100, 0, 99)]


def test_the_distribution_function_ascends_to_one(run: rw.Run) -> None:
    delay_s, share = run.app_delay_s.ecdf()
    assert delay_s.shape == share.shape and len(share) > 20
    assert (np.diff(delay_s) > 0).all() and (np.diff(share) > 0).all()
    assert share[-1] == 1.0 and delay_s[-1] == run.app_delay_s.max
    for percent in (1, 50, 90, 99):
        found = delay_s[np.searchsorted(share, percent / 100)]
        assert found == run.app_delay_s.percentile(percent)
    # Weights of the steps: the mean is that of the document, to the width of a bucket.
    mean = (delay_s * np.diff(share, prepend=0.0)).sum()
    assert mean == pytest.approx(run.app_delay_s.mean, rel=0.008)


def test_every_run_has_them(scenario: rw.Scenario) -> None:
    runs = list(rw.compare(scenario, schedulers=["daps"], seeds=2, series=False))
    assert all(run.app_delay_s.percentile(99) == run.app_delay_s.p99 for run in runs)


def test_what_has_no_percentile_is_refused(scenario: rw.Scenario, run: rw.Run) -> None:
    for percent in (-1, 100.5, float("nan")):
        with pytest.raises(ValueError, match="0 to 100"):
            run.app_delay_s.percentile(percent)
    # The few bytes arrive before the measured interval begins.
    nothing = rw.run(scenario, set={"transfer.bytes": "20 kB", "transfer.warmup": "5 s"})
    with pytest.raises(ValueError, match=r"app_delay_s.*transfer\.warmup"):
        nothing.app_delay_s.percentile(50)
    with pytest.raises(ValueError, match="no chunk"):
        nothing.blocking_time_s.ecdf()
