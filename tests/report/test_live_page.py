"""The live page of a running command in a real browser: links, charts and events come by themselves."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from browser import Browser, find

BINARY = os.environ.get("ROPEWALK")
pytestmark = [
    pytest.mark.skipif(find() is None, reason="no chromium on this machine: set CHROMIUM or install it"),
    pytest.mark.skipif(not BINARY, reason="ROPEWALK does not name the command"),
]
PATIENCE_S = 60


def until(what: str, look):
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError(f"no {what}")


@pytest.fixture
def server(tmp_path: Path):
    """A server of measurements with a live page: the address of the page, and where to measure."""
    notes = tmp_path / "notes"
    words = ["bench", "serve", "--plain", "--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0", "--web", "0"]
    with notes.open("w") as file:
        process = subprocess.Popen([BINARY, *words], stderr=file, env=environment(tmp_path))
    try:
        until("address to measure to", lambda: "ropewalk bench run" in notes.read_text())
        text = notes.read_text()
        yield re.search(r"live page at (http://\S+)", text)[1], re.search(r"--to (\S+)", text)[1]
    finally:
        process.kill()
        process.wait()


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "ROPEWALK_RUNTIME_DIR": str(folder / "run")}


def test_links_charts_and_events_appear_while_data_flows(server, tmp_path):
    page, to = server
    with Browser(find()) as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
        browser.call("Page.navigate", url=page)
        until("heading", lambda: browser.evaluate("document.getElementById('title')?.textContent === 'ropewalk bench serve'"))
        words = ["bench", "run", "--plain", "--to", to, "--from", "127.0.0.1,127.0.0.2", "--time", "300s"]
        client = subprocess.Popen([BINARY, *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=environment(tmp_path))
        try:
            until("links", lambda: browser.evaluate("document.querySelectorAll('[data-state=active]').length === 2"))
            until("charts", lambda: browser.evaluate("document.querySelectorAll('figure.chart canvas').length === 4"))
            names = browser.evaluate("[...document.querySelectorAll('figure.chart h3')].map((h) => h.textContent)")
            assert names == ["Rate", "Round-trip time", "Receive buffer", "Data in flight"]
            legend = browser.evaluate("document.querySelector('figure.chart').textContent")
            assert all(word in legend for word in ("127.0.0.1", "127.0.0.2", "link up")), legend
            assert browser.evaluate("document.querySelectorAll('[data-event]').length") >= 3
            if shots := os.environ.get("ROPEWALK_REPORT_SHOTS"):
                time.sleep(4)
                Path(shots).mkdir(parents=True, exist_ok=True)
                browser.screenshot(Path(shots) / "live.png")
        finally:
            client.kill()
            client.wait()
        assert browser.evaluate("window.ropewalkReport.errors") == []
        assert browser.problems() == []
        assert all(url.startswith((page, "data:")) for url in browser.requests() if url != "about:blank"), browser.requests()
