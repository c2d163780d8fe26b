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
def receiver(tmp_path: Path):
    """A receiver with a live page: its directory, the address of the page, and where to send."""
    (tmp_path / "in").mkdir()
    notes = tmp_path / "notes"
    words = ["recv", "in", "--plain", "--listen", "127.0.0.1:0", "--listen", "127.0.0.2:0", "--web", "0"]
    environment = {**os.environ, "ROPEWALK_RUNTIME_DIR": str(tmp_path / "run")}
    with notes.open("w") as file:
        process = subprocess.Popen([BINARY, *words], cwd=tmp_path, stderr=file, stdout=subprocess.DEVNULL, env=environment)
    try:
        until("address to send to", lambda: "ropewalk send" in notes.read_text())
        text = notes.read_text()
        page = re.search(r"live page at (http://\S+)", text)[1]
        yield tmp_path, page, re.search(r"--to (\S+)", text)[1]
    finally:
        process.kill()
        process.wait()


def test_links_charts_and_events_appear_while_files_arrive(receiver):
    folder, page, to = receiver
    (folder / "a.bin").write_bytes(os.urandom(60_000_000))
    with Browser(find()) as browser:
        browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=900, deviceScaleFactor=1, mobile=False)
        browser.call("Page.navigate", url=page)
        until("heading", lambda: browser.evaluate("document.getElementById('title')?.textContent === 'ropewalk recv'"))
        # More than one second, so that the charts have several samples with a rate.
        for name in "abc":
            (folder / f"{name}.bin").write_bytes(os.urandom(60_000_000))
            words = ["send", f"{name}.bin", "--plain", "--to", to, "--from", "127.0.0.1,127.0.0.2"]
            subprocess.run([BINARY, *words], cwd=folder, check=True, capture_output=True)
        until("event of a file", lambda: browser.evaluate("Boolean(document.querySelector('[data-event=\"files received\"]'))"))
        assert browser.evaluate("Boolean(document.querySelector('[data-event=\"link up\"]'))")
        until("charts", lambda: browser.evaluate("document.querySelectorAll('figure.chart canvas').length === 4"))
        names = browser.evaluate("[...document.querySelectorAll('figure.chart h3')].map((h) => h.textContent)")
        assert names == ["Rate", "Round-trip time", "Receive buffer", "Data in flight"]
        legend = browser.evaluate("document.querySelector('figure.chart').textContent")
        assert "127.0.0.1" in legend and "127.0.0.2" in legend and "link up" in legend, legend
        if shots := os.environ.get("ROPEWALK_REPORT_SHOTS"):
            Path(shots).mkdir(parents=True, exist_ok=True)
            browser.screenshot(Path(shots) / "live.png")
        assert browser.evaluate("window.ropewalkReport.errors") == []
        assert browser.problems() == []
        assert all(url.startswith((page, "data:")) for url in browser.requests() if url != "about:blank"), browser.requests()
