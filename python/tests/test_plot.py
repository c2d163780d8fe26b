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


def test_a_run_shows_its_plot_and_leaves_no_figure_open(run: rw.Run) -> None:
    assert run._repr_html_().count('src="data:image/png;base64,') == 1
    assert matplotlib.pyplot.get_fignums() == []


def test_a_sweep_has_a_line_for_each_value_with_intervals(scenario: rw.Scenario) -> None:
    vary = {"transfer.scheduler": ["daps", "min-rtt"], "path.lte.rtt": ["50 ms", "90 ms"]}
    table = rw.sweep(scenario, vary=vary, seeds=2)
    figure = table.plot()
    assert [axes.get_title() for axes in figure.axes] == ["Goodput", "Delay, p99"]
    goodput = figure.axes[0]
    assert goodput.get_xlabel() == "path.lte.rtt_s" and goodput.get_ylabel() == "Mbit/s"
    assert len(goodput.containers) == 2
    for container, name in zip(goodput.containers, vary["transfer.scheduler"], strict=True):
        rows = table["transfer.scheduler"] == name
        line, _, (bars,) = container
        assert line.get_ydata() == pytest.approx(table["goodput_bps"][rows] / 1e6)
        heights = [bar[1, 1] - bar[0, 1] for bar in bars.get_segments()]
        assert heights == pytest.approx(2 * table["goodput_bps_half_width"][rows] / 1e6)
    over_names = table.plot(["blocked_share"], x="transfer.scheduler")
    assert over_names.axes[0].get_ylabel() == "%" and len(over_names.axes[0].containers) == 2
    for arguments in ({"x": "path.wifi.rtt_s"}, {"figures": ["goodput"]}, {"figures": []}):
        with pytest.raises(ValueError, match="there are|at least one"):
            table.plot(**arguments)
    figure.canvas.draw()
