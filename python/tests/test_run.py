"""A run from Python equals the run of the command."""

from __future__ import annotations

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

import ropewalk as rw
from ropewalk._figures import Figures
from ropewalk._results import record


def without_timing(text: str) -> str:
    """The document without the two figures that depend on a clock."""
    return re.sub(r'("cpu_s"|"packets_per_cpu_s"): [^,\n]+', r"\1: 0", text)


def test_the_attributes_are_the_document(run: rw.Run) -> None:
    document = run.to_dict()
    assert run.goodput_bps == document["goodput_bps"] > 0
    assert run.paths[1].throughput_bps == document["paths"][1]["throughput_bps"]
    assert run.paths["lte"] is run.paths[1]
    assert run.receive_buffer.max_bytes == document["receive_buffer"]["max_bytes"]
    assert run.seed == 1
    assert json.loads(run.json()) == document


def test_the_documented_attributes_are_the_keys_of_the_document(run: rw.Run) -> None:
    # Left out of the document unless there are several associations, or a tunnel.
    documented = Figures.__annotations__.keys() - {"association_goodput_bps", "flows", "directions"}
    assert documented == run.to_dict().keys()
    parts = {
        "receive_buffer": rw.ReceiveBuffer,
        "blocking_time_s": rw.Delays,
        "app_delay_s": rw.Delays,
        "out_of_order": rw.OutOfOrder,
        "engine": rw.EngineFigures,
    }
    for key, kind in parts.items():
        assert kind.__annotations__.keys() == run.to_dict()[key].keys(), key
    # Left out of the document if nothing was undone, and unless a path has a cap.
    documented = rw.PathResult.__annotations__.keys() - {"undone_reductions", "carried_bytes"}
    assert documented == run.to_dict()["paths"][0].keys()


def test_no_figure_of_a_document_is_dropped(run: rw.Run) -> None:
    path = run.to_dict()["paths"][0]
    assert record(rw.PathResult, {**path, "undone_reductions": 3}).undone_reductions == 3
    assert run.paths[0].undone_reductions == 0
    with pytest.raises(TypeError, match="unheard_of"):
        record(rw.PathResult, {**path, "unheard_of": 1})


def test_the_bundle_stays_below_the_flow_control_bound(run: rw.Run) -> None:
    assert run.share_of_bound is not None and 0.3 < run.share_of_bound <= 1.0
    assert sum(path.throughput_bps for path in run.paths) == pytest.approx(run.goodput_bps, rel=0.2)


def test_the_same_seed_gives_the_same_bytes_and_another_one_does_not(scenario: rw.Scenario) -> None:
    one, again, other = (rw.run(scenario, seed=seed) for seed in (5, 5, 6))
    assert without_timing(one.json()) == without_timing(again.json())
    assert one.goodput_bps != other.goodput_bps


@pytest.mark.parametrize("scheduler", rw.schedulers())
def test_looking_changes_nothing(scenario: rw.Scenario, scheduler: str) -> None:
    for seed in range(4):
        seen, unseen = (
            rw.run(scenario, scheduler=scheduler, seed=seed, series=all, sequence=first, packets=all)
            for all, first in ((True, "3 s"), (False, None))
        )
        assert without_timing(seen.json()) == without_timing(unseen.json()), seed


def test_eight_runs_on_threads_are_the_eight_runs_in_turn(scenario: rw.Scenario) -> None:
    seeds = range(8)
    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(lambda seed: rw.run(scenario, seed=seed), seeds))
    for seed, run in zip(seeds, parallel, strict=True):
        alone = rw.run(scenario, seed=seed)
        assert without_timing(run.json()) == without_timing(alone.json())
        assert (run.series["goodput_bps"] == alone.series["goodput_bps"]).all()


def test_the_scheduler_and_other_keys_can_be_changed(scenario_file: Path) -> None:
    changes = {"path.lte.rtt": "40 ms", "path[1].loss": 0.0, "transfer.warmup": "500 ms"}
    run = rw.run(scenario_file, scheduler="round-robin", seed=2**64 - 1, set=changes)
    assert (run.scheduler, run.seed, run.warmup_s) == ("round-robin", 2**64 - 1, 0.5)
    assert run.paths["lte"].srtt_s is not None and 0.04 <= run.paths["lte"].srtt_s < 0.4
    assert run.title == "two"


def test_the_command_prints_the_same_bytes(command: str, scenario_file: Path) -> None:
    changes = {"path.lte.rtt": "40 ms", "path[1].loss": 0.02}
    arguments = ["run", str(scenario_file), "--json", "--seed", "9", "--scheduler", "daps"]
    for key, value in changes.items():
        arguments += ["--set", f"{key}={value}"]
    printed = subprocess.run([command, *arguments], check=True, capture_output=True, text=True)
    run = rw.run(scenario_file, scheduler="daps", seed=9, set=changes)
    assert without_timing(run.json() + "\n") == without_timing(printed.stdout)


def test_decisions_are_kept_only_if_the_scenario_says_so(
    scenario: rw.Scenario, run: rw.Run
) -> None:
    with pytest.raises(rw.NotRecordedError, match="record.decisions"):
        _ = run.decisions
    recorded = rw.run(scenario, set={"record.decisions": True, "transfer.duration": "2 s"})
    decisions = recorded.decisions
    assert decisions is not None and len(decisions) > 100
    sent = [one for one in decisions if one["action"] == "send"]
    assert {name for one in sent for name in one["sent_on"]} == {"wifi", "lte"}
    assert [one["at_s"] for one in decisions] == sorted(one["at_s"] for one in decisions)


def test_the_first_packets_are_kept_when_asked_for(scenario: rw.Scenario, run: rw.Run) -> None:
    with pytest.raises(rw.NotRecordedError, match="sequence="):
        _ = rw.run(scenario).sequence
    assert set(run.sequence.paths) == {"wifi", "lte"}
    time_s, seq = run.sequence.delivered
    assert len(time_s) == len(seq) > 50 and time_s.max() <= 2.0
    assert (seq[1:] >= seq[:-1]).all()


def test_a_report_is_one_page(run: rw.Run, tmp_path: Path) -> None:
    run.report(tmp_path / "run.html", title="Two <paths>")
    page = (tmp_path / "run.html").read_text(encoding="utf-8")
    assert page.lstrip().lower().startswith("<!doctype html>")
    assert "ropewalk.report/1" in page and "Two \\u003cpaths>" in page
    with pytest.raises(FileNotFoundError):
        run.report(tmp_path / "missing" / "run.html")


def test_a_notebook_shows_figures_and_paths_and_escapes_names(scenario: rw.Scenario) -> None:
    named = rw.Scenario.parse(
        "[transfer]\nduration = '2 s'\n[[path]]\nname = 'wifi'\nrate = '1 Mbit/s'\nrtt = '9 ms'\n",
        name="a<b>.toml",
    )
    html = rw.run(named)._repr_html_()
    assert "goodput" in html and "Mbit/s" in html and "<td>wifi</td>" in html
    assert "<b>" not in html and "a&lt;b&gt;" in html


def test_options_are_keywords(scenario: rw.Scenario) -> None:
    with pytest.raises(TypeError):
        rw.run(scenario, "daps")  # type: ignore[misc]


def test_flows_through_a_tunnel_have_results_of_their_own() -> None:
    short = {"transfer.duration": "4 s", "transfer.warmup": "2 s"}
    tunnel = rw.run("tunnel-call", set=short)
    assert [flow.kind for flow in tunnel.flows] == ["tcp", "call", "game", "ping"]
    # What has a default is left out where it is 0: counts of messages, which only sources have.
    counts = {field.name for field in fields(rw.FlowResult) if field.default is not MISSING}
    assert counts == {"sent", "delivered", "abandoned", "under_way"}
    assert tunnel.to_dict()["flows"][0].keys() == rw.FlowResult.__annotations__.keys() - counts
    sources = rw.run("short-beside-long", set={"transfer.duration": "6 s"}).to_dict()["flows"]
    assert {"sent", "delivered"} <= sources[0].keys() <= rw.FlowResult.__annotations__.keys()
    assert tunnel.flows[1].mos is not None and tunnel.flows[0].mos is None
    assert "<th>MOS</th>" in tunnel._repr_html_()
    up, down = tunnel.directions
    assert (up.name, down.name) == ("up", "down")
    documented = tunnel.to_dict()["directions"][0]
    assert documented.keys() == rw.DirectionResult.__annotations__.keys()
    assert up.paths["lte"].sent_packets + down.paths["lte"].sent_packets == (
        tunnel.paths["lte"].sent_packets
    )
    assert "<td>lte</td><td>down</td>" in tunnel._repr_html_()
    plain = rw.run("two-dsl", set=short)
    assert plain.directions == []
    assert plain.flows == [] and "<th>MOS</th>" not in plain._repr_html_()
