"""Long work reports its progress, and Ctrl-C or an exception of the report stops it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import ropewalk as rw
from ropewalk._progress import reporting

#: A run of this scenario would take minutes.
ENDLESS = {"transfer.duration": "72000 s"}

Work = Callable[..., object]


def _run(scenario: rw.Scenario, **options: Any) -> object:
    return rw.run(scenario, **options)


def _compare(scenario: rw.Scenario, **options: Any) -> object:
    return rw.compare(scenario, schedulers=["daps", "min-rtt"], **options)


def _sweep(scenario: rw.Scenario, **options: Any) -> object:
    return rw.sweep(scenario, vary={"path.lte.rtt": "50ms..90ms/5"}, **options)


def _tune(scenario: rw.Scenario, **options: Any) -> object:
    return rw.tune(scenario, check=True, seeds=2, **options)


def _reach(scenario: rw.Scenario, **options: Any) -> object:
    return rw.tune(scenario, reach=0.5, tolerance=0.0, check=True, seeds=1, **options)


def _advise(scenario: rw.Scenario, **options: Any) -> object:
    return rw.advise(scenario, seeds=2, **options)


ALL = [_run, _compare, _sweep, _tune, _reach, _advise]
# A sweep stops between two runs, the others stop within one.
WITHIN_A_RUN = [_run, _compare, _tune, _reach]

for_all = pytest.mark.parametrize("work", ALL, ids=lambda work: work.__name__)


@for_all
def test_shares_ascend_to_one_on_the_thread_of_the_caller(
    work: Work, scenario: rw.Scenario
) -> None:
    told: list[tuple[float, int]] = []
    work(scenario, progress=lambda share: told.append((share, threading.get_ident())))
    shares = [share for share, _ in told]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert all(0.0 < share <= 1.0 for share in shares)
    assert {thread for _, thread in told} == {threading.get_ident()}


@for_all
def test_the_result_does_not_depend_on_progress(work: Work, scenario: rw.Scenario) -> None:
    def figures(result: Any) -> object:
        if isinstance(result, rw.Run):
            return result.goodput_bps
        return result.to_dict() if hasattr(result, "to_dict") else result["goodput_bps"].tolist()

    def without_cost(document: Any) -> Any:
        """The document without the time that the simulator has taken."""
        if isinstance(document, dict):
            return {k: without_cost(v) for k, v in document.items() if k != "engine"}
        return [without_cost(v) for v in document] if isinstance(document, list) else document

    watched = work(scenario, progress=lambda share: None)
    assert without_cost(figures(watched)) == without_cost(figures(work(scenario)))


@pytest.mark.parametrize("work", WITHIN_A_RUN, ids=lambda work: work.__name__)
def test_an_exception_of_the_report_stops_the_work(work: Work, scenario: rw.Scenario) -> None:
    def refuse(share: float) -> None:
        raise LookupError(f"seen {share}")

    began = time.monotonic()
    with pytest.raises(LookupError, match="seen"):
        work(scenario.set(ENDLESS), progress=refuse)
    assert time.monotonic() - began < 60


@contextmanager
def interrupted_soon() -> Iterator[None]:
    """Ctrl-C half a second from now."""
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize("work", WITHIN_A_RUN, ids=lambda work: work.__name__)
def test_ctrl_c_stops_the_work(work: Work, scenario: rw.Scenario) -> None:
    endless = scenario.set(ENDLESS)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupted_soon():
        work(endless)
    assert time.monotonic() - began < 60


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.usefixtures("heeds_ctrl_c")
def test_an_interrupted_sweep_says_how_to_resume(scenario: rw.Scenario, tmp_path: Path) -> None:
    long = scenario.set({"transfer.duration": "60 s"})
    vary = {"path.lte.rtt": "50ms..90ms/300"}
    with pytest.raises(KeyboardInterrupt) as raised, interrupted_soon():
        rw.sweep(long, vary=vary, out=tmp_path / "out.parquet")
    assert any("the same call resumes" in note for note in raised.value.__notes__)


def test_true_writes_a_line_that_ends_at_all(
    scenario: rw.Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    rw.compare(scenario, schedulers=["daps"], progress=True)
    said = capsys.readouterr().err
    assert said.startswith("compare:") and "100%" in said and said.endswith("\n")
    rw.compare(scenario, schedulers=["daps"])
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_one_line_and_a_file_few(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter(range(1000))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    for is_terminal, lines in ((True, 1), (False, 3)):
        monkeypatch.setattr("sys.stderr.isatty", lambda is_terminal=is_terminal: is_terminal)
        with reporting(True, "sweep") as report:
            assert report is not None
            for step in range(1, 26):
                report(step / 25)
        said = capsys.readouterr().err
        assert said.count("\n") == lines + (not is_terminal), said
        assert "about 0:0" in said or "about 0:1" in said
