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
    assert titles == ["Sequence", "Throughput", "Receive buffer", "Congestion windows"]
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


MANY = "".join(
    f"""
[[path]]
name = "link-{number:02}"
rate = "{number + 1} Mbit/s"
"""
    for number in range(20)
)


def looks(axes: matplotlib.axes.Axes) -> list[tuple[object, ...]]:
    """Colour, dashes and marker of each line with a name."""
    lines = [line for line in axes.lines if not line.get_label().startswith("_")]
    lines += [container[0] for container in axes.containers]
    return [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines]


def is_covered(axes: matplotlib.axes.Axes, figure: matplotlib.figure.Figure) -> bool:
    """Whether a legend of more than six entries overlaps the panel."""
    figure.canvas.draw()
    legends = [legend for legend in (axes.get_legend(), *figure.legends) if legend is not None]
    long = [legend for legend in legends if len(legend.get_texts()) > 6]
    return any(legend.get_window_extent().overlaps(axes.get_window_extent()) for legend in long)


def test_twenty_lines_can_be_told_apart_and_no_legend_covers_them(scenario: rw.Scenario) -> None:
    vary = {"path.lte.rtt": "50ms..90ms/2", "path.wifi.rtt": "1ms..20ms/20"}
    table = rw.sweep(scenario.set({"transfer.duration": "1.5 s"}), vary=vary)
    run = rw.run(rw.Scenario.parse('[transfer]\nduration = "2 s"\n' + MANY), sequence="1 s")
    own, given = matplotlib.pyplot.subplots(layout="constrained")
    for figure, panels, count in (
        (table.plot(), slice(None), 20),
        (table.plot(["goodput_bps"], ax=given), slice(None), 20),
        (run.plot(), slice(0, 2), 20),
    ):
        for axes in figure.axes[panels]:
            assert len(set(looks(axes))) == len(looks(axes)) >= count, axes.get_title()
        assert sum(len(legend.get_texts()) >= count for legend in every_legend(figure)) == 1
        assert not any(is_covered(axes, figure) for axes in figure.axes)
        for legend in every_legend(figure):
            inside = figure.bbox.padded(1.0)
            box = legend.get_window_extent()
            assert inside.y0 <= box.y0 and box.y1 <= inside.y1 and box.x1 <= inside.x1
    assert given.figure is own


def every_legend(figure: matplotlib.figure.Figure) -> list[matplotlib.legend.Legend]:
    of_axes = [axes.get_legend() for axes in figure.axes]
    return [legend for legend in (*of_axes, *figure.legends) if legend is not None]


def test_panels_are_drawn_into_the_axes_of_the_caller(
    run: rw.Run, scenario: rw.Scenario
) -> None:
    comparison = rw.compare(scenario, schedulers=["daps", "min-rtt"])
    table = rw.sweep(scenario, vary={"path.lte.rtt": ["50 ms", "90 ms"]})
    tuning = rw.tune(scenario)
    figure, axes = matplotlib.pyplot.subplots(2, 4, layout="constrained")
    assert run.plot(["windows", "buffer"], ax=axes[:, 0]) is figure
    assert comparison.plot(["goodput_bps", "app_delay_mean_s"], ax=list(axes[:, 1])) is figure
    assert table.plot(["blocked_share"], ax=axes[0, 2]) is figure
    assert tuning.plot(["buffer"], ax=axes[1, 2]) is figure
    assert tuning.plot(["map"], ax=axes[0, 3]) is figure
    titles = [one.get_title() for one in axes[:, :3].flat]
    assert titles[:2] == ["Congestion windows", "Goodput"]
    assert titles[2:5] == ["Blocked, share", "Receive buffer", "Delay, mean"] and titles[5]
    assert axes[0, 3].get_title() and not axes[1, 3].has_data()
    assert len(matplotlib.pyplot.get_fignums()) == 1
    part = matplotlib.pyplot.figure().subfigures(1, 2)[0].subplots()
    assert run.plot("throughput", ax=part) is part.figure.canvas.figure


def test_wrong_panels_and_axes_are_refused(run: rw.Run, scenario: rw.Scenario) -> None:
    _, axes = matplotlib.pyplot.subplots(1, 3)
    for arguments in ({"ax": axes}, {"panels": ["goodput"]}, {"panels": []}):
        with pytest.raises(ValueError, match="3 axes for 4 panels|there are: sequence|at least one"):
            run.plot(**arguments)
    with pytest.raises(ValueError, match="no figure 'goodput'"):
        rw.compare(scenario, schedulers=["daps"]).plot(["goodput"])
