"""The figures of a report: no success where a link is idle, no winner where intervals overlap, no percentage of percentages."""

from __future__ import annotations

import pytest
import report_fixtures as fixtures
from browser import Browser, find
from fill import fill

CHROMIUM = find()
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: set CHROMIUM or install it")


@pytest.fixture(scope="module")
def browser():
    with Browser(CHROMIUM) as one:
        yield one


@needs_browser
def test_a_full_gauge_over_an_idle_link_is_a_warning_that_names_the_link(browser, tmp_path):
    for utilisation, idle in ((0.0005, True), (0.5, False)):
        report = fixtures.run_report()
        paths = report["runs"][0]["result"]["paths"]
        paths[-1]["utilisation"] = utilisation
        file = tmp_path / "idle.html"
        file.write_text(fill(report), encoding="utf-8")
        browser.open(file, 1280, 900, "light")
        assert browser.evaluate("document.querySelectorAll('.gauge.idle').length") == int(idle)
        notes = browser.evaluate("[...document.querySelectorAll('.tile .note')].map((t) => t.textContent).join('|')")
        assert (f"{paths[-1]['name']} idle" in notes) == idle


@needs_browser
def test_runs_whose_intervals_overlap_are_not_told_apart(browser, tmp_path):
    report = fixtures.seeds_report()
    for one in report["summary"]:
        one["goodput_bps"]["half_width"] = 1e9
    file = tmp_path / "same.html"
    file.write_text(fill(report), encoding="utf-8")
    browser.open(file, 1280, 900, "light")
    tiles = browser.evaluate("[...document.querySelectorAll('.tile .note')].map((t) => t.textContent)")
    assert tiles[0].startswith("daps; ") and tiles[0].endswith("within the intervals")


@needs_browser
def test_percentages_differ_by_points_and_equal_seeds_are_explained(browser, tmp_path):
    report = fixtures.reproduce_report()
    gain = {**report["rows"][0], "unit": "ratio", "paper_value": -0.089, "simulated_value": 0.047, "difference": None, "difference_points": 0.136}
    page = tmp_path / "points.html"
    page.write_text(fill({**report, "rows": [gain]}), encoding="utf-8")
    browser.open(page, 1280, 900, "light")
    cells = browser.evaluate("[...document.querySelectorAll('td[data-label=Difference]')].map((c) => c.textContent)")
    assert cells == ["+14\u202fpoints"]
    for make, expected in ((fixtures.seeds_report, "1.980 ± 0 (best)"), (fixtures.repeated_report, "1.980 ± 0")):
        report = make()
        for one in report["summary"]:
            for estimate in one.values():
                if isinstance(estimate, dict):
                    estimate["half_width"] = 0.0
        page.write_text(fill(report), encoding="utf-8")
        browser.open(page, 1280, 900, "light")
        assert browser.evaluate("document.querySelector('.comparison').tBodies[0].rows[0].cells[2].textContent") == expected
        notes = browser.evaluate("[...document.querySelectorAll('.note')].map((n) => n.textContent)")
        assert any("nothing in the scenario is random" in note for note in notes), notes
    assert browser.evaluate("document.querySelector('.tile .note').textContent") == "the same with all 4 seeds"
