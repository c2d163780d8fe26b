"""Throughput of single paths: reference values, shapes, errors."""

from __future__ import annotations

import numpy as np
import pytest

import ropewalk as rw
from ropewalk import models

#: 21 Mbit/s, 40 ms, 128 KiB in packets of 1500 bytes.
PATH = (21e6, 0.040)
WINDOW = 87
LOSS = [1e-4, 1e-3, 1e-2, 1e-1]
#: Mbit/s: an independent implementation of the models.
REFERENCE = {
    "correlated": [19.791, 10.966, 2.725, 0.462],
    "independent": [20.023, 11.767, 3.477, 0.627],
    "renewal": [18.946, 10.728, 2.737, 0.456],
}


@pytest.mark.parametrize("loss_model", ["correlated", "independent"])
def test_the_chain_agrees_with_the_reference(loss_model: models.LossModel) -> None:
    found = models.markov(*PATH, LOSS, window_packets=WINDOW, loss_model=loss_model)
    assert np.asarray(found.throughput_bps) / 1e6 == pytest.approx(REFERENCE[loss_model], rel=1e-3)
    # Sent minus arrived is lost: a share of p of the independent model's packets.
    if loss_model == "independent":
        lost = 1 - np.asarray(found.throughput_bps) / np.asarray(found.sent_bps)
        assert lost == pytest.approx(LOSS, rel=1e-9)


def test_the_renewal_model_agrees_with_the_reference() -> None:
    found = models.renewal(*PATH, LOSS, window_packets=WINDOW)
    assert np.asarray(found.throughput_bps) / 1e6 == pytest.approx(REFERENCE["renewal"], rel=1e-3)
    better = models.renewal(*PATH, 1e-2, window_packets=WINDOW, lost_per_period="first-loss")
    assert better.throughput_bps != models.renewal(*PATH, 1e-2, window_packets=WINDOW).throughput_bps


def test_a_table_has_what_single_answers_say() -> None:
    table = models.markov_table_bps(*PATH, 1e-3, window_packets=WINDOW)
    windows = np.arange(1, WINDOW + 1)
    assert (table == models.markov(*PATH, 1e-3, window_packets=windows).throughput_bps).all()
    assert (np.diff(table) > 0).all(), "more window delivers more"


def test_windows_in_any_order_and_paths_in_turn_are_each_as_alone() -> None:
    loss, windows = np.array([1e-3, 1e-3, 2e-2, 1e-3]), np.array([40, 7, 40, 87])
    found = models.markov(*PATH, loss, window_packets=windows, loss_model="correlated")
    for i in range(len(loss)):
        alone = models.markov(*PATH, loss[i], window_packets=windows[i], loss_model="correlated")
        assert tuple(np.asarray(field)[i] for field in found) == tuple(alone)


def test_without_loss_both_models_meet_a_window_per_round_trip() -> None:
    windows = np.arange(1, WINDOW + 1)
    free = np.asarray(models.loss_free_bps(*PATH, window_packets=windows))
    assert free[-1] == pytest.approx(PATH[0])
    for loss_model in ("independent", "correlated"):
        rare = {"window_packets": WINDOW, "loss_model": loss_model}
        assert models.markov_table_bps(*PATH, 1e-12, **rare) == pytest.approx(free, rel=1e-7)
    found = models.renewal(*PATH, 1e-9, window_packets=windows).throughput_bps
    assert found == pytest.approx(free, rel=1e-4)


def test_arguments_broadcast_and_a_single_case_is_a_plain_number() -> None:
    delays = np.array([[0.01], [0.02], [0.1]])
    for answer in (
        models.markov(21e6, delays, LOSS, window_packets=WINDOW).timer_share,
        models.renewal(21e6, delays, LOSS, window_packets=WINDOW).timeout_probability,
        models.pftk_bps(21e6, delays, LOSS, window_packets=WINDOW),
        models.mathis_bps(21e6, delays, LOSS, window_packets=WINDOW),
    ):
        assert np.shape(answer) == (3, 4)
    single = models.markov(21e6, 0.02, 1e-3, window_packets=WINDOW)
    assert all(type(field) is float for field in single)
    assert type(models.mathis_bps(*PATH, 1e-3, window_packets=WINDOW)) is float


def test_the_reference_formulas_meet_where_losses_are_rare_and_part_where_not() -> None:
    # Only loss limits this path.
    def at(loss: float) -> list[float]:
        given = {"window_packets": 10**6}
        return [
            float(models.pftk_bps(1e12, 0.1, loss, **given)),
            float(models.pftk_bps(1e12, 0.1, loss, short=True, **given)),
            float(models.mathis_bps(1e12, 0.1, loss, **given)),
        ]

    rare = at(1e-8)
    assert rare == pytest.approx([rare[2]] * 3, rel=3e-3)
    full, short, mathis = at(0.1)
    assert full < mathis and short < mathis


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: models.markov(*PATH, 0.0, window_packets=9), "loss = 0 .*above 0 and below 1"),
        (lambda: models.markov(*PATH, [0.1, 1.0], window_packets=9), "loss = 1 .*case 1 of 2"),
        (lambda: models.markov(0, 0.04, 0.1, window_packets=9), "rate_bps = 0"),
        (lambda: models.markov(*PATH, 0.1, window_packets=0), "window_packets = 0"),
        (lambda: models.markov(*PATH, 0.1, window_packets=2.5), "whole number"),
        (lambda: models.markov(*PATH, 0.1, window_packets=9, rto_max_s=0.1), "rto_max_s"),
        (lambda: models.markov(*PATH, 0.1, window_packets=9, loss_model="x"), "`independent` or"),
        (lambda: models.markov_table_bps(*PATH, 0.1, window_packets=0), "window_packets = 0"),
        (lambda: models.loss_free_bps(0, 0.1, window_packets=9), "rate_bps = 0"),
        (lambda: models.loss_free_bps(*PATH, window_packets=0.5), "window_packets = 0.5"),
        (lambda: models.renewal(*PATH, 0.7, window_packets=9), "at most 0.615"),
        (lambda: models.renewal(*PATH, 0.1, window_packets=9, lost_per_period="x"), "half-window"),
        (lambda: models.pftk_bps(*PATH, 0.1, window_packets=9, packets_per_ack=0), "packets_per_ack"),
    ],
)
def test_numbers_that_make_no_sense_are_named(call, part: str) -> None:
    with pytest.raises(rw.ModelError, match=part):
        call()
