"""Plots have their panels, and the panels contain data."""

from __future__ import annotations

import pytest

import ropewalk as rw

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    matplotlib.pyplot.close("all")


def test_a_run_has_four_panels_with_data(run: rw.Run) -> None:
    figure = run.plot()
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["Sequence", "Throughput", "Receive buffer", "Windows"]
    for axes in figure.axes:
        drawn = [line.get_ydata() for line in axes.lines]
        assert any(len(data) > 10 and max(data) > 0 for data in drawn), axes.get_title()
        assert axes.get_xlabel() == "time (s)" and axes.get_ylabel()
    labels = figure.axes[1].get_legend_handles_labels()[1]
    assert labels == ["wifi", "lte", "goodput", "flow-control bound"]
    figure.canvas.draw()


def test_without_packets_the_first_panel_shows_bytes(scenario: rw.Scenario) -> None:
    run = rw.run(scenario)
    axes = run.plot().axes[0]
    assert axes.get_title() == "Delivered"
    assert run.series is not None
    assert axes.lines[0].get_ydata()[-1] == run.series["delivered_bytes"][-1] / 1e6


def test_without_series_there_is_nothing_to_plot(scenario: rw.Scenario) -> None:
    with pytest.raises(ValueError, match="series=True"):
        rw.run(scenario, series=False).plot()


def test_a_comparison_has_a_bar_per_variant(scenario: rw.Scenario) -> None:
    comparison = rw.compare(scenario, schedulers=["daps", "min-rtt"], seeds=2)
    figure = comparison.plot()
    assert len(figure.axes) == 3
    widths = [bar.get_width() for bar in figure.axes[0].patches]
    assert widths == pytest.approx(comparison.table["goodput_bps"] / 1e6)
    figure.canvas.draw()
