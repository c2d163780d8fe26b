"""Schedulers in Python: usable by name wherever a scenario runs; a faulty one ends its run with an error."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from typing import Any, ClassVar

import pytest
from test_run import without_timing

import ropewalk as rw


# A buffer that no path fills, so that schedulers which ignore delay use both paths.
AMPLE = {"transfer.receive_buffer": "1 MB"}


class MinRtt:
    """``min-rtt`` in Python: the head of the queue, on the path with the least round trip."""

    def select(self, view: rw.SchedulerView) -> Any:
        return min(view.open, key=lambda path: (path.srtt_s is None, path.srtt_s or 0.0, path.index))


@pytest.fixture(scope="module", autouse=True)
def registered() -> None:
    assert rw.register_scheduler("python-min-rtt", MinRtt) is MinRtt


def test_python_decides_as_rust_does(scenario: rw.Scenario) -> None:
    for protocol in ("cmt-sctp", "mptcp"):
        own, built_in = (
            rw.run(scenario, scheduler=name, set={"transfer.protocol": protocol})
            for name in ("python-min-rtt", "min-rtt")
        )
        assert own.scheduler == "python-min-rtt"
        assert without_timing(own.json()).replace("python-", "") == without_timing(built_in.json())


def test_the_name_holds_in_comparisons_and_sweeps(scenario: rw.Scenario) -> None:
    names = ["python-min-rtt", "min-rtt"]
    comparison = rw.compare(scenario, schedulers=names, seeds=2, threads=2)
    own, built_in = comparison.table["goodput_bps"]
    assert own == built_in
    swept = rw.sweep(scenario, vary={"transfer.scheduler": names}, threads=2)
    assert swept["transfer.scheduler"].tolist() == names
    assert swept["goodput_bps"][0] == swept["goodput_bps"][1]
    assert "python-min-rtt" in rw.schedulers()
    assert "python-min-rtt" not in rw.compare(scenario, threads=2, series=False).labels
    named = scenario.set({"transfer.scheduler": "python-min-rtt"})
    assert named.scheduler == "python-min-rtt" and rw.Scenario.parse(named.to_toml()) == named


def test_what_is_sent_is_reported_and_the_view_has_its_units(scenario: rw.Scenario) -> None:
    sent: Counter[str] = Counter()

    class Watching(MinRtt):
        seen: ClassVar[list[tuple[Any, ...]]] = []

        def on_sent(self, report: rw.SentReport) -> None:
            # In order, each chunk once: nothing is taken from behind the head here.
            assert (report.position, report.sequence) == (0, sent["chunks"])
            sent["chunks"] += 1
            sent["bytes"] += report.bytes

        def select(self, view: rw.SchedulerView) -> Any:
            wifi, lte = view.paths
            assert (wifi.name, lte.name, wifi.index, lte.index) == ("wifi", "lte", 0, 1)
            assert view.open and all(path.open for path in view.open)
            assert all(path.open for path in view.open)
            self.seen.append((view.now_s, wifi.srtt_s, lte.srtt_s, wifi.rate_bps))
            assert wifi.room_bytes == max(0, wifi.window_bytes - wifi.in_flight_bytes)
            assert 0 < view.takeable_chunks <= view.backlog_chunks
            assert view.window_room_bytes <= view.receive_buffer_bytes == 45_000
            return super().select(view)

    rw.register_scheduler("watching", Watching)
    run = rw.run(scenario, scheduler="watching", set={"path.lte.loss": 0, "transfer.warmup": "0 s"})
    assert run.delivered_bytes <= sent["bytes"] < run.delivered_bytes * 1.05 + 45_000
    now, wifi, lte, rate = Watching.seen[-1]
    assert 5.5 < now <= 6 and 0.02 < wifi < 0.7 and 0.1 < lte < 0.7 and 0.5e6 < rate < 1.1e6


@pytest.mark.parametrize(
    "answer",
    [
        lambda view: view.open[0],
        lambda view: view.open[0].name,
        lambda view: view.open[0].index,
        lambda view: (view.open[0], 0),
        lambda view: {view.open[0]},
        lambda view: [view.open[0].name],
        lambda view: (frozenset([view.open[0].index]), 0),
    ],
)
def test_an_answer_can_be_given_in_several_ways(scenario: rw.Scenario, answer: Any) -> None:
    rw.register_scheduler("first-open", type("S", (), {"select": lambda _, v: v.open[0]}))
    rw.register_scheduler("answering", type("S", (), {"select": lambda _, view: answer(view)}))
    one, other = (rw.run(scenario, scheduler=name, set=AMPLE) for name in ("first-open", "answering"))
    assert one.goodput_bps == other.goodput_bps > 1e6


def test_copies_travel_on_every_path(scenario: rw.Scenario) -> None:
    rw.register_scheduler("twice", type("S", (), {"select": lambda _, view: set(view.open)}))
    run = rw.run(scenario, scheduler="twice")
    assert run.spurious_retransmissions > 100, "copies arrive as well"


def test_waiting_is_no_standstill(scenario: rw.Scenario) -> None:
    class Hesitant:
        def __init__(self) -> None:
            self.asked = 0

        def select(self, view: rw.SchedulerView) -> Any:
            self.asked += 1
            return rw.Wait(0.002) if self.asked % 3 else view.open[0]

    rw.register_scheduler("hesitant", Hesitant)
    assert rw.run(scenario, scheduler="hesitant", set=AMPLE).goodput_bps > 1e6
    with pytest.raises(ValueError, match="more than 0"):
        rw.Wait(0)


@pytest.mark.parametrize(
    ("select", "part"),
    [
        (lambda view: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda view: "dsl", "answered 'dsl': there is no such path; there are: wifi, lte"),
        (lambda view: -1, "answered -1: there is no such path"),
        (lambda view: 0.5, "answered 0.5, a float: answer a path of view.open"),
        (lambda view: (0, 1, 2), "a tuple is"),
        (lambda view: (view.open[0], 10**6), "position 1000000 is out of reach"),
        (lambda view: set(), "copies on no path"),
        (lambda view: [p for p in view.paths if not p.open] or view.open[0], "is closed"),
        (lambda view: setattr(view, "now_s", 3), "AttributeError"),
    ],
)
def test_a_wrong_scheduler_ends_its_run_with_the_reason(
    scenario: rw.Scenario, select: Any, part: str
) -> None:
    class Wrong(MinRtt):
        def select(self, view: rw.SchedulerView) -> Any:
            return super().select(view) if view.now_s < 0.5 else select(view)

    rw.register_scheduler("wrong", Wrong)
    with pytest.raises(rw.RunError) as caught:
        rw.run(scenario, scheduler="wrong")
    text = str(caught.value)
    assert part in text and '"wrong" failed' in text
    if "Error" in part:
        assert "Traceback" in text and "test_scheduler.py" in text
    # In a comparison, only this run fails.
    with pytest.warns(rw.RunWarning):
        both = rw.compare(scenario, schedulers=["wrong", "daps"])
    assert [one.run is None for one in both.runs] == [True, False]


def test_what_cannot_be_made_or_told_is_an_error_too(scenario: rw.Scenario) -> None:
    class Moody(MinRtt):
        def on_sent(self, report: rw.SentReport) -> None:
            raise LookupError("not today")

    def nothing() -> Any:
        raise OSError("no model file")

    for make, part in [(Moody, "LookupError: not today"), (nothing, "OSError: no model file")]:
        rw.register_scheduler("moody", make)
        with pytest.raises(rw.RunError, match=part):
            rw.run(scenario, scheduler="moody")


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_ctrl_c_in_a_scheduler_is_ctrl_c(scenario: rw.Scenario) -> None:
    assert threading.current_thread() is threading.main_thread()

    class Interrupted(MinRtt):
        def select(self, view: rw.SchedulerView) -> Any:
            if view.now_s > 1:
                os.kill(os.getpid(), signal.SIGINT)
            return super().select(view)

    rw.register_scheduler("interrupted", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        rw.run(scenario, scheduler="interrupted", set={"transfer.duration": "100 s"})


def test_names_and_makers_are_checked() -> None:
    for name in ("daps", "Mine", "", "a b"):
        with pytest.raises(ValueError, match="cannot be called"):
            rw.register_scheduler(name, MinRtt)
    with pytest.raises(TypeError, match="no method select"):
        rw.register_scheduler("mine", type("S", (), {}))
    with pytest.raises(TypeError, match="cannot be called"):
        rw.register_scheduler("mine", MinRtt())  # type: ignore[type-var]
    with pytest.raises(rw.ScenarioError, match="registered: .*python-min-rtt"):
        rw.run(rw.Scenario.parse("[[path]]\nname = 'a'\n"), scheduler="nobodys")


def test_every_run_has_a_scheduler_of_its_own(scenario: rw.Scenario) -> None:
    made: list[Any] = []

    @rw.register_scheduler("counted")
    class Counted(MinRtt):
        def __init__(self) -> None:
            made.append(self)

    rw.compare(scenario, schedulers=["counted"], seeds=3, threads=2)
    assert len(made) == 3 and len(set(map(id, made))) == 3
