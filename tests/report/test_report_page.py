"""The report page in a real browser: charts carry points, nothing fails, nothing overflows, nothing is fetched.

``ROPEWALK_REPORT_HTML``   reports written by ropewalk, separated by the path separator, to be checked as well
``ROPEWALK_REPORT_SHOTS``  a directory that receives a screenshot of every page looked at
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from pathlib import Path

import pytest
import report_fixtures as fixtures
from browser import Browser, find
from fill import FILES, PLACEHOLDER, WEB, escaped, fill

CHROMIUM = find()
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine: set CHROMIUM or install it")
REAL = [Path(p) for p in os.environ.get("ROPEWALK_REPORT_HTML", "").split(os.pathsep) if p]
PAGES = [*fixtures.ALL, *map(str, REAL)]
SCREENS = {"desktop": (1280, 900), "phone": (390, 844)}

# Counts pixels of a canvas that a series colour painted (its own or a blend): not grid, not text, not background.
COLOURFUL = """[...document.querySelectorAll('.plot canvas')].map((canvas) => {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b, a] = [data[i], data[i + 1], data[i + 2], data[i + 3]];
    if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 40) count += 1;
  }
  return count;
})"""


@pytest.fixture(scope="module")
def browser():
    with Browser(CHROMIUM) as one:
        yield one


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    files = {str(path): path for path in REAL}
    for name, make in fixtures.ALL.items():
        files[name] = folder / f"{name}.html"
        files[name].write_text(fill(make()), encoding="utf-8")
    return files


def shoot(browser: Browser, name: str) -> None:
    folder = os.environ.get("ROPEWALK_REPORT_SHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        browser.screenshot(Path(folder) / f"{name}.png")


def unfold(browser: Browser) -> None:
    """Unfolds all sections; their charts are drawn only then."""
    browser.evaluate("document.querySelectorAll('details.paper').forEach((d) => { d.open = true; d.dispatchEvent(new Event('toggle')); })")


def status(browser: Browser) -> dict:
    return json.loads(browser.evaluate("document.getElementById('ropewalk-status').textContent"))


def test_the_template_names_every_script_of_the_page_once():
    template = (WEB / "report.html").read_text(encoding="utf-8")
    names = [m.group(1) for m in PLACEHOLDER.finditer(template)]
    scripts = [f"REPORT_JS:report/{p.name}" for p in (WEB / "report").glob("*.js")]
    assert sorted(names) == sorted([*FILES, "REPORT_DATA", *scripts])
    assert not re.sub(PLACEHOLDER, "", template).count("/*"), "a comment in the template looks like a misspelt placeholder"


def test_no_embedded_file_can_end_its_own_element():
    for path in [*(WEB / file for file in FILES.values()), *(WEB / "report").glob("*.js")]:
        assert not re.search(r"</(script|style)|<!--", path.read_text(encoding="utf-8"), re.IGNORECASE), path


def test_data_cannot_end_its_element_and_survives_unchanged():
    document = fixtures.run_report()
    assert "</script>" in document["title"]
    text = escaped(document)
    assert "<" not in text
    assert json.loads(text) == document


def test_vendored_files_are_the_released_ones():
    folder = WEB / "vendor" / "uPlot"
    sums = re.findall(r"^([0-9a-f]{64})  (\S+)$", (folder / "VERSION").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(sums) == 3
    for digest, name in sums:
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, name


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_draws_without_errors_and_fits_its_window(browser, pages, page, screen, scheme):
    width, height = SCREENS[screen]
    browser.open(pages[page], width, height, scheme)
    unfold(browser)
    shoot(browser, f"{Path(page).stem}-{screen}-{scheme}")
    seen = status(browser)
    assert seen["errors"] == []
    assert browser.problems() == []
    assert seen["layout"] == {"scrollWidth": width, "innerWidth": width, "theme": scheme}
    assert all(url.startswith(("file:", "data:", "blob:")) for url in browser.requests())
    assert seen["charts"] == len(seen["points"]) > 0
    assert max(seen["points"]) > 5
    painted = browser.evaluate(COLOURFUL)
    assert len(painted) == sum(points > 0 for points in seen["points"])
    assert all(count > 50 for count in painted), painted


@needs_browser
def test_the_flows_of_a_run_have_a_table_with_their_score(browser, pages):
    browser.open(pages["run"], 1280, 900, "light")
    rows = """[...document.querySelectorAll('table')].filter((t) => t.caption.textContent === 'Flows')
      .flatMap((t) => [...t.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent)))"""
    download, call = browser.evaluate(rows)
    assert (download[0], call[0]) == ("download", "call")
    assert call[-1].startswith("4.38") and not any(cell.startswith("4.38") for cell in download)


@needs_browser
@pytest.mark.parametrize("page", PAGES)
def test_every_chart_has_words_and_every_table_a_caption(browser, pages, page):
    browser.open(pages[page], 1280, 900, "light")
    unfold(browser)
    labels = browser.evaluate("[...document.querySelectorAll('.plot')].map((p) => p.getAttribute('aria-label'))")
    assert labels
    assert all(re.search(r"points from .+ to .+, mean ", label) for label in labels), labels
    assert browser.evaluate("[...document.querySelectorAll('table')].every((t) => t.caption && t.caption.textContent.trim())")
    assert browser.evaluate("[...document.querySelectorAll('button')].every((b) => b.textContent.trim())")
    ids = browser.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))


@needs_browser
def test_points_of_each_chart_are_those_of_the_data(browser, pages):
    browser.open(pages["run"], 1280, 900, "light")
    # Rates: 200 samples of 0.5 s in stretches of four round trips of the slow path, which is two samples, of two paths
    # and goodput, and the two ends of the limit. Then 200 samples each of occupancy and window, and of two round trips
    # less 21 nulls. Then 300 arrivals, two distributions of 202 steps, and 200 samples of window and in flight of two paths.
    assert status(browser)["points"] == [302, 400, 379, 300, 404, 800]
    notes = browser.evaluate("[...document.querySelectorAll('.chart .note')].map((n) => n.textContent)")
    assert any("the mean over 1\u202fs" in note for note in notes), notes


@needs_browser
def test_a_rate_over_a_stretch_is_the_mean_of_its_samples(browser, pages):
    browser.open(pages["run"], 1280, 900, "light")
    assert browser.evaluate("Ropewalk.bins.means([1, 3, null, 5, 7], 2)") == [2, 5, 7]
    assert browser.evaluate("Ropewalk.bins.ends([1, 2, 3, 4, 5], 2)") == [2, 4, 5]
    assert browser.evaluate("Ropewalk.bins.extremes([1, 3, null, 5, 7], 2)") == {"low": [1, 5, 7], "high": [3, 5, 7]}


@needs_browser
def test_an_arrival_is_drawn_as_its_distance_from_the_packet_that_is_waited_for(browser, tmp_path):
    report = fixtures.run_report()
    # 0 and 2 arrive, then 1 with 2 delivered at once, then a duplicate of 1.
    report["runs"][0]["sequence"] = {
        "paths": [{"name": "wifi", "time_s": [1.0, 2.0, 4.0], "seq": [0, 2, 1]}, {"name": "lte", "time_s": [3.0], "seq": [1]}],
        "delivered": {"time_s": [1.0, 3.0, 3.0], "seq": [1, 2, 3]},
    }  # fmt: skip
    page = tmp_path / "ahead.html"
    page.write_text(fill(report), encoding="utf-8")
    browser.open(page, 1280, 900, "light")
    table = browser.evaluate("""[...[...document.querySelectorAll('.chart')].find((c) => c.querySelector('h3').textContent.startsWith('Reordering'))
      .querySelector('tbody').rows].map((row) => [...row.cells].map((cell) => cell.textContent))""")
    assert table == [["wifi", "3", "−2", "−0.3333", "1", "−2"], ["lte", "1", "0", "0", "0", "0"]]


@needs_browser
def test_losses_outages_and_peaks_are_drawn(browser, pages, tmp_path):
    browser.open(pages["run"], 1280, 900, "light")
    picture = "[...document.querySelectorAll('.plot canvas')].slice(0, 3).map((c) => c.toDataURL())"
    with_all = browser.evaluate(picture)
    report = fixtures.run_report()
    report["runs"][0]["outages"] = []
    for path in report["runs"][0]["series"]["paths"]:
        path["lost_packets"] = [0] * 200
    del report["runs"][0]["series"]["receive_buffer_peak_bytes"]
    page = tmp_path / "without.html"
    page.write_text(fill(report), encoding="utf-8")
    browser.open(page, 1280, 900, "light")
    without = browser.evaluate(picture)
    assert all(a != b for a, b in zip(with_all, without, strict=True))
    assert not browser.evaluate("[...document.querySelectorAll('.note')].some((n) => n.textContent.includes('losses, in the colour'))")


@needs_browser
def test_a_sequence_that_was_cut_says_where(browser, tmp_path):
    report = fixtures.run_report()
    page = tmp_path / "cut.html"
    for cut, said in [(None, False), (1.25, True)]:
        report["runs"][0]["sequence"] = {**report["runs"][0]["sequence"], "cut_s": cut}
        page.write_text(fill(report), encoding="utf-8")
        browser.open(page, 1280, 900, "light")
        text = browser.evaluate("[...document.querySelectorAll('.chart .note')].map((n) => n.textContent).join(' ')")
        assert ("Cut at 1.25\u202fs" in text) is said, text


@needs_browser
@pytest.mark.parametrize(("width", "names", "leaning"), [(1280, 3, False), (1280, 12, True), (400, 3, False), (400, 12, True)])
def test_names_on_an_axis_lean_where_they_would_run_into_each_other(browser, tmp_path, width, names, leaning):
    series = {"name": "a", "source": "simulated", "style": "bars", "x": [f"{i}-{i}-case" for i in range(names)], "y": [1] * names}
    figure = {"id": "f", "paper": "p", "title": "t", "x_label": "", "y_label": "", "series": [series]}
    page = tmp_path / "names.html"
    half = {**figure, "id": "g"}
    figures = [figure, half] if width > 400 else [figure]
    page.write_text(fill({**fixtures.head("reproduce", "Names", ""), "figures": figures, "rows": []}), encoding="utf-8")
    browser.open(page, width, 900, "light")
    # Leaning names take of the plot's height what upright ones take of its width.
    height = browser.evaluate("document.querySelector('.u-over').clientHeight")
    assert (height < 225) is leaning, height


@needs_browser
def test_text_from_the_data_stays_text(browser, pages):
    browser.open(pages["run"], 1280, 900, "light")
    assert browser.evaluate("typeof window.escaped") == "undefined"
    assert browser.evaluate("document.getElementById('title').textContent") == fixtures.run_report()["title"]
    assert "</script><!-- /*REPORT_JS*/" in browser.evaluate("document.querySelector('.scenario pre').textContent")


@needs_browser
def test_headline_figures_are_in_human_units(browser, pages):
    browser.open(pages["run"], 1280, 900, "light")
    tiles = browser.evaluate("[...document.querySelectorAll('.tile')].map((t) => t.querySelector('.figure').textContent + ' ' + t.querySelector('.unit').textContent)")
    assert tiles == ["2.055 Mbit/s", "87.8 %", "12.15 kB", "269.6 ms"]


@needs_browser
def test_the_best_run_of_each_column_is_marked_and_a_heading_sorts(browser, pages):
    browser.open(pages["compare"], 1280, 900, "light")
    assert browser.evaluate("[...document.querySelectorAll('.comparison .best')].length") == 9
    order = "[...document.querySelectorAll('.comparison tbody th')].map((t) => t.textContent)"
    assert browser.evaluate(order)[0] == "daps"
    browser.evaluate("document.querySelector('.comparison .sort').click(); document.querySelector('.comparison .sort').click()")
    assert browser.evaluate(order)[0] == "round-robin"


@needs_browser
def test_a_run_can_be_switched_off_in_all_overlays_and_another_shown_in_full(browser, pages):
    browser.open(pages["compare"], 1280, 900, "light")
    pressed = "[...document.querySelectorAll('section[aria-labelledby=overlays] .legend')].map((l) => l.firstChild.getAttribute('aria-pressed'))"
    assert browser.evaluate(pressed) == ["true", "true", "true"]
    ticked = browser.evaluate("[...document.querySelectorAll('.chooser .choice')].filter((c) => c.firstChild.checked).map((c) => c.textContent)")
    best = sorted(fixtures.compare_report()["runs"], key=lambda one: -one["result"]["goodput_bps"])[:6]
    assert sorted(ticked) == sorted(one["label"] for one in best), "the best are shown at first"
    browser.evaluate("document.querySelector('.chooser input').click()")
    assert browser.evaluate(pressed) == ["false", "false", "false"]
    browser.evaluate("const s = document.querySelector('.pick select'); s.value = '3'; s.dispatchEvent(new Event('change'))")
    assert "blest" in browser.evaluate("document.querySelector('.one-run .keyline').textContent")
    assert status(browser)["errors"] == []


@needs_browser
def test_dragging_zooms_all_time_series_and_a_button_shows_everything_again(browser, pages):
    browser.open(pages["run"], 1280, 900, "light")
    hidden = "[...document.querySelectorAll('.chart-top button')].map((b) => b.hidden)"
    assert browser.evaluate(hidden) == [True] * 6
    box = browser.evaluate("(() => { const o = document.querySelectorAll('.u-over')[0]; o.scrollIntoView({block: 'center', behavior: 'instant'}); const b = o.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()")
    middle = box[1] + box[3] / 2
    browser.drag((box[0] + 0.3 * box[2], middle), (box[0] + 0.6 * box[2], middle))
    browser.evaluate("new Promise((done) => requestAnimationFrame(done))")
    # The arrivals cover seconds, not minutes, and the distribution has no time: both keep their own zoom.
    assert browser.evaluate(hidden) == [False, False, False, True, True, False]
    values = browser.evaluate("[...document.querySelectorAll('.legend')].map((l) => l.querySelector('.legend-value').textContent)")
    assert all(re.search(r"\d", values[i]) for i in (0, 1, 2, 5)), values
    browser.evaluate("document.querySelectorAll('.chart-top button')[0].click()")
    browser.evaluate("new Promise((done) => requestAnimationFrame(done))")
    assert browser.evaluate(hidden) == [True] * 6


@needs_browser
def test_arrow_keys_walk_along_a_chart(browser, pages):
    browser.open(pages["run"], 1280, 900, "light")
    browser.evaluate("document.querySelectorAll('.plot')[0].dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))")
    browser.evaluate("new Promise((done) => requestAnimationFrame(done))")
    where = browser.evaluate("[...document.querySelectorAll('.legend-where')].map((w) => w.textContent)")
    assert [where[i] for i in (0, 1, 2, 5)] == ["1\u202fs"] * 4  # one stretch of the rates; the other charts of the run follow


@needs_browser
def test_verdicts_are_counted_and_filter_the_rows_and_reasons_unfold(browser, pages):
    browser.open(pages["reproduce"], 1280, 900, "light")
    tallies = browser.evaluate("[...document.querySelectorAll('.tally')].map((t) => [t.querySelector('.figure').textContent, t.querySelector('.word').lastChild.textContent])")
    assert tallies == [["3", "agrees"], ["1", "claim holds"], ["1", "claim fails"], ["1", "differs"], ["1", "undecided"], ["1", "not checked"]]
    shown = "[...document.querySelectorAll('tr[data-verdict]')].filter((r) => r.offsetParent).map((r) => r.dataset.verdict)"
    assert len(browser.evaluate(shown)) == 8
    browser.evaluate("document.querySelectorAll('.tally')[3].click()")
    assert browser.evaluate(shown) == ["differs"]
    reasons = "[...document.querySelectorAll('tr.reason')].filter((r) => r.offsetParent).map((r) => r.textContent)"
    assert browser.evaluate(reasons) == []
    browser.evaluate("[...document.querySelectorAll('.why')].find((b) => b.offsetParent).click()")
    assert "RFC 9260" in browser.evaluate(reasons)[0]
    browser.evaluate("document.querySelectorAll('.tally')[3].click()")
    browser.evaluate("document.querySelectorAll('.tally')[4].click()")
    browser.evaluate("[...document.querySelectorAll('.why')].find((b) => b.offsetParent).click()")
    details = browser.evaluate(reasons)[-1]
    for said in ("95 % interval −1.0 to +2.0 %, 10 seeds", "sctp.sack_every=2"):
        assert said in details, details
    browser.evaluate("document.querySelectorAll('.tally')[4].click()")
    assert len(browser.evaluate(shown)) == 8


@needs_browser
def test_many_rows_are_folded_by_paper_and_a_text_finds_them(browser, tmp_path):
    report = fixtures.reproduce_report()
    report["rows"] += [{**report["rows"][0], "case": f"case {i}", "judged_by": "model"} for i in range(60)]
    page = tmp_path / "many.html"
    page.write_text(fill(report), encoding="utf-8")
    browser.open(page, 1280, 900, "light")
    shown = "[...document.querySelectorAll('tr[data-verdict]')].filter((r) => r.checkVisibility()).length"
    assert browser.evaluate(shown) == 0
    assert browser.evaluate("document.documentElement.scrollHeight") < 1200, "a folded page is short"
    assert browser.evaluate("[...document.querySelectorAll('.contents a')].length") == 2
    browser.evaluate("document.querySelector('.contents a').click()")
    assert browser.evaluate(shown) == 65
    browser.evaluate("const s = document.querySelector('.search input'); s.value = 'Fixture 2014 case 17'; s.dispatchEvent(new Event('input'))")
    assert browser.evaluate(shown) == 1
    assert browser.evaluate("document.getElementById('matches').textContent") == "1 shown"
    assert browser.evaluate("[...document.querySelectorAll('.verdict')].find((v) => v.checkVisibility()).textContent").startswith("✓agrees, model")
    browser.evaluate("s.value = ''; s.dispatchEvent(new Event('input'))")
    assert browser.evaluate(shown) == 0


@needs_browser
def test_the_kernel_stands_beside_the_simulator_and_charts_are_drawn_when_a_section_is_unfolded(browser, pages, tmp_path):
    browser.open(pages["validate"], 1280, 900, "light")
    heads = browser.evaluate("[...document.querySelector('table.rows').tHead.rows[0].cells].map((c) => c.textContent)")
    assert heads == ["Case", "Quantity", "Kernel", "Simulated", "Difference", "Verdict"]
    assert browser.evaluate("document.querySelector('.kind').textContent") == "Validation"
    assert "4 of 12 figures of the simulator agree with the kernel" in browser.evaluate("document.querySelector('.lead').textContent")
    assert status(browser)["charts"] == 8
    page = tmp_path / "all.html"
    page.write_text(fill(fixtures.validate_report(30)), encoding="utf-8")
    browser.open(page, 1280, 900, "light")
    assert status(browser)["charts"] == 0
    browser.evaluate("document.querySelectorAll('.contents a')[7].click()")
    until = time.monotonic() + 10
    while status(browser)["charts"] < 4 and time.monotonic() < until:
        time.sleep(0.02)
    assert status(browser)["charts"] == 4
    # A filter hides charts, and draws none for the sections that it unfolds.
    browser.evaluate("document.querySelectorAll('.tally')[1].click()")
    visible = "[...document.querySelectorAll('.plot')].filter((p) => p.checkVisibility()).length"
    assert browser.evaluate(visible) == 0
    assert (status(browser)["charts"], status(browser)["errors"]) == (4, [])


@needs_browser
def test_several_seeds_are_shown_with_means_intervals_and_every_run(browser, pages):
    browser.open(pages["seeds"], 1280, 900, "light")
    cells = browser.evaluate("[...document.querySelector('.comparison').tBodies[0].rows[0].cells].map((c) => c.textContent)")
    assert cells[:4] == ["daps", "4", "1.980 ± 0.079 (best)", "117.0 ± 2.0 (best)"]
    # Four charts with three means and twelve runs.
    assert status(browser)["points"][:4] == [15] * 4
    assert "seed 7 only" in browser.evaluate("document.querySelector('section[aria-labelledby=overlays] .note').textContent")
    tiles = browser.evaluate("[...document.querySelectorAll('.tile .note')].map((t) => t.textContent)")
    assert tiles[0] == "best: daps"
    browser.open(pages["repeated"], 1280, 900, "light")
    tiles = browser.evaluate("[...document.querySelectorAll('.tile .note')].map((t) => t.textContent)")
    assert tiles[0] == "± 79\u202fkbit/s, mean of 4 seeds"


@needs_browser
def test_a_sweep_has_lines_for_each_key_and_maps_over_two(browser, pages):
    browser.open(pages["sweep"], 1280, 900, "light")
    titles = "[...document.querySelectorAll('.chart h3')].map((t) => t.textContent)"
    assert browser.evaluate(titles) == ["Goodput over path.lte.rtt", *["Goodput over path.lte.rtt and transfer.receive_buffer"] * 2]
    assert status(browser)["points"] == [39, 20, 19], "one point failed"
    checked = "[...document.querySelectorAll('.chooser input')].filter((i) => i.checked).length"
    assert browser.evaluate(checked) == 6
    browser.evaluate("const [figure, over] = document.querySelectorAll('.pick select'); over.value = '2'; over.dispatchEvent(new Event('change'))")
    assert browser.evaluate(titles)[0] == "Goodput over transfer.scheduler"
    browser.evaluate("figure.value = '1'; figure.dispatchEvent(new Event('change'))")
    assert browser.evaluate(titles)[0] == "Delay, p99 over transfer.scheduler"
    assert status(browser)["errors"] == []


@needs_browser
def test_times_of_a_table_share_a_unit(browser, pages):
    for page in ("run", "compare", "tournament"):
        browser.open(pages[page], 1280, 900, "light")
        heads = browser.evaluate("[...document.querySelectorAll('table.wide')].map((t) => [...t.tHead.querySelectorAll('.unit')].map((u) => u.textContent))")
        assert heads
        assert all(len({unit for unit in units if unit in ("s", "ms", "µs")}) <= 1 for units in heads), heads


@needs_browser
def test_a_table_that_is_cut_off_says_so(browser, pages):
    cue = "[...document.querySelectorAll('.comparison')].map((t) => t.closest('.scroller').querySelector('.cue').hidden)"
    browser.open(pages["compare"], 390, 844, "light")
    assert browser.evaluate(cue) == [False]
    browser.open(pages["compare"], 1280, 900, "light")
    assert browser.evaluate(cue) == [True]


@needs_browser
def test_limits_that_cost_throughput_come_with_a_warning(browser, pages, tmp_path):
    browser.open(pages["tune"], 1280, 900, "light")
    assert browser.evaluate("document.querySelector('.warning')") is None
    report = fixtures.tune_report()
    report["tuning"]["check"]["managers"][-1]["gain"] = {"mean": 0.95, "half_width": 0.01}
    page = tmp_path / "costs.html"
    page.write_text(fill(report), encoding="utf-8")
    browser.open(page, 1280, 900, "light")
    assert "the limits cost throughput" in browser.evaluate("document.querySelector('.warning').textContent")


@needs_browser
def test_rows_show_base_units_scaled_and_others_as_they_are(browser, pages):
    browser.open(pages["reproduce"], 1280, 900, "light")
    rows = browser.evaluate("[...document.querySelectorAll('tr[data-verdict]')].map((r) => [...r.cells].map((c) => c.textContent))")
    thin = "\u202f"
    assert rows[0] == ["45 kB, round robin", "goodputMbit/s", "1.21", "1.19", "1.231", "–", f"+1.8{thin}%", "✓agrees"]
    assert rows[1][6] == f"−9.1{thin}%"
    assert rows[3][2:5] == ["yes", "–", "yes"]


@needs_browser
def test_a_surface_tells_what_is_under_the_pointer_and_repaints_by_night(browser, pages):
    browser.open(pages["tune"], 1280, 900, "light")
    assert status(browser)["points"] == [4, 114, 2, 720]
    told = "document.querySelector('.surface-key .legend-value').textContent"
    at_rest = browser.evaluate(told)
    assert "the ring: 70 and 16" in at_rest
    over = """(() => { const c = [...document.querySelectorAll('.cell.whole canvas')].at(-1); const b = c.getBoundingClientRect();
      c.dispatchEvent(new PointerEvent('pointermove', {clientX: b.x + 46, clientY: b.y + b.height - 28})); })()"""
    browser.evaluate(over)
    lowest = fixtures.tune_report()["surfaces"][0]["value"][0][0]
    assert browser.evaluate(told) == f"1 and 1: {lowest:.3f}"
    browser.evaluate("[...document.querySelectorAll('.cell.whole canvas')].at(-1).dispatchEvent(new PointerEvent('pointerleave'))")
    assert browser.evaluate(told) == at_rest
    colour = "[...[...document.querySelectorAll('.cell.whole canvas')].at(-1).getContext('2d').getImageData(60, 40, 1, 1).data].join()"
    by_day = browser.evaluate(colour)
    browser.evaluate("[...document.querySelectorAll('#actions button')].at(-1).click()")
    assert browser.evaluate(colour) != by_day
    browser.evaluate("[...document.querySelectorAll('#actions button')].at(-1).click()")


@needs_browser
def test_limits_come_with_their_promise_and_what_came_of_it(browser, pages):
    browser.open(pages["tune"], 1280, 900, "light")
    tiles = browser.evaluate("[...document.querySelectorAll('.tile .figure')].map((t) => t.textContent)")
    assert tiles == ["25.6", "+5.8\u202f%", "126", "20.2"]
    rows = browser.evaluate("[...document.querySelectorAll('.limits tbody tr')].map((r) => [...r.cells].map((c) => c.textContent))")
    assert [row[4] for row in rows[:2]] == ["70 packets", "16 packets"]
    assert [row[-1] for row in rows[:2]] == ["pays off", "leave it out"]
    assert rows[3][1] == "the transfer stopped at 3 s"
    assert rows[4][2] == "+2.3\u202f% ± 1.3\u202f%"


@needs_browser
def test_runs_are_shown_beside_one_of_them_and_what_is_sure_is_bold(browser, pages):
    browser.open(pages["compare"], 1280, 900, "light")
    rows = browser.evaluate("[...document.querySelector('.paired').tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent))")
    pairs = fixtures.compare_report()["paired"]
    assert [row[0] for row in rows] == [pair["label"] for pair in pairs]
    assert rows[0][1:] == ["3", "\u221220.0\u202f%\u221225.0 to \u221215.0", "+1.0\u202f%\u22124.0 to +6.0", "\u221220.0\u202f%", "–"]
    assert browser.evaluate("[...document.querySelectorAll('.paired strong')].length") == len(pairs), "the goodputs alone are sure"
    assert browser.evaluate("document.querySelector('.paired caption').textContent") == "Beside daps, seed by seed"


@needs_browser
def test_a_tournament_ranks_maps_and_shows_every_match(browser, pages):
    browser.open(pages["tournament"], 1280, 900, "light")
    document = fixtures.tournament_report()["tournament"]
    rankings, matches = document["rankings"], document["matches"]
    assert status(browser)["points"] == [14], "a point for each scheduler"
    shown = browser.evaluate("[...document.querySelectorAll('.ranking')].map((t) => [...t.tBodies[0].rows].map((r) => r.cells[0].textContent))")
    assert shown == [[r["scheduler"] for r in ranking["ranks"]] for ranking in rankings]
    assert browser.evaluate("document.querySelector('.lead').textContent").startswith(f"{shown[0][0]} comes first")
    first = browser.evaluate("[...document.querySelector('.ranking').tBodies[0].rows[0].cells].map((c) => c.textContent)")
    assert {"40.0\u202f% to 80.0\u202f%", "25.0\u202f%", "18 of 18"} <= set(first)
    cells = "[...document.querySelector('.heatmap').tBodies[0].rows].map((r) => [...r.cells].slice(1).map((c) => c.textContent))"

    def wanted(measure):
        order = [next(e for e in m["entries"] if e["scheduler"] == name) for name in shown[0] for m in matches]
        texts = [str(math.floor(100 * measure(e) + 0.5)) if measure(e) else "failed" for e in order]
        return [texts[i : i + len(matches)] for i in range(0, len(texts), len(matches))]

    assert browser.evaluate(cells) == wanted(lambda e: e["goodput_ratio"] * e["delay_ratio"])
    browser.evaluate("[...document.querySelectorAll('input[name=measure]')].at(2).click()")
    assert browser.evaluate(cells)[0] == wanted(lambda e: e["delay_ratio"])[0]
    details = browser.evaluate("[...document.querySelectorAll('details.match')].map((d) => d.querySelector('summary').textContent)")
    assert details == [f"{m['scenario']}, {m['protocol']}" for m in matches]
    over_the_air = browser.evaluate("[...document.querySelectorAll('details.match')].at(-1).querySelector('tbody tr').cells[2].textContent")
    assert over_the_air == "–", "the limit is not known there"
    failed = browser.evaluate("[...document.querySelectorAll('details.match th[scope=row]')].map((t) => t.textContent).filter((t) => t.includes('failed'))")
    assert failed == ["scheduler-13 (1 failed)"]


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_text_of_the_darkest_cell_of_the_map_can_be_read(browser, pages, scheme):
    browser.open(pages["tournament"], 1280, 900, scheme)
    contrast = browser.evaluate("""(() => {
      const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
      const light = (css) => {
        const [r, g, b] = css.match(/[\\d.]+/g).slice(0, 3).map(Number).map((v) => linear(css.startsWith('color(') ? v : v / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      return [...document.querySelectorAll('.heat')].map((cell) => {
        const [a, b] = [getComputedStyle(cell).color, getComputedStyle(cell).backgroundColor].map(light);
        return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      });
    })()""")
    assert len(contrast) == 14 * 18
    assert min(contrast) >= 4.5, min(contrast)


@needs_browser
def test_points_that_a_logarithmic_axis_cannot_show_are_counted(browser, pages):
    browser.open(pages["reproduce"], 1280, 900, "light")
    notes = browser.evaluate("[...document.querySelectorAll('figcaption')].map((c) => c.textContent)")
    assert [note for note in notes if "not shown" in note] == ["Throughput over lossOne point at or below zero is not shown."]
    # Paper 6, model 7 less the one at zero, simulated 6, peer 6.
    assert status(browser)["points"][1] == 24


@needs_browser
def test_the_download_is_the_document_itself(browser, pages, tmp_path):
    browser.open(pages["run"], 1280, 900, "light")
    browser.call("Browser.setDownloadBehavior", session=None, behavior="allow", downloadPath=str(tmp_path))
    browser.evaluate("document.querySelector('#actions button').click()")
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("*.json")) and time.monotonic() < deadline:
        time.sleep(0.05)
    (file,) = tmp_path.glob("*.json")
    assert file.name.startswith("daps-over-wi-fi-and-lte")
    assert json.loads(file.read_text(encoding="utf-8")) == fixtures.run_report()
    assert browser.problems() == []


@needs_browser
def test_the_theme_button_recolours_the_charts(browser, pages):
    browser.open(pages["run"], 1280, 900, "light")
    pixels = "document.querySelector('.plot canvas').toDataURL().length + document.querySelector('.plot canvas').toDataURL().slice(-400)"
    before = browser.evaluate(pixels)
    browser.evaluate("[...document.querySelectorAll('#actions button')].at(-1).click()")
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert browser.evaluate("document.documentElement.dataset.theme") == "dark"
    assert browser.evaluate(pixels) != before
    browser.evaluate("[...document.querySelectorAll('#actions button')].at(-1).click()")


@needs_browser
@pytest.mark.parametrize(("change", "message"), [({"schema": "ropewalk.report/9"}, "ropewalk.report/9"), ({"runs": [{"label": "bare"}]}, "")])
def test_foreign_data_is_refused_in_words_and_bare_data_is_borne(browser, tmp_path, change, message):
    page = tmp_path / "odd.html"
    page.write_text(fill({**fixtures.head("run", "Odd", ""), **change}), encoding="utf-8")
    browser.open(page, 1280, 900, "light")
    if message:
        assert message in browser.evaluate("document.querySelector('[role=alert]').textContent")
        assert status(browser)["errors"]
    else:
        assert status(browser)["errors"] == []
        assert browser.evaluate("document.querySelectorAll('.chart').length") == 6


@needs_browser
def test_the_page_prints_with_everything_unfolded(browser, pages, tmp_path):
    browser.open(pages["reproduce"], 1280, 900, "dark")
    browser.evaluate("window.atPrint = null; window.addEventListener('beforeprint', () => { window.atPrint = [document.documentElement.dataset.theme, document.querySelectorAll('details:not([open])').length]; })")
    folder = os.environ.get("ROPEWALK_REPORT_SHOTS")
    file = Path(folder or tmp_path) / "reproduce.pdf"
    browser.pdf(file)
    assert file.read_bytes().startswith(b"%PDF")
    assert browser.evaluate("window.atPrint") == ["light", 0]
    assert browser.evaluate("document.documentElement.dataset.theme") == "dark"
    assert status(browser)["errors"] == []
