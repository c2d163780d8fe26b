"""Comparisons and predictions."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from test_run import without_timing

import ropewalk as rw
from ropewalk import _html


@pytest.fixture(scope="module")
def comparison(scenario: rw.Scenario) -> rw.Comparison:
    return rw.compare(scenario, schedulers=["daps", "round-robin"], seeds=3, seed=4)


def test_each_run_is_the_run_by_itself(scenario: rw.Scenario, comparison: rw.Comparison) -> None:
    assert [(one.label, one.seed) for one in comparison.runs] == [
        (label, seed) for label in ("daps", "round-robin") for seed in (4, 5, 6)
    ]
    for one in comparison.runs:
        alone = rw.run(scenario, scheduler=one.label, seed=one.seed)
        assert one.run is not None and one.error is None
        assert without_timing(one.run.json()) == without_timing(alone.json())


def test_the_table_has_a_row_per_variant(comparison: rw.Comparison) -> None:
    table = comparison.table
    assert table["label"].tolist() == comparison.labels == ["daps", "round-robin"]
    goodputs = [one.run.goodput_bps for one in comparison.runs if one.run and one.label == "daps"]
    assert table["goodput_bps"][0] == pytest.approx(np.mean(goodputs))
    # Student's t with 2 degrees of freedom.
    expected = 4.3027 * np.std(goodputs, ddof=1) / np.sqrt(3)
    assert table["goodput_bps_half_width"][0] == pytest.approx(expected, rel=1e-4)
    assert table["runs"].tolist() == [3, 3]


def test_the_number_of_threads_does_not_show(scenario: rw.Scenario) -> None:
    one, two = (rw.compare(scenario, seeds=2, threads=threads) for threads in (1, 2))
    assert one.labels == rw.schedulers()
    assert without_timing(one.json()) == without_timing(two.json())


def test_values_of_any_key_can_be_compared(scenario: rw.Scenario) -> None:
    sizes = ["30 kB", "120 kB"]
    comparison = rw.compare(scenario, vary={"transfer.receive_buffer": sizes})
    assert comparison.labels == ["transfer.receive_buffer 30 kB", "transfer.receive_buffer 120 kB"]
    small, large = comparison
    assert small.goodput_bps < large.goodput_bps
    assert comparison["transfer.receive_buffer 120 kB"] is large
    # A single run has no variance.
    assert np.isnan(comparison.table["goodput_bps_half_width"]).all()


@pytest.mark.parametrize(
    "arguments",
    [
        {"schedulers": []},
        {"schedulers": "daps"},
        {"vary": {"a": [1], "b": [2]}},
        {"schedulers": ["daps"], "vary": {"transfer.seed": [1]}},
        {"vary": {"transfer.receive_buffer": []}},
        {"seeds": 0},
        {"threads": 0},
    ],
)
def test_a_comparison_of_nothing_is_refused(scenario: rw.Scenario, arguments: dict) -> None:
    with pytest.raises(ValueError):
        rw.compare(scenario, **arguments)


def test_failures_are_told_and_only_a_total_one_is_raised(scenario: rw.Scenario) -> None:
    with pytest.warns(rw.RunWarning, match="1 of 2 runs failed"):
        some = rw.compare(scenario, vary={"transfer.bytes": ["10 kB", "1 GB"]}, set={})
    good, bad = some.runs
    assert good.run is not None and bad.run is None and "transfer.duration" in (bad.error or "")
    assert np.isnan(some.table["goodput_bps"][1]) and "1 GB" in some._repr_html_()
    with pytest.raises(rw.RunError, match="1 GB"):
        rw.compare(scenario, vary={"transfer.bytes": ["1 GB"]})


def test_a_notebook_shows_each_variant(comparison: rw.Comparison) -> None:
    html = comparison._repr_html_()
    assert "<td>round-robin</td>" in html and "±" in html
    pytest.importorskip("matplotlib")
    assert html.count('src="data:image/png;base64,') == 1


def test_the_report_has_every_variant(comparison: rw.Comparison, tmp_path: Path) -> None:
    comparison.report(tmp_path / "both.html")
    page = (tmp_path / "both.html").read_text(encoding="utf-8")
    assert '"kind":"compare"' in page
    assert page.count('"label":"daps"') == page.count('"label":"round-robin"') == 1


SARWAR = """
[transfer]
preset = "paper-2013"
duration = "10 s"
packet = "1000 B"
receive_buffer = "10 packets"
[[path]]
name = "fast"
rate = "1.6 Mbit/s"
rtt = "20 ms"
[[path]]
name = "slow"
rate = "0.4 Mbit/s"
rtt = "200 ms"
"""


def test_the_prediction_has_the_printed_numbers_of_sarwar_2013() -> None:
    scenario = rw.Scenario.parse(SARWAR)
    prediction = rw.predict(scenario)
    assert prediction.receive_buffer_min_bytes == 50_000
    assert prediction.period is not None and prediction.period.packets == 25
    assert [path.packets_per_period for path in prediction.paths] == [20, 5]
    assert prediction.blocking_time_max_s == pytest.approx(0.105)
    assert rw.Prediction.__annotations__.keys() == prediction.to_dict().keys()
    assert rw.PathPrediction.__annotations__.keys() == prediction.to_dict()["paths"][0].keys()
    assert "flow-control bound" in prediction._repr_html_()


def test_prediction_and_run_know_the_same_limit(scenario: rw.Scenario, run: rw.Run) -> None:
    assert rw.predict(scenario).flow_control_bound_bps == run.flow_control_bound_bps
    faster = rw.predict(scenario, set={"path.lte.rtt": "20 ms"})
    assert faster.flow_control_bound_bps > run.flow_control_bound_bps


def test_the_command_predicts_the_same_bytes(command: str, scenario_file: Path) -> None:
    arguments = [command, "predict", str(scenario_file), "--json"]
    printed = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    assert rw.predict(scenario_file).json() + "\n" == printed
    assert json.loads(printed)["schema"] == "ropewalk.predict/1"


def test_the_formulas_as_printed_leave_the_acknowledgement_out() -> None:
    scenario = rw.Scenario.parse(SARWAR)
    wire, printed = rw.predict(scenario), rw.predict(scenario, paper=True)
    assert (wire.formulas, printed.formulas) == ("on-the-wire", "as-printed")
    assert printed.paths[0].round_trip_s == pytest.approx(0.020 + 8000 / 1.6e6)
    assert wire.paths[0].round_trip_s == pytest.approx(0.020 + 8000 / 1.6e6 + 384 / 1.6e6)


def test_the_slot_model_has_the_printed_tables(command: str, tmp_path: Path) -> None:
    scenario = rw.Scenario.parse(SARWAR)
    found = rw.predict_slot(scenario)
    robin, aware = found.schedulers
    assert robin.table[9].delivered == "3-17"
    assert aware.table[0].sent == ["1-2", "21-25"]
    assert aware.goodput_bps > robin.goodput_bps
    wrong = rw.predict_slot(scenario, set={"path.slow.delay_error": 0.6}, planned="per-rate")
    assert wrong.schedulers[1].goodput_bps < aware.goodput_bps
    assert rw.SlotPrediction.__annotations__.keys() == found.to_dict().keys()
    file = tmp_path / "sarwar.toml"
    file.write_text(SARWAR)
    arguments = [command, "predict", "--model", "slot", str(file), "--json"]
    printed = subprocess.run(arguments, check=True, capture_output=True, text=True).stdout
    assert rw.predict_slot(file).json() + "\n" == printed
    with pytest.raises(ValueError, match="per-window"):
        rw.predict_slot(scenario, planned="other")  # type: ignore[arg-type]


def test_seeds_without_randomness_are_said_to_be_equal() -> None:
    text = '[transfer]\nduration = "2 s"\n[[path]]\nrate = "1 Mbit/s"\nrtt = "20 ms"\n'
    steady = rw.compare(rw.Scenario.parse(text), schedulers=["daps"], seeds=3)
    html = steady._repr_html_()
    assert steady.table["goodput_bps_half_width"].tolist() == [0.0]
    assert " ± 0<" in html and "nothing in the scenario is random" in html
    lossy = rw.Scenario.parse(text + "loss = 0.02\n")
    assert "is random" not in rw.compare(lossy, schedulers=["daps"], seeds=3)._repr_html_()
    assert "is random" not in rw.compare(lossy, schedulers=["daps"])._repr_html_()


@pytest.mark.parametrize(
    ("mean", "half_width", "unit", "shown"),
    [
        (1.3523e6, 1.6212e6, "bit/s", "1.4 ± 1.6 Mbit/s"),
        (2.862e6, 7351.0, "bit/s", "2.862 ± 0.007 Mbit/s"),
        (0.0153, 0.00012, "s", "15.30 ± 0.12 ms"),
        (0.0, 0.002, "s", "0.0 ± 2.0 ms"),
        (0.973, 0.012, "0 to 1", "97.3 ± 1.2 %"),
        (117.0, 23.0, "count", "117 ± 23"),
        (45_123.0, 12.0, "B", "45.12 ± 0.01 kB"),
        (2e6, 0.0, "bit/s", "2 Mbit/s ± 0"),
        (2e6, None, "bit/s", "2 Mbit/s"),
        (None, None, "bit/s", "–"),
    ],
)
def test_an_interval_limits_the_digits_of_its_mean(
    mean: float | None, half_width: float | None, unit: str, shown: str
) -> None:
    assert _html.with_interval(mean, half_width, unit) == shown


def test_several_scenarios_are_compared_under_their_names(scenario: rw.Scenario) -> None:
    short = {"transfer.duration": "2 s"}
    slow = scenario.set({"path.lte.rtt": "300 ms"})
    both = rw.compare({"near": scenario, "far": slow}, set=short)
    assert both.labels == ["near", "far"]
    alone = rw.run(slow, set=short)
    assert both["far"].goodput_bps == alone.goodput_bps
    each = rw.compare({"near": scenario, "far": slow}, schedulers=["daps", "lay"], set=short)
    assert each.labels == ["near, daps", "near, lay", "far, daps", "far, lay"]
    with pytest.raises(ValueError, match="at least one scenario"):
        rw.compare({})


def test_flows_through_a_tunnel_have_columns_and_can_be_drawn() -> None:
    pytest.importorskip("matplotlib")
    short = {"transfer.duration": "4 s", "transfer.warmup": "0 s"}
    comparison = rw.compare("tunnel-call", schedulers=["lay", "min-rtt"], seeds=2, set=short)
    mos = comparison.table["flow.call.mos"]
    assert ((mos >= 1) & (mos <= 5)).all()
    assert "<td>lay</td>" in comparison._repr_html_()
    (axes,) = comparison.plot(["flow.call.mos"]).axes
    assert [bar.get_width() for bar in axes.patches] == pytest.approx(mos)
